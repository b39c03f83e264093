import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

// An account's own link to a room's backend: a second session beside the room's, for sending only.
//
// | state    | meaning                                            | verb → next                                               |
// |----------|----------------------------------------------------|-----------------------------------------------------------|
// | absent   | no user of the account is in the room              | a client enters → linking; restored messages of the       |
// |          |                                                    | account → lingering                                       |
// | linking  | wanted, and not usable yet or no longer            | usable → naming, speaking                                 |
// | naming   | usable; the identity upstream is unknown           | whoAmI answered → speaking, barred; link lost → linking   |
// | speaking | the account's messages are sent                    | link lost → linking; last client left → lingering         |
// | barred   | the backend identifies it as the room's account    | last client left → lingering                              |
// | lingering| no user of the account is present, the link is up  | a client enters → as before; 5 min, and the last message |
// |          |                                                    | is settled → closing                                      |
// | closing  | the Close frame is sent                            | stopped → absent, or linking with a new client or message |
//
// While linking, naming or barred, the account's messages wait in the outbox of this link (see `Outbox`); they never
// take the room's link. Its incoming frames serve as confirmations and refusals only: the room's link shows the rest.
//
// A message of the account may be seen first over either link:
//
// | seen by                  | client-made ids                      | server-made ids                                    |
// |--------------------------|--------------------------------------|----------------------------------------------------|
// | this link, as its echo   | confirmed, by id                     | confirmed, by reference or text                    |
// | this link, as a receipt  | confirmed, by id                     | confirmed, by reference                            |
// | the room's link          | confirmed, or known already          | confirmed, or its id is learned (by person, text)  |
// | the room's history       | the same                             | the same, newest first                             |
// | never, no promise        | confirmed by a pong                  | the same                                           |

