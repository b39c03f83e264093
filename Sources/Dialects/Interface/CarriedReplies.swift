import ChatModel

extension Dialect {
    /// Whether a message's frame says which message it answers; else the words that are answered must be quoted.
    ///
    /// The codec itself is the judge, so this holds whatever its options are: a reply is carried when it makes another
    /// frame than the same message without one. Costs two encodes.
    public func carriesReplies(context: DialectContext) -> Bool {
        // Every part that some wire insists on; the ids are numbers, since that is what most backends count in.
        var probe = ChatMessage(
            id: ChatID("1"), room: context.room, sender: ChatPerson(id: ChatID("2"), name: "n"), text: "t",
            at: ChatTimestamp(milliseconds: 1))
        let plain = encode(.message(probe), context: context)
        probe.replyTo = ChatID("3")
        let reply = encode(.message(probe), context: context)
        if case .unsupported = reply { return false }
        return reply != plain
    }
}
