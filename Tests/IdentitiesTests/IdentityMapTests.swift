import BridgeTestSupport
import BridgeTypes
import ChatModel
import IRCProtocol
import Testing
import WireBytes

@testable import Identities

/// The bridge's default settings.
private func settings(
    instanceID: String = "tests", mayBeTaken: @escaping @Sendable (String) -> Bool = { _ in true }
) -> IdentitySettings {
    IdentitySettings(
        nicks: NickSettings(),
        rules: NickRules(
            fold: { IRCCasemapping.ascii.fold($0) }, isLegal: { IRCNames.isValidNickname($0) }, mayBeTaken: mayBeTaken),
        instanceID: instanceID, reserved: ["irc.example", "bridge", "*bridge"], accounts: [])
}

@Suite("IdentityMap")
struct IdentityMapTests {
    private let map = IdentityMap(settings())

    private func at(_ seconds: Int64) -> MonotonicInstant { MonotonicInstant(nanoseconds: seconds * 1_000_000_000) }

    @discardableResult
    private func meet(
        _ id: String?, _ name: String?, at seconds: Int64 = 0, backend: String = "chat"
    ) -> IdentityMap.Resolution {
        map.resolve(
            ChatPerson(id: id.map { ChatID($0) }, name: name), backend: backend, authenticated: false, now: at(seconds))
    }

    private func nick(_ id: PersonID) -> String? { map[id]?.nick }

    @discardableResult
    private func addLocal(_ nick: String, client: UInt64 = 1) -> PersonID {
        map.addLocal(client: ClientID(rawValue: client), nick: nick, ident: "~u", host: "h", realname: "r")
    }

    @Test("the same id is the same user, in either case of a UUID")
    func sameID() {
        let a = meet("6f9619ff-8b86-d011-b42d-00c04fc964ff", "Remy")
        let b = meet("6F9619FF-8B86-D011-B42D-00C04FC964FF", "Remy")
        #expect(a.id == b.id)
        #expect(meet("another", "Remy").id != a.id)
    }

    @Test("the same id on another backend is another user")
    func otherBackend() {
        #expect(meet("1", "Remy").id != meet("1", "Remy", backend: "other").id)
    }

    @Test("a RELAYMSG name is never assigned as a nick where accounts may relay", arguments: [true, false])
    func relayedNames(relays: Bool) {
        let map = IdentityMap(settings(mayBeTaken: { !relays || !$0.contains("/") }))
        #expect(map.refusal(nick: "linguini/libera", holder: nil) == (relays ? .erroneous : nil))
        #expect(map.refusal(nick: "linguini", holder: nil) == nil)
    }

    @Test("a user without an id is identified by name")
    func nameIsID() {
        #expect(meet(nil, "Remy").id == meet(nil, "Remy").id)
        #expect(meet(nil, "Remy").id != meet("1", "Remy").id)
    }

    @Test("IRC users may not take a nick that is taken, reserved or confusable with one")
    func refusals() {
        meet("1", "Remy")
        let alice = addLocal("alice")
        for taken in ["Remy", "REMY", "rеmy", "alice", "a1ice", "аlice", "bridge", "irc.example"] {
            let isLegal = !taken.contains(".")
            #expect(map.refusal(nick: taken, holder: nil) == (isLegal ? .inUse : .erroneous), "\(taken)")
        }
        #expect(map.refusal(nick: "ALICE", holder: alice) == nil)
        #expect(map.refusal(nick: "bob", holder: nil) == nil)
        #expect(map.refusal(nick: "*bridge", holder: nil) == .erroneous)
    }

    @Test(
        "a message under an IRC user's upstream id does not take the user's nick")
    func ownID() {
        let id = map.puppetID(nick: "alice", backend: "chat").rawValue
        #expect(nick(meet(id, "Alice").id) == "Alice2")
        #expect(map.refusal(nick: "alice", holder: nil) == nil)
        let alice = addLocal("alice")
        #expect(nick(meet(id, "Alice").id) == "Alice2" && nick(alice) == "alice")
        map.remove(alice)
        // Another user's id is an ordinary name.
        #expect(nick(meet(map.puppetID(nick: "bob", backend: "chat").rawValue, "carol").id) == "carol")
    }

