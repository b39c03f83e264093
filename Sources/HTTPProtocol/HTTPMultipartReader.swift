import WireBytes

/// Bounds of a multipart body, besides those of the body as a whole.
public enum HTTPMultipartLimits {
    /// Parts of one body. Upload forms have a handful.
    public static let maxParts = 64
    /// Head of one part, in bytes: a long file name fits several times.
    public static let maxPartHeadBytes = 4096
    /// Fields in the head of one part; browsers send two.
    public static let maxPartHeaders = 16
    /// Bytes before the first boundary, which readers are to skip. Clients send none.
    public static let maxPreambleBytes = 1024
    /// Blanks between a boundary and its line end. Source: RFC 2046 §5.1.1, "transport-padding".
    public static let maxPaddingBytes = 64
}

/// Why a multipart body cannot be read. Always the remote side's fault; the answer is 400, for too much of something 413.
public enum HTTPMultipartError: Error, Equatable, Sendable {
    case malformedBoundaryLine
    case malformedPartHead
    case preambleTooLong
    case partHeadTooLong
    case tooManyParts

    public var statusHint: Int {
        switch self {
        case .tooManyParts, .partHeadTooLong, .preambleTooLong: 413
        case .malformedBoundaryLine, .malformedPartHead: 400
        }
    }
}

/// The head of one part of a form.
public struct HTTPFormPart: Equatable, Sendable {
    /// The field's name, not empty.
    public var name: String
    /// Nil for a field that is no file. The client's word: never a path to open.
    public var fileName: String?
    /// Nil where the part names none, which means text/plain.
    public var contentType: String?
}

/// Reads a multipart/form-data body from pieces as they come. Holds the head of one part at most; contents pass through.
///
/// Source: RFC 7578; RFC 2046 §5.1.
public struct HTTPMultipartReader: Sendable {
    public enum Event: Equatable, Sendable {
        case part(HTTPFormPart)
        /// Content of the part announced last, never empty.
        case content([UInt8])
        case partEnded
        /// The last boundary has come. What follows is ignored.
        case ended
        /// Nothing more is read.
        case failed(HTTPMultipartError)
    }

    private enum State {
        /// In a part's content, or before the first part.
        case content
        /// Directly after a boundary.
        case boundaryEnd
        /// One dash of the two that end the last boundary.
        case finalDash
        case padding
        case paddingLF
        case partHead
        case ended
        case failed
    }

    private let delimiter: [UInt8]
    private var state = State.content
    /// How much of the delimiter the last bytes were. CR is nowhere in it but in front, so a mismatch never leaves a
    /// shorter match.
    private var matched: Int
    private var isInPart = false
    /// No byte of the content has come since the head, whose own line end may belong to a boundary: an empty part.
    private var isAtPartStart = true
    private var partCount = 0
    private var preambleBytes = 0
    private var paddingBytes = 0
    private var head: [UInt8] = []
    private var headers = HTTPHeaders()
    private var headLineStart = 0