/// The lane over an account's own link.
package final class OwnLink: SendLane {
    /// Pause before the backend is asked again for the account's identity.
    static let identityRetry: Duration = .seconds(30)
    /// More than a person says elsewhere while an answer is awaited.
    private static let maxElsewhere = 100

    package let room: RoomID
    package let login: OwnLoginSettings
    private let identity: DialectTraits.Identity
    /// The account's stable upstream id where senders are named; it marks the account's messages everywhere.
    package let puppet: ChatID
    /// The IRC user; replaced after all clients left and one returned, a placeholder before the first.
    package private(set) var person: PersonID
    /// The backend shows its own id for the account, not the relay's.
    private(set) var isLearned: Bool
    /// The account's name on the backend.
    package private(set) var name: String?
    /// The account's id on the backend, where the backend assigns it.
    private var upstreamID: ChatID?
    private var isKnown: Bool
    /// The backend identifies the account as the room's own: the two would be indistinguishable.
    private(set) var isBarred = false
    private var isIdentityTroubleTold = false
    /// The backend announced the account's id, which frames may or may not show.
    private(set) var isIDKnown = false
    private(set) var outage: LinkOutage?
    /// The time at which the last client left.
    package private(set) var emptySince: MonotonicInstant?
    private(set) var isClosing = false
    /// Ids of messages that were shown as said elsewhere while some of ours were unconfirmed: one may be ours all the same.
    private var elsewhere: [ChatID] = []

    init(
        id: RoomID, room: RoomSettings, roomID: RoomID, account: String, login: OwnLoginSettings, puppet: ChatID,
        person: PersonID, sendBudget: SendBudget, outbox: Outbox, traffic: RoomTraffic,
        upstream: UpstreamShared
    ) {
        self.room = roomID
        self.login = login
        self.puppet = puppet
        self.person = person
        identity = room.identity
        upstreamID = login.person.map { ChatID($0) }
        isLearned = login.person != nil
        var dialectContext = DialectContext(room: room.upstreamRoom)
        if room.identity == .puppet { dialectContext.addSelf(puppet) }
        if let person = login.person {
            dialectContext.addSelf(ChatID(person))
            dialectContext.addSelf(name: person)
        }
        isKnown = login.person != nil || room.identity == .puppet || room.dialect.traits.messageIDOrigin == .client
        super.init(
            account: account, settings: room,
            link: UpstreamSession(
                room: id, settings: Self.linkSettings(room, account),
                usesAccount: login.backend.map { upstream.hasLogin($0) } ?? false,
                shared: upstream),
            sendBudget: sendBudget, outbox: outbox, traffic: traffic, dialectContext: dialectContext)
    }

    private static func linkSettings(_ room: RoomSettings, _ account: String) -> LinkSettings {
        var settings = room.link
        settings.name = room.name + "/" + account
        settings.authenticates = true
        // The room's link fetches the history; the least of it here, from a backend that pushes some.
        settings.historyLimit = 0
        return settings
    }

    override func linkSettings(_ room: RoomSettings) -> LinkSettings { Self.linkSettings(room, account) }

    override var isIdentified: Bool { isKnown }

    override var canSpeak: Bool { link.isUp && !link.isLoginEnded && isIdentified && !isBarred && !isClosing }

    override func sender(of message: ChatMessage, nick: String) -> ChatPerson { speaker(nick: nick) }

    /// The sender in the frames of this link.
    package func speaker(nick: String) -> ChatPerson {
        ChatPerson(id: upstreamID ?? puppet, name: name ?? nick)
    }

    func isPerson(_ person: ChatPerson) -> Bool { dialectContext.isSelf(person) }

    /// A message of the account was shown as said elsewhere.
    func shownElsewhere(_ id: ChatID) {
        guard !outbox.isEmpty else { return elsewhere = [] }
        if elsewhere.count == Self.maxElsewhere { elsewhere.removeFirst() }
        elsewhere.append(id)
    }

    func isShownElsewhere(_ id: ChatID) -> Bool { elsewhere.contains(id) }

    // MARK: - Clients enter and leave

    package func entered(_ person: PersonID) {
        self.person = person
        emptySince = nil
    }

    package func left(at now: MonotonicInstant) { emptySince = now }

    package func beginClosing() { isClosing = true }

    /// The link stopped, or is to stop for good. Returns whether it was closed for lack of clients.
    @discardableResult
    package func endClosing() -> Bool {
        defer { isClosing = false }
        return isClosing
    }

    // MARK: - Upstream identity

    /// Records the identity announced by the backend.
    package func identified(as person: ChatPerson) {
        if login.person == nil, identity == .single { upstreamID = person.id }
        isIDKnown = person.id != nil
        name = person.name ?? name
        isAlso(person)
        isKnown = true
    }

    /// Learns the identity from the first echo; later ones prove nothing more.
    func recognised(_ sender: ChatPerson) {
        isAlso(sender.id == nil ? sender : ChatPerson(id: sender.id))
        isLearned = true
    }

    func bar() { isBarred = true }

    /// Returns whether to notify the clients that the backend has not identified the account; once.
    func tellIdentityTrouble() -> Bool {
        defer { isIdentityTroubleTold = true }
        return !isIdentityTroubleTold
    }

    // MARK: - The link comes and goes

    /// Ends the outage and returns it.
    func cameUp() -> LinkOutage? {
        defer { outage = nil }
        return outage
    }

    /// A usable link is opened anew on purpose.
    func replaced(_ reason: String, now: MonotonicInstant) {
        outage = outage ?? LinkOutage(since: now, reason: reason, wasUp: true, isTold: false)
    }

    /// Returns whether to notify the clients: once per outage, and once more for a refusal.
    func wentDown(_ reason: String, wasUp: Bool, isRefused: Bool, now: MonotonicInstant) -> Bool {
        if let outage, outage.isTold, !isRefused || outage.isRefusalTold { return false }
        outage = outage ?? LinkOutage(since: now, reason: reason, wasUp: wasUp)
        outage?.goesOn(reason, isRefused: isRefused)
        return true
    }
}

/// Message ids made by own links, with the account of each.
final class OwnMessageIDs {
    /// As many as ``SeenMessageIDs``.
    static let capacity = SeenMessageIDs.capacity

    private var owners: [ChatID: String] = [:]
    private var order: [ChatID] = []
    private var next = 0

    func owner(of id: ChatID) -> String? { owners[id] }

    func insert(_ id: ChatID, of account: String) {
        guard owners.updateValue(account, forKey: id) == nil else { return }
        if order.count < Self.capacity {
            order.append(id)
        } else {
            owners[order[next]] = nil
            order[next] = id
            next = (next + 1) % Self.capacity
        }
    }
}
