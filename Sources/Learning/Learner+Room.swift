import JSONText

// The room: by the names of places, else by a constant of what the app says.

extension Learner {
    mutating func findRoom() {
        let said = sentMessages().map(\.frame)
        let named = namedRoom()
        let isSaid = said.allSatisfy { frame in
            frame.single.contains { $0.text == named && ($0.names.isEmpty || isNamedAsRoom($0)) }
        }
        let constants = named != nil && isSaid ? [] : constants(of: said)
        if let found = constants.filter(\.isRoom).max(by: { $0.others.count < $1.others.count }) {
            isIn(found.value)
            roomLabel = found.leaf.label
            reason(
                "room: \"\(found.value)\" is \(found.leaf.pointer) in all that the app said and in most messages, and other "
                    + "frames have another there: \(found.others.sorted().prefix(3).joined(separator: ", "))")
        } else if let named {
            isIn(named)
            roomLabel = said.first?.single.first { $0.text == named && isNamedAsRoom($0) }?.label
            reason("room: \"\(named)\" is named most often")
        } else {
            let places = constants.prefix(3).map { "\($0.leaf.pointer) (\"\($0.value)\")" }.joined(separator: ", ")
            reason(
                "room: none was found; if the backend has several, messages of the others appear in this one"
                    + (places.isEmpty
                        ? ""
                        : ". A constant of what the app said may be one: \(places); if so, let another room be spoken in "
                            + "while it is learned, or put {{room}} there in encode, a field room into each rule, and "
                            + "upstream_room into the configuration"))
        }
    }

    /// What the backend calls the room, where frames or calls have an object with the room's id and a title; nil: none is
    /// seen, or it is the id itself.
    func roomTitle() -> String? {
        guard let room else { return nil }
        let documents = evidence.received.map(\.json) + evidence.recording.calls.map(\.answer)
        return documents.lazy.compactMap { Self.title(of: room, in: $0) }.first
    }

    private static func title(of room: String, in json: JSONValue) -> String? {
        if let members = json.object {
            func text(_ keys: [String]) -> String? {
                members.first { keys.contains(Words.plain($0.key)) && $0.value.string?.isEmpty == false }?.value.string
            }
            let isRoom = members.contains { member in
                let id = member.value.string ?? member.value.integer.map { "\($0)" }
                return id == room && Words.roomIDs.contains(Words.plain(member.key))
            }
            if isRoom, let title = text(Words.roomTitles), title != room { return title }
        }
        // A person may have the number of a room.
        let parts = json.array ?? json.object?.filter { !Words.isPerson(Words.plain($0.key)) }.map(\.value) ?? []
        return parts.lazy.compactMap { title(of: room, in: $0) }.first
    }

    /// The value that places named after rooms have most often.
    private func namedRoom() -> String? {
        var values: [String: Int] = [:]
        for frame in evidence.sent + evidence.received {
            for leaf in frame.single where Words.rooms.contains(leaf.key) {
                if let text = leaf.text, !text.isEmpty, text.utf8.count <= 128 { values[text, default: 0] += 1 }
            }
            // The topic of Phoenix has its place in a tuple.
            for leaf in frame.single where leaf.names.isEmpty {
                if let text = leaf.value.string, text.hasPrefix("room") || text.contains(":") {
                    values[text, default: 0] += 1
                }
            }
        }
        return values.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key
    }

    /// A value of all that the app said, which most messages have too.
    private struct Constant {
        var leaf: Leaf
        var value: String
        /// What other frames have in places of that name.
        var others: Set<String>
        var isRoom: Bool
    }

    private func constants(of said: [LearnedFrame]) -> [Constant] {
        guard let first = said.first, let text = textPlace() else { return [] }
        let messages = messageFrames(text)
        let texts = Set(said.flatMap { $0.single.compactMap(\.text) })
        let foreign = messages.filter { frame in frame.text(text).map { !texts.contains($0) } ?? true }
        let indexes = Set((messages + said).map(\.index))
        let frames = evidence.sent + evidence.received
        return first.single.compactMap { leaf in
            guard let value = leaf.text, Words.isID(value), !leaf.names.isEmpty, !Words.kinds.contains(leaf.key),
                !Words.times.contains(leaf.key), said.allSatisfy({ $0.text(leaf.pointer) == value })
            else { return nil }
            func has(_ frame: LearnedFrame) -> Bool {
                frame.single.contains { $0.label == leaf.label && $0.text == value }
            }
            // What only the app's own messages have is about the app.
            guard foreign.contains(where: has), messages.count(where: has) * 2 >= messages.count else { return nil }
            let named = frames.flatMap(\.leaves).filter { $0.label == leaf.label }
            let others = Set(named.compactMap(\.text)).subtracting([value, ""])
            // A form or a language differs from message to message, and no other frame has it.
            let isOfAll = leaf.key.hasSuffix("id") || frames.contains { !indexes.contains($0.index) && has($0) }
            return Constant(leaf: leaf, value: value, others: others, isRoom: !others.isEmpty && isOfAll)
        }
    }

    /// Whether the name of a place is that of rooms.
    func isNamedAsRoom(_ leaf: Leaf) -> Bool { leaf.label == roomLabel || Words.rooms.contains(leaf.key) }

    /// Where frames name the room; nil: nowhere.
    func roomPointer(_ group: LearnedGroup) -> String? {
        guard let room else { return nil }
        let named = group.common.filter(isNamedAsRoom)
        // Messages of other rooms may be among them.
        let here = named.filter { leaf in group.frames.contains { $0.text(leaf.pointer) == room } }
        let same = (here.isEmpty ? named : here).filter { $0.label == roomLabel }
        return
            (same.min { $0.pointer.utf8.count < $1.pointer.utf8.count } ?? LearnedGroup.best(here, Words.rooms)
            ?? group.common.first { leaf in
                leaf.names.isEmpty && group.frames.allSatisfy { ($0.text(leaf.pointer) ?? room) == room }
            })?.pointer
    }

    mutating func addRoom(_ group: LearnedGroup, to fields: inout LearnedFields) {
        guard let pointer = roomPointer(group) else { return }
        fields.set("room", pointer, "")
    }
}
