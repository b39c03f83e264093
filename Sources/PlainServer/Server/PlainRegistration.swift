import IRCProtocol
import WireBytes

/// The way to 001: a name, a password where one is wanted, and capabilities.
///
/// | state       | meaning                     | leaves by                                                                          |
/// |-------------|-----------------------------|------------------------------------------------------------------------------------|
/// | naming      | a name is asked for         | a name → registering                                                               |
/// | registering | CAP, NICK and USER are sent | 001 → registered; 433, a log-in is required → proving; 432, 433 → refused          |
/// | refused     | the name does not go        | nothing is typed for a moment → naming                                             |
/// | proving     | a password is asked for     | a password → registering; nothing → naming                                         |
/// | registered  | the server knows the person |                                                                                    |
struct PlainRegistration {
    enum State {
        case naming
        case registering
        case refused
        case proving
        case registered
    }

    enum Step: Equatable {
        case say(IRCMessage)
        case show(ScreenText)
        /// The answer does not go, and another question follows.
        case refuse(String)
        /// The name does not go. It is asked for again once nothing is typed for a moment.
        case refuseName(String)
        case askName
        case askPassword
    }

    /// In the order of their use.
    private static let wanted = [
        "message-tags", "server-time", "batch", "labeled-response", "echo-message", "standard-replies",
        "draft/multiline",
        "draft/read-marker", "draft/message-redaction", "setname", "soju.im/search",
    ]

    private let needsLogin: Bool
    private let hasServerPassword: Bool
    private(set) var state = State.naming
    /// As the server has it.
    private(set) var nick = ""
    /// The name as it was typed, without a client's.
    private var wishedNick = ""
    /// The same with it.
    private var loginName = ""
    /// While it is checked.
    private var password: String?
    private var hasBeenRefused = false
    private var offered: Set<String> = []
    private var enabled: Set<String> = []
    private var hasNegotiated = false
    private var offersPasswords = false
    /// USER and CAP END are sent.
    private var isIntroduced = false
    private var isLoggedIn = false
    private var steps: [Step] = []

    init(_ settings: PlainSettings) {
        needsLogin = settings.needsLogin
        hasServerPassword = settings.hasServerPassword
    }

    /// What is to be done, in this order.
    mutating func takeSteps() -> [Step] {
        defer { steps = [] }
        return steps
    }

    func hasEnabled(_ capability: String) -> Bool { enabled.contains(capability) }

    func isOwn(_ nick: String) -> Bool { PlainNames.areSame(nick, self.nick) }

    private mutating func say(_ command: String, _ params: String...) {
        steps.append(.say(IRCMessage(command: command, params: params)))
    }

    // MARK: - Names

    mutating func askName() {
        state = .naming
        steps.append(.askName)
    }

    mutating func named(_ line: String) {
        let name = line.split(whereSeparator: \.isWhitespace).joined(separator: "_")
        guard !name.isEmpty else { return askName() }
        guard !name.hasPrefix("/") else {
            return refuseName("First a name, which has no slash in front; /quit leaves.")
        }
        // As at IRC, what stands behind an @ names the client of an account.
        let nick = name.prefix { $0 != "@" }
        wishedNick = nick.isEmpty ? name : String(nick)
        loginName = name
        password = nil
        state = .registering
        // What the server can do is known before it may refuse the name.
        if hasNegotiated { introduce() } else { say("CAP", "LS", "302") }
    }

    private mutating func refuseName(_ why: String) {
        state = .refused
        steps.append(.refuseName(why))
    }

    private static func userName(_ name: String) -> String {
        let plain = name.lowercased().filter { ("a"..."z").contains($0) || ("0"..."9").contains($0) }
        return plain.isEmpty ? "plain" : String(plain.prefix(10))
    }

    private mutating func introduce() {
        guard state == .registering else { return }
        if let password, !isLoggedIn { return logIn(password) }
        if needsLogin, !isLoggedIn { return askPassword(loginNeeded) }
        say("NICK", wishedNick)
        guard !isIntroduced else { return }
        isIntroduced = true
        say("USER", Self.userName(wishedNick), "0", "*", wishedNick)
        say("CAP", "END")
    }

    /// 433 ERR_NICKNAMEINUSE: of a user, or of an account, which are not told apart.
    mutating func nickTaken() {
        if takesAccounts, !isLoggedIn {
            return askPassword(
                "\(wishedNick) is taken. If it is your account, type its password; if not, press Enter for another name."
            )
        }
        refuseName("\(wishedNick) is taken. Choose another name.")
    }

    /// 432 ERR_ERRONEUSNICKNAME.
    mutating func nickRefused() {
        refuseName(
            "\(wishedNick) cannot be a name here. A name is short, begins with a letter, and has no signs but - and _.")
    }

