import ChatModel
import Digests
import IRCProtocol
import WireBytes

// Logging in: checking passwords, PASS, and what an account changes. What SASL says is in Bridge+SASL.
//
// A password is checked beside the loop; the bridge asks with `.checkPassword` and is told with `passwordChecked`. A client
// has at most one check underway, and a failed one is underway until its answer was given, so the wait cannot be dodged
// by giving up and trying again.
//
// One account is one person, however many clients it has: they share nick, rooms and read markers.

/// A password of a client on its way to a verdict.
struct PasswordTry {
    enum Purpose: Equatable {
        /// WEBIRC; what it said is the session's ``GatewayTry``.
        case gateway
        case sasl
        /// `login` said to `*bridge`.
        case service
        /// `OPER account password`.
        case oper
        /// `PASS account:password`. When it fails, the whole may still be the server's password.
        case accountPass(whole: String)
        case serverPass
        /// No password of old: the account was made just now.
        case newAccount
    }

    var attempt: UInt64
    var purpose: Purpose
    var account: AccountSettings?
    /// The name under which somebody tried to log in, whether or not there is such an account.
    var name: String?
    /// What the account calls this client, where the login said so.
    var clientName: String?
    /// The client went on without; nobody waits for the answer.
    var isAbandoned = false
    /// No password but a token, which the backend is asked about.
    var isBearer = false
    /// The account that the same words were tried for before, in vain: they were meant for it rather than for everybody.
    var triedAccount: AccountSettings?

    /// It was right, and its answer waits.
    var isRight = false
    /// What a SCRAM exchange ends with, for the client.
    var signature: [UInt8]?

    /// What a failure counts for.
    var failed: LoginThrottle.Target { triedAccount.map { .account(AccountBook.fold($0.name)) } ?? target }

    /// What it is tried for.
    var target: LoginThrottle.Target {
        if isBearer { return .token }
        switch purpose {
        case .gateway: return .gateway
        case .serverPass: return .server
        case .sasl, .service, .oper, .accountPass, .newAccount:
            return (account?.name ?? name).map { .account(AccountBook.fold($0)) } ?? .unknown
        }
    }
}

extension Bridge {
    /// Failed logins of one connection before it is closed.
    static let maxLoginTries = 5
    /// Clients of one account at a time: what one does reaches all of them, so their number multiplies what one can cost.
    static let maxClientsPerAccount = 25

    func account(named name: String) -> AccountSettings? { accounts[name] }

    // MARK: - Checking

    func check(
        _ password: SecretBytes, of name: String, client: String?, _ purpose: PasswordTry.Purpose,
        _ session: IRCSession
    ) {
        let account = account(named: name)
        check(
            password, against: account?.password ?? .unmatchable(iterations: accounts.passwordCost), account, purpose,
            session)
        session.passwordTry?.clientName = client
        session.passwordTry?.name = String(name.prefix(LoginThrottle.longestName))
    }

    func check(
        _ password: SecretBytes, against verifier: SCRAMVerifier, _ account: AccountSettings?,
        _ purpose: PasswordTry.Purpose, _ session: IRCSession
    ) {
        lastAttempt &+= 1
        session.passwordTry = PasswordTry(attempt: lastAttempt, purpose: purpose, account: account)
        context.emit(
            .checkPassword(
                PasswordCheck(
                    client: session.id, attempt: lastAttempt, verifier: verifier, password: password,
                    cost: accounts.passwordCost)))
    }

    /// The verdict on a `.checkPassword` is there. Verdicts that nobody waits for are ignored.
    public func passwordChecked(_ id: ClientID, attempt: UInt64, _ verdict: PasswordVerdict, now: Now) {
        context.now = now
        guard let session = sessions[id], let tried = session.passwordTry, tried.attempt == attempt,
            context.timers[.loginAnswer(id)] == nil
        else { return }
        if tried.purpose == .gateway { return gatewayChecked(session, verdict) }
        if verdict == .correct, isRightLater(session) { return }
        judged(session, tried, verdict)
        pullLongAnswers(session)
        processInput(session)
    }

