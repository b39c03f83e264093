import WireBytes

/// What a secured connection has beside a plain one: an engine, and what is still to be told to the owner.
final class SecureLayer {
    /// Who is to be told when the handshake is done.
    enum Introduction {
        /// The delegate knows the connection, and that it stands.
        case done
        /// The delegate knows the connection and waits for it; the address once TCP stands.
        case opened(SocketAddress?)
        /// The delegate asked for TLS on a connection that stood already.
        case secured
        /// The delegate knows nothing of it yet.
        case accepted(ListenerID, SocketAddress)
    }

    let engine: TLSEngine
    private(set) var introduction: Introduction
    /// Plain bytes that came in one piece with what made the owner pause.
    private var held: [ByteSlice] = []
    /// Why the connection is being closed, when TLS is the reason.
    private(set) var failure: StreamEnd?

    init(_ engine: TLSEngine, _ introduction: Introduction) {
        self.engine = engine
        self.introduction = introduction
    }

    var hasHeld: Bool { !held.isEmpty }

    /// The handshake begins; `introduction` tells who hears of its end.
    func begin(_ introduction: Introduction) {
        self.introduction = introduction
        engine.begin()
    }

    /// The handshake is done, and who is to be told is told now.
    func takeIntroduction() -> Introduction {
        defer { introduction = .done }
        return introduction
    }

    func hold(_ plain: UnsafeRawBufferPointer) { held.append(ByteSlice(copying: plain)) }

    func takeHeld() -> ByteSlice? { held.isEmpty ? nil : held.removeFirst() }

    func fail(_ failure: TLSFailure) { self.failure = .tlsFailed(failure) }

    /// Whether the owner is still to hear of something that has already been read from the socket.
    var isUnsettled: Bool {
        switch engine.state {
        case .handshaking, .open: hasHeld
        case .ended, .failed: true
        }
    }

    /// Whether the peer said goodbye and has not got ours.
    var owesGoodbye: Bool { engine.state == .ended && engine.canCloseNotify }
}
