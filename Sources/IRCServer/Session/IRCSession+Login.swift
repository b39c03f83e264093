import Accounts
import BridgeTypes
import IRCProtocol
import Identities

// Registration and login: what a client says of itself until it is let in, and as whom it logged in.

extension IRCSession {
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
        guard login.account == nil, !login.isAdmitted, login.registration == nil else {
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

    /// The client was told why its token is refused, and has to say that it heard.
    var isBearerRefused: Bool {
        get { login?.isBearerRefused ?? false }
        set { if newValue || login != nil { modifyLogin { $0.isBearerRefused = newValue } } }
    }

    /// The account that the client is about to have, while it is being made; what the client sends meanwhile waits.
    var registration: RegistrationTry? {
        get { login?.registration }
        set { if newValue != nil || login != nil { modifyLogin { $0.registration = newValue } } }
    }

    /// The nick that the client wanted last, before registration, and that somebody else has.
    var refusedNick: String? {
        get { login?.refusedNick }
        set { modifyLogin { $0.refusedNick = newValue } }
    }

    /// That this client of an account is away, and since which of its person's changes. Of other people the person knows.
    var away: ClientAway? { login?.away }

    /// - Parameter text: nil: it is back.
    func setAway(_ text: String?) {
        let away = text.map { ClientAway(text: $0, order: terms.nextAway()) }
        if away != nil || login != nil { modifyLogin { $0.away = away } }
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
        PrintableText.prefix(of: IdentityMap.realname(text), maxBytes: maxRealnameBytes)
    }

    /// It has said all that registration takes.
    var isReadyToRegister: Bool {
        person == nil && state == .registering && nick != nil && user != nil && !negotiation.isNegotiating
    }
}
