import BridgeTypes
import Dialects

extension ConfigurationCompletion {
    mutating func checkOwnLogins() {
        /// Accounts by room and upstream person.
        var shown: [[String]: String] = [:]
        for (index, account) in configuration.accounts.enumerated() {
            for login in account.upstream {
                let at = "accounts[\(index)].upstream.\(login.room)"
                let place = origin(at) ?? origin("accounts[\(index)]") ?? .builtIn
                if isRefused(at) {
                    if OwnLoginConfiguration.rows.contains(where: { $0.name == login.room }) {
                        report(place, "upstream names rooms; \"\(login.room)\" stands in [accounts.upstream.ROOM]")
                    }
                    continue
                }
                if login.room == RoomConfiguration.templateName {
                    report(place, "the room \"*\" stands for many; a login of an account's own is for one room")
                    continue
                }
                guard let position = configuration.rooms.firstIndex(where: { $0.name == login.room }) else {
                    let near = reportUnknownRoom(login, of: account, place)
                    // What else is wrong with it is told at once, too.
                    if let position = near {
                        checkOwnLogin(login, configuration.rooms[position], position, at: at, place: place)
                    }
                    continue
                }
                if !account.rooms.contains(AccountConfiguration.allRooms), !account.rooms.contains(login.room) {
                    report(place, "account \"\(account.name)\" may not enter the room \"\(login.room)\"")
                }
                checkOwnLogin(login, configuration.rooms[position], position, at: at, place: place)
                guard !login.person.isEmpty else { continue }
                if let other = shown.updateValue(account.name, forKey: [login.room, login.person]) {
                    report(
                        origin("\(at).as") ?? place,
                        "the accounts \"\(other)\" and \"\(account.name)\" cannot both be \"\(login.person)\"")
                }
            }
        }
    }

    /// - Returns: the place of the room that is probably meant.
    private mutating func reportUnknownRoom(
        _ login: OwnLoginConfiguration, of account: AccountConfiguration, _ place: ConfigurationOrigin
    ) -> Int? {
        let rooms = configuration.rooms.filter { !$0.isTemplate }
        let near = NearestName.suggestion(for: login.room, among: rooms.map(\.name))
        var hint = NearestName.hint(for: login.room, among: rooms.map(\.name))
        let ofBackend = rooms.filter { $0.backend == login.room }.map { "\"\($0.name)\"" }
        if near == nil, !ofBackend.isEmpty {
            hint = ", but a backend; its rooms are: \(ofBackend.joined(separator: ", "))"
        }
        report(
            place, "account \"\(account.name)\" has an upstream room \"\(login.room)\" that is not in [[rooms]]\(hint)")
        return near.flatMap { near in configuration.rooms.firstIndex { $0.name == near } }
    }

    private mutating func checkOwnLogin(
        _ login: OwnLoginConfiguration, _ room: RoomConfiguration, _ position: Int, at path: String,
        place: ConfigurationOrigin
    ) {
        if isRefused("\(path).type") { return }
        switch login.auth.type {
        case .none:
            return report(place, "an account's own login needs a type: bearer, basic, query, header, message or login")
        case .clientCertificate:
            return report(
                origin("\(path).type") ?? place,
                "a certificate belongs to the room's connections and cannot be an account's own login")
        case .bearer, .basic, .query, .header, .message, .login: break
        }
        if room.auth.type == .clientCertificate {
            return report(
                place, "room \"\(room.name)\" is proven by its certificate, so an account cannot be somebody else there"
            )
        }
        var own = configuration.room(room, with: login)
        // Name and password of the backend's table are not the account's.
        own.backend = ""
        checkAuth(own, at: "rooms[\(position)]", auth: path, whole: place)
        guard login.person.isEmpty, !isRefused("\(path).as"), let dialect = try? configuration.dialect(of: room),
            dialect.traits.messageIDOrigin == .server
        else { return }
        let knowsWho = dialect.calls?.request(for: .whoAmI, context: DialectContext(room: "")) != nil
        if room.hasOneVoice(dialect), !knowsWho || room.effectiveHTTPBase == nil {
            report(
                place,
                "nobody can be asked as whom \"\(room.name)\" shows this account; write it: as = \"the id, or the name\""
            )
        }
    }
}
