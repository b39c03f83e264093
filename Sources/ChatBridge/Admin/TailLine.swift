import ChatModel
import HTTPProtocol
import JSONText
import Rooms
import Upstream
import WireBytes

// What `tail` says of a passage: `flow` (which border, which way), `kind`, and `who`, `text`, `msgid` where it has them.

/// A border of a room and a direction.
enum TailFlow: String, CaseIterable, Sendable {
    case fromIRC = "irc-in"
    case toBackend = "backend-out"
    case fromBackend = "backend-in"
    case toIRC = "irc-out"
    case frameIn = "frame-in"
    case frameOut = "frame-out"
}

extension RoomPassage {
    /// Nil: there is nothing to see.
    var json: [JSONValue.Member]? {
        let line: TailLine? =
            switch step {
            case .fromBackend(let event): TailLine(event).scrubbed(scrub)
            case .toBackend(let command): TailLine(command)
            case .fromIRC(let command, let nick): TailLine(command, by: nick)
            case .toIRC(let event): TailLine(event)
            }
        let flow: TailFlow =
            switch step {
            case .fromBackend: .fromBackend
            case .toBackend: .toBackend
            case .fromIRC: .fromIRC
            case .toIRC: .toIRC
            }
        guard let line else { return nil }
        var members: [JSONValue.Member] = [
            .init("room", .string(room)), .init("flow", .string(flow.rawValue)), .init("kind", .string(line.kind)),
        ]
        for (key, value) in [("who", line.who), ("text", line.text), ("id", line.id)] {
            if let value { members.append(.init(key, .string(value))) }
        }
        if !account.isEmpty { members.append(.init("account", .string(account))) }
        return members
    }
}

extension TappedFrame {
    func json(room: String) -> [JSONValue.Member] {
        let flow: TailFlow = isIncoming ? .frameIn : .frameOut
        var members: [JSONValue.Member] = [
            .init("room", .string(room)), .init("flow", .string(flow.rawValue)),
            .init("kind", .string(isBinary ? "binary" : "text")), .init("bytes", .integer(Int64(byteCount))),
        ]
        if let text { members.append(.init("text", .string(Self.blanked(text)))) }
        return members
    }

    /// `text` with `***` in place of values under the names of secrets.
    static func blanked(_ text: String) -> String {
        guard let json = try? JSONValue(parsing: text) else { return text }
        let clean = blanked(json)
        return clean == json ? text : clean.text
    }

    private static func blanked(_ json: JSONValue) -> JSONValue {
        switch json {
        case .array(let values): .array(values.map(blanked))
        case .object(let members):
            .object(
                members.map { member in
                    let isSecret = SecretNames.contains(member.key) && (member.value.object ?? []).isEmpty
                    return .init(member.key, isSecret && !member.value.isNull ? .string("***") : blanked(member.value))
                })
        case .string(let text): .string(blankedInside(text))
        default: json
        }
    }

    /// Text that is a document of its own, as it stands or in base64, as dialects have it.
    private static func blankedInside(_ text: String) -> String {
        if let first = text.first, first == "{" || first == "[" { return blanked(text) }
        guard text.utf8.count >= 8, let bytes = Base64.decode(text), bytes.first == UInt8(ascii: "{") else {
            return text
        }
        let inner = String(decoding: bytes, as: UTF8.self)
        return blanked(inner) == inner ? text : "***"
    }
}

/// One line about an event, in any of its forms.
struct TailLine: Equatable {
    var kind: String
    var who: String?
    var text: String?
    var id: String?

    init(_ kind: String, _ who: String? = nil, _ text: String? = nil, id: String? = nil) {
        (self.kind, self.who, self.text, self.id) = (kind, who, text, id)
    }

    func scrubbed(_ scrub: (String) -> String) -> TailLine {
        TailLine(kind, who.map(scrub), text.map(scrub), id: id)
    }

    private init(_ kind: String, _ person: ChatPerson, _ text: String? = nil, id: ChatID? = nil) {
        self.init(kind, person.name ?? person.id?.rawValue, text, id: id?.rawValue)
    }

    private init(_ message: ChatMessage) {
        let files = message.attachments.map { "[\($0.kind.rawValue)] \($0.name ?? $0.url ?? "")" }
        let words = (message.text.isEmpty ? [] : [message.text]) + files
        self.init("message", message.sender, words.joined(separator: " "), id: message.id)
    }

    private static func ids(_ ids: [ChatID]) -> String { ids.map(\.rawValue).joined(separator: " ") }

