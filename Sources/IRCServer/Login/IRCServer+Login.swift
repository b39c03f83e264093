import Accounts
import BridgeTypes
import ChatModel
import Digests
import IRCProtocol
import Identities
import Rooms
import Upstream
import WireBytes

// Logging in: what clients are told of it, PASS, and what an account changes. What SASL says is in IRCServer+SASL; what becomes of
// a password is LoginDesk's.
//
// One account is one person, however many clients it has: they share nick, rooms and read markers.

extension IRCServer {
    /// Failed logins of one connection before it is closed.
    static let maxLoginTries = 5
    /// Clients of one account at a time: what one does reaches all of them, so their number multiplies what one can cost.
    static let maxClientsPerAccount = 25

    // MARK: - Checking

    func check(
        _ password: SecretBytes, of name: String, client: String?, _ purpose: LoginPurpose, _ session: IRCSession
    ) {
        take(
            logins.check(password, of: name, client: client, purpose, session.id, from: session.origin.address), session
        )
    }

    /// The verdict on a `.checkPassword` is there. Verdicts that nobody waits for are ignored.
    package func passwordChecked(_ id: ClientID, attempt: UInt64, _ verdict: PasswordVerdict) {
        guard let session = sessions[id],
            let step = logins.checked(id, attempt: attempt, verdict, now: context.now.monotonic)
        else { return }
        loginAnswered(step, session)
    }

    /// The wait for an answer is over.
    package func loginAnswerIsDue(_ session: IRCSession) {
        if let step = logins.answerIsDue(session.id) { loginAnswered(step, session) }
    }

    /// There is news of a login that others were asked about: what waited for it goes on.
    func loginAnswered(_ step: LoginStep, _ session: IRCSession) {
        take(step, session)
        if !step.isUnderway { goOnRegistering(session) }
        pullLongAnswers(session)
        processInput(session)
    }

    /// Does what a login wants, and tells the client how it ended.
    func take(_ step: LoginStep, _ session: IRCSession) {
        switch step {
        case .check(let check): emit(.checkPassword(check))
        case .ask(let call, let order): emit(.callBackend(call, order))
        case .answer(let wait, let failed):
            if let failed { note(failed, session) }
            guard wait > .zero else { return logins.answerIsDue(session.id).map { take($0, session) } ?? () }
            context.timers.set(.loginAnswer(session.id), at: context.now.monotonic + wait)
        case .challenge(let bytes): challenge(bytes, .scramSHA256, session)
        case .right(let login): succeeded(login, session)
        case .refused(let refusal, let purpose): refused(refusal, purpose, session)
        // It was a try all the same: giving up in time must not make tries free.
        case .abandoned(let isFailure): if isFailure { countFailedTry(session) }
        }
    }

    private func note(_ failed: FailedLogin, _ session: IRCSession) {
        context.note(
            .warn, failed.isToken ? "client-token-refused" : "wrong-password",
            failed.isToken ? "a client gave a token that the backend refuses" : "a client gave a wrong password",
            ["address": session.origin.address, "account": failed.account])
    }

    private func succeeded(_ login: Login, _ session: IRCSession) {
        switch login.purpose {
        case .gateway: admitGateway(session)
        case .oper: becomeOperator(session, login.account)
        case .service: loggedInByService(session, login)
        case .sasl, .accountPass, .serverPass, .newAccount: loggedIn(session, login)
        }
    }

    private func refused(_ refusal: LoginRefusal, _ purpose: LoginPurpose, _ session: IRCSession) {
        let isBusy = refusal == .busy
        let busy = "Too many people log in at this moment; try again"
        switch purpose {
        case .sasl: tellSASL(refusal, session)
        case .oper where isBusy: reply(session.numeric(.errPasswdMismatch, busy), session)
        case .oper: operRefused(session)
        case .service where isBusy: say(busy + ".", to: session)
        case .service: serviceLoginRefused(session)
        case .gateway, .accountPass, .serverPass, .newAccount:
            if !isBusy { reply(session.numeric(.errPasswdMismatch, "Password incorrect"), session) }
            close(session, reason: isBusy ? busy : "Password incorrect")
        }
    }

