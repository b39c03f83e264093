import Glibc
import JSONText
import Transport

/// Why a command at a running bridge failed.
enum AdminClientError: Error, Equatable, CustomStringConvertible {
    /// No bridge answers.
    case noBridge(paths: [String], reason: String)
    /// A socket that this user may not open.
    case forbidden(path: String)
    /// The connection ended, or nothing came in time.
    case lost(String)
    case failed(AdminFailure)

    var description: String {
        switch self {
        case .noBridge(let paths, let reason):
            "no bridge answers\(paths.isEmpty ? "" : " at " + paths.joined(separator: " or ")): \(reason)\n"
                + "Name its configuration with --config, its state with --state-dir, or the socket with --socket."
        case .forbidden(let path):
            "user \(geteuid()) may not open the admin socket \(path)\n"
                + "Run the command as the bridge's own user, or as root."
        case .lost(let sentence): sentence
        case .failed(let failure): failure.message
        }
    }

    var exitCode: Int32 {
        switch self {
        case .noBridge, .lost: ExitCode.unavailable
        case .forbidden: ExitCode.noPermission
        case .failed(let failure):
            switch failure.code {
            case .notFound: ExitCode.data
            case .badRequest: ExitCode.usage
            case .refused: ExitCode.noPermission
            case .unavailable: ExitCode.unavailable
            case .configuration: ExitCode.configuration
            }
        }
    }
}

/// A connection to the admin socket of a bridge. Blocks.
final class AdminClient {
    /// How long a bridge may take for a line of an answer.
    static let patienceSeconds = 10

    private let descriptor: Int32
    private var bytes: [UInt8] = []
    private var start = 0

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { _ = Glibc.close(descriptor) }

    /// Connects to the first of `paths` at which a bridge answers.
    ///
    /// - Parameter patience: seconds to wait for a bridge that hangs, whose queue of connections is full.
    static func connect(
        _ paths: [String], patience: Int = AdminClient.patienceSeconds
    ) throws(AdminClientError) -> AdminClient {
        var reason: String?
        for path in paths {
            switch open(path, patience) {
            case .success(let client): return client
            // That of a service, behind the one that was meant, may be of no interest.
            case .failure(.forbidden) where reason == nil: throw .forbidden(path: path)
            case .failure(.forbidden): break
            case .failure(.other(let sentence)): reason = reason ?? sentence
            }
        }
        throw .noBridge(paths: paths, reason: reason ?? "[admin] socket is empty in its configuration")
    }

    private enum OpenFailure: Error {
        case forbidden
        /// A sentence.
        case other(String)
    }

    private static func open(_ path: String, _ patience: Int) -> Result<AdminClient, OpenFailure> {
        guard path.utf8.count <= SocketAddress.maxUnixPathBytes else {
            return .failure(.other("the path is longer than \(SocketAddress.maxUnixPathBytes) bytes"))
        }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return .failure(.other(systemError())) }
        let client = AdminClient(descriptor)
        client.setPatience(SO_SNDTIMEO, seconds: patience)
        let result = SocketAddress.unix(path: path).withSocketAddress { address, length in
            Glibc.connect(descriptor, address.assumingMemoryBound(to: sockaddr.self), length)
        }
        guard result == 0 else {
            switch errno {
            case EACCES: return .failure(.forbidden)
            case ENOENT: return .failure(.other("there is no such file"))
            case ECONNREFUSED: return .failure(.other("the bridge that made it has ended"))
            case EAGAIN: return .failure(.other("the bridge accepted no connection within \(patience) s"))
            default: return .failure(.other(systemError()))
            }
        }
        return .success(client)
    }

    private static func systemError() -> String { String(cString: strerror(errno)) }

    private func setPatience(_ option: Int32, seconds: Int) {
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Sends a request and returns its `done`; `item` is called for each item before it.
    func ask(
        _ call: AdminCall, item: (JSONValue) -> Void = { _ in }
    ) throws(AdminClientError) -> JSONValue {
        try send(call)
        while true {
            switch try next() {
            case .item(let value): item(value)
            case .done(let value): return value
            case .error(let failure): throw .failed(failure)
            }
        }
    }

    func send(_ call: AdminCall) throws(AdminClientError) {
        let row = AdminTable.row(call.request)
        setPatience(SO_RCVTIMEO, seconds: row.streams || row.isLong ? 0 : Self.patienceSeconds)
        guard StateFile.write(call.line, to: descriptor) else { throw ended() }
    }

    /// The next line of an answer.
    func next() throws(AdminClientError) -> AdminLine {
        guard let line = AdminLine(try nextLine()) else { throw .lost("this is no bridge's admin socket") }
        return line
    }

    /// The bridge may have said why before it closed.
    private func ended() -> AdminClientError {
        if let line = try? nextLine(), case .error(let failure)? = AdminLine(line) { return .failed(failure) }
        return .lost("the bridge closed the connection")
    }

    private func nextLine() throws(AdminClientError) -> [UInt8] {
        var searched = start
        while true {
            if let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { start = end + 1 }
                return Array(bytes[start..<end])
            }
            bytes.removeFirst(start)
            searched = bytes.count
            start = 0
            var piece = [UInt8](repeating: 0, count: 64 * 1024)
            let count = read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                throw .lost("the bridge did not answer within \(Self.patienceSeconds) s")
            }
            guard count > 0 else { throw .lost("the bridge closed the connection") }
            bytes += piece[..<count]
        }
    }
}
