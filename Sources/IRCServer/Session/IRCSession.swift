import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

// One IRC client: its registration data, and the state of its input and answers.
//
// | state       | meaning                            | verb → next                                                |
// |-------------|------------------------------------|------------------------------------------------------------|
// | registering | PASS, NICK, USER, CAP are gathered | all there, CAP ended → registered; time-out, QUIT → closed |
// | registered  | has a nick                         | QUIT, time-out, error → closed                             |
// | closed      | its last line is queued            | –                                                          |
//
// A session knows neither rooms nor commands: handlers read and change it, and all answers go through ``Outbound``.

package final class IRCSession {
    enum State: Equatable {
        case registering
        case registered(PersonID)
        case closed
    }

    /// Targets of one message, WHOIS or KICK.
    static let maxTargets = 4
    /// Channels named in one JOIN or PART.
    static let maxChannelsPerLine = 50
    /// Bytes of a realname that are retained.
    static let maxRealnameBytes = 128
    static let maxAwayBytes = 200
    static let maxUserBytes = 32

    /// Values that all sessions of a bridge share.
    final class Terms {
        let serverName: String
        let casemapping: IRCCasemapping
        private(set) var budget: TokenBucket.Limit
        let tagBudget = TokenBucket.Limit(rate: 4, burst: 12)
        /// Limits of one message of several lines.
        let multiline: (bytes: Int, lines: Int)
        /// Values that all offers have in common; the grounds of an offer give the others.
        let capabilityValues: [IRCCapability: String]
        private var lastAway: UInt64 = 0

        /// The number of the next AWAY, by which they are ordered.
        func nextAway() -> UInt64 {
            lastAway += 1
            return lastAway
        }

        init(_ settings: BridgeSettings) {
            serverName = settings.serverName
            casemapping = settings.casemapping
            multiline = (settings.limits.multilineMaxBytes, settings.limits.multilineMaxLines)
            capabilityValues = [
                .multiline: "max-bytes=\(multiline.bytes),max-lines=\(multiline.lines)",
                .metadata: MetadataSubscriptions.capabilityValue,
            ]
            budget = Self.budget(settings.limits)
        }

        private static func budget(_ limits: LimitSettings) -> TokenBucket.Limit {
            TokenBucket.Limit(rate: limits.messagesPerSecond, burst: Double(limits.messagesBurst))
        }

        func take(_ limits: LimitSettings) { budget = Self.budget(limits) }
    }

    // One per client, idle ones included: state that most of them rarely need is stored out of line.
    package let id: ClientID
    /// Changes once at most, by WEBIRC.
    package private(set) var origin: ClientOrigin
    package var isReadingPaused = false
    /// Half-closed: it sends no more; earlier input is still being processed.
    private(set) var hasEnded = false
    /// It does not read any more either.
    private(set) var hasNoReader = false
    package let connectedAt: ChatTimestamp
    let terms: Terms
    /// The person of a registered session; else an id that no person has.
    private var standing = IRCSession.isRegistering
    private static var isRegistering: PersonID { .invalid }
    private static var isClosed: PersonID { PersonID(rawValue: .max) }
    var decoder: IRCLineDecoder
    private(set) var negotiation: IRCCapabilityNegotiation
    private var budgetLevel: TokenBucket.Level
    private var tagBudgetLevel: TokenBucket.Level
    package private(set) var nick: String?

    var state: State {
        switch standing.rawValue {
        case Self.isRegistering.rawValue: .registering
        case Self.isClosed.rawValue: .closed
        default: .registered(standing)
        }
    }

    /// It is a client of this person now.
    func registered(as person: PersonID) { standing = person }

    func closed() { standing = Self.isClosed }

    /// A gateway sent the client's address.
    func moved(to origin: ClientOrigin) { self.origin = origin }

    func take(nick: String) { self.nick = nick }

    /// The nick belongs to another person now.
    func loseNick() { nick = nil }

    /// The connection is half-closed. False: already known.
    func sendingEnded() -> Bool {
        defer { hasEnded = true }
        return !hasEnded
    }

    /// The client does not read any more either.
    func readingEnded() { hasNoReader = true }

    var serverName: String { terms.serverName }
    var multilineLimits: (bytes: Int, lines: Int) { terms.multiline }

    var budget: TokenBucket {
        get { TokenBucket(terms.budget, budgetLevel) }
        set { budgetLevel = newValue.level }
    }

    /// Typing and other tag-only messages have a budget of their own, so they never delay a message.
    var tagBudget: TokenBucket {
        get { TokenBucket(terms.tagBudget, tagBudgetLevel) }
        set { tagBudgetLevel = newValue.level }
    }

    /// Nil for most registered clients.
    var login: LoginState?

    // Flow control.
    private(set) var lastReceivedAt: MonotonicInstant
    package private(set) var lastSpokeAt: ChatTimestamp
    /// `.min`: no ping is pending.
    private var pingInstant = MonotonicInstant(nanoseconds: .min)
    package private(set) var rooms: ShortList<RoomID> = []
    /// Callbacks that wait for the client to have received lines; nil: there never were any.
    private(set) var lineReceipts: DeliveryAcks?
    /// Delivery state of its rooms; nil: it has no cursors.
    private(set) var following: FollowedRooms?
    /// Messages that it was shown in rooms that it left.
    private(set) var shown = ShownRooms()
    /// Ticket of the newest write on the client's behalf.
    private(set) var lastKept: StoreTicket?
    /// Welcomed, and not in its rooms yet: it enters them when it has answered a PING behind the welcome.
    private(set) var isArriving = false
    /// The room that it left last.
    private(set) var lastLeft: RoomID?
    /// Ticket of the newest write that contains a message of the client.
    private(set) var lastAccepted: StoreTicket?

    /// Input was received: the client is alive.
    func heard(at now: MonotonicInstant) {
        lastReceivedAt = now
        pingSentAt = nil
    }

    func spoke(at now: ChatTimestamp) { lastSpokeAt = now }

    func entered(_ room: RoomID) { rooms.append(room) }
    func left(_ room: RoomID) { rooms.removeAll { $0 == room } }
    func leftEverything() { rooms = [] }

    /// The client asked to leave the room.
    func parted(from room: RoomID) { lastLeft = room }

    /// It leaves a room that it was shown up to here.
    func noteShown(_ place: Int64, in room: StoredRoomKey) { shown.note(place, in: room) }

    func beginArriving() { isArriving = true }

    /// False: it has arrived already.
    func finishArriving() -> Bool {
        defer { isArriving = false }
        return isArriving
    }

    func beginReceipts() -> DeliveryAcks {
        let receipts = lineReceipts ?? DeliveryAcks()
        lineReceipts = receipts
        return receipts
    }

    func beginFollowing() -> FollowedRooms {
        let following = following ?? FollowedRooms()
        self.following = following
        return following
    }

    func endFollowing() { following = nil }

    /// A write contains changes on the client's behalf.
    func kept(under ticket: StoreTicket) { lastKept = ticket }

    /// A write contains a message of the client.
    func accepted(under ticket: StoreTicket) {
        lastKept = ticket
        lastAccepted = ticket
    }

    /// `.min`: no recent wait for a room's link.
    private var waitInstant = MonotonicInstant(nanoseconds: .min)

    /// Start of the wait for rooms' links.
    var waitsSince: MonotonicInstant? {
        get { waitInstant.nanoseconds == .min ? nil : waitInstant }
        set { waitInstant = newValue ?? MonotonicInstant(nanoseconds: .min) }
    }

    var pingSentAt: MonotonicInstant? {
        get { pingInstant.nanoseconds == .min ? nil : pingInstant }
        set { pingInstant = newValue ?? MonotonicInstant(nanoseconds: .min) }
    }

    // State of answers. Not needed between two lines, except to continue paging through history.
    private var answering: Answering?

    private final class Answering {
        var longAnswers: [ReplyGenerator] = []
        var longAnswerBatch: String?
        var undrainedBytes = 0
        var response: LabeledResponse?
        var incomingBatch: IncomingBatch?
        var heldMessage: IRCMessage?
        var toldPages = ToldPages()

        var isDone: Bool {
            longAnswers.isEmpty && longAnswerBatch == nil && undrainedBytes == 0 && response == nil
                && incomingBatch == nil && heldMessage == nil && toldPages.isEmpty
        }
    }

    private func modifyAnswering(_ body: (Answering) -> Void) {
        let state = answering ?? Answering()
        answering = state
        body(state)
        if state.isDone { answering = nil }
    }

    /// Answers that are written in several steps, first in, first out; input waits until they are complete.
    var longAnswers: [ReplyGenerator] { answering?.longAnswers ?? [] }
    var hasLongAnswers: Bool { answering?.longAnswers.isEmpty == false }

    func appendLongAnswer(_ answer: ReplyGenerator) { modifyAnswering { $0.longAnswers.append(answer) } }

    func takeLongAnswers() -> [ReplyGenerator] {
        guard let answers = answering?.longAnswers else { return [] }
        modifyAnswering { $0.longAnswers = [] }
        return answers
    }

    func removeLongAnswers(where isUnwanted: (ReplyGenerator) -> Bool) {
        guard hasLongAnswers else { return }
        modifyAnswering { $0.longAnswers.removeAll(where: isUnwanted) }
    }

    func removeLongAnswer(_ answer: ReplyGenerator) { removeLongAnswers { $0 === answer } }

    var longAnswerBatch: String? {
        get { answering?.longAnswerBatch }
        set { if newValue != nil || answering != nil { modifyAnswering { $0.longAnswerBatch = newValue } } }
    }

    /// Bytes of long answers since the queue was last empty.
    var undrainedBytes: Int {
        get { answering?.undrainedBytes ?? 0 }
        set { if newValue != 0 || answering != nil { modifyAnswering { $0.undrainedBytes = newValue } } }
    }

    /// The first message that waits for the client's registration.
    var heldMessage: IRCMessage? {
        get { answering?.heldMessage }
        set { if newValue != nil || answering != nil { modifyAnswering { $0.heldMessage = newValue } } }
    }

    /// Replies of the labeled line being handled.
    var response: LabeledResponse? {
        get { answering?.response }
        set { if newValue != nil || answering != nil { modifyAnswering { $0.response = newValue } } }
    }

    /// The message of several lines that the client has begun.
    var incomingBatch: IncomingBatch? {
        get { answering?.incomingBatch }
        set { if newValue != nil || answering != nil { modifyAnswering { $0.incomingBatch = newValue } } }
    }

    /// A page of history was sent.
    func toldPage(_ ends: PageBoundaries, of key: StoredRoomKey) {
        if !ends.isEmpty { modifyAnswering { $0.toldPages.told(ends, of: key) } }
    }

    /// The ends of the page of a room or conversation that was sent last; nil: none recently.
    func lastPage(of key: StoredRoomKey) -> PageBoundaries? { answering?.toldPages[key] }

    /// Appends a line to the labeled response.
    func appendReply(_ message: IRCMessage) { answering?.response?.replies.append(message) }

    /// The labeled line is answered later, or elsewhere.
    func deferResponse() { answering?.response?.isDeferred = true }

    /// The deferred answer does not come.
    func answerNow() { answering?.response?.isDeferred = false }

    /// Pending answers to PINGs of one client while the disk stalls; further PINGs get no answer.
    static let maxHeldPongs = 100

    /// Answers to PINGs that wait until earlier messages are persisted.
    private(set) var heldPongs: [HeldPong] = []

    /// False: too many are pending.
    func hold(_ pong: HeldPong) -> Bool {
        guard heldPongs.count < Self.maxHeldPongs else { return false }
        heldPongs.append(pong)
        return true
    }

    /// Removes the first ones that are ready.
    func takePongs(while isReady: (HeldPong) -> Bool) -> ArraySlice<HeldPong> {
        let ready = heldPongs.prefix(while: isReady)
        heldPongs.removeFirst(ready.count)
        return ready
    }

    struct HeldPong {
        var ticket: StoreTicket
        var accepted: StoreTicket?
        var message: IRCMessage
        var label: String?
    }

    struct LabeledResponse {
        var label: String
        var replies: [IRCMessage] = []
        /// The answer is the echo of a message, which follows later.
        fileprivate(set) var isDeferred = false
    }

    init(id: ClientID, origin: ClientOrigin, offer: CapabilityOffer, terms: Terms, now: Now) {
        self.id = id
        self.origin = origin
        self.terms = terms
        self.connectedAt = now.wall
        self.decoder = IRCLineDecoder(limits: IRCLimits())
        self.negotiation = IRCCapabilityNegotiation(available: offer.available, values: offer.values)
        self.budgetLevel = .full(terms.budget)
        self.tagBudgetLevel = .full(terms.tagBudget)
        self.lastReceivedAt = now.monotonic
        self.lastSpokeAt = now.wall
    }

    var caps: IRCCapabilitySet { negotiation.enabled }

    /// CAP was received.
    func negotiate(_ params: [String]) -> IRCCapabilityNegotiation.Outcome {
        let listBytes = IRCCapabilityNegotiation.listBytes(server: serverName, nick: displayNick)
        return negotiation.commandReceived(params: params, isRegistered: person != nil, listBytes: listBytes)
    }

    /// The available capabilities have changed: the notifications for the client.
    func offered(_ offer: CapabilityOffer) -> [IRCCapabilityNegotiation.Reply] {
        negotiation.availabilityChanged(to: offer.available, values: offer.values)
    }
    var displayNick: String { nick ?? "*" }

    package var person: PersonID? {
        if case .registered(let person) = state { return person }
        return nil
    }

    // MARK: - Replies

    func numeric(_ numeric: IRCNumeric, _ params: String...) -> IRCMessage { line(numeric, params) }

    /// Queues a numeric behind the pending answers.
    func appendLine(_ numeric: IRCNumeric, _ params: String...) { appendLongAnswer(.line(line(numeric, params))) }

    func line(_ numeric: IRCNumeric, _ params: [String]) -> IRCMessage {
        var all: [String] = []
        all.reserveCapacity(params.count + 1)
        all.append(displayNick)
        all += params
        return IRCMessage(source: serverName, numeric: numeric, params: all)
    }

    // MARK: - Lines

    /// The items of a parameter that is separated by commas.
    static func list(_ param: String) -> [String] {
        guard param.utf8.contains(UInt8(ascii: ",")) else { return param.isEmpty ? [] : [param] }
        return param.split(separator: ",").map(String.init)
    }

    /// Registration data and login of a client: most registered clients need none of it.
    final class LoginState {
        var user: String?
        var userClientName: String?
        var realname = ""
        var password: String?
        var account: AccountSettings?
        var clientName: String?
        var isAdmitted = false
        var sasl = IRCSASLExchange()
        var isBearerRefused = false
        var registration: RegistrationTry?
        var refusedNick: String?
        var away: ClientAway?
        var gatewayTry: WebIRCAttempt?
        var failedTries = 0
        /// The text of an AWAY before registration; empty: back.
        var earlyAway: String?
    }
}
