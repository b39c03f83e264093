import BridgeCore
import BridgeTypes
import ChatModel
import Configuration
import HTTPProtocol
import IRCServer
import Media
import Mirrors
import Rooms
import Transport
import WireBytes

/// Drives the mirrors on the bridge's loop: reads rooms for their queues, carries out their requests, and takes what their
/// tools bring.
final class MirrorService: ConnectionlessLoopClient {
    /// An answer to a post says little.
    private static let maxAnswerBytes = 64 * 1024
    private static let postTimeout: Duration = .seconds(30)
    /// A room that is not open yet, or takes nothing now, is tried again after this. Short, since a new mirror begins with
    /// what is said after it has found its rooms.
    private static let followInterval: Duration = .milliseconds(100)

    private unowned let host: any BridgeHost
    private let store: StoreDriver?
    private let loop: NetworkLoop
    let installation: String
    private let note: (BridgeNote) -> Void
    let client = HTTPClient()
    let networks: NetworkDriver
    private var lastToken: UInt64 = 0
    private(set) var mirrors: [String: Mirror] = [:]
    /// Rooms whose orders have grown since the last turn.
    private var grown: Set<RoomID> = []
    private var followAgainAt: MonotonicInstant?
    private var isStarted = false
    private let stored: [StoredMirrored]
    /// What is stored beside the cursors, and what is on its way there: by mirror, the places by their subjects.
    private var bookmarks: [String: [String: String]]
    /// By room, the ids under which what mirrors brought was said first.
    private var firsts: [String: RecentIDs] = [:]
    /// Ids of what the tools had brought before the start and no room's order has yet, by mirror.
    private let underWay: [String: [String]]
    private var lastQuestion: UInt64 = 0
    /// Strangers can cause these at will.
    private var refusalNotes = NoteRateLimiter()
    private var questions: [UInt64: (Result<[StoredMessage], StoreFailure>, Transport) -> Void] = [:]

    init(
        _ host: any BridgeHost, store: StoreDriver?, stored: StoredState?, loop: NetworkLoop,
        installation: String, note: @escaping (BridgeNote) -> Void
    ) {
        self.host = host
        self.store = store
        self.stored = stored?.mirrored ?? []
        bookmarks = (stored?.bookmarks ?? []).reduce(into: [:]) { $0[$1.mirror, default: [:]][$1.subject] = $1.place }
        underWay = (stored?.rooms.values.flatMap(\.outbox) ?? []).reduce(into: [:]) { found, entry in
            func tag(_ name: String) -> String? { entry.clientTags.first { $0.name == name }?.value }
            guard let mirror = tag(RelayedName.tag), let id = tag(StoredMirrored.tag) else { return }
            found[mirror, default: []].append(id)
        }
        self.loop = loop
        self.installation = installation
        self.note = note
        networks = NetworkDriver(note: note)
        networks.report(to: self)
    }

    var bridge: Bridge { host.bridge }

    /// Calls a verb of the bridge and runs what follows from it.
    func perform<Result>(_ transport: Transport, _ verb: (Bridge, Now) -> Result) -> Result {
        let result = verb(bridge, Now(transport))
        host.run(transport)
        return result
    }

    // MARK: - The configuration

    /// Has these mirrors from now on; those that are the same go on as they are.
    func take(_ plans: [MirrorPlan], now: MonotonicInstant, _ transport: Transport? = nil) {
        var kept: [String: Mirror] = [:]
        for plan in plans {
            if let known = mirrors[plan.name], known.plan == plan {
                kept[plan.name] = known
            } else {
                kept[plan.name] = Mirror(
                    plan, after: mirrors[plan.name], stored: stored.filter { $0.mirror == plan.name },
                    underWay: underWay[plan.name] ?? [], random: AnyRandomNumberGenerator(BufferedSystemRandom()))
            }
        }
        for (name, mirror) in mirrors where kept[name] !== mirror {
            if let transport { mirror.legs.compactMap(\.call).forEach { client.cancel($0, transport: transport) } }
        }
        mirrors = kept
        networks.take(
            Dictionary(plans.compactMap { plan in plan.network.map { (plan.name, $0) } }, uniquingKeysWith: { $1 }),
            now: now, transport)
        followAgainAt = now
    }

    /// The bridge has stopped.
    func stop(_ transport: Transport) { networks.take([:], now: transport.now, transport) }

    var isEmpty: Bool { mirrors.isEmpty }

