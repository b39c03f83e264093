public import ChatModel
import Digests
import HTTPProtocol
import WireBytes

// Links to files that the bridge serves: files of a backend that requires a token, and locally stored ones. A link contains
// everything needed to serve it, and an HMAC, so that no state is needed for issued links.
//
//     PUBLIC/media/f/ROOM/EXPIRY.CODE/path/of/the/file/-/NAME     a file of the room's backend
//     PUBLIC/media/d/ROOM/EXPIRY.CODE/FILE/-/NAME                 a locally stored file
//
// A link is a bearer capability, as in chat apps, until it expires. EXPIRY counts hours since 1970 in base 36, rounded up, so
// that repeated links to a file are mostly equal.

/// Settings for serving files.
public struct MediaSettings: Sendable {
    public var links: SignedFileLinks
    /// Size limit of uploads in bytes.
    public var maxUploadBytes: Int
    /// Uploads of earlier processes, oldest first.
    public var uploads: [UploadRecord]
    /// The upload URL for ISUPPORT; nil: uploads are off.
    public var uploadURL: String? { links.base + SignedFileLinks.uploadPath }

    public init(links: SignedFileLinks, maxUploadBytes: Int = 10 * 1024 * 1024, uploads: [UploadRecord] = []) {
        self.links = links
        self.maxUploadBytes = maxUploadBytes
        self.uploads = uploads
    }
}

/// The target of a link.
public struct LinkedFile: Equatable, Sendable {
    public enum Location: Equatable, Sendable {
        /// On the room's backend: a path from the root of its server, as on a request line.
        case backend(String)
        /// In the state directory, by its name there.
        case stored(String)
    }

    /// The room's name in the settings.
    public var room: String
    public var location: Location
    /// The file name for saving: letters, digits and `-._`; never empty.
    public var name: String

    public init(room: String, location: Location, name: String) {
        self.room = room
        self.location = location
        self.name = SignedFileLinks.plainName(name)
    }
}

/// Reasons why a path has no file.
public enum LinkRefusal: Error, Equatable, Sendable {
    /// Not issued here, or altered.
    case unknown
    case expired
}

/// Issues and verifies links.
public struct SignedFileLinks: Sendable {
    public static let prefix = "/media/"
    public static let uploadPath = "/media/upload"
    /// Limit in bytes of a file's name in a link, with its extension.
    package static let maxNameBytes = 48
    /// Length of the truncated HMAC: cannot be guessed over a network before the link expires.
    static let codeBytes = 16
    /// An hour, in milliseconds.
    private static let hour: Int64 = 3_600_000

    /// The public URL of the bridge, without a trailing slash.
    public let base: String
    package let lifetime: Duration
    private let key: SecretBytes

    /// - Parameters:
    ///   - key: at least 16 secret bytes.
    ///   - lifetime: the minimum validity of a link.
    public init(base: String, key: [UInt8], lifetime: Duration) {
        var base = Substring(base)
        while base.utf8.last == UInt8(ascii: "/") { base.removeLast() }
        self.base = String(base)
        self.key = SecretBytes(key)
        self.lifetime = lifetime
    }

    // MARK: - Making

    /// A link to `file`, valid for at least the lifetime.
    public func url(of file: LinkedFile, now: ChatTimestamp) -> String {
        let whole = max(lifetime.wholeNanoseconds / 1_000_000, 0)
        let (end, over) = now.milliseconds.addingReportingOverflow(whole)
        let expiry = (over ? Int64.max : max(end, 0)) / Self.hour + 1
        let stamp = String(expiry, radix: 36) + "." + code(of: file, expiry: expiry)
        let room = HTTPURL.percentEncoded(file.room)
        let name = Self.plainName(file.name)
        switch file.location {
        case .backend(let target):
            let path = target.split(separator: "/", omittingEmptySubsequences: false).map {
                HTTPURL.percentEncoded(String($0))
            }
            return "\(base)\(Self.prefix)f/\(room)/\(stamp)\(path.joined(separator: "/"))/-/\(name)"
        case .stored(let file):
            return "\(base)\(Self.prefix)d/\(room)/\(stamp)/\(HTTPURL.percentEncoded(file))/-/\(name)"
        }
    }

