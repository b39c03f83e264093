import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

// What a history tells of our own messages: those whose ids nobody told us, and those of which nobody knows whether they
// arrived.
//
// | a message of ours | a history has it                  | the first history lacks it | so does one asked for 10 s later     |
// |-------------------|-----------------------------------|----------------------------|--------------------------------------|
// | shown, delivered  | its id is learned                 | – (the link lives)         | –                                    |
// | shown, unsettled  | its id is learned                 | asked again                | sent again, once; not shown again    |
// | unsettled         | shown, in the place of the row    | asked again                | sent again, once                     |
// | unanswered for    | shown, in the place of the row    | asked again                | sent again                           |
// | long, link alive  |                                   |                            |                                      |
// | sent twice        | the same                          | asked again                | its author is told                   |
// | any, and the history does not reach back to it                                  | its author is told                   |

extension Room {
    /// After this a history is asked for again that could not be had.
    static let lookPause: Duration = .seconds(30)

    // MARK: - How far a history reaches

    /// A message of somebody else's from before the oldest of ours that a history must tell of: there a question begins. Nil:
    /// nothing is to be told.
    private var ownAnchor: CatchUp.Mark? {
        guard let place = lanes.flatMap(\.outbox.unsettled).map({ $0.saidAfter ?? -1 }).min() else { return nil }
        return recent.newestNamed(upTo: place).map { CatchUp.Mark(id: $0.upstreamID, at: $0.saidNoEarlier) }
            ?? .beginning
    }

    /// What is asked for begins behind this: the gap's mark, or what was said before the oldest message of ours that a history
    /// must tell of, whichever stands first in the room.
    var askingMark: CatchUp.Mark? {
        var mark: CatchUp.Mark?
        if case .after(let known) = catchUp.gap { mark = known }
        guard let anchor = ownAnchor, let known = mark else { return ownAnchor ?? mark }
        if let ours = place(of: anchor), let theirs = place(of: known) { return ours < theirs ? anchor : known }
        return known.at.map { at in anchor.at.map { $0 < at } ?? true } ?? true ? anchor : known
    }

    func place(of mark: CatchUp.Mark) -> Int? { mark.id.flatMap { recent.entry(upstreamID: $0)?.sequence } }

    /// Before the rows are taken in: what was known of them then.
    ///
    /// - Parameter isCut: there may be older ones that it does not have. Of the time of its oldest row it may have any then.
    func noteReach(of rows: [ChatMessage], isAll: Bool, isCut: Bool) {
        let cutAt = isCut ? rows.first?.at : nil
        let whole = rows.lazy.filter { $0.at == nil || $0.at != cutAt }
        var known = whole.compactMap { row in row.id.flatMap { self.recent.entry(upstreamID: $0)?.sequence } }.min()
        // What follows a message, and nothing is cut off: that message need not be there.
        if !isCut, let asked = catchUp.askedBehind { known = min(known ?? .max, asked) }
        ownRows.reaches(OwnReach(isAll: isAll, isEmpty: rows.isEmpty, known: known))
    }

    private func isReached(_ entry: OutboxEntry) -> Bool {
        let older = recent.newestNamed(upTo: entry.saidAfter ?? .max)
        return ownRows.reach.includes(entry, hasOlder: older != nil)
    }

    /// Whether the history has, or would have, whatever of ours it is to tell of.
    func reachesOwn(_ rows: [ChatMessage], _ context: RoomsContext) -> Bool {
        let keys = Set(rows.lazy.map { SentMessages.key($0.text) })
        return lanes.flatMap(\.outbox.unsettled).allSatisfy {
            keys.contains(SentMessages.key($0.message.text)) || isReached($0)
        }
    }

    // MARK: - Whose rows

