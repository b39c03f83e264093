/// A moment as HTTP writes it.
///
/// Source: RFC 9110 §5.6.7, "IMF-fixdate".
public enum HTTPDate {
    /// `Sun, 06 Nov 1994 08:49:37 GMT`. Moments outside the years 1970 to 9999 are moved to the nearest within.
    public static func text(wallMilliseconds: Int64) -> String {
        let seconds = min(max(wallMilliseconds / 1000, 0), 253_402_300_799)
        let day = Int(seconds / 86_400)
        let second = Int(seconds % 86_400)
        // Years are counted from March, so that the leap day is last; eras of 400 years have 146,097 days.
        let shifted = day + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let dayOfMonth = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = (monthFromMarch + 2) % 12
        let year = era * 400 + yearOfEra + (month < 2 ? 1 : 0)
        // 1970-01-01 was a Thursday.
        let weekday = weekdays[(day + 3) % 7]
        return "\(weekday), \(two(dayOfMonth)) \(months[month]) \(year) "
            + "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60)) GMT"
    }

    static let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
