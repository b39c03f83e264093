import ChatModel
import Digests
import HTTPProtocol
import Media
import Testing

@testable import BridgeCore
@testable import ChatBridge
@testable import Configuration
@testable import IRCServer
@testable import Media
@testable import Rooms

/// Links as tests make them.
enum KnownLinks {
    static let now = ChatTimestamp(milliseconds: 1_795_262_400_000)
    static let links = SignedFileLinks(
        base: "https://chat.example/", key: Array(repeating: 7, count: 32), lifetime: .seconds(3600))
}

@Suite("Files over HTTP: fields")
struct MediaHeaderTests {
    @Test(
        "what a browser may show, and what is only to be saved",
        arguments: [
            ("image/png", "image/png", "inline"), ("IMAGE/JPEG; x=y", "image/jpeg", "inline"),
            ("video/mp4", "video/mp4", "inline"), ("audio/ogg", "audio/ogg", "inline"),
            ("image/svg+xml", "application/octet-stream", "attachment"),
            ("text/html", "application/octet-stream", "attachment"),
            ("application/pdf", "application/octet-stream", "attachment"),
            ("video/mp4\r\nX: y", "application/octet-stream", "attachment"),
            ("video/", "application/octet-stream", "attachment"),
            ("audio/x-mpegurl", "application/octet-stream", "attachment"),
            ("audio/mpeg ", "audio/mpeg", "inline"), (nil, "application/octet-stream", "attachment"),
        ] as [(String?, String, String)])
    func shown(_ type: String?, _ said: String, _ disposition: String) {
        let fields = MediaHeaders.fields(type: type, name: "cat.png")
        #expect(fields.first("Content-Type") == said)
        #expect(fields.first("Content-Disposition") == "\(disposition); filename=\"cat.png\"")
        #expect(fields.first("Content-Security-Policy") == "sandbox; default-src 'none'")
    }

    @Test(
        "the name of an uploaded file",
        arguments: [
            ("attachment; filename=\"cat.png\"", "cat.png"), ("attachment; filename=cat.png", "cat.png"),
            ("inline; filename=\"C:\\\\tmp\\\\cat.png\"", "cat.png"),
            ("attachment; filename=\"../../x\"", "x"),
            ("attachment; filename=\"a.png\"; filename*=UTF-8''%C3%A9t%C3%A9.png", "été.png"),
            ("attachment; filename*=UTF-8''%FF", "upload.png"),
            ("attachment; filename*=iso-8859-1''x; filename=y", "y"), ("attachment", "upload.png"),
            ("attachment; filename=\"..\"", "upload.png"), ("attachment; filename=\"", "upload.png"),
            (nil, "upload.png"),
            ("attachment; filename=\"a\"; filename=\"b\"", "upload.png"),
        ] as [(String?, String)])
    func names(_ disposition: String?, _ name: String) {
        let headers = HTTPHeaders(disposition.map { [("Content-Disposition", $0)] } ?? [])
        #expect(MediaHeaders.uploadedName(headers, type: "image/png") == name)
    }

    @Test("a long name is cut between characters")
    func longName() {
        let long = String(repeating: "é", count: 300)
        let headers = HTTPHeaders([("Content-Disposition", "attachment; filename=\"\(long)\"")])
        let name = MediaHeaders.uploadedName(headers, type: "image/png")
        #expect(name == String(repeating: "é", count: 100))
    }

