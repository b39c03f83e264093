import Learning
import Testing

@testable import ChatBridge

@Suite("Frames that pass by")
struct FrameTapTests {
    /// A frame of a client or server.
    private static func frame(_ text: String, opcode: UInt8 = 1, isLast: Bool = true, mask: [UInt8]? = nil) -> [UInt8] {
        var bytes = [opcode | (isLast ? 0x80 : 0)]
        let payload = Array(text.utf8)
        let flag: UInt8 = mask == nil ? 0 : 0x80
        if payload.count < 126 {
            bytes.append(flag | UInt8(payload.count))
        } else {
            bytes += [flag | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        }
        guard let mask else { return bytes + payload }
        return bytes + mask + payload.enumerated().map { $0.element ^ mask[$0.offset % 4] }
    }

    @Test("messages are found whole, in pieces, masked, and with pings between, at every cut")
    func cuts() {
        let long = String(repeating: "é", count: 100)
        let stream =
            Self.frame("one") + Self.frame("tw", isLast: false, mask: [1, 2, 3, 4]) + Self.frame("ping", opcode: 9)
            + Self.frame("o", opcode: 0, mask: [9, 9, 9, 9]) + Self.frame(long, opcode: 2)
        let expected = [
            FrameTap.Message(isBinary: false, bytes: Array("one".utf8)),
            FrameTap.Message(isBinary: false, bytes: Array("two".utf8)),
            FrameTap.Message(isBinary: true, bytes: Array(long.utf8)),
        ]
        for cut in 0...stream.count {
            var tap = FrameTap()
            #expect(tap.feed(stream[..<cut]) + tap.feed(stream[cut...]) == expected, "\(cut)")
        }
    }

    @Test("a length that nobody can send ends the recording and nothing else")
    func tooLong() {
        var tap = FrameTap()
        #expect(tap.feed([0x81, 127, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]).isEmpty)
        #expect(tap.hasFailed)
        #expect(tap.feed(Self.frame("later")).isEmpty)
    }

    @Test("a request names the backend as its host, and asks for nothing compressed")
    func requests() {
        let head =
            "GET /ws?x=1 HTTP/1.1\r\nhost: 127.0.0.1:9\r\nOrigin: http://127.0.0.1:9\r\nUpgrade: websocket\r\n"
            + "Connection: Upgrade\r\nSec-WebSocket-Extensions: permessage-deflate\r\nCookie: a=b\r\n\r\n"
        let request = TappedRequest(head: Array(head.utf8), host: "chat.example", origin: "https://chat.example")
        #expect(request?.isUpgrade == true)
        #expect(request?.target == "/ws?x=1")
        #expect(request?.fields.last?.name == "Cookie" && request?.fields.last?.value == "a=b")
        #expect(
            String(decoding: request?.head ?? [], as: UTF8.self)
                == "GET /ws?x=1 HTTP/1.1\r\nHost: chat.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nCookie: a=b\r\n"
                + "Origin: https://chat.example\r\n\r\n")
        #expect(TappedRequest(head: Array("nonsense\r\n\r\n".utf8), host: "h", origin: "o") == nil)
    }

    @Test("an answer is read in one piece or in chunks")
    func answers() {
        let plain = TappedRequest.answer(Array("HTTP/1.1 200 OK\r\nX: y\r\n\r\n{}".utf8))
        #expect(plain?.status == 200)
        #expect(plain?.body == Array("{}".utf8))
        let chunked = TappedRequest.answer(
            Array("HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n1\r\nd\r\n0\r\n\r\n".utf8))
        #expect(chunked?.status == 404)
        #expect(chunked?.body == Array("abcd".utf8))
        #expect(TappedRequest.answer(Array("HTTP/1.1 200".utf8)) == nil)
    }

    @Test(
        "the configuration shows the token as the app did, from a file, and names a room where the frames do",
        arguments: [
            (Proposal.Token.none, nil, #"# auth = { type = "bearer", token_file = "token" }"#),
            (.frame, "ops", #"auth = { type = "message", token_file = "token" }"#),
            (.query("t"), nil, #"auth = { type = "query", param = "t", token_file = "token" }"#),
            (
                .header(RecordedHeader(name: "authorization", format: "Bearer {token}")), nil,
                #"auth = { type = "bearer", token_file = "token" }"#
            ),
            (
                .header(RecordedHeader(name: "X-Key", format: "Key {token}")), nil,
                #"auth = { type = "header", name = "X-Key", format = "Key {token}", token_file = "token" }"#
            ),
        ] as [(Proposal.Token, String?, String)])
    func configurations(_ token: Proposal.Token, _ room: String?, _ auth: String) throws {
        var recording = Recording()
        recording.add(RecordedFrame(isSent: false, text: #"{"op":"hi"}"#))
        var proposal = try #require(Learner.propose(recording))
        (proposal.token, proposal.room) = (token, room)
        let toml = LearnedFiles(LearnOptions(name: "mine")).toml(proposal)
        #expect(toml.contains("\n" + auth))
        #expect(toml.contains("upstream_room") == (room != nil))
        let elsewhere = LearnedFiles(LearnOptions(name: "mine", directory: "learnt")).toml(proposal)
        #expect(elsewhere.contains(#"token_file = "learnt/token" }"#))
    }

    @Test(
        "the channel is called as the room is, by its title where the backend tells one",
        arguments: [
            ("ops", nil, "ops"), ("room:Ops", nil, "ops"), ("8f3c-77", "Night shift", "night-shift"),
            ("f3c8", "Night shift", "night-shift"), ("f3c8", "Nachtwächter", "f3c8"), ("8f3c-77", "Été", "mine"),
            ("8f3c-77", nil, "mine"),
        ] as [(String, String?, String)])
    func channels(_ room: String, _ title: String?, _ channel: String) throws {
        var recording = Recording()
        recording.add(RecordedFrame(isSent: false, text: #"{"op":"hi"}"#))
        var proposal = try #require(Learner.propose(recording))
        (proposal.room, proposal.roomTitle) = (room, title)
        let toml = LearnedFiles(LearnOptions(name: "mine")).toml(proposal)
        #expect(toml.contains("\nname = \"\(channel)\""))
        #expect(toml.contains("upstream_room = \"\(room)\""))
    }
}
