import BridgeTypes
import ChatModel
import Rooms
import WireBytes

/// Delivery state of one connection: how far its client's delivery cursors may advance, and the backlogs that it is
/// still to get.
final class FollowedRooms {
    /// The client with the cursors; changes when others of the same name connect. Nil: none.
    private(set) var client: ClientKey?
    private(set) var rooms: [RoomID: FollowedRoom] = [:]
    /// Pending backlogs, in the order in which the rooms were entered.
    private(set) var backlogs: [Backlog] = []
    /// Bytes of live lines held for these.
    private var heldByteCount = 0
    /// Too many lines were held: the connection is about to be closed, and nothing written to it counts as delivered
    /// any more.
    private(set) var isOverfull = false
    private(set) var isAsking = false
    /// Time of the last request for an acknowledgement.
    private(set) var askedAt: MonotonicInstant?
    /// When to request an acknowledgement of the written lines; nil: no request is due.
    private(set) var askAt: MonotonicInstant?
    private(set) var lastStay: UInt64 = 0
    /// The bridge is stopping: the connection gets pending backlogs and no new messages.
    private(set) var isStopped = false

    /// The newest sequence number of a room; nil: there is no such room.
    typealias Newest = (RoomID) -> Int64?

    // MARK: - Client

    func assign(_ client: ClientKey) { self.client = client }

    /// Continues the numbering of stays: pending answers are about stays up to this one.
    func continueStays(after stay: UInt64) { lastStay = stay }

    // MARK: - Rooms

    /// The connection has entered the room.
    func enter(_ room: RoomID, written: Int64, received: Int64, isLive: Bool) {
        lastStay += 1
        rooms[room] = FollowedRoom(stay: lastStay, written: written, isLive: isLive, received: received)
    }

    func leave(_ room: RoomID) { rooms[room] = nil }

    /// From now on the connection gets all live messages of the room.
    func goLive(_ room: RoomID) { rooms[room]?.isLive = true }

    /// Stops live delivery.
    ///
    /// - Returns: the rooms that had it.
    func stopShowing(_ newest: Newest) -> [RoomID] {
        isStopped = true
        let live = rooms.filter { $0.value.isLive }
        for (id, followed) in live {
            rooms[id]?.written = written(id, followed, newest)
            rooms[id]?.isLive = false
        }
        return Array(live.keys)
    }

    /// The sequence number up to which the room was written to the client; nil: it follows no cursor there.
    func written(in room: RoomID, _ newest: Newest) -> Int64? { rooms[room].map { written(room, $0, newest) } }

    private func written(_ room: RoomID, _ followed: FollowedRoom, _ newest: Newest) -> Int64 {
        guard followed.isLive, let newest = newest(room) else { return followed.written }
        return max(followed.written, newest)
    }

    // MARK: - Backlogs

    func backlog(of room: RoomID) -> Backlog? { backlogs.first { $0.room == room } }

    func begin(_ backlog: Backlog) { backlogs.append(backlog) }

    /// It is complete, or the client left its room.
    func end(_ backlog: Backlog) { backlogs.removeAll { $0 === backlog } }

    /// The backlog was written up to here.
    func wrote(_ backlog: Backlog, upTo place: Int64) {
        if backlog.kind == .missed { rooms[backlog.room]?.written = place }
    }

    /// Holds a live line of the backlog's room.
    ///
    /// - Returns: whether it exceeds the limit.
    func hold(_ line: ByteSlice, by backlog: Backlog) -> Bool {
        guard !isOverfull else { return false }
        backlog.hold(line)
        heldByteCount += line.count
        isOverfull = heldByteCount > Backlog.maxHeldBytes
        return isOverfull
    }

    /// The next held line; nil: none.
    func release(from backlog: Backlog) -> ByteSlice? {
        let line = backlog.nextHeld()
        heldByteCount -= line?.count ?? 0
        return line
    }

    // MARK: - Acknowledgements

    /// A request to acknowledge a room up to a sequence number.
    struct Question {
        let room: RoomID
        let stay: UInt64
        let upTo: Int64
    }

    /// Unacknowledged sequence numbers of a room: the maximum over all rooms.
    func open(_ newest: Newest) -> Int64 {
        rooms.map { written($0.key, $0.value, newest) - $0.value.received }.max() ?? 0
    }

    /// The client has acknowledged everything written to it in its rooms.
    func hasEverything(_ newest: Newest) -> Bool { !isAsking && backlogs.isEmpty && open(newest) <= 0 }

    func ask(at due: MonotonicInstant) { askAt = min(askAt ?? due, due) }

    /// A request is due now.
    ///
    /// - Returns: false: one is pending, or the connection is overfull.
    func askNow() -> Bool {
        guard !isAsking, !isOverfull else { return false }
        askAt = nil
        return true
    }

    /// A PING is being sent: the requests that it carries; empty: none.
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

    /// The PONG was received.
    ///
    /// - Returns: the requests whose stays are not over.
    func answered(_ asked: [Question]) -> [Question] {
        isAsking = false
        let known = asked.filter { rooms[$0.room]?.stay == $0.stay }
        for question in known { rooms[question.room]?.acknowledge(upTo: question.upTo) }
        return known.sorted { $0.room.index < $1.room.index }
    }

    // MARK: - Time

    /// The next deadline; nil: none.
    func due(_ now: MonotonicInstant) -> MonotonicInstant? {
        if isOverfull { return now }
        let dues = [askAt] + backlogs.map(\.deadline)
        return dues.compactMap { $0 }.min()
    }
}

/// Delivery state of one room.
struct FollowedRoom {
    /// Identifies the stay: an answer about an earlier one changes nothing.
    let stay: UInt64
    /// Everything up to here was written; later messages may have been, too.
    fileprivate(set) var written: Int64
    /// Live messages are written.
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

/// Sequence numbers up to which one connection was shown the rooms that it left. On re-entry these messages are not
/// repeated.
struct ShownRooms {
    /// Rooms that are remembered, the last ones left; about 60 bytes each.
    static let capacity = 200

    private var places: [(room: StoredRoomKey, place: Int64)] = []

    subscript(room: StoredRoomKey) -> Int64? { places.first { $0.room == room }?.place }

    mutating func note(_ place: Int64, in room: StoredRoomKey) {
        places.removeAll { $0.room == room }
        if places.count >= Self.capacity { places.removeFirst() }
        places.append((room, place))
    }
}
