import BridgeTypes
import ChatModel
import Identities

// Moderation among the IRC users of a room. It ends at the bridge: upstream people are not affected.
//
// As on any IRC server, the first user in an empty room is its operator, and the modes they set end with the last IRC
// user. Modes set by an administrator last as long as the process, so that waiting for an empty room does not undo
// them.

/// A mask for people, matched with their sources, in the syntax of a front end.
package struct PersonMask: Sendable, Equatable {
    /// As it was given.
    package let text: String
    /// Equal for masks that match the same sources.
    private let key: String
    private let fits: @Sendable (_ source: String) -> Bool

    package init(text: String, key: String, fits: @escaping @Sendable (_ source: String) -> Bool) {
        self.text = text
        self.key = key
        self.fits = fits
    }

    package static func == (a: PersonMask, b: PersonMask) -> Bool { a.key == b.key }

    package func matches(_ source: String) -> Bool { fits(source) }
}

/// Modes and lists of a room.
package final class RoomModeration {
    /// Masks in the ban list.
    package static let maxBans = 100
    /// Invitations that are remembered; the oldest go first.
    static let maxInvitations = 100

    /// A mode without a parameter.
    ///
    /// Source: modern.ircdocs.horse, "Channel Modes".
    package enum Flag: Character, CaseIterable {
        /// Only invited users may enter.
        case inviteOnly = "i"
        /// Only operators and voiced users may speak.
        case moderated = "m"
        /// Only operators set the topic; on from the beginning.
        case protectedTopic = "t"
    }

    package struct Ban {
        package var mask: PersonMask
        package var setBy: String
        package var setAt: ChatTimestamp
        /// Set by an administrator.
        package var isLasting: Bool

        package init(mask: PersonMask, setBy: String, setAt: ChatTimestamp, isLasting: Bool) {
            self.mask = mask
            self.setBy = setBy
            self.setAt = setAt
            self.isLasting = isLasting
        }
    }

    /// Limit of a topic that is shown.
    package static let maxTopicBytes = 300

    /// A topic set by IRC users, or by the backend.
    package struct Topic {
        /// Empty: it was taken away.
        package var text: String
        /// The source of the user that set it.
        package var setBy: String
        package var setAt: ChatTimestamp
        /// IRC users cannot change it.
        package var isFromBackend = false
    }

    package private(set) var operators: Set<PersonID> = []
    package private(set) var voiced: Set<PersonID> = []
    /// The modes that are set, and whether by an administrator.
    private var flags: [(flag: Flag, isLasting: Bool)] = [(.protectedTopic, true)]
    package private(set) var bans: [Ban] = []
    package private(set) var invited: [PersonID] = []
    package private(set) var topic: Topic?

    // MARK: - People

    package func isOperator(_ person: PersonID) -> Bool { operators.contains(person) }

    /// `@`, `+`, both or none, the highest first.
    package func prefixes(of person: PersonID) -> String {
        switch (operators.contains(person), voiced.contains(person)) {
        case (false, false): ""
        case (true, false): "@"
        case (false, true): "+"
        case (true, true): "@+"
        }
    }

    /// Returns whether it changed.
    package func setOperator(_ person: PersonID, _ isSet: Bool) -> Bool {
        isSet ? operators.insert(person).inserted : operators.remove(person) != nil
    }

    /// Returns whether it changed.
    package func setVoiced(_ person: PersonID, _ isSet: Bool) -> Bool {
        isSet ? voiced.insert(person).inserted : voiced.remove(person) != nil
    }

    package func left(_ person: PersonID) {
        operators.remove(person)
        voiced.remove(person)
    }

    /// The last IRC user has left.
    func emptied() {
        operators = []
        voiced = []
        invited = []
        flags = flags.filter { $0.isLasting && $0.flag != .protectedTopic } + [(.protectedTopic, true)]
        bans.removeAll { !$0.isLasting }
    }

    // MARK: - Modes

    /// `+imnt` as far as they are set. `n` always is: speaking requires membership.
    package var modeString: String {
        let letters = (flags.map(\.flag.rawValue) + ["n"]).sorted()
        return "+" + String(letters)
    }

    package func has(_ flag: Flag) -> Bool { flags.contains { $0.flag == flag } }

    /// Returns whether it changed.
    package func set(_ flag: Flag, _ isSet: Bool, isLasting: Bool) -> Bool {
        guard isSet != has(flag) else { return false }
        flags.removeAll { $0.flag == flag }
        if isSet { flags.append((flag, isLasting)) }
        return true
    }

    package func setTopic(_ text: String, by setter: String, at: ChatTimestamp) {
        topic = Topic(text: text, setBy: setter, setAt: at)
    }

    /// Takes a topic from the backend; false where it is the one that the room has.
    package func takeTopic(_ text: String, from server: String, at: ChatTimestamp) -> Bool {
        let isSame = (topic?.text ?? "") == text
        topic = Topic(text: text, setBy: server, setAt: isSame ? topic?.setAt ?? at : at, isFromBackend: true)
        return !isSame
    }

    // MARK: - Bans and invitations

    package enum BanOutcome {
        case added
        case known
        case full
    }

    package func ban(_ ban: Ban) -> BanOutcome {
        if bans.contains(where: { $0.mask == ban.mask }) { return .known }
        guard bans.count < Self.maxBans else { return .full }
        bans.append(ban)
        return .added
    }

    /// Removes a mask and returns it; nil: not found.
    package func unban(_ mask: PersonMask) -> String? {
        guard let index = bans.firstIndex(where: { $0.mask == mask }) else { return nil }
        return bans.remove(at: index).mask.text
    }

    /// Whether a mask matches the person: by nick, or by account, which survives a change of nick.
    package func isBanned(_ person: Person) -> Bool {
        guard !bans.isEmpty else { return false }
        let byAccount = person.account.map { $0 + "!" + person.ident + "@" + person.host }
        return bans.contains { ban in
            ban.mask.matches(person.source) || byAccount.map { ban.mask.matches($0) } ?? false
        }
    }

    package func invite(_ person: PersonID) {
        guard !invited.contains(person) else { return }
        if invited.count >= Self.maxInvitations { invited.removeFirst() }
        invited.append(person)
    }

    package func isInvited(_ person: PersonID) -> Bool { invited.contains(person) }

    package func used(invitationOf person: PersonID) { invited.removeAll { $0 == person } }
}
