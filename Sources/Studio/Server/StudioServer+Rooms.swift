import ChatModel
import WireBytes

// What is said in rooms: commands of clients, and the events that follow, for each client in its own wire's form.

extension StudioServer {
    /// To a client that has just come.
    mutating func welcome(
        _ id: StudioPeerID, _ wire: StudioWire, _ name: String, at: ChatTimestamp, _ actions: inout [StudioAction]
    ) {
        guard let room = rooms.rooms[name] else { return }
        switch wire {
        case .envelope, .swiftChat: return
        case .typed:
            var isKnown: [ChatPerson] = []
            for member in room.members where !isKnown.contains(where: { StudioMessage.isSame($0, member.person) }) {
                isKnown.append(member.person)
            }
            let present = isKnown.map { TypedWire.presence($0, "joined", in: name, isPresent: true) }
            send([TypedWire.history(in: room, before: nil, limit: TypedWire.firstPage)] + present, to: id, &actions)
        case .jwtRooms(let user):
            let person = ChatPerson(name: user)
            // As the published backend does: a client that connects has read everything.
            let read = rooms.markRead(name, by: user)
            if rooms.enter(person, name, by: id) { tell(.join(person), in: name, from: id, at: at, &actions) }
            send([JWTRoomsWire.connected(room, at: at)], to: id, &actions)
            if !read.isEmpty { tell(.receipt(.read, read, by: person), in: name, from: id, at: at, &actions) }
        }
    }

    /// Frames of a client, oldest first.
    mutating func hear(
        _ frames: [[UInt8]], from id: StudioPeerID, _ wire: StudioWire, in room: String, at: ChatTimestamp,
        _ actions: inout [StudioAction]
    ) {
        // Relayed as they are, whatever they mean.
        if wire == .envelope { send(frames, in: room, to: .envelope, &actions) }
        for frame in frames {
            let command = frame.withUnsafeBytes { bytes in
                switch wire {
                case .envelope: EnvelopeWire.command(bytes)
                case .typed: TypedWire.command(bytes, room: room)
                case .jwtRooms(let user): JWTRoomsWire.command(bytes, user: user)
                case .swiftChat: SwiftChatWire.command(bytes)
                }
            }
            if let command { obey(command, from: id, wire.kind, in: room, at: at, &actions) }
            if wire == .envelope { actions.append(.relayed(room: room, frame: frame)) }
        }
    }

    mutating func obey(
        _ command: StudioCommand, from id: StudioPeerID, _ kind: StudioWire.Kind, in room: String,
        at: ChatTimestamp, _ actions: inout [StudioAction]
    ) {
        switch command {
        case .message(let message): add(message, from: id, kind, in: room, at: at, &actions)
        case .edit(let message, let text, let person):
            guard let edited = rooms.edit(message, text, by: person, in: room) else { return }
            tell(.edit(edited), in: room, from: id, at: at, &actions)
        case .delete(let ids, let person):
            let deleted = rooms.delete(ids, in: room)
            if !deleted.isEmpty { tell(.delete(deleted, by: person), in: room, from: id, at: at, &actions) }
        case .typing(let person, let isActive):
            tell(.typing(person, isActive: isActive), in: room, from: id, at: at, &actions)
        case .receipt(let state, let ids, let reader):
            rooms.raise(ids, state, by: reader, in: room)
            tell(.receipt(state, ids, by: reader), in: room, from: id, at: at, &actions)
        case .reaction(let target, let emoji, let isOn, let person):
            react(target, emoji, isOn: isOn, by: person, from: id, kind, in: room, at: at, &actions)
        case .join(let person):
            guard rooms.enter(person, room, by: id) else { return }
            tell(.join(person), in: room, from: id, at: at, &actions)
            if let name = person.name { actions.append(.joined(room: room, name: name)) }
        case .leave(let person):
            if rooms.leave(person, room, by: id) { tell(.leave(person), in: room, from: id, at: at, &actions) }
        case .history(let before, let limit):
            guard let room = rooms.rooms[room] else { return }
            send([TypedWire.history(in: room, before: before, limit: limit)], to: id, &actions)
        case .refused(let answer): send([answer], to: id, &actions)
        }
    }

    // MARK: - Messages

