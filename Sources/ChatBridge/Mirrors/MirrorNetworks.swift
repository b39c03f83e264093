import BridgeCore
import BridgeTypes
import ChatModel
import Configuration
import Mirrors
import Transport

// What crosses between rooms and the channels of IRC networks.

extension MirrorService {
    /// How soon a post is tried again whose channel is not joined.
    private static let channelInterval: Duration = .seconds(1)

    // MARK: - Out

    func take(
        _ step: NetworkOutlet.Step, to channel: String, _ leg: MirrorLeg, _ mirror: Mirror, _ transport: Transport
    ) {
        var step = step
        while case .post(let post) = step {
            let token = nextToken()
            leg.handedOver(token)
            switch networks.post(post, to: channel, of: mirror.plan.name, token: token, transport) {
            case .accepted: return
            case .omitted: step = leg.delivered(id: nil)
            case .notNow:
                leg.handedOver(nil)
                let reason = networks.obstacle(mirror.plan.name, channel) ?? "too much waits for the network"
                return settle(.later(reason: reason, after: Self.channelInterval), leg, mirror, transport)
            }
        }
        leg.handedOver(nil)
        if case .settled(let outcome) = step { settle(outcome, leg, mirror, transport) }
    }

    /// A user in a room begins to write, or ceases to.
    func typed(_ nick: String, _ isTyping: Bool, in room: RoomID, _ transport: Transport) {
        guard let name = bridge.end(of: room)?.name else { return }
        for mirror in mirrors.values where mirror.plan.configuration.goesOut {
            guard let channel = mirror.plan.channel(of: name), mirror.plan.filter.passes(nick: nick, text: "") else {
                continue
            }
            let origin = OriginChain().passing(OriginChain.Place(room: name, of: installation))
            networks.typing(nick, isTyping, origin: origin, in: channel, of: mirror.plan.name, transport)
        }
    }

    /// An action of a network that is not of the connection alone.
    func networkReported(_ action: IRCNetworkAction, of name: String, _ transport: Transport) {
        guard let mirror = mirrors[name] else { return }
        switch action {
        case .delivered(let token, let id): answered(token, mirror, transport) { $0.delivered(id: id) }
        case .failed(let token, let reason, let isFinal):
            answered(token, mirror, transport) { $0.failed(reason, isFinal: isFinal) }
        case .arrived(let arrival, let channel):
            if let room = mirror.plan.room(of: channel) { hold(.arrival(arrival), in: room, mirror, transport) }
        case .typing(let nick, let isTyping, let channel):
            guard let room = mirror.plan.room(of: channel), mirror.plan.filter.passes(nick: nick, text: "") else {
                return
            }
            let name = bridge.relayedName(nick, mirror.plan.configuration.nickTemplate)
            perform(transport) { $0.typed(name, isTyping, in: room, now: $1) }
        case .seen(let channel, let position):
            if let room = mirror.plan.room(of: channel) { hold(.position(position), in: room, mirror, transport) }
        case .page(let channel):
            if let room = mirror.plan.room(of: channel) { pageRead(room, mirror, transport) }
        default: break
        }
    }

    private func answered(
        _ token: UInt64, _ mirror: Mirror, _ transport: Transport, _ verb: (MirrorLeg) -> NetworkOutlet.Step
    ) {
        guard let leg = mirror.legs.first(where: { $0.token == token }), case .channel(let channel) = leg.to else {
            return
        }
        take(verb(leg), to: channel, leg, mirror, transport)
    }

    // MARK: - In

    private static func place(_ channel: String, at address: IRCNetworkAddress) -> String { "\(address) \(channel)" }

    /// The last message of a channel that a room has.
    func position(in channel: String, at address: IRCNetworkAddress, of mirror: String) -> IRCNetworkPosition? {
        bookmark(Self.place(channel, at: address), of: mirror).flatMap(IRCNetworkPosition.init)
    }