    private func code(of file: LinkedFile, expiry: Int64) -> String {
        var input: [UInt8] = []
        func add(_ part: String) {
            input.append(contentsOf: part.utf8)
            // A separator: rooms and targets contain no control characters.
            input.append(0)
        }
        switch file.location {
        case .backend(let target):
            add("f")
            add(target)
        case .stored(let name):
            add("d")
            add(name)
        }
        add(file.room)
        add(file.name)
        add(String(expiry))
        return Base64.encodeURLSafe(
            Array(HMACSHA256.authenticate(input, key: key.withUnsafeBytes { Array($0) }).prefix(Self.codeBytes)))
    }

    // MARK: - Opening

    /// The file of a path, as on a request line, without the query.
    public func file(at path: String, now: ChatTimestamp) -> Result<LinkedFile, LinkRefusal> {
        guard let (file, expiry) = known(path) else { return .failure(.unknown) }
        return now.milliseconds / Self.hour < expiry ? .success(file) : .failure(.expired)
    }

    /// The file of a link issued here, also of an expired one.
    package func file(ofURL url: String) -> LinkedFile? {
        url.hasPrefix(base) ? known(String(url.dropFirst(base.count)))?.file : nil
    }

    private func known(_ path: String) -> (file: LinkedFile, expiry: Int64)? {
        guard path.utf8.starts(with: Self.prefix.utf8) else { return nil }
        let parts = path.utf8.dropFirst(Self.prefix.utf8.count).split(
            separator: UInt8(ascii: "/"), maxSplits: 3, omittingEmptySubsequences: false
        ).map { String($0) ?? "" }
        guard parts.count == 4, let room = HTTPURL.percentDecoded(parts[1]), !room.isEmpty,
            let slash = parts[3].lastIndex(of: "/"), parts[3][..<slash].hasSuffix("/-")
        else { return nil }
        let name = String(parts[3][parts[3].index(after: slash)...])
        guard let target = HTTPURL.percentDecoded(String(parts[3][..<slash].dropLast(2))), name == Self.plainName(name)
        else {
            return nil
        }
        let location: LinkedFile.Location
        switch parts[0] {
        case "f": location = .backend("/" + target)
        case "d": location = .stored(target)
        default: return nil
        }
        let stamp = parts[2].split(separator: ".", omittingEmptySubsequences: false)
        // 7 digits in base 36 are 78 billion hours.
        guard stamp.count == 2, stamp[0].utf8.count <= 7, let expiry = Int64(stamp[0], radix: 36), expiry > 0 else {
            return nil
        }
        let file = LinkedFile(room: room, location: location, name: name)
        let isAuthentic = constantTimeEqual(Array(code(of: file, expiry: expiry).utf8), Array(stamp[1].utf8))
        return isAuthentic ? (file, expiry) : nil
    }

    // MARK: - Text

    /// `name` reduced to ASCII letters, digits and `-._`, with its extension.
    package static func plainName(_ name: String) -> String {
        var plain: [UInt8] = []
        for byte in name.utf8 {
            let isLegal =
                ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: ".")
                || byte == UInt8(ascii: "_")
            if isLegal {
                plain.append(byte)
            } else if plain.last != UInt8(ascii: "-") {
                plain.append(UInt8(ascii: "-"))
            }
        }
        // No hidden files, no path traversal.
        let front = plain.firstIndex { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "-") } ?? plain.endIndex
        plain.removeFirst(front)
        if plain.isEmpty { return "file" }
        guard plain.count > maxNameBytes else { return String(decoding: plain, as: UTF8.self) }
        let dot = plain.lastIndex(of: UInt8(ascii: ".")).flatMap { plain.count - $0 <= 8 ? $0 : nil }
        let end = plain[(dot ?? plain.endIndex)...]
        return String(decoding: plain.prefix(maxNameBytes - end.count) + end, as: UTF8.self)
    }
}
