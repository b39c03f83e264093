import BridgeCore
import BridgeTypes
import ChatModel
import Configuration
import HTTPProtocol
import Mirrors
import Rooms
import Transport
import WireBytes

// What tools post to mirrors' paths.
//
// A tool gets its answer when all of its request is with the store, so that what was answered is not lost; it comes
// again after any other answer, and is recognised by its id.

extension MirrorService {
    /// Longest request of a tool, in bytes; the longest messages of the tools are a tenth.
    static let maxHookBytes = 256 * 1024

    /// The paths of mirrors, as they are at the time of a request.
    var hookRoute: HTTPRoute {
        HTTPRoute(
            method: "POST", path: "/*", isKnown: { [weak self] in self?.mirror(at: $0) != nil },
            maxBodyBytes: Self.maxHookBytes
        ) { [weak self] exchange, transport in
            guard let self, let mirror = mirror(at: exchange.target.path) else {
                return exchange.respond(404, "not found\n", transport: transport)
            }
            receive(exchange, mirror, transport)
        }
    }

    private func mirror(at path: String) -> Mirror? {
        mirrors.values.first { $0.plan.configuration.path == path && !path.isEmpty }
    }

    private func receive(_ exchange: HTTPExchange, _ mirror: Mirror, _ transport: Transport) {
        guard let form = mirror.plan.form, let secret = mirror.plan.secret else {
            return exchange.respond(404, "not found\n", transport: transport)
        }
        let now = Now(transport).wall
        let hook = HookRequest(
            method: exchange.head.method, query: exchange.target.query ?? "", headers: exchange.head.headers,
            body: exchange.body, at: now)
        let reading = form.read(hook, secret: secret)
        if case .unproven(let reason) = reading {
            return refuse(401, reason, "the request is not proven to come from the tool\n", exchange, mirror, transport)
        }
        // Of what is proven alone: others cannot use up the share of the tool.
        guard mirror.admits(now: transport.now) else {
            return exchange.respond(
                429, headers: HTTPHeaders([("Retry-After", "1"), ("Content-Type", "text/plain; charset=utf-8")]),
                body: Array("too many requests\n".utf8), transport: transport)
        }
        switch reading {
        case .unproven: break
        case .answer(let text, let type): exchange.respond(200, type: type, text, transport: transport)
        case .malformed(let reason): refuse(400, reason, reason + "\n", exchange, mirror, transport)
        case .arrivals(let arrivals, let answer): take(arrivals, answer: answer, exchange, mirror, transport)
        }
    }

    private func refuse(
        _ status: Int, _ reason: String, _ text: String, _ exchange: HTTPExchange, _ mirror: Mirror,
        _ transport: Transport
    ) {
        mirror.refused()
        noteRefusal(reason, mirror, exchange.visitor, transport)
        exchange.respond(status, text, transport: transport)
    }

    private func take(
        _ arrivals: [MirrorArrival], answer: String?, _ exchange: HTTPExchange, _ mirror: Mirror, _ transport: Transport
    ) {
        for arrival in arrivals {
            guard let room = room(for: arrival, mirror) else {
                return refuse(
                    400, "no room of the mirror is called \"\(PrintableText.of(arrival.channel ?? "", maxBytes: 64))\"",
                    "there is no such room\n", exchange, mirror, transport)
            }
            switch admit(arrival, to: room, mirror, transport) {
            case .taken, .needless: continue
            case .notNow:
                // The tool comes again; what was taken of the request is known by its id then.
                return exchange.respond(
                    503, headers: HTTPHeaders([("Retry-After", "5"), ("Content-Type", "text/plain; charset=utf-8")]),
                    body: Array("not now\n".utf8), transport: transport)
            }
        }
        let refusals = mirror.refusals
        whenStored(transport) { isStored, transport in
            // What was refused is not known any more, and the rest of it is, when the tool comes again.
            guard isStored, mirror.refusals == refusals else {
                return exchange.respond(503, "not stored\n", transport: transport)
            }
            guard let answer else { return exchange.respond(200, "", transport: transport) }
            exchange.respond(200, type: "application/json", answer, transport: transport)
        }
    }

