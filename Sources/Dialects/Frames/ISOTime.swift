import ChatModel
import WireBytes

/// Times as ISO 8601 in UTC, `2025-11-21T03:18:56Z`. Older Foundations refuse fractions, so whole seconds are the default.
package enum ISOTime {
    /// All times in whole seconds are of one length.
    static let byteCount = 20

    /// Times before 1970 and after 9999 become the nearest one in between.
    ///
    /// - Parameter fraction: whether three digits of the second follow.
    package static func text(_ time: ChatTimestamp, fraction: Bool = false) -> String {
        let whole = String(unsafeUninitializedCapacity: byteCount) { out in
            write(time, to: out)
            return byteCount
        }
        guard fraction else { return whole }
        let rest = String(clamped(time) % 1000)
        return whole.dropLast() + "." + String(repeating: "0", count: 3 - rest.utf8.count) + rest + "Z"
    }

    private static func clamped(_ time: ChatTimestamp) -> Int64 {
        min(max(time.milliseconds, 0), FrameTime.latestMilliseconds)
    }

    /// The same in whole seconds, without a string.
    ///
    /// - Parameter out: room for ``byteCount`` bytes.
    static func write(_ time: ChatTimestamp, to out: UnsafeMutableBufferPointer<UInt8>) {
        let seconds = clamped(time) / 1000
        let secondOfDay = seconds % 86_400
        let date = CivilTime.date(day: seconds / 86_400)
        var at = 0
        func put(_ value: Int64, digits: Int, then separator: UInt8) {
            var rest = value
            for index in stride(from: at + digits - 1, through: at, by: -1) {
                out[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            }
            out[at + digits] = separator
            at += digits + 1
        }
        put(date.year, digits: 4, then: UInt8(ascii: "-"))
        put(date.month, digits: 2, then: UInt8(ascii: "-"))
        put(date.day, digits: 2, then: UInt8(ascii: "T"))
        put(secondOfDay / 3600, digits: 2, then: UInt8(ascii: ":"))
        put(secondOfDay / 60 % 60, digits: 2, then: UInt8(ascii: ":"))
        put(secondOfDay % 60, digits: 2, then: UInt8(ascii: "Z"))
    }
}
