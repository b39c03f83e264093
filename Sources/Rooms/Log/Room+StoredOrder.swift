import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// The room's order and its persistence.
//
// Every line shown to all members as a message or a gap has a sequence number. Changes are persisted in order, so the
// disk always has a prefix of the room: after a crash its end is missing, and the next history brings it again, under
// the same ids.
//
// After a restart all stored messages are replayed, oldest first, without being shown: that restores the ring of known
// ids, the newest mark and the horizon. Then a gap is open after them.
//
// `.live` is a watermark: the order is complete up to it. It advances while the link is live and without a gap, and
// stops where a gap may begin; if messages are shown before the gap in front of them is filled, it returns to the mark
// of the gap, by the backend's clock, and so separates after a restart the messages behind the gap.

extension Room {
    /// Interval at which the watermark is persisted without messages.
    static let liveInterval: Duration = .seconds(10)
    /// With messages it is persisted no more often than this.
    static let liveIntervalWithMessages: Duration = .seconds(1)

    // MARK: - Logging

    /// Logs a message in the room's order.
    ///
    /// - Parameters:
    ///   - row: with the next sequence number.
    ///   - puppet: the upstream id of its author, an IRC user.
    ///   - text: for quoting.
    package func enter(
        _ row: StoredMessage, by puppet: ChatID?, nick: String, text: String, _ context: RoomsContext
    ) {
        // No gap precedes the first message; persisted before it, since that time is not known later.
        if context.isDurable, recent.newest == nil, historySource != .none, isLive, continuity.missingSince == nil,
            !isGapOpen
        {
            persistLive(until: StoredMoment(at: row.at), context)
        }
        recent.append(row, by: puppet, nick: nick, text: text)
        recent.heard(row.at, wall: context.now.wall)
        if settings.isMirrored { context.emit(.logged(id)) }
        guard context.isDurable else { return archive.append(row) }
        context.keep(.message(storedKey, row))
        let isDue = continuity.persistedAt.map { context.now.monotonic - $0 >= Self.liveIntervalWithMessages } ?? true
        if isDue { persistLive(context) }
    }

    /// Makes ready for the next line, which a gap that was left open comes before.
    ///
    /// - Returns: the line's time.
    func beginLine(_ saidAt: ChatTimestamp?, _ context: RoomsContext) -> ChatTimestamp {
        reportHeldGap(context)
        return freeTime(saidAt, context)
    }

    /// The time of a line for a message of this time; nil: unknown, and shown as now. Behind a gap it differs from the
    /// persisted end in front of the gap.
    func freeTime(_ saidAt: ChatTimestamp?, _ context: RoomsContext) -> ChatTimestamp {
        let isBehindHole = continuity.missingSince != nil || isGapOpen
        return recent.lineTime(
            saidAt ?? context.now.wall, now: context.now.wall, but: isBehindHole ? continuity.persistedUntil : nil)
    }

    /// A message of an upstream person in stored form.
    ///
    /// - Parameters:
    ///   - sequence: nil: the next one.
    ///   - text: as it is shown.
    package func stored(
        _ message: ChatMessage, sequence: Int64? = nil, msgid: String, at: ChatTimestamp, nick: String, source: String,
        account: String?, text: String
    ) -> StoredMessage {
        StoredMessage(
            sequence: sequence ?? Int64(recent.nextSequence), msgid: msgid, upstreamID: message.id,
            sender: message.sender, at: at,
            backendAt: message.at, nick: nick, source: source, account: account, text: text,
            sentAs: text == message.text ? nil : message.text, attachments: message.attachments,
            isEncrypted: message.isEncrypted,
            replyTo: message.replyTo.flatMap { recent.entry(upstreamID: $0)?.msgid }, clientTags: message.annotations)
    }

    // MARK: - Watermark

    /// Persists the watermark, if it has advanced. Not while received messages are buffered, and so not persisted yet.
    func persistLive(_ context: RoomsContext) {
        guard context.isDurable, isLive, continuity.missingSince == nil, !isGapOpen, ambiguous.isEmpty else { return }
        persistLive(until: heard(until: continuity.seenUntil(context.now), context), context)
    }

    /// The end of the order: where a history fills gaps, it includes the newest line, also after clocks were set back.
    /// A line's time implies possible gaps behind it, so only the newest counts: a line from a clock that was ahead
    /// bears the time of its arrival.
    private func heard(until seen: Now, _ context: RoomsContext) -> StoredMoment {
        let counted = StoredMoment(seen, by: context.now)
        guard historySource != .none, let newest = recent.newest?.at else { return counted }
        guard newest < counted.at else { return StoredMoment(at: newest) }
        var until = counted.at
        while until.milliseconds < .max, recent.hasLine(at: until) { until.milliseconds += 1 }
        return StoredMoment(at: until)
    }

