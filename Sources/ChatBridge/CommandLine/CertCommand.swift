import Glibc
import Transport

extension OfflineCommands {
    /// `chatbridge cert`: makes a certificate for a listener, or prints a fingerprint.
    static func cert(_ options: CertOptions, output: Output, errors: Output) -> Int32 {
        switch options {
        case .selfSigned(let names, let directory, let days):
            return selfSigned(names, directory, days, output: output, errors: errors)
        case .fingerprint(let file):
            return fingerprint(file, output: output, errors: errors)
        }
    }

    // MARK: - self-signed

    /// Seconds by which a certificate is valid before it was made: clocks of clients may be slow.
    private static let slowClock: Int64 = 3600

    private static func selfSigned(
        _ names: [String], _ directory: String, _ days: Int, output: Output, errors: Output
    ) -> Int32 {
        let now = SystemClock.wallMilliseconds() / 1000
        let maker = CertificateGenerator(
            names: names.isEmpty ? ownNames : names, notBefore: now - slowClock,
            notAfter: now + Int64(days) * 24 * 60 * 60)
        do {
            let made = try maker.make()
            let (certificate, key) = ("\(directory)/cert.pem", "\(directory)/key.pem")
            try writeNew(key, made.keyPEM)
            do {
                try writeNew(certificate, made.certificatePEM)
            } catch {
                unlink(key)
                throw error
            }
            output("wrote \(certificate) and \(key) for \(maker.names.joined(separator: ", ")), \(days) days\n")
            return fingerprint(certificate, output: output, errors: errors)
        } catch {
            errors("chatbridge: \(error)\n")
            return ExitCode.cannotCreate
        }
    }

    private static var ownNames: [String] {
        let host = Machine.hostName
        return (host.isEmpty || host == "localhost" ? [] : [host]) + ["localhost", "127.0.0.1", "::1"]
    }

    private struct WritingError: Error, CustomStringConvertible {
        var path: String
        var code: Int32

        var description: String {
            code == EEXIST
                ? "\(path) exists and is left alone; remove it, or name another folder with --out"
                : "cannot write \(path): \(String(cString: strerror(code)))"
        }
    }

    /// Both files are for their owner only: the certificate is public, but the pair belongs to one program.
    private static func writeNew(_ path: String, _ bytes: [UInt8]) throws(WritingError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw WritingError(path: path, code: errno) }
        defer { _ = close(descriptor) }
        guard StateFile.write(bytes, to: descriptor) else {
            let code = errno
            unlink(path)
            throw WritingError(path: path, code: code)
        }
    }

    // MARK: - fingerprint

    private static func fingerprint(_ file: String, output: Output, errors: Output) -> Int32 {
        do throws(TLSSetupError) {
            let certificate = try Certificate(file: file)
            output(
                """
                names:        \(certificate.names.joined(separator: ", "))
                issuer:       \(certificate.issuer)
                valid:        \(certificate.notBefore) to \(certificate.notAfter)
                fingerprint:  \(certificate.fingerprint)
                pin_sha256:   \(certificate.pin)

                """)
            return ExitCode.ok
        } catch {
            errors("chatbridge: \(error)\n")
            return ExitCode.noInput
        }
    }
}
