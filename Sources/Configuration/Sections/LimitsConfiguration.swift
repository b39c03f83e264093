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
        ConfigurationKey(
            "max_clients", \.maxClients, .integer(1...1_000_000),
            about: "clients at a time"),
        ConfigurationKey(
            "max_clients_per_ip", \.maxClientsPerIP, .integer(1...1_000_000),
            about: "clients of one address; not for loopback, socket files and trusted proxies"),
        ConfigurationKey(
            "accepts_per_second_per_ip", \.acceptsPerSecondPerIP, .rate,
            about: "new connections of one address, with the same exceptions"),
        ConfigurationKey(
            "registration_timeout", \.registrationTimeout, .duration(atLeast: .seconds(1)),
            about: "time from connection to welcome"),
        ConfigurationKey(
            "ping_interval", \.pingInterval, .durationOrOff,
            about: "silence of a client after which it is pinged"),
        ConfigurationKey(
            "ping_timeout", \.pingTimeout, .duration(atLeast: .seconds(1)),
            about: "time for the answer, then the client is disconnected"),
        ConfigurationKey(
            "messages_per_second", \.messagesPerSecond, .rate,
            about: "for each client, by token bucket"),
        ConfigurationKey(
            "messages_burst", \.messagesBurst, .integer(1...100_000),
            about: """
                size of the bucket; a client that logs in with `draft/chathistory` has two more bursts, once
                """),
        ConfigurationKey(
            "sendq", \.sendqBytes, .size(minSendqBytes...maxQueueBytes),
            about: "unsent output of a client; beyond it the client is disconnected: SendQ exceeded"),
        ConfigurationKey(
            "recvq", \.recvqBytes, .size(minRecvqBytes...maxQueueBytes),
            about: "unprocessed input of a client"),
        ConfigurationKey(
            "multiline", \.multiline, .section(MultilineLimits.rows, inline: true),
            about: "size of one message, either way"),
        ConfigurationKey(
            "upstream_messages_per_second", \.upstreamMessagesPerSecond, .rate,
            about: "for each room"),
        ConfigurationKey(
            "upstream_connects_per_second", \.upstreamConnectsPerSecond, .rate,
            about: "connection attempts of all rooms together"),
        ConfigurationKey(
            "members_per_room", \.membersPerRoom, .integer(1...1_000_000),
            about: "upstream users of a room that are shown"),
        ConfigurationKey(
            "template_rooms", \.templateRooms, .integer(0...10_000),
            about: "rooms that `*` may have open at a time, 10 of them for each user"),
        ConfigurationKey(
            "backlog", \.backlog, .integer(0...100_000),
            about: """
                number of missed messages of a room for a returning client of an account, the newest; 0: none
                """),
        ConfigurationKey(
            "history_limit", \.historyLimit, .integer(1...10_000),
            about: "messages in one reply to `CHATHISTORY`"),
    ]
}

/// Bounds of one message of several lines.
package struct MultilineLimits: Equatable, Sendable {
    package var maxBytes = 16 * 1024
    package var maxLines = 100

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "max_bytes", \.maxBytes, .size(512...1024 * 1024),
            about: "bytes of one message"),
        ConfigurationKey(
            "max_lines", \.maxLines, .integer(1...10_000),
            about: "lines of one message"),
    ]
}
