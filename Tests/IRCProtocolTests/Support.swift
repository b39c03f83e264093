import IRCProtocol
import WireBytes

func parse(_ line: String) throws(IRCLineError) -> IRCMessage { try parse(bytes: Array(line.utf8)) }

func parse(bytes: [UInt8]) throws(IRCLineError) -> IRCMessage {
    let result: Result<IRCMessage, IRCLineError> = bytes.withUnsafeBytes { raw in
        do throws(IRCLineError) { return .success(try IRCParse.parse(raw)) } catch { return .failure(error) }
    }
    return try result.get()
}

func encode(_ message: IRCMessage) -> String {
    var writer = ByteWriter()
    IRCEncoder.append(message, to: &writer)
    return writer.take().text
}

/// One thing that a decoder gave, as a value.
enum DecodedLine: Equatable, CustomStringConvertible {
    case line([UInt8])
    case tooLong

    var description: String {
        switch self {
        case .line(let bytes): "line(\(String(decoding: bytes.prefix(40), as: UTF8.self)) \(bytes.count))"
        case .tooLong: "tooLong"
        }
    }

    static func text(_ text: String) -> DecodedLine { .line(Array(text.utf8)) }
}

/// Feeds the chunks one after the other and pulls all lines after each.
func decode(_ chunks: [ArraySlice<UInt8>], limits: IRCLimits) -> (lines: [DecodedLine], held: Int, peak: Int) {
    var decoder = IRCLineDecoder(limits: limits)
    var lines: [DecodedLine] = []
    var peak = 0
    for chunk in chunks {
        chunk.withUnsafeBytes { decoder.append($0) }
        while let line = decoder.withNextLine({ line in
            switch line {
            case .line(let bytes): DecodedLine.line(Array(bytes))
            case .tooLong: DecodedLine.tooLong
            }
        }) { lines.append(line) }
        peak = max(peak, decoder.bufferedByteCount)
    }
    return (lines, decoder.bufferedByteCount, peak)
}

/// Decodes whole, byte by byte and with each single cut, and returns the common result, or nil when they differ.
func decodeSplit(_ bytes: [UInt8], limits: IRCLimits = IRCLimits()) -> [DecodedLine]? {
    let whole = decode([bytes[...]], limits: limits).lines
    if decode(bytes.indices.map { bytes[$0...$0] }, limits: limits).lines != whole { return nil }
    for cut in bytes.indices where decode([bytes[..<cut], bytes[cut...]], limits: limits).lines != whole {
        return nil
    }
    return whole
}

extension IRCLimits {
    /// The limits of a client, for lines from a server.
    static let ofServerLines = IRCLimits(maxReceivedTagBytes: IRCLimits.maxTagBytes)
}