    /// Nil when `contentType` is not multipart/form-data with a boundary.
    public init?(contentType: String) {
        guard let value = HTTPParameterizedValue(contentType),
            ASCII.equalsIgnoringCase(value.value, "multipart/form-data"),
            let boundary = value.parameter("boundary"), !boundary.isEmpty,
            boundary.utf8.count <= HTTPMultipartWriter.maxBoundaryBytes,
            boundary.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }), boundary.utf8.last != 0x20
        else { return nil }
        delimiter = Array("\r\n--\(boundary)".utf8)
        // The first boundary may be the body's first line.
        matched = 2
    }

    /// Feeds bytes, cut anywhere. After ``Event/failed(_:)`` or ``Event/ended`` nothing more is told.
    public mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer) -> [Event] {
        var events: [Event] = []
        var index = 0
        do throws(HTTPMultipartError) {
            while index < bytes.count {
                switch state {
                case .content: index = try readContent(bytes, from: index, &events)
                case .ended, .failed: return events
                default:
                    try take(bytes[index], &events)
                    index += 1
                }
            }
        } catch {
            state = .failed
            events.append(.failed(error))
        }
        return events
    }

    /// Whether the last boundary has come. A body that ends before was cut off.
    public var isComplete: Bool {
        if case .ended = state { return true }
        return false
    }

    // MARK: - Content

    private mutating func readContent(
        _ bytes: UnsafeRawBufferPointer, from start: Int, _ events: inout [Event]
    ) throws(HTTPMultipartError) -> Int {
        var content: [UInt8] = []
        var index = start
        /// Bytes from here to `index` are content that is not copied yet.
        var plain = start
        while index < bytes.count, matched < delimiter.count {
            let byte = bytes[index]
            if byte == delimiter[matched] {
                if matched == 0 { content.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[plain..<index])) }
                matched += 1
                plain = index + 1
            } else if matched > 0 {
                // What looked like a boundary was content; this byte may begin the real one. The first two bytes at a
                // part's start are those of its head.
                content.append(contentsOf: delimiter[(isAtPartStart ? 2 : 0)..<matched])
                isAtPartStart = false
                matched = 0
                plain = index
                continue
            }
            index += 1
        }
        if matched == 0 { content.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[plain..<index])) }
        if isInPart {
            if !content.isEmpty { events.append(.content(content)) }
        } else {
            preambleBytes += content.count
            guard preambleBytes <= HTTPMultipartLimits.maxPreambleBytes else { throw .preambleTooLong }
        }
        if matched == delimiter.count {
            matched = 0
            isAtPartStart = false
            if isInPart { events.append(.partEnded) }
            isInPart = false
            paddingBytes = 0
            state = .boundaryEnd
        }
        return index
    }

    // MARK: - Boundaries and heads

    private mutating func take(_ byte: UInt8, _ events: inout [Event]) throws(HTTPMultipartError) {
        switch state {
        case .boundaryEnd where byte == UInt8(ascii: "-"): state = .finalDash
        case .finalDash:
            guard byte == UInt8(ascii: "-") else { throw .malformedBoundaryLine }
            state = .ended
            events.append(.ended)
        case .boundaryEnd, .padding:
            if byte == UInt8(ascii: "\r") {
                state = .paddingLF
            } else if ASCII.isOWS(byte), paddingBytes < HTTPMultipartLimits.maxPaddingBytes {
                paddingBytes += 1
                state = .padding
            } else {
                throw .malformedBoundaryLine
            }
        case .paddingLF:
            guard byte == UInt8(ascii: "\n") else { throw .malformedBoundaryLine }
            partCount += 1
            guard partCount <= HTTPMultipartLimits.maxParts else { throw .tooManyParts }
            head = []
            headLineStart = 0
            headers = HTTPHeaders()
            state = .partHead
        case .partHead: try takeHead(byte, &events)
        case .content, .ended, .failed: break
        }
    }

    private mutating func takeHead(_ byte: UInt8, _ events: inout [Event]) throws(HTTPMultipartError) {
        guard head.count < HTTPMultipartLimits.maxPartHeadBytes else { throw .partHeadTooLong }
        let previous = head.count > headLineStart ? head.last : nil
        head.append(byte)
        guard byte == UInt8(ascii: "\n") else {
            guard previous != UInt8(ascii: "\r") else { throw .malformedPartHead }
            return
        }
        guard previous == UInt8(ascii: "\r") else { throw .malformedPartHead }
        let line = head[headLineStart..<(head.count - 2)]
        headLineStart = head.count
        guard line.isEmpty else {
            guard headers.count < HTTPMultipartLimits.maxPartHeaders else { throw .partHeadTooLong }
            do throws(HTTPProtocolError) {
                headers.append(try HTTPFieldLine.parse(line))
            } catch {
                throw .malformedPartHead
            }
            return
        }
        guard headers.all("Content-Disposition").count == 1, let text = headers.first("Content-Disposition"),
            let disposition = HTTPParameterizedValue(text),
            ASCII.equalsIgnoringCase(disposition.value, "form-data"), let name = disposition.parameter("name"),
            !name.isEmpty
        else { throw .malformedPartHead }
        events.append(
            .part(
                HTTPFormPart(
                    name: Self.unescaped(name), fileName: disposition.parameter("filename").map(Self.unescaped),
                    contentType: headers.first("Content-Type"))))
        head = []
        isInPart = true
        matched = 2
        isAtPartStart = true
        state = .content
    }

    /// Undoes what browsers do to quotes and line breaks, and nothing else.
    private static func unescaped(_ text: String) -> String {
        text.replacing("%22", with: "\"").replacing("%0D", with: "\r").replacing("%0A", with: "\n")
    }
}
