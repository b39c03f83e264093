import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

// Reconciliation of a history with relayed messages: unidentified ones, and those with an unknown outcome.
//
// | relayed message   | the history has it                | the first history lacks it | a second, 10 s later, lacks it       |
// |-------------------|-----------------------------------|----------------------------|--------------------------------------|
// | shown, delivered  | its id is learned                 | – (the link lives)         | –                                    |
// | shown, unknown    | its id is learned                 | requested again            | sent again, once; not shown again    |
// | unknown           | shown, in the place of the row    | requested again            | sent again, once                     |
// | unanswered for    | shown, in the place of the row    | requested again            | sent again                           |
// | long, link alive  |                                   |                            |                                      |
// | sent twice        | the same                          | requested again            | its author is notified               |
// | any, and the history does not reach back to it                                  | its author is notified               |

extension Room {
    /// Pause before an unavailable history is requested again.
    static let lookPause: Duration = .seconds(30)

    // MARK: - Reach of a history

    /// The last known message before the oldest unresolved one: a request begins there. Nil: none is unresolved.
    private var ownAnchor: CatchUp.Mark? {
        guard let place = lanes.flatMap(\.outbox.unknown).map({ $0.saidAfter ?? -1 }).min() else { return nil }
        return recent.newestNamed(upTo: place).map { CatchUp.Mark(id: $0.upstreamID, at: $0.saidNoEarlier) }
            ?? .beginning
    }

    /// The beginning of a request: the gap's mark, or the message before the oldest unresolved one, whichever comes
    /// first in the room.
    var askingMark: CatchUp.Mark? {
        var mark: CatchUp.Mark?
        if case .after(let known) = catchUp.gap { mark = known }
        guard let anchor = ownAnchor, let known = mark else { return ownAnchor ?? mark }
        if let ours = place(of: anchor), let theirs = place(of: known) { return ours < theirs ? anchor : known }
        return known.at.map { at in anchor.at.map { $0 < at } ?? true } ?? true ? anchor : known
    }

    func place(of mark: CatchUp.Mark) -> Int? { mark.id.flatMap { recent.entry(upstreamID: $0)?.sequence } }

    /// Records the reach of a history by the known rows, before it is processed.
    ///
    /// - Parameter isCut: the backend may have older rows. The time of the oldest row may then be incomplete.
    func noteReach(of rows: [ChatMessage], isAll: Bool, isCut: Bool) {
        let cutAt = isCut ? rows.first?.at : nil
        let whole = rows.lazy.filter { $0.at == nil || $0.at != cutAt }
        var known = whole.compactMap { row in row.id.flatMap { self.recent.entry(upstreamID: $0)?.sequence } }.min()
        // A request for the messages behind one, without a cut-off, need not contain that one.
        if !isCut, let asked = catchUp.askedBehind { known = min(known ?? .max, asked) }
        relayedRows.reaches(HistoryReach(isAll: isAll, isEmpty: rows.isEmpty, known: known))
    }

    private func isReached(_ entry: OutboxEntry) -> Bool {
        let older = recent.newestNamed(upTo: entry.saidAfter ?? .max)
        return relayedRows.reach.includes(entry, hasOlder: older != nil)
    }

    /// Whether the history covers all unresolved messages.
    func reachesOwn(_ rows: [ChatMessage], _ context: RoomsContext) -> Bool {
        let keys = Set(rows.lazy.map { UnidentifiedMessages.key($0.text) })
        return lanes.flatMap(\.outbox.unknown).allSatisfy {
            keys.contains(UnidentifiedMessages.key($0.message.text)) || isReached($0)
        }
    }

    // MARK: - Matching

    /// Matches relayed messages with the rows of a history, before any row is processed.
    func matchRelayedRows(_ rows: [ChatMessage], _ context: RoomsContext) {
        relayedRows.clear()
        guard !rows.isEmpty else { return }
        if traits.messageIDOrigin == .client {
            for lane in lanes { confirmShown(rows, lane, context) }
            return
        }
        let isNew = { (row: ChatMessage) in
            row.id.map { !self.seenIDs.contains(self.duplicateKey($0, nil)) } ?? false
        }
        // The first known sequence number behind each row.
        var firstBehind: [ChatID: Int] = [:]
        var first = Int.max
        for id in rows.reversed().compactMap(\.id) {
            firstBehind[id] = first
            if let known = recent.entry(upstreamID: id)?.sequence { first = min(first, known) }
        }
        for row in rows where bearsClientID(row) && isNew(row) { confirmNamed(row, context) }
        var unknown = rows.filter { !bearsClientID($0) && isNew($0) }
        for index in unknown.indices
        where settings.identity == .single && lane.dialectContext.isSelf(unknown[index].sender) {
            unknown[index].isSelf = true
        }
        let ours = unknown.filter { $0.isSelf || mayBeAccount($0.sender) || settings.identity == .puppet }
        pair(ours, firstBehind, lane, context)
        for own in own.values {
            pair(unknown.filter { self.own.speaking($0.sender) === own }, firstBehind, own, context)
            confirmRestored(rows, own, context)
        }
    }

