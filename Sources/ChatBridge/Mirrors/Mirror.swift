import BridgeCore
import BridgeTypes
import ChatModel
import Mirrors
import Rooms
import WireBytes

/// One mirror while the bridge runs.
final class Mirror {
    let plan: MirrorPlan
    let legs: [MirrorLeg]
    private(set) var ids = ToolIDs()
    /// Ids of what the tool has brought and no room's order has yet.
    private var taken: Set<String> = []
    private var takenInOrder: [String] = []
    private var arrivals = TokenBucket(rate: 20, burst: 100)
    private(set) var counts = Counts()
    /// What an IRC network has brought and the room could not take yet.
    let held: HeldArrivals
    /// The newest places in the channels of an IRC network whose messages may not be stored yet, by room.
    private var unstoredPlaces: [String: IRCNetworkPosition] = [:]
    /// The store was asked whether it has these.
    private var isAskingForPlaces = false
    /// How many messages were taken and could not be stored, by room.
    private(set) var refusals: [String: Int] = [:]

    /// What came in.
    struct Counts: Equatable {
        var taken = 0
        var refused = 0
    }

    private static let maxTaken = 10_000

    /// - Parameters:
    ///   - before: the mirror of this name until a reload changed its keys.
    ///   - stored: what its tool had before the start.
    ///   - underWay: ids of what the tool had brought before the start and no room's order has yet.
    init(
        _ plan: MirrorPlan, after before: Mirror?, stored: [StoredMirrored], underWay: [String],
        random: AnyRandomNumberGenerator
    ) {
        self.plan = plan
        legs = plan.legs.map { MirrorLeg($0.rooms, to: $0.to, random: random) }
        // Another connection reads again what the rooms have not taken.
        held = (before?.plan.network == plan.network ? before?.held : nil) ?? HeldArrivals()
        if let before {
            (ids, taken, takenInOrder) = (before.ids, before.taken, before.takenInOrder)
        } else {
            stored.forEach { learn($0) }
            underWay.forEach { take($0) }
        }
    }

    /// How a message is called there. False: it is known.
    @discardableResult
    func learn(_ known: StoredMirrored) -> Bool { ids.insert(known) }

    /// Whether its tool may post now.
    func admits(now: MonotonicInstant) -> Bool { arrivals.take(now: now) }

    /// Whether the tool has brought a message before.
    func hasTaken(_ id: String) -> Bool { taken.contains(id) || ids.contains(id) }

    /// Something that the tool has brought is on its way to the room's order.
    func took(_ id: String?) {
        counts.taken += 1
        if let id { take(id) }
    }

    /// Something came that is not wanted, or could not be kept.
    func refused() { counts.refused += 1 }

    private func take(_ id: String) {
        guard taken.insert(id).inserted else { return }
        takenInOrder.append(id)
        if takenInOrder.count > Self.maxTaken {
            let half = takenInOrder.prefix(Self.maxTaken / 2)
            taken.subtract(half)
            takenInOrder.removeFirst(half.count)
        }
    }

    /// What was taken could not be stored, so it was not taken after all.
    func couldNotStore(_ id: String?, in room: String) {
        refusals[room, default: 0] += 1
        if let id { taken.remove(id) }
    }

    // MARK: - Places in the channels of an IRC network

    func reached(_ position: IRCNetworkPosition, in room: String) { unstoredPlaces[room] = position }

    /// It is not known to be stored yet.
    func keepPlace(_ position: IRCNetworkPosition, in room: String) {
        unstoredPlaces[room] = unstoredPlaces[room] ?? position
    }

    /// What came before a place is not stored.
    func forgetPlace(in room: String) { unstoredPlaces[room] = nil }

    /// The places to store behind what was brought before them; nil: there are none, or others are on their way.
    func takePlaces() -> [String: IRCNetworkPosition]? {
        guard !isAskingForPlaces, !unstoredPlaces.isEmpty else { return nil }
        isAskingForPlaces = true
        defer { unstoredPlaces = [:] }
        return unstoredPlaces
    }

    /// The store has answered for those.
    func placesAnswered() { isAskingForPlaces = false }

    /// Of all legs.
    var standing: MirrorQueue.Standing {
        var sum = MirrorQueue.Standing()
        for standing in legs.compactMap({ $0.queue?.standing }) {
            sum.posted += standing.posted
            sum.refused += standing.refused
            sum.givenUp += standing.givenUp
            sum.retries += standing.retries
            sum.waiting += standing.waiting
            sum.failure = sum.failure ?? standing.failure
        }
        return sum
    }
}

/// One direction of a mirror: rooms that are read, for a tool, an IRC network or another room.
final class MirrorLeg {
    enum Target: Equatable, Sendable {
        case tool
        /// By its name.
        case room(String)
        /// Of the mirror's IRC network.
        case channel(String)
    }

    /// Of the rooms.
    let names: [String]
    let to: Target
    private let random: AnyRandomNumberGenerator
    /// Once all rooms are open, in the order of ``names``.
    private(set) var rooms: [MirroredRoom] = []
    private(set) var sources: [MirrorSource] = []
    private(set) var queue: MirrorQueue?
    /// What the queue wants is being carried out.
    private var isWorking = false
    /// A cursor or the end of a batch was moved and may not be stored yet.
    private(set) var hasMoved = false
    /// How often it has begun: answers to what it asked before are dropped.
    private(set) var beginnings = 0
    private var outlet: HTTPOutlet?
    /// Messages that were redacted before they were posted; the changes of these are nothing to post either.
    private(set) var dropped = RecentIDs(capacity: 1000)
    /// The request under way.
    private(set) var call: HTTPClient.CallID?
    private var channelOutlet = NetworkOutlet()
    /// Names the post that is with the IRC network.
    private(set) var token: UInt64?

