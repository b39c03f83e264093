import BridgeTypes
import Dialects
import IRCProtocol

// [identity] bearer and [[accounts]] bearer: the backend that identifies token owners, and the accounts of these
// owners.

extension ConfigurationCompletion {
    mutating func checkBearer() {
        let name = configuration.identity.bearer
        let written = origin("identity.bearer")
        if name.isEmpty {
            for (index, account) in configuration.accounts.enumerated() where !account.bearer.isEmpty {
                guard !isRefused("identity.bearer") else { break }
                report(
                    origin("accounts[\(index)].bearer") ?? .builtIn,
                    "bearer means nothing without bearer = \"BACKEND\" in [identity]")
            }
            return
        }
        let place = written ?? .builtIn
        if !configuration.identity.sasl.contains(.oauthBearer), !isRefused("identity.sasl") {
            report(place, "bearer means nothing without \"OAUTHBEARER\" in sasl")
        }
        if let backend = configuration.backendsInUse.first(where: { $0.name == name }) {
            // A dialect that is unknown has its own complaint.
            if let dialect = try? configuration.dialect(of: backend.room) {
                if dialect.calls?.request(for: .whoAmI, context: DialectContext(room: "")) == nil {
                    report(
                        place,
                        "backend \"\(name)\" speaks \"\(backend.room.dialect)\", which cannot say whose a token is")
                } else if backend.httpBase == nil {
                    report(place, "backend \"\(name)\" has no http_base, where it could be asked whose a token is")
                }
            }
        } else if configuration.backends.contains(where: { $0.name == name }) {
            report(place, "backend \"\(name)\" has no room, so nothing can be asked of it")
        } else {
            let hint = NearestName.hint(for: name, among: configuration.backendsInUse.map(\.name))
            report(place, "there is no backend \"\(name)\"\(hint)")
        }
        checkTokenOwners()
    }

    /// One person has one account.
    private mutating func checkTokenOwners() {
        var accounts: [String: String] = [:]
        for (index, account) in configuration.accounts.enumerated() {
            for owner in account.bearer {
                guard let other = accounts.updateValue(account.name, forKey: owner), other != account.name else {
                    continue
                }
                report(
                    origin("accounts[\(index)].bearer") ?? .builtIn,
                    "the accounts \"\(other)\" and \"\(account.name)\" cannot both be \"\(owner)\"")
            }
        }
    }
}
