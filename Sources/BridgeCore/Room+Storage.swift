import ChatModel

// What of a room outlasts the process.

extension Room {
    var storedKey: StoredRoomKey { StoredRoomKey(backend: settings.backend, room: settings.upstreamRoom) }

    /// Takes up where an earlier process ended. Before the link is opened and before anybody is in the room.
    func restore(_ stored: StoredRoom, _ context: BridgeContext) {
        restoreOrder(stored, context)
        restoreOutbox(stored, context)
        restoreReading(stored, context)
    }

    /// Messages, their order, what is recognised again, and since when something may be missing.
    private func restoreOrder(_ stored: StoredRoom, _ context: BridgeContext) {}

    /// Read markers and receipts.
    private func restoreReading(_ stored: StoredRoom, _ context: BridgeContext) {}
}
