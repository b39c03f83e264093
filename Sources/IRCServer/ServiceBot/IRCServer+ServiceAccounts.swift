import Accounts
import BridgeTypes
import ChatModel
import Dialects
import Digests
import IRCProtocol
import Identities
import Rooms

// Service commands for the user's own account: login and logout, mutes, receipts.

extension IRCServer {
    // MARK: - whoami

    func whoAmI(_ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        say("You are \(person.source), called \"\(person.realname)\".", to: session)
        if let account = session.account {
            let name = session.clientName.map { ", this client is \(NumberedClientName($0).shown)" } ?? ""
            say("Your account is \(account.name)\(name).", to: session)
            let others = person.clients.count - 1
            if others > 0 {
                say("\(Self.counted(others, "other client", "other clients")) of yours here.", to: session)
            }
        } else {
            say("You are not logged in.", to: session)
        }
        if isOperators(session) { say("You are an administrator of this bridge.", to: session) }
        if let away = person.away { say("You are away: \(away)", to: session) }
        let way =
            switch session.origin.security {
            case .plain: "is not encrypted"
            case .encrypted: "is encrypted"
            case .certified(let fingerprint): "is encrypted, with the certificate \(fingerprint)"
            }
        say("Your connection \(way).", to: session)
        let channels = session.rooms.compactMap { room($0) }
        say(
            channels.isEmpty
                ? "You are in no room."
                : "You are in \(Self.counted(channels.count, "room", "rooms")); the backends see you there as:",
            to: session)
        for room in channels {
            guard let seen = upstreamName(of: person, session, in: room) else { continue }
            sayLater("\(room.channel): \(seen)", to: session)
        }
    }

    /// The upstream identity under which the user's messages appear in the room.
    private func upstreamName(of person: Person, _ session: IRCSession, in room: Room) -> String? {
        guard let member = room.locals[session.id] else { return nil }
        let shown = room.upstreamPerson(person, member.puppet)
        if let own = room.ownLink(of: person) {
            return "\(own.speaker(nick: person.nick).name ?? person.nick), yourself"
        }
        guard room.settings.identity == .single else { return shown.name ?? person.nick }
        let account = IdentityMap.realname(room.accountPerson.name ?? "one account")
        return room.traits.sendsSenderName
            ? "\(shown.name ?? person.nick), through \(account)" : "\(account), which speaks for everybody from here"
    }

    // MARK: - login and logout

    func logIn(_ request: ServiceRequest, _ session: IRCSession) {
        let words = request.rest.split(separator: " ", maxSplits: 1)
        guard session.origin.allowsLogin else {
            return say("A password does not cross this connection; connect with TLS.", to: session)
        }
        guard !logins.isBusy(with: session.id), !session.sasl.isUnderway else {
            return say("Wait for the answer to your last try.", to: session)
        }
        guard let name = words.first else {
            guard let certificate = session.origin.security.certificate,
                let account = accounts.account(certificate: certificate)
            else { return say("Usage: \(request.usage)", to: session) }
            return take(.succeeded(Login(.service, account)), session)
        }
        guard words.count > 1 else { return say("Usage: \(request.usage)", to: session) }
        guard !accounts.isEmpty else { return say("There are no accounts here.", to: session) }
        let (account, client) = ClientName.split(String(name))
        check(SecretBytes(words[1].utf8), of: account, client: client, .service, session)
    }

    func logOut(_ session: IRCSession) {
        guard session.account != nil else { return say("You are not logged in.", to: session) }
        guard !logins.isBusy(with: session.id), !session.sasl.isUnderway else {
            return say("Wait for the answer to your last try.", to: session)
        }
        guard session.isAdmitted || !needsLogin(session) else {
            return say("Whoever is here must be logged in; QUIT ends your connection.", to: session)
        }
        let name = session.account?.name ?? ""
        becomeAnother(session, nil, clientName: nil)
        guard let person = session.person.flatMap({ context.identities[$0] }) else { return }
        note(.info, "client-logout", "a client logged out", of: session, ["account": name])
        reply(.rplLoggedOut, person.source, "You are now logged out", to: session)
        say("You are logged out, and \(person.nick) now.", to: session)
    }

    // MARK: - receipts

