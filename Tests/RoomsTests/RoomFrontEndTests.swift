import BridgeTypes
import ChatModel
import Dialects
import Identities
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeTestSupport
@testable import Rooms

/// A front end that records a room as plain sentences, without bridge, session or IRC.
private final class Recorder: RoomFrontEnd {
    private var sentences: [String] = []

    func taken() -> [String] {
        defer { sentences = [] }
        return sentences
    }

    func show(_ event: RoomEvent, in room: Room, to readers: RoomAudience) {
        switch event {
        case .said(let message):
            let words =
                switch message.words {
                case .typed(let words): words.text
                case .upstream(let message): message.text
                }
            let answer = message.address.map { "\($0)" } ?? ""
            sentences.append("\(message.speaker?.nick ?? "the relay"): \(answer)\(words)")
        case .notice(let text): sentences.append("the relay: " + text)
        case .announced(let text): sentences.append("the backend: " + text)
        case .topic(let text): sentences.append("the topic: " + text)
        case .entered(let arrival): sentences.append("\(arrival.who.nick) is here")
        case .left(let who, let reason): sentences.append("\(who.nick) is gone: \(reason ?? "")")
        case .returned(let arrivals): sentences += arrivals.map { "\($0.who.nick) is here again" }
        case .separated(let people): sentences += people.map { "\($0.who.nick) is gone with the link" }
        case .typing(let who, let isTyping): sentences.append("\(who.nick) \(isTyping ? "types" : "types no longer")")
        case .passed(let annotations, let who, _): sentences.append("\(who.nick) gives \(annotations.map(\.name))")
        case .takenBack(let entries, let who, _, _):
            sentences.append("\(who?.nick ?? "the backend") takes back \(entries.map(\.excerpt))")
        case .erased(let msgids): sentences.append("erased: \(msgids)")
        case .reacted(let reaction, let who):
            sentences.append("\(who.nick) puts \(reaction.emoji) on \(reaction.original.excerpt)")
        }
    }

    func tell(_ answer: RoomAnswer, in room: Room, to client: ClientID, label: String?) {
        sentences.append("to \(client.rawValue): \(answer)")
    }

    func tell(_ reading: RoomReading, in room: Room, to client: ClientID) {
        sentences.append("to \(client.rawValue): \(reading.reader.nick) has read \(reading.newest?.excerpt ?? "")")
    }

    func changed(_ person: PersonID, _ change: PersonChange) {
        if case .nick(_, let nick) = change { sentences.append("somebody is \(nick) now") }
    }

    func enter(_ member: LocalMember, isHeld: Bool, in room: Room) {}
    func leave(_ member: LocalMember, in room: Room) {}
    func whenReceived(by client: ClientID, _ received: @escaping () -> Void) { received() }
    func tellUntold(in room: Room, to clients: [ClientID]) {}
    func isHere(_ client: ClientID) -> Bool { true }
    func roomFellSilent(_ room: RoomID) {}
    func roomOpened(_ room: RoomID) {}
}

/// A room with its front end and its backend, in isolation.
private final class RoomStage {
    let context: RoomsContext
    let front = Recorder()
    let room: Room
    private let backend = ScriptedUpstream()
    private var clock = ManualClock()
    private(set) var sent: [JSONValue] = []

    init(_ dialect: StubDialect) throws {
        let settings = try RoomSettings.stub("lobby", dialect: dialect)
        context = RoomsContext(
            settings: RoomsSettings(serverName: "relay"),
            identities: IdentitySettings(
                nicks: NickSettings(), rules: NickRules(fold: ASCII.lowercased, isLegal: { !$0.isEmpty }),
                instanceID: "t",
                reserved: [], accounts: []),
            isDurable: false, now: clock.now, random: AnyRandomNumberGenerator(SeededGenerator(seed: 1)))
        room = Room(id: RoomID(index: 0), settings: settings, frontEnd: front, context)
        room.link.start(context)
        settle()
    }

    /// Adds a user.
    func enter(_ nick: String, _ client: UInt64) {
        let id = ClientID(rawValue: client)
        let person = context.identities.addLocal(
            client: id, nick: nick, ident: "u", host: "h", realname: nick)
        room.handle(.enter(person, clientName: nil), from: id, context)
        settle()
    }

    func say(_ text: String, _ client: UInt64) {
        #expect(perform(.submit(Submission(words: SpokenText(text: text), annotations: [])), client) == .done)
    }

    func perform(_ command: RoomCommand, _ client: UInt64) -> RoomReply {
        defer { settle() }
        return room.handle(command, from: ClientID(rawValue: client), context)
    }

    func receive(_ json: String) {
        receive(bytes: backend.frame(Array(json.utf8), isBinary: false))
        settle()
    }

