import BridgeTypes
import ChatModel
import Configuration
import Mirrors
import Transport
import WireBytes

/// Drives the mirrors' clients of IRC networks on a loop: one connection each, opened again when it is lost.
final class NetworkDriver: LoopClient {
    /// A mirror's network. By reference, because machines change in place.
    private final class Link {
        let name: String
        let plan: NetworkPlan
        let network: IRCNetwork
        var connection: ConnectionID?
        /// When the next connection is opened; nil: there is one, or none is wanted.
        var connectAt: MonotonicInstant?
        /// Since when the network is away, and why; nil: the client is registered.
        var trouble: (since: ChatTimestamp, reason: String)?
        var isReady = false
        /// Why channels are not joined.
        var obstacles: [String: (since: ChatTimestamp, reason: String)] = [:]

        init(_ name: String, _ plan: NetworkPlan, lastSeen: (_ channel: String) -> IRCNetworkPosition?) {
            (self.name, self.plan) = (name, plan)
            var settings = plan.settings
            for index in settings.channels.indices {
                settings.channels[index].lastSeen = lastSeen(settings.channels[index].name)
            }
            network = IRCNetwork(settings)
        }
    }

    private static let connectTimeout: Duration = .seconds(30)
    /// How long a QUIT may take to be sent.
    private static let linger: Duration = .seconds(2)

    private weak var owner: MirrorService?
    private let noted: (BridgeNote) -> Void
    private var links: [String: Link] = [:]
    /// Links that say QUIT. The next link of the same name begins when it has left, since it wants the same nick.
    private var leaving: [Link] = []
    private var reports: [(Link, IRCNetworkAction)] = []
    private var isReporting = false
    private var random = AnyRandomNumberGenerator(BufferedSystemRandom())

    init(note: @escaping (BridgeNote) -> Void) { noted = note }

    // MARK: - The owner's side

    /// Reports to this service from now on.
    func report(to owner: MirrorService) { self.owner = owner }

    /// Has these networks from now on, by the names of their mirrors; those that are the same go on as they are.
    func take(_ plans: [String: NetworkPlan], now: MonotonicInstant, _ transport: Transport?) {
        let before = links
        links = plans.reduce(into: [:]) { links, entry in
            let (name, plan) = entry
            let old = before[name]
            if let old, old.plan == plan { return links[name] = old }
            let link = Link(name, plan) { owner?.position(in: $0, at: plan.address, of: name) }
            if old == nil, !leaving.contains(where: { $0.name == name }) { link.connectAt = now }
            links[name] = link
        }
        for (name, link) in before where links[name] !== link {
            link.connectAt = nil
            leaving.append(link)
            guard let transport else { continue }
            link.network.stop(now: Now(transport))
            run(link, transport)
        }
    }

    func post(
        _ post: MirrorPost, to channel: String, of name: String, token: UInt64, _ transport: Transport
    ) -> IRCNetwork.Acceptance {
        guard let link = links[name] else { return .notNow }
        let acceptance = link.network.post(post, to: channel, token: token, now: Now(transport))
        run(link, transport)
        return acceptance
    }

    func typing(
        _ nick: String, _ isTyping: Bool, origin: OriginChain, in channel: String, of name: String,
        _ transport: Transport
    ) {
        guard let link = links[name] else { return }
        link.network.typing(nick, isTyping, origin: origin, in: channel, now: Now(transport))
        run(link, transport)
    }

    /// Why a channel takes nothing; nil: it is joined.
    func obstacle(_ name: String, _ channel: String) -> String? {
        guard let link = links[name] else { return "the network is given up" }
        if let trouble = link.trouble { return trouble.reason }
        guard link.isReady else { return "the connection to the network is being opened" }
        return link.obstacles[channel].map { "\(channel): \($0.reason)" }
            ?? (link.network.isReady(channel) ? nil : "\(channel) is being joined")
    }

    /// Since when a network, or one of its channels, is away, and why.
    func trouble(of name: String) -> (since: ChatTimestamp, reason: String)? {
        guard let link = links[name] else { return nil }
        if let trouble = link.trouble { return trouble }
        return link.obstacles.min { $0.key < $1.key }
            .map { (since: $0.value.since, reason: "\($0.key): \($0.value.reason)") }
    }

    /// Whether the network has what was said there earlier.
    func keepsHistory(_ name: String) -> Bool { links[name]?.network.keepsHistory == true }

    /// Has the network's history of a channel read on from a place, or from where it is. False: not now.
    func readOn(
        _ channel: String, from position: IRCNetworkPosition?, of name: String, _ transport: Transport
    ) -> Bool {
        guard let link = links[name] else { return false }
        let isTaken = link.network.readOn(channel, from: position, now: Now(transport))
        run(link, transport)
        return isTaken
    }