    /// In the order of their names.
    var all: [Mirror] { mirrors.values.sorted { $0.plan.name < $1.plan.name } }

    // MARK: - The loop

    /// A mirrored room's order has grown.
    func logged(_ room: RoomID) { grown.insert(room) }

    /// What a mirror brought could not be stored and is not in the room: it has to come again.
    func refused(_ tags: [StoredTag], in room: RoomID, _ transport: Transport) {
        func tag(_ name: String) -> String? { tags.first { $0.name == name }?.value }
        guard let name = bridge.end(of: room)?.name, let mirror = tag(RelayedName.tag).flatMap({ mirrors[$0] }) else {
            return
        }
        mirror.couldNotStore(tag(StoredMirrored.tag), in: name)
        removeFirst(tag(OriginChain.firstTag), in: name)
        readAgain(name, mirror, transport)
    }

    /// What a mirror brought is in a room's order.
    func arrived(_ known: StoredMirrored) { mirrors[known.mirror]?.learn(known) }

    func nextDeadline() -> MonotonicInstant? {
        guard !mirrors.isEmpty else { return nil }
        return
            (mirrors.values.flatMap { $0.legs.compactMap { $0.queue?.nextDeadline } }
            + [followAgainAt].compactMap { $0 })
            .min()
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        if let at = followAgainAt, at <= now { follow(transport) }
        for mirror in mirrors.values {
            for leg in mirror.legs {
                leg.timerFired(now: Now(transport))
                work(leg, of: mirror, transport)
            }
        }
    }

    func turnWillFlush(now: MonotonicInstant, transport: Transport) {
        // What the bridge does for a mirror may let another room grow.
        while !grown.isEmpty {
            let rooms = grown
            grown = []
            for id in rooms {
                guard let (name, end) = bridge.end(of: id) else { continue }
                for mirror in mirrors.values {
                    for leg in mirror.legs {
                        guard let index = leg.rooms.firstIndex(where: { $0.name == name }) else { continue }
                        // A reload has closed the room and opened one of its name: what waits is found by the cursor.
                        guard leg.rooms[index].id == id else {
                            if let call = leg.call { client.cancel(call, transport: transport) }
                            leg.stop()
                            followAgainAt = now
                            continue
                        }
                        leg.grew(room: index, end: end, now: Now(transport))
                        work(leg, of: mirror, transport)
                    }
                }
            }
        }
    }

    func followAgain(_ transport: Transport) {
        followAgainAt = followAgainAt ?? transport.now + Self.followInterval
    }

    /// A room takes messages from now on. A mirror that has no cursor there begins before the first of them.
    func roomOpened(_ transport: Transport) { if followAgainAt != nil { follow(transport) } }

    /// Finds the rooms of legs that do not follow all of theirs yet, and brings what waited for a room.
    private func follow(_ transport: Transport) {
        followAgainAt = nil
        let names = Set(mirrors.keys)
        for mirror in all {
            for leg in mirror.legs where leg.queue == nil {
                let rooms = leg.names.compactMap { name in
                    perform(transport) { $0.follow(name, by: mirror.plan.name, among: names, now: $1) }
                }
                guard rooms.count == leg.names.count else {
                    followAgain(transport)
                    continue
                }
                let ends = rooms.map { bookmark(Self.batchEnd(of: $0), of: mirror.plan.name).flatMap { Int64($0) } }
                leg.begin(
                    rooms, batchEnds: ends, mirror.plan, installation: installation, now: Now(transport))
                work(leg, of: mirror, transport)
            }
        }
        for mirror in all { bringHeld(of: mirror, transport) }
    }

    // MARK: - Bookmarks

    /// The subject of the bookmark at the end of a room's batch.
    private static func batchEnd(of room: MirroredRoom) -> String { "batch \(room.name)" }

    func bookmark(_ subject: String, of mirror: String) -> String? { bookmarks[mirror]?[subject] }

    /// Persists a bookmark. False: it is there.
    @discardableResult
    func setBookmark(_ subject: String, of mirror: String, to place: String, _ transport: Transport) -> Bool {
        guard bookmarks[mirror, default: [:]].updateValue(place, forKey: subject) != place else { return false }
        let known = StoredBookmark(mirror: mirror, subject: subject, place: place)
        perform(transport) { $0.keepBookmark(known, now: $1) }
        return true
    }

    // MARK: - What came by another way