    @Test("a new user never takes the nick of a present one")
    func presentKeepsNick() {
        let first = meet("1", "Remy")
        map.entered(first.id)
        let second = meet("2", "Remy")
        #expect(nick(first.id) == "Remy")
        #expect(nick(second.id) == "Remy2")
    }

    @Test("the nick moves to a new user of the same name when its holder is absent")
    func nickMoves() {
        let first = meet("1", "Remy")
        map.entered(first.id)
        map.left(first.id, now: at(10))
        let second = meet("2", "Remy", at: 20)
        #expect(nick(second.id) == "Remy")
        #expect(map[first.id] == nil)
        // The old id returns while the nick is in use: as a new user.
        map.entered(second.id)
        let third = meet("1", "Remy", at: 30)
        #expect(third.id != first.id && third.id != second.id)
        #expect(nick(third.id) == "Remy2")
    }

    /// Other names that yield Remy's nick or a confusable one.
    static let others = [("REMY", "chat"), ("Remy!", "chat"), ("Remy", "other"), ("Rеmy", "chat")]

    @Test("the nick of a holder who left long ago moves to a new user, and does not move back", arguments: others)
    func nickIsGivenUp(_ name: String, _ backend: String) {
        let first = meet("1", "Remy")
        map.entered(first.id)
        map.left(first.id, isReported: true, now: at(10))
        let second = meet("2", name, at: 10 + 15 * 60, backend: backend)
        map.entered(second.id)
        #expect(nick(second.id) == (name == "Remy!" ? "Remy" : name))
        // The former holder is still known, under another nick.
        #expect(meet("1", "Remy", at: 2000).id == first.id && nick(first.id) == "Remy2")
        map.entered(first.id)
        map.left(second.id, isReported: true, now: at(2000))
        #expect(meet("1", "Remy", at: 9000) == IdentityMap.Resolution(id: first.id, realnameChanged: false))
        #expect(nick(first.id) == "Remy2")
    }

    @Test("it also moves at a rename, and never to a reserved name")
    func nickIsGivenUpToRenamed() {
        let first = meet("1", "Remy")
        map.entered(first.id)
        map.left(first.id, isReported: true, now: at(0))
        let second = meet("2", "Linguini")
        map.entered(second.id)
        #expect(meet("2", "remy", at: 15 * 60).renamed?.to == "remy")
        #expect(nick(first.id) == "Remy2")
        map.reserve(account: "remy")
        map.left(second.id, isReported: true, now: at(1000))
        #expect(nick(meet("3", "REMY", at: 9000).id) == "REMY3" && nick(second.id) == "remy")
    }

    @Test(
        "the nick does not move to others than who has the same name, while its holder may be there", arguments: others)
    func nickStays(_ name: String, _ backend: String) {
        let first = meet("1", "Remy")
        var now: Int64 = 0
        func stays(_ after: Int64) -> Bool {
            now += after
            let other = meet("at \(now)", name, at: now, backend: backend)
            defer { map.remove(other.id) }
            return nick(other.id) != "Remy" && nick(other.id) != name && nick(first.id) == "Remy"
        }
        #expect(stays(9000), "who was named, and never seen")
        map.entered(first.id)
        #expect(stays(9000), "who is there")
        map.left(first.id, now: at(now))
        #expect(stays(9000), "who was not seen for long")
        map.entered(first.id)
        map.left(first.id, isReported: true, now: at(now))
        #expect(stays(15 * 60 - 1), "who left a moment ago")
        map.invalidatePresence(on: "chat", now: at(now))
        #expect(stays(9000), "who may have come back unseen")
        map.entered(first.id)
        map.left(first.id, isReported: true, now: at(now))
        map.invalidatePresence(on: "another", now: at(now))
        #expect(!stays(15 * 60), "what happens elsewhere says nothing of them")
    }

