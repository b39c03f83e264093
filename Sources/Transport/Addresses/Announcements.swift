import WireBytes

/// Connections whose PROXY headers are awaited.
final class Announcements {
    private struct Announcement {
        var listener: ListenerID
        /// The proxy.
        var peer: SocketAddress
        var decoder = ProxyHeaderDecoder()
        /// Why the header is none.
        var error: ProxyHeaderError?
    }

    /// What bytes of a header lead to.
    enum Outcome {
        case needMoreData
        /// The header is whole: `peer` is the client, or the proxy itself where it speaks of nobody.
        case announced(ListenerID, peer: SocketAddress, consumed: Int)
        /// The connection must end.
        case refused
    }

    private var waiting: [ConnectionID: Announcement] = [:]

    var isEmpty: Bool { waiting.isEmpty }
    var ids: [ConnectionID] { Array(waiting.keys) }
    var isFull: Bool { waiting.count >= TransportLimits.announcementsAtOnce }

    func await(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress) {
        waiting[id] = Announcement(listener: listener, peer: peer)
    }

    func bytesReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer) -> Outcome {
        guard var announcement = waiting[id] else { return .needMoreData }
        do throws(ProxyHeaderError) {
            switch try announcement.decoder.bytesReceived(bytes) {
            case .needMoreData:
                waiting[id] = announcement
                return .needMoreData
            case .header(let header, let consumed):
                waiting[id] = nil
                let peer = if case .client(let client) = header { client } else { announcement.peer }
                return .announced(announcement.listener, peer: peer, consumed: consumed)
            }
        } catch {
            announcement.error = error
            waiting[id] = announcement
            return .refused
        }
    }

    /// The connection ended before its header was whole; nil when it is none of these.
    func end(
        _ id: ConnectionID, _ end: StreamEnd
    ) -> (failure: AnnouncementFailure, listener: ListenerID, peer: SocketAddress)? {
        guard let announcement = waiting.removeValue(forKey: id) else { return nil }
        return (announcement.error.map { .refused($0) } ?? .ended(end), announcement.listener, announcement.peer)
    }

    /// Forgets those that came to `listener`.
    func forget(_ listener: ListenerID) -> [ConnectionID] {
        let ids = waiting.filter { $0.value.listener == listener }.map(\.key)
        for id in ids { waiting[id] = nil }
        return ids
    }

    func forgetAll() { waiting = [:] }
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