    /// Finds our messages among the rows of a history, before any row is taken in.
    func recogniseOwnRows(_ rows: [ChatMessage], _ context: RoomsContext) {
        ownRows.clear()
        guard !rows.isEmpty else { return }
        if traits.messageIDOrigin == .client {
            for lane in lanes { confirmShown(rows, lane, context) }
            return
        }
        let isNew = { (row: ChatMessage) in
            row.id.map { !self.duplicates.contains(self.duplicateKey($0, nil)) } ?? false
        }
        // What is known behind each row.
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

    /// Before the backend had said who an account is, a row of its own was shown as somebody's: what an earlier process wrote
    /// may be among these.
    private func confirmRestored(_ rows: [ChatMessage], _ own: OwnLink, _ context: RoomsContext) {
        let restored = own.outbox.unsettled.filter { $0.isRestored && !$0.isShown }
        guard !restored.isEmpty else { return }
        let pending = ownRows.messages
        let waiting = restored.filter { entry in entry.message.id.map { !pending.contains($0) } ?? false }
        let known = rows.filter { row in
            self.own.speaking(row.sender) === own && row.id.map { duplicates.contains(duplicateKey($0, nil)) } ?? false
        }
        let pairs = OwnRowMatching.pairs(
            waiting.map { OwnRowMatching.Text(key: SentMessages.key($0.message.text), at: $0.message.at) },
            known.map { OwnRowMatching.Text(key: SentMessages.key($0.text), at: $0.at) })
        for (entry, _) in pairs {
            guard let id = waiting[entry].message.id, let arrived = own.confirm(id: id) else {
                continue
            }
            own.forget([arrived], context)
        }
    }

    /// A row that names a message of ours which IRC has seen.
    private func confirmNamed(_ row: ChatMessage, _ context: RoomsContext) {
        guard let ours = row.ref.map({ ChatID($0) }) else { return }
        for lane in lanes {
            if let kept = lane.takeDelivered(id: ours, context) {
                return learnShown(kept, row.id, lane, context)
            }
            guard lane.outbox.unsettled.contains(where: { $0.message.id == ours && $0.isShown }),
                let entry = lane.confirm(id: ours)
            else { continue }
            return confirmed(entry, upstreamID: row.id, at: row.at, lane, context)
        }
    }

    /// Where the ids are ours, a row names its message.
    private func confirmShown(_ rows: [ChatMessage], _ lane: SendLane, _ context: RoomsContext) {
        guard !lane.outbox.delivered.isEmpty || lane.outbox.hasUnsettled else { return }
        let waiting = Set((lane.outbox.delivered.entries + lane.outbox.unsettled).compactMap(\.message.id))
        for case let id? in rows.map(\.id) where waiting.contains(id) {
            if lane.takeDelivered(id: id, context) != nil { continue }
            if let entry = lane.confirm(id: id) {
                confirmed(entry, upstreamID: id, at: nil, lane, context)
            }
        }
    }

    /// - Parameter firstBehind: the first place of what the room knows behind each row, by the row's id.
    private func pair(
        _ rows: [ChatMessage], _ firstBehind: [ChatID: Int], _ lane: SendLane, _ context: RoomsContext
    ) {
        // In flight too: the answer may come later than the row.
        let unsettled = lane.outbox.unconfirmed
        guard !unsettled.isEmpty, !rows.isEmpty else { return }
        let open = Set(unsettled.filter(\.isShown).map { shownID(of: $0, context) })
        // Where each IRC user has a name upstream, the words must be theirs too.
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
                OwnRowMatching.Text(
                    key: key($0.key, $0.entry?.message.sender), at: saidAt($0, context),
                    author: $0.entry?.origin.puppet ?? recent.entry(msgid: $0.msgid)?.puppet,
                    saidAfter: $0.entry?.saidAfter)
            }
            // Our clock may have been ahead when it was said.
            + unsettled.map { entry in
                OwnRowMatching.Text(
                    key: key(SentMessages.key(entry.message.text), entry.message.sender),
                    at: entry.message.at.map { min($0, context.now.wall) }, author: entry.origin.puppet,
                    saidAfter: entry.saidAfter)
            }
        let theirs = rows.map { row in
            OwnRowMatching.Text(
                key: key(SentMessages.key(row.text), row.sender), at: row.at,
                firstBehind: row.id.flatMap { firstBehind[$0] } ?? .max)
        }
        for (index, row) in OwnRowMatching.pairs(ours, theirs, firstKnown: ownRows.reach.known ?? .max) {
            let row = rows[row]
            guard let id = row.id else { continue }
            if index < sent.count {
                guard lane !== self.lane || isKnownOrPrefixedAsOurs(row) else { continue }
                _ = lane.sent.take(msgid: sent[index].msgid)
                learn(id, of: sent[index], lane, context)
                catchUp.saw(id: id, at: row.at, wall: context.now.wall)
                continue
            }
            let entry = unsettled[index - sent.count]
            guard let ours = entry.message.id else { continue }
            guard entry.isShown else {
                ownRows.insert(id, ours, lane)
                continue
            }
            guard let arrived = lane.confirm(id: ours) else { continue }
            confirmed(arrived, upstreamID: id, at: row.at, lane, context)
            catchUp.saw(id: id, at: row.at, wall: context.now.wall)
        }
    }

