import ChatModel
import Digests
import IRCProtocol
import WireBytes

// Carrying out what a client asked for: registration, nicks, rooms, markers. Messages and queries have files of their own.

extension Bridge {
    func perform(_ request: SessionRequest, _ session: IRCSession) {
        switch request {
        case .reply(let message): reply(message, session)
        case .register: register(session)
        case .changeNick(let nick): changeNick(nick, session)
        case .setRealname(let realname): setRealname(realname, session)
        case .join(let channels): for channel in channels { join(channel, session) }
        case .partEverything:
            for id in session.rooms { if let room = room(id) { part(room, reason: nil, isAsked: true, session) } }
        case .part(let channels, let reason): for channel in channels { part(channel, reason: reason, session) }
        case .names(let channels): names(channels, session)
        case .who(let mask, let whox, let operatorsOnly): who(mask, whox, operatorsOnly: operatorsOnly, session)
        case .whois(let nicks): for nick in nicks { whois(nick, session) }
        case .whowas(let nick, let count): whowas(nick, count: count, session)
        case .list(let filter):
            reply(session.numeric(.rplListStart, "Channel", "Users  Name"), session)
            askForTemplateRooms()
            session.appendLongAnswer(.list(nextRoom: 0, filter))
        case .readTopic(let channel): readTopic(channel, session)
        case .setTopic(let channel, let text): setTopic(channel, to: text, session)
        case .mode(let target, let params): mode(target, params, session)
        case .away(let text): setAway(text, session)
        case .message(let verb, let targets, let text, let tags):
            message(verb, targets: targets, words: text.map { SpokenText(text: $0) }, tags: tags, session)
        case .multiline(let batch): multiline(batch, session)
        case .readMarker(let channel): readMarker(channel, session)
        case .moveMarker(let channel, let at): moveMarker(channel, to: at, session)
        case .redact(let channel, let msgid, let reason): redact(channel, msgid, reason: reason, session)
        case .history(let request): history(request, session)
        case .search(let request): search(request, session)
        case .isOn(let nicks): isOn(nicks, session)
        case .userhost(let nicks): userhost(nicks, session)
        case .query(let command, let server): if isThisServer(server, session) { query(command, session) }
        case .capabilitiesChanged:
            for id in session.rooms {
                guard let room = room(id), let member = room.locals[session.id] else { continue }
                channels[id]?.profileChanged(member, session.caps.renderingProfile, in: room)
                member.hasReadMarker = session.caps.contains(.readMarker)
            }
        case .ping(let token): answerPing(token, session)
        case .pong(let token): pongReceived(token, session)
        case .authenticate(let param): authenticate(param, session)
        case .registerAccount(let name, let email, let password):
            registerAccount(name, email: email, password: password, session)
        case .verifyAccount(let name): verifyAccount(name, session)
        case .announceClient(let password, let gateway, let address):
            announceClient(session, password: password, gateway: gateway, address: address)
        case .monitor(let params): monitor(params, session)
        case .isupport: sendISupport(session)
        case .metadata(let params): metadata(params, session)
        case .relay(let channel, let name, let text, let tags): relay(channel, as: name, text, tags, session)
        case .serverCommand(let command, let params): serverCommand(command, params, session)
        case .oper(let account, let password): oper(account, password, session)
        case .kick(let channels, let nicks, let reason): kick(channels, nicks, reason: reason, session)
        case .invite(let nick, let channel): invite(nick, to: channel, session)
        case .listInvitations: listInvitations(session)
        case .kill(let nick, let reason): kill(nick, reason: reason, session)
        case .wallops(let text): wallops(text, session)
        case .quit(let reason): close(session, reason: reason)
        }
    }

    func reply(_ message: IRCMessage, _ session: IRCSession) { deliver(message, to: session.id, label: nil) }

    // MARK: - Registration

    private func register(_ session: IRCSession) {
        guard session.state == .registering, let nick = session.nick, let user = session.user else { return }
        guard admit(session), isNamed(session) else { return }
        if let account = session.account, let here = person(of: account) {
            return attach(session, to: here)
        }
        // Another may have taken the nick between NICK and the end of registration.
        if let refusal = context.identities.refusal(nick: nick, holder: nil, account: session.account?.name) {
            session.nick = nil
            return refuse(nick, refusal, session)
        }
        let person = context.identities.addLocal(
            client: session.id, nick: nick, ident: user, host: IdentityMap.hostname(settings.serverName),
            realname: session.realname, account: session.account?.name)
        if let account = session.account { accountPeople[AccountBook.fold(account.name)] = person }
        if session.account?.isAdmin == true { operators.insert(person) }
        session.state = .registered(person)
        registeredCount += 1
        let away = session.earlyAway
        registered(session)
        welcome(session)
        if let away { setAway(away, session) }
        comeBack(session)
    }

    func registered(_ session: IRCSession) {
        hasName(session)
        session.forgetUnusedLogin()
        if !session.hasEnded {
            context.timers.set(
                .clientLiveness(session.id), at: context.now.monotonic + settings.limits.pingInterval)
        }
        context.note(
            .info, "client-registered", "an IRC user is here",
            ["address": session.origin.address, "nick": session.displayNick, "account": session.account?.name ?? ""])
    }

