import BridgeTypes
import IRCProtocol
import WireBytes

// Posts: from their acceptance to `delivered` or `failed`.

extension IRCNetwork {
    /// How the network shows that it has taken a line.
    private enum Confirmation { case label, echo, pong }

    private var confirmation: Confirmation {
        let enabled = connection.capabilities.enabled
        if enabled.contains(.labeledResponse) { return .label }
        return enabled.contains(.echoMessage) ? .echo : .pong
    }

    /// So long after a line a label or an echo is no longer expected.
    private static let proofAfter: Duration = .seconds(10)

    // MARK: - Verbs

    /// Whether ``post(_:to:token:now:)`` would accept a short post.
    package func isReady(_ channel: String) -> Bool {
        state == .usable && channelIndex(channel).map { channels[$0].phase == .joined } == true
            && connection.outbox.waitingLineCount < settings.maxQueuedLines
    }

    /// Says a post in a channel.
    ///
    /// - Parameter token: names it in `delivered` and `failed`; not that of another post that is accepted and not settled.
    package func post(_ post: MirrorPost, to channel: String, token: UInt64, now: Now) -> Acceptance {
        guard isReady(channel), let index = channelIndex(channel), connection.outbox.posts[token] == nil else {
            return .notNow
        }
        let units = units(of: post, in: index)
        guard !units.isEmpty else { return .omitted }
        // A long post gets its turn when nothing else waits.
        let lineCount = units.reduce(0) { $0 + $1.messages.count }
        let waitingCount = connection.outbox.waitingLineCount
        guard waitingCount == 0 || waitingCount + lineCount <= settings.maxQueuedLines else { return .notNow }
        connection.outbox.accept(post, as: units, token: token, channel: index)
        pump(now: now)
        return .accepted
    }

    /// A user in the room begins to write, or ceases to. Left out where it would delay a message.
    ///
    /// - Parameter origin: says that it is relayed: other bridges do not pass it on.
    ///
    /// Source: IRCv3 typing, "Client implementation considerations".
    package func typing(_ nick: String, _ isTyping: Bool, origin: OriginChain, in channel: String, now: Now) {
        guard state == .usable, let index = channelIndex(channel), channels[index].phase == .joined,
            connection.capabilities.enabled.contains(.messageTags), connection.support.relays(tag: "typing"),
            connection.support.relays(tag: String(OriginChain.tag.dropFirst()))
        else { return }
        guard let isActive = channels[index].types(nick, isTyping, now: now.monotonic),
            connection.outbox.grantsAside(now: now.monotonic)
        else { return }
        channels[index].typingSent(isActive, at: now.monotonic)
        let tags = [IRCTag("+typing", isActive ? "active" : "done"), IRCTag(OriginChain.tag, origin.text)]
        write(IRCMessage(tags: tags, command: "TAGMSG", params: [channels[index].settings.name]))
    }

    private func units(of post: MirrorPost, in index: Int) -> [NetworkUnit] {
        var rendering = NetworkRendering(
            settings: settings, capabilities: connection.capabilities, support: connection.support,
            source: connection.source, channel: channels[index].settings.name,
            reference: String(connection.outbox.lineCount, radix: 36))
        rendering.takesRelaymsg = !channels[index].refusesRelaymsg
        rendering.takesMultiline = connection.takesMultiline
        return rendering.units(post) { ownIDs.contains($0) }
    }

    // MARK: - Writing

    /// Sends a line of ours in its turn, before posts.
    func request(_ command: String, _ params: String...) {
        connection.outbox.append(control: IRCMessage(command: command, params: params))
    }

    /// Writes what the flood limit allows.
    func pump(now: Now) {
        connection.outbox.rest()
        guard state == .usable else { return }
        while let step = nextStep(now.monotonic), connection.outbox.grants(step.cost, now: now.monotonic) {
            switch step {
            case .control: if let message = connection.outbox.popControl() { write(message) }
            case .proof: ping(now: now)
            case .unit: writeUnit(now: now)
            }
        }
    }

    private enum Step {
        case control
        case proof
        case unit(lineCount: Int)

        var cost: Double {
            switch self {
            case .control, .proof: 1
            case .unit(let lineCount): Double(lineCount)
            }
        }
    }

    private func nextStep(_ now: MonotonicInstant) -> Step? {
        let outbox = connection.outbox
        if !outbox.control.isEmpty { return .control }
        let next = outbox.waiting.first
        if let oldest = outbox.sent.first, let newest = outbox.sent.last, connection.ping == nil {
            let isWhole = newest.token == nil || newest.token != next?.token
            if confirmation == .pong ? isWhole : now >= oldest.sentAt + Self.proofAfter { return .proof }
        }
        guard let next else { return nil }
        // Without labels and echoes, a refusal does not tell whose it is.
        if confirmation == .pong, let last = outbox.sent.last, last.token != next.token { return nil }
        return .unit(lineCount: next.unit.messages.count)
    }

    /// When a PING is due behind lines without an answer.
    var proofDeadline: MonotonicInstant? {
        guard connection.ping == nil, confirmation != .pong else { return nil }
        return connection.outbox.sent.first.map { $0.sentAt + Self.proofAfter }
    }

