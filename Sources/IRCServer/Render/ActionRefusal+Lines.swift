import BridgeTypes
import IRCProtocol
import Rooms

extension ActionRefusal {
    /// The answer to `verb`, about a message in a room.
    func line(_ verb: String, _ channel: String, _ msgid: String, from server: String) -> IRCMessage {
        .fail(verb, code, channel, Self.word(msgid), text: text, source: server)
    }

    /// What a client named, fit to be one parameter of an answer.
    static func word(_ text: String) -> String {
        let shown = PrintableText.of(text, maxBytes: 100)
        return shown.isEmpty || shown.contains(" ") || shown.hasPrefix(":") ? "*" : shown
    }
}
