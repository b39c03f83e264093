import ChatModel
import Testing

@testable import Rooms

@Suite("PrivateConversations")
struct PrivateConversationsTests {
    private typealias Pair = PrivateConversations.Pair

    private func at(_ milliseconds: Int) -> ChatTimestamp { ChatTimestamp(milliseconds: Int64(milliseconds)) }

    /// Adds a message between two accounts.
    private func say(
        _ conversations: inout PrivateConversations, _ a: String, _ b: String, at time: Int, text: String? = nil
    ) {
        let pair = Pair(a, b)
        conversations.open(pair, names: [a, b], inMemory: text != nil)
        let place = conversations.takePlace(in: pair, by: a, at: at(time))
        guard let text else { return }
        conversations.append(
            StoredMessage(sequence: place, msgid: "m\(time)", at: at(time), nick: a, source: a, text: text), to: pair)
    }

    @Test("beyond the limit the conversation quiet for longest is hidden, from that account alone")
    func boundedOfAccount() {
        var conversations = PrivateConversations()
        let count = PrivateConversations.maxCountOfAccount
        for index in 0..<count { say(&conversations, "ann", "p\(index)", at: index) }
        say(&conversations, "ann", "p0", at: count)
        #expect(conversations.takeChanges() == [])
        say(&conversations, "one-more", "ann", at: count + 1)
        #expect(conversations.takeChanges() == [] && conversations.count == count + 1)
        #expect(conversations.newest(of: "p1").map(\.partner) == ["ann"])
        #expect(conversations.newest(of: "ann").count == count)
        #expect(!conversations.isShown(Pair("ann", "p1"), to: "ann"))
        #expect(conversations.isShown(Pair("ann", "p0"), to: "ann"))
        #expect(conversations.isShown(Pair("ANN", "one-more"), to: "ann"))
        // A new message shows all of it again, in place of a less valuable one.
        say(&conversations, "p1", "ann", at: count + 2)
        #expect(conversations.isShown(Pair("ann", "p1"), to: "ann"))
        #expect(!conversations.isShown(Pair("ann", "one-more"), to: "ann"))
        #expect(conversations.takePlace(in: Pair("ann", "p1"), by: "ann", at: nil) == 2)
        // Once hidden from the other too, it is gone.
        for index in 0..<count { say(&conversations, "one-more", "q\(index)", at: 2 * count + index) }
        #expect(conversations.takeChanges() == [.removeConversation(.conversation("ann", "one-more"))])
    }

    @Test("talking to many others, visitors or accounts, removes no conversation from a partner")
    func notRemoved() {
        var conversations = PrivateConversations()
        let count = PrivateConversations.maxCountOfAccount
        say(&conversations, "mallory", "ann", at: 0)
        for index in 0..<(2 * count) {
            say(&conversations, "mallory", PrivateConversations.visitor("p\(index)"), at: 1 + index)
            say(&conversations, "mallory", "q\(index)", at: 1 + index)
        }
        #expect(conversations.isShown(Pair("ann", "mallory"), to: "ann"))
        #expect(!conversations.isShown(Pair("ann", "mallory"), to: "mallory"))
        #expect(conversations.newest(of: "mallory").count == count)
        // Nor does a visitor's nick, which has no owner.
        say(&conversations, PrivateConversations.visitor("guest"), "ann", at: 5000)
        for index in 0..<(2 * count) {
            say(&conversations, PrivateConversations.visitor("guest"), "q\(index)", at: index)
        }
        #expect(conversations.isShown(Pair(PrivateConversations.visitor("guest"), "ann"), to: "ann"))
    }

    @Test("in memory, the account with the most loses its own, though others are shown it")
    func floodsThemselves() {
        var conversations = PrivateConversations()
        let text = String(repeating: "x", count: 200_000)
        say(&conversations, "ann", "bob", at: 0, text: "quiet")
        say(&conversations, "mallory", "ann", at: 1, text: "evidence")
        for index in 0..<300 {
            say(&conversations, "mallory", PrivateConversations.visitor("p\(index)"), at: 2 + index, text: text)
        }
        #expect(conversations.contains(Pair("ann", "bob")) && conversations.contains(Pair("ann", "mallory")))
        #expect(!conversations.contains(Pair("mallory", PrivateConversations.visitor("p0"))))
        #expect(conversations.contains(Pair("mallory", PrivateConversations.visitor("p299"))))
    }

