import HTTPProtocol

/// Settings that several rooms of one backend share: one login, one host name.
package struct BackendConfiguration: Equatable, Sendable {
    /// `[a-z0-9_-]+`; the host in its people's sources.
    package var name = ""
    /// Defaults for its rooms. Name, channel, topic and ``RoomConfiguration/upstreamRoom`` are empty.
    package var room = RoomConfiguration()
    /// The account's user name, for dialects that log in by themselves; empty: none.
    package var user = ""
    package var password: SecretSource?

    /// Where HTTP calls go; nil for a socket file without `http_base`.
    package var httpBase: HTTPURL? { room.effectiveHTTPBase }

    /// Takes the defaults with what follows from them.
    mutating func complete(_ room: RoomConfiguration) { self.room = room }

    /// The keys that rooms do not have, or not in this form.
    static let ownRows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "url", \.room.url, .upstreamURL,
            about: "as in a room; `{room}` is each room's `upstream_room`",
            usual: "required"),
        ConfigurationKey(
            "http_base", \.room.httpBase, .httpBase,
            about: "`http://` or `https://`: base URL of calls and files",
            usual: "the origin of `url`"),
        ConfigurationKey(
            "user", \.user, .string(ConfigurationChecks.oneLine),
            about: "the account, for dialects with a log-in of their own"),
        ConfigurationKey(
            "password", \.password, .secretText, group: "password",
            about: "its password; one of the three", example: #""${CHAT_PASSWORD}""#),
        ConfigurationKey(
            "password_file", \.password, .secretFile, group: "password",
            about: "a file with the password, read for each log-in", example: #""/run/secrets/chat-password""#),
        ConfigurationKey(
            "password_credential", \.password, .secretCredential, group: "password",
            about: "the name of a systemd credential with the password", example: #""chat-password""#),
        ConfigurationKey(
            "options", \.room.options, .dialectOptions, reload: .restart,
            about: """
                the dialect's own settings, a room's override them; a variable's value is read as TOML if valid: \
                `CHATBRIDGE__BACKENDS__MAIN__OPTIONS__TYPING=both`
                """),
    ]

    static let rows = ownRows + RoomConfiguration.rows.map { $0.lifted(to: \Self.room) }
}

extension BackendConfiguration {
    package init(name: String, room: RoomConfiguration) {
        self.init()
        self.name = name
        self.room = room
    }
}

extension ConfigurationForm where Value == HTTPURL? {
    /// A place without query; an empty text: none.
    static var httpBase: Self {
        text("a URL such as \"https://chat.example.com\"") { (text: String) throws(AddressError) -> HTTPURL?? in
            if text.isEmpty { return .some(nil) }
            do throws(HTTPURLError) {
                let url = try HTTPURL(parsing: text)
                guard url.scheme == "http" || url.scheme == "https" else {
                    throw HTTPURLError.unknownScheme(url.scheme + "://")
                }
                guard !text.contains("?"), !text.contains("{") else {
                    throw HTTPURLError.invalidCharacter
                }
                return .some(url)
            } catch {
                throw AddressError(
                    "http_base is an http:// or https:// URL without query and placeholders: \(error.sentence)")
            }
        } print: {
            $0?.description ?? ""
        }
    }
}
