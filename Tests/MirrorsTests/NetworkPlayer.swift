import BridgeTestSupport
import BridgeTypes
import ChatModel
import IRCProtocol
import Testing
import WireBytes

@testable import Mirrors

/// Plays a conversation with a network and writes down what came of it, in the same form.
///
///     open                             the connection is open
///     usable CAPS | TOKENS             the same, registered and in the channels; nothing of that is shown
///     < line                           the network says it
///     > line                           we say it
///     = …                              an action
///     + 30                             so many seconds pass, with all that is due in them
///     say 1 #chat alice: words         a post with that token; `\n` is a line end
///     say 1 #chat alice reply=id of=bob kind=edit origin=0123ab: words
///     typing #chat alice yes           somebody writes, or ceases to
///     on #chat, on #chat m1            history is read on, from where it was, or from that message
///     lost, stop                       the connection ends; we leave
///
/// U+200B shows as `·`, U+0001 as `^A`, and a mark as its places in braces.
struct NetworkPlayer {
    var network: IRCNetwork
    private(set) var clock = ManualClock()
    private var random = SeededGenerator(seed: 1)
    private(set) var transcript: [String] = []

    init(_ settings: IRCNetworkSettings) { network = IRCNetwork(settings) }

    static func settings(
        _ channels: String..., change: (inout IRCNetworkSettings) -> Void = { _ in }
    ) -> IRCNetworkSettings {
        var settings = IRCNetworkSettings(
            nick: "bridge", channels: channels.map { IRCNetworkSettings.Channel($0) })
        change(&settings)
        return settings
    }

    /// Plays the inputs of a script, and returns it with the outputs that there were.
    mutating func play(_ script: String) -> String {
        transcript = []
        for line in script.split(separator: "\n") where !line.hasPrefix(">") && !line.hasPrefix("=") {
            transcript.append(String(line))
            perform(String(line))
        }
        return transcript.joined(separator: "\n")
    }

    mutating func perform(_ line: String) {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let rest = words.count > 1 ? words[1] : ""
        switch words[0] {
        case "open": network.opened(now: clock.now, random: &random)
        case "usable": register(rest)
        case "<": receive(Array((Self.written(rest) + "\r\n").utf8))
        case "+": advance(.milliseconds(Int((Double(rest) ?? 0) * 1000)))
        case "say": say(rest)
        case "typing":
            let parts = rest.split(separator: " ").map(String.init)
            let origin = OriginChain([OriginChain.Place("0123ab")].compactMap(\.self))
            network.typing(parts[1], parts[2] == "yes", origin: origin, in: parts[0], now: clock.now)
        case "on":
            let parts = rest.split(separator: " ").map(String.init)
            let position = parts.dropFirst().first.map { IRCNetworkPosition(msgid: $0, time: clock.now.wall) }
            _ = network.readOn(parts[0], from: position, now: clock.now)
        case "lost": network.closed(reason: "reset by peer", now: clock.now, random: &random)
        case "stop": network.stop(now: clock.now)
        default: Issue.record("unknown line: \(line)")
        }
        show()
    }

    mutating func receive(_ bytes: [UInt8]) { bytes.withUnsafeBytes { network.received($0, now: clock.now) } }

    /// Lets time pass, and calls the network when it asked for it.
    mutating func advance(_ duration: Duration) {
        let end = clock.now.monotonic + duration
        for _ in 0..<10_000 {
            guard let due = network.nextDeadline, due <= end else { break }
            clock.move(to: due)
            network.timerFired(now: clock.now)
            show()
        }
        clock.move(to: end)
    }

    /// - Parameter terms: capabilities as in LS, and tokens of 005 behind a `|`.
    private mutating func register(_ terms: String) {
        let parts = terms.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
        let names = parts[0].split(separator: " ").map { String($0.prefix { $0 != "=" }) }.joined(separator: " ")
        network.opened(now: clock.now, random: &random)
        var lines = ["CAP * LS :\(parts[0])"]
        if !names.isEmpty { lines.append("CAP * ACK :\(names)") }
        lines += [
            ":s 001 bridge :Welcome", ":s 005 bridge CHANTYPES=# \(parts.count > 1 ? parts[1] : "") :are supported",
            ":s 422 bridge :No MOTD",
        ]
        lines += network.settings.channels.map { ":bridge!u@host JOIN \($0.name)" }
        lines.forEach { receive(Array(($0 + "\r\n").utf8)) }
        _ = network.takeActions()
        // The bucket is full again.
        advance(.seconds(20))
        _ = network.takeActions()
    }