    /// What was right is told later where the answer to what was wrong still waits.
    func isRightLater(_ session: IRCSession) -> Bool {
        guard let tried = session.passwordTry else { return false }
        let wait = loginThrottle.owed(session.origin.address, tried.target, now: context.now.monotonic)
        guard wait > .zero else { return false }
        session.passwordTry?.isRight = true
        context.timers.set(.loginAnswer(session.id), at: context.now.monotonic + wait)
        return true
    }

    /// The wait for an answer is over.
    func loginAnswerIsDue(_ session: IRCSession) {
        guard let tried = session.passwordTry else { return }
        guard tried.isRight else { return refuseNow(session) }
        guard let signature = tried.signature else { return judged(session, tried, .correct) }
        session.passwordTry = nil
        if !tried.isAbandoned { challenge(signature, .scramSHA256, session) }
        goOnRegistering(session)
    }

    private func judged(_ session: IRCSession, _ tried: PasswordTry, _ verdict: PasswordVerdict) {
        switch (verdict, tried.purpose) {
        case (.correct, .oper):
            loginThrottle.succeeded(session.origin.address, tried.target)
            session.passwordTry = nil
            becomeOperator(session, tried.account)
        case (.unavailable, .oper):
            session.passwordTry = nil
            reply(session.numeric(.errPasswdMismatch, "Too many people log in at this moment; try again"), session)
        case (.correct, .service):
            loginThrottle.succeeded(session.origin.address, tried.target)
            session.passwordTry = nil
            loggedInByService(session, tried)
        case (.unavailable, .service):
            session.passwordTry = nil
            say("Too many people log in at this moment; try again.", to: session)
        case (.correct, _):
            loginThrottle.succeeded(session.origin.address, tried.target)
            session.passwordTry = nil
            if !tried.isAbandoned { loggedIn(session, tried) }
            goOnRegistering(session)
        case (.wrong, .accountPass(let whole)) where settings.password != nil:
            checkServerPassword(whole, after: tried.account, session)
            goOnRegistering(session)
        case (.wrong, _): refuseLater(session)
        case (.unavailable, .sasl):
            session.passwordTry = nil
            if !tried.isAbandoned {
                reply(session.numeric(.errSASLFail, "Too many people log in at this moment; try again"), session)
            }
            goOnRegistering(session)
        case (.unavailable, _): close(session, reason: "Too many people log in at this moment; try again")
        }
    }

    /// What a client says behind all that it takes to come in waits for the verdict on who it is, unless it may come before that:
    /// scripts say everything in one piece.
    func waitsToRegister(_ session: IRCSession) -> Bool {
        session.isReadyToRegister && (session.passwordTry != nil || newcomers[session.id]?.deadline != nil)
    }

    /// What a client says behind OPER waits for the verdict: it may need the rights that it asked for. The wait before the
    /// verdict is told holds nothing up, or a client would see by its next answer which verdict it is.
    func waitsToBecomeOperator(_ session: IRCSession) -> Bool {
        session.passwordTry?.purpose == .oper && context.timers[.loginAnswer(session.id)] == nil
    }

    /// Tells of a wrong password, the later the more there were from that address, or for that account.
    func refuseLater(_ session: IRCSession) {
        let target = session.passwordTry?.failed ?? .unknown
        let wait = loginThrottle.failed(session.origin.address, target, now: context.now.monotonic)
        let isBearer = session.passwordTry?.isBearer == true
        context.note(
            .warn, isBearer ? "client-token-refused" : "wrong-password",
            isBearer ? "a client gave a token that the backend refuses" : "a client gave a wrong password",
            ["address": session.origin.address, "account": session.passwordTry?.account?.name ?? ""])
        guard wait > .zero else { return refuseNow(session) }
        context.timers.set(.loginAnswer(session.id), at: context.now.monotonic + wait)
    }

    func refuseNow(_ session: IRCSession) {
        guard let tried = session.passwordTry else { return }
        session.passwordTry = nil
        if tried.purpose == .oper { return operRefused(session) }
        if tried.purpose == .service { return serviceLoginRefused(session) }
        guard tried.purpose == .sasl else {
            reply(session.numeric(.errPasswdMismatch, "Password incorrect"), session)
            return close(session, reason: "Password incorrect")
        }
        if tried.isAbandoned {
            // It was a try all the same: giving up in time must not make tries free.
            countFailedTry(session)
        } else if tried.isBearer {
            refuseBearer(session)
        } else {
            saslFailed(session, "SASL authentication failed")
        }
        goOnRegistering(session)
    }

