import ChatModel

/// An uploaded file.
struct StudioFile: Equatable {
    /// Ours, with the extension of the sender's name: a part of the address.
    let name: String
    let mime: String
    let bytes: [UInt8]
}

/// The files that clients have uploaded, in memory.
struct StudioFiles {
    /// Where they are served.
    static let path = "/api/files/"
    /// Largest file, in bytes. Source: observed, the published backend of `jwt-rooms`.
    static let maxFileBytes = 10 * 1024 * 1024
    /// All files; beyond them the oldest are dropped.
    static let maxTotalBytes = 256 * 1024 * 1024

    private var files: [String: StudioFile] = [:]
    /// Oldest first.
    private var names: [String] = []
    private var byteCount = 0

    subscript(name: String) -> StudioFile? { files[name] }

    mutating func add(_ file: StudioFile) {
        guard files[file.name] == nil else { return }
        files[file.name] = file
        names.append(file.name)
        byteCount += file.bytes.count
        while byteCount > Self.maxTotalBytes, let oldest = names.first {
            names.removeFirst()
            byteCount -= files.removeValue(forKey: oldest)?.bytes.count ?? 0
        }
    }

    /// `.png` of `cat.png`: letters and digits, ten at most; else nothing.
    static func suffix(of name: String) -> String {
        guard let dot = name.lastIndex(of: ".") else { return "" }
        let suffix = name[name.index(after: dot)...]
        let isPlain = suffix.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
        }
        return !suffix.isEmpty && suffix.utf8.count <= 10 && isPlain ? "." + suffix.lowercased() : ""
    }

    /// Types that a browser shows without running anything in them. All others are downloads: a page among them would
    /// have this server's origin.
    private static let shown: Set<String> = [
        "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "video/mp4", "video/webm", "audio/mpeg",
        "audio/mp4", "audio/ogg", "audio/wav", "audio/webm", "text/plain",
    ]

    static func isShown(_ mime: String) -> Bool { shown.contains(mime) }
}
