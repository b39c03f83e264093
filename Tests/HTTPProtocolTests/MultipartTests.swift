import BridgeTestSupport
import HTTPProtocol
import Testing
import WireBytes

@Suite("Multipart forms")
struct MultipartTests {
    /// What is read: contents put together, errors as they are.
    static func read(_ pieces: [[UInt8]], type: String = "multipart/form-data; boundary=B") -> [String] {
        guard var reader = HTTPMultipartReader(contentType: type) else { return ["no form"] }
        var told: [String] = []
        for event in pieces.flatMap({ piece in piece.withUnsafeBytes { reader.bytesReceived($0) } }) {
            switch event {
            case .part(let part):
                told.append(
                    "part \(part.name)" + (part.fileName.map { " file \($0)" } ?? "")
                        + (part.contentType.map { " type \($0)" } ?? ""))
            case .content(let bytes):
                let text = String(decoding: bytes, as: UTF8.self)
                if let last = told.last, last.hasPrefix("content ") {
                    told[told.count - 1] = last + text
                } else {
                    told.append("content " + text)
                }
            case .partEnded: told.append("/part")
            case .ended: told.append("end")
            case .failed(let error): told.append("failed \(error)")
            }
        }
        if !reader.isComplete, told.last?.hasPrefix("failed") != true { told.append("cut off") }
        return told
    }

    static func check(_ text: String, _ expected: [String], sourceLocation: SourceLocation = #_sourceLocation) {
        let found = SplitFeedVerifier.disagreements(Array(text.utf8), expected: expected) { read($0) }
        #expect(found == [], sourceLocation: sourceLocation)
    }

    static let field = "Content-Disposition: form-data; name=\"a\"\r\n\r\n"

    @Test(
        "a form is read part by part, however it is cut",
        arguments: [
            ("one field", "--B\r\n" + field + "x\r\n--B--\r\n", ["part a", "content x", "/part", "end"]),
            (
                "a file",
                "--B\r\ncontent-disposition: Form-Data; NAME=n; filename=\"C:\\x\\\"y%22.txt\"\r\n"
                    + "Content-Type: text/plain\r\n\r\nx\r\n--B--",
                ["part n file C:\\x\"y\".txt type text/plain", "content x", "/part", "end"]
            ),
            ("an empty part", "--B\r\n" + field + "\r\n--B--", ["part a", "/part", "end"]),
            ("a part without even a line end", "--B\r\n" + field + "--B--", ["part a", "/part", "end"]),
            (
                "content like a boundary", "--B\r\n" + field + "\r\n\r\n--\r\n-\r\r\n--b\r\n--A\r\n--B--",
                ["part a", "content \r\n\r\n--\r\n-\r\r\n--b\r\n--A", "/part", "end"]
            ),
            (
                "content that begins like the rest of a boundary", "--B\r\n" + field + "--A\r\n--B--",
                ["part a", "content --A", "/part", "end"]
            ),
            (
                "text before and after", "before\r\n--B \t\r\n" + field + "x\r\n--B--after\r\n--B\r\n",
                ["part a", "content x", "/part", "end"]
            ),
            (
                "two parts", "--B\r\n" + field + "1\r\n--B\r\n" + field + "2\r\n--B--",
                ["part a", "content 1", "/part", "part a", "content 2", "/part", "end"]
            ),
            ("no end", "--B\r\n" + field + "x", ["part a", "content x", "cut off"]),
            ("nothing", "", ["cut off"]), ("only the end", "--B--", ["end"]),
            ("a longer boundary", "--BC\r\n", ["failed malformedBoundaryLine"]),
            ("a bare LF after a boundary", "--B\n", ["failed malformedBoundaryLine"]),
            ("half an end", "--B-\r\n", ["failed malformedBoundaryLine"]),
            ("no name", "--B\r\nContent-Disposition: form-data\r\n\r\n", ["failed malformedPartHead"]),
            ("another disposition", "--B\r\nContent-Disposition: file; name=a\r\n\r\n", ["failed malformedPartHead"]),
            (
                "two names", "--B\r\nContent-Disposition: form-data; name=a; name=b\r\n\r\n",
                ["failed malformedPartHead"]
            ),
            ("no disposition", "--B\r\nA: b\r\n\r\n", ["failed malformedPartHead"]),
            ("a bare LF in a part's head", "--B\r\nA: b\n\r\n", ["failed malformedPartHead"]),
            ("a bare CR in a part's head", "--B\r\nA: b\rc\r\n\r\n", ["failed malformedPartHead"]),
            ("a folded field", "--B\r\nA: b\r\n c\r\n\r\n", ["failed malformedPartHead"]),
            (
                "a head without end",
                "--B\r\n" + String(repeating: "a", count: HTTPMultipartLimits.maxPartHeadBytes + 1),
                ["failed partHeadTooLong"]
            ),
            (
                "a long preamble", String(repeating: "a", count: HTTPMultipartLimits.maxPreambleBytes + 1),
                ["failed preambleTooLong"]
            ),
            ("long padding", "--B" + String(repeating: " ", count: 65), ["failed malformedBoundaryLine"]),
        ] as [(String, String, [String])])
    func forms(name: String, text: String, told: [String]) { Self.check(text, told) }

