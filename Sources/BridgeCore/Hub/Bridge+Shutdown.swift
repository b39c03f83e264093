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

    /// Shuts down in order: after the prestop delay, outboxes are sent, for at most the drain time; clients acknowledge
    /// delivery, so that the next process does not repeat messages; then clients and links are closed.
    ///
    /// | phase         | meaning                                                  | leaves by                                |
    /// |---------------|----------------------------------------------------------|------------------------------------------|
    /// | running       | normal operation                                         | shutdown → leaving; without prestop delay → draining |
    /// | leaving       | not ready; clients and messages are accepted as before   | prestop delay over → draining            |
    /// | draining      | listeners are closed, no messages are accepted; outboxes are sent, for half of the drain time if clients are many | outboxes empty, time over → asking |
    /// | asking        | clients with delivery cursors are asked for acknowledgements; new messages in their rooms are left to the next process | all acknowledged or closed, time-out → disconnecting |
    /// | disconnecting | clients are notified and closed, more than 100 of them over the rest of the drain time; the others still hear their rooms | all clients closed → closing |
    /// | closing       | links send close frames                                  | all links closed → stopped               |
    public func shutdown(now: Now) {
        context.now = now
        guard lifecycle.phase == .running else { return }
        guard settings.prestopDelay > .zero else { return beginDraining() }
        lifecycle.leave()
        context.set(.shutdown, at: now.monotonic + settings.prestopDelay)
    }

    func shutdownTimerFired() {
        switch lifecycle.phase {
        case .leaving: beginDraining()
        case .draining: beginAsking()
        case .asking: beginDisconnecting()
        case .disconnecting: continueDisconnecting()
        case .running, .closing, .stopped: break
        }
    }

    private func beginDraining() {
        emit(.closeListeners)
        irc.openEverything()
        for room in rooms { room.reportHeldGap(context) }
        lifecycle.drain(until: context.now.monotonic + settings.drain)
        // The other half is for disconnecting them one by one.
        let time = clientCount > Departures.maxAtOnce ? settings.drain / 2 : settings.drain
        context.set(.shutdown, at: context.now.monotonic + time)
        finishIfIdle()
    }

    private func beginAsking() {
        lifecycle.ask()
        for room in rooms { room.failEverything(why: "the bridge is stopping", context) }
        irc.askWhatArrived()
        if !lifecycle.awaitsAnswers { return beginDisconnecting() }
        context.set(.shutdown, at: context.now.monotonic + min(Self.ackTimeout, settings.drain))
    }

    private func beginDisconnecting() {
        lifecycle.disconnect()
        irc.planDepartures(until: lifecycle.drainEnd)
        continueDisconnecting()
    }

    private func continueDisconnecting() {
        // The links are closed with the last clients, which are shown buffered messages before. Not sooner: on a live
        // link the catch-up goes on.
        if lifecycle.departures.endBy(context.now.monotonic) { for room in rooms { room.stopCatchingUp(context) } }
        if let next = irc.continueDepartures() {
            context.set(.shutdown, at: next)
        } else {
            beginClosing()
        }
    }

    private func beginClosing() {
        lifecycle.close()
        context.cancel(.shutdown)
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
