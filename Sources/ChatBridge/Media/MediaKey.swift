import Transport
import WireBytes

/// The key that signs links to files: 32 random bytes in the state directory. Another key invalidates earlier links.
enum MediaKey {
    static let fileName = "media.key"
    static let byteCount = 32

    static func load(directory: String) -> PersistentValue<[UInt8]> {
        .load(
            fileName, in: directory,
            parse: { Base64.decodeURLSafe($0).flatMap { $0.count == byteCount ? $0 : nil } },
            format: { Base64.encodeURLSafe($0) },
            generate: {
                var random = BufferedSystemRandom()
                return (0..<byteCount).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            })
    }
}
