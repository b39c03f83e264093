import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import Identities
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A bridge with a disk, accounts `alice` and `bob`, and rooms on a stub's wire; crashes are restarts.
final class BacklogStage {
    private(set) var harness: BridgeHarness
    private let settings: BridgeSettings
    private var lines: [UInt64: [String]] = [:]
    private var closed: Set<UInt64> = []
    private var pings: [UInt64: [String]] = [:]
    private var sent: [String] = []
    private var restarts: UInt64 = 0
    /// What the store was told to keep since the last look.
    private(set) var orders: [StoreOperation] = []
    /// Ids of messages that were ever kept.
    private var kept: Set<String> = []
    /// Everything said in each room by its number, in order.
    private(set) var said: [Int: [String]] = [:]

    init(
        rooms: Int = 1, limits: LimitSettings? = nil, store: StoreStage? = StoreStage(), rejoins: Bool = true,
        historyOnJoin: Int = 0,
        _ change: (inout DialectTraits) -> Void = { _ in }, room adjust: (inout RoomSettings) -> Void = { _ in }
    ) throws {
        let rooms = try (0..<rooms).map { index in
            var room = RoomSettings(
                name: index == 0 ? "lobby" : "room\(index)", backend: "b", dialect: StubDialect(change),
                url: try HTTPURL(parsing: "ws://chat.example/\(index)"))
            room.ping = .zero
            room.queueMaxMessages = 10_000
            room.historyOnJoin = historyOnJoin
            adjust(&room)
            return room
        }
        let accounts = ["alice", "bob"].map {
            AccountSettings(name: $0, password: SCRAMVerifier(quickly: "pw"))
        }
        var settings = BridgeSettings(
            serverName: "bridge", instanceID: "t", accounts: accounts,
            limits: limits
                ?? LimitSettings {
                    $0.acceptsPerSecondPerAddress = nil
                    $0.messagesPerSecond = nil
                    $0.upstreamMessagesPerSecond = nil
                },
            rooms: rooms)
        settings.rejoins = rejoins
        self.settings = settings
        harness = BridgeHarness(settings: settings, store: store)
        harness.start()
    }

    var room: Room { harness.bridge.rooms[0] }

    func session(_ client: UInt64) -> IRCSession? { harness.bridge.irc.sessions[ClientID(rawValue: client)] }

    /// Where a client's cursor is, in memory.
    func cursor(_ account: String, _ client: String, room: Int = 0) -> Int64? {
        harness.bridge.irc.cursors.place(
            of: ClientKey(account: account, client: client), in: harness.bridge.rooms[room].storedKey)
    }

    /// Where a client's cursor is, on disk.
    func kept(_ account: String, _ client: String, room: Int = 0) -> Int64? {
        let key = harness.bridge.rooms[room].storedKey
        return harness.store.disk.cursors.first { $0.account == account && $0.client == client && $0.room == key }?
            .sequence
    }

