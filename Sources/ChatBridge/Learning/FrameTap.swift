/// Reads the messages in one direction of a WebSocket that passes by. It answers nothing and refuses nothing.
///
/// Source: RFC 6455 §5.2, without extensions: the handshake that passed offered none.
struct FrameTap {
    /// Longer messages are passed on all the same, and end the recording of their direction.
    private static let maxMessageBytes = 16 * 1024 * 1024

    struct Message: Equatable {
        var isBinary: Bool
        var bytes: [UInt8]
    }

    private var buffer: [UInt8] = []
    private var message: Message?
    private(set) var hasFailed = false

    /// The messages that are complete with these bytes.
    mutating func feed(_ bytes: some Sequence<UInt8>) -> [Message] {
        guard !hasFailed else { return [] }
        buffer.append(contentsOf: bytes)
        var messages: [Message] = []
        var at = 0
        while let (header, length, mask) = Self.header(buffer[at...]) {
            guard length <= Self.maxMessageBytes, (message?.bytes.count ?? 0) + length <= Self.maxMessageBytes else {
                hasFailed = true
                buffer = []
                return messages
            }
            guard buffer.count - at - header >= length else { break }
            let start = at + header
            at = start + length
            let (first, opcode) = (buffer[start - header], buffer[start - header] & 0x0F)
            guard opcode < 8 else { continue }
            var payload = Array(buffer[start..<at])
            if let mask { for index in payload.indices { payload[index] ^= mask[index % 4] } }
            if message == nil { message = Message(isBinary: opcode == 2, bytes: []) }
            message?.bytes += payload
            if first & 0x80 != 0, let whole = message {
                messages.append(whole)
                message = nil
            }
        }
        buffer.removeFirst(at)
        return messages
    }

    /// Bytes of the header, of the payload, and the masking key; nil: not all of the header is there.
    private static func header(_ bytes: ArraySlice<UInt8>) -> (header: Int, length: Int, mask: [UInt8]?)? {
        let bytes = Array(bytes.prefix(14))
        guard bytes.count >= 2 else { return nil }
        var header = 2
        var length = Int(bytes[1] & 0x7F)
        let more = length == 126 ? 2 : length == 127 ? 8 : 0
        guard bytes.count >= 2 + more else { return nil }
        if more > 0 {
            length = bytes[2..<(2 + more)].reduce(0) { $0 > Int.max >> 9 ? Int.max >> 1 : $0 << 8 | Int($1) }
            header += more
        }
        guard bytes[1] & 0x80 != 0 else { return (header, length, nil) }
        guard bytes.count >= header + 4 else { return nil }
        return (header + 4, length, Array(bytes[header..<(header + 4)]))
    }
}

/// The head of a request as the backend shall see it, and what it says of itself.
struct TappedRequest {
    /// Longest head, in bytes; that of the bridge's own listeners.
    static let maxHeadBytes = 64 * 1024

    var method: String
    var target: String
    var isUpgrade: Bool
    /// As the app sent them.
    var fields: [(name: String, value: String)]
    /// With the empty line at its end.
    var head: [UInt8]

    /// - Parameters:
    ///   - head: with the empty line at its end.
    ///   - host: the backend's, as `Host` has it.
    ///   - origin: the backend's own.
    init?(head: [UInt8], host: String, origin: String) {
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count == 3 else { return nil }
        method = String(words[0])
        target = String(words[1])
        func name(_ line: Substring) -> String { line.prefix { $0 != ":" }.lowercased() }
        let fields = lines.dropFirst().filter { $0.contains(":") }
        self.fields = fields.map { field in
            let value = field.drop { $0 != ":" }.dropFirst().drop { $0 == " " || $0 == "\t" }
            return (String(field.prefix { $0 != ":" }), String(value))
        }
        isUpgrade = fields.contains { name($0) == "upgrade" && $0.lowercased().contains("websocket") }
        // Neither may be compressed, since both are read here; and each connection carries one answer.
        var dropped = ["host", "origin", "sec-websocket-extensions", "accept-encoding"]
        if !isUpgrade { dropped += ["connection", "keep-alive"] }
        var kept = fields.filter { !dropped.contains(name($0)) }.map(String.init)
        kept.insert("Host: \(host)", at: 0)
        if fields.contains(where: { name($0) == "origin" }) { kept.append("Origin: \(origin)") }
        if !isUpgrade { kept.append("Connection: close") }
        self.head =
            Array((["\(method) \(target) HTTP/1.1"] + kept).map { $0 + "\r\n" }.joined().utf8) + Array("\r\n".utf8)
    }

    /// Where the head ends; nil: it does not yet.
    static func end(of bytes: [UInt8]) -> Int? {
        let end: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]
        guard bytes.count >= 4 else { return nil }
        for index in 0...(bytes.count - 4) where bytes[index..<(index + 4)].elementsEqual(end) { return index + 4 }
        return nil
    }

    /// The status and body of a whole answer on a connection of its own; nil: it is none.
    static func answer(_ bytes: [UInt8]) -> (status: Int, body: [UInt8])? {
        guard let end = end(of: bytes) else { return nil }
        let head = String(decoding: bytes[..<end], as: UTF8.self)
        let words = head.prefix { $0 != "\r" }.split(separator: " ")
        guard words.count >= 2, let status = Int(words[1]) else { return nil }
        let body = Array(bytes[end...])
        let isChunked = head.lowercased().contains("transfer-encoding: chunked")
        return (status, isChunked ? dechunked(body) : body)
    }

    private static func dechunked(_ bytes: [UInt8]) -> [UInt8] {
        var (body, rest): ([UInt8], ArraySlice<UInt8>) = ([], bytes[...])
        while let end = rest.firstIndex(of: 0x0A) {
            let line = String(decoding: rest[..<end], as: UTF8.self).prefix { $0.isHexDigit }
            guard let size = Int(line, radix: 16), size > 0, rest.endIndex - end - 1 >= size else { break }
            body += rest[(end + 1)..<(end + 1 + size)]
            rest = rest[(end + 1 + size)...].drop { $0 == 0x0D || $0 == 0x0A }
        }
        return body
    }
}