    static let firstsPerRoom = 5000

    /// Whether a mirror has brought a message to a room already, perhaps another mirror.
    func hasFirst(_ first: String?, in room: String) -> Bool {
        guard let first else { return false }
        return firsts[room]?.contains(first) ?? false
    }

    func insertFirst(_ first: String?, in room: String) {
        guard let first else { return }
        firsts[room, default: RecentIDs(capacity: Self.firstsPerRoom)].insert(first)
    }

    /// A room's stored messages were read.
    func loaded(_ room: RoomID, _ stored: StoredRoom) {
        guard let name = bridge.end(of: room)?.name else { return }
        for tags in stored.messages.map(\.clientTags) + stored.outbox.map(\.clientTags) {
            insertFirst(tags.first { $0.name == OriginChain.firstTag }?.value, in: name)
        }
    }

    func removeFirst(_ first: String?, in room: String) {
        if let first { firsts[room]?.remove(first) }
    }

    // MARK: - Queues

    private func work(_ leg: MirrorLeg, of mirror: Mirror, _ transport: Transport) {
        leg.work { run($0, leg, mirror, transport) }
        host.run(transport)
    }

    private func run(_ action: MirrorAction, _ leg: MirrorLeg, _ mirror: Mirror, _ transport: Transport) {
        switch action {
        case .read(let room, let after, let through, let limit):
            read(leg.rooms[room], after: after, through: through, limit: limit, transport) {
                [weak self, weak leg, weak mirror] outcome, missing, transport in
                guard let self, let leg, let mirror else { return }
                let entries = outcome.map { rows in rows.map { self.entry($0, room, leg, mirror, transport) } }
                leg.read(entries, missing: missing, now: Now(transport))
                work(leg, of: mirror, transport)
            }
        case .post(let room, let posts, let through, let isAgain):
            // One message after another is the same after a restart, and a room knows what it has.
            if leg.to == .tool, mirror.plan.queue.maxPosts > 1,
                setBookmark(
                    Self.batchEnd(of: leg.rooms[room]), of: mirror.plan.name, to: String(through), transport)
            {
                leg.moved()
            }
            if !isAgain { leg.prepare(posts) }
            post(posts, from: room, leg, mirror, transport)
        case .move(let room, let sequence):
            leg.moved()
            perform(transport) {
                $0.moveCursor(of: mirror.plan.name, in: leg.rooms[room].key, to: sequence, now: $1)
            }
        case .named(let room, let msgid, let toolID):
            learn(toolID, msgid: msgid, in: leg.rooms[room].key, mirror, transport)
        case .note(let entry): note(entry)
        }
    }

    private func post(
        _ posts: [MirrorPost], from room: Int, _ leg: MirrorLeg, _ mirror: Mirror, _ transport: Transport
    ) {
        if case .room(let to) = leg.to { return relay(posts, from: leg.rooms[room], to: to, leg, mirror, transport) }
        guard leg.hasMoved else { return deliver(leg, mirror, transport) }
        // Where the process is killed, the next one posts again what is under way, and nothing before it: that would stand
        // behind it there. What cannot be stored is posted all the same: it may be all that is left of it.
        let beginnings = leg.beginnings
        whenStored(transport) { [weak self, weak leg, weak mirror] _, transport in
            guard let self, let leg, let mirror, mirrors[mirror.plan.name] === mirror, leg.beginnings == beginnings,
                leg.queue != nil
            else { return }
            leg.movesAreStored()
            deliver(leg, mirror, transport)
        }
    }

    private func deliver(_ leg: MirrorLeg, _ mirror: Mirror, _ transport: Transport) {
        if case .channel(let channel) = leg.to {
            take(leg.nextPost, to: channel, leg, mirror, transport)
        } else if let step = leg.nextRequest(now: Now(transport).wall) {
            take(step, leg, mirror, transport)
        }
    }

    private func learn(
        _ toolID: String, msgid: String, in room: StoredRoomKey, _ mirror: Mirror, _ transport: Transport
    ) {
        let known = StoredMirrored(
            mirror: mirror.plan.name, room: room, msgid: msgid, toolID: toolID, isTheirs: false)
        guard mirror.learn(known) else { return }
        perform(transport) { $0.keepToolID(known, now: $1) }
    }

