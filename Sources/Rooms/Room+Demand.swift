import BridgeTypes
import Upstream
import WireBytes

// Rooms that have a link only while somebody is there.
//
// | an IRC user wants in | the link is started, unless it is there; one that is being closed is started again when it is gone |
// | the last one left  | after ``Room/linger`` without anybody, and once what was said has gone up, the link is closed      |
// | an earlier process left what was said | the link is started, and closed when that has gone up and nobody is there     |
// | something is said while the link is being closed | it is started again when it is gone, and closed as above          |
// | the link is gone   | people upstream leave; a room of the template is removed                                          |
//
// Whoever enters while the link is being opened would miss what is said until it is there, so they are let in with it.
//
// | state   | meaning                           | verb → next                                                                      |
// |---------|-----------------------------------|-----------------------------------------------------------------------------------|
// | open    | who asks is let in at once        | start of the bridge, with a link whoever is there → opening; the first who asks, where there is no link → opening |
// | opening | who asks waits                    | the link is up, its first try failed, ``Room/openingPatience`` is over → open      |
//
// What is said after that patience, or after a first try that failed, lies in a gap that begins when they asked; see
// Bridge+Entrances.swift.

extension Room {
    /// How long the link outlasts the last IRC user: somebody who reconnects, or looks in and out, finds it open.
    package static let linger: Duration = .seconds(5 * 60)
    /// How often an empty room is looked at whose messages still wait for the backend.
    static let lingerRetry: Duration = .seconds(30)

    /// Longest wait of those who want in for a link that is being opened. Most are there sooner, also over the internet.
    package static let openingPatience: Duration = .seconds(1)

    /// Whoever wants in waits for the link.
    package var isOpening: Bool { life.isOpening }

    /// The link is being opened, or will be when the past is known.
    package func beginOpening(_ context: RoomsContext) {
        life.opens()
        context.timers.set(.opening(id), at: context.now.monotonic + Self.openingPatience)
    }

    /// Somebody wants in: opens the link, where there is one only while somebody is here.
    ///
    /// - Returns: they are to wait until ``RoomFrontEnd/roomOpened(_:)``.
    package func opensForEntry(_ context: RoomsContext) -> Bool {
        // They will be told what is missing, from then on.
        guard missingSince == nil else { return false }
        if isOpening { return true }
        guard settings.connect == .whileJoined, locals.isEmpty, isLoading || isLeaving || link.state == .stopped
        else { return false }
        beginOpening(context)
        // They may be gone before they are in.
        life.vacated(at: context.now.monotonic)
        context.timers.set(.linger(id), at: context.now.monotonic + Self.linger)
        if !isLoading, link.state == .stopped { link.start(context) }
        return true
    }

    /// Somebody entered.
    func occupied(_ context: RoomsContext) {
        guard settings.connect == .whileJoined else { return }
        life.occupied()
        context.timers.cancel(.linger(id))
        if isLoading { return }
        if link.state == .stopped { link.start(context) }
    }

    /// Somebody left.
    func vacated(_ context: RoomsContext) {
        guard settings.connect == .whileJoined, locals.isEmpty, emptySince == nil else { return }
        life.vacated(at: context.now.monotonic)
        context.timers.set(.linger(id), at: context.now.monotonic + Self.linger)
    }

    package func lingerTimerFired(_ context: RoomsContext) {
        guard locals.isEmpty, !isLeaving else { return }
        guard !hasWaiting else {
            return context.timers.set(.linger(id), at: context.now.monotonic + Self.lingerRetry)
        }
        leaveBackend(context)
    }

    /// Something that was said here has not gone up yet.
    private var hasWaiting: Bool { lanes.contains { !$0.outbox.isEmpty } }

    /// There is something to do for a link: somebody is here, or what was said has not gone up.
    package var isWanted: Bool { settings.connect == .always || !locals.isEmpty || hasWaiting || isOpening }

    /// Opens the links for what an earlier process left, whoever is here.
    package func startForWaiting(_ context: RoomsContext) {
        startOwnForWaiting(context)
        guard link.state == .stopped, isWanted else { return }
        link.start(context)
        guard settings.connect == .whileJoined, locals.isEmpty, !isOpening else { return }
        life.vacated(at: context.now.monotonic)
        context.timers.set(.linger(id), at: context.now.monotonic + Self.lingerRetry)
    }

    /// Closes the link of a room in which nobody is.
    package func leaveBackend(_ context: RoomsContext) {
        context.timers.cancel(.linger(id))
        life.leaves()
        if context.isDurable { stopCatchingUp(context) }
        handle(link.stop(context), context)
    }

    /// The process ends: whoever comes meanwhile opens nothing.
    package func stopForGood(_ context: RoomsContext) {
        life.left()
        handle(link.stop(context), context)
    }
}
