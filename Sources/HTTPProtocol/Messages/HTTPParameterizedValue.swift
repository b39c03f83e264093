import WireBytes

/// A field value with parameters, such as `text/plain; charset=utf-8`.
///
/// Source: RFC 9110 §5.6.6.
public struct HTTPParameterizedValue: Equatable, Sendable {
    /// The text before the first semicolon, trimmed; may be empty.
    public let value: String
    /// In order; names as written, values without their quotes.
    public let parameters: [HTTPHeaders.Field]

    /// Nil when a parameter is malformed or stands twice.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        var index = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
        value = String(decoding: ASCII.trimmingOWS(bytes[..<index]), as: UTF8.self)
        var parameters: [HTTPHeaders.Field] = []
        func skipBlanks() {
            while index < bytes.count, ASCII.isOWS(bytes[index]) { index += 1 }
        }
        while index < bytes.count {
            index += 1
            skipBlanks()
            if index == bytes.count { break }
            let nameStart = index
            while index < bytes.count, ASCII.isTokenByte(bytes[index]) { index += 1 }
            let name = String(decoding: bytes[nameStart..<index], as: UTF8.self)
            guard !name.isEmpty, index < bytes.count, bytes[index] == UInt8(ascii: "=") else { return nil }
            index += 1
            var content: [UInt8] = []
            if index < bytes.count, bytes[index] == UInt8(ascii: "\"") {
                index += 1
                var isClosed = false
                while index < bytes.count, !isClosed {
                    // Browsers send `C:\file` as it is: a backslash escapes only a quote or a backslash.
                    let next = index + 1 < bytes.count ? bytes[index + 1] : 0
                    if bytes[index] == UInt8(ascii: "\\"), next == UInt8(ascii: "\"") || next == UInt8(ascii: "\\") {
                        content.append(next)
                        index += 2
                    } else if bytes[index] == UInt8(ascii: "\"") {
                        isClosed = true
                        index += 1
                    } else {
                        content.append(bytes[index])
                        index += 1
                    }
                }
                guard isClosed else { return nil }
            } else {
                let start = index
                while index < bytes.count, ASCII.isTokenByte(bytes[index]) { index += 1 }
                content = Array(bytes[start..<index])
                guard !content.isEmpty else { return nil }
            }
            skipBlanks()
            guard index == bytes.count || bytes[index] == UInt8(ascii: ";") else { return nil }
            guard !parameters.contains(where: { ASCII.equalsIgnoringCase($0.name, name) }) else { return nil }
            parameters.append(HTTPHeaders.Field(name: name, value: String(decoding: content, as: UTF8.self)))
        }
        self.parameters = parameters
    }

    /// The value of the parameter called `name`, without case.
    public func parameter(_ name: String) -> String? {
        parameters.first { ASCII.equalsIgnoringCase($0.name, name) }?.value
    }
}