    private func read(
        _ room: MirroredRoom, after: Int64, through: Int64, limit: Int, _ transport: Transport,
        _ done: @escaping (Result<[StoredMessage], StoreFailure>, _ missing: Int, Transport) -> Void
    ) {
        guard let store else {
            let log = bridge.messagesInMemory(of: room.name)
            let missing = log?.firstSequence.map { max(0, min($0, through + 1) - after - 1) } ?? 0
            let rows = log?.messages(after: after, through: through, limit: limit) ?? []
            return done(.success(rows), Int(missing), transport)
        }
        lastQuestion += 1
        let question = lastQuestion
        questions[question] = { done($0, 0, $1) }
        store.read(room.key, after: after, through: through, limit: limit, on: loop) { outcome, transport in
            transport.mirrorService?.questions.removeValue(forKey: question)?(outcome, transport)
        }
    }

    /// Calls back when all changes until now are stored, or are not.
    func whenStored(_ transport: Transport, _ done: @escaping (_ isStored: Bool, Transport) -> Void) {
        guard let store, let key = bridge.roomNames.first.flatMap({ bridge.storedKey(of: $0) }) else {
            return done(true, transport)
        }
        lastQuestion += 1
        let question = lastQuestion
        questions[question] = { [weak store] outcome, transport in
            if case .failure = outcome { return done(false, transport) }
            done(store?.condition == .sound, transport)
        }
        // The store answers behind the changes.
        store.read(key, after: .max, through: .max, limit: 1, on: loop) { outcome, transport in
            transport.mirrorService?.questions.removeValue(forKey: question)?(outcome, transport)
        }
    }

    func noteRefusal(_ reason: String, _ mirror: Mirror, _ visitor: HTTPVisitor, _ transport: Transport) {
        guard let left = refusalNotes.take(transport.now) else { return }
        note(
            BridgeNote(
                .warn, "mirror-hook-refused", "a request to a mirror's path was refused: \(reason)",
                [
                    "mirror": mirror.plan.name, "peer": visitor.network,
                    "more": left > 0 ? "" : "not logged for a while",
                ]))
    }

    func entry(
        _ row: StoredMessage, _ room: Int, _ leg: MirrorLeg, _ mirror: Mirror, _ transport: Transport
    ) -> MirrorQueue.Entry {
        let (source, place) = (leg.sources[room], leg.rooms[room])
        if row.kind == .message, row.isTakenBack { leg.drop(row.msgid) }
        if let target = row.target, row.amendment != nil, leg.dropped.contains(target) {
            return MirrorQueue.Entry(sequence: row.sequence, post: nil)
        }
        let links = bridge.fileLinks(of: place.name, now: Now(transport))
        let post = source.post(
            row,
            target: { msgid in
                let quoted = self.bridge.quotation(of: msgid, in: place.name)
                let toolID = mirror.ids[msgid, in: place.key]
                guard quoted != nil || toolID != nil else { return nil }
                return MirrorPost.Target(toolID: toolID, nick: quoted?.nick ?? "", excerpt: quoted?.excerpt ?? "")
            },
            file: { attachment in
                guard let url = links?.url(of: attachment) ?? attachment.url, url.hasPrefix("http") else { return nil }
                return MirrorFile(url: url, name: attachment.name, type: attachment.mime, size: attachment.size)
            })
        return MirrorQueue.Entry(sequence: row.sequence, post: post)
    }

    // MARK: - Posts to a tool

    private func take(_ step: HTTPOutlet.Step, _ leg: MirrorLeg, _ mirror: Mirror, _ transport: Transport) {
        switch step {
        case .settled(let outcome): settle(outcome, leg, mirror, transport)
        case .send(let request):
            guard let url = mirror.plan.url else { return }
            var call = HTTPClientRequest(
                url.appending(path: request.pathSuffix, query: request.query), method: request.method)
            call.headers = HTTPHeaders(request.headers.map { ($0.name, $0.value) })
            call.headers.append(name: "User-Agent", value: "chatbridge/\(BuildInformation.version)")
            call.body = request.body
            call.timeout = Self.postTimeout
            call.maxBodyBytes = Self.maxAnswerBytes
            call.followsRedirects = false
            call.proxies = mirror.plan.proxies
            let id = client.send(call, transport: transport) {
                [weak self, weak leg, weak mirror] outcome, transport in
                guard let self, let leg, let mirror, mirrors[mirror.plan.name] === mirror else { return }
                switch outcome {
                case .success(let response):
                    let answer = MirrorAnswer(
                        status: response.head.status, headers: response.head.headers, body: response.body)
                    if let next = leg.answered(answer, now: Now(transport).wall) { take(next, leg, mirror, transport) }
                case .failure(let error):
                    _ = leg.answered(nil, now: Now(transport).wall)
                    settle(.later(reason: error.sentence, after: nil), leg, mirror, transport)
                }
            }
            leg.called(id)
        }
    }

