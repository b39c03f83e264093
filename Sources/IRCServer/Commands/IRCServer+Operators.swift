import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Rooms

// Operators, and their commands against IRC users. Logging in to an administrator's account, or OPER, makes a user an
// operator.

extension IRCServer {
    /// Grants operator status after the right password, if the account is an administrator's.
    func becomeOperator(_ session: IRCSession, _ account: AccountSettings?) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        guard let account, account.isAdmin else {
            return reply(.errNoOperHost, "This account is no administrator's", to: session)
        }
        session.failedTries = 0
        let isNews = operators.add(personID)
        note(
            .info, "client-oper", "an IRC user became an operator", of: session,
            ["nick": person.nick, "account": account.name])
        reply(.rplYoureOper, "You are now an IRC operator", to: session)
        guard isNews else { return }
        tellOwnMode("+o", personID, session)
        promote(personID, session)
    }

    // MARK: - User modes

    /// The user modes: `+i`, common to all, and those set.
    func ownModes(_ personID: PersonID) -> String {
        var modes = "+i"
        if context.identities[personID]?.isBot == true { modes += "B" }
        if operators.contains(personID) { modes += "o" }
        if operators.wallopsReaders.contains(personID) { modes += "w" }
        return modes
    }

    /// MODE with the client's own nick.
    ///
    /// Source: modern.ircdocs.horse, "User Modes"; IRCv3 bot-mode.
    func ownMode(_ params: [String], _ session: IRCSession) {
        guard let personID = session.person else { return }
        guard let modes = params.first, !modes.isEmpty else {
            return reply(.rplUModeIs, ownModes(personID), to: session)
        }
        var isSet = true
        var isUnknown = false
        var set = ""
        var unset = ""
        for letter in modes {
            switch letter {
            case "+": isSet = true
            case "-": isSet = false
            default:
                guard "Biow".contains(letter) else {
                    isUnknown = true
                    continue
                }
                if setOwnMode(letter, isSet, personID) {
                    if isSet { set.append(letter) } else { unset.append(letter) }
                }
            }
        }
        let changes = (set.isEmpty ? "" : "+" + set) + (unset.isEmpty ? "" : "-" + unset)
        if !changes.isEmpty { tellOwnMode(changes, personID, session) }
        if isUnknown { reply(.errUModeUnknownFlag, "Unknown MODE flag", to: session) }
    }

    /// - Returns: whether the mode changed.
    private func setOwnMode(_ letter: Character, _ isSet: Bool, _ personID: PersonID) -> Bool {
        switch letter {
        case "B":
            guard context.identities[personID]?.isBot != isSet else { return false }
            context.identities.setBot(personID, isSet)
            return true
        case "w": return operators.setReadsWallops(personID, isSet)
        // Operator status is granted by OPER only.
        case "o": return !isSet && operators.remove(personID)
        // All users are invisible; clients set this on connecting.
        default: return false
        }
    }

    private func tellOwnMode(_ changes: String, _ personID: PersonID, _ session: IRCSession) {
        guard let person = context.identities[personID] else { return }
        let line = line("MODE", by: person, [person.nick, changes])
        reply(line, session)
        for other in sessions(of: personID) where other !== session { deliver(line, to: other.id) }
    }

    // MARK: - KILL and WALLOPS

    /// Closes all connections of an IRC user.
    ///
    /// Source: modern.ircdocs.horse, "KILL message".
    func kill(_ nick: String, reason: String?, _ session: IRCSession) {
        let shown = PrintableText.of(nick, maxBytes: 64)
        guard let (id, target) = context.identities.person(nick: nick), target.isPresent else {
            return reply(.errNoSuchNick, shown, "No such nick", to: session)
        }
        let clients = sessions(of: id)
        guard !clients.isEmpty, let killer = session.person.flatMap({ context.identities[$0] }) else {
            return reply(
                .errNoPrivileges, "\(target.nick) is on \(target.host), where IRC operators have no say", to: session)
        }
        let why = reason.map { IdentityMap.realname($0, maxBytes: Self.maxKickBytes) } ?? ""
        let comment = "Killed (\(killer.nick) (\(why.isEmpty ? "no reason" : why)))"
        context.note(
            .warn, "client-killed", "an operator ended an IRC user's connections",
            ["nick": target.nick, "by": killer.nick, "reason": why])
        let line = line("KILL", by: killer, [target.nick, comment])
        for client in clients {
            deliver(line, to: client.id)
            close(client, reason: comment)
        }
    }

    /// Source: modern.ircdocs.horse, "WALLOPS message".
    func wallops(_ text: String, _ session: IRCSession) {
        guard let person = session.person.flatMap({ context.identities[$0] }) else { return }
        let line = line("WALLOPS", by: person, [text])
        for reader in operators.wallopsReaders.sorted(by: { $0.rawValue < $1.rawValue }) {
            for client in sessions(of: reader) { deliver(line, to: client.id) }
        }
    }
}
