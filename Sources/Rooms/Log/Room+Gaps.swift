import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

// Holes in what the room was told: where they are, and how that is said.
//
// A hole begins where the link that was lost is last known to have been whole (`LinkProof`), and ends when messages come
// again. It is told
//
// | where                                   | when                                                           |
// |-----------------------------------------|------------------------------------------------------------------|
// | the backend keeps no history            | the link is back                                               |
// | it does, but cannot be asked for it     | the link is back                                               |
// | its history does not reach back so far  | the history came                                               |
// | more was said than is shown             | the history came                                               |
// | its history was not had to its end      | what of it could be had came                                   |
// | its history came too late               | it came, and too much had been said for it to be put in        |
// | the disk took nothing                   | it takes something again; who was there has seen it            |
//
// and not while a history may still bring what is missing. A link that never was up lost nothing that was said before somebody
// entered, unless an earlier process kept something of the room. A room that has a link only while somebody is there loses sight of what is said whenever
// everybody has left: nobody who is there then missed it, so it is told only where the order outlasts the process, and with
// it what clients of accounts have not had; to whoever opened the room, as they would be told after a restart.

extension Room {
    /// Tells the room that something is missing, at this place of its order.
    ///
    /// - Parameter sentence: what is told, with the time in words in it.
    func tellGap(
        from: ChatTimestamp, to: ChatTimestamp, _ context: RoomsContext, _ sentence: (_ span: String) -> String
    ) {
        let from = min(from, to)
        tell("*** " + sentence(Self.span(from, to)), at: to, from: from, context)
    }

    /// Tells the room that what follows is older than what stands in front of it, for those too who read it later.
    ///
    /// - Parameter first: when the first of it was said.
    func tellLate(first: ChatTimestamp?, _ context: RoomsContext) {
        tell(
            "*** What was said during the outage comes late: the messages that follow are older than those before them.",
            at: first.map { $0.after(-1) } ?? context.now.wall, from: nil, context)
    }

    /// A word of the bridge that has its place in the order.
    ///
    /// - Parameter from: where something is missing: since then, up to `at`.
    private func tell(_ text: String, at moment: ChatTimestamp, from: ChatTimestamp?, _ context: RoomsContext) {
        let at = lineTime(moment, context)
        let msgid = context.messageID(
            backend: settings.backend, room: settings.upstreamRoom, sender: ChatID("gap"),
            id: ChatID("\(recent.nextSequence) \(from?.milliseconds ?? 0) \(moment.milliseconds)"))
        let sequence = recent.appendNotice(msgid: msgid, at: at)
        recent.heard(at, wall: context.now.wall)
        let server = context.settings.serverName
        keep(
            StoredMessage(
                kind: .gap, sequence: Int64(sequence), msgid: msgid, at: at, backendAt: moment, gapFrom: from,
                nick: server, source: server, text: text), context)
        show(
            .said(
                RoomMessage(
                    msgid: msgid, at: at, isNotice: true, words: .upstream(text), gap: from.map { ($0, moment) })))
    }

    /// `between 12:03:10 and 12:03:55 UTC (45 s)`; with the dates when it is more than a day.
    package static func span(_ from: ChatTimestamp, _ to: ChatTimestamp) -> String {
        let (difference, over) = to.milliseconds.subtractingReportingOverflow(from.milliseconds)
        let seconds = over ? .max : max(difference, 0) / 1000
        func moment(_ at: ChatTimestamp) -> String { self.moment(at, hasDate: seconds >= 24 * 60 * 60) }
        return
            "between \(moment(from)) and \(moment(to)) UTC (\(PrintableText.spoken(seconds: Int(clamping: seconds))))"
    }

    /// `2026-11-21 12:03:10`, UTC.
    package static func moment(_ at: ChatTimestamp, hasDate: Bool = true) -> String {
        let text = CivilTime.text(milliseconds: at.milliseconds)
        return hasDate ? text : String(text.suffix(8))
    }

    /// Since when something is missing. Backends stamp what they are told before they send it round, some by whole
    /// seconds, so what was lost may bear a time just before the moment up to which everything has come.
    private func gapBegin(_ context: RoomsContext) -> ChatTimestamp {
        let since = continuity.missingSince?.earliest(by: context.now) ?? catchUp.mark?.at ?? context.now.wall
        let (early, over) = since.milliseconds.subtractingReportingOverflow(CatchUp.serverClockTolerance)
        return ChatTimestamp(milliseconds: over ? since.milliseconds : early)
    }