    /// What a client says behind all that it takes to come in waits for the verdict on who it is, unless it may come before that:
    /// scripts say everything in one piece.
    func waitsToRegister(_ session: IRCSession) -> Bool {
        session.isReadyToRegister && (logins.isBusy(with: session.id) || newcomers[session.id]?.deadline != nil)
    }

    /// What a client says behind OPER waits for the verdict: it may need the rights that it asked for. The wait before the
    /// verdict is told holds nothing up, or a client would see by its next answer which verdict it is.
    func waitsToBecomeOperator(_ session: IRCSession) -> Bool { logins.isChecking(session.id, for: .oper) }

    func loggedIn(_ session: IRCSession, _ login: Login) {
        guard let account = login.account else {
            session.isAdmitted = true
            return
        }
        session.failedTries = 0
        context.note(
            .info, "client-login", "a client logged in",
            ["address": session.origin.address, "account": account.name])
        let person = session.person.flatMap { context.identities[$0] }
        let mask =
            person?.source
            ?? "\(session.displayNick)!\(session.user ?? "*")@\(IdentityMap.hostname(settings.serverName))"
        reply(
            session.numeric(.rplLoggedIn, mask, account.name, "You are now logged in as \(account.name)"), session)
        if login.purpose == .sasl {
            reply(session.numeric(.rplSASLSuccess, "SASL authentication successful"), session)
        }
        // What USER said is forgotten once registered, but for the ident that came of it.
        let client = login.clientName ?? person.flatMap { ClientName.clean(String($0.ident.drop { $0 == "~" })) }
        if person != nil, let before = session.account {
            if before.name != account.name { becomeAnother(session, account, clientName: client) }
            return
        }
        session.account = account
        session.setClientName(client)
        moveChoices(of: session, to: account)
        if person != nil { nameLateComer(session) }
        if person != nil { becomeAccount(session, account) }
    }

    // MARK: - Registration

    /// Whether the client may come in now. False: it waits for a verdict, or was told that it may not.
    func admit(_ session: IRCSession) -> Bool {
        // A response that is whole gets its verdict first: some clients send CAP END without waiting for it, and have said
        // all the same who they are. What is in the middle is given up.
        if session.sasl.abandon() { reply(session.numeric(.errSASLAborted, "SASL authentication aborted"), session) }
        guard !logins.isBusy(with: session.id) else { return false }
        if session.account != nil || session.isAdmitted { return true }
        if let password = session.password {
            session.password = nil
            let step = logins.checkPass(
                password, canBeAccount: session.origin.allowsLogin, session.id, from: session.origin.address,
                now: context.now.monotonic)
            if let step {
                take(step, session)
                return session.isAdmitted
            }
        }
        guard needsLogin(session) else { return true }
        reply(session.numeric(.errPasswdMismatch, "You must log in to connect to this server"), session)
        if session.caps.contains(.standardReplies) {
            reply(
                .fail(
                    "*", "ACCOUNT_REQUIRED", text: "Log in with SASL, or with PASS account:password",
                    source: settings.serverName), session)
        }
        close(session, reason: "You must log in to connect to this server")
        return false
    }

    func needsLogin(_ session: IRCSession) -> Bool {
        if settings.password != nil { return true }
        switch settings.requireLogin {
        case .never: return false
        case .remote: return !session.origin.isListenerLocal
        case .always: return true
        }
    }

    // MARK: - One person, many clients

