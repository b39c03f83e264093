import BridgeTypes

// The bounds on the resources of clients, rooms and backends: the core's own settings.
extension LimitSettings {
    /// Smallest receive queue, in bytes: one line with all its tags. Source: IRCv3 message-tags, "Size limit".
    static let minRecvqBytes = 8191 + 512
    /// Smallest send queue, in bytes: a welcome and a long answer's first part.
    static let minSendqBytes = 16 * 1024
    /// Largest queue of one client, in bytes; times max_clients it must fit the memory.
    static let maxQueueBytes = 1024 * 1024 * 1024

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey("max_clients", \.maxClients, .integer(1...1_000_000)),
        ConfigurationKey("max_clients_per_ip", \.maxClientsPerAddress, .integer(1...1_000_000)),
        ConfigurationKey("accepts_per_second_per_ip", \.acceptsPerSecondPerAddress, .rate),
        ConfigurationKey("registration_timeout", \.registrationTimeout, .duration(atLeast: .seconds(1))),
        ConfigurationKey("ping_interval", \.pingInterval, .durationOrOff),
        ConfigurationKey("ping_timeout", \.pingTimeout, .duration(atLeast: .seconds(1))),
        ConfigurationKey("messages_per_second", \.messagesPerSecond, .rate),
        ConfigurationKey("messages_burst", \.messagesBurst, .integer(1...100_000)),
        ConfigurationKey("sendq", \.sendQueueBytes, .size(minSendqBytes...maxQueueBytes)),
        ConfigurationKey("recvq", \.receiveQueueBytes, .size(minRecvqBytes...maxQueueBytes)),
        ConfigurationKey("multiline", \.self, .section(multilineRows, inline: true)),
        ConfigurationKey("upstream_messages_per_second", \.upstreamMessagesPerSecond, .rate),
        ConfigurationKey("upstream_connects_per_second", \.upstreamConnectsPerSecond, .rate),
        ConfigurationKey("members_per_room", \.membersPerRoom, .integer(1...1_000_000)),
        ConfigurationKey("template_rooms", \.templateRooms, .integer(0...10_000)),
        ConfigurationKey("backlog", \.backlog, .integer(0...100_000)),
        ConfigurationKey("history_limit", \.historyLimit, .integer(1...10_000)),
    ]

    /// Of one message of several lines.
    private static let multilineRows: [ConfigurationKey<Self>] = [
        ConfigurationKey("max_bytes", \.multilineMaxBytes, .size(512...1024 * 1024)),
        ConfigurationKey("max_lines", \.multilineMaxLines, .integer(1...10_000)),
    ]
}
