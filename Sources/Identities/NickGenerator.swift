import BridgeTypes
import Digests
@_spi(_Unicode) import Swift

/// Derives IRC nicks from display names.
package struct NickGenerator {
    package let settings: NickSettings

    package init(settings: NickSettings) { self.settings = settings }

    /// A legal nick for `name`: normalised, illegal characters replaced, runs of them collapsed, truncated between characters.
    ///
    /// - Returns: at most ``NickSettings/maxBytes`` bytes; `user-` and eight hexadecimal digits made from `id` when
    ///   no character of the name is left.
    package func nick(name: String?, id: String) -> String {
        let body = Self.legalBody(of: name ?? "", utf8: settings.utf8, invalid: settings.invalid)
        let room = max(settings.maxBytes - settings.suffix.utf8.count, 1)
        let head = PrintableText.prefix(of: body, maxBytes: room)
        let base = head.isEmpty ? "user-" + Self.eightHexDigits(of: id) : head
        return base + settings.suffix
    }

    /// `base` with `number` (2 and up) appended, truncated to fit.
    package func numbered(_ base: String, _ number: Int) -> String {
        let tail: String
        switch settings.collision {
        case .number: tail = String(number)
        // bob_, bob__, then numbers: longer rows of underscores are hard to distinguish.
        case .underscore: tail = number <= 3 ? String(repeating: "_", count: number - 1) : "_" + String(number)
        }
        return PrintableText.prefix(of: base, maxBytes: max(settings.maxBytes - tail.utf8.count, 1)) + tail
    }

    private static func legalBody(of name: String, utf8: Bool, invalid: String) -> String {
        var scalars = String.UnicodeScalarView()
        var pendingGap = false
        func put(_ scalar: Unicode.Scalar) {
            if pendingGap, !scalars.isEmpty { scalars.append(contentsOf: invalid.unicodeScalars) }
            pendingGap = false
            if scalars.isEmpty, (0x30...0x39).contains(scalar.value) { scalars.append("_") }
            scalars.append(scalar)
        }
        func consider(_ scalar: Unicode.Scalar) {
            switch classify(scalar, utf8: utf8) {
            // A leading combining mark would attach to the character that a client shows before the nick.
            case .copy where scalars.isEmpty && isMark(scalar): break
            case .copy: put(scalar)
            case .drop: break
            case .gap: pendingGap = true
            }
        }
        // A name may be megabytes long; 512 code points are enough for 30 bytes.
        let head = String(name.unicodeScalars.prefix(512))
        if utf8 {
            for scalar in head._nfc { consider(scalar) }
        } else {
            for scalar in head._nfd { consider(scalar) }
        }
        return String(scalars)
    }

    private enum Treatment { case copy, drop, gap }

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: true
        default: false
        }
    }

    private static func classify(_ scalar: Unicode.Scalar, utf8: Bool) -> Treatment {
        if scalar.isASCII {
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "_", "[", "]", "{", "}", "\\", "|", "^", "`": return .copy
            default: return .gap
            }
        }
        // Variation selectors, fillers and joiners are invisible: nicks that differ in one look the same.
        if scalar.properties.isDefaultIgnorableCodePoint { return .drop }
        // The blank Braille pattern: a symbol by category, but looks like a space.
        if scalar.value == 0x2800 { return .gap }
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .decimalNumber,
            .letterNumber, .otherNumber, .otherSymbol, .modifierSymbol, .mathSymbol, .currencySymbol:
            return utf8 ? .copy : .drop
        case .nonspacingMark, .spacingMark, .enclosingMark:
            return utf8 ? .copy : .drop
        case .format, .control, .surrogate, .privateUse, .unassigned:
            return .drop
        default:
            return .gap
        }
    }

    private static func eightHexDigits(of id: String) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in SHA256.hash(Array(id.utf8)).prefix(4) {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// Confusable detection: names that look alike have equal skeletons.
///
/// The table's prototypes are in lower case, since nicks are case-insensitive. So capital I, which looks like l, makes i and l
/// confusable, and a small capital is confusable with its letter.
///
/// Source: Unicode Technical Standard #39, Unicode Security Mechanisms, "Confusable Detection".
package enum Confusables {
    /// The prototypes in UTF-8.
    private static let map: [Unicode.Scalar: [UInt8]] = {
        var map: [Unicode.Scalar: [UInt8]] = [:]
        func number(_ text: Substring) -> UInt32 { UInt32(text, radix: 16) ?? 0 }
        for row in table.split(whereSeparator: { $0 == ";" || $0 == "\n" }) {
            let sides = row.split(separator: ":")
            guard sides.count == 2 else { continue }
            var target = String.UnicodeScalarView()
            for word in sides[0].drop(while: { $0 == " " }).split(separator: "+") {
                if let scalar = Unicode.Scalar(number(word)) { target.append(scalar) }
            }
            for run in sides[1].split(separator: " ") {
                let ends = run.split(separator: "-").map(number)
                guard let first = ends.first, let last = ends.last, first <= last else { continue }
                for value in first...last {
                    if let scalar = Unicode.Scalar(value) { map[scalar] = Array(String(target).utf8) }
                }
            }
        }
        return map
    }()

    /// The number of characters in the table.
    package static var count: Int { map.count }

    /// The skeleton of `nick`. Nicks with equal skeletons are confusable.
    package static func skeleton(_ nick: String) -> String {
        if nick.utf8.allSatisfy({ $0 < 0x80 }) {
            return String(unsafeUninitializedCapacity: 2 * nick.utf8.count) { room in
                var count = 0
                for byte in nick.utf8 {
                    let (first, second) = ascii(byte)
                    room[count] = first
                    count += 1
                    guard let second else { continue }
                    room[count] = second
                    count += 1
                }
                return count
            }
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(nick.utf8.count + 4)
        for scalar in nick._nfd {
            if scalar.isASCII {
                let (first, second) = ascii(UInt8(truncatingIfNeeded: scalar.value))
                bytes.append(first)
                if let second { bytes.append(second) }
            } else if let target = map[scalar] {
                bytes += target
            } else if !scalar.properties.isDefaultIgnorableCodePoint {
                for small in scalar.properties.lowercaseMapping.unicodeScalars {
                    bytes += map[small] ?? Array(String(small).utf8)
                }
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The table's ASCII part: one character or two.
    private static func ascii(_ byte: UInt8) -> (UInt8, UInt8?) {
        switch byte {
        case UInt8(ascii: "0"): (UInt8(ascii: "o"), nil)
        case UInt8(ascii: "1"), UInt8(ascii: "|"), UInt8(ascii: "I"), UInt8(ascii: "i"): (UInt8(ascii: "l"), nil)
        case UInt8(ascii: "M"), UInt8(ascii: "m"): (UInt8(ascii: "r"), UInt8(ascii: "n"))
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): (byte | 0x20, nil)
        default: (byte, nil)
        }
    }
}
