import CSystem
import Glibc

/// Why a loop could not start or a listener could not open. Each case is the local side's fault and harms nothing else.
public enum TransportError: Error, Equatable, Sendable {
    /// The kernel refused `call`.
    case systemCallFailed(call: String, errno: Int32)
    /// Another socket listens there.
    case addressInUse(SocketAddress)
    /// No interface of this machine has the address.
    case addressNotAvailable(SocketAddress)
    /// Ports below 1024, or a directory one may not write.
    case permissionDenied(SocketAddress)
    /// The name to listen on has no address; the sentence says why.
    case resolveFailed(String)
    /// The port is not between 0 and 65535.
    case portOutOfRange(Int)
    /// The path does not fit the kernel's structure; lengths in bytes.
    case unixPathTooLong(path: String, limit: Int)
    /// Something that is no socket has the name; it is left alone.
    case notASocket(path: String)
    /// The descriptor is no listening stream socket.
    case notAListener(descriptor: Int32)
    /// The listener's certificate, key or authorities cannot be used.
    case tlsUnusable(TLSSetupError)
}

extension TransportError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .systemCallFailed(let call, let errno): "\(call): \(errorText(errno))"
        case .addressInUse(.unix(let path)): "a program already listens on \(path)"
        case .addressInUse(let address): "\(address) is already in use"
        case .addressNotAvailable(let address): "\(address) is not an address of this machine"
        case .permissionDenied(let address): "not permitted to listen on \(address)"
        case .resolveFailed(let sentence): sentence
        case .portOutOfRange(let port): "port \(port) is not between 0 and 65535"
        case .unixPathTooLong(let path, let limit): "the socket path \(path) is longer than \(limit) bytes"
        case .notASocket(let path): "\(path) exists and is not a socket"
        case .notAListener(let descriptor): "descriptor \(descriptor) is not a listening stream socket"
        case .tlsUnusable(let error): error.description
        }
    }

    init(call: String, result: Int32, at address: SocketAddress) {
        switch -result {
        case EADDRINUSE: self = .addressInUse(address)
        case EADDRNOTAVAIL: self = .addressNotAvailable(address)
        case EACCES, EPERM: self = .permissionDenied(address)
        default: self = .systemCallFailed(call: call, errno: -result)
        }
    }
}

/// How a connection ended. The first reason wins.
public enum StreamEnd: Equatable, Sendable {
    /// The peer has ended its stream; all of it was delivered.
    case endOfStream
    /// The peer, or something between, reset the connection.
    case reset
    /// No address of the host took the connection. The sentence names the last one tried.
    case connectFailed(String, errno: Int32)
    /// The host has no address; the sentence says why.
    case resolveFailed(String)
    /// Neither name service nor peer answered in time.
    case connectTimedOut
    /// The owner asked for it.
    case closedByUs
    /// A proxy did not complete its header in time.
    case proxyHeaderTimedOut
    case sendFailed(errno: Int32)
    case receiveFailed(errno: Int32)
    /// More was queued than ``Transport/setSendLimit(_:bytes:)`` allows: the peer reads too slowly, or not at all.
    case sendQueueExceeded(limit: Int)
    /// TLS could not be made or failed; the bytes delivered are genuine.
    case tlsFailed(TLSFailure)
    /// The stream ended without a close_notify: a client that vanished, or an attacker that cut the stream off.
    ///
    /// Source: RFC 8446 §6.1.
    case tlsTruncated
}

extension StreamEnd: CustomStringConvertible {
    public var description: String {
        switch self {
        case .endOfStream: "the other side closed the connection"
        case .reset: "the connection was reset"
        case .connectFailed(let sentence, _), .resolveFailed(let sentence): sentence
        case .connectTimedOut: "no answer in time"
        case .closedByUs: "closed on this side"
        case .proxyHeaderTimedOut: "no PROXY header in time"
        case .sendFailed(let errno): "sending failed: \(errorText(errno))"
        case .receiveFailed(let errno): "receiving failed: \(errorText(errno))"
        case .tlsFailed(let failure): failure.description
        case .tlsTruncated: "the connection was cut off without a TLS goodbye"
        case .sendQueueExceeded(let limit): "the other side reads too slowly: more than \(limit) bytes were waiting"
        }
    }
}

/// The text of an error number, in English, with a small first letter so that it can follow a colon.
func errorText(_ errno: Int32) -> String {
    let text = String(cString: cb_error_text(errno))
    // "No route to host" reads "no route to host"; an abbreviation such as "RPC" keeps its capitals.
    guard let first = text.first, text.dropFirst().first?.isLowercase == true else { return text }
    return first.lowercased() + text.dropFirst()
}

/// Why `address` did not take a connection, as a sentence for people. `host` is the name in the configuration.
func connectSentence(host: String, address: SocketAddress, errno: Int32) -> String {
    let place = address.host == host ? "\(address)" : "\(host) (\(address))"
    switch errno {
    case ECONNREFUSED: return "\(place) refused the connection: nothing listens there"
    case ENETUNREACH, EHOSTUNREACH: return "no route to \(place)"
    case EACCES, EPERM: return "not permitted to connect to \(place)"
    case ENOENT: return "there is no socket at \(place)"
    case EMFILE, ENFILE: return "cannot connect to \(place): too many files are open in this process or machine"
    default: return "cannot connect to \(place): \(errorText(errno))"
    }
}
