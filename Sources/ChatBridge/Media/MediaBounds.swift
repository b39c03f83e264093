/// Bounds of files over HTTP, besides those of the server.
enum MediaBounds {
    /// Uploads at a time. Each is held until the backend has it, several times over on its way.
    static let uploads = 4
    /// Those of one account: somebody's phone and somebody's computer.
    static let uploadsPerAccount = 2
    /// Passwords that are checked at a time: those who log in on IRC want their turn.
    static let checks = 4
    /// Tries at a time, those whose refusal waits included: a head of 16 KiB at most each.
    static let tries = 512
    /// Those of one visitor: a household's. Whoever cannot be told apart may have as many as 64.
    static let triesPerVisitor = 8
    static let triesPerCrowd = 64
    /// Tokens at a time of those who cannot be told apart, of whom each would have one.
    static let tokensPerCrowd = 16
    /// Files on their way to people at a time.
    static let downloads = 32
    /// Those of one visitor. A browser asks for six at once.
    static let downloadsPerVisitor = 8
    /// How long somebody who reads nothing keeps a place that another one wants.
    static let patience: Duration = .seconds(5)
    /// Bytes that are written before a client has to have taken them.
    static let window = 256 * 1024
    /// Bytes of files from within messages that wait for the disk.
    static let unkeptBytes = 64 * 1024 * 1024
    /// Wait between two looks for files from within messages that are too old.
    static let sweepInterval: Duration = .seconds(60 * 60)
    /// How long a file waits for its backend's token to be renewed.
    static let renewal: Duration = .seconds(10)
    /// Longest wait that somebody with a wrong password is told of.
    static let retryAfter = 5
}
