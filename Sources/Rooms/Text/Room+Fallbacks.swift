import ChatModel
import Identities
import Upstream

// Textual fallbacks for clients without tags.

extension Room {
    /// The addressee of a reply for clients without tags: `ann: `; nil where the text names them already.
    package func address(ofReplyTo msgid: String?, by nick: String, _ text: String) -> String? {
        guard let msgid, let original = recent.entry(msgid: msgid), !original.isTakenBack, !original.nick.isEmpty,
            original.nick != nick
        else { return nil }
        let rest = text.utf8.dropFirst(original.nick.utf8.count).first
        if text.hasPrefix(original.nick), rest == UInt8(ascii: ":") || rest == UInt8(ascii: ",") { return nil }
        return text.hasPrefix("@" + original.nick) ? nil : original.nick + ": "
    }

    /// Whether a person is the author of a message; the nick alone may be another's by now.
    func isAuthor(_ person: Person, of original: RecentLog.Entry, _ context: RoomsContext) -> Bool {
        switch person.kind {
        case .local: original.puppet == context.identities.puppetID(of: person, backend: settings.backend)
        case .remote(let key):
            original.puppet == nil
                && key == IdentityMap.remoteKey(personBehind(named(original.sender)), backend: settings.backend)
        }
    }

    // MARK: - Edits

    /// Words that a substitution replaces, at most.
    private static let maxSubstitutedWords = 4

    /// A short change in the customary notation, `s/old/new/`; nil where the complete new text is clearer.
    ///
    /// The replaced text occurs once in the old text and contains no slash, so the notation is unambiguous.
    static func substitution(from old: String, to new: String) -> String? {
        guard !old.utf8.contains(0x0A), !new.utf8.contains(0x0A) else { return nil }
        let before = old.split(separator: " ", omittingEmptySubsequences: false)
        let after = new.split(separator: " ", omittingEmptySubsequences: false)
        var front = 0
        while front < before.count, front < after.count, before[front] == after[front] { front += 1 }
        var back = 0
        while back < before.count - front, back < after.count - front,
            before[before.count - 1 - back] == after[after.count - 1 - back]
        {
            back += 1
        }
        // Inserted words alone need a neighbour to show their place.
        if before.count - back == front || after.count - back == front {
            if front > 0 { front -= 1 } else if back > 0 { back -= 1 }
        }
        let replaced = before[front..<(before.count - back)]
        let replacing = after[front..<(after.count - back)]
        guard !replaced.isEmpty, !replacing.isEmpty, replaced.count <= maxSubstitutedWords,
            replacing.count <= maxSubstitutedWords
        else { return nil }
        let from = replaced.joined(separator: " ")
        let to = replacing.joined(separator: " ")
        guard !from.isEmpty, !from.utf8.contains(UInt8(ascii: "/")), !to.utf8.contains(UInt8(ascii: "/")),
            old.ranges(of: from).count == 1
        else { return nil }
        let line = "s/\(from)/\(to)/"
        return line.utf8.count * 2 <= new.utf8.count ? line : nil
    }
}
