import BridgeTypes
import IRCProtocol
import Identities
import Rooms

/// What the hub and its front ends have in common.
package struct HubParts {
    package let settings: BridgeSettings
    package let context: RoomsContext
    package let actions: BridgeActions
    package let rooms: RoomTable
    package let backends: BackendTable
    package let lifecycle = Lifecycle()
    package let serverWishes = ServerWishes()

    package init(_ settings: BridgeSettings, isDurable: Bool, now: Now, random: AnyRandomNumberGenerator) {
        self.settings = settings
        context = RoomsContext(
            settings: RoomsSettings(settings), identities: IdentitySettings(settings), isDurable: isDurable,
            now: now, random: random)
        actions = BridgeActions(context)
        rooms = RoomTable(context, fold: { settings.casemapping.fold($0) })
        backends = BackendTable(settings.backends, shared: context.upstream)
    }
}
