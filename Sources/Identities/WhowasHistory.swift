import ChatModel

/// The most recently released nicks, for WHOWAS.
package final class WhowasHistory {
    package static let capacity = 500

    package struct Entry {
        package var person: Person
        package var leftAt: ChatTimestamp
    }

    private var entries: [Entry] = []
    /// The oldest, once they are as many as are kept: the next one takes its place.
    private var oldest = 0

    package init() {}

    package func record(_ person: Person, at: ChatTimestamp) {
        let entry = Entry(person: person, leftAt: at)
        guard entries.count >= Self.capacity else { return entries.append(entry) }
        entries[oldest] = entry
        oldest = (oldest + 1) % Self.capacity
    }

    private var inOrder: [Entry] { Array(entries[oldest...] + entries[..<oldest]) }

    package func forget(_ matches: (Person) -> Bool) {
        (entries, oldest) = (inOrder.filter { !matches($0.person) }, 0)
    }

    /// Entries for which `matches` holds, newest first.
    package func find(_ matches: (Person) -> Bool) -> [Entry] { inOrder.reversed().filter { matches($0.person) } }
}