    init(_ names: [String], to: Target, random: AnyRandomNumberGenerator) {
        self.names = names
        self.to = to
        self.random = random
    }

    /// - Parameter batchEnds: of each room, up to where the process before was posting.
    func begin(
        _ rooms: [MirroredRoom], batchEnds: [Int64?], _ plan: MirrorPlan, installation: String, now: Now
    ) {
        self.rooms = rooms
        beginnings += 1
        sources = rooms.map { room in
            MirrorSource(
                room: room.name, channel: room.channel, filter: plan.filter,
                place: OriginChain.Place(room: room.name, of: installation), mirror: plan.place)
        }
        outlet = to == .tool ? plan.form.map { HTTPOutlet($0, plan.wording, secret: plan.secret) } : nil
        queue = MirrorQueue(
            plan.queue, rooms: zip(rooms, batchEnds).map { ($0.name, $0.cursor, $0.end, $1) }, random: random)
        queue?.start(now: now)
    }

    /// One of its rooms was closed, perhaps to be opened anew: what waits is found by the cursor then.
    func stop() {
        queue = nil
        call = nil
    }

    // MARK: - The queue

    /// Carries out what the queue wants.
    ///
    /// Answers that come at once leave more for the same loop, not for one within it: a backlog may be thousands long.
    func work(_ run: (MirrorAction) -> Void) {
        guard !isWorking else { return }
        isWorking = true
        defer { isWorking = false }
        while let actions = queue?.takeActions(), !actions.isEmpty { actions.forEach(run) }
    }

    func grew(room: Int, end: Int64, now: Now) { queue?.logged(room: room, end: end, now: now) }

    func timerFired(now: Now) { queue?.timerFired(now: now) }

    func read(_ outcome: Result<[MirrorQueue.Entry], StoreFailure>, missing: Int, now: Now) {
        queue?.read(outcome, missing: missing, now: now)
    }

    func settled(_ outcome: MirrorOutcome, now: Now) {
        queue?.settled(outcome, refused: outlet?.refusal ?? channelOutlet.refusal, now: now)
    }

    func drop(_ msgid: String) { dropped.insert(msgid) }

    func moved() { hasMoved = true }

    func movesAreStored() { hasMoved = false }

    // MARK: - What is under way

    /// Prepares a batch for the tool or the channel.
    func prepare(_ posts: [MirrorPost]) {
        outlet?.begin(posts)
        channelOutlet.begin(posts)
    }

    /// - Returns: nil: it posts to no tool.
    func nextRequest(now: ChatTimestamp) -> HTTPOutlet.Step? { outlet?.next(now: now) }

    var nextPost: NetworkOutlet.Step { channelOutlet.next }

    func called(_ id: HTTPClient.CallID?) { call = id }

    /// - Parameter answer: nil: there was none.
    func answered(_ answer: MirrorAnswer?, now: ChatTimestamp) -> HTTPOutlet.Step? {
        call = nil
        return answer.flatMap { outlet?.answered($0, now: now) }
    }

    /// - Parameter token: of the post that is with the network now.
    func handedOver(_ token: UInt64?) { self.token = token }

    func delivered(id: String?) -> NetworkOutlet.Step { channelOutlet.delivered(id: id) }

    func failed(_ reason: String, isFinal: Bool) -> NetworkOutlet.Step {
        channelOutlet.failed(reason, isFinal: isFinal)
    }

    // MARK: - Another room

    /// The message in another room that a post answers or changes there, by its msgid.
    func original(
        of post: MirrorPost, from room: MirroredRoom, to target: (name: String, key: StoredRoomKey), _ mirror: Mirror
    ) -> String? {
        let here: String? =
            switch post.content {
            case .edit(_, let original), .takenBack(let original), .reaction(_, _, let original): original
            default: post.replyTo
            }
        // Its copy there, or what it is itself a copy of.
        return here.flatMap { mirror.ids.msgid(of: "\(room.name) \($0)", in: target.key) }
            ?? post.target?.toolID.flatMap { $0.hasPrefix(target.name + " ") ? $0 : nil }
            .map { String($0.dropFirst(target.name.count + 1)) }
    }

    /// A post as another room of the bridge is told it; nil: it has no form there.
    ///
    /// - Parameter name: the speaker's there.
    func message(
        of post: MirrorPost, as name: String, answering original: String?, from room: MirroredRoom, _ mirror: Mirror
    ) -> RelayedMessage? {
        let text: String
        switch post.content {
        case .message(let words): text = words.written(as: .irc).joined()
        case .action(let words): text = "\u{1}ACTION \(words.written(as: .irc).joined())\u{1}"
        case .edit(let words, _): text = "* " + words.written(as: .irc).joined()
        case .takenBack, .reaction, .topic, .notice: return nil
        }
        let links = post.files.map(\.url).filter { !text.contains($0) }
        return RelayedMessage(
            name: name, text: ([text] + links).joined(separator: "\n"),
            annotations: mirror.tags(
                post.origin, id: "\(room.name) \(post.msgid)", first: post.first, isBot: post.speaker.isBot),
            replyTo: original, mark: post.origin.passing(mirror.plan.place).mark)
    }
}

extension Mirror {
    /// The tags of what the mirror brings into a room.
    func tags(_ origin: OriginChain, id: String?, first: String?, isBot: Bool) -> [StoredTag] {
        [
            origin.passing(plan.place).storedTag, id.map { StoredTag(name: StoredMirrored.tag, value: $0) },
            first.map { StoredTag(name: OriginChain.firstTag, value: $0) },
            isBot ? StoredTag(name: "bot", value: nil) : nil,
        ].compactMap(\.self)
    }
}
