/// Bounds of the server besides those of each connection's machine.
enum HTTPServerBounds {
    /// Connections at once, over all listeners. Probes, scrapers and a few people; each may cost a body and a queue.
    static let maxConnections = 128
    /// Connections at once of one visitor, and requests of one for whom a web server asks: five browsers' worth. A web
    /// server that asks for others may have three quarters of ``maxConnections``.
    static let connectionsPerVisitor = 32
    /// Connections besides those, over which only vital routes are asked: whoever took all others keeps nobody from
    /// learning that this program lives. When all are taken, the oldest gives way.
    static let spareConnections = 16
    /// Those of one visitor: a supervisor's, and one of a check beside it, before they are in each other's way.
    static let sparePerVisitor = 4
    /// Bytes that may wait for a client; one that reads slower is dropped.
    static let sendQueueBytes = 1024 * 1024
    /// Seconds after which somebody who was turned away for want of a place may try again.
    static let retryAfter = 5
    /// How long a route may take to begin its answer.
    static let answerTimeout: Duration = .seconds(60)
    /// How long the last bytes for a client may take to leave.
    static let closeLinger: Duration = .seconds(2)
}
