import BridgeTestSupport
import JSONText
import Testing

/// A value and the one way to write it.
struct WrittenValue: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let value: JSONValue
    let text: String

    init(_ name: String, _ value: JSONValue, _ text: String) {
        testDescription = name
        self.value = value
        self.text = text
    }

    /// Rows that hold in both directions.
    static let both: [WrittenValue] = [
        .init("nothing escaped without need", .string("/é\u{7F}\u{2028}🦀"), "\"/é\u{7F}\u{2028}🦀\""),
        .init("short escapes", .string("\"\\\u{8}\t\n\u{C}\r"), #""\"\\\b\t\n\f\r""#),
        .init("controls without a short escape", .string("\u{0}\u{B}\u{1F}"), #""\u0000\u000b\u001f""#),
        .init("an escape at the end of a long text", .string("0123456789abcdef\n"), #""0123456789abcdef\n""#),
        .init("the least integer", .integer(.min), "-9223372036854775808"),
        .init("zero", .integer(0), "0"),
        .init("ten", .integer(10), "10"),
        .init("a fraction", .double(0.1), "0.1"),
        .init("a small double", .double(.leastNonzeroMagnitude), "5e-324"),
        .init("a great double", .double(1e300), "1e+300"),
        .init("a number that only text holds", .literal("1e999"), "1e999"),
        .init(
            "commas where they belong",
            .object([.init("a", .array([.null, .bool(true), .array([]), .object([])])), .init("b\n", .bool(false))]),
            #"{"a":[null,true,[],{}],"b\n":false}"#),
    ]

    /// Rows that read back differently, as their name states.
    static let oneWay: [WrittenValue] = [
        .init("an integral double has no fraction: an integer", .double(1_763_695_136), "1763695136"),
        .init("minus zero: zero", .double(-0.0), "-0"),
        .init("an infinity: null", .double(.infinity), "null"),
        .init("NaN: null", .double(.nan), "null"),
    ]
}

@Suite("JSON writer")
struct JSONTextWriterTests {
    @Test("a value is written in one way", arguments: WrittenValue.both + WrittenValue.oneWay)
    func writes(_ row: WrittenValue) { #expect(row.value.text == row.text) }

    @Test("what is written reads back", arguments: WrittenValue.both)
    func readsBack(_ row: WrittenValue) throws { #expect(try JSONValue(parsing: row.text) == row.value) }

    @Test("any tree reads back as it was written", arguments: 0..<16)
    func law(_ seed: UInt64) throws {
        var generator = JSONTreeGenerator(random: SeededGenerator(seed: seed))
        for _ in 0..<400 {
            let tree = generator.tree(depth: 5)
            let bytes = tree.bytes
            #expect(try outcome(bytes).get() == tree)
            #expect(try walkOutcome(bytes).get() == tree)
            #expect(try outcome(bytes).get().bytes == bytes)
        }
    }

    @Test(
        "milliseconds are written as seconds with at most three decimals",
        arguments: [
            (0, "0"), (1, "0.001"), (10, "0.01"), (250, "0.25"), (999, "0.999"), (1000, "1"), (-1500, "-1.5"),
            (1_763_695_136_123, "1763695136.123"), (1_763_695_136_120, "1763695136.12"), (.max, "9223372036854775.807"),
            (.min, "-9223372036854775.808"),
        ] as [(Int64, String)])
    func seconds(_ milliseconds: Int64, _ text: String) {
        var writer = JSONWriter(capacity: 0)
        writer.beginArray()
        writer.null()
        writer.seconds(milliseconds: milliseconds)
        writer.seconds(milliseconds: milliseconds)
        writer.endArray()
        #expect(String(decoding: writer.finish(), as: UTF8.self) == "[null,\(text),\(text)]")
    }

    @Test("a string in pieces is one string, and raw JSON stays as it is")
    func pieces() {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("a")
        writer.beginString()
        writer.appendToString("x\"")
        writer.appendToString("")
        writer.appendToString("\ny")
        writer.endString()
        writer.key(text: "b\t" as String)
        writer.raw("[1, 2]")
        writer.key("c")
        writer.string("plain" as StaticString)
        writer.endObject()
        #expect(writer.count == 39)
        #expect(String(decoding: writer.finish(), as: UTF8.self) == #"{"a":"x\"\ny","b\t":[1, 2],"c":"plain"}"#)
    }

    // MARK: - Measuring

    @Test("a number of any length is written in all its digits")
    func lengths() {
        var power: Int64 = 1
        while true {
            for value in [power - 1, power, power + 7, -power] {
                #expect(JSONValue.integer(value).text == String(value))
            }
            let (next, over) = power.multipliedReportingOverflow(by: 10)
            if over { break }
            power = next
        }
        for value in [Int64.max, .min, 1_410_934_744_303_350_969] {
            #expect(JSONValue.integer(value).text == String(value))
        }
    }

    @Test("a document outgrows the room on the stack without a trace", arguments: [0, 990, 1024, 1100, 5000])
    func rooms(_ count: Int) {
        let text = String(repeating: "x", count: count)
        let bytes = JSONWriter.document { writer in
            writer.verbatim(#"{"a":""#)
            writer.appendToString(text)
            writer.verbatim(#"","b":"#)
            writer.integer(7)
            writer.endObject()
        }
        #expect(bytes == Array((#"{"a":""# + text + #"","b":7}"#).utf8))
        let length = JSONWriter.onStack { writer in
            writer.string(text)
            return writer.count
        }
        #expect(length == count + 2)
    }

    private func encodedByteCount(_ text: String) -> Int { JSONValue.string(text).bytes.count - 2 }

    @Test("the front of a text, cut to a limit, takes as many bytes as fit", arguments: 0..<8)
    func measuring(_ seed: UInt64) {
        var generator = JSONTreeGenerator(random: SeededGenerator(seed: seed))
        for _ in 0..<200 {
            let text = generator.string()
            let whole = encodedByteCount(text)
            for limit in -1...(whole + 1) {
                let cut = JSONWriter.end(of: text, fitting: limit)
                let front = String(text.unicodeScalars[..<cut])
                #expect(encodedByteCount(front) <= max(limit, 0))
                // One code point more would not have fitted.
                if let next = text.unicodeScalars[cut...].first {
                    #expect(encodedByteCount(front + String(next)) > limit)
                }
            }
        }
    }
}

@Suite("JSON pointer")
struct JSONTextPointerTests {
    /// The document of RFC 6901 §5, with an array in an array.
    static let document = #"""
        {"foo":["bar","baz",[7]],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8,"01":9,
         "twice":1,"twice":2}
        """#

    @Test(
        "a pointer finds its value",
        arguments: [
            ("/foo/0", #""bar""#), ("/foo/2/0", "7"), ("/", "0"), ("/a~1b", "1"), ("/c%d", "2"), ("/e^f", "3"),
            ("/g|h", "4"), (#"/i\j"#, "5"), (#"/k"l"#, "6"), ("/ ", "7"), ("/m~0n", "8"), ("/01", "9"), ("/twice", "2"),
        ])
    func finds(_ pointer: String, _ json: String) throws {
        let document = try JSONValue(parsing: Self.document)
        #expect(document[try #require(JSONPointer(pointer))]?.text == json)
    }

    @Test("the empty pointer is the document itself")
    func whole() throws {
        let document = try JSONValue(parsing: Self.document)
        #expect(document[try #require(JSONPointer(""))] == document)
    }

    @Test(
        "a path that ends before finds nothing",
        arguments: [
            "/bar", "/foo/3", "/foo/-", "/foo/01", "/foo/00", "/foo/+1", "/foo/99999999999999999999", "/foo/",
            "/foo/0/0", "/a~1b/x", "//",
        ])
    func misses(_ pointer: String) throws {
        let document = try JSONValue(parsing: Self.document)
        #expect(document[try #require(JSONPointer(pointer))] == nil)
    }

    @Test("what is no pointer is refused", arguments: ["foo", "#/foo", "/~", "/a~2", "/~/a", " /a"])
    func refuses(_ text: String) { #expect(JSONPointer(text) == nil) }
}
