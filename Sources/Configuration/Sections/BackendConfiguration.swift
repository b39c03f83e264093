import Dialects
import HTTPProtocol

/// What several rooms of one backend have in common: one login, one host name.
package struct BackendConfiguration: Equatable, Sendable {
    /// `[a-z0-9_-]+`; the host in its people's sources.
    package var name = ""
    /// What its rooms have where they do not say otherwise. Name, channel, topic and ``RoomConfiguration/upstreamRoom`` are
    /// empty.
    package var room = RoomConfiguration()
    /// Whose account it is, for dialects that log in by themselves; empty: nobody's.
    package var user = ""
    package var password: SecretSource?

    mutating func settle(_ room: RoomConfiguration) { self.room = room }

    /// Where HTTP calls go; nil for a socket file without `http_base`.
    package var httpBase: HTTPURL? { room.effectiveHTTPBase }
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
