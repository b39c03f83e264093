/// Columns that characters take in a terminal.
enum TextWidth {
    static func of(_ character: Character) -> Int {
        var width = 0
        for scalar in character.unicodeScalars {
            // What follows in a character changes its form and not its width, but for the mark that makes it an emoji.
            if scalar.value == 0xFE0F { return max(width, 2) }
            if width == 0 { width = of(scalar) }
        }
        // A flag is two letters that are narrow by themselves.
        if width == 1, let first = character.unicodeScalars.first, (0x1F1E6...0x1F1FF).contains(first.value) {
            return 2
        }
        return width
    }

    static func of(_ characters: some Sequence<Character>) -> Int { characters.reduce(0) { $0 + of($1) } }

    private static func of(_ scalar: Unicode.Scalar) -> Int {
        if scalar.value < 0x300 { return scalar.value < 0x20 || scalar.value == 0xAD ? 0 : 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        // The vowels and finals of a Hangul syllable join the wide consonant before them.
        if (0x1160...0x11FF).contains(scalar.value) { return 0 }
        return isWide(scalar.value) ? 2 : 1
    }

    private static func isWide(_ code: UInt32) -> Bool {
        guard code >= 0x1100 else { return false }
        let ranges = WideCharacters.ranges
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < code { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].contains(code)
    }
}
