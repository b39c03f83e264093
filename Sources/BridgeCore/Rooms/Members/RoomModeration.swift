import ChatModel
import IRCProtocol

// What IRC users may do to each other in a room. It ends at the bridge: people upstream know nothing of it.
//
// As on any IRC server, whoever enters an empty room may moderate it, and what they set goes with the last IRC user. What
// an administrator set stays as long as the process runs, so that nobody undoes it by waiting for the room to be empty.

/// Modes and lists of a room.
final class RoomModeration {
    /// Masks in the ban list.
    static let maxBans = 100
    /// Invitations that are remembered; the oldest go first.
    static let maxInvitations = 100

    /// A mode without a parameter.
    ///
    /// Source: modern.ircdocs.horse, "Channel Modes".
    enum Flag: Character, CaseIterable {
        /// Only who was invited may enter.
        case inviteOnly = "i"
        /// Only operators and the voiced may speak.
        case moderated = "m"
        /// Only operators set the topic; on from the beginning.
        case protectedTopic = "t"
    }

    struct Ban {
        var mask: IRCMask
        var setBy: String
        var setAt: ChatTimestamp
        /// An administrator set it.
        var isLasting: Bool
    }

    /// The topic that IRC users gave the room.
    struct Topic {
        /// Empty: it was taken away.
        var text: String
        /// The source of whoever set it.
        var setBy: String
        var setAt: ChatTimestamp
    }

    private(set) var operators: Set<PersonID> = []
    private(set) var voiced: Set<PersonID> = []
    /// Those that are set, and whether an administrator did that.
    private(set) var flags: [Flag: Bool] = [.protectedTopic: true]
    private(set) var bans: [Ban] = []
    private(set) var invited: [PersonID] = []
    private(set) var topic: Topic?

    // MARK: - People

    func isOperator(_ person: PersonID) -> Bool { operators.contains(person) }

    /// `@`, `+`, both or nothing, the highest first.
    func prefixes(of person: PersonID) -> String {
        (operators.contains(person) ? "@" : "") + (voiced.contains(person) ? "+" : "")
    }

    /// Whether something changed.
    func setOperator(_ person: PersonID, _ isSet: Bool) -> Bool {
        isSet ? operators.insert(person).inserted : operators.remove(person) != nil
    }

    /// Whether something changed.
    func setVoiced(_ person: PersonID, _ isSet: Bool) -> Bool {
        isSet ? voiced.insert(person).inserted : voiced.remove(person) != nil
    }

    func left(_ person: PersonID) {
        operators.remove(person)
        voiced.remove(person)
    }

    /// The last IRC user has left.
    func emptied() {
        operators = []
        voiced = []
        invited = []
        flags = flags.filter(\.value)
        flags[.protectedTopic] = true
        bans.removeAll { !$0.isLasting }
    }

    // MARK: - Modes

    /// `+imnt` as far as they are set. `n` always is: nobody speaks in a room without being there.
    var modeString: String {
        let letters = (flags.keys.map(\.rawValue) + ["n"]).sorted()
        return "+" + String(letters)
    }

    func has(_ flag: Flag) -> Bool { flags[flag] != nil }

    /// Whether something changed.
    func set(_ flag: Flag, _ isSet: Bool, isLasting: Bool) -> Bool {
        guard isSet != has(flag) else { return false }
        flags[flag] = isSet ? isLasting : nil
        return true
    }

    func setTopic(_ text: String, by setter: String, at: ChatTimestamp) {
        topic = Topic(text: text, setBy: setter, setAt: at)
    }

    // MARK: - Bans and invitations

    enum BanOutcome {
        case added
        case known
        case full
    }

    func ban(_ ban: Ban) -> BanOutcome {
        if bans.contains(where: { $0.mask == ban.mask }) { return .known }
        guard bans.count < Self.maxBans else { return .full }
        bans.append(ban)
        return .added
    }

    /// The mask as it was set; nil: there is none like it.
    func unban(_ mask: IRCMask) -> String? {
        guard let index = bans.firstIndex(where: { $0.mask == mask }) else { return nil }
        return bans.remove(at: index).mask.text
    }

    /// Whether a mask fits the person: by nick, or by account, which outlasts a change of nick.
    func isBanned(_ person: Person) -> Bool {
        guard !bans.isEmpty else { return false }
        let byAccount = person.account.map { $0 + "!" + person.ident + "@" + person.host }
        return bans.contains { ban in
            ban.mask.matches(person.source) || byAccount.map { ban.mask.matches($0) } ?? false
        }
    }

    func invite(_ person: PersonID) {
        guard !invited.contains(person) else { return }
        if invited.count >= Self.maxInvitations { invited.removeFirst() }
        invited.append(person)
    }

    func isInvited(_ person: PersonID) -> Bool { invited.contains(person) }

    func used(invitationOf person: PersonID) { invited.removeAll { $0 == person } }
}
