public import BridgeTypes
import IRCServer
import Identities
import Rooms
import Upstream
import WireBytes

// How the bridge stops.

extension Bridge {
    /// How long clients have to say what they got. One that hangs gets a part again instead.
    private static let answerPatience: Duration = .seconds(2)

    /// Stops in order: what IRC users said still goes up, at most for the drain time; clients say what they have got, so that
    /// they do not get it again from the next process; then clients and backends are told.
    ///
    /// | phase    | meaning                                                       | leaves by                                     |
    /// |----------|---------------------------------------------------------------|-----------------------------------------------|
    /// | running  | as ever                                                       | shutdown → draining                           |
    /// | draining | nobody is let in, nothing more is taken; queues go up         | they are empty, the time is over → asking     |
    /// | asking   | clients with cursors are asked what they have got; what is said in their rooms now is for the next process to show them | all have answered or are gone, time-out → closing |
    /// | closing  | clients were told and closed, links say goodbye               | all links are gone → stopped                  |
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
        context.timers.set(.shutdown, at: context.now.monotonic + min(Self.answerPatience, settings.drain))
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
