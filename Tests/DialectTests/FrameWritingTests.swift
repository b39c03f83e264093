import ChatModel
import JSONText
import Testing

@testable import Dialects

/// Frames that are written at once as long as nothing in them needs escaping.
@Suite("Plain frames")
struct FrameWritingTests {
    private let context = DialectContext(selfNames: ["bridge"], room: "kitchen", announcedRoom: "1")

    /// What may stand in a text.
    static let specials = ["\"", "\\", "\u{0}", "\u{1F}", "\n", " ", "\u{7F}", "é", "🦀", "x"]

    @Test("a text comes out as it went in, whatever stands where in it", arguments: specials)
    func textsSurvive(_ special: String) throws {
        let directus = try DirectusDialect()
        let jwtRooms = try JWTRoomsDialect()
        for length in Array(0...17) + [31, 32, 33] {
            for place in 0...length {
                let text =
                    String(repeating: "a", count: place) + special + String(repeating: "b", count: length - place)
                let command = ChatCommand.message(ChatMessage(id: ChatID("m-1"), text: text))
                let row = try #require(try written(directus, command)?["data"])
                #expect(row["text"]?.string == text)
                #expect(row["room"]?.string == "kitchen")
                let said = try #require(try written(jwtRooms, command))
                #expect(said["content"]?.string == text)
                #expect(said["sender"]?.string == "bridge")
            }
        }
    }

    @Test("what is escaped elsewhere in a frame survives as well", arguments: specials)
    func othersSurvive(_ special: String) throws {
        let text = "the soup needs salt"
        let id = "message-\(special)-1"
        let room = "room \(special)"
        let directus = try DirectusDialect(
            DialectOptions(try JSONValue(parsing: #"{"collection":"li\"nes","fields":{"text":"te\\xt"}}"#)))
        let row = try #require(
            try written(directus, .message(ChatMessage(id: ChatID(id), room: room, text: text))))
        #expect(row["collection"]?.string == "li\"nes")
        #expect(row["uid"]?.string == "m:\(id)")
        #expect(row["data"]?["te\\xt"]?.string == text)
        #expect(row["data"]?["room"]?.string == room)

        let ours = DialectContext(selfNames: ["Ada \(special)"], room: "kitchen", announcedRoom: room)
        let said = try #require(try written(try JWTRoomsDialect(), .message(ChatMessage(text: text)), ours))
        #expect(said["room_id"]?.string == room)
        #expect(said["sender"]?.string == "Ada \(special)")
        #expect(said["message_type"]?.string == "text")
    }

    @Test("a piece for which there is no room spoils the frame and writes nothing beyond it")
    func noRoom() {
        for room in 0..<12 {
            let frame = PlainFrame.make(byteCount: room) { frame in
                frame.put(json: Array("[".utf8))
                frame.put(text: "ten bytes.")
                frame.put(json: "]")
            }
            #expect(frame == nil, "room for \(room) bytes")
        }
        let whole = PlainFrame.make(byteCount: 12) { frame in
            frame.put(json: Array("[".utf8))
            frame.put(text: "ten bytes.")
            frame.put(json: "]")
        }
        #expect(whole == Array("[ten bytes.]".utf8))
    }

    private func written(
        _ dialect: some Dialect, _ command: ChatCommand, _ context: DialectContext? = nil
    ) throws -> JSONValue? {
        guard let frames = dialect.encode(command, context: context ?? self.context).frames, frames.count == 1 else {
            return nil
        }
        return try JSONValue(parsing: frames[0].bytes)
    }
}
