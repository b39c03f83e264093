import BridgeTypes
import WireBytes

extension MarkedText {
    /// A text as the syntax has it. Any text is one: marks without an end are characters. Linear in its length.
    ///
    /// - Parameter names: the names behind ids in mentions, where the tool tells them apart.
    package init(_ text: String, as syntax: MarkupSyntax, names: [String: String] = [:]) {
        var reader = MarkupReader(text, syntax, names)
        self = reader.read()
    }
}

/// Reads one text in one pass.
///
/// A mark that may begin something is put on a stack, once for each kind: so the stack is short, and a mark that ends
/// something is found at once. Marks that were opened within it and did not end are characters. Whatever looks ahead
/// stops where the next of its kind begins, so that no byte is looked at more than a few times.
struct MarkupReader {
    enum Node {
        case text(String, MarkedText.Style)
        case mark(UInt8, count: Int, MarkedText.Style, Role)
        case link(String, label: String?, MarkedText.Style)
        case block(String)
    }

    enum Role { case unmatched, opening, closing }

    private struct Opening {
        var byte: UInt8
        var count: Int
        var node: Int
    }

    let syntax: MarkupSyntax
    let names: [String: String]
    let bytes: [UInt8]
    private let guards: Set<Unicode.Scalar>
    var at = 0
    private var nodes: [Node] = []
    /// Characters since the last node.
    var words: [UInt8] = []
    private var openings: [Opening] = []
    /// By formatting codes.
    var toggled: MarkedText.Style = []

    init(_ text: String, _ syntax: MarkupSyntax, _ names: [String: String]) {
        self.syntax = syntax
        self.names = names
        bytes = Array(text.utf8)
        guards = syntax.guards
    }

    mutating func read() -> MarkedText {
        while at < bytes.count {
            let isTaken =
                switch bytes[at] {
                case ..<0x20, 0x7F: control()
                case UInt8(ascii: "\\"): escape()
                case UInt8(ascii: "`"): code()
                case UInt8(ascii: "<"): angles()
                case UInt8(ascii: "["): markdownLink()
                case UInt8(ascii: "&"): entity()
                case UInt8(ascii: "h"), UInt8(ascii: "H"): address()
                case 0xE2: guardian()
                case let byte where syntax.emphases[byte] != nil: emphasis()
                default: false
                }
            if !isTaken { takeByte() }
        }
        flush()
        return assembled()
    }

    private mutating func takeByte() {
        words.append(bytes[at])
        at += 1
    }

    private mutating func flush() {
        guard !words.isEmpty else { return }
        nodes.append(.text(String(decoding: words, as: UTF8.self), toggled))
        words = []
    }

    mutating func add(_ node: Node) {
        flush()
        nodes.append(node)
    }

    private func assembled() -> MarkedText {
        var text = MarkedText()
        var active: [MarkedText.Style] = []
        var style: MarkedText.Style { active.reduce([]) { $0.union($1) } }
        for node in nodes {
            switch node {
            case .text(let words, let own): text.append(words, style.union(own))
            case .link(let address, let label, let own):
                text.parts.append(.link(address, label: label, style.union(own)))
            case .block(let lines): text.parts.append(.block(lines))
            case .mark(let byte, let count, let own, let role):
                switch role {
                case .unmatched: text.append(String(repeating: String(UnicodeScalar(byte)), count: count), style)
                case .opening: active.append(own)
                case .closing: if let last = active.lastIndex(of: own) { active.remove(at: last) }
                }
            }
        }
        return text
    }

    // MARK: - What stands around

    /// The scalar that ends before an offset; nil: none, at the beginning.
    func scalar(before offset: Int) -> Unicode.Scalar? {
        guard offset > 0 else { return nil }
        var start = offset - 1
        while start > 0, bytes[start] & 0xC0 == 0x80 { start -= 1 }
        return String(decoding: bytes[start..<offset], as: UTF8.self).unicodeScalars.first
    }

    private func scalar(at offset: Int) -> Unicode.Scalar? {
        guard offset < bytes.count else { return nil }
        var end = offset + 1
        while end < bytes.count, bytes[end] & 0xC0 == 0x80 { end += 1 }
        return String(decoding: bytes[offset..<end], as: UTF8.self).unicodeScalars.first
    }

