import BridgeTestSupport
import IRCProtocol
import Testing

struct DecoderRow: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]
    let lines: [DecodedLine]
    var testDescription: String { name }

    init(_ name: String, _ text: String, _ lines: DecodedLine...) {
        self.name = name
        bytes = Array(text.utf8)
        self.lines = lines
    }
}

private func run(_ byte: Character, _ count: Int) -> String { String(repeating: byte, count: count) }

let decoderRows: [DecoderRow] = [
    DecoderRow("CR LF ends a line", "PING a\r\nPING b\r\n", .text("PING a"), .text("PING b")),
    DecoderRow("a bare LF ends a line", "PING a\nPING b\n", .text("PING a"), .text("PING b")),
    DecoderRow("a bare CR ends none", "PING a\rPING b\n", .text("PING a\rPING b")),
    DecoderRow("no line before its end", "PING a\r\nPING b", .text("PING a")),
    DecoderRow("empty lines are skipped", "\r\n\n\r\n\nPING\r\n\r\n\n", .text("PING")),
    DecoderRow("nothing at all", ""),
    DecoderRow("510 bytes fit with CR LF", run("a", 510) + "\r\nPING\n", .text(run("a", 510)), .text("PING")),
    DecoderRow("510 bytes fit with LF", run("a", 510) + "\nPING\n", .text(run("a", 510)), .text("PING")),
    DecoderRow("511 bytes do not", run("a", 511) + "\nPING\n", .tooLong, .text("PING")),
    DecoderRow("511 bytes and CR LF do not", run("a", 511) + "\r\nPING\n", .tooLong, .text("PING")),
    DecoderRow("510 bytes and CR CR LF do not", run("a", 510) + "\r\r\nPING\n", .tooLong, .text("PING")),
    DecoderRow("a long line is reported once", run("a", 1700) + "\nPING\n", .tooLong, .text("PING")),
    DecoderRow("a long line without an end", "PING\n" + run("a", 1700), .text("PING"), .tooLong),
    DecoderRow("two long lines", run("a", 700) + "\n" + run("b", 700) + "\n", .tooLong, .tooLong),
    DecoderRow(
        "tags do not count as content", "@a=" + run("b", 900) + " " + run("c", 510) + "\r\n",
        .text("@a=" + run("b", 900) + " " + run("c", 510))),
    DecoderRow("content after tags is counted", "@a=b " + run("c", 511) + "\nPING\n", .tooLong, .text("PING")),
]

@Suite("IRC line decoder")
struct LineDecoderTests {
    @Test("lines come out the same however the stream is cut", arguments: decoderRows)
    func decodes(row: DecoderRow) {
        #expect(decodeSplit(row.bytes) == row.lines)
    }

    @Test("tags of 4094 bytes fit, one more does not", arguments: [(4091, false), (4092, true)])
    func tagLimit(valueBytes: Int, isTooLong: Bool) {
        // "a=" and the value are the data; "@" and the space come on top.
        let line = "@aa=" + run("b", valueBytes) + " PING"
        let bytes = Array((line + "\r\nPONG\n").utf8)
        let expected: [DecodedLine] = [isTooLong ? .tooLong : .text(line), .text("PONG")]
        #expect(decode([bytes[...]], limits: IRCLimits()).lines == expected)
        #expect(decode(bytes.indices.map { bytes[$0...$0] }, limits: IRCLimits()).lines == expected)
    }

    @Test("the server's side of the limit is 8191")
    func serverTagLimit() {
        let fits = "@a=" + run("b", 8191 - 4) + " PING"
        let over = "@a=" + run("b", 8191 - 3) + " PING"
        let bytes = Array((fits + "\n" + over + "\n").utf8)
        #expect(decode([bytes[...]], limits: .ofServerLines).lines == [.text(fits), .tooLong])
    }

    @Test("small limits hold as well, cut everywhere")
    func smallLimits() {
        let limits = IRCLimits(maxLineBytes: 12, maxReceivedTagBytes: 6)
        let bytes = Array("@a=bc 0123456789\r\n@a=bcd 01\n0123456789\r\n0123456789a\n@aaaaaaaaaaaaaaaaaaaaa\nok\n".utf8)
        #expect(
            decodeSplit(bytes, limits: limits) == [
                .text("@a=bc 0123456789"), .tooLong, .text("0123456789"), .tooLong, .tooLong, .text("ok"),
            ])
    }

    @Test("memory stays bounded while no newline comes", arguments: ["a", "@"])
    func bounded(first: String) {
        let limits = IRCLimits()
        var chunk = Array(repeating: UInt8(ascii: "x"), count: 1000)
        var chunks: [ArraySlice<UInt8>] = [Array(first.utf8)[...]]
        for _ in 0..<200 { chunks.append(chunk[...]) }
        chunk = Array("\nPING\n".utf8)
        chunks.append(chunk[...])
        let result = decode(chunks, limits: limits)
        #expect(result.lines == [.tooLong, .text("PING")])
        #expect(result.peak <= limits.maxUnfinishedBytes)
        #expect(result.held == 0)
    }

    @Test("random streams give the same lines however they are cut", arguments: LawSeeds.seeds(30))
    func random(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let limits = IRCLimits(maxLineBytes: 10, maxReceivedTagBytes: 8)
        let alphabet = Array("@ ab\r\n\nxyz".utf8)
        let bytes = (0..<300).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
        let lines = decodeSplit(bytes, limits: limits)
        #expect(lines?.isEmpty == false, "seed \(seed)")
    }
}
