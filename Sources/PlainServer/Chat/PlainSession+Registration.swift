import IRCProtocol
import WireBytes

// A name, a password where one is wanted, and the way to 001.

extension PlainSession {
    /// In the order of their use; the first offered name of a row is requested.
    private static let wanted = [
        "message-tags", "server-time", "batch", "labeled-response", "echo-message", "standard-replies",
        "draft/multiline",
        "draft/read-marker", "draft/message-redaction", "setname", "soju.im/search",
    ]

    func named(_ line: String) {
        let name = line.split(whereSeparator: \.isWhitespace).joined(separator: "_")
        guard !name.isEmpty else { return askName() }
        if ["/quit", "/exit", "quit", "exit"].contains(name.lowercased()) { return quit() }
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

    func capReceived(_ message: IRCMessage) {
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

    private func negotiated() {
        hasNegotiated = true
        introduce()
    }

    private func introduce() {
        guard state == .registering else { return }
        if let password { return logIn(password) }
        if settings.needsLogin, !isLoggedIn { return askPassword("A password is needed here.") }
        say("NICK", wishedNick)
        guard !isIntroduced else { return }
        isIntroduced = true
        say("USER", Self.userName(wishedNick), "0", "*", wishedNick)
        say("CAP", "END")
    }

    // MARK: - Passwords

    private func askPassword(_ why: String) {
        guard enabled.contains("sasl") || settings.hasServerPassword else {
            screen.show(ScreenText(why, .failure))
            return askName()
        }
        state = .proving
        screen.show(ScreenText(why))
        ask(hidesSecrets ? "Password: " : "Password (it can be seen here): ", isSecret: true)
    }

    func proven(_ line: String) {
        state = .registering
        screen.isSecret = false
        guard !line.isEmpty else {
            endSecret()
            return askName()
        }
        endSecret()
        password = line
        introduce()
    }

    /// What is typed can be seen again.
    private func endSecret() { ask("") }

    private func logIn(_ password: String) {
        guard enabled.contains("sasl") else { return sayServerPassword(password) }
        say("AUTHENTICATE", "PLAIN")
    }

    func authenticateReceived() {
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

    func loggedIn() {
        isLoggedIn = true
        password = nil
        // The account's name is its holder's now.
        introduce()
    }

    func loginRefused(_ reason: String) {
        guard state == .registering, let password else { return }
        if settings.hasServerPassword { return sayServerPassword(password) }
        self.password = nil
        askPassword(reason.isEmpty ? "That is not the password." : reason + ".")
    }

    private func sayServerPassword(_ password: String) {
        say("PASS", password)
        self.password = nil
        isLoggedIn = true
        introduce()
    }

    // MARK: - Answers

    /// 433 ERR_NICKNAMEINUSE.
    func nickTaken() {
        guard state == .registering else { return }
        if enabled.contains("sasl"), !isLoggedIn {
            return askPassword(
                "\(wishedNick) is somebody else's name. With its password it is yours; without, press Enter for another."
            )
        }
        screen.show(ScreenText("Somebody is called \(wishedNick) already.", .failure))
        askName()
    }

    /// 432 ERR_ERRONEUSNICKNAME.
    func nickRefused(_ reason: String) {
        guard state == .registering else { return }
        screen.show(ScreenText("\(wishedNick) cannot be a name here: \(reason).", .failure))
        askName()
    }

    func welcomed(_ nick: String) {
        self.nick = nick
        state = .joining
        screen.show(ScreenText("Hello, \(nick).", .dim))
        screen.prompt = ""
        say("LIST")
    }
}
