import WireBytes

/// The connections that ``TransportDelegate/certificatesChanged(_:error:transport:)`` is about.
public enum CertificateUser: Equatable, Sendable {
    case listener(ListenerID)
    /// Outgoing connections with settings that read these files.
    case client(files: [String])
}

/// The state that all secured connections of a loop share.
final class TLSState {
    let output = TLSOutput()
    let sessions = TLSSessionStore()
    /// Contexts of outgoing connections, without names and pins, which are a connection's own.
    private var clientContexts: [TLSClientSettings: TLSContext] = [:]
    /// Files that could not be used when a connection wanted them; reported once.
    private var refusedFiles: [TLSClientSettings: FileMarks] = [:]
    private var reports: [(user: CertificateUser, error: TLSSetupError?)] = []
    /// Accepted connections in their handshake.
    private(set) var acceptedHandshakes = 0
    /// Those of them from beyond this machine, by ``SocketAddress/limitKey``.
    private(set) var handshakesByAddress: [SocketAddress: Int] = [:]
    /// Handshakes that may still be advanced in this turn.
    private var stepsLeft = TLSLimits.handshakeStepsPerTurn
    /// Plain bytes on their way in; and out, gathered to records. Made when TLS is used.
    lazy var plainBuffer = RawBuffer(byteCount: TransportLimits.receiveBytes)
    lazy var recordBuffer = RawBuffer(byteCount: TLSLimits.recordBytes)

    var hasReports: Bool { !reports.isEmpty }

    // MARK: - Certificates

    /// The context for `settings`: the one that other connections have, or a new one when files have changed.
    func clientContext(_ settings: TLSClientSettings) throws(TLSSetupError) -> TLSContext {
        var shared = settings
        shared.serverName = nil
        shared.pins = []
        let known = clientContexts[shared]
        let marks = known?.files.renewed
        if let known, marks == known.files || marks == refusedFiles[shared] { return known }
        do throws(TLSSetupError) {
            let context = try TLSContext(client: shared)
            clientContexts[shared] = context
            refusedFiles[shared] = nil
            if known != nil { report(.client(files: shared.files), nil) }
            return context
        } catch {
            guard let known else { throw error }
            refusedFiles[shared] = marks
            report(.client(files: shared.files), error)
            return known
        }
    }

    func report(_ user: CertificateUser, _ error: TLSSetupError?) { reports.append((user, error)) }

    func takeReports() -> [(user: CertificateUser, error: TLSSetupError?)] {
        defer { reports = [] }
        return reports
    }

    // MARK: - Handshakes

    func beginTurn() { stepsLeft = TLSLimits.handshakeStepsPerTurn }

    /// Whether a handshake may be advanced in this turn.
    func takeStep() -> Bool {
        guard stepsLeft > 0 else { return false }
        stepsLeft -= 1
        return true
    }

    /// Counts a handshake that begins; false, and uncounted, when its address has too many under way.
    func admit(_ peer: SocketAddress) -> Bool {
        if !peer.isLoopback {
            let address = peer.limitKey
            let count = handshakesByAddress[address, default: 0]
            guard count < TLSLimits.handshakesPerAddress else { return false }
            handshakesByAddress[address] = count + 1
        }
        acceptedHandshakes += 1
        return true
    }

    /// The handshake that was admitted is over.
    func dismiss(_ peer: SocketAddress) {
        acceptedHandshakes -= 1
        guard !peer.isLoopback else { return }
        let address = peer.limitKey
        let count = handshakesByAddress[address, default: 0] - 1
        handshakesByAddress[address] = count > 0 ? count : nil
    }
}

/// Memory that goes when its owner goes.
final class RawBuffer {
    let bytes: UnsafeMutableRawBufferPointer

    init(byteCount: Int) { bytes = .allocate(byteCount: byteCount, alignment: 64) }

    deinit { bytes.deallocate() }
}
