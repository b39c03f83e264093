import BridgeTestSupport
import HTTPProtocol
import Testing
import WireBytes

@Suite("Multipart forms")
struct MultipartTests {
    @Test("fields and files are written as browsers do it, whatever they hold")
    func written() throws {
        let writer = try #require(HTTPMultipartWriter(boundary: "B"))
        #expect(writer.contentType == "multipart/form-data; boundary=B")
        var out = ByteWriter()
        writer.append(field: "a\"b\r\n", value: "1\r\n--x", into: &out)
        try writer.beginFile(name: "f", fileName: "ü \"q\".png", contentType: "image/png", into: &out)
        out.append([0, 13, 10, 45, 45])
        writer.endFile(into: &out)
        writer.append(field: "empty", value: "", into: &out)
        writer.finish(into: &out)
        let parts = [
            "--B\r\nContent-Disposition: form-data; name=\"a%22b%0D%0A\"\r\n\r\n1\r\n--x\r\n",
            "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"ü %22q%22.png\"\r\n",
            "Content-Type: image/png\r\n\r\n\u{0}\r\n--\r\n",
            "--B\r\nContent-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n", "--B--\r\n",
        ]
        #expect(out.take().withUnsafeBytes { String(decoding: $0, as: UTF8.self) } == parts.joined())
    }

    @Test("no content has the boundary by chance")
    func boundary() throws {
        var random = SeededGenerator(seed: 7)
        let boundaries = try (0..<100).map { _ in
            try #require(
                HTTPParameterizedValue(HTTPMultipartWriter(using: &random).contentType)?.parameter("boundary"))
        }
        #expect(Set(boundaries).count == 100)
        #expect(boundaries.allSatisfy { $0.hasPrefix("----") && $0.utf8.count == 36 })
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
