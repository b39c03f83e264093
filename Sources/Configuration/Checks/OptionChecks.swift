import BridgeTypes
import Dialects
import HTTPProtocol

extension ConfigurationCompletion {
    /// - Parameter inherited: the backend's room, whose options have been checked; nil: none.
    mutating func checkOptions(_ room: RoomConfiguration, at path: String, inherited: RoomConfiguration?) {
        if let inherited, inherited.options == room.options, inherited.dialect == room.dialect { return }
        do throws(DialectOptionError) {
            if let dialect = try configuration.dialect(of: room) { checkCallPlaces(dialect, room, at: path) }
        } catch {
            let isUnknown =
                room.options.isWritten(error.path) && !error.known.isEmpty || error.sentence == "unknown option"
            var place = room.options.origin(of: error.path, isUnknown: isUnknown)
            if place == .builtIn {
                place = origin("\(path).options") ?? origin("\(path).dialect") ?? origin(path) ?? .builtIn
            }
            let name = (["options"] + error.path).joined(separator: ".")
            let hint = NearestName.hint(for: error.path.last ?? "", among: error.known)
            let known =
                !isUnknown
                ? ""
                : error.known.isEmpty
                    ? "; dialect \"\(room.dialect)\" has no options here"
                    : hint.isEmpty ? "; there are: \(error.known.joined(separator: ", "))" : ""
            reportOnce(place, "\(name): \(error.sentence)\(hint)\(known)")
        }
    }

    /// Calls that would be refused each time, because their origin is not the backend's.
    mutating func checkCallPlaces(_ dialect: any Dialect, _ room: RoomConfiguration, at path: String) {
        guard let base = room.effectiveHTTPBase else { return }
        let isDescribed = configuration.dialects.contains { $0.name == room.dialect }
        if let target = CallPlaces.history(of: dialect), let url = try? HTTPURL(parsing: target),
            HTTPOrigin(url) != HTTPOrigin(base)
        {
            var place = isDescribed ? .builtIn : room.options.origin(of: ["history_url"], isUnknown: false)
            if place == .builtIn { place = origin("\(path).dialect") ?? origin(path) ?? .builtIn }
            let name = isDescribed ? "history.get of the dialect \"\(room.dialect)\"" : "options.history_url"
            report(
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
            report(
                origin("\(path).dialect") ?? origin(path) ?? .builtIn,
                "\(login.name).post of the dialect \"\(room.dialect)\" is plain http:// while the room's url is "
                    + "encrypted; what it carries could be read")
        }
    }
}
