import BridgeTypes
import Upstream
import WireBytes

// Rooms that are connected only while a user is present.
//
// | event              | consequence                                                                                                  |
// |--------------------|--------------------------------------------------------------------------------------------------------------|
// | JOIN, or a message | the link is started unless it is up; one that is being closed is restarted once it is closed                 |
// | last user leaves   | after ``Room/linger`` without users the link is closed, or once the last message is settled                  |
// | unknown upstream   | refused JOINs hold the link for ``Room/unknownLinger``                                                       |
// | restored outbox    | the same as JOIN and leaving, with ``Room/waitingLinger``                                                    |
// | link closed        | upstream people leave; a room of the template is removed                                                     |
//
// A JOIN while the link is being opened is delayed until it is up, so that no message in between is missed.
//
// | state   | meaning                           | verb → next                                                                      |
// |---------|-----------------------------------|-----------------------------------------------------------------------------------|
// | open    | JOINs are answered at once        | bridge starts, always connected → opening; first JOIN without a link → opening    |
// | opening | JOINs wait                        | link up, first attempt failed, ``Room/openingPatience`` elapsed → open            |
//
// Messages after that timeout, or after a failed first attempt, lie in a gap that begins with the JOIN command; see
// Bridge+Entrances.swift.

extension Room {
    /// The time a link stays open after the last IRC user has left: a user that reconnects finds it open.
    package static let linger: Duration = .seconds(5 * 60)
    /// The time that the link of a room that the backend does not have stays open: a JOIN within it is refused at once.
    static let unknownLinger: Duration = .seconds(10)
    /// The time that a link opened for waiting messages alone stays open at least: users return after a restart.
    static let waitingLinger: Duration = .seconds(30)

    /// Longest delay of a JOIN for a link that is being opened. Most links are up sooner, also over the internet.
    package static let openingPatience: Duration = .seconds(1)

    /// JOINs wait for the link.
    package var isOpening: Bool { life.isOpening }

    /// Delays JOINs: the link is being opened, or will be once the stored room is loaded.
    package func beginOpening(_ context: RoomsContext) {
        life.opens()
        context.set(.opening(id), at: context.now.monotonic + Self.openingPatience)
    }

    /// Opens an on-demand link for a JOIN.
    ///
    /// - Returns: whether the JOIN has to wait for ``RoomFrontEnd/roomOpened(_:)``.
    package func opensForEntry(_ context: RoomsContext) -> Bool {
        // The gap from then on will be reported.
        guard missingSince == nil else { return false }
        if isOpening { return true }
        guard settings.connect == .whileJoined, locals.isEmpty, isLoading || isLeaving || link.state == .stopped
        else { return false }
        beginOpening(context)
        // The client may disconnect before it has joined.
        life.vacated(at: context.now.monotonic)
        context.set(.linger(id), at: context.now.monotonic + Self.linger)
        if !isLoading, link.state == .stopped { startLink(context) }
        return true
    }

    /// A user joined.
    func occupied(_ context: RoomsContext) {
        guard settings.connect == .whileJoined else { return }
        life.occupied()
        context.cancel(.linger(id))
        if isLoading { return }
        if link.state == .stopped { startLink(context) }
    }

    /// A user left.
    func vacated(_ context: RoomsContext) {
        guard settings.connect == .whileJoined, locals.isEmpty, emptySince == nil else { return }
        life.vacated(at: context.now.monotonic)
        context.set(.linger(id), at: context.now.monotonic + Self.linger)
    }

    /// A JOIN was refused, since the backend does not have the room.
    package func entryRefused(_ context: RoomsContext) {
        guard settings.connect == .whileJoined, locals.isEmpty, emptySince != nil else { return }
        context.set(.linger(id), at: context.now.monotonic + Self.unknownLinger)
    }

    package func lingerTimerFired(_ context: RoomsContext) {
        guard locals.isEmpty, !isLeaving, !isLoading else { return }
        guard own.isEmpty else {
            // Their time is over with the room's; the last that is closed brings this timer back.
            for own in own.values { context.set(.linger(own.id), at: context.now.monotonic) }
            return
        }
        if !hasWaiting { leaveBackend(context) }
    }

    /// A message is not settled.
    private var hasWaiting: Bool { lanes.contains { !$0.outbox.isSettled } }

    /// The link has a purpose: a user is present, or a message is not settled.
    package var isWanted: Bool { settings.connect == .always || !locals.isEmpty || hasWaiting || isOpening }

    /// Opens the links for waiting messages, with or without users present.
    package func startForWaiting(_ context: RoomsContext) {
        startOwnForWaiting(context)
        guard link.state == .stopped, isWanted else { return }
        startLink(context)
        guard settings.connect == .whileJoined, locals.isEmpty, !isOpening else { return }
        life.vacated(at: context.now.monotonic)
        context.set(.linger(id), at: context.now.monotonic + Self.waitingLinger)
    }

    /// Opens the room's own link.
    func startLink(_ context: RoomsContext) {
        link.start(context)
        expectLink(context)
    }

    // MARK: - Giving up

    // A room whose link is not up for longer than the settings allow counts as failed, for readiness and in the log. It
    // goes on trying: backends return.

    /// The link is wanted, and not up.
    func expectLink(_ context: RoomsContext) {
        guard let patience = settings.giveUpAfter, !hasFailed, context.due(.givingUp(id)) == nil else { return }
        context.set(.givingUp(id), at: context.now.monotonic + patience)
    }

    /// The link is up, or not wanted.
    func expectsNoLink(_ context: RoomsContext) {
        context.cancel(.givingUp(id))
        report.recovered()
    }

    package func givingUpTimerFired(_ context: RoomsContext) {
        guard let patience = settings.giveUpAfter else { return }
        report.gaveUp()
        context.note(
            .error, "room-failed",
            "the room has had no link for \(PrintableText.spoken(seconds: Int(patience / .seconds(1)))) and counts as "
                + "failed; trying goes on",
            ["room": settings.name, "failures": String(link.failures)])
    }

    /// Closes the link of an empty room.
    package func leaveBackend(_ context: RoomsContext) {
        context.cancel(.linger(id))
        life.leaves()
        if context.isDurable { stopCatchingUp(context) }
        handle(link.stop(context), context)
    }

    /// The process ends: later JOINs open no link.
    package func stopForGood(_ context: RoomsContext) {
        life.left()
        life.stopped()
        handle(link.stop(context), context)
    }
}
