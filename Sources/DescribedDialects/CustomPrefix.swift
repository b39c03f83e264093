import Dialects
import JSONText

/// Frames with characters before their JSON, as Socket.IO has them: `42["message",{"text":"hi"}]`, and `2` alone.
///
/// Such a frame is read as `{"prefix": "42", "body": ["message", {"text": "hi"}]}`, without `body` where there is none.
/// The characters end at the first quote, bracket or brace.
enum CustomPrefix {
    /// Longer ones are no prefix; what a frame of 4 MiB without a bracket is, need not be known.
    private static let maxBytes = 256

    /// Whether JSON begins with this byte.
    static func endsPrefix(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "\"")
    }

    /// The characters for a frame.
    ///
    /// - Throws: ``DropReason/wrongType`` for none, or for some that would not be read as these.
    static func bytes(
        _ pieces: [CustomTemplate.Piece], _ scope: CustomTemplateScope
    ) throws(CustomTemplateFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        for piece in pieces {
            switch piece {
            case .text(let text): bytes += Array(text.utf8)
            case .place(let place): bytes += Array(try place.value(scope).asText.utf8)
            }
        }
        guard !bytes.isEmpty, bytes.count <= maxBytes, !bytes.contains(where: endsPrefix) else {
            throw CustomTemplateFailure(reason: .wrongType)
        }
        return bytes
    }

    static func withJSON<R>(of frame: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        let end = frame.prefix(maxBytes + 1).firstIndex(where: endsPrefix) ?? frame.count
        guard end <= maxBytes, let prefix = String(validating: frame[..<end], as: UTF8.self) else { return body(frame) }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key(text: "prefix")
        writer.string(prefix)
        var bytes = writer.finish()
        if end < frame.count {
            bytes += Array(",\"body\":".utf8)
            bytes.append(contentsOf: frame[end...])
        }
        bytes.append(UInt8(ascii: "}"))
        return bytes.withUnsafeBytes(body)
    }
}
