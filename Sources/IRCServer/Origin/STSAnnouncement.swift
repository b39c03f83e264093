/// What a client is told about connecting with TLS.
///
/// Source: IRCv3 sts, "The `port` key" and "The `duration` key".
public enum STSAnnouncement: Hashable, Sendable {
    /// To a client without TLS: the port to come to instead.
    case port(UInt16)
    /// To a client with TLS: so many seconds it must not come without.
    case duration(seconds: UInt32)

    /// The capability's value.
    public var text: String {
        switch self {
        case .port(let port): "port=\(port)"
        case .duration(let seconds): "duration=\(seconds)"
        }
    }
}
