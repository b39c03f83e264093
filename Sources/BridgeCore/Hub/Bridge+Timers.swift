public import BridgeTypes
import IRCServer
import Rooms
import Upstream
import WireBytes

// Dispatch of due deadlines.

extension Bridge {
    public func timerFired(now: Now) {
        context.now = now
        // A deadline that is set again for the past waits for the next turn, so that it cannot starve others.
        var left = context.timerCount
        while left > 0, let key = context.popDue() {
            left -= 1
            if fireOwnLinkTimer(key) { continue }
            switch key {
            case .clientLiveness(let id): if let session = irc.sessions[id] { irc.checkLiveness(session) }
            case .clientBudget(let id): if let session = irc.sessions[id] { irc.processInput(session) }
            case .clientNaming(let id): if let session = irc.sessions[id] { irc.goOnNaming(session) }
            case .autoJoin(let id): if let session = irc.sessions[id] { irc.arrive(session) }
            case .loginAnswer(let id): if let session = irc.sessions[id] { irc.loginAnswerIsDue(session) }
            case .registration(let id): irc.registrationTimedOut(id)
            case .link(let id): drive(id) { $0.timerFired(dialectContext: $1, &$2) }
            case .givingUp(let id): room(id)?.givingUpTimerFired(context)
            case .settling(let id): room(id)?.settlingTimerFired(context)
            case .catchUp(let id): room(id)?.catchUpTimerFired(context)
            case .connectGate: for id in context.takeConnectSlots() { connectSlotGranted(id) }
            case .outbox(let id): if let (room, lane) = roomTable.lane(id) { room.outboxTimerFired(lane, context) }
            case .typingIn(let person, let id): room(id)?.endTyping(person, announced: true, context)
            case .typingOut(let client, let id): room(id)?.typingTimerFired(client, context)
            case .receipts(let id): room(id)?.receiptTimerFired(context)
            case .markRead(let id): roomTable.lane(id)?.lane.markReadTimerFired(context)
            case .ambiguousMessages(let id): room(id)?.releaseDecided(context)
            case .openActions(let id): room(id)?.pendingActionsTimerFired(context)
            case .idleUsers(let id): room(id)?.sweepIdlePeople(context)
            case .complete(let id): room(id)?.liveTimerFired(context)
            case .roomLoad(let id): roomLoadTimedOut(id)
            case .joinBatches(let id): room(id)?.joinBatchesTimerFired(context)
            case .netsplit(let id): room(id)?.splitTimerFired(context)
            case .identities: identitiesTimerFired()
            case .backend(let id): fireBackendTimer(id)
            case .linger(let id): room(id)?.lingerTimerFired(context)
            case .opening(let id): room(id)?.opened(context)
            case .pendingJoins: irc.letNextIn()
            case .roomsList: irc.refuseWaitingJoins()
            case .roomsRetry: irc.askForTemplateRooms(isRetry: true)
            case .listing: irc.endWaitingLists()
            case .cursors(let id): if let room = room(id) { irc.cursorsTimerFired(room) }
            case .deliveryCursor(let id): if let session = irc.sessions[id] { irc.followingTimerFired(session) }
            case .history(let id): if let session = irc.sessions[id] { irc.historyTimerFired(session) }
            case .olderHistory(let id): room(id)?.olderTimerFired(context)
            case .ownIdentity: break
            case .shutdown: shutdownTimerFired()
            }
        }
        finishIfIdle()
    }
}
