import Dialects

// The origins of a dialect's calls. Messages and files stay on the backend's own origin; a login may use another one,
// as `login_url` may, and carries name, password and refresh token.

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
        dialect.calls?.request(for: .history(HistoryQuery(room: "room")), context: DialectContext(room: "room"))?.target
    }
}
