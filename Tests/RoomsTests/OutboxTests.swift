import BridgeTestSupport
import BridgeTypes
import ChatModel
import Testing
import WireBytes

@testable import Rooms

@Suite("Outbox")
struct OutboxTests {
    /// A person who speaks through a client of a network, or a bot that speaks as them.
    private static func said(
        _ number: Int, as author: UInt64, by client: UInt64, _ random: inout SeededGenerator
    ) -> OutboxEntry {
        var entry = entry("m\(number)", sender: "author \(author)")
        entry.origin = OutboxEntry.Origin(
            client: ClientID(rawValue: client), person: PersonID(rawValue: author), puppet: ChatID("author \(author)"),
            who: RoomSpeaker(nick: "s", source: "s!u@h"), text: "text", clientTags: [], label: nil)
        let lines: [OutboxTurns.Line?] = [nil, .network("network \(client % 2)"), .relay("bot \(client)")]
        entry.line = lines.randomElement(using: &random) ?? nil
        return entry
    }

    @Test(
        "under whatever names clients speak, each message has its turn once, and an author's are in order",
        arguments: 0..<200)
    func turns(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var outbox = Outbox()
        var (said, written): ([ChatID: String], [ChatID]) = ([:], [])
        for number in 0..<120 {
            if Bool.random(using: &random) || number > 80 {
                guard let next = outbox.next, let id = next.message.id else { continue }
                written.append(id)
                outbox.markNextWritten(at: Self.at(1), frameCount: 1)
                #expect(outbox.confirm(id: id, sender: next.message.sender.id) != nil)
            } else {
                let entry = Self.said(
                    number, as: .random(in: 1...5, using: &random), by: .random(in: 1...3, using: &random), &random)
                said[ChatID("m\(number)")] = entry.origin.puppet.rawValue
                outbox.append(entry)
            }
        }
        while let next = outbox.next, let id = next.message.id {
            written.append(id)
            outbox.markNextWritten(at: Self.at(1), frameCount: 1)
            guard outbox.confirm(id: id, sender: next.message.sender.id) != nil, written.count <= 200 else { break }
        }
        #expect(written.count == said.count && Set(written) == Set(said.keys), "seed \(seed)")
        for author in Set(said.values) {
            let numbers = written.filter { said[$0] == author }.compactMap { Int($0.rawValue.dropFirst()) }
            #expect(numbers == numbers.sorted(), "seed \(seed)")
        }
    }

