import ChatModel

/// The ids under which a mirror's tool has messages, both ways; the newest ``StoredMirrored/perMirror``.
package struct ToolIDs {
    private struct Message: Hashable {
        var room: StoredRoomKey
        var msgid: String
    }

    private var byMessage: [Message: String] = [:]
    /// What the tool has brought.
    private var theirs: Set<Message> = []
    private var byTool: [String: Message] = [:]
    /// In order; those before `first` are dropped.
    private var order: [Message] = []
    private var first = 0

    package init() {}

    package subscript(msgid: String, in room: StoredRoomKey) -> String? {
        byMessage[Message(room: room, msgid: msgid)]
    }

    package func msgid(of toolID: String, in room: StoredRoomKey) -> String? {
        byTool[toolID].flatMap { $0.room == room ? $0.msgid : nil }
    }

    /// Whether the tool has brought the message.
    package func isTheirs(_ msgid: String, in room: StoredRoomKey) -> Bool {
        theirs.contains(Message(room: room, msgid: msgid))
    }

    package func contains(_ toolID: String) -> Bool { byTool[toolID] != nil }

    /// False when it was known.
    @discardableResult
    package mutating func insert(_ known: StoredMirrored) -> Bool {
        let (toolID, message) = (known.toolID, Message(room: known.room, msgid: known.msgid))
        guard byMessage[message] != toolID else { return false }
        if let before = byMessage.updateValue(toolID, forKey: message) {
            byTool[before] = nil
        } else {
            order.append(message)
        }
        byTool[toolID] = message
        if known.isTheirs { theirs.insert(message) }
        while order.count - first > StoredMirrored.perMirror {
            let oldest = order[first]
            theirs.remove(oldest)
            if let id = byMessage.removeValue(forKey: oldest), byTool[id] == oldest { byTool[id] = nil }
            first += 1
        }
        if first > StoredMirrored.perMirror {
            order.removeFirst(first)
            first = 0
        }
        return true
    }
}