    private func writeUnit(now: Now) {
        var next = connection.outbox.popUnit()
        let label = confirmation == .label ? String(connection.outbox.lineCount, radix: 36) : nil
        if let label { next.unit.messages[0].tags.insert(IRCTag("label", label), at: 0) }
        next.unit.messages.forEach { write($0) }
        connection.outbox.wrote(
            NetworkOutbox.Sent(
                token: next.token, channel: next.channel, command: next.unit.command, label: label,
                line: connection.outbox.lineCount, sentAt: now.monotonic))
    }

    private func ping(now: Now) {
        write("PING", String(connection.outbox.lineCount))
        connection.ping = (connection.outbox.lineCount, now.monotonic)
    }

    // MARK: - Answers

    /// Takes a line as the answer to one of ours, where it is one.
    func settle(by message: IRCMessage) {
        let sent = connection.outbox.sent
        if let label = message.tag("label")?.value {
            if let index = sent.firstIndex(where: { $0.label == label }) { settle(index, by: message) }
        } else if let verb = message.command == "FAIL" ? message.params.first : unknownCommand(message) {
            if let index = sent.firstIndex(where: { $0.label == nil && $0.command == verb }) {
                settle(index, by: message)
            }
        } else if NetworkSpeechRefusal.reading(message) != nil, message.params.count > 1,
            let channel = channelIndex(message.params[1]),
            let index = sent.firstIndex(where: { $0.label == nil && $0.channel == channel })
        {
            settle(index, by: message)
        }
    }

    /// 421 ERR_UNKNOWNCOMMAND names it.
    private func unknownCommand(_ message: IRCMessage) -> String? {
        message.command == IRCNumeric.errUnknownCommand.code && message.params.count > 1 ? message.params[1] : nil
    }

    /// One of our messages came back.
    func echoReceived(_ message: IRCMessage, in channel: Int) {
        let id = message.msgid
        if let id { ownIDs.insert(id) }
        guard confirmation == .echo, message.tag("+typing") == nil,
            let index = connection.outbox.sent.firstIndex(where: { $0.channel == channel })
        else { return }
        confirmed(index, id: id)
    }

    /// The network has read every line before the PING.
    func pongReceived() {
        guard let ping = connection.ping else { return }
        connection.ping = nil
        while let oldest = connection.outbox.sent.first, oldest.line <= ping.line { confirmed(0, id: nil) }
    }

    private func settle(_ index: Int, by message: IRCMessage) {
        let known = NetworkSpeechRefusal.reading(message)
        let isRefusal = message.command == "FAIL" || message.command.first.map { "45".contains($0) } == true
        guard known != nil || isRefusal else {
            if message.command != "WARN", message.command != "NOTE" {
                confirmed(index, id: message.msgid)
            }
            return
        }
        let sent = connection.outbox.sent[index]
        let reason = PrintableText.of(message.params.last ?? "")
        switch sent.command {
        case "RELAYMSG" where Self.isAboutRelaying(message): relaymsgRefused(sent, reason)
        case "BATCH" where message.command == "FAIL": connection.takesMultiline = false
        default:
            let refusal = known ?? (reason.isEmpty ? "the network refuses it" : reason, isFinal: true)
            _ = connection.outbox.answered(index)
            if let token = sent.token { fail(token, refusal.reason, isFinal: refusal.isFinal) }
            return
        }
        _ = connection.outbox.answered(index)
        if let token = sent.token { sayAgain(token) }
    }

    /// A refusal of RELAYMSG itself, and not of the words.
    private static func isAboutRelaying(_ message: IRCMessage) -> Bool {
        message.command == "FAIL" ? message.params.dropFirst().first != "BLANK_MSG" : message.command != "404"
    }

    private func relaymsgRefused(_ sent: NetworkOutbox.Sent, _ reason: String) {
        guard !channels[sent.channel].refusesRelaymsg else { return }
        channels[sent.channel].relaymsgRefused()
        note(
            .info, "mirror-relaymsg-refused", "the network refuses RELAYMSG; nicks stand in front of the messages",
            ["channel": channels[sent.channel].settings.name, "reason": reason])
    }

    /// Writes a post in another form, since the network refuses the one before.
    private func sayAgain(_ token: UInt64) {
        guard let progress = connection.outbox.settle(token) else { return }
        let units = units(of: progress.post, in: progress.channel)
        connection.outbox.insertAgain(progress.post, as: units, token: token, channel: progress.channel)
    }

    private func confirmed(_ index: Int, id: String?) {
        let sent = connection.outbox.answered(index)
        if let id { ownIDs.insert(id) }
        if let done = connection.outbox.confirm(sent, id: id) { emit(.delivered(done.token, id: done.id)) }
    }

    private func fail(_ token: UInt64, _ reason: String, isFinal: Bool) {
        guard connection.outbox.settle(token) != nil else { return }
        emit(.failed(token, reason: reason, isFinal: isFinal))
    }

    /// The posts of a channel that we are no longer in, or of all.
    func failAll(_ reason: String, in channel: Int? = nil) {
        let lost = connection.outbox.posts.filter { channel == nil || $0.value.channel == channel }
        for token in lost.keys.sorted() { fail(token, reason, isFinal: false) }
    }

    // MARK: - Liveness

    func checkLiveness(now: Now) {
        guard now.monotonic >= livenessDeadline else { return }
        if connection.ping == nil { ping(now: now) } else { end("the network did not answer a PING") }
    }

    var livenessDeadline: MonotonicInstant {
        connection.ping.map { $0.sentAt + settings.pingTimeout } ?? connection.receivedAt + settings.pingInterval
    }
}
