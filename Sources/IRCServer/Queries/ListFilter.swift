import IRCProtocol

/// The filter of a LIST: names, patterns, and bounds on user counts and ages.
///
/// Source: modern.ircdocs.horse, "ELIST Parameter".
struct ListFilter: Equatable {
    /// The supported conditions.
    static let elist = "CMNTU"
    /// Conditions in one LIST.
    static let maxConditions = 50

    enum Condition: Equatable {
        case fewerPeople(Int)
        case morePeople(Int)
        /// Minutes.
        case createdWithin(Int)
        case createdBefore(Int)
        case topicWithin(Int)
        case topicBefore(Int)
    }

    /// The properties of a room.
    struct Facts {
        var channel: String
        var people: Int
        /// Milliseconds; nil: unknown, and no condition on it is met.
        var age: Int64?
        var topicAge: Int64?
    }

    private var wanted: [IRCMask] = []
    private var unwanted: [IRCMask] = []
    private var conditions: [Condition] = []

    /// - Parameter param: conditions, separated by commas; empty: every room.
    init(_ param: String, casemapping: IRCCasemapping = .ascii) {
        for item in param.split(separator: ",").prefix(Self.maxConditions).map(String.init) {
            if let condition = Self.condition(item) {
                conditions.append(condition)
            } else if item.hasPrefix("!") {
                unwanted.append(IRCMask(String(item.dropFirst()), casemapping: casemapping))
            } else {
                wanted.append(IRCMask(item, casemapping: casemapping))
            }
        }
    }

    private static func condition(_ item: String) -> Condition? {
        let bytes = Array(item.utf8)
        guard let first = bytes.first else { return nil }
        let hasLetter = first == UInt8(ascii: "C") || first == UInt8(ascii: "T")
        let rest = hasLetter ? bytes.dropFirst() : bytes[...]
        guard let sign = rest.first, sign == UInt8(ascii: "<") || sign == UInt8(ascii: ">"),
            let number = number(rest.dropFirst())
        else { return nil }
        let isLess = sign == UInt8(ascii: "<")
        switch (first, isLess) {
        case (UInt8(ascii: "C"), true): return .createdWithin(number)
        case (UInt8(ascii: "C"), false): return .createdBefore(number)
        case (UInt8(ascii: "T"), true): return .topicWithin(number)
        case (UInt8(ascii: "T"), false): return .topicBefore(number)
        case (_, true): return .fewerPeople(number)
        case (_, false): return .morePeople(number)
        }
    }

    /// At most 100,000,000, which is nearly two hundred years in minutes.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard !digits.isEmpty else { return nil }
        var number = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            number = min(number * 10 + Int(digit - UInt8(ascii: "0")), 100_000_000)
        }
        return number
    }

    func passes(_ facts: Facts) -> Bool {
        guard wanted.isEmpty || wanted.contains(where: { $0.matches(facts.channel) }),
            !unwanted.contains(where: { $0.matches(facts.channel) })
        else { return false }
        return conditions.allSatisfy { condition in
            switch condition {
            case .fewerPeople(let count): facts.people < count
            case .morePeople(let count): facts.people > count
            case .createdWithin(let minutes): facts.age.map { $0 < Int64(minutes) * 60_000 } ?? false
            case .createdBefore(let minutes): facts.age.map { $0 > Int64(minutes) * 60_000 } ?? false
            case .topicWithin(let minutes): facts.topicAge.map { $0 < Int64(minutes) * 60_000 } ?? false
            case .topicBefore(let minutes): facts.topicAge.map { $0 > Int64(minutes) * 60_000 } ?? false
            }
        }
    }
}

/// A LIST in progress.
final class RoomListing {
    enum Place {
        /// The open rooms, from this one on.
        case open(next: Int)
        /// Rooms of the template's backend that are not open.
        case unopened(next: Int)
    }

    let filter: ListFilter
    private(set) var place = Place.open(next: 0)
    /// The backend's list of rooms is no longer awaited.
    private(set) var isImpatient = false

    init(filter: ListFilter) { self.filter = filter }

    func listed(openRoom index: Int) { place = .open(next: index + 1) }
    func listedOpenRooms() { place = .unopened(next: 0) }
    func listed(unopenedRoom index: Int) { place = .unopened(next: index + 1) }
    func stopWaiting() { isImpatient = true }
}