    /// Before the backend had identified an account, its own rows were shown as another's: messages of an earlier
    /// process may be among these.
    private func confirmRestored(_ rows: [ChatMessage], _ own: OwnLink, _ context: RoomsContext) {
        let restored = own.outbox.unknown.filter { $0.isRestored && !$0.isShown }
        guard !restored.isEmpty else { return }
        let pending = relayedRows.messages
        let waiting = restored.filter { entry in entry.message.id.map { !pending.contains($0) } ?? false }
        let known = rows.filter { row in
            self.own.speaking(row.sender) === own && row.id.map { seenIDs.contains(duplicateKey($0, nil)) } ?? false
        }
        let pairs = RelayedRowMatching.pairs(
            waiting.map { RelayedRowMatching.Text(key: UnidentifiedMessages.key($0.message.text), at: $0.message.at) },
            known.map { RelayedRowMatching.Text(key: UnidentifiedMessages.key($0.text), at: $0.at) })
        for (entry, _) in pairs {
            guard let id = waiting[entry].message.id, let arrived = own.confirm(id: id) else {
                continue
            }
            own.forget([arrived], context)
        }
        arm(own, context)
    }

    /// Handles a row with the id of a relayed message that IRC has seen.
    private func confirmNamed(_ row: ChatMessage, _ context: RoomsContext) {
        guard let ours = row.ref.map({ ChatID($0) }) else { return }
        for lane in lanes {
            if let kept = lane.takeDelivered(id: ours, context) {
                return learnShown(kept, row.id, lane, context)
            }
            guard lane.outbox.unknown.contains(where: { $0.message.id == ours && $0.isShown }),
                let entry = lane.confirm(id: ours)
            else { continue }
            return confirmed(entry, upstreamID: row.id, at: row.at, lane, context)
        }
    }

    /// With client-made ids, a row carries the id of its message.
    private func confirmShown(_ rows: [ChatMessage], _ lane: SendLane, _ context: RoomsContext) {
        guard !lane.outbox.delivered.isEmpty || lane.outbox.hasUnknown else { return }
        let waiting = Set((lane.outbox.delivered.entries + lane.outbox.unknown).compactMap(\.message.id))
        for case let id? in rows.map(\.id) where waiting.contains(id) {
            if lane.takeDelivered(id: id, context) != nil { continue }
            if let entry = lane.confirm(id: id) {
                confirmed(entry, upstreamID: id, at: nil, lane, context)
            }
        }
    }

    /// - Parameter firstBehind: the first known sequence number behind each row, by the row's id.
    private func pair(
        _ rows: [ChatMessage], _ firstBehind: [ChatID: Int], _ lane: SendLane, _ context: RoomsContext
    ) {
        // In-flight messages too: the answer may come later than the row.
        let unconfirmed = lane.outbox.unconfirmed
        guard !unconfirmed.isEmpty, !rows.isEmpty else { return }
        let open = Set(unconfirmed.filter(\.isShown).map { shownID(of: $0, context) })
        // Where each IRC user has a name upstream, it must match too.
        let isNamed = lane === self.lane && settings.identity == .puppet
        let hasIDs = rows.allSatisfy { $0.sender.id != nil }
        func key(_ words: Int, _ sender: ChatPerson?) -> Int {
            guard isNamed else { return words }
            var hasher = Hasher()
            hasher.combine(words)
            hasher.combine(hasIDs ? sender?.id?.rawValue : sender?.name)
            return hasher.finalize()
        }
        let sent = lane.sent.all.filter { !open.contains($0.msgid) }
        let ours =
            sent.map {
                RelayedRowMatching.Text(
                    key: key($0.key, $0.entry?.message.sender), at: saidAt($0, context),
                    author: $0.entry?.origin.puppet ?? recent.entry(msgid: $0.msgid)?.puppet,
                    saidAfter: $0.entry?.saidAfter)
            }
            // The local clock may have been ahead when it was accepted.
            + unconfirmed.map { entry in
                RelayedRowMatching.Text(
                    key: key(UnidentifiedMessages.key(entry.message.text), entry.message.sender),
                    at: entry.message.at.map { min($0, context.now.wall) }, author: entry.origin.puppet,
                    saidAfter: entry.saidAfter)
            }
        let theirs = rows.map { row in
            RelayedRowMatching.Text(
                key: key(UnidentifiedMessages.key(row.text), row.sender), at: row.at,
                firstBehind: row.id.flatMap { firstBehind[$0] } ?? .max)
        }
        for (index, row) in RelayedRowMatching.pairs(ours, theirs, firstKnown: relayedRows.reach.known ?? .max) {
            let row = rows[row]
            guard let id = row.id else { continue }
            if index < sent.count {
                guard lane !== self.lane || isKnownOrPrefixedAsOurs(row) else { continue }
                _ = lane.sent.take(msgid: sent[index].msgid)
                learn(id, of: sent[index], lane, context)
                catchUp.saw(id: id, at: row.at, wall: context.now.wall)
                continue
            }
            let entry = unconfirmed[index - sent.count]
            guard let ours = entry.message.id else { continue }
            guard entry.isShown else {
                relayedRows.insert(id, ours, lane)
                continue
            }
            guard let arrived = lane.confirm(id: ours) else { continue }
            confirmed(arrived, upstreamID: id, at: row.at, lane, context)
            catchUp.saw(id: id, at: row.at, wall: context.now.wall)
        }
    }

