import ChatModel
import Digests

/// Makes the relay's own ids of messages: 22 characters of base64url. The same for the same id on the backend, after a
/// restart without storage too.
struct MessageIDs {
    private let digests = RepeatedSHA256()
    private var input: [UInt8] = []

    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    private static let textCount = 22

    mutating func id(backend: String, room: String, sender: ChatID?, id: ChatID) -> String {
        input.removeAll(keepingCapacity: true)
        input.append(contentsOf: backend.utf8)
        input.append(0)
        input.append(contentsOf: room.utf8)
        input.append(0)
        sender?.appendCanonical(to: &input)
        input.append(0)
        id.appendCanonical(to: &input)
        input.append(0)
        return digests.withDigest(of: input) { digest in
            var bits = UInt128(bigEndian: digest.loadUnaligned(as: UInt128.self))
            return String(unsafeUninitializedCapacity: Self.textCount) { text in
                for place in 0..<Self.textCount {
                    text.initializeElement(at: place, to: Self.alphabet.utf8Start[Int(bits >> 122)])
                    bits <<= 6
                }
                return Self.textCount
            }
        }
    }
}
