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

final class IRCSession {
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
        let budget: TokenBucket.Terms
        let tagBudget = TokenBucket.Terms(rate: 4, burst: 12)
        /// What one message of several lines may have.
        let multiline: (bytes: Int, lines: Int)
        /// Those that are the same for everybody; ``Bridge/offer(for:)`` has the others.
        let capabilityValues: [IRCCapability: String]

        init(_ settings: BridgeSettings) {
            serverName = settings.serverName
            multiline = (settings.limits.multilineMaxBytes, settings.limits.multilineMaxLines)
            capabilityValues = [
                .multiline: "max-bytes=\(multiline.bytes),max-lines=\(multiline.lines)",
                .metadata: MetadataSubscriptions.capabilityValue,
            ]
            budget = TokenBucket.Terms(rate: settings.limits.messagesPerSecond, burst: settings.limits.messagesBurst)
        }
    }

    // There is one of these for every client, idle ones too: what most of them do not need most of the time stands in
    // places of its own.
    let id: ClientID
    /// Changes once at most, when a gateway says for whom it connects.
    var origin: ClientOrigin
    var isReadingPaused = false
    /// It sends no more; what it sent before is still being carried out.
    var hasEnded = false
    /// Nor does it read any more.
    var hasNoReader = false
    let connectedAt: ChatTimestamp
    private let terms: Terms
    /// Of a session that is registered, the person; of the others what can be nobody's id.
    private var standing = IRCSession.isRegistering
    private static let isRegistering = PersonID.nobody
    private static let isClosed = PersonID(rawValue: .max)
    var decoder: IRCLineDecoder
    var negotiation: IRCCapabilityNegotiation
    private var budgetLevel: TokenBucket.Level
    private var tagBudgetLevel: TokenBucket.Level
    var nick: String?

    var state: State {
        get {
            switch standing {
            case Self.isRegistering: .registering
            case Self.isClosed: .closed
            default: .registered(standing)
            }
        }
        set {
            switch newValue {
            case .registering: standing = Self.isRegistering
            case .closed: standing = Self.isClosed
            case .registered(let person): standing = person
            }
        }
    }

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

    // Registration and login. Once registered, most clients need nothing of it any more.
    private var login: LoginState?

    private final class LoginState {
        var user: String?
        var userClientName: String?
        var realname = ""
        var password: String?
        var account: AccountSettings?
        var clientName: String?
        var isAdmitted = false
        var sasl = IRCSASLExchange()
        var scram: SCRAMStep?
        var isBearerRefused = false
        var passwordTry: PasswordTry?
        var registration: String?
        var refusedNick: String?
        var away: ClientAway?
        var gatewayTry: GatewayTry?
        var failedTries = 0
        /// What AWAY said before registration; an empty text: back.
        var earlyAway: String?
    }

    private func modifyLogin(_ body: (LoginState) -> Void) {
        let state = login ?? LoginState()
        login = state
        body(state)
    }

    /// What USER said, until registration.
    var user: String? {
        get { login?.user }
        set { modifyLogin { $0.user = newValue } }
    }

    /// What USER said, until registration.
    var realname: String {
        get { login?.realname ?? "" }
        set { modifyLogin { $0.realname = newValue } }
    }

    /// Gives back what only registering needed, and what logging in did when nobody did.
    func forgetUnusedLogin() {
        guard let login else { return }
        guard login.account == nil, !login.isAdmitted, login.passwordTry == nil, login.registration == nil else {
            login.clientName = clientName
            login.user = nil
            login.userClientName = nil
            login.realname = ""
            login.earlyAway = nil
            return
        }
        self.login = nil
    }

    /// The away message that the client gave before registration.
    var earlyAway: String? {
        get { login?.earlyAway.flatMap { $0.isEmpty ? nil : $0 } }
        set { modifyLogin { $0.earlyAway = newValue } }
    }

    /// What PASS said, until registration.
    var password: String? {
        get { login?.password }
        set { if newValue != nil || login != nil { modifyLogin { $0.password = newValue } } }
    }

    /// As whom the client logged in.
    var account: AccountSettings? {
        get { login?.account }
        set { if newValue != nil || login != nil { modifyLogin { $0.account = newValue } } }
    }

    /// What the account calls this client: what it logged in with after the `@`, else what it said in USER, after an `@`
    /// or all. Nil without an account.
    var clientName: String? {
        guard let login, login.account != nil else { return nil }
        return login.clientName ?? login.userClientName
            ?? login.user.flatMap { ClientName.clean(String($0.drop { $0 == "~" })) }
    }

    func setClientName(_ name: String?) { modifyLogin { $0.clientName = name } }

    /// The client gave the server's password.
    var isAdmitted: Bool {
        get { login?.isAdmitted ?? false }
        set { if newValue || login != nil { modifyLogin { $0.isAdmitted = newValue } } }
    }

    var sasl: IRCSASLExchange {
        get { login?.sasl ?? IRCSASLExchange() }
        set { modifyLogin { $0.sasl = newValue } }
    }

    /// Where a login with SCRAM stands; nil: there is none, or its first message is to come.
    var scram: SCRAMStep? {
        get { login?.scram }
        set { if newValue != nil || login != nil { modifyLogin { $0.scram = newValue } } }
    }

    /// The client was told why its token is refused, and has to say that it heard.
    var isBearerRefused: Bool {
        get { login?.isBearerRefused ?? false }
        set { if newValue || login != nil { modifyLogin { $0.isBearerRefused = newValue } } }
    }

    /// The account that the client is about to have, while it is being made; what the client sends meanwhile waits.
    var registration: String? {
        get { login?.registration }
        set { if newValue != nil || login != nil { modifyLogin { $0.registration = newValue } } }
    }

    /// The nick that the client wanted last, before registration, and that somebody else has.
    var refusedNick: String? {
        get { login?.refusedNick }
        set { modifyLogin { $0.refusedNick = newValue } }
    }

    /// That this client of an account is away, and since which of its person's changes. Of other people the person knows.
    var away: ClientAway? {
        get { login?.away }
        set { if newValue != nil || login != nil { modifyLogin { $0.away = newValue } } }
    }

    /// A password that is being checked, or whose refusal waits to be told.
    var passwordTry: PasswordTry? {
        get { login?.passwordTry }
        set { if newValue != nil || login != nil { modifyLogin { $0.passwordTry = newValue } } }
    }

    /// For whom a gateway connects, while its password is being checked. Nothing that the client says is taken meanwhile.
    var gatewayTry: GatewayTry? {
        get { login?.gatewayTry }
        set { if newValue != nil || login != nil { modifyLogin { $0.gatewayTry = newValue } } }
    }

    /// Whether the client has said nothing yet that counts.
    var isFresh: Bool { state == .registering && nick == nil && login == nil && !negotiation.isNegotiating }

    var failedTries: Int {
        get { login?.failedTries ?? 0 }
        set { if newValue != 0 || login != nil { modifyLogin { $0.failedTries = newValue } } }
    }

    // Flow.
    var lastReceivedAt: MonotonicInstant
    var lastSpokeAt: ChatTimestamp
    /// `.min`: no answer is waited for.
    private var pingInstant = MonotonicInstant(nanoseconds: .min)
    var rooms: ShortList<RoomID> = []
    /// Who waits for the client to have received something; nil: nobody ever did.
    var lineReceipts: LineReceipts?
    /// What it has got of its rooms; nil: it has no cursors.
    var following: Following?
    /// What it was shown of rooms that it left.
    var shown = ShownRooms()
    /// The newest order with something that was kept on the client's behalf.
    var lastKept: StoreTicket?
    /// It is welcome, and not in its rooms yet; see ``Bridge/comeBack(_:)``.
    var isArriving = false
    /// The room that it left last.
    var lastLeft: RoomID?
    /// The newest of them with something that the client said.
    var lastAccepted: StoreTicket?

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

    /// Answers to PINGs that wait until what was said before is on disk.
    var heldPongs: [HeldPong] = []

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
        var isDeferred = false
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

    /// What this bridge offers to everybody: every capability in the table that something here gives life to.
    static let capabilities: IRCCapabilitySet = {
        var offered = IRCCapabilitySet.all
        // ``Bridge/offer(for:)`` knows when there is something.
        for absent in [IRCCapability.sasl, .accountRegistration, .sts, .relaymsg] { offered.remove(absent) }
        return offered.subtracting(accountCapabilities)
    }()

    /// What has a meaning only where people can log in.
    static let accountCapabilities: IRCCapabilitySet = [.accountNotify, .selfMessage]

    var caps: IRCCapabilitySet { negotiation.enabled }
    var displayNick: String { nick ?? "*" }

    var person: PersonID? {
        if case .registered(let person) = state { return person }
        return nil
    }

    // MARK: - Replies

    func numeric(_ numeric: IRCNumeric, _ params: String...) -> IRCMessage {
        IRCMessage(source: serverName, numeric: numeric, params: [displayNick] + params)
    }

    // MARK: - Lines

    /// What stands in a parameter, apart by commas.
    static func list(_ param: String) -> [String] {
        Array(param.split(separator: ",").lazy.map(String.init).prefix(maxChannelsPerLine))
    }

    // MARK: - Registration

    /// - Parameter username: what USER said; its client's name counts where the login names none.
    func setUser(_ username: String, realname: String) {
        let (ident, client) = ClientName.split(username)
        modifyLogin { $0.userClientName = client }
        let legal = ident.unicodeScalars.filter {
            $0.isASCII
                && ($0.properties.isAlphabetic || (0x30...0x39).contains($0.value) || "._-".unicodeScalars.contains($0))
        }
        let name = String(String.UnicodeScalarView(legal.prefix(Self.maxUserBytes - 1)))
        // The tilde says what it always said: nobody has checked this name.
        user = "~" + (name.isEmpty ? "user" : name)
        self.realname = Self.cleanRealname(realname)
    }

    static func cleanRealname(_ text: String) -> String {
        NickMaker.prefix(of: IdentityMap.realname(text), maxBytes: maxRealnameBytes)
    }

    /// It has said all that registration takes.
    var isReadyToRegister: Bool {
        person == nil && state == .registering && nick != nil && user != nil && !negotiation.isNegotiating
    }
}
