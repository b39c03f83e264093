import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

// One IRC client: what it said of itself, and where its input and its answers stand.
//
// | state       | meaning                             | verb → next                                                       |
// |-------------|-------------------------------------|--------------------------------------------------------------------|
// | registering | PASS, NICK, USER, CAP are gathered  | all there and CAP ended → registered; time-out, QUIT → closed       |
// | registered  | has a nick                          | QUIT, time-out, error → closed                                      |
// | closed      | its last line is queued             | –                                                                   |
//
// A session knows neither rooms nor commands: handlers read and change it, and the answers come through the bridge's one
// exit door.

package final class IRCSession {
    enum State: Equatable {
        case registering
        case registered(PersonID)
        case closed
    }

    /// Targets of one PRIVMSG, NOTICE or TAGMSG.
    static let maxTargets = 4
    /// Channels named in one JOIN, PART or NAMES.
    static let maxChannelsPerLine = 50
    /// Bytes of a realname that are kept.
    static let maxRealnameBytes = 128
    static let maxAwayBytes = 200
    static let maxUserBytes = 32

    /// What is the same for all sessions of a bridge.
    final class Terms {
        let serverName: String
        let budget: TokenBucket.Limit
        let tagBudget = TokenBucket.Limit(rate: 4, burst: 12)
        /// What one message of several lines may have.
        let multiline: (bytes: Int, lines: Int)
        /// Those that are the same for everybody; the grounds of an offer give the others.
        let capabilityValues: [IRCCapability: String]
        private var lastAway: UInt64 = 0

        /// Which of their AWAYs came later.
        func nextAway() -> UInt64 {
            lastAway += 1
            return lastAway
        }

        init(_ settings: BridgeSettings) {
            serverName = settings.serverName
            multiline = (settings.limits.multilineMaxBytes, settings.limits.multilineMaxLines)
            capabilityValues = [
                .multiline: "max-bytes=\(multiline.bytes),max-lines=\(multiline.lines)",
                .metadata: MetadataSubscriptions.capabilityValue,
            ]
            budget = TokenBucket.Limit(rate: settings.limits.messagesPerSecond, burst: settings.limits.messagesBurst)
        }
    }

    // There is one of these for every client, idle ones too: what most of them do not need most of the time stands in
    // places of its own.
    package let id: ClientID
    /// Changes once at most, when a gateway says for whom it connects.
    private(set) var origin: ClientOrigin
    var isReadingPaused = false
    /// It sends no more; what it sent before is still being carried out.
    private(set) var hasEnded = false
    /// Nor does it read any more.
    private(set) var hasNoReader = false
    let connectedAt: ChatTimestamp
    let terms: Terms
    /// Of a session that is registered, the person; of the others what can be nobody's id.
    private var standing = IRCSession.isRegistering
    private static let isRegistering = PersonID.invalid
    private static let isClosed = PersonID(rawValue: .max)
    var decoder: IRCLineDecoder
    private(set) var negotiation: IRCCapabilityNegotiation
    private var budgetLevel: TokenBucket.Level
    private var tagBudgetLevel: TokenBucket.Level
    private(set) var nick: String?

    var state: State {
        switch standing {
        case Self.isRegistering: .registering
        case Self.isClosed: .closed
        default: .registered(standing)
        }
    }

    /// It is one of this person's clients now.
    func registered(as person: PersonID) { standing = person }

    func closed() { standing = Self.isClosed }

    /// A gateway said for whom it connects.
    func moved(to origin: ClientOrigin) { self.origin = origin }

    func take(nick: String) { self.nick = nick }

    /// Somebody else has the nick now.
    func loseNick() { nick = nil }

    /// It sends no more. False: that is known.
    func sendingEnded() -> Bool {
        defer { hasEnded = true }
        return !hasEnded
    }

    /// Nor does it read any more.
    func readingEnded() { hasNoReader = true }

    var serverName: String { terms.serverName }
    var multilineLimits: (bytes: Int, lines: Int) { terms.multiline }

    var budget: TokenBucket {
        get { TokenBucket(terms.budget, budgetLevel) }
        set { budgetLevel = newValue.level }
    }

    /// Typing and other tag-only messages have a budget of their own: they never delay a message.
    var tagBudget: TokenBucket {
        get { TokenBucket(terms.tagBudget, tagBudgetLevel) }
        set { tagBudgetLevel = newValue.level }
    }

    /// Nil of most clients that are registered.
    var login: LoginState?

    // Flow.
    private(set) var lastReceivedAt: MonotonicInstant
    private(set) var lastSpokeAt: ChatTimestamp
    /// `.min`: no answer is waited for.
    private var pingInstant = MonotonicInstant(nanoseconds: .min)
    package private(set) var rooms: ShortList<RoomID> = []
    /// Who waits for the client to have received something; nil: nobody ever did.
    private(set) var lineReceipts: LineReceipts?
    /// What it has got of its rooms; nil: it has no cursors.
    private(set) var following: Following?
    /// What it was shown of rooms that it left.
    private(set) var shown = ShownRooms()
    /// The newest order with something that was kept on the client's behalf.
    private(set) var lastKept: StoreTicket?
    /// It is welcome, and not in its rooms yet; it comes in when it has answered a PING behind the welcome.
    private(set) var isArriving = false
    /// The room that it left last.
    private(set) var lastLeft: RoomID?
    /// The newest of them with something that the client said.
    private(set) var lastAccepted: StoreTicket?

    /// It is alive.
    func heard(at now: MonotonicInstant) {
        lastReceivedAt = now
        pingSentAt = nil
    }

    func spoke(at now: ChatTimestamp) { lastSpokeAt = now }

    func entered(_ room: RoomID) { rooms.append(room) }
    func left(_ room: RoomID) { rooms.removeAll { $0 == room } }
    func leftEverything() { rooms = [] }

    /// It wanted to leave the room.
    func parted(from room: RoomID) { lastLeft = room }

    /// It leaves a room of which it was shown everything up to here.
    func noteShown(_ place: Int64, in room: StoredRoomKey) { shown.note(place, in: room) }

    func beginArriving() { isArriving = true }

    /// False: it has arrived already.
    func finishArriving() -> Bool {
        defer { isArriving = false }
        return isArriving
    }

    func beginReceipts() -> LineReceipts {
        let receipts = lineReceipts ?? LineReceipts()
        lineReceipts = receipts
        return receipts
    }

    func beginFollowing() -> Following {
        let following = following ?? Following()
        self.following = following
        return following
    }

    func endFollowing() { following = nil }

    /// An order has something that is kept on the client's behalf.
    func kept(under ticket: StoreTicket) { lastKept = ticket }

    /// An order has something that the client said.
    func accepted(under ticket: StoreTicket) {
        lastKept = ticket
        lastAccepted = ticket
    }

    /// `.min`: it did not wait for a room's link lately.
    private var waitInstant = MonotonicInstant(nanoseconds: .min)

    /// When it began to wait for rooms' links.
    var waitsSince: MonotonicInstant? {
        get { waitInstant.nanoseconds == .min ? nil : waitInstant }
        set { waitInstant = newValue ?? MonotonicInstant(nanoseconds: .min) }
    }

    var pingSentAt: MonotonicInstant? {
        get { pingInstant.nanoseconds == .min ? nil : pingInstant }
        set { pingInstant = newValue ?? MonotonicInstant(nanoseconds: .min) }
    }

    // Answering. Between two lines a client needs nothing of it, but for what leafing through the past goes on from.
    private var answering: Answering?

    private final class Answering {
        var longAnswers: [LongAnswer] = []
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

    /// Answers too long for one go, first in, first out; input waits until they are done.
    var longAnswers: [LongAnswer] { answering?.longAnswers ?? [] }
    var hasLongAnswers: Bool { answering?.longAnswers.isEmpty == false }

    func appendLongAnswer(_ answer: LongAnswer) { modifyAnswering { $0.longAnswers.append(answer) } }

    func takeLongAnswers() -> [LongAnswer] {
        guard let answers = answering?.longAnswers else { return [] }
        modifyAnswering { $0.longAnswers = [] }
        return answers
    }

    func removeLongAnswers(where isUnwanted: (LongAnswer) -> Bool) {
        guard hasLongAnswers else { return }
        modifyAnswering { $0.longAnswers.removeAll(where: isUnwanted) }
    }

    func removeLongAnswer(_ answer: LongAnswer) { removeLongAnswers { $0 === answer } }

    var longAnswerBatch: String? {
        get { answering?.longAnswerBatch }
        set { if newValue != nil || answering != nil { modifyAnswering { $0.longAnswerBatch = newValue } } }
    }

    /// Bytes of long answers since the queue was last empty.
    var undrainedBytes: Int {
        get { answering?.undrainedBytes ?? 0 }
        set { if newValue != 0 || answering != nil { modifyAnswering { $0.undrainedBytes = newValue } } }
    }

    /// What the client said first of what waits for its registration.
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

    /// A page of the past was told.
    func toldPage(_ ends: PageEnds, of key: StoredRoomKey) {
        if !ends.isEmpty { modifyAnswering { $0.toldPages.told(ends, of: key) } }
    }

    /// Where the page of a room or conversation ends that was told last; nil: none was of late.
    func lastPage(of key: StoredRoomKey) -> PageEnds? { answering?.toldPages[key] }

    /// Another line of the labeled response.
    func appendReply(_ message: IRCMessage) { answering?.response?.replies.append(message) }

    /// The answer to the labeled line comes later, or is in no other line.
    func deferResponse() { answering?.response?.isDeferred = true }

    /// What was to come later does not come.
    func answerNow() { answering?.response?.isDeferred = false }

    /// Answers to PINGs that a client may be owed while the disk stalls; more PINGs get no answer.
    static let maxHeldPongs = 100

    /// Answers to PINGs that wait until what was said before is on disk.
    private(set) var heldPongs: [HeldPong] = []

    /// False: too many wait.
    func hold(_ pong: HeldPong) -> Bool {
        guard heldPongs.count < Self.maxHeldPongs else { return false }
        heldPongs.append(pong)
        return true
    }

    /// The first of them that wait no longer.
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
        /// The answer is the echo of a message, which comes later.
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

    /// Other capabilities are there than before: what the client is told of that.
    func offered(_ offer: CapabilityOffer) -> [IRCCapabilityNegotiation.Reply] {
        negotiation.availabilityChanged(to: offer.available, values: offer.values)
    }
    var displayNick: String { nick ?? "*" }

    var person: PersonID? {
        if case .registered(let person) = state { return person }
        return nil
    }

    // MARK: - Replies

    func numeric(_ numeric: IRCNumeric, _ params: String...) -> IRCMessage { line(numeric, params) }

    /// A numeric behind the answers that are on their way.
    func appendLine(_ numeric: IRCNumeric, _ params: String...) { appendLongAnswer(.line(line(numeric, params))) }

    func line(_ numeric: IRCNumeric, _ params: [String]) -> IRCMessage {
        IRCMessage(source: serverName, numeric: numeric, params: [displayNick] + params)
    }

    // MARK: - Lines

    /// What stands in a parameter, apart by commas.
    static func list(_ param: String) -> [String] {
        Array(param.split(separator: ",").lazy.map(String.init).prefix(maxChannelsPerLine))
    }

    /// What a client said of itself until it is let in, and as whom it logged in: most need nothing of it once registered.
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
        var gatewayTry: GatewayTry?
        var failedTries = 0
        /// What AWAY said before registration; an empty text: back.
        var earlyAway: String?
    }
}
