import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// The room's order, and what of it outlasts the process.
//
// Every line that everybody in the room is shown as something said, or as something missing, has a place in the order.
// What is kept of a room is handed over in the order in which it happened, so whatever is on disk is a beginning of what
// happened: after a crash the end of it is missing, and is what the next history brings again, under the same ids.
//
// After a restart everything kept is seen once more, oldest first, as if it came now and without showing it: that gives
// the ring of known ids, the newest mark and the horizon which the process before had. Then a gap is open after it.
//
// `.live` says until when nothing is missing. It moves on while the room listens and nothing is missing, and stands still
// from the moment at which something may be; should messages be shown before the hole in front of them is filled, it goes
// back to the mark of the hole, by the backend's clock, and so tells after a restart which messages came behind the hole.

extension Room {
    /// How often it is kept until when nothing is missing, while nothing is said.
    static let liveInterval: Duration = .seconds(10)
    /// With messages it is kept no more often than this.
    static let liveIntervalWithMessages: Duration = .seconds(1)

    // MARK: - Entering

    /// Enters a message into the room's order.
    ///
    /// - Parameters:
    ///   - sender: as whom the backend names an author upstream.
    ///   - text: for quoting.
    ///   - stored: what is kept of it, by its place in the order.
    package func enter(
        msgid: String, upstreamID: ChatID?, puppet: ChatID?, sender: ChatPerson = ChatPerson(), nick: String,
        text: String, at: ChatTimestamp, _ context: RoomsContext, stored: (_ sequence: Int64) -> StoredMessage
    ) {
        // Nothing is in front of what comes first; kept before it, since of what lies behind that time nobody knows later.
        if context.isDurable, recent.newest == nil, historySource != .none, isLive, continuity.missingSince == nil,
            !isGapOpen
        {
            keepLive(until: KeptMoment(at: at), context)
        }
        let sequence = recent.append(
            msgid: msgid, upstreamID: upstreamID, puppet: puppet, sender: sender, nick: nick, text: text, at: at)
        recent.heard(at, wall: context.now.wall)
        guard context.isDurable else { return archive.append(stored(Int64(sequence))) }
        context.keep(.message(storedKey, stored(Int64(sequence))))
        let isDue = continuity.persistedAt.map { context.now.monotonic - $0 >= Self.liveIntervalWithMessages } ?? true
        if isDue { keepLive(context) }
    }

    /// What a line shows as its time, by when it was said; nil: nobody knows, and it is shown now. Behind a hole it is none that
    /// is kept as the end of what is in front of it.
    func lineTime(_ saidAt: ChatTimestamp?, _ context: RoomsContext) -> ChatTimestamp {
        let isBehindHole = continuity.missingSince != nil || isGapOpen
        return recent.lineTime(
            saidAt ?? context.now.wall, now: context.now.wall, but: isBehindHole ? continuity.persistedUntil : nil)
    }

    /// A message of somebody upstream, as it is kept.
    ///
    /// - Parameter text: as it is shown, where that is not as the backend has it.
    package func stored(
        _ message: ChatMessage, sequence: Int64, msgid: String, at: ChatTimestamp, nick: String, source: String,
        account: String?, text: String? = nil
    ) -> StoredMessage {
        StoredMessage(
            sequence: sequence, msgid: msgid, upstreamID: message.id, sender: message.sender, at: at,
            backendAt: message.at, nick: nick, source: source, account: account, text: text ?? message.text,
            sentAs: text == nil || text == message.text ? nil : message.text, attachments: message.attachments,
            isEncrypted: message.isEncrypted,
            replyTo: message.replyTo.flatMap { recent.entry(upstreamID: $0)?.msgid })
    }

    // MARK: - Until when nothing is missing

    /// Keeps until when nothing is missing, if that is later than what is kept. Not while messages have come that are not
    /// shown yet, and so are not kept either.
    func keepLive(_ context: RoomsContext) {
        guard context.isDurable, isLive, continuity.missingSince == nil, !isGapOpen, undecided.isEmpty else { return }
        keepLive(until: heard(until: continuity.seenUntil(context.now), context), context)
    }

    /// Where a history fills what is missing, what is before the newest line is not missing, also after clocks were put back.
    /// The time of a line says that what came behind it may be missing, so it is none but the newest one's: a line from a
    /// clock that was ahead bears the time at which it came.
    private func heard(until seen: Now, _ context: RoomsContext) -> KeptMoment {
        let counted = KeptMoment(seen, by: context.now)
        guard historySource != .none, let newest = recent.newest?.at else { return counted }
        guard newest < counted.at else { return KeptMoment(at: newest) }
        var until = counted.at
        while until.milliseconds < .max, recent.hasLine(at: until) { until.milliseconds += 1 }
        return KeptMoment(at: until)
    }

