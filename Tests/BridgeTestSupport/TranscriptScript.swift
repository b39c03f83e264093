import Accounts
import BridgeCore
import BridgeTypes
import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
public import IRCServer
import JSONText
import Rooms
import Upstream

/// The first line of a transcript: `# title   caps: … with: …`.
///
/// `caps:` are the default capabilities of clients that register with `is`. `with:` changes the bridge's defaults: one room
/// `lobby`, linked before the first line, no flood control, no topic, clients that answer PING unseen.
public struct TranscriptHeader {
    public var title: String
    public var caps: [String] = []
    var options: [String: String] = [:]

    init?(_ line: String) {
        guard line.hasPrefix("# ") else { return nil }
        var words = line.dropFirst(2).split(separator: " ").map(String.init)
        func take(after key: String) -> [String] {
            guard let start = words.firstIndex(of: key) else { return [] }
            let end = words[(start + 1)...].firstIndex { $0.hasSuffix(":") } ?? words.endIndex
            let taken = Array(words[(start + 1)..<end])
            words.removeSubrange(start..<end)
            return taken
        }
        caps = take(after: "caps:")
        for pair in take(after: "with:") {
            let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
            options[parts[0]] = parts.count > 1 ? parts[1] : "on"
        }
        title = words.joined(separator: " ")
    }

    var linksAtOnce: Bool { options["link"] != "manual" }
    var checksPasswords: Bool { options["checks"] != "manual" }
    var echoes: Bool { options["echo"] == "on" }
    /// The log is recorded.
    var showsNotes: Bool { options["notes"] == "on" }
    var answersPings: Bool { options["pongs"] != "manual" }
    /// Storage is persistent.
    var isDurable: Bool { options["store"] == "on" }

    /// The settings that the options ask for.
    ///
    /// - Throws: when a room's URL is none.
    public func settings() throws -> BridgeSettings {
        var limits = LimitSettings { $0.messagesPerSecond = options["flood"] == nil ? nil : 2 }
        if let members = options["members"].flatMap({ Int($0) }) { limits.membersPerRoom = members }
        if let lines = options["lines"].flatMap({ Int($0) }) { limits.multilineMaxLines = lines }
        if let bytes = options["receive-queue"].flatMap({ Int($0) }) { limits.receiveQueueBytes = bytes }
        let rooms = try (options["rooms"] ?? "lobby").split(separator: ",").map { name in
            var room = RoomSettings(
                name: String(name), topic: options["topic"]?.replacing("_", with: " ") ?? "",
                backend: options["backend"] ?? "chat.example", dialect: try wire(),
                url: try HTTPURL(parsing: options["url"] ?? "ws://chat.example/\(name)"))
            if let proxy = options["proxy"] { room.proxies = HTTPProxyRules(always: try HTTPProxy(parsing: proxy)) }
            room.authenticates = options["auth"] == "on"
            if let receipts = options["receipts"].flatMap({ ReceiptPolicy(rawValue: $0) }) { room.receipts = receipts }
            if let identity = options["identity"].flatMap({ DialectTraits.Identity(rawValue: $0) }) {
                room.identity = identity
            }
            if let queue = options["queue"].flatMap({ Int($0) }) { room.queueMaxMessages = queue }
            if let policy = options["when-full"].flatMap({ FullQueuePolicy(rawValue: $0) }) {
                room.queueWhenFull = policy
            }
            if let lines = options["history"].flatMap({ Int($0) }) { room.historyOnJoin = lines }
            room.relayNick = options["relay"]
            room.giveUpAfter = options["give-up"].flatMap { Int($0) }.map { .seconds($0) }
            // Pings have transcripts of their own; elsewhere they would stand between all lines.
            if options["pings"] == nil { room.ping = .zero }
            return room
        }
        let accounts = (options["accounts"] ?? "").split(separator: ",").map { text in
            let words = text.split(separator: ":").map(String.init)
            var account = AccountSettings(
                name: words[0],
                // One iteration, to save time.
                password: words.count > 1 && words[1] == "none"
                    ? nil
                    : SCRAMVerifier(
                        password: SecretBytes((words.count > 1 ? words[1] : "").utf8), salt: Array("salt".utf8),
                        iterations: 1))
            for word in words.dropFirst(2) {
                if word == "admin" {
                    account.isAdmin = true
                } else if word.hasPrefix("cert-") {
                    account.certificates.append(String(word.dropFirst("cert-".count)))
                } else if word == "relay" {
                    account.mayRelay = true
                } else if let receipts = ReceiptPolicy(rawValue: word) {
                    account.receipts = receipts
                } else {
                    account.rooms = Set(word.split(separator: "+").map(String.init))
                }
            }
            return account
        }
        var settings = BridgeSettings(
            serverName: "bridge", version: "1.0",
            motd: options["motd"].map { [$0.replacing("_", with: " ")] } ?? [], instanceID: "transcripts",
            password: options["password"].map { .plain(SecretBytes($0.utf8)) }, accounts: accounts,
            requireLogin: options["login"] == "remote" ? .remote : options["login"] == "always" ? .always : .never,
            registration: options["registration"] == "on"
                ? .everybody : options["registration"] == "local" ? .local : .nobody,
            passwordIterations: 4096,
            limits: limits, rooms: rooms, icon: options["icon"])
        if let mapping = options["casemapping"].flatMap({ IRCCasemapping(rawValue: $0) }) {
            settings.casemapping = mapping
        }
        try surround(&settings)
        return settings
    }
}

