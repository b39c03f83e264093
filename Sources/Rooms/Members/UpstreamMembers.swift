import BridgeTypes
import ChatModel
import WireBytes

/// The upstream people in a room, and names for frames with an id alone.
final class UpstreamMembers {
    /// Names from histories, at most.
    private static let maxNames = 2000
    /// Shortest interval between typing notices of one person.
    private static let typingNoticeInterval: Duration = .seconds(3)

    private struct Member {
        var lastSeen: MonotonicInstant
        /// IRC shows them as typing.
        var isTypingShown = false
        /// Time of the last typing notice on IRC.
        var typingToldAt: MonotonicInstant?
    }

    private var members: [PersonID: Member] = [:]
    /// The shared nick of people without one of their own, and its last use.
    private(set) var shared: (person: PersonID, lastSeen: MonotonicInstant)?
    private var names: [ChatID: String] = [:]

    var count: Int { members.count }
    var isEmpty: Bool { members.isEmpty && shared == nil }

    /// In a fixed order.
    var people: [PersonID] { members.keys.sorted { $0.rawValue < $1.rawValue } }

    func contains(_ person: PersonID) -> Bool { members[person] != nil }

    func lastSeen(_ person: PersonID) -> MonotonicInstant? { members[person]?.lastSeen }

    /// They joined, or acted.
    func seen(_ person: PersonID, at now: MonotonicInstant) {
        members[person, default: Member(lastSeen: now)].lastSeen = now
    }

    /// They acted. False: they are not in the room.
    func acts(_ person: PersonID, at now: MonotonicInstant) -> Bool {
        guard let place = members.index(forKey: person) else { return false }
        members.values[place].lastSeen = now
        return true
    }

    /// - Returns: whether they were present.
    func remove(_ person: PersonID) -> Bool { members.removeValue(forKey: person) != nil }

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
        if let told = members[person]?.typingToldAt, now - told < Self.typingNoticeInterval { return false }
        members[person]?.typingToldAt = now
        members[person]?.isTypingShown = true
        return true
    }

    /// Returns whether IRC showed them as typing.
    func stopsTyping(_ person: PersonID) -> Bool {
        guard isTypingShown(person) else { return false }
        members[person]?.isTypingShown = false
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
