public import BridgeTypes
public import IRCServer
import Rooms
import Upstream
import WireBytes

// The configuration was read again.

extension Bridge {
    /// Puts other settings in force. Rooms are told apart by their names; what a room is may not change.
    ///
    /// - Parameters:
    ///   - reconnecting: names of rooms whose links are opened anew.
    ///   - backends: names of the backends among the settings' that are new, or have other settings.
    public func reload(
        _ settings: BridgeSettings, reconnecting: Set<String>, backends changed: Set<String>, now: Now
    ) {
        context.now = now
        guard lifecycle.phase == .running else { return }
        context.take(RoomsSettings(settings))
        for backend in settings.backends where changed.contains(backend.name) {
            let former = backends[backend.name]
            if let former { context.cancel(.backend(former.id)) }
            guard let account = backends.take(backend) else { continue }
            if backend.authenticates, !backend.isOnDemand { context.drive(account) { account.start(&$0) } }
            if let former { replace(former, by: account) }
        }
        for account in backends.all { settle(account) { $0.lookForSecrets(&$1) } }
        irc.reload(settings, reconnecting: reconnecting)
        finishIfIdle()
    }

    /// Rooms that keep their links ask the other account for what they wait for.
    private func replace(_ former: BackendAccount, by account: BackendAccount) {
        let (events, waiting) = former.retire()
        handle(events, of: former)
        for room in waiting { settle(account) { $0.credentialsWanted(room, afterRefusal: false, &$1) } }
    }

    /// The names of all backends there ever were, by the index of their ids.
    public var backendNames: [String] { backends.all.map(\.settings.name) }
}
