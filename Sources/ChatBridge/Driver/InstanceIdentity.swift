import Digests
import Glibc
import Transport

/// The random id of this installation: part of our people's ids upstream, so that two bridges never share a person and
/// one bridge stays itself across restarts.
enum InstanceIdentity {
    static let fileName = "instance-id"

    enum Outcome: Equatable {
        case kept(String)
        case made(String)
        /// It could not be stored: people upstream will see new persons after a restart.
        case forgotten(String, why: String)

        var id: String {
            switch self {
            case .kept(let id), .made(let id), .forgotten(let id, _): id
            }
        }
    }

    /// Reads the id from `directory`, or makes one and keeps it there (mode 0600).
    static func load(directory: String) -> Outcome {
        let path = directory + "/" + fileName
        if let known = read(path) { return .kept(known) }
        var random = BufferedSystemRandom()
        let id = UUIDv4.make(using: &random)
        guard makeDirectory(directory) else { return .forgotten(id, why: "\(directory): \(lastError())") }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            // Another process may have been faster.
            if let known = read(path) { return .kept(known) }
            return .forgotten(id, why: "\(path): \(lastError())")
        }
        defer { _ = close(descriptor) }
        let line = Array((id + "\n").utf8)
        guard Glibc.write(descriptor, line, line.count) == line.count, fsync(descriptor) == 0 else {
            return .forgotten(id, why: "\(path): \(lastError())")
        }
        return .made(id)
    }

    private static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        guard count > 0 else { return nil }
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        let id = text.split(whereSeparator: \.isWhitespace).first.map(String.init)
        return id.flatMap { $0.utf8.count >= 8 ? $0 : nil }
    }

    /// Makes the directory and those above it; true when it is there afterwards.
    static func makeDirectory(_ path: String) -> Bool {
        if access(path, W_OK) == 0 { return true }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            let parent = String(path[..<slash])
            if access(parent, F_OK) != 0, !makeDirectory(parent) { return false }
        }
        return mkdir(path, 0o700) == 0 || errno == EEXIST
    }

    private static func lastError() -> String { String(cString: strerror(errno)) }
}