    @Test("too many parts are refused")
    func parts() {
        let part = "--B\r\n" + Self.field + "\r\n"
        let told = Self.read([Array(String(repeating: part, count: HTTPMultipartLimits.maxParts + 1).utf8)])
        #expect(told.last == "failed tooManyParts")
        #expect(told.count { $0 == "part a" } == HTTPMultipartLimits.maxParts)
    }

    @Test(
        "what is no form is not read",
        arguments: [
            "text/plain; boundary=B", "multipart/form-data", "multipart/form-data; boundary=",
            "multipart/form-data; boundary=\"\"", "multipart/form-data; boundary=\"a",
            "multipart/form-data; boundary=B; boundary=C",
            "multipart/form-data; boundary=\"\(String(repeating: "b", count: 71))\"",
            "multipart/form-data; boundary=\"a \"", "multipart/form-data; boundary=\"é\"",
        ])
    func noForm(_ type: String) { #expect(Self.read([], type: type) == ["no form"]) }

    @Test("what is written reads back, whatever it holds")
    func roundTrip() throws {
        var rng = SeededGenerator(seed: 7)
        let writer = HTTPMultipartWriter(using: &rng)
        #expect(writer.contentType.hasPrefix("multipart/form-data; boundary=----"))
        let boundary = try #require(HTTPParameterizedValue(writer.contentType)?.parameter("boundary"))
        #expect(boundary.utf8.count == 36)
        var out = ByteWriter()
        writer.append(field: "a\"b\r\n", value: "1\r\n--\(boundary)x".replacing(boundary, with: "y"), into: &out)
        try writer.beginFile(name: "f", fileName: "ü \"q\".png", contentType: "image/png", into: &out)
        out.append([0, 13, 10, 45, 45])
        writer.endFile(into: &out)
        writer.append(field: "empty", value: "", into: &out)
        writer.finish(into: &out)
        let bytes = out.take().withUnsafeBytes { Array($0) }
        let expected = [
            "part a\"b\r\n", "content 1\r\n--yx", "/part", "part f file ü \"q\".png type image/png",
            "content \u{0}\r\n--", "/part", "part empty", "/part", "end",
        ]
        let found = SplitFeedVerifier.disagreements(bytes, expected: expected) {
            Self.read($0, type: writer.contentType)
        }
        #expect(found == [])
    }

    @Test("what would break a part's head is not written")
    func injection() {
        var out = ByteWriter()
        let writer = HTTPMultipartWriter(boundary: "B")
        #expect(throws: HTTPProtocolError.self) {
            try writer?.beginFile(name: "a", fileName: "b", contentType: "a\r\nB: c", into: &out)
        }
        let written = out.count
        #expect(written == 0)
        #expect(HTTPMultipartWriter(boundary: "a b") == nil)
        #expect(HTTPMultipartWriter(boundary: "") == nil)
        #expect(HTTPMultipartWriter(boundary: String(repeating: "b", count: 71)) == nil)
    }

    @Test("a field's parameters are read with quotes, escapes and blanks")
    func parameters() {
        let value = HTTPParameterizedValue("text/plain ; A=\"b;\\\"c\" ;d=e;")
        #expect(value?.value == "text/plain")
        #expect(value?.parameter("a") == "b;\"c")
        #expect(value?.parameter("D") == "e")
        for bad in ["a; b", "a; =c", "a; b=", "a; b=c d", "a; b=\"c", "a; b=c; B=d", "a;;"] {
            #expect(HTTPParameterizedValue(bad) == nil, "\(bad)")
        }
    }
}
