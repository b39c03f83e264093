/// Bounds of files over HTTP, besides those of the server.
enum MediaBounds {
    /// Uploads at a time. Each is held until the backend has it, several times over on its way.
    static let uploads = 4
    /// Those of one account: a phone and a computer.
    static let uploadsPerAccount = 2
    /// Passwords checked at a time: IRC logins share the threads.
    static let checks = 4
    /// Attempts at a time, delayed refusals included: a head of 16 KiB at most each.
    static let tries = 512
    /// Those of one visitor: a household's. A shared address may have 64.
    static let triesPerVisitor = 8
    static let triesPerSharedAddress = 64
    /// Concurrent tokens of a shared address, where each client would have one.
    static let tokensPerSharedAddress = 16
    /// Files on their way to people at a time.
    static let downloads = 32
    /// Those of one visitor. A browser asks for six at once.
    static let downloadsPerVisitor = 8
    /// How long a stalled reader holds a place that is needed.
    static let patience: Duration = .seconds(5)
    /// Bytes that are written before a client has to have taken them.
    static let window = 256 * 1024
    /// Bytes of files from within messages that wait for the disk.
    static let unsavedBytes = 64 * 1024 * 1024
    /// Wait between two looks for files from within messages that are too old.
    static let sweepInterval: Duration = .seconds(60 * 60)
    /// How long a file waits for its backend's token to be renewed.
    static let renewal: Duration = .seconds(10)
    /// Longest Retry-After for a wrong password, in seconds.
    static let retryAfter = 5
}
