import WireBytes

/// The part of a connection that only TLS needs: an engine, and reports and bytes that the owner has yet to receive.
final class SecureLayer {
    /// The report that the end of the handshake causes.
    enum HandshakeReport {
        /// None: the delegate knows the connection, and that it stands.
        case done
        /// The delegate knows the connection and waits for it; the address once TCP stands.
        case opened(SocketAddress?)
        /// The delegate asked for TLS on a connection that stood already.
        case secured
        /// The delegate knows nothing of it yet.
        case accepted(ListenerID, SocketAddress)
    }

    let engine: TLSEngine
    private(set) var handshakeReport: HandshakeReport
    /// Plain bytes that were decrypted together with those on which the owner paused reading.
    private var held: [ByteSlice] = []
    /// The failure of TLS for which the connection is being closed.
    private(set) var failure: StreamEnd?

    init(_ engine: TLSEngine, _ report: HandshakeReport) {
        self.engine = engine
        handshakeReport = report
    }

    var hasHeld: Bool { !held.isEmpty }

    /// Begins the handshake; its end is reported as `handshakeReport` says.
    func begin(_ report: HandshakeReport) {
        handshakeReport = report
        engine.begin()
    }

    /// Marks the handshake as reported, and returns the report to make.
    func takeReport() -> HandshakeReport {
        defer { handshakeReport = .done }
        return handshakeReport
    }

    func hold(_ plain: UnsafeRawBufferPointer) { held.append(ByteSlice(copying: plain)) }

    func takeHeld() -> ByteSlice? { held.isEmpty ? nil : held.removeFirst() }

    func fail(_ failure: TLSFailure) { self.failure = .tlsFailed(failure) }

    /// Whether the owner is still to hear of something that has already been read from the socket.
    var isUnknown: Bool {
        switch engine.state {
        case .handshaking, .open: hasHeld
        case .ended, .failed: true
        }
    }

    /// Whether the peer's close_notify was received and none was sent.
    var owesCloseNotify: Bool { engine.state == .ended && engine.canCloseNotify }
}