    private func hold(_ item: HeldArrivals.Item, in room: String, _ mirror: Mirror, _ transport: Transport) {
        guard !mirror.held.overflowed.contains(room) else { return }
        // In the order of the channel.
        if !mirror.held.contains(room), take(item, in: room, mirror, transport) { return }
        if !mirror.held.append(item, in: room) {
            if networks.keepsHistory(mirror.plan.name) {
                mirror.held.overflow(room)
            } else if case .arrival = item {
                mirror.refused()
            }
        }
        followAgain(transport)
    }

    /// False: not now.
    private func take(
        _ item: HeldArrivals.Item, in room: String, _ mirror: Mirror, _ transport: Transport
    ) -> Bool {
        switch item {
        case .arrival(let arrival): return admit(arrival, to: room, mirror, transport) != .notNow
        case .position(let position):
            if let address = mirror.plan.network?.address, let channel = mirror.plan.channel(of: room),
                self.position(in: channel, at: address, of: mirror.plan.name) == nil
            {
                // Nothing of the channel is in the room yet.
                setBookmark(Self.place(channel, at: address), of: mirror.plan.name, to: position.text, transport)
            }
            mirror.reached(position, in: room)
            storePlaces(of: mirror, transport)
            return true
        }
    }

    /// Stores the places in the channels behind the messages themselves: what is not stored when the process is killed is
    /// read again.
    private func storePlaces(of mirror: Mirror, _ transport: Transport) {
        guard let places = mirror.takePlaces() else { return }
        let refusals = mirror.refusals
        whenStored(transport) { [weak self, weak mirror] isStored, transport in
            guard let self, let mirror, mirrors[mirror.plan.name] === mirror, let address = mirror.plan.network?.address
            else { return }
            mirror.placesAnswered()
            for (room, position) in places where mirror.refusals[room] == refusals[room] {
                guard isStored else {
                    mirror.keepPlace(position, in: room)
                    continue
                }
                guard let channel = mirror.plan.channel(of: room) else { continue }
                setBookmark(Self.place(channel, at: address), of: mirror.plan.name, to: position.text, transport)
            }
            guard isStored else { return }
            storePlaces(of: mirror, transport)
        }
    }

    /// A message of a channel could not be stored: it is read again, and all that was said behind it.
    func readAgain(_ room: String, _ mirror: Mirror, _ transport: Transport) {
        mirror.forgetPlace(in: room)
        guard mirror.plan.network != nil, networks.keepsHistory(mirror.plan.name) else { return }
        mirror.held.refuse(room)
        followAgain(transport)
    }

    /// Brings what had to wait, as far as the rooms take it.
    func bringHeld(of mirror: Mirror, _ transport: Transport) {
        guard !mirror.held.isEmpty else { return }
        var waiting: Set<String> = []
        var index = 0
        while mirror.held.items.indices.contains(index) {
            let (item, room) = mirror.held.items[index]
            let mayTake = !waiting.contains(room) && !mirror.held.refused.contains(room)
            if mayTake, take(item, in: room, mirror, transport) {
                mirror.held.remove(at: index)
            } else {
                waiting.insert(room)
                index += 1
            }
        }
        for room in mirror.held.unread where mirror.held.refused.contains(room) || !waiting.contains(room) {
            readOn(room, mirror, transport)
        }
        if !mirror.held.isEmpty { followAgain(transport) }
    }

    /// A page of a channel's history is complete.
    private func pageRead(_ room: String, _ mirror: Mirror, _ transport: Transport) {
        guard mirror.held.contains(room) || mirror.held.unread.contains(room) else {
            return readOn(room, mirror, transport)
        }
        mirror.held.readLater(room)
        followAgain(transport)
    }

    private func readOn(_ room: String, _ mirror: Mirror, _ transport: Transport) {
        guard let address = mirror.plan.network?.address, let channel = mirror.plan.channel(of: room) else { return }
        // What could not be taken is behind the last place that is stored.
        let position =
            mirror.held.overflowed.contains(room) ? position(in: channel, at: address, of: mirror.plan.name) : nil
        guard networks.readOn(channel, from: position, of: mirror.plan.name, transport) else { return }
        mirror.held.isRead(room)
    }
}