    /// Names a post that is given to an IRC network.
    func nextToken() -> UInt64 {
        lastToken += 1
        return lastToken
    }

    func settle(_ outcome: MirrorOutcome, _ leg: MirrorLeg, _ mirror: Mirror, _ transport: Transport) {
        leg.settled(outcome, now: Now(transport))
        work(leg, of: mirror, transport)
    }

    // MARK: - To another room

    /// Says a batch in another room. It is done with when it is stored there; a process that is killed before knows what of
    /// it the room has, and so does a next try.
    private func relay(
        _ posts: [MirrorPost], from room: MirroredRoom, to name: String, _ leg: MirrorLeg, _ mirror: Mirror,
        _ transport: Transport
    ) {
        let outcome = say(posts, from: room, in: name, leg, mirror, transport)
        host.run(transport)
        guard case .taken = outcome else { return settle(outcome, leg, mirror, transport) }
        let (beginnings, refusals) = (leg.beginnings, mirror.refusals)
        whenStored(transport) { [weak self, weak leg, weak mirror] isStored, transport in
            guard let self, let leg, let mirror, mirrors[mirror.plan.name] === mirror, leg.beginnings == beginnings
            else { return }
            let isWhole = isStored && mirror.refusals == refusals
            settle(isWhole ? outcome : .later(reason: "not stored", after: .seconds(1)), leg, mirror, transport)
        }
    }

    private func say(
        _ posts: [MirrorPost], from room: MirroredRoom, in name: String, _ leg: MirrorLeg, _ mirror: Mirror,
        _ transport: Transport
    ) -> MirrorOutcome {
        let target = OriginChain.Place(room: name, of: installation)
        guard let key = bridge.storedKey(of: name) else {
            return .later(reason: "the room \(name) is not open", after: nil)
        }
        for post in posts where !post.origin.contains(target) && !hasFirst(post.first, in: name) {
            let nick = post.speaker.nick
            let speaker =
                RelayedName.isOne(nick) ? nick : bridge.relayedName(nick, mirror.plan.configuration.nickTemplate)
            let original = leg.original(of: post, from: room, to: (name, key), mirror)
            if let outcome = change(post, original, as: speaker, in: (name, key), mirror, transport) {
                guard case .taken = outcome else { return outcome }
                insertFirst(post.first, in: name)
                continue
            }
            guard let message = leg.message(of: post, as: speaker, answering: original, from: room, mirror) else {
                continue
            }
            // Without running what follows: all of them go to the store together.
            switch bridge.relay(message, in: name, by: mirror.plan.name, now: Now(transport)) {
            case .done?: insertFirst(post.first, in: name)
            case nil: return .later(reason: "the room \(name) is not open", after: nil)
            default: return .later(reason: "the room \(name) takes no more messages now", after: .seconds(1))
            }
        }
        return .taken(ids: posts.map { _ in nil })
    }
}

extension MirrorService {
    /// Carries out what a post does to an earlier message of another room; nil: it is a message.
    private func change(
        _ post: MirrorPost, _ original: String?, as speaker: String, in room: (name: String, key: StoredRoomKey),
        _ mirror: Mirror, _ transport: Transport
    ) -> MirrorOutcome? {
        let done: RoomReply?
        switch post.content {
        case .takenBack:
            // Only what the mirror has brought there.
            guard let original, mirror.ids.isTheirs(original, in: room.key) else { return .taken(ids: []) }
            done = bridge.takeBack(original, in: room.name, now: Now(transport))
        case .reaction(let emoji, let operation, _):
            guard let original else { return .taken(ids: []) }
            done = bridge.react(
                emoji, operation, on: original, as: speaker,
                tags: mirror.tags(post.origin, id: nil, first: post.first, isBot: false), in: room.name,
                now: Now(transport))
        default: return nil
        }
        return done == nil ? .later(reason: "the room \(room.name) is not open", after: nil) : .taken(ids: [])
    }
}

extension Transport {
    var mirrorService: MirrorService? { bridgeHost?.mirrors }
}
