import BridgeCore
import ChatModel
import Configuration
import JSONText
import Mirrors
import WireBytes

/// How a mirror is, for the operator.
struct MirrorStatus: Equatable {
    enum State: String, CaseIterable {
        /// Not all of its rooms are open yet.
        case starting
        /// There is no connection to its IRC network yet, or none again.
        case connecting
        /// Nothing waits.
        case idle
        /// Messages are on their way.
        case posting
        /// The tool takes nothing now.
        case away
        /// The tool has no place for it any more.
        case closed
        /// It only takes what the tool brings.
        case listening
    }

    var name: String
    var type: String
    var rooms: [String]
    var state: State
    /// Since when the tool takes nothing, and why.
    var since: ChatTimestamp?
    var reason: String?
    var standing: MirrorQueue.Standing
    var arrived: Int
    var arrivalsRefused: Int

    /// - Parameter networks: has the mirror's connection, where it is one of an IRC network.
    init(_ mirror: Mirror, _ networks: NetworkDriver) {
        let configuration = mirror.plan.configuration
        name = configuration.name
        type = configuration.kind?.rawValue ?? ""
        rooms = configuration.roomNames
        standing = mirror.standing
        arrived = mirror.counts.taken
        arrivalsRefused = mirror.counts.refused
        let trouble = networks.trouble(of: name)
        since = standing.failure?.since ?? trouble?.since
        reason = standing.failure?.reason ?? trouble?.reason
        state =
            if mirror.plan.network != nil, !networks.isReady(name) {
                .connecting
            } else if trouble != nil {
                .away
            } else if mirror.legs.isEmpty {
                .listening
            } else if mirror.legs.contains(where: { $0.queue == nil }) {
                .starting
            } else if let failure = standing.failure {
                failure.isClosed ? .closed : .away
            } else {
                standing.waiting == 0 ? .idle : .posting
            }
    }

    func append(to writer: inout JSONWriter) {
        writer.beginObject()
        for (key, text) in [("name", name), ("type", type), ("state", state.rawValue)] {
            writer.key(text: key)
            writer.string(text)
        }
        writer.texts("rooms", rooms)
        writer.key("since")
        writer.time(since)
        writer.key("reason")
        writer.text(reason)
        for (key, number) in [
            ("posted", standing.posted), ("refused", standing.refused), ("given_up", standing.givenUp),
            ("retries", standing.retries), ("waiting", Int(clamping: standing.waiting)), ("arrived", arrived),
            ("arrivals_refused", arrivalsRefused),
        ] {
            writer.key(text: key)
            writer.integer(Int64(number))
        }
        writer.endObject()
    }
}

extension BridgeHost {
    var mirrorStatus: [MirrorStatus] {
        mirrors.map { service in service.all.map { MirrorStatus($0, service.networks) } } ?? []
    }
}
