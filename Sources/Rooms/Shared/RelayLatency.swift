import BridgeTypes
import WireBytes

/// The time that messages spend in the relay, in both directions.
///
/// | direction | from                                        | to                                                        |
/// |-----------|---------------------------------------------|-----------------------------------------------------------|
/// | down      | its frame, or page of history, was received | its lines are queued for the clients                      |
/// | up        | its author's line was processed             | it is queued for the backend, after any wait in the outbox |
///
/// Rooms read no clock: within a turn they count, and the driver, which does, ends the turn.
package final class RelayLatency {
    package private(set) var down = Histogram()
    package private(set) var up = Histogram()
    /// Messages of this turn.
    private var shown = 0
    private var written = 0

    func messageShown() { shown += 1 }

    /// - Parameter waited: since the message was accepted; zero: in this turn.
    func messageWritten(after waited: Duration) {
        if waited > .zero { up.observe(waited) } else { written += 1 }
    }

    /// Messages were relayed in this turn.
    package var isTurnOpen: Bool { shown + written > 0 }

    /// - Parameter elapsed: since the turn began.
    package func turnEnded(after elapsed: Duration) {
        if shown > 0 { down.observe(elapsed, times: shown) }
        if written > 0 { up.observe(elapsed, times: written) }
        (shown, written) = (0, 0)
    }
}
