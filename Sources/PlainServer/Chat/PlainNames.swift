/// Names of people and rooms, in sentences for people.
enum PlainNames {
    /// Of a line's `nick!user@host`.
    static func nick(of source: String) -> String { ScreenText.printable(String(source.prefix { $0 != "!" })) }

    /// The same for a name at all times, to choose a colour by.
    static func number(_ nick: String) -> Int {
        nick.lowercased().unicodeScalars.reduce(0) { ($0 &* 31 &+ Int($1.value)) & 0xFFFF }
    }

    static func areSame(_ a: String, _ b: String) -> Bool { a == b || a.lowercased() == b.lowercased() }

    /// "Remy, Linguini and 3 more".
    static func list(_ names: [String], atMost count: Int = 3) -> String {
        guard names.count > count else {
            guard names.count > 1, let last = names.last else { return names.first ?? "" }
            return names.dropLast().joined(separator: ", ") + " and " + last
        }
        return names.prefix(count).joined(separator: ", ") + " and \(names.count - count) more"
    }

    static func excerpt(_ text: String) -> String {
        let line = text.split(separator: "\n").first.map(String.init) ?? ""
        return line.count > 30 ? String(line.prefix(29)) + "…" : line
    }
}

extension StringProtocol {
    /// Without white space at both ends.
    var trimming: String {
        let start = drop(while: \.isWhitespace)
        guard let last = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return String(start[...last])
    }
}
