import BridgeTestSupport
import ChatModel
import Dialects
import JSONText
import Studio
import Testing
import WSProtocol
import WireBytes

/// One room, and clients of each wire in it.
@Suite struct StudioWireTests {
    /// A client that reads frames as JSON.
    private final class Client {
        let stage: StudioStage
        let id: UInt64
        let socket: StudioTestSocket

        init(_ stage: StudioStage, _ id: UInt64, _ path: String) throws {
            self.stage = stage
            self.id = id
            socket = try stage.join(id, path)
        }

        func say(_ text: String) { stage.feed(id, socket.text(text)) }

        func take() -> [JSONValue] {
            socket.take().compactMap { heard in
                if case .text(let text) = heard { try? JSONValue(parsing: text) } else { nil }
            }
        }
    }

    private static let settings = StudioSettings(rooms: [StudioRoomSettings(name: "lobby")])
    private let stage = StudioStage(Self.settings)

    private func token(_ name: String) -> String {
        let body = #"{"username":"\#(name)","password":"x"}"#
        // A connection of its own for each name.
        let id = 900 + UInt64(name.utf8.first ?? 0)
        stage.connect(id)
        stage.feed(
            id,
            "POST /api/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        let answer = stage.answer(of: id)
        let start = answer.firstRange(of: "\r\n\r\n").map { answer[$0.upperBound...] } ?? ""
        return (try? JSONValue(parsing: String(start)))?["access_token"]?.string ?? ""
    }

    private static let id = "6F24F33B-1344-499C-ABAC-2B103AC4344C"
    private static let ada = #""senderId":"A0000000-0000-4000-8000-000000000001","senderName":"Ada""#

    private static func typed(_ type: String, _ members: String) -> String {
        #"{"type":"\#(type)","payload":{"room":"lobby",\#(members)}}"#
    }

    private static let hello = typed("chat.message", #""id":"\#(id)",\#(ada),"text":"hello","sentAt":785387936.5"#)

    // MARK: - From one wire to all

    @Test("a message of typed reaches all wires, each in its form, and is confirmed to its sender")
    func crossesWires() throws {
        let ada = try Client(stage, 1, "/typed/lobby")
        let typed = try Client(stage, 2, "/typed/lobby")
        let envelope = try Client(stage, 3, "/lobby")
        let rooms = try Client(stage, 4, "/ws/chat/LOBBY?token=\(token("ben"))")
        let swift = try Client(stage, 5, "/swiftchat/lobby")
        for client in [ada, typed, envelope, rooms, swift] { _ = client.take() }
        ada.say(Self.hello)
        let receipt = ada.take()
        #expect(receipt.count == 1)
        #expect(receipt.first?["type"] == .string("chat.receipt"))
        #expect(receipt.first?["payload"]?["state"] == .string("sent"))
        #expect(typed.take().first?["payload"]?["text"] == .string("hello"))
        let frame = envelope.take().first
        #expect(frame?["message_id"] == .string(Self.id))
        #expect(frame?["sender_name"] == .string("Ada"))
        let message = rooms.take().first
        #expect(message?["message_id"] == .integer(1))
        #expect(message?["sender"] == .string("Ada"))
        #expect(message?["file_url"] == .null)
        let stamped = swift.take().first
        #expect(stamped?["user"] == .string("Ada"))
        #expect(stamped?["date"] == .double(785_387_936.5))
    }

    @Test("a message sent again with its id is confirmed again and shown once")
    func deduplicates() throws {
        let ada = try Client(stage, 1, "/typed/lobby")
        let ben = try Client(stage, 2, "/typed/lobby")
        for client in [ada, ben] { _ = client.take() }
        ada.say(Self.hello)
        ada.say(Self.hello)
        #expect(ada.take().count == 2)
        #expect(ben.take().count == 1)
    }

    @Test("an id that somebody else has used is not theirs")
    func keepsIDsApart() throws {
        let ada = try Client(stage, 1, "/typed/lobby")
        let ben = try Client(stage, 2, "/typed/lobby")
        ada.say(Self.hello)
        _ = ada.take()
        ben.say(
            Self.typed(
                "chat.message",
                #""id":"\#(Self.id)","senderId":"B","senderName":"Ben","text":"mine","sentAt":1"#))
        let message = ada.take().first?["payload"]
        #expect(message?["text"] == .string("mine"))
        #expect(message?["id"] != .string(Self.id))
    }

    // MARK: - typed

    struct EventRow: CustomTestStringConvertible, Sendable {
        var testDescription: String { type }
        var type: String
        var members: String
        /// What the other one hears of it.
        var heard: [String: JSONValue]
    }

    @Test(
        "events of typed are told to the others",
        arguments: [
            EventRow(
                type: "chat.edit", members: #""id":"\#(id)",\#(ada),"text":"better","editedAt":785387937"#,
                heard: ["text": .string("better"), "id": .string(id)]),
            EventRow(type: "chat.delete", members: #""ids":["\#(id)"],\#(ada)"#, heard: ["ids": .array([.string(id)])]),
            EventRow(type: "chat.typing", members: #"\#(ada),"active":true"#, heard: ["active": .bool(true)]),
            EventRow(type: "chat.typing", members: #"\#(ada),"active":false"#, heard: ["active": .bool(false)]),
            EventRow(
                type: "chat.receipt", members: #""ids":["\#(id)"],"state":"delivered",\#(ada)"#,
                heard: ["state": .string("delivered"), "senderName": .string("Ada")]),
            EventRow(
                type: "chat.receipt", members: #""ids":["\#(id)"],"state":"read",\#(ada)"#,
                heard: ["state": .string("read")]),
            EventRow(
                type: "chat.reaction", members: #"\#(ada),"messageId":"\#(id)","emoji":"👍","active":true"#,
                heard: ["emoji": .string("👍"), "active": .bool(true), "messageId": .string(id)]),
            EventRow(
                type: "chat.presence", members: #""userId":"C","userName":"Cyd","state":"joined""#,
                heard: ["userName": .string("Cyd"), "state": .string("joined")]),
        ])
    func tellsEvents(row: EventRow) throws {
        let ada = try Client(stage, 1, "/typed/lobby")
        let ben = try Client(stage, 2, "/typed/lobby")
        ada.say(Self.hello)
        _ = ben.take()
        ada.say(Self.typed(row.type, row.members))
        let heard = ben.take()
        #expect(heard.count == 1)
        #expect(heard.first?["type"] == .string(row.type))
        for (key, value) in row.heard { #expect(heard.first?["payload"]?[key] == value) }
    }

    @Test("nobody edits the messages of others")
    func guardsEdits() throws {
        let ada = try Client(stage, 1, "/typed/lobby")
        let ben = try Client(stage, 2, "/typed/lobby")
        ada.say(Self.hello)
        _ = ada.take()
        ben.say(
            Self.typed("chat.edit", #""id":"\#(Self.id)","senderId":"B","senderName":"Ben","text":"x","editedAt":1"#))
        #expect(ada.take() == [])
    }

    @Test("whoever comes later gets the history with its edits, reactions and receipts, and those who are there")
    func hasHistory() throws {
        let ada = try Client(stage, 1, "/typed/lobby")
        ada.say(Self.typed("chat.presence", #""userId":"A","userName":"Ada","state":"joined""#))
        ada.say(Self.hello)
        ada.say(Self.typed("chat.edit", #""id":"\#(Self.id)",\#(Self.ada),"text":"better","editedAt":1"#))
        ada.say(Self.typed("chat.reaction", #"\#(Self.ada),"messageId":"\#(Self.id)","emoji":"👍","active":true"#))
        ada.say(Self.typed("chat.receipt", #""ids":["\#(Self.id)"],"state":"read","senderId":"C","senderName":"Cyd""#))
        let ben = try Client(stage, 2, "/typed/lobby")
        let frames = ben.take()
        let message = frames.first?["payload"]?["messages"]?.array?.first
        #expect(message?["text"] == .string("better"))
        #expect(message?["isEdited"] == .bool(true))
        #expect(message?["state"] == .string("read"))
        #expect(message?["reactions"]?.array?.first?["emoji"] == .string("👍"))
        #expect(frames.last?["payload"]?["isPresent"] == .bool(true))
        #expect(frames.last?["payload"]?["userName"] == .string("Ada"))
    }

    @Test("history comes in pages, without a gap or a repetition")
    func pagesHistory() throws {
        let ada = try Client(stage, 1, "/typed/lobby")
        for number in 1...250 {
            ada.say(
                Self.typed("chat.message", #""id":"m\#(number)",\#(Self.ada),"text":"\#(number)","sentAt":\#(number)"#))
        }
        let ben = try Client(stage, 2, "/typed/lobby")
        var texts: [String] = []
        var page = ben.take().first?["payload"]
        while let messages = page?["messages"]?.array, let first = messages.first?["id"]?.string {
            texts = messages.compactMap { $0["text"]?.string } + texts
            guard page?["hasMore"] == .bool(true) else { break }
            ben.say(Self.typed("chat.history", #""before":"\#(first)","limit":70"#))
            page = ben.take().first?["payload"]
            #expect(page?["before"] == .string(first))
        }
        #expect(texts == (1...250).map(String.init))
    }

    @Test("the end of a connection is told as the leaving of all who were there by it")
    func tellsOfLeaves() throws {
        let bridge = try Client(stage, 1, "/typed/lobby")
        let ada = try Client(stage, 2, "/typed/lobby")
        for name in ["x", "y"] {
            bridge.say(Self.typed("chat.presence", #""userId":"\#(name)","userName":"\#(name)","state":"joined""#))
        }
        _ = ada.take()
        #expect(stage.joined == ["lobby: x", "lobby: y"])
        stage.leave(1)
        #expect(ada.take().map { $0["payload"]?["userName"] } == [.string("x"), .string("y")])
    }

    @Test("frames of the bridge's own codec are understood: base64 and binary")
    func understandsTheCodec() throws {
        let dialect = try TypedDialect()
        let message = ChatMessage(
            id: ChatID("m1"), sender: ChatPerson(id: ChatID("a"), name: "Ada"), text: "from the bridge",
            at: ChatTimestamp(milliseconds: 1_763_695_136_000))
        let frame = try #require(
            dialect.encode(.message(message), context: DialectContext(room: "lobby")).frames?.first)
        let bridge = try Client(stage, 1, "/typed/lobby")
        let ada = try Client(stage, 2, "/typed/lobby")
        _ = ada.take()
        stage.feed(1, bridge.socket.binary(frame.bytes))
        #expect(ada.take().first?["payload"]?["text"] == .string("from the bridge"))
    }

    // MARK: - jwt-rooms

    @Test("whoever connects is announced to the others, and told where they are")
    func announces() throws {
        let ada = try Client(stage, 1, "/ws/chat/1?token=\(token("ada"))")
        #expect(ada.take().first?["room_name"] == .string("lobby"))
        let ben = try Client(stage, 2, "/ws/chat/1?token=\(token("ben"))")
        let joined = ada.take().first
        #expect(joined?["type"] == .string("user_joined"))
        #expect(joined?["sender"] == .string("ben"))
        #expect(joined?["timestamp"]?.string?.hasPrefix("2025-11-21T03:18:56.5") == true)
        #expect(ben.take().first?["type"] == .string("connected"))
    }

    struct FrameRow: CustomTestStringConvertible, Sendable {
        var testDescription: String { frame }
        var frame: String
        /// The type of what the other one hears, and of what comes back.
        var heard: String?
        var answer: String?
    }

    @Test(
        "frames of jwt-rooms are obeyed, answered or ignored",
        arguments: [
            FrameRow(frame: #"{"type":"message","content":"hi","sender":"someone else"}"#, heard: "message"),
            FrameRow(
                frame:
                    #"{"type":"message","content":"","attachment":{"type":"image","url":"http://127.0.0.1:8080/api/files/a.png","filename":"a.png","size":3,"mime_type":"image/png"}}"#,
                heard: "message"),
            FrameRow(frame: #"{"type":"typing"}"#, heard: "typing_start"),
            FrameRow(frame: #"{"type":"typing_start"}"#, heard: "typing_start"),
            FrameRow(frame: #"{"type":"typing_stop"}"#, heard: "typing_stop"),
            FrameRow(frame: #"{"type":"pong"}"#), FrameRow(frame: #"{"type":"unknown"}"#),
            FrameRow(frame: "no JSON", answer: "Invalid JSON format"),
            FrameRow(frame: "[]", answer: "Error processing message: the frame is not an object"),
            FrameRow(
                frame: #"{"type":"message"}"#, answer: "Missing 'content', 'file_url', or 'attachment' field."),
            FrameRow(
                frame: #"{"type":"message","content":"x","attachment":null}"#,
                answer: "Error processing message: the attachment is not an object"),
            FrameRow(
                frame: #"{"type":"message","content":7}"#,
                answer: "Error processing message: 1 validation error for MessageCreate"),
            FrameRow(frame: #"{"type":"reaction"}"#, answer: "Missing message_id or reaction_type"),
            FrameRow(
                frame: #"{"type":"reaction","message_id":9,"reaction_type":"👍"}"#,
                answer: "Failed to process reaction: Message not found"),
            FrameRow(
                frame: #"{"type":"reaction","message_id":1,"reaction_type":"🦀"}"#,
                answer: "Failed to process reaction: Message not found"),
        ])
    func obeysFrames(row: FrameRow) throws {
        let ada = try Client(stage, 1, "/ws/chat/1?token=\(token("ada"))")
        let ben = try Client(stage, 2, "/ws/chat/1?token=\(token("ben"))")
        for client in [ada, ben] { _ = client.take() }
        ada.say(row.frame)
        let heard = ben.take()
        #expect(heard.first?["type"]?.string == row.heard)
        if row.heard != nil { #expect(heard.first?["sender"] == .string("ada")) }
        #expect(ada.take().first?["message"]?.string == row.answer)
    }

    @Test("a reaction is told to everybody, its author included, and a second one takes its place")
    func reacts() throws {
        let ada = try Client(stage, 1, "/ws/chat/1?token=\(token("ada"))")
        ada.say(#"{"type":"message","content":"hi"}"#)
        _ = ada.take()
        ada.say(#"{"type":"reaction","message_id":1,"reaction_type":"👍","action":"add"}"#)
        #expect(ada.take().map { $0["type"]?.string } == ["reaction_added"])
        ada.say(#"{"type":"reaction","message_id":1,"reaction_type":"😂","action":"add"}"#)
        let change = ada.take()
        #expect(change.map { $0["type"]?.string } == ["reaction_removed", "reaction_added"])
        #expect(change.last?["reaction_summary"]?.array?.count == 1)
        ada.say(#"{"type":"reaction","message_id":1,"reaction_type":"👍","action":"remove"}"#)
        #expect(ada.take().first?["message"] == .string("Reaction not found"))
    }

    @Test(
        "a handshake without a token, with another one, or to no room is refused before it is one",
        arguments: ["/ws/chat/1", "/ws/chat/1?token=", "/ws/chat/1?token=a.b.c", "/ws/chat/nowhere?token=TOKEN"])
    func refusesHandshakes(path: String) throws {
        let token = token("ada")
        let path = path.split(separator: "TOKEN", omittingEmptySubsequences: false).joined(separator: token)
        let socket = try stage.join(1, path)
        #expect(socket.refusal == .status(403, reason: "Forbidden", retryAfter: nil, location: nil))
    }

    @Test("a number of no room is told in a frame, and the session ends")
    func refusesNumbers() throws {
        let ada = try Client(stage, 1, "/ws/chat/99?token=\(token("ada"))")
        #expect(ada.take().first?["message"] == .string("Room not found"))
        #expect(stage.closed.contains(1))
    }

    // MARK: - swiftchat

    @Test("the server of swiftchat stamps and echoes what has all three keys, and ignores the rest")
    func stamps() throws {
        let ada = try Client(stage, 1, "/swiftchat/lobby")
        ada.say(#"{"message":"hi","user":"Ada","userID":"a0000000-0000-4000-8000-000000000001"}"#)
        let echo = ada.take().first
        #expect(echo?["message"] == .string("hi"))
        #expect(echo?["userID"] == .string("A0000000-0000-4000-8000-000000000001"))
        #expect(echo?["id"]?.string?.utf8.count == 36)
        #expect(echo?["date"] == .double(785_387_936.5))
        for frame in [
            #"{"message":"hi","user":"Ada"}"#, #"{"message":"hi","user":"Ada","userID":"x"}"#, "hi", "[]",
            #"{"message":7,"user":"Ada","userID":"a0000000-0000-4000-8000-000000000001"}"#,
        ] {
            ada.say(frame)
        }
        stage.feed(
            1,
            ada.socket.binary(
                Array(#"{"message":"hi","user":"Ada","userID":"a0000000-0000-4000-8000-000000000001"}"#.utf8)))
        #expect(ada.take() == [])
    }

    @Test("a frame of more than 16384 bytes ends a session of swiftchat")
    func boundsFrames() throws {
        let ada = try Client(stage, 1, "/swiftchat/lobby")
        ada.say(String(repeating: "x", count: 16385))
        #expect(stage.closed.contains(1))
    }

    // MARK: - The store

    @Test("the changes of a run make the same rooms in the next")
    func replays() throws {
        let before = StudioStage(Self.settings)
        before.startRecording()
        let ada = try Client(before, 1, "/typed/lobby")
        ada.say(Self.hello)
        ada.say(
            Self.typed("chat.message", #""id":"m2",\#(Self.ada),"text":"second","sentAt":1,"replyTo":"\#(Self.id)""#))
        ada.say(Self.typed("chat.edit", #""id":"\#(Self.id)",\#(Self.ada),"text":"better","editedAt":1"#))
        ada.say(Self.typed("chat.reaction", #"\#(Self.ada),"messageId":"m2","emoji":"👍","active":true"#))
        ada.say(Self.typed("chat.receipt", #""ids":["m2"],"state":"read","senderId":"C","senderName":"Cyd""#))
        ada.say(Self.typed("chat.message", #""id":"m3",\#(Self.ada),"text":"third","sentAt":1"#))
        ada.say(Self.typed("chat.delete", #""ids":["m3"],\#(Self.ada)"#))
        let after = StudioStage(Self.settings)
        for change in before.stored { after.replay(change) }
        for garbage in ["", "{}", "[]", #"{"kind":"message","room":"lobby","id":"x"}"#] { after.replay(garbage) }
        let (one, two) = (try Client(before, 2, "/typed/lobby"), try Client(after, 2, "/typed/lobby"))
        let history = one.take().first
        #expect(history == two.take().first)
        #expect(history?["payload"]?["messages"]?.array?.count == 3)
    }
}
