import CSystem
import WireBytes

// TLS on connections: the handshake, and bytes between socket, engine and owner.

extension Transport {
    // MARK: - Questions

    /// SHA-256 of the peer's certificate, as 64 hexadecimal digits; nil where it showed none or the connection is
    /// plain. On listeners it was verified against the listener's authorities, where these are named.
    public func peerCertificateFingerprint(_ id: ConnectionID) -> String? {
        connections.find(id)?.pointee.secure?.engine.peerCertificate?.fingerprint
    }

    /// The certificate that the peer has shown; nil for plain connections.
    public func peerCertificate(_ id: ConnectionID) -> Certificate? {
        connections.find(id)?.pointee.secure?.engine.peerCertificate
    }

    /// How far the opening of a connection is; nil: it has ended.
    public func progress(of id: ConnectionID) -> ConnectionProgress? {
        switch connections.find(id)?.pointee.phase {
        case .resolving: .resolving
        case .connecting: .connecting
        case .securing: .securing
        case .open: .open
        default: nil
        }
    }

    /// Version and cipher, as `TLSv1.3 TLS_AES_256_GCM_SHA384`; nil for plain connections.
    public func securityDescription(_ id: ConnectionID) -> String? {
        guard let connection = connections.find(id), connection.pointee.phase != .securing else { return nil }
        return connection.pointee.secure?.engine.description
    }

    /// The server name (SNI) of an accepted connection's client, in lower case; nil where it sent none.
    public func requestedServerName(_ id: ConnectionID) -> String? {
        connections.find(id)?.pointee.secure?.engine.requestedName
    }

    // MARK: - Beginning

    /// Gives an outgoing connection its engine. False when the settings cannot be used; the end is reported then.
    func secure(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ settings: TLSClientSettings?,
        host: String, port: Int
    ) -> Bool {
        guard let settings else { return true }
        do throws(TLSSetupError) {
            let engine = try TLSEngine(
                connecting: try tls.clientContext(settings), settings: settings, host: host, port: port,
                output: tls.output, sessions: tls.sessions)
            connection.pointee.secure(by: SecureLayer(engine, .opened(nil)))
            return true
        } catch {
            end(id, connection, .tlsFailed(.unusable(error)), reset: false)
            return false
        }
    }

    /// Begins TLS on an open outgoing connection, such as one through a proxy; answered by
    /// ``TransportDelegate/connectionSecured(_:transport:)`` or by its end. Bytes sent from now on are encrypted.
    ///
    /// - Parameter host: the name that the certificate must have.
    public func startTLS(_ id: ConnectionID, _ settings: TLSClientSettings, host: String) {
        guard let connection = connections.find(id), connection.pointee.phase == .open,
            connection.pointee.secure == nil, secure(id, connection, settings, host: host, port: 0),
            let layer = connection.pointee.secure
        else { return }
        beginHandshake(id, connection, layer, .secured)
    }

    func acceptSecurely(
        _ descriptor: Int32, peer: SocketAddress, listener: ListenerID, _ security: ListenerSecurity
    ) {
        let engine: TLSEngine
        do throws(TLSSetupError) {
            engine = try TLSEngine(accepting: security.context, output: tls.output)
        } catch {
            // No memory. The listener itself is in order.
            return cb_close(descriptor)
        }
        guard tls.admit(peer) else { return cb_close_with_reset(descriptor) }
        guard let (id, connection) = admit(descriptor, .securing) else { return tls.dismiss(peer) }
        let layer = SecureLayer(engine, .accepted(listener, peer))
        connection.pointee.secure(by: layer)
        beginHandshake(id, connection, layer, layer.handshakeReport)
    }

    /// - Parameter deadline: the end of the attempt to connect; nil: the handshake has its usual time.
    func beginHandshake(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ layer: SecureLayer,
        _ report: SecureLayer.HandshakeReport, by deadline: MonotonicInstant? = nil
    ) {
        connection.pointee.securing()
        timers.set(.handshake(id), at: deadline ?? now + TLSLimits.handshakeTimeout)
        layer.begin(report)
        settle(id, connection, layer)
    }