    private func keepLive(until: KeptMoment, _ context: RoomsContext) {
        guard continuity.persists(until: until.at, at: context.now.monotonic) else { return }
        context.keep(.live(storedKey, until: until.at, counted: until.counted?.nanoseconds))
    }

    /// Somebody is here, and there is no link: a room of which nothing is kept begins with this.
    func keepAwaited(since: Now, _ context: RoomsContext) {
        guard context.isDurable, continuity.persistedUntil == nil, recent.newest == nil else { return }
        keepLive(until: KeptMoment(since, by: context.now), context)
    }

    package func liveTimerFired(_ context: RoomsContext) {
        guard context.isDurable, isLive else { return }
        keepLive(context)
        context.timers.set(.live(id), at: context.now.monotonic + Self.liveInterval)
    }

    /// A history is needed that did not come yet.
    private var isGapOpen: Bool { historySource != .none && catchUp.gap != nil }

    /// Messages are shown from here on, whether or not something is missing in front of them.
    func becameLive(_ context: RoomsContext) {
        guard context.isDurable else { return }
        context.timers.set(.live(id), at: context.now.monotonic + Self.liveInterval)
        guard isGapOpen, case .after(let mark) = catchUp.gap else { return keepLive(context) }
        // The very time of the line in front of the hole: clocks may have been set since.
        if let lastBeforeGap = continuity.lastBeforeGap {
            return keepLive(until: KeptMoment(at: lastBeforeGap), context)
        }
        let since = KeptMoment(continuity.missingSince ?? context.now, by: context.now)
        if let at = mark.at, at < since.at { return keepLive(until: KeptMoment(at: at), context) }
        keepLive(until: since, context)
    }

    /// The link is gone, or is given up: what is said from now on is not heard.
    func loseSight(_ context: RoomsContext) {
        context.timers.cancel(.live(id))
        context.identities.lostSight(of: settings.backend, now: context.now.monotonic)
        continuity.lostSight()
        guard continuity.missingSince == nil else { return }
        let until = continuity.seenUntil(context.now)
        if !isGapOpen { continuity.gapOpened(behind: historySource == .none ? nil : recent.newest?.at) }
        if context.isDurable, !isGapOpen { keepLive(until: heard(until: until, context), context) }
        continuity.missing(since: until)
    }

    // MARK: - After a restart

    /// Messages, their order, what is recognised again, and since when something may be missing.
    func restoreOrder(_ stored: StoredRoom, _ context: RoomsContext) {
        // The oldest ones bear places of their own.
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
        // Not counted, a clock that was set back since says nothing of when that was, but what was shown by now came before it.
        continuity.missing(
            since: moment(until <= now || counted != nil ? until : messages.last { $0.at <= now }?.at ?? now))
        continuity.restored(until: stored.liveUntil)
        // What ends in front of a hole ends with the very line whose time is kept.
        let last = messages.lastIndex { $0.kind == .message && $0.at == until }
        var mark: CatchUp.Mark?
        var idsAtMark = 0
        // Times of what came before the mark, and of what came after it so far.
        var (stretch, unmarked): ([ChatTimestamp], [ChatTimestamp]) = ([], [])
        for (index, message) in messages.enumerated() {
            restore(message, context)
            if let at = heardTime(of: message), at.milliseconds > .min,
                message.author == nil || !catchUp.sendersTellTime
            {
                unmarked.append(ChatTimestamp(milliseconds: at.milliseconds - 1))
            }
            // By the time that was shown: it was never later than our clock, by which `until` was noted too.
            if message.kind == .message, last.map({ index <= $0 }) ?? (message.at <= until) {
                continuity.gapOpened(behind: message.at)
                // It may be shown later than it was said, and others may have spoken in between.
                if message.at == until, let said = message.backendAt {
                    continuity.missing(since: moment(min(until, said)))
                }
                mark = catchUp.newest
                idsAtMark = duplicates.total
                stretch += unmarked
                unmarked = []
            }
        }
        // What the first history began with, or the store forgot what was before it. Just before it: in the same moment more
        // may have been said, and of what was shown all is known.
        catchUp.remembered(before: stretch, wall: now)
        if catchUp.newest == nil {
            // Nothing was ever said, or nothing that can be found again in a history.
            let (early, over) = until.milliseconds.subtractingReportingOverflow(clockTolerance)
            let begin = ChatTimestamp(milliseconds: over ? .min : early)
            mark = CatchUp.Mark(id: nil, at: begin)
            catchUp.remembered(oldest: [begin], wall: now)
        }
        catchUp.resume(
            after: mark ?? CatchUp.Mark(id: nil, at: min(until, now)), later: duplicates.total - idsAtMark,
            total: duplicates.total, isEmpty: catchUp.newest == nil)
    }

