import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import WireBytes

// Registration and login: the data that a client sends before it is registered, and its account.

extension IRCSession {
    private func modifyLogin(_ body: (LoginState) -> Void) {
        let state = login ?? LoginState()
        login = state
        body(state)
    }

    /// The ident from USER, until registration.
    var user: String? {
        get { login?.user }
        set { modifyLogin { $0.user = newValue } }
    }

    /// The realname from USER, until registration.
    var realname: String {
        get { login?.realname ?? "" }
        set { modifyLogin { $0.realname = newValue } }
    }

    /// Frees the data that only registration needs, and the login state if there was no login.
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

    /// The text of an AWAY before registration.
    var earlyAway: String? {
        get { login?.earlyAway.flatMap { $0.isEmpty ? nil : $0 } }
        set { modifyLogin { $0.earlyAway = newValue } }
    }

    /// The password from PASS, until registration.
    var password: String? {
        get { login?.password }
        set { if newValue != nil || login != nil { modifyLogin { $0.password = newValue } } }
    }

    /// The account of the client; nil: not logged in.
    var account: AccountSettings? {
        get { login?.account }
        set { if newValue != nil || login != nil { modifyLogin { $0.account = newValue } } }
    }

    /// The client name: the part behind the `@` of the login, else of USER, else all of USER. Nil without an account.
    var clientName: String? {
        guard let login, login.account != nil else { return nil }
        return login.clientName ?? login.userClientName
            ?? login.user.flatMap { ClientName.clean(String($0.drop { $0 == "~" })) }
    }

    func setClientName(_ name: String?) { modifyLogin { $0.clientName = name } }

    /// The client sent the server password.
    var isAdmitted: Bool {
        get { login?.isAdmitted ?? false }
        set { if newValue || login != nil { modifyLogin { $0.isAdmitted = newValue } } }
    }

    var sasl: IRCSASLExchange {
        get { login?.sasl ?? IRCSASLExchange() }
        set { modifyLogin { $0.sasl = newValue } }
    }

    /// The client got the reason why its token is refused, and has to acknowledge it.
    var isBearerRefused: Bool {
        get { login?.isBearerRefused ?? false }
        set { if newValue || login != nil { modifyLogin { $0.isBearerRefused = newValue } } }
    }

    /// The account that the client is registering; its input waits meanwhile.
    var registration: RegistrationTry? {
        get { login?.registration }
        set { if newValue != nil || login != nil { modifyLogin { $0.registration = newValue } } }
    }

    /// The nick that the client requested last before registration, and that is in use.
    var refusedNick: String? {
        get { login?.refusedNick }
        set { modifyLogin { $0.refusedNick = newValue } }
    }

    /// The away state of this client of an account, in order with those of its other clients. Without an account it is
    /// the person's.
    var away: ClientAway? { login?.away }

    /// - Parameter text: nil: back.
    func setAway(_ text: String?) {
        let away = text.map { ClientAway(text: $0, order: terms.nextAway()) }
        if away != nil || login != nil { modifyLogin { $0.away = away } }
    }

    /// The WEBIRC data of a gateway, while its password is being checked. Input of the client waits meanwhile.
    var gatewayTry: WebIRCAttempt? {
        get { login?.gatewayTry }
        set { if newValue != nil || login != nil { modifyLogin { $0.gatewayTry = newValue } } }
    }

    /// Whether the client has sent nothing relevant yet.
    var isFresh: Bool { state == .registering && nick == nil && login == nil && !negotiation.isNegotiating }

    var failedTries: Int {
        get { login?.failedTries ?? 0 }
        set { if newValue != 0 || login != nil { modifyLogin { $0.failedTries = newValue } } }
    }

    // MARK: - Registration

    /// - Parameter username: from USER; its client name counts if the login has none.
    func setUser(_ username: String, realname: String) {
        let (ident, client) = ClientName.split(username)
        modifyLogin { $0.userClientName = client }
        let legal = ident.utf8.filter { byte in
            ASCII.isLetter(byte) || ASCII.isDigit(byte) || "._-".utf8.contains(byte)
        }
        let name = String(decoding: legal.prefix(Self.maxUserBytes - 1), as: UTF8.self)
        // The tilde has its usual sense: an unverified name.
        user = "~" + (name.isEmpty ? "user" : name)
        self.realname = Self.cleanRealname(realname)
    }

    static func cleanRealname(_ text: String) -> String {
        PrintableText.prefix(of: IdentityMap.realname(text), maxBytes: maxRealnameBytes)
    }

    /// Everything that registration takes was received.
    var isReadyToRegister: Bool {
        person == nil && state == .registering && nick != nil && user != nil && !negotiation.isNegotiating
    }
}
