import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import IRCProtocol
import Identities
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A wire that can say everything, in lines that a test can read: `react|target=m1|emoji=👍|op=add|from=s1|name=Remy`.
struct ActionsStubDialect: Dialect {
    static let everything: Set<String> = [
        "message", "delete", "react", "typing", "receipt", "join", "leave", "presence",
    ]

    var traits: DialectTraits
    /// The kinds of frame that it can write.
    var says = Self.everything
    var writesReplies = false
    var calls: (any DialectCalls)? {
        traits.history == .call || traits.readReport == .call ? StubCalls() : nil
    }

    init(
        identity: DialectTraits.Identity = .puppet, idsFrom: DialectTraits.MessageIDOrigin = .client,
        confirmation: DialectTraits.Confirmation = .echoByID, says: Set<String> = Self.everything,
        _ change: (inout DialectTraits) -> Void = { _ in }
    ) {
        traits = DialectTraits(
            name: "stub", identity: identity, messageIDOrigin: idsFrom, echoesOwnMessages: confirmation != .none,
            confirmation: confirmation, typingOut: .startStop,
            backoff: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0))
        traits.readReport = .eachMessage
        self.says = says
        change(&traits)
    }

    func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        let parts = String(decoding: frame, as: UTF8.self).split(separator: "|", omittingEmptySubsequences: false)
        var fields: [String: String] = [:]
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1).map(String.init)
            fields[pair[0]] = pair.count > 1 ? pair[1] : ""
        }
        let sender = ChatPerson(id: fields["from"].map { ChatID($0) }, name: fields["name"])
        let isSelf = context.isSelf(sender)
        let id = fields["id"].map { ChatID($0) }
        let at = fields["at"].flatMap { Int64($0) }.map { ChatTimestamp(milliseconds: $0) }
        switch parts.first {
        case "message":
            let attachments =
                fields["url"] == nil && fields["file"] == nil
                ? [] : [ChatAttachment(kind: .image, url: fields["url"], name: fields["file"])]
            var message = ChatMessage(
                id: id, sender: sender, text: fields["text"] ?? "", at: at, attachments: attachments,
                replyTo: fields["reply"].map { ChatID($0) }, isSelf: isSelf,
                annotations: fields["note"].map { [StoredTag(name: "+example.com/note", value: $0)] } ?? [])
            message.isUnderOwnName = fields["own"] != nil
            return .events([.message(message)])
        case "edit":
            return .events([
                .edit(
                    ChatEdit(id: id ?? ChatID(""), text: fields["text"] ?? "", sender: sender, at: at, isSelf: isSelf))
            ])
        case "topic": return .events([.topic(ChatTopic(text: fields["text"] ?? ""))])
        case "delete":
            let ids = (fields["ids"] ?? "").split(separator: ",").map { ChatID(String($0)) }
            return .events([.delete(ChatDelete(ids: ids, sender: sender))])
        case "react":
            return .events([
                .reaction(
                    ChatReaction(
                        target: ChatID(fields["target"] ?? ""), emoji: fields["emoji"] ?? "",
                        operation: fields["op"] == "remove" ? .remove : .add, sender: sender, isSelf: isSelf))
            ])
        case "presence":
            return .events([
                .presence(
                    ChatPresence(
                        user: sender, state: ChatPresence.State(rawValue: fields["state"] ?? "") ?? .online))
            ])
        case "join": return .events([.join(ChatMembership(user: sender, isSelf: isSelf))])
        case "leave": return .events([.leave(ChatMembership(user: sender, isSelf: isSelf))])
        default: return .dropped(.unknownType, typeKey: nil)
        }
    }

    func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        func person(_ person: ChatPerson) -> String {
            "|from=\(person.id?.rawValue ?? "")|name=\(person.name ?? "")"
        }
        func frame(_ kind: String, _ rest: String) -> EncodedCommand {
            guard says.contains(kind) else { return .unsupported(.unsupported) }
            return .frames([EncodedFrame(bytes: Array((kind + rest).utf8), isBinary: false)])
        }
        switch command {
        case .message(let message):
            let reply = writesReplies ? message.replyTo.map { "|reply=\($0.rawValue)" } ?? "" : ""
            return frame(
                "message", "|id=\(message.id?.rawValue ?? "")\(person(message.sender))|text=\(message.text)\(reply)")
        case .delete(let delete):
            return frame("delete", "|ids=\(delete.ids.map(\.rawValue).joined(separator: ","))\(person(delete.sender))")
        case .reaction(let reaction):
            return frame(
                "react",
                "|target=\(reaction.target.rawValue)|emoji=\(reaction.emoji)|op=\(reaction.operation.rawValue)"
                    + person(reaction.sender))
        case .typing(let typing): return frame("typing", "|state=\(typing.state.rawValue)\(person(typing.sender))")
        case .receipt(let receipt):
            return frame(
                "receipt",
                "|state=\(receipt.state.rawValue)|ids=\(receipt.ids.map(\.rawValue).joined(separator: ","))"
                    + person(receipt.by))
        case .join(let membership): return frame("join", person(membership.user))
        case .leave(let membership): return frame("leave", person(membership.user))
        case .presence(let presence):
            return frame("presence", "\(person(presence.user))|state=\(presence.state.rawValue)")
        default: return .unsupported(.unsupported)
        }
    }
}

