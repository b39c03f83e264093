public import BridgeTypes
public import Digests

/// A configured or registered account.
public struct AccountSettings: Sendable {
    /// Compared without regard to ASCII case. No spaces, no `@`.
    public var name: String
    /// Nil: log-in by certificate or token only.
    public var password: SCRAMVerifier?
    /// SHA-256 fingerprints of client certificates, 64 lower-case hexadecimal digits each.
    public var certificates: [String]
    /// The account's ids at the backend, or names where the dialect has no ids. A token of one of them logs in to this
    /// account.
    public var tokenOwners: [String]
    /// Names of the rooms that the account may enter; nil: all.
    public var rooms: Set<String>?
    /// Shown as an operator.
    public var isAdmin: Bool
    /// Permission to use RELAYMSG, for bots that mirror a room.
    public var mayRelay: Bool
    /// Overrides the room's receipt policy; nil: the room's applies.
    public var receipts: ReceiptPolicy?
    /// The account's own credentials for the backends of rooms, by the room's name.
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

/// Clients that must log in with an account or the server's password.
public enum LoginRequirement: Sendable {
    /// None, unless there is a server password.
    case never
    /// Clients whose ``ClientOrigin/isListenerLocal`` is false.
    case remote
    case always
}

/// Clients that may register an account.
public enum RegistrationPolicy: Sendable {
    case nobody
    /// Clients whose ``ClientOrigin/isListenerLocal`` is true.
    case local
    case everybody
}

/// The password that PASS is checked against.
public enum ServerPassword: Sendable, Equatable {
    case plain(SecretBytes)
    case hashed(SCRAMVerifier)
}