    func isWord(_ scalar: Unicode.Scalar?) -> Bool { scalar.map(MarkupSyntax.isWord) ?? false }

    private func isBlank(_ offset: Int) -> Bool {
        !bytes.indices.contains(offset) || bytes[offset] <= 0x20
    }

    func starts(_ text: StaticString, at offset: Int) -> Bool {
        let count = text.utf8CodeUnitCount
        guard bytes.count - offset >= count else { return false }
        return UnsafeBufferPointer(start: text.utf8Start, count: count).elementsEqual(bytes[offset..<(offset + count)])
    }

    /// The end of the run of `byte` that begins at an offset.
    private func endOfRun(_ byte: UInt8, from offset: Int) -> Int {
        bytes[offset...].firstIndex { $0 != byte } ?? bytes.count
    }

    /// The first of `stops` from an offset on.
    func first(_ stops: StaticString, from offset: Int) -> Int? {
        let stops = UnsafeBufferPointer(start: stops.utf8Start, count: stops.utf8CodeUnitCount)
        return bytes[min(offset, bytes.count)...].firstIndex { stops.contains($0) }
    }

    func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    // MARK: - Characters

    private mutating func control() -> Bool {
        let byte = bytes[at]
        switch byte {
        case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
            if syntax.hasIRCCodes {
                flush()
                toggled = []
            }
            if syntax.marksEndWithLine || words.last == UInt8(ascii: "\n") { openings = [] }
            words.append(UInt8(ascii: "\n"))
            at += byte == UInt8(ascii: "\r") && at + 1 < bytes.count && bytes[at + 1] == UInt8(ascii: "\n") ? 2 : 1
        case UInt8(ascii: "\t"): takeByte()
        default:
            at += 1
            if syntax.hasIRCCodes { formattingCode(byte) }
        }
        return true
    }

    /// Source: https://modern.ircdocs.horse/formatting
    private mutating func formattingCode(_ byte: UInt8) {
        switch byte {
        case 0x03: skipColours(ASCII.isDigit, maxDigits: 2)
        case 0x04: skipColours(ASCII.isHexDigit, maxDigits: 6)
        case 0x0F:
            flush()
            toggled = []
        default:
            guard let mark = syntax.marks.first(where: { $0.text.utf8.elementsEqual([byte]) }) else { return }
            flush()
            toggled.formSymmetricDifference(mark.style)
        }
    }

    private mutating func skipColours(_ isDigit: (UInt8) -> Bool, maxDigits: Int) {
        let foreground = bytes[at...].prefix(maxDigits).prefix(while: isDigit).count
        at += foreground
        guard foreground > 0, at < bytes.count, bytes[at] == UInt8(ascii: ",") else { return }
        let background = bytes[(at + 1)...].prefix(maxDigits).prefix(while: isDigit).count
        if background > 0 { at += 1 + background }
    }

    private mutating func escape() -> Bool {
        guard !syntax.backslashed.isEmpty, let next = scalar(at: at + 1), next.value < 0x80,
            next.properties.generalCategory.isPunctuation
        else { return false }
        at += 1
        takeByte()
        return true
    }

    private mutating func entity() -> Bool {
        guard syntax.hasEntities else { return false }
        for (name, byte) in MarkupReader.entities where starts(name, at: at) {
            words.append(byte)
            at += name.utf8CodeUnitCount
            return true
        }
        return false
    }

    private static let entities: [(StaticString, UInt8)] = [
        ("&amp;", UInt8(ascii: "&")), ("&lt;", UInt8(ascii: "<")), ("&gt;", UInt8(ascii: ">")),
    ]

    func withoutEntities(_ text: String) -> String {
        guard syntax.hasEntities, text.utf8.contains(UInt8(ascii: "&")) else { return text }
        return text.replacing("&lt;", with: "<").replacing("&gt;", with: ">").replacing("&amp;", with: "&")
    }

    /// A zero-width space of the writer's is left out.
    private mutating func guardian() -> Bool {
        let end = at + 3
        guard scalar(at: at) == MarkupSyntax.guardian,
            [scalar(before: at), scalar(at: end)].contains(where: { $0.map(guards.contains) ?? false })
        else { return false }
        at = end
        return true
    }