    @Test("with authenticated ids the same name is another user", arguments: [true, false])
    func vouched(_ authenticated: Bool) {
        func meet(_ id: String, at seconds: Int64) -> PersonID {
            map.resolve(
                ChatPerson(id: ChatID(id), name: "Remy"), backend: "chat", authenticated: authenticated,
                now: at(seconds)
            ).id
        }
        let first = meet("1", at: 0)
        map.entered(first)
        map.left(first, isReported: true, now: at(1))
        #expect(nick(meet("2", at: 15 * 60)) == (authenticated ? "Remy2" : "Remy"))
        #expect(nick(meet("3", at: 1 + 15 * 60)) == (authenticated ? "Remy" : "Remy"))
    }

    @Test("a restored user has no known time of leaving")
    func restored() {
        map.restore(
            [
                StoredIdentity(
                    backend: "chat", person: ChatPerson(id: ChatID("1")), nick: "Remy", realname: "Remy",
                    lastSeen: ChatTimestamp(milliseconds: 0))
            ], now: Now(monotonic: at(90_000), wall: ChatTimestamp(milliseconds: 86_400_000)))
        #expect(nick(meet("2", "REMY", at: 90_000).id) == "REMY2")
    }

    @Test("an absent user loses the nick to an account and is assigned another")
    func givenUp() {
        let remy = meet("1", "Remy")
        #expect(map.refusal(nick: "Remy", holder: nil) == .inUse)
        for nick in ["Remy", "REMY", "rеmy"] { #expect(map.refusal(nick: nick, holder: nil, account: "ann") == nil) }
        let ann = map.addLocal(
            client: ClientID(rawValue: 1), nick: "rеmy", ident: "u", host: "h", realname: "r", account: "ann")
        #expect(nick(ann) == "rеmy" && nick(remy.id) == "Remy2" && map.person(nick: "Remy") == nil)
        #expect(meet("1", "Remy").id == remy.id)
        // Returned under another nick; a present user loses nothing.
        map.entered(remy.id)
        #expect(map.refusal(nick: "Remy2", holder: ann, account: "ann") == .inUse)
        map.left(remy.id, now: at(1))
        #expect(map.refusal(nick: "Remy2", holder: ann, account: "ann") == nil)
        map.rename(ann, to: "Remy2")
        #expect(nick(ann) == "Remy2" && map.person(nick: "Remy2")?.id == ann)
        #expect(nick(remy.id) == "Remy22" && map.person(nick: "Remy22")?.id == remy.id)
    }

    @Test("changes of a display name are shown at most every few seconds")
    func renames() {
        let person = meet("1", "A", at: 0)
        map.entered(person.id)
        let told = (1...20).filter { meet("1", "name \($0)", at: Int64($0)).realnameChanged }
        #expect(told == [1, 6, 11, 16])
        #expect(nick(person.id) == "name-16")
        #expect(meet("1", "name 20", at: 21).renamed?.to == "name-20")
    }

    @Test("an absent user's nick stays assigned for 30 days")
    func retention() {
        let first = meet("1", "Remy")
        map.entered(first.id)
        map.left(first.id, now: at(0))
        meet("x", "X", at: 30 * 24 * 3600 - 1)
        #expect(map.refusal(nick: "Remy", holder: nil) == .inUse)
        meet("y", "Y", at: 30 * 24 * 3600 + 1)
        #expect(map.refusal(nick: "Remy", holder: nil) == nil)
        #expect(map[first.id] == nil)
    }

    @Test("the 30 days restart at each absence")
    func retentionRestarts() {
        let day: Int64 = 24 * 3600
        let first = meet("1", "Remy")
        map.entered(first.id)
        map.left(first.id, now: at(0))
        map.entered(first.id)
        map.left(first.id, now: at(20 * day))
        meet("x", "X", at: 31 * day)
        #expect(nick(first.id) == "Remy")
        meet("y", "Y", at: 51 * day)
        #expect(map[first.id] == nil)
    }

    @Test("frequent absences do not grow the queue")
    func comingAndGoing() {
        let first = meet("0", "Early")
        map.entered(first.id)
        map.left(first.id, now: at(0))
        let person = meet("1", "Remy")
        for second in Int64(1)...5000 {
            map.entered(person.id)
            map.left(person.id, now: at(second))
        }
        #expect(map.absenceEntryCount < 1100)
        meet("x", "X", at: 31 * 24 * 3600)
        #expect(map[first.id] == nil && map[person.id] == nil)
    }

    @Test("a user in two rooms is present until both are left")
    func twoRooms() {
        let first = meet("1", "Remy")
        map.entered(first.id)
        map.entered(first.id)
        map.left(first.id, now: at(1))
        #expect(nick(meet("2", "Remy").id) == "Remy2")
        map.left(first.id, now: at(2))
        #expect(nick(meet("3", "Remy").id) == "Remy")
    }

    struct RenameRow: CustomTestStringConvertible, Sendable {
        let from: String
        let to: String
        let isTaken: Bool
        let nick: String

        var testDescription: String { "\(from) → \(to)\(isTaken ? ", base taken" : "")" }
    }

    @Test(
        "a change of the display name changes the nick only when it makes another",
        arguments: [
            RenameRow(from: "Remy", to: "Chef", isTaken: false, nick: "Chef"),
            RenameRow(from: "Remy", to: "remy", isTaken: false, nick: "remy"),
            RenameRow(from: "Remy", to: "Remy!", isTaken: false, nick: "Remy"),
            RenameRow(from: "Remy", to: "remy", isTaken: true, nick: "Remy2"),
            RenameRow(from: "Remy", to: "Remy!", isTaken: true, nick: "Remy2"),
            RenameRow(from: "Remy", to: "Chef", isTaken: true, nick: "Chef"),
            RenameRow(from: "Remy", to: "Remy2", isTaken: true, nick: "Remy2"),
            RenameRow(from: "Remy", to: "\u{200B}", isTaken: false, nick: "user-6b86b273"),
        ])
    func rename(row: RenameRow) {
        if row.isTaken { map.entered(meet("0", row.from).id) }
        let person = meet("1", row.from)
        map.entered(person.id)
        let before = nick(person.id)
        let change = meet("1", row.to)
        #expect(nick(person.id) == row.nick)
        #expect(change.renamed?.to == (before == row.nick ? nil : row.nick))
        #expect(map.person(nick: row.nick)?.id == person.id)
    }

    @Test("turning a name back and forth does not use up numbers")
    func flipping() {
        map.entered(meet("0", "Remy").id)
        map.entered(meet("1", "Remy").id)
        for _ in 0..<100 {
            meet("1", "REMY")
            meet("1", "Remy")
        }
        #expect(nick(meet("2", "Remy").id) == "Remy3")
    }

    @Test("ids of IRC users are derived from installation, backend and folded nick")
    func puppets() {
        let id = map.puppetID(nick: "Alice", backend: "chat")
        #expect(id.rawValue == map.puppetID(nick: "aLICE", backend: "chat").rawValue)
        #expect(id != map.puppetID(nick: "alice", backend: "other"))
        #expect(id.rawValue == id.rawValue.uppercased() && id.rawValue.count == 36)
        #expect(Array(id.rawValue)[14] == "5", "version of the UUID")
        let other = IdentityMap(settings(instanceID: "other"))
        #expect(id != other.puppetID(nick: "alice", backend: "chat"))
    }

    @Test("absent users are bounded under fifty thousand invented ids")
    func inventedIDs() {
        for number in 0..<50_000 { meet("id-\(number)", "Remy", at: Int64(number / 1000)) }
        #expect(map.count <= IdentityMap.maxAbsent + 1)
    }

    @Test("ten thousand present users of one name get ten thousand nicks")
    func manyOfOneName() {
        var nicks: Set<String> = []
        for number in 0..<10_000 {
            let person = meet("id-\(number)", "A name that is much too long for a nick")
            map.entered(person.id)
            nicks.insert(nick(person.id) ?? "")
        }
        #expect(nicks.count == 10_000)
        #expect(nicks.allSatisfy { $0.utf8.count <= 30 })
    }

    @Test(
        "untrusted names are sanitised in a source and a realname",
        arguments: ["a\r\nb", "a\u{0}b", "a\u{85}b\u{2028}c"])
    func safe(name: String) {
        let person = map[meet("x\r\n", name, backend: "ba ck\r\nend").id]
        let text = (person?.source ?? "") + (person?.realname ?? "")
        #expect(!text.unicodeScalars.contains { PrintableText.isControl($0) || $0 == " " })
    }
}
