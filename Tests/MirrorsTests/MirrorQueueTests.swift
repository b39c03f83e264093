import BridgeTypes
import ChatModel
import Mirrors
import Testing
import WireBytes

/// A queue with rooms whose rows are numbers, on a manual clock.
private struct Stage {
    var queue: MirrorQueue
    var now = Now(monotonic: MonotonicInstant(nanoseconds: 0), wall: ChatTimestamp(milliseconds: 1_800_000_000_000))
    var rows: [[Int64]]
    /// What the tool was given, and where the cursors are.
    var posted: [String] = []
    var cursors: [Int64]
    var asked: MirrorAction?
    var notes: [String] = []
    var named: [String] = []
    var isAgain = false
    /// Up to where the batch under way goes, of each room.
    var batchEnds: [Int: Int64] = [:]
    private let settings: MirrorQueue.Settings

    init(rooms: Int = 1, maxPosts: Int = 1, maxWait: Duration = .zero, maxAge: Duration = .seconds(3600)) {
        var settings = MirrorQueue.Settings(name: "team")
        (settings.maxPosts, settings.maxWait, settings.maxAge) = (maxPosts, maxWait, maxAge)
        self.settings = settings
        rows = Array(repeating: [], count: rooms)
        cursors = Array(repeating: -1, count: rooms)
        queue = MirrorQueue(settings, rooms: [], random: AnyRandomNumberGenerator(ZeroGenerator()))
        restart()
    }

    /// A new process with what the one before had stored.
    mutating func restart() {
        let rooms = rows.indices.map {
            (name: "room\($0)", cursor: cursors[$0], end: rows[$0].last ?? -1, batchEnd: batchEnds[$0])
        }
        queue = MirrorQueue(settings, rooms: rooms, random: AnyRandomNumberGenerator(ZeroGenerator()))
        queue.start(now: now)
        run()
    }

    private struct ZeroGenerator: RandomNumberGenerator {
        mutating func next() -> UInt64 { 0 }
    }

    /// Odd rows are nothing to post.
    func entry(_ row: Int64, room: Int) -> MirrorQueue.Entry {
        let post = MirrorPost(
            .message(MarkedText(plain: "\(row)")), room: "room\(room)", channel: "#room\(room)", msgid: "m\(row)",
            at: now.wall, speaker: MirrorPost.Speaker(nick: "ann"))
        return MirrorQueue.Entry(sequence: row, post: row % 2 == 0 ? post : nil)
    }

    mutating func log(_ count: Int = 1, room: Int = 0) {
        for _ in 0..<count { rows[room].append((rows[room].last ?? -1) + 1) }
        queue.logged(room: room, end: rows[room].last ?? -1, now: now)
        run()
    }

    /// Answers everything but posts.
    mutating func run() {
        var actions = queue.takeActions()
        while let action = actions.first {
            actions.removeFirst()
            switch action {
            case .read(let room, let after, let through, let limit):
                let found = rows[room].filter { $0 > after && $0 <= through }.prefix(limit)
                let entries = found.map { entry($0, room: room) }
                queue.read(.success(entries), now: now)
            case .post(let room, let posts, let through, let again):
                batchEnds[room] = through
                asked = action
                isAgain = again
                posted.append(
                    "\(room):"
                        + posts.map { post in
                            switch post.content {
                            case .message(let text): text.plain
                            default: "notice"
                            }
                        }.joined(separator: ","))
            case .move(let room, let place):
                #expect(place > cursors[room], "a cursor only advances")
                cursors[room] = place
            case .named(_, let msgid, let id): named.append("\(msgid)=\(id)")
            case .note(let note): notes.append(note.event)
            }
            actions += queue.takeActions()
        }
    }

    mutating func answer(_ outcome: MirrorOutcome) {
        asked = nil
        queue.settled(outcome, now: now)
        run()
    }

    mutating func taken() { answer(.taken(ids: [])) }

    mutating func pass(_ time: Duration) {
        now = Now(
            monotonic: now.monotonic + time,
            wall: ChatTimestamp(milliseconds: now.wall.milliseconds + Int64(time / .milliseconds(1))))
        queue.timerFired(now: now)
        run()
    }

