import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// Own links of accounts in this room. The states are at the head of OwnLink.swift.

extension Room {
    // MARK: - Clients enter and leave

    /// A client of an account entered, or a present one logged in.
    func ownArrived(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client], let account = context.identities[member.person]?.account else { return }
        guard let login = context.ownLogin(of: account, in: settings.name) else {
            return giveUpResting(of: account, context)
        }
        if let own = own[account] {
            own.entered(member.person)
            context.cancel(.linger(own.id))
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
            outbox: own.takeResting(of: account) ?? Outbox(traits), traffic: traffic,
            upstream: context.upstream)
    }

    private func open(_ own: OwnLink, _ context: RoomsContext) {
        self.own.insert(own)
        context.enter(own)
        claim(own, context)
        own.link.start(context)
        arm(own, context)
    }

    /// Opens the own links with restored messages. Their clients are not needed: the credentials are in the
    /// configuration.
    func startOwnForWaiting(_ context: RoomsContext) {
        for account in own.waitingAccounts {
            guard let login = context.ownLogin(of: account, in: settings.name) else { continue }
            let puppet = context.identities.puppetID(account: account, backend: settings.backend)
            let own = makeOwn(account, login, puppet: puppet, person: .invalid, context)
            own.left(at: context.now.monotonic)
            open(own, context)
            context.set(.linger(own.id), at: context.now.monotonic + Self.waitingLinger)
        }
    }

    /// The last client of an account may have left.
    func ownLeft(_ person: Person, _ context: RoomsContext) {
        guard let own = ownLink(of: person), own.emptySince == nil else { return }
        own.left(at: context.now.monotonic)
        context.set(.linger(own.id), at: context.now.monotonic + Self.linger)
    }

    package func ownLingerTimerFired(_ own: OwnLink, _ context: RoomsContext) {
        guard own.emptySince != nil, !own.isClosing, own.outbox.isSettled else { return }
        context.cancel(.linger(own.id))
        own.beginClosing()
        handle(own.link.stop(context), from: own, context)
    }

    private func ownStopped(_ own: OwnLink, _ context: RoomsContext) {
        guard own.endClosing() else { return }
        // A client entered meanwhile; its messages are sent even if it has left again.
        if own.emptySince == nil || !own.outbox.isSettled { return own.link.start(context) }
        self.own.remove(own)
        context.leave(own)
        settled(lane, context)
    }

    // MARK: - Upstream identity

    /// The backend identified the account.
    package func ownIdentified(_ own: OwnLink, _ person: ChatPerson, _ context: RoomsContext) {
        guard person.id != nil || person.name != nil else { return ownNotIdentified(own, context) }
        own.identified(as: person)
        claim(own, context)
        settleOwn(own, context)
        pump(own, context)
    }

    package func ownNotIdentified(_ own: OwnLink, _ context: RoomsContext) {
        guard !own.isIdentified, own.link.isUp else { return }
        context.set(.ownIdentity(own.id), at: context.now.monotonic + OwnLink.identityRetry)
        guard own.tellIdentityTrouble() else { return }
        tell(
            own,
            "\(settings.url.host) has not said yet who you are there. What you write here is queued and sent when it "
                + "has.", context)
    }

    package func ownIdentityTimerFired(_ own: OwnLink, _ context: RoomsContext) {
        if !own.isIdentified, own.link.isUp { context.requestOwnIdentity(own.id) }
    }

    // MARK: - Events of the link

    package func handle(_ events: [LinkEvent], from own: OwnLink, _ context: RoomsContext) {
        for event in events {
            switch event {
            case .up: ownCameUp(own, context)
            case .down(let reason, let wasUp, let retryIn): ownWentDown(own, reason, wasUp, retryIn, context)
            case .replaced(let reason, let wasUp): ownWasReplaced(own, reason, wasUp, context)
            case .chat(let chat, _):
                if let tap = context.tap { tap(RoomPassage(.fromBackend(chat), over: own)) }
                ownReceived(chat, own, context)
            // The room's link counts undecodable frames, and fetches the history.
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
        if let outage = own.cameUp(), outage.isTold {
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
            own.outage?.isTold == true ? .info : .warn, wasUp ? "own-link-lost" : "own-link-failed", reason,
            [
                "room": settings.name, "account": own.account,
                "retry-in": String(retryIn.wholeNanoseconds / 1_000_000) + "ms",
                "failures": String(own.link.failures),
            ])
        leaveSession(of: own, context)
        // A first refusal is followed by another attempt at once, with fresh credentials.
        guard wasUp || retryIn > .zero else { return }
        let isRefused = retryIn >= ReconnectPolicy.refusedDelay
        guard own.wentDown(reason, wasUp: wasUp, isRefused: isRefused, now: context.now.monotonic) else { return }
        tell(own, ownOutageText(own, isRefused: isRefused, wasUp: own.outage?.wasUp ?? wasUp), context)
    }

    /// The link is opened anew on purpose; the clients hear of it if that fails.
    private func ownWasReplaced(_ own: OwnLink, _ reason: String, _ wasUp: Bool, _ context: RoomsContext) {
        context.note(
            .info, "own-link-reopened", reason, ["room": settings.name, "account": own.account])
        leaveSession(of: own, context)
        if wasUp { own.replaced(reason, now: context.now.monotonic) }
    }

    private func leaveSession(of own: OwnLink, _ context: RoomsContext) {
        lost(own, context)
        context.cancel(.ownIdentity(own.id))
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

    /// The status of the own link for a client that enters.
    package func ownStatusNotice(_ person: PersonID, _ context: RoomsContext) -> String? {
        guard let known = context.identities[person], let own = ownLink(of: known), let outage = own.outage,
            outage.isTold
        else {
            return nil
        }
        return ownOutageText(own, isRefused: outage.isRefusalTold, wasUp: outage.wasUp)
    }

    private func ownReceived(_ event: ChatEvent, _ own: OwnLink, _ context: RoomsContext) {
        switch event {
        case .ready(let ready): own.announced(ready)
        case .message(let message): _ = takeOwn(message, overOwnLink: own, isHistory: false, context)
        case .receipt(let receipt): confirmByReceipt(receipt, over: own, context)
        case .error(let error):
            context.note(
                .warn, "own-link-error", own.link.printable(error.text),
                ["room": settings.name, "account": own.account, "code": own.link.printable(error.code)])
            errorReceived(error, over: own, context)
        case .auth(let auth) where auth.state != .ok:
            context.note(
                .error, "own-link-auth", "login on the socket: \(auth.state.rawValue)",
                ["room": settings.name, "account": own.account])
        default: break
        }
    }

    // MARK: - After a lost link

    /// The link is back: a history requested now resolves messages written over the lost one.
    private func settleOwn(_ own: OwnLink, _ context: RoomsContext) {
        guard own.isIdentified, own.outbox.hasUnknown, traits.history != .none else { return }
        if !askAgain(context) { armSettling(context) }
    }
}
