import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

/// Lines that are written together, and answered as one: a BATCH, or one line.
struct NetworkUnit: Equatable {
    /// At least one. A label belongs to the first.
    var messages: [IRCMessage]

    init(_ messages: IRCMessage...) { self.messages = messages }

    /// Of the first line.
    var command: String { messages.first?.command ?? "" }
}

/// The name under which others see a client.
struct NetworkSource: Equatable {
    private(set) var nick: String
    var user: String
    var host: String

    /// Longer names than any server gives would leave no room for text.
    private static let maxNickBytes = 64
    private static let maxUserBytes = 32
    private static let maxHostBytes = 64

    /// As long as it may be, until the server has shown it.
    init(nick: String) {
        self.nick = nick
        user = String(repeating: "u", count: 11)
        host = String(repeating: "h", count: Self.maxHostBytes)
    }

    /// - Parameter source: `nick!user@host`.
    init?(parsing source: String) {
        guard let bang = source.firstIndex(of: "!"), let at = source[bang...].firstIndex(of: "@") else { return nil }
        nick = String(source[..<bang])
        user = String(source[source.index(after: bang)..<at])
        host = String(source[source.index(after: at)...])
        guard !nick.isEmpty else { return nil }
    }

    mutating func take(nick: String) { self.nick = nick }

    var isPlausible: Bool {
        nick.utf8.count <= Self.maxNickBytes && user.utf8.count <= Self.maxUserBytes
            && host.utf8.count <= Self.maxHostBytes
    }

    var text: String { "\(nick)!\(user)@\(host)" }
}

/// A post as units for one channel. No line exceeds what a server passes on to others.
struct NetworkRendering {
    let settings: IRCNetworkSettings
    let capabilities: NetworkCapabilities
    let support: NetworkSupport
    let source: NetworkSource
    let channel: String
    /// Names the batches, which are closed before others begin.
    let reference: String
    /// The network takes RELAYMSG in this channel, and several lines as one.
    var takesRelaymsg = true
    var takesMultiline = true

    /// Bytes of a nick in a line.
    private static let maxNickBytes = 48

    /// - Parameter isOwn: whether a message of that id is ours there.
    /// - Returns: none for what has no form there.
    func units(_ post: MirrorPost, isOwn: (String) -> Bool) -> [NetworkUnit] {
        let toolID = post.target?.toolID
        switch post.content {
        case .message(let text):
            let files = post.files.map(\.url)
            let body = ([NetworkText.irc(text)].filter { !$0.isEmpty } + files).joined(separator: "\n")
            return withFirst(speech(body, post), post)
        case .action(let text): return withFirst(speech(NetworkText.irc(text), post, isAction: true), post)
        case .edit(let text, _): return speech("* " + NetworkText.irc(text), post)
        case .notice(let text): return lines(text, Wrapping(command: "NOTICE", params: [channel]), tags: [])
        case .takenBack:
            guard capabilities.enabled.contains(.messageRedaction), let toolID, isOwn(toolID) else { return [] }
            return [NetworkUnit(IRCMessage(command: "REDACT", params: [channel, toolID]))]
        case .reaction(let emoji, let operation, _):
            let name = operation == .add ? "draft/react" : "draft/unreact"
            let reply = replyTags(to: toolID)
            guard relays(name), !reply.isEmpty else { return [] }
            let tags = reply + [IRCTag("+" + name, emoji)] + originTags(post)
            return [NetworkUnit(IRCMessage(tags: tags, command: "TAGMSG", params: [channel]))]
        case .topic(let text):
            guard settings.setsTopic else { return [] }
            let line = IRCTextSplitter.lines(text, maxLines: 1).first ?? ""
            let budget = min(
                support.topicLength ?? 390, Wrapping(command: "TOPIC", params: [channel]).budget(source.text))
            let topic = IRCTextSplitter.split(line, budget: budget).first ?? ""
            return [NetworkUnit(IRCMessage(command: "TOPIC", params: [channel, topic]))]
        }
    }

    // MARK: - Tags

    private func relays(_ tag: String) -> Bool {
        capabilities.enabled.contains(.messageTags) && support.relays(tag: tag)
    }

    private func originTags(_ post: MirrorPost) -> [IRCTag] {
        guard relays(String(OriginChain.tag.dropFirst())), !post.origin.isEmpty else { return [] }
        return [IRCTag(OriginChain.tag, post.origin.text)]
    }

