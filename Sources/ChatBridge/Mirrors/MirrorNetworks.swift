import BridgeTypes
import ChatModel
import Configuration
import Mirrors
import Transport

// What crosses between rooms and the channels of IRC networks.

extension MirrorService {
    /// Arrivals that a room may make wait; a network does not say them again.
    private static let maxHeld = 1000
    /// How soon a post is tried again whose channel is not joined.
    private static let channelInterval: Duration = .seconds(1)

    // MARK: - Out

    func take(
        _ step: NetworkOutlet.Step, to channel: String, _ leg: MirrorLeg, _ mirror: Mirror, _ transport: Transport
    ) {
        var step = step
        while case .post(let post) = step {
            lastToken += 1
            leg.token = lastToken
            switch networks.post(post, to: channel, of: mirror.plan.name, token: lastToken, transport) {
            case .accepted: return
            case .omitted: step = leg.channelOutlet.delivered(id: nil)
            case .notNow:
                leg.token = nil
                let reason = networks.obstacle(mirror.plan.name, channel) ?? "too much waits for the network"
                return settle(.later(reason: reason, after: Self.channelInterval), leg, mirror, transport)
            }
        }
        leg.token = nil
        if case .settled(let outcome) = step { settle(outcome, leg, mirror, transport) }
    }

    /// An action of a network that is not of the connection alone.
    func networkReported(_ action: IRCNetworkAction, of name: String, _ transport: Transport) {
        guard let mirror = mirrors[name] else { return }
        switch action {
        case .delivered(let token, let id): answered(token, mirror, transport) { $0.delivered(id: id) }
        case .failed(let token, let reason, let isFinal):
            answered(token, mirror, transport) { $0.failed(reason, isFinal: isFinal) }
        case .arrived(let arrival, let channel):
            guard mirror.plan.configuration.comesIn,
                let room = mirror.plan.configuration.channels.first(where: { $0.channel == channel })?.room
            else { return }
            arrived(arrival, in: room, mirror, transport)
        default: break
        }
    }

    private func answered(
        _ token: UInt64, _ mirror: Mirror, _ transport: Transport, _ verb: (inout NetworkOutlet) -> NetworkOutlet.Step
    ) {
        guard let leg = mirror.legs.first(where: { $0.token == token }), case .channel(let channel) = leg.to else {
            return
        }
        take(verb(&leg.channelOutlet), to: channel, leg, mirror, transport)
    }

    // MARK: - In

    private func arrived(_ arrival: MirrorArrival, in room: String, _ mirror: Mirror, _ transport: Transport) {
        // In the order of the channel.
        if mirror.held.isEmpty, admit(arrival, to: room, mirror, transport) != .notNow { return }
        guard mirror.held.count < Self.maxHeld else {
            mirror.counts.refused += 1
            return
        }
        mirror.held.append((arrival, room))
        followAgain(transport)
    }

    /// Brings what had to wait, as far as the rooms take it.
    func bringHeld(of mirror: Mirror, _ transport: Transport) {
        guard !mirror.held.isEmpty else { return }
        var waiting: Set<String> = []
        mirror.held = mirror.held.filter { arrival, room in
            if !waiting.contains(room), admit(arrival, to: room, mirror, transport) != .notNow { return false }
            waiting.insert(room)
            return true
        }
        if !mirror.held.isEmpty { followAgain(transport) }
    }
}
