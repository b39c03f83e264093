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

extension ConfigurationCompletion {
    /// Calls that would be refused each time, since they lead where nothing of ours may go.
    mutating func checkCallPlaces(_ dialect: any Dialect, _ room: RoomConfiguration, at path: String) {
        guard let base = room.effectiveHTTPBase else { return }
        let isDescribed = configuration.dialects.contains { $0.name == room.dialect }
        if let target = CallPlaces.history(of: dialect), let url = try? HTTPURL(parsing: target),
            HTTPOrigin(url) != HTTPOrigin(base)
        {
            var place = isDescribed ? .builtIn : room.options.origin(of: ["history_url"], isUnknown: false)
            if place == .builtIn { place = origin("\(path).dialect") ?? origin(path) ?? .builtIn }
            let name = isDescribed ? "history.get of the dialect \"\(room.dialect)\"" : "options.history_url"
            reader.report(
                place,
                "\(name) is on \(url.scheme)://\(url.hostHeader), and history is only asked for on the backend's own "
                    + "server, \(base.scheme)://\(base.hostHeader) (http_base)")
        }
        let backend = backend(of: room, at: path)
        let user = backend.flatMap { $0.user.isEmpty ? nil : $0.user } ?? room.auth.user
        guard isDescribed, room.url?.isSecure == true, room.auth.login.url == nil,
            room.auth.logsIn(user: user, dialect: dialect)
        else { return }
        for login in CallPlaces.logins(of: dialect) where login.target.hasPrefix("http://") {
            reader.report(
                origin("\(path).dialect") ?? origin(path) ?? .builtIn,
                "\(login.name).post of the dialect \"\(room.dialect)\" is plain http:// while the room's url is "
                    + "encrypted; what it carries could be read")
        }
    }
}
