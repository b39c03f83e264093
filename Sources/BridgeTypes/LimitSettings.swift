/// Limits on the resources of a peer, with their defaults. The configuration's section `[limits]` fills them.
///
/// Of rates nil means: no limit.
public struct LimitSettings: Equatable, Sendable {
    public var maxClients = 1000
    /// This and the next do not apply to loopback and unix sockets.
    public var maxClientsPerAddress = 50
    public var acceptsPerSecondPerAddress: Double? = 5
    public var registrationTimeout: Duration = .seconds(60)
    /// Nil: no pings.
    public var pingInterval: Duration? = .seconds(90)
    public var pingTimeout: Duration = .seconds(60)
    /// Long-term rate of lines from a client.
    public var messagesPerSecond: Double? = 2
    public var messagesBurst = 10
    /// Bytes that wait for a client before its connection is ended.
    public var sendQueueBytes = 256 * 1024
    /// Bytes of unprocessed input of a client before reading from its socket pauses.
    public var receiveQueueBytes = 32 * 1024
    /// Of the text that a client gets of one upstream message.
    public var multilineMaxBytes = 16 * 1024
    public var multilineMaxLines = 100
    /// Long-term rate of frames to a room.
    public var upstreamMessagesPerSecond: Double? = 5
    public var upstreamMessagesBurst: Double = 10
    /// Rate of new connections over all rooms together.
    public var upstreamConnectsPerSecond: Double? = 20
    public var membersPerRoom = 10_000
    /// Rooms of the template that may be open at a time.
    public var templateRooms = 100
    /// Missed messages of a room that a returning client gets, the newest ones; 0: none.
    public var backlog = 500
    /// Messages in one answer to a history request of a client.
    public var historyLimit = 500

    public init(_ change: (inout LimitSettings) -> Void = { _ in }) { change(&self) }
}
