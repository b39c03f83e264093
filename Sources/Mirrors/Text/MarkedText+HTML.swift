import WireBytes

extension MarkedText {
    /// A text in the HTML that Teams writes. Unknown elements are left out, their words are not; an unclosed tag is
    /// text. Linear in its length.
    ///
    /// Source:
    /// https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-outgoing-webhook
    package init(html: String) {
        var reader = HTMLReader(html)
        self = reader.read()
    }
}

/// Reads HTML without a tree: each style counts how often it is open, so end tags without a beginning do nothing.
struct HTMLReader {
    private static let styles: [String: MarkedText.Style] = [
        "b": .bold, "strong": .bold, "i": .italic, "em": .italic, "u": .underline, "s": .strikethrough,
        "del": .strikethrough, "strike": .strikethrough, "code": .code,
    ]
    /// Elements that stand on lines of their own.
    private static let paragraphs: Set<String> = [
        "p", "div", "li", "ul", "ol", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "tr",
    ]
    private static let blocks: Set<String> = ["pre", "codeblock"]
    private static let entities = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": " "]
    /// Bytes of the longest entity between `&` and `;`, `#1114111`.
    private static let maxEntityBytes = 8

    private let bytes: [UInt8]
    private var at = 0
    private var text = MarkedText()
    private var words = ""
    private var open: [MarkedText.Style: Int] = [:]
    /// Within a block: its lines.
    private var block: String?
    /// Within a link: its address, and the words so far.
    private var link: (address: String, label: String)?

    init(_ html: String) { bytes = Array(html.utf8) }

    mutating func read() -> MarkedText {
        while at < bytes.count {
            switch bytes[at] {
            case UInt8(ascii: "<"): takeTag()
            case UInt8(ascii: "&"): takeEntity()
            default:
                let end = bytes[at...].firstIndex { $0 == UInt8(ascii: "<") || $0 == UInt8(ascii: "&") } ?? bytes.count
                put(String(decoding: bytes[at..<end], as: UTF8.self))
                at = end
            }
        }
        endLink()
        endBlock()
        flush()
        while case .text(let last, let style)? = text.parts.last, last.last?.isWhitespace == true {
            text.parts.removeLast()
            if let end = last.lastIndex(where: { !$0.isWhitespace }) { text.append(String(last[...end]), style) }
        }
        return text
    }

    private mutating func put(_ text: String) {
        let text = text.filter { $0.isNewline || $0 == "\t" || ($0.asciiValue ?? 0x20) >= 0x20 && $0 != "\u{7F}" }
        if block != nil {
            block?.append(text)
        } else if link != nil {
            link?.label.append(text)
        } else {
            words.append(text)
        }
    }

    /// The words so far become parts; bare addresses in them are links.
    private mutating func flush() {
        let style = open.reduce(MarkedText.Style()) { $1.value > 0 ? $0.union($1.key) : $0 }
        for part in MarkedText(words, as: .plain).parts {
            switch part {
            case .text(let words, _): text.append(words, style)
            case .link(let address, _, _): text.parts.append(.link(address, label: nil, style))
            case .block: break
            }
        }
        words = ""
    }

    private mutating func breakLine() {
        guard block == nil else { return }
        if link == nil, words.isEmpty ? !text.parts.isEmpty : words.last?.isNewline != true { words += "\n" }
    }

    private mutating func endLink() {
        guard let (address, label) = link else { return }
        link = nil
        guard MarkupReader.isAddress(address) else { return put(label) }
        flush()
        text.parts.append(.link(address, label: label.isEmpty || label == address ? nil : label))
    }

    private mutating func endBlock() {
        guard var lines = block else { return }
        block = nil
        if lines.last?.isNewline == true { lines.removeLast() }
        flush()
        text.parts.append(.block(lines))
    }

    private mutating func takeTag() {
        let rest = bytes[(at + 1)...]
        guard let end = rest.firstIndex(where: { $0 == UInt8(ascii: ">") || $0 == UInt8(ascii: "<") }),
            bytes[end] == UInt8(ascii: ">"), let first = rest.first,
            ASCII.isLetter(first) || first == UInt8(ascii: "/") || first == UInt8(ascii: "!")
        else {
            put("<")
            at += 1
            return
        }
        let inner = String(decoding: bytes[(at + 1)..<end], as: UTF8.self)
        at = end + 1
        let isEnd = inner.hasPrefix("/")
        let name = ASCII.lowercased(String(inner.drop { $0 == "/" }.prefix { $0.isLetter || $0.isNumber }))
        if let style = Self.styles[name] {
            flush()
            open[style, default: 0] = max(0, open[style, default: 0] + (isEnd ? -1 : 1))
        } else if Self.blocks.contains(name) {
            endBlock()
            if !isEnd {
                endLink()
                block = ""
            }
        } else if Self.paragraphs.contains(name) {
            breakLine()
        } else {
            takeOther(name, inner, isEnd)
        }
    }

    private mutating func takeOther(_ name: String, _ inner: String, _ isEnd: Bool) {
        switch name {
        case "br": put("\n")
        case "at" where !isEnd: put("@")
        case "a":
            endLink()
            if !isEnd, block == nil { link = (Self.attribute("href", of: inner) ?? "", "") }
        case "img", "emoji": if let shown = Self.attribute("alt", of: inner) { put(shown) }
        default: break
        }
    }

    /// The value of `name="value"`.
    private static func attribute(_ name: String, of tag: String) -> String? {
        for quote in ["\"", "'"] {
            guard let start = tag.firstRange(of: " \(name)=\(quote)")?.upperBound,
                let end = tag[start...].firstIndex(of: Character(quote))
            else { continue }
            return MarkedText(html: String(tag[start..<end].filter { $0 != "<" })).plain
        }
        return nil
    }

    private mutating func takeEntity() {
        let rest = bytes[(at + 1)...].prefix(Self.maxEntityBytes + 1)
        guard let end = rest.firstIndex(of: UInt8(ascii: ";")),
            let character = Self.entity(String(decoding: rest[..<end], as: UTF8.self))
        else {
            put("&")
            at += 1
            return
        }
        put(character)
        at = end + 1
    }

    private static func entity(_ name: String) -> String? {
        guard name.hasPrefix("#") else { return entities[name] }
        let digits = name.dropFirst()
        let isHex = digits.first == "x" || digits.first == "X"
        guard digits.first != "+", let value = isHex ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits),
            let scalar = Unicode.Scalar(value)
        else { return nil }
        return String(Character(scalar))
    }
}
