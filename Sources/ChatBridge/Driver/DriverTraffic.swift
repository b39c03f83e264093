import BridgeTypes

/// Counts below the bridge since the start, for the operator.
struct DriverTraffic {
    struct Bytes {
        var received = 0
        var sent = 0
    }

    /// Bytes of lines, without TLS and the framing of WebSockets to clients.
    var clients = Bytes()
    /// Bytes of the links to backends, without TLS.
    var upstream = Bytes()
    /// TLS handshakes of clients that failed, by the address of the listener.
    private(set) var failedHandshakes: [String: Int] = [:]

    /// What waited for each client when it was looked at.
    private(set) var sendQueues = ByteHistogram()

    mutating func observe(sendQueue bytes: Int) { sendQueues.observe(bytes) }

    mutating func handshakeFailed(_ listener: String) { failedHandshakes[listener, default: 0] += 1 }
}
