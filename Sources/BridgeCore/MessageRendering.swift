import ChatModel
import Dialects
import IRCProtocol

/// Turns message bodies into what each side can show.
enum MessageRendering {
    /// What a reply quotes of the message it answers, in characters.
    static let excerptCharacters = 60
    /// … and in bytes, so that a few characters of a thousand marks each do not fill a line.
    static let excerptBytes = 240

    // MARK: - Down

    /// Upstream text without control characters; line ends stay, a tab becomes a blank.
    static func cleanBody(_ text: String) -> String {
        var clean = text
        let isClean = clean.withUTF8 { bytes in
            bytes.allSatisfy { ($0 >= 0x20 && $0 != 0x7F && $0 < 0x80) || $0 == 0x0A }
        }
        if isClean { return clean }
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x0A, 0x0D: scalars.append(scalar)
            case 0x09: scalars.append(" ")
            case 0x85, 0x2028, 0x2029: scalars.append("\n")
            case 0x00..<0x20, 0x7F..<0xA0: break
            default: scalars.append(scalar)
            }
        }
        return String(scalars)
    }

    /// The bodies of the PRIVMSG lines that show `text` and `attachments`, each within `budget` bytes.
    ///
    /// - Parameter backendHost: whose links may hold a token of ours.
    static func bodies(
        text: String, attachments: [ChatAttachment], isEncrypted: Bool, budget: Int, limits: LimitSettings,
        backendHost: String? = nil
    ) -> [String] {
        var bodies: [String] = []
        var byteCount = 0
        var omitted = 0
        if isEncrypted, text.isEmpty { bodies.append("[encrypted message]") }
        let clean = cleanBody(text)
        // Empty lines are not shown; looking at some more than can be shown finds the others.
        let looked = limits.multilineMaxLines * 4
        for line in IRCTextSplitter.lines(clean, maxLines: looked) where !line.isEmpty {
            if bodies.count >= limits.multilineMaxLines || byteCount >= limits.multilineMaxBytes {
                omitted += 1
                continue
            }
            // The piece in which this cuts is over the limit, so it is never shown.
            let looked = limits.multilineMaxBytes - byteCount + 2 * budget
            let head =
                line.utf8.count > looked ? String(decoding: Array(line.utf8.prefix(looked)), as: UTF8.self) : line
            for piece in IRCTextSplitter.split(head, budget: budget) {
                guard bodies.count < limits.multilineMaxLines, byteCount + piece.utf8.count <= limits.multilineMaxBytes
                else {
                    omitted += 1
                    byteCount = limits.multilineMaxBytes
                    break
                }
                bodies.append(piece)
                byteCount += piece.utf8.count
            }
        }
        omitted += max(0, IRCTextSplitter.lineCount(clean) - looked)
        if omitted > 0 { bodies.append("… \(omitted) more line\(omitted == 1 ? "" : "s")") }
        bodies += lines(of: attachments, budget: budget, backendHost: backendHost)
        return bodies
    }

    static func excerpt(_ text: String) -> String {
        // A message may be megabytes long; what cannot be shown is not looked at.
        let head = String(text.unicodeScalars.prefix(excerptCharacters * 8))
        let flat = cleanBody(head).split(whereSeparator: \.isNewline).joined(separator: " ")
        let kept = NickMaker.prefix(of: String(flat.prefix(excerptCharacters)), maxBytes: excerptBytes)
        return kept.utf8.count < flat.utf8.count || head.utf8.count < text.utf8.count ? kept + "…" : kept
    }

    /// `line` as lines that reach every receiver whole: its body is cut where the source in front of it leaves no room.
    ///
    /// The first piece carries all tags, the others none that would make them messages of their own.
    static func pieces(of line: IRCMessage) -> [IRCMessage] {
        guard line.params.count == 2, let source = line.source else { return [line] }
        let budget = IRCTextSplitter.budget(source: source, command: line.command, target: line.params[0])
        let text = line.params[1]
        guard text.utf8.count > budget else { return [line] }
        let bodies: [String]
        if let words = action(text) {
            // Each piece is an ACTION of its own; the marks around it take nine bytes.
            bodies = IRCTextSplitter.split(words, budget: budget - 9).map { "\u{1}ACTION \($0)\u{1}" }
        } else if isForeignCTCP(text) {
            return [line]
        } else {
            bodies = IRCTextSplitter.split(text, budget: budget)
        }
        return bodies.enumerated().map { index, body in
            var piece = line
            piece.params[1] = body
            if index > 0 { piece.tags.removeAll { $0.name == "msgid" || $0.isClientOnly } }
            return piece
        }
    }

    // MARK: - Up

    /// The words of a CTCP ACTION, or nil for an ordinary text.
    static func action(_ text: String) -> String? {
        guard text.hasPrefix("\u{1}ACTION ") else { return nil }
        let words = text.dropFirst(8)
        return String(words.last == "\u{1}" ? words.dropLast() : words)
    }

    /// Whether the text is a CTCP request other than ACTION; those never go upstream.
    static func isForeignCTCP(_ text: String) -> Bool { text.hasPrefix("\u{1}") && action(text) == nil }

    /// Text without IRC formatting codes: bold, italics, underline, strikethrough, monospace, reverse, reset, colours.
    static func withoutFormatting(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 < 0x20 }) else { return text }
        var out = String.UnicodeScalarView()
        let scalars = Array(text.unicodeScalars)
        var index = 0
        func digits(_ most: Int, hex: Bool) {
            var taken = 0
            while taken < most, index < scalars.count, scalars[index].isASCII,
                hex ? scalars[index].properties.isASCIIHexDigit : (0x30...0x39).contains(scalars[index].value)
            {
                index += 1
                taken += 1
            }
        }
        while index < scalars.count {
            let scalar = scalars[index]
            index += 1
            switch scalar.value {
            case 0x03, 0x04:
                // Colour codes carry digits: up to two decimal, or six hexadecimal, and a background after a comma.
                let hex = scalar.value == 0x04
                let start = index
                digits(hex ? 6 : 2, hex: hex)
                if index > start, index + 1 < scalars.count, scalars[index] == ",", scalars[index + 1].isASCII,
                    hex
                        ? scalars[index + 1].properties.isASCIIHexDigit
                        : (0x30...0x39).contains(scalars[index + 1].value)
                {
                    index += 1
                    digits(hex ? 6 : 2, hex: hex)
                }
            case 0x09: out.append(scalar)
            case 0x00..<0x20: break
            default: out.append(scalar)
            }
        }
        return String(out)
    }
}
