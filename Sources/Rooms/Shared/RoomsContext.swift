import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Media
import Upstream
import WireBytes

/// The state shared by the rooms of one process and their front ends: the turn, the identities, the links' shared
/// state, in-flight changes of the store, and the actions for the hub. Confined to its bridge.
package final class RoomsContext {
    package private(set) var settings: RoomsSettings
    package let identities: IdentityMap
    package let upstream: UpstreamShared
    /// Passed on to machines that have actions of their own.
    package internal(set) var turn: Turn
    /// Actions that the hub has not taken yet.
    package private(set) var actions: [RoomsAction] = []
    /// The placeholder author of reassigned messages.
    package private(set) lazy var nobody = turn.freshChatID()
    /// Own links of accounts. Their ids are below those of all rooms.
    package private(set) var ownLinks: [RoomID: OwnLink] = [:]
    private var ownLinkIDs: [String: RoomID] = [:]
    /// Requests of rooms to their backends' accounts, in order.
    private var requests: [RoomRequest] = []
    /// There is persistent storage.
    package let isDurable: Bool
    package let ledger = StoreLedger()
    package let latency = RelayLatency()
    private var messageIDs = MessageIDs()
    private var lanesAwaitingStore: Set<RoomID> = []
    /// Receives what goes in and out of all rooms; nil, as nearly always: there is no observer.
    package private(set) var tap: ((RoomPassage) -> Void)?
    /// Base URLs of backends that require a token for files, by the backend's name.
    package private(set) var guardedBases: [String: HTTPURL]
    /// Files uploaded here, which also resolve links quoted in messages.
    package let uploads: Uploads

    package init(
        settings: RoomsSettings, identities: IdentitySettings, isDurable: Bool, now: Now,
        random: AnyRandomNumberGenerator
    ) {
        self.settings = settings
        self.isDurable = isDurable
        self.identities = IdentityMap(identities)
        self.upstream = UpstreamShared(
            connectsPerSecond: settings.upstreamConnectsPerSecond, backends: settings.backends)
        self.turn = Turn(now: now, random: random)
        self.uploads = Uploads(settings.media?.uploads ?? [])
        self.guardedBases = Self.guardedBases(settings.backends)
        if isDurable {
            self.identities.persist(by: { [unowned self] in keep($0) }, wall: { [unowned self] in self.now.wall })
        }
    }

    private static func guardedBases(_ backends: [BackendSettings]) -> [String: HTTPURL] {
        Dictionary(
            backends.compactMap { backend in
                guard backend.dialect.traits.guardsFiles, let base = backend.httpBase else { return nil }
                return (backend.name, base)
            }, uniquingKeysWith: { first, _ in first })
    }

    /// The configuration was read again.
    package func take(_ settings: RoomsSettings) {
        self.settings = settings
        guardedBases.merge(Self.guardedBases(settings.backends)) { $1 }
        upstream.take(settings.backends)
    }

    /// Passes on what goes in and out of all rooms; nil ends it.
    package func watch(_ tap: ((RoomPassage) -> Void)?) { self.tap = tap }

    // MARK: - The turn

    /// Lends a machine that has actions of its own what it may use of this turn.
    package func withTurn<Result>(_ body: (inout Turn) -> Result) -> Result { body(&turn) }

    package var now: Now {
        get { turn.now }
        set { turn.begin(at: newValue) }
    }

    package func set(_ timer: TimerKey, at due: MonotonicInstant) { turn.set(timer, at: due) }

    package func cancel(_ timer: TimerKey) { turn.cancel(timer) }

    /// Nil: it is not set.
    package func due(_ timer: TimerKey) -> MonotonicInstant? { turn.due(timer) }

    package func nextDue() -> MonotonicInstant? { turn.nextDue() }

    package func popDue() -> TimerKey? { turn.popDue() }

    package var timerCount: Int { turn.timerCount }

    package func write<Result>(_ body: (inout ByteWriter) -> Result) -> Result { turn.write(body) }

    package func takeWritten() -> ByteSlice { turn.takeWritten() }

    package func freshChatID() -> ChatID { turn.freshChatID() }

    /// A new id of a message to a backend.
    func freshMessageID(_ traits: DialectTraits) -> ChatID {
        traits.idsAreNumbers ? turn.freshChatNumber() : turn.freshChatID()
    }

    // MARK: - Actions

    /// Hands over the actions of rooms and links since the last call, in order.
    package func handActions(to body: (RoomsAction) -> Void) {
        // By index: the array is not copied, and retains its memory.
        for place in actions.indices { body(actions[place]) }
        actions.removeAll(keepingCapacity: true)
    }

    package func emit(_ action: RoomsAction) { actions.append(action) }

    /// Persists a change, where there is a store. It goes with all changes of this verb, under ``StoreLedger/next``.
    package func keep(_ change: @autoclosure () -> StoreOperation) {
        guard isDurable else { return }
        ledger.add(change())
    }

    /// Persists a change of an accepted message.
    package func keep(_ change: @autoclosure () -> StoreOperation, about message: ChatID) {
        guard isDurable else { return }
        ledger.add(change(), about: message)
    }

    /// An outbox of a room, or of an account's own link, waits for the store.
    func awaitStore(_ lane: RoomID) { lanesAwaitingStore.insert(lane) }

    package func takeLanesAwaitingStore() -> [RoomID] {
        defer { lanesAwaitingStore = [] }
        return lanesAwaitingStore.sorted { $0.index < $1.index }
    }

    package func note(_ level: BridgeNote.Level, _ event: String, _ text: String, _ metadata: NoteMetadata = [:]) {
        emit(.note(BridgeNote(level, event, text, metadata)))
    }

    /// Logs chat text, where the operator enabled that.
    func noteChat(_ direction: String, room: String, nick: String, _ text: String) {
        guard settings.notesChatText else { return }
        note(
            .trace, "message-" + direction, MessageText.excerpt(text), ["room": room, "nick": nick])
    }

    // MARK: - Backends

    /// Requests the credentials of a link's backend account; the answer comes to
    /// ``UpstreamSession/credentialsRead(_:dialectContext:_:)``.
    func requestCredentials(_ link: RoomID, afterRefusal: Bool) {
        requests.append(.credentials(link, afterRefusal: afterRefusal))
    }

    /// Requests messages; the answer comes to ``Room/historyArrived(_:isComplete:_:)``.
    func requestHistory(_ room: RoomID, _ query: HistoryQuery) { requests.append(.history(room, query)) }

    /// Requests messages from before the room's beginning here; the answer comes to
    /// ``Room/olderArrived(_:isComplete:_:)``.
    func requestOlder(_ room: RoomID, _ query: HistoryQuery) { requests.append(.olderHistory(room, query)) }

    /// Marks all messages of the room as read on the backend.
    func requestMarkRead(_ room: RoomID) { requests.append(.markRead(room)) }

    /// Requests an account's identity from the backend; the answer comes to ``Room/ownIdentified(_:_:_:)``.
    func requestOwnIdentity(_ own: RoomID) { requests.append(.ownIdentity(own)) }

    // MARK: - Own links of accounts

    /// An account's own credentials for a room's backend; nil: it has none there.
    package func ownLogin(of account: String, in room: String) -> OwnLoginSettings? {
        settings.ownLogins[account]?[room]
    }

    /// The same id each time for an account and a room.
    func ownLinkID(account: String, room: RoomID) -> RoomID {
        let key = "\(room.index) \(account)"
        if let known = ownLinkIDs[key] { return known }
        let id = RoomID(index: -1 - ownLinkIDs.count)
        ownLinkIDs[key] = id
        return id
    }

    package func enter(_ own: OwnLink) {
        ownLinks[own.id] = own
    }

    package func leave(_ own: OwnLink) {
        ownLinks[own.id] = nil
        for timer in [TimerKey.link(own.id), .outbox(own.id), .markRead(own.id), .linger(own.id), .ownIdentity(own.id)]
        {
            cancel(timer)
        }
    }

    package func takeRequests() -> [RoomRequest] {
        defer { requests.removeAll() }
        return requests
    }

    // MARK: - Message ids

    /// The relay's own id of a message; a fresh one where the backend gives it none.
    package func messageID(backend: String, room: String, sender: ChatID?, id: ChatID?) -> String {
        messageIDs.id(backend: backend, room: room, sender: sender, id: id ?? freshChatID())
    }
}

/// A request of a room to its backend's account.
package enum RoomRequest {
    case credentials(RoomID, afterRefusal: Bool)
    case history(RoomID, HistoryQuery)
    case olderHistory(RoomID, HistoryQuery)
    case markRead(RoomID)
    case ownIdentity(RoomID)
}
