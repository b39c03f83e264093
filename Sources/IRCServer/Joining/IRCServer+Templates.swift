import Accounts
import BridgeTypes
import ChatModel
import Dialects
import IRCProtocol
import Rooms
import Upstream
import WireBytes

// Rooms without configuration: joining any channel opens the backend's room of that name, while a client is in it.

extension IRCServer {
    /// Template rooms opened by one person and still in use: by default ten people share the limit of all template
    /// rooms.
    static let maxTemplateRoomsOfPerson = 10
    /// The room of a channel by the template, opened if necessary; nil: refused, with a reply.
    ///
    /// - Parameter isComingBack: there was no request, so a refusal is not sent.
    func templateRoom(_ channel: String, _ session: IRCSession, isComingBack: Bool = false) -> Room? {
        guard let template = settings.template, session.person != nil, lifecycle.isServing else {
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
        if let listing = directory.listing {
            guard let entry = listing.entry(folded: settings.casemapping.fold(channel)) else {
                // The room may be new; a later request will find it.
                askForTemplateRooms()
                // An account restricted to some rooms must not learn which others exist.
                guard session.account?.rooms == nil else {
                    return refuse(.errNoSuchChannel, Self.noSuchRoom)
                }
                return refuse(.errNoSuchChannel, "\(template.backend) has no such room; LIST shows them")
            }
            name = String(entry.channel.dropFirst())
            topic = Self.cleanTopic(entry.room.topic ?? "")
            upstreamRoom = entry.room.id.isEmpty ? entry.room.name : entry.room.id
        } else if directory.backend != nil {
            // An unknown room is indistinguishable from a wrong token, so the list is needed first.
            if isComingBack {
                awaitReturn(session)
                return nil
            }
            switch directory.awaitListing(join: channel, folded: settings.casemapping.fold(channel), of: session.id)
            {
            case .added, .known: break
            case .full:
                return refuse(.errNoSuchChannel, "The rooms of \(template.backend) are not known yet; try again later")
            }
            if context.due(.roomsList) == nil {
                context.set(.roomsList, at: context.now.monotonic + RoomDirectory.joinPatience)
            }
            askForTemplateRooms()
            return nil
        }
        // With a list, spellings are equivalent; without one, each may be a room of its own.
        let called = directory.listing == nil ? name : settings.casemapping.fold(name)
        guard session.account?.rooms.map({ $0.contains(called) }) ?? true else {
            return refuse(.errNoSuchChannel, Self.noSuchRoom)
        }
        if let known = room(channel: "#" + name), roomTable.isOfTemplate(known) { return known }
        if let configured = configuredRoom(upstreamRoom, name: name, in: template.backend) {
            let place =
                roomTable.isRetired(configured)
                ? "That room is being closed; try again later" : "That room is \(configured.channel) here"
            return refuse(.errNoSuchChannel, mayEnter(configured, session) ? place : Self.noSuchRoom)
        }
        if let refusal = entryRefusal(nil, as: channel, isRequest: !isComingBack, session) {
            if !isComingBack { reply(refusal, session) }
            return nil
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
        return open(made, by: session.person)
    }

    /// The refusal of a template room under this spelling of its name; nil: it can be entered.
    ///
    /// IRC takes two spellings for one channel, so one is open at a time; the backend may have a room for each.
    func spellingRefusal(_ room: Room, as channel: String, _ session: IRCSession) -> IRCMessage? {
        guard let template = settings.template, roomTable.isOfTemplate(room),
            !TextBytes.areSame(room.channel, channel),
            directory.listing?.entry(folded: settings.casemapping.fold(channel)) == nil
        else { return nil }
        // An idle room is closed, so that a later request succeeds.
        if !room.isWanted { room.leaveBackend(context) }
        return session.numeric(
            .errNoSuchChannel, channel,
            "It is open as \(room.channel), which may be another room of \(template.backend); JOIN that, or wait until it "
                + "is empty")
    }

    /// The refusal of one more template room than the person may open; nil: it is not opened by that, or there may be more.
    ///
    /// - Parameter room: nil: it is to be opened.
    func templateShareRefusal(_ room: Room?, as channel: String, _ session: IRCSession) -> IRCMessage? {
        guard room.map({ roomTable.isOfTemplate($0) && !$0.isWanted }) ?? true, hasTemplateShare(session) else {
            return nil
        }
        return session.numeric(
            .errTooManyChannels, Self.shown(channel),
            "You have opened \(Self.maxTemplateRoomsOfPerson) rooms that are still in use, and may not open more; leave "
                + "one first")
    }

    /// Whether a person has opened the maximum number of rooms. A room that the person left to others no longer counts.
    private func hasTemplateShare(_ session: IRCSession) -> Bool {
        guard let person = session.person else { return true }
        let count = roomTable.opened(by: person).count { room in
            !room.isLeaving && room.isWanted && (room.locals.isEmpty || room.slots.contains(person))
        }
        return count >= Self.maxTemplateRoomsOfPerson
    }

    func refuseJoin(_ channel: String, _ numeric: IRCNumeric, _ why: String, _ session: IRCSession) {
        reply(numeric, Self.shown(channel), why, to: session)
    }

    /// A requested channel in a reply.
    private static func shown(_ channel: String) -> String {
        let shown = PrintableText.of(channel, maxBytes: 100)
        return shown.isEmpty ? "*" : shown
    }

    // MARK: - The backend's list

    /// Requests the room list of the template's backend, unless that was done a moment ago.
    package func askForTemplateRooms(isRetry: Bool = false) {
        guard let backend = directory.backend, directory.beginCall(isRetry: isRetry, now: context.now.monotonic)
        else { return }
        serverWishes.append(.rooms(of: backend))
    }

    /// Whether the rest of a client's LIST waits for the backend's answer; registers it as waiting.
    private func listWaits(_ session: IRCSession) -> Bool {
        guard let isFirst = directory.awaitListing(session.id) else { return false }
        if isFirst { context.set(.listing, at: context.now.monotonic + RoomDirectory.listPatience) }
        return true
    }

    // MARK: - Opening and closing

    private func open(_ settings: RoomSettings, by person: PersonID?) -> Room {
        let room = makeRoom(roomTable.takeID(), settings)
        if let person = backends[settings.backend]?.person { room.accountIdentified(person, context) }
        roomTable.add(ofTemplate: room, openedBy: person)
        context.note(.info, "room-opened", "a room of the template was opened", ["room": settings.name])
        if context.isDurable {
            load(room)
            prefer(room)
        }
        return room
    }

    /// Longest wait for a room's stored data: a stalled disk must not block messages.
    static let roomLoadWait: Duration = .seconds(10)

    /// Reads a room's stored data when its turn has come.
    package func load(_ room: Room) {
        room.beginLoading()
        loads.append(room.id)
        loadNext()
    }

    /// A user wants to enter the room.
    func prefer(_ room: Room) { if room.isLoading { loads.prefer(room.id) } }

    /// A room was read, or will not be.
    package func loadEnded(_ id: RoomID) {
        context.cancel(.roomLoad(id))
        loads.end(id)
        loadNext()
    }

    private func loadNext() {
        guard let id = loads.next(where: { room($0).map { !roomTable.isHeld($0) } ?? true }) else { return }
        guard let room = room(id), room.isLoading else { return loadEnded(id) }
        guard context.isDurable else {
            room.loaded(StoredRoom(), context)
            return loadEnded(id)
        }
        context.set(.roomLoad(id), at: context.now.monotonic + Self.roomLoadWait)
        ask(.loadRoom(id, room.storedKey))
    }

    /// Whether the template may open one more room; at the limit, the room idle for longest is closed.
    private func makeRoomForTemplate() -> Bool {
        let open = roomTable.ofTemplate.filter { !$0.isLeaving }
        if open.count < settings.limits.templateRooms { return true }
        let idle = open.filter { !$0.isWanted }
        guard
            let oldest = idle.min(by: {
                ($0.emptySince ?? context.now.monotonic) < ($1.emptySince ?? context.now.monotonic)
            })
        else { return false }
        oldest.leaveBackend(context)
        return true
    }

    /// A configured room that is the same upstream room, or has its name.
    private func configuredRoom(_ upstreamRoom: String, name: String, in backend: String) -> Room? {
        let fold = settings.casemapping.fold
        return roomTable.configured { room in
            if fold(room.settings.name) == fold(name) || fold(room.channel) == fold("#" + name) { return true }
            let theirs = room.settings.upstreamRoom
            return room.settings.backend == backend && (theirs == upstreamRoom || fold(theirs) == fold(name))
        }
    }

    /// The name behind the `#`, if it is valid for a room.
    static func templateName(_ channel: String) -> String? {
        guard channel.hasPrefix("#") else { return nil }
        let name = channel.dropFirst()
        // One or two dots would change a URL's path.
        guard !name.isEmpty, name.utf8.count <= BackendListing.maxNameBytes, name != ".", name != "..",
            !name.unicodeScalars.contains(where: {
                PrintableText.isControl($0) || $0.properties.isWhitespace || "*?,".unicodeScalars.contains($0)
            })
        else { return nil }
        return String(name)
    }

    func roomFellSilent(_ id: RoomID) {
        guard let room = roomTable[id], roomTable.isPassing(room), room.locals.isEmpty else { return }
        for timer in [
            TimerKey.link(id), .settling(id), .outbox(id), .receipts(id), .idleUsers(id), .linger(id), .cursors(id),
            .complete(id), .joinBatches(id), .netsplit(id), .opening(id),
        ] {
            context.cancel(timer)
        }
        remove(room)
        loadEnded(id)
        backends[room.settings.backend]?.remove(id)
        context.note(.info, "room-closed", "a room was closed", ["room": room.settings.name])
    }

    // MARK: - LIST

    /// A room of the template's backend that is not open and that the client may enter; nil otherwise.
    func unopenedRoom(_ entry: BackendListing.Entry, _ session: IRCSession) -> BackendListing.Entry? {
        guard let template = settings.template else { return nil }
        let channel = settings.casemapping.fold(entry.channel)
        let name = String(channel.dropFirst())
        guard roomTable[channel: channel] == nil, session.account?.rooms.map({ $0.contains(name) }) ?? true,
            configuredRoom(
                entry.room.id.isEmpty ? entry.room.name : entry.room.id, name: name, in: template.backend) == nil
        else { return nil }
        return entry
    }

    /// One step of LIST through the rooms of the template's backend that are not open.
    func unopenedRoomStep(_ listing: RoomListing, _ next: Int, _ session: IRCSession) -> ReplyGenerator.Step {
        if !listing.isImpatient, listWaits(session) { return .waits }
        guard let known = directory.listing, next < known.entries.count else {
            return .last(session.numeric(.rplListEnd, "End of /LIST"))
        }
        walk.spend()
        listing.listed(unopenedRoom: next)
        guard let entry = unopenedRoom(known.entries[next], session),
            listing.filter.passes(ListFilter.Facts(channel: entry.channel, people: 0))
        else { return .more(nil) }
        return .more(session.numeric(.rplList, entry.channel, "0", Self.cleanTopic(entry.room.topic ?? "")))
    }

    /// Resumes the client's return once the backend has listed its rooms. There was no request and there is no reply,
    /// so this may take as long as the backend is unreachable.
    private func awaitReturn(_ session: IRCSession) {
        directory.awaitListing(returning: session.id)
        askForTemplateRooms()
    }
}
