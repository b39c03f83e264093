import ChatModel
import IRCProtocol

/// Times as the people around the relay have them.
struct LocalTime: Equatable {
    /// `2026-01-31`, to compare.
    let date: String
    /// `18:05`.
    let time: String
    private let dayNumber: Int64

    /// - Parameter offset: of local time, in seconds east of UTC.
    init(_ at: ChatTimestamp, offset: Int) {
        let limit: Int64 = 253_402_300_799_000
        let shifted = min(max(at.milliseconds, 0), limit - 86_400_000) + Int64(offset) * 1000
        let text = IRCServerTime.format(milliseconds: shifted)
        date = String(text.prefix(10))
        time = String(text.dropFirst(11).prefix(5))
        dayNumber = shifted >= 0 ? shifted / 86_400_000 : 0
    }

    /// `Saturday, 31 January 2026`.
    var day: String {
        let parts = date.split(separator: "-")
        guard parts.count == 3, let month = Int(parts[1]), let day = Int(parts[2]),
            Self.months.indices.contains(month - 1)
        else { return date }
        return "\(Self.days[Int(dayNumber % 7)]), \(day) \(Self.months[month - 1]) \(parts[0])"
    }

    /// The first day of the epoch was a Thursday.
    private static let days = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"]
    private static let months = [
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    ]
}
