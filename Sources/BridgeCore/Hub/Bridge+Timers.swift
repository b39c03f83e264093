public import BridgeTypes
import IRCServer
import Rooms
import Upstream
import WireBytes

// Every deadline of the bridge, and what happens at it.

extension Bridge {
    public func timerFired(now: Now) {
        context.now = now
        // What is armed again for a moment that has passed waits for the next turn, so that it can keep nobody waiting.
        var left = context.timers.count
        while left > 0, let key = context.timers.popDue(now.monotonic) {
            left -= 1
            if fireOwnLinkTimer(key) { continue }
            switch key {
            case .clientLiveness(let id): if let session = irc.sessions[id] { irc.checkLiveness(session) }
            case .clientBudget(let id): if let session = irc.sessions[id] { irc.processInput(session) }
            case .naming(let id): if let session = irc.sessions[id] { irc.goOnNaming(session) }
            case .arriving(let id): if let session = irc.sessions[id] { irc.arrive(session) }
            case .loginAnswer(let id): if let session = irc.sessions[id] { irc.loginAnswerIsDue(session) }
            case .accountAnswer(let id): irc.registrationTimedOut(id)
            case .link(let id): drive(id) { $0.timerFired(dialectContext: $1, &$2) }
            case .settling(let id): room(id)?.settlingTimerFired(context)
            case .catchUp(let id): room(id)?.catchUpTimerFired(context)
            case .connectGate: for id in context.takeConnectSlots() { connectSlotGranted(id) }
            case .outbox(let id): if let (room, lane) = roomTable.lane(id) { room.outboxTimerFired(lane, context) }
            case .typingIn(let person, let id): room(id)?.endTyping(person, announced: true, context)
            case .typingOut(let client, let id): room(id)?.typingTimerFired(client, context)
            case .receipts(let id): room(id)?.receiptTimerFired(context)
            case .markRead(let id): roomTable.lane(id)?.lane.markReadTimerFired(context)
            case .undecided(let id): room(id)?.releaseDecided(context)
            case .openActions(let id): room(id)?.openActionsTimerFired(context)
            case .idlePeople(let id): room(id)?.sweepIdlePeople(context)
            case .live(let id): room(id)?.liveTimerFired(context)
            case .roomLoad(let id): roomLoadTimedOut(id)
            case .crowds(let id): room(id)?.crowdsTimerFired(context)
            case .split(let id): room(id)?.splitTimerFired(context)
            case .identities: identitiesTimerFired()
            case .backend(let id): fireBackendTimer(id)
            case .linger(let id): room(id)?.lingerTimerFired(context)
            case .opening(let id): room(id)?.opened(context)
            case .pendingJoins: irc.letNextIn()
            case .roomsList: irc.refuseWaitingJoins()
            case .roomsRetry: irc.askForTemplateRooms(isRetry: true)
            case .listing: irc.endWaitingLists()
            case .cursors(let id): if let room = room(id) { irc.cursorsTimerFired(room) }
            case .following(let id): if let session = irc.sessions[id] { irc.followingTimerFired(session) }
            case .history(let id): if let session = irc.sessions[id] { irc.historyTimerFired(session) }
            case .olderHistory(let id): room(id)?.olderTimerFired(context)
            case .ownIdentity: break
            case .shutdown: if lifecycle.phase == .draining { beginAsking() } else { beginClosing() }
            }
        }
        finishIfIdle()
    }
}
