public import BridgeTypes
public import Digests

/// Somebody who may log in.
public struct AccountSettings: Sendable {
    /// As configured; compared without regard to ASCII case. No spaces, no `@`.
    public var name: String
    /// Nil: it logs in by a certificate or a token alone, and no password is right.
    public var password: SCRAMVerifier?
    /// SHA-256 of certificates, 64 hexadecimal digits in lower case each: who shows one of them is this account.
    public var certificates: [String]
    /// Ids, or names where it has no ids, by which the backend knows the account: who shows a token of one of them is this
    /// account.
    public var tokenOwners: [String]
    /// Names of the rooms that the account may enter; nil: all.
    public var rooms: Set<String>?
    /// Shown as an operator.
    public var isAdmin: Bool
    /// May say things under others' names, as bots do that mirror a room.
    public var mayRelay: Bool
    /// The person's own choice over the room's; nil: none.
    public var receipts: ReceiptPolicy?
    /// What the account shows of its own to the backends of rooms, by the room's name.
    public var ownLogins: [String: OwnLoginSettings]

    public init(
        name: String, password: SCRAMVerifier?, certificates: [String] = [], rooms: Set<String>? = nil,
        isAdmin: Bool = false,
        receipts: ReceiptPolicy? = nil, ownLogins: [String: OwnLoginSettings] = [:], mayRelay: Bool = false,
        tokenOwners: [String] = []
    ) {
        self.tokenOwners = tokenOwners
        self.mayRelay = mayRelay
        self.name = name
        self.password = password
        self.certificates = certificates
        self.rooms = rooms
        self.isAdmin = isAdmin
        self.receipts = receipts
        self.ownLogins = ownLogins
    }
}

/// Who must log in, with an account or the server's password.
public enum LoginRequirement: Sendable {
    /// Nobody, unless there is a server password.
    case never
    /// Clients whose ``ClientOrigin/isListenerLocal`` is false.
    case remote
    case always
}

/// Who may make an account of their own.
public enum RegistrationPolicy: Sendable {
    case nobody
    /// Clients whose ``ClientOrigin/isListenerLocal`` is true.
    case local
    case everybody
}

/// What PASS is checked against.
public enum ServerPassword: Sendable, Equatable {
    case plain(SecretBytes)
    case hashed(SCRAMVerifier)
}
