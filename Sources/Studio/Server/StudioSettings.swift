/// Bounds of the studio.
public enum StudioLimits {
    /// Peers at once, in connections. Enough for a load test on one machine, few enough for an ordinary file limit.
    public static let maxPeers = 1000
    /// Payload of a frame or message, in bytes: the clients of this dialect take no more.
    /// Source: observed, Apple's URLSessionWebSocketTask, default maximumMessageSize.
    public static let maxFrameBytes = 1024 * 1024
    /// How long a peer may take to ask for something. A browser asks at once.
    public static let handshakeTimeout = Duration.seconds(10)
    /// How long the body of a request may take: an upload over a slow link.
    public static let bodyTimeout = Duration.seconds(60)
    /// Body of a call, in bytes, and of an upload with its multipart lines.
    static let maxCallBytes = 64 * 1024
    static let maxUploadBytes = StudioFiles.maxFileBytes + 64 * 1024
    /// Bytes that may wait for a peer: four of the largest frames, or a file. One that reads slower than that is dropped.
    public static let sendQueueBytes = StudioFiles.maxFileBytes + 4 * maxFrameBytes
    /// How long the last bytes for a peer, such as a page or a Close, may take to leave.
    public static let closeLinger = Duration.seconds(2)
}

/// What a studio is told when it is made.
public struct StudioSettings: Sendable {
    /// Rooms that are there from the start, in the order of their numbers.
    public var rooms: [StudioRoomSettings]
    /// Rooms in which a visitor waits.
    public var visitedRooms: [String]
    /// The address of IRC over WebSocket in front of these rooms, for the page.
    public private(set) var relay: String?
    /// Names under which it may be asked for, besides addresses and localhost.
    public var hosts: Set<String>

    public init(
        rooms: [StudioRoomSettings] = [], visitedRooms: [String] = [], relay: String? = nil, hosts: Set<String> = []
    ) {
        self.rooms = rooms
        self.visitedRooms = visitedRooms
        self.relay = relay
        self.hosts = hosts
    }

    mutating func announce(relay: String) { self.relay = relay }
}
