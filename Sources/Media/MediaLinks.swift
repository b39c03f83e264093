public import ChatModel
import Digests
import HTTPProtocol
import WireBytes

// Links to files that this bridge serves itself: files of a backend that wants a token for them, and files that came within
// a message. A link holds everything that is needed to serve it, and a code by which we know it again, so that nothing is
// remembered of links that were given out.
//
//     PUBLIC/media/f/ROOM/EXPIRY.CODE/path/of/the/file/-/NAME     a file of the room's backend
//     PUBLIC/media/d/ROOM/EXPIRY.CODE/FILE/-/NAME                 a file that is kept here
//
// Whoever has a link sees the file, as with the links of chat apps, until it expires: EXPIRY counts hours since 1970, in
// base 36. It is rounded up to a whole hour, so that what is shown twice mostly has one link.

/// What the bridge knows of serving files.
public struct MediaSettings: Sendable {
    public var links: MediaLinks
    /// Largest file that people may upload, in bytes.
    public var maxUploadBytes: Int
    /// What was uploaded in earlier processes, oldest first.
    public var uploads: [UploadRecord]
    /// Where people upload, for ISUPPORT; nil: nowhere.
    public var uploadURL: String? { links.base + MediaLinks.uploadPath }

    public init(links: MediaLinks, maxUploadBytes: Int = 10 * 1024 * 1024, uploads: [UploadRecord] = []) {
        self.links = links
        self.maxUploadBytes = maxUploadBytes
        self.uploads = uploads
    }
}

/// A file that a link leads to.
public struct LinkedFile: Equatable, Sendable {
    public enum Place: Equatable, Sendable {
        /// On the room's backend: a path from the root of its server, as on a request line.
        case backend(String)
        /// In the state directory, by its name there.
        case kept(String)
    }

    /// The room's name in the settings.
    public var room: String
    public var place: Place
    /// For whoever saves it: letters, digits and `-._`; never empty.
    public var name: String

    public init(room: String, place: Place, name: String) {
        self.room = room
        self.place = place
        self.name = MediaLinks.plainName(name)
    }
}

/// Why a path leads to no file.
public enum LinkRefusal: Error, Equatable, Sendable {
    /// None of ours, or changed on its way.
    case unknown
    case expired
}

/// Makes links and knows its own again.
public struct MediaLinks: Sendable {
    public static let prefix = "/media/"
    public static let uploadPath = "/media/upload"
    /// Bytes of a file's name in a link: enough to recognise it, and its extension.
    package static let maxNameBytes = 48
    /// Bytes of the code: more than can be guessed over a network before the link expires.
    static let codeBytes = 16
    /// An hour, in milliseconds.
    private static let hour: Int64 = 3_600_000

    /// Where people reach the bridge: a URL without a slash at its end.
    public let base: String
    package let lifetime: Duration
    private let key: SecretBytes

    /// - Parameters:
    ///   - key: at least 16 bytes that nobody else knows.
    ///   - lifetime: how long a link opens, at least.
    public init(base: String, key: [UInt8], lifetime: Duration) {
        var base = Substring(base)
        while base.utf8.last == UInt8(ascii: "/") { base.removeLast() }
        self.base = String(base)
        self.key = SecretBytes(key)
        self.lifetime = lifetime
    }

    // MARK: - Making

    /// A link that opens `file` from now on, for at least the lifetime.
    public func url(of file: LinkedFile, now: ChatTimestamp) -> String {
        let whole = max(lifetime.wholeNanoseconds / 1_000_000, 0)
        let (end, over) = now.milliseconds.addingReportingOverflow(whole)
        let expiry = (over ? Int64.max : max(end, 0)) / Self.hour + 1
        let stamp = String(expiry, radix: 36) + "." + code(of: file, expiry: expiry)
        let room = HTTPURL.percentEncoded(file.room)
        let name = Self.plainName(file.name)
        switch file.place {
        case .backend(let target):
            let path = target.split(separator: "/", omittingEmptySubsequences: false).map {
                HTTPURL.percentEncoded(String($0))
            }
            return "\(base)\(Self.prefix)f/\(room)/\(stamp)\(path.joined(separator: "/"))/-/\(name)"
        case .kept(let kept):
            return "\(base)\(Self.prefix)d/\(room)/\(stamp)/\(HTTPURL.percentEncoded(kept))/-/\(name)"
        }
    }

    private func code(of file: LinkedFile, expiry: Int64) -> String {
        var input: [UInt8] = []
        func add(_ part: String) {
            input.append(contentsOf: part.utf8)
            // In none of the parts: rooms and targets have no control characters.
            input.append(0)
        }
        switch file.place {
        case .backend(let target):
            add("f")
            add(target)
        case .kept(let kept):
            add("d")
            add(kept)
        }
        add(file.room)
        add(file.name)
        add(String(expiry))
        return Base64.encodeURLSafe(
            Array(HMACSHA256.authenticate(input, key: key.withUnsafeBytes { Array($0) }).prefix(Self.codeBytes)))
    }

    // MARK: - Opening

    /// The file that a path leads to; as on a request line, without the query.
    public func file(at path: String, now: ChatTimestamp) -> Result<LinkedFile, LinkRefusal> {
        guard let (file, expiry) = known(path) else { return .failure(.unknown) }
        return now.milliseconds / Self.hour < expiry ? .success(file) : .failure(.expired)
    }

    /// The file that a link of ours leads to, or led to.
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
        let place: LinkedFile.Place
        switch parts[0] {
        case "f": place = .backend("/" + target)
        case "d": place = .kept(target)
        default: return nil
        }
        let stamp = parts[2].split(separator: ".", omittingEmptySubsequences: false)
        // 7 digits in base 36 are 78 billion hours.
        guard stamp.count == 2, stamp[0].utf8.count <= 7, let expiry = Int64(stamp[0], radix: 36), expiry > 0 else {
            return nil
        }
        let file = LinkedFile(room: room, place: place, name: name)
        let isOurs = constantTimeEqual(Array(code(of: file, expiry: expiry).utf8), Array(stamp[1].utf8))
        return isOurs ? (file, expiry) : nil
    }

    // MARK: - Text

    /// `name` as it stands in a link: letters, digits and `-._` of ASCII; the extension stays.
    package static func plainName(_ name: String) -> String {
        var plain: [UInt8] = []
        for byte in name.utf8 {
            let isKept =
                ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: ".")
                || byte == UInt8(ascii: "_")
            if isKept {
                plain.append(byte)
            } else if plain.last != UInt8(ascii: "-") {
                plain.append(UInt8(ascii: "-"))
            }
        }
        // No hidden files, no steps to another folder.
        let front = plain.firstIndex { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "-") } ?? plain.endIndex
        plain.removeFirst(front)
        if plain.isEmpty { return "file" }
        guard plain.count > maxNameBytes else { return String(decoding: plain, as: UTF8.self) }
        let dot = plain.lastIndex(of: UInt8(ascii: ".")).flatMap { plain.count - $0 <= 8 ? $0 : nil }
        let end = plain[(dot ?? plain.endIndex)...]
        return String(decoding: plain.prefix(maxNameBytes - end.count) + end, as: UTF8.self)
    }
}