    init(_ event: ChatEvent) {
        switch event {
        case .message(let message): self.init(message)
        case .edit(let edit): self.init("edit", edit.sender, edit.text, id: edit.id)
        case .delete(let delete): self.init("delete", delete.sender, Self.ids(delete.ids))
        case .typing(let typing): self.init("typing", typing.sender, typing.state.rawValue)
        case .receipt(let receipt):
            self.init("receipt", receipt.by, "\(receipt.state.rawValue) \(Self.ids(receipt.ids))")
        case .join(let membership): self.init("join", membership.user)
        case .leave(let membership): self.init("leave", membership.user)
        case .presence(let presence): self.init("presence", presence.user, presence.state.rawValue)
        case .reaction(let reaction):
            self.init(
                "reaction", reaction.sender, "\(reaction.operation.rawValue) \(reaction.emoji)", id: reaction.target)
        case .system(let system): self.init("system", nil, system.text)
        case .topic(let topic): self.init("topic", nil, topic.text)
        case .account(let person): self.init("self", person)
        case .history(let history): self.init("history", nil, "\(history.messages.count) messages")
        case .ready(let ready): self.init("ready", nil, ready.name ?? ready.room)
        case .auth(let auth): self.init("auth", nil, auth.state.rawValue)
        case .error(let error): self.init("error", nil, "\(error.code) \(error.text)")
        case .ping: self.init("ping")
        case .pong: self.init("pong")
        }
    }

    init(_ command: ChatCommand) {
        switch command {
        case .message(let message): self.init(message)
        case .edit(let edit): self.init(ChatEvent.edit(edit))
        case .delete(let delete): self.init(ChatEvent.delete(delete))
        case .typing(let typing): self.init(ChatEvent.typing(typing))
        case .receipt(let receipt): self.init(ChatEvent.receipt(receipt))
        case .join(let membership): self.init(ChatEvent.join(membership))
        case .leave(let membership): self.init(ChatEvent.leave(membership))
        case .presence(let presence): self.init(ChatEvent.presence(presence))
        case .reaction(let reaction): self.init(ChatEvent.reaction(reaction))
        case .auth: self.init("auth")
        case .subscribe(let room, _): self.init("subscribe", nil, room)
        case .fetch: self.init("fetch")
        case .ping: self.init("ping")
        case .pong: self.init("pong")
        }
    }

    /// Nil: nothing that a member sees.
    init?(_ command: RoomCommand, by nick: String) {
        switch command {
        case .leave: self.init("leave", nick)
        case .submit(let submission): self.init("message", nick, Self.words(submission.text))
        case .relay(let name, let text, _, _): self.init("message", "\(nick) as \(name)", Self.words(text))
        case .pass(let words?, _, let isNotice, _):
            self.init(isNotice ? "notice" : "message", nick, Self.words(words.text))
        case .pass(nil, let tags, _, _): self.init("tags", nick, tags.map(\.name).joined(separator: " "))
        case .type(let isTyping, _): self.init("typing", nick, isTyping ? "start" : "stop")
        case .markRead: self.init("read", nick)
        case .takeBack(let msgid, let reason, _, _): self.init("delete", nick, reason, id: msgid)
        case .react(let emoji, let operation, let msgid, _, _):
            self.init("reaction", nick, "\(operation.rawValue) \(emoji)", id: msgid)
        case .enter, .rename, .identify, .chooseReceipts: return nil
        }
    }

    init(_ event: RoomEvent) {
        switch event {
        case .said(let message):
            let text: String? =
                switch message.words {
                case .typed(let words): Self.words(words.text)
                case .upstream(let shown): TailLine(shown).text
                }
            self.init(message.isNotice ? "notice" : "message", message.speaker?.nick, text, id: message.msgid)
        case .notice(let text): self.init("notice", nil, text)
        case .announced(let text): self.init("system", nil, text)
        case .topic(let text): self.init("topic", nil, text)
        case .entered(let arrival): self.init("join", arrival.who.nick)
        case .left(let who, let reason): self.init("leave", who.nick, reason)
        case .returned(let arrivals): self.init("join", arrivals.map { $0.who.nick }.joined(separator: " "))
        case .separated(let people): self.init("leave", people.map { $0.who.nick }.joined(separator: " "))
        case .typing(let who, let isTyping): self.init("typing", who.nick, isTyping ? "start" : "stop")
        case .passed(let tags, let who, let msgid):
            self.init("tags", who.nick, tags.map(\.name).joined(separator: " "), id: msgid)
        case .takenBack(let entries, let who, let msgid, let reason):
            self.init("delete", who?.nick, reason ?? entries.map(\.msgid).joined(separator: " "), id: msgid)
        case .erased(let msgids): self.init("delete", nil, msgids.joined(separator: " "))
        case .reacted(let reaction, let who):
            self.init("reaction", who.nick, "\(reaction.operation.rawValue) \(reaction.emoji)", id: reaction.msgid)
        }
    }

    private static func words(_ text: String) -> String { MessageText.action(text).map { "* \($0)" } ?? text }
}