    func welcome(_ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        reply(
            session.numeric(.rplWelcome, "Welcome to the \(settings.network) network, \(person.source)"), session)
        reply(
            session.numeric(
                .rplYourHost, "Your host is \(settings.serverName), running chatbridge \(settings.version)"), session)
        reply(
            session.numeric(
                .rplCreated,
                "This server was started \(IRCServerTime.format(milliseconds: startedAt.milliseconds))"), session)
        reply(
            session.numeric(
                .rplMyInfo, settings.serverName, "chatbridge-\(settings.version)", "Biow", "bimnotv", "bov"), session)
        sendISupport(session)
        query(.lusers, session)
        tellOwnMetadata(session)
        query(.motd, session)
    }

    private func refuse(_ nick: String, _ refusal: NickRefusal, _ session: IRCSession) {
        let shown = NickMaker.prefix(of: UpstreamSession.printable(nick), maxBytes: 64)
        switch refusal {
        case .erroneous: reply(session.numeric(.errErroneusNickname, shown, "Erroneous nickname"), session)
        case .inUse: reply(session.numeric(.errNicknameInUse, shown, "Nickname is already in use"), session)
        }
    }

    // MARK: - Nick and name

    private func changeNick(_ nick: String, _ session: IRCSession) {
        let refusal = context.identities.refusal(
            nick: nick, holder: session.person, account: session.account?.name)
        // Who is still to log in may be the one for whom the nick is kept, or to whom it is given up; registration looks again.
        let mayComeToOwnIt = session.person == nil && context.identities.mayYieldToAccount(nick: nick)
        if let refusal, refusal == .erroneous || !mayComeToOwnIt {
            if session.person == nil, refusal == .inUse { session.refusedNick = nick }
            return refuse(nick, refusal, session)
        }
        guard let personID = session.person, let person = context.identities[personID] else {
            session.nick = nick
            for request in session.registrationStep() { perform(request, session) }
            return
        }
        guard nick != person.nick else { return }
        let line = IRCMessage(
            tags: stamp(person),
            source: person.source, command: "NICK", params: [nick])
        whowas.remember(person, at: context.now.wall)
        context.identities.rename(personID, to: nick)
        let clients = sessions(of: personID)
        for client in clients { client.nick = nick }
        reply(line, session)
        tellPeers(of: session, line)
        for client in clients {
            for room in client.rooms.compactMap({ room($0) }) {
                room.renamed(client.id, context)
                tellUntold(room, client)
            }
            if client !== session { pullLongAnswers(client) }
        }
    }

    private func setRealname(_ realname: String, _ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        let kept = IRCSession.cleanRealname(realname)
        context.identities.modify(personID) { $0.realname = kept }
        let line = IRCMessage(tags: stamp(person), source: person.source, command: "SETNAME", params: [kept])
        reply(line, session)
        tellPeers(of: session, line)
    }

    // MARK: - Rooms

    static let noSuchRoom = "No such room; LIST shows them"

    func noSuchChannel(_ channel: String, _ session: IRCSession) {
        let shown = NickMaker.prefix(of: UpstreamSession.printable(channel), maxBytes: 100)
        reply(session.numeric(.errNoSuchChannel, shown.isEmpty ? "*" : shown, Self.noSuchRoom), session)
    }

    func join(_ channel: String, _ session: IRCSession) {
        guard session.isAwaitingEntrance else { return tryToJoin(channel, session) }
        // Answers come in the order of what was asked.
        for line in gathering(session, { tryToJoin(channel, session) }) { session.appendLongAnswer(.line(line)) }
    }

