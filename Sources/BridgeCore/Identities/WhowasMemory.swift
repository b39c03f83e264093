import ChatModel

/// Who was here: the last nicks that left, for WHOWAS.
struct WhowasMemory {
    static let capacity = 500

    struct Entry {
        var person: Person
        var leftAt: ChatTimestamp
    }

    private var entries: [Entry] = []

    mutating func remember(_ person: Person, at: ChatTimestamp) {
        if entries.count >= Self.capacity { entries.removeFirst() }
        entries.append(Entry(person: person, leftAt: at))
    }

    /// Entries for which `matches` holds, newest first.
    func find(_ matches: (Person) -> Bool) -> [Entry] { entries.reversed().filter { matches($0.person) } }
}