    func chooseReceipts(_ request: ServiceRequest, _ session: IRCSession) {
        if let word = request.words.first {
            let folded = IRCCasemapping.ascii.fold(word)
            let policy = ReceiptPolicy(rawValue: folded)
            guard policy != nil || folded == "default" else { return say("Usage: \(request.usage)", to: session) }
            guard choices.setReceipts(policy, of: choicesOwner(session)) else { return sayFull(to: session) }
            keepChoices(of: session)
            let clients = session.account == nil ? [session] : sessions(of: session.person)
            for client in clients {
                for room in client.rooms.compactMap({ room($0) }) {
                    room.handle(.chooseReceipts(receiptsChoice(of: client)), from: client.id, context)
                }
            }
        }
        guard let choice = receiptsChoice(of: session) else {
            say("You have chosen nothing, so each room's own setting holds.", to: session)
            for room in session.rooms.compactMap({ room($0) }) {
                sayLater("\(room.channel): \(Self.sentence(room.settings.receipts))", to: session)
            }
            return
        }
        say("In all rooms: \(Self.sentence(choice))", to: session)
    }

    private static func sentence(_ policy: ReceiptPolicy) -> String {
        switch policy {
        case .marker: "others hear how far you have read when your read marker moves (marker)."
        case .speaking:
            "others hear that you have read what came before when you speak, or your marker moves (speaking)."
        case .off: "others hear nothing of your reading (off)."
        }
    }

    // MARK: - notices

    func chooseNotices(_ request: ServiceRequest, _ session: IRCSession) {
        let owner = choicesOwner(session)
        switch request.words.first.map(IRCCasemapping.ascii.fold) {
        case nil: break
        case "on":
            guard choices.setNotices(true, of: owner) else { return sayFull(to: session) }
            keepChoices(of: session)
        case "off":
            choices.setNotices(false, of: owner)
            keepChoices(of: session)
        default: return say("Usage: \(request.usage)", to: session)
        }
        say(
            choices.wantsNotices(owner)
                ? "You are told at once who got and read what you said."
                : "You are told who got and read what you said when you ask: seen.", to: session)
    }

    // MARK: - mute

    func mute(_ nick: String?, _ session: IRCSession) {
        let owner = choicesOwner(session)
        guard let nick else {
            let names = choices.mutes(of: owner).map(\.nick)
            return say(
                names.isEmpty ? "You have muted nobody." : "You do not hear \(names.joined(separator: ", ")).",
                to: session)
        }
        guard let (id, person) = context.identities.person(nick: nick), person.isPresent else {
            return say("There is nobody here called \(Self.quoted(nick)).", to: session)
        }
        guard id != session.person, id != service else {
            return say("Neither of us can be muted.", to: session)
        }
        switch choices.mute(AccountPreferences.Mute(target: muteTarget(person), nick: person.nick), for: owner) {
        case .done:
            keepChoices(of: session)
            say("You do not hear \(person.nick) any more; unmute \(person.nick) changes that.", to: session)
        case .known: say("You do not hear \(person.nick) already.", to: session)
        case .full: say("You have muted too many people; unmute some.", to: session)
        }
    }

    func unmute(_ nick: String, _ session: IRCSession) {
        let owner = choicesOwner(session)
        // By the current name, or by that of the mute: the person may be absent or renamed.
        let folded = settings.casemapping.fold(nick)
        let present = context.identities.person(nick: nick).map { muteTarget($0.person) }
        let target =
            present.flatMap { choices.isMuted($0, by: owner) ? $0 : nil }
            ?? choices.mutes(of: owner).first { settings.casemapping.fold($0.nick) == folded }?.target
        guard let target, choices.unmute(target, for: owner) else {
            return say("You have not muted \(Self.quoted(nick)).", to: session)
        }
        keepChoices(of: session)
        say("You hear \(Self.quoted(nick)) again.", to: session)
    }

    // MARK: - rejoin

    func chooseRejoining(_ request: ServiceRequest, _ session: IRCSession) {
        guard let account = session.account?.name else {
            return say("Rooms are remembered for accounts, and you are not logged in.", to: session)
        }
        switch request.words.first.map(IRCCasemapping.ascii.fold) {
        case nil: break
        case "on":
            guard choices.setRejoins(true, AccountName.fold(account)) else { return sayFull(to: session) }
            keepChoices(of: session)
            for room in session.rooms.compactMap({ room($0) }) { rememberMembership(room, session) }
        case "off":
            guard choices.setRejoins(false, AccountName.fold(account)) else { return sayFull(to: session) }
            keepChoices(of: session)
            forgetMemberships(of: account, for: session)
        default: return say("Usage: \(request.usage)", to: session)
        }
        say(
            rejoins(account)
                ? "When you log in you are in your rooms again, until you leave them."
                : "When your last client is gone you are in no room; the next one joins by itself.", to: session)
    }

    private func sayFull(to session: IRCSession) {
        say("Too many people have chosen something here already.", to: session)
    }
}
