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

    /// The keys that rooms do not have, or not in this form.
    static let ownRows: [ConfigurationKey<Self>] = [
        ConfigurationKey("url", \.room.url, .upstreamURL),
        ConfigurationKey("http_base", \.room.httpBase, .httpBase),
        ConfigurationKey("user", \.user, .string(ConfigurationChecks.oneLine)),
        ConfigurationKey("password", \.password, .secretText, group: "password"),
        ConfigurationKey("password_file", \.password, .secretFile, group: "password"),
        ConfigurationKey("password_credential", \.password, .secretCredential, group: "password"),
        ConfigurationKey("options", \.room.options, .dialectOptions),
    ]

    static let rows = ownRows + RoomConfiguration.rows.map { $0.lifted(to: \Self.room) }
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
