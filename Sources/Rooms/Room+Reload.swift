import BridgeTypes
import Dialects
import Upstream
import WireBytes

// A room whose configuration was read again.

extension Room {
    /// Uses other settings at once. Files of credentials may be others too, which the settings do not show.
    ///
    /// - Parameter reconnects: the links are opened anew, as after an outage: messages wait, and what was missed is fetched.
    package func reload(_ settings: RoomSettings, reconnects: Bool, _ context: RoomsContext) {
        take(settings, context.upstream)
        report.dialectMayBeOther()
        if reconnects {
            let reason = "the configuration has changed"
            _ = reconnect(reason, restartsTry: true, context)
            for own in own.sorted {
                handle(own.link.reopen(reason, restartsTry: true, context).events, from: own, context)
            }
        } else {
            for link in [link] + own.sorted.map(\.link) { context.drive(link) { link.lookForCredentials(&$0) } }
        }
        switch settings.connect {
        case .always:
            life.occupied()
            context.cancel(.linger(id))
            if !isLoading { startForWaiting(context) }
        case .whileJoined: vacated(context)
        }
    }

    /// Whether a room of these settings is this one. What a room is made of does not change.
    package func isOne(of settings: RoomSettings) -> Bool {
        settings.storedKey == storedKey && settings.channel == channel && settings.dialect.traits == traits
            && settings.identity == self.settings.identity && settings.relayNick == self.settings.relayNick
    }

    /// The configuration no longer has the room, and it is empty: it is closed once its messages are sent.
    package func retire(_ context: RoomsContext) {
        var last = settings
        last.connect = .whileJoined
        take(last, context.upstream)
        opened(context)
        life.vacated(at: context.now.monotonic)
        context.set(.linger(id), at: context.now.monotonic)
    }
}
