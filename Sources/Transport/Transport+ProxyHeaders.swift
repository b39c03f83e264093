import CSystem
import WireBytes

// Connections through a proxy, which begin with a PROXY header.
//
// Until the header is complete the owner does not know of the connection. Then it is handled as any other, with the
// client's address in place of the proxy's: reported to the owner, or taken into its TLS handshake.

extension Transport {
    /// Takes a connection to a listener that expects a header.
    func acceptProxied(_ descriptor: Int32, peer: SocketAddress, listener: ListenerID, _ proxies: TrustedPeers) {
        let failure: ProxyHeaderFailure? =
            if !proxies.contains(peer) {
                .untrusted
            } else if pendingProxyHeaders.isFull {
                .tooMany
            } else {
                nil
            }
        if let failure {
            cb_close_with_reset(descriptor)
            delegate?.proxyHeaderFailed(failure, listener: listener, peer: peer, transport: self)
            return
        }
        guard let (id, _) = admit(descriptor, .awaitingProxyHeader) else { return }
        pendingProxyHeaders.add(id, listener: listener, peer: peer)
        timers.set(.proxyHeader(id), at: now + TransportLimits.proxyHeaderTimeout)
    }

    func receiveProxyHeader(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ bytes: UnsafeRawBufferPointer
    ) {
        switch pendingProxyHeaders.bytesReceived(id, bytes) {
        case .needMoreData: break
        case .complete(let listener, let peer, let consumed):
            timers.cancel(.proxyHeader(id))
            proxyHeaderCompleted(
                id, connection, listener: listener, peer: peer, UnsafeRawBufferPointer(rebasing: bytes[consumed...]))
        case .refused: end(id, connection, .closedByUs, reset: true)
        }
    }

    /// The header is complete; `rest` follows it.
    private func proxyHeaderCompleted(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, listener: ListenerID, peer: SocketAddress,
        _ rest: UnsafeRawBufferPointer
    ) {
        if let security = listeners[listener]?.security {
            guard tls.acceptedHandshakes < TLSLimits.handshakesAtOnce,
                let engine = try? TLSEngine(accepting: security.context, output: tls.output), tls.admit(peer)
            else { return dropUnreported(id, connection) }
            let layer = SecureLayer(engine, .accepted(listener, peer))
            connection.pointee.secure(by: layer)
            beginHandshake(id, connection, layer, layer.handshakeReport)
            if !rest.isEmpty { receiveSecurely(id, connection, layer, rest) }
            return
        }
        // The listener was closed in the meantime.
        guard listeners[listener] != nil else { return dropUnreported(id, connection) }
        connection.pointee.stands()
        delegate?.connectionAccepted(id, listener: listener, peer: peer, transport: self)
        guard !rest.isEmpty, connections.find(id) != nil, connection.pointee.phase == .open else { return }
        delegate?.connectionReceived(id, rest, transport: self)
    }

    /// Ends a connection that was never reported to the owner, without a report.
    private func dropUnreported(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        connection.pointee.silence()
        end(id, connection, .closedByUs, reset: true)
    }

    func proxyHeaderTimerFired(_ id: ConnectionID) {
        guard let connection = connections.find(id), connection.pointee.phase == .awaitingProxyHeader else { return }
        end(id, connection, .proxyHeaderTimedOut, reset: true)
    }

    /// Reports that a connection ended before its header was complete. False when it is none of those.
    func reportProxyHeaderFailure(_ id: ConnectionID, _ end: StreamEnd) -> Bool {
        guard let (failure, listener, peer) = pendingProxyHeaders.end(id, end) else { return false }
        timers.cancel(.proxyHeader(id))
        delegate?.proxyHeaderFailed(failure, listener: listener, peer: peer, transport: self)
        return true
    }

    /// Drops, without a report, the connections that the delegate does not know yet.
    func abortProxyHeaders(of listener: ListenerID) {
        for id in pendingProxyHeaders.removeAll(acceptedBy: listener) {
            timers.cancel(.proxyHeader(id))
            abort(id, silently: true)
        }
    }
}
