import Digests

/// Text that must not be shown: no description, dump, log line or printed configuration contains it.
///
/// Reading it takes ``revealed``, which is easy to search for.
struct Secret: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What stands in its place.
    static let blank = "***"

    let revealed: String

    init(_ text: String) { revealed = text }

    var description: String { Self.blank }
    var debugDescription: String { Self.blank }
    var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// What a client's PASS is checked against.
enum PasswordVerifier: Hashable, Sendable {
    /// The password itself. Compare in constant time.
    case plain(Secret)
    /// As `chatbridge hash-password` prints it.
    case hashed(SCRAMVerifier)
}

/// One more field of the WebSocket handshake. Values are secrets, because tokens live there.
struct UpstreamHeader: Hashable, Sendable {
    /// As written; unique in a room whatever the case.
    var name: String
    var value: Secret

    init(_ name: String, _ value: Secret) {
        self.name = name
        self.value = value
    }
}
