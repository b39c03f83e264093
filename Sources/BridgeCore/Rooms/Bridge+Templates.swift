import ChatModel
import Dialects
import IRCProtocol
import WireBytes

// Rooms that nobody configured: any joined channel opens the backend's room of that name, as long as somebody is there.

/// Joins that wait for the backend to say which rooms it has, oldest first.
struct WaitingJoins {
    /// At a time; after a start every client joins its rooms again.
    static let maxCount = 10_000
    /// Of one client at a time, so that none takes the place of the others. More than people have open as a rule.
    static let maxCountOfClient = 20

    enum Outcome {
        case added
        /// The client waits for this channel already.
        case known
        case full
    }

    private var joins: [(client: ClientID, channel: String)] = []
    /// Clients that come back to rooms of their accounts as soon as the list is there; at most all that are connected.
    private var returning: Set<ClientID> = []
    /// Folded names.
    private var channels: [ClientID: Set<String>] = [:]

    var isEmpty: Bool { joins.isEmpty }

    mutating func append(_ channel: String, folded: String, of client: ClientID) -> Outcome {
        let waiting = channels[client, default: []]
        if waiting.contains(folded) { return .known }
        guard waiting.count < Self.maxCountOfClient, joins.count < Self.maxCount else { return .full }
        channels[client, default: []].insert(folded)
        joins.append((client, channel))
        return .added
    }

    mutating func append(returning client: ClientID) { returning.insert(client) }

    var hasReturning: Bool { !returning.isEmpty }

    /// In the order in which they connected.
    mutating func takeReturning() -> [ClientID] {
        defer { returning = [] }
        return returning.sorted { $0.rawValue < $1.rawValue }
    }

    /// The client is gone.
    mutating func forget(_ client: ClientID) {
        returning.remove(client)
        if channels.removeValue(forKey: client) != nil { joins.removeAll { $0.client == client } }
    }

    mutating func takeAll() -> [(client: ClientID, channel: String)] {
        defer {
            joins = []
            channels = [:]
        }
        return joins
    }
}

/// The rooms that a backend says it has, as channels.
struct BackendListing {
    /// Rooms of one backend that are listed and can be looked up; a list is as long as a backend likes.
    static let maxRooms = 10_000

    struct Entry {
        var channel: String
        var room: BackendRoom
    }

    private(set) var entries: [Entry] = []
    private var indices: [String: Int] = [:]

    init(_ rooms: [BackendRoom], casemapping: IRCCasemapping) {
        for room in rooms.prefix(Self.maxRooms) {
            guard let channel = Self.channel(room.name) else { continue }
            let key = casemapping.fold(channel)
            // Two rooms of one name cannot be told apart by it; the second is found by its id.
            if indices[key] == nil {
                indices[key] = entries.count
                entries.append(Entry(channel: channel, room: room))
            } else if let other = Self.channel(room.id), indices[casemapping.fold(other)] == nil {
                indices[casemapping.fold(other)] = entries.count
                entries.append(Entry(channel: other, room: room))
            }
        }
        for (index, entry) in entries.enumerated() {
            guard let channel = Self.channel(entry.room.id) else { continue }
            let key = casemapping.fold(channel)
            if indices[key] == nil { indices[key] = index }
        }
    }

    func entry(folded channel: String) -> Entry? { indices[channel].map { entries[$0] } }

    /// What a room is called today that the backend knows by this id or name; nil: it is not found by that.
    func channel(of upstreamRoom: String, casemapping: IRCCasemapping) -> String? {
        guard let id = Self.channel(upstreamRoom), let entry = entry(folded: casemapping.fold(id)),
            entry.room.id == upstreamRoom || entry.room.id.isEmpty && entry.room.name == upstreamRoom
        else { return nil }
        return entry.channel
    }

