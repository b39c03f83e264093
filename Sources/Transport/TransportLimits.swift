/// Sizes and times of the transport, each with its unit and reason.
public enum TransportLimits {
    /// Bytes of one read at the most: it empties an ordinary socket buffer.
    public static let receiveBytes = 64 * 1024
    /// Bytes of a loop's receive buffer. Many connections are read into it before the first is worked off.
    static let receiveBufferBytes = 4 * receiveBytes
    /// Default bytes read per connection and turn, so that one flooder does not starve the others.
    public static let readBudgetBytes = 128 * 1024
    /// Bytes written per connection and turn: a peer that reads as fast as we write may not hold the loop.
    public static let writeBudgetBytes = 1024 * 1024
    /// Slices given to the kernel in one call; the kernel takes at most 1024 (`IOV_MAX`), and copies the table each time.
    public static let spansPerWrite = 128
    /// Events taken from the kernel in one call, 12 bytes each.
    public static let eventsPerWait = 512
    /// Connections accepted per listener and turn; the rest stay in the backlog until the next.
    public static let acceptsPerTurn = 64
    /// How long a listener rests when descriptors or memory ran out. A waiting connection stays readable, so without a
    /// rest the loop would spin.
    public static let acceptRest = Duration.milliseconds(100)
    /// Backlog asked of the kernel, which caps it at `net.core.somaxconn`. A room's clients reconnect at once.
    public static let backlog: Int32 = 4096
    /// How long a proxy may take for the header of a connection. It sends it with its first segment; three seconds and more
    /// leave room for one that is lost and sent again.
    ///
    /// Source: the PROXY protocol, §4.
    public static let proxyHeaderTimeout = Duration.seconds(5)
    /// Connections whose PROXY header is awaited, over all listeners. Proxies are trusted; this is for one that is broken.
    public static let proxyHeadersAtOnce = 1024
    /// Default bytes one connection may have queued; a backstop for owners without a limit of their own.
    public static let sendLimitBytes = 16 * 1024 * 1024
    /// Grace for the peer to close its side after everything is flushed. Closing before it has would turn bytes it is
    /// still sending into a reset, which can destroy bytes it has not read yet.
    ///
    /// Source: RFC 1122 §4.2.2.13; RFC 9112 §9.6.
    public static let lingeringClose = Duration.seconds(2)
    /// Time for sending the answer to a peer that sends and then closes its sending side.
    public static let endOfStreamLinger = Duration.seconds(10)
    /// Threads that may wait for name resolution at once; getaddrinfo blocks, for half a minute when a server is silent.
    public static let resolverThreads = 4
    /// Addresses of one host that are tried.
    public static let addressesPerHost = 8
    /// How long an address is tried alone before the next one of its host is tried beside it.
    ///
    /// Source: RFC 8305 §5, "Connection Attempt Delay": 250 ms recommended.
    public static let connectionAttemptDelay = Duration.milliseconds(250)
    /// Seconds without traffic after which the kernel asks whether the peer is still there, between two such questions,
    /// and how many may stay unanswered: a vanished peer is noticed within two minutes and a half even if the protocol
    /// above asks nothing.
    public static let keepAliveIdleSeconds: Int32 = 90
    public static let keepAliveIntervalSeconds: Int32 = 20
    public static let keepAliveProbes: Int32 = 3
}
