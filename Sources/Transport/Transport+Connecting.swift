import CSystem
import Glibc
import WireBytes

/// An outgoing connection that does not stand yet.
struct ConnectAttempt {
    /// What the owner wrote, for sentences.
    var host: String
    /// When the whole attempt is given up.
    var deadline: MonotonicInstant
    var addresses: [SocketAddress] = []
    /// Index of the address to try after the present one.
    var next = 0
    /// Why the last address failed.
    var failure: StreamEnd?

    var current: SocketAddress? { next > 0 ? addresses[next - 1] : nil }
}

extension Transport {
    /// Opens a connection to a name or a numeric address; the delegate hears of success or failure in a later turn.
    ///
    /// Names are looked up on another thread. Their addresses are tried one after the other in the resolver's order, each
    /// for its share of `timeout`, which covers everything but TLS; a handshake has ``TLSLimits/handshakeTimeout``. (RFC 8305 would start the next address while the present one
    /// is still being tried; ``tryNextAddress(_:_:)`` is where that belongs.)
    ///
    /// - Parameter tls: how the connection is secured; nil: not at all.
    public func connect(
        host: String, port: Int, timeout: Duration, tls: TLSClientSettings? = nil
    ) -> ConnectionID {
        if let address = SocketAddress(host: host, port: port) {
            return connect(to: [address], host: address.host, timeout: timeout, tls: tls)
        }
        guard !isShutDown else { return ConnectionID(rawValue: 0) }
        let (id, connection) = connections.claim(.resolving)
        attempts[id] = ConnectAttempt(host: host, deadline: now + timeout)
        guard secure(id, connection, tls, host: host, port: port) else { return id }
        timers.set(.connect(id), at: now + timeout)
        guard !host.isEmpty, !host.utf8.contains(0), UInt16(exactly: port) != nil else {
            end(id, connection, .resolveFailed("\"\(host)\" port \(port) is not an address"), reset: false)
            return id
        }
        let executor = executor
        resolver.resolve(host: host, port: port) { outcome in
            executor.post { $0.resolved(id, outcome) }
        }
        return id
    }

    /// Opens a connection to one address, which may be a Unix socket.
    public func connect(
        to address: SocketAddress, timeout: Duration, tls: TLSClientSettings? = nil
    ) -> ConnectionID {
        connect(to: [address], host: address.host, timeout: timeout, tls: tls)
    }

    private func connect(
        to addresses: [SocketAddress], host: String, timeout: Duration, tls: TLSClientSettings?
    ) -> ConnectionID {
        guard !isShutDown else { return ConnectionID(rawValue: 0) }
        let (id, connection) = connections.claim(.resolving)
        attempts[id] = ConnectAttempt(host: host, deadline: now + timeout, addresses: addresses)
        guard secure(id, connection, tls, host: host, port: addresses.first?.port ?? 0) else { return id }
        tryNextAddress(id, connection)
        return id
    }

    private func resolved(_ id: ConnectionID, _ outcome: Result<[SocketAddress], ResolveFailure>) {
        guard let connection = connections.find(id), connection.pointee.phase == .resolving else { return }
        switch outcome {
        case .failure(let failure):
            end(id, connection, .resolveFailed(failure.sentence), reset: false)
        case .success(let addresses):
            attempts[id]?.addresses = addresses
            tryNextAddress(id, connection)
        }
    }

    private func tryNextAddress(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        closeDescriptor(connection, reset: false)
        guard var attempt = attempts[id] else { return }
        while attempt.next < attempt.addresses.count {
            let address = attempt.addresses[attempt.next]
            attempt.next += 1
            let error = begin(id, connection, address)
            switch error {
            case 0:
                attempts[id] = nil
                timers.cancel(.connect(id))
                if let layer = connection.pointee.secure {
                    return beginHandshake(id, connection, layer, .opened(address))
                }
                connection.pointee.phase = .open
                report(id, .opened(address))
                if !connection.pointee.queue.isEmpty { enlistForFlush(id, connection) }
                return
            case EINPROGRESS:
                connection.pointee.phase = .connecting
                let left = max(attempt.deadline - now, .zero)
                let share = left / (attempt.addresses.count - attempt.next + 1)
                let until = min(now + max(share, TransportLimits.leastAddressTime), attempt.deadline)
                timers.set(.connect(id), at: until)
                attempts[id] = attempt
                return
            default:
                closeDescriptor(connection, reset: false)
                let sentence = connectSentence(host: attempt.host, address: address, errno: error)
                attempt.failure = .connectFailed(sentence, errno: error)
            }
        }
        end(id, connection, attempt.failure ?? .resolveFailed("\(attempt.host) has no address"), reset: false)
    }

    /// Starts connecting. Answers 0 when the connection stands already, `EINPROGRESS`, or why it failed.
    private func begin(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ address: SocketAddress
    ) -> Int32 {
        if case .unix(let path) = address, path.utf8.count > SocketAddress.maxUnixPathBytes { return ENAMETOOLONG }
        let descriptor = cb_socket(address.family)
        guard descriptor >= 0 else { return -descriptor }
        connection.pointee.descriptor = descriptor
        if address.family != AF_UNIX { Self.setStreamOptions(descriptor) }
        let result = address.withSocketAddress { cb_connect(descriptor, $0, $1) }
        guard result >= 0 || result == -EINPROGRESS else { return -result }
        // Only now: a socket that is not connecting yet would report a hang-up.
        let added = register(id, descriptor)
        return added < 0 ? -added : -result
    }

    /// The kernel has news of a connection in the making.
    func connectProgressed(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ events: UInt32
    ) {
        guard events & (CB_EPOLLOUT | CB_EPOLLERR | CB_EPOLLHUP) != 0, let address = attempts[id]?.current else {
            return
        }
        let error = cb_socket_error(connection.pointee.descriptor)
        guard error == 0 else {
            let sentence = connectSentence(host: attempts[id]?.host ?? "", address: address, errno: error)
            attempts[id]?.failure = error == ETIMEDOUT ? .connectTimedOut : .connectFailed(sentence, errno: error)
            tryNextAddress(id, connection)
            return
        }
        guard events & CB_EPOLLOUT != 0 else { return }
        attempts[id] = nil
        timers.cancel(.connect(id))
        if let layer = connection.pointee.secure { return beginHandshake(id, connection, layer, .opened(address)) }
        connection.pointee.phase = .open
        if !connection.pointee.queue.isEmpty { enlistForFlush(id, connection) }
        delegate?.connectionOpened(id, peer: address, transport: self)
    }

    func connectTimerFired(_ id: ConnectionID) {
        guard let connection = connections.find(id), let attempt = attempts[id] else { return }
        if connection.pointee.phase == .connecting, attempt.next < attempt.addresses.count, attempt.deadline > now {
            attempts[id]?.failure = .connectTimedOut
            tryNextAddress(id, connection)
        } else {
            end(id, connection, .connectTimedOut, reset: false)
        }
    }
}