    /// Whether the client is registered.
    func isReady(_ name: String) -> Bool { links[name]?.isReady == true }

    // MARK: - Events of the transport

    private var all: [Link] { leaving + links.values }

    private func link(_ connection: ConnectionID) -> Link? { all.first { $0.connection == connection } }

    func owns(_ connection: ConnectionID) -> Bool { !(links.isEmpty && leaving.isEmpty) && link(connection) != nil }

    func owns(_ listener: ListenerID) -> Bool { false }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {}

    func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport) {
        guard let link = link(id) else { return }
        link.network.opened(now: Now(transport), random: &random)
        run(link, transport)
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        guard let link = link(id) else { return }
        link.network.received(bytes, now: Now(transport))
        run(link, transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        guard let link = link(id) else { return }
        closed(link, end.description, transport)
    }

    private func closed(_ link: Link, _ reason: String, _ transport: Transport) {
        link.connection = nil
        link.isReady = false
        link.obstacles = [:]
        link.network.closed(reason: reason, now: Now(transport), random: &random)
        run(link, transport)
    }

    func nextDeadline() -> MonotonicInstant? {
        all.compactMap { [$0.connectAt, $0.network.nextDeadline].compactMap(\.self).min() }.min()
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        for link in all {
            if let at = link.connectAt, at <= now {
                link.connectAt = nil
                let place = link.plan.address.place
                link.connection = transport.connect(
                    host: place.host, port: place.port, timeout: Self.connectTimeout, tls: link.plan.tls)
            }
            if let at = link.network.nextDeadline, at <= now {
                link.network.timerFired(now: Now(transport))
                run(link, transport)
            }
        }
    }

    // MARK: - Actions

    /// Carries out what a network asks for, in order. What a report causes waits until the others are done.
    private func run(_ link: Link, _ transport: Transport) {
        reports += link.network.takeActions().map { (link, $0) }
        guard !isReporting else { return }
        isReporting = true
        defer { isReporting = false }
        while !reports.isEmpty {
            let (link, action) = reports.removeFirst()
            carryOut(action, link, transport)
        }
    }

    private func carryOut(_ action: IRCNetworkAction, _ link: Link, _ transport: Transport) {
        let now = Now(transport)
        switch action {
        case .send(let bytes):
            if let id = link.connection { transport.send(id, ByteSlice(copying: bytes)) }
        case .close:
            if let id = link.connection { transport.closeAfterFlush(id, linger: Self.linger) }
        case .ready:
            link.isReady = true
            link.trouble = nil
            note(.info, "mirror-connected", "connected to the IRC network", link, ["network": "\(link.plan.address)"])
        case .channel(let channel, let state): take(state, of: channel, link, now)
        case .note(var entry):
            entry.metadata["mirror"] = link.name
            noted(entry)
        case .reconnect(let after, let reason):
            link.connectAt = transport.now + after
            if link.trouble == nil {
                link.trouble = (now.wall, reason)
                note(
                    .warn, "mirror-disconnected",
                    "no connection to the IRC network: \(reason); messages wait, and it is tried again", link,
                    ["network": "\(link.plan.address)"])
            }
        case .stopped:
            leaving.removeAll { $0 === link }
            // One that was still being opened.
            if let id = link.connection { transport.abort(id, silently: true) }
            if let next = links[link.name], !leaving.contains(where: { $0.name == link.name }) {
                next.connectAt = transport.now
            }
        case .arrived, .typing, .seen, .page, .delivered, .failed:
            // What a link that leaves has to say concerns no mirror any more.
            if links[link.name] === link { owner?.networkReported(action, of: link.name, transport) }
        }
    }

    private func take(_ state: IRCNetworkAction.ChannelState, of channel: String, _ link: Link, _ now: Now) {
        switch state {
        case .joined:
            link.obstacles[channel] = nil
            note(.info, "mirror-joined", "joined a channel of the IRC network", link, ["channel": channel])
        case .lost(let reason, _):
            link.obstacles[channel] = (now.wall, reason)
            note(
                .warn, "mirror-channel-lost", "removed from a channel of the network; joined again later", link,
                ["channel": channel, "reason": reason])
        case .waiting(let reason, _), .refused(let reason):
            let before = link.obstacles[channel]
            link.obstacles[channel] = (before?.since ?? now.wall, reason)
            guard before?.reason != reason else { return }
            note(
                .warn, "mirror-not-joined", "cannot join a channel of the IRC network: \(reason)", link,
                ["channel": channel])
        }
    }

    private func note(
        _ level: BridgeNote.Level, _ event: String, _ text: String, _ link: Link, _ metadata: NoteMetadata
    ) {
        noted(BridgeNote(level, event, text, metadata.behind(["mirror": link.name])))
    }
}