    private func persistLive(until: StoredMoment, _ context: RoomsContext) {
        guard continuity.persists(until: until.at, at: context.now.monotonic) else { return }
        context.keep(.live(storedKey, until: until.at, counted: until.counted?.nanoseconds))
    }

    /// Persists the beginning of a room without stored messages: a user is present, and there is no link.
    func persistAwaited(since: Now, _ context: RoomsContext) {
        guard context.isDurable, continuity.persistedUntil == nil, recent.newest == nil else { return }
        persistLive(until: StoredMoment(since, by: context.now), context)
    }

    package func liveTimerFired(_ context: RoomsContext) {
        guard context.isDurable, isLive else { return }
        persistLive(context)
        context.set(.complete(id), at: context.now.monotonic + Self.liveInterval)
    }

    /// A history is needed that has not come yet.
    private var isGapOpen: Bool { historySource != .none && catchUp.gap != nil }

    /// Messages are shown from here on, with or without a gap in front of them.
    func becameLive(_ context: RoomsContext) {
        guard context.isDurable else { return }
        context.set(.complete(id), at: context.now.monotonic + Self.liveInterval)
        guard isGapOpen, case .after(let mark) = catchUp.gap else { return persistLive(context) }
        // The exact time of the line in front of the gap: clocks may have been set since.
        if let lastBeforeGap = continuity.lastBeforeGap {
            return persistLive(until: StoredMoment(at: lastBeforeGap), context)
        }
        let since = StoredMoment(continuity.missingSince ?? context.now, by: context.now)
        if let at = mark.at, at < since.at { return persistLive(until: StoredMoment(at: at), context) }
        persistLive(until: since, context)
    }

    /// The link is lost, or is given up: a gap begins.
    func loseSight(_ context: RoomsContext) {
        context.cancel(.complete(id))
        context.identities.invalidatePresence(on: settings.backend, now: context.now.monotonic)
        continuity.invalidatePresence()
        guard continuity.missingSince == nil else { return }
        let until = continuity.seenUntil(context.now)
        if !isGapOpen { continuity.gapOpened(behind: historySource == .none ? nil : recent.newest?.at) }
        if context.isDurable, !isGapOpen { persistLive(until: heard(until: until, context), context) }
        continuity.missing(since: until)
    }

    // MARK: - After a restart

    /// Restores messages, their order, deduplication, and a possible gap.
    func restoreOrder(_ stored: StoredRoom, _ context: RoomsContext) {
        // The oldest ones have sequence numbers of their own.
        defer { recent.goOn(from: Int(clamping: stored.nextSequence)) }
        let now = context.now.wall
        let messages = stored.messages.sorted { $0.sequence < $1.sequence }
        let until = stored.liveUntil ?? messages.last?.at
        guard let until else { return }
        continuity.noLongerAwaits()
        let counted = stored.liveCounted.map { MonotonicInstant(nanoseconds: $0) }
        func moment(_ at: ChatTimestamp) -> Now {
            counted.map { Now(monotonic: $0, wall: min(at, now)) } ?? Now(wall: at, by: context.now)
        }
        // Uncapped, a clock that was set back since gives no time, but messages shown by now came before it.
        continuity.missing(
            since: moment(until <= now || counted != nil ? until : messages.last { $0.at <= now }?.at ?? now))
        continuity.restored(until: stored.liveUntil)
        // A stretch in front of a gap ends with the line whose time is stored.
        let last = messages.lastIndex { $0.kind == .message && $0.at == until }
        var mark: CatchUp.Mark?
        var idsAtMark = 0
        // Times of messages before the mark, and after it so far.
        var (stretch, unmarked): ([ChatTimestamp], [ChatTimestamp]) = ([], [])
        for (index, message) in messages.enumerated() {
            restore(message, context)
            if let at = heardTime(of: message), at.milliseconds > .min,
                message.author == nil || !catchUp.sendersTellTime
            {
                unmarked.append(ChatTimestamp(milliseconds: at.milliseconds - 1))
            }
            // By the shown time: it was never later than the local clock, which also set `until`.
            if message.kind == .message, last.map({ index <= $0 }) ?? (message.at <= until) {
                continuity.gapOpened(behind: message.at)
                // It may be shown later than its time, and others may have come in between.
                if message.at == until, let said = message.backendAt {
                    continuity.missing(since: moment(min(until, said)))
                }
                mark = catchUp.newest
                idsAtMark = seenIDs.total
                stretch += unmarked
                unmarked = []
            }
        }
        // The first history began here, or the store expired earlier messages. Just before it: the same moment may have
        // had further messages, and of the shown ones all are known.
        catchUp.remembered(before: stretch, wall: now)
        if catchUp.newest == nil {
            // There was no message, or none that can be found again in a history.
            let (early, over) = until.milliseconds.subtractingReportingOverflow(clockTolerance)
            let begin = ChatTimestamp(milliseconds: over ? .min : early)
            mark = CatchUp.Mark(id: nil, at: begin)
            catchUp.remembered(oldest: [begin], wall: now)
        }
        catchUp.resume(
            after: mark ?? CatchUp.Mark(id: nil, at: min(until, now)), later: seenIDs.total - idsAtMark,
            total: seenIDs.total, isEmpty: catchUp.newest == nil)
    }

