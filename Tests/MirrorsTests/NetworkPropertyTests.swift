import BridgeTestSupport
import BridgeTypes
import ChatModel
import IRCProtocol
import Testing
import WireBytes

@testable import Mirrors

@Suite("An IRC network, for any input")
struct NetworkPropertyTests {
    private static let capabilities =
        "message-tags server-time batch labeled-response echo-message draft/multiline=max-bytes=2000,max-lines=5 "
        + "draft/chathistory draft/relaymsg=/ draft/message-redaction"

    private static func settings() -> IRCNetworkSettings {
        NetworkPlayer.settings("#chat", "#two") {
            $0.channels[0].lastSeen = IRCNetworkPosition(msgid: "m0", time: ChatTimestamp(milliseconds: 0))
        }
    }

    // MARK: - Splits

    @Test("the cuts between received bytes make no difference")
    func splits() {
        let lines = [
            "@msgid=m1;time=2026-11-21T12:00:00.000Z :ann!u@h PRIVMSG #chat :grüße 👋", ":ann!u@h PRIVMSG bridge :you?",
            "PING :abc", "@msgid=m2 BATCH +a draft/multiline #two", "@batch=a :bob!u@h PRIVMSG #two :one",
            "@batch=a :bob!u@h PRIVMSG #two :two", "BATCH -a", ":op!u@h KICK #two bridge :out", "",
            ":x " + String(repeating: "y", count: 600), ":ann!u@h PRIVMSG #chat :after", "ERROR :bye", "PING :late",
        ]
        let bytes = Array((lines.joined(separator: "\r\n") + "\r\n").utf8)
        let found = SplitFeedVerifier.disagreements(bytes) { pieces -> [String] in
            var player = NetworkPlayer(Self.settings())
            player.perform("usable \(Self.capabilities)")
            return pieces.flatMap { piece -> [String] in
                player.receive(piece)
                let now = player.clock.now
                return player.network.takeActions().flatMap { NetworkPlayer.lines($0, at: now) }
            }.sorted()
        }
        #expect(found == [])
    }

    @Test("a line without an end is given up, and the next one is read")
    func endless() {
        var player = NetworkPlayer(NetworkPlayer.settings("#chat"))
        player.perform("usable")
        for _ in 0..<200 { player.receive([UInt8](repeating: 0x61, count: 1000)) }
        player.receive(Array("\r\n:ann!u@h PRIVMSG #chat :hello\r\n".utf8))
        let arrived = player.network.takeActions().filter { if case .arrived = $0 { true } else { false } }
        #expect(arrived.count == 1)
    }

    // MARK: - Hostile servers

    private static let words = [
        "bridge", "Bridge", "#chat", "#two", "#none", "ann", "*", "+a", "-a", "+b", "-b", "draft/multiline",
        "chathistory",
        "labeled-response", "CHATHISTORY", "RELAYMSG", "BATCH", "LS", "ACK", "NAK", "NEW", "DEL", "sasl", "batch", "",
        ":", ":a b c", ":\u{1}PING\u{1}", ":\u{1}", "CASEMAPPING=odd", "CHANTYPES=", "NICKLEN=0", "NICKLEN=-5",
        "CHATHISTORY=0",
        "MONITOR=99999999999999999999", "TARGMAX=JOIN:,X", "BOT=", "bridge!u@h", "999", "\u{2063}\u{FE01}", "é",
        String(repeating: "n", count: 90),
    ]
    private static let commands = [
        "PRIVMSG", "NOTICE", "TAGMSG", "REDACT", "TOPIC", "JOIN", "PART", "KICK", "NICK", "INVITE", "BATCH", "CAP",
        "AUTHENTICATE", "PING", "PONG", "FAIL", "WARN", "ACK", "MODE", "QUIT", "001", "005", "376", "396", "403", "404",
        "421", "432", "433", "437", "442", "471", "474", "477", "482", "731", "900", "903", "904",
    ]
    private static let tags = [
        "label=7", "label=8", "label", "batch=a", "batch=b", "msgid=m1", "msgid=m2", "msgid", "time=x",
        "time=2026-11-21T12:00:00.000Z", "+typing=active", "+draft/react=x", "+reply=m1", "draft/multiline-concat",
        "draft/relaymsg=bridge", "+chatbridge/origin=0123ab", "bot", "a\\", "=", ";;",
    ]
    private static let sources = [
        ":bridge!u@h", ":ann!u@h", ":s", ":", ":!@", ":bridge", ":\(String(repeating: "x", count: 300))!u@h",
    ]

    private static func line(_ random: inout SeededGenerator) -> String {
        func pick(_ list: [String]) -> String { list.randomElement(using: &random) ?? "" }
        var line = ""
        if Bool.random(using: &random) {
            line +=
                "@" + (0..<Int.random(in: 1...3, using: &random)).map { _ in pick(tags) }.joined(separator: ";") + " "
        }
        if Int.random(in: 0..<4, using: &random) > 0 { line += pick(sources) + " " }
        line += pick(commands)
        for _ in 0..<Int.random(in: 0...4, using: &random) { line += " " + pick(words) }
        return line
    }

