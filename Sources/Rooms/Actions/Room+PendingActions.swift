import BridgeTypes
import ChatModel
import HTTPProtocol
import Upstream
import WireBytes

// The outcome of IRC users' actions on messages. The table is at the head of PendingActions.swift.

extension Room {
    /// Registers an action that went to the socket; the backend may still answer it.
    func opened(_ action: PendingActions.Action, _ context: RoomsContext) {
        pendingActions.append(action)
        armPendingActions(context)
    }

    private func armPendingActions(_ context: RoomsContext) {
        if let due = pendingActions.due {
            context.set(.openActions(id), at: due)
        } else {
            context.cancel(.openActions(id))
        }
    }

    package func pendingActionsTimerFired(_ context: RoomsContext) {
        for action in pendingActions.takeOver(now: context.now.monotonic) where !action.isShown {
            unanswered(action, "\(settings.url.host) has not answered, and may have done it all the same", context)
        }
        armPendingActions(context)
    }

    /// The link that carried actions is lost.
    func pendingActionsLinkLost(_ link: RoomID, _ context: RoomsContext) {
        for action in pendingActions.linkLost(link) where !action.isShown {
            unanswered(action, "the link was lost before \(settings.url.host) answered", context)
        }
        armPendingActions(context)
    }

    private func unanswered(_ action: PendingActions.Action, _ why: String, _ context: RoomsContext) {
        tellAuthor(of: action, ActionRefusal(code: "CANNOT_DELIVER", text: "Not known, " + why), context)
    }

    private func tellAuthor(of action: PendingActions.Action, _ refusal: ActionRefusal, _ context: RoomsContext) {
        guard locals[action.client] != nil else { return }
        switch action.operation {
        case .takeBack(let entry, _, _):
            frontEnd.tell(
                .actionRefused(refusal, .takeBack, msgid: entry.msgid), in: self, to: action.client,
                label: action.isShown ? nil : action.label)
        case .reaction(_, let entry):
            frontEnd.tell(
                .actionRefused(refusal, .reaction, msgid: entry.msgid), in: self, to: action.client,
                label: action.isShown ? nil : action.label)
        }
    }

    // MARK: - Done

    /// The backend has carried out an action on a message. False: none is pending.
    package func answered(target: ChatID, _ context: RoomsContext) -> Bool {
        guard let action = pendingActions.takeAwaited(target: target) else { return false }
        armPendingActions(context)
        guard case .takeBack(let entry, _, let reason) = action.operation,
            let known = recent.entry(msgid: entry.msgid), !known.isTakenBack
        else { return true }
        showTakenBack(known, by: action.person, reason: reason, from: action.client, label: action.label, context)
        return true
    }

    // MARK: - Refused

    /// Handles a complaint that names the command or its message. False: no pending action matches.
    package func actionRefused(
        ref: String, over link: RoomID, _ words: String, _ context: RoomsContext
    ) -> Bool {
        guard let action = pendingActions.take(target: ChatID(ref), over: link) else { return false }
        refused(action, words, context)
        return true
    }

    /// Handles a complaint without a reference, where one action is all that is in flight. False: it is not.
    func onlyActionRefused(over link: RoomID, _ words: String, _ context: RoomsContext) -> Bool {
        let action = pendingActions.takeOnly(
            over: link, within: UnidentifiedMessages.complaintWindow, now: context.now.monotonic)
        guard let action else { return false }
        refused(action, words, context)
        return true
    }

    private func refused(_ action: PendingActions.Action, _ words: String, _ context: RoomsContext) {
        armPendingActions(context)
        let why = "\(settings.url.host) refused it (\(words))"
        context.note(
            .warn, "action-refused", "the backend refused what an IRC user did to a message: \(words)",
            ["room": settings.name])
        switch action.operation {
        case .takeBack(let entry, let before, _):
            tellAuthor(of: action, ActionRefusal(code: "REDACT_FORBIDDEN", text: "Not taken back, \(why)"), context)
            guard action.isShown, recent.entry(msgid: entry.msgid)?.isTakenBack == true else { return }
            recent.restore(entry)
            archive.restore(before)
            context.keep(.restore(storedKey, msgid: entry.msgid))
            let seconds = Int(max(0, context.now.wall.milliseconds - entry.at.milliseconds) / 1000)
            notice(
                "\(why), so a message of \(entry.nick)'s from \(PrintableText.spoken(seconds: seconds)) ago is not taken back: "
                    + entry.excerpt)
        case .reaction(let reaction, let original):
            tellAuthor(of: action, ActionRefusal(code: "REACTION_NOT_ALLOWED", text: "Not sent, \(why)"), context)
            guard action.isShown else { return }
            lanes.first { $0.id == action.link }?.reactions.remove(reaction)
            showUndone(reaction, on: original, action, context)
        }
    }

    /// Shows the reversal of a reaction that the room has seen.
    private func showUndone(
        _ reaction: ChatReaction, on original: RecentLog.Entry, _ action: PendingActions.Action,
        _ context: RoomsContext
    ) {
        let opposite: ChatReaction.Operation = reaction.operation == .add ? .remove : .add
        show(
            reaction.emoji, opposite, on: original, by: action.person, from: action.client, author: action.puppet,
            at: context.now.wall, context)
    }
}
