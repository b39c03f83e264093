// Links and blocks.

extension MarkupWriter {
    mutating func write(
        _ address: String, _ label: String?, _ style: MarkedText.Style, _ before: Edges.Edge?, _ after: Edges.Edge?
    ) {
        let style = style.subtracting(.code)
        let label = label.map { $0.filter { !$0.isNewline } }
        guard MarkupReader.isAddress(address), let text = link(address, label, before, after),
            text.utf16.count <= limit - Self.minCharacters / 2
        else { return write(MarkedText.plainLink(address, label), writable(style, address)) }
        // A mark behind a bare address would belong to it.
        let isClosed = syntax.hasIRCCodes || text.last == ")" || text.last == ">"
        place(text, isClosed ? writable(style, "") : [], max: text.utf16.count)
        line = .within
    }

    /// Nil: only as words.
    private func link(_ address: String, _ label: String?, _ before: Edges.Edge?, _ after: Edges.Edge?) -> String? {
        func isBlank(_ edge: Edges.Edge?) -> Bool {
            switch edge {
            case nil, .blank?: true
            default: false
            }
        }
        switch syntax.linkForm {
        case .bare: return label == nil || label == address ? encoded(address, "") : nil
        case .slack:
            let url = encoded(address, "<>|").unicodeScalars.map { $0 == "&" ? "&amp;" : String($0) }.joined()
            guard let label, label != address else { return "<\(url)>" }
            let words = label.filter { $0 != "|" }.unicodeScalars.map { entity($0) ?? String($0) }.joined()
            return words.isEmpty ? "<\(url)>" : "<\(url)|\(words)>"
        case .markdown(let hasAngles):
            let url = encoded(address, "()<>[]\\")
            guard let label, !label.isEmpty, label != address else {
                if isBlank(before), isBlank(after), isWhole(address) { return address }
                return hasAngles ? "<\(encoded(address, "<>"))>" : "[\(url)](\(url))"
            }
            return "[\(label.unicodeScalars.map { labelled($0) }.joined())](\(url))"
        }
    }

    private func labelled(_ scalar: Unicode.Scalar) -> String {
        if scalar.value < 0x20 || scalar.value == 0x7F { return "" }
        if syntax.backslashed.contains(scalar) || scalar == "]" && !syntax.backslashed.isEmpty { return "\\\(scalar)" }
        if scalar == "[" || scalar == "]" { return scalar == "[" ? "(" : ")" }
        return String(syntax.substitutes[scalar] ?? scalar)
    }

    /// Whether the bare address is read as one.
    private func isWhole(_ address: String) -> Bool {
        MarkedText(address, as: syntax).parts == [.link(address)]
    }

    /// An address without white space, controls and `others`.
    private func encoded(_ address: String, _ others: String) -> String {
        var text = ""
        for scalar in address.unicodeScalars {
            if scalar.properties.isWhitespace || scalar.value < 0x20 || scalar.value == 0x7F
                || others.unicodeScalars.contains(scalar)
            {
                for byte in String(scalar).utf8 {
                    let hex = String(byte, radix: 16, uppercase: true)
                    text += "%" + (hex.utf8.count < 2 ? "0" : "") + hex
                }
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    mutating func writeBlock(_ block: String) {
        let lines = block.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        breakLine()
        line = .start
        guard syntax.hasFences, !syntax.hasIRCCodes else {
            for text in lines {
                write(String(text), writable(.code, String(text)))
                blanks.append("\n")
                line = .start
            }
            return
        }
        let fence = "```"
        place(fence, [], max: 4 * fence.count)
        for text in lines {
            append("\n")
            let isLong = text.contains { $0.utf16.count > limit / 4 }
            for character in isLong ? text.unicodeScalars.map(Character.init) : Array(text) {
                let scalars = character.unicodeScalars
                let written = scalars.count == 1 ? scalars.first.flatMap(entity) : nil
                let isControl = scalars.first.map { $0.value < 0x20 && $0 != "\t" || $0.value == 0x7F } ?? false
                // A third one would end the block.
                let text =
                    piece.hasSuffix("``") && character == "`"
                    ? "\(MarkupSyntax.guardian)`" : written ?? String(character)
                if isControl { continue }
                if count + text.utf16.count + fence.count + 2 > limit {
                    append("\n" + fence)
                    pieces.append(piece)
                    (piece, count, lastBreak) = ("", 0, nil)
                    append(fence + "\n")
                }
                append(text)
            }
        }
        append("\n" + fence)
        lastBreak = nil
        blanks = "\n"
        line = .start
    }
}
