import BridgeTestSupport
import JSONText
import Testing

/// A document and its value.
struct AcceptedDocument: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let document: [UInt8]
    let value: JSONValue

    init(_ name: String, _ document: String, _ value: JSONValue) {
        testDescription = name
        self.document = Array(document.utf8)
        self.value = value
    }

    /// U+FFFE and U+FDD0, which source text may not contain.
    private static let noncharacters = String(decoding: [0xEF, 0xBF, 0xBE, 0xEF, 0xB7, 0x90], as: UTF8.self)

    static let rows: [AcceptedDocument] = [
        .init("an empty object", "{}", .object([])),
        .init("an empty array with white space of all four kinds", " \t\r\n[ \n] ", .array([])),
        .init("a bare string", #""x""#, .string("x")),
        .init("a bare number", "7", .integer(7)),
        .init("true", "true", .bool(true)),
        .init("false", "false", .bool(false)),
        .init("null", "null", .null),
        .init("a leading byte order mark", "\u{FEFF}{}", .object([])),
        .init("a byte order mark inside a string", "\"\u{FEFF}\"", .string("\u{FEFF}")),
        .init(
            "members in order, repeated names kept", #"{"b":1,"a":2,"b":3}"#,
            .object([.init("b", .integer(1)), .init("a", .integer(2)), .init("b", .integer(3))])),
        .init("an empty name", #"{"":0}"#, .object([.init("", .integer(0))])),
        .init("an escaped name", #"{"\u0061":0}"#, .object([.init("a", .integer(0))])),
        .init("all short escapes", #""\"\\\/\b\f\n\r\t""#, .string("\"\\/\u{8}\u{C}\n\r\t")),
        .init("an escaped NUL", #""a\u0000b""#, .string("a\u{0}b")),
        .init("hexadecimal digits of either case", #""\u00e9\u00E9""#, .string("éé")),
        .init("the last code point before the surrogates", #""\ud7ff""#, .string("\u{D7FF}")),
        .init("the first code point after the surrogates", #""\ue000""#, .string("\u{E000}")),
        .init("the first surrogate pair", #""\ud800\udc00""#, .string("\u{10000}")),
        .init("the last surrogate pair", #""\uDBFF\uDFFF""#, .string("\u{10FFFF}")),
        .init("noncharacters", "\"\(noncharacters)\"", .string(noncharacters)),
        .init(
            "UTF-8 of every length", "\"a\u{80}\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}\"",
            .string("a\u{80}\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}")),
        .init("DEL and C1 controls, which need no escape", "\"\u{7F}\u{85}\"", .string("\u{7F}\u{85}")),
        .init("a decomposed letter as it is", "\"e\u{301}\"", .string("e\u{301}")),
        .init("zero", "0", .integer(0)),
        .init("minus zero", "-0", .integer(0)),
        .init("the least Int64", "-9223372036854775808", .integer(.min)),
        .init("the greatest Int64", "9223372036854775807", .integer(.max)),
        .init("one more than the greatest Int64", "9223372036854775808", .literal("9223372036854775808")),
        .init("one less than the least Int64", "-9223372036854775809", .literal("-9223372036854775809")),
        .init("an integer beyond 2^53, exactly", "9007199254740993", .integer(9_007_199_254_740_993)),
        .init("an integral decimal", "1.0", .integer(1)),
        .init("an exponent", "1.763695136e9", .integer(1_763_695_136)),
        .init("a signed exponent of either case", "[25E-1,2e+1]", .array([.double(2.5), .integer(20)])),
        .init("a fraction", "-0.5", .double(-0.5)),
        .init("a decimal beyond doubles", "1e999", .literal("1e999")),
        .init("a decimal too small for doubles", "1e-999", .integer(0)),
        .init("seventeen significant digits", "0.30000000000000004", .double(0.1 + 0.2)),
        .init("the greatest double", "1.7976931348623157e308", .double(.greatestFiniteMagnitude)),
        .init("the least double", "5e-324", .double(.leastNonzeroMagnitude)),
        .init(
            "nesting of both kinds", #"[{"a":[{"b":[]}]}]"#,
            .array([.object([.init("a", .array([.object([.init("b", .array([]))])]))])])),
    ]
}

/// A document that must be refused, and where.
struct RefusedDocument: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let document: [UInt8]
    let reason: JSONError.Reason
    let offset: Int

    init(_ name: String, _ document: [UInt8], _ reason: JSONError.Reason, at offset: Int) {
        testDescription = name
        self.document = document
        self.reason = reason
        self.offset = offset
    }

    init(_ name: String, _ document: String, _ reason: JSONError.Reason, at offset: Int) {
        self.init(name, Array(document.utf8), reason, at: offset)
    }

    /// `bytes` between quotes; the fault lies at `offset` within the quotes.
    init(_ name: String, string bytes: [UInt8], _ reason: JSONError.Reason, at offset: Int = 0) {
        self.init(name, [0x22] + bytes + [0x22], reason, at: offset + 1)
    }

    static let rows: [RefusedDocument] = [
        .init("nothing", "", .unexpectedEnd, at: 0),
        .init("only white space", " \n ", .unexpectedEnd, at: 3),
        .init("only a byte order mark", "\u{FEFF}", .unexpectedEnd, at: 3),
        .init("two byte order marks", "\u{FEFF}\u{FEFF}{}", .unexpectedByte, at: 3),
        .init("words", "good morning", .unexpectedByte, at: 0),
        .init("a form feed as white space", "\u{C}{}", .unexpectedByte, at: 0),
        .init("a no-break space as white space", "\u{A0}{}", .unexpectedByte, at: 0),
        .init("a comment", "{/**/}", .unexpectedByte, at: 1),
        .init("two documents", "{}{}", .trailingBytes, at: 2),
        .init("a NUL after the document", "{}\u{0}", .trailingBytes, at: 2),
        .init("a second number", "1 2", .trailingBytes, at: 2),
        .init("an open object", "{", .unexpectedEnd, at: 1),
        .init("an open array", "[1", .unexpectedEnd, at: 2),
        .init("an object closed as an array", "{]", .unexpectedByte, at: 1),
        .init("an array closed as an object", "[}", .unexpectedByte, at: 1),
        .init("crossed brackets", #"{"a":[}]"#, .unexpectedByte, at: 6),
        .init("a closing bracket alone", "]", .unexpectedByte, at: 0),
        .init("a trailing comma in an object", #"{"a":1,}"#, .unexpectedByte, at: 7),
        .init("a trailing comma in an array", "[1,]", .unexpectedByte, at: 3),
        .init("a leading comma", "[,1]", .unexpectedByte, at: 1),
        .init("two commas", "[1,,2]", .unexpectedByte, at: 3),
        .init("a missing comma in an object", #"{"a":1 "b":2}"#, .unexpectedByte, at: 7),
        .init("a missing comma in an array", "[1 2]", .unexpectedByte, at: 3),
        .init("a missing colon", #"{"a" 1}"#, .unexpectedByte, at: 5),
        .init("a missing value", #"{"a":}"#, .unexpectedByte, at: 5),
        .init("a name without quotes", "{a:1}", .unexpectedByte, at: 1),
        .init("a name in single quotes", "{'a':1}", .unexpectedByte, at: 1),
        .init("a number as a name", "{1:1}", .unexpectedByte, at: 1),
        .init("a colon in an array", #"["a":1]"#, .unexpectedByte, at: 4),
        .init("a capital literal", "True", .unexpectedByte, at: 0),
        .init("half a literal", "[tru]", .badLiteral, at: 4),
        .init("a literal cut short", "nul", .unexpectedEnd, at: 3),
        .init("a literal that goes on", "nullx", .trailingBytes, at: 4),
        .init("NaN", "NaN", .unexpectedByte, at: 0),
        .init("Infinity", "-Infinity", .badNumber, at: 1),
        .init("a plus sign", "+1", .unexpectedByte, at: 0),
        .init("a sign alone", "[-]", .badNumber, at: 2),
        .init("a sign at the end", "-", .unexpectedEnd, at: 1),
        .init("a leading zero", "[01]", .badNumber, at: 2),
        .init("a leading zero after a sign", "[-01]", .badNumber, at: 3),
        .init("a point without digits before", "[.5]", .unexpectedByte, at: 1),
        .init("a point without digits after", "[5.]", .badNumber, at: 3),
        .init("an exponent without digits", "[5e]", .badNumber, at: 3),
        .init("an exponent with a sign only", "[5e+]", .badNumber, at: 4),
        .init("a fractional exponent", "[5e1.5]", .unexpectedByte, at: 4),
        .init("hexadecimal", "[0x10]", .unexpectedByte, at: 2),
        .init("digits that are not ASCII", "[\u{661}]", .unexpectedByte, at: 1),
        .init("an open string", #""abc"#, .unexpectedEnd, at: 4),
        .init("a string whose end is escaped", #""abc\""#, .unexpectedEnd, at: 6),
        .init("a string that ends in a backslash", #""abc\"#, .unexpectedEnd, at: 4),
        .init("a raw line feed", "\"a\nb\"", .controlInString, at: 2),
        .init("a raw tab far into a string", "\"0123456789abcdef\t\"", .controlInString, at: 17),
        .init("a raw NUL", string: [0], .controlInString),
        .init("an unknown escape", #""\x41""#, .badEscape, at: 1),
        .init("an escape of a capital letter", #""\N""#, .badEscape, at: 1),
        .init("an escape with three digits", #""\u00e""#, .badEscape, at: 1),
        .init("an escape that the end cuts", #""\u00e"#, .unexpectedEnd, at: 1),
        .init("an escape with a letter that is no digit", #""\u00g0""#, .badEscape, at: 1),
        .init("an escape with a sign", #""\u+0e9""#, .badEscape, at: 1),
        .init("a high surrogate alone", #""\ud83d""#, .loneSurrogate, at: 7),
        .init("a high surrogate before a letter", #""\ud83dx""#, .loneSurrogate, at: 7),
        .init("a high surrogate before another escape", #""\ud83d\n""#, .loneSurrogate, at: 7),
        .init("two high surrogates", #""\ud83d\ud83d""#, .loneSurrogate, at: 13),
        .init("a low surrogate alone", #""\ude80""#, .loneSurrogate, at: 7),
        .init("a pair the wrong way round", #""\ude80\ud83d""#, .loneSurrogate, at: 7),
        .init("a lone surrogate in a value that nobody wants", #"{"a":{"b":["\udead"]}}"#, .loneSurrogate, at: 18),
        .init("a lone surrogate in a name", #"{"\ud800":1}"#, .loneSurrogate, at: 8),
        .init("a continuation byte alone", string: [0x80], .badUTF8),
        .init("an overlong slash", string: [0xC0, 0xAF], .badUTF8),
        .init("an overlong slash of three bytes", string: [0xE0, 0x80, 0xAF], .badUTF8),
        .init("an overlong form of four bytes", string: [0xF0, 0x8F, 0xBF, 0xBF], .badUTF8),
        .init("a surrogate in UTF-8", string: [0xED, 0xA0, 0x80], .badUTF8),
        .init("beyond U+10FFFF", string: [0xF4, 0x90, 0x80, 0x80], .badUTF8),
        .init("a byte that UTF-8 never has", string: [0x61, 0xFE], .badUTF8, at: 1),
        .init("a sequence of two cut short", string: [0xC3], .badUTF8),
        .init("a sequence of three cut short", string: [0xE6, 0xBC], .badUTF8),
        .init("a sequence of four cut short", string: [0xF0, 0x9F, 0xA6], .badUTF8),
        .init("a sequence that the document's end cuts", [0x22, 0xF0, 0x9F], .badUTF8, at: 1),
        .init("bad UTF-8 after good", string: [0xC3, 0xA9, 0xC3, 0x28], .badUTF8, at: 2),
        .init("bad UTF-8 outside strings", [0x5B, 0xFF, 0x5D], .unexpectedByte, at: 1),
        .init("UTF-16", [0x7B, 0x00, 0x7D, 0x00], .unexpectedByte, at: 1),
    ]
}

@Suite("JSON reader")
struct JSONTextReaderTests {
    @Test("a document of RFC 8259 is read", arguments: AcceptedDocument.rows)
    func accepts(_ row: AcceptedDocument) throws {
        #expect(try outcome(row.document).get() == row.value)
        #expect(try walkOutcome(row.document).get() == row.value)
        // Swift compares strings by canonical equivalence; writing them again distinguishes code points.
        #expect(try outcome(row.document).get().bytes == row.value.bytes)
    }

    @Test("anything else is refused, with the reason and the place", arguments: RefusedDocument.rows)
    func refuses(_ row: RefusedDocument) {
        for result in [outcome(row.document), walkOutcome(row.document)] {
            #expect(result.failure?.reason == row.reason)
            #expect(result.failure?.offset == row.offset)
        }
    }

    @Test(
        "a fault is found wherever it stands, also in what is skipped",
        arguments: RefusedDocument.rows.filter {
            // Bytes at an end or a beginning have another meaning in the middle.
            $0.reason != .unexpectedEnd && $0.reason != .trailingBytes && $0.document.first != 0xEF
        })
    func refusesWithin(_ row: RefusedDocument) {
        for (before, after) in [
            (#"{"skipped":"#, "}"), (#"{"x":[0,{"y":"#, #"},1],"z":2}"#), (#"[[[["",    "#, "]]]]"),
        ] {
            #expect(!outcome(Array("\(before)0\(after)".utf8)).isFailure)
            let document = Array(before.utf8) + row.document + Array(after.utf8)
            for result in [outcome(document), walkOutcome(document)] {
                #expect(result.failure?.reason == row.reason)
                #expect(result.failure?.offset == row.offset + before.utf8.count)
            }
        }
    }

    @Test("a document cut anywhere is refused", arguments: AcceptedDocument.rows)
    func refusesCuts(_ row: AcceptedDocument) {
        // Around a bare number or white space a cut leaves a document; within an array it never does.
        let document = [0x5B] + row.document.drop { $0 >= 0xEF } + [0x5D]
        for length in 0..<document.count {
            #expect(outcome(Array(document.prefix(length))).isFailure, "\(length) bytes")
            #expect(walkOutcome(Array(document.prefix(length))).isFailure, "\(length) bytes")
        }
    }

    @Test("a string is scanned alike at every alignment and length")
    func alignments() throws {
        for padding in 0..<20 {
            for special in [#"\n"#, #"\""#, "é", "🦀", #"\ud83e\udd80"#] {
                for tail in 0..<10 {
                    let body = String(repeating: "x", count: padding) + special + String(repeating: "y", count: tail)
                    let document = Array("[\"\(body)\", 1]".utf8)
                    let value = try outcome(document).get()
                    #expect(try outcome(value.bytes).get() == value)
                    #expect(value.array?.first?.string?.unicodeScalars.count == padding + 1 + tail)
                }
            }
        }
    }

    // MARK: - Limits

    @Test("512 levels are read, 513 are refused", arguments: [("[", "]"), (#"{"a":"#, "}")])
    func depth(_ open: String, _ close: String) {
        func document(_ levels: Int) -> [UInt8] {
            let opens = String(repeating: open, count: levels)
            return Array((opens + "0" + String(repeating: close, count: levels)).utf8)
        }
        #expect(!outcome(document(512)).isFailure)
        #expect(!walkOutcome(document(512)).isFailure)
        for result in [outcome(document(513)), walkOutcome(document(513))] {
            #expect(result.failure?.reason == .tooDeep)
            #expect(result.failure?.offset == open.utf8.count * 512)
        }
        let wide = JSONLimits(maxDepth: 100_000)
        #expect(wide.maxDepth == JSONLimits.deepestNesting)
        #expect(!outcome(document(JSONLimits.deepestNesting), limits: wide).isFailure)
        #expect(outcome(document(JSONLimits.deepestNesting + 1), limits: wide).isFailure)
    }

    @Test("a document may be as long as the limit and no longer")
    func size() {
        let limits = JSONLimits(maxBytes: 4)
        #expect(outcome(Array("1234".utf8), limits: limits) == .success(.integer(1234)))
        #expect(outcome(Array("12345".utf8), limits: limits).failure?.reason == .tooLong)
    }

    /// A document of the largest size; `reason` is nil where it is well-formed.
    struct HostileDocument: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let text: String
        let reason: JSONError.Reason?

        init(_ unit: String, _ reason: JSONError.Reason?, before: String = "", after: String = "") {
            testDescription = "\(before)\(unit)...\(after)"
            let count = (JSONLimits().maxBytes - before.utf8.count - after.utf8.count) / unit.utf8.count
            text = before + String(repeating: unit, count: count) + after
            self.reason = reason
        }
    }

    @Test(
        "a hostile document of 4 MiB is answered",
        arguments: [
            HostileDocument("[", .tooDeep), HostileDocument(#"{"":"#, .tooDeep), HostileDocument("\"", .trailingBytes),
            HostileDocument("\\", .unexpectedByte), HostileDocument("\\\\", .unexpectedEnd, before: "\""),
            HostileDocument(#"\n"#, nil, before: "\"", after: "\""),
            HostileDocument(#"\u0000"#, nil, before: "\"", after: "\""),
            HostileDocument("7", nil), HostileDocument("7", nil, before: "0."), HostileDocument("9", nil, before: "1e"),
            HostileDocument("[],", nil, before: "[", after: "0]"), HostileDocument(" ", .unexpectedEnd),
            HostileDocument("é", nil, before: "\"", after: "\""),
        ])
    func hostile(_ row: HostileDocument) {
        let document = Array(row.text.utf8)
        #expect(outcome(document).failure?.reason == row.reason)
        #expect(walkOutcome(document).failure?.reason == row.reason)
    }

    @Test("a name repeated 100,000 times counts the last time")
    func repeatedNames() throws {
        let document = "{" + (0..<100_000).map { #""a":\#($0)"# }.joined(separator: ",") + "}"
        let value = try JSONValue(parsing: document)
        #expect(value.object?.count == 100_000)
        #expect(value["a"] == .integer(99_999))
    }

    // MARK: - Fields

    /// Calls `body` with the field that is the first member's value.
    private func withField<R>(_ json: String, _ body: (JSONField) throws -> R) throws -> R {
        try Array((#"{"f":"# + json + "}").utf8).withUnsafeBytes { bytes in
            var reader = try JSONReader(bytes)
            #expect(try reader.enterObject())
            let key = try #require(try reader.nextKey())
            #expect(key.equals("f"))
            return try body(try reader.readValue())
        }
    }

    @Test("a field gives what its kind has, and nil for the rest")
    func fields() throws {
        try withField(#""a\u0062c""#) { field in
            #expect(field.kind == .string)
            #expect(field.string == "abc")
            #expect(field.rawText == #"a\u0062c"#)
            #expect(field.equals("abc") && !field.equals("ab") && !field.equals(#"a\u0062c"#))
            #expect(field.int64 == nil && field.double == nil && field.bool == nil && !field.isNull)
            #expect(Array(field.members).isEmpty && Array(field.elements).isEmpty)
        }
        try withField("-12") { field in
            #expect(field.kind == .integer)
            #expect(field.int64 == -12 && field.double == -12)
            #expect(field.string == nil && !field.equals("-12"))
        }
        try withField("99999999999999999999") { field in
            #expect(field.int64 == nil)
            #expect(field.double == 1e20)
            #expect(field.rawText == "99999999999999999999")
        }
        try withField("1.5e3") { field in
            #expect(field.kind == .decimal)
            #expect(field.int64 == nil && field.double == 1500)
        }
        try withField("1e999") { #expect($0.double == nil) }
        try withField("null") { #expect($0.isNull && $0.bool == nil) }
        try withField("false") { #expect($0.bool == false) }
        try withField("\"\"") { #expect($0.isEmptyString && $0.string == "") }
    }

    @Test("members and elements look into containers")
    func containers() throws {
        try withField(#"{ "a" : [1, {"b":2} ,[]], "a": {} }"#) { field in
            let members = Array(field.members)
            #expect(members.map { $0.key.string } == ["a", "a"])
            #expect(members[0].value.elements.map(\.kind) == [.integer, .object, .array])
            #expect(Array(members[1].value.members).isEmpty)
            #expect(Array(field.elements).isEmpty)
        }
    }

    @Test("a member is read alike whatever the length of its name and of what follows", arguments: 0..<24)
    func memberLengths(_ count: Int) throws {
        for special in ["", #"\n"#, "é"] {
            for gap in ["", " "] {
                for tail in 0..<24 {
                    let name = String(repeating: "n", count: count) + special
                    let document =
                        #"{"\#(name)"\#(gap):"v","\#(name)":1\#(gap),"\#(name)":"\#(String(repeating: "t", count: tail))"}"#
                    var texts: [String] = []
                    try Array(document.utf8).withUnsafeBytes { bytes in
                        var reader = try JSONReader(bytes)
                        #expect(try reader.enterObject())
                        while let (key, value) = try reader.nextMember() { texts += [key.rawText, value.rawText] }
                        try reader.finish()
                    }
                    #expect(texts == [name, "v", name, "1", name, String(repeating: "t", count: tail)])
                }
            }
        }
    }

    @Test("a member is read alike wherever it stands in the document", arguments: ["", #"\n"#, "é"])
    func memberPlaces(_ special: String) throws {
        for padding in 0..<140 {
            for tail in [0, 1, 63, 64, 65] {
                let (front, back) = (String(repeating: "f", count: padding), String(repeating: "b", count: tail))
                let document =
                    #"{"p":"\#(front)","na\#(special)me":"va\#(special)lue","m":["\#(special)"],"q":"\#(back)"}"#
                var texts: [String] = []
                try Array(document.utf8).withUnsafeBytes { bytes in
                    var reader = try JSONReader(bytes)
                    #expect(try reader.enterObject())
                    while let key = try reader.nextKey() { texts += [key.rawText, try reader.readValue().rawText] }
                    try reader.finish()
                    reader = try JSONReader(bytes)
                    #expect(try reader.enterObject())
                    while let (key, value) = try reader.nextMember() { texts += [key.rawText, value.rawText] }
                    try reader.finish()
                }
                let once = ["p", front, "na\(special)me", "va\(special)lue", "m", "[\"\(special)\"]", "q", back]
                #expect(texts == once + once)
            }
        }
    }

    @Test("a short decimal is the double that the long way gives")
    func doubles() throws {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<20_000 {
            let digits = String(Int64.random(in: 0...9_999_999_999_999_999, using: &random))
            let cut = Int.random(in: 1...digits.count, using: &random)
            let fraction = digits.dropFirst(cut)
            let text = digits.prefix(cut) + (fraction.isEmpty ? "" : "." + fraction)
            let value = try withField(String(text)) { $0.double }
            #expect(value == Double(text))
        }
    }
}

extension Result where Success == JSONValue, Failure == JSONError {
    var failure: JSONError? { if case .failure(let error) = self { error } else { nil } }
    var isFailure: Bool { failure != nil }
}
