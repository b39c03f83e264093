import BridgeTypes
import ChatModel
import Identities
import WireBytes

/// An IRC user in a room, by one of their clients. An object, so that the table of members stays small while it grows.
package final class LocalMember: MemberSlot {
    package let person: PersonID
    /// The name of the client within its account; nil: it has no account.
    package fileprivate(set) var clientName: String?
    package fileprivate(set) var puppet: ChatID
    private(set) var hasReadMarker: Bool
    /// The read receipts that the backend gets.
    package private(set) var receipts: ReceiptPolicy
    /// The sequence number of the newest message before the client entered; -1: none.
    private(set) var joinedAfter: Int
    private var knowsReactionsStay = false
    private var spoken: KnownSpeaker?
    // Most members have not typed anything yet.
    private var typist: Typist?

    private final class Typist {
        var typing: OutgoingTyping?
        let sentAt: MonotonicInstant?

        init(_ typing: OutgoingTyping, sentAt: MonotonicInstant?) { (self.typing, self.sentAt) = (typing, sentAt) }
    }

    init(
        client: ClientID, person: PersonID, clientName: String?, puppet: ChatID, joinedAfter: Int,
        hasReadMarker: Bool, receipts: ReceiptPolicy
    ) {
        self.person = person
        self.clientName = clientName
        self.puppet = puppet
        self.joinedAfter = joinedAfter
        self.hasReadMarker = hasReadMarker
        self.receipts = receipts
        super.init(client: client)
    }

    /// The client has read markers, or has them no longer.
    package func showsReadMarkers(_ shows: Bool) { hasReadMarker = shows }

    func chose(_ policy: ReceiptPolicy) { receipts = policy }

    /// The member as shown with their messages.
    ///
    /// - Parameter person: the same, as of the identities' revision.
    func speaker(_ person: Person, _ revision: UInt64) -> RoomSpeaker {
        if let spoken, spoken.revision == revision { return spoken.who }
        let who = RoomSpeaker(person)
        spoken = KnownSpeaker(who: who, revision: revision)
        return who
    }

    /// The order of the room was restored after the client had entered.
    func joined(after place: Int) { joinedAfter = place }

    /// Returns whether to notify the client that its reactions stay on IRC; once.
    func learnsThatReactionsStay() -> Bool {
        defer { knowsReactionsStay = true }
        return !knowsReactionsStay
    }

    // MARK: - Typing

    var typing: OutgoingTyping? { typist?.typing }

    /// The time of the last typing notification to the backend.
    var typingSentAt: MonotonicInstant? { typist?.sentAt }

    /// - Parameter sentAt: time of the notification to the backend; nil: none.
    func types(_ typing: OutgoingTyping, sentAt: MonotonicInstant? = nil) {
        typist = Typist(typing, sentAt: sentAt ?? typist?.sentAt)
    }

    func stopsTyping() {
        if typist?.sentAt == nil { typist = nil } else { typist?.typing = nil }
    }
}

/// The IRC users of a room, by client and by their ids upstream.
package final class LocalMembers {
    /// Ids of former members that are still recognised; a backend echoes within seconds, so this covers a mass leave.
    private static let maxRetired = 1000

    private enum ByClient: ObjectKeying {
        static func key(of member: LocalMember) -> ClientID { member.client }
    }

    private enum ByPuppet: ObjectKeying {
        static func key(of member: LocalMember) -> ChatID { member.puppet }
    }

    private var byClient = KeyedObjects<ByClient>()
    /// One client for each person with several.
    private var byPuppet = KeyedObjects<ByPuppet>()
    /// Ids of members that left or changed their nick, oldest first. Their last messages may still be echoed, and must
    /// not be taken for a stranger's.
    private var retired: [ChatID] = []
    /// The same ids: hardly a user who enters has left before.
    private var retiredIDs: Set<ChatID> = []

    package var count: Int { byClient.count }
    package var isEmpty: Bool { byClient.isEmpty }
    package var values: some Sequence<LocalMember> { byClient.values }
    package var keys: some Sequence<ClientID> { byClient.keys }
    package subscript(client: ClientID) -> LocalMember? { byClient[client] }

    /// The member who speaks under an id upstream.
    subscript(puppet puppet: ChatID) -> LocalMember? { byPuppet[puppet] }

    /// One member for each id upstream.
    var speakers: some Sequence<LocalMember> { byPuppet.values }

    func insert(_ member: LocalMember) {
        byClient.insert(member)
        adopt(member)
    }

    func remove(_ client: ClientID) { byClient.remove(client) }

    func nameClient(_ member: LocalMember, _ name: String?) { member.clientName = name }

    private func adopt(_ member: LocalMember) {
        byPuppet.insert(member)
        if retiredIDs.remove(member.puppet) != nil { retired.removeAll { $0 == member.puppet } }
    }

    /// Another client of a person speaks for them after this one's end.
    func handOver(from member: LocalMember, to other: LocalMember) {
        if byPuppet[member.puppet] === member { byPuppet.insert(other) }
    }

    /// The member is another person upstream from now on.
    ///
    /// - Returns: an id that is no longer recognised.
    func rename(_ member: LocalMember, to puppet: ChatID) -> ChatID? {
        let expired = abandon(member)
        member.puppet = puppet
        adopt(member)
        return expired
    }

    /// The member's id is no longer in use.
    ///
    /// - Returns: an id that is no longer recognised.
    func abandon(_ member: LocalMember) -> ChatID? {
        guard byPuppet[member.puppet]?.person == member.person else { return nil }
        byPuppet.remove(member.puppet)
        return retire(member.puppet)
    }

    /// - Returns: an id that is no longer recognised.
    func retire(_ puppet: ChatID) -> ChatID? {
        if retiredIDs.insert(puppet).inserted { retired.append(puppet) }
        return retired.count > Self.maxRetired ? retiredIDs.remove(retired.removeFirst()) : nil
    }
}
