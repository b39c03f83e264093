import BridgeTypes
import Upstream
import WireBytes

// A room whose configuration was read again.

extension Room {
    /// Uses other settings at once.
    ///
    /// - Parameter reconnects: the links are opened anew, as after an outage: messages wait, and what was missed is fetched.
    package func reload(_ settings: RoomSettings, reconnects: Bool, _ context: RoomsContext) {
        take(settings, context.upstream)
        if reconnects { reconnect("the configuration has changed", context) }
        switch settings.connect {
        case .always:
            life.occupied()
            context.timers.cancel(.linger(id))
            if !isLoading { startForWaiting(context) }
        case .whileJoined: vacated(context)
        }
    }

    /// Opens the room's link anew, and those of accounts.
    package func reconnect(_ reason: String, _ context: RoomsContext) {
        handle(link.reconnect(reason, context), context)
        for own in own.sorted { handle(own.link.reconnect(reason, context), from: own, context) }
    }

    /// The configuration no longer has the room, and nobody is in it: it is closed once its messages are sent.
    package func retire(_ context: RoomsContext) {
        var last = settings
        last.connect = .whileJoined
        take(last, context.upstream)
        opened(context)
        life.vacated(at: context.now.monotonic)
        context.timers.set(.linger(id), at: context.now.monotonic)
    }
}
