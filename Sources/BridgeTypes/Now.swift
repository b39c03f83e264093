public import ChatModel
public import WireBytes

/// Both clocks at one moment: monotonic for intervals, wall for timestamps shown to users.
public struct Now: Hashable, Sendable {
    public var monotonic: MonotonicInstant
    public var wall: ChatTimestamp

    public init(monotonic: MonotonicInstant, wall: ChatTimestamp) {
        self.monotonic = monotonic
        self.wall = wall
    }
}

extension Now {
    /// A moment of an earlier process, for which only the wall clock is known. Not later than `now`.
    package init(wall: ChatTimestamp, by now: Now) {
        let (age, over) = now.wall.milliseconds.subtractingReportingOverflow(wall.milliseconds)
        self.init(
            monotonic: now.monotonic + (.zero - .milliseconds(over ? 0 : max(age, 0))), wall: min(wall, now.wall))
    }

    /// The moment so many milliseconds earlier.
    package func earlier(by milliseconds: Int64) -> Now {
        let (early, over) = wall.milliseconds.subtractingReportingOverflow(milliseconds)
        return Now(
            monotonic: monotonic + (.zero - .milliseconds(milliseconds)),
            wall: ChatTimestamp(milliseconds: over ? .min : early))
    }

    /// The moment a time later.
    package func later(by duration: Duration) -> Now {
        let (late, over) = wall.milliseconds.addingReportingOverflow(duration.wholeNanoseconds / 1_000_000)
        return Now(monotonic: monotonic + duration, wall: ChatTimestamp(milliseconds: over ? .max : late))
    }

    /// The earlier of two estimates in wall time: the reading at that moment, and the present reading minus the monotonic
    /// interval. They differ after suspend, which stops the monotonic clock, and after a change of the wall clock.
    package func earliest(by now: Now) -> ChatTimestamp { min(wall, countedBack(from: now)) }

    /// The later of both estimates, not later than `now`.
    package func latest(by now: Now) -> ChatTimestamp { min(max(wall, countedBack(from: now)), now.wall) }

    private func countedBack(from now: Now) -> ChatTimestamp {
        now.earlier(by: max((now.monotonic - monotonic).wholeNanoseconds / 1_000_000, 0)).wall
    }
}

/// A moment as persisted: wall time, and monotonic time where known.
package struct StoredMoment {
    package var at: ChatTimestamp
    package var counted: MonotonicInstant?

    package init(at: ChatTimestamp, counted: MonotonicInstant? = nil) {
        self.at = at
        self.counted = counted
    }
}

extension StoredMoment {
    package init(_ moment: Now, by now: Now) { self.init(at: moment.earliest(by: now), counted: moment.monotonic) }
}
