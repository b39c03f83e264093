import CSystem
import Glibc

/// Where and how to listen.
public struct ListenOptions: Hashable, Sendable {
    public enum Place: Hashable, Sendable {
        /// A numeric address or a name, with a port between 0 (any free one) and 65535. A name with several addresses,
        /// such as `localhost`, listens on each that this machine has, on one port. A name is looked up while the
        /// caller waits: names belong to the start of a program.
        case host(String, port: Int)
        /// A socket file. `mode` are its permission bits; `group` its group's number, or nil for the process's own. A
        /// file left behind by a program that has ended is replaced.
        case unix(path: String, mode: UInt32 = 0o600, group: UInt32? = nil)
        /// Listening stream sockets opened by another program, such as systemd. They are closed with the listener; a
        /// socket file stays.
        case descriptors([Int32])
    }

    public var place: Place
    /// Connections that the kernel queues until they are accepted.
    public var backlog = TransportLimits.backlog
    /// Whether `::` leaves IPv4 alone. Without, IPv4 peers appear as ``SocketAddress/ipv4(_:port:)`` all the same.
    public var v6Only = true
    /// How connections are secured; nil: not at all.
    public var tls: TLSServerSettings?
    /// The proxies from which every connection begins with a PROXY header, before TLS; other peers are refused. Nil:
    /// no headers.
    public var proxies: TrustedPeers?
    /// Bytes of the kernel's send buffer for each accepted connection; nil leaves it to the kernel's own tuning.
    public var sendBufferBytes: Int?

    public init(_ place: Place) { self.place = place }

    public init(host: String, port: Int) { self.init(.host(host, port: port)) }
}

/// Opens the sockets that a listener is made of.
enum ListeningSockets {
    static func open(_ options: ListenOptions) throws(TransportError) -> [(descriptor: Int32, address: SocketAddress)] {
        switch options.place {
        case .host(let host, let port): return try openSockets(host: host, port: port, options)
        case .unix(let path, let mode, let group):
            let address = SocketAddress.unix(path: path)
            return [(try openUnixSocket(path: path, mode: mode, group: group, options), address)]
        case .descriptors(let descriptors):
            return try descriptors.map { descriptor throws(TransportError) in (descriptor, try adopt(descriptor)) }
        }
    }

    private static func openSockets(
        host: String, port: Int, _ options: ListenOptions
    ) throws(TransportError) -> [(descriptor: Int32, address: SocketAddress)] {
        guard let port = UInt16(exactly: port) else { throw .portOutOfRange(port) }
        let candidates: [SocketAddress]
        if let numeric = SocketAddress(host: host, port: Int(port)) {
            candidates = [numeric]
        } else {
            switch ResolverPool.lookUp(host: host, port: Int(port)) {
            case .success(let found): candidates = found
            case .failure(let failure): throw .resolveFailed(failure.sentence)
            }
        }

        // With port 0 the kernel's choice for the first address may be taken on the second: choose again.
        let rounds = port == 0 && candidates.count > 1 ? 8 : 1
        var opened: [(descriptor: Int32, address: SocketAddress)] = []
        var firstError: TransportError?
        for _ in 0..<rounds {
            var taken = false
            for candidate in candidates {
                let wanted = opened.first?.address.port.flatMap(candidate.withPort) ?? candidate
                do throws(TransportError) {
                    let descriptor = try openSocket(wanted, options)
                    opened.append((descriptor, SocketAddress(localOf: descriptor) ?? wanted))
                } catch {
                    firstError = firstError ?? error
                    // An address this machine lacks is left out; one that another program holds must not be.
                    if case .addressInUse = error { taken = true }
                }
                if taken { break }
            }
            if !taken { break }
            for socket in opened { cb_close(socket.descriptor) }
            opened = []
        }
        guard !opened.isEmpty else { throw firstError ?? .resolveFailed("\(host) has no address to listen on") }
        return opened
    }

    private static func openSocket(_ address: SocketAddress, _ options: ListenOptions) throws(TransportError) -> Int32 {
        let descriptor = cb_socket(address.family)
        guard descriptor >= 0 else { throw TransportError(call: "socket", result: descriptor, at: address) }
        _ = cb_set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        if address.family == AF_INET6 {
            _ = cb_set_option(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, options.v6Only ? 1 : 0)
        }
        SocketOptions.setStream(descriptor, sendBufferBytes: options.sendBufferBytes)
        var result = address.withSocketAddress { cb_bind(descriptor, $0, $1) }
        if result >= 0 { result = cb_listen(descriptor, options.backlog) }
        guard result >= 0 else {
            cb_close(descriptor)
            throw TransportError(call: "bind", result: result, at: address)
        }
        return descriptor
    }

