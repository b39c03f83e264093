import BridgeTestSupport
import ChatModel
import Testing

@testable import Store

@Suite("Pages and searches")
struct StorePageTests {
    private func places(_ stage: StoreStage, _ key: StoredRoomKey, _ query: StoredPageQuery) async throws
        -> StoredPlaces
    {
        try await ask { stage.store.findPlaces(key, query, $0) }
    }

    /// The places that all steps of a search find.
    private func found(_ stage: StoreStage, _ search: StoredSearch) async throws -> [Int64] {
        var steps: [[Int64]] = []
        var next: StoredSearch? = search
        while let asked = next {
            let step = try await ask { stage.store.search(.lobby, asked, $0) }
            steps.append(step.found.map(\.sequence))
            next = step.rest
        }
        return Array((search.isForwards ? steps : steps.reversed()).joined())
    }

    /// The messages that match, by the definition at ``StoredSearch``.
    private func matching(_ search: StoredSearch, _ rows: [StoredMessage]) -> [Int64] {
        func folded(_ text: String) -> [UInt8] { text.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 } }
        func named(_ nick: String) -> [UInt8] {
            let pairs = search.foldsPunctuation ? [("[", "{"), ("]", "}"), ("\\", "|"), ("~", "^")] : []
            return folded(pairs.reduce(nick) { $0.replacing($1.0, with: $1.1) })
        }
        let part = folded(search.text ?? "")
        let found = rows.filter { row in
            guard row.kind == .message || row.kind == .notice, !row.isTakenBack, !search.without.cover(row) else {
                return false
            }
            if let after = search.after, row.at < after { return false }
            if let before = search.before, row.at > before { return false }
            if let nick = search.nick, named(nick) != named(row.nick) { return false }
            let text = folded(row.text)
            return part.isEmpty || text.indices.contains { text[$0...].starts(with: part) }
        }.map(\.sequence)
        return Array(search.isForwards ? found.prefix(search.limit) : found.suffix(search.limit))
    }

    /// A random sender: upstream with an id or a name or neither, or local with an account or a nick.
    private func speak(_ row: inout StoredMessage, _ random: inout SeededGenerator) {
        let number = Int.random(in: 0..<2, using: &random)
        row.sender = ChatPerson()
        row.author = nil
        switch Int.random(in: 0..<6, using: &random) {
        case 0...1:
            let ids = ["0e5a7f3c-1111-4222-8333-abcdefabcdef", "0E5A7F3C-1111-4222-8333-ABCDEFABCDEF"]
            row.sender = ChatPerson(id: ChatID(ids[number]), name: "Remy")
        case 2: row.sender = ChatPerson(name: "Remy")
        case 3: break
        default:
            row.sender = ChatPerson(id: ChatID("puppet"), name: "Ann")
            row.author = ChatID("puppet")
            row.account = number == 0 ? "ann" : nil
            row.nick = number == 0 ? "ann" : "Bo[b]"
        }
    }

    private func mutes(_ random: inout SeededGenerator) -> StoredMutes {
        var mutes = StoredMutes()
        switch Int.random(in: 0..<8, using: &random) {
        case 0: mutes.ids = [ChatID("0e5a7f3c-1111-4222-8333-abcdefabcdef")]
        case 1: mutes.names = ["Remy", StoredMutes.nameless]
        case 2: mutes.accounts = ["ann"]
        case 3:
            mutes.nicks = [Bool.random(using: &random) ? "bo[b]" : "bo{b}"]
            mutes.foldsAsRFC1459 = Bool.random(using: &random)
        default: break
        }
        return mutes
    }

    @Test("the disk finds the pages that memory finds, whatever the clocks", arguments: LawSeeds.seeds(12))
    func pages(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let stage = try StoreStage { $0.pageStepCount = 1 + Int(seed % 7) }
        var rows: [StoredMessage] = []
        var place: Int64 = 0
        for _ in 0..<Int.random(in: 0...60, using: &random) {
            place += Int64.random(in: 1...3, using: &random)
            var row = StoredMessage.plain(place, at: 1000 + Int64.random(in: 0...40, using: &random))
            row.isTakenBack = Int.random(in: 0..<5, using: &random) == 0
            if row.isTakenBack { row.text = "" }
            if Int.random(in: 0..<5, using: &random) == 0 { row.kind = Bool.random(using: &random) ? .event : .change }
            speak(&row, &random)
            rows.append(row)
        }
        // Another room's messages are in none of it.
        await stage.submitAndSettle(
            rows.map { .message(.lobby, $0) } + (0..<5).map { .message(.attic, .plain($0, at: 1010)) })
        func reference() -> StoredReference {
            switch Int.random(in: 0..<13, using: &random) {
            case 12:
                .messageOrTime(
                    Bool.random(using: &random) ? rows.randomElement(using: &random)?.msgid ?? "none" : "gone",
                    ChatTimestamp(milliseconds: 995 + Int64.random(in: 0...50, using: &random)))
            case 0: .beginning
            case 1: .message("unknown")
            case 10...11: .timeOrBeginning(ChatTimestamp(milliseconds: 995 + Int64.random(in: 0...50, using: &random)))
            case 2...5: .message(rows.randomElement(using: &random)?.msgid ?? "none")
            default: .time(ChatTimestamp(milliseconds: 995 + Int64.random(in: 0...50, using: &random)))
            }
        }
        for _ in 0..<300 {
            let selection: StoredPageQuery.Selection =
                switch Int.random(in: 0..<6, using: &random) {
                case 0: .newest(after: nil, before: nil)
                case 1: .newest(after: reference(), before: nil)
                case 2: .newest(after: nil, before: reference())
                case 3: .oldest(after: reference())
                case 4: .around(reference())
                default: .between(reference(), reference())
                }
            let query = StoredPageQuery(
                selection, limit: Int.random(in: 0...12, using: &random), withTakenBack: Bool.random(using: &random),
                withEvents: Bool.random(using: &random), without: mutes(&random))
            #expect(try await places(stage, .lobby, query) == StoredPlaces(query, of: rows), "seed \(seed): \(query)")
        }
    }

    @Test("whoever leaves out people who speak most has others wait for a step, and not for the page")
    func turns() async throws {
        let stage = try StoreStage { $0.pageStepCount = 100 }
        var rows = (0..<2000).map { StoredMessage.plain($0) }
        for place in [3, 4, 1990] { rows[place].sender = ChatPerson(id: ChatID("other")) }
        await stage.submitAndSettle(rows.map { .message(.lobby, $0) })
        var query = StoredPageQuery(.newest(after: nil, before: nil), limit: 5)
        query.without.ids = [ChatID("p")]
        let asked = query
        let store = stage.store
        let answers = AsyncStream<String>.makeStream()
        // While the reader is held here, both are asked.
        store.countMessages(.lobby, after: -1, through: .max) { _ in
            store.findPlaces(.lobby, asked) { answer in
                answers.continuation.yield("page \((try? answer.get().sequences) ?? [])")
            }
            for number in 0..<3 {
                store.countMessages(.lobby, after: -1, through: .max) { _ in answers.continuation.yield("\(number)") }
            }
        }
        var told: [String] = []
        for await answer in answers.stream {
            told.append(answer)
            if told.count == 4 { break }
        }
        #expect(told == ["0", "1", "2", "page [3, 4, 1990]"])
    }

    @Test("a room of which nothing is kept has empty pages")
    func unknownRoom() async throws {
        let stage = try StoreStage()
        let query = StoredPageQuery(.oldest(after: .time(ChatTimestamp(milliseconds: 5))), limit: 5)
        #expect(try await places(stage, .attic, query) == StoredPlaces(spans: [.end]))
        let unknown = StoredPageQuery(.around(.message("m")), limit: 5)
        #expect(try await places(stage, .attic, unknown) == StoredPlaces(spans: [nil]))
        #expect(try await found(stage, StoredSearch(text: "x", limit: 5)) == [])
    }

    @Test("the disk finds what memory finds", arguments: LawSeeds.seeds(12))
    func searches(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let words = ["soup", "SOUP", "100%", "a_b", "back\\slash", "été", "Été", "garlic bread", "'; --", "%"]
        let count = 1 + Int(seed % 7)
        let stage = try StoreStage { $0.pageStepCount = count }
        var rows: [StoredMessage] = []
        for place in 0..<40 as Range<Int64> {
            let text = (0..<3).compactMap { _ in words.randomElement(using: &random) }.joined(separator: " ")
            var row = StoredMessage.plain(place, at: Int64.random(in: 0...30, using: &random), text: text)
            row.nick = ["remy", "Remy", "linguini", "bob[~]", "Bob{^}"].randomElement(using: &random) ?? ""
            row.isTakenBack = Int.random(in: 0..<6, using: &random) == 0
            if Int.random(in: 0..<9, using: &random) == 0 { row.kind = .gap }
            let nick = row.nick
            speak(&row, &random)
            row.nick = nick
            rows.append(row)
        }
        await stage.submitAndSettle(rows.map { .message(.lobby, $0) })
        for _ in 0..<200 {
            let (from, to) = (Int64.random(in: 0...30, using: &random), Int64.random(in: 0...30, using: &random))
            var search = StoredSearch(limit: Int.random(in: 0...8, using: &random))
            search.text = Bool.random(using: &random) ? words.randomElement(using: &random) : nil
            search.nick =
                Bool.random(using: &random)
                ? ["REMY", "linguini", "nobody", "BOB{^}", "bob[^]"].randomElement(using: &random) : nil
            search.foldsPunctuation = Bool.random(using: &random)
            search.after = Bool.random(using: &random) ? ChatTimestamp(milliseconds: from) : nil
            search.before = Bool.random(using: &random) ? ChatTimestamp(milliseconds: to) : nil
            search.without = mutes(&random)
            let wanted = matching(search, rows)
            #expect(try await found(stage, search) == wanted, "seed \(seed): \(search)")
            var next: StoredSearch? = search
            while let asked = next {
                let step = asked.step(in: rows, count: count)
                #expect(try await ask { stage.store.search(.lobby, asked, $0) } == step, "seed \(seed): \(asked)")
                next = step.rest
            }
        }
    }

    @Test("a step of a search ends when it has looked at many messages, or at many bytes")
    func searchSteps() async throws {
        let stage = try StoreStage()
        let long = String(repeating: "a", count: 400 * 1024)
        await stage.submitAndSettle((0..<8).map { .message(.lobby, .plain($0, text: long)) })
        await stage.submitAndSettle((8..<3000).map { .message(.lobby, .plain($0)) })
        let rows = try await stage.messages(.lobby)
        let pattern = String(repeating: "a", count: 400) + "b"
        for search in [
            StoredSearch(text: pattern, limit: 5),
            StoredSearch(text: pattern, after: ChatTimestamp(milliseconds: 0), limit: 5),
        ] {
            var next: StoredSearch? = search
            var steps: [StoredSearchStep] = []
            while let asked = next {
                let step = try await ask { stage.store.search(.lobby, asked, $0) }
                #expect(step == asked.step(in: rows))
                #expect(step.byteCount < StoredSearch.stepBytes + long.utf8.count)
                steps.append(step)
                next = step.rest
            }
            #expect(steps.count == 4 && steps.allSatisfy { $0.found.isEmpty && !$0.isCut })
            #expect(steps.reduce(0) { $0 + $1.byteCount } == rows.reduce(0) { $0 + $1.text.utf8.count })
        }
    }

    @Test("a search looks at so many messages of a room, and says that it looked at no more")
    func searchBound() {
        let rows = (0...Int64(StoredSearch.maxLooked)).map { StoredMessage.plain($0, text: $0 == 0 ? "first" : "x") }
        var next: StoredSearch? = StoredSearch(text: "first", limit: 5)
        var steps: [StoredSearchStep] = []
        while let asked = next {
            steps.append(asked.step(in: rows))
            next = steps.last?.rest
        }
        #expect(steps.allSatisfy { $0.found.isEmpty } && steps.last?.isCut == true)
        #expect(steps.count == StoredSearch.maxLooked / StoredSearch.stepCount)
    }

    @Test("a page sees what was handed over before it")
    func sees() async throws {
        let stage = try StoreStage()
        for place in 0..<50 as Range<Int64> {
            stage.submit([.message(.lobby, .plain(place))])
            let query = StoredPageQuery(.newest(after: nil, before: nil), limit: 1)
            #expect(try await places(stage, .lobby, query).sequences == [place])
        }
    }

    @Test("people who are not to be heard are known by what stays theirs")
    func muted() {
        func row(
            _ sender: ChatPerson, author: ChatID? = nil, account: String? = nil, nick: String = "Bo[b]",
            kind: StoredMessage.Kind = .message
        ) -> StoredMessage {
            StoredMessage(
                kind: kind, sequence: 0, msgid: "m", sender: sender, at: ChatTimestamp(milliseconds: 0), nick: nick,
                source: nick, account: account, text: "", author: author)
        }
        let (lower, upper) = ("0e5a7f3c-1111-4222-8333-abcdefabcdef", "0E5A7F3C-1111-4222-8333-ABCDEFABCDEF")
        var mutes = StoredMutes()
        mutes.ids = [ChatID(lower)]
        mutes.names = ["Remy"]
        mutes.accounts = ["ann"]
        mutes.nicks = ["bo[b]"]
        let puppet = ChatID("p")
        #expect(mutes.cover(row(ChatPerson(id: ChatID(upper), name: "x"))))
        #expect(mutes.cover(row(ChatPerson(name: "Remy"))))
        #expect(!mutes.cover(row(ChatPerson(id: ChatID("other"), name: "Remy"))))
        #expect(mutes.cover(row(ChatPerson(id: puppet), author: puppet)))
        #expect(!mutes.cover(row(ChatPerson(id: puppet), author: puppet, nick: "bo{b}")))
        #expect(mutes.cover(row(ChatPerson(id: ChatID(lower)), author: puppet, account: "ann", nick: "x")))
        #expect(!mutes.cover(row(ChatPerson(id: ChatID(lower)), author: puppet, account: "bob")))
        #expect(!mutes.cover(row(ChatPerson(id: ChatID(lower)), kind: .gap)))
        mutes.foldsAsRFC1459 = true
        mutes.nicks = ["bo{b}|^"]
        #expect(mutes.cover(row(ChatPerson(id: puppet), author: puppet, nick: "BO[b]\\~")))
    }

    @Test("with a message that is taken back goes what was done to it, and nothing else")
    func takenBack() async throws {
        let stage = try StoreStage()
        func event(_ place: Int64, about msgid: String) -> StoredMessage {
            var event = StoredMessage.plain(place)
            event.kind = .event
            event.text = "TAGMSG"
            event.clientTags = [StoredTag(name: "+reply", value: msgid), StoredTag(name: "+draft/react", value: "x")]
            return event
        }
        var change = event(5, about: "m0")
        change.kind = .change
        change.text = "*** changed: resign"
        change.sentAs = "resign"
        var other = event(6, about: "m1")
        other.kind = .change
        let rows: [StoredMessage] = [
            .plain(0), .plain(1), event(2, about: "m0"), event(3, about: "m1"), event(4, about: "m"), change, other,
        ]
        await stage.submitAndSettle(
            rows.map { .message(.lobby, $0) } + rows.map { .message(.attic, $0) }
                + [.takeBack(.lobby, msgid: rows[0].msgid)])
        let query = StoredPageQuery(.newest(after: nil, before: nil), limit: 9, withTakenBack: true, withEvents: true)
        let isAbout = rows[2].clientTags[0].value == rows[0].msgid
        try #require(isAbout)
        #expect(try await places(stage, .lobby, query).sequences == [0, 1, 3, 4, 6])
        #expect(try await places(stage, .attic, query).sequences == [0, 1, 2, 3, 4, 5, 6])
        // Events about a message are visible to every reader, and found by its text, as long as the message is there.
        let words = StoredPageQuery(.newest(after: nil, before: nil), limit: 9)
        #expect(try await places(stage, .lobby, words).sequences == [1, 6])
        #expect(try await places(stage, .attic, words).sequences == [0, 1, 5, 6])
        let search = StoredSearch(text: "resign", limit: 9)
        #expect(try await ask { stage.store.search(.lobby, search, $0) }.found == [])
        #expect(try await ask { stage.store.search(.attic, search, $0) }.found == [change])
        await stage.submitAndSettle([.restore(.lobby, msgid: rows[0].msgid)])
        #expect(try await ask { stage.store.search(.lobby, search, $0) }.found == [change])
    }
}
