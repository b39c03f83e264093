public import WireBytes

/// Writes a multipart/form-data body: fields and files.
///
/// Source: RFC 7578; RFC 2046 §5.1; WHATWG HTML, "Multipart form data".
public struct HTTPMultipartWriter {
    /// Longest boundary, in bytes. Source: RFC 2046 §5.1.1.
    public static let maxBoundaryBytes = 70

    private let boundary: String

    /// A writer whose boundary no content will contain by chance: 32 of 62 characters, 190 bits.
    public init(using random: inout some RandomNumberGenerator) {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
        let drawn = (0..<32).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] }
        boundary = "----" + String(decoding: drawn, as: UTF8.self)
    }

    /// Nil when `boundary` could not stand unquoted in a Content-Type. The caller must ensure that no content contains
    /// it.
    public init?(boundary: String) {
        guard ASCII.isToken(boundary), boundary.utf8.count <= Self.maxBoundaryBytes else { return nil }
        self.boundary = boundary
    }

    /// The value of the Content-Type field.
    public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    public func append(field name: String, value: String, into out: inout ByteWriter) {
        beginPart(name: name, into: &out)
        out.append("\r\n\r\n")
        out.append(value)
        out.append("\r\n")
    }

    /// Writes a file's head; its content follows with ``ByteWriter/append(_:)``, then ``endFile(into:)``.
    ///
    /// - Throws: for a type with a character that would end its line. Nothing was written.
    public func beginFile(
        name: String, fileName: String, contentType: String, into out: inout ByteWriter
    ) throws(HTTPProtocolError) {
        guard HTTPHeaders.isValidValue(contentType) else { throw .invalidOutgoingField("the content type") }
        beginPart(name: name, into: &out)
        out.append("; filename=\"")
        out.append(Self.escaped(fileName))
        out.append("\"\r\nContent-Type: ")
        out.append(contentType)
        out.append("\r\n\r\n")
    }

    public func endFile(into out: inout ByteWriter) { out.append("\r\n") }

    /// Ends the body. Nothing may follow.
    public func finish(into out: inout ByteWriter) {
        out.append("--")
        out.append(boundary)
        out.append("--\r\n")
    }

    private func beginPart(name: String, into out: inout ByteWriter) {
        out.append("--")
        out.append(boundary)
        out.append("\r\nContent-Disposition: form-data; name=\"")
        out.append(Self.escaped(name))
        out.append("\"")
    }

    /// As browsers do it: percent signs stay, quotes and line breaks do not. Other controls go the same way, because they
    /// may not stand in a field.
    private static func escaped(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x22 || $0 < 0x20 || $0 == 0x7F }) else { return text }
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if byte == 0x22 || byte < 0x20 || byte == 0x7F {
                bytes += "%\(byte < 16 ? "0" : "")\(String(byte, radix: 16, uppercase: true))".utf8
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
