import CSystem
import Configuration
import Glibc
import Transport

/// The words of the command line behind the program's name. `CommandLine.arguments` of the standard library is empty where /proc is
/// not mounted.
func commandLineWords() -> [String] {
    var words: [String] = []
    while let word = cb_argument(Int32(words.count) + 1) { words.append(String(cString: word)) }
    return words
}

extension ConfigurationEnvironment {
    /// Largest file that is read, in bytes: one more than the largest that is accepted, so that "too large" shows.
    private static let maxReadByteCount = TOMLReader.maxByteCount + 1

    /// Those of this process: its environment, its host's name, its files.
    static func ofThisProcess() -> ConfigurationEnvironment {
        ConfigurationEnvironment(
            variables: environmentVariables(), hostName: hostName(), directory: workingDirectory(),
            readFile: contents(ofFile:))
    }

    /// The same with the sockets that the service manager handed over: for commands that listen.
    var withSockets: ConfigurationEnvironment {
        var environment = self
        environment.sockets = InheritedSocket.all(variables: variables, processID: getpid())
        return environment
    }

    /// Removes variables from the process's own environment, which children inherit. To be called before there are
    /// other threads, which may read it.
    static func remove(_ names: [String]) {
        for name in names { unsetenv(name) }
    }

    private static func environmentVariables() -> [String: String] {
        var variables: [String: String] = [:]
        var entry = environ
        while let text = entry.pointee {
            let assignment = String(cString: text)
            if let equals = assignment.firstIndex(of: "=") {
                variables[String(assignment[..<equals])] = String(assignment[assignment.index(after: equals)...])
            }
            entry += 1
        }
        return variables
    }

    private static func hostName() -> String {
        // HOST_NAME_MAX is 64 on Linux; the kernel's limit with its NUL is 65.
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress, gethostname(base, buffer.count) == 0 else { return "" }
            buffer[buffer.count - 1] = 0
            return String(cString: base)
        }
    }

    /// Nil where it was removed.
    private static func workingDirectory() -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            getcwd(buffer.baseAddress, buffer.count).map { String(cString: $0) }
        }
    }

    @Sendable private static func contents(ofFile path: String) -> Result<[UInt8], FileProblem> {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return .failure(problem(errno, path)) }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count < maxReadByteCount {
            var failure: Int32?
            let wanted = min(64 * 1024, maxReadByteCount - bytes.count)
            let chunk = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
                count = 0
                var got = read(descriptor, buffer.baseAddress, wanted)
                while got < 0 && errno == EINTR { got = read(descriptor, buffer.baseAddress, wanted) }
                if got < 0 { failure = errno } else { count = got }
            }
            if let failure { return .failure(problem(failure, path)) }
            if chunk.isEmpty { break }
            bytes += chunk
        }
        return .success(bytes)
    }

    private static func problem(_ code: Int32, _ path: String) -> FileProblem {
        let reason = String(cString: strerror(code))
        switch (code, StateFile.owner(path)) {
        case (ENOENT, _): return .notFound
        case (EACCES, let owner?):
            return .unreadable(
                "\(reason): this process runs as user \(geteuid()), and the file belongs to user \(owner.user), "
                    + "mode \(String(owner.mode, radix: 8))")
        default: return .unreadable(reason)
        }
    }
}
