import BridgeTypes
import IRCProtocol

extension ConfigurationCompletion {
    mutating func checkAccounts() {
        var names: [String: ConfigurationOrigin] = [:]
        var certificates: [String: String] = [:]
        let rooms = configuration.rooms.map(\.name)
        // The template's rooms have names that are not known at load time.
        let hasTemplate = rooms.contains(RoomConfiguration.templateName)
        for (index, account) in configuration.accounts.enumerated() {
            let at = "accounts[\(index)]"
            let whole = origin(at) ?? .builtIn
            let called = account.name.isEmpty ? "this account" : "account \"\(account.name)\""
            if origin("\(at).name") == nil { report(whole, "this account has no name") }
            if !account.name.isEmpty {
                let place = origin("\(at).name") ?? whole
                let folded = configuration.server.casemapping.fold(account.name)
                if let first = names[folded] {
                    report(place, "\(called) is defined twice (first at \(first))")
                } else {
                    names[folded] = place
                }
                if account.name.utf8.count > configuration.identity.nicks.maxLengthBytes {
                    report(place, "\(called) is longer than identity.nicks.max_length, so it is no nick")
                }
            }
            let ways = ["password", "password_file", "password_credential", "certfp", "bearer"]
            if account.password == nil, account.certificates.isEmpty, account.bearer.isEmpty,
                !ways.contains(where: { isRefused("\(at).\($0)") })
            {
                report(
                    whole,
                    "\(called) cannot log in: it needs a password, which \"chatbridge hash-password\" makes, certfp or "
                        + "bearer")
            }
            for certificate in account.certificates {
                guard let other = certificates.updateValue(called, forKey: certificate), other != called else {
                    continue
                }
                report(origin("\(at).certfp") ?? whole, "\(called) has a certificate that is also of \(other)")
            }
            for room in account.rooms
            where room != AccountConfiguration.allRooms && !rooms.contains(room) && !hasTemplate {
                let hint = NearestName.hint(for: room, among: rooms)
                report(
                    origin("\(at).rooms") ?? whole, "\(called) has a room \"\(room)\" that is not in [[rooms]]\(hint)")
            }
        }
        checkOwnLogins()
        if configuration.identity.requireLogin == .always, configuration.accounts.isEmpty,
            configuration.identity.registration == .off, configuration.identity.password == nil,
            configuration.identity.bearer.isEmpty,
            let place = origin("identity.require_login")
        {
            report(
                place, "require_login = \"always\" needs [[accounts]] or a password in [identity]: nobody could log in")
        }
    }
}
