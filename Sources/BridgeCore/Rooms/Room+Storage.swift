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

    /// What is kept of a room that was opened later is there (nil: it cannot be read); people may have come and spoken
    /// meanwhile.
    func loaded(_ stored: StoredRoom?, _ context: BridgeContext) {
        if let stored { restore(stored, context) } else { goOnWithoutThePast(context) }
        forgottenAuthors = [:]
        keepAwaiting(context)
        for member in locals.values { member.joinedAfter = recent.newest?.sequence ?? -1 }
        if locals.isEmpty { startForWaiting(context) } else { occupied(context) }
        arm(lane, context)
    }

}
