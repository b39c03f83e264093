public import ChatModel
public import WireBytes

/// A connected IRC client. The driver chooses the number and never reuses it while the bridge may still name it.
public struct ClientID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// A room. Configured ones: the position in ``BridgeSettings/rooms``. Those of the template have the numbers after these, and
/// no number twice, so that nothing late reaches another room. The links of accounts' own have negative numbers: whatever is
/// asked for a room is asked for them too, and ``Bridge/ownLogin(of:)`` tells whose they are.
public struct RoomID: Hashable, Sendable {
    // Every client remembers its rooms, and every timer may name one: half a word is enough for all rooms that a process
    // opens in its life.
    private var number: Int32

    public var index: Int { Int(number) }

    public init(index: Int) { number = Int32(clamping: index) }
}

/// Somebody with a nick, on either side of the bridge. Valid while the person is known to ``IdentityMap``.
struct PersonID: Hashable {
    var rawValue: UInt64

    /// The id that no person has: ``IdentityMap`` begins with 1.
    static let nobody = PersonID(rawValue: 0)
}

/// The two clocks at one moment: one for intervals, one for what people read.
public struct Now: Hashable, Sendable {
    public var monotonic: MonotonicInstant
    public var wall: ChatTimestamp

    public init(monotonic: MonotonicInstant, wall: ChatTimestamp) {
        self.monotonic = monotonic
        self.wall = wall
    }
}

extension Now {
    /// A moment of an earlier process, of which the wall clock is all that is known. Not later than now.
    init(wall: ChatTimestamp, by now: Now) {
        let (age, over) = now.wall.milliseconds.subtractingReportingOverflow(wall.milliseconds)
        self.init(
            monotonic: now.monotonic + (.zero - .milliseconds(over ? 0 : max(age, 0))), wall: min(wall, now.wall))
    }

    /// So many milliseconds ago.
    func earlier(by milliseconds: Int64) -> Now {
        let (early, over) = wall.milliseconds.subtractingReportingOverflow(milliseconds)
        return Now(
            monotonic: monotonic + (.zero - .milliseconds(milliseconds)),
            wall: ChatTimestamp(milliseconds: over ? .min : early))
    }

    /// The moment, by the wall clock of now: the earlier of what it showed then and of what is counted back from what it
    /// shows now. The monotonic clock stands still while the machine sleeps, and the wall clock is set.
    func earliest(by now: Now) -> ChatTimestamp { min(wall, countedBack(from: now)) }

    /// The later of both, which is not later than now.
    func latest(by now: Now) -> ChatTimestamp { min(max(wall, countedBack(from: now)), now.wall) }

    private func countedBack(from now: Now) -> ChatTimestamp {
        now.earlier(by: max((now.monotonic - monotonic).wholeNanoseconds / 1_000_000, 0)).wall
    }
}

/// A moment as it is persisted: by the wall clock, and by the monotonic one where that is known.
struct KeptMoment {
    var at: ChatTimestamp
    var counted: MonotonicInstant?
}

extension KeptMoment {
    init(_ moment: Now, by now: Now) { self.init(at: moment.earliest(by: now), counted: moment.monotonic) }
}

/// Everything that can come due. One heap holds all deadlines, so the driver needs one timer. Of two ids in a key the longer
/// one stands first: then a key fits 16 bytes, of which the heap holds three a client.
enum TimerKey: Hashable {
    /// The next thing about a client's connection: registration time-out, ping, ping time-out.
    case clientLiveness(ClientID)
    /// The client's flood budget allows another line.
    case clientBudget(ClientID)
    /// A client has waited long enough for others of its name.
    case naming(ClientID)
    /// A client has had the time to ask for what it missed before it comes back to its rooms.
    case arriving(ClientID)
    /// A wrong password has waited long enough for its answer.
    case loginAnswer(ClientID)
    /// An account has taken too long to be made.
    case accountAnswer(ClientID)
    /// A room's link: retry, time-outs and pings (`UpstreamSession`).
    case link(RoomID)
    /// A room's link may be opened: a history would tell the truth now.
    case settling(RoomID)
    /// A slot for another upstream connection.
    case connectGate
    /// Longest wait for messages from before, or for the session to be usable (`CatchUp`).
    case catchUp(RoomID)
    /// The room's outbox: rate budget, confirmation and age.
    case outbox(RoomID)
    /// A person upstream stops typing unless told again.
    case typingIn(PersonID, RoomID)
    /// An IRC user's typing is to be repeated or stopped upstream.
    case typingOut(ClientID, RoomID)
    /// Read receipts for an author wait for their two seconds.
    case receipts(RoomID)
    /// It is to be kept until when nothing of the room is missing.
    case live(RoomID)
    /// A room that was opened has waited long enough for what is kept of it.
    case roomLoad(RoomID)
    /// People who are here are kept as seen.
    case identities
    /// The oldest of what IRC users did to messages is not refused any more, or not answered.
    case openActions(RoomID)
    /// A message that may be ours has waited long enough for the backend to say so.
    case undecided(RoomID)
    /// The backend may be called again to mark a room as read.
    case markRead(RoomID)
    /// People who were silent for long leave the room.
    case idlePeople(RoomID)
    /// The next of many people who came or went at once are told of.
    case crowds(RoomID)
    /// A room's link is gone for so long that nobody behind it is taken for present.
    case split(RoomID)
    /// A backend's tokens or calls: renewal, another try, time-outs.
    case backend(BackendID)
    /// A room that connects only while somebody is in it has been empty for long.
    case linger(RoomID)
    /// Those who want into a room have waited long enough for its link.
    case opening(RoomID)
    /// The next of many who wait for a room that is open now enter.
    case entrances
    /// Joins have waited long enough for a backend's list of rooms.
    case roomsList
    /// A backend that failed to say which rooms it has is asked again.
    case roomsRetry
    /// A LIST has waited long enough for that.
    case listing
    /// The backend has not said yet as whom it sees an account's own link.
    case ownIdentity(RoomID)
    /// A room's IRC users are asked whether they have received what was said.
    case cursors(RoomID)
    /// The next thing about what a client with a cursor gets: asking whether it has, a disk that does not answer.
    case following(ClientID)
    /// What a client asked to see of the past has been waited for long enough.
    case history(ClientID)
    /// The next thing about what a room's backend has from before the room's beginning.
    case olderHistory(RoomID)
    /// The drain time at shutdown is over.
    case shutdown
}
