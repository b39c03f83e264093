import BridgeCore
import ChatModel
import HTTPProtocol
import JSONText
import Upstream

/// Routes for supervisors: liveness and readiness.
///
/// Neither needs a token, so they reveal only names of rooms and numbers of attempts: no address, no reason in a
/// backend's words.
enum HealthRoutes {
    /// - Parameter storage: how the store is; asked on the loop.
    static func routes(bridge: Bridge, storage: @escaping () -> StoreCondition = { .sound }) -> [HTTPRoute] {
        [
            // Answered on the loop that does all the work: while it turns there is an answer. It must not look at the
            // backends, or one outage of theirs would restart every bridge.
            HTTPRoute(method: "GET", path: "/healthz", isVital: true) { exchange, transport in
                exchange.respond(
                    200, headers: .notStored("text/plain; charset=utf-8"), body: Array("ok\n".utf8),
                    transport: transport)
            },
            HTTPRoute(method: "GET", path: "/readyz", isVital: true) { exchange, transport in
                let readiness = Readiness(
                    rooms: bridge.roomStates, isRunning: bridge.isRunning, storage: storage(),
                    isStrict: exchange.target.hasQueryField("strict"))
                exchange.respond(
                    readiness.isReady ? 200 : 503, headers: .notStored("application/json"), body: readiness.json,
                    transport: transport)
            },
        ]
    }
}

/// Whether work may be sent here, and if not, why.
struct Readiness: Equatable {
    /// Sentences without a full stop; empty when ready.
    var reasons: [String]

    var isReady: Bool { reasons.isEmpty }

    /// - Parameter isStrict: every room counts that is not up. Without, a room counts until it was up for the first time,
    ///   and once it has failed: other outages are the backend's, and removing the relay from service does not help.
    ///   Rooms that connect on demand never count: clients could otherwise take the relay out of service. Nor do
    ///   those that an administrator disabled.
    init(rooms: [RoomState], isRunning: Bool, storage: StoreCondition = .sound, isStrict: Bool) {
        reasons = isRunning ? [] : ["stopping"]
        if case .failing(let reason) = storage { reasons.append("storage: \(reason)") }
        for room in rooms where room.isRequired && !room.isOnDemand && !room.isDisabled && !room.isUp {
            guard isStrict || !room.hasBeenUp || room.hasFailed else { continue }
            let tries =
                switch room.failures {
                case 0: ""
                case 1: " (1 try)"
                default: " (\(room.failures) tries)"
                }
            reasons.append("room \(room.name): \(room.hasFailed ? "failed, " : "")\(room.link.rawValue)\(tries)")
        }
    }

    init(_ bridge: Bridge, _ store: StoreDriver?, isStrict: Bool = false) {
        self.init(
            rooms: bridge.roomStates, isRunning: bridge.isRunning, storage: store?.condition ?? .sound,
            isStrict: isStrict)
    }

    /// `{"ready":false,"reasons":["room lobby: connecting (3 tries)"]}` and a newline.
    var json: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("ready")
        writer.bool(isReady)
        writer.key("reasons")
        writer.beginArray()
        for reason in reasons { writer.string(reason) }
        writer.endArray()
        writer.endObject()
        return writer.finish() + [UInt8(ascii: "\n")]
    }
}
