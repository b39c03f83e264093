import ChatModel
import Dialects
import JSONText

/// `swiftchat`: three keys to the server, five from it; it stamps each message with an id and a time.
///
/// Source: observed, a Vapor tutorial's server.
enum SwiftChatWire {
    /// The server closes the connection after a longer frame.
    static let maxFrameBytes = 16384
    /// What `date` counts from, in milliseconds: 2001-01-01T00:00:00Z.
    private static let epoch: Int64 = 978_307_200_000

    /// Nil for whatever the server drops without an answer: a key that is missing, a `userID` that is no UUID.
    static func command(_ frame: UnsafeRawBufferPointer) -> StudioCommand? {
        guard let value = try? JSONValue(parsing: frame), let text = value["message"]?.string,
            let user = value["user"]?.string, let id = value["userID"]?.string.map({ ChatID($0) }), id.isUUIDShaped
        else { return nil }
        return .message(ChatMessage(sender: ChatPerson(id: id, name: user), text: text))
    }

    /// A message and nothing else has a frame.
    static func frame(_ event: StudioEvent) -> [UInt8]? {
        guard case .message(let message) = event else { return nil }
        let sender = StudioID.withID(message.sender)
        return JSONValue.object([
            .init("date", .number(Double(message.at.milliseconds - epoch) / 1000)),
            .init("id", .string(message.id.rawValue)), .init("message", .string(message.textWithLinks)),
            .init("user", .string(message.senderName)),
            .init("userID", .string(sender.id?.rawValue.uppercased() ?? "")),
        ]).bytes
    }
}