    /// The handshake is over, one way or the other.
    func leaveHandshake(_ id: ConnectionID, _ layer: SecureLayer) {
        guard timers[.handshake(id)] != nil else { return }
        timers.cancel(.handshake(id))
        if case .accepted(_, let peer) = layer.handshakeReport { tls.dismiss(peer) }
    }

    func handshakeTimerFired(_ id: ConnectionID) {
        guard let connection = connections.find(id), let layer = connection.pointee.secure else { return }
        // The timer is gone, and with it the mark by which the end would know of the handshake.
        if case .accepted(_, let peer) = layer.handshakeReport { tls.dismiss(peer) }
        end(id, connection, .tlsFailed(.handshakeTimedOut), reset: true)
    }

    /// Drops, without a report, the connections that the delegate does not know yet.
    func abortHandshakes(of listener: ListenerID) {
        for id in connections.ids {
            guard let connection = connections.find(id), connection.pointee.phase == .securing,
                case .accepted(listener, _)? = connection.pointee.secure?.handshakeReport
            else { continue }
            abort(id, silently: true)
        }
    }

    // MARK: - Receiving

    /// Delivers held bytes and pending ends. False when nothing may be read now.
    func prepareToRead(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ layer: SecureLayer
    ) -> Bool {
        switch connection.pointee.phase {
        case .securing:
            if tls.takeStep() { return true }
            enlistForReading(id, connection)
            return false
        case .open:
            while !connection.pointee.flags.contains(.paused), let piece = layer.takeHeld() {
                piece.withUnsafeBytes { delegate?.connectionReceived(id, $0, transport: self) }
                guard connections.find(id) != nil, connection.pointee.phase == .open else { return false }
            }
            settle(id, connection, layer)
            return connections.find(id) != nil && connection.pointee.phase == .open
                && connection.pointee.flags.isDisjoint(with: [.paused, .endReported])
        default:
            return true
        }
    }

    /// Decrypts bytes from the socket, delivers the plain bytes, and acts on the engine's new state.
    func receiveSecurely(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ layer: SecureLayer,
        _ bytes: UnsafeRawBufferPointer
    ) {
        layer.engine.receive(bytes, into: tls.plainBuffer.bytes) { plain in
            reportHandshake(id, connection, layer)
            // The owner may have closed the connection in the meantime; then the rest is dropped.
            guard connections.find(id) != nil, connection.pointee.phase == .open else { return }
            if connection.pointee.flags.contains(.paused) {
                layer.hold(plain)
                connection.pointee.mayRead()
            } else {
                delegate?.connectionReceived(id, plain, transport: self)
            }
        }
        if layer.engine.state == .failed(.notTLS), layer.engine.isServer, let first = bytes.first, first < 0x80,
            case .accepted(let listener, _) = layer.handshakeReport
        {
            let answer = listeners[listener]?.security?.settings.plainTextAnswer ?? ""
            if !answer.isEmpty { layer.engine.answerPlainly(ByteSlice(answer)) }
        }
        settle(id, connection, layer)
    }

    /// Acts on the engine's state: reports, flushes or ends the connection. Idempotent.
    private func settle(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ layer: SecureLayer
    ) {
        guard connections.find(id) != nil else { return }
        switch connection.pointee.phase {
        case .securing, .open: break
        default: return
        }
        if connection.pointee.hasUnsent { enlistForFlush(id, connection) }
        switch layer.engine.state {
        case .handshaking: return
        case .open: reportHandshake(id, connection, layer)
        case .ended:
            reportHandshake(id, connection, layer)
            guard mayEnd(id, connection, layer) else { return }
            reportEnd(id, connection, .endOfStream)
        case .failed(let failure):
            guard mayEnd(id, connection, layer) else { return }
            failSecurely(id, connection, layer, failure)
        }
    }

