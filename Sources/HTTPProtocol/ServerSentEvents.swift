public import WireBytes

// Server-sent events: one response that never ends, an event after the other.
//
// Source: WHATWG HTML, "Server-sent events".

/// One event of a stream.
public struct ServerSentEvent: Equatable, Sendable {
    /// The event's type; empty means `message`.
    public var type: String
    /// May have several lines.
    public var data: String
    /// The stream's last id so far, which a client sends back in Last-Event-ID; empty for none.
    public var lastID: String

    public init(type: String = "", data: String, lastID: String = "") {
        self.type = type
        self.data = data
        self.lastID = lastID
    }
}

/// Writes events.
public enum ServerSentEventWriter {
    /// The Content-Type of a stream.
    public static let contentType = "text/event-stream"

    /// Writes one event. An empty ``ServerSentEvent/lastID`` leaves the client's last id as it is.
    ///
    /// - Throws: for a type or an id with a line break or NUL. Nothing was written.
    public static func append(_ event: ServerSentEvent, into out: inout ByteWriter) throws(HTTPProtocolError) {
        guard isOneLine(event.type) else { throw .invalidOutgoingField("the event's type") }
        guard isOneLine(event.lastID) else { throw .invalidOutgoingField("the event's id") }
        if !event.type.isEmpty { appendLine("event", Array(event.type.utf8)[...], into: &out) }
        if !event.lastID.isEmpty { appendLine("id", Array(event.lastID.utf8)[...], into: &out) }
        appendLines("data", event.data, into: &out)
        out.append("\n")
    }

    /// Tells the client how long to wait before it connects again.
    public static func append(retry delay: Duration, into out: inout ByteWriter) {
        let milliseconds = max(delay.wholeNanoseconds / 1_000_000, 0)
        out.append("retry: ")
        out.append(decimal: milliseconds)
        out.append("\n\n")
    }

    /// Writes what clients skip: keeps proxies from closing a quiet stream.
    public static func append(comment: String, into out: inout ByteWriter) {
        appendLines("", comment, into: &out)
        out.append("\n")
    }

    private static func isOneLine(_ text: String) -> Bool {
        !text.utf8.contains { $0 == 0x0A || $0 == 0x0D || $0 == 0 }
    }

    /// A line for each line of `text`, whichever of CR, LF and CRLF ends it.
    private static func appendLines(_ field: StaticString, _ text: String, into out: inout ByteWriter) {
        let bytes = Array(text.utf8)
        var start = 0
        var index = 0
        while index < bytes.count {
            if bytes[index] == 0x0A || bytes[index] == 0x0D {
                appendLine(field, bytes[start..<index], into: &out)
                if bytes[index] == 0x0D, index + 1 < bytes.count, bytes[index + 1] == 0x0A { index += 1 }
                start = index + 1
            }
            index += 1
        }
        appendLine(field, bytes[start...], into: &out)
    }

    private static func appendLine(_ field: StaticString, _ value: ArraySlice<UInt8>, into out: inout ByteWriter) {
        out.append(field)
        out.append(": ")
        value.withUnsafeBytes { out.append($0) }
        out.append("\n")
    }
}

/// Why a stream cannot be read on. The remote side's fault; close it.
public enum ServerSentEventError: Error, Equatable, Sendable {
    case eventTooLong(limit: Int)
}

/// Reads events from the body of a response, in pieces as they come.
public struct ServerSentEventParser: Sendable {
    public enum Output: Equatable, Sendable {
        case event(ServerSentEvent)
        /// How long to wait before connecting again.
        case retry(Duration)
        /// Nothing more is read; the stream is to be closed.
        case failed(ServerSentEventError)
    }

    /// Bytes of one event, its comments included: larger than any message we relay.
    public static let defaultMaxEventBytes = 1024 * 1024

    private let maxEventBytes: Int
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var type = ""
    /// What the stream said last; goes into Last-Event-ID.
    public private(set) var lastID = ""
    private var eventBytes = 0
    private var skipsLineFeed = false
    private var isFirstLine = true
    private var hasFailed = false

    public init(maxEventBytes: Int = Self.defaultMaxEventBytes) { self.maxEventBytes = maxEventBytes }

    /// Feeds bytes, cut anywhere.
    public mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer) -> [Output] {
        var outputs: [Output] = []
        guard !hasFailed else { return outputs }
        for byte in bytes {
            if skipsLineFeed {
                skipsLineFeed = false
                if byte == 0x0A { continue }
            }
            if byte == 0x0A || byte == 0x0D {
                if !line.isEmpty { eventBytes += 1 }
                skipsLineFeed = byte == 0x0D
                endLine(&outputs)
            } else {
                eventBytes += 1
                guard eventBytes <= maxEventBytes else {
                    hasFailed = true
                    outputs.append(.failed(.eventTooLong(limit: maxEventBytes)))
                    return outputs
                }
                line.append(byte)
            }
        }
        return outputs
    }

    private mutating func endLine(_ outputs: inout [Output]) {
        defer { line.removeAll(keepingCapacity: line.capacity <= 4096) }
        var text = line[...]
        if isFirstLine, text.starts(with: [0xEF, 0xBB, 0xBF]) { text = text.dropFirst(3) }
        isFirstLine = false
        guard !text.isEmpty else {
            dispatch(&outputs)
            return
        }
        let colon = text.firstIndex(of: UInt8(ascii: ":")) ?? text.endIndex
        guard colon > text.startIndex else { return }
        var value = text[colon...].dropFirst()
        if value.first == 0x20 { value = value.dropFirst() }
        switch String(decoding: text[..<colon], as: UTF8.self) {
        case "event": type = String(decoding: value, as: UTF8.self)
        case "data":
            if hasData { data.append(0x0A) }
            data += value
            hasData = true
        case "id": if !value.contains(0) { lastID = String(decoding: value, as: UTF8.self) }
        case "retry":
            // Nine digits are eleven days; more is nonsense.
            if let milliseconds = ASCII.decimal(value, maxDigits: 9) {
                outputs.append(.retry(.milliseconds(milliseconds)))
            }
        default: break
        }
    }

    private mutating func dispatch(_ outputs: inout [Output]) {
        if hasData {
            outputs.append(
                .event(ServerSentEvent(type: type, data: String(decoding: data, as: UTF8.self), lastID: lastID)))
        }
        data = []
        hasData = false
        type = ""
        eventBytes = 0
    }
}
