import Configuration

/// Accounts with a limited `rooms` that clients can bypass by entering without such an account. `check` warns of it,
/// since it looks like a protection.
struct AccountRoomsReport: Equatable {
    var accounts: [String]
    /// Ways around it, as parts of a sentence; at least one.
    var ways: [String]

    /// Nil: no account is limited to rooms, or there is no way without one.
    init?(_ configuration: Configuration) {
        accounts = configuration.accounts.filter { !$0.rooms.contains(AccountConfiguration.allRooms) }.map(\.name)
        ways = [Self.withoutAccount(configuration), Self.withNewAccount(configuration), Self.withToken(configuration)]
            .compactMap(\.self)
        if accounts.isEmpty || ways.isEmpty { return nil }
    }

    var warning: String {
        let names = accounts.map { "\"\($0)\"" }.joined(separator: ", ")
        return "accounts.rooms of \(names) keeps nobody out of the other rooms: " + ways.joined(separator: "; ")
    }

    private static func withoutAccount(_ configuration: Configuration) -> String? {
        let identity = configuration.identity
        if identity.password != nil { return "clients enter without an account by identity.password" }
        switch identity.requireLogin {
        case .never: return "clients enter without an account (identity.require_login = \"never\")"
        case .remote:
            guard configuration.listeners.contains(where: \.isLocal) else { return nil }
            return "clients on loopback and socket files enter without an account "
                + "(identity.require_login = \"remote\")"
        case .always: return nil
        }
    }

    private static func withNewAccount(_ configuration: Configuration) -> String? {
        let registration = configuration.identity.registration
        let isOpen =
            switch registration {
            case .off: false
            case .local: configuration.listeners.contains(where: \.isLocal)
            case .on: true
            }
        guard isOpen else { return nil }
        return "clients make accounts that may enter every room (identity.registration = \"\(registration.rawValue)\")"
    }

    private static func withToken(_ configuration: Configuration) -> String? {
        let backend = configuration.identity.bearer
        guard !backend.isEmpty else { return nil }
        return "people of the backend \"\(backend)\" log in to accounts that may enter every room (identity.bearer)"
    }
}
