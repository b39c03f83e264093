import CSystem
import Glibc

/// A socket that the service manager opened and handed over. Source: sd_listen_fds(3).
public struct InheritedSocket: Hashable, Sendable {
    public enum State: Hashable, Sendable {
        /// A stream socket that listens there.
        case listening(SocketAddress)
        /// Nothing that clients can be accepted from; a sentence's rest, behind the socket's name.
        case unusable(String)
    }

    /// `FileDescriptorName=` of its unit; several sockets may have the same.
    public var name: String
    public var descriptor: Int32
    public var state: State

    public init(name: String, descriptor: Int32, state: State) {
        self.name = name
        self.descriptor = descriptor
        self.state = state
    }

    /// Where it listens; nil where it does not.
    public var address: SocketAddress? { if case .listening(let address) = state { address } else { nil } }

    /// The name of sockets that were given none. Source: sd_listen_fds_with_names(3).
    static let unnamed = "unknown"
    /// The first of the descriptors. Source: sd_listen_fds(3), SD_LISTEN_FDS_START.
    static let firstDescriptor: Int32 = 3
    /// The most that are looked at; beyond, the number is nonsense.
    static let maxCount: Int32 = 1024

    /// The sockets that were handed to process `processID`, in the order of their descriptors; none where the variables
    /// are for another process. They stay open, and are closed in children.
    public static func all(variables: [String: String], processID: Int32) -> [InheritedSocket] {
        all(variables: variables, processID: processID, from: firstDescriptor)
    }

    static func all(variables: [String: String], processID: Int32, from first: Int32) -> [InheritedSocket] {
        guard let owner = variables["LISTEN_PID"], owner == String(processID),
            let count = variables["LISTEN_FDS"].flatMap({ Int32($0) }), (1...maxCount).contains(count)
        else { return [] }
        let names = (variables["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
        return (0..<count).map { index in
            let descriptor = first + index
            let name = names.indices.contains(Int(index)) ? String(names[Int(index)]) : ""
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            return InheritedSocket(
                name: name.isEmpty ? unnamed : name, descriptor: descriptor, state: state(of: descriptor))
        }
    }

    static func state(of descriptor: Int32) -> State {
        guard let type = option(SO_TYPE, of: descriptor) else {
            return .unusable(errno == ENOTSOCK ? "is no socket" : "is not open")
        }
        guard type == Int32(SOCK_STREAM.rawValue) else { return .unusable("is no stream socket") }
        guard option(SO_ACCEPTCONN, of: descriptor) == 1 else {
            return .unusable("does not listen; a socket unit for the bridge has Accept=no")
        }
        guard let address = SocketAddress(localOf: descriptor) else {
            return .unusable("is neither of IPv4, nor of IPv6, nor a socket file")
        }
        return .listening(address)
    }

    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
}
