/// Where a room's connection leads: to the backend, or to the proxy in front of it.
public enum UpstreamEndpoint: Equatable, Sendable {
    /// A name or a numeric address, IPv6 without brackets.
    case host(String, port: Int)
    /// The path of a Unix-domain socket.
    case unix(path: String)
}
