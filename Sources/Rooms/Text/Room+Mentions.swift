import Identities
import WireBytes

// Mentions in the text of either side: IRC users write nicks, upstream people display names.
//
// `nick: …` and `nick, …` at the front, and `@nick` anywhere, are replaced where they exactly name a present person: by
// the name on the way up, by the nick on the way down. All other text is unchanged. IRC users have one name on both
// sides.

extension Room {
    /// Mentions looked up in one message; more than are written by hand.
    static let maxMentions = 20
    /// Bytes of a name that is looked up; realnames are cut at fewer.
    static let maxMentionBytes = 150
    /// Words of a display name.
    static let maxMentionWords = 6

    /// An IRC user's text, with names in place of upstream people's nicks.
    func withNames(_ text: String, _ context: RoomsContext) -> String {
        rewritten(text, maxWords: 1, where: { !$0.contains(0x20) }) { nick in
            guard let (id, person) = context.identities.person(nick: nick), slots.contains(id) else { return nil }
            return person.kind == .local || person.realname.isEmpty ? nick : person.realname
        }
    }

    /// Upstream text, with nicks in place of names of people.
    func withNicks(_ text: String, _ context: RoomsContext) -> String {
        // Most words before a comma or a colon are no name, and making a nick of each would double the cost.
        let mayBeName = { context.identities.isRemote(realname: $0) }
        return rewritten(text, maxWords: Self.maxMentionWords, where: mayBeName) { name in
            let maker = NickGenerator(settings: context.settings.nicks)
            let base = maker.nick(name: name, id: name)
            var found: String?
            // A name that several people share is ambiguous.
            for number in 1...9 {
                let nick = number == 1 ? base : maker.numbered(base, number)
                guard let (id, person) = context.identities.person(nick: nick) else {
                    // The first of several may be gone; there is none after a second that never was.
                    if number == 1 { continue } else { break }
                }
                guard slots.contains(id) else { continue }
                if person.nick == name { return nil }
                guard person.kind != .local, person.realname == name else { continue }
                guard found == nil else { return nil }
                found = person.nick
            }
            return found
        }
    }

    /// - Parameters:
    ///   - mayBeName: a quick look at the bytes of a possible name.
    ///   - replacement: the replacement of a mention; nil: it is none.
    private func rewritten(
        _ text: String, maxWords: Int, where mayBeName: (UnsafeRawBufferPointer) -> Bool,
        _ replacement: (String) -> String?
    ) -> String {
        var text = text
        let changed: String? = text.withUTF8 { bytes in
            guard Mention.mayBe(in: bytes) else { return nil }
            func part(_ range: Range<Int>) -> String {
                String(decoding: UnsafeBufferPointer(rebasing: bytes[range]), as: UTF8.self)
            }
            var out = ""
            var copied = 0
            var left = Self.maxMentions
            func replace(_ range: Range<Int>) -> Bool {
                guard mayBeName(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[range])),
                    let other = replacement(part(range))
                else { return false }
                out += part(copied..<range.lowerBound) + other
                copied = range.upperBound
                return true
            }
            // `ann: …`, `ann, bob: …`
            var front = 0
            while left > 0, let end = Mention.addressEnd(in: bytes, from: front, maxBytes: Self.maxMentionBytes) {
                left -= 1
                guard replace(front..<end) else { break }
                front = min(end + 2, bytes.count)
            }
            var at = front
            while left > 0, let sign = Mention.sign(in: bytes, from: at) {
                left -= 1
                let start = sign + 1
                at = start
                guard sign == 0 || !Mention.isWord(bytes[sign - 1]) else { continue }
                // The longest name wins: `@Ann Lee` is not Ann.
                let ends = Mention.ends(in: bytes, from: start, maxWords: maxWords, maxBytes: Self.maxMentionBytes)
                for end in ends.reversed() where replace(start..<end) {
                    at = end
                    break
                }
            }
            return copied == 0 ? nil : out + part(copied..<bytes.count)
        }
        return changed ?? text
    }
}

/// Where names begin and end in a text. Bytes of ASCII delimit them, so each is a whole text.
private enum Mention {
    typealias Bytes = UnsafeBufferPointer<UInt8>

    /// A quick look: a name may begin behind an `@`, or end before a colon or comma.
    static func mayBe(in bytes: Bytes) -> Bool {
        let (at, colon, comma) = (UInt8(ascii: "@"), UInt8(ascii: ":"), UInt8(ascii: ","))
        var start = 0
        while let place = ByteScan.firstOffset(of: at, colon, comma, in: UnsafeRawBufferPointer(bytes), from: start) {
            if bytes[place] == at || isEndOfAddress(place, in: bytes) { return true }
            start = place + 1
        }
        return false
    }

    /// The place of the next `@`.
    static func sign(in bytes: Bytes, from start: Int) -> Int? {
        let at = UInt8(ascii: "@")
        return ByteScan.firstOffset(of: at, at, at, in: UnsafeRawBufferPointer(bytes), from: start)
    }

    /// Whether a blank or a line end follows a colon or comma.
    private static func isEndOfAddress(_ place: Int, in bytes: Bytes) -> Bool {
        let next = place + 1
        return next == bytes.count || bytes[next] == 0x20 || bytes[next] == 0x0A
    }

    /// Part of a word, or of a character beyond ASCII.
    static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), 0x80...:
            true
        default: false
        }
    }

    /// The end of a name at the beginning of the text, followed by `: ` or `, `, or by the end.
    static func addressEnd(in bytes: Bytes, from start: Int, maxBytes: Int) -> Int? {
        let front = UnsafeRawBufferPointer(bytes).prefix(start + maxBytes + 1)
        guard
            let place = ByteScan.firstOffset(
                of: UInt8(ascii: ":"), UInt8(ascii: ","), 0x0A, in: UnsafeRawBufferPointer(rebasing: front), from: start
            ),
            bytes[place] != 0x0A
        else { return nil }
        return isEndOfAddress(place, in: bytes) && place > start ? place : nil
    }

    /// Possible ends of a name of up to so many words, ascending.
    static func ends(in bytes: Bytes, from start: Int, maxWords: Int, maxBytes: Int) -> [Int] {
        var ends: [Int] = []
        var at = start
        while at < bytes.count, at - start < maxBytes, bytes[at] != 0x0A {
            let next = at + 1
            let isLast = next == bytes.count
            // Nicks contain more than word characters; `@ann.` and `@ann's` are ann all the same.
            if isLast || !isWord(bytes[next]) { ends.append(next) }
            if !isLast, bytes[next] == 0x20, ends.count >= maxWords * 4 { break }
            if bytes[at] == 0x20, maxWords == 1 { break }
            at = next
        }
        return ends
    }
}