    /// The id of a message that is whole; the parts of another would be taken for the same.
    private func withFirst(_ units: [NetworkUnit], _ post: MirrorPost) -> [NetworkUnit] {
        guard units.count == 1, relays(String(OriginChain.firstTag.dropFirst())), !post.origin.isEmpty else {
            return units
        }
        var unit = units[0]
        unit.messages[0].tags.append(IRCTag(OriginChain.firstTag, post.first))
        return [unit]
    }

    /// Under both names, since clients know one or the other. Source: IRCv3 reply.
    private func replyTags(to id: String?) -> [IRCTag] {
        guard let id, !id.isEmpty else { return [] }
        return ["draft/reply", "reply"].filter { relays($0) }.map { IRCTag("+" + $0, id) }
    }

    // MARK: - Texts

    /// What stands around the text of each line.
    private struct Wrapping {
        var command: String
        /// The parameters before the text.
        var params: [String]
        var prefix = ""
        var suffix = ""

        /// Bytes that the text may have, as others get the line from `source`.
        func budget(_ source: String) -> Int {
            IRCTextSplitter.budget(source: source, command: "PRIVMSG", target: params.first ?? "")
                - prefix.utf8.count - suffix.utf8.count
        }

        func message(_ text: String, tags: [IRCTag]) -> IRCMessage {
            IRCMessage(tags: tags, command: command, params: params + [prefix + text + suffix])
        }
    }

    private func speech(_ text: String, _ post: MirrorPost, isAction: Bool = false) -> [NetworkUnit] {
        var text = text
        var tags = originTags(post)
        let mark = tags.isEmpty ? post.origin.mark : ""
        if post.replyTo != nil, let target = post.target {
            let reply = replyTags(to: target.toolID)
            tags += reply
            if reply.isEmpty, !isAction { text = "\(nick(target.nick)): \(text)" }
        }
        let (open, close) = isAction ? ("\u{1}ACTION ", "\u{1}") : ("", "")
        if takesRelaymsg, settings.usesRelaymsg, capabilities.enabled.contains(.relaymsg) {
            let speaker = relayNick(post.speaker.nick)
            let wrapping = Wrapping(
                command: "RELAYMSG", params: [channel, speaker], prefix: open, suffix: mark + close)
            return lines(text, wrapping, tags: tags, as: speaker)
        }
        let speaker = Self.withoutHighlight(nick(post.speaker.nick))
        let format = isAction ? "{nick} {text}" : settings.format
        let around = format.split(separator: "{text}", maxSplits: 1, omittingEmptySubsequences: false)
            .map { $0.replacing("{nick}", with: speaker) }
        let wrapping = Wrapping(
            command: "PRIVMSG", params: [channel], prefix: open + (around.first ?? ""),
            suffix: (around.count > 1 ? around[1] : "") + mark + close)
        if takesMultiline, !isAction, capabilities.enabled.contains(.multiline) {
            return multiline(text, wrapping, tags: tags)
        }
        return lines(text, wrapping, tags: tags)
    }

    /// A line for each piece of each line that is not blank.
    ///
    /// - Parameter speaker: the nick that others see; nil: ours.
    private func lines(
        _ text: String, _ wrapping: Wrapping, tags: [IRCTag], as speaker: String? = nil
    ) -> [NetworkUnit] {
        var seen = source
        if let speaker { seen.take(nick: speaker) }
        let budget = wrapping.budget(seen.text)
        return IRCTextSplitter.lines(text).filter { !Self.isBlank($0) }
            .flatMap { IRCTextSplitter.split($0, budget: budget) }
            .map { NetworkUnit(wrapping.message($0, tags: tags)) }
    }

