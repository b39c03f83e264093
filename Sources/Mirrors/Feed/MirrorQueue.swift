import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

// What a mirror has still to post: the rows behind its cursors in the orders of its rooms, one batch under way at a time.
//
// | state     | meaning                                        | leaves by                                                 |
// |-----------|------------------------------------------------|-----------------------------------------------------------|
// | idle      | the cursors are at the ends                    | a row is logged → reading; the same, to be batched →      |
// |           |                                                | gathering                                                 |
// | gathering | more rows may come for the batch               | time over → reading                                       |
// | reading   | rows behind a cursor are asked for             | nothing to post → reading, idle; posts → posting;         |
// |           |                                                | the store fails → pausing                                 |
// | posting   | a batch is with the tool                       | taken, refused → posting, reading, idle; later → waiting  |
// | waiting   | the tool is away, or wants a pause             | time over → posting; too old, so given up → as refused    |
// | pausing   | the store could not answer                     | time over → reading                                       |
//
// The cursor moves behind a batch when the tool has taken it, or never will. So the log is the queue: nothing is lost by a
// restart, and a tool may get a batch twice whose answer was lost. The end of a batch is stored before it is posted, so that
// the next process repeats the same batch, by which a tool can tell.

/// What is to be done for a mirror.
package enum MirrorAction: Equatable, Sendable {
    /// Read the first rows of a room behind its cursor; answered by ``MirrorQueue/read(_:missing:now:)``.
    case read(room: Int, after: Int64, through: Int64, limit: Int)
    /// Post these; answered by ``MirrorQueue/settled(_:now:)``.
    ///
    /// - Parameters:
    ///   - through: the last row of the batch, to be persisted before.
    ///   - isAgain: they are those of the last time, of which some may have arrived.
    case post(room: Int, [MirrorPost], through: Int64, isAgain: Bool)
    /// Persist a cursor.
    case move(room: Int, to: Int64)
    /// Persist that the tool has a message under an id.
    case named(room: Int, msgid: String, toolID: String)
    case note(BridgeNote)
}