    /// Enters a client as one more of a person who is here.
    func attach(_ session: IRCSession, to personID: PersonID) {
        let others = sessions(of: personID)
        guard others.count < Self.maxClientsPerAccount else { return closeSurplus(session) }
        counts.registered()
        context.identities.add(session.id, to: personID)
        guard let person = context.identities[personID] else { return }
        session.registered(as: personID)
        session.take(nick: person.nick)
        let away = session.earlyAway
        registered(session)
        welcome(session)
        comeBack(session)
        if let away {
            setAway(away, session)
        } else {
            settleAway(of: personID, by: session)
        }
    }

    func closeSurplus(_ session: IRCSession) { close(session, reason: "Too many clients of your account") }

    /// A client that is here already logged in.
    private func becomeAccount(_ session: IRCSession, _ account: AccountSettings) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        session.setAway(person.away)
        for id in session.rooms {
            guard let room = room(id), !mayEnter(room, session) else { continue }
            part(room, reason: "This account may not be here", session)
        }
        if let shared = self.person(of: account) { return merge(session, person, into: shared) }
        if account.isAdmin { operators.add(personID) }
        context.identities.setAccount(personID, account.name)
        let receipts = receiptsChoice(of: session)
        for id in session.rooms {
            guard let room = room(id) else { continue }
            rememberMembership(room, session)
            room.identityChanged(
                session.id, clientName: session.clientName, receipts: receipts, context)
            if !room.isLoading { follow(room, session, from: Int64(room.lastSequence), nil) }
        }
        let line = IRCMessage(source: person.source, command: "ACCOUNT", params: [account.name])
        reply(line, session)
        tellPeers(of: session, line)
        if account.isAdmin { promote(personID, session) }
        bringBack(session)
    }

    /// The client leaves the person that it was, and is the account's other clients' from now on.
    private func merge(_ session: IRCSession, _ old: Person, into shared: PersonID) {
        guard let oldID = session.person else { return }
        let rooms = session.rooms
        let prefixes = prefixes(of: oldID, in: rooms)
        guard sessions(of: shared).count < Self.maxClientsPerAccount else { return closeSurplus(session) }
        tellPeers(of: session, IRCMessage(source: old.source, command: "QUIT", params: ["Logged in"]))
        for id in rooms { if let room = room(id) { leave(room, session) } }
        whowas.remember(old, at: context.now.wall)
        context.identities.remove(oldID)
        operators.forget(oldID)
        session.leftEverything()
        join(session, old, rooms, prefixes, shared)
    }

    /// A client that is nobody any more becomes one more of a person who is here, and all clients of that person are in the
    /// rooms of both.
    ///
    /// - Parameters:
    ///   - old: who the client was.
    ///   - rooms: where the client has a room open.
    ///   - prefixes: what stood in front of its nick there.
    func join(
        _ session: IRCSession, _ old: Person, _ rooms: ShortList<RoomID>, _ prefixes: [RoomID: String],
        _ shared: PersonID
    ) {
        guard let person = context.identities[shared] else { return }
        let others = sessions(of: shared)
        context.identities.add(session.id, to: shared)
        session.registered(as: shared)
        if person.nick != old.nick {
            reply(IRCMessage(source: old.source, command: "NICK", params: [person.nick]), session)
        }
        session.take(nick: person.nick)
        tellAccount(session)
        for id in others.first(where: { !$0.isArriving })?.rooms ?? [] {
            if let room = room(id) { enter(room, session, isSilent: rooms.contains(id)) }
        }
        for id in rooms {
            guard let room = room(id), !session.rooms.contains(id) else { continue }
            guard mayEnter(room, session) else {
                reply(
                    IRCMessage(
                        source: person.source, command: "PART", params: [room.channel, "This account may not be here"]),
                    session)
                continue
            }
            enter(room, session, isSilent: true)
            for other in others where !other.isArriving {
                enter(room, other)
                pullLongAnswers(other)
            }
        }
        tellPrefixes(since: prefixes, session)
        settleAway(of: shared, by: session)
        bringBack(session)
    }

    // MARK: - Rights
}
