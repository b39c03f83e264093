import WireBytes

/// The visitor's answers: one table, read from the top, the first row that fits.
enum StudioScript {
    /// Values for a text.
    struct Facts {
        /// The addressee, printable.
        var name: String
        var room: String
        /// `14:03:07 UTC`.
        var time: String
    }

    typealias Text = @Sendable (Facts) -> String

    struct Row: Sendable {
        /// For tests and readers.
        var topic: String
        /// The row fits a message that has one of these, in lower case.
        var words: Set<String>
        /// How long the visitor types before the answer.
        var typing = StudioScript.typing
        /// Whether the answer greets by itself.
        var greets = false
        /// Taken in turn.
        var texts: [Text]
    }

    /// Long enough to be seen, short enough not to be waited for.
    static let typing = Duration.seconds(2)
    /// Longer than a client shows one typing notice, so that the refreshes are seen to work.
    static let longTyping = Duration.seconds(8)

    // MARK: - The table

    static let quietTopic = "quiet"

    static let rows: [Row] = [
        Row(topic: "ping", words: ["ping"], texts: [{ "\($0.name): pong" }]),
        Row(
            topic: quietTopic, words: ["stop", "quiet", "silence", "shush", "hush", "enough"],
            texts: [{ "\($0.name): I will be quiet. Say my name, Remy, when you want me back." }]),
        Row(
            topic: "typing", words: ["typing", "type", "types"], typing: longTyping,
            texts: [
                { "\($0.name): that was eight seconds of typing. Clients that know +typing showed it all along." }
            ]),
        Row(
            topic: "receipts", words: ["read", "receipt", "receipts", "seen"],
            texts: [
                {
                    "\($0.name): I send a read receipt about a second after each message. IRC users with a read marker "
                        + "send theirs when they move it."
                }
            ]),
        Row(
            topic: "time", words: ["time", "clock", "date"],
            texts: [{ "\($0.name): it is \($0.time) on this machine." }]),
        Row(
            topic: "help", words: ["help", "commands", "usage"],
            texts: [
                {
                    "\($0.name): say hello, ping, typing, read or time, or ask me something. A word like ping-42 is "
                        + "answered pong-42 at once. Say stop, and I am quiet."
                }
            ]),
        Row(
            topic: "thanks", words: ["thanks", "thank", "merci", "danke"], texts: [{ "You are welcome, \($0.name)." }]),
        Row(topic: "goodbye", words: ["bye", "goodbye", "ciao"], texts: [{ "See you, \($0.name)." }]),
        Row(
            topic: "hello", words: ["hello", "hi", "hey", "hallo", "salut", "bonjour", "moin", "welcome"],
            greets: true,
            texts: [
                { "Hello \($0.name). You are talking to a chat backend now, and I see you as one of its own people." },
                { "Hello again, \($0.name). Say help to hear what I know." },
            ]),
    ]

    /// For a message that ends in a question mark and fits no row.
    static let question = Row(
        topic: "question", words: [],
        texts: [
            { "\($0.name): good question. I am a short script, so I would rather not guess." },
            { "\($0.name): I only know this room, \($0.room). Say help for the rest of my world." },
            { "\($0.name): probably. But do not take a script's word for it." },
        ])

    /// For everything else: each explains one thing that the bridge does.
    static let features = Row(
        topic: "feature", words: [],
        texts: [
            { "Noted, \($0.name). Your line came to me as a JSON message over a WebSocket." },
            { "By the way, \($0.name): what I type reaches IRC as +typing, and yours reaches me." },
            { "\($0.name), when my read receipt arrives your client may mark the line as seen." },
            { "Every message here has an id, \($0.name). IRC clients get the same one as msgid." },
            {
                "If this backend went away, \($0.name), the bridge would hold your lines and send them when it is back."
            },
            { "Long lines are fine, \($0.name): the bridge splits and joins them on the IRC side." },
            { "I keep one id whatever I am called, \($0.name), so your client always knows it is me." },
        ])

