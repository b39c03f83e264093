/// The line that a person types, in characters as people count them, with what was typed before.
struct LineEditor {
    /// In UTF-8. More than a message of the bridge has.
    static let maxBytes = 16 * 1024
    private static let maxHistory = 100
    /// Longer than any real character. A heap of accents is shown as several.
    private static let maxCharacterBytes = 64

    private(set) var characters: [Character] = []
    /// In front of this character.
    private(set) var cursor = 0
    private(set) var byteCount = 0
    /// More was typed than fits, or something that is no text: the line is not to be sent.
    private(set) var isTooLong = false
    private(set) var isUnreadable = false
    private var history: [[Character]] = []
    /// What is shown of the history; nil: the line itself.
    private var place: Int?
    private var draft: [Character] = []

    var text: String { String(characters) }
    var isEmpty: Bool { characters.isEmpty }

    mutating func insert(_ scalar: Unicode.Scalar) {
        let added = scalar.utf8.count
        guard byteCount + added <= Self.maxBytes else {
            isTooLong = true
            return
        }
        byteCount += added
        // It may belong to the character before, such as an accent or the next part of an emoji.
        if cursor > 0, characters[cursor - 1].utf8.count < Self.maxCharacterBytes {
            let joined = String(characters[cursor - 1]) + String(Character(scalar))
            if let first = joined.first, joined.index(after: joined.startIndex) == joined.endIndex {
                characters[cursor - 1] = first
                return
            }
        }
        characters.insert(Character(scalar), at: cursor)
        cursor += 1
    }

    mutating func insert(_ text: String) {
        for scalar in text.unicodeScalars { insert(scalar) }
    }

    mutating func markUnreadable() { isUnreadable = true }

    /// Erases these characters.
    private mutating func remove(_ range: Range<Int>) {
        byteCount -= characters[range].reduce(0) { $0 + $1.utf8.count }
        characters.removeSubrange(range)
        cursor = range.lowerBound
        // What could not be read is gone with the rest.
        if characters.isEmpty { (isTooLong, isUnreadable) = (false, false) }
    }

    mutating func backspace() { if cursor > 0 { remove(cursor - 1..<cursor) } }
    mutating func delete() { if cursor < characters.count { remove(cursor..<cursor + 1) } }
    mutating func eraseToEnd() { remove(cursor..<characters.count) }
    mutating func eraseToStart() { remove(0..<cursor) }

    mutating func eraseWord() {
        var start = cursor
        while start > 0, characters[start - 1] == " " { start -= 1 }
        while start > 0, characters[start - 1] != " " { start -= 1 }
        remove(start..<cursor)
    }

    mutating func left() { cursor = max(0, cursor - 1) }
    mutating func right() { cursor = min(characters.count, cursor + 1) }
    mutating func home() { cursor = 0 }
    mutating func end() { cursor = characters.count }

    /// Puts another text there, the cursor behind it.
    mutating func replace(_ range: Range<Int>, by text: String) {
        remove(range)
        insert(text)
    }

    mutating func clear() {
        (characters, cursor, byteCount, place, draft) = ([], 0, 0, nil, [])
        (isTooLong, isUnreadable) = (false, false)
    }

    /// The line is complete.
    ///
    /// - Parameter isKept: the arrows recall it.
    mutating func take(isKept: Bool) -> String {
        defer { clear() }
        if isKept, !characters.isEmpty, history.last != characters {
            history.append(characters)
            if history.count > Self.maxHistory { history.removeFirst() }
        }
        return text
    }

    mutating func earlier() {
        let next = (place ?? history.count) - 1
        guard history.indices.contains(next) else { return }
        if place == nil { draft = characters }
        show(history[next], next)
    }

    mutating func later() {
        guard let place else { return }
        if history.indices.contains(place + 1) { show(history[place + 1], place + 1) } else { show(draft, nil) }
    }

    private mutating func show(_ line: [Character], _ place: Int?) {
        let draft = draft
        characters = line
        byteCount = line.reduce(0) { $0 + $1.utf8.count }
        cursor = line.count
        (self.place, self.draft) = (place, draft)
    }
}
