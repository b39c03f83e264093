import WireBytes

/// Accepted connections whose PROXY header is incomplete.
final class PendingProxyHeaders {
    private struct Pending {
        var listener: ListenerID
        /// The proxy.
        var peer: SocketAddress
        var decoder = ProxyHeaderDecoder()
        /// The reason why the bytes are no header.
        var error: ProxyHeaderError?
    }

    /// The result of decoding further bytes of a header.
    enum Outcome {
        case needMoreData
        /// The header is complete: `peer` is the client, or the proxy itself where the header names no client.
        case complete(ListenerID, peer: SocketAddress, consumed: Int)
        /// The connection must end.
        case refused
    }

    private var waiting: [ConnectionID: Pending] = [:]

    var isEmpty: Bool { waiting.isEmpty }
    var ids: [ConnectionID] { Array(waiting.keys) }
    var isFull: Bool { waiting.count >= TransportLimits.proxyHeadersAtOnce }

    func add(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress) {
        waiting[id] = Pending(listener: listener, peer: peer)
    }

    func bytesReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer) -> Outcome {
        guard var pending = waiting[id] else { return .needMoreData }
        do throws(ProxyHeaderError) {
            switch try pending.decoder.bytesReceived(bytes) {
            case .needMoreData:
                waiting[id] = pending
                return .needMoreData
            case .header(let header, let consumed):
                waiting[id] = nil
                let peer = if case .client(let client) = header { client } else { pending.peer }
                return .complete(pending.listener, peer: peer, consumed: consumed)
            }
        } catch {
            pending.error = error
            waiting[id] = pending
            return .refused
        }
    }

    /// Removes a connection that ended before its header was complete; nil when it is none of these.
    func end(
        _ id: ConnectionID, _ end: StreamEnd
    ) -> (failure: ProxyHeaderFailure, listener: ListenerID, peer: SocketAddress)? {
        guard let pending = waiting.removeValue(forKey: id) else { return nil }
        return (pending.error.map { .refused($0) } ?? .ended(end), pending.listener, pending.peer)
    }

    /// Removes the connections accepted by `listener`.
    func removeAll(acceptedBy listener: ListenerID) -> [ConnectionID] {
        let ids = waiting.filter { $0.value.listener == listener }.map(\.key)
        for id in ids { waiting[id] = nil }
        return ids
    }

    func removeAll() { waiting = [:] }
}

/// Why a connection to a listener behind a proxy was dropped before its owner learned of it.
public enum ProxyHeaderFailure: Equatable, Sendable {
    /// It came from an address that the listener does not trust.
    case untrusted
    case refused(ProxyHeaderError)
    /// It ended, or sent no complete header within ``TransportLimits/proxyHeaderTimeout``.
    case ended(StreamEnd)
    /// More than ``TransportLimits/proxyHeadersAtOnce`` were waiting.
    case tooMany

    /// The failure, for an operator.
    public var sentence: String {
        switch self {
        case .untrusted: "its address is not among trusted_proxies"
        case .refused(let error): error.sentence
        case .ended(let end): "it ended before its PROXY header: \(end)"
        case .tooMany: "too many wait for their PROXY headers"
        }
    }
}
