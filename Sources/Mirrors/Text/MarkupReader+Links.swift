import WireBytes

// Links, and what else stands between brackets.

extension MarkupReader {
    static func isAddress(_ text: some StringProtocol) -> Bool {
        for scheme in ["https://", "http://"] where text.utf8.count > scheme.utf8.count {
            if ASCII.equalsIgnoringCase(text.prefix(scheme.count), scheme) { return true }
        }
        return false
    }

    mutating func address() -> Bool {
        guard !isWord(scalar(before: at)), Self.isAddress(text(at..<min(at + 9, bytes.count))) else { return false }
        var end =
            first("\0\t\n\r <>\"`|\u{02}\u{03}\u{04}\u{0F}\u{11}\u{16}\u{1D}\u{1E}\u{1F}", from: at) ?? bytes.count
        var unclosed = bytes[at..<end].reduce(0) {
            $0 + ($1 == UInt8(ascii: "(") ? 1 : $1 == UInt8(ascii: ")") ? -1 : 0)
        }
        trimming: while end > at {
            switch bytes[end - 1] {
            case UInt8(ascii: ")"):
                guard unclosed < 0 else { break trimming }
                unclosed += 1
            case UInt8(ascii: "."), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: ":"), UInt8(ascii: "!"),
                UInt8(ascii: "?"), UInt8(ascii: "'"), UInt8(ascii: "]"), UInt8(ascii: "}"):
                break
            case let byte where syntax.emphases[byte] != nil: break
            default: break trimming
            }
            end -= 1
        }
        let url = text(at..<end)
        guard Self.isAddress(url) else { return false }
        add(.link(url, label: nil, toggled))
        at = end
        return true
    }

    mutating func markdownLink() -> Bool {
        guard syntax.hasMarkdownLinks else { return false }
        var label: [UInt8] = []
        var index = at + 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "]") {
            let isEscape = bytes[index] == UInt8(ascii: "\\") && !syntax.backslashed.isEmpty && index + 1 < bytes.count
            if isEscape { index += 1 }
            if bytes[index] == UInt8(ascii: "[") && !isEscape || bytes[index] == UInt8(ascii: "\n") { return false }
            label.append(bytes[index])
            index += 1
        }
        guard starts("](", at: index) else { return false }
        let start = index + 2
        var depth = 0
        guard
            let end = bytes[start...].firstIndex(where: {
                depth += $0 == UInt8(ascii: "(") ? 1 : $0 == UInt8(ascii: ")") ? -1 : 0
                return depth < 0 || $0 <= 0x20 || $0 == UInt8(ascii: "[")
            }), depth < 0
        else { return false }
        var url = text(start..<end)
        if url.hasPrefix("<"), url.hasSuffix(">") { url = String(url.dropFirst().dropLast()) }
        guard Self.isAddress(url) else { return false }
        if isImage { words.removeLast() }
        addLink(url, String(decoding: label, as: UTF8.self))
        at = end + 1
        return true
    }

    /// An unescaped `!` stands before the bracket.
    private var isImage: Bool {
        guard at > 0, bytes[at - 1] == UInt8(ascii: "!"), words.last == UInt8(ascii: "!") else { return false }
        return syntax.backslashed.isEmpty || at == 1 || bytes[at - 2] != UInt8(ascii: "\\")
    }

    private mutating func addLink(_ url: String, _ label: String?) {
        add(.link(url, label: label == url || label?.isEmpty == true ? nil : label, toggled))
    }

    mutating func angles() -> Bool {
        guard let end = first("<>\n", from: at + 1), bytes[end] == UInt8(ascii: ">"), end > at + 1 else { return false }
        let inner = text((at + 1)..<end)
        let isTaken =
            switch syntax.angleForm {
            case .none: false
            case .address: link(inner, label: nil)
            case .discord: link(inner, label: nil) || discordReference(inner)
            case .slack: slackReference(inner)
            }
        if isTaken { at = end + 1 }
        return isTaken
    }

    private mutating func link(_ url: String, label: String?) -> Bool {
        guard Self.isAddress(url), !url.utf8.contains(where: { $0 <= 0x20 }) else { return false }
        addLink(url, label)
        return true
    }

    private mutating func take(_ text: String) -> Bool {
        words += text.utf8
        return true
    }

    /// Source: https://docs.slack.dev/messaging/formatting-message-text#retrieving-messages
    private mutating func slackReference(_ inner: String) -> Bool {
        let bar = inner.firstIndex(of: "|") ?? inner.endIndex
        let target = withoutEntities(String(inner[..<bar]))
        let label = bar < inner.endIndex ? withoutEntities(String(inner[inner.index(after: bar)...])) : nil
        let id = String(target.dropFirst())
        switch target.first {
        case "@": return take("@" + (label ?? names[id] ?? id))
        case "#": return take("#" + (label ?? names[id] ?? id))
        case "!":
            if id.hasPrefix("date^") || id.hasPrefix("subteam^") { return take(label ?? "@group") }
            return take("@" + id)
        default:
            if link(target, label: label) { return true }
            guard let colon = target.firstIndex(of: ":"), !target.contains(" ") else { return false }
            return take(label ?? String(target[target.index(after: colon)...]))
        }
    }

    /// Source: https://discord.com/developers/docs/reference#message-formatting
    private mutating func discordReference(_ inner: String) -> Bool {
        let id = String(inner.drop { !("0"..."9").contains($0) })
        let prefix = inner.dropLast(id.count)
        let isID = !id.isEmpty && id.utf8.allSatisfy(ASCII.isDigit)
        switch prefix {
        case "@", "@!": return isID && take("@" + (names[id] ?? id))
        case "@&": return isID && take("@" + (names[id] ?? "role"))
        case "#": return isID && take("#" + (names[id] ?? id))
        default:
            let parts = inner.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 3, parts[0] == "" || parts[0] == "a", !parts[1].isEmpty,
                !parts[2].isEmpty, parts[2].utf8.allSatisfy(ASCII.isDigit)
            else { return false }
            return take(":\(parts[1]):")
        }
    }
}
