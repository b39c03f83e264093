import WireBytes

/// Reads one request or response head from bytes as they come.
///
/// Strict where leniency has been used to smuggle requests: every line ends in CRLF, no folded fields, no white space
/// before the colon, one Host, one body length. After a head or an error the decoder is used up; make a new one for the
/// next head.
///
/// Source: RFC 9112 §2 to §6.
public struct HTTPHeadDecoder: Sendable {
    public enum Kind: Sendable { case request, response }

    public enum Step: Equatable, Sendable {
        /// All bytes fed were taken; the head is not whole.
        case needMoreData
        /// `consumed` bytes of those fed last belong to the head; the rest are body or another protocol.
        case request(HTTPRequestHead, consumed: Int)
        case response(HTTPResponseHead, consumed: Int)
    }

    private let kind: Kind
    /// The finished lines, and what there is of the one in progress.
    private var held: [UInt8] = []
    /// Where each finished line starts and, without CRLF, ends.
    private var lines: [Range<Int>] = []
    private var lineStart = 0
    private var skippedEmptyLine = false

    public init(_ kind: Kind) { self.kind = kind }

    /// Bytes of the head received so far.
    public var receivedByteCount: Int { held.count }

    public mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer) throws(HTTPProtocolError) -> Step {
        for (offset, byte) in bytes.enumerated() {
            guard held.count < HTTPHeadLimits.maxHeadBytes else {
                throw .headTooLarge(limit: HTTPHeadLimits.maxHeadBytes)
            }
            let follows = held.last
            held.append(byte)
            if byte == UInt8(ascii: "\n") {
                guard follows == UInt8(ascii: "\r") else { throw .lineEndingNotCRLF }
                let line = lineStart..<(held.count - 2)
                lineStart = held.count
                if !line.isEmpty {
                    guard lines.count <= HTTPHeadLimits.maxHeaderCount else {
                        throw .tooManyHeaders(limit: HTTPHeadLimits.maxHeaderCount)
                    }
                    lines.append(line)
                } else if lines.isEmpty {
                    // One empty line before a request is ignored, for clients that end a body with a stray CRLF.
                    guard kind == .request, !skippedEmptyLine else { throw .malformedStartLine }
                    skippedEmptyLine = true
                } else {
                    return try finish(consumed: offset + 1)
                }
            } else if follows == UInt8(ascii: "\r") {
                throw .lineEndingNotCRLF
            } else if lines.isEmpty, held.count - lineStart > HTTPHeadLimits.maxStartLineBytes {
                throw .startLineTooLong(limit: HTTPHeadLimits.maxStartLineBytes)
            }
        }
        return .needMoreData
    }

    // MARK: - A whole head

    private func finish(consumed: Int) throws(HTTPProtocolError) -> Step {
        guard let startLine = lines.first else { throw .malformedStartLine }
        switch kind {
        case .request:
            let (method, target, version) = try Self.parseRequestLine(held[startLine])
            let headers = try parseFields()
            let hosts = headers.all("Host").count
            guard hosts <= 1 else { throw .duplicateHost }
            guard hosts == 1 || version < .http11 else { throw .missingHost }
            return .request(
                HTTPRequestHead(method: method, target: target, version: version, headers: headers), consumed: consumed)
        case .response:
            let (version, status, reason) = try Self.parseStatusLine(held[startLine])
            let headers = try parseFields()
            return .response(
                HTTPResponseHead(version: version, status: status, reason: reason, headers: headers), consumed: consumed
            )
        }
    }

    /// Source: RFC 9112 §3.
    private static func parseRequestLine(
        _ line: ArraySlice<UInt8>
    ) throws(HTTPProtocolError) -> (String, String, HTTPVersion) {
        let parts = line.split(separator: 0x20, maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(ASCII.isTokenByte), !parts[1].isEmpty,
            parts[1].allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .malformedStartLine }
        let version = try parseVersion(parts[2])
        return (String(decoding: parts[0], as: UTF8.self), String(decoding: parts[1], as: UTF8.self), version)
    }

    /// Source: RFC 9112 §4. Deviation: the space after the status may be missing when the reason is, as some servers
    /// write it.
    private static func parseStatusLine(
        _ line: ArraySlice<UInt8>
    ) throws(HTTPProtocolError) -> (HTTPVersion, Int, String) {
        let parts = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2 else { throw .malformedStartLine }
        let version = try parseVersion(parts[0])
        guard parts[1].count == 3, let status = ASCII.decimal(parts[1]), status >= 100 else {
            throw .malformedStartLine
        }
        let reason = parts.count == 3 ? parts[2] : []
        guard reason.allSatisfy(HTTPFieldLine.isFieldByte) else { throw .malformedStartLine }
        return (version, status, String(decoding: reason, as: UTF8.self))
    }

    /// Source: RFC 9112 §2.3.
    private static func parseVersion(_ bytes: ArraySlice<UInt8>) throws(HTTPProtocolError) -> HTTPVersion {
        let text = Array(bytes)
        guard text.count == 8, text.starts(with: "HTTP/".utf8), ASCII.isDigit(text[5]), text[6] == UInt8(ascii: "."),
            ASCII.isDigit(text[7])
        else { throw .malformedStartLine }
        guard text[5] == UInt8(ascii: "1") else { throw .unsupportedVersion }
        return HTTPVersion(major: 1, minor: text[7] - UInt8(ascii: "0"))
    }

    /// Source: RFC 9112 §5, §6.3.
    private func parseFields() throws(HTTPProtocolError) -> HTTPHeaders {
        var headers = HTTPHeaders()
        for range in lines.dropFirst() {
            headers.append(try HTTPFieldLine.parse(held[range]))
        }
        let lengths = headers.all("Content-Length")
        if let first = lengths.first {
            guard lengths.count == 1, ASCII.decimal(first.utf8) != nil, headers.first("Transfer-Encoding") == nil else {
                throw .ambiguousBodyLength
            }
        }
        return headers
    }
}

/// One field of a head, a trailer section or a part of a multipart body.
enum HTTPFieldLine {
    /// - Parameter line: without its CRLF.
    ///
    /// Source: RFC 9112 §5, §5.1, §5.2.
    static func parse(_ line: ArraySlice<UInt8>) throws(HTTPProtocolError) -> HTTPHeaders.Field {
        if let first = line.first, ASCII.isOWS(first) { throw .obsoleteLineFolding }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
            line[..<colon].allSatisfy(ASCII.isTokenByte)
        else { throw .malformedHeader }
        let value = ASCII.trimmingOWS(line[(colon + 1)...])
        guard value.allSatisfy(isFieldByte) else { throw .malformedHeader }
        return HTTPHeaders.Field(
            name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: value, as: UTF8.self))
    }

    /// Visible bytes, blanks and bytes above ASCII. Source: RFC 9110 §5.5.
    static func isFieldByte(_ byte: UInt8) -> Bool { (byte >= 0x20 && byte != 0x7F) || byte == 0x09 }
}
