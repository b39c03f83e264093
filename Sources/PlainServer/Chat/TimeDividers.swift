import ChatModel

/// The lines between messages where a day or some quiet minutes have passed.
struct TimeDividers {
    private static let quietGap: Int64 = 5 * 60 * 1000

    private let offset: (ChatTimestamp) -> Int
    /// Of the message that was shown last.
    private var last: (at: ChatTimestamp, time: LocalTime)?

    /// - Parameter offset: of local time, in seconds east of UTC.
    init(offset: @escaping (ChatTimestamp) -> Int) { self.offset = offset }

    func time(_ at: ChatTimestamp) -> LocalTime { LocalTime(at, offset: offset(at)) }

    /// What is shown next follows nothing.
    mutating func restart() { last = nil }

    mutating func shown(_ at: ChatTimestamp) { last = (at, time(at)) }

    /// The divider that is due in front of a message.
    func divider(before at: ChatTimestamp, now: ChatTimestamp) -> ScreenText? {
        let next = time(at)
        let isOtherDay = next.date != (last?.time ?? time(now)).date
        if isOtherDay { return ScreenText("──── \(next.day) ────", .dim) }
        guard let last, at.milliseconds - last.at.milliseconds > Self.quietGap else { return nil }
        return ScreenText("──── \(next.time) ────", .dim)
    }
}