    private static func openUnixSocket(
        path: String, mode: UInt32, group: UInt32?, _ options: ListenOptions
    ) throws(TransportError) -> Int32 {
        let address = SocketAddress.unix(path: path)
        guard !path.isEmpty, path.utf8.count <= SocketAddress.maxUnixPathBytes else {
            throw .unixPathTooLong(path: path, limit: SocketAddress.maxUnixPathBytes)
        }
        try removeStaleSocket(path)
        let descriptor = cb_socket(AF_UNIX)
        guard descriptor >= 0 else { throw TransportError(call: "socket", result: descriptor, at: address) }
        if let bytes = options.sendBufferBytes {
            _ = cb_set_option(descriptor, SOL_SOCKET, SO_SNDBUF, Int32(clamping: bytes))
        }
        // The file is born with the socket's own bits, so it is never open wider than it will be.
        _ = fchmod(descriptor, mode & 0o600)
        var call = "bind"
        var result = address.withSocketAddress { cb_bind(descriptor, $0, $1) }
        let bound = result >= 0
        if result >= 0, let group {
            call = "chown"
            result = chown(path, uid_t.max, group) == 0 ? 0 : -errno
        }
        if result >= 0 {
            call = "chmod"
            result = chmod(path, mode & 0o777) == 0 ? 0 : -errno
        }
        if result >= 0 {
            call = "listen"
            result = cb_listen(descriptor, options.backlog)
        }
        guard result >= 0 else {
            cb_close(descriptor)
            if bound { unlink(path) }
            throw TransportError(call: call, result: result, at: address)
        }
        return descriptor
    }

    /// Removes the file when it is a socket without a listener.
    private static func removeStaleSocket(_ path: String) throws(TransportError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket(path: path) }
        let address = SocketAddress.unix(path: path)
        let probe = cb_socket(AF_UNIX)
        guard probe >= 0 else { throw TransportError(call: "socket", result: probe, at: address) }
        defer { cb_close(probe) }
        let result = address.withSocketAddress { cb_connect(probe, $0, $1) }
        // Only a refusal proves that there is no listener; a full backlog (EAGAIN) proves the opposite.
        switch -result {
        case ECONNREFUSED: unlink(path)
        case ENOENT: break
        case EACCES, EPERM: throw .permissionDenied(address)
        default: throw .addressInUse(address)
        }
    }

    private static func adopt(_ descriptor: Int32) throws(TransportError) -> SocketAddress {
        guard case .listening(let address) = InheritedSocket.state(of: descriptor), cb_set_nonblocking(descriptor) >= 0
        else { throw .notAListener(descriptor: descriptor) }
        if address.family != AF_UNIX { SocketOptions.setStream(descriptor) }
        return address
    }

    static func fileIdentity(_ path: String) -> (path: String, device: UInt, inode: UInt)? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return (path, UInt(status.st_dev), UInt(status.st_ino))
    }
}

enum SocketOptions {
    /// Options of a TCP socket. A listener passes them on to the connections it accepts.
    static func setStream(_ descriptor: Int32, sendBufferBytes: Int? = nil) {
        let tcp = Int32(IPPROTO_TCP)
        _ = cb_set_option(descriptor, tcp, TCP_NODELAY, 1)
        _ = cb_set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
        _ = cb_set_option(descriptor, tcp, TCP_KEEPIDLE, TransportLimits.keepAliveIdleSeconds)
        _ = cb_set_option(descriptor, tcp, TCP_KEEPINTVL, TransportLimits.keepAliveIntervalSeconds)
        _ = cb_set_option(descriptor, tcp, TCP_KEEPCNT, TransportLimits.keepAliveProbes)
        // telnet marks an interrupt as urgent; out of line the kernel would take that byte out of the stream.
        _ = cb_set_option(descriptor, SOL_SOCKET, SO_OOBINLINE, 1)
        if let bytes = sendBufferBytes {
            _ = cb_set_option(descriptor, SOL_SOCKET, SO_SNDBUF, Int32(clamping: bytes))
        }
    }
}
