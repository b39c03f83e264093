import CSystem
import Glibc
import WireBytes

/// The sockets of one ``ListenerID``.
struct Listener {
    var tags: [UInt32]
    var addresses: [SocketAddress]
    var security: ListenerSecurity?
    var proxies: TrustedPeers?
}

struct ListenerSocket {
    var id: ListenerID
    var descriptor: Int32
    /// The socket file made by this listener, by device and inode, so that no other file is removed.
    var file: (path: String, device: UInt, inode: UInt)?
}

extension Transport {
    /// Opens a listener; connections are accepted from the next turn on.
    ///
    /// - Returns: its id, and the address it is bound to: the first, when a name has several (see
    ///   ``addresses(of:)``).
    /// - Throws: the kernel's error for the first address, when none could be bound.
    public func listen(_ options: ListenOptions) throws(TransportError) -> (ListenerID, SocketAddress) {
        guard !isShutDown else { throw .systemCallFailed(call: "listen", errno: ECANCELED) }
        let security = try options.tls.map(makeSecurity)
        let sockets = try ListeningSockets.open(options)

        lastListenerID += 1
        let id = ListenerID(rawValue: lastListenerID)
        var listener = Listener(tags: [], addresses: [])
        for (index, socket) in sockets.enumerated() {
            let tag = takeTag()
            let added = cb_epoll_add(executor.epoll, socket.descriptor, CB_EPOLLIN, ConnectionID.specialTag(tag))
            guard added >= 0 else {
                listeners[id] = listener
                closeListener(id)
                for left in sockets[index...] { cb_close(left.descriptor) }
                throw .systemCallFailed(call: "epoll_ctl", errno: -added)
            }
            var entry = ListenerSocket(id: id, descriptor: socket.descriptor)
            if case .unix(let path, _, _) = options.place { entry.file = ListeningSockets.fileIdentity(path) }
            listenerSockets[tag] = entry
            listener.tags.append(tag)
            listener.addresses.append(socket.address)
        }
        listener.security = security
        listener.proxies = options.proxies
        listeners[id] = listener
        if security?.watchesFiles == true { watchCertificateFiles() }
        guard let first = sockets.first else { throw .resolveFailed("there is no address to listen on") }
        return (id, first.address)
    }

    /// Every address the listener is bound to, in the order in which they were tried.
    public func addresses(of id: ListenerID) -> [SocketAddress] { listeners[id]?.addresses ?? [] }

    /// Stops listening and removes the socket file. Connections accepted before live on.
    public func closeListener(_ id: ListenerID) {
        guard let listener = listeners.removeValue(forKey: id) else { return }
        if listener.security != nil { abortHandshakes(of: id) }
        if listener.proxies != nil { abortProxyHeaders(of: id) }
        for tag in listener.tags {
            timers.cancel(.acceptRest(tag))
            guard let socket = listenerSockets.removeValue(forKey: tag) else { continue }
            // An adopted descriptor may live on in another process, which would keep it registered.
            _ = cb_epoll_delete(executor.epoll, socket.descriptor)
            cb_close(socket.descriptor)
            if let file = socket.file, let there = ListeningSockets.fileIdentity(file.path),
                there.device == file.device, there.inode == file.inode
            {
                unlink(file.path)
            }
        }
    }

    // MARK: - Accepting

    func acceptConnections(_ tag: UInt32) {
        for _ in 0..<TransportLimits.acceptsPerTurn {
            // The delegate may close the listener during the loop.
            guard let socket = listenerSockets[tag] else { return }
            if listeners[socket.id]?.security != nil, tls.acceptedHandshakes >= TLSLimits.handshakesAtOnce {
                rest(tag, socket)
                return
            }
            var storage = sockaddr_storage()
            var length = UInt32(MemoryLayout<sockaddr_storage>.size)
            let descriptor = cb_accept(socket.descriptor, &storage, &length)
            guard descriptor >= 0 else {
                switch -descriptor {
                case EAGAIN:
                    return
                case ECONNABORTED, EINTR, EPROTO, EPERM, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH,
                    EOPNOTSUPP, ENETUNREACH:
                    // The error is that one connection's. Source: accept(2), "Error handling".
                    continue
                case let errno:
                    restAccepting(tag, socket, errno: errno)
                    return
                }
            }
            let peer = withUnsafeBytes(of: storage) {
                SocketAddress(kernelBytes: UnsafeRawBufferPointer(rebasing: $0.prefix(Int(length))))
            }
            accepted(descriptor, peer: peer ?? .unix(path: ""), listener: socket.id)
        }
    }

