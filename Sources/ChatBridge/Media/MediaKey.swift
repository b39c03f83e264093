import BridgeCore
import Digests
import Glibc
import IRCServer
import Rooms
import Transport
import WireBytes

/// The key of links to files: 32 random bytes in the state directory, for the owner's eyes alone. With another key, links
/// that were given out open no more.
enum MediaKey {
    static let fileName = "media.key"
    static let byteCount = 32

    enum Outcome: Equatable {
        case kept([UInt8])
        /// Links end with the process.
        case forgotten([UInt8], why: String)

        var key: [UInt8] {
            switch self {
            case .kept(let key), .forgotten(let key, _): key
            }
        }
    }

    /// Reads the key from `directory`, or makes one and keeps it there (mode 0600). Blocks on the disk.
    static func load(directory: String) -> Outcome {
        let path = directory + "/" + fileName
        if let known = read(path) { return .kept(known) }
        var random = BufferedSystemRandom()
        let key = (0..<byteCount).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        guard InstanceIdentity.makeDirectory(directory) else {
            return .forgotten(key, why: MediaStore.lastError(directory))
        }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let why = MediaStore.lastError(path)
            // Another process may have been faster.
            return read(path).map { .kept($0) } ?? .forgotten(key, why: why)
        }
        defer { _ = close(descriptor) }
        let line = Array((Base64.encodeURLSafe(key) + "\n").utf8)
        guard Glibc.write(descriptor, line, line.count) == line.count, fsync(descriptor) == 0 else {
            return .forgotten(key, why: MediaStore.lastError(path))
        }
        return .kept(key)
    }

    private static func read(_ path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        guard count > 0 else { return nil }
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        let key = text.split(whereSeparator: \.isWhitespace).first.flatMap { Base64.decodeURLSafe(String($0)) }
        return key.flatMap { $0.count == byteCount ? $0 : nil }
    }
}
