import CSystem
import WireBytes

// Connections through a proxy that says for whom it opened them, before it says anything else.
//
// Until the header is whole nobody but the transport knows of the connection. Then it goes the way of any other, with the
// client's address in the place of the proxy's: to the owner, or into its TLS handshake.

/// A connection whose PROXY header is awaited.
struct Announcement {
    var listener: ListenerID
    /// The proxy.
    var peer: SocketAddress
    var decoder = ProxyHeaderDecoder()
    /// Why the header is none.
    var error: ProxyHeaderError?
}

/// Why a connection to a listener behind a proxy was dropped before anybody knew of it.
public enum AnnouncementFailure: Equatable, Sendable {
    /// It came from an address that the listener does not trust.
    case untrusted
    case refused(ProxyHeaderError)
    /// It ended, or was silent for ``TransportLimits/announcementTimeout``.
    case ended(StreamEnd)
    /// More than ``TransportLimits/announcementsAtOnce`` were waiting.
    case tooMany

    /// What happened, for an operator.
    public var sentence: String {
        switch self {
        case .untrusted: "its address is not among trusted_proxies"
        case .refused(let error): error.sentence
        case .ended(let end): "it ended before its PROXY header: \(end)"
        case .tooMany: "too many wait for their PROXY headers"
        }
    }
}

extension Transport {
    /// Takes a connection to a listener that expects a header.
    func acceptAnnounced(_ descriptor: Int32, peer: SocketAddress, listener: ListenerID, _ proxies: TrustedPeers) {
        let failure: AnnouncementFailure? =
            if !proxies.contains(peer) {
                .untrusted
            } else if announcements.count >= TransportLimits.announcementsAtOnce {
                .tooMany
            } else {
                nil
            }
        if let failure {
            cb_close_with_reset(descriptor)
            delegate?.announcementFailed(failure, listener: listener, peer: peer, transport: self)
            return
        }
        let (id, connection) = connections.claim(.announcing)
        connection.pointee.descriptor = descriptor
        guard register(id, descriptor) >= 0 else {
            closeDescriptor(connection, reset: false)
            connections.release(id)
            return
        }
        counters.accepted &+= 1
        announcements[id] = Announcement(listener: listener, peer: peer)
        timers.set(.announcement(id), at: now + TransportLimits.announcementTimeout)
    }

    func receiveAnnouncement(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ bytes: UnsafeRawBufferPointer
    ) {
        guard var announcement = announcements[id] else { return }
        do throws(ProxyHeaderError) {
            switch try announcement.decoder.bytesReceived(bytes) {
            case .needMoreData:
                announcements[id] = announcement
            case .header(let header, let consumed):
                announcements[id] = nil
                timers.cancel(.announcement(id))
                let peer = if case .client(let client) = header { client } else { announcement.peer }
                let rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
                announced(id, connection, listener: announcement.listener, peer: peer, rest)
            }
        } catch {
            announcement.error = error
            announcements[id] = announcement
            end(id, connection, .closedByUs, reset: true)
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
            connection.pointee.secure = layer
            beginHandshake(id, connection, layer, layer.introduction)
            if !rest.isEmpty { receiveSecurely(id, connection, layer, rest) }
            return
        }
        // Without a listener there is nobody who would take it.
        guard listeners[listener] != nil else { return dropUntold(id, connection) }
        connection.pointee.phase = .open
        delegate?.connectionAccepted(id, listener: listener, peer: peer, transport: self)
        guard !rest.isEmpty, connections.find(id) != nil, connection.pointee.phase == .open else { return }
        delegate?.connectionReceived(id, rest, transport: self)
    }

    /// Ends a connection of which the owner has not heard and will not.
    private func dropUntold(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        connection.pointee.flags.insert(.silent)
        end(id, connection, .closedByUs, reset: true)
    }

    func announcementTimerFired(_ id: ConnectionID) {
        guard let connection = connections.find(id), connection.pointee.phase == .announcing else { return }
        end(id, connection, .announcementTimedOut, reset: true)
    }

    /// Tells of a connection that ended before its header was whole. False when it is none of those.
    func reportUnannounced(_ id: ConnectionID, _ end: StreamEnd) -> Bool {
        guard let announcement = announcements.removeValue(forKey: id) else { return false }
        timers.cancel(.announcement(id))
        delegate?.announcementFailed(
            announcement.error.map { .refused($0) } ?? .ended(end), listener: announcement.listener,
            peer: announcement.peer, transport: self)
        return true
    }

    /// Drops those whom the delegate does not know yet, without a word.
    func abortAnnouncements(of listener: ListenerID) {
        for (id, announcement) in announcements where announcement.listener == listener {
            announcements[id] = nil
            timers.cancel(.announcement(id))
            abort(id, silently: true)
        }
    }
}