    /// - Parameter who: one name, or several as a list.
    static func greeting(_ who: String, room: String) -> String {
        "Welcome to \(room), \(who). I am the visitor of this practice room; say help to hear what I know."
    }

    /// Before the first answer to a person without a greeting.
    static func preface(_ name: String) -> String { "Hello \(name). " }

    static func pong(_ name: String, _ token: String) -> String { "\(name): pong-\(token)" }

    // MARK: - Reading a message

    /// Bytes of a message in which words are looked for.
    static let maxScannedBytes = 2048
    /// Bytes of the token behind `ping-`; the rest is cut.
    static let maxTokenBytes = 64
    /// Characters of a name that are repeated.
    static let maxNameLength = 40
    /// Names in one greeting; beyond, "and others".
    static let maxGreetedNames = 5

    /// The row for `text`.
    static func row(for text: String) -> Row {
        let words = words(of: text)
        if let row = rows.first(where: { !$0.words.isDisjoint(with: words) }) { return row }
        let last = text.utf8.reversed().first { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 }
        return last == UInt8(ascii: "?") ? question : features
    }

    /// Whether `name`, ASCII letters, is a word of `text`.
    static func calls(_ name: String, in text: String) -> Bool { words(of: text).contains(ASCII.lowercased(name)) }

    /// Runs of ASCII letters, in lower case.
    private static func words(of text: String) -> Set<String> {
        let pieces = text.utf8.prefix(maxScannedBytes).split { !ASCII.isLetter($0) }
        return Set(pieces.map { String(decoding: $0.map(ASCII.lowercased), as: UTF8.self) })
    }

    /// The token behind the first `ping-` that begins a word: ASCII letters, digits, `-` and `_`.
    static func pingToken(in text: String) -> String? {
        let bytes = Array(text.utf8)
        let sign = Array("ping-".utf8)
        var start = 0
        while let end = end(of: sign, in: bytes, from: &start) {
            let token = bytes[end...].prefix(maxTokenBytes).prefix(while: isTokenByte)
            if !token.isEmpty { return String(decoding: token, as: UTF8.self) }
        }
        return nil
    }

    /// The index after the next `sign` at the start of a word, and moves `start` there.
    private static func end(of sign: [UInt8], in bytes: [UInt8], from start: inout Int) -> Int? {
        while bytes.count - start > sign.count {
            let index = start
            start += 1
            let isInWord = index > 0 && (isTokenByte(bytes[index - 1]) || bytes[index - 1] >= 0x80)
            guard !isInWord, zip(sign, bytes[index...]).allSatisfy({ $0 == ASCII.lowercased($1) }) else { continue }
            start = index + sign.count
            return start
        }
        return nil
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    // MARK: - Words for people

    /// `name` without controls, cut to ``maxNameLength``; "friend" when nothing is left.
    static func printable(_ name: String?) -> String {
        guard let name else { return "friend" }
        var kept = String.UnicodeScalarView()
        for scalar in name.unicodeScalars.prefix(maxNameLength) where !isControl(scalar) { kept.append(scalar) }
        return kept.allSatisfy { $0 == " " } ? "friend" : String(kept)
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

    /// `a`, `a and b`, `a, b and c`, `a, b and others`.
    static func list(_ names: [String]) -> String {
        guard let first = names.first else { return "everybody" }
        guard names.count > 1, let last = names.last else { return first }
        if names.count > maxGreetedNames {
            return names.prefix(maxGreetedNames).joined(separator: ", ") + " and others"
        }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }

    /// The time of day of `milliseconds` since 1970.
    static func timeOfDay(_ milliseconds: Int64) -> String {
        let day: Int64 = 86_400_000
        let rest = (milliseconds % day + day) % day / 1000
        return [rest / 3600, rest / 60 % 60, rest % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
            + " UTC"
    }
}
