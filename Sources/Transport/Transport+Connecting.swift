import CSystem
import Glibc
import WireBytes

// Outgoing connections: look the name up, race its addresses, take the first that answers.
//
// While the addresses of a host are tried, the connection has no descriptor of its own. Each address has a racer: a
// socket under a tag of its own. The first racer that the peer answers becomes the connection's socket; the others
// are closed.

/// An outgoing connection that does not stand yet.
struct ConnectAttempt {
    /// The host as the owner gave it, for error messages.
    var host: String
    /// When the whole attempt is given up.
    var deadline: MonotonicInstant
    var addresses: [SocketAddress] = []
    /// Index of the address to try next.
    var next = 0
    /// Tags of the racers under way, oldest first.
    var racers: [UInt32] = []
    /// The failure of the address tried last.
    var failure: StreamEnd?
}

/// A socket that waits for the answer of one address.
struct ConnectRacer {
    var connection: ConnectionID
    var descriptor: Int32
    var address: SocketAddress
}

extension Transport {
    /// Opens a connection to a name or a numeric address; success or failure is reported in a later turn.
    ///
    /// Names are looked up on another thread. Their addresses are raced: one is tried after the other, the families
    /// taking turns, without waiting longer than ``TransportLimits/connectionAttemptDelay`` for the ones before; the
    /// first to answer is taken. `timeout` covers it all, TLS included.
    ///
    /// - Parameter tls: how the connection is secured; nil: not at all.
    ///
    /// Source: RFC 8305 §3 to §5. The system's resolver gives both families in one answer, so there is no resolution
    /// delay to wait for.
    public func connect(
        host: String, port: Int, timeout: Duration, tls: TLSClientSettings? = nil
    ) -> ConnectionID {
        if let address = SocketAddress(host: host, port: port) {
            return connect(toFirstOf: [address], host: address.host, timeout: timeout, tls: tls)
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
        connect(toFirstOf: [address], host: address.host, timeout: timeout, tls: tls)
    }

    /// Opens a connection to the first of `addresses` that answers; they are raced as those of a name are.
    ///
    /// - Parameter host: the name of the place in error messages.
    public func connect(
        toFirstOf addresses: [SocketAddress], host: String, timeout: Duration, tls: TLSClientSettings? = nil
    ) -> ConnectionID {
        guard !isShutDown else { return ConnectionID(rawValue: 0) }
        let (id, connection) = connections.claim(.resolving)
        attempts[id] = ConnectAttempt(host: host, deadline: now + timeout)
        guard secure(id, connection, tls, host: host, port: addresses.first?.port ?? 0) else { return id }
        race(id, connection, addresses)
        return id
    }

    private func resolved(_ id: ConnectionID, _ outcome: Result<[SocketAddress], ResolveFailure>) {
        guard let connection = connections.find(id), connection.pointee.phase == .resolving else { return }
        switch outcome {
        case .failure(let failure):
            end(id, connection, .resolveFailed(failure.sentence), reset: false)
        case .success(let addresses):
            race(id, connection, addresses)
        }
    }

    // MARK: - The race

    private func race(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ addresses: [SocketAddress]
    ) {
        attempts[id]?.addresses = ConnectOrder.interleaved(addresses)
        startNextRacer(id, connection)
    }

    /// Tries the next address; an address that fails at once gives way to the one after it at once.
    private func startNextRacer(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        guard var attempt = attempts[id] else { return }
        while attempt.next < attempt.addresses.count {
            let address = attempt.addresses[attempt.next]
            attempt.next += 1
            switch begin(id, address) {
            case .stands(let descriptor):
                attempts[id] = attempt
                if stand(id, connection, descriptor, address) { report(id, .opened(address)) }
                return
            case .underWay(let tag):
                attempt.racers.append(tag)
                attempts[id] = attempt
                connection.pointee.connecting()
                let delay = now + TransportLimits.connectionAttemptDelay
                let hasMore = attempt.next < attempt.addresses.count
                timers.set(.connect(id), at: hasMore ? min(delay, attempt.deadline) : attempt.deadline)
                return
            case .failed(let error):
                let sentence = connectSentence(host: attempt.host, address: address, errno: error)
                attempt.failure = .connectFailed(sentence, errno: error)
            }
        }
        attempts[id] = attempt
        if attempt.racers.isEmpty {
            end(id, connection, attempt.failure ?? .resolveFailed("\(attempt.host) has no address"), reset: false)
        } else {
            timers.set(.connect(id), at: attempt.deadline)
        }
    }

    private enum Beginning {
        case stands(descriptor: Int32)
        case underWay(tag: UInt32)
        case failed(errno: Int32)
    }

    private func begin(_ id: ConnectionID, _ address: SocketAddress) -> Beginning {
        if case .unix(let path) = address, path.utf8.count > SocketAddress.maxUnixPathBytes {
            return .failed(errno: ENAMETOOLONG)
        }
        let descriptor = cb_socket(address.family)
        guard descriptor >= 0 else { return .failed(errno: -descriptor) }
        if address.family != AF_UNIX { SocketOptions.setStream(descriptor) }
        let result = address.withSocketAddress { cb_connect(descriptor, $0, $1) }
        guard result >= 0 || result == -EINPROGRESS else {
            cb_close(descriptor)
            return .failed(errno: -result)
        }
        // Only now: a socket that is not connecting yet would report a hang-up.
        let tag = takeTag()
        let added = cb_epoll_add(
            executor.epoll, descriptor, Self.connectionEvents,
            result >= 0 ? id.rawValue : ConnectionID.specialTag(tag))
        guard added >= 0 else {
            cb_close(descriptor)
            return .failed(errno: -added)
        }
        if result >= 0 { return .stands(descriptor: descriptor) }
        racers[tag] = ConnectRacer(connection: id, descriptor: descriptor, address: address)
        return .underWay(tag: tag)
    }

    /// The kernel has news of a racer.
    func racerProgressed(_ tag: UInt32, _ events: UInt32) {
        guard events & (CB_EPOLLOUT | CB_EPOLLERR | CB_EPOLLHUP) != 0, let racer = racers[tag] else { return }
        let id = racer.connection
        guard let connection = connections.find(id), connection.pointee.phase == .connecting else {
            return closeRacer(tag)
        }
        var error = cb_socket_error(racer.descriptor)
        if error == 0 {
            guard events & CB_EPOLLOUT != 0 else { return }
            // From here on its events are the connection's; the kernel reports again what is ready already.
            let modified = cb_epoll_modify(executor.epoll, racer.descriptor, Self.connectionEvents, id.rawValue)
            if modified >= 0 {
                racers[tag] = nil
                if stand(id, connection, racer.descriptor, racer.address) {
                    delegate?.connectionOpened(id, peer: racer.address, transport: self)
                }
                return
            }
            error = -modified
        }
        closeRacer(tag)
        attempts[id]?.racers.removeAll { $0 == tag }
        let sentence = connectSentence(host: attempts[id]?.host ?? "", address: racer.address, errno: error)
        attempts[id]?.failure = error == ETIMEDOUT ? .connectTimedOut : .connectFailed(sentence, errno: error)
        startNextRacer(id, connection)
    }

    /// A racer has won: its socket is the connection's. False when TLS precedes the report to the owner.
    private func stand(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ descriptor: Int32,
        _ address: SocketAddress
    ) -> Bool {
        let deadline = attempts[id]?.deadline
        connection.pointee.attach(descriptor)
        abandonAttempt(id)
        if let layer = connection.pointee.secure {
            beginHandshake(id, connection, layer, .opened(address), by: deadline)
            return false
        }
        connection.pointee.stands()
        if !connection.pointee.queue.isEmpty { enlistForFlush(id, connection) }
        return true
    }

    func connectTimerFired(_ id: ConnectionID) {
        guard let connection = connections.find(id), let attempt = attempts[id] else { return }
        if connection.pointee.phase == .connecting, attempt.deadline > now {
            startNextRacer(id, connection)
        } else {
            end(id, connection, .connectTimedOut, reset: false)
        }
    }

    /// Drops the attempt and closes the racers that are left.
    func abandonAttempt(_ id: ConnectionID) {
        guard let attempt = attempts.removeValue(forKey: id) else { return }
        timers.cancel(.connect(id))
        for tag in attempt.racers { closeRacer(tag) }
    }

    private func closeRacer(_ tag: UInt32) {
        guard let racer = racers.removeValue(forKey: tag) else { return }
        cb_close(racer.descriptor)
    }
}

/// In which order the addresses of a host are tried.
enum ConnectOrder {
    /// The families take turns, beginning with the first one's; within a family the resolver's order stays, and so does
    /// the rest when one family runs out. A family without a working route then costs one delay, not one for each address.
    ///
    /// Source: RFC 8305 §4, with "First Address Family Count" 1.
    static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard let first = addresses.first else { return [] }
        var preferred = addresses.filter { $0.family == first.family }[...]
        var others = addresses.filter { $0.family != first.family }[...]
        var order: [SocketAddress] = []
        while let address = preferred.popFirst() {
            order.append(address)
            if let other = others.popFirst() { order.append(other) }
        }
        return order + others
    }
}
