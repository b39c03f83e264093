import Digests
import Glibc
import HTTPProtocol
import WireBytes

/// The files of a folder, as they were when it was read: a page that a listener serves beside its WebSocket.
///
/// Kept in memory, so that a request is a look into a table: no path of a stranger is opened, and no disk holds up the loop.
struct WebFolder: Sendable {
    /// A browser client has a few megabytes.
    static let maxBytes = 64 * 1024 * 1024
    private static let maxFiles = 10_000
    private static let maxDepth = 16

    private struct File: Sendable {
        var bytes: [UInt8]
        var type: String
        var tag: String
    }

    /// By path, as browsers write it.
    private var files: [String: File] = [:]
    private var byteCount = 0

    /// - Throws: the folder cannot be read, or is too large.
    init(_ folder: String) throws(StartError) {
        try read(folder, as: "/", depth: 0)
        guard !files.isEmpty else { throw StartError(description: "web_root: \(folder) has no files") }
    }

    private mutating func read(_ folder: String, as path: String, depth: Int) throws(StartError) {
        guard depth <= Self.maxDepth, let entries = opendir(folder) else {
            throw StartError(description: "web_root: \(StateFile.lastError(folder))")
        }
        defer { closedir(entries) }
        while let entry = readdir(entries) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            // Hidden files are not served, such as those of a repository.
            if name.hasPrefix(".") { continue }
            var status = stat()
            guard stat("\(folder)/\(name)", &status) == 0 else { continue }
            if status.st_mode & S_IFMT == S_IFDIR {
                try read("\(folder)/\(name)", as: path + name + "/", depth: depth + 1)
            } else if status.st_mode & S_IFMT == S_IFREG {
                try add("\(folder)/\(name)", as: path + name)
            }
        }
    }

    private mutating func add(_ place: String, as path: String) throws(StartError) {
        guard let bytes = StateFile.read(place, maxBytes: Self.maxBytes - byteCount, followsLinks: true),
            files.count < Self.maxFiles
        else {
            throw StartError(
                description: "web_root: \(place) cannot be read, or the folder has more than "
                    + "\(Self.maxBytes / 1024 / 1024) MiB or \(Self.maxFiles) files")
        }
        byteCount += bytes.count
        let tag = "\"" + Base64.encodeURLSafe(Array(SHA256.hash(bytes).prefix(12))) + "\""
        let file = File(bytes: bytes, type: Self.type(of: path), tag: tag)
        files[path] = file
        if path.hasSuffix("/index.html") { files[String(path.dropLast("index.html".count))] = file }
    }

    /// The whole answer to a request; nil: there is no such file.
    ///
    /// Source: RFC 9110 §9.3.1, §13.1.2.
    func response(to request: HTTPRequestHead, path: String, date: String) -> ByteSlice? {
        guard let file = files[path] else { return nil }
        let isKnown = request.headers.listItems("If-None-Match").contains { $0 == file.tag || $0 == "W/" + file.tag }
        var headers = HTTPHeaders([
            ("Connection", "close"), ("Date", date), ("ETag", file.tag), ("Cache-Control", "no-cache"),
            ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
            ("X-Frame-Options", "SAMEORIGIN"),
        ])
        if !isKnown {
            headers.append(name: "Content-Type", value: file.type)
            headers.append(name: "Content-Length", value: String(file.bytes.count))
        }
        var writer = ByteWriter()
        do throws(HTTPProtocolError) {
            try HTTPResponseHead(
                status: isKnown ? 304 : 200, reason: isKnown ? "Not Modified" : "OK", headers: headers
            ).serialize(into: &writer)
        } catch {
            return nil
        }
        if !isKnown, request.method != "HEAD" { writer.append(file.bytes) }
        return writer.take()
    }

    /// Source: the registry of media types.
    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
        "mjs": "text/javascript; charset=utf-8", "json": "application/json", "map": "application/json",
        "webmanifest": "application/manifest+json", "svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg",
        "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp", "ico": "image/x-icon", "woff": "font/woff",
        "woff2": "font/woff2", "ttf": "font/ttf", "txt": "text/plain; charset=utf-8", "wasm": "application/wasm",
        "mp3": "audio/mpeg", "ogg": "audio/ogg", "wav": "audio/wav",
    ]

    private static func type(of path: String) -> String {
        let name = path.split(separator: "/").last ?? ""
        guard let dot = name.lastIndex(of: ".") else { return "application/octet-stream" }
        return types[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
    }
}
