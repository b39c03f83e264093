import IRCProtocol
import Testing

@Suite("IRC capability table and set")
struct CapabilityTableTests {
    @Test("every capability has one row, and every name leads back to it", arguments: IRCCapability.allCases)
    func complete(capability: IRCCapability) {
        #expect(IRCCapabilityTable.rows.filter { $0.capability == capability }.count == 1)
        let row = IRCCapabilityTable.row(for: capability)
        #expect(!row.names.isEmpty)
        for name in row.names {
            #expect(IRCCapabilityTable.capability(named: name) == capability)
            #expect(!name.utf8.contains { $0 <= 0x20 || $0 == UInt8(ascii: "=") || $0 >= 0x7F })
            #expect(!name.hasPrefix("-"))
        }
    }

    @Test("names are not shared and case matters")
    func names() {
        let names = IRCCapabilityTable.rows.flatMap(\.names)
        #expect(Set(names).count == names.count)
        #expect(IRCCapabilityTable.capability(named: "Batch") == nil)
        #expect(IRCCapabilityTable.capability(named: "") == nil)
    }

    @Test("the set is a set")
    func algebra() {
        var set: IRCCapabilitySet = [.batch, .serverTime]
        #expect(set.contains(.batch) && !set.contains(.relaymsg))
        #expect(set.insert(.batch).inserted == false)
        #expect(set.insert(.relaymsg).inserted)
        #expect(set.remove(.batch) == .batch)
        #expect(set.remove(.batch) == nil)
        #expect(set.members == [.serverTime, .relaymsg])
        #expect(IRCCapabilitySet.all.isSuperset(of: set))
        #expect(!set.isSuperset(of: [.serverTime, .echoMessage]))
        #expect(IRCCapabilitySet.all.members == IRCCapability.allCases)
        #expect(set.union([.batch]).subtracting([.relaymsg]) == [.serverTime, .batch])
        #expect(IRCCapabilitySet().isEmpty && !set.isEmpty)
    }
}

/// One exchange: the client's command and the expected replies.
private struct Turn {
    let sent: [String]
    let isRegistered: Bool
    let outcome: IRCCapabilityNegotiation.Outcome

    init(_ sent: [String], registered: Bool = false, _ outcome: IRCCapabilityNegotiation.Outcome) {
        self.sent = sent
        isRegistered = registered
        self.outcome = outcome
    }
}

private func reply(_ subcommand: String, _ params: String...) -> IRCCapabilityNegotiation.Outcome {
    .replies([IRCCapabilityNegotiation.Reply(subcommand: subcommand, params: params)])
}

@Suite("IRC capability negotiation")
struct CapabilityNegotiationTests {
    private static let some: IRCCapabilitySet = [.messageTags, .serverTime, .batch, .noImplicitNames, .capNotify]
    private static let someNames =
        "message-tags server-time batch no-implicit-names draft/no-implicit-names soju.im/no-implicit-names cap-notify"

    /// Plays the turns and returns the negotiation as they left it.
    private func play(
        _ turns: [Turn], available: IRCCapabilitySet = some, values: [IRCCapability: String] = [:]
    ) -> IRCCapabilityNegotiation {
        var negotiation = IRCCapabilityNegotiation(available: available, values: values)
        for turn in turns {
            #expect(negotiation.commandReceived(params: turn.sent, isRegistered: turn.isRegistered) == turn.outcome)
        }
        return negotiation
    }

    @Test("a client lists, requests and ends")
    func ordinary() {
        var state = play([Turn(["LS", "302"], reply("LS", Self.someNames))])
        #expect(state.isNegotiating && state.version == 302)
        #expect(state.enabled == [.capNotify])
        state = play([
            Turn(["LS", "302"], reply("LS", Self.someNames)),
            Turn(["REQ", "server-time batch"], reply("ACK", "server-time batch")),
            Turn(["LIST"], reply("LIST", "cap-notify server-time batch")),
            Turn(["END"], .ended),
        ])
        #expect(!state.isNegotiating)
        #expect(state.enabled == [.serverTime, .batch, .capNotify])
    }

