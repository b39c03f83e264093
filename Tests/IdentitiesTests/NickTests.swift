import Testing

@testable import Identities

struct NickRow: CustomTestStringConvertible, Sendable {
    let name: String
    let nick: String
    var settings = NickSettings()

    var testDescription: String { "\(name) → \(nick)" }
}

@Suite("NickGenerator")
struct NickMakerTests {
    static let ascii = NickSettings(utf8: false)

    static let rows: [NickRow] = [
        NickRow(name: "Remy", nick: "Remy"),
        NickRow(name: "Remy le Rat", nick: "Remy-le-Rat"),
        NickRow(name: "  a \t b\r\nc  ", nick: "a-b-c"),
        NickRow(name: "a,*?.!@:b", nick: "a-b"),
        NickRow(name: "#channel", nick: "channel"),
        NickRow(name: "42", nick: "_42"),
        NickRow(name: "-dash", nick: "dash"),
        NickRow(name: "trailing-", nick: "trailing"),
        // NFC: one code point for a letter and its accent.
        NickRow(name: "Re\u{301}my", nick: "R\u{E9}my"),
        NickRow(name: "👩🏽‍🍳 Chef", nick: "👩🏽🍳-Chef"),
        NickRow(name: "مرحبا", nick: "مرحبا"),
        NickRow(name: "a\u{202E}b\u{200B}c\u{FEFF}d\u{3164}e\u{2800}f", nick: "abcde-f"),
        NickRow(name: "\u{301}\u{301}x", nick: "x"),
        NickRow(name: "[we]{are}\\|^`_", nick: "[we]{are}\\|^`_"),
        // 30 bytes, and never half a character.
        NickRow(name: String(repeating: "a", count: 40), nick: String(repeating: "a", count: 30)),
        NickRow(name: String(repeating: "é", count: 20), nick: String(repeating: "é", count: 15)),
        NickRow(name: "a" + String(repeating: "é", count: 20), nick: "a" + String(repeating: "é", count: 14)),
        // Nothing left.
        NickRow(name: "", nick: "user-ba7816bf"),
        NickRow(name: "!!!", nick: "user-ba7816bf"),
        NickRow(name: "\u{200B}", nick: "user-ba7816bf"),
        NickRow(name: "a" + String(repeating: "\u{301}", count: 30), nick: "user-ba7816bf"),
        NickRow(name: "Rémy", nick: "Remy", settings: ascii),
        NickRow(name: "日本", nick: "user-ba7816bf", settings: ascii),
        NickRow(name: "Remy", nick: "Remy/up", settings: NickSettings(suffix: "/up")),
        NickRow(name: "a b", nick: "a_b", settings: NickSettings(invalid: "_")),
        NickRow(name: "abcdefghijkl", nick: "abcdefgh", settings: NickSettings(maxBytes: 8)),
    ]

    @Test("a display name becomes a nick", arguments: rows)
    func makesNick(row: NickRow) {
        let nick = NickGenerator(settings: row.settings).nick(name: row.name, id: "abc")
        #expect(Array(nick.utf8) == Array(row.nick.utf8), "\(nick)")
    }

    @Test("every name yields a legal nick")
    func anyNameIsLegal() {
        let generator = NickGenerator(settings: NickSettings())
        var random = SeededNames(seed: 3)
        for _ in 0..<3000 {
            let name = random.name()
            let nick = generator.nick(name: name, id: name)
            let isClean = nick.unicodeScalars.allSatisfy {
                $0.value > 0x20 && !" ,*?.!@:".unicodeScalars.contains($0) && !$0.properties.isDefaultIgnorableCodePoint
            }
            #expect(isClean, "\(name.debugDescription)")
            #expect((1...30).contains(nick.utf8.count), "\(name.debugDescription)")
            #expect(
                nick.utf8.first.map { !(0x30...0x39).contains($0) && $0 != 0x2D } == true, "\(name.debugDescription)")
        }
    }

    @Test("a numbered nick still fits")
    func numbers() {
        let generator = NickGenerator(settings: NickSettings())
        #expect(generator.numbered("bob", 2) == "bob2")
        #expect(generator.numbered(String(repeating: "é", count: 15), 12) == String(repeating: "é", count: 14) + "12")
        let underscores = NickGenerator(settings: NickSettings(collision: .underscore))
        #expect([2, 3, 4].map { underscores.numbered("bob", $0) } == ["bob_", "bob__", "bob_4"])
    }
}

