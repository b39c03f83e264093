import BridgeTypes
import ChatModel
import HTTPProtocol
import Upstream
import WireBytes

// What became of what IRC users did to messages. The table is at the head of OpenActions.swift.

extension Room {
    /// An action went to the socket; the backend may still say something of it.
    func opened(_ action: OpenActions.Action, _ context: RoomsContext) {
        openActions.append(action)
        armOpenActions(context)
    }

    private func armOpenActions(_ context: RoomsContext) {
        if let due = openActions.due {
            context.timers.set(.openActions(id), at: due)
        } else {
            context.timers.cancel(.openActions(id))
        }
    }

    package func openActionsTimerFired(_ context: RoomsContext) {
        for action in openActions.takeOver(now: context.now.monotonic) where !action.isShown {
            unanswered(action, "\(settings.url.host) has not answered, and may have done it all the same", context)
        }
        armOpenActions(context)
    }

    /// The link over which actions went is gone.
    func openActionsLinkLost(_ link: RoomID, _ context: RoomsContext) {
        for action in openActions.linkLost(link) where !action.isShown {
            unanswered(action, "the link was lost before \(settings.url.host) answered", context)
        }
        armOpenActions(context)
    }

    private func unanswered(_ action: OpenActions.Action, _ why: String, _ context: RoomsContext) {
        tellAuthor(of: action, ActionRefusal(code: "CANNOT_DELIVER", text: "Not known, " + why), context)
    }

    private func tellAuthor(of action: OpenActions.Action, _ refusal: ActionRefusal, _ context: RoomsContext) {
        guard locals[action.client] != nil else { return }
        switch action.deed {
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

    /// The backend has done what was asked with a message. False: nobody waits for that.
    package func answered(target: ChatID, _ context: RoomsContext) -> Bool {
        guard let action = openActions.takeAwaited(target: target) else { return false }
        armOpenActions(context)
        guard case .takeBack(let entry, _, let reason) = action.deed,
            let known = recent.entry(msgid: entry.msgid), !known.isTakenBack
        else { return true }
        showTakenBack(known, by: action.person, reason: reason, from: action.client, label: action.label, context)
        return true
    }

    // MARK: - Refused

    /// The complaint names what was asked for, or what it was about. False: that is none of these.
    package func actionRefused(
        ref: String, over link: RoomID, _ words: String, _ context: RoomsContext
    ) -> Bool {
        guard let action = openActions.take(target: ChatID(ref), over: link) else { return false }
        refused(action, words, context)
        return true
    }

    /// A complaint that names nothing, where an action is all that is in flight. False: it is not.
    func onlyActionRefused(over link: RoomID, _ words: String, _ context: RoomsContext) -> Bool {
        let action = openActions.takeOnly(
            over: link, within: SentMessages.complaintWindow, now: context.now.monotonic)
        guard let action else { return false }
        refused(action, words, context)
        return true
    }

    private func refused(_ action: OpenActions.Action, _ words: String, _ context: RoomsContext) {
        armOpenActions(context)
        let why = "\(settings.url.host) refused it (\(words))"
        context.note(
            .warn, "action-refused", "the backend refused what an IRC user did to a message: \(words)",
            ["room": settings.name])
        switch action.deed {
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

    /// A reaction that all have seen is none.
    private func showUndone(
        _ reaction: ChatReaction, on original: RecentMessages.Entry, _ action: OpenActions.Action,
        _ context: RoomsContext
    ) {
        let opposite: ChatReaction.Operation = reaction.operation == .add ? .remove : .add
        show(
            reaction.emoji, opposite, on: original, by: action.person, from: action.client, author: action.puppet,
            at: context.now.wall, context)
    }
}