    @Test("subcommands are read in any case; an unknown one is named back as it was written")
    func subcommands() {
        let state = play([
            Turn(["Foo"], .invalid(subcommand: "Foo")), Turn([""], .needMoreParams), Turn([], .needMoreParams),
            Turn(["REQ"], .needMoreParams), Turn(["list"], reply("LIST", "")),
        ])
        #expect(!state.isNegotiating)
        // Without the drafts of a name: clients that ask so are older than they are.
        let names = "message-tags server-time batch no-implicit-names cap-notify"
        #expect(play([Turn(["ls"], reply("LS", names))]).version == 301)
    }

    @Test("a request is granted whole or not at all")
    func atomic() {
        let state = play([
            Turn(["REQ", "batch foo server-time"], reply("NAK", "batch foo server-time")),
            Turn(["REQ", "batch -foo"], reply("NAK", "batch -foo")),
            Turn(["REQ", "draft/relaymsg"], reply("NAK", "draft/relaymsg")),
            Turn(["REQ", "-"], reply("NAK", "-")),
            Turn(["REQ", "batch=1"], reply("NAK", "batch=1")),
            Turn(["REQ", "~batch"], reply("NAK", "~batch")),
        ])
        #expect(state.enabled == [])
        #expect(state.isNegotiating)
    }

    @Test("a capability is disabled with a minus sign, in order within one request")
    func disabling() {
        let state = play([
            Turn(["REQ", "batch server-time"], reply("ACK", "batch server-time")),
            Turn(["REQ", "-batch"], reply("ACK", "-batch")),
            Turn(["REQ", "message-tags -message-tags"], reply("ACK", "message-tags -message-tags")),
            Turn(["LIST"], reply("LIST", "server-time")),
        ])
        #expect(state.enabled == [.serverTime])
    }

    @Test("spaces around and between names, and a forgotten colon, do no harm")
    func spaces() {
        let state = play([
            Turn(["REQ", "  batch   server-time "], reply("ACK", "batch server-time")),
            Turn(["REQ", "message-tags", "-batch"], reply("ACK", "message-tags -batch")),
            Turn(["REQ", ""], reply("ACK", "")),
        ])
        #expect(state.enabled == [.messageTags, .serverTime])
    }

