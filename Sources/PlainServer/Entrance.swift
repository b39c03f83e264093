import IRCProtocol
import WireBytes

/// Whose connection it is that has said nothing yet, or little: a program's that speaks IRC, or a person's.
///
/// Programs begin with a command. People press a key, type a word, or wait for something to appear.
package struct Entrance {
    package enum Verdict {
        case undecided
        /// Also what is neither: HTTP, TLS and mail are turned away by the IRC server, which knows them.
        case program
        case person
    }

    /// A connection that says nothing for so long is a person's, but for what it says then.
    package static let patience: Duration = .seconds(3)
    /// Of a first line: more than a person types, so that its beginning has to do.
    private static let maxHeldBytes = 1024
    /// A TLS handshake record, and the signature of PROXY protocol 2.
    private static let foreignBeginnings: [[UInt8]] = [[0x16, 0x03], [0x0D, 0x0A, 0x0D, 0x0A, 0x00]]
    /// Commands that clients of any taste send first, so in any case of letters; their fewest parameters.
    private static let beginnings = [
        "CAP": 1, "NICK": 1, "USER": 4, "PASS": 1, "WEBIRC": 4, "PING": 1, "AUTHENTICATE": 1,
    ]

    private let verbs: Set<String>
    private(set) var held: [UInt8] = []

    /// - Parameter verbs: of IRC, and of the protocols that the IRC server turns away, in upper case.
    package init(verbs: Set<String>) { self.verbs = verbs }

    /// Nothing was received so far.
    package var isSilent: Bool { held.isEmpty }

    package mutating func takeHeld() -> [UInt8] {
        defer { held = [] }
        return held
    }

    package mutating func received(_ bytes: UnsafeRawBufferPointer) -> Verdict {
        held += bytes
        if held.first == Telnet.interpret { return .person }
        for beginning in Self.foreignBeginnings {
            let count = min(beginning.count, held.count)
            // A lone line end is a person's.
            if held.prefix(count) == beginning.prefix(count) {
                if count == beginning.count { return .program }
                if held.count < 3, held.count == count, held.first == 0x16 { return .undecided }
            }
        }
        // Programs may send empty lines first.
        let start = held.firstIndex { !Self.isLineEnd($0) } ?? held.endIndex
        let line = held[start...].prefix { !Self.isLineEnd($0) }
        if line.endIndex < held.endIndex { return isCommand(line) ? .program : .person }
        if start > 0, line.isEmpty { return .person }
        guard held.count > Self.maxHeldBytes else { return .undecided }
        return isCommand(held.prefix(Self.maxHeldBytes)) ? .program : .person
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }

    /// What the person has typed so far, before the questions that it answers. Enter alone answers none.
    package mutating func takeAnswers() -> [UInt8] { Array(takeHeld().drop(while: Self.isLineEnd)) }

    /// Whether a line is a command of a program. "help" and "Nick" are words of a person.
    package func isCommand(_ line: some Sequence<UInt8>) -> Bool {
        let bytes = Array(line)
        guard let message = bytes.withUnsafeBytes({ try? IRCParse.parse($0) }), verbs.contains(message.command) else {
            return false
        }
        if let fewest = Self.beginnings[message.command], message.params.count >= fewest { return true }
        // The parser has made it upper case.
        let verb = Array(message.command.utf8)
        return bytes.indices.contains { bytes[$0...].starts(with: verb) && ($0 == 0 || bytes[$0 - 1] == 0x20) }
    }
}
