import HTTPProtocol
import Testing

@Suite("Parts of files")
struct ByteRangeTests {
    @Test(
        "which part is asked for; nil is the whole",
        arguments: [
            ("bytes=0-9", .from(0, through: 9)), ("bytes=5-", .from(5, through: nil)), ("bytes=-5", .last(5)),
            ("BYTES=3-3", .from(3, through: 3)), ("bytes= 1-2 ", .from(1, through: 2)), ("bytes=-0", .last(0)),
            // Several parts, other units, and texts that are no range.
            ("bytes=0-1,5-6", nil), ("bytes=0-1,", nil), ("lines=0-1", nil), ("bytes 0-1", nil), ("bytes=", nil),
            ("bytes=-", nil), ("bytes=5-1", nil), ("bytes=a-b", nil), ("bytes=+1-2", nil), ("bytes=1--2", nil),
            ("bytes=--1", nil), ("", nil), ("bytes=0-99999999999999999999", nil), ("bytes=0x1-2", nil),
            ("bytes =0-1", nil),
        ] as [(String, HTTPByteRange?)])
    func reads(_ value: String, _ range: HTTPByteRange?) { #expect(HTTPByteRange(value) == range) }

    @Test(
        "which bytes that are; nil are none",
        arguments: [
            (.from(0, through: 9), 20, 0..<10), (.from(0, through: 99), 20, 0..<20),
            (.from(19, through: 19), 20, 19..<20),
            (.from(20, through: nil), 20, nil), (.from(5, through: nil), 20, 5..<20), (.last(5), 20, 15..<20),
            (.last(99), 20, 0..<20), (.last(0), 20, nil), (.last(5), 0, nil), (.from(0, through: nil), 0, nil),
            (.from(0, through: .max), 20, 0..<20), (.last(.max), 20, 0..<20),
        ] as [(HTTPByteRange, Int, Range<Int>?)])
    func resolves(_ wish: HTTPByteRange, _ length: Int, _ bytes: Range<Int>?) {
        #expect(wish.bytes(of: length) == bytes)
    }

    @Test(
        "what is written is read again",
        arguments: [.from(0, through: 9), .from(7, through: nil), .last(3)] as [HTTPByteRange])
    func writes(_ range: HTTPByteRange) { #expect(HTTPByteRange(range.field) == range) }

    @Test("only GET has parts, and one wish")
    func requests() {
        func range(_ method: String, _ fields: [String]) -> HTTPByteRange? {
            HTTPByteRange(
                request: HTTPRequestHead(
                    method: method, target: "/", headers: HTTPHeaders(fields.map { ("Range", $0) })))
        }
        #expect(range("GET", ["bytes=1-2"]) == .from(1, through: 2))
        #expect(range("HEAD", ["bytes=1-2"]) == nil)
        #expect(range("GET", ["bytes=1-2", "bytes=3-4"]) == nil)
        #expect(range("GET", []) == nil)
    }

    @Test(
        "which part came; nil is nothing that can be believed",
        arguments: [
            ("bytes 0-9/20", .part(0..<10, total: 20)), ("bytes 0-9/*", .part(0..<10, total: nil)),
            ("bytes */20", .unsatisfied(total: 20)), ("Bytes 19-19/20", .part(19..<20, total: 20)),
            ("bytes */*", nil), ("bytes 9-0/20", nil), ("bytes 0-20/20", nil), ("bytes 0-9", nil), ("0-9/20", nil),
            ("bytes 0-9/20 ", nil), ("items 0-9/20", nil), ("bytes 0-9/-1", nil), ("bytes -9/20", nil), ("", nil),
        ] as [(String, HTTPContentRange?)])
    func contentRanges(_ value: String, _ range: HTTPContentRange?) {
        #expect(HTTPContentRange(value) == range)
        if let range { #expect(HTTPContentRange(range.field) == range) }
    }
}

@Suite("Paths that lead elsewhere")
struct ClimbingTests {
    @Test(
        "however the steps are written",
        arguments: [
            ("/assets/1", false), ("/assets/..", true), ("/assets/../users", true), ("/./x", true),
            ("/assets/%2E%2e/users", true), ("/assets/..%2Fusers", true), ("/assets/..%5Cusers", true),
            ("/assets/..\\users", true), ("/assets/%252e%252e%252fusers", true), ("/assets/%25252e./x", true),
            ("/assets/a..b", false), ("/assets/...", false), ("/assets/1?x=/../y", false), ("/a%2Fb", false),
            ("/", false),
            ("/assets/100%25", false), ("/%", false), ("/%25", false),
        ])
    func climbs(_ target: String, _ doesClimb: Bool) { #expect(HTTPURL.climbs(target) == doesClimb) }
}
