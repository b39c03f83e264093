import BridgeTypes
import IRCProtocol
import Identities
import Rooms
import Upstream

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

/// How far the end of the process has come; the table is at ``Bridge/shutdown(now:)``.
package final class Lifecycle {
    package private(set) var phase = Phase.running
    /// Clients whose last answer is awaited before the bridge stops.
    private var clientsToAnswer: Set<ClientID> = []

    package enum Phase: Equatable {
        case running
        /// Asked to stop: queues are given time to empty.
        case draining
        /// Clients say what they have got.
        case asking
        /// Clients are told and closed, links say goodbye.
        case closing
        case stopped
    }

    package func drain() { phase = .draining }
    package func ask() { phase = .asking }
    package func close() { phase = .closing }
    package func stop() { phase = .stopped }

    package var awaitsAnswers: Bool { !clientsToAnswer.isEmpty }

    package func awaitAnswer(of client: ClientID) { clientsToAnswer.insert(client) }

    /// The client needs no more time.
    ///
    /// - Returns: whether it was the last of which that is true.
    package func answered(_ client: ClientID) -> Bool {
        phase == .asking && clientsToAnswer.remove(client) != nil && clientsToAnswer.isEmpty
    }
}

/// What the IRC server wants of backends' accounts; the hub carries it out with the rooms' wishes.
package final class ServerWishes {
    private var list: [ServerWish] = []

    package func append(_ wish: ServerWish) { list.append(wish) }

    package func take() -> [ServerWish] {
        guard !list.isEmpty else { return [] }
        defer { list = [] }
        return list
    }
}

package enum ServerWish {
    /// Ask which rooms there are.
    case rooms(of: String)
    /// Try at once what waits for its time.
    case retryLogin(at: String)
}

/// The configured backends' accounts, in the order of the settings.
package struct BackendTable {
    package let all: [BackendAccount]
    private let byName: [String: BackendID]

    package init(_ settings: [BackendSettings], shared: UpstreamShared) {
        all = settings.enumerated().map { index, backend in
            BackendAccount(id: BackendID(index: index), settings: backend, shared: shared)
        }
        byName = Dictionary(all.map { ($0.settings.name, $0.id) }, uniquingKeysWith: { _, last in last })
    }

    package subscript(id: BackendID) -> BackendAccount? { all.indices.contains(id.index) ? all[id.index] : nil }

    package subscript(name: String) -> BackendAccount? { byName[name].flatMap { self[$0] } }
}
