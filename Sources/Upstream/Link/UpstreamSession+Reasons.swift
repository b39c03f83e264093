import BridgeTypes
import WSProtocol
import WireBytes

// Texts of the backend at the end of a session: whether they are about the login, and how they are reported.

extension UpstreamSession {
    // MARK: - Words

    /// A text of the backend for a report: short, and without secrets.
    package func printable(_ text: String) -> String { SecretScrubber.printable(text, of: secrets) }

    /// The same for a text of any length.
    package func scrubbed(_ text: String) -> String { SecretScrubber.scrubbed(text, of: secrets) }

    var secrets: [String] { credentials.secrets + formerCredentials.secrets }

    /// The same without passwords.
    package var tokens: [String] { credentials.tokens + formerCredentials.tokens }

    static func bounded(_ reason: String) -> String {
        guard reason.utf8.count > maxReasonBytes else { return reason }
        return PrintableText.prefix(of: reason, maxBytes: maxReasonBytes) + "…"
    }

    // MARK: - Refusals

    func isAuthRefusal(_ refusal: WebSocketRefusal) -> Bool {
        if case .status(let status, _, _, _) = refusal { return settings.refusalCodes.contains(status) }
        return false
    }

    static func isOverload(_ refusal: WebSocketRefusal) -> Bool {
        if case .status(let status, _, _, _) = refusal { return status == 500 || status == 503 }
        return false
    }

    func isAuthClose(_ code: WebSocketCloseCode?) -> Bool {
        guard let code else { return false }
        return settings.refusalCodes.contains(Int(code.rawValue))
    }
}
