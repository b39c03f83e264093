import ChatModel

/// The most recently released nicks, for WHOWAS.
package final class WhowasHistory {
    package static let capacity = 500

    package struct Entry {
        package var person: Person
        package var leftAt: ChatTimestamp
    }

    private var entries: [Entry] = []

    package init() {}

    package func record(_ person: Person, at: ChatTimestamp) {
        if entries.count >= Self.capacity { entries.removeFirst() }
        entries.append(Entry(person: person, leftAt: at))
    }

    package func forget(_ matches: (Person) -> Bool) { entries.removeAll { matches($0.person) } }

    /// Entries for which `matches` holds, newest first.
    package func find(_ matches: (Person) -> Bool) -> [Entry] { entries.reversed().filter { matches($0.person) } }
}
