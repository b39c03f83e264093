import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// Accounts with a link of their own in this room. The states are at the head of OwnLink.swift.

extension Room {
    // MARK: - Whose link

    /// The own link of an IRC user, if their account has one here.
    package func ownLink(of person: Person) -> OwnLink? {
        guard !own.isEmpty, let account = person.account else { return nil }
        return own[account]
    }

    package func ownLink(of member: LocalMember, _ context: RoomsContext) -> OwnLink? {
        guard !own.isEmpty else { return nil }
        return context.identities[member.person].flatMap { ownLink(of: $0) }
    }

    /// The IRC user who is this person upstream, while they are here.
    func ownPerson(_ sender: ChatPerson) -> PersonID? {
        guard let own = own.speaking(sender), own.emptySince == nil, slots.contains(own.person) else { return nil }
        return own.person
    }

    /// Over which what an IRC user says goes up.
    package func lane(of person: Person) -> SendLane { ownLink(of: person) ?? lane }

    // MARK: - Clients come and go

    /// A client of an account entered, or one that is here logged in.
    func ownArrived(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client], let account = context.identities[member.person]?.account else { return }
        guard let login = context.ownLogin(of: account, in: settings.name) else {
            return giveUpResting(of: account, context)
        }
        if let own = own[account] {
            own.entered(member.person)
            context.timers.cancel(.linger(own.id))
            claim(own, context)
            if own.link.state == .stopped { own.link.start(context) }
            return
        }
        open(makeOwn(account, login, puppet: member.puppet, person: member.person, context), context)
    }

    private func makeOwn(
        _ account: String, _ login: OwnLoginSettings, puppet: ChatID, person: PersonID, _ context: RoomsContext
    ) -> OwnLink {
        OwnLink(
            id: context.ownLinkID(account: account, room: id), room: settings, roomID: id, account: account,
            login: login, puppet: puppet, person: person,
            sendBudget: SendBudget(rate: lane.sendBudget.rate, burst: lane.sendBudget.burst),
            outbox: own.takeResting(of: account) ?? Outbox(traits), upstream: context.upstream)
    }

    private func open(_ own: OwnLink, _ context: RoomsContext) {
        self.own.insert(own)
        context.enter(own)
        claim(own, context)
        own.link.start(context)
        arm(own, context)
    }

    /// Opens the own links of accounts of which an earlier process left something to send. None of their clients is needed
    /// for that: what a link shows to the backend is in the configuration.
    func startOwnForWaiting(_ context: RoomsContext) {
        for account in own.waitingAccounts {
            guard let login = context.ownLogin(of: account, in: settings.name) else { continue }
            let puppet = context.identities.puppetID(account: account, backend: settings.backend)
            let own = makeOwn(account, login, puppet: puppet, person: .nobody, context)
            own.left(at: context.now.monotonic)
            open(own, context)
            context.timers.set(.linger(own.id), at: context.now.monotonic + Self.lingerRetry)
        }
    }

    /// The last client of an account may have left.
    func ownLeft(_ person: Person, _ context: RoomsContext) {
        guard let own = ownLink(of: person), own.emptySince == nil else { return }
        own.left(at: context.now.monotonic)
        context.timers.set(.linger(own.id), at: context.now.monotonic + Self.linger)
    }

    package func ownLingerTimerFired(_ own: OwnLink, _ context: RoomsContext) {
        guard own.emptySince != nil, !own.isClosing else { return }
        guard own.outbox.isEmpty else {
            return context.timers.set(.linger(own.id), at: context.now.monotonic + Self.lingerRetry)
        }
        own.beginClosing()
        handle(own.link.stop(context), from: own, context)
    }

    private func ownStopped(_ own: OwnLink, _ context: RoomsContext) {
        guard own.endClosing() else { return }
        // Somebody came meanwhile; what they said goes up, even if they are gone again.
        if own.emptySince == nil || !own.outbox.isEmpty { return own.link.start(context) }
        self.own.remove(own)
        context.leave(own)
    }

    // MARK: - Who the account is upstream

    /// Enters under which ids and names the backend shows the account. Whoever was shown under these is the IRC user now.
    private func claim(_ own: OwnLink, _ context: RoomsContext) {
        guard !barIfShared(own, context) else { return }
        self.own.claim(own)
        guard own.emptySince == nil else { return }
        let people =
            own.dialectContext.selfIDs.map { ChatPerson(id: $0) }
            + own.dialectContext.selfNames.map { ChatPerson(name: $0) }
        for person in people {
            let key = IdentityMap.remoteKey(person, backend: settings.backend)
            if let stranger = context.identities.known(key) { remoteLeft(stranger, reason: nil, context) }
        }
    }

    /// The backend said who the account is.
    package func ownIdentified(_ own: OwnLink, _ person: ChatPerson, _ context: RoomsContext) {
        guard person.id != nil || person.name != nil else { return ownNotIdentified(own, context) }
        own.identified(as: person)
        claim(own, context)
        settleOwn(own, context)
        pump(own, context)
    }

    /// Whether the backend sees the account as the one of the room's own link; nothing of it goes out then.
    @discardableResult
    func barIfShared(_ own: OwnLink, _ context: RoomsContext) -> Bool {
        guard settings.identity == .single, !own.isBarred else { return own.isBarred }
        let isRoomsIDKnown =
            accountPerson.id != context.identities.puppetID(nick: "chatbridge", backend: settings.backend)
        // Two people may have one name where there are ids.
        let isSameName = !own.dialectContext.selfNames.isDisjoint(with: lane.dialectContext.selfNames)
        let isShared =
            !own.dialectContext.selfIDs.isDisjoint(with: lane.dialectContext.selfIDs)
            || isSameName && !(own.isIDKnown && isRoomsIDKnown)
        guard isShared else { return false }
        own.bar()
        self.own.disclaim(own)
        context.note(
            .error, "own-login-barred", "an account's own login is the account that the room itself uses",
            ["room": settings.name, "account": own.account])
        tell(
            own,
            "Your own login at \(settings.url.host) is the one that the bridge itself uses in this room, so it "
                + "cannot be yours. What you write here is not sent; have the operator give you another.", context)
        return true
    }

    package func ownNotIdentified(_ own: OwnLink, _ context: RoomsContext) {
        guard !own.isIdentified, own.link.isUp else { return }
        context.timers.set(.ownIdentity(own.id), at: context.now.monotonic + OwnLink.identityRetry)
        guard own.tellIdentityTrouble() else { return }
        tell(
            own,
            "\(settings.url.host) has not said yet who you are there. What you write here is queued and sent when it "
                + "has.", context)
    }

    package func ownIdentityTimerFired(_ own: OwnLink, _ context: RoomsContext) {
        if !own.isIdentified, own.link.isUp { context.requestOwnIdentity(own.id) }
    }

    // MARK: - What the link brings

    package func handle(_ events: [LinkEvent], from own: OwnLink, _ context: RoomsContext) {
        for event in events {
            switch event {
            case .up: ownCameUp(own, context)
            case .down(let reason, let wasUp, let retryIn): ownWentDown(own, reason, wasUp, retryIn, context)
            case .chat(let chat, _): ownReceived(chat, own, context)
            // The room's link counts what is not understood, and fetches what was missed.
            case .loginRenewed: pump(own, context)
            case .dropped: break
            case .pong(_, let frameCount): hasRead(frameCount: frameCount, over: own, context)
            case .stopped: ownStopped(own, context)
            }
        }
        settleDoubt(own, context)
    }

    private func ownCameUp(_ own: OwnLink, _ context: RoomsContext) {
        context.note(
            .info, "own-link-up", "an account is linked to the backend as itself",
            ["room": settings.name, "account": own.account])
        if let outage = own.cameUp() {
            tell(
                own,
                outage.wasUp
                    ? "Your own link to \(settings.url.host) is back."
                    : "You are linked to \(settings.url.host) as yourself now.", context)
        }
        if !own.isIdentified || own.name == nil { context.requestOwnIdentity(own.id) }
        own.cutRestored()
        settleOwn(own, context)
        pump(own, context)
    }

    private func ownWentDown(
        _ own: OwnLink, _ reason: String, _ wasUp: Bool, _ retryIn: Duration, _ context: RoomsContext
    ) {
        context.note(
            own.outage == nil ? .warn : .info, wasUp ? "own-link-lost" : "own-link-failed", reason,
            [
                "room": settings.name, "account": own.account,
                "retry-in": String(retryIn.wholeNanoseconds / 1_000_000) + "ms",
                "failures": String(own.link.failures),
            ])
        lost(own, context)
        context.timers.cancel(.ownIdentity(own.id))
        // A first refusal is followed by another try at once, with what is read anew.
        guard wasUp || retryIn > .zero else { return }
        let isRefused = retryIn >= ReconnectPolicy.refusedDelay
        guard own.wentDown(reason, wasUp: wasUp, isRefused: isRefused, now: context.now.monotonic) else { return }
        tell(own, ownOutageText(own, isRefused: isRefused, wasUp: wasUp), context)
    }

    private func ownOutageText(_ own: OwnLink, isRefused: Bool, wasUp: Bool) -> String {
        let reason = own.outage?.reason ?? "it is not there yet"
        let kept = "What you write here is kept, and goes as yourself or not at all."
        if isRefused {
            let wait = PrintableText.spoken(seconds: Int(ReconnectPolicy.refusedDelay / .seconds(1)))
            return "\(settings.url.host) refuses your own login: \(reason). \(kept) Have the operator renew it "
                + "(\(settings.name) in upstream of the account \(own.account)); a new one is noticed within seconds. "
                + "The next try with the old one is in \(wait)."
        }
        return wasUp
            ? "Your own link to \(settings.url.host) was lost: \(reason). \(kept)"
            : "Your own link to \(settings.url.host) cannot be opened: \(reason). \(kept) Trying goes on."
    }

    /// What a client of the account that enters must know of its own link.
    package func ownStatusNotice(_ person: PersonID, _ context: RoomsContext) -> String? {
        guard let known = context.identities[person], let own = ownLink(of: known), let outage = own.outage else {
            return nil
        }
        return ownOutageText(own, isRefused: outage.isRefusalTold, wasUp: outage.wasUp)
    }

    /// Tells the clients of the account, and nobody else.
    private func tell(_ own: OwnLink, _ text: String, _ context: RoomsContext) {
        guard own.emptySince == nil else { return }
        for client in clients(of: own.person, context) {
            frontEnd.tell(.notice(text), in: self, to: client, label: nil)
        }
    }

    private func ownReceived(_ event: ChatEvent, _ own: OwnLink, _ context: RoomsContext) {
        switch event {
        case .ready(let ready): own.announced(ready)
        case .message(let message): _ = takeOwn(message, overOwnLink: own, isHistory: false, context)
        case .receipt(let receipt): confirmByReceipt(receipt, over: own, context)
        case .error(let error):
            context.note(
                .warn, "own-link-error", own.link.told(error.text),
                ["room": settings.name, "account": own.account, "code": own.link.told(error.code)])
            errorReceived(error, over: own, context)
        case .auth(let auth) where auth.state != .ok:
            context.note(
                .error, "own-link-auth", "login on the socket: \(auth.state.rawValue)",
                ["room": settings.name, "account": own.account])
        default: break
        }
    }

    // MARK: - What became of messages

    /// A message that an account said, over its own link or elsewhere. True when there is nothing left to show.
    ///
    /// - Parameter overOwnLink: the link that brought it; nil: the room's.
    func takeOwn(
        _ message: ChatMessage, overOwnLink link: OwnLink? = nil, isHistory: Bool, _ context: RoomsContext
    ) -> Bool {
        guard !own.isEmpty else { return false }
        return traits.messageIDOrigin == .client
            ? takeOwnByID(message, link, context) : takeOwnByText(message, link, isHistory: isHistory, context)
    }

    /// Where the ids are ours: whoever the backend says it was.
    private func takeOwnByID(_ message: ChatMessage, _ link: OwnLink?, _ context: RoomsContext) -> Bool {
        guard let id = message.id, let account = own.messageIDs.owner(of: id), let own = own[account],
            link == nil || link === own
        else { return false }
        if !own.isPerson(message.sender) {
            // The backend has another id for us than the one we gave. Nobody else can know a fresh id before the backend
            // sends it round, so the first that bears one is ours; later ones prove nothing.
            guard own.outbox.contains(id: id) || !own.isLearned else { return false }
            own.recognised(message.sender)
            claim(own, context)
        }
        own.recognised(message.sender)
        _ = duplicates.insert(duplicateKey(id, message.sender.id))
        _ = duplicates.insert(duplicateKey(id, own.speaker(nick: "").id))
        if link == nil { saw(message, context) }
        if let entry = own.confirm(id: id) {
            if link === own, entry.state != .unsettled { own.answered(context) }
            confirmed(entry, upstreamID: id, at: message.at, own, context)
        } else if let entry = own.takeLate(ref: id) {
            tellLateArrival(entry, context)
            confirmed(entry, upstreamID: id, at: message.at, own, context)
        }
        return true
    }

    private func takeOwnByText(
        _ message: ChatMessage, _ link: OwnLink?, isHistory: Bool, _ context: RoomsContext
    ) -> Bool {
        guard let own = own.speaking(message.sender), link == nil || link === own else { return false }
        if let id = message.id {
            if duplicates.contains(duplicateKey(id, nil)) { return true }
        } else if link == nil, isKnownByText(message, isHistory: isHistory, context) {
            return true
        }
        var late: OutboxEntry?
        var entry = message.ref.flatMap { own.confirm(id: ChatID($0)) }
        // A row of a history was recognised before, with all others.
        if entry == nil, !isHistory || message.id == nil {
            entry =
                traits.confirmation == .echoByID
                ? message.id.flatMap { own.confirm(id: $0) }
                : own.confirm(sender: nil, text: message.text)
        }
        if entry == nil {
            late =
                message.ref.flatMap { own.takeLate(ref: ChatID($0)) }
                ?? own.takeLate(sender: nil, text: message.text)
        }
        if let entry = entry ?? late {
            if let id = message.id { _ = duplicates.insert(duplicateKey(id, nil)) }
            if link == nil { saw(message, context) }
            if late != nil { tellLateArrival(entry, context) }
            // The room's link shows it to everybody; only what comes over the own link is an answer.
            if link === own, late == nil, entry.state != .unsettled { own.answered(context) }
            confirmed(entry, upstreamID: message.id, at: message.at, own, context)
            return true
        }
        guard message.id != nil else {
            // Over the own link too it may come, and must stay known until the room's link had it.
            guard link == nil else { return true }
            let sent =
                isHistory
                ? own.sent.takeNewest(text: message.text)
                : own.sent.takeEchoed(text: message.text, now: context.now.monotonic)
            if sent == nil { show(message, context) }
            return true
        }
        // In a history the ids were learned before, newest first.
        guard !isHistory, let sent = own.sent.takeEchoed(text: message.text, now: context.now.monotonic) else {
            return false
        }
        if link == nil { saw(message, context) } else { own.answered(context) }
        learn(message.id, of: sent, own, context)
        return true
    }

    /// Ids of what own links said, from a history.
    func learnOwnSent(_ messages: [ChatMessage], _ context: RoomsContext) {
        learnOwnSentBefore(messages, context)
        guard traits.messageIDOrigin == .server, own.values.contains(where: { !$0.sent.isEmpty }) else { return }
        for message in messages.reversed() {
            guard let id = message.id, !duplicates.contains(duplicateKey(id, nil)),
                let own = own.speaking(message.sender), let sent = own.sent.takeNewest(text: message.text)
            else { continue }
            learn(id, of: sent, own, context)
            catchUp.saw(id: id, at: message.at, wall: context.now.wall)
        }
    }

    /// The same of what they said before the last start: their links may not be open again.
    private func learnOwnSentBefore(_ messages: [ChatMessage], _ context: RoomsContext) {
        guard own.hasSentBefore else { return }
        for message in messages.reversed() {
            guard let id = message.id, !duplicates.contains(duplicateKey(id, nil)),
                let msgid = own.takeSentBefore(message)
            else { continue }
            learn(id, of: msgid, context)
            catchUp.saw(id: id, at: message.at, wall: context.now.wall)
        }
    }

    // MARK: - After a lost link

    /// The link is back: a history that is asked for now tells what became of what was written over the lost one.
    private func settleOwn(_ own: OwnLink, _ context: RoomsContext) {
        guard own.isIdentified, own.outbox.hasUnsettled, traits.history != .none else { return }
        if !askAgain(context) { armSettling(context) }
    }
}
