import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

// Gaps in a room's order: their bounds, and their reports.
//
// It begins at the last proof that the lost link worked (`LinkProof`), and ends when messages come again. It is reported
//
// | case                                    | at                                                             |
// |-----------------------------------------|------------------------------------------------------------------|
// | the backend has no history              | the link is back                                               |
// | the same, and the link was opened anew  | the room's next line or a page of it, or a minute without them |
// | it has, but no way to request it        | the link is back                                               |
// | its history does not reach back so far  | the history came                                               |
// | more messages were missed than are shown | the history came                                               |
// | paging ended early                      | the available part came                                        |
// | its history came too late               | it came, behind too many new messages to be inserted           |
// | the store could not write               | it recovers; present users have seen the messages              |
//
// and not while a history may still fill it. A link that was never up has a gap from the first JOIN on, unless an
// earlier process stored the room. An on-demand room has a gap after every time without users. No present user missed
// that, so it is reported only where the order is persistent, together with the backlog of an account's clients: to the
// user that opened the room, as it would be after a restart.

extension Room {
    /// Reports a gap at this place of the room's order.
    ///
    /// - Parameter sentence: the report, with the time in words in it.
    func reportGap(
        from: ChatTimestamp, to: ChatTimestamp, _ context: RoomsContext, _ sentence: (_ span: String) -> String
    ) {
        let from = min(from, to)
        tell("*** " + sentence(Self.span(from, to)), at: to, from: from, context)
    }

    /// Reports that the following messages are older than those in front of them; also for later readers.
    ///
    /// - Parameter first: the time of the first of them.
    func reportLate(first: ChatTimestamp?, _ context: RoomsContext) {
        tell(
            "*** What was said during the outage comes late: the messages that follow are older than those before them.",
            at: first.map { $0.after(-1) } ?? context.now.wall, from: nil, context)
    }

    /// Logs and shows a notice of the bridge in the room's order.
    ///
    /// - Parameter from: the beginning of a gap up to `at`.
    private func tell(_ text: String, at moment: ChatTimestamp, from: ChatTimestamp?, _ context: RoomsContext) {
        let at = freeTime(moment, context)
        let msgid = context.messageID(
            backend: settings.backend, room: settings.upstreamRoom, sender: ChatID("gap"),
            id: ChatID("\(recent.nextSequence) \(from?.milliseconds ?? 0) \(moment.milliseconds)"))
        let server = context.settings.serverName
        let row = StoredMessage(
            kind: .gap, sequence: Int64(recent.nextSequence), msgid: msgid, at: at, backendAt: moment, gapFrom: from,
            nick: server, source: server, text: text)
        recent.append(notice: row)
        recent.heard(at, wall: context.now.wall)
        keep(row, context)
        show(
            .said(
                RoomMessage(
                    msgid: msgid, at: at, isNotice: true, words: .upstream(ChatMessage(text: text)),
                    gap: from.map { ($0, moment) })))
    }

    /// `between 12:03:10 and 12:03:55 UTC (45 s)`; with the dates when it is more than a day. The moments are rounded
    /// outward: to seconds, or to tenths where whole seconds would double what is short.
    package static func span(_ from: ChatTimestamp, _ to: ChatTimestamp) -> String {
        let (difference, over) = to.milliseconds.subtractingReportingOverflow(from.milliseconds)
        let seconds = over ? .max : max(difference, 0) / 1000
        let isShort = seconds < 10
        func moment(_ at: ChatTimestamp) -> String {
            self.moment(at, hasDate: seconds >= 24 * 60 * 60)
                + (isShort ? ".\((at.milliseconds % 1000 + 1000) % 1000 / 100)" : "")
        }
        return
            "between \(moment(from)) and \(moment(to.after(isShort ? 99 : 999))) UTC "
            + "(\(PrintableText.spoken(seconds: Int(clamping: seconds))))"
    }

    /// `2026-11-21 12:03:10`, UTC.
    package static func moment(_ at: ChatTimestamp, hasDate: Bool = true) -> String {
        let text = CivilTime.text(milliseconds: at.milliseconds)
        return hasDate ? text : String(text.suffix(8))
    }

    /// The beginning of the gap. Backends stamp messages before they broadcast them, some by whole seconds, so lost
    /// messages may bear times just before the end of the received ones.
    private func gapBegin(_ context: RoomsContext) -> ChatTimestamp {
        let since = continuity.missingSince?.earliest(by: context.now) ?? catchUp.mark?.at ?? context.now.wall
        let (early, over) = since.milliseconds.subtractingReportingOverflow(CatchUp.serverClockTolerance)
        return ChatTimestamp(milliseconds: over ? since.milliseconds : early)
    }

    private func gapEnding(_ context: RoomsContext) -> ChatTimestamp {
        continuity.gapEnd?.latest(by: context.now) ?? context.now.wall
    }

