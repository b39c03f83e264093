import BridgeCore
import BridgeTypes
import Transport
import WireBytes

/// Logs troubles that come with time, each once when it begins or gets worse. Those of links, histories,
/// the store and reloads have events of their own.
final class TroubleLog: ConnectionlessLoopClient {
    /// Time between two looks. Nothing that is looked for comes sooner.
    static let interval: Duration = .seconds(30)

    private let note: (BridgeNote) -> Void
    private weak var host: (any BridgeHost)?
    private var nextLookAt: MonotonicInstant?
    /// The level at which each was logged, by kind and subject.
    private var logged: [String: StatusTrouble.Level] = [:]

    init(note: @escaping (BridgeNote) -> Void) { self.note = note }

    /// Begins to look, in the next turn for the first time.
    func attach(_ host: any BridgeHost, now: MonotonicInstant) {
        self.host = host
        nextLookAt = now
    }

    func look(_ troubles: [StatusTrouble]) {
        var present: [String: StatusTrouble.Level] = [:]
        for trouble in troubles {
            let key = "\(trouble.kind.rawValue) \(trouble.subject)"
            present[key] = trouble.level
            let before = logged[key]
            if before == nil || before == .warning && trouble.level == .error { tell(trouble) }
        }
        logged = present
    }

    private func tell(_ trouble: StatusTrouble) {
        let isError = trouble.level == .error
        let text = "\(trouble.subject): \(trouble.text): \(trouble.kind.remedy)"
        switch trouble.kind {
        case .link, .dialect, .history, .storage, .reload, .mirror: break
        case .token:
            note(BridgeNote(isError ? .error : .warn, "backend-token-late", text, ["room": trouble.name]))
        case .queue, .rate:
            note(BridgeNote(isError ? .error : .warn, "queue-waiting", text, ["room": trouble.name]))
        case .certificate:
            note(BridgeNote(isError ? .error : .warn, "accept-certificate-ending", text, ["for": trouble.name]))
        }
    }

    // MARK: - The loop

    func nextDeadline() -> MonotonicInstant? { nextLookAt }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        guard let due = nextLookAt, now >= due, let host else { return }
        nextLookAt = now + Self.interval
        let status = host.bridge.status(now: Now(transport), hasClients: false)
        look(StatusTrouble.all(status, certificates: transport.certificateEnds))
    }
}