    private func restore(_ message: StoredMessage, _ context: RoomsContext) {
        recent.goOn(from: Int(clamping: message.sequence))
        if message.kind == .event { return _ = recent.takePlace() }
        recent.heard(message.at, wall: context.now.wall)
        if message.kind == .gap || message.kind == .change {
            recent.appendNotice(msgid: message.msgid, at: message.at)
            if let words = message.sentAs, let changed = message.clientTags.first?.value {
                _ = recent.edit(msgid: changed, text: words, byAuthor: false)
            }
            return
        }
        let wireText = message.sentAs ?? message.text
        let quoted = message.author == nil ? ownWordsQuoted(asFromWire(message, text: wireText)) : nil
        let said = message.author == nil ? wireText : MessageText.action(message.text) ?? message.text
        recent.append(
            msgid: message.msgid, upstreamID: message.upstreamID, puppet: message.author, sender: message.sender,
            nick: quoted?.nick ?? message.nick, text: quoted?.text ?? said, at: message.at)
        if isOfEarlier(message, context) { recent.disown(msgid: message.msgid, as: context.nobody) }
        if message.isTakenBack {
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
            catchUp.ringTurned(to: duplicates.total)
            _ = duplicates.insert(duplicateKey(id, message.sender.id))
            // Some backends put an id of their own in the place of the one that we gave.
            if let author = message.author { _ = duplicates.insert(duplicateKey(id, author)) }
        } else if message.author == nil {
            textDuplicates.restore(asFromWire(message, text: wireText))
        } else if traits.messageIDOrigin == .server {
            restoreSent(message, text: wireText, context)
        }
    }

    /// By the backend's clock; by that of a sender, but not later than was believed when it came.
    private func heardTime(of message: StoredMessage) -> ChatTimestamp? {
        catchUp.sendersTellTime ? message.backendAt.map { min($0, message.at) } : message.backendAt
    }

    private func asFromWire(_ message: StoredMessage, text: String) -> ChatMessage {
        ChatMessage(
            id: message.upstreamID, sender: message.sender, text: text, at: message.backendAt,
            attachments: message.attachments, isSelf: lane.dialectContext.isSelf(message.sender))
    }

    /// A message of ours whose id upstream nobody has told.
    private func restoreSent(_ message: StoredMessage, text: String, _ context: RoomsContext) {
        if let account = message.account, context.ownLogin(of: account, in: settings.name) != nil {
            return own.sentBefore(OwnLinks.SentBefore(msgid: message.msgid, sender: message.sender, text: text))
        }
        let (passed, over) = context.now.wall.milliseconds.subtractingReportingOverflow(message.at.milliseconds)
        let age = Duration.milliseconds(over ? 0 : max(passed, 0))
        lane.sent.append(
            SentMessages.Entry(
                msgid: message.msgid, text: text,
                writtenAt: context.now.monotonic + (.zero - min(age, .seconds(24 * 60 * 60)))))
    }

    /// Read markers and receipts.
    func restoreReading(_ stored: StoredRoom, _ context: RoomsContext) {
        markers.restore(stored.markers.filter { life.replacement(of: $0.reader) == nil })
        for receipt in stored.receipts where life.replacement(of: receipt.author) == nil {
            toldReceipts.enter(
                author: receipt.author, reader: IdentityMap.remoteKey(receipt.reader, backend: settings.backend),
                ToldReceipts.Told(
                    delivered: Int(clamping: receipt.deliveredSequence), read: Int(clamping: receipt.readSequence)))
        }
    }

    /// What was kept of the room cannot be read: it goes on behind all places that were ever given, since no room ever had
    /// as many messages as there were milliseconds.
    package func goOnWithoutThePast(_ context: RoomsContext) {
        recent.goOn(from: Int(clamping: context.now.wall.milliseconds))
    }

    /// A message of the store is of somebody whose name another has now.
    func isOfEarlier(_ message: StoredMessage, _ context: RoomsContext) -> Bool {
        guard message.author != nil, let account = message.account else { return false }
        return context.identities.whenMade(account: account).map { message.at < $0 } ?? false
    }
}
