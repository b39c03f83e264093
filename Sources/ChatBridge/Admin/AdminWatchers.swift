import BridgeCore
import ChatModel
import JSONText
import Rooms
import Upstream

/// The clients of `tail`. While there are none, the bridge is not watched at all.
final class AdminWatchers {
    private struct Watcher {
        var exchange: AdminExchange
        /// Nil: all rooms.
        var room: String?
        var isRaw: Bool
        /// Lines left out since the client last took some.
        var missed: Int64 = 0
    }

    private var watchers: [ObjectIdentifier: Watcher] = [:]

    func add(_ exchange: AdminExchange, room: String?, isRaw: Bool, _ bridge: Bridge) {
        let id = ObjectIdentifier(exchange)
        watchers[id] = Watcher(exchange: exchange, room: room, isRaw: isRaw)
        exchange.whenEnded { [unowned self, unowned bridge] in
            watchers[id] = nil
            attach(bridge)
        }
        attach(bridge)
    }

    private func attach(_ bridge: Bridge) {
        guard !watchers.isEmpty else { return bridge.watch(passages: nil, frames: nil) }
        let wantsFrames = watchers.values.contains { $0.isRaw }
        bridge.watch(
            passages: { [unowned self] passage in
                guard let line = passage.json else { return }
                tell(line, room: passage.room, isRaw: false)
            },
            frames: !wantsFrames
                ? nil
                : { [unowned self, unowned bridge] frame in
                    guard let room = bridge.roomName(of: frame.link) else { return }
                    tell(frame.json(room: room), room: room, isRaw: true)
                })
    }

    private func tell(_ line: [JSONValue.Member], room: String, isRaw: Bool) {
        for (id, watcher) in watchers
        where (watcher.room == nil || watcher.room == room) && (!isRaw || watcher.isRaw) {
            let exchange = watcher.exchange
            // A slow reader is not to hold up the bridge, nor to fill its memory.
            guard exchange.unreadBytes < AdminLimits.streamQueueBytes else {
                watchers[id]?.missed += 1
                continue
            }
            if watcher.missed > 0 {
                exchange.item(.object([.init("missed", .integer(watcher.missed))]))
                watchers[id]?.missed = 0
            }
            exchange.item(.object([.init("at", .integer(exchange.wallMilliseconds))] + line))
        }
    }
}
