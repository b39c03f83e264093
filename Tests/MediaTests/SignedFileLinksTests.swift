import ChatModel
import HTTPProtocol
import Testing

@testable import Media

@Suite("Links to files")
struct SignedFileLinksTests {
    static let now = ChatTimestamp(milliseconds: 1_795_262_400_000)
    static let links = SignedFileLinks(
        base: "https://chat.example/", key: Array(repeating: 7, count: 32), lifetime: .seconds(3600))

    private static func path(_ url: String) -> String { String(url.dropFirst("https://chat.example".count)) }

    @Test(
        "a link opens the file that it was made for",
        arguments: [
            LinkedFile(room: "lobby", location: .backend("/assets/5b1c"), name: "cat.png"),
            LinkedFile(
                room: "lobby", location: .stored("AAAAAAAAAAAAAAAAAAAAAA.png"), name: "AAAAAAAAAAAAAAAAAAAAAA.png"),
            LinkedFile(room: "Küche/2", location: .backend("/a/-/b?c=d&e=%2F"), name: "x"),
            LinkedFile(room: "a", location: .backend("/"), name: "é.png"),
        ])
    func opens(_ file: LinkedFile) {
        let url = Self.links.url(of: file, now: Self.now)
        #expect(url.hasPrefix("https://chat.example/media/"))
        #expect(url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && !url.contains("?"))
        #expect(Self.links.file(at: Self.path(url), now: Self.now) == .success(file))
    }

    @Test("a link opens for its lifetime, and less than an hour longer", arguments: [0, 1, 3_599_999] as [Int64])
    func expires(offset: Int64) {
        let made = ChatTimestamp(milliseconds: Self.now.milliseconds + offset)
        let file = LinkedFile(room: "lobby", location: .backend("/f"), name: "f")
        let path = Self.path(Self.links.url(of: file, now: made))
        func opened(after milliseconds: Int64) -> Result<LinkedFile, LinkRefusal> {
            Self.links.file(at: path, now: ChatTimestamp(milliseconds: made.milliseconds + milliseconds))
        }
        #expect(opened(after: 3_600_000) == .success(file))
        #expect(opened(after: 2 * 3_600_000) == .failure(.expired))
        #expect(opened(after: .max - made.milliseconds) == .failure(.expired))
    }

    @Test("within an hour a file has one link")
    func isStable() {
        let file = LinkedFile(room: "lobby", location: .backend("/f"), name: "f")
        let later = ChatTimestamp(milliseconds: Self.now.milliseconds + 3_599_999)
        #expect(Self.links.url(of: file, now: Self.now) == Self.links.url(of: file, now: later))
    }

    @Test("every changed byte invalidates a link, and none traps")
    func changed() {
        let file = LinkedFile(room: "lobby", location: .backend("/assets/5b1c"), name: "cat.png")
        let path = Array(Self.path(Self.links.url(of: file, now: Self.now)).utf8)
        for index in path.indices {
            for other in [UInt8(ascii: "a"), UInt8(ascii: "/"), UInt8(ascii: "%"), UInt8(ascii: ".")]
            where path[index] != other {
                var changed = path
                changed[index] = other
                let found = Self.links.file(at: String(decoding: changed, as: UTF8.self), now: Self.now)
                #expect(found == .failure(.unknown), "byte \(index) as \(other)")
            }
            let cut = String(decoding: path[..<index], as: UTF8.self)
            #expect(Self.links.file(at: cut, now: Self.now) == .failure(.unknown))
        }
    }

    @Test("links of another key are invalid")
    func otherKey() {
        let other = SignedFileLinks(
            base: "https://chat.example", key: Array(repeating: 8, count: 32), lifetime: .seconds(60))
        let file = LinkedFile(room: "lobby", location: .backend("/f"), name: "f")
        #expect(other.file(at: Self.path(Self.links.url(of: file, now: Self.now)), now: Self.now) == .failure(.unknown))
    }

    @Test("extreme times do not trap")
    func endOfTime() {
        let forever = SignedFileLinks(base: "https://chat.example", key: [1], lifetime: .seconds(Int64.max / 2))
        let file = LinkedFile(room: "lobby", location: .backend("/f"), name: "f")
        let path = Self.path(forever.url(of: file, now: ChatTimestamp(milliseconds: .max)))
        _ = forever.file(at: path, now: ChatTimestamp(milliseconds: .max))
        _ = forever.url(of: file, now: ChatTimestamp(milliseconds: .min))
    }

    @Test(
        "names in links",
        arguments: [
            ("cat.png", "cat.png"), ("my cat.png", "my-cat.png"), ("../../etc/passwd", "etc-passwd"),
            ("чат.png", "png"), ("été.png", "t-.png"), ("", "file"), ("...", "file"), ("-", "file"),
            ("a\"\r\nb", "a-b"),
            (String(repeating: "a", count: 100) + ".jpeg", String(repeating: "a", count: 43) + ".jpeg"),
            (String(repeating: "a", count: 100), String(repeating: "a", count: 48)),
        ] as [(String, String)])
    func names(_ name: String, _ shown: String) {
        #expect(SignedFileLinks.plainName(name) == shown)
        #expect(SignedFileLinks.plainName(shown) == shown)
    }

    @Test(
        "which files get a signed link",
        arguments: [
            ("https://cms.example/assets/1", true), ("https://cms.example:443/assets/1", true),
            ("http://cms.example/assets/1", false), ("https://cms.example:8443/assets/1", false),
            ("https://other.example/assets/1", false), ("https://cms.example/assets/../admin", false),
            ("https://cms.example/assets/%2E%2e/admin", false), ("https://cms.example/assets/..%2fadmin", false),
            ("https://cms.example/assets/%252e%252e%255cadmin", false), ("media:AAAAAAAAAAAAAAAAAAAAAA.png", true),
            ("ftp://cms.example/1", false), ("/assets/1", true), ("assets/1", false), ("", false),
        ])
    func guarded(_ address: String, _ hasLink: Bool) throws {
        let files = RoomFileLinks(
            links: Self.links, room: "lobby", guarded: try HTTPURL(parsing: "https://cms.example"), now: Self.now)
        let found = files.url(of: ChatAttachment(kind: .image, url: address, name: "cat.png"))
        #expect((found != nil) == hasLink)
        if let found { #expect(found.hasSuffix("/-/cat.png")) }
    }
}
