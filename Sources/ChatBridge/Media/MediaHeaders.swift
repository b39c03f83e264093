import Configuration
import HTTPProtocol
import WireBytes

/// Response headers for foreign files: browsers may show harmless types, and no file can run scripts.
enum MediaHeaders {
    /// Types that browsers show and that hold no script. SVG and HTML are not among them.
    private static let shownTypes: Set<String> = [
        "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp",
        // No playlists, such as those of HLS: a player would request the addresses in them.
        "video/mp4", "video/webm", "video/ogg", "video/quicktime", "video/mpeg", "video/x-m4v", "video/x-matroska",
        "video/3gpp", "audio/mpeg", "audio/mp3", "audio/mp4", "audio/x-m4a", "audio/ogg", "audio/opus", "audio/webm",
        "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/aac", "audio/flac", "audio/x-flac",
        "audio/3gpp", "audio/amr",
    ]
    private static let types = [
        "png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "webp": "image/webp", "avif": "image/avif",
        "bmp": "image/bmp", "mp4": "video/mp4", "webm": "video/webm", "mov": "video/quicktime", "mp3": "audio/mpeg",
        "m4a": "audio/mp4", "ogg": "audio/ogg", "wav": "audio/wav", "aac": "audio/aac",
    ]

    /// The type of a stored file, by its extension.
    static func type(ofKept name: String) -> String? {
        name.utf8.lastIndex(of: UInt8(ascii: ".")).flatMap { types[String(name[name.index(after: $0)...])] }
    }

