import Transport
import WireBytes

/// Inputs of a configuration besides its own text; the real process in production, plain values in tests.
package struct ConfigurationEnvironment: Sendable {
    package enum FileProblem: Error, Equatable {
        case notFound
        /// Anything else, as a sentence.
        case unreadable(String)
    }

    package var variables: [String: String]
    package var hostName: String
    /// The folder from which relative paths are read; nil: not known.
    package var directory: String?
    package var readFile: @Sendable (String) -> Result<[UInt8], FileProblem>
    /// Sockets that the service manager handed over; nil: not known, as where a configuration is only checked.
    package var sockets: [InheritedSocket]?

    package init(
        variables: [String: String], hostName: String, directory: String? = nil, sockets: [InheritedSocket]? = nil,
        readFile: @escaping @Sendable (String) -> Result<[UInt8], FileProblem>
    ) {
        self.variables = variables
        self.hostName = hostName
        self.directory = directory
        self.sockets = sockets
        self.readFile = readFile
    }

    /// The whole path of a file, for messages.
    func wholePath(_ path: String) -> String {
        guard let directory, !path.hasPrefix("/") else { return path }
        return directory == "/" ? "/\(path)" : "\(directory)/\(path)"
    }
}

/// The state of one pass of the schema over a tree: problems, and the origin of each setting.
struct ConfigurationReader: Sendable {
    let environment: ConfigurationEnvironment
    /// Whether the files of secrets are read.
    let needsSecrets: Bool
    private(set) var problems: [ConfigurationProblem] = []
    /// The origin of each written setting, by dotted path: `limits.multiline.max_lines`, `rooms[0].url`.
    private(set) var origins: [String: ConfigurationOrigin] = [:]
    /// Names of `[dialects]`, also of those that are wrong.
    private(set) var dialectNames: [String] = []
    /// The path to the current setting: keys, and indexes as `[0]`.
    private(set) var path: [String] = []

    init(environment: ConfigurationEnvironment, needsSecrets: Bool = true) {
        self.environment = environment
        self.needsSecrets = needsSecrets
    }

    mutating func report(_ origin: ConfigurationOrigin, _ message: String) {
        problems.append(ConfigurationProblem(origin: origin, message: message))
    }

    /// There is a `[dialects.NAME]`, right or wrong.
    mutating func addDialect(named name: String) { dialectNames.append(name) }

    /// Runs `body` one key or index (`[0]`) deeper and remembers that this setting was written.
    mutating func descend(_ step: String, origin: ConfigurationOrigin, _ body: (inout Self) -> Void) {
        path.append(step)
        origins[dottedPath] = origin
        body(&self)
        path.removeLast()
    }

    /// The path to the current setting, dotted.
    var dottedPath: String {
        path.reduce(into: "") { text, step in
            if !text.isEmpty, !step.hasPrefix("[") { text += "." }
            text += step
        }
    }

    /// The string at `node` with its interpolations carried out, or nil after reporting why not.
    ///
    /// Only the file's strings are interpolated: a password from the environment may hold a dollar sign.
    mutating func string(_ node: ConfigurationNode) -> String? {
        guard case .string(let raw) = node.content else {
            report(node.origin, "expected a string, found \(node.content.kindName)")
            return nil
        }
        return expand(raw, origin: node.origin)
    }

    /// The string at `node` where there is one and its interpolations can be carried out; reports nothing.
    func stringIfAny(_ node: ConfigurationNode?) -> String? {
        guard case .string(let raw)? = node?.content, let origin = node?.origin else { return nil }
        return origin.layer == .file ? try? Interpolation.expand(raw, environment: environment) : raw
    }

    private mutating func expand(_ raw: String, origin: ConfigurationOrigin) -> String? {
        guard origin.layer == .file else { return raw }
        do {
            return try Interpolation.expand(raw, environment: environment)
        } catch {
            report(origin, error.message)
            return nil
        }
    }

    /// The text of a non-string setting from a source that has only text: a variable, a flag, or an interpolated
    /// string. Nil for a node with a TOML type.
    mutating func bareText(_ node: ConfigurationNode) -> String? {
        guard case .string(let raw) = node.content else { return nil }
        guard node.origin.layer != .file || raw.contains("${") else { return nil }
        return expand(raw, origin: node.origin)
    }

    /// Contents of a file that a setting names, without one trailing newline, or nil after reporting why not.
    mutating func contents(ofFile path: String, origin: ConfigurationOrigin) -> String? {
        do {
            return try FileText.read(path, environment: environment)
        } catch {
            report(origin, error.message)
            return nil
        }
    }
}