    /// 001 RPL_WELCOME.
    mutating func welcomed(_ nick: String?) {
        self.nick = nick ?? wishedNick
        password = nil
        state = .registered
        steps.append(.show(ScreenText("Hello, \(self.nick).", .dim)))
        guard !isOwn(wishedNick) else { return }
        let why = "Your account is called \(self.nick) where it is connected already; /nick changes it."
        steps.append(.show(ScreenText(why, .dim)))
    }

    mutating func renamed(to nick: String) { self.nick = nick }

    // MARK: - Capabilities

    mutating func capReceived(_ message: IRCMessage) {
        guard message.params.count > 1 else { return }
        let list = message.params.count > 2 ? message.params[message.params.count - 1] : ""
        let entries = list.split(separator: " ")
        let names = entries.map { String($0.prefix { $0 != "=" }) }
        switch message.params[1].uppercased() {
        case "LS":
            offered.formUnion(names)
            if entries.contains(where: Self.isPasswordLogin) { offersPasswords = true }
            if message.params.count > 3, message.params[2] == "*" { return }
            var request = Self.wanted.filter(offered.contains)
            if offersPasswords { request.append("sasl") }
            if request.isEmpty { return negotiated() }
            say("CAP", "REQ", request.joined(separator: " "))
        case "ACK":
            enabled.formUnion(names)
            if !hasNegotiated { negotiated() }
        case "NAK": if !hasNegotiated { negotiated() }
        default: break
        }
    }

    /// `sasl`, with or without a list of mechanisms, and with PLAIN in it.
    private static func isPasswordLogin(_ entry: Substring) -> Bool {
        let parts = entry.split(separator: "=", maxSplits: 1)
        return parts.first == "sasl" && (parts.count == 1 || parts[1].split(separator: ",").contains("PLAIN"))
    }

    private mutating func negotiated() {
        hasNegotiated = true
        introduce()
    }

    // MARK: - Passwords

    /// Accounts can log in, by a password.
    private var takesAccounts: Bool { enabled.contains("sasl") }

    private var loginNeeded: String {
        let another = "or press Enter for another name."
        guard takesAccounts else { return "This server has a password: type it, \(another)" }
        let orTheServers = hasServerPassword ? ", or the server's" : ""
        return "A password is needed here: type that of your account \(wishedNick)\(orTheServers), \(another)"
    }

    private mutating func askPassword(_ why: String) {
        guard takesAccounts || hasServerPassword else {
            return refuseName("A password is needed here, and none is taken on this connection.")
        }
        state = .proving
        hasGivenPassword = false
        steps += [.show(ScreenText(why)), .askPassword]
    }

    /// A password was given, and was not refused.
    private(set) var hasGivenPassword = false

    /// This password is under way to the server.
    func isChecking(_ line: String) -> Bool { state == .registering && line == password }

    mutating func proven(_ line: String) {
        guard !line.isEmpty else { return askName() }
        state = .registering
        password = line
        hasGivenPassword = true
        if hasBeenRefused {
            steps.append(.show(ScreenText("One moment: after a refusal the answer takes longer.", .dim)))
        }
        introduce()
    }

    private mutating func logIn(_ password: String) {
        guard takesAccounts else { return sayServerPassword(password) }
        say("AUTHENTICATE", "PLAIN")
    }

    mutating func authenticateReceived() {
        guard let password else { return }
        let exchange = Base64.encode(Array("\0\(loginName)\0\(password)".utf8))
        // Source: IRCv3 sasl-3.1, "The AUTHENTICATE Command": pieces of 400 bytes.
        var rest = Substring(exchange)
        while rest.utf8.count >= 400 {
            say("AUTHENTICATE", String(rest.prefix(400)))
            rest = rest.dropFirst(400)
        }
        say("AUTHENTICATE", rest.isEmpty ? "+" : String(rest))
    }

    mutating func loggedIn() {
        isLoggedIn = true
        password = nil
        // The account's name is its holder's now.
        introduce()
    }

    mutating func loginRefused(_ reason: String) {
        guard state == .registering, let password else { return }
        if hasServerPassword { return sayServerPassword(password) }
        self.password = nil
        hasBeenRefused = true
        // Words about the mechanism are for programs, which have chosen it.
        let isAboutMechanism = reason.isEmpty || reason.contains("SASL")
        let why = isAboutMechanism ? "There is no account \(wishedNick) with that password" : reason
        steps.append(.refuse(why + "."))
        askPassword("Type the password again, or press Enter for another name.")
    }

    private mutating func sayServerPassword(_ password: String) {
        say("PASS", password)
        isLoggedIn = true
        introduce()
    }
}
