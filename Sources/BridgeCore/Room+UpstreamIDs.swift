import ChatModel

extension Room {
    /// Finds the backend's id of a message: at once where it is known. `found` is called once; with nil when there is none.
    func findUpstreamID(of msgid: String, _ context: BridgeContext, found: @escaping (ChatID?) -> Void) {
        found(recent.entry(msgid: msgid)?.upstreamID)
    }
}
