import BridgeTypes
import ChatModel
import Identities
import WireBytes

/// The upstream people in a room, and names for frames with an id alone.
final class UpstreamMembers {
    /// Names from histories, at most.
    private static let maxNames = 2000
    /// Shortest interval between typing notices of one person.
    private static let typingNoticeInterval: Duration = .seconds(3)

    private final class Member {
        let person: PersonID
        var lastSeen: MonotonicInstant
        /// IRC shows them as typing.
        var isTypingShown = false
        /// Time of the last typing notice on IRC.
        var typingToldAt: MonotonicInstant?
        /// As they last spoke.
        var spoken: KnownSpeaker?
        /// The sender of a frame that was found to be this person, unchanged.
        var sender: Sender?

        init(_ person: PersonID, lastSeen: MonotonicInstant) {
            self.person = person
            self.lastSeen = lastSeen
        }
    }

    /// Boxed, so that a look at it copies nothing.
    private final class Sender {
        let id: ChatID
        let name: String?
        /// The state of the identities then.
        let revision: UInt64

        init(_ id: ChatID, _ name: String?, _ revision: UInt64) {
            self.id = id
            self.name = name
            self.revision = revision
        }
    }

    private enum ByPerson: ObjectKeying {
        static func key(of member: Member) -> PersonID { member.person }
    }

    private enum BySender: ObjectKeying {
        private static let hashes = QuickHash()

        static func key(of member: Member) -> ChatID { member.sender?.id ?? ChatID("") }
        static func hash(_ id: ChatID) -> Int { Int(truncatingIfNeeded: hashes.hash(id)) & .max }
    }

    private var members = KeyedObjects<ByPerson>()
    /// Those of them who were recognised by the sender's id.
    private var recognised = KeyedObjects<BySender>()
    /// Of the members, how many IRC shows as typing.
    private var typingCount = 0
    /// The shared nick of people without one of their own, and its last use.
    private(set) var shared: (person: PersonID, lastSeen: MonotonicInstant)?
    private var names: [ChatID: String] = [:]

    var count: Int { members.count }
    var isEmpty: Bool { members.isEmpty && shared == nil }

    /// In a fixed order.
    var people: [PersonID] { members.keys.sorted { $0.rawValue < $1.rawValue } }

    /// The member as shown with their messages.
    func speaker(_ person: PersonID, _ identities: IdentityMap) -> RoomSpeaker? {
        guard let member = members[person] else { return nil }
        if let known = member.spoken, known.revision == identities.revision { return known.who }
        guard let who = identities[person].map({ RoomSpeaker($0) }) else { return nil }
        member.spoken = KnownSpeaker(who: who, revision: identities.revision)
        return who
    }

    func contains(_ person: PersonID) -> Bool { members[person] != nil }

    func lastSeen(_ person: PersonID) -> MonotonicInstant? { members[person]?.lastSeen }

    /// They joined, or acted.
    func seen(_ person: PersonID, at now: MonotonicInstant) {
        if !acts(person, at: now) { members.insert(Member(person, lastSeen: now)) }
    }

    /// The sender of a frame acted, and is a member as ever: identities need not be asked. Nil: they have to be.
    func acts(_ sender: ChatPerson, at now: MonotonicInstant, _ revision: UInt64) -> PersonID? {
        guard let id = sender.id, let member = recognised[id], let known = member.sender, known.revision == revision,
            sender.name == nil || sender.name == known.name
        else { return nil }
        member.lastSeen = now
        return member.person
    }

    /// A frame's sender was found to be a member, unchanged.
    func recognise(_ sender: ChatPerson, as person: PersonID, _ revision: UInt64) {
        guard let id = sender.id, let member = members[person] else { return }
        if let known = member.sender, known.id != id { recognised.remove(known.id) }
        member.sender = Sender(id, sender.name, revision)
        recognised.insert(member)
    }

    /// They acted. False: they are not in the room.
    func acts(_ person: PersonID, at now: MonotonicInstant) -> Bool {
        guard let member = members[person] else { return false }
        member.lastSeen = now
        return true
    }

    /// - Returns: whether they were present.
    func remove(_ person: PersonID) -> Bool {
        _ = stopsTyping(person)
        guard let member = members.remove(person) else { return false }
        if let known = member.sender { recognised.remove(known.id) }
        return true
    }

    // MARK: - The shared nick

    func sharedUsed(_ person: PersonID, at now: MonotonicInstant) { shared = (person, now) }

    func takeShared() -> PersonID? {
        defer { shared = nil }
        return shared?.person
    }

    // MARK: - Typing

    func isTypingShown(_ person: PersonID) -> Bool { members[person]?.isTypingShown == true }

    var typing: [PersonID] { people.filter(isTypingShown) }

    /// Records typing. Returns whether to notify IRC; rate-limited also across messages and stops, so that a flood of
    /// frames is no flood of notices.
    func types(_ person: PersonID, at now: MonotonicInstant) -> Bool {
        guard let member = members[person] else { return true }
        if let told = member.typingToldAt, now - told < Self.typingNoticeInterval { return false }
        member.typingToldAt = now
        if !member.isTypingShown { typingCount += 1 }
        member.isTypingShown = true
        return true
    }

    /// Returns whether IRC showed them as typing.
    func stopsTyping(_ person: PersonID) -> Bool {
        guard typingCount > 0, let member = members[person], member.isTypingShown else { return false }
        member.isTypingShown = false
        typingCount -= 1
        return true
    }

    // MARK: - Names

    func learnName(of person: ChatPerson) {
        guard let id = person.id, let name = person.name, names.count < Self.maxNames else { return }
        names[id] = name
    }

    /// The person with the name from a history, where a frame has only the id.
    func named(_ person: ChatPerson) -> ChatPerson {
        guard person.name == nil, let id = person.id, let name = names[id] else { return person }
        return ChatPerson(id: id, name: name)
    }
}