    private mutating func add(
        _ message: ChatMessage, from id: StudioPeerID, _ kind: StudioWire.Kind, in room: String, at: ChatTimestamp,
        _ actions: inout [StudioAction]
    ) {
        var message = message
        message.attachments = message.attachments.map { stored($0, &actions) }
        // Stamped by the server on wires where it assigns the ids.
        if kind == .jwtRooms || kind == .swiftChat { message.at = at }
        let fresh = ChatID(secrets.uuid())
        guard let added = rooms.add(message, to: room, at: at, fresh: { fresh }) else { return }
        if kind == .typed {
            send([TypedWire.receipt(.sent, [message.id ?? added.message.id], in: room)], to: id, &actions)
        }
        // Sent again after an outage: confirmed, and not shown twice.
        guard added.isNew else { return }
        // As the published backend does, a message that says nothing is stored, and has a number.
        tell(.message(added.message), in: room, from: id, at: at, &actions)
    }

    /// A file inside a frame gets an address, so that other wires can show it.
    private mutating func stored(_ attachment: ChatAttachment, _ actions: inout [StudioAction]) -> ChatAttachment {
        guard let inline = attachment.inline, let bytes = Base64.decode(inline) else { return attachment }
        let mime = attachment.mime ?? "application/octet-stream"
        let suffix = StudioFiles.suffix(of: "x." + (mime.split(separator: "/").last ?? "bin"))
        let file = StudioFile(name: secrets.uuid().lowercased() + suffix, mime: mime, bytes: bytes)
        files.add(file)
        if rooms.isRecording { actions.append(.storeFile(name: file.name, mime: mime, bytes: bytes)) }
        var stored = attachment
        stored.inline = nil
        stored.url = StudioFiles.path + file.name
        stored.size = Int64(bytes.count)
        return stored
    }

    private mutating func react(
        _ target: ChatID, _ emoji: String, isOn: Bool, by person: ChatPerson, from id: StudioPeerID,
        _ kind: StudioWire.Kind, in room: String, at: ChatTimestamp, _ actions: inout [StudioAction]
    ) {
        guard let message = rooms.rooms[room]?.message(target), !message.isDeleted else {
            if kind == .jwtRooms {
                send([JWTRoomsWire.error("Failed to process reaction: Message not found")], to: id, &actions)
            }
            return
        }
        // That wire has one of each person, and a new one takes the place of the old.
        if kind == .jwtRooms, isOn {
            for old in message.reactions where StudioMessage.isSame(old.sender, person) && old.emoji != emoji {
                guard let changed = rooms.react(target, old.emoji, isOn: false, by: person, in: room) else { continue }
                tell(
                    .reaction(emoji: old.emoji, isOn: false, by: person, message: changed), in: room, from: id, at: at,
                    &actions)
            }
        }
        if let changed = rooms.react(target, emoji, isOn: isOn, by: person, in: room) {
            tell(
                .reaction(emoji: emoji, isOn: isOn, by: person, message: changed), in: room, from: id, at: at, &actions)
        } else if kind == .jwtRooms, !isOn {
            send([JWTRoomsWire.error("Reaction not found")], to: id, &actions)
        }
    }

    // MARK: - Events

    /// Tells all in the room, each in the form of their wire.
    ///
    /// - Parameter origin: the client that said it, or nil.
    mutating func tell(
        _ event: StudioEvent, in name: String, from origin: StudioPeerID?, at: ChatTimestamp,
        _ actions: inout [StudioAction]
    ) {
        guard let room = rooms.rooms[name] else { return }
        let clients = present[name] ?? []
        let wireOfOrigin = origin == .visitor ? .envelope : clients.first { $0.id == origin }?.wire
        for kind in StudioWire.Kind.allCases where clients.contains(where: { $0.wire == kind }) {
            // A frame of this wire has been relayed already.
            if kind == .envelope, wireOfOrigin == .envelope { continue }
            send(
                StudioWire.frames(event, in: room, on: kind, at: at), in: name, to: kind,
                except: StudioWire.echoes(event, on: kind) ? nil : origin, &actions)
        }
        if wireOfOrigin != .envelope {
            for frame in EnvelopeWire.frames(event) { actions.append(.relayed(room: name, frame: frame)) }
        }
    }
}
