import ChatModel
import JSONText
import Testing

@testable import Dialects

/// Calls `body` with the field that holds `json`.
private func withField<R>(_ json: String, _ body: (JSONField) throws -> R) throws -> R {
    try Array(json.utf8).withUnsafeBytes { bytes in
        var reader = try JSONReader(bytes)
        return try body(try reader.readValue())
    }
}

/// JSON and the time it means in milliseconds; nil where it is none.
struct TimeRow: Sendable, CustomTestStringConvertible {
    let json: String
    let milliseconds: Int64?
    let note: String

    init(_ json: String, _ milliseconds: Int64?, _ note: String) {
        self.json = json
        self.milliseconds = milliseconds
        self.note = note
    }

    var testDescription: String { "\(json): \(note)" }

    static let rows: [TimeRow] = [
        .init("1763695136", 1_763_695_136_000, "seconds"),
        .init("1763695136.123456", 1_763_695_136_123, "seconds with a fraction"),
        .init("1763695136.1235", 1_763_695_136_124, "rounded half up"),
        .init("1.763695136e9", 1_763_695_136_000, "an exponent"),
        .init("1763695136123", 1_763_695_136_123, "milliseconds"),
        .init("1763695136123456", 1_763_695_136_123, "microseconds"),
        .init("99999999999", 99_999_999_999_000, "just below 1e11: seconds"),
        .init("100000000000", 100_000_000_000, "1e11: milliseconds"),
        .init("99999999999999", 99_999_999_999_999, "just below 1e14: milliseconds"),
        .init("100000000000000", 100_000_000_000, "1e14: microseconds"),
        .init("0.0005", 1, "half a millisecond rounds up"),
        .init("0.0004", nil, "less rounds down to the epoch"),
        .init("0", nil, "the epoch"),
        .init("-1", nil, "before the epoch"),
        .init("253402300799999", 253_402_300_800, "microseconds although it would fit as milliseconds"),
        .init("1e300", nil, "past year 9999"),
        .init("1e999", nil, "no double"),
        .init("123456789012345678901234567890", nil, "past Int64"),
        .init("true", nil, "a boolean"), .init("null", nil, "null"), .init("[1763695136]", nil, "an array"),
        .init("{}", nil, "an object"), .init(#""""#, nil, "no text"), .init(#""soon""#, nil, "a word"),
        .init(#""1763695136""#, 1_763_695_136_000, "a number in quotes"),
        .init(#"" 1763695136.5\n""#, 1_763_695_136_500, "a number in quotes with space around"),
        .init(#""1.763695136e9""#, 1_763_695_136_000, "an exponent in quotes"),
        .init(#""inf""#, nil, "an infinity"), .init(#""nan""#, nil, "NaN"), .init(#""0x10""#, nil, "hexadecimal"),
        .init(#""1e""#, nil, "half an exponent"), .init(#""1 2""#, nil, "two numbers"),
        .init(#""2025-11-21T03:18:56.5Z""#, 1_763_695_136_500, "ISO 8601 with a fraction"),
        .init(#""2025-11-21T03:18:56Z""#, 1_763_695_136_000, "ISO 8601"),
        .init(#""2025-11-21T03:18:56z""#, 1_763_695_136_000, "small z"),
        .init(#""2025-11-21 03:18:56""#, 1_763_695_136_000, "a blank, no zone"),
        .init(#""2025-11-21T03:18""#, 1_763_695_080_000, "no seconds"),
        .init(#""2025-11-21T03:18Z""#, 1_763_695_080_000, "no seconds, a zone"),
        .init(#""2025-11-21T04:18:56+01:00""#, 1_763_695_136_000, "an offset"),
        .init(#""2025-11-20T21:48:56-0530""#, 1_763_695_136_000, "an offset without a colon"),
        .init(#""2025-11-21T03:18:56 Z""#, 1_763_695_136_000, "a blank before the zone"),
        .init(#""2025-11-21T03:18:56,123Z""#, 1_763_695_136_123, "a comma"),
        .init(#""2025-11-21T03:18:56.1234999Z""#, 1_763_695_136_123, "rounded down"),
        .init(#""2025-11-21T03:18:56.9995Z""#, 1_763_695_137_000, "rounded into the next second"),
        .init(#""2025-11-21T03:18:56.123456789Z""#, 1_763_695_136_123, "nine digits"),
        .init(#""2025-11-21T03:18:56.1234567890Z""#, nil, "ten digits"),
        .init(#""2025-11-21T03:18:56.Z""#, nil, "no digits"),
        .init(#""2016-12-31T23:59:60Z""#, 1_483_228_799_000, "a leap second"),
        .init(#""2016-12-31T23:59:61Z""#, nil, "no second"),
        .init(#""2024-02-29T00:00:00Z""#, 1_709_164_800_000, "a leap day"),
        .init(#""2000-02-29T00:00:00Z""#, 951_782_400_000, "a leap day in a leap century"),
        .init(#""2025-02-29T00:00:00Z""#, nil, "no leap day"), .init(#""2100-02-29T00:00:00Z""#, nil, "nor in 2100"),
        .init(#""2025-13-01T00:00:00Z""#, nil, "month 13"), .init(#""2025-00-01T00:00:00Z""#, nil, "month 0"),
        .init(#""2025-04-31T00:00:00Z""#, nil, "April 31"), .init(#""2025-04-00T00:00:00Z""#, nil, "day 0"),
        .init(#""2025-04-30T24:00:00Z""#, nil, "hour 24"), .init(#""2025-04-30T23:60:00Z""#, nil, "minute 60"),
        .init(#""1970-01-01T00:00:00Z""#, nil, "the epoch"),
        .init(#""1970-01-01T00:00:00.001Z""#, 1, "just after the epoch"),
        .init(#""1969-12-31T23:59:59Z""#, nil, "before the epoch"), .init(#""0000-01-01T00:00:00Z""#, nil, "year 0"),
        .init(#""9999-12-31T23:59:59.999Z""#, 253_402_300_799_999, "the last time there is"),
        .init(#""9999-12-31T23:59:59.9995Z""#, nil, "rounded past it"),
        .init(#""9999-12-31T23:59:59-00:01""#, nil, "past it by its zone"),
        .init(#""2025-11-21""#, nil, "a date alone"), .init(#""2025-11-21T03""#, nil, "an hour alone"),
        .init(#""2025-11-21T03:18:56+1""#, nil, "half an offset"), .init(#""2025-11-21T03:18:56ZZ""#, nil, "two zones"),
        .init(#""20251121T031856Z""#, nil, "the basic format"), .init(#""2025-11-21t03:18:56Z""#, nil, "small t"),
        .init("\"" + String(repeating: "1", count: 65) + "\"", nil, "longer than any time"),
    ]
}

@Suite("Frame scalars")
struct FrameScalarsTests {
    @Test("a time is read by its shape and size", arguments: TimeRow.rows)
    func times(_ row: TimeRow) throws {
        let expected = row.milliseconds.map { ChatTimestamp(milliseconds: $0) }
        #expect(try withField(row.json) { FrameTime().read($0) } == expected)
        #expect(FrameTime().read(try JSONValue(parsing: row.json)) == expected)
    }

    @Test(
        "small numbers count from 2001 where the wire does",
        arguments: [
            ("785387936.25", 1_763_695_136_250), ("1199999999", 2_178_307_199_000), ("1200000000", 1_200_000_000_000),
            ("-1", 978_307_199_000), ("0", 978_307_200_000), ("-978307200", nil), ("1763695136123", 1_763_695_136_123),
            (#""785387936""#, 1_763_695_136_000), (#""2025-11-21T03:18:56Z""#, 1_763_695_136_000),
        ] as [(String, Int64?)])
    func referenceTimes(_ json: String, _ milliseconds: Int64?) throws {
        let time = try withField(json) { FrameTime(epoch: .reference).read($0) }
        #expect(time?.milliseconds == milliseconds)
    }

    @Test("the offset applies only to times without a zone")
    func naiveOffset() {
        let reader = FrameTime(naiveOffsetSeconds: 3600)
        #expect(reader.text("2025-11-21T04:18:56")?.milliseconds == 1_763_695_136_000)
        #expect(reader.text("2025-11-21T03:18:56Z")?.milliseconds == 1_763_695_136_000)
        #expect(reader.text("1763695136")?.milliseconds == 1_763_695_136_000)
    }

    @Test("a time read by words is the one read digit by digit, wherever it is spoilt")
    func timesByWords() throws {
        func read(_ bytes: [UInt8]) throws -> ChatTimestamp? {
            try withField("\"" + String(decoding: bytes, as: UTF8.self) + "\"") { FrameTime().read($0) }
        }
        var readable = 0
        for text in [
            "2025-11-21T03:18:56", "1999-12-31T23:59:60.123456Z", "2024-02-29T00:00:00.5+05:30", "9999-12-31T23:59:59Z",
        ] {
            for place in text.utf8.indices {
                for byte in UInt8(0x20)..<0x7F where byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\") {
                    var spoilt = Array(text.utf8)
                    let offset = text.utf8.distance(from: text.startIndex, to: place)
                    spoilt[offset] = byte
                    // A blank in place of the `T` means the same and is read digit by digit.
                    var slow = spoilt
                    if slow[10] == UInt8(ascii: "T") { slow[10] = UInt8(ascii: " ") }
                    let time = try read(spoilt)
                    #expect(time == (try read(slow)), "\(String(decoding: spoilt, as: UTF8.self))")
                    if time != nil { readable += 1 }
                }
            }
        }
        #expect(readable > 400)
    }

    @Test("one of our names is ours, whether we have one or several")
    func ownNames() {
        #expect(DialectContext(selfNames: ["Ada"], room: "r").isSelfName("Ada"))
        #expect(!DialectContext(selfNames: ["Ada"], room: "r").isSelfName("Adam"))
        #expect(!DialectContext(selfNames: ["Ada"], room: "r").isSelfName(nil))
        #expect(DialectContext(selfNames: ["Ada", "Bo"], room: "r").isSelfName("Bo"))
        #expect(!DialectContext(selfNames: ["Ada", "Bo"], room: "r").isSelfName("Jo"))
        #expect(!DialectContext(room: "r").isSelfName("Ada"))
    }

    @Test(
        "an id is a string, or a number in all its digits",
        arguments: [
            (#""A1""#, "A1"), (#""""#, nil), (#"" ""#, " "), ("42", "42"), ("-7", "-7"), ("0", "0"), ("-0", "0"),
            ("9007199254740993", "9007199254740993"), ("18446744073709551616", "18446744073709551616"),
            ("42.0", "42"), ("4.2e1", "42"), ("1.5", "1.5"), ("1e999", nil), ("true", nil), ("null", nil), ("[1]", nil),
            ("{}", nil),
        ] as [(String, String?)])
    func ids(_ json: String, _ id: String?) throws {
        #expect(try withField(json) { FrameText.id($0) }?.rawValue == id)
        #expect(FrameText.id(nil) == nil)
    }

    @Test("a type value for the log is cut at a code point")
    func typeKeys() throws {
        #expect(try withField(#""chat.new""#) { FrameText.typeKey($0) } == "chat.new")
        #expect(try withField("12") { FrameText.typeKey($0) } == "12")
        for text in [String(repeating: "🦀", count: 100), String(repeating: "x", count: 4000)] {
            let key = try withField("\"\(text)\"") { FrameText.typeKey($0) }
            #expect(key.unicodeScalars.count == FrameText.maxTypeKeyLength)
            #expect(text.hasPrefix(key))
        }
    }

    // MARK: - Attachments

    @Test(
        "a text that is one data: URI in base64 is an attachment",
        arguments: [
            ("data:image/png;base64,iVBORy4uLi4=", .image, 8, "image/png"),
            ("data:video/mp4;base64,AAAA", .video, 3, "video/mp4"),
            ("data:audio/x-m4a;base64,AA==", .audio, 1, "audio/x-m4a"),
            ("data:application/pdf;base64,AAA=", .document, 2, "application/pdf"),
            ("data:text/plain;charset=utf-8;base64,AAAA", .document, 3, "text/plain"),
            ("data:;base64,AAAA", .file, 3, "text/plain"),
            (" \ndata:image/gif;base64,AA+/\r\n", .image, 3, "image/gif"),
            ("data:image/png;base64,", .image, nil, "image/png"),
        ] as [(String, ChatAttachment.Kind, Int64?, String)])
    func inline(_ text: String, _ kind: ChatAttachment.Kind, _ size: Int64?, _ mime: String) throws {
        let attachment = try #require(FrameAttachment.inline(text))
        #expect(attachment.kind == kind)
        #expect(attachment.size == size)
        #expect(attachment.mime == mime)
        #expect(attachment.inline.map { text.contains(";base64," + $0) } == true)
        #expect(attachment.url == nil)
    }

    @Test(
        "any other text is text",
        arguments: [
            "", " ", "data:", "data:image/png,raw", "data:image/png;base64", "see data:image/png;base64,AAAA",
            "data:image/png;base64,AAAA ok", "data:image/png;base64,A A", "data:image/png;base64,AA===",
            "data:image/png;base64,A=A=", "data:image;base64,AAAA", "data:image/png;x;base64,AAAA",
            "data:image/png;base64,-_-_", "data:/png;base64,AAAA", "DATA:image/png;base64,AAAA",
            "data:image/png;;base64,A",
        ])
    func notInline(_ text: String) { #expect(FrameAttachment.inline(text) == nil) }

    @Test("links follow the text on lines of their own")
    func links() {
        let files = [
            ChatAttachment(kind: .image, url: "https://f/1"), ChatAttachment(kind: .file),
            ChatAttachment(kind: .file, url: ""), ChatAttachment(kind: .file, url: "https://f/2"),
        ]
        #expect(FrameAttachment.textWithLinks("look", files) == "look\nhttps://f/1\nhttps://f/2")
        #expect(FrameAttachment.textWithLinks("", files) == "https://f/1\nhttps://f/2")
        #expect(FrameAttachment.textWithLinks("look", []) == "look")
    }
}
