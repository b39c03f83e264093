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
                if login.room == RoomConfiguration.templateName {
                    report(place, "the room \"*\" stands for many; a login of an account's own is for one room")
                    continue
                }
                guard let position = configuration.rooms.firstIndex(where: { $0.name == login.room }) else {
                    let names = configuration.rooms.filter { !$0.isTemplate }.map(\.name)
                    let hint = NearestName.hint(for: login.room, among: names)
                    report(
                        place,
                        "account \"\(account.name)\" has an upstream room \"\(login.room)\" that is not in "
                            + "[[rooms]]\(hint)")
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

    private mutating func checkOwnLogin(
        _ login: OwnLoginConfiguration, _ room: RoomConfiguration, _ position: Int, at path: String,
        place: ConfigurationOrigin
    ) {
        if isRefused(path) || isRefused("\(path).type") { return }
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
        let isSingle = room.identity == .single || room.identity == .auto && dialect.traits.identity == .single
        let knowsWho = dialect.calls?.request(for: .whoAmI, context: DialectContext(room: "")) != nil
        if isSingle, !knowsWho || room.effectiveHTTPBase == nil {
            report(
                place,
                "nobody can be asked as whom \"\(room.name)\" shows this account; write it: as = \"the id, or the name\""
            )
        }
    }
}
