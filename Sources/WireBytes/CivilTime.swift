/// Days and times of the Gregorian calendar, in UTC.
public enum CivilTime {
    /// 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z: four digits hold no other years.
    public static let range: ClosedRange<Int64> = -62_167_219_200_000...253_402_300_799_999

    /// The date of a day, counted from 1970-01-01. Not before the year -400.
    public static func date(day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        // The year is taken to begin in March, so that the leap day is its last; 400 years are 146,097 days.
        let shifted = day + 719_468 + 146_097
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + (era - 1) * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }

    /// The day of a date, counted from 1970-01-01. Not before the year -399.
    public static func day(year: Int64, month: Int64, day: Int64) -> Int64 {
        // One era later, so that no division meets a negative number.
        let shifted = (month <= 2 ? year - 1 : year) + 400
        let yearOfEra = shifted % 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return (shifted / 400 - 1) * 146_097 + dayOfEra - 719_468
    }

    /// `2026-11-21 12:03:10`; instants outside ``range`` are clamped.
    public static func text(milliseconds: Int64) -> String {
        let instant = min(max(milliseconds, range.lowerBound), range.upperBound)
        // Towards the past, also before 1970.
        let day = instant / 86_400_000 - (instant % 86_400_000 < 0 ? 1 : 0)
        let second = (instant - day * 86_400_000) / 1000
        let date = date(day: day)
        func padded(_ number: Int64, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
        }
        return padded(date.year, 4) + "-" + padded(date.month, 2) + "-" + padded(date.day, 2) + " "
            + padded(second / 3600, 2) + ":" + padded(second / 60 % 60, 2) + ":" + padded(second % 60, 2)
    }
}