    private func saidAt(_ sent: UnidentifiedMessages.Entry, _ context: RoomsContext) -> ChatTimestamp? {
        if let at = sent.entry?.message.at { return min(at, context.now.wall) }
        let age = (context.now.monotonic - sent.writtenAt).wholeNanoseconds / 1_000_000
        return ChatTimestamp(milliseconds: context.now.wall.milliseconds &- age)
    }

    /// Shows a relayed message in the place of its row. False: the row is none.
    func takeRelayedRow(_ row: ChatMessage, _ context: RoomsContext) -> Bool {
        guard let id = row.id, let ours = relayedRows.take(id) else { return false }
        guard let entry = ours.lane.confirm(id: ours.id) else { return false }
        _ = seenIDs.insert(duplicateKey(id, nil))
        if ours.lane === lane { learnAccount(from: row, context) }
        confirmed(entry, upstreamID: id, at: row.at, ours.lane, context)
        return true
    }

    // MARK: - Missing messages

    /// Handles messages that a history lacks: looked for once more, and then sent again.
    ///
    /// - Parameter rows: of the backend, oldest first.
    func settleMissing(_ rows: [ChatMessage], _ context: RoomsContext) {
        // Matched rows neither shown nor skipped: they came live meanwhile.
        for row in rows { _ = takeRelayedRow(row, context) }
        relayedRows.clear()
        let asked = catchUp.askedAt ?? context.now.monotonic
        // Evaluated first: the loop must not change it.
        let within = Set(
            lanes.flatMap(\.outbox.unknown).filter { isReached($0) }.compactMap(\.message.id))
        func reaches(_ entry: OutboxEntry) -> Bool { entry.message.id.map(within.contains) ?? false }
        // Before the backend has identified an account, its rows are unknown.
        for lane in lanes where lane.outbox.hasUnknown && lane.isIdentified {
            tell(lane.settleMissing(asked: asked, reaches: reaches, context), lane, context)
            if lane !== self.lane { pump(lane, context) }
        }
        armSettling(context)
    }

    /// Arms the second request for missing messages, or the first where only an account's link was lost.
    func armSettling(after pause: Duration = CatchUp.patience, _ context: RoomsContext) {
        var due: MonotonicInstant?
        for lane in lanes where lane.outbox.hasUnknown {
            let look = lane.outbox.nextLook(patience: pause) ?? context.now.monotonic + pause
            due = due.map { min($0, look) } ?? look
        }
        guard historySource != .none, link.isUp, let due else { return context.cancel(.settling(id)) }
        context.set(.settling(id), at: max(due, context.now.monotonic + .milliseconds(1)))
    }

    package func settlingTimerFired(_ context: RoomsContext) {
        guard link.isUp, lanes.contains(where: \.outbox.hasUnknown) else { return }
        // What comes unasked comes with a new link alone. A look settles all of an identified lane, so there is no second.
        if traits.history == .none, lanes.contains(where: { $0.outbox.hasUnknown && $0.isIdentified }) {
            _ = reconnect("a message is missing in the history, which comes with a new link alone", context)
            return
        }
        if !askAgain(context) { context.set(.settling(id), at: context.now.monotonic + Self.lookPause) }
    }

    /// Requests a history for messages that went unanswered for long over a live link.
    func lookForDoubtful(_ lane: SendLane, _ context: RoomsContext) {
        guard traits.history != .none, !mayRepeatMessages else { return }
        if lane.markDoubtfulUnknown(context), !askAgain(context) { armSettling(context) }
    }

    /// Requests a history after a complaint shortly after a pong confirmed messages. They are not sent again; the
    /// author of a missing one is notified.
    func lookForSuspects(_ lane: SendLane, _ complaint: String, _ context: RoomsContext) {
        if lane.suspectDelivered(complaint, context), !askAgain(context) { armSettling(context) }
    }
}
