/// What a loop has done since it started: for metrics, and for tests that count system calls instead of nanoseconds.
public struct TransportCounters: Equatable, Sendable {
    public private(set) var turns = 0
    public private(set) var accepted = 0
    public private(set) var bytesReceived = 0
    public private(set) var bytesSent = 0
    /// Calls of recv and of send or sendmsg.
    public private(set) var receiveCalls = 0
    public private(set) var sendCalls = 0

    mutating func turned() { turns &+= 1 }
    mutating func accept() { accepted &+= 1 }
    mutating func callReceive() { receiveCalls &+= 1 }
    mutating func received(_ count: Int) { bytesReceived &+= count }
    mutating func callSend() { sendCalls &+= 1 }
    mutating func sent(_ count: Int) { bytesSent &+= count }
}
