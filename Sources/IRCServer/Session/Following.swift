import BridgeTypes
import ChatModel
import Rooms
import WireBytes

/// What one connection has got of its rooms: how far its client's cursors may move, and what it is still to get of what was
/// said before it entered.
final class Following {
    /// Whose cursors these are; another, when others of the same name turn up. Nil: it has none.
    private(set) var client: ClientKey?
    private(set) var rooms: [RoomID: Followed] = [:]
    /// Of the rooms of which it still gets what was said before, in the order in which it entered them.
    private(set) var backlogs: [Backlog] = []
    /// Bytes of live lines that wait for these.
    private var heldByteCount = 0
    /// More than may wait did: the connection is about to be closed, and nothing that it was given counts any more.
    private(set) var isOverfull = false
    private(set) var isAsking = false
    /// When it was asked last.
    private(set) var askedAt: MonotonicInstant?
    /// When to ask whether the client has what was written; nil: nothing is to be asked.
    private(set) var askAt: MonotonicInstant?
    private(set) var lastStay: UInt64 = 0
    /// The bridge is stopping, and the connection is shown nothing more but what it waits for.
    private(set) var isStopped = false

    /// The place of the newest message of a room; nil: there is no such room.
    typealias Newest = (RoomID) -> Int64?

    // MARK: - Whose

    func assign(_ client: ClientKey) { self.client = client }

    /// Answers that are on their way are about stays up to this one.
    func continueStays(after stay: UInt64) { lastStay = stay }

    // MARK: - Rooms

    /// The connection is in the room.
    func enter(_ room: RoomID, written: Int64, received: Int64, isLive: Bool) {
        lastStay += 1
        rooms[room] = Followed(stay: lastStay, written: written, isLive: isLive, received: received)
    }

    func leave(_ room: RoomID) { rooms[room] = nil }

    /// From now on the connection gets everything that is said there.
    func goLive(_ room: RoomID) { rooms[room]?.isLive = true }

    /// What is said from now on is not for this connection.
    ///
    /// - Returns: the rooms of which it got what was said.
    func stopShowing(_ newest: Newest) -> [RoomID] {
        isStopped = true
        let live = rooms.filter { $0.value.isLive }
        for (id, followed) in live {
            rooms[id]?.written = written(id, followed, newest)
            rooms[id]?.isLive = false
        }
        return Array(live.keys)
    }

    /// Up to where everything in the room was written to the client.
    private func written(_ room: RoomID, _ followed: Followed, _ newest: Newest) -> Int64 {
        guard followed.isLive, let newest = newest(room) else { return followed.written }
        return max(followed.written, newest)
    }

    // MARK: - Backlogs

    func backlog(of room: RoomID) -> Backlog? { backlogs.first { $0.room == room } }

    func begin(_ backlog: Backlog) { backlogs.append(backlog) }

    /// It is over, or the client left its room.
    func end(_ backlog: Backlog) { backlogs.removeAll { $0 === backlog } }

    /// The backlog's messages up to here were written.
    func wrote(_ backlog: Backlog, upTo place: Int64) {
        if backlog.kind == .missed { rooms[backlog.room]?.written = place }
    }

    /// A live line of the backlog's room waits.
    ///
    /// - Returns: whether that is more than may wait.
    func hold(_ line: ByteSlice, by backlog: Backlog) -> Bool {
        guard !isOverfull else { return false }
        backlog.hold(line)
        heldByteCount += line.count
        isOverfull = heldByteCount > Backlog.maxHeldBytes
        return isOverfull
    }

    /// The next line that waits; nil: none does.
    func release(from backlog: Backlog) -> ByteSlice? {
        let line = backlog.nextHeld()
        heldByteCount -= line?.count ?? 0
        return line
    }

    // MARK: - Asking

    /// Up to where the connection was asked about a room.
    struct Question {
        let room: RoomID
        let stay: UInt64
        let upTo: Int64
    }

    /// How much of what was written to it in the room of which this is most the client did not acknowledge.
    func open(_ newest: Newest) -> Int64 {
        rooms.map { written($0.key, $0.value, newest) - $0.value.received }.max() ?? 0
    }

    /// The client has acknowledged whatever was written to it in its rooms.
    func hasEverything(_ newest: Newest) -> Bool { !isAsking && backlogs.isEmpty && open(newest) <= 0 }

    func ask(at due: MonotonicInstant) { askAt = min(askAt ?? due, due) }

    /// A question is to go now.
    ///
    /// - Returns: false: one is on its way, or none helps.
    func askNow() -> Bool {
        guard !isAsking, !isOverfull else { return false }
        askAt = nil
        return true
    }

    /// A PING goes: about what it asks; empty: about nothing.
    func question(now: MonotonicInstant, _ newest: Newest) -> [Question] {
        guard askNow() else { return [] }
        let asked = rooms.compactMap { id, followed -> Question? in
            let upTo = written(id, followed, newest)
            return upTo > followed.received ? Question(room: id, stay: followed.stay, upTo: upTo) : nil
        }
        if !asked.isEmpty {
            isAsking = true
            askedAt = now
        }
        return asked
    }

    /// The PONG came.
    ///
    /// - Returns: what of it still holds: the stays that are not over.
    func answered(_ asked: [Question]) -> [Question] {
        isAsking = false
        let known = asked.filter { rooms[$0.room]?.stay == $0.stay }
        for question in known { rooms[question.room]?.acknowledge(upTo: question.upTo) }
        return known.sorted { $0.room.index < $1.room.index }
    }

    // MARK: - Time

    /// When something is to be done for it next; nil: nothing is.
    func due(_ now: MonotonicInstant) -> MonotonicInstant? {
        if isOverfull { return now }
        let dues = [askAt] + backlogs.map(\.deadline)
        return dues.compactMap { $0 }.min()
    }
}

/// One room that a connection follows.
struct Followed {
    /// Names the stay, so that an answer about an earlier one changes nothing.
    let stay: UInt64
    /// Everything up to here was written, whatever else was.
    fileprivate(set) var written: Int64
    /// Everything that is said is written.
    fileprivate(set) var isLive: Bool
    /// Everything up to here was received.
    private(set) var received: Int64

    fileprivate init(stay: UInt64, written: Int64, isLive: Bool, received: Int64) {
        self.stay = stay
        self.written = written
        self.isLive = isLive
        self.received = received
    }

    fileprivate mutating func acknowledge(upTo place: Int64) { received = max(received, place) }
}

/// Up to where one connection was shown the rooms that it left, by places in their orders. What it was shown there it is not
/// shown again when it enters once more.
struct ShownRooms {
    /// Rooms that are remembered, those that were left last; about 60 bytes each.
    static let capacity = 200

    private var places: [(room: StoredRoomKey, place: Int64)] = []

    subscript(room: StoredRoomKey) -> Int64? { places.first { $0.room == room }?.place }

    mutating func note(_ place: Int64, in room: StoredRoomKey) {
        places.removeAll { $0.room == room }
        if places.count >= Self.capacity { places.removeFirst() }
        places.append((room, place))
    }
}