/// One line of a transcript.
enum TranscriptStep {
    /// A comment or nothing.
    case prose
    /// The output of the bridge; replaced by playing.
    case output
    case time(seconds: Double)
    case clientLine(UInt64, String)
    case clientEvent(UInt64, [String])
    case frame(room: String, String)
    case upstreamEvent(room: String, [String])
    case shutdown
    case death
    /// Of the next process.
    case casemapping(IRCCasemapping)
    case unknown

    init(_ line: String) {
        if line.isEmpty || line.hasPrefix("#") {
            self = .prose
        } else if line.hasPrefix("@t ") {
            self = Double(line.dropFirst(3)).map { .time(seconds: $0) } ?? .unknown
        } else if line == "B! shutdown" {
            self = .shutdown
        } else if line == "B! dies" {
            self = .death
        } else if line.hasPrefix("B! casemapping ") {
            self = IRCCasemapping(rawValue: String(line.dropFirst(15))).map { .casemapping($0) } ?? .unknown
        } else if line.hasPrefix("B< ") {
            self = .output
        } else {
            self = Self.addressed(line)
        }
    }

    private static func addressed(_ line: String) -> TranscriptStep {
        guard let mark = line.firstIndex(where: { "<>!".contains($0) }) else { return .unknown }
        let who = line[..<mark]
        let rest = String(line[line.index(after: mark)...].drop { $0 == " " })
        let words = rest.split(separator: " ").map(String.init)
        if who.hasPrefix("C"), let client = UInt64(who.dropFirst()) {
            switch line[mark] {
            case ">": return .clientLine(client, rest)
            case "!": return .clientEvent(client, words)
            default: return .output
            }
        }
        if who.hasPrefix("U:") {
            let room = String(who.dropFirst(2))
            switch line[mark] {
            case "<": return .frame(room: room, rest)
            case "!": return .upstreamEvent(room: room, words)
            default: return .output
            }
        }
        return .unknown
    }
}

/// How bytes and text stand in a transcript: controls and ill-formed UTF-8 as `\xNN`, repetitions as `{text*count}`.
enum TranscriptText {
    static func bytes(_ text: String) -> [UInt8] {
        var out: [UInt8] = []
        var rest = Array(expand(text).utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\\"), rest.first == UInt8(ascii: "x"),
                let value = UInt8(String(decoding: rest.dropFirst().prefix(2), as: UTF8.self), radix: 16)
            {
                out.append(value)
                rest = rest.dropFirst(3)
            } else {
                out.append(byte)
            }
        }
        return out
    }

    /// `{ab*3}` becomes `ababab`. JSON's braces never hold a `*` and digits before the next `}`.
    static func expand(_ text: String) -> String {
        guard let match = text.firstMatch(of: /\{([^{}*]+)\*([0-9]+)\}/), let count = Int(match.2) else { return text }
        return String(text[..<match.range.lowerBound]) + String(repeating: String(match.1), count: count)
            + expand(String(text[match.range.upperBound...]))
    }

    static func show(_ bytes: [UInt8]) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        var shown = ""
        for scalar in text.unicodeScalars {
            if scalar.value < 0x20 || scalar.value == 0x7F {
                let hex = String(scalar.value, radix: 16, uppercase: true)
                shown += "\\x" + (hex.count < 2 ? "0" : "") + hex
            } else {
                shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}

/// Gives generated values names: the first message id of the bridge is `<id1>`, alice's id upstream `<alice>`, the first
/// msgid `<msgid1>`. The same value always has the same name, so a transcript can use it again.
struct TranscriptNames {
    private var nameOf: [String: String] = [:]
    private var valueOf: [String: String] = [:]
    private var counts: [String: Int] = [:]

    mutating func bind(_ value: String, numbered stem: String) {
        guard nameOf[value] == nil else { return }
        counts[stem, default: 0] += 1
        bind(value, as: "<\(stem)\(counts[stem] ?? 0)>")
    }

    mutating func bind(_ value: String, as name: String) {
        guard nameOf[value] == nil, valueOf[name] == nil else { return }
        nameOf[value] = name
        valueOf[name] = value
    }

    /// Names the ids of a frame that the bridge sent.
    mutating func learn(frame: JSONValue) {
        if let sender = frame["sender_id"]?.string, let name = frame["sender_name"]?.string {
            bind(sender, as: "<\(name)>")
        }
        if let id = frame["message_id"]?.string, id.count == 36 { bind(id, numbered: "id") }
    }

    /// Names the msgid of a line to a client.
    mutating func learn(line: String) {
        guard line.hasPrefix("@"), let match = line.firstMatch(of: /[@;]msgid=([^; ]+)/) else { return }
        bind(String(match.1), numbered: "msgid")
    }

    func conceal(_ text: String) -> String {
        nameOf.reduce(text) { text, pair in
            text.contains(pair.key) ? text.replacing(pair.key, with: pair.value) : text
        }
    }

    func reveal(_ text: String) -> String {
        guard text.contains("<") else { return text }
        return valueOf.reduce(text) { $0.replacing($1.key, with: $1.value) }
    }
}