    /// Whether zero-width spaces are on both sides.
    private func isGuarded(_ start: Int, _ end: Int) -> Bool {
        scalar(before: start) == MarkupSyntax.guardian && scalar(at: end) == MarkupSyntax.guardian
    }

    // MARK: - Marks

    private mutating func emphasis() -> Bool {
        let byte = bytes[at]
        guard let meaning = syntax.emphases[byte] else { return false }
        let start = at
        let end = endOfRun(byte, from: start)
        at = end
        var rest = end - start
        let (before, after) = (scalar(before: start), scalar(at: end))
        let isBound = syntax.wordBound.contains(UnicodeScalar(byte))
        if !isBlank(start - 1), !(isBound && isWord(after)) {
            while let open = openings.lastIndex(where: { $0.byte == byte && $0.count <= rest }) {
                let opening = openings[open]
                guard let style = style(meaning, opening.count) else { break }
                nodes[opening.node] = .mark(byte, count: opening.count, style, .opening)
                add(.mark(byte, count: opening.count, style, .closing))
                openings.removeSubrange(open...)
                rest -= opening.count
            }
        }
        let mayOpen = !isBlank(end) && !(isBound && isWord(before)) && rest <= 3
        for count in rest == 3 ? [2, 1] : rest > 0 ? [rest] : [] {
            if mayOpen, let style = style(meaning, count),
                !openings.contains(where: { $0.byte == byte && $0.count == count })
            {
                add(.mark(byte, count: count, style, .unmatched))
                openings.append(Opening(byte: byte, count: count, node: nodes.count - 1))
            } else {
                words += [UInt8](repeating: byte, count: count)
            }
        }
        return true
    }

    private func style(_ emphasis: MarkupSyntax.Emphasis, _ count: Int) -> MarkedText.Style? {
        count == 1 ? emphasis.one : count == 2 ? emphasis.two : nil
    }

    private mutating func code() -> Bool {
        guard syntax.hasCode else { return false }
        let tick = UInt8(ascii: "`")
        let start = endOfRun(tick, from: at)
        let count = start - at
        if count >= 3, syntax.hasFences, let end = fence(from: start) {
            addBlock(start..<end)
            at = endOfRun(tick, from: end)
            if at < bytes.count, bytes[at] == UInt8(ascii: "\n") { at += 1 }
            return true
        }
        if count < 3, !isGuarded(at, start) {
            var search = start
            while let end = first("`\n", from: search), bytes[end] == tick {
                search = endOfRun(tick, from: end)
                guard search - end == count else { continue }
                flush()
                let words = withoutEntities(text(start..<end)).filter { $0 == "\t" || ($0.asciiValue ?? 0x20) >= 0x20 }
                if !words.isEmpty { nodes.append(.text(words, toggled.union(.code))) }
                at = search
                return true
            }
        }
        words += bytes[at..<start]
        at = start
        return true
    }

    /// Where the next fence begins.
    private func fence(from offset: Int) -> Int? {
        var search = offset
        while let end = first("`", from: search) {
            search = endOfRun(UInt8(ascii: "`"), from: end)
            if search - end >= 3 { return end }
        }
        return nil
    }

    private mutating func addBlock(_ range: Range<Int>) {
        var lines = bytes[range].filter { $0 >= 0x20 && $0 != 0x7F || $0 == UInt8(ascii: "\n") || $0 == 0x09 }[...]
        if let end = lines.firstIndex(of: UInt8(ascii: "\n")) {
            let isLanguage = lines[..<end].allSatisfy {
                ASCII.isLetter($0) || ASCII.isDigit($0) || "+-#._".utf8.contains($0)
            }
            if end == lines.startIndex || syntax.fenceHasLanguage && isLanguage { lines = lines[(end + 1)...] }
        }
        if lines.last == UInt8(ascii: "\n") { lines.removeLast() }
        if words.last == UInt8(ascii: "\n") { words.removeLast() }
        add(.block(withoutEntities(String(decoding: lines, as: UTF8.self))))
    }
}

extension Unicode.GeneralCategory {
    /// ASCII punctuation in the sense of CommonMark §2.1, symbols included.
    fileprivate var isPunctuation: Bool {
        switch self {
        case .connectorPunctuation, .dashPunctuation, .openPunctuation, .closePunctuation, .initialPunctuation,
            .finalPunctuation, .otherPunctuation, .mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol:
            true
        default: false
        }
    }
}