    @Test("a conversation that begins anew reuses no sequence number")
    func places() {
        var conversations = PrivateConversations()
        for index in 0..<3 { say(&conversations, "ann", "bob", at: index) }
        conversations.forget(account: "bob")
        conversations.open(Pair("ann", "bob"), names: ["ann", "bob"], inMemory: false)
        #expect(conversations.takePlace(in: Pair("ann", "bob"), by: "ann", at: at(3)) == 3)
    }

    @Test("incoming messages alone evict no conversation, in the next process either")
    func notDrivenOut() {
        var conversations = PrivateConversations()
        let count = PrivateConversations.maxCountOfAccount
        for index in 0..<(count - 1) { say(&conversations, "Ann", "p\(index)", at: index) }
        for index in 0..<500 { say(&conversations, "troll\(index)", "ann", at: 1000 + index) }
        for index in 0..<(count - 1) { #expect(conversations.isShown(Pair("ann", "p\(index)"), to: "ann")) }
        #expect(conversations.isShown(Pair("ann", "troll499"), to: "ann"))
        #expect(conversations.newest(of: "ann").count == count)

        var next = PrivateConversations()
        next.restore(
            (0..<(count - 1)).map {
                StoredConversation(
                    key: .conversation("ann", "p\($0)"), newestAt: at($0), nextSequence: 1, speakers: ["Ann", "p\($0)"])
            } + [
                StoredConversation(
                    key: .conversation("ann", "troll"), newestAt: at(1000), nextSequence: 1, speakers: ["troll"])
            ], [], spell: { $0 })
        say(&next, "another", "ann", at: 2000)
        #expect(!next.isShown(Pair("ann", "troll"), to: "ann") && next.newest(of: "ann").count == count)
    }

    @Test("visitors are evicted first: messages from accounts stay")
    func visitorsFirst() {
        var conversations = PrivateConversations()
        let count = PrivateConversations.maxCountOfAccount
        say(&conversations, "bob", "ann", at: 0)
        for index in 0..<(2 * count) {
            say(&conversations, PrivateConversations.visitor("v\(index)"), "ann", at: 1 + index)
        }
        #expect(conversations.contains(Pair("ann", "bob")) && conversations.count == count)
    }

    @Test("the total is bounded: one of the account with the most is removed")
    func boundedInAll() {
        var conversations = PrivateConversations()
        let count = PrivateConversations.maxCount
        for index in 0..<(count - 3) { say(&conversations, "a\(index)", "b\(index)", at: index) }
        for index in 0..<3 { say(&conversations, "many", "c\(index)", at: count + index) }
        say(&conversations, "ann", "bob", at: count + 9)
        #expect(conversations.takeChanges() == [.removeConversation(.conversation("c0", "many"))])
        #expect(conversations.count == count)
    }

    @Test("restored ones are bounded too, and the newest stay")
    func boundedInFile() {
        var conversations = PrivateConversations()
        let count = PrivateConversations.maxCountOfAccount + 300
        func visitor(_ index: Int) -> String { PrivateConversations.visitor("a\(index)") }
        conversations.restore(
            (0...count).map {
                StoredConversation(key: .conversation(visitor($0), "b"), newestAt: at(-$0), nextSequence: 3)
            } + [StoredConversation(key: .conversation("x", "y"), newestAt: nil, nextSequence: 3)], [], spell: { $0 })
        #expect(conversations.count == PrivateConversations.maxCountOfAccount)
        let changes = conversations.takeChanges()
        #expect(changes.count == count + 2 - PrivateConversations.maxCountOfAccount)
        #expect(changes.contains(.removeConversation(.conversation("x", "y"))))
        #expect(conversations.contains(Pair(visitor(0), "b")) && !conversations.contains(Pair(visitor(count), "b")))
        #expect(conversations.takePlace(in: Pair(visitor(0), "b"), by: "b", at: nil) == 3)
    }

    @Test("in memory, messages are bounded by bytes: quiet conversations go, active ones stay")
    func boundedInMemory() {
        var conversations = PrivateConversations()
        let text = String(repeating: "x", count: 200_000)
        for index in 0..<150 {
            // An active one.
            say(&conversations, "ann", index % 10 == 9 ? "p0" : "p\(index)", at: index, text: text)
        }
        let left = (0..<150).filter { conversations.contains(Pair("ann", "p\($0)")) }
        let bytes = left.reduce(0) { $0 + (conversations.archive(Pair("ann", "p\($1)"))?.byteCount ?? 0) }
        #expect(bytes <= PrivateConversations.maxMemoryBytes && bytes > PrivateConversations.maxMemoryBytes / 2)
        #expect(left.contains(0) && !left.contains(1) && left.contains(148))
        #expect(conversations.archive(Pair("ann", "p1")) == nil)
        let first = conversations.archive(Pair("ann", "p0"))?.messages(after: -1, through: .max, limit: 1).first
        #expect(first?.msgid == "m0")
    }

    @Test("an account's last nicks lead to it, until another has them or its conversations are gone")
    func nicks() {
        var conversations = PrivateConversations()
        conversations.note("Ann", folded: "ann", of: "ann")
        #expect(conversations.holder(of: "ann") == nil && conversations.takeChanges() == [])
        say(&conversations, "ann", "Bob", at: 0)
        for index in 0...PrivateConversations.maxNicksOfAccount {
            conversations.note("N\(index)", folded: "n\(index)", of: "ann")
        }
        #expect(conversations.holder(of: "n0") == nil && conversations.holder(of: "n1") == "ann")
        #expect(conversations.lastNick(of: "ann") == "N\(PrivateConversations.maxNicksOfAccount)")
        _ = conversations.takeChanges()
        conversations.note("N4", folded: "n4", of: "ann")
        #expect(conversations.takeChanges() == [])
        conversations.note("n4", folded: "n4", of: "Bob")
        #expect(conversations.holder(of: "n4") == "bob" && conversations.lastNick(of: "ann") == "N3")
        #expect(
            conversations.takeChanges() == [
                .removeNick(folded: "n4"), .nick(StoredNick(folded: "n4", nick: "n4", account: "Bob")),
            ])
        // A user without conversations had it since.
        conversations.note("N3", folded: "n3", of: "cleo")
        #expect(conversations.holder(of: "n3") == nil && conversations.lastNick(of: "ann") == "N2")
        _ = conversations.takeChanges()
        conversations.forget(account: "ANN")
        #expect(
            conversations.count == 0 && conversations.holder(of: "n2") == nil && conversations.holder(of: "n4") == nil)
        #expect(
            Set(conversations.takeChanges().map { "\($0)" })
                == Set(
                    [
                        StoreOperation.removeConversation(.conversation("ann", "bob")), .removeNick(folded: "n1"),
                        .removeNick(folded: "n2"), .removeNick(folded: "n4"),
                    ].map { "\($0)" }))
    }

    @Test("records of an earlier process are restored, with present spellings")
    func restored() {
        var conversations = PrivateConversations()
        conversations.restore(
            [StoredConversation(key: .conversation("ann", "bob"), newestAt: at(5), nextSequence: 9)],
            [
                StoredNick(folded: "annie", nick: "Annie", account: "ANN"),
                StoredNick(folded: "x", nick: "X", account: "gone"),
            ], spell: { $0.lowercased() == "ann" ? "Ann" : $0 })
        #expect(conversations.takeChanges() == [.removeNick(folded: "x")])
        #expect(conversations.name(of: "ann") == "Ann" && conversations.name(of: "bob") == "bob")
        #expect(conversations.holder(of: "annie") == "ann" && conversations.lastNick(of: "ann") == "Annie")
        #expect(conversations.newest(of: "BOB").map(\.partner) == ["ann"])
        #expect(conversations.takePlace(in: Pair("Bob", "Ann"), by: "Bob", at: at(6)) == 9)
    }
}
