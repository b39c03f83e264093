import ChatModel
import IRCProtocol
import WireBytes

// One IRC client: what it sent becomes requests, which the bridge carries out.
//
// | state       | meaning                             | verb → next                                                       |
// |-------------|-------------------------------------|--------------------------------------------------------------------|
// | registering | PASS, NICK, USER, CAP are gathered  | all there and CAP ended → registered; time-out, QUIT → closed       |
// | registered  | has a nick                          | QUIT, time-out, error → closed                                      |
// | closed      | its last line is queued             | –                                                                   |
//
// A session never reads a room: it asks, and the answers come through the bridge's one exit door.

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

    var isAwaitingEntrance: Bool { isAwaitingEntrance { _ in true } }

    func isAwaitingEntrance(to room: RoomID) -> Bool { isAwaitingEntrance { $0.room == room } }

    private func isAwaitingEntrance(_ isMeant: (Entrance) -> Bool) -> Bool {
        longAnswers.contains { answer in
            if case .entrance(let entrance) = answer { isMeant(entrance) } else { false }
        }
    }

    func takeLongAnswers() -> [LongAnswer] {
        guard let answers = answering?.longAnswers else { return [] }
        modifyAnswering { $0.longAnswers = [] }
        return answers
    }

    func removeLongAnswers(where isUnwanted: (LongAnswer) -> Bool) {
        guard hasLongAnswers else { return }
        modifyAnswering { $0.longAnswers.removeAll(where: isUnwanted) }
    }

    /// What is left of the first long answer; nil: nothing.
    func replaceFirstLongAnswer(_ rest: LongAnswer?) {
        modifyAnswering {
            if let rest { $0.longAnswers[0] = rest } else { $0.longAnswers.removeFirst() }
        }
    }

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

    /// A line came that is no message.
    func lineRejected(_ error: IRCLineError) -> [SessionRequest] {
        switch error {
        case .invalidUTF8:
            [
                .reply(
                    .fail(
                        "*", "INVALID_UTF8", text: "The line is not UTF-8 and was not taken.", source: serverName))
            ]
        case .containsNUL:
            [
                .reply(
                    .fail(
                        "*", "INVALID_LINE", text: "The line holds a NUL or a bare CR and was not taken.",
                        source: serverName))
            ]
        case .malformedTags:
            [
                .reply(
                    .fail("*", "INVALID_TAGS", text: "The line's tags have no command after them.", source: serverName))
            ]
        case .empty, .noCommand: []
        }
    }

    func lineTooLong() -> [SessionRequest] { [.reply(numeric(.errInputTooLong, "Input line was too long"))] }

    /// Whether it is for those who are not registered too.
    func mayComeEarly(_ message: IRCMessage) -> Bool {
        guard let row = IRCCommandTable.row(for: message.command) else { return false }
        return row.beforeRegistration || row.earlyWith.map { caps.contains($0) } ?? false
    }

    /// Turns a message into requests. Only the session's own registration data change here.
    func messageReceived(_ message: IRCMessage) -> [SessionRequest] {
        guard let row = IRCCommandTable.row(for: message.command) else {
            guard person != nil else { return [.reply(numeric(.errNotRegistered, "You have not registered"))] }
            let verb = NickMaker.prefix(of: message.command, maxBytes: 64)
            return [.reply(numeric(.errUnknownCommand, verb, "Unknown command"))]
        }
        guard person != nil || mayComeEarly(message) else {
            return [.reply(numeric(.errNotRegistered, "You have not registered"))]
        }
        guard message.params.count >= row.minParams else {
            return [.reply(numeric(.errNeedMoreParams, message.command, "Not enough parameters"))]
        }
        return handle(row.command, message)
    }

    private func handle(_ command: IRCCommand, _ message: IRCMessage) -> [SessionRequest] {
        let params = message.params
        switch command {
        case .pass: return passReceived(params)
        case .nick: return nickReceived(params)
        case .user: return userReceived(params)
        case .cap: return capReceived(params)
        case .authenticate: return [.authenticate(params[0])]
        case .webirc: return webircReceived(params)
        case .ping: return pingReceived(params)
        case .pong: return params.last.map { [.pong($0)] } ?? []
        case .quit: return [.quit(params.first.map { "Quit: " + $0 } ?? "Client quit")]
        case .join: return params[0] == "0" ? [.partEverything] : [.join(Self.list(params[0]))]
        case .part: return [.part(Self.list(params[0]), reason: params.count > 1 ? params[1] : nil)]
        case .names: return [.names(params.first.map(Self.list) ?? [])]
        case .list: return [.list(ListFilter(params.first ?? ""))]
        case .topic: return params.count > 1 ? [.setTopic(params[0], to: params[1])] : [.readTopic(params[0])]
        case .mode: return [.mode(params[0], Array(params.dropFirst()))]
        case .who:
            let whox = params.count > 1 ? IRCWhoxRequest(parsing: params[1]) : nil
            let operatorsOnly = whox?.flags.contains("o") ?? (params.count > 1 && params[1] == "o")
            return [.who(mask: params.first ?? "*", whox: whox, operatorsOnly: operatorsOnly)]
        case .whois:
            guard let nicks = params.last, !nicks.isEmpty else {
                return [.reply(numeric(.errNoNicknameGiven, "No nickname given"))]
            }
            return [.whois(Array(Self.list(nicks).prefix(Self.maxTargets)))]
        case .whowas:
            guard let nick = params.first, !nick.isEmpty else {
                return [.reply(numeric(.errNoNicknameGiven, "No nickname given"))]
            }
            // Zero and less mean all: RFC 2812 §3.6.3.
            let count = params.count > 1 ? Int(params[1]).flatMap { $0 > 0 ? $0 : nil } : nil
            return [.whowas(nick, count: count)]
        case .ison: return [.isOn(params.flatMap { $0.split(separator: " ").map(String.init) })]
        case .userhost: return [.userhost(Array(params.prefix(5)))]
        case .away:
            let text = params.first.map { NickMaker.prefix(of: $0, maxBytes: Self.maxAwayBytes) }
            guard person != nil else {
                earlyAway = text ?? ""
                return []
            }
            return [.away(text?.isEmpty == false ? text : nil)]
        case .setname: return [.setRealname(params[0])]
        case .batch: return batchReceived(message)
        case .privmsg: return batchedLine(message) ?? textReceived(.privmsg, message)
        case .notice: return batchedLine(message) ?? textReceived(.notice, message)
        case .tagmsg:
            return batchedLine(message)
                ?? [.message(verb: .tagmsg, targets: Self.list(params[0]), text: nil, tags: message.tags)]
        case .markread: return markReadReceived(params)
        case .redact:
            return [.redact(params[0], msgid: params[1], reason: params.count > 2 ? params[2] : nil)]
        case .register: return [.registerAccount(params[0], email: params[1], password: params[2])]
        case .verify: return [.verifyAccount(params[0])]
        case .chathistory: return request { () throws(HistoryRefusal) in .history(try HistoryRequest(params)) }
        case .search: return request { () throws(HistoryRefusal) in .search(try SearchRequest(params)) }
        case .motd, .version, .time, .info: return [.query(command, of: params.first)]
        case .lusers: return [.query(command, of: params.count > 1 ? params[1] : nil)]
        case .monitor: return [.monitor(params)]
        case .isupport: return [.isupport]
        case .metadata: return [.metadata(params)]
        case .relaymsg: return [.relay(params[0], as: params[1], text: params[2], tags: message.tags)]
        case .help, .helpop, .admin, .stats, .links, .trace, .users, .summon, .servlist, .squery, .rehash, .restart,
            .die, .connect, .squit:
            return [.serverCommand(command, params)]
        case .oper: return [.oper(params[0], params[1])]
        case .kick:
            return [.kick(Self.list(params[0]), Self.list(params[1]), reason: params.count > 2 ? params[2] : nil)]
        case .invite:
            guard let nick = params.first else { return [.listInvitations] }
            guard params.count > 1 else {
                return [.reply(numeric(.errNeedMoreParams, message.command, "Not enough parameters"))]
            }
            return [.invite(nick, to: params[1])]
        case .kill: return [.kill(params[0], reason: params.count > 1 ? params[1] : nil)]
        case .wallops: return [.wallops(params[0])]
        }
    }

    private func request(_ parse: () throws(HistoryRefusal) -> SessionRequest) -> [SessionRequest] {
        do throws(HistoryRefusal) { return [try parse()] } catch { return [.reply(error.line(from: serverName))] }
    }

    private static func list(_ param: String) -> [String] {
        Array(param.split(separator: ",").lazy.map(String.init).prefix(maxChannelsPerLine))
    }

    // MARK: - Registration

    private func passReceived(_ params: [String]) -> [SessionRequest] {
        guard person == nil else { return [.reply(numeric(.errAlreadyRegistered, "You may not reregister"))] }
        password = params[0]
        return []
    }

    private func nickReceived(_ params: [String]) -> [SessionRequest] {
        guard let wanted = params.first, !wanted.isEmpty else {
            return [.reply(numeric(.errNoNicknameGiven, "No nickname given"))]
        }
        return [.changeNick(wanted)]
    }

    private func userReceived(_ params: [String]) -> [SessionRequest] {
        guard person == nil else { return [.reply(numeric(.errAlreadyRegistered, "You may not reregister"))] }
        // Whoever sends one of them empty gets the answer of a missing one.
        guard !params[0].isEmpty, !params[3].isEmpty else {
            return [.reply(numeric(.errNeedMoreParams, "USER", "Not enough parameters"))]
        }
        let (ident, client) = ClientName.split(params[0])
        modifyLogin { $0.userClientName = client }
        let legal = ident.unicodeScalars.filter {
            $0.isASCII
                && ($0.properties.isAlphabetic || (0x30...0x39).contains($0.value) || "._-".unicodeScalars.contains($0))
        }
        let name = String(String.UnicodeScalarView(legal.prefix(Self.maxUserBytes - 1)))
        // The tilde says what it always said: nobody has checked this name.
        user = "~" + (name.isEmpty ? "user" : name)
        realname = Self.cleanRealname(params[3])
        return registrationStep()
    }

    static func cleanRealname(_ text: String) -> String {
        NickMaker.prefix(of: IdentityMap.realname(text), maxBytes: maxRealnameBytes)
    }

    /// Complete registration when everything is there.
    func registrationStep() -> [SessionRequest] {
        isReadyToRegister ? [.register] : []
    }

    /// It has said all that registration takes.
    var isReadyToRegister: Bool {
        person == nil && state == .registering && nick != nil && user != nil && !negotiation.isNegotiating
    }

    private func capReceived(_ params: [String]) -> [SessionRequest] {
        let before = caps
        let listBytes = IRCCapabilityNegotiation.listBytes(server: serverName, nick: displayNick)
        switch negotiation.commandReceived(params: params, isRegistered: person != nil, listBytes: listBytes) {
        case .replies(let replies):
            var requests = replies.map { reply in
                SessionRequest.reply(
                    IRCMessage(
                        source: serverName, command: "CAP", params: [displayNick, reply.subcommand] + reply.params))
            }
            if caps != before, person != nil { requests.append(.capabilitiesChanged) }
            return requests
        case .ended: return registrationStep()
        case .invalid(let subcommand):
            return [.reply(numeric(.errInvalidCapCmd, subcommand, "Invalid CAP command"))]
        case .needMoreParams: return [.reply(numeric(.errNeedMoreParams, "CAP", "Not enough parameters"))]
        }
    }

    /// Host name and options are not of use here: nobody is shown where somebody connects from, and whether the gateway
    /// and its client have TLS between them decides nothing.
    private func webircReceived(_ params: [String]) -> [SessionRequest] {
        guard person == nil else { return [.reply(numeric(.errAlreadyRegistered, "You may not reregister"))] }
        return [.announceClient(password: params[0], gateway: params[1], address: params[3])]
    }

    private func pingReceived(_ params: [String]) -> [SessionRequest] {
        guard let token = params.first else { return [.reply(numeric(.errNoOrigin, "No origin specified"))] }
        return [.ping(token)]
    }

    // MARK: - Messages

    private func textReceived(_ verb: MessageVerb, _ message: IRCMessage) -> [SessionRequest] {
        // A NOTICE is never answered, not even with an error: RFC 2812 §3.3.2.
        let isSilent = verb == .notice
        guard let targets = message.params.first, !targets.isEmpty else {
            return isSilent ? [] : [.reply(numeric(.errNoRecipient, "No recipient given (\(verb.rawValue))"))]
        }
        guard message.params.count > 1, !message.params[1].isEmpty else {
            return isSilent ? [] : [.reply(numeric(.errNoTextToSend, "No text to send"))]
        }
        return [.message(verb: verb, targets: Self.list(targets), text: message.params[1], tags: message.tags)]
    }

    private func markReadReceived(_ params: [String]) -> [SessionRequest] {
        func refuse(_ code: String, _ context: String?, _ text: String) -> [SessionRequest] {
            let params = ["MARKREAD", code] + (context.map { [$0] } ?? []) + [text]
            return [.reply(IRCMessage(source: serverName, command: "FAIL", params: params))]
        }
        guard let target = params.first, !target.isEmpty else {
            return refuse("NEED_MORE_PARAMS", nil, "Missing the target")
        }
        guard params.count > 1 else { return [.readMarker(target)] }
        guard params[1].hasPrefix("timestamp="),
            let milliseconds = IRCServerTime.parse(String(params[1].dropFirst("timestamp=".count)))
        else { return refuse("INVALID_PARAMS", target, "Not a timestamp") }
        return [.moveMarker(target, ChatTimestamp(milliseconds: milliseconds))]
    }
}