package struct MirrorQueue {
    package struct Settings: Equatable, Sendable {
        package var name: String
        /// A batch that could not be delivered for longer is given up.
        package var maxAge: Duration = .seconds(60 * 60)
        package var maxPosts = 1
        /// How long a first row waits for others.
        package var maxWait: Duration = .zero

        package init(name: String) { self.name = name }
    }

    /// One row of a room: nil where there is nothing to post.
    package struct Entry: Equatable, Sendable {
        package var sequence: Int64
        package var post: MirrorPost?

        package init(sequence: Int64, post: MirrorPost?) {
            self.sequence = sequence
            self.post = post
        }
    }

    private struct Room {
        var name: String
        /// Everything up to here was posted, or need not be.
        var cursor: Int64
        /// The newest known row.
        var end: Int64
        /// Up to here the process before was posting; nil: not known.
        var batchEnd: Int64?
    }

    /// Posts under way. The cursor moves to `through` behind them.
    private struct Batch {
        var room: Int
        var posts: [MirrorPost]
        var through: Int64
        /// In front of them, what was given up before is told.
        var notice: MirrorPost?
    }

    private enum State {
        case idle
        case gathering
        case reading(room: Int, through: Int64)
        case posting(Batch)
        case waiting(Batch)
        case pausing
    }

    private enum Trouble { case away, closed }

    /// What was given up and not told in the tool yet.
    private struct Loss {
        var count = 0
        var from: ChatTimestamp
        var to: ChatTimestamp
    }

    /// For the operator.
    package struct Standing: Equatable, Sendable {
        package var posted = 0
        package var refused = 0
        package var givenUp = 0
        package var retries = 0
        /// Rows behind the cursors, some of which may be nothing to post.
        package var waiting: Int64 = 0
        /// Since when nothing is taken, and why; nil: the last batch was.
        package var failure: (since: ChatTimestamp, reason: String, isClosed: Bool)?

        package init() {}

        package static func == (a: Self, b: Self) -> Bool {
            (a.posted, a.refused, a.givenUp, a.retries, a.waiting) == (
                b.posted, b.refused, b.givenUp, b.retries, b.waiting
            )
                && a.failure?.since == b.failure?.since && a.failure?.reason == b.failure?.reason
        }
    }

    /// Rows read at a time.
    static let rowsAtOnce = 100
    static let firstRetry: Duration = .seconds(1)
    static let longestRetry: Duration = .seconds(60)
    /// Where the tool has no place for us any more, the operator has to act first, or a proxy in front of it is the one who says so.
    static let longestClosedRetry: Duration = .seconds(5 * 60)
    /// A tool that asks for a longer pause is asked again earlier.
    static let longestPause: Duration = .seconds(15 * 60)

    private let settings: Settings
    private var rooms: [Room]
    private var state = State.idle
    /// Rows that were read and are not under way, of the room that was read last.
    private var entries: ArraySlice<Entry> = []
    private var lastRoom = 0
    private var failures = 0
    /// What the log says of the tool; nil: nothing, or that it takes messages again.
    private var told: Trouble?
    private var loss: Loss?
    private var counts = Standing()
    private var random: AnyRandomNumberGenerator
    package private(set) var nextDeadline: MonotonicInstant?
    private var actions: [MirrorAction] = []

    /// - Parameter rooms: each with its name, its cursor, the end of its order, and that of the batch that was under way.
    package init(
        _ settings: Settings, rooms: [(name: String, cursor: Int64, end: Int64, batchEnd: Int64?)],
        random: AnyRandomNumberGenerator
    ) {
        self.settings = settings
        self.rooms = rooms.map { Room(name: $0.name, cursor: $0.cursor, end: $0.end, batchEnd: $0.batchEnd) }
        self.random = random
    }

    package mutating func takeActions() -> [MirrorAction] {
        defer { actions = [] }
        return actions
    }

    package var standing: Standing {
        var counts = counts
        counts.waiting = rooms.reduce(0) { $0 + max(0, $1.end - $1.cursor) }
        return counts
    }

    // MARK: - Verbs

    /// Begins with what was logged before.
    package mutating func start(now: Now) { if case .idle = state { goOn(now) } }

    /// A room's order reaches to `end`.
    package mutating func logged(room: Int, end: Int64, now: Now) {
        guard rooms.indices.contains(room), end > rooms[room].end else { return }
        rooms[room].end = end
        guard case .idle = state else { return }
        guard settings.maxWait > .zero, settings.maxPosts > 1 else { return goOn(now) }
        state = .gathering
        nextDeadline = now.monotonic + settings.maxWait
    }

    /// The rows that were asked for.
    ///
    /// - Parameter missing: so many before them are gone: the log is shorter than what waits.
    package mutating func read(_ outcome: Result<[Entry], StoreFailure>, missing: Int = 0, now: Now) {
        guard case .reading(let room, let through) = state else { return }
        switch outcome {
        case .failure(let failure):
            state = .pausing
            nextDeadline = now.monotonic + Self.firstRetry
            note(.warn, "mirror-read-failed", "messages for a mirror cannot be read: \(failure.sentence)", room)
        case .success(let rows):
            if missing > 0 {
                lose(missing, from: rows.first?.post?.at ?? now.wall, to: rows.first?.post?.at ?? now.wall, room)
            }
            entries = rows[...]
            // Rows may be missing in between, but none behind the last one of a short page.
            if rows.count < Self.rowsAtOnce { entries.append(Entry(sequence: through, post: nil)) }
            goOn(now)
        }
    }

    /// What became of the posts under way.
    ///
    /// - Parameter refused: why the tool has refused some of those that were taken on the whole.
    package mutating func settled(_ outcome: MirrorOutcome, refused: String? = nil, now: Now) {
        guard case .posting(let batch) = state else { return }
        if let refused, case .taken = outcome { noteRefusal(refused, batch) }
        switch outcome {
        case .taken(let ids):
            // Those of a notice have no author.
            for (post, id) in zip(batch.posts, ids.suffix(batch.posts.count)) {
                if let id { actions.append(.named(room: batch.room, msgid: post.msgid, toolID: id)) }
            }
            counts.posted += batch.posts.count
            if let failure = counts.failure, told != nil {
                let seconds = max(0, now.wall.milliseconds - failure.since.milliseconds) / 1000
                note(
                    .info, "mirror-back", "the tool takes messages again", batch.room, ["seconds": String(seconds)])
            }
            (failures, told, counts.failure) = (0, nil, nil)
            done(batch, now)
        case .refused(let reason):
            counts.refused += batch.posts.count
            noteRefusal(reason, batch)
            done(batch, now)
        case .later(let reason, let after): wait(batch, reason, isClosed: false, after, now)
        case .closed(let reason): wait(batch, reason, isClosed: true, nil, now)
        }
    }

    package mutating func timerFired(now: Now) {
        guard let deadline = nextDeadline, deadline <= now.monotonic else { return }
        nextDeadline = nil
        switch state {
        case .gathering, .pausing:
            state = .idle
            goOn(now)
        case .waiting(let batch):
            guard !isTooOld(batch, now) else {
                giveUp(batch, now)
                return goOn(now)
            }
            counts.retries += 1
            state = .posting(batch)
            send(batch, isAgain: true)
        case .idle, .reading, .posting: break
        }
    }

    // MARK: - The way on

    private mutating func done(_ batch: Batch, _ now: Now) {
        if batch.notice != nil { loss = nil }
        move(batch.room, to: batch.through)
        goOn(now)
    }

    private mutating func move(_ room: Int, to sequence: Int64) {
        guard sequence > rooms[room].cursor else { return }
        rooms[room].cursor = sequence
        actions.append(.move(room: room, to: sequence))
    }

    /// The next batch, the next rows, or nothing.
    private mutating func goOn(_ now: Now) {
        while let batch = takeBatch() {
            guard !batch.posts.isEmpty else {
                move(batch.room, to: batch.through)
                continue
            }
            guard !isTooOld(batch, now) else {
                giveUp(batch, now)
                continue
            }
            state = .posting(batch)
            return send(batch, isAgain: false)
        }
        // In turns, so that a busy room does not hold up the others.
        for step in 1...max(1, rooms.count) {
            let room = (lastRoom + step) % max(1, rooms.count)
            guard rooms.indices.contains(room), rooms[room].end > rooms[room].cursor else { continue }
            lastRoom = room
            state = .reading(room: room, through: rooms[room].end)
            return actions.append(
                .read(room: room, after: rooms[room].cursor, through: rooms[room].end, limit: Self.rowsAtOnce))
        }
        state = .idle
    }

    /// The next posts of the rows that were read, with what is nothing to post around them; nil: there are no more rows.
    private mutating func takeBatch() -> Batch? {
        var batch: Batch?
        let repeatedEnd = entries.first.flatMap { first in
            rooms[lastRoom].batchEnd.flatMap { $0 < first.sequence ? nil : $0 }
        }
        func belongs(_ entry: Entry) -> Bool {
            if let repeatedEnd { return entry.sequence <= repeatedEnd }
            return entry.post == nil || batch?.posts.count ?? 0 < max(1, settings.maxPosts)
        }
        while let entry = entries.first, belongs(entry) {
            entries.removeFirst()
            var grown = batch ?? Batch(room: lastRoom, posts: [], through: entry.sequence)
            grown.through = entry.sequence
            if let post = entry.post { grown.posts.append(post) }
            batch = grown
        }
        if let loss, let first = batch?.posts.first { batch?.notice = notice(of: loss, before: first) }
        return batch
    }

    private mutating func send(_ batch: Batch, isAgain: Bool) {
        let posts = (batch.notice.map { [$0] } ?? []) + batch.posts
        actions.append(.post(room: batch.room, posts, through: batch.through, isAgain: isAgain))
    }

    // MARK: - A tool that does not take

    private mutating func wait(
        _ batch: Batch, _ reason: String, isClosed: Bool, _ after: Duration?, _ now: Now
    ) {
        failures += 1
        // A first answer may be a pause that the tool asks for, and pass.
        if isClosed ? told != .closed : told != .away && failures > 1 {
            told = isClosed ? .closed : .away
            note(
                isClosed ? .error : .warn, isClosed ? "mirror-closed" : "mirror-away",
                isClosed
                    ? "the tool has no place for this mirror any more: \(reason)"
                    : "messages wait for the tool: \(reason)", batch.room)
        }
        counts.failure = (counts.failure?.since ?? now.wall, reason, isClosed)
        guard !isTooOld(batch, now) else {
            giveUp(batch, now)
            return goOn(now)
        }
        state = .waiting(batch)
        // 1, 2, 4 … 60 s or 5 min, each up to a quarter longer: many mirrors may lead to one host.
        let doubled = Self.firstRetry * (1 << min(failures - 1, 9))
        let longest = isClosed ? Self.longestClosedRetry : Self.longestRetry
        // Often enough that what comes when the tool is back is not too old by then.
        let pause =
            after.map { min(max($0, .zero), Self.longestPause) }
            ?? min(doubled, longest, settings.maxAge / 4)
        let jitter = pause / 1000 * Int(random.next() % 251)
        nextDeadline = now.monotonic + pause + jitter
    }

    private func isTooOld(_ batch: Batch, _ now: Now) -> Bool {
        let newest = batch.posts.map(\.at).max() ?? now.wall
        let (age, over) = now.wall.milliseconds.subtractingReportingOverflow(newest.milliseconds)
        return over || Duration.milliseconds(age) > settings.maxAge
    }

    private mutating func giveUp(_ batch: Batch, _ now: Now) {
        let times = batch.posts.map(\.at)
        lose(batch.posts.count, from: times.min() ?? now.wall, to: times.max() ?? now.wall, batch.room)
        move(batch.room, to: batch.through)
    }

    private mutating func lose(_ count: Int, from: ChatTimestamp, to: ChatTimestamp, _ room: Int) {
        if loss == nil {
            note(
                .error, "mirror-gave-up", "messages are not mirrored any more: they have waited for too long", room,
                ["messages": String(count)])
        }
        counts.givenUp += count
        loss = Loss(count: (loss?.count ?? 0) + count, from: loss?.from ?? from, to: to)
    }

    private func notice(of loss: Loss, before next: MirrorPost) -> MirrorPost {
        let times = [loss.from, loss.to].map { MirrorTimes.minute($0) }
        return MirrorPost(
            .notice(
                "\(loss.count) message\(loss.count == 1 ? "" : "s") of \(times[0]) to \(times[1]) UTC "
                    + "\(loss.count == 1 ? "is" : "are") missing here"),
            room: next.room, channel: next.channel, msgid: "missing \(loss.from.milliseconds) \(loss.count)",
            at: loss.to,
            speaker: MirrorPost.Speaker(nick: "chatbridge", isBot: true),
            origin: OriginChain(next.origin.places.suffix(1)))
    }

    private mutating func noteRefusal(_ reason: String, _ batch: Batch) {
        note(.warn, "mirror-refused", "the tool does not take a message: \(reason)", batch.room)
    }

    private mutating func note(
        _ level: BridgeNote.Level, _ event: String, _ text: String, _ room: Int, _ more: NoteMetadata = [:]
    ) {
        let place: NoteMetadata = [
            "mirror": settings.name, "room": rooms.indices.contains(room) ? rooms[room].name : "",
        ]
        actions.append(.note(BridgeNote(level, event, text, more.behind(place))))
    }
}

/// Times in words of a mirror.
enum MirrorTimes {
    /// `2026-01-31 09:05`, in UTC.
    static func minute(_ at: ChatTimestamp) -> String {
        String(IRCServerTime.format(milliseconds: at.milliseconds).prefix(16)).replacing("T", with: " ")
    }
}