    mutating func sleepToDeadline() {
        guard let deadline = queue.nextDeadline else { return }
        pass(max(.zero, deadline - now.monotonic))
    }
}

@Suite struct MirrorQueueTests {
    @Test func oneAfterAnother() {
        var stage = Stage()
        stage.log(5)
        #expect(stage.posted == ["0:0"])
        #expect(stage.cursors == [-1], "nothing is done before the tool has it")
        stage.taken()
        stage.taken()
        stage.taken()
        #expect(stage.posted == ["0:0", "0:2", "0:4"])
        #expect(stage.cursors == [4])
        #expect(stage.queue.standing.waiting == 0)
        stage.log()
        #expect(stage.posted.count == 3)
        #expect(stage.cursors == [5], "what is nothing to post is done with")
    }

    @Test func rowsThatComeWhileOthersAreRead() {
        var stage = Stage()
        stage.log(250)
        while stage.asked != nil { stage.taken() }
        #expect(stage.posted.count == 125)
        #expect(stage.cursors == [249])
        #expect(Set(stage.posted).count == 125)
    }

    @Test func roomsInTurns() {
        var stage = Stage(rooms: 2)
        stage.log(3, room: 0)
        stage.log(3, room: 1)
        while stage.asked != nil { stage.taken() }
        #expect(stage.cursors == [2, 2])
        #expect(stage.posted.filter { $0.hasPrefix("0:") } == ["0:0", "0:2"])
        #expect(stage.posted.filter { $0.hasPrefix("1:") } == ["1:0", "1:2"])
    }

    @Test func batches() {
        var stage = Stage(maxPosts: 3, maxWait: .seconds(1))
        stage.log(3)
        #expect(stage.posted.isEmpty)
        stage.log(7)
        stage.pass(.seconds(1))
        #expect(stage.posted == ["0:0,2,4"])
        stage.taken()
        #expect(stage.posted == ["0:0,2,4", "0:6,8"])
        stage.taken()
        #expect(stage.cursors == [9])
    }

    @Test("a process that is killed behind a post repeats that post, whatever came since")
    func aBatchOfTheProcessBefore() {
        var stage = Stage(maxPosts: 3)
        stage.log(1)
        stage.log(8)
        #expect(stage.posted == ["0:0"])
        stage.restart()
        #expect(stage.posted == ["0:0", "0:0"])
        stage.taken()
        #expect(stage.posted.last == "0:2,4,6")
        stage.log(4)
        stage.restart()
        #expect(stage.posted.last == "0:2,4,6")
        stage.taken()
        stage.taken()
        #expect(stage.posted.suffix(2) == ["0:2,4,6", "0:8,10,12"])
        #expect(stage.cursors == [12])
    }

    @Test("a batch is repeated whole, also when less is to be posted at once now")
    func aLongerBatchOfTheProcessBefore() {
        var stage = Stage(maxPosts: 1)
        (stage.rows, stage.batchEnds) = ([[0, 1, 2, 3, 4, 5, 6]], [0: 3])
        stage.restart()
        #expect(stage.posted == ["0:0,2"])
        stage.taken()
        #expect(stage.posted.last == "0:4")
    }

