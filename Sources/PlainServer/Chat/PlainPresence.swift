import WireBytes

/// What others learn of the person's hand on the keys: typing, and when what is on the screen is marked as read.
struct PlainPresence {
    /// A person who has pressed no key for so long may have left the screen.
    private static let attention: Duration = .seconds(5 * 60)
    private static let markDelay: Duration = .milliseconds(200)
    /// How long a notice of typing holds. Source: IRCv3 typing.
    static let typingLasts: Duration = .seconds(6)
    private static let typingInterval: Duration = .seconds(3)

    private var activeAt: MonotonicInstant
    private var markAt: MonotonicInstant?
    /// A key of a message was pressed.
    private var typedAt: MonotonicInstant?
    /// Others were told.
    private var typingSentAt: MonotonicInstant?

    init(now: MonotonicInstant) { activeAt = now }

    var deadline: MonotonicInstant? {
        [markAt, typedAt.map { $0 + Self.typingLasts }].compactMap { $0 }.min()
    }

    mutating func keyPressed(now: MonotonicInstant) { activeAt = now }

    // MARK: - Typing

    /// - Returns: others are to be told.
    mutating func types(now: MonotonicInstant) -> Bool {
        typedAt = now
        if let typingSentAt, now - typingSentAt < Self.typingInterval { return false }
        typingSentAt = now
        return true
    }

    func hasPaused(now: MonotonicInstant) -> Bool { typedAt.map { $0 + Self.typingLasts <= now } ?? false }

    /// - Returns: others are to be told.
    mutating func stopsTyping() -> Bool {
        defer { sent() }
        return typingSentAt != nil
    }

    /// The line was sent, which says by itself that nothing is typed any more.
    mutating func sent() { (typedAt, typingSentAt) = (nil, nil) }

    // MARK: - Reading

    /// There is something to be marked as read. Nothing is, while the person is away from the keys.
    mutating func planMark(now: MonotonicInstant) {
        if markAt == nil, now - activeAt < Self.attention { markAt = now + Self.markDelay }
    }

    /// - Returns: it is to be marked now.
    mutating func takeMark(now: MonotonicInstant) -> Bool {
        guard let markAt, markAt <= now else { return false }
        self.markAt = nil
        return true
    }
}
