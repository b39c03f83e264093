public import BridgeTypes
import ChatModel
import IRCServer
import Identities
import Rooms
import Upstream

// The hub: routes events to their owners, and owns no feature.
//
// Every verb reports an event and leaves its effects in `takeActions()`. The bridge opens no socket, reads no clock and
// draws no randomness, so tests can play any conversation on a manual clock.

public final class Bridge {
    package let context: RoomsContext
    let actions: BridgeActions
    let roomTable: RoomTable
    let backends: BackendTable
    let lifecycle: Lifecycle
    let serverWishes: ServerRequests
    let irc: IRCServer

    /// - Parameter stored: the state of an earlier process; nil: no store.
    public init(
        settings: BridgeSettings, stored: StoredState? = nil, now: Now, random: AnyRandomNumberGenerator
    ) {
        let parts = HubParts(settings, isDurable: stored != nil, now: now, random: random)
        context = parts.context
        actions = parts.actions
        roomTable = parts.rooms
        backends = parts.backends
        lifecycle = parts.lifecycle
        serverWishes = parts.serverWishes
        irc = IRCServer(parts, .standard, stored: stored)
        context.identities.reportPresence { [unowned irc] in
            irc.presenceChanged($0, isHere: $1)
            if !$1 { irc.nickReleased(by: $0) }
        }
        if let stored { restore(stored, now: now) }
    }

    /// In force now; see ``reload(_:reconnecting:backends:now:)``.
    var settings: BridgeSettings { irc.settings }

    func emit(_ action: BridgeAction) { actions.append(action) }

    func room(_ id: RoomID) -> Room? { roomTable[id] }

    package var rooms: [Room] { roomTable.all }

    /// The settings of an open room; nil: no longer open.
    public func settings(of id: RoomID) -> RoomSettings? { room(id)?.settings }
}