    private mutating func say(_ words: String) {
        let parts = words.split(separator: ":", maxSplits: 1).map(String.init)
        let head = parts[0].split(separator: " ").map(String.init)
        let text = Self.written(parts.count > 1 ? String(parts[1].dropFirst()) : "")
        var options: [String: String] = [:]
        for option in head.dropFirst(3) {
            let pair = option.split(separator: "=", maxSplits: 1).map(String.init)
            options[pair[0]] = pair[1]
        }
        let marked = MarkedText(plain: text)
        let content: MirrorPost.Content =
            switch options["kind"] {
            case "action": .action(marked)
            case "edit": .edit(marked, of: "m1")
            case "notice": .notice(text)
            case "topic": .topic(text)
            case "redact": .takenBack("m1")
            case "react": .reaction(text, .add, on: "m1")
            case "unreact": .reaction(text, .remove, on: "m1")
            default: .message(marked)
            }
        let target = options["of"].map { MirrorPost.Target(toolID: options["reply"], nick: $0, excerpt: "") }
        let post = MirrorPost(
            content, room: "room", channel: "#room", msgid: "m2", at: clock.now.wall,
            speaker: MirrorPost.Speaker(nick: head[2]), replyTo: target == nil ? nil : "m1", target: target,
            origin: options["origin"].flatMap { OriginChain($0) } ?? OriginChain())
        let acceptance = network.post(post, to: head[1], token: UInt64(head[0]) ?? 0, now: clock.now)
        if acceptance != .accepted { transcript.append("= \(head[0]) \(acceptance)") }
    }

    // MARK: - Showing

    private mutating func show() {
        for action in network.takeActions() { transcript += Self.lines(action, at: clock.now) }
    }

    static func lines(_ action: IRCNetworkAction, at now: Now) -> [String] {
        switch action {
        case .send(let bytes):
            String(decoding: bytes, as: UTF8.self).split(separator: "\r\n").map { "> " + shown(String($0)) }
        case .close: ["= close"]
        case .ready: ["= ready"]
        case .channel(let name, .joined): ["= \(name) joined"]
        case .channel(let name, .lost(let reason, let until)):
            ["= \(name) lost for \(seconds(until.monotonic - now.monotonic)) s: \(reason)"]
        case .channel(let name, .waiting(let reason, let until)):
            ["= \(name) waits \(seconds(until.monotonic - now.monotonic)) s: \(reason)"]
        case .channel(let name, .refused(let reason)): ["= \(name) refused: \(reason)"]
        case .arrived(let arrival, let channel): ["= \(channel) \(shown(arrival))"]
        case .typing(let nick, let isTyping, let channel): ["= \(channel) \(nick) \(isTyping ? "writes" : "ceases")"]
        case .seen(let channel, let position): ["= \(channel) seen \(position.msgid ?? "-")"]
        case .page(let channel): ["= \(channel) page"]
        case .delivered(let token, let id): ["= \(token) delivered" + (id.map { " as \($0)" } ?? "")]
        case .failed(let token, let reason, let isFinal): ["= \(token) failed\(isFinal ? " for good" : ""): \(reason)"]
        case .note(let note): ["= note \(note.level) \(note.event)" + (note.metadata["reason"].map { ": \($0)" } ?? "")]
        case .reconnect(let after, let reason): ["= reconnect in about \(roughly(after)) s: \(reason)"]
        case .stopped: ["= stopped"]
        }
    }

    private static func shown(_ arrival: MirrorArrival) -> String {
        var text =
            switch arrival.content {
            case .message(let marked): "<\(arrival.speaker)> \(NetworkText.irc(marked))"
            case .action(let marked): "* \(arrival.speaker) \(NetworkText.irc(marked))"
            case .edit(let marked, let id): "<\(arrival.speaker)> edits \(id): \(NetworkText.irc(marked))"
            case .takenBack(let id): "\(arrival.speaker) takes back \(id)"
            case .reaction(let emoji, let operation, let id): "\(arrival.speaker) \(operation) \(emoji) on \(id)"
            }
        if let id = arrival.id { text += " id=\(id)" }
        if let replyTo = arrival.replyTo { text += " reply=\(replyTo)" }
        if !arrival.origin.isEmpty { text += " origin=\(arrival.origin.text)" }
        if arrival.isBot { text += " bot" }
        return shown(text)
    }

    private static func shown(_ text: String) -> String {
        let split = OriginChain.split(text)
        let text = split.chain.isEmpty ? text : split.text + "{\(split.chain.text)}"
        return text.replacing("\u{200B}", with: "·").replacing("\u{1}", with: "^A").replacing("\n", with: "\\n")
    }

    private static func written(_ text: String) -> String {
        text.replacing("·", with: "\u{200B}").replacing("^A", with: "\u{1}").replacing("\\n", with: "\n")
    }

    private static func seconds(_ duration: Duration) -> Int64 {
        (duration.wholeNanoseconds + 500_000_000) / 1_000_000_000
    }

    /// The middle of the back-off that the jitter spread.
    private static func roughly(_ duration: Duration) -> Int64 {
        let middles: [Int64] = [2, 4, 8, 16, 32, 64, 120, 128, 256, 300, 900]
        let exact = Double(duration.wholeNanoseconds) / 1e9
        return middles.min { abs(Double($0) - exact) < abs(Double($1) - exact) } ?? 0
    }
}
