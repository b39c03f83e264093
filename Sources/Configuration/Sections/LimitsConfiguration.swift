/// Bounds on the resources of clients, rooms and backends.
package struct LimitsConfiguration: Equatable, Sendable {
    package var maxClients = 1000
    /// This and the next: not for loopback.
    package var maxClientsPerIP = 50
    /// Nil: no limit, as for every rate here.
    package var acceptsPerSecondPerIP: Double? = 5
    package var registrationTimeout: Duration = .seconds(60)
    /// Nil: no pings.
    package var pingInterval: Duration? = .seconds(90)
    package var pingTimeout: Duration = .seconds(60)
    /// For each client, by token bucket.
    package var messagesPerSecond: Double? = 2
    package var messagesBurst = 10
    package var sendqBytes = 256 * 1024
    package var recvqBytes = 32 * 1024
    package var multiline = MultilineLimits()
    /// For each room.
    package var upstreamMessagesPerSecond: Double? = 5
    /// All rooms together.
    package var upstreamConnectsPerSecond: Double? = 20
    package var membersPerRoom = 10_000
    /// Open at a time through the room "*".
    package var templateRooms = 100
    /// Messages of a room's backlog for a returning client; zero: none.
    package var backlog = 500
    /// Messages in one answer to CHATHISTORY.
    package var historyLimit = 500

    /// Smallest receive queue, in bytes: one line with all its tags. Source: IRCv3 message-tags, "Size limit".
    static let minRecvqBytes = 8191 + 512
    /// Smallest send queue, in bytes: a welcome and a long answer's first part.
    static let minSendqBytes = 16 * 1024
    /// Largest queue of one client, in bytes; times max_clients it must fit the memory.
    static let maxQueueBytes = 1024 * 1024 * 1024

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey("max_clients", \.maxClients, .integer(1...1_000_000)),
        ConfigurationKey("max_clients_per_ip", \.maxClientsPerIP, .integer(1...1_000_000)),
        ConfigurationKey("accepts_per_second_per_ip", \.acceptsPerSecondPerIP, .rate),
        ConfigurationKey("registration_timeout", \.registrationTimeout, .duration(atLeast: .seconds(1))),
        ConfigurationKey("ping_interval", \.pingInterval, .durationOrOff),
        ConfigurationKey("ping_timeout", \.pingTimeout, .duration(atLeast: .seconds(1))),
        ConfigurationKey("messages_per_second", \.messagesPerSecond, .rate),
        ConfigurationKey("messages_burst", \.messagesBurst, .integer(1...100_000)),
        ConfigurationKey("sendq", \.sendqBytes, .size(minSendqBytes...maxQueueBytes)),
        ConfigurationKey("recvq", \.recvqBytes, .size(minRecvqBytes...maxQueueBytes)),
        ConfigurationKey("multiline", \.multiline, .section(MultilineLimits.rows, inline: true)),
        ConfigurationKey("upstream_messages_per_second", \.upstreamMessagesPerSecond, .rate),
        ConfigurationKey("upstream_connects_per_second", \.upstreamConnectsPerSecond, .rate),
        ConfigurationKey("members_per_room", \.membersPerRoom, .integer(1...1_000_000)),
        ConfigurationKey("template_rooms", \.templateRooms, .integer(0...10_000)),
        ConfigurationKey("backlog", \.backlog, .integer(0...100_000)),
        ConfigurationKey("history_limit", \.historyLimit, .integer(1...10_000)),
    ]
}

/// Bounds of one message of several lines.
package struct MultilineLimits: Equatable, Sendable {
    package var maxBytes = 16 * 1024
    package var maxLines = 100

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey("max_bytes", \.maxBytes, .size(512...1024 * 1024)),
        ConfigurationKey("max_lines", \.maxLines, .integer(1...10_000)),
    ]
}