    @Test("nothing that a server says traps or makes us speak without bounds", arguments: LawSeeds.seeds(60))
    func hostile(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var player = NetworkPlayer(Self.settings())
        if Bool.random(using: &random) { player.perform("usable \(Self.capabilities)") } else { player.perform("open") }
        var open: Set<UInt64> = []
        var sentLines = 0
        for step in 0..<400 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0: player.perform("+ \(Int.random(in: 0...40, using: &random))")
            case 1:
                let token = UInt64(step)
                let post = Self.post("words \(step)\nand more", random: &random)
                let acceptance = player.network.post(post, to: "#chat", token: token, now: player.clock.now)
                if acceptance == .accepted { open.insert(token) }
            case 2 where step % 40 == 0:
                player.perform("lost")
                player.perform("usable \(Self.capabilities)")
            case 3: player.receive(random.bytes(40) + [0x0A])
            default: player.receive(Array((Self.line(&random) + "\r\n").utf8))
            }
            for action in player.network.takeActions() {
                switch action {
                case .send(let bytes): sentLines += bytes.count { $0 == 0x0A }
                case .delivered(let token, _), .failed(let token, _, _):
                    #expect(open.remove(token) != nil, "settled twice: \(token), \(random)")
                default: break
                }
            }
        }
        player.perform("lost")
        #expect(sentLines < 3000, "\(random)")
    }

    @Test("a post is settled once, whatever happens to the connection", arguments: LawSeeds.seeds(40))
    func settled(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var player = NetworkPlayer(NetworkPlayer.settings("#chat"))
        let sets = ["", "echo-message", Self.capabilities]
        player.perform("usable \(sets.randomElement(using: &random) ?? "")")
        var (accepted, settled): ([UInt64], [UInt64]) = ([], [])
        func take() {
            for action in player.network.takeActions() {
                switch action {
                case .delivered(let token, _), .failed(let token, _, _): settled.append(token)
                case .send(let bytes) where Bool.random(using: &random):
                    // A server that answers some of it.
                    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\r\n") {
                        if line.hasPrefix("PING ") { player.receive(Array("PONG s \(line.dropFirst(5))\r\n".utf8)) }
                        let start = line.firstIndex { $0 != "@" } ?? line.startIndex
                        if line.hasPrefix("@label="),
                            let end = line[start...].firstIndex(where: { $0 == " " || $0 == ";" })
                        {
                            player.receive(Array("@\(line[start..<end]) :s ACK\r\n".utf8))
                        }
                    }
                default: break
                }
            }
        }
        for token in 0..<UInt64(40) {
            let post = Self.post("words\nmore", random: &random)
            if player.network.post(post, to: "#chat", token: token, now: player.clock.now) == .accepted {
                accepted.append(token)
            }
            take()
            player.receive(Array(":s 404 bridge #chat :Cannot send (+m)\r\n".utf8))
            take()
        }
        player.network.closed(reason: "gone", now: player.clock.now, random: &random)
        take()
        #expect(settled.sorted() == accepted, "\(random)")
    }

    private static func post(_ text: String, nick: String = "alice", random: inout SeededGenerator) -> MirrorPost {
        MirrorPost(
            .message(MarkedText(plain: text)), room: "room", channel: "#room", msgid: "m",
            at: ChatTimestamp(milliseconds: 0), speaker: MirrorPost.Speaker(nick: nick),
            origin: Bool.random(using: &random) ? OriginChain("0123ab,ff00ff") ?? OriginChain() : OriginChain())
    }

    // MARK: - Texts

    private static let alphabet = [
        "a", "b", " ", "\n", "é", "👍🏽", "👨‍👩‍👧", "漢", "\u{301}", "\u{2}", "https://example.org/x", ".",
    ]

    @Test("a text arrives whole, in lines that no server cuts", arguments: LawSeeds.seeds(60))
    func whole(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let text = (0..<Int.random(in: 1...800, using: &random))
            .map { _ in Self.alphabet.randomElement(using: &random) ?? "" }.joined()
        let sets = ["echo-message", "echo-message message-tags", "echo-message " + Self.capabilities]
        var player = NetworkPlayer(
            NetworkPlayer.settings("#chat") {
                $0.linesPerSecond = nil
                $0.maxQueuedLines = 10_000
                $0.usesRelaymsg = Bool.random(using: &random)
            })
        player.perform("usable \(sets.randomElement(using: &random) ?? "")")
        let post = Self.post(text, nick: "alice", random: &random)
        _ = player.network.post(post, to: "#chat", token: 1, now: player.clock.now)
        var said: [UInt8] = []
        for case .send(let bytes) in player.network.takeActions() {
            for line in bytes.split(separator: 0x0A) {
                let message = try line.dropLast().withUnsafeBytes { try IRCParse.parse($0) }
                guard message.command == "PRIVMSG" || message.command == "RELAYMSG", let text = message.params.last
                else {
                    continue
                }
                let relayed = ":\(message.command == "PRIVMSG" ? "bridge" : "alice/chat")!u@host PRIVMSG #chat :\(text)"
                #expect(relayed.utf8.count <= 510, "\(random)")
                let prefix = "<a\u{200B}lice> "
                said += Array(
                    OriginChain.split(text).text.utf8.dropFirst(
                        text.utf8.starts(with: prefix.utf8) ? prefix.utf8.count : 0))
            }
        }
        // Blanks are left out where a line ends, and lines of nothing else; codes that change nothing, too.
        let codes: Set<UInt8> = [0x20, 0x02, 0x0F]
        let heard = said.filter { !codes.contains($0) }
        let expected = IRCTextSplitter.lines(text).joined().utf8.filter { !codes.contains($0) }
        #expect(heard == Array(expected), "\(random)")
    }
}