    @Test("a capability of several names stays while one of them is enabled")
    func aliases() {
        let alias = "soju.im/no-implicit-names"
        var state = play([
            Turn(["REQ", alias], reply("ACK", alias)),
            Turn(["REQ", "no-implicit-names"], reply("ACK", "no-implicit-names")),
            Turn(["REQ", "-no-implicit-names"], reply("ACK", "-no-implicit-names")),
            Turn(["LIST"], reply("LIST", alias)),
        ])
        #expect(state.enabled == [.noImplicitNames])
        #expect(
            state.commandReceived(params: ["REQ", "-" + alias], isRegistered: true) == reply("ACK", "-" + alias))
        #expect(state.enabled == [])
    }

    @Test("after registration requests are taken and nothing is held")
    func registered() {
        let state = play([
            Turn(["LS", "302"], registered: true, reply("LS", Self.someNames)),
            Turn(["REQ", "batch"], registered: true, reply("ACK", "batch")),
            Turn(["END"], registered: true, .replies([])),
        ])
        #expect(!state.isNegotiating)
        #expect(state.enabled == [.batch, .capNotify])
    }

    @Test(
        "the version is read leniently and never goes down",
        arguments: [
            ("302", 302), ("303", 302), ("99999999999999999999999999", 302), ("301", 301), ("", 301), ("abc", 301),
            ("-302", 301), ("302x", 301),
        ])
    func version(asked: String, version: Int) {
        var state = IRCCapabilityNegotiation(available: Self.some)
        _ = state.commandReceived(params: ["LS", asked], isRegistered: false)
        #expect(state.version == version)
        _ = state.commandReceived(params: ["LS"], isRegistered: false)
        #expect(state.version == version)
    }

    @Test("cap-notify cannot be disabled by a 302 client, and can by an older one")
    func capNotify() {
        let state = play([
            Turn(["LS", "302"], reply("LS", Self.someNames)),
            Turn(["REQ", "-cap-notify batch"], reply("NAK", "-cap-notify batch")),
            Turn(["REQ", "cap-notify"], reply("ACK", "cap-notify")),
        ])
        #expect(state.enabled == [.capNotify])
        let older = play([
            Turn(["REQ", "cap-notify"], reply("ACK", "cap-notify")),
            Turn(["REQ", "-cap-notify"], reply("ACK", "-cap-notify")),
        ])
        #expect(older.enabled == [])
    }

    @Test("values are shown to 302 clients only")
    func values() {
        let values: [IRCCapability: String] = [.batch: "a,b"]
        _ = play([Turn(["LS", "302"], reply("LS", "batch=a,b"))], available: [.batch], values: values)
        _ = play([Turn(["LS"], reply("LS", "batch"))], available: [.batch], values: values)
    }

    @Test("a long LS is cut into lines with a mark on all but the last; an older client gets one line")
    func longList() {
        let values = Dictionary(
            uniqueKeysWithValues: IRCCapability.allCases.map { ($0, String(repeating: "v", count: 90)) })
        var state = IRCCapabilityNegotiation(available: .all, values: values)
        guard case .replies(let lines) = state.commandReceived(params: ["LS", "302"], isRegistered: false) else {
            Issue.record("no list")
            return
        }
        #expect(lines.count > 1)
        #expect(lines.dropLast().allSatisfy { $0.params.count == 2 && $0.params[0] == "*" })
        #expect(lines.last?.params.count == 1)
        #expect(lines.allSatisfy { Self.wireBytes($0) <= 512 })
        let names = lines.flatMap { $0.params.last?.split(separator: " ") ?? [] }
        #expect(names.count == IRCCapabilityTable.rows.flatMap(\.names).count)

    }

    @Test(
        "an older client is told in one line: everything where the line has room, else not the youngest",
        arguments: [
            (server: "irc.example.com", nick: "*", isAll: true),
            (server: String(repeating: "s", count: 63), nick: String(repeating: "n", count: 64), isAll: false),
        ])
    func oneLine(server: String, nick: String, isAll: Bool) {
        // All capabilities that this program may offer.
        let available = IRCCapabilitySet.all.subtracting([.relaymsg])
        var older = IRCCapabilityNegotiation(available: available)
        for params in [["LS"], ["LS", "301"]] {
            let answer = older.commandReceived(
                params: params, isRegistered: false,
                listBytes: IRCCapabilityNegotiation.listBytes(server: server, nick: nick))
            guard case .replies(let lines) = answer, lines.count == 1, lines[0].params.count == 1 else {
                Issue.record("not one line: \(answer)")
                return
            }
            let told = lines[0].params[0].split(separator: " ").map(String.init)
            let all = IRCCapabilityTable.rows.filter { ![.relaymsg, .sts].contains($0.capability) }
                .compactMap(\.names.first)
            #expect(told == Array(all.prefix(told.count)) && told.contains("sasl"))
            #expect((told.count == all.count) == isAll)
            #expect(":\(server) CAP \(nick) LS :\(lines[0].params[0])\r\n".utf8.count <= 512)
        }
    }

    @Test("an older client is told in one line what it has enabled")
    func oneLineOfEnabled() {
        var older = IRCCapabilityNegotiation(available: .all)
        let names = IRCCapabilityTable.rows.flatMap(\.names).filter { $0 != "sts" }
        for name in names { _ = older.commandReceived(params: ["REQ", name], isRegistered: false) }
        guard
            case .replies(let lines) = older.commandReceived(params: ["LIST"], isRegistered: true, listBytes: 100)
        else {
            Issue.record("no list")
            return
        }
        #expect(lines.count == 1 && lines[0].params[0].utf8.count <= 100)
    }

    @Test("STS is said and never given, and never taken back")
    func sts() {
        var state = IRCCapabilityNegotiation(available: [.batch, .sts, .capNotify], values: [.sts: "port=6697"])
        func answer(_ params: String...) -> IRCCapabilityNegotiation.Outcome {
            state.commandReceived(params: params, isRegistered: false)
        }
        #expect(answer("LS", "302") == reply("LS", "batch cap-notify sts=port=6697"))
        #expect(answer("REQ", "batch sts") == reply("NAK", "batch sts"))
        #expect(answer("REQ", "-sts") == reply("NAK", "-sts"))
        #expect(answer("LIST") == reply("LIST", "cap-notify"))
        #expect(state.availabilityChanged(to: [.capNotify]) == [.init(subcommand: "DEL", params: ["batch"])])
        #expect(state.available.contains(.sts))
    }

    @Test("answers to a request that fills its line are cut and lose nothing", arguments: [true, false])
    func longRequest(isKnown: Bool) {
        let word = isKnown ? "batch" : "nonsense"
        let words = Array(repeating: word, count: 500 / (word.count + 1))
        var state = IRCCapabilityNegotiation(available: .all)
        guard
            case .replies(let lines) = state.commandReceived(
                params: ["REQ", words.joined(separator: " ")], isRegistered: false)
        else {
            Issue.record("no answer")
            return
        }
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.subcommand == (isKnown ? "ACK" : "NAK") && $0.params.count == 1 })
        #expect(lines.allSatisfy { Self.wireBytes($0) <= 512 })
        #expect(lines.flatMap { $0.params[0].split(separator: " ").map(String.init) } == words)
    }

    @Test("a single name longer than a line is cut")
    func longName() {
        var state = IRCCapabilityNegotiation(available: .all)
        let name = String(repeating: "é", count: 240)
        guard case .replies(let lines) = state.commandReceived(params: ["REQ", name], isRegistered: false) else {
            Issue.record("no answer")
            return
        }
        #expect(lines.count == 1 && Self.wireBytes(lines[0]) <= 512)
        #expect(name.hasPrefix(lines[0].params[0]) && lines[0].params[0].utf8.count > 300)
    }

    @Test("what the server stops offering is disabled, and told to clients with cap-notify")
    func availability() {
        var state = play([
            Turn(["LS", "302"], reply("LS", Self.someNames)), Turn(["REQ", "batch"], reply("ACK", "batch")),
        ])
        let lines = state.availabilityChanged(to: [.serverTime, .messageTags, .capNotify, .relaymsg])
        #expect(lines.map(\.subcommand) == ["DEL", "NEW"])
        #expect(
            lines.map(\.params) == [
                ["batch no-implicit-names draft/no-implicit-names soju.im/no-implicit-names"], ["draft/relaymsg"],
            ])
        #expect(state.enabled == [.capNotify])
        #expect(state.availabilityChanged(to: state.available) == [])
        // Another value is news, the same value is none.
        let same: [IRCCapability: String] = [.relaymsg: "b"]
        #expect(state.availabilityChanged(to: state.available, values: same).map(\.params) == [["draft/relaymsg=b"]])
        #expect(state.availabilityChanged(to: state.available, values: same) == [])

        var older = play([Turn(["REQ", "batch"], reply("ACK", "batch"))])
        #expect(older.availabilityChanged(to: []) == [])
        #expect(older.enabled == [])
    }

    /// Bytes with the longest server name and nick that the limits allow for.
    private static func wireBytes(_ reply: IRCCapabilityNegotiation.Reply) -> Int {
        let around = ":" + String(repeating: "s", count: 63) + " CAP " + String(repeating: "n", count: 64)
        let last = reply.params.last ?? ""
        let front = reply.params.count > 1 ? "* " : ""
        return (around + " " + reply.subcommand + " " + front + ":" + last + "\r\n").utf8.count
    }

    @Test("the fingerprint of a set is that of its names, whatever their numbers")
    func fingerprint() {
        // FNV-1a of `batch message-tags`.
        #expect(IRCCapabilitySet([.messageTags, .batch]).fingerprint == 0x1355_82E0_A58F_C0C2)
        let alone = IRCCapability.allCases.map { IRCCapabilitySet([$0]).fingerprint }
        #expect(Set(alone + [IRCCapabilitySet().fingerprint]).count == alone.count + 1)
    }
}
