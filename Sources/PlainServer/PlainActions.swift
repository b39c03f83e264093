import IRCProtocol
import WireBytes

package enum PlainAction: Equatable {
    case toServer([UInt8])
    case toTerminal([UInt8])
    /// It was a program that speaks IRC: these are its first bytes, and the session ends.
    case isProgram([UInt8])
    /// Whether more may be read from the terminal.
    case reads(Bool)
}

/// What a session wants to have done, in order.
struct PlainActions: ~Copyable {
    private var actions: [PlainAction] = []
    private var writer = ByteWriter()

    mutating func take() -> [PlainAction] {
        defer { actions = [] }
        return actions
    }

    mutating func append(_ action: PlainAction) { actions.append(action) }

    mutating func say(_ message: IRCMessage) {
        IRCEncoder.append(message, to: &writer)
        actions.append(.toServer(writer.take().withUnsafeBytes { Array($0) }))
    }

    /// A byte for the server, of a telnet that speaks IRC. Those of a read are given on at once.
    mutating func pass(_ byte: UInt8) {
        if case .toServer(var bytes) = actions.last {
            actions.removeLast()
            bytes.append(byte)
            actions.append(.toServer(bytes))
        } else {
            actions.append(.toServer([byte]))
        }
    }
}
