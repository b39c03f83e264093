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
    var ids = ToolIDs()
    /// Ids of what the tool has brought and no room's order has yet.
    private(set) var taken: Set<String> = []
    private var takenInOrder: [String] = []
    var arrivals = TokenBucket(rate: 20, burst: 100)
    var counts = Counts()
    /// What an IRC network has brought and the room could not take yet.
    var held = HeldArrivals()
    /// The newest places in the channels of an IRC network whose messages may not be stored yet, by room.
    var unstoredPlaces: [String: IRCNetworkPosition] = [:]
    /// The store was asked whether it has these.
    var isAskingForPlaces = false
    /// Messages that were taken and could not be stored.
    var refusals = 0

    /// What came in.
    struct Counts: Equatable {
        var taken = 0
        var refused = 0
    }

    private static let maxTaken = 10_000

    init(_ plan: MirrorPlan, random: AnyRandomNumberGenerator) {
        self.plan = plan
        legs = plan.legs.map { MirrorLeg($0.rooms, to: $0.to, random: random) }
    }

    /// Whether the tool has brought a message before.
    func hasTaken(_ id: String) -> Bool { taken.contains(id) || ids.contains(id) }

    func take(_ id: String) {
        guard taken.insert(id).inserted else { return }
        takenInOrder.append(id)
        if takenInOrder.count > Self.maxTaken {
            let half = takenInOrder.prefix(Self.maxTaken / 2)
            taken.subtract(half)
            takenInOrder.removeFirst(half.count)
        }
    }

    /// It was not taken after all.
    func giveBack(_ id: String) { taken.remove(id) }

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
    var queue: MirrorQueue?
    /// What the queue wants is being carried out.
    var isWorking = false
    /// A cursor or the end of a batch was moved and may not be stored yet.
    var hasMoved = false
    /// How often it has begun: answers to what it asked before are nobody's.
    private(set) var beginnings = 0
    var outlet: HTTPOutlet?
    /// Messages that were redacted before they were posted; the changes of these are nothing to post either.
    var dropped = RecentIDs(capacity: 1000)
    /// The request under way.
    var call: HTTPClient.CallID?
    var channelOutlet = NetworkOutlet()
    /// Names the post that is with the IRC network.
    var token: UInt64?

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