    func loggedIn(_ session: IRCSession, _ tried: PasswordTry) {
        guard let account = tried.account else {
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
        if tried.purpose == .sasl {
            reply(session.numeric(.rplSASLSuccess, "SASL authentication successful"), session)
        }
        // What USER said is forgotten once registered, but for the ident that came of it.
        let client = tried.clientName ?? person.flatMap { ClientName.clean(String($0.ident.drop { $0 == "~" })) }
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
        guard session.passwordTry == nil else { return false }
        if session.account != nil || session.isAdmitted { return true }
        if let password = session.password {
            session.password = nil
            if session.origin.allowsLogin, !accounts.isEmpty, let colon = password.firstIndex(of: ":"),
                colon != password.startIndex
            {
                let (account, client) = ClientName.split(String(password[..<colon]))
                check(
                    SecretBytes(password[password.index(after: colon)...].utf8), of: account, client: client,
                    .accountPass(whole: password), session)
                return false
            }
            if settings.password != nil {
                checkServerPassword(password, session)
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

    /// - Parameter account: for which the text was tried already.
    private func checkServerPassword(
        _ text: String, after account: AccountSettings? = nil, _ session: IRCSession
    ) {
        let given = SecretBytes(text.utf8)
        switch settings.password {
        case .hashed(let verifier):
            check(given, against: verifier, nil, .serverPass, session)
            session.passwordTry?.triedAccount = account
        case .plain(let wanted):
            session.passwordTry = PasswordTry(attempt: 0, purpose: .serverPass, triedAccount: account)
            guard given == wanted else { return refuseLater(session) }
            if isRightLater(session) { return }
            session.passwordTry = nil
            session.isAdmitted = true
        case nil: session.passwordTry = nil
        }
    }

    // MARK: - One person, many clients

    /// The sessions of one person, in the order in which they came.
    func sessions(of person: PersonID?) -> [IRCSession] {
        guard let person, let known = context.identities[person] else { return [] }
        return known.clients.compactMap { sessions[$0] }
    }

    /// The person as whom an account is here already.
    func person(of account: AccountSettings) -> PersonID? { accountPeople[AccountBook.fold(account.name)] }

    /// Enters a client as one more of a person who is here.
    func attach(_ session: IRCSession, to personID: PersonID) {
        let others = sessions(of: personID)
        guard others.count < Self.maxClientsPerAccount else { return closeSurplus(session) }
        registeredCount += 1
        context.identities.modify(personID) { $0.clients.append(session.id) }
        guard let person = context.identities[personID] else { return }
        session.state = .registered(personID)
        session.nick = person.nick
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
        setClientAway(person.away, session)
        for id in session.rooms {
            guard let room = room(id), !mayEnter(room, session) else { continue }
            part(room, reason: "This account may not be here", session)
        }
        if let shared = self.person(of: account) { return merge(session, person, into: shared) }
        accountPeople[AccountBook.fold(account.name)] = personID
        if account.isAdmin { operators.insert(personID) }
        context.identities.modify(personID) { $0.account = account.name }
        let receipts = receiptsChoice(of: session)
        for id in session.rooms {
            guard let room = room(id) else { continue }
            rememberMembership(room, session)
            room.identityChanged(
                session.id, clientName: session.clientName, receipts: receipts, context)
            if !room.isLoading { follow(room, session, from: Int64(room.recent.lastSequence), nil) }
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
        forgetOperator(oldID)
        session.rooms = []
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
        context.identities.modify(shared) { $0.clients.append(session.id) }
        session.state = .registered(shared)
        if person.nick != old.nick {
            reply(IRCMessage(source: old.source, command: "NICK", params: [person.nick]), session)
        }
        session.nick = person.nick
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

    /// Whether the client may see and enter the room.
    func mayEnter(_ room: Room, _ session: IRCSession) -> Bool {
        guard let allowed = session.account?.rooms else { return true }
        return allowed.contains(room.settings.name)
    }
}
