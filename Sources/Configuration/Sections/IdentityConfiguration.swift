import Digests
import IRCProtocol

package struct IdentityConfiguration: Equatable, Sendable {
    package enum RequireLogin: String, CaseIterable, Sendable {
        case never
        /// On listeners beyond loopback.
        case remote
        case always
    }

    /// Who may make an account.
    package enum Registration: String, CaseIterable, Sendable {
        case off
        /// Clients of listeners on loopback and socket files.
        case local
        /// Everybody.
        case on
    }

    package var requireLogin = RequireLogin.remote
    package var registration = Registration.off
    /// Whether an account may be made before the client is let in.
    package var registrationBeforeConnect = true
    /// Whether who logs in is in the rooms of its account again; why by default: ``BridgeSettings/rejoins``.
    package var rejoin = true
    /// Names of ``SASLMechanism``, in the order in which they are offered.
    package var sasl = SASLMechanism.allCases
    /// The backend that says whose a token is; empty: none.
    package var bearer = ""
    /// One PASS for everybody, or nil.
    package var password: PasswordVerifier?
    /// Gateways that may speak for others.
    package var webirc: [WebIRCConfiguration] = []
    package var nicks = NicksConfiguration()
}

/// A gateway that may say for whom it opens a connection, with WEBIRC.
package struct WebIRCConfiguration: Equatable, Sendable {
    /// Nil only until loading has complained.
    package var password: PasswordVerifier?
    package var from: [TrustedPeer] = []
}

/// How nicks are made from the backend's display names.
package struct NicksConfiguration: Equatable, Sendable {
    package enum Collision: String, CaseIterable, Sendable {
        /// `bob2`
        case number
        /// `bob_`
        case underscore
    }

    /// Appended to every upstream nick.
    package var suffix = ""
    /// Bytes, the suffix included.
    package var maxLengthBytes = 30
    /// Stands for characters that IRC cannot have.
    package var invalid = "-"
    package var collision = Collision.number
    /// False: ASCII only.
    package var utf8 = true
}

/// Somebody who may log in.
package struct AccountConfiguration: Equatable, Sendable {
    /// Whether and when the person's reading is told to the backend.
    package enum Receipts: String, CaseIterable, Sendable {
        /// As the room has it.
        case room = ""
        case marker
        case speaking
        case off
    }

    /// In ``rooms``: every room.
    package static let allRooms = "*"

    package var name = ""
    /// Nil: it logs in by a certificate or a token alone.
    package var password: SCRAMVerifier?
    /// SHA-256 of client certificates, 64 hexadecimal digits in lower case each.
    package var certificates: [String] = []
    /// As whom the backend knows the account: ids, or names where it has no ids.
    package var bearer: [String] = []
    /// Names of rooms.
    package var rooms = [AccountConfiguration.allRooms]
    package var isAdmin = false
    /// May say things under others' names.
    package var mayRelay = false
    package var receipts = Receipts.room
    /// Logins of its own, each in another room.
    package var upstream: [OwnLoginConfiguration] = []
}

// MARK: - Keys

extension WebIRCConfiguration {
    static let keys: [ConfigurationKey<WebIRCConfiguration>] = [
        ConfigurationKey(
            "password", \.password, .password, group: "password",
            "the gateway's, as chatbridge hash-password prints it, or in plain text"),
        ConfigurationKey("password_file", \.password, .passwordFile, group: "password", "a file with it"),
        ConfigurationKey(
            "password_credential", \.password, .passwordCredential, group: "password", "a systemd credential with it"),
        ConfigurationKey("from", \.from, .trustedPeers, "where the gateway connects from, as [\"10.0.0.0/8\"]"),
    ]
}
