import Configuration
import HTTPProtocol
import JSONText
import Learning
import Upstream
import WireBytes

/// A header field of `--header`.
struct LearnHeader: Equatable, Sendable {
    var name: String
    var value: String

    init(name: String, value: String) { (self.name, self.value) = (name, value) }

    /// - Parameter text: as in HTTP, `NAME: VALUE`.
    init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        let value = text[text.index(after: colon)...].drop { $0 == " " }
        guard colon > text.startIndex, !value.isEmpty else { return nil }
        self.init(name: String(text[..<colon]), value: String(value))
    }
}

/// How `learn URL` logs in: each text as it is recorded, with ``LearnMark/token``, and as it is sent.
struct LearnAccess: Sendable {
    struct Text: Equatable, Sendable {
        var recorded: String
        var sent: String
    }

    /// Where the token is when no option says it; those of a bridge without a configuration.
    static let (variable, fileVariable) = ("CHATBRIDGE_TOKEN", "CHATBRIDGE_TOKEN_FILE")

    let url: Text
    let headers: [(name: String, value: Text)]
    /// Frames.
    let sends: [Text]
    private let token: String?

    /// A token without a place of its own is a bearer token of the handshake.
    ///
    /// - Throws: a sentence without the token.
    init(_ options: LearnOptions, environment: ConfigurationEnvironment) throws(StartError) {
        func named(_ name: String) -> String? { environment.variables[name].flatMap { $0.isEmpty ? nil : $0 } }
        let file = (options.tokenFile ?? named(Self.fileVariable)).map { SecretSource.file($0) }
        do throws(InterpolationError) {
            let source = file ?? named(Self.variable).map { .text(Secret($0)) }
            token = try source?.read(environment).revealed
        } catch {
            throw StartError(description: error.message)
        }
        let address = options.url ?? ""
        var headers = options.headers
        let hasPlace = ([address] + headers.map(\.value) + options.sends).contains { $0.contains(LearnMark.token) }
        guard !hasPlace || token != nil else {
            throw StartError(
                description: "\(LearnMark.token) wants a token: --token-file, \(Self.variable) or \(Self.fileVariable)")
        }
        if !hasPlace, token != nil, !headers.contains(where: { ASCII.lowercased($0.name) == "authorization" }) {
            headers.append(LearnHeader(name: "Authorization", value: "Bearer \(LearnMark.token)"))
        }
        let secret = token ?? ""
        func text(_ recorded: String, _ form: (String) -> String) -> Text {
            Text(recorded: recorded, sent: recorded.replacing(LearnMark.token, with: form(secret)))
        }
        url = text(address, HTTPURL.percentEncoded)
        self.headers = headers.map { ($0.name, text($0.value) { $0 }) }
        // In a frame it stands inside of a JSON string.
        sends = options.sends.map { text($0, Self.inJSON) }
    }

    private static func inJSON(_ text: String) -> String { String(JSONValue.string(text).text.dropFirst().dropLast()) }

    /// A text of the backend's that may repeat the token.
    func withoutToken(_ text: String) -> String {
        guard let token else { return text }
        let forms = [token, HTTPURL.percentEncoded(token), Self.inJSON(token)].sorted { $0.utf8.count > $1.utf8.count }
        return SecretScrubber.scrubbed(text, ofBytes: forms.map { Array($0.utf8) })
    }
}
