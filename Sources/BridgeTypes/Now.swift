public import ChatModel
public import WireBytes

/// The two clocks at one moment: one for intervals, one for what people read.
public struct Now: Hashable, Sendable {
    public var monotonic: MonotonicInstant
    public var wall: ChatTimestamp

    public init(monotonic: MonotonicInstant, wall: ChatTimestamp) {
        self.monotonic = monotonic
        self.wall = wall
    }
}

extension Now {
    /// A moment of an earlier process, of which the wall clock is all that is known. Not later than now.
    package init(wall: ChatTimestamp, by now: Now) {
        let (age, over) = now.wall.milliseconds.subtractingReportingOverflow(wall.milliseconds)
        self.init(
            monotonic: now.monotonic + (.zero - .milliseconds(over ? 0 : max(age, 0))), wall: min(wall, now.wall))
    }

    /// So many milliseconds ago.
    package func earlier(by milliseconds: Int64) -> Now {
        let (early, over) = wall.milliseconds.subtractingReportingOverflow(milliseconds)
        return Now(
            monotonic: monotonic + (.zero - .milliseconds(milliseconds)),
            wall: ChatTimestamp(milliseconds: over ? .min : early))
    }

    /// The moment, by the wall clock of now: the earlier of what it showed then and of what is counted back from what it
    /// shows now. The monotonic clock stands still while the machine sleeps, and the wall clock is set.
    package func earliest(by now: Now) -> ChatTimestamp { min(wall, countedBack(from: now)) }

    /// The later of both, which is not later than now.
    package func latest(by now: Now) -> ChatTimestamp { min(max(wall, countedBack(from: now)), now.wall) }

    private func countedBack(from now: Now) -> ChatTimestamp {
        now.earlier(by: max((now.monotonic - monotonic).wholeNanoseconds / 1_000_000, 0)).wall
    }
}

/// A moment as it is persisted: by the wall clock, and by the monotonic one where that is known.
package struct KeptMoment {
    package var at: ChatTimestamp
    package var counted: MonotonicInstant?

    package init(at: ChatTimestamp, counted: MonotonicInstant? = nil) {
        self.at = at
        self.counted = counted
    }
}

extension KeptMoment {
    package init(_ moment: Now, by now: Now) { self.init(at: moment.earliest(by: now), counted: moment.monotonic) }
}
