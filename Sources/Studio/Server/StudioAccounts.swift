import ChatModel
import JSONText
import WireBytes

// The accounts of `jwt-rooms`. A practice backend has no secrets to guard, so every name and password is an account,
// made at the first log-in; only the password "wrong" is always wrong, so that a client's handling of it can be tried.
// Tokens are real ones: signed, of limited life, and of two kinds.

/// Accounts and their tokens.
struct StudioAccounts {
    struct Account: Equatable {
        let number: Int64
        let createdAt: ChatTimestamp
        /// One for each account; used once.
        var refresh: (token: String, until: ChatTimestamp)?

        static func == (a: Account, b: Account) -> Bool { a.number == b.number }
    }

    static let wrongPassword = "wrong"
    /// Accounts at once; beyond them only known names can log in.
    static let maxAccounts = 10_000
    static let maxNameBytes = 100
    /// Life of the tokens, in milliseconds. Source: observed, the published backend: 30 minutes and 7 days.
    static let accessMilliseconds: Int64 = 30 * 60 * 1000
    static let refreshMilliseconds: Int64 = 7 * 24 * 3600 * 1000

    private(set) var accounts: [String: Account] = [:]
    private static let head = Base64.encodeURLSafe(Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8))

    // MARK: - Logging in

    /// - Returns: false when there is such an account, or no place for one.
    mutating func signUp(_ name: String, at: ChatTimestamp) -> Bool {
        guard accounts[name] == nil, accounts.count < Self.maxAccounts, !name.isEmpty,
            name.utf8.count <= Self.maxNameBytes
        else { return false }
        accounts[name] = Account(number: Int64(accounts.count + 1), createdAt: at)
        return true
    }

    /// - Returns: a pair of tokens; nil for a wrong password.
    mutating func logIn(
        _ name: String, password: String, at: ChatTimestamp, secrets: inout StudioSecrets
    ) -> JSONValue? {
        guard password != Self.wrongPassword, accounts[name] != nil || signUp(name, at: at) else { return nil }
        return pair(name, at: at, secrets: &secrets)
    }

    mutating func refresh(_ token: String, at: ChatTimestamp, secrets: inout StudioSecrets) -> JSONValue? {
        let owner = accounts.first { $0.value.refresh.map { $0.token == token && $0.until > at } ?? false }
        return owner.map { pair($0.key, at: at, secrets: &secrets) }
    }

    mutating func logOut(_ name: String) { accounts[name]?.refresh = nil }

    private mutating func pair(_ name: String, at: ChatTimestamp, secrets: inout StudioSecrets) -> JSONValue {
        let refresh = Base64.encodeURLSafe(secrets.next())
        accounts[name]?.refresh = (refresh, ChatTimestamp(milliseconds: at.milliseconds + Self.refreshMilliseconds))
        return .object([
            .init("access_token", .string(Self.token(name, at: at, secrets: secrets))),
            .init("refresh_token", .string(refresh)), .init("token_type", .string("bearer")),
        ])
    }

    // MARK: - Tokens

    /// Source: RFC 7519 §3; RFC 7515 §3.1.
    private static func token(_ name: String, at: ChatTimestamp, secrets: StudioSecrets) -> String {
        let claims = JSONValue.object([
            .init("sub", .string(name)), .init("exp", .integer((at.milliseconds + accessMilliseconds) / 1000)),
        ])
        let signed = head + "." + Base64.encodeURLSafe(claims.bytes)
        return signed + "." + Base64.encodeURLSafe(secrets.signature(of: signed))
    }

    /// - Returns: the account's name; nil for a token that is not ours, expired, or of an account that is gone.
    func user(of token: String, at: ChatTimestamp, secrets: StudioSecrets) -> String? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, parts[0] == Self.head,
            parts[2] == Base64.encodeURLSafe(secrets.signature(of: parts[0] + "." + parts[1])),
            let claims = Base64.decodeURLSafe(parts[1]), let value = try? JSONValue(parsing: claims),
            let name = value["sub"]?.string, let end = value["exp"]?.integer, end * 1000 > at.milliseconds,
            accounts[name] != nil
        else { return nil }
        return name
    }
}