/// A bridge with rooms on the stub's wire and a few IRC users.
struct ActionsStage {
    let harness: BridgeHarness
    private let identities: IdentityMap

    /// - Parameter rooms: all of one backend, `chat.example`.
    init(
        _ dialect: ActionsStubDialect, rooms: [String] = ["lobby"], accounts: [AccountSettings] = [],
        limits: LimitSettings = LimitSettings { $0.messagesPerSecond = nil }, echoes: Bool = false,
        _ change: (inout RoomSettings) -> Void = { _ in }
    ) throws {
        let settings = try rooms.map { name in
            var room = RoomSettings(
                name: name, backend: "chat.example", dialect: dialect,
                url: try HTTPURL(parsing: "ws://chat.example/\(name)"))
            room.ping = .zero
            change(&room)
            return room
        }
        let bridge = BridgeSettings(
            serverName: "bridge", instanceID: "t", accounts: accounts, limits: limits, rooms: settings,
            backends: [
                BackendSettings(
                    name: "chat.example", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"))
            ])
        harness = BridgeHarness(settings: bridge)
        identities = IdentityMap(IdentitySettings(bridge))
        harness.echoes = echoes
        harness.start()
        _ = harness.takeOutputs()
    }

    static let modern = "message-tags echo-message labeled-response batch standard-replies draft/message-redaction"

    /// Registers a client and enters every room; nothing of it is left to read.
    func enter(_ client: UInt64, _ nick: String, caps: String = Self.modern, login: String? = nil) {
        harness.connect(client)
        if !caps.isEmpty { harness.send(client, "CAP REQ :" + caps) }
        if let login {
            harness.send(client, "CAP REQ sasl")
            harness.send(client, "AUTHENTICATE PLAIN")
            harness.send(client, "AUTHENTICATE " + Base64.encode(Array("\0\(login)\0secret".utf8)))
        }
        harness.send(client, "NICK " + nick)
        harness.send(client, "USER u 0 * :r")
        if !caps.isEmpty { harness.send(client, "CAP END") }
        for room in harness.bridge.rooms { harness.send(client, "JOIN " + room.channel) }
        _ = harness.takeOutputs()
    }

    /// What happened since the last look, as `C1< line` and `U0> frame`; ids of ours by the nick in brackets.
    func happened() -> [String] {
        harness.takeOutputs().compactMap { output in
            switch output {
            case .line(let client, let bytes): "C\(client)< " + String(decoding: bytes, as: UTF8.self)
            case .upstream(let room, .frame(let bytes, _)): "U\(room)> " + named(String(decoding: bytes, as: UTF8.self))
            default: nil
            }
        }
    }

    /// Our people's ids written as `[nick]`.
    func named(_ text: String) -> String {
        ["alice", "bob", "carol", "chatbridge"].reduce(text) {
            $0.replacing(puppet($1), with: "[\($1)]")
        }
    }

    func puppet(_ nick: String) -> String { identities.puppetID(nick: nick, backend: "chat.example").rawValue }

    /// A frame from the backend; `[nick]` stands for that one's id.
    func backend(_ frame: String, room: Int = 0) {
        harness.sendFrame(
            room,
            ["alice", "bob", "carol", "chatbridge"].reduce(frame) { $0.replacing("[\($1)]", with: puppet($1)) })
    }

    /// The bridge's id of the newest message in a room.
    func newestMsgid(room: Int = 0) -> String { harness.bridge.rooms[room].recent.newest?.msgid ?? "none" }

    /// The backend's id of the newest message in a room.
    func newestUpstreamID(room: Int = 0) -> String {
        harness.bridge.rooms[room].recent.newest?.upstreamID?.rawValue ?? "none"
    }
}