    private func restore(_ message: StoredMessage, _ context: RoomsContext) {
        recent.goOn(from: Int(clamping: message.sequence))
        if message.kind == .event { return _ = recent.takePlace() }
        recent.heard(message.at, wall: context.now.wall)
        if message.kind == .gap || message.kind == .change {
            recent.append(notice: message)
            if let words = message.sentAs, let changed = message.clientTags.first?.value {
                _ = recent.edit(msgid: changed, text: words, byAuthor: false)
            }
            return
        }
        let wireText = message.sentAs ?? message.text
        let quoted = message.author == nil ? ownWordsQuoted(asFromWire(message, text: wireText)) : nil
        let said = message.author == nil ? wireText : MessageText.action(message.text) ?? message.text
        recent.append(message, by: message.author, nick: quoted?.nick ?? message.nick, text: quoted?.text ?? said)
        if isOfEarlier(message, context) { recent.disown(msgid: message.msgid, as: context.nobody) }
        if message.isErased {
            recent.erase(msgid: message.msgid)
        } else if message.isTakenBack {
            recent.takeBack(msgid: message.msgid)
        } else if message.author != nil {
            recent.went(up: wireText, msgid: message.msgid)
        }
        if message.author == nil || message.backendAt != nil {
            let isOurTime = message.author != nil && catchUp.sendersTellTime && catchUp.newest?.at != nil
            catchUp.saw(
                id: message.upstreamID, at: isOurTime ? nil : heardTime(of: message), wall: context.now.wall)
        }
        if let id = message.upstreamID {
            catchUp.ringTurned(to: seenIDs.total)
            if message.isErased { return seenIDs.insertErased(id) }
            _ = seenIDs.insert(duplicateKey(id, message.sender.id))
            // Some backends replace the given id by their own.
            if let author = message.author { _ = seenIDs.insert(duplicateKey(id, author)) }
        } else if message.isErased {
            return
        } else if message.author == nil {
            seenTexts.restore(asFromWire(message, text: wireText))
        } else if traits.messageIDOrigin == .server {
            restoreSent(message, text: wireText, context)
        }
    }

    /// The time by the backend's clock; by a sender's, capped at the credible lead.
    private func heardTime(of message: StoredMessage) -> ChatTimestamp? {
        catchUp.sendersTellTime ? message.backendAt.map { min($0, message.at) } : message.backendAt
    }

    private func asFromWire(_ message: StoredMessage, text: String) -> ChatMessage {
        ChatMessage(
            id: message.upstreamID, sender: message.sender, text: text, at: message.backendAt,
            attachments: message.attachments, isSelf: lane.dialectContext.isSelf(message.sender))
    }

    /// A relayed message with an unknown upstream id.
    private func restoreSent(_ message: StoredMessage, text: String, _ context: RoomsContext) {
        if let account = message.account, context.ownLogin(of: account, in: settings.name) != nil {
            return own.sentBefore(OwnLinks.SentBefore(msgid: message.msgid, sender: message.sender, text: text))
        }
        let (passed, over) = context.now.wall.milliseconds.subtractingReportingOverflow(message.at.milliseconds)
        let age = Duration.milliseconds(over ? 0 : max(passed, 0))
        lane.sent.append(
            UnidentifiedMessages.Entry(
                msgid: message.msgid, text: text,
                writtenAt: context.now.monotonic + (.zero - min(age, .seconds(24 * 60 * 60)))))
    }

    /// Read markers and receipts.
    func restoreReading(_ stored: StoredRoom, _ context: RoomsContext) {
        markers.restore(stored.markers.filter { life.replacement(of: $0.reader) == nil })
        for receipt in stored.receipts where life.replacement(of: receipt.author) == nil {
            reportedReceipts.enter(
                author: receipt.author, reader: IdentityMap.remoteKey(receipt.reader, backend: settings.backend),
                ReportedReceipts.Told(
                    delivered: Int(clamping: receipt.deliveredSequence), read: Int(clamping: receipt.readSequence)))
        }
    }

    /// Continues without the stored room, which cannot be read: behind all sequence numbers ever used, since no room
    /// ever had as many messages as there were milliseconds.
    package func continueWithoutStoredRoom(_ context: RoomsContext) {
        recent.goOn(from: Int(clamping: context.now.wall.milliseconds))
    }

    /// Whether a stored message is of an earlier owner of its author's name.
    func isOfEarlier(_ message: StoredMessage, _ context: RoomsContext) -> Bool {
        guard message.author != nil, let account = message.account else { return false }
        return context.identities.creationTime(ofAccount: account).map { message.at < $0 } ?? false
    }
}