    private func tryToJoin(_ channel: String, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) ?? templateRoom(channel, session),
            session.person != nil, !session.rooms.contains(room.id)
        else { return }
        if let refusal = spellingRefusal(room, as: channel, session) ?? shareRefusal(room, session) {
            return reply(refusal, session)
        }
        if let barrier = barrier(to: room, session) { return reply(barrier, session) }
        if entranceWaits(room, session) { return awaitEntrance(to: room, isAsked: true, session) }
        for other in enterWithOthers(room, session) { pullLongAnswers(other) }
    }

    /// Puts a client into a room, and the person's other clients.
    ///
    /// - Returns: the others.
    func enterWithOthers(_ room: Room, _ session: IRCSession) -> [IRCSession] {
        // The one who asked first, so that the others in the room are told once, and a label is answered.
        enter(room, session)
        // Those who asked for it too have an answer of their own to it.
        let others = sessions(of: session.person).filter {
            $0 !== session && !$0.isArriving && !$0.isAwaitingEntrance(to: room.id)
        }
        for other in others { enter(room, other) }
        return others
    }

    /// Puts a client into a room and tells it what it must know.
    ///
    /// - Parameter isSilent: the client has the room open already.
    func enter(_ room: Room, _ session: IRCSession, isSilent: Bool = false) {
        guard let personID = session.person, !session.rooms.contains(room.id) else { return }
        let isFirst = room.slots.count == 0
        let isNew = !room.slots.contains(personID)
        let newest = Int64(room.recent.lastSequence)
        let backlog = isSilent || room.isLoading ? nil : backlog(of: room, session)
        room.join(
            session.id, person: personID, clientName: session.clientName,
            hasReadMarker: session.caps.contains(.readMarker), receipts: receiptsChoice(of: session),
            isHeld: backlog != nil, context)
        if templateRooms[room.id] != nil, room.locals.count == 1 { templateOpeners[room.id] = personID }
        session.rooms.append(room.id)
        rememberMembership(room, session)
        if !room.isLoading { follow(room, session, from: newest, backlog) }
        if isNew { entered(personID, room, isFirst: isFirst, session) }
        guard !isSilent, let person = context.identities[personID] else { return }
        reply(Channel.join(RoomSpeaker(person), person.realname, in: room, context), session)
        if !topic(of: room).isEmpty { sendTopic(room, session) }
        reply(markerMessage(room.channel, room.marker(of: session.id)), session)
        if !session.caps.contains(.noImplicitNames) { session.appendLongAnswer(.names(room.id, cursor: 0)) }
        syncMetadata(of: room, session)
        context.note(
            .debug, "client-joined", "an IRC user entered a room", ["room": room.settings.name, "nick": person.nick])
        for notice in room.statusNotices(context) + [room.ownStatusNotice(personID, context)].compactMap(\.self) {
            session.appendLongAnswer(.entryNotice(room.id, Channel.notice(notice, in: room, context)))
        }
        if backlog != nil { session.appendLongAnswer(.backlog(room.id)) }
        tellUntold(room, session)
    }

    /// Takes a client out of a room; whoever must know is told by the caller.
    func leave(_ room: Room, _ session: IRCSession) {
        endFollowing(room.id, session)
        room.leave(session.id, context)
        session.rooms.removeAll { $0 == room.id }
    }

    private func part(_ channel: String, reason: String?, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) else {
            forgetMembership(channel: channel, session)
            return noSuchChannel(channel, session)
        }
        guard session.rooms.contains(room.id) else {
            forgetMembership(channel: channel, session)
            return reply(session.numeric(.errNotOnChannel, room.channel, "You're not in that room"), session)
        }
        part(room, reason: reason, isAsked: true, session)
    }

    /// - Parameter isAsked: the IRC user wanted it: what is said from now on is not for the person's clients.
    func part(_ room: Room, reason: String?, isAsked: Bool = false, _ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        let line = IRCMessage(
            tags: stamp(person),
            source: person.source, command: "PART", params: [room.channel] + (reason.map { [$0] } ?? []))
        for client in sessions(of: personID) {
            if isAsked, client.rooms.contains(room.id) { dropCursor(room, client, for: session) }
            endFollowing(room.id, client)
        }
        if isAsked, let account = person.account {
            forgetMembership(of: account, in: room.storedKey, for: session)
        }
        reply(line, session)
        broadcast(line, in: room, except: session.id)
        for client in sessions(of: personID) { leave(room, client) }
        session.lastLeft = room.id
    }

    private func names(_ channels: [String], _ session: IRCSession) {
        guard !channels.isEmpty else {
            return reply(session.numeric(.rplEndOfNames, "*", "End of /NAMES list"), session)
        }
        for channel in channels {
            if let room = room(channel: channel, for: session) {
                session.appendLongAnswer(.names(room.id, cursor: 0))
            } else {
                let shown = NickMaker.prefix(of: UpstreamSession.printable(channel), maxBytes: 100)
                session.appendLongAnswer(.line(session.numeric(.rplEndOfNames, shown, "End of /NAMES list")))
            }
        }
    }

    private func sendTopic(_ room: Room, _ session: IRCSession) {
        reply(session.numeric(.rplTopic, room.channel, topic(of: room)), session)
        // What came from elsewhere came with the room.
        let given = room.settings.topic.isEmpty ? room.moderation.topic : nil
        reply(
            session.numeric(
                .rplTopicWhoTime, room.channel, given?.setBy ?? settings.serverName,
                String((given?.setAt ?? room.createdAt).milliseconds / 1000)), session)
    }

    private func readTopic(_ channel: String, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) else { return noSuchChannel(channel, session) }
        guard !topic(of: room).isEmpty else {
            return reply(session.numeric(.rplNoTopic, room.channel, "No topic is set"), session)
        }
        sendTopic(room, session)
    }

    private func mode(_ target: String, _ params: [String], _ session: IRCSession) {
        if target.hasPrefix("#") { return roomMode(target, params, session) }
        guard settings.casemapping.fold(target) == settings.casemapping.fold(session.displayNick) else {
            if context.identities.person(nick: target) == nil {
                let shown = NickMaker.prefix(of: UpstreamSession.printable(target), maxBytes: 64)
                return reply(session.numeric(.errNoSuchNick, shown, "No such nick"), session)
            }
            return reply(session.numeric(.errUsersDontMatch, "Modes of others are their own"), session)
        }
        ownMode(params, session)
    }
}
