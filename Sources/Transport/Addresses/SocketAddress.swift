import Glibc

/// The address of a socket or of its peer.
///
/// IPv4-mapped IPv6 addresses (`::ffff:192.0.2.1`) become ``ipv4(_:port:)``, so that a rule about an address holds
/// however it arrived.
public enum SocketAddress: Hashable, Sendable {
    /// The four octets, the first in the highest byte: `0x7F00_0001` is 127.0.0.1.
    case ipv4(UInt32, port: UInt16)
    /// The sixteen octets as two numbers, first octet in the highest byte. `scope` is the interface's index for
    /// link-local addresses, else 0.
    case ipv6(high: UInt64, low: UInt64, port: UInt16, scope: UInt32)
    /// A socket in the file system. The peer of an accepted connection usually has an empty path.
    case unix(path: String)

    /// Longest path of a Unix socket in bytes: `sun_path` without its closing NUL.
    ///
    /// Source: unix(7).
    public static let maxUnixPathBytes = 107

    /// The address of a numeric `host`, or nil when it is a name or the port does not fit.
    ///
    /// Takes `192.0.2.1`, `2001:db8::1`, `[2001:db8::1]` and `fe80::1%eth0`.
    public init?(host: String, port: Int) {
        guard let port = UInt16(exactly: port) else { return nil }
        var text = host[...]
        if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }

        var four = in_addr()
        if inet_pton(AF_INET, String(text), &four) == 1 {
            self = .ipv4(UInt32(bigEndian: four.s_addr), port: port)
            return
        }