    private static func at(_ seconds: Double) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: Int64(seconds * 1e9))
    }

    private static func entry(_ id: String, sender: String = "S", at seconds: Double = 0) -> OutboxEntry {
        OutboxEntry(
            message: ChatMessage(id: ChatID(id), sender: ChatPerson(id: ChatID(sender), name: "s"), text: "text " + id),
            origin: OutboxEntry.Origin(
                client: ClientID(rawValue: 1), person: PersonID(rawValue: 1), puppet: ChatID(sender),
                who: RoomSpeaker(nick: "s", source: "s!u@h"), text: "text " + id, clientTags: [], label: "L"),
            acceptedAt: at(seconds))
    }

    private static func outbox(_ ids: String..., written: Int = 0) -> Outbox {
        var outbox = Outbox()
        for id in ids { outbox.append(entry(id)) }
        for number in 0..<written { outbox.markNextWritten(at: at(1), frameCount: UInt64(number + 1)) }
        return outbox
    }

    private func ids(_ outbox: Outbox) -> [String] { outbox.entries.compactMap { $0.message.id?.rawValue } }

    @Test("entries are written in order")
    func order() {
        var outbox = Self.outbox("a", "b")
        #expect(outbox.next?.message.id == ChatID("a"))
        outbox.markNextWritten(at: Self.at(1), frameCount: 1)
        #expect(outbox.next?.message.id == ChatID("b"))
        #expect(outbox.entries[0].state == .written(at: Self.at(1)))
        outbox.markNextWritten(at: Self.at(1), frameCount: 1)
        #expect(outbox.next == nil)
        let hasQueued = outbox.hasQueued
        #expect(!hasQueued)
        outbox.markNextWritten(at: Self.at(1), frameCount: 1)
        #expect(outbox.nextToWrite == 2)
    }

    @Test("a lost link queues everything unconfirmed again, oldest first")
    func linkLost() {
        var outbox = Self.outbox("a", "b", "c", written: 2)
        _ = outbox.takeDoubtful(now: Self.at(20))
        outbox.linkLost(now: Self.at(20))
        #expect(outbox.entries.allSatisfy { $0.state == .queued })
        #expect(outbox.next?.message.id == ChatID("a"))
    }

    @Test("the oldest message that no connection has carried makes room, persisted or not")
    func makesRoom() {
        var outbox = Self.outbox("a", "b", "c", written: 1)
        outbox.linkLost(now: Self.at(2))
        var last = Self.entry("d")
        last.state = .accepting(StoreTicket(rawValue: 1))
        outbox.append(last)
        let removed = (0..<4).map { _ in outbox.removeOldestUnwritten()?.message.id?.rawValue }
        #expect(removed == ["b", "c", "d", nil])
        #expect(ids(outbox) == ["a"])
        #expect(outbox.settle(through: StoreTicket(rawValue: 1), refused: [StoreTicket(rawValue: 1)]).isEmpty)
    }

    @Test("a confirmation takes out the entry of that id and sender, in any state, and no other")
    func confirm() {
        for written in 0...3 {
            for (index, id) in ["a", "b", "c"].enumerated() {
                var outbox = Self.outbox("a", "b", "c", written: written)
                #expect(outbox.confirm(id: ChatID(id), sender: ChatID("other")) == nil)
                #expect(outbox.confirm(id: ChatID("x"), sender: ChatID("S")) == nil)
                #expect(outbox.confirm(id: ChatID(id), sender: ChatID("S"))?.message.id == ChatID(id))
                #expect(outbox.nextToWrite == written - (index < written ? 1 : 0))
                #expect(outbox.confirm(id: ChatID(id), sender: ChatID("S")) == nil)
                #expect(ids(outbox) == ["a", "b", "c"].filter { $0 != id })
            }
        }
    }

    @Test("with server-made ids the oldest written entry of that text is confirmed")
    func confirmByText() {
        var outbox = Outbox()
        for id in ["a", "b"] {
            var entry = Self.entry(id)
            entry.message.text = "ok"
            outbox.append(entry)
        }
        #expect(outbox.confirm(sender: ChatID("S"), text: "ok") == nil)
        outbox.markNextWritten(at: Self.at(0), frameCount: 1)
        outbox.markNextWritten(at: Self.at(0), frameCount: 1)
        #expect(outbox.confirm(sender: ChatID("T"), text: "ok") == nil)
        #expect(outbox.confirm(sender: ChatID("S"), text: "ok")?.message.id == ChatID("a"))
        #expect(outbox.confirm(sender: nil, text: "ok")?.message.id == ChatID("b"))
        #expect(outbox.nextToWrite == 0)
    }

    @Test("an expired entry fails, is retained for a late confirmation, and its label is spent")
    func expire() {
        var outbox = Outbox()
        outbox.append(Self.entry("a", at: 0))
        outbox.append(Self.entry("b", at: 5))
        outbox.markNextWritten(at: Self.at(0), frameCount: 1)
        #expect(outbox.expire(maxAge: .seconds(10), now: Self.at(9.9)).isEmpty)
        let expired = outbox.expire(maxAge: .seconds(10), now: Self.at(10))
        #expect(expired.map { $0.message.id } == [ChatID("a")])
        #expect(expired.first?.origin.label == "L")
        #expect(outbox.nextToWrite == 0)
        #expect(outbox.confirm(id: ChatID("a"), sender: ChatID("S")) == nil)
        #expect(outbox.takeLate(id: ChatID("a"), sender: ChatID("T")) == nil)
        let late = outbox.takeLate(id: ChatID("a"), sender: ChatID("S"))
        #expect(late != nil && late?.origin.label == nil)
        #expect(outbox.takeLate(id: ChatID("a"), sender: ChatID("S")) == nil)
    }

    @Test("the number of retained failures is bounded")
    func failedMemory() {
        var outbox = Outbox()
        for number in 0...Outbox.failedMemory { outbox.append(Self.entry("\(number)")) }
        _ = outbox.expire(maxAge: .zero, now: Self.at(1))
        #expect(outbox.takeLate(id: ChatID("0"), sender: ChatID("S")) == nil)
        #expect(outbox.takeLate(id: ChatID("1"), sender: ChatID("S")) != nil)
    }

    @Test("doubtful after ten seconds, once")
    func doubtful() {
        var outbox = Self.outbox("a", "b", written: 1)
        #expect(outbox.takeDoubtful(now: Self.at(10.9)) == false)
        #expect(outbox.takeDoubtful(now: Self.at(11)) == true)
        #expect(outbox.entries[0].state == .doubtful)
        #expect(outbox.entries[1].state == .queued)
        #expect(outbox.takeDoubtful(now: Self.at(99)) == false)
    }

    @Test("a wait is announced once, after three seconds")
    func announcements() {
        var outbox = Self.outbox("a", "b")
        #expect(outbox.takeWaitAnnouncements(now: Self.at(2.9)).isEmpty)
        #expect(outbox.takeWaitAnnouncements(now: Self.at(3)).count == 2)
        #expect(outbox.takeWaitAnnouncements(now: Self.at(9)).isEmpty)
    }

    @Test("the next deadline is the nearest of announcement, doubt and age")
    func deadlines() {
        var outbox = Outbox()
        func next() -> MonotonicInstant? { outbox.nextDeadline(maxAge: .seconds(900)) }
        #expect(next() == nil)
        outbox.append(Self.entry("a"))
        #expect(next() == Self.at(3))
        _ = outbox.takeWaitAnnouncements(now: Self.at(3))
        #expect(next() == Self.at(900))
        outbox.markNextWritten(at: Self.at(4), frameCount: 1)
        #expect(next() == Self.at(14))
        _ = outbox.takeDoubtful(now: Self.at(14))
        #expect(next() == Self.at(900))
    }

    @Test("with server-made ids, unknown entries are sent again when two spaced histories lack them")
    func unknownAfterDisconnect() {
        var outbox = Self.outbox("a", "b", "c", written: 2)
        outbox.linkLost(mayRepeat: false, now: Self.at(1))
        #expect(outbox.entries.map(\.state) == [.unknownAfterDisconnect, .unknownAfterDisconnect, .queued])
        #expect(outbox.next?.message.id == ChatID("c"))
        outbox.markNextWritten(at: Self.at(2), frameCount: 1)
        #expect(outbox.takeDoubtful(now: Self.at(5)) == false)
        #expect(outbox.confirm(sender: ChatID("S"), text: "text a")?.message.id == ChatID("a"))
        func look(_ seconds: Double, reaches: Bool = true) -> [String] {
            outbox.settleMissing(asked: Self.at(seconds), patience: .seconds(10), isOnce: true) { _ in reaches }
                .compactMap { $0.message.id?.rawValue }
        }
        #expect(look(0.5) == [], "asked for before the link was lost")
        #expect(outbox.nextLook(patience: .seconds(10)) == nil)
        #expect(look(3) == [])
        #expect(outbox.nextLook(patience: .seconds(10)) == Self.at(13))
        #expect(look(12) == [])
        #expect(outbox.entries.map(\.state).first == .unknownAfterDisconnect)
        #expect(look(13) == [])
        #expect(ids(outbox) == ["c", "b"])
        #expect(outbox.next?.message.id == ChatID("b"))
        // The retransmission is lost too.
        outbox.markNextWritten(at: Self.at(14), frameCount: 2)
        outbox.linkLost(mayRepeat: false, now: Self.at(15))
        #expect(look(16) == [])
        #expect(look(26) == ["b"])
        #expect(ids(outbox) == ["c"])
        #expect(outbox.next?.message.id == ChatID("c"))
        #expect(outbox.next?.isRepeated == true)
        #expect(outbox.takeLate(ref: ChatID("b"))?.message.id == ChatID("b"))
    }

    @Test("an entry beyond a history's reach is given up")
    func unreachable() {
        var outbox = Self.outbox("a", "b", written: 2)
        outbox.linkLost(mayRepeat: false, now: Self.at(1))
        let given = outbox.settleMissing(asked: Self.at(2), patience: .seconds(10), isOnce: true) {
            $0.message.id == ChatID("b")
        }
        #expect(given.compactMap(\.message.id) == [ChatID("a")])
        #expect(ids(outbox) == ["b"])
    }

    @Test("a lost link makes messages confirmed by pongs alone unknown, in front of unconfirmed ones")
    func reopened() {
        for mayRepeat in [false, true] {
            var outbox = Self.outbox("a", "b", "c", written: 3)
            var shown = outbox.takeWritten(upTo: 1)
            shown?.isShown = true
            if let shown { outbox.delivered.append(shown, until: Self.at(70)) }
            outbox.linkLost(mayRepeat: mayRepeat, now: Self.at(2))
            #expect(outbox.delivered.isEmpty)
            #expect(outbox.unknown.first?.message.id == ChatID("a"))
            #expect(outbox.unknown.first?.isShown == true)
            #expect(outbox.unknown.count == (mayRepeat ? 1 : 3))
        }
    }

    @Test("a pong confirms the frames that it covers, and nothing of an earlier link")
    func pongs() {
        var outbox = Self.outbox("a", "b", "c", "d")
        outbox.markNextWritten(at: Self.at(1), frameCount: 3)
        outbox.linkLost(mayRepeat: false, now: Self.at(2))
        for frameCount in 1...3 { outbox.markNextWritten(at: Self.at(3), frameCount: UInt64(frameCount)) }
        _ = outbox.takeDoubtful(now: Self.at(13))
        func taken(_ frameCount: UInt64) -> [String] {
            var ids: [String] = []
            while let entry = outbox.takeWritten(upTo: frameCount) { ids += [entry.message.id?.rawValue ?? ""] }
            return ids
        }
        #expect(taken(0) == [])
        #expect(taken(2) == ["b", "c"])
        #expect(taken(2) == [])
        #expect(taken(9) == ["d"])
        #expect(ids(outbox) == ["a"])
    }

    @Test("a refusal removes the entry that it names, or the only one in flight, and retains it")
    func refusals() {
        var outbox = Self.outbox("a", "b", "c", written: 2)
        #expect(outbox.refuse(id: ChatID("x")) == nil)
        func only(_ seconds: Double) -> ChatID? { outbox.refuseOnly(since: Self.at(seconds))?.message.id }
        #expect(only(0) == nil, "two are in flight")
        #expect(outbox.refuse(id: ChatID("b"))?.message.id == ChatID("b"))
        #expect(only(1.5) == nil, "written before")
        #expect(only(1) == ChatID("a"))
        #expect(only(0) == nil, "what was not written was not refused")
        #expect(outbox.refuse(id: ChatID("c"))?.message.id == ChatID("c"))
        #expect(outbox.takeLate(ref: ChatID("b"))?.message.id == ChatID("b"))
        #expect(outbox.takeLate(sender: ChatID("S"), text: "text a")?.message.id == ChatID("a"))
        #expect(outbox.takeLate(ref: ChatID("a")) == nil)
    }

    @Test("an unnamed deferral concerns all in flight where retransmission is idempotent, else the last written")
    func putOffUnnamed() {
        var outbox = Self.outbox("a", "b", "c", written: 2)
        func putOff(_ mayRepeat: Bool) -> Bool { outbox.putOffUnnamed(mayRepeat: mayRepeat) }
        #expect(putOff(false) == true)
        #expect(outbox.entries.map { $0.state == .queued } == [false, true, true], "what was written last")
        outbox.markNextWritten(at: Self.at(2), frameCount: 3)
        #expect(putOff(true) == true)
        #expect(ids(outbox) == ["a", "b", "c"] && outbox.entries.allSatisfy { $0.state == .queued })
        #expect(putOff(true) == false)
        #expect(putOff(false) == false)
    }

    @Test("an entry that cannot be sent is removed at the write position")
    func removeNext() {
        var outbox = Self.outbox("a", "b", "c", written: 1)
        #expect(outbox.removeNext()?.message.id == ChatID("b"))
        #expect(ids(outbox) == ["a", "c"])
        #expect(outbox.takeAll().count == 2)
        #expect(outbox.isEmpty && outbox.removeNext() == nil)
    }
}