    /// Messages that went to the backend since the last look.
    func sentMessages() -> [String] {
        look()
        defer { sent = [] }
        return sent.filter { $0.contains(#""kind":"message""#) }
    }

    /// The configuration is read again, with these of its rooms.
    func reload(rooms: [Int]) {
        var now = settings
        now.rooms = rooms.map { settings.rooms[$0] }
        harness.perform { bridge, time in bridge.reload(now, reconnecting: [], backends: [], now: time) }
    }

    /// The process dies and another takes its place; clients are gone.
    func crash() {
        look()
        restarts += 1
        let pingsBefore = harness.answersPings
        harness = BridgeHarness(
            settings: settings, seed: 1 + restarts, store: harness.store.afterCrash, startingAt: harness.clock)
        harness.answersPings = pingsBefore
        lines = [:]
        closed = []
        pings = [:]
        harness.start()
    }

    // MARK: - Clients

    static let caps = "message-tags server-time batch account-tag"

    /// Connects and logs in as `alice@phone`; without an `@` there is no account.
    func connect(_ client: UInt64, _ login: String, caps: String = "") {
        harness.connect(client)
        harness.send(client, "CAP REQ :" + caps)
        if login.contains("@") { harness.send(client, "PASS \(login):pw") }
        harness.send(client, "NICK " + String(login.prefix { $0 != "@" }))
        harness.send(client, "USER u 0 * :r")
        harness.send(client, "CAP END")
        look()
    }

    /// Connects and enters the first room. What the client is greeted with, up to the end of NAMES, is forgotten.
    func enter(_ client: UInt64, _ login: String, caps: String = "", room: String = "#lobby") {
        connect(client, login, caps: caps)
        if session(client)?.rooms.isEmpty ?? true { harness.send(client, "JOIN " + room) }
        look()
        if let end = lines[client]?.lastIndex(where: { $0.contains(" 366 ") }) {
            lines[client]?.removeSubrange(...end)
        }
    }

    func leave(_ client: UInt64) { harness.disconnect(client) }

    func isClosed(_ client: UInt64) -> Bool {
        look()
        return closed.contains(client)
    }

    private func look() {
        for output in harness.takeOutputs() {
            switch output {
            case .line(let client, let bytes):
                let line = String(decoding: bytes, as: UTF8.self)
                if line.hasPrefix("PING cb-") {
                    pings[client, default: []].append(String(line.dropFirst("PING ".count)))
                } else {
                    lines[client, default: []].append(line)
                }
            case .clientClosed(let client): closed.insert(client)
            case .upstream(_, .frame(let bytes, _)): sent.append(String(decoding: bytes, as: UTF8.self))
            default: break
            }
        }
        let new = harness.store.takeOrders()
        orders += new
        for case .message(_, let message) in new { kept.insert(message.msgid) }
    }

    func takeOrders() -> [StoreOperation] {
        look()
        defer { orders = [] }
        return orders
    }

    /// The lines since the last look.
    func raw(_ client: UInt64) -> [String] {
        look()
        defer { lines[client] = [] }
        return lines[client] ?? []
    }

    /// What was said in rooms since the last look, without tags and hosts: `ann: hello`.
    func heard(_ client: UInt64) -> [String] {
        raw(client).compactMap { line in
            guard let match = line.wholeMatch(of: #/(?:@\S+ )?:([^! ]+)(?:!\S+)? (?:PRIVMSG|NOTICE) #\S+ :(.*)/#) else {
                return nil
            }
            return "\(match.1): \(match.2)"
        }
    }

    /// The client answers what it was asked; false when it was not.
    @discardableResult
    func answer(_ client: UInt64) -> Bool {
        look()
        guard let token = pings[client]?.first else { return false }
        pings[client]?.removeFirst()
        harness.send(client, "PONG bridge " + token)
        return true
    }

    // MARK: - Talk

    /// Somebody upstream says something; it is on the disk like everything in the room's order.
    func say(
        _ text: String, room index: Int = 0, from sender: String = "ann", keeps: Bool = true, more: String = "",
        change: ((inout StoredMessage) -> Void)? = nil
    ) {
        let number = said[index, default: []].count
        said[index, default: []].append(text)
        let room = harness.bridge.rooms[index]
        let before = room.recent.lastSequence
        harness.sendFrame(
            index,
            #"{"kind":"message","id":"m\#(index)-\#(number)","sender":{"id":"u-\#(sender)","name":"\#(sender)"},"#
                + #"\#(more)"text":"\#(text)"}"#)
        guard keeps, room.recent.lastSequence > before else { return }
        keep(room, anew: change != nil) { message in
            message.text = text
            change?(&message)
        }
    }

    func say(_ texts: [String], room: Int = 0) { for text in texts { say(text, room: room) } }

    /// An IRC user says something on a wire that confirms at once.
    func speak(_ client: UInt64, _ text: String) {
        guard let session = session(client), let id = session.rooms.first, let room = harness.bridge.room(id) else {
            return
        }
        let name = session.clientName
        let author = room.locals[session.id]?.puppet
        let account = session.account?.name
        said[id.index, default: []].append(text)
        let before = room.recent.lastSequence
        harness.send(client, "PRIVMSG \(room.channel) :\(text)")
        guard room.recent.lastSequence > before else { return }
        keep(room) { message in
            message.text = text
            message.author = author
            message.account = account
            message.client = name
        }
    }

    /// Keeps the newest message of a room, where the bridge has not done so itself or it is to be another.
    private func keep(_ room: Room, anew: Bool = false, _ change: (inout StoredMessage) -> Void) {
        guard let entry = room.recent.newest else { return }
        look()
        if kept.contains(entry.msgid), !anew { return }
        let source = harness.bridge.context.identities.person(nick: entry.nick)?.person.source
        var message = StoredMessage(
            sequence: Int64(entry.sequence), msgid: entry.msgid, upstreamID: entry.upstreamID, at: entry.at,
            nick: entry.nick, source: source ?? entry.nick, text: "")
        change(&message)
        harness.perform { bridge, now in
            bridge.context.now = now
            bridge.context.keep(.message(room.storedKey, message))
        }
    }
}