    @Test(
        "how a file that does not change is answered for",
        arguments: [
            ("GET", "", 200, 0..<10, nil), ("GET", "Range: bytes=2-4", 206, 2..<5, "bytes 2-4/10"),
            ("GET", "Range: bytes=-3", 206, 7..<10, "bytes 7-9/10"),
            ("GET", "Range: bytes=-30", 206, 0..<10, "bytes 0-9/10"),
            ("GET", "Range: bytes=10-", 416, nil, "bytes */10"), ("GET", "Range: bytes=-0", 416, nil, "bytes */10"),
            ("GET", "Range: bytes=0-1,3-4", 200, 0..<10, nil), ("HEAD", "Range: bytes=2-4", 200, 0..<10, nil),
            ("GET", "Range: bytes=2-4\nIf-Range: \"t\"", 206, 2..<5, "bytes 2-4/10"),
            ("GET", "Range: bytes=2-4\nIf-Range: \"u\"", 200, 0..<10, nil),
            ("GET", "Range: bytes=2-4\nIf-Range: W/\"t\"", 200, 0..<10, nil),
            ("GET", "Range: bytes=99-\nIf-Range: Sun, 22 Nov 2026 12:00:00 GMT", 200, 0..<10, nil),
            ("GET", "If-None-Match: \"t\"", 304, nil, nil), ("HEAD", "If-None-Match: \"u\", W/\"t\"", 304, nil, nil),
            ("GET", "If-None-Match: *\nRange: bytes=2-4", 304, nil, nil),
            ("GET", "If-None-Match: \"u\"", 200, 0..<10, nil),
        ] as [(String, String, Int, Range<Int>?, String?)])
    func replies(_ method: String, _ fields: String, _ status: Int, _ part: Range<Int>?, _ range: String?) {
        let pairs = fields.split(separator: "\n").map { line in
            (name: String(line.prefix { $0 != ":" }), value: String(line.drop { $0 != ":" }.dropFirst(2)))
        }
        let head = HTTPRequestHead(method: method, target: "/", headers: HTTPHeaders(pairs))
        let reply = MediaHeaders.reply(to: head, length: 10, tag: "\"t\"")
        #expect(reply.status == status && reply.part == part)
        #expect(HTTPHeaders(reply.fields).first("Content-Range") == range)
        #expect(HTTPHeaders(reply.fields).first("ETag") == "\"t\"")
    }

    @Test(
        "another site's page uploads with nothing that the browser remembers",
        arguments: [
            ("", false), ("Content-Type: text/plain", false), ("Origin: https://chat.example", false),
            ("Origin: http://chat.example:8080", false), ("Origin: https://evil.example", true),
            ("Origin: null", true), ("Origin: https://chat.example\nOrigin: https://evil.example", true),
            ("Origin: https://evil.example\nContent-Type: text/plain; charset=UTF-8", true),
            ("Origin: https://evil.example\nContent-Type: Multipart/Form-Data; boundary=x", true),
            ("Origin: https://evil.example\nContent-Type: application/x-www-form-urlencoded", true),
            ("Origin: https://evil.example\nContent-Type: nonsense", true),
            // A browser asks before it sends these for a page.
            ("Origin: https://evil.example\nContent-Type: image/png", false),
            ("Origin: https://evil.example\nContent-Disposition: attachment", false),
            ("Origin: https://evil.example\nAuthorization: Bearer abc", false),
        ])
    func forged(_ fields: String, _ isForged: Bool) {
        var pairs = fields.split(separator: "\n").map { line in
            (name: String(line.prefix { $0 != ":" }), value: String(line.drop { $0 != ":" }.dropFirst(2)))
        }
        if !fields.contains("Bearer") { pairs.append((name: "Authorization", value: "Basic Y2hlZjpzZWNyZXQ=")) }
        let head = HTTPRequestHead(method: "POST", target: "/media/upload", headers: HTTPHeaders(pairs))
        #expect(MediaHeaders.mayBeForged(head, origins: [.ownHost], host: "chat.example") == isForged)
    }

    @Test(
        "the type of an uploaded file",
        arguments: [
            ("image/png", "image/png"), ("Image/PNG; charset=x", "image/png"), (nil, "application/octet-stream"),
            ("nonsense", "application/octet-stream"), ("a/b/c", "application/octet-stream"),
            ("application/x-www-form-urlencoded", "application/octet-stream"),
        ] as [(String?, String)])
    func types(_ written: String?, _ type: String) {
        #expect(MediaHeaders.uploadedType(HTTPHeaders(written.map { [("Content-Type", $0)] } ?? [])) == type)
    }

    @Test(
        "a password, or a token",
        arguments: [
            ("Basic YW5uOnNlY3JldA==", .password(name: "ann", Array("secret".utf8))),
            ("basic   YW5uOnNlY3JldA==", .password(name: "ann", Array("secret".utf8))),
            ("Basic YW5uOmE6Yg==", .password(name: "ann", Array("a:b".utf8))), ("Basic OnNlY3JldA==", nil),
            ("Basic YW5u", nil), ("Basic ???", nil), ("Bearer YW5uOnNlY3JldA==", .token("YW5uOnNlY3JldA==")),
            ("BEARER  a.b.c", .token("a.b.c")), ("Bearer ", nil), ("Bearer", nil), ("Basic", nil), ("Digest x", nil),
            ("", nil),
        ] as [(String, UploadCredentials?)])
    func credentials(_ field: String, _ shown: UploadCredentials?) {
        #expect(UploadCredentials(HTTPHeaders([("Authorization", field)])) == shown)
        #expect(UploadCredentials(HTTPHeaders([("Authorization", field), ("Authorization", field)])) == nil)
    }
}
