import WireBytes

// Rooms that have a link only while somebody is there.
//
// | an IRC user enters | the link is started, unless it is there; one that is being closed is started again when it is gone |
// | the last one left  | after ``Room/linger`` without anybody, and once what was said has gone up, the link is closed      |
// | the link is gone   | people upstream leave; a room of the template is removed                                          |

extension Room {
    /// How long the link outlasts the last IRC user: somebody who reconnects, or looks in and out, finds it open.
    static let linger: Duration = .seconds(5 * 60)
    /// How often an empty room is looked at whose messages still wait for the backend.
    static let lingerRetry: Duration = .seconds(30)

    /// Somebody entered.
    func occupied(_ context: BridgeContext) {
        guard settings.connect == .whileJoined else { return }
        emptySince = nil
        context.timers.cancel(.linger(id))
        if isLoading { return }
        if link.state == .stopped { startLink(context) }
    }

    /// Somebody left.
    func vacated(_ context: BridgeContext) {
        guard settings.connect == .whileJoined, locals.isEmpty, emptySince == nil else { return }
        emptySince = context.now.monotonic
        context.timers.set(.linger(id), at: context.now.monotonic + Self.linger)
    }

    func lingerTimerFired(_ context: BridgeContext) {
        guard locals.isEmpty, !isLeaving else { return }
        guard outbox.isEmpty else {
            return context.timers.set(.linger(id), at: context.now.monotonic + Self.lingerRetry)
        }
        leaveBackend(context)
    }

    /// Closes the link of a room in which nobody is.
    func leaveBackend(_ context: BridgeContext) {
        context.timers.cancel(.linger(id))
        isLeaving = true
        if context.isDurable { stopCatchingUp(context) }
        handle(link.stop(context), context)
    }

    func linkStopped(_ context: BridgeContext) {
        guard isLeaving else { return }
        isLeaving = false
        outage = nil
        forgetPeople(context)
        if locals.isEmpty { door.roomFellSilent(id) } else { link.start(context) }
    }
}
