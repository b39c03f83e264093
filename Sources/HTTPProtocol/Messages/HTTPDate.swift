import WireBytes

/// A time in HTTP's format.
///
/// Source: RFC 9110 §5.6.7, "IMF-fixdate".
public enum HTTPDate {
    /// `Sun, 06 Nov 1994 08:49:37 GMT`. Times outside the years 1970 to 9999 are moved to the nearest within.
    public static func text(wallMilliseconds: Int64) -> String {
        let seconds = min(max(wallMilliseconds / 1000, 0), 253_402_300_799)
        let (day, second) = (seconds / 86_400, seconds % 86_400)
        let date = CivilTime.date(day: day)
        // 1970-01-01 was a Thursday.
        return "\(weekdays[Int((day + 3) % 7)]), \(two(date.day)) \(months[Int(date.month - 1)]) \(date.year) "
            + "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60)) GMT"
    }

    static let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

/// The `Retry-After` header.
///
/// Source: RFC 9110 §10.2.3, §5.6.7.
public enum RetryAfter {
    /// Longest delay that is obeyed; a server that asks for more gets a try after this.
    public static let maxDelay: Duration = .seconds(24 * 60 * 60)

    /// How long to wait from now: zero for a date that has passed, at most ``maxDelay``, nil when `value` is neither
    /// seconds nor an IMF-fixdate.
    ///
    /// - Parameter wallMilliseconds: now, in milliseconds since 1970-01-01T00:00:00Z.
    public static func delay(_ value: String, wallMilliseconds: Int64) -> Duration? {
        let text = Array(ASCII.trimmingOWS(Array(value.utf8)[...]))
        if !text.isEmpty, text.allSatisfy(ASCII.isDigit) {
            guard let seconds = ASCII.decimal(text, maxDigits: 9) else { return maxDelay }
            return min(.seconds(seconds), maxDelay)
        }
        guard let date = secondsSince1970(imfFixdate: text) else { return nil }
        let (wait, overflow) = (date * 1000).subtractingReportingOverflow(wallMilliseconds)
        if overflow { return wallMilliseconds > 0 ? .zero : maxDelay }
        return min(max(.milliseconds(wait), .zero), maxDelay)
    }

    /// `, try again after 30 s`, or after a date; empty without a value.
    public static func clause(_ value: String?) -> String {
        guard let value else { return "" }
        let isNumber = !value.isEmpty && value.utf8.allSatisfy(ASCII.isDigit)
        return ", try again after \(value)\(isNumber ? " s" : "")"
    }

    /// Reads `Sun, 06 Nov 1994 08:49:37 GMT`. The day's name is not compared with the date.
    static func secondsSince1970(imfFixdate date: [UInt8]) -> Int64? {
        func text(_ range: Range<Int>) -> String { String(decoding: date[range], as: UTF8.self) }
        func number(_ range: Range<Int>) -> Int? { ASCII.decimal(date[range]) }
        guard date.count == 29, HTTPDate.weekdays.contains(text(0..<3)), text(3..<5) == ", ", text(7..<8) == " ",
            text(11..<12) == " ", text(16..<17) == " ", text(19..<20) == ":", text(22..<23) == ":",
            text(25..<29) == " GMT", let month = HTTPDate.months.firstIndex(of: text(8..<11)), let day = number(5..<7),
            let year = number(12..<16), let hour = number(17..<19), let minute = number(20..<22),
            let second = number(23..<25), (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        let days = CivilTime.day(year: Int64(year), month: Int64(month + 1), day: Int64(day))
        return days * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    }
}