    /// `#general-chat` for "General Chat"; nil when nothing is left of the name.
    static func channel(_ name: String) -> String? {
        var text = ""
        var dashed = false
        for scalar in name.unicodeScalars {
            if scalar == " " || scalar == "," || scalar == ":" || IdentityMap.isControl(scalar)
                || scalar.properties.isWhitespace
            {
                // At the ends, and next to another, a dash says nothing.
                dashed = !text.isEmpty
            } else {
                if dashed { text += "-" }
                dashed = false
                let isUpper = scalar.value >= 0x41 && scalar.value <= 0x5A
                text.unicodeScalars.append(isUpper ? Unicode.Scalar(UInt8(scalar.value) | 0x20) : scalar)
            }
        }
        let kept = NickMaker.prefix(of: text, maxBytes: Bridge.maxTemplateNameBytes)
        return kept.isEmpty ? nil : "#" + kept
    }
}

extension Bridge {
    /// Bytes of a channel's name after its `#` that may open a room; as for configured channels.
    static let maxTemplateNameBytes = 63
    /// Rooms of the template that one person may have opened and be in: so ten people share what there may be of them by default.
    static let maxTemplateRoomsOfPerson = 10
    /// Longest wait of a join for that list; clients show nothing meanwhile.
    static let roomsListWait: Duration = .seconds(10)

    /// What is known of the rooms of the template's backend; nil where it does not say which it has.
    var templateListing: BackendListing? {
        if let knownTemplateListing { return knownTemplateListing }
        guard let template = settings.template, let rooms = backendRooms[template.backend] else { return nil }
        let listing = BackendListing(rooms, casemapping: settings.casemapping)
        knownTemplateListing = listing
        return listing
    }

    /// The room that a channel leads to by the template, opened when it is not yet. Nil after telling the client why not.
    ///
    /// - Parameter isComingBack: the client did not ask, so it is told nothing.
    func templateRoom(_ channel: String, _ session: IRCSession, isComingBack: Bool = false) -> Room? {
        guard let template = settings.template, session.person != nil, phase == .running else {
            if !isComingBack { noSuchChannel(channel, session) }
            return nil
        }
        func refuse(_ numeric: IRCNumeric, _ why: String) -> Room? {
            if !isComingBack { refuseJoin(channel, numeric, why, session) }
            return nil
        }
        guard let typed = Self.templateName(channel) else {
            return refuse(.errNoSuchChannel, "That cannot be the name of a room")
        }
        var name = typed
        var topic = ""
        var upstreamRoom = typed
        if let listing = templateListing {
            guard let entry = listing.entry(folded: settings.casemapping.fold(channel)) else {
                // It may be new; whoever asks again finds it then.
                askForTemplateRooms()
                // Who may enter few rooms is not told which others there are.
                guard session.account?.rooms == nil else {
                    return refuse(.errNoSuchChannel, Self.noSuchRoom)
                }
                return refuse(.errNoSuchChannel, "\(template.backend) has no such room; LIST shows them")
            }
            name = String(entry.channel.dropFirst())
            topic = Self.cleanTopic(entry.room.topic ?? "")
            upstreamRoom = entry.room.id.isEmpty ? entry.room.name : entry.room.id
        } else if templateBackendListsRooms {
            // A name that the backend does not have looks to it like a token that is wrong; so this must be known first.
            if isComingBack {
                awaitReturn(session)
                return nil
            }
            switch waitingJoins.append(channel, folded: settings.casemapping.fold(channel), of: session.id) {
            case .added, .known: break
            case .full:
                return refuse(.errNoSuchChannel, "The rooms of \(template.backend) are not known yet; try again later")
            }
            if context.timers[.roomsList] == nil {
                context.timers.set(.roomsList, at: context.now.monotonic + Self.roomsListWait)
            }
            askForTemplateRooms()
            return nil
        }
        // The list tells a room by any spelling; without one, each may be a room of its own.
        let called = templateListing == nil ? name : settings.casemapping.fold(name)
        guard session.account?.rooms.map({ $0.contains(called) }) ?? true else {
            return refuse(.errNoSuchChannel, Self.noSuchRoom)
        }
        if let known = room(channel: "#" + name), templateRooms[known.id] != nil { return known }
        if let configured = configuredRoom(upstreamRoom, name: name, in: template.backend) {
            return refuse(
                .errNoSuchChannel,
                mayEnter(configured, session) ? "That room is \(configured.channel) here" : Self.noSuchRoom)
        }
        guard isComingBack || !hasTemplateShare(session) else {
            return refuse(.errTooManyChannels, Self.shareIsTaken)
        }
        guard makeRoomForTemplate() else {
            return refuse(
                .errTooManyChannels,
                "\(settings.limits.templateRooms) rooms are open, and there may be no more; try again later")
        }
        guard var made = template.settings(upstreamRoom) else {
            return refuse(.errNoSuchChannel, "That cannot be the name of a room")
        }
        made.name = called
        made.channel = "#" + name
        if made.topic.isEmpty { made.topic = topic }
        made.upstreamRoom = upstreamRoom
        made.connect = .whileJoined
        let room = open(made)
        templateOpeners[room.id] = session.person
        return room
    }

