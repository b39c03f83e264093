/// The sizes that bound an IRC line, and the buffer for an unfinished one.
///
/// The memberwise defaults are a server's, for lines from a client.
public struct IRCLimits: Hashable, Sendable {
    /// Bytes of a line without its tags and with CR LF: 512, or 510 of content.
    ///
    /// Source: RFC 1459 §2.3.
    public static let standardLineBytes = 512

    /// Bytes of the whole tag section, with the leading `@` and the trailing space.
    ///
    /// Source: IRCv3 message-tags, "Size limit".
    public static let maxTagBytes = 8191

    /// Bytes of tag data, without `@` and space, that a client may send, and that all client-only tags of a relayed line
    /// may take together.
    ///
    /// Source: IRCv3 message-tags, "Size limit".
    public static let maxClientTagBytes = 4094

    /// Bytes of tag data, without `@` and space, that a server may add to a line.
    ///
    /// Source: IRCv3 message-tags, "Size limit".
    public static let maxServerTagBytes = 4094

    /// Parameters of a line. The last one takes what is left of it.
    ///
    /// Source: RFC 1459 §2.3.
    public static let maxParams = 15

    /// Bytes reserved in the lines of a list (CAP, 005) for the rest of the line.
    ///
    /// `:server 005 nick … :are supported by this server` is the longest: 63 bytes for the server's name (a common
    /// limit of servers), 64 for a nick, 36 for the rest, rounded up.
    public static let listOverheadBytes = 170

    /// Bytes of a received line without tags, with its CR LF; the content may be two less.
    public var maxLineBytes: Int { Int(lineBytes) }
    /// Bytes of a received tag section, with `@` and space.
    public var maxReceivedTagBytes: Int { Int(receivedTagBytes) }

    // Every connection has its limits, so they are small.
    private let lineBytes: Int32
    private let receivedTagBytes: Int32

    public init(
        maxLineBytes: Int = IRCLimits.standardLineBytes,
        maxReceivedTagBytes: Int = IRCLimits.maxClientTagBytes + 2
    ) {
        lineBytes = Int32(clamping: max(maxLineBytes, 4))
        receivedTagBytes = Int32(clamping: max(maxReceivedTagBytes, 2))
    }

    /// Bytes that an unfinished line may occupy before it is given up: tags, content and one CR.
    ///
    /// This is the receive queue (recvq) of a connection that does not end its lines.
    public var maxUnfinishedBytes: Int { maxReceivedTagBytes + maxLineBytes - 1 }
}
