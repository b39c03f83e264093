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
        ConfigurationKey(
            "max_clients", \.maxClients, .integer(1...1_000_000), reload: .live,
            about: "clients at a time; one more gets `ERROR`"),
        ConfigurationKey(
            "max_clients_per_ip", \.maxClientsPerAddress, .integer(1...1_000_000), reload: .live,
            about: "clients of one address; not for loopback, socket files and trusted proxies"),
        ConfigurationKey(
            "accepts_per_second_per_ip", \.acceptsPerSecondPerAddress, .rate, reload: .live,
            about: "new connections of one address, with the same exceptions"),
        ConfigurationKey(
            "registration_timeout", \.registrationTimeout, .duration(atLeast: .seconds(1)), reload: .live,
            about: "time from connection to welcome, then the client is disconnected"),
        ConfigurationKey(
            "ping_interval", \.pingInterval, .durationOrOff, reload: .live,
            about: "silence of a client after which it is pinged"),
        ConfigurationKey(
            "ping_timeout", \.pingTimeout, .duration(atLeast: .seconds(1)), reload: .live,
            about: "time for the answer, then the client is disconnected"),
        ConfigurationKey(
            "messages_per_second", \.messagesPerSecond, .rate, reload: .live,
            about: "lines of one client, by token bucket; more are delayed, not dropped"),
        ConfigurationKey(
            "messages_burst", \.messagesBurst, .integer(1...100_000), reload: .live,
            about: """
                size of the bucket; a client that logs in with `draft/chathistory` has two more bursts, once
                """),
        ConfigurationKey(
            "sendq", \.sendQueueBytes, .size(minSendqBytes...maxQueueBytes),
            about: "unsent output of a client; beyond it the client is disconnected: SendQ exceeded"),
        ConfigurationKey(
            "recvq", \.receiveQueueBytes, .size(minRecvqBytes...maxQueueBytes), reload: .live,
            about: "unprocessed input of a client; beyond it its socket is not read"),
        ConfigurationKey(
            "multiline", \.self, .section(multilineRows, inline: true),
            about: "size of one message, either way"),
        ConfigurationKey(
            "upstream_messages_per_second", \.upstreamMessagesPerSecond, .rate,
            about: """
                messages to one room, ten at once; more are queued, and senders take turns. An account's own log-in has \
                the same for itself
                """),
        ConfigurationKey(
            "upstream_connects_per_second", \.upstreamConnectsPerSecond, .rate,
            about: "connection attempts of all rooms together; more wait"),
        ConfigurationKey(
            "members_per_room", \.membersPerRoom, .integer(1...1_000_000), reload: .live,
            about: "upstream users of a room that are shown; the rest share one nick, as `<name> text`"),
        ConfigurationKey(
            "template_rooms", \.templateRooms, .integer(0...10_000), reload: .live,
            about: """
                rooms that `*` may have open at a time, 10 of them for each user; one more takes the place of an empty \
                one, or JOIN gets 405
                """),
        ConfigurationKey(
            "backlog", \.backlog, .integer(0...100_000), reload: .live,
            about: """
                number of missed messages of a room for a returning client of an account, the newest; 0: none
                """),
        ConfigurationKey(
            "history_limit", \.historyLimit, .integer(1...10_000), reload: .live,
            about: "messages in one reply to `CHATHISTORY`"),
    ]

    /// Of one message of several lines.
    private static let multilineRows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "max_bytes", \.multilineMaxBytes, .size(512...1024 * 1024),
            about: "bytes of one message"),
        ConfigurationKey(
            "max_lines", \.multilineMaxLines, .integer(1...10_000),
            about: "lines of one message"),
    ]
}
