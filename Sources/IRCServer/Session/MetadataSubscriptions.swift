import BridgeTypes
import IRCProtocol
import Identities

/// Subscriptions of clients to metadata keys of other users. Clients without any cost nothing.
///
/// Source: IRCv3 metadata, "Notifications".
final class MetadataSubscriptions {
    /// Keys per client. The bridge has one; clients subscribe to all that they know.
    static let maxKeys = 50
    /// Bytes of a key. No key in use is longer.
    static let maxKeyBytes = 64
    /// The key of upstream users: their name as written upstream.
    static let displayName = "display-name"

    /// No key can be set.
    static let capabilityValue = "max-subs=\(maxKeys),max-keys=0"

    private var keys: [ClientID: [String]] = [:]

    /// There are no subscriptions.
    var isEmpty: Bool { keys.isEmpty }

    func list(of client: ClientID) -> [String] { keys[client] ?? [] }

    func wantsNames(_ client: ClientID) -> Bool { keys[client]?.contains(Self.displayName) ?? false }

    /// Whether the client is subscribed now; false: it has too many keys.
    func add(_ key: String, for client: ClientID) -> Bool {
        let known = keys[client, default: []]
        if known.contains(key) { return true }
        guard known.count < Self.maxKeys else { return false }
        keys[client, default: []].append(key)
        return true
    }

    func remove(_ key: String, for client: ClientID) {
        keys[client]?.removeAll { $0 == key }
        if keys[client]?.isEmpty == true { keys[client] = nil }
    }

    func forget(_ client: ClientID) { keys[client] = nil }

    /// `a` to `z`, digits, `_`, `.`, `/` and `-`.
    static func isKey(_ text: String) -> Bool {
        (1...maxKeyBytes).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"),
                    UInt8(ascii: "."), UInt8(ascii: "/"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    // MARK: - Lines

    /// The display name of an upstream user; nil: none, or an IRC user.
    static func name(of person: Person) -> String? {
        person.isLocal || person.realname.isEmpty ? nil : person.realname
    }

    /// The line with a user's display name; nil: none.
    static func line(of person: Person, from server: String) -> IRCMessage? {
        name(of: person).map {
            IRCMessage(source: server, command: "METADATA", params: [person.nick, Self.displayName, "*", $0])
        }
    }
}
