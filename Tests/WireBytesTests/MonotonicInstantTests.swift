import Testing
import WireBytes

@Suite("durations in nanoseconds")
struct MonotonicInstantTests {
    @Test(
        "whole nanoseconds, towards zero, and at most what 64 bits hold",
        arguments: [
            (.zero, 0), (.nanoseconds(1), 1), (.nanoseconds(-1), -1), (.microseconds(250), 250_000),
            (Duration(secondsComponent: 0, attosecondsComponent: 999_999_999), 0),
            (Duration(secondsComponent: 0, attosecondsComponent: 1_999_999_999), 1),
            (Duration(secondsComponent: 0, attosecondsComponent: -1_999_999_999), -1),
            (.seconds(4722), 4_722_000_000_000), (.seconds(4723), 4_723_000_000_000), (.seconds(-10), -10_000_000_000),
            (.seconds(86400 * 365), 31_536_000_000_000_000),
            (Duration(secondsComponent: 4722, attosecondsComponent: 366_482_869_645_213_695), 4_722_366_482_869),
            (.nanoseconds(Int64.max), .max), (.nanoseconds(Int64.min), .min), (.seconds(Int64.max), .max),
            (.seconds(Int64.min), .min),
        ] as [(Duration, Int64)])
    func wholeNanoseconds(_ duration: Duration, _ nanoseconds: Int64) {
        #expect(duration.wholeNanoseconds == nanoseconds)
    }

    @Test("an instant far away stays there")
    func saturation() {
        let last = MonotonicInstant(nanoseconds: .max)
        #expect(last + .seconds(1) == last && MonotonicInstant(nanoseconds: 5) + .seconds(Int64.max) == last)
        #expect(MonotonicInstant(nanoseconds: .min) + .seconds(-1) == MonotonicInstant(nanoseconds: .min))
    }
}