    @Test func aToolThatIsAway() {
        var stage = Stage()
        stage.log()
        stage.answer(.later(reason: "down", after: nil))
        #expect(stage.notes == [], "one that passes is not worth a line")
        #expect(stage.queue.standing.failure?.reason == "down")
        stage.log(2)
        var pauses: [Duration] = []
        for _ in 0..<8 {
            let before = stage.now.monotonic
            stage.sleepToDeadline()
            pauses.append(stage.now.monotonic - before)
            #expect(stage.isAgain)
            stage.answer(.later(reason: "down", after: nil))
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60].map { .seconds($0) })
        #expect(stage.notes == ["mirror-away"], "said once")
        stage.sleepToDeadline()
        stage.taken()
        stage.taken()
        #expect(stage.notes == ["mirror-away", "mirror-back"])
        #expect(stage.cursors == [2])
        #expect(Set(stage.posted) == ["0:0", "0:2"])
    }

    @Test func aPauseThatTheToolAsksFor() {
        var stage = Stage()
        stage.log()
        stage.answer(.later(reason: "too many", after: .seconds(7)))
        stage.pass(.seconds(6))
        #expect(stage.posted.count == 1)
        stage.pass(.seconds(1))
        #expect(stage.posted.count == 2)
        stage.answer(.later(reason: "too many", after: .seconds(1_000_000)))
        stage.pass(.seconds(15 * 60))
        #expect(stage.posted.count == 3, "no tool is waited for that long")
    }

    @Test func whatIsRefusedIsPassedOver() {
        var stage = Stage()
        stage.log(3)
        stage.answer(.refused(reason: "too long"))
        #expect(stage.notes == ["mirror-refused"])
        stage.taken()
        #expect(stage.cursors == [2])
        #expect(stage.queue.standing.refused == 1)
        #expect(stage.queue.standing.posted == 1)
    }

    @Test func whatIsTooOldIsGivenUpAndTold() {
        var stage = Stage(maxAge: .seconds(100))
        stage.log()
        stage.answer(.later(reason: "down", after: nil))
        while stage.notes.last != "mirror-gave-up" {
            stage.sleepToDeadline()
            if stage.asked != nil { stage.answer(.later(reason: "down", after: nil)) }
        }
        #expect(stage.cursors == [0])
        #expect(stage.queue.standing.givenUp == 1)
        stage.log(2)
        // A line about it goes in front of what comes next, and again when that is tried again.
        #expect(stage.posted.last == "0:notice,2")
        stage.answer(.later(reason: "down", after: nil))
        stage.sleepToDeadline()
        #expect(stage.posted.last == "0:notice,2")
        stage.answer(.taken(ids: ["n", "id"]))
        #expect(stage.named == ["m2=id"])
        stage.log(2)
        #expect(stage.posted.last == "0:4")
    }

    @Test func aHookThatIsGone() {
        var stage = Stage()
        stage.log()
        stage.answer(.closed(reason: "404"))
        #expect(stage.notes == ["mirror-closed"])
        #expect(stage.queue.standing.failure?.isClosed == true)
        // A proxy in front of it says the same for the seconds of a restart.
        for (attempt, seconds) in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].enumerated() {
            stage.pass(.seconds(seconds) - .milliseconds(1))
            #expect(stage.posted.count == attempt + 1)
            stage.pass(.milliseconds(1))
            #expect(stage.posted.count == attempt + 2)
            stage.answer(.closed(reason: "404"))
        }
        #expect(stage.notes == ["mirror-closed"], "it is said once")
    }

    @Test func aHookThatIsGoneAndAShortBound() {
        var stage = Stage(maxAge: .seconds(8))
        stage.log()
        for seconds in [1, 2, 2, 2] {
            stage.answer(.closed(reason: "404"))
            stage.pass(.seconds(seconds))
            #expect(stage.asked != nil)
        }
        stage.log(2)
        stage.answer(.closed(reason: "404"))
        stage.pass(.seconds(2))
        #expect(stage.notes == ["mirror-closed", "mirror-gave-up"])
        #expect(stage.posted.last == "0:notice,2", "what came later is not held up")
    }

    @Test func aStoreThatFails() {
        var stage = Stage()
        stage.rows[0] = [0]
        stage.queue.logged(room: 0, end: 0, now: stage.now)
        _ = stage.queue.takeActions()
        stage.queue.read(.failure(StoreFailure("the disk is gone")), now: stage.now)
        stage.run()
        #expect(stage.notes == ["mirror-read-failed"])
        stage.sleepToDeadline()
        #expect(stage.posted == ["0:0"])
    }

    @Test func aLogThatIsShorterThanWhatWaits() {
        var stage = Stage()
        stage.rows[0] = [10, 11, 12]
        stage.queue.logged(room: 0, end: 12, now: stage.now)
        _ = stage.queue.takeActions()
        stage.queue.read(.success([10, 11, 12].map { stage.entry($0, room: 0) }), missing: 10, now: stage.now)
        stage.run()
        #expect(stage.notes == ["mirror-gave-up"])
        #expect(stage.posted == ["0:notice,10"])
    }
}