@Suite("SeenMessageIDs")
struct SeenMessageIDsTests {
    private func key(_ number: Int, _ sender: String? = nil) -> SeenMessageIDs.Key {
        SeenMessageIDs.Key(id: ChatID("m\(number)"), sender: sender.map { ChatID($0) })
    }

    @Test("an id is new once, for each sender")
    func insertion() {
        let ring = SeenMessageIDs()
        #expect(ring.insert(key(1, "a")) == true)
        #expect(ring.insert(key(1, "a")) == false)
        #expect(ring.insert(key(1, "b")) == true)
        #expect(ring.insert(key(1)) == true)
    }

    @Test("the last 2000 ids are known, older ones dropped")
    func capacity() {
        let ring = SeenMessageIDs()
        let total = SeenMessageIDs.capacity * 2 + 7
        for number in 0..<total { #expect(ring.insert(key(number)) == true) }
        for number in 0..<total { #expect(ring.contains(key(number)) == (number >= total - 2000), "\(number)") }
    }

    @Test("the same UUID in either case is one id")
    func cases() {
        let ring = SeenMessageIDs()
        let id = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
        #expect(ring.insert(SeenMessageIDs.Key(id: ChatID(id), sender: nil)) == true)
        #expect(ring.insert(SeenMessageIDs.Key(id: ChatID(id.uppercased()), sender: nil)) == false)
    }
}

@Suite("RecentLog")
struct RecentLogTests {
    private func filled(_ count: Int) -> RecentLog {
        let recent = RecentLog()
        for number in 0..<count {
            let row = StoredMessage(
                sequence: Int64(number), msgid: "m\(number)", upstreamID: ChatID("u\(number)"),
                at: ChatTimestamp(milliseconds: Int64(number)), nick: "n", source: "n", text: "")
            recent.append(row, by: nil, nick: "n", text: "")
        }
        return recent
    }

    @Test("the newest is the last appended, before and after the ring is full", arguments: [1, 1999, 2000, 2001, 4500])
    func newest(count: Int) {
        let recent = filled(count)
        #expect(recent.newest?.msgid == "m\(count - 1)")
        #expect(recent.entry(msgid: "m\(count - 1)")?.upstreamID == ChatID("u\(count - 1)"))
        let oldest = max(0, count - RecentLog.capacity)
        #expect(recent.entry(upstreamID: ChatID("u\(oldest)")) != nil)
        if oldest > 0 { #expect(recent.entry(upstreamID: ChatID("u\(oldest - 1)")) == nil) }
    }

    @Test("a marker passes the messages between its old and its new position, oldest first")
    func passed() {
        let recent = filled(2500)
        let upTo = ChatTimestamp(milliseconds: 2403)
        let marker = ReadMarker(at: ChatTimestamp(milliseconds: 2400), sequence: 2400)
        let further = ["m2401", "m2402", "m2403"]
        #expect(recent.passed(from: marker, joinedAfter: 0, upTo: upTo).map(\.msgid) == further)
        #expect(recent.passed(from: nil, joinedAfter: 2400, upTo: upTo).map(\.msgid) == further)
        // A later message with the same time; an earlier one with a later time.
        let early = ReadMarker(at: ChatTimestamp(milliseconds: 2403), sequence: 2401)
        #expect(recent.passed(from: early, joinedAfter: 0, upTo: upTo).map(\.msgid) == ["m2402", "m2403"])
        let late = ReadMarker(at: ChatTimestamp(milliseconds: 2401), sequence: 2403)
        #expect(recent.passed(from: late, joinedAfter: 0, upTo: upTo).map(\.msgid) == ["m2402", "m2403"])
    }

    @Test("a line has the next place, not its row's")
    func place() {
        let recent = filled(3)
        let row = StoredMessage(
            sequence: .max, msgid: "late", at: ChatTimestamp(milliseconds: 9), nick: "n", source: "n", text: "")
        recent.append(row, by: nil, nick: "n", text: "")
        #expect(recent.newest?.sequence == 3)
        #expect(recent.newest(1, after: 2).leftOut == 0)
    }

    @Test("a reused id refers to its last message, also when the first is dropped")
    func reusedID() {
        let recent = RecentLog()
        func add(_ msgid: String, _ id: String) {
            let row = StoredMessage(
                sequence: Int64(recent.nextSequence), msgid: msgid, upstreamID: ChatID(id),
                at: ChatTimestamp(milliseconds: 0), nick: "n", source: "n", text: "")
            recent.append(row, by: nil, nick: "n", text: "")
        }
        add("first", "x")
        add("second", "x")
        for number in 0..<(RecentLog.capacity - 1) { add("f\(number)", "f\(number)") }
        #expect(recent.entry(msgid: "first") == nil)
        #expect(recent.entry(upstreamID: ChatID("x"))?.msgid == "second")
    }
}

@Suite("SeenTexts")
struct SeenTextsTests {
    private func message(_ text: String = "ok", at seconds: Int64? = nil, from name: String = "ann") -> ChatMessage {
        ChatMessage(
            sender: ChatPerson(name: name), text: text, at: seconds.map { ChatTimestamp(milliseconds: $0 * 1000) })
    }

    @Test("two live messages of one link are two")
    func live() {
        let texts = SeenTexts()
        for _ in 0..<3 {
            #expect(texts.isKnownLive(message(at: 1), connection: 1, isSettling: true) == false)
        }
    }

    @Test("a history matches each of them once")
    func history() {
        let texts = SeenTexts()
        for _ in 0..<2 { _ = texts.isKnownLive(message(), connection: 1, isSettling: false) }
        for _ in 0..<2 {
            texts.historyBegan()
            for _ in 0..<2 { #expect(texts.isKnownFromHistory(message()) == true) }
        }
        texts.historyBegan()
        for known in [true, true, false] { #expect(texts.isKnownFromHistory(message()) == known) }
        #expect(texts.isKnownFromHistory(message(from: "eve")) == false)
    }

    @Test("over another link the same text is a duplicate only at once, or with the same time")
    func links() {
        let texts = SeenTexts()
        _ = texts.isKnownLive(message(), connection: 1, isSettling: false)
        #expect(texts.isKnownLive(message(), connection: 2, isSettling: false) == false)
        #expect(texts.isKnownLive(message(), connection: 3, isSettling: true) == true)
        #expect(texts.isKnownLive(message(), connection: 3, isSettling: true) == true)
        #expect(texts.isKnownLive(message(), connection: 3, isSettling: true) == false)
        _ = texts.isKnownLive(message("x", at: 1), connection: 1, isSettling: false)
        #expect(texts.isKnownLive(message("x", at: 1), connection: 2, isSettling: false) == true)
        #expect(texts.isKnownLive(message("x", at: 2), connection: 2, isSettling: true) == false)
    }

    @Test("the number of texts is bounded")
    func capacity() {
        let texts = SeenTexts()
        for number in 0...3 * SeenTexts.capacity {
            _ = texts.isKnownLive(message("\(number)"), connection: 1, isSettling: false)
        }
        texts.historyBegan()
        #expect(texts.isKnownFromHistory(message("0")) == false)
        #expect(texts.isKnownFromHistory(message("\(3 * SeenTexts.capacity)")) == true)
    }
}
