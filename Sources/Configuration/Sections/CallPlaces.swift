import Dialects
import HTTPProtocol

// Where the calls of a dialect lead. Messages and files are the backend's own business, and what is shown with them goes to
// no other server; a login may lie elsewhere, as `login_url` may, and gets name, password and refresh token.

/// The addresses of a dialect's calls, whole or as paths.
package enum CallPlaces {
    /// Logging in and renewing, under the names that descriptions have for them.
    package static func logins(of dialect: any Dialect) -> [(name: String, target: String)] {
        let calls: [(String, BackendCall)] = [
            ("login", .logIn(user: "user", password: "password")), ("refresh", .refresh(token: "token")),
        ]
        return calls.compactMap { name, call in
            dialect.calls?.request(for: call, context: DialectContext(room: "room")).map { (name, $0.target) }
        }
    }

    /// The history of a room.
    package static func history(of dialect: any Dialect) -> String? {
        dialect.calls?.request(
            for: .history(HistoryQuery(room: "room")), context: DialectContext(room: "room"))?.target
    }
}