    /// As few batches as the limits allow; a text of one line is no batch.
    ///
    /// Source: IRCv3 multiline, "Capabilities" and "Splitting long lines".
    private func multiline(_ text: String, _ wrapping: Wrapping, tags: [IRCTag]) -> [NetworkUnit] {
        let budget = wrapping.budget(source.text)
        let texts = IRCTextSplitter.lines(text).drop(while: Self.isBlank)
        let end = texts.lastIndex { !Self.isBlank($0) }.map { $0 + 1 } ?? texts.startIndex
        let pieces = texts[..<end].flatMap { line in
            IRCTextSplitter.split(line, budget: budget).enumerated().map { (text: $1, isContinuation: $0 > 0) }
        }
        guard pieces.count > 1 else { return lines(text, wrapping, tags: tags) }
        let limits = multilineLimits
        let around = wrapping.prefix.utf8.count + wrapping.suffix.utf8.count
        var batches: [[(text: String, isContinuation: Bool)]] = []
        var byteCount = 0
        for piece in pieces {
            let size = piece.text.utf8.count + 1
            if let last = batches.indices.last, batches[last].count < limits.lines, byteCount + size <= limits.bytes {
                batches[last].append(piece)
                byteCount += size
            } else {
                batches.append([piece])
                byteCount = around + size
            }
        }
        return batches.enumerated().map { batch($1, wrapping, tags: tags, reference: "\(reference)-\($0)") }
    }

    private func batch(
        _ pieces: [(text: String, isContinuation: Bool)], _ wrapping: Wrapping, tags: [IRCTag], reference: String
    ) -> NetworkUnit {
        let head = IRCMessage(tags: tags, command: "BATCH", params: ["+" + reference, "draft/multiline", channel])
        let lines = pieces.enumerated().map { index, piece in
            var tags = [IRCTag("batch", reference)]
            if piece.isContinuation, index > 0 { tags.append(IRCTag("draft/multiline-concat")) }
            var wrapping = wrapping
            if index > 0 { wrapping.prefix = "" }
            if index < pieces.count - 1 { wrapping.suffix = "" }
            return wrapping.message(piece.text, tags: tags)
        }
        var unit = NetworkUnit(head)
        unit.messages += lines
        unit.messages.append(IRCMessage(command: "BATCH", params: ["-" + reference]))
        return unit
    }

    /// Of the capability's value; where it does not say, few enough for any server.
    private var multilineLimits: (bytes: Int, lines: Int) {
        var (bytes, lines) = (1024, 10)
        for part in (capabilities.value(of: .multiline) ?? "").split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, let number = Int(pair[1]), number > 0 else { continue }
            if pair[0] == "max-bytes" { bytes = number }
            if pair[0] == "max-lines" { lines = number }
        }
        return (bytes, lines)
    }

    private static func isBlank(_ line: String) -> Bool { line.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 } }

    // MARK: - Nicks

    private func nick(_ nick: String) -> String {
        let line = IRCTextSplitter.lines(nick, maxLines: 1).first ?? ""
        return IRCTextSplitter.split(line, budget: Self.maxNickBytes).first ?? ""
    }

    /// With a character without width behind the first letter: clients of people with the same nick do not notify them.
    private static func withoutHighlight(_ nick: String) -> String { nick.prefix(1) + "\u{200B}" + nick.dropFirst() }

    /// Source: Ergo, draft/relaymsg: one of the separators, which stand in no ordinary nick, must be in it.
    private func relayNick(_ nick: String) -> String {
        let separators = capabilities.value(of: .relaymsg).flatMap { $0.isEmpty ? nil : $0 } ?? "/"
        let separator = separators.first ?? "/"
        func clean(_ text: String, else fallback: String) -> String {
            var kept = self.nick(text).filter { !separators.contains($0) && !" ,*?.!@:".contains($0) }
            kept = String(kept.filter { IRCNames.isValidNickname("a\($0)") })
            while !kept.isEmpty, !IRCNames.isValidNickname(kept, maxBytes: Self.maxNickBytes) { kept.removeFirst() }
            return kept.isEmpty ? fallback : kept
        }
        return clean(nick, else: "user") + String(separator) + clean(settings.relaySuffix, else: "chat")
    }
}

extension IRCNetwork {
    /// The lines of a post for a network that offers nothing beyond RFC 1459, without line ends.
    package static func sample(_ post: MirrorPost, to channel: String, _ settings: IRCNetworkSettings) -> [String] {
        let rendering = NetworkRendering(
            settings: settings, capabilities: NetworkCapabilities(), support: NetworkSupport(),
            source: NetworkSource(nick: settings.nick), channel: channel, reference: "")
        return rendering.units(post) { _ in false }.flatMap(\.messages).map { message in
            var writer = ByteWriter()
            IRCEncoder.append(message, to: &writer)
            let line = writer.take().withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            return String(line.prefix { !$0.isNewline })
        }
    }
}
