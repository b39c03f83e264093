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
    var introduction: Introduction
    /// Plain bytes that came in one piece with what made the owner pause.
    var held: [ByteSlice] = []
    /// Why the connection is being closed, when TLS is the reason.
    var failure: StreamEnd?

    init(_ engine: TLSEngine, _ introduction: Introduction) {
        self.engine = engine
        self.introduction = introduction
    }

    var hasHeld: Bool { !held.isEmpty }

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

/// What one listener's connections are secured with.
struct ListenerSecurity {
    var settings: TLSServerSettings
    var context: TLSContext
    /// How changed files looked when they were seen changed for the first time, and when they could not be used.
    var suspected: FileMarks?
    var refused: FileMarks?

    var watchesFiles: Bool { !settings.files.isEmpty }
}

/// What all secured connections of a loop share.
final class TLSState {
    let output = TLSOutput()
    let sessions = TLSSessionStore()
    /// Contexts of outgoing connections, without names and pins, which are a connection's own.
    var clientContexts: [TLSClientSettings: TLSContext] = [:]
    /// Files that could not be used when a connection wanted them; told once.
    var refusedFiles: [TLSClientSettings: FileMarks] = [:]
    var reports: [(user: CertificateUser, error: TLSSetupError?)] = []
    /// Accepted connections in their handshake.
    var acceptedHandshakes = 0
    /// Those of them from beyond this machine, by ``SocketAddress/limitKey``.
    fileprivate(set) var handshakesByAddress: [SocketAddress: Int] = [:]
    /// Handshakes that may still be advanced in this turn.
    var stepsLeft = TLSLimits.handshakeStepsPerTurn
    /// Plain bytes on their way in; and out, gathered to records. Made when TLS is used.
    lazy var plainBuffer = RawBuffer(byteCount: TransportLimits.receiveBufferBytes)
    lazy var recordBuffer = RawBuffer(byteCount: TLSLimits.recordBytes)
}

extension TLSState {
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