    private static let shareIsTaken =
        "You have opened \(maxTemplateRoomsOfPerson) rooms that are still in use, and may not open more; leave one first"

    /// Why a room of the template cannot be entered by this name; nil: it can.
    ///
    /// IRC takes two spellings for one channel, so one is open at a time; the backend may have a room for each.
    func spellingRefusal(_ room: Room, as channel: String, _ session: IRCSession) -> IRCMessage? {
        guard let template = settings.template, templateRooms[room.id] != nil,
            !TextBytes.areSame(room.channel, channel),
            templateListing?.entry(folded: settings.casemapping.fold(channel)) == nil
        else { return nil }
        // Where nobody is, whoever asks again finds the place free.
        if isIdle(room) { room.leaveBackend(context) }
        return session.numeric(
            .errNoSuchChannel, channel,
            "It is open as \(room.channel), which may be another room of \(template.backend); JOIN that, or wait until it "
                + "is empty")
    }

    /// Why a client may not enter a room of the template in which nobody is, and so have it kept open; nil: it may.
    func shareRefusal(_ room: Room, _ session: IRCSession) -> IRCMessage? {
        guard templateRooms[room.id] != nil, isIdle(room), hasTemplateShare(session) else { return nil }
        return session.numeric(.errTooManyChannels, room.channel, Self.shareIsTaken)
    }

    /// Whether a person has opened as many rooms as one may. A room that was left to others is no longer theirs.
    private func hasTemplateShare(_ session: IRCSession) -> Bool {
        guard let person = session.person else { return true }
        let count = templateOpeners.count { id, opener in
            guard opener == person, let room = templateRooms[id], !room.isLeaving, !isIdle(room) else { return false }
            return room.locals.isEmpty || room.slots.contains(person)
        }
        return count >= Self.maxTemplateRoomsOfPerson
    }

    /// Nobody is in the room, and nothing that was said waits in it.
    private func isIdle(_ room: Room) -> Bool { room.locals.isEmpty && room.lane.outbox.isEmpty && !room.isOpening }

    private func refuseJoin(_ channel: String, _ numeric: IRCNumeric, _ why: String, _ session: IRCSession) {
        let shown = NickMaker.prefix(of: UpstreamSession.printable(channel), maxBytes: 100)
        reply(session.numeric(numeric, shown.isEmpty ? "*" : shown, why), session)
    }

    // MARK: - The backend's list

    /// Whether the template's backend can be asked which rooms it has.
    private var templateBackendListsRooms: Bool {
        guard let template = settings.template,
            let calls = settings.backends.first(where: { $0.name == template.backend })?.dialect.calls
        else { return false }
        return calls.request(for: .rooms, context: DialectContext(room: "")) != nil
    }

    func askForTemplateRooms() {
        guard let template = settings.template, templateBackendListsRooms else { return }
        requestRooms(template.backend)
    }