    /// Whether an end may be reported now. While reading is paused it waits, behind the held bytes, for the
    /// resumption.
    private func mayEnd(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ layer: SecureLayer
    ) -> Bool {
        guard connections.find(id) != nil else { return false }
        switch connection.pointee.phase {
        case .securing: return true
        case .open where connection.pointee.flags.contains(.endReported): return false
        case .open:
            guard connection.pointee.flags.contains(.paused) || layer.hasHeld else { return true }
            connection.pointee.mayRead()
            return false
        default: return false
        }
    }

    /// The handshake is done: from now on the connection is like any other.
    private func reportHandshake(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ layer: SecureLayer
    ) {
        guard connection.pointee.phase == .securing else { return }
        leaveHandshake(id, layer)
        connection.pointee.stands()
        let report = layer.takeReport()
        if connection.pointee.hasUnsent { enlistForFlush(id, connection) }
        switch report {
        case .done, .opened(nil): break
        case .opened(let peer?): delegate?.connectionOpened(id, peer: peer, transport: self)
        case .secured: delegate?.connectionSecured(id, transport: self)
        case .accepted(let listener, let peer):
            delegate?.connectionAccepted(id, listener: listener, peer: peer, transport: self)
        }
    }

    // MARK: - Sending

    /// Makes the next records, when there is something to send: of the queue, and a close_notify behind the last of
    /// it.
    func encryptNext(_ connection: UnsafeMutablePointer<Connection>, _ layer: SecureLayer) {
        guard layer.failure == nil else { return }
        switch connection.pointee.phase {
        case .open, .flushing, .retired: break
        default: return
        }
        guard connection.pointee.queue.isEmpty else { return encryptQueued(connection, layer) }
        if connection.pointee.phase != .open { layer.engine.closeNotify() }
    }

    /// Slices looked at for one encryption; a queue may hold very many small ones.
    private static let slicesPerEncryption = 1024

    /// Encrypts the beginning of the queue in records as full as can be.
    private func encryptQueued(_ connection: UnsafeMutablePointer<Connection>, _ layer: SecureLayer) {
        let record = tls.recordBuffer.bytes
        var filled = 0
        var taken = 0
        let limit = min(connection.pointee.queue.sliceCount, Self.slicesPerEncryption)
        connection.pointee.queue.forEachPending(limit: limit) { slice in
            var rest = UnsafeRawBufferPointer(rebasing: slice.prefix(TLSLimits.bytesPerEncryption - taken))
            taken += rest.count
            while !rest.isEmpty {
                let count = min(rest.count, record.count - filled)
                let part = UnsafeRawBufferPointer(rebasing: rest[..<count])
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                if count == record.count {
                    layer.engine.encrypt(part)
                    continue
                }
                UnsafeMutableRawBufferPointer(rebasing: record[filled...]).copyMemory(from: part)
                filled += count
                if filled == record.count {
                    layer.engine.encrypt(UnsafeRawBufferPointer(record))
                    filled = 0
                }
            }
        }
        if filled > 0 { layer.engine.encrypt(UnsafeRawBufferPointer(rebasing: record[..<filled])) }
        connection.pointee.consume(taken)
    }

    // MARK: - Failing

    /// Ends a connection whose TLS failed. The engine's alert is still sent, and the peer gets a moment to read it.
    func failSecurely(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ layer: SecureLayer,
        _ failure: TLSFailure
    ) {
        // The end was reported already.
        if connection.pointee.phase == .retired { return discard(id, connection) }
        layer.fail(failure)
        connection.pointee.dropQueue()
        guard !layer.engine.outbound.isEmpty, !connection.pointee.flags.contains(.writeBroken) else {
            return end(id, connection, .tlsFailed(failure), reset: false)
        }
        leaveHandshake(id, layer)
        connection.pointee.beginFlushing()
        timers.set(.linger(id), at: now + TransportLimits.lingeringClose)
        if connection.pointee.flags.contains(.readable) { enlistForReading(id, connection) }
        enlistForFlush(id, connection)
    }
}

/// A step on the way to an open connection.
public enum ConnectionProgress: Sendable {
    /// The name is looked up.
    case resolving
    /// An address was asked and has not answered.
    case connecting
    /// The TLS handshake is under way.
    case securing
    case open
}
