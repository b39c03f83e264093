import ChatModel
import Glibc
import JSONText
import Rooms
import Upstream

/// Stores the tokens of backends persistently: one file each, readable by its owner alone.
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
        guard StateFile.makeDirectory(directory) else {
            throw UpstreamCredentialsFailure(StateFile.lastError(directory))
        }
        if let failure = StateFile.replace(path, with: Self.text(tokens), syncs: true) {
            throw UpstreamCredentialsFailure(failure)
        }
        // The new name too; where the file system cannot, the file itself is safe.
        let folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folder >= 0 {
            _ = fsync(folder)
            _ = close(folder)
        }
    }

    /// The stored tokens; nil when there are no usable ones. Blocks on the disk.
    func read(backend: String) -> StoredTokens? {
        path(backend).flatMap { StateFile.read($0, maxBytes: Self.maxFileBytes) }.flatMap(Self.tokens)
    }

    /// Removes the stored tokens. False: there were none.
    func remove(backend: String) -> Bool { path(backend).map { unlink($0) == 0 } ?? false }

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
}