    private func accepted(_ descriptor: Int32, peer: SocketAddress, listener: ListenerID) {
        guard let delegate else { return cb_close(descriptor) }
        if let proxies = listeners[listener]?.proxies {
            return acceptProxied(descriptor, peer: peer, listener: listener, proxies)
        }
        if let security = listeners[listener]?.security {
            return acceptSecurely(descriptor, peer: peer, listener: listener, security)
        }
        guard let (id, _) = admit(descriptor, .open) else { return }
        delegate.connectionAccepted(id, listener: listener, peer: peer, transport: self)
    }

    /// Makes a connection of an accepted socket, registered for everything once and for all; nil, and the socket is closed,
    /// when the kernel will not.
    func admit(
        _ descriptor: Int32, _ phase: Connection.Phase
    ) -> (ConnectionID, UnsafeMutablePointer<Connection>)? {
        let (id, connection) = connections.claim(phase)
        connection.pointee.attach(descriptor)
        guard cb_epoll_add(executor.epoll, descriptor, Self.connectionEvents, id.rawValue) >= 0 else {
            closeDescriptor(connection, reset: false)
            connections.release(id)
            return nil
        }
        counters.accept()
        return (id, connection)
    }

    /// The events that the kernel reports of a connection's socket.
    static let connectionEvents = CB_EPOLLIN | CB_EPOLLOUT | CB_EPOLLRDHUP | CB_EPOLLPRI | CB_EPOLLET

    /// A number for the tag of a socket that is no connection, unlike that of any other now.
    func takeTag() -> UInt32 {
        repeat {
            lastTag = lastTag == .max ? Self.firstListenerTag : lastTag + 1
        } while listenerSockets[lastTag] != nil || racers[lastTag] != nil
        return lastTag
    }

    private func restAccepting(_ tag: UInt32, _ socket: ListenerSocket, errno: Int32) {
        rest(tag, socket)
        delegate?.acceptSuspended(socket.id, errno: errno, transport: self)
    }

    private func rest(_ tag: UInt32, _ socket: ListenerSocket) {
        _ = cb_epoll_modify(executor.epoll, socket.descriptor, 0, ConnectionID.specialTag(tag))
        timers.set(.acceptRest(tag), at: now + TransportLimits.acceptRest)
    }

    func resumeAccepting(_ tag: UInt32) {
        guard let socket = listenerSockets[tag] else { return }
        _ = cb_epoll_modify(executor.epoll, socket.descriptor, CB_EPOLLIN, ConnectionID.specialTag(tag))
    }

    // MARK: - Certificates

    private func makeSecurity(_ settings: TLSServerSettings) throws(TransportError) -> ListenerSecurity {
        do throws(TLSSetupError) {
            return try ListenerSecurity(settings)
        } catch {
            throw .tlsUnusable(error)
        }
    }

    /// Reads a listener's certificate, key and authorities again. New handshakes use them; connections stay with
    /// theirs. Does nothing for a listener without TLS.
    ///
    /// - Returns: whether a file has changed.
    /// - Throws: the reason why the new ones cannot be used; the old ones stay in force.
    @discardableResult
    public func reloadCertificates(_ id: ListenerID) throws(TLSSetupError) -> Bool {
        try listeners[id]?.security?.reload() ?? false
    }

    /// The listeners with TLS.
    public var securedListeners: [ListenerID] { listeners.filter { $0.value.security != nil }.map(\.key) }

    /// When the listener's certificate in use ends, in seconds since 1970; nil: without TLS.
    public func certificateExpiry(_ id: ListenerID) -> Int64? { listeners[id]?.security?.context.expiresAt }

    private func watchCertificateFiles() {
        if timers[.certificates] == nil { timers.set(.certificates, at: now + TLSLimits.fileCheckInterval) }
    }

    /// Checks whether files have changed; see ``ListenerSecurity/check()``.
    func checkCertificateFiles() {
        var isWatching = false
        for id in listeners.keys where listeners[id]?.security?.watchesFiles == true {
            isWatching = true
            switch listeners[id]?.security?.check() {
            case .success?: tls.report(.listener(id), nil)
            case .failure(let error)?: tls.report(.listener(id), error)
            case nil: break
            }
        }
        if isWatching { watchCertificateFiles() }
    }
}
