import HTTPProtocol
import Testing

/// A request that two readers could understand differently, and how it is refused.
struct SmugglingRow: CustomTestStringConvertible, Sendable {
    var name: String
    /// Of RFC 9112, unless it says otherwise.
    var section: String
    var text: String
    /// The events before the refusal: content that came before the doubt.
    var before: [String]
    var error: HTTPProtocolError

    init(_ name: String, _ section: String, _ text: String, _ error: HTTPProtocolError, after before: [String] = []) {
        self.name = name
        self.section = section
        self.text = text
        self.before = before
        self.error = error
    }

    /// A POST with these fields and this body.
    init(
        _ name: String, _ section: String, fields: String, body: String = "", _ error: HTTPProtocolError,
        after before: [String] = []
    ) {
        self.init(name, section, "POST /a HTTP/1.1\r\nHost: h\r\n\(fields)\r\n\(body)", error, after: before)
    }

    /// A POST with a chunked body.
    init(_ name: String, _ section: String, chunks: String, _ error: HTTPProtocolError, after before: [String] = []) {
        self.init(
            name, section, fields: "Transfer-Encoding: chunked\r\n", body: chunks, error,
            after: ["POST /a"] + before)
    }

    var testDescription: String { "\(name) (\(section))" }
}

@Suite("Request smuggling")
struct SmugglingTests {
    static let next = "GET /secret HTTP/1.1\r\nHost: h\r\n\r\n"

