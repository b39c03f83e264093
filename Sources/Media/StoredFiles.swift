import Dialects
import Digests
import WireBytes

// Files stored locally: inline in messages, or uploaded.

/// A file for local storage.
public struct StoredFile: Equatable, Sendable {
    /// Derived from the content, so that equal files share one name: 22 characters of base64url, a dot, an extension.
    public var name: String
    public var bytes: [UInt8]
}

/// Names of stored files.
package enum StoredFiles {
    /// File extensions by MIME type; others are `bin`.
    private static let extensions = [
        "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/avif": "avif",
        "image/bmp": "bmp", "video/mp4": "mp4", "video/webm": "webm", "video/quicktime": "mov", "audio/mpeg": "mp3",
        "audio/mp4": "m4a", "audio/ogg": "ogg", "audio/wav": "wav", "audio/x-wav": "wav", "audio/aac": "aac",
        "application/pdf": "pdf", "text/plain": "txt", "application/zip": "zip",
    ]

    /// The file in `inline`; nil: not valid base64.
    package static func file(inline: String, mime: String?) -> StoredFile? {
        guard let bytes = Base64.decode(inline), !bytes.isEmpty else { return nil }
        return file(bytes, ending: mime.flatMap(ending))
    }

    /// An uploaded file, with the extension of its MIME type, else of its name: curl sends no type.
    package static func file(uploaded file: UploadedFile) -> StoredFile {
        let suffix = file.name.lastIndex(of: ".").map { ASCII.lowercased(String(file.name[$0...].dropFirst())) }
        let known = suffix.flatMap { suffix in extensions.values.first { $0 == suffix } }
        return Self.file(file.bytes, ending: ending(of: file.mime) ?? (genericTypes.contains(file.mime) ? known : nil))
    }

    /// Placeholder types. Only for these the extension of the name is used.
    private static let genericTypes: Set = ["", "application/octet-stream", "application/x-www-form-urlencoded"]

    private static func ending(of mime: String) -> String? { extensions[ASCII.lowercased(mime)] }

    private static func file(_ bytes: [UInt8], ending: String?) -> StoredFile {
        let hash = Base64.encodeURLSafe(Array(SHA256.hash(bytes).prefix(16)))
        return StoredFile(name: "\(hash).\(ending ?? "bin")", bytes: bytes)
    }
}