    // MARK: - Users before the link is up

    /// Opens a gap at a JOIN without a link: later messages count as missed.
    func awaitLink(_ context: RoomsContext) {
        let since = link.isUp ? context.now : continuity.askedSince ?? context.now
        catchUp.userJoined(wall: since.wall, isLinked: link.isUp)
        if !link.isUp { continuity.awaits(since: since) }
        // The stored room may contain an earlier gap.
        guard !life.isLoading else { return }
        persistAwaiting(context)
        // Persisted, so that after a crash before the first history the next process knows of the JOIN.
        if historySource != .none { persistAwaited(since: since, context) }
    }

    /// Runs a delayed JOIN: messages since its command count as missed.
    package func entering<Result>(askedAt: Now, _ enter: () -> Result) -> Result {
        continuity.entering(askedAt: askedAt, enter)
    }

    /// Opens a gap, for this process and the next.
    func persistAwaiting(_ context: RoomsContext) {
        guard !link.isUp, continuity.missingSince == nil, let since = continuity.awaitedSince else { return }
        continuity.missing(since: since)
        persistAwaited(since: since, context)
    }

    /// Reports a gap on a backend without a history.
    func reportNoHistory(to end: ChatTimestamp? = nil, _ context: RoomsContext) {
        guard continuity.missingSince != nil else { return }
        continuity.noLongerAwaits()
        reportGap(from: gapBegin(context), to: end ?? context.now.wall, context) {
            "What was said \($0) is missing: the backend keeps no history."
        }
        continuity.settled()
    }

    /// Leaves a gap on a backend without a history open for now: the link was opened anew on purpose, which may happen
    /// several times in a row, and what is missed in all of them is reported once.
    func holdGap(_ context: RoomsContext) {
        guard continuity.missingSince != nil else { return }
        context.set(.catchUp(id), at: context.now.monotonic + CatchUp.gapPatience)
    }

    /// Reports the gap that was left open.
    package func reportHeldGap(_ context: RoomsContext) {
        // Also when the link has just been lost, in front of what had waited for a decision.
        guard catchUp.state == .live, historySource == .none, continuity.missingSince != nil else { return }
        context.cancel(.catchUp(id))
        reportNoHistory(to: gapEnding(context), context)
        persistLive(context)
    }

    /// Reports a gap that the backend's history cannot be queried for.
    func reportUnfetchable(_ context: RoomsContext) {
        guard case .after = catchUp.gap else { return }
        reportGap(from: gapBegin(context), to: context.now.wall, context) {
            "What was said \($0) is missing: the backend cannot be asked for it."
        }
        continuity.settled()
        catchUp.closeGap()
    }

    /// Reports a gap before the beginning of the history.
    ///
    /// - Parameter oldest: the time of its first message.
    func reportMissing(before oldest: ChatTimestamp?, _ context: RoomsContext) {
        let end = min(oldest ?? context.now.wall, gapEnding(context))
        reportGap(from: gapBegin(context), to: end, context) {
            "Older messages may be missing, said \($0): the backend's history does not reach back to the outage."
        }
    }

    /// Reports a gap at the end of the history, whose newest messages could not be fetched.
    ///
    /// - Parameter last: the time of the last fetched message.
    func reportCutShort(after last: ChatTimestamp?, _ context: RoomsContext) {
        // The clock of a sender is no measure of that.
        let from = catchUp.sendersTellTime ? nil : last
        reportGap(from: from ?? gapBegin(context), to: gapEnding(context), context) {
            "Some of what was said \($0) may be missing: the backend's history could not be had to its end."
        }
    }

    /// Reports a gap that can no longer be filled in order, behind so many new messages.
    func reportOutrun(_ context: RoomsContext) {
        reportGap(from: gapBegin(context), to: gapEnding(context), context) {
            "Older messages came too late to be shown, said \($0): too much has been said since the outage."
        }
    }

    /// Reports missed messages beyond the number shown.
    ///
    /// - Parameters:
    ///   - first: the time of the first omitted message.
    ///   - next: the time of the next shown one.
    func reportLeftOut(_ count: Int, first: ChatTimestamp?, next: ChatTimestamp?, _ context: RoomsContext) {
        let end = min(next ?? context.now.wall, context.now.wall)
        reportGap(from: first ?? gapBegin(context), to: end, context) {
            "\(count) older messages were said during the outage, \($0); these are the newest."
        }
    }

    /// Reports a gap of the store, which could not write for a while.
    package func reportUnpersisted(from: ChatTimestamp, to: ChatTimestamp, _ context: RoomsContext) {
        reportGap(from: from, to: to, context) {
            "What was said \($0) could not be stored: who was not here then will not see it."
        }
    }
}