    /// What became of something that was said elsewhere.
    enum Admission {
        case taken
        /// It came before, or is not to cross.
        case needless
        case notNow
    }

    func admit(_ arrival: MirrorArrival, to room: String, _ mirror: Mirror, _ transport: Transport) -> Admission {
        // What it has is not known before.
        guard bridge.isReady(room) else { return .notNow }
        guard !isKnown(arrival, in: room, mirror), isWanted(arrival, in: room, mirror) else { return .needless }
        guard bring(arrival, to: room, mirror, transport) else { return .notNow }
        insertFirst(arrival.first, in: room)
        mirror.took(arrival.id)
        return .taken
    }

    /// Of several rooms the one that the tool names.
    private func room(for arrival: MirrorArrival, _ mirror: Mirror) -> String? {
        let rooms = mirror.plan.configuration.rooms
        guard rooms.count > 1, let channel = arrival.channel else { return rooms.first }
        return rooms.first { $0 == channel || "#" + $0 == channel }
    }

    /// It came before, by this way or another, or it is what the room itself has said.
    private func isKnown(_ arrival: MirrorArrival, in room: String, _ mirror: Mirror) -> Bool {
        if hasFirst(arrival.first, in: room) { return true }
        guard let id = arrival.id else { return false }
        return mirror.hasTaken(id) || bridge.quotation(of: id, in: room) != nil
    }

    private func isWanted(_ arrival: MirrorArrival, in room: String, _ mirror: Mirror) -> Bool {
        let text =
            switch arrival.content {
            case .message(let words), .action(let words), .edit(let words, _): words.plain
            case .takenBack, .reaction: ""
            }
        return !arrival.origin.contains(mirror.plan.place) && !arrival.origin.isFull
            && !arrival.origin.contains(OriginChain.Place(room: room, of: installation))
            && mirror.plan.filter.passes(nick: arrival.speaker, text: text)
    }

    /// False: not now.
    private func bring(_ arrival: MirrorArrival, to room: String, _ mirror: Mirror, _ transport: Transport) -> Bool {
        guard let key = bridge.storedKey(of: room) else { return false }
        // A tool that has no ids of its own for our messages names ours.
        func msgid(_ id: String?) -> String? {
            guard let id else { return nil }
            return mirror.ids.msgid(of: id, in: key) ?? (bridge.quotation(of: id, in: room) == nil ? nil : id)
        }
        let name = bridge.relayedName(arrival.speaker, mirror.plan.configuration.nickTemplate)
        var text: String
        var answered = msgid(arrival.replyTo)
        switch arrival.content {
        case .message(let words): text = words.written(as: .irc).joined()
        case .action(let words): text = "\u{1}ACTION \(words.written(as: .irc).joined())\u{1}"
        case .edit(let words, let original):
            // No user there changes what was said here.
            answered = msgid(original)
            guard answered.map({ mirror.ids.isTheirs($0, in: key) }) ?? true else { return true }
            text = "* " + words.written(as: .irc).joined()
        case .takenBack(let original):
            guard let original = msgid(original), mirror.ids.isTheirs(original, in: key) else { return true }
            return perform(transport) { $0.takeBack(original, in: room, now: $1) } != nil
        case .reaction(let emoji, let operation, let original):
            guard let original = msgid(original) else { return true }
            let tags = mirror.tags(arrival.origin, id: nil, first: arrival.first, isBot: false)
            return perform(transport) {
                $0.react(emoji, operation, on: original, as: name, tags: tags, in: room, now: $1)
            } != nil
        }
        for file in arrival.files where !text.contains(file.url) { text += (text.isEmpty ? "" : "\n") + file.url }
        guard !MessageText.cleanBody(text).allSatisfy(\.isWhitespace) else { return true }
        let message = RelayedMessage(
            name: name, text: text,
            annotations: mirror.tags(arrival.origin, id: arrival.id, first: arrival.first, isBot: arrival.isBot),
            replyTo: answered,
            mark: arrival.origin.passing(mirror.plan.place).mark)
        return perform(transport) { $0.relay(message, in: room, by: mirror.plan.name, now: $1) } == .done
    }
}