    private func gapEnding(_ context: RoomsContext) -> ChatTimestamp {
        continuity.gapEnd?.latest(by: context.now) ?? context.now.wall
    }

    // MARK: - Whoever is here before the link is

    /// Somebody entered: what is said from now on is for them, whenever the link comes up.
    func awaitLink(_ context: RoomsContext) {
        let since = link.isUp ? context.now : continuity.askedSince ?? context.now
        catchUp.somebodyEntered(wall: since.wall, isLinked: link.isUp)
        if !link.isUp { continuity.awaits(since: since) }
        // What is kept of the room may say that more is missing.
        guard !life.isLoading else { return }
        keepAwaiting(context)
        // Should the process die before the first history is there, the next one is to know that somebody was.
        if historySource != .none { keepAwaited(since: since, context) }
    }

    /// Whoever enters by this asked for it a while ago: what was said since is theirs.
    package func entering<Result>(askedAt: Now, _ enter: () -> Result) -> Result {
        continuity.entering(askedAt: askedAt, enter)
    }

    /// Something may be missing from now on, for this process and the next.
    func keepAwaiting(_ context: RoomsContext) {
        guard !link.isUp, continuity.missingSince == nil, let since = continuity.awaitedSince else { return }
        continuity.missing(since: since)
        keepAwaited(since: since, context)
    }

    /// The link is back, and nobody can tell what was said meanwhile.
    func tellUnheard(_ context: RoomsContext) {
        guard continuity.missingSince != nil else { return }
        continuity.noLongerAwaits()
        tellGap(from: gapBegin(context), to: context.now.wall, context) {
            "What was said \($0) is missing: the backend keeps no history."
        }
        continuity.settled()
    }

    /// The backend has a history, but there is no way to ask for this part of it.
    func tellUnfetched(_ context: RoomsContext) {
        guard case .after = catchUp.gap else { return }
        tellGap(from: gapBegin(context), to: context.now.wall, context) {
            "What was said \($0) is missing: the backend cannot be asked for it."
        }
        continuity.settled()
        catchUp.closeGap()
    }

    /// The history begins after the gap does.
    ///
    /// - Parameter oldest: what it begins with.
    func tellMissing(before oldest: ChatTimestamp?, _ context: RoomsContext) {
        let end = min(oldest ?? context.now.wall, gapEnding(context))
        tellGap(from: gapBegin(context), to: end, context) {
            "Older messages may be missing, said \($0): the backend's history does not reach back to the outage."
        }
    }

    /// The history could not be asked for up to the newest message.
    ///
    /// - Parameter last: when the last message was said that came.
    func tellCutShort(after last: ChatTimestamp?, _ context: RoomsContext) {
        // By the clock of a sender nobody knows when that was.
        let from = catchUp.sendersTellTime ? nil : last
        tellGap(from: from ?? gapBegin(context), to: gapEnding(context), context) {
            "Some of what was said \($0) may be missing: the backend's history could not be had to its end."
        }
    }

    /// So much was said since that the history can no longer be put in its place.
    func tellOutrun(_ context: RoomsContext) {
        tellGap(from: gapBegin(context), to: gapEnding(context), context) {
            "Older messages came too late to be shown, said \($0): too much has been said since the outage."
        }
    }

    /// More was missed than is shown.
    ///
    /// - Parameters:
    ///   - first: when the first message was said that is left out.
    ///   - next: when the one was said that is shown next.
    func tellLeftOut(_ count: Int, first: ChatTimestamp?, next: ChatTimestamp?, _ context: RoomsContext) {
        let end = min(next ?? context.now.wall, context.now.wall)
        tellGap(from: first ?? gapBegin(context), to: end, context) {
            "\(count) older messages were said during the outage, \($0); these are the newest."
        }
    }

    /// The disk took nothing for a while.
    package func tellUnkept(from: ChatTimestamp, to: ChatTimestamp, _ context: RoomsContext) {
        tellGap(from: from, to: to, context) {
            "What was said \($0) could not be stored: who was not here then will not see it."
        }
    }
}
