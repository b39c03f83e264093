import Configuration
import Glibc
import JSONText
import Transport
import WireBytes

/// What a JSON Web Token says. Source: RFC 7519; RFC 7515 §3.1 for its form.
struct TokenText: Equatable {
    let header: JSONValue
    let claims: JSONValue
    let hasSignature: Bool

    struct Malformed: Error, Equatable {
        var sentence: String
    }

    /// - Parameter text: the token, with or without `Bearer ` in front and white space around it.
    init(_ text: String) throws(Malformed) {
        var words = text.split(whereSeparator: \.isWhitespace)
        if words.first?.lowercased() == "bearer" { words.removeFirst() }
        guard words.count == 1 else { throw Malformed(sentence: "the input is not one token") }
        let parts = words[0].split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw Malformed(sentence: "a JSON Web Token has three parts, separated by dots; this has \(parts.count)")
        }
        func object(_ part: Substring, _ name: String) throws(Malformed) -> JSONValue {
            guard let bytes = Base64.decodeURLSafe(String(part)), let json = try? JSONValue(parsing: bytes),
                json.object != nil
            else { throw Malformed(sentence: "the token's \(name) is no JSON object in base64url") }
            return json
        }
        header = try object(parts[0], "header")
        claims = try object(parts[1], "claims")
        hasSignature = !parts[2].isEmpty
    }

    /// Claims that are times. Source: RFC 7519 §4.1; OpenID Connect Core 1.0 §2 for `auth_time`.
    private static let times: Set = ["exp", "nbf", "iat", "auth_time"]

    /// - Parameter now: milliseconds since 1970.
    func lines(now: Int64, _ screen: TextScreen) -> [String] {
        var lines = [screen.styled("header", .strong)] + Self.members(header, now: now)
        lines += [screen.styled("claims", .strong)] + Self.members(claims, now: now)
        lines.append(
            "\(screen.styled("signature", .strong))  \(hasSignature ? "there, neither shown nor checked" : "none")")
        if let end = claims["exp"]?.double, end * 1000 <= Double(now) {
            lines.append(screen.styled("The token has expired.", .red))
        }
        return lines
    }

    private static func members(_ object: JSONValue, now: Int64) -> [String] {
        let members = object.object ?? []
        let width = members.map(\.key.count).max() ?? 0
        return members.map { member in
            let name = TextScreen.clean(member.key)
            var text = member.value.string ?? member.value.text
            if times.contains(member.key), let seconds = member.value.double, seconds.magnitude < 1e12 {
                text = time(Int64(seconds * 1000), now: now)
            }
            return "  \(name)\(String(repeating: " ", count: max(0, width - name.count)))  \(TextScreen.clean(text))"
        }
    }

    /// `2026-11-21 12:03:10 UTC, in 47m`
    private static func time(_ milliseconds: Int64, now: Int64) -> String {
        let seconds = (milliseconds - now) / 1000
        let span = ShortSpan.text(seconds: abs(seconds))
        return "\(CivilTime.text(milliseconds: milliseconds)) UTC, \(seconds >= 0 ? "in \(span)" : "\(span) ago")"
    }
}

extension OfflineCommands {
    /// Longest token that is read, in bytes; headers of HTTP are shorter.
    private static let maxTokenBytes = 64 * 1024

    /// `chatbridge token inspect`: the token in a file, or from standard input. Nothing of it leaves this machine.
    static func inspectToken(
        _ file: String, _ color: ColorChoice, environment: ConfigurationEnvironment, output: Output, errors: Output
    ) -> Int32 {
        guard let bytes = StateFile.read(file == "-" ? "/dev/stdin" : file, maxBytes: maxTokenBytes, followsLinks: true)
        else {
            errors("chatbridge: \(file) cannot be read, or has more than \(maxTokenBytes / 1024) KiB\n")
            return ExitCode.noInput
        }
        do throws(TokenText.Malformed) {
            let token = try TokenText(String(decoding: bytes, as: UTF8.self))
            let screen = TextScreen.ofStandardOutput(color, variables: environment.variables)
            let lines = token.lines(now: SystemClock.wallMilliseconds(), screen)
            output(lines.map { $0 + "\n" }.joined())
            return ExitCode.ok
        } catch {
            errors("chatbridge: \(error.sentence)\n")
            return ExitCode.data
        }
    }
}
