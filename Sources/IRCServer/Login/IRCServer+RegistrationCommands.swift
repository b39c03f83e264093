import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import WireBytes

// PASS, NICK, USER, SETNAME and QUIT: connection registration and the user's names.

extension IRCServer {
    // MARK: - Registration

    func passReceived(_ password: String, _ session: IRCSession) {
        guard session.person == nil else { return alreadyRegistered(session) }
        session.password = password
    }

    func userReceived(_ username: String, realname: String, _ session: IRCSession) {
        guard session.person == nil else { return alreadyRegistered(session) }
        // An empty parameter counts as a missing one.
        guard !username.isEmpty, !realname.isEmpty else { return needMoreParams("USER", session) }
        session.setUser(username, realname: realname)
        goOnRegistering(session)
    }

    func register(_ session: IRCSession) {
        guard session.state == .registering, let nick = session.nick, let user = session.user else { return }
        guard admit(session), isNamed(session) else { return }
        if let account = session.account, let here = person(of: account) {
            return attach(session, to: here)
        }
        // The nick may have been taken between NICK and the end of registration.
        if let refusal = context.identities.refusal(nick: nick, holder: nil, account: session.account?.name) {
            session.loseNick()
            return refuse(nick, refusal, session)
        }
        let person = context.identities.addLocal(
            client: session.id, nick: nick, ident: user, host: IdentityMap.hostname(settings.serverName),
            realname: session.realname, account: session.account?.name)
        if session.account?.isAdmin == true { operators.add(person) }
        session.registered(as: person)
        counts.registered()
        let away = session.earlyAway
        registered(session)
        welcome(session)
        if let away { setAway(away, session) }
        comeBack(session)
    }

    /// Whether the client is admitted now. False: a verdict is pending, or the client was refused.
    private func admit(_ session: IRCSession) -> Bool {
        // A complete response gets its verdict first: some clients send CAP END without waiting for it. An exchange in
        // the middle is aborted.
        if session.sasl.abandon() { reply(.errSASLAborted, "SASL authentication aborted", to: session) }
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
        let text = "You must log in to connect to this server" + waysToLogIn(session)
        reply(.errPasswdMismatch, text, to: session)
        if session.caps.contains(.standardReplies) { fail("*", "ACCOUNT_REQUIRED", [], text, session) }
        close(session, reason: "You must log in to connect to this server", .login)
        return false
    }

    private func waysToLogIn(_ session: IRCSession) -> String {
        var ways = settings.password == nil ? [] : ["the server's password"]
        if session.origin.allowsLogin, ways.isEmpty || !accounts.isEmpty {
            ways.append("ACCOUNT:PASSWORD as the password, or SASL")
        }
        return ways.isEmpty ? "" : ", with " + ways.joined(separator: ", or ")
    }

    /// Attaches a client to a present person.
    private func attach(_ session: IRCSession, to personID: PersonID) {
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

    private func registered(_ session: IRCSession) {
        newcomers.remove(session.id)
        session.forgetUnusedLogin()
        if !session.hasEnded, let interval = settings.limits.pingInterval {
            context.set(.clientLiveness(session.id), at: context.now.monotonic + interval)
        } else if !session.hasEnded {
            // The deadline of the registration.
            context.cancel(.clientLiveness(session.id))
        }
        note(
            .info, "client-registered", "an IRC user is here", of: session,
            ["nick": session.displayNick, "account": session.account?.name ?? ""])
    }

    private func welcome(_ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        reply(.rplWelcome, "Welcome to the \(settings.network) network, \(person.source)", to: session)
        reply(.rplYourHost, "Your host is \(settings.serverName), running chatbridge \(settings.version)", to: session)
        reply(
            .rplCreated, "This server was started \(IRCServerTime.format(milliseconds: startedAt.milliseconds))",
            to: session)
        reply(.rplMyInfo, settings.serverName, "chatbridge-\(settings.version)", "Biow", "bimnotv", "bov", to: session)
        sendISupport(session)
        lusers(of: nil, session)
        tellOwnMetadata(session)
        motd(of: nil, session)
    }

    private func refuse(_ nick: String, _ refusal: NickRefusal, _ session: IRCSession) {
        let shown = PrintableText.of(nick, maxBytes: 64)
        switch refusal {
        case .erroneous: reply(.errErroneusNickname, shown, "Erroneous nickname", to: session)
        case .inUse: reply(.errNicknameInUse, shown, "Nickname is already in use", to: session)
        }
    }

    // MARK: - Nick and name

    func nickReceived(_ nick: String?, _ session: IRCSession) {
        guard let nick, !nick.isEmpty else {
            return reply(.errNoNicknameGiven, "No nickname given", to: session)
        }
        changeNick(nick, session)
    }

    private func changeNick(_ nick: String, _ session: IRCSession) {
        let refusal = context.identities.refusal(nick: nick, holder: session.person, account: session.account?.name)
        // A client that is still to log in may own the nick by its account, or get it yielded; registration checks
        // again.
        let mayComeToOwnIt = session.person == nil && context.identities.mayYieldToAccount(nick: nick)
        if let refusal, refusal == .erroneous || !mayComeToOwnIt {
            if session.person == nil, refusal == .inUse { session.refusedNick = nick }
            return refuse(nick, refusal, session)
        }
        guard let personID = session.person, let person = context.identities[personID] else {
            session.take(nick: nick)
            return goOnRegistering(session)
        }
        guard nick != person.nick else { return }
        let line = line("NICK", by: person, [nick])
        whowas.record(person, at: context.now.wall)
        context.identities.rename(personID, to: nick)
        let clients = sessions(of: personID)
        for client in clients { client.take(nick: nick) }
        reply(line, session)
        tellPeers(of: session, line)
        for client in clients {
            for room in client.rooms.compactMap({ room($0) }) {
                room.handle(.rename, from: client.id, context)
                tellUntold(room, client)
            }
            if client !== session { pullLongAnswers(client) }
        }
    }

    func setRealname(_ realname: String, _ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        let kept = IRCSession.cleanRealname(realname)
        context.identities.setRealname(personID, kept)
        let line = line("SETNAME", by: person, [kept])
        reply(line, session)
        tellPeers(of: session, line)
    }

    // MARK: - QUIT

    func quitReceived(_ reason: String?, _ session: IRCSession) {
        close(session, reason: reason.map { "Quit: " + $0 } ?? "Client quit", .quit)
    }

    // MARK: - CAP

    /// Source: IRCv3 capability-negotiation.
    func negotiate(_ params: [String], _ session: IRCSession) {
        let before = session.caps
        switch session.negotiate(params) {
        case .replies(let replies):
            for line in replies { reply(capLine(line, session), session) }
            if session.caps != before, session.person != nil { capabilitiesChanged(session) }
        case .ended: goOnRegistering(session)
        case .invalid(let subcommand):
            reply(.errInvalidCapCmd, subcommand, "Invalid CAP command", to: session)
        case .needMoreParams: needMoreParams("CAP", session)
        }
    }
}