        var scope: UInt32 = 0
        if let percent = text.firstIndex(of: "%") {
            let zone = String(text[text.index(after: percent)...])
            scope = UInt32(zone) ?? if_nametoindex(zone)
            guard scope != 0 else { return nil }
            text = text[..<percent]
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, String(text), &six) == 1 else { return nil }
        self.init(six, port: port, scope: scope)
    }

    /// Reads what ``description`` prints: `192.0.2.1:6667`, `[::1]:6667`, `unix:/run/chat.sock`.
    public init?(_ text: String) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard !path.isEmpty, path.utf8.count <= Self.maxUnixPathBytes else { return nil }
            self = .unix(path: path)
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        let host = text[..<colon]
        // Without brackets `::1:80` could be read in two ways.
        guard !host.contains(":") || host.hasPrefix("[") else { return nil }
        self.init(host: String(host), port: Int(port))
    }

    private init(_ address: in6_addr, port: UInt16, scope: UInt32) {
        let (high, low) = withUnsafeBytes(of: address) {
            (
                UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        if high == 0, low >> 32 == 0xFFFF {
            self = .ipv4(UInt32(truncatingIfNeeded: low), port: port)
        } else {
            self = .ipv6(high: high, low: low, port: port, scope: scope)
        }
    }

    /// The port; nil for Unix sockets.
    public var port: Int? {
        switch self {
        case .ipv4(_, let port), .ipv6(_, _, let port, _): Int(port)
        case .unix: nil
        }
    }

    /// The numeric address without port and brackets; the path of a Unix socket.
    public var host: String {
        switch self {
        case .ipv4(let address, _):
            return "\(address >> 24).\(address >> 16 & 255).\(address >> 8 & 255).\(address & 255)"
        case .ipv6(let high, let low, _, let scope):
            var address = in6_addr()
            withUnsafeMutableBytes(of: &address) {
                $0.storeBytes(of: high.bigEndian, as: UInt64.self)
                $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
                inet_ntop(AF_INET6, &address, buffer.baseAddress, socklen_t(INET6_ADDRSTRLEN)).map {
                    String(cString: $0)
                } ?? "::"
            }
            return scope == 0 ? text : "\(text)%\(scope)"
        case .unix(let path):
            return path
        }
    }

    /// The address by which its owner is limited: without port, of IPv6 the first half, which belongs to one
    /// customer.
    public var limitKey: SocketAddress {
        switch self {
        case .ipv4(let address, _): .ipv4(address, port: 0)
        case .ipv6(let high, _, _, _): .ipv6(high: high, low: 0, port: 0, scope: 0)
        case .unix: .unix(path: "")
        }
    }

    /// Whether only this machine can be at the other end: 127.0.0.0/8, `::1` and Unix sockets.
    public var isLoopback: Bool {
        switch self {
        case .ipv4(let address, _): address >> 24 == 127
        case .ipv6(let high, let low, _, _): high == 0 && low == 1
        case .unix: true
        }
    }
}

extension SocketAddress: CustomStringConvertible {
    public var description: String {
        switch self {
        case .ipv4(_, let port): "\(host):\(port)"
        case .ipv6(_, _, let port, _): "[\(host)]:\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

// MARK: - The kernel's form

extension SocketAddress {
    var family: Int32 {
        switch self {
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        case .unix: AF_UNIX
        }
    }

    /// Calls `body` with the address as the kernel takes it.
    package func withSocketAddress<R>(_ body: (UnsafeRawPointer, UInt32) -> R) -> R {
        switch self {
        case .ipv4(let address, let port):
            var kernel = sockaddr_in()
            kernel.sin_family = sa_family_t(AF_INET)
            kernel.sin_port = port.bigEndian
            kernel.sin_addr.s_addr = address.bigEndian
            return withUnsafeBytes(of: kernel) { Self.call(body, $0) }
        case .ipv6(let high, let low, let port, let scope):
            var kernel = sockaddr_in6()
            kernel.sin6_family = sa_family_t(AF_INET6)
            kernel.sin6_port = port.bigEndian
            kernel.sin6_scope_id = scope
            withUnsafeMutableBytes(of: &kernel.sin6_addr) {
                $0.storeBytes(of: high.bigEndian, as: UInt64.self)
                $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            return withUnsafeBytes(of: kernel) { Self.call(body, $0) }
        case .unix(let path):
            var kernel = sockaddr_un()
            kernel.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &kernel.sun_path) { room in
                // The last byte stays NUL.
                for (index, byte) in path.utf8.prefix(room.count - 1).enumerated() { room[index] = byte }
            }
            return withUnsafeBytes(of: kernel) { Self.call(body, $0) }
        }
    }

    private static func call<R>(_ body: (UnsafeRawPointer, UInt32) -> R, _ bytes: UnsafeRawBufferPointer) -> R {
        // A structure's bytes always have an address; the alternative keeps the compiler content without a trap.
        guard let base = bytes.baseAddress else { return withUnsafePointer(to: 0) { body(UnsafeRawPointer($0), 0) } }
        return body(base, UInt32(bytes.count))
    }

    /// The address the kernel wrote; nil for unsupported families.
    init?(kernelBytes bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= MemoryLayout<sa_family_t>.size else { return nil }
        switch Int32(bytes.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET:
            guard bytes.count >= MemoryLayout<sockaddr_in>.size else { return nil }
            let kernel = bytes.loadUnaligned(as: sockaddr_in.self)
            self = .ipv4(UInt32(bigEndian: kernel.sin_addr.s_addr), port: UInt16(bigEndian: kernel.sin_port))
        case AF_INET6:
            guard bytes.count >= MemoryLayout<sockaddr_in6>.size else { return nil }
            let kernel = bytes.loadUnaligned(as: sockaddr_in6.self)
            self.init(kernel.sin6_addr, port: UInt16(bigEndian: kernel.sin6_port), scope: kernel.sin6_scope_id)
        case AF_UNIX:
            let path = bytes.dropFirst(MemoryLayout<sa_family_t>.size).prefix { $0 != 0 }
            self = .unix(path: String(decoding: path, as: UTF8.self))
        default:
            return nil
        }
    }

    /// The address a socket is bound to.
    init?(localOf descriptor: Int32) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutableBytes(of: &storage) { raw in
            raw.withMemoryRebound(to: sockaddr.self) { getsockname(descriptor, $0.baseAddress, &length) }
        }
        guard result == 0 else { return nil }
        let known = withUnsafeBytes(of: storage) {
            SocketAddress(kernelBytes: UnsafeRawBufferPointer(rebasing: $0.prefix(Int(length))))
        }
        guard let known else { return nil }
        self = known
    }
}

extension SocketAddress {
    /// The same address with another port; nil for Unix sockets and ports that do not fit.
    func withPort(_ port: Int) -> SocketAddress? {
        guard let port = UInt16(exactly: port) else { return nil }
        switch self {
        case .ipv4(let address, _): return .ipv4(address, port: port)
        case .ipv6(let high, let low, _, let scope): return .ipv6(high: high, low: low, port: port, scope: scope)
        case .unix: return nil
        }
    }
}
