import CSystem
import WireBytes

// Connections through a proxy that says for whom it opened them, before it says anything else.
//
// Until the header is whole nobody but the transport knows of the connection. Then it goes the way of any other, with the
// client's address in the place of the proxy's: to the owner, or into its TLS handshake.

extension Transport {
    /// Takes a connection to a listener that expects a header.
    func acceptAnnounced(_ descriptor: Int32, peer: SocketAddress, listener: ListenerID, _ proxies: TrustedPeers) {
        let failure: AnnouncementFailure? =
            if !proxies.contains(peer) {
                .untrusted
            } else if announcements.isFull {
                .tooMany
            } else {
                nil
            }
        if let failure {
            cb_close_with_reset(descriptor)
            delegate?.announcementFailed(failure, listener: listener, peer: peer, transport: self)
            return
        }
        guard let (id, _) = admit(descriptor, .announcing) else { return }
        announcements.await(id, listener: listener, peer: peer)
        timers.set(.announcement(id), at: now + TransportLimits.announcementTimeout)
    }

    func receiveAnnouncement(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ bytes: UnsafeRawBufferPointer
    ) {
        switch announcements.bytesReceived(id, bytes) {
        case .needMoreData: break
        case .announced(let listener, let peer, let consumed):
            timers.cancel(.announcement(id))
            announced(
                id, connection, listener: listener, peer: peer, UnsafeRawBufferPointer(rebasing: bytes[consumed...]))
        case .refused: end(id, connection, .closedByUs, reset: true)
        }
    }

    /// The header is whole; `rest` came behind it.
    private func announced(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, listener: ListenerID, peer: SocketAddress,
        _ rest: UnsafeRawBufferPointer
    ) {
        if let security = listeners[listener]?.security {
            guard tls.acceptedHandshakes < TLSLimits.handshakesAtOnce,
                let engine = try? TLSEngine(accepting: security.context, output: tls.output), tls.admit(peer)
            else { return dropUntold(id, connection) }
            let layer = SecureLayer(engine, .accepted(listener, peer))
            connection.pointee.secure(by: layer)
            beginHandshake(id, connection, layer, layer.introduction)
            if !rest.isEmpty { receiveSecurely(id, connection, layer, rest) }
            return
        }
        // Without a listener there is nobody who would take it.
        guard listeners[listener] != nil else { return dropUntold(id, connection) }
        connection.pointee.stands()
        delegate?.connectionAccepted(id, listener: listener, peer: peer, transport: self)
        guard !rest.isEmpty, connections.find(id) != nil, connection.pointee.phase == .open else { return }
        delegate?.connectionReceived(id, rest, transport: self)
    }

    /// Ends a connection of which the owner has not heard and will not.
    private func dropUntold(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        connection.pointee.silence()
        end(id, connection, .closedByUs, reset: true)
    }

    func announcementTimerFired(_ id: ConnectionID) {
        guard let connection = connections.find(id), connection.pointee.phase == .announcing else { return }
        end(id, connection, .announcementTimedOut, reset: true)
    }

    /// Tells of a connection that ended before its header was whole. False when it is none of those.
    func reportUnannounced(_ id: ConnectionID, _ end: StreamEnd) -> Bool {
        guard let (failure, listener, peer) = announcements.end(id, end) else { return false }
        timers.cancel(.announcement(id))
        delegate?.announcementFailed(failure, listener: listener, peer: peer, transport: self)
        return true
    }

    /// Drops those whom the delegate does not know yet, without a word.
    func abortAnnouncements(of listener: ListenerID) {
        for id in announcements.forget(listener) {
            timers.cancel(.announcement(id))
            abort(id, silently: true)
        }
    }
}
