import BridgeTypes

/// Counts below the bridge since the start, for the operator.
struct DriverTraffic {
    struct Bytes {
        private(set) var received = 0
        private(set) var sent = 0

        fileprivate mutating func receive(_ count: Int) { received += count }
        fileprivate mutating func send(_ count: Int) { sent += count }
    }

    /// Bytes of lines, without TLS and the framing of WebSockets to clients.
    private(set) var clients = Bytes()
    /// Bytes of the links to backends, without TLS.
    private(set) var upstream = Bytes()
    /// TLS handshakes of clients that failed, by the address of the listener.
    private(set) var failedHandshakes: [String: Int] = [:]

    /// What waited for each client when it was looked at.
    private(set) var sendQueues = ByteHistogram()

    mutating func clientReceived(_ count: Int) { clients.receive(count) }
    mutating func clientSent(_ count: Int) { clients.send(count) }
    mutating func upstreamReceived(_ count: Int) { upstream.receive(count) }
    mutating func upstreamSent(_ count: Int) { upstream.send(count) }
    mutating func observe(sendQueue bytes: Int) { sendQueues.observe(bytes) }
    mutating func handshakeFailed(_ listener: String) { failedHandshakes[listener, default: 0] += 1 }
}
