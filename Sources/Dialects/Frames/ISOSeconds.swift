import ChatModel

/// Times as ISO 8601 in whole seconds with `Z`, the one form that every decoder takes: older Foundations refuse
/// fractions.
enum ISOSeconds {
    /// All times are of one length.
    static let byteCount = 20

    /// `2025-11-21T03:18:56Z`; times before 1970 and after 9999 become the nearest one in between.
    static func text(_ time: ChatTimestamp) -> String {
        String(unsafeUninitializedCapacity: byteCount) { out in
            write(time, to: out)
            return byteCount
        }
    }

    /// The same, without a string.
    ///
    /// - Parameter out: room for ``byteCount`` bytes.
    static func write(_ time: ChatTimestamp, to out: UnsafeMutableBufferPointer<UInt8>) {
        let seconds = min(max(time.milliseconds, 0), FrameTime.latestMilliseconds) / 1000
        let secondOfDay = seconds % 86_400
        // Years begin in March here, so that the leap day is a year's last; days count from 0000-03-01.
        let day = seconds / 86_400 + 719_468
        let era = day / 146_097
        let dayOfEra = day % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
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
        put(year, digits: 4, then: UInt8(ascii: "-"))
        put(month, digits: 2, then: UInt8(ascii: "-"))
        put(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1, digits: 2, then: UInt8(ascii: "T"))
        put(secondOfDay / 3600, digits: 2, then: UInt8(ascii: ":"))
        put(secondOfDay / 60 % 60, digits: 2, then: UInt8(ascii: ":"))
        put(secondOfDay % 60, digits: 2, then: UInt8(ascii: "Z"))
    }
}