    /// Until the list is there it is asked for again and again: whoever is to come back to its rooms waits for it.
    private static let roomsRetryPauses: [Duration] = [
        .seconds(2), .seconds(4), .seconds(10), .seconds(30), .seconds(60),
    ]
    /// Longest wait of a LIST for it; what the client sends meanwhile waits as well.
    static let listingPatience: Duration = .seconds(3)

    func templateRoomsFailed(_ backend: String) {
        guard backend == settings.template?.backend, templateListing == nil else { return }
        endWaitingLists()
        let pause = Self.roomsRetryPauses[min(roomsFailures, Self.roomsRetryPauses.count - 1)]
        roomsFailures += 1
        context.timers.set(.roomsRetry, at: context.now.monotonic + pause)
    }

    func retryTemplateRooms() {
        guard let template = settings.template, templateListing == nil else { return }
        requestRooms(template.backend, isRetry: true)
    }

    /// Whether the rest of a client's LIST waits for the backend's answer.
    private func listWaits(_ session: IRCSession) -> Bool {
        guard let template = settings.template, templateListing == nil, roomsAsked.contains(template.backend) else {
            return false
        }
        if waitingLists.isEmpty { context.timers.set(.listing, at: context.now.monotonic + Self.listingPatience) }
        waitingLists.insert(session.id)
        return true
    }

    /// The list is there, or nobody waits for it any longer.
    func endWaitingLists() {
        context.timers.cancel(.listing)
        let waiting = waitingLists.sorted { $0.rawValue < $1.rawValue }
        waitingLists = []
        for client in waiting {
            guard let session = sessions[client],
                let listing = session.longAnswers.first?.subject as? RoomListing, case .unopened = listing.place
            else { continue }
            listing.isImpatient = templateListing == nil
            pullLongAnswers(session)
            processInput(session)
        }
    }

    func backendRoomsChanged() {
        knownTemplateListing = nil
        guard templateListing != nil else { return }
        roomsFailures = 0
        context.timers.cancel(.roomsRetry)
        endWaitingLists()
        defer { bringBackWaiting() }
        guard !waitingJoins.isEmpty else { return }
        context.timers.cancel(.roomsList)
        let waiting = waitingJoins.takeAll()
        for (client, channel) in waiting {
            guard let session = sessions[client] else { continue }
            join(channel, session)
            pullLongAnswers(session)
        }
    }

    /// The backend does not say which rooms it has.
    func refuseWaitingJoins() {
        let waiting = waitingJoins.takeAll()
        for (client, channel) in waiting {
            guard let session = sessions[client] else { continue }
            refuseJoin(
                channel, .errNoSuchChannel, "The rooms of the backend are not known yet; try again later", session)
        }
    }

    // MARK: - Opening and closing

    private func open(_ settings: RoomSettings) -> Room {
        lastRoomIndex += 1
        let id = RoomID(index: lastRoomIndex)
        let room = makeRoom(id, settings)
        if case .known(let person)? = backend(named: settings.backend)?.identification {
            room.accountIdentified(person, context)
        }
        rooms.append(room)
        templateRooms[id] = room
        roomsByChannel[self.settings.casemapping.fold(settings.channel)] = id
        context.note(.info, "room-opened", "a room of the template was opened", ["room": settings.name])
        if context.isDurable { load(room) }
        return room
    }

    /// Whether the template may open one more room. The one that has been empty for longest gives way.
    private func makeRoomForTemplate() -> Bool {
        let open = templateRooms.values.filter { !$0.isLeaving }
        if open.count < settings.limits.templateRooms { return true }
        let idle = open.filter(isIdle)
        guard
            let oldest = idle.min(by: {
                ($0.emptySince ?? context.now.monotonic) < ($1.emptySince ?? context.now.monotonic)
            })
        else { return false }
        oldest.leaveBackend(context)
        return true
    }