/// Random names from problematic characters.
private struct SeededNames {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    private mutating func next(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(truncatingIfNeeded: (state >> 33) % UInt64(bound))
    }

    mutating func name() -> String {
        var scalars = String.UnicodeScalarView()
        for _ in 0..<next(20) {
            let value: UInt32
            switch next(5) {
            case 0: value = UInt32(next(0x80))
            case 1: value = UInt32(next(0x800))
            case 2: value = 0x2000 + UInt32(next(0x100))
            case 3: value = UInt32(next(0xD800))
            default: value = 0x1F300 + UInt32(next(0x400))
            }
            if let scalar = Unicode.Scalar(value) { scalars.append(scalar) }
        }
        return String(scalars)
    }
}

@Suite("Confusables")
struct ConfusablesTests {
    /// Letters and digits, with confusable characters.
    static let listed: [String: String] = [
        "a": "аαＡ𝐀ⓐª", "b": "вβｂ𝖇", "c": "сϲℂⅽ", "d": "ԁ𝕕ⅅ", "e": "еεℯｅ", "f": "𝒇ϝ", "g": "ɡℊ", "h": "һнηℍ",
        "i": "lI1|іιıＩℑ𝟏ⅰ", "j": "јϳⅉ", "k": "кκK", "l": "1ӏǀ|Iℓⅼ", "m": "мμⅯ𝐦", "n": "ոℕ", "o": "0оοσΟ𝟎ℴ",
        "p": "рρℙ", "q": "ԛℚ", "r": "гᴦℛ", "s": "ѕꓢ", "t": "тτ𝗍", "u": "υս", "v": "νѵⅴ", "w": "ԝᴡ", "x": "хχⅹ",
        "y": "уγү", "z": "ζℤ", "2": "２𝟚", "rn": "mM",
    ]

    @Test("the table has its Unicode version and size")
    func table() {
        #expect(Confusables.version == "17.0.0")
        #expect(Confusables.count == 3729)
    }

    @Test("every listed character is confusable with its letter")
    func everyScalar() {
        for (letter, scalars) in Self.listed {
            for scalar in scalars.unicodeScalars {
                #expect(Confusables.skeleton("x\(scalar)é") == Confusables.skeleton("x\(letter)é"), "\(scalar)")
            }
        }
    }

    @Test(
        "confusable nicks have equal skeletons",
        arguments: [
            ("Bob", "bob"), ("b0b", "bob"), ("вов", "bob"), ("a|ice", "a1ice"), ("РЕТЯ", "petя"),
            ("ë", "Ë"), ("AIice", "alice"), ("Ａｌｉｃｅ", "alice"), ("𝐀𝓁𝕚𝖈ⅇ", "alice"), ("ⓐlice", "alice"),
            ("modern", "rnodern"),
            ("Пётр", "пëтр"), ("al\u{200B}ice", "alice"),
        ])
    func alike(pair: (String, String)) {
        #expect(Confusables.skeleton(pair.0) == Confusables.skeleton(pair.1))
    }

    @Test(
        "other nicks have different skeletons",
        arguments: [
            ("bob", "bop"), ("anna", "аnnа1"), ("zoë", "zoe"), ("日", "曰"), ("øle", "ole"), ("łukasz", "lukasz"),
        ])
    func different(pair: (String, String)) {
        #expect(Confusables.skeleton(pair.0) != Confusables.skeleton(pair.1))
    }
}
