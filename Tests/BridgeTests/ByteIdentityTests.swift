import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import Identities
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Names and ids of a backend are bytes: what Unicode and Swift take for the same text is two people there.
@Suite("Names and ids by their bytes")
struct ByteIdentityTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var one: String
        var other: String
    }

    static let rows = [
        Row(testDescription: "one letter, and a letter with an accent", one: "jos\u{E9}", other: "jose\u{301}"),
        Row(testDescription: "marks in another order", one: "q\u{323}\u{307}", other: "q\u{307}\u{323}"),
        Row(testDescription: "a letter and a unit", one: "\u{C5}", other: "\u{212B}"),
        Row(testDescription: "a syllable and its letters", one: "\u{AC00}", other: "\u{1100}\u{1161}"),
        Row(
            testDescription: "longer than what is kept in place", one: "a name that is long jos\u{E9}",
            other: "a name that is long jose\u{301}"),
    ]

    @Test("what Swift takes for equal stays two of everything that a backend names", arguments: rows)
    func twoOfEverything(_ row: Row) {
        #expect(row.one == row.other, "Swift thinks so")
        #expect(ChatID(row.one) != ChatID(row.other))
        let people = [ChatPerson(name: row.one), ChatPerson(name: row.other)]
        #expect(people[0] != people[1] && Set(people).count == 2)
        let keys = people.map { IdentityMap.remoteKey($0, backend: "b") }
        #expect(keys[0] != keys[1] && Set(keys).count == 2)
        let rooms = [row.one, row.other].map { StoredRoomKey(backend: "b", room: $0) }
        #expect(rooms[0] != rooms[1] && Set(rooms).count == 2)
        let ring = SeenMessageIDs()
        let isNew = [row.one, row.other].map { ring.insert(SeenMessageIDs.Key(id: ChatID($0), sender: nil)) }
        #expect(isNew == [true, true])
        let ours = DialectContext(selfNames: [row.one], room: "r")
        #expect(ours.isSelf(people[0]) && !ours.isSelf(people[1]))
        var mutes = StoredMutes()
        mutes.names = [row.one]
        func said(_ name: String) -> StoredMessage {
            StoredMessage(
                sequence: 0, msgid: "m", sender: ChatPerson(name: name), at: ChatTimestamp(milliseconds: 0), nick: "n",
                source: "n", text: "t")
        }
        #expect(mutes.cover(said(row.one)) && !mutes.cover(said(row.other)))
    }

    @Test("of two people whom Swift takes for one each has a nick, also when the other is away", arguments: rows)
    func twoPeople(_ row: Row) {
        let map = IdentityMap(IdentitySettings(BridgeSettings(serverName: "bridge", instanceID: "t", rooms: [])))
        let now = MonotonicInstant(nanoseconds: 0)
        let (one, other) = (ChatPerson(name: row.one), ChatPerson(name: row.other))
        let first = map.resolve(one, backend: "b", authenticated: true, now: now)
        map.entered(first.id)
        map.left(first.id, now: now)
        let second = map.resolve(other, backend: "b", authenticated: true, now: now)
        #expect(first.id != second.id && map[first.id] != nil)
        #expect(map[first.id]?.nick != map[second.id]?.nick)
        #expect(map.resolve(one, backend: "b", authenticated: true, now: now).id == first.id)
    }

    @Test("any two texts of different bytes are two keys, however they are spelled")
    func law() {
        // Letters, marks that join them, and what they are composed to.
        let parts = [
            "e", "\u{301}", "\u{E9}", "\u{327}", "\u{229}", "\u{1E1D}", "a", "\u{30A}", "\u{E5}", "\u{212B}", "\0",
        ]
        for seed in LawSeeds.seeds(20) {
            var random = SeededGenerator(seed: seed)
            var texts: [[UInt8]: String] = [:]
            for _ in 0..<200 {
                let text = (0..<Int.random(in: 0...9, using: &random)).map { _ in
                    parts.randomElement(using: &random) ?? ""
                }.joined()
                texts[Array(text.utf8)] = text
            }
            #expect(Set(texts.values.map { ChatID($0) }).count == texts.count, "seed \(seed)")
            #expect(Set(texts.values.map { ChatPerson(name: $0) }).count == texts.count, "seed \(seed)")
            #expect(Set(texts.values.map { StoredRoomKey(backend: "", room: $0) }).count == texts.count, "seed \(seed)")
            #expect(
                Set(texts.values.map { IdentityMap.remoteKey(ChatPerson(name: $0), backend: "b") }).count
                    == texts.count, "seed \(seed)")
            // Of the accounts that tokens may have, no two are one for Swift.
            let accounts = texts.values.filter {
                IdentityMap.isAccountName(ChatPerson(name: $0), backend: "b")
            }
            #expect(Set(accounts.map(AccountName.fold)).count == accounts.count, "seed \(seed)")
        }
    }

    @Test("an account may be named by a backend in the composed form, and in no other", arguments: rows)
    func accounts(_ row: Row) {
        let (one, other) = (ChatPerson(name: row.one), ChatPerson(name: row.other))
        #expect(!IdentityMap.isAccountName(one, backend: "b") || !IdentityMap.isAccountName(other, backend: "b"))
        #expect(!UnicodeForm.isComposed(row.other) && UnicodeForm.isComposed(UnicodeForm.composed(row.other)))
        let book = AccountTable(
            [AccountSettings(name: "boss", password: .unmatchable(iterations: 1), tokenOwners: [row.one])],
            minIterations: nil)
        #expect(book.account(of: one)?.name == "boss" && book.account(of: other) == nil)
    }
}
