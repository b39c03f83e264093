import Digests
import Glibc
import IRCProtocol

/// `chatbridge hash-password`: from a hidden password to a line for the configuration.
enum HashPasswordCommand {
    /// The limit of SASL PLAIN.
    static let maxPasswordBytes = SASLPlainResponse.maxPasswordBytes

    /// Why there is no password.
    struct InputError: Error, Equatable {
        var message: String
        var exitCode = ExitCode.usage

        static let interrupted = InputError(message: "interrupted", exitCode: ExitCode.signalBase + SIGINT)
    }

    /// Ctrl-C.
    private static let interrupt: UInt8 = 0x03

    static func run(
        iterations: Int, output: OfflineCommands.Output, errors: OfflineCommands.Output,
        read: () throws(InputError) -> SecretBytes
    ) -> Int32 {
        do throws(InputError) {
            var random = SystemRandomNumberGenerator()
            output(try line(for: try read(), iterations: iterations, using: &random) + "\n")
            return ExitCode.ok
        } catch {
            errors("chatbridge: \(error.message)\n")
            return error.exitCode
        }
    }

    static func line(
        for password: SecretBytes, iterations: Int, using random: inout some RandomNumberGenerator
    ) throws(InputError) -> String {
        guard password.count > 0 else { throw InputError(message: "the password is empty") }
        guard password.count <= maxPasswordBytes else {
            throw InputError(message: "a password has at most \(maxPasswordBytes) bytes")
        }
        guard password.withUnsafeBytes({ bytes in !bytes.contains { $0 == 0 || $0 == 0x0A || $0 == 0x0D } }) else {
            throw InputError(message: "a password is one line without NUL")
        }
        guard password.withUnsafeBytes({ String(validating: $0, as: UTF8.self) != nil }) else {
            throw InputError(message: "the password is not UTF-8")
        }
        let salt = (0..<SCRAMVerifier.saltByteCount).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        return SCRAMVerifier(password: password, salt: salt, iterations: iterations).description
    }

    // MARK: - Standard input

    /// The first line of standard input; on a terminal without echo, and asked for twice.
    static func readStandardInput(prompt: (String) -> Void) throws(InputError) -> SecretBytes {
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else { return try readLine() }
        let before = settings
        // Ctrl-C ends the line and is read, since its signal would leave the terminal without echo.
        settings.c_lflag &= ~tcflag_t(ECHO | ISIG)
        withUnsafeMutableBytes(of: &settings.c_cc) { $0[Int(VEOL)] = interrupt }
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
        defer { withUnsafePointer(to: before) { _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, $0) } }
        prompt("Password: ")
        let first = try readLine(isTerminal: true)
        prompt("\nOnce more: ")
        let second = try readLine(isTerminal: true)
        prompt("\n")
        guard first == second else { throw InputError(message: "the two passwords differ") }
        return first
    }

    private static func readLine(isTerminal: Bool = false) throws(InputError) -> SecretBytes {
        // Byte by byte: the rest of the input belongs to the next reader.
        var line: [UInt8] = []
        line.reserveCapacity(maxPasswordBytes + 2)
        defer { SecretBytes.wipe(&line) }
        while true {
            var byte: UInt8 = 0
            let count = Glibc.read(STDIN_FILENO, &byte, 1)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw InputError(message: "standard input cannot be read") }
            if count == 0 || byte == 0x0A { break }
            if isTerminal, byte == interrupt { throw .interrupted }
            // Too long already; the check that says so needs no more than this.
            if line.count <= maxPasswordBytes + 1 { line.append(byte) }
        }
        if line.last == 0x0D { line.removeLast() }
        return SecretBytes(line)
    }
}
