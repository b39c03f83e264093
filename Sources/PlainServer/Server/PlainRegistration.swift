import IRCProtocol
import WireBytes

/// The way to 001: a name, a password where one is wanted, and capabilities.
///
/// | state       | meaning                     | leaves by                                                                          |
/// |-------------|-----------------------------|------------------------------------------------------------------------------------|
/// | naming      | a name is asked for         | a name → registering                                                               |
/// | registering | CAP, NICK and USER are sent | 001 → registered; 433, a log-in is required → proving; 432, 433 → naming           |
/// | proving     | a password is asked for     | a password → registering; nothing → naming                                         |
/// | registered  | the server knows the person |                                                                                    |
struct PlainRegistration {
    enum State {
        case naming
        case registering
        case proving
        case registered
    }

    enum Step: Equatable {
        case say(IRCMessage)
        case show(ScreenText)
        /// The answer does not go, and another question follows.
        case refuse(String)
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
    /// The name as it was typed.
    private var wishedNick = ""
    /// While it is checked.
    private var password: String?
    private var offered: Set<String> = []
    private var enabled: Set<String> = []
    private var hasNegotiated = false
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
        wishedNick = name.hasPrefix("/") ? String(name.dropFirst()) : name
        password = nil
        state = .registering
        // What the server can do is known before it may refuse the name.
        if hasNegotiated { introduce() } else { say("CAP", "LS", "302") }
    }

    private static func userName(_ name: String) -> String {
        let plain = name.lowercased().filter { ("a"..."z").contains($0) || ("0"..."9").contains($0) }
        return plain.isEmpty ? "plain" : String(plain.prefix(10))
    }

    private mutating func introduce() {
        guard state == .registering else { return }
        if let password, !isLoggedIn { return logIn(password) }
        if needsLogin, !isLoggedIn { return askPassword("A password is needed here.") }
        say("NICK", wishedNick)
        guard !isIntroduced else { return }
        isIntroduced = true
        say("USER", Self.userName(wishedNick), "0", "*", wishedNick)
        say("CAP", "END")
    }

    /// 433 ERR_NICKNAMEINUSE.
    mutating func nickTaken() {
        if enabled.contains("sasl"), !isLoggedIn {
            return askPassword(
                "\(wishedNick) is somebody else's name. With its password it is yours; without, press Enter for another."
            )
        }
        steps.append(.refuse("Somebody is called \(wishedNick) already."))
        askName()
    }

    /// 432 ERR_ERRONEUSNICKNAME.
    mutating func nickRefused(_ reason: String) {
        steps.append(.refuse("\(wishedNick) cannot be a name here: \(reason)."))
        askName()
    }

    /// 001 RPL_WELCOME.
    mutating func welcomed(_ nick: String?) {
        self.nick = nick ?? wishedNick
        password = nil
        state = .registered
    }

    mutating func renamed(to nick: String) { self.nick = nick }

    // MARK: - Capabilities

    mutating func capReceived(_ message: IRCMessage) {
        guard message.params.count > 1 else { return }
        let list = message.params.count > 2 ? message.params[message.params.count - 1] : ""
        let names = list.split(separator: " ").map { String($0.prefix { $0 != "=" }) }
        switch message.params[1].uppercased() {
        case "LS":
            offered.formUnion(names)
            if message.params.count > 3, message.params[2] == "*" { return }
            var request = Self.wanted.filter(offered.contains)
            if offered.contains("sasl") { request.append("sasl") }
            if request.isEmpty { return negotiated() }
            say("CAP", "REQ", request.joined(separator: " "))
        case "ACK":
            enabled.formUnion(names)
            if !hasNegotiated { negotiated() }
        case "NAK": if !hasNegotiated { negotiated() }
        default: break
        }
    }

    private mutating func negotiated() {
        hasNegotiated = true
        introduce()
    }

    // MARK: - Passwords

    private mutating func askPassword(_ why: String) {
        guard enabled.contains("sasl") || hasServerPassword else {
            steps.append(.refuse(why))
            return askName()
        }
        state = .proving
        steps += [.show(ScreenText(why)), .askPassword]
    }

    /// This password is under way to the server.
    func isChecking(_ line: String) -> Bool { state == .registering && line == password }

    mutating func proven(_ line: String) {
        guard !line.isEmpty else { return askName() }
        state = .registering
        password = line
        introduce()
    }

    private mutating func logIn(_ password: String) {
        guard enabled.contains("sasl") else { return sayServerPassword(password) }
        say("AUTHENTICATE", "PLAIN")
    }

    mutating func authenticateReceived() {
        guard let password else { return }
        let exchange = Base64.encode(Array("\0\(wishedNick)\0\(password)".utf8))
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
        state = .proving
        steps += [.refuse(reason.isEmpty ? "That is not the password." : reason + "."), .askPassword]
    }

    private mutating func sayServerPassword(_ password: String) {
        say("PASS", password)
        isLoggedIn = true
        introduce()
    }
}