    static let rows: [SmugglingRow] = [
        // Two lengths
        SmugglingRow(
            "CL.TE", "§6.3", fields: "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", body: "0\r\n\r\nG",
            .ambiguousBodyLength),
        SmugglingRow(
            "TE.CL", "§6.3", fields: "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
            body: "5c\r\nGPOST / HTTP/1.1\r\n", .ambiguousBodyLength),
        SmugglingRow(
            "CL.0 with TE in another case", "§6.3", fields: "Content-Length: 0\r\ntRANSFER-eNCODING: Chunked\r\n",
            .ambiguousBodyLength),
        SmugglingRow(
            "two equal Content-Length", "§6.3", fields: "Content-Length: 1\r\nContent-Length: 1\r\n", body: "a",
            .ambiguousBodyLength),
        SmugglingRow(
            "two differing Content-Length", "§6.3", fields: "Content-Length: 0\r\nContent-Length: 44\r\n", body: next,
            .ambiguousBodyLength),
        SmugglingRow(
            "a list of equal lengths", "§6.3", fields: "Content-Length: 1, 1\r\n", body: "a", .ambiguousBodyLength),
        SmugglingRow(
            "a list of differing lengths", "§6.3", fields: "Content-Length: 0, 44\r\n", body: next,
            .ambiguousBodyLength),
        // Lengths that are no numbers
        SmugglingRow("a length with plus", "§6.2", fields: "Content-Length: +1\r\n", body: "a", .ambiguousBodyLength),
        SmugglingRow("a length with minus", "§6.2", fields: "Content-Length: -1\r\n", body: "a", .ambiguousBodyLength),
        SmugglingRow("a length in hex", "§6.2", fields: "Content-Length: 0x1\r\n", body: "a", .ambiguousBodyLength),
        SmugglingRow("an empty length", "§6.2", fields: "Content-Length:\r\n", .ambiguousBodyLength),
        SmugglingRow("a length with a blank", "§6.2", fields: "Content-Length: 1 0\r\n", .ambiguousBodyLength),
        SmugglingRow(
            "a length beyond 64 bits", "§6.2", fields: "Content-Length: 18446744073709551617\r\n", body: "a",
            .ambiguousBodyLength),
        SmugglingRow(
            "a length with digits of another script", "§6.2", fields: "Content-Length: ١\r\n", body: "a",
            .ambiguousBodyLength),
        SmugglingRow("a quoted length", "§6.2", fields: "Content-Length: \"1\"\r\n", body: "a", .ambiguousBodyLength),
        // Transfer codings
        SmugglingRow(
            "an unknown coding", "§6.1", fields: "Transfer-Encoding: xchunked\r\n", body: "0\r\n\r\n",
            .ambiguousBodyLength),
        SmugglingRow(
            "chunked not last", "§6.3", fields: "Transfer-Encoding: chunked, identity\r\n", body: "0\r\n\r\n",
            .ambiguousBodyLength),
        SmugglingRow(
            "chunked twice", "§6.1", fields: "Transfer-Encoding: chunked, chunked\r\n", body: "0\r\n\r\n",
            .ambiguousBodyLength),
        SmugglingRow(
            "chunked in two fields", "§6.1", fields: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            body: "0\r\n\r\n", .ambiguousBodyLength),
        SmugglingRow(
            "chunked and another field", "§6.1", fields: "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n",
            body: "0\r\n\r\n", .ambiguousBodyLength),
        SmugglingRow(
            "a coding that we cannot read", "§6.1", fields: "Transfer-Encoding: gzip, chunked\r\n", body: "0\r\n\r\n",
            .unsupportedTransferCoding),
        SmugglingRow(
            "an empty coding", "§6.1", fields: "Transfer-Encoding:\r\n", body: "0\r\n\r\n", .ambiguousBodyLength),
        SmugglingRow(
            "a quoted coding", "§6.1", fields: "Transfer-Encoding: \"chunked\"\r\n", body: "0\r\n\r\n",
            .ambiguousBodyLength),
        SmugglingRow(
            "a coding with a parameter", "§6.1", fields: "Transfer-Encoding: chunked;a=b\r\n", body: "0\r\n\r\n",
            .ambiguousBodyLength),
        SmugglingRow(
            "a coding behind a vertical tab", "§5.5 of RFC 9110", fields: "Transfer-Encoding: \u{B}chunked\r\n",
            .malformedHeader),
        SmugglingRow(
            "chunked in HTTP/1.0", "§6.1",
            "POST /a HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", .ambiguousBodyLength),
        // Names and lines of fields
        SmugglingRow(
            "a blank before the colon", "§5.1", fields: "Transfer-Encoding : chunked\r\n", body: "0\r\n\r\n",
            .malformedHeader),
        SmugglingRow("a tab before the colon", "§5.1", fields: "Content-Length\t: 1\r\n", body: "a", .malformedHeader),
        SmugglingRow("an empty name", "§5", fields: ": x\r\n", .malformedHeader),
        SmugglingRow("a field without a colon", "§5", fields: "Content-Length\r\n", .malformedHeader),
        SmugglingRow(
            "a NUL in a name", "§5", fields: "Transfer-Encoding\u{0}: chunked\r\n", .malformedHeader),
        SmugglingRow("a NUL in a value", "§5.5 of RFC 9110", fields: "A: b\u{0}c\r\n", .malformedHeader),
        SmugglingRow(
            "a folded field", "§5.2", fields: "Transfer-Encoding:\r\n chunked\r\n", body: "0\r\n\r\n",
            .obsoleteLineFolding),
        SmugglingRow(
            "a first field that is folded", "§2.2", "POST /a HTTP/1.1\r\n Host: h\r\n\r\n", .obsoleteLineFolding),
        SmugglingRow("a bare LF in the fields", "§2.2", fields: "A: b\nContent-Length: 1\r\n", .lineEndingNotCRLF),
        SmugglingRow("a bare CR in a field", "§2.2", fields: "A: b\rContent-Length: 1\r\n", .lineEndingNotCRLF),
        SmugglingRow(
            "a bare LF after the request line", "§2.2", "POST /a HTTP/1.1\nHost: h\r\n\r\n", .lineEndingNotCRLF),
        SmugglingRow("CR CR LF", "§2.2", "POST /a HTTP/1.1\r\r\nHost: h\r\n\r\n", .lineEndingNotCRLF),
        // Request lines and hosts
        SmugglingRow(
            "two blanks in the request line", "§3", "GET  /a HTTP/1.1\r\nHost: h\r\n\r\n", .malformedStartLine),
        SmugglingRow("a tab in the request line", "§3", "GET\t/a HTTP/1.1\r\nHost: h\r\n\r\n", .malformedStartLine),
        SmugglingRow("no version", "§3", "GET /a\r\nHost: h\r\n\r\n", .malformedStartLine),
        SmugglingRow("a version of two digits", "§2.3", "GET /a HTTP/1.01\r\nHost: h\r\n\r\n", .malformedStartLine),
        SmugglingRow("HTTP/2 in the open", "§2.3", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .unsupportedVersion),
        SmugglingRow("no Host", "§3.2", "GET /a HTTP/1.1\r\n\r\n", .missingHost),
        SmugglingRow("two Hosts", "§3.2", "GET /a HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", .duplicateHost),
        SmugglingRow("a list as Host", "§3.2", "GET /a HTTP/1.1\r\nHost: h, i\r\n\r\n", .malformedHost),
        SmugglingRow("a user in Host", "§3.2", "GET /a HTTP/1.1\r\nHost: u@h\r\n\r\n", .malformedHost),
        SmugglingRow("a path in Host", "§3.2", "GET /a HTTP/1.1\r\nHost: h/b\r\n\r\n", .malformedHost),
        SmugglingRow("a port that is none", "§3.2", "GET /a HTTP/1.1\r\nHost: h:99999\r\n\r\n", .malformedHost),
        SmugglingRow(
            "a target of another host", "§3.2.2", "GET http://i/a HTTP/1.1\r\nHost: h\r\n\r\n", .hostMismatch),
        SmugglingRow(
            "a target of another port", "§3.2.2", "GET http://h:81/a HTTP/1.1\r\nHost: h\r\n\r\n", .hostMismatch),
        SmugglingRow(
            "a target with a user", "§3.2.2", "GET http://u@h/a HTTP/1.1\r\nHost: h\r\n\r\n", .malformedHost),
        SmugglingRow("a target without a slash", "§3.2.1", "GET a HTTP/1.1\r\nHost: h\r\n\r\n", .malformedTarget),
        SmugglingRow(
            "a target of another scheme", "§3.2.2", "GET ftp://h/a HTTP/1.1\r\nHost: h\r\n\r\n", .malformedTarget),
        SmugglingRow("an asterisk for GET", "§3.2.4", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", .malformedTarget),
        SmugglingRow("a fragment", "§3.2.1", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", .malformedTarget),
        SmugglingRow("a tunnel", "§3.2.3", "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", .unsupportedMethod),
        // Chunks
        SmugglingRow("a chunk size with 0x", "§7.1", chunks: "0x1\r\na\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow("a chunk size with plus", "§7.1", chunks: "+1\r\na\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow("a chunk size with minus", "§7.1", chunks: "-1\r\na\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow("a blank before a chunk size", "§7.1", chunks: " 1\r\na\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow("a blank after a chunk size", "§7.1.1", chunks: "1 \r\na\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow("an underscore in a chunk size", "§7.1", chunks: "1_0\r\n", .malformedChunk),
        SmugglingRow("an empty chunk size", "§7.1", chunks: "\r\na\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow("a chunk size that is only an extension", "§7.1.1", chunks: ";a=b\r\n", .malformedChunk),
        SmugglingRow("a chunk size beyond 64 bits", "§7.1", chunks: "10000000000000001\r\na\r\n", .malformedChunk),
        SmugglingRow("a chunk size below zero in 64 bits", "§7.1", chunks: "FFFFFFFFFFFFFFFF\r\na", .malformedChunk),
        SmugglingRow("a chunk size with many zeros", "§7.1", chunks: "0000000000000000\r\n\r\n", .malformedChunk),
        SmugglingRow("a bare LF after a chunk size", "§2.2", chunks: "1\na\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow("a bare CR after a chunk size", "§2.2", chunks: "1\ra\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow("a bare LF in an extension", "§7.1.1", chunks: "1;a\na\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow("a bare CR in an extension", "§7.1.1", chunks: "1;a\rb\r\na\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow("a NUL in an extension", "§7.1.1", chunks: "1;\u{0}\r\na\r\n0\r\n\r\n", .malformedChunk),
        SmugglingRow(
            "a bare LF after a chunk", "§7.1", chunks: "1\r\na\n0\r\n\r\n", .malformedChunk, after: ["body a"]),
        SmugglingRow(
            "a chunk longer than said", "§7.1", chunks: "1\r\nab\r\n0\r\n\r\n", .malformedChunk, after: ["body a"]),
        SmugglingRow("a bare LF in the trailers", "§7.1.2", chunks: "0\r\nA: b\n\r\n", .lineEndingNotCRLF),
        SmugglingRow("a bare CR in the trailers", "§7.1.2", chunks: "0\r\nA: b\rC: d\r\n\r\n", .lineEndingNotCRLF),
        SmugglingRow("a folded trailer", "§5.2", chunks: "0\r\nA: b\r\n c\r\n\r\n", .obsoleteLineFolding),
        SmugglingRow(
            "a length in the trailers", "§6.5.1 of RFC 9110", chunks: "0\r\nContent-Length: 5\r\n\r\n",
            .forbiddenTrailer),
        SmugglingRow(
            "a Host in the trailers", "§6.5.1 of RFC 9110", chunks: "0\r\nhost: i\r\n\r\n", .forbiddenTrailer),
        // Bytes behind a body are a request of their own, or nothing
        SmugglingRow(
            "garbage after the chunks", "§2.2", chunks: "0\r\n\r\n\u{0}GET /b\r\n\r\n", .malformedStartLine,
            after: ["end"]),
        SmugglingRow(
            "more bytes than the length", "§6.3", fields: "Content-Length: 1\r\n", body: "ab\r\n\r\n",
            .malformedStartLine, after: ["POST /a", "body a", "end"]),
        SmugglingRow(
            "a body for GET without a length", "§6.3",
            "GET /a HTTP/1.1\r\nHost: h\r\n\r\nx=1\r\n\r\n", .malformedStartLine, after: ["GET /a", "end"]),
        SmugglingRow(
            "an expectation that we do not know", "§10.1.1 of RFC 9110",
            fields: "Content-Length: 1\r\nExpect: 200-ok\r\n", .unknownExpectation),
    ]

    @Test("a form that two readers could split differently is refused, however it is cut", arguments: rows)
    func refused(_ row: SmugglingRow) {
        ServerHarness.check(row.text, row.before + ["failed \(row.error)"])
        #expect((400...599).contains(row.error.statusHint))
    }

    @Test("nothing after a refusal is read as a request")
    func nothingAfter() {
        for row in Self.rows {
            var harness = ServerHarness()
            harness.feed(row.text)
            let told = harness.told
            harness.feed(Self.next)
            #expect(harness.told == told, "\(row.name)")
        }
    }

    @Test("the table is long enough to be of use")
    func tableIsLong() { #expect(Self.rows.count >= 40) }
}
