import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

// An account's own link to a room's backend: a second session beside the room's, which only speaks.
//
// | state    | meaning                                            | verb → next                                               |
// |----------|----------------------------------------------------|-----------------------------------------------------------|
// | absent   | nobody of the account is in the room               | a client enters → linking; an earlier process left what   |
// |          |                                                    | the account said → lingering                              |
// | linking  | wanted, and not usable yet or no longer            | usable → naming, speaking                                 |
// | naming   | usable, but not known as whom the backend sees us  | whoAmI answered → speaking, barred; link lost → linking   |
// | speaking | what the account says goes out                     | link lost → linking; last client left → lingering         |
// | barred   | the backend sees us as the room's own account      | last client left → lingering                              |
// | lingering| nobody of the account is here, the link stays      | a client enters → as before; 5 min and nothing to send →  |
// |          |                                                    | closing                                                   |
// | closing  | our Close is sent                                  | stopped → absent, or linking when a client entered or     |
// |          |                                                    | something was said                                        |
//
// While linking, naming or barred, what the account says waits in the outbox of this link, by the rules of `Outbox`; it never
// takes the room's link. What the link brings is read for confirmations and refusals alone: the room's link shows the rest.
//
// One message of the account, as it is seen from here. Either link may be the first to bring it:
//
// | seen by                  | the wire's ids are ours              | the ids are the server's                           |
// |--------------------------|--------------------------------------|----------------------------------------------------|
// | this link, as its echo   | confirmed, by id                     | confirmed, by reference or text                    |
// | this link, as a receipt  | confirmed, by id                     | confirmed, by reference                            |
// | the room's link          | confirmed, or known already          | confirmed, or its id is learned (by person, text)  |
// | the room's history       | the same                             | the same, newest first                             |
// | never, nothing promised  | confirmed by a pong                  | the same                                           |

/// The lane over an account's own link.
package final class OwnLink: SendLane {
    /// Wait before the backend is asked once more who we are.
    static let identityRetry: Duration = .seconds(30)

    package let room: RoomID
    package let login: OwnLoginSettings
    /// The account's own id on the backend where we name senders; it marks the account's messages everywhere.
    package let puppet: ChatID
    /// The IRC user; another one after everybody left and came again, and nobody before the first came.
    package private(set) var person: PersonID
    /// The backend shows its own id for us, not the one that we gave.
    private(set) var isLearned: Bool
    /// The name that the backend has for us.
    package private(set) var name: String?
    /// The id that the backend has for us, where it is not ours to choose.
    private var upstreamID: ChatID?
    private var isKnown: Bool
    /// The backend sees us as the account of the room's own link: nobody could tell the two apart.
    private(set) var isBarred = false
    private var isIdentityTroubleTold = false
    /// The backend told the account's id, which frames may or may not show.
    private(set) var isIDKnown = false
    private(set) var outage: LinkOutage?
    /// When the last client left.
    package private(set) var emptySince: MonotonicInstant?
    private(set) var isClosing = false

    init(
        id: RoomID, room: RoomSettings, roomID: RoomID, account: String, login: OwnLoginSettings, puppet: ChatID,
        person: PersonID, sendBudget: SendBudget, outbox: Outbox, upstream: UpstreamShared
    ) {
        var settings = room.link
        settings.name = room.name + "/" + account
        settings.authenticates = true
        // The room's link sees the past; here a backend that insists on sending some sends the least.
        settings.historyLimit = 0
        self.room = roomID
        self.login = login
        self.puppet = puppet
        self.person = person
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
                room: id, settings: settings, usesAccount: login.backend.map { upstream.hasLogin($0) } ?? false,
                shared: upstream),
            sendBudget: sendBudget, outbox: outbox, dialectContext: dialectContext)
    }

    override var isIdentified: Bool { isKnown }

    override var canSpeak: Bool { link.isUp && !link.isLoginEnded && isIdentified && !isBarred && !isClosing }

    override func sender(of entry: OutboxEntry) -> ChatPerson { speaker(nick: entry.origin.nick) }

    /// Who speaks in the frames of this link.
    package func speaker(nick: String) -> ChatPerson {
        ChatPerson(id: upstreamID ?? puppet, name: name ?? nick)
    }

    func isPerson(_ person: ChatPerson) -> Bool { dialectContext.isSelf(person) }

    // MARK: - Clients come and go

    package func entered(_ person: PersonID) {
        self.person = person
        emptySince = nil
    }

    package func left(at now: MonotonicInstant) { emptySince = now }

    package func beginClosing() { isClosing = true }

    /// The link stopped, or is to stop for good. Returns whether it was closed because nobody was here.
    @discardableResult
    package func endClosing() -> Bool {
        defer { isClosing = false }
        return isClosing
    }

    // MARK: - Who the account is upstream

    /// The backend said who the account is.
    package func identified(as person: ChatPerson) {
        if login.person == nil, settings.identity == .single { upstreamID = person.id }
        isIDKnown = person.id != nil
        name = person.name ?? name
        isAlso(person)
        isKnown = true
    }

    /// A message of ours came back from this person. Later ones prove nothing more.
    func recognised(_ sender: ChatPerson) {
        isAlso(sender.id == nil ? sender : ChatPerson(id: sender.id))
        isLearned = true
    }

    func bar() { isBarred = true }

    /// Whether the clients are to hear that the backend has not said who the account is; not a second time.
    func tellIdentityTrouble() -> Bool {
        defer { isIdentityTroubleTold = true }
        return !isIdentityTroubleTold
    }

    // MARK: - The link comes and goes

    /// Returns the trouble that is over.
    func cameUp() -> LinkOutage? {
        defer { outage = nil }
        return outage
    }

    /// Returns whether the clients are to hear of it: once, and once more when the backend refuses us.
    func wentDown(_ reason: String, wasUp: Bool, isRefused: Bool, now: MonotonicInstant) -> Bool {
        if let outage {
            guard isRefused, !outage.isRefusalTold else { return false }
        } else {
            outage = LinkOutage(since: now, reason: reason, wasUp: wasUp)
        }
        outage?.goesOn(reason, isRefused: isRefused)
        return true
    }
}

/// Ids of ours that own links gave to messages, with the account each belongs to.
final class OwnMessageIDs {
    /// As many as the ring of ids remembers.
    static let capacity = DuplicateRing.capacity

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