    /// Fields for a file called `name`, which is plain ASCII without quotes.
    ///
    /// - Parameter type: as its origin names it; other types are sent as bytes to be saved.
    static func fields(type: String?, name: String) -> HTTPHeaders {
        let bare = type.map { ASCII.lowercased(String($0.prefix { $0 != ";" && $0 != " " })) } ?? ""
        let isShown = shownTypes.contains(bare)
        return HTTPHeaders([
            ("Content-Type", isShown ? bare : "application/octet-stream"),
            ("Content-Disposition", (isShown ? "inline" : "attachment") + "; filename=\"\(name)\""),
            // Source: CSP level 3, "sandbox": a page of its own that can do nothing.
            ("Content-Security-Policy", "sandbox; default-src 'none'"),
            // The link is the credential: it must not leak.
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "private, max-age=3600"),
            // Web clients show pictures of links.
            ("Cross-Origin-Resource-Policy", "cross-origin"),
        ])
    }

    /// How a file that does not change is answered for: whole, in part, or not at all.
    ///
    /// - Parameters:
    ///   - length: in bytes.
    ///   - tag: identifies the contents, quotes included.
    /// - Returns: `part` of the file that is to be sent; nil: there is none.
    ///
    /// Source: RFC 9110 §13.2.2, §14.2, §15.4.5, §15.5.17.
    static func reply(
        to head: HTTPRequestHead, length: Int, tag: String
    ) -> (status: Int, fields: [(name: String, value: String)], part: Range<Int>?) {
        let fields = [(name: "Accept-Ranges", value: "bytes"), (name: "ETag", value: tag)]
        let known = head.headers.listItems("If-None-Match")
        if known.contains(where: { $0 == "*" || $0 == tag || $0 == "W/" + tag }) { return (304, fields, nil) }
        let condition = head.headers.all("If-Range")
        // Only a strong tag can match; dates are not used here.
        guard condition.isEmpty || condition == [tag], let wish = HTTPByteRange(request: head) else {
            return (200, fields, 0..<length)
        }
        guard let part = wish.bytes(of: length) else {
            return (416, fields + [("Content-Range", HTTPContentRange.unsatisfied(total: length).field)], nil)
        }
        return (206, fields + [("Content-Range", HTTPContentRange.part(part, total: length).field)], part)
    }

    /// `type/subtype` of tokens. Source: RFC 9110 §8.3.1.
    static func isType(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return parts.count == 2 && text.utf8.count <= maxTypeBytes
            && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy(ASCII.isTokenByte) }
    }

    /// Source: RFC 6838 §4.2: each half has at most 127 characters.
    private static let maxTypeBytes = 255

    // MARK: - Of an upload

    /// Whether a page of another site may have caused an upload with a password that it does not have: a browser adds
    /// remembered passwords to simple requests of any page, and asks before other requests.
    ///
    /// - Parameters:
    ///   - origins: pages that may.
    ///   - host: the requested host.
    ///
    /// Source: Fetch, "CORS-safelisted request-header" and "Origin header": requests of other sites' pages have one.
    static func mayBeForged(_ head: HTTPRequestHead, origins: [OriginPattern], host: String) -> Bool {
        let written = head.headers.all("Origin")
        // Tokens are remembered by no browser.
        guard case .password? = UploadCredentials(head.headers), !written.isEmpty else { return false }
        if written.count == 1, origins.contains(where: { $0.matches(written[0], host: host) }) { return false }
        if head.headers.first("Content-Disposition") != nil { return false }
        let type = head.headers.first("Content-Type").flatMap { HTTPParameterizedValue($0)?.value }
        return type.map { !isType($0) || formTypes.contains(ASCII.lowercased($0)) } ?? true
    }

    private static let formTypes: Set = ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"]

    /// The type of the upload; without a readable one, bytes.
    static func uploadedType(_ headers: HTTPHeaders) -> String {
        let bare = headers.first("Content-Type").flatMap { HTTPParameterizedValue($0)?.value }.map(ASCII.lowercased)
        // curl's default type.
        guard let bare, isType(bare), bare != "application/x-www-form-urlencoded" else {
            return "application/octet-stream"
        }
        return bare
    }

    /// The file's name: the last part of a path, without characters that a name must not have; never empty.
    ///
    /// Source: RFC 6266 §4.1, §4.3; RFC 8187 §3.2.
    static func uploadedName(_ headers: HTTPHeaders, type: String) -> String {
        let value = headers.first("Content-Disposition").flatMap { HTTPParameterizedValue($0) }
        let written = value?.parameter("filename*").flatMap(extended) ?? value?.parameter("filename") ?? ""
        let last = written.split { $0 == "/" || $0 == "\\" }.last ?? ""
        var name = String.UnicodeScalarView()
        for scalar in last.unicodeScalars {
            let category = scalar.properties.generalCategory
            guard category != .control, category != .format, category != .lineSeparator,
                category != .paragraphSeparator,
                scalar != "\""
            else {
                continue
            }
            guard String(name).utf8.count + String(scalar).utf8.count <= maxNameBytes else { break }
            name.append(scalar)
        }
        let kept = String(name)
        guard kept.allSatisfy({ $0 == "." || $0 == " " }) else { return kept }
        return "upload." + (types.first { $0.value == type }?.key ?? "bin")
    }

    /// Longest name for backends, in bytes; file systems have 255.
    static let maxNameBytes = 200

    /// `UTF-8''na%20me`.
    private static func extended(_ text: String) -> String? {
        let parts = text.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, ASCII.lowercased(String(parts[0])) == "utf-8" else { return nil }
        return HTTPURL.percentDecoded(String(parts[2]))
    }
}

/// Credentials of an upload: a password, or a token of the backend's.
///
/// Source: RFC 7617; RFC 6750 §2.1.
enum UploadCredentials: Equatable {
    case password(name: String, [UInt8])
    case token(String)

    /// Nil for none, several, or unreadable ones.
    init?(_ headers: HTTPHeaders) {
        let values = headers.all("Authorization")
        guard values.count == 1, let value = values.first, let blank = value.firstIndex(of: " ") else { return nil }
        let shown = String(value[blank...].drop { $0 == " " })
        switch ASCII.lowercased(String(value[..<blank])) {
        case "basic":
            guard let bytes = Base64.decode(shown), let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > 0,
                let name = String(validating: bytes[..<colon], as: UTF8.self)
            else { return nil }
            self = .password(name: name, Array(bytes[(colon + 1)...]))
        case "bearer" where !shown.isEmpty: self = .token(shown)
        default: return nil
        }
    }
}