    private func receive(bytes: [UInt8]) {
        bytes.withUnsafeBytes {
            let bytes = $0
            drive { $0.bytesReceived(bytes, dialectContext: $1, &$2) }
        }
    }

    /// Drives the room's link, and passes its events to the room.
    private func drive(_ verb: (UpstreamSession, DialectContext, inout Turn) -> [LinkEvent]) {
        room.handle(context.drive(room.link) { verb(room.link, room.lane.dialectContext, &$0) }, context)
    }

    private func settle() {
        while true {
            let actions = context.actions
            context.handActions { _ in }
            if actions.isEmpty, context.popDue() == nil { return }
            for action in actions { run(action) }
            for _ in context.takeConnectSlots() { drive { $0.slotGranted(&$2) } }
        }
    }

    private func run(_ action: RoomsAction) {
        switch action {
        case .readCredentials:
            drive { $0.credentialsRead(.success(UpstreamCredentials()), dialectContext: $1, &$2) }
        case .connectUpstream:
            _ = backend.connectRequested()
            backend.transportOpened(refusing: nil)
            drive { $0.transportOpened(&$2) }
        case .sendUpstream(_, let bytes):
            let (events, answer) = backend.received(bytes)
            for case .frame(let frame, _) in events { sent.append((try? JSONValue(parsing: frame)) ?? .null) }
            if !answer.isEmpty { receive(bytes: answer) }
        default: break
        }
    }
}

@Suite("A room without IRC")
struct RoomFrontEndTests {
    private static func message(_ id: String, _ text: String) -> String {
        "{\"kind\":\"message\",\"id\":\"\(id)\",\"sender\":{\"id\":\"u-ann\",\"name\":\"ann\"},\"text\":\"\(text)\"}"
    }

    @Test("a conversation is the same sentences in any front end")
    func conversation() throws {
        let stage = try RoomStage(
            StubDialect {
                $0.messageIDOrigin = .client
                $0.confirmation = .echoByID
                $0.typingOut = .none
            })
        #expect(stage.room.link.isUp)
        stage.enter("bob", 1)
        stage.enter("carol", 2)
        #expect(stage.front.taken() == ["bob is here", "carol is here"])
        stage.receive(Self.message("m1", "good morning"))
        #expect(stage.front.taken() == ["ann is here", "ann: good morning"])

        stage.say("good morning, ann", 1)
        let id = try #require(stage.sent.last?["id"]?.string)
        let sender = try #require(stage.sent.last?["sender"]?["id"]?.string)
        #expect(stage.front.taken() == [], "not before the backend has it")
        stage.receive(
            "{\"kind\":\"message\",\"id\":\"\(id)\",\"sender\":{\"id\":\"\(sender)\"},\"text\":\"good morning, ann\"}")
        #expect(stage.front.taken() == ["bob: good morning, ann"])

        stage.receive(#"{"kind":"typing","state":"start","sender":{"id":"u-ann","name":"ann"}}"#)
        #expect(stage.front.taken() == ["ann types"])
        stage.receive(Self.message("m2", "bye"))
        #expect(stage.front.taken() == ["ann: bye"])
        stage.receive(#"{"kind":"delete","ids":["m2"]}"#)
        #expect(stage.front.taken() == [#"the backend takes back ["bye"]"#])
    }

    @Test("what a client does is a value, and so is what becomes of it")
    func commands() throws {
        let stage = try RoomStage(StubDialect { $0.messageIDOrigin = .client })
        stage.enter("bob", 1)
        #expect(stage.front.taken() == ["bob is here"])
        let unknown = RoomReply.refused(.unknownMessage)
        let rows: [(RoomCommand, UInt64, RoomReply, [String])] = [
            (.pass(SpokenText(text: "psst"), annotations: []), 1, .done, ["bob: psst"]),
            (.pass(SpokenText(text: "psst"), annotations: []), 2, .notInRoom, []),
            (.submit(Submission(words: SpokenText(text: "x"), annotations: [])), 2, .notInRoom, []),
            (.relay(as: "a/b", text: "x", annotations: [], label: nil), 2, .notInRoom, []),
            (.takeBack("none", reason: nil, right: .own, label: nil), 1, unknown, []),
            (.react("👍", .add, on: "none", annotations: [], label: nil), 1, unknown, []),
            (.markRead(ChatTimestamp(milliseconds: 0)), 2, .unchanged, []),
            (.leave, 1, .done, []),
            (.submit(Submission(words: SpokenText(text: "x"), annotations: [])), 1, .notInRoom, []),
        ]
        for (command, client, reply, told) in rows {
            #expect(stage.perform(command, client) == reply, "\(command)")
            #expect(stage.front.taken() == told, "\(command)")
        }
    }
}
