import ChatModel

/// A room with a name of its own from the start.
public struct StudioRoomSettings: Equatable, Sendable {
    public var name: String
    public var topic: String
    /// The IRC channel of a bridge in front of it, for the page.
    public var channel: String?

    public init(name: String, topic: String = "", channel: String? = nil) {
        self.name = name
        self.topic = topic
        self.channel = channel
    }
}

/// All rooms, and the changes of their contents.
struct StudioRooms {
    /// Rooms at once; a message for another one is relayed and not kept.
    static let maxRooms = 1000

    private(set) var rooms: [String: StudioRoom] = [:]
    /// In the order of their numbers.
    private(set) var names: [String] = []
    private var nextNumber: Int64 = 1
    /// Changes since they were last taken, for a store.
    private var records: [StudioRecord] = []
    private(set) var isRecording = false

    mutating func startRecording() { isRecording = true }

    mutating func takeRecords() -> [StudioRecord] {
        defer { records = [] }
        return records
    }

    private mutating func record(_ record: @autoclosure () -> StudioRecord) {
        if isRecording { records.append(record()) }
    }

    // MARK: - Rooms

    /// The room of that name, made where there is none. Nil when there are too many.
    mutating func room(_ name: String, at: ChatTimestamp, topic: String = "") -> StudioRoom? {
        if let room = rooms[name] { return room }
        guard rooms.count < Self.maxRooms else { return nil }
        let room = StudioRoom(number: Int64(names.count + 1), name: name, createdAt: at, topic: topic)
        rooms[name] = room
        names.append(name)
        record(.room(name: name, at: at, topic: topic))
        return room
    }

    func name(number: Int64) -> String? {
        number > 0 && number <= Int64(names.count) ? names[Int(number) - 1] : nil
    }

    /// By its name without regard to case, as the backends of `jwt-rooms` do.
    func name(caseInsensitive text: String) -> String? {
        rooms[text] != nil ? text : names.first { $0.lowercased() == text.lowercased() }
    }

    // MARK: - Changes

    /// Stores a message under an id of its sender, or `fresh`.
    ///
    /// - Returns: the message, and whether it is new: one with a known id of the same sender was sent again.
    mutating func add(
        _ message: ChatMessage, to name: String, at: ChatTimestamp, fresh: () -> ChatID
    ) -> (message: StudioMessage, isNew: Bool)? {
        guard room(name, at: at) != nil else { return nil }
        if let id = message.id, let known = rooms[name]?.message(id), StudioMessage.isSame(known.sender, message.sender)
        {
            return (known, false)
        }
        // An id that another user has used would make two messages one.
        let id = message.id.flatMap { rooms[name]?.message($0) == nil ? $0 : nil } ?? fresh()
        let stored = StudioMessage(
            number: nextNumber, id: id, sender: message.sender, at: message.at ?? at, text: message.text,
            attachments: message.attachments, replyTo: message.replyTo)
        append(stored, to: name)
        return (stored, true)
    }

    private mutating func append(_ message: StudioMessage, to name: String) {
        nextNumber = max(nextNumber, message.number) + 1
        rooms[name]?.append(message)
        record(.message(room: name, message))
    }

    /// - Returns: the message with its new text; nil when there is none, or it is another user's.
    mutating func edit(_ id: ChatID, _ text: String, by person: ChatPerson, in name: String) -> StudioMessage? {
        let changed = rooms[name]?.change(id) { StudioMessage.isSame($0.sender, person) && $0.edit(text) }
        if let changed { record(.edit(room: name, id: changed.id, text: text)) }
        return changed
    }

    /// - Returns: those of `ids` that are deleted now.
    mutating func delete(_ ids: [ChatID], in name: String) -> [ChatID] {
        ids.compactMap { id in
            let changed = rooms[name]?.change(id) { $0.delete() }
            if let changed { record(.delete(room: name, id: changed.id)) }
            return changed?.id
        }
    }

    mutating func react(
        _ id: ChatID, _ emoji: String, isOn: Bool, by person: ChatPerson, in name: String
    ) -> StudioMessage? {
        let changed = rooms[name]?.change(id) { $0.react(emoji, by: person, isOn: isOn) }
        if let changed { record(.reaction(room: name, id: changed.id, emoji: emoji, isOn: isOn, by: person)) }
        return changed
    }

    mutating func raise(_ ids: [ChatID], _ state: ChatReceipt.State, by reader: ChatPerson, in name: String) {
        for id in ids {
            let changed = rooms[name]?.change(id) { message in
                let before = message
                message.raise(state, by: reader)
                return message != before
            }
            if let changed { record(.receipt(room: name, id: changed.id, state: state, by: reader)) }
        }
    }

    mutating func markRead(_ name: String, by reader: String) -> [ChatID] {
        let ids = rooms[name]?.markRead(by: reader) ?? []
        for id in ids { record(.receipt(room: name, id: id, state: .read, by: ChatPerson(name: reader))) }
        return ids
    }

    // MARK: - Members

    mutating func enter(_ person: ChatPerson, _ name: String, by peer: StudioPeerID) -> Bool {
        rooms[name]?.enter(person, by: peer) ?? false
    }

    mutating func leave(_ person: ChatPerson, _ name: String, by peer: StudioPeerID) -> Bool {
        rooms[name]?.leave(person, by: peer) ?? false
    }

    mutating func leaveAll(_ name: String, by peer: StudioPeerID) -> [ChatPerson] {
        rooms[name]?.leaveAll(by: peer) ?? []
    }

    // MARK: - The store

    /// Repeats a change that a store has kept.
    mutating func replay(_ change: StudioRecord) {
        let wasRecording = isRecording
        isRecording = false
        defer { isRecording = wasRecording }
        switch change {
        case .room(let name, let at, let topic): _ = room(name, at: at, topic: topic)
        case .message(let name, let message):
            guard room(name, at: message.at) != nil, message.number >= nextNumber else { return }
            append(message, to: name)
        case .edit(let name, let id, let text):
            _ = rooms[name]?.change(id) { $0.edit(text) }
        case .delete(let name, let id): _ = delete([id], in: name)
        case .reaction(let name, let id, let emoji, let isOn, let person):
            _ = react(id, emoji, isOn: isOn, by: person, in: name)
        case .receipt(let name, let id, let state, let reader): raise([id], state, by: reader, in: name)
        }
    }
}
