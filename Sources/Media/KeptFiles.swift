import Dialects
import Digests
import WireBytes

// Files that came within a message or were uploaded here.

/// A file that is to be kept where links lead to it.
public struct KeptFile: Equatable, Sendable {
    /// Made of what is in it, so that the same file has one name: 22 characters of base64url, a dot, an extension.
    public var name: String
    public var bytes: [UInt8]
}

/// Names of kept files.
package enum KeptFiles {
    /// Types that are known by an extension; the rest is `bin`.
    private static let extensions = [
        "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/avif": "avif",
        "image/bmp": "bmp", "video/mp4": "mp4", "video/webm": "webm", "video/quicktime": "mov", "audio/mpeg": "mp3",
        "audio/mp4": "m4a", "audio/ogg": "ogg", "audio/wav": "wav", "audio/x-wav": "wav", "audio/aac": "aac",
        "application/pdf": "pdf", "text/plain": "txt", "application/zip": "zip",
    ]

    /// The file that `inline` is, or nil: no base64.
    package static func file(inline: String, mime: String?) -> KeptFile? {
        guard let bytes = Base64.decode(inline), !bytes.isEmpty else { return nil }
        return file(bytes, ending: mime.flatMap(ending))
    }

    /// What was uploaded, by the type that its uploader gives, else by its name: curl says no type.
    package static func file(uploaded file: UploadedFile) -> KeptFile {
        let suffix = file.name.lastIndex(of: ".").map { ASCII.lowercased(String(file.name[$0...].dropFirst())) }
        let known = suffix.flatMap { suffix in extensions.values.first { $0 == suffix } }
        return Self.file(file.bytes, ending: ending(of: file.mime) ?? (saysNothing.contains(file.mime) ? known : nil))
    }

    /// Types that are given for want of another. What bears a type of its own is not shown as what its name says.
    private static let saysNothing: Set = ["", "application/octet-stream", "application/x-www-form-urlencoded"]

    private static func ending(of mime: String) -> String? { extensions[ASCII.lowercased(mime)] }

    private static func file(_ bytes: [UInt8], ending: String?) -> KeptFile {
        let hash = Base64.encodeURLSafe(Array(SHA256.hash(bytes).prefix(16)))
        return KeptFile(name: "\(hash).\(ending ?? "bin")", bytes: bytes)
    }
}
