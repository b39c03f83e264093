import BridgeCore
import ChatModel
import Glibc
import IRCServer
import JSONText
import Rooms
import Upstream

/// Keeps the tokens of backends over a restart: one file each, for the owner's eyes alone.
///
/// A file is always whole: the new one is written beside it, brought to the disk and put in its place.
struct TokenStore: Sendable {
    /// Largest file that is read, in bytes: two tokens of the size of an HTTP head.
    static let maxFileBytes = 64 * 1024
    static let version: Int64 = 1

    /// `backends/` in the state directory; made when it is needed.
    let directory: String

    init(stateDirectory: String) { directory = stateDirectory + "/backends" }

    /// Nil for a name that cannot be a file's.
    func path(_ backend: String) -> String? {
        let isPlain = backend.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
        }
        return isPlain && !backend.isEmpty ? "\(directory)/\(backend).tokens.json" : nil
    }

    /// Blocks on the disk.
    ///
    /// - Throws: a sentence that names the place, never the contents.
    func save(_ tokens: StoredTokens, backend: String) throws(UpstreamCredentialsFailure) {
        guard let path = path(backend) else { throw UpstreamCredentialsFailure("\"\(backend)\" cannot name a file") }
        guard InstanceIdentity.makeDirectory(directory) else { throw Self.failure(directory) }
        let fresh = "\(path).\(getpid()).new"
        // Left over by a crash; ours, because of the process number.
        _ = unlink(fresh)
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure(fresh) }
        let bytes = Self.text(tokens)
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            written += count
        }
        let isKept = written == bytes.count && fsync(descriptor) == 0
        let failure = Self.failure(fresh)
        _ = close(descriptor)
        guard isKept else {
            _ = unlink(fresh)
            throw failure
        }
        guard rename(fresh, path) == 0 else {
            let failure = Self.failure(path)
            _ = unlink(fresh)
            throw failure
        }
        // The new name too; where the file system cannot, the file itself is safe.
        let folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folder >= 0 {
            _ = fsync(folder)
            _ = close(folder)
        }
    }

    /// What is kept; nil when there is nothing that can be used. Blocks on the disk.
    func read(backend: String) -> StoredTokens? {
        guard let path = path(backend) else { return nil }
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        while bytes.count <= Self.maxFileBytes {
            let count = Glibc.read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += piece[..<count]
        }
        guard bytes.count <= Self.maxFileBytes else { return nil }
        return Self.tokens(bytes)
    }

    // MARK: - Contents

    static func text(_ tokens: StoredTokens) -> [UInt8] {
        var members = [
            JSONValue.Member("version", .integer(version)), JSONValue.Member("owner", .string(tokens.owner)),
            JSONValue.Member("access_token", .string(tokens.access)),
        ]
        if let refresh = tokens.refresh { members.append(JSONValue.Member("refresh_token", .string(refresh))) }
        if let end = tokens.expiresAt { members.append(JSONValue.Member("expires_at_ms", .integer(end.milliseconds))) }
        return JSONValue.object(members).bytes + [0x0A]
    }

    static func tokens(_ bytes: [UInt8]) -> StoredTokens? {
        guard let json = try? JSONValue(parsing: bytes), json["version"]?.integer == version,
            let owner = json["owner"]?.string, let access = json["access_token"]?.string, !access.isEmpty
        else { return nil }
        return StoredTokens(
            access: access, refresh: json["refresh_token"]?.string,
            expiresAt: json["expires_at_ms"]?.integer.map { ChatTimestamp(milliseconds: $0) }, owner: owner)
    }

    private static func failure(_ path: String) -> UpstreamCredentialsFailure {
        UpstreamCredentialsFailure("\(path): \(String(cString: strerror(errno)))")
    }
}
