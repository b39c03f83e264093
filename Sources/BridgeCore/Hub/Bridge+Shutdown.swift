public import BridgeTypes
import IRCServer
import Identities
import Rooms
import Upstream
import WireBytes

// Graceful shutdown.

extension Bridge {
    /// Time-out of clients' delivery acknowledgements. Without one, a client gets some messages again.
    private static let ackTimeout: Duration = .seconds(2)

    /// Shuts down in order: outboxes are sent, for at most the drain time; clients acknowledge delivery, so that the next
    /// process does not repeat messages; then clients and links are closed.
    ///
    /// | phase    | meaning                                                       | leaves by                                     |
    /// |----------|---------------------------------------------------------------|-----------------------------------------------|
    /// | running  | normal operation                                              | shutdown → draining                           |
    /// | draining | no clients and no messages are accepted; outboxes are sent    | outboxes empty, drain time over → asking      |
    /// | asking   | clients with delivery cursors are asked for acknowledgements; new messages in their rooms are left to the next process | all acknowledged or closed, time-out → closing |
    /// | closing  | clients were notified and closed; links send close frames     | all links closed → stopped                    |
    public func shutdown(now: Now) {
        context.now = now
        guard lifecycle.phase == .running else { return }
        irc.openEverything()
        lifecycle.drain()
        context.timers.set(.shutdown, at: now.monotonic + settings.drain)
        finishIfIdle()
    }

    func beginAsking() {
        guard lifecycle.phase == .draining else { return }
        lifecycle.ask()
        for room in rooms { room.failEverything(why: "the bridge is stopping", context) }
        irc.askWhatArrived()
        if !lifecycle.awaitsAnswers { return beginClosing() }
        context.timers.set(.shutdown, at: context.now.monotonic + min(Self.ackTimeout, settings.drain))
    }

    func beginClosing() {
        guard lifecycle.phase == .asking else { return }
        lifecycle.close()
        context.timers.cancel(.shutdown)
        for room in rooms { room.stopCatchingUp(context) }
        irc.sayGoodbye()
        for room in rooms {
            room.stopForGood(context)
        }
        for own in context.ownLinks.values.sorted(by: { $0.id.index > $1.id.index }) {
            own.endClosing()
            drive(own.id) { link, _, turn in link.stop(&turn) }
        }
    }

    func finishIfIdle() {
        let own = context.ownLinks.values
        if lifecycle.phase == .draining, rooms.allSatisfy(\.isSilent) { beginAsking() }
        if lifecycle.phase == .closing, rooms.allSatisfy({ $0.link.state == .stopped }),
            own.allSatisfy({ $0.link.state == .stopped })
        {
            lifecycle.stop()
            emit(.stopped)
        }
    }
}
