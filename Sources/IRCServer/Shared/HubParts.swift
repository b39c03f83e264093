import BridgeTypes
import IRCProtocol
import Identities
import Rooms
import Upstream
import WireBytes

/// State that the hub shares with its front ends.
package struct HubParts {
    package let settings: BridgeSettings
    package let context: RoomsContext
    package let actions: BridgeActions
    package let rooms: RoomTable
    package let backends: BackendTable
    package let lifecycle = Lifecycle()
    package let serverWishes = ServerRequests()

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

/// Progress of the shutdown; the table is at ``Bridge/shutdown(now:)``.
package final class Lifecycle {
    package private(set) var phase = Phase.running
    /// Clients whose last answer is awaited before the bridge stops.
    private var clientsToAnswer: Set<ClientID> = []

    /// End of the drain time; without meaning before ``Phase/draining``.
    package private(set) var drainEnd = MonotonicInstant(nanoseconds: 0)
    /// When each client is disconnected.
    package private(set) var departures = Departures.none

    package enum Phase: Equatable {
        case running
        /// Shutdown was requested: probes learn of it, clients are served as before.
        case leaving
        /// Queues have time to drain.
        case draining
        /// Clients acknowledge delivery.
        case asking
        /// Clients are notified and closed.
        case disconnecting
        /// Links send close frames.
        case closing
        case stopped
    }

    /// Clients and messages are accepted.
    package var isServing: Bool { phase == .running || phase == .leaving }

    /// Later messages are left to the next process, for clients with delivery cursors.
    package var isHandingOver: Bool { phase == .asking || phase == .disconnecting }

    package func leave() { phase = .leaving }
    package func drain(until end: MonotonicInstant) {
        phase = .draining
        drainEnd = end
    }

    package func ask() { phase = .asking }
    package func disconnect() { phase = .disconnecting }
    package func close() { phase = .closing }
    package func stop() { phase = .stopped }

    package func plan(_ departures: Departures) { self.departures = departures }

    /// A client whose moment of departure has come.
    package func nextDeparture(_ now: MonotonicInstant) -> ClientID? { departures.popDue(now) }

    package var awaitsAnswers: Bool { !clientsToAnswer.isEmpty }

    package func awaitAnswer(of client: ClientID) { clientsToAnswer.insert(client) }

    /// The client needs no more time.
    ///
    /// - Returns: whether it was the last pending one.
    package func answered(_ client: ClientID) -> Bool {
        phase == .asking && clientsToAnswer.remove(client) != nil && clientsToAnswer.isEmpty
    }
}

/// Requests of the IRC server to backend accounts; the hub carries them out with the rooms' requests.
package final class ServerRequests {
    private var list: [ServerRequest] = []

    package func append(_ wish: ServerRequest) { list.append(wish) }

    package func take() -> [ServerRequest] {
        guard !list.isEmpty else { return [] }
        defer { list = [] }
        return list
    }
}

package enum ServerRequest {
    /// Request the list of rooms.
    case rooms(of: String)
    /// Retry the login at once, ahead of its time.
    case retryLogin(at: String)
}

/// The configured backends' accounts, in the order in which they were configured.
package final class BackendTable {
    package private(set) var all: [BackendAccount] = []
    private var byName: [String: BackendID] = [:]
    private let shared: UpstreamShared

    package init(_ settings: [BackendSettings], shared: UpstreamShared) {
        self.shared = shared
        for backend in settings { append(backend) }
    }

    private func append(_ backend: BackendSettings) {
        let account = BackendAccount(id: BackendID(index: all.count), settings: backend, shared: shared)
        all.append(account)
        byName[backend.name] = account.id
    }

    /// Adds a backend, or forgets all that is known of one that has other settings.
    package func take(_ backend: BackendSettings) -> BackendAccount? {
        if let id = byName[backend.name] {
            all[id.index] = BackendAccount(id: id, settings: backend, shared: shared)
        } else {
            append(backend)
        }
        return self[backend.name]
    }

    package subscript(id: BackendID) -> BackendAccount? { all.indices.contains(id.index) ? all[id.index] : nil }

    package subscript(name: String) -> BackendAccount? { byName[name].flatMap { self[$0] } }
}
