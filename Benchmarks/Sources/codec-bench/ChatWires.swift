import ChatModel
import Dialects

/// Typical messages of the wires of jwt-rooms and plainjson, there and back.
func measureJWTRoomsAndPlainJSON() {
    let text = "the soup needs a little more salt"
    let us = ChatID("3F2504E0-4F89-41D3-9A0C-0305E82C3301")
    let context = DialectContext(
        selfIDs: [us], selfNames: ["bridge"], room: "General", announcedRoom: "1")
    let command = ChatCommand.message(
        ChatMessage(
            id: ChatID("6B29FC40-CA47-1067-B31D-00DD010662DA"), sender: ChatPerson(id: us, name: "bridge"),
            text: text, at: ChatTimestamp(milliseconds: 1_763_695_136_123)))
    let frames = [
        "jwt-rooms": #"{"type":"message","room_id":1,"message_id":1207,"sender":"admin","message":"\#(text)","#
            + #""message_type":"text","file_url":null,"file_name":null,"file_size":null,"mime_type":null,"#
            + #""timestamp":"2025-11-21T03:18:56","reactions":[],"user_reaction":null}"#,
        "plainjson": #"{"id":"6B29FC40-CA47-1067-B31D-00DD010662DA","#
            + #""senderId":"9E107D9D-372B-4B68-A1D8-2542A4190001","senderName":"Bo","text":"\#(text)","#
            + #""timestamp":"2025-11-21T03:18:56Z","type":"text","conversationId":"General"}"#,
    ]
    for (name, frame) in frames.sorted(by: { $0.key < $1.key }) {
        guard let dialect = try? DialectTable.dialect(named: name) else { continue }
        Array(frame.utf8).withUnsafeBytes { bytes in
            measure("decode, \(name)", bytes: bytes.count) {
                consume(dialect.decode(bytes, isBinary: false, context: context))
            }
        }
        guard let frames = dialect.encode(command, context: context).frames else { continue }
        measure("encode, \(name)", bytes: frames.reduce(0) { $0 + $1.bytes.count }) {
            consume(dialect.encode(command, context: context))
        }
    }
}
