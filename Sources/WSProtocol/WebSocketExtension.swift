import WireBytes

/// One extension named in `Sec-WebSocket-Extensions`, with its parameters in the order of the wire.
///
/// Source: RFC 6455 §9.1.
struct WebSocketExtension: Equatable, Sendable {
    struct Parameter: Equatable, Sendable {
        var name: String
        /// Without its quotes; nil for a parameter without a value.
        var value: String?
    }

    var name: String
    var parameters: [Parameter] = []

    /// The extensions of all fields of that name, in order; nil when one is malformed.
    ///
    /// Empty list elements are skipped. White space may stand between any two tokens, as in all lists of RFC 2616, whose
    /// grammar this is. A quoted value must be a token once its quotes are gone.
    static func parse(_ fields: [String]) -> [WebSocketExtension]? {
        var extensions: [WebSocketExtension] = []
        for field in fields {
            var scanner = Scanner(rest: Array(field.utf8)[...])
            scanner.skipSpace()
            while !scanner.rest.isEmpty {
                if !scanner.take(UInt8(ascii: ",")) {
                    guard let one = scanner.takeExtension() else { return nil }
                    extensions.append(one)
                    guard scanner.rest.isEmpty || scanner.take(UInt8(ascii: ",")) else { return nil }
                }
            }
        }
        return extensions
    }

    /// Each step also skips the white space behind its token.
    private struct Scanner {
        var rest: ArraySlice<UInt8>

        mutating func skipSpace() { rest = rest.drop(while: ASCII.isOWS) }

        mutating func take(_ byte: UInt8) -> Bool {
            guard rest.first == byte else { return false }
            rest.removeFirst()
            skipSpace()
            return true
        }

        mutating func takeToken() -> String? {
            let token = rest.prefix(while: ASCII.isTokenByte)
            guard !token.isEmpty else { return nil }
            rest = rest[token.endIndex...]
            skipSpace()
            return String(decoding: token, as: UTF8.self)
        }

        mutating func takeQuoted() -> String? {
            var value: [UInt8] = []
            while let byte = rest.popFirst() {
                if byte == UInt8(ascii: "\"") {
                    skipSpace()
                    return value.isEmpty ? nil : String(decoding: value, as: UTF8.self)
                }
                guard let plain = byte == UInt8(ascii: "\\") ? rest.popFirst() : byte, ASCII.isTokenByte(plain) else {
                    return nil
                }
                value.append(plain)
            }
            return nil
        }

        mutating func takeExtension() -> WebSocketExtension? {
            guard let name = takeToken() else { return nil }
            var result = WebSocketExtension(name: name)
            while take(UInt8(ascii: ";")) {
                guard let name = takeToken() else { return nil }
                var parameter = Parameter(name: name)
                if take(UInt8(ascii: "=")) {
                    // The opening quote is taken alone: white space behind it would be part of the value.
                    let value: String?
                    if rest.first == UInt8(ascii: "\"") {
                        rest.removeFirst()
                        value = takeQuoted()
                    } else {
                        value = takeToken()
                    }
                    guard let value else { return nil }
                    parameter.value = value
                }
                result.parameters.append(parameter)
            }
            return result
        }
    }
}