    /// A configured room that is this one, or has its name.
    private func configuredRoom(_ upstreamRoom: String, name: String, in backend: String) -> Room? {
        let fold = settings.casemapping.fold
        return rooms.first { room in
            guard templateRooms[room.id] == nil else { return false }
            if fold(room.settings.name) == fold(name) || fold(room.channel) == fold("#" + name) { return true }
            let theirs = room.settings.upstreamRoom
            return room.settings.backend == backend && (theirs == upstreamRoom || fold(theirs) == fold(name))
        }
    }

    /// The name behind the `#`, where a room may be called that.
    static func templateName(_ channel: String) -> String? {
        guard channel.hasPrefix("#") else { return nil }
        let name = channel.dropFirst()
        // A dot or two would lead elsewhere in a URL's path.
        guard !name.isEmpty, name.utf8.count <= maxTemplateNameBytes, name != ".", name != "..",
            !name.unicodeScalars.contains(where: {
                IdentityMap.isControl($0) || $0.properties.isWhitespace || "*?,".unicodeScalars.contains($0)
            })
        else { return nil }
        return String(name)
    }

    static func cleanTopic(_ topic: String) -> String { IdentityMap.realname(topic, maxBytes: maxTopicBytes) }

    /// Bytes of a backend's topic that are shown; with the numeric, the nick and the channel it must fit a line.
    static let maxTopicBytes = 300

    func roomFellSilent(_ id: RoomID) {
        guard let room = templateRooms[id], room.locals.isEmpty else { return }
        for timer in [
            TimerKey.link(id), .settling(id), .outbox(id), .receipts(id), .idlePeople(id), .linger(id), .cursors(id),
            .live(id), .roomLoad(id), .crowds(id), .split(id), .opening(id),
        ] {
            context.timers.cancel(timer)
        }
        templateRooms[id] = nil
        channels[id] = nil
        templateOpeners[id] = nil
        rooms.removeAll { $0.id == id }
        context.roomsWithAccount.remove(id)
        backend(named: room.settings.backend)?.forget(id)
        roomsByChannel[settings.casemapping.fold(room.channel)] = nil
        context.note(.info, "room-closed", "an empty room of the template was closed", ["room": room.settings.name])
    }

    // MARK: - LIST

    /// The first room at or after an index.
    func firstRoom(from index: Int) -> Room? {
        if index < settings.rooms.count { return rooms.indices.contains(index) ? rooms[index] : nil }
        return rooms[min(settings.rooms.count, rooms.count)...].first { $0.id.index >= index }
    }

    /// A room of the template's backend, where it is not open and the client may enter it.
    func unopenedRoom(_ entry: BackendListing.Entry, _ session: IRCSession) -> BackendListing.Entry? {
        guard let template = settings.template else { return nil }
        let channel = settings.casemapping.fold(entry.channel)
        let name = String(channel.dropFirst())
        guard roomsByChannel[channel] == nil, session.account?.rooms.map({ $0.contains(name) }) ?? true,
            configuredRoom(
                entry.room.id.isEmpty ? entry.room.name : entry.room.id, name: name, in: template.backend) == nil
        else { return nil }
        return entry
    }

    /// A room of the template's backend that is not open, for LIST.
    func unopenedRoomStep(_ listing: RoomListing, _ next: Int, _ session: IRCSession) -> LongAnswer.Step {
        if !listing.isImpatient, listWaits(session) { return .waits }
        guard let known = templateListing, next < known.entries.count else {
            return .last(session.numeric(.rplListEnd, "End of /LIST"))
        }
        walkedCount += 1
        listing.place = .unopened(next: next + 1)
        guard let entry = unopenedRoom(known.entries[next], session),
            listing.filter.passes(ListFilter.Facts(channel: entry.channel, people: 0))
        else { return .more(nil) }
        return .more(session.numeric(.rplList, entry.channel, "0", Self.cleanTopic(entry.room.topic ?? "")))
    }
}