    private func saidAt(_ sent: SentMessages.Entry, _ context: RoomsContext) -> ChatTimestamp? {
        if let at = sent.entry?.message.at { return min(at, context.now.wall) }
        let age = (context.now.monotonic - sent.writtenAt).wholeNanoseconds / 1_000_000
        return ChatTimestamp(milliseconds: context.now.wall.milliseconds &- age)
    }

    /// A row of a history that is a message of ours: it is shown in its place. False: it is none.
    func takeOwnRow(_ row: ChatMessage, _ context: RoomsContext) -> Bool {
        guard let id = row.id, let ours = ownRows.take(id) else { return false }
        guard let entry = ours.lane.confirm(id: ours.id) else { return false }
        _ = duplicates.insert(duplicateKey(id, nil))
        if ours.lane === lane { learnAccount(from: row, context) }
        confirmed(entry, upstreamID: id, at: row.at, ours.lane, context)
        return true
    }

    // MARK: - What is missing

    /// A history was taken in: what it lacks of ours is looked for once more, and then sent again.
    ///
    /// - Parameter rows: of the backend, oldest first.
    func settleMissing(_ rows: [ChatMessage], _ context: RoomsContext) {
        // Rows of ours that were neither shown nor passed over: they came live meanwhile.
        for row in rows { _ = takeOwnRow(row, context) }
        ownRows.clear()
        let asked = catchUp.askedAt ?? context.now.monotonic
        // At once: while they are gone through, nobody may ask for them.
        let within = Set(
            lanes.flatMap(\.outbox.unsettled).filter { isReached($0) }.compactMap(\.message.id))
        func reaches(_ entry: OutboxEntry) -> Bool { entry.message.id.map(within.contains) ?? false }
        // Before the backend has said who an account is, nobody knows which rows are its.
        for lane in lanes where lane.outbox.hasUnsettled && lane.isIdentified {
            tell(lane.settleMissing(asked: asked, reaches: reaches, context), lane, context)
            if lane !== self.lane { pump(lane, context) }
        }
        armSettling(context)
    }

    /// Asks once more for what a history lacked, or for the first time where a link of an account was lost alone.
    func armSettling(after pause: Duration = CatchUp.patience, _ context: RoomsContext) {
        var due: MonotonicInstant?
        for lane in lanes where lane.outbox.hasUnsettled {
            let look = lane.outbox.nextLook(patience: pause) ?? context.now.monotonic + pause
            due = due.map { min($0, look) } ?? look
        }
        guard traits.history != .none, link.isUp, let due else { return context.timers.cancel(.settling(id)) }
        context.timers.set(.settling(id), at: max(due, context.now.monotonic + .milliseconds(1)))
    }

    package func settlingTimerFired(_ context: RoomsContext) {
        guard link.isUp, lanes.contains(where: \.outbox.hasUnsettled) else { return }
        if !askAgain(context) { context.timers.set(.settling(id), at: context.now.monotonic + Self.lookPause) }
    }

    /// Messages went unanswered for long over a link that lives: a history may tell what became of them.
    func lookForDoubtful(_ lane: SendLane, _ context: RoomsContext) {
        guard traits.history != .none, !mayRepeatMessages else { return }
        if lane.unsettleDoubtful(context), !askAgain(context) { armSettling(context) }
    }

    /// The backend complained of something, and a pong confirmed messages a moment ago: a history is to tell whether it has
    /// them. They do not go again; the author of one that is missing hears that.
    func lookForSuspects(_ lane: SendLane, _ complaint: String, _ context: RoomsContext) {
        if lane.suspectDelivered(complaint, context), !askAgain(context) { armSettling(context) }
    }
}
