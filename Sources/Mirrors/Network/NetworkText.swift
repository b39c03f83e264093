import IRCProtocol

/// Texts between marks and IRC.
enum NetworkText {
    /// May have line ends.
    static func irc(_ text: MarkedText) -> String { text.written(as: .irc).joined() }

    static func marked(_ text: String) -> MarkedText { MarkedText(text, as: .irc) }
}

extension IRCMessage {
    /// Bytes of an id; servers make them of 10 to 40. A longer one is none.
    private static let maxIDBytes = 256

    /// The network's id of the message. Source: IRCv3 message-ids.
    var msgid: String? { tag("msgid")?.value.flatMap { $0.utf8.count <= Self.maxIDBytes ? $0 : nil } }
}
