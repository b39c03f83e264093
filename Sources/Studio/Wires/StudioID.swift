import ChatModel
import Digests

/// Ids that the studio assigns.
enum StudioID {
    /// People of wires without ids have one for each name, the same in every run.
    static func withID(_ person: ChatPerson) -> ChatPerson {
        guard person.id == nil else { return person }
        let name = person.name ?? "unknown"
        return ChatPerson(id: ChatID(uuid(SHA256.hash(Array("studio person \(name)".utf8)))), name: person.name)
    }

    /// A UUID in upper case of the first sixteen bytes.
    ///
    /// Source: RFC 9562 §5.8.
    static func uuid(_ bytes: [UInt8]) -> String {
        var text = ""
        for (index, byte) in bytes.prefix(16).enumerated() {
            if [4, 6, 8, 10].contains(index) { text += "-" }
            let marked = index == 6 ? byte & 0x0F | 0x80 : index == 8 ? byte & 0x3F | 0x80 : byte
            text += hexadecimal(marked)
        }
        return text
    }

    static func hexadecimal(_ byte: UInt8) -> String {
        let text = String(byte, radix: 16, uppercase: true)
        return byte < 16 ? "0" + text : text
    }
}

/// Unpredictable values from a secret: the machine draws no randomness itself.
struct StudioSecrets {
    private let key: [UInt8]
    private var count: UInt64 = 0

    init(key: [UInt8]) { self.key = key }

    mutating func next() -> [UInt8] {
        count += 1
        return HMACSHA256.authenticate(Array("value \(count)".utf8), key: key)
    }

    mutating func uuid() -> String { StudioID.uuid(next()) }

    func signature(of text: String) -> [UInt8] { HMACSHA256.authenticate(Array(text.utf8), key: key) }
}