extension ConfigurationReader {
    /// The file of a systemd credential, or nil after reporting why there is none.
    mutating func credentialPath(_ name: String, origin: ConfigurationOrigin) -> String? {
        do throws(InterpolationError) {
            return try Credential.path(name, environment: environment)
        } catch {
            report(origin, error.message)
            return nil
        }
    }
}

/// Secrets that systemd passes to a unit.
///
/// Source: systemd.exec(5), LoadCredential=.
enum Credential {
    /// The file of a credential.
    static func path(_ name: String, environment: ConfigurationEnvironment) throws(InterpolationError) -> String {
        guard !name.isEmpty, !name.contains("/"), name != ".", name != ".." else {
            throw InterpolationError(
                message: "a credential has a name, not a path; there is a key that ends in _file for \"\(name)\"")
        }
        guard let directory = environment.variables["CREDENTIALS_DIRECTORY"], !directory.isEmpty else {
            throw InterpolationError(
                message: "there is no $CREDENTIALS_DIRECTORY: no LoadCredential= in the systemd unit?")
        }
        return "\(directory)/\(name)"
    }
}

/// Why a string could not be made; never repeats contents.
package struct InterpolationError: Error, Equatable {
    package var message: String

    package init(message: String) { self.message = message }
}

enum FileText {
    /// Largest file that a string may come from, in bytes: tokens and messages of the day are far smaller, and a wrong
    /// path should not fill the memory.
    static let maxByteCount = 64 * 1024

    /// The UTF-8 text of a file without one trailing newline.
    static func read(_ path: String, environment: ConfigurationEnvironment) throws(InterpolationError) -> String {
        switch environment.readFile(path) {
        case .failure(.notFound):
            throw InterpolationError(message: "there is no file \"\(environment.wholePath(path))\"")
        case .failure(.unreadable(let reason)):
            throw InterpolationError(message: "cannot read \"\(path)\": \(reason)")
        case .success(let bytes):
            guard bytes.count <= maxByteCount else {
                throw InterpolationError(message: "\"\(path)\" is larger than \(maxByteCount / 1024) KiB")
            }
            guard var text = String(validating: bytes, as: UTF8.self) else {
                throw InterpolationError(message: "\"\(path)\" is not UTF-8 text")
            }
            // "\r\n" is one Character, so this drops either line ending, once.
            if text.last == "\n" || text.last == "\r\n" { text.removeLast() }
            return text
        }
    }
}

/// `${NAME}`, `${NAME:-default}`, `${file:/path}`, `${credential:NAME}` and `$$`; any other dollar sign stands for itself,
/// so that hashes such as `$scram-sha-256$…` need no escapes.
enum Interpolation {
    static func expand(_ text: String, environment: ConfigurationEnvironment) throws(InterpolationError) -> String {
        guard text.contains("$") else { return text }
        var result = ""
        var rest = text[...]
        while let dollar = rest.firstIndex(of: "$") {
            result += rest[..<dollar]
            rest = rest[rest.index(after: dollar)...]
            switch rest.first {
            case "$":
                result += "$"
                rest.removeFirst()
            case "{":
                guard let close = rest.firstIndex(of: "}") else {
                    throw InterpolationError(message: "\"${\" without \"}\" (a dollar sign is written \"$$\")")
                }
                result += try value(of: rest[rest.index(after: rest.startIndex)..<close], environment: environment)
                rest = rest[rest.index(after: close)...]
            default: result += "$"
            }
        }
        return result + rest
    }

    private static func value(
        of expression: Substring, environment: ConfigurationEnvironment
    ) throws(InterpolationError) -> String {
        if expression.hasPrefix("file:") {
            return try FileText.read(String(expression.dropFirst(5)), environment: environment)
        }
        if expression.hasPrefix("credential:") {
            let path = try Credential.path(String(expression.dropFirst(11)), environment: environment)
            return try FileText.read(path, environment: environment)
        }
        let mark = expression.firstRange(of: ":-")
        let name = String(expression[..<(mark?.lowerBound ?? expression.endIndex)])
        guard let first = name.utf8.first, !ASCII.isDigit(first),
            name.utf8.allSatisfy({ ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == 0x5F })
        else {
            throw InterpolationError(
                message: "\"${\(expression)}\" is not ${NAME}, ${NAME:-default}, ${file:/path} or ${credential:NAME}")
        }
        let variable = environment.variables[name]
        if let mark {
            if let variable, !variable.isEmpty { return variable }
            return String(expression[mark.upperBound...])
        }
        guard let variable else {
            throw InterpolationError(
                message: "the environment has no \(name) (a default is written \"${\(name):-default}\")")
        }
        return variable
    }
}
