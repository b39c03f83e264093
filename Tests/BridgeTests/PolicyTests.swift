import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Digests
import IRCProtocol
import Identities
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

private func at(_ seconds: Double) -> MonotonicInstant { MonotonicInstant(nanoseconds: Int64(seconds * 1e9)) }

@Suite("ReceiptNotices")
struct ReceiptNoticesTests {
    private let key = ReceiptNotices.Key(author: ClientID(rawValue: 1), reader: PersonID(rawValue: 2))

    private func mark(_ sequence: Int) -> ReceiptNotices.Mark {
        ReceiptNotices.Mark(msgid: "m\(sequence)", sequence: sequence)
    }

    @Test("states only rise, and the newest stands for the older ones")
    func rising() {
        let notices = ReceiptNotices()
        let steps: [(ChatReceipt.State, Int, Bool)] = [
            (.delivered, 3, true), (.delivered, 3, false), (.delivered, 2, false), (.read, 2, true), (.read, 3, true),
            (.delivered, 3, false), (.read, 1, false), (.sent, 9, false), (.delivered, 5, true),
        ]
        for (state, sequence, isNews) in steps {
            #expect(notices.record(key, state: state, mark: mark(sequence)) == isNews, "\(state) \(sequence)")
        }
        let due = notices.takeDue(key, now: at(0))
        #expect(due?.read?.msgid == "m3" && due?.delivered?.msgid == "m5")
        #expect(notices.takeDue(key, now: at(9)) == nil)
        #expect(notices.record(key, state: .read, mark: mark(3)) == false)
        #expect(notices.record(key, state: .delivered, mark: mark(5)) == false)
    }

    @Test("one telling in two seconds")
    func pause() {
        let notices = ReceiptNotices()
        _ = notices.record(key, state: .read, mark: mark(1))
        #expect(notices.takeDue(key, now: at(0)) != nil)
        _ = notices.record(key, state: .read, mark: mark(2))
        #expect(notices.takeDue(key, now: at(1.9)) == nil)
        #expect(notices.isWaiting)
        _ = notices.record(key, state: .read, mark: mark(3))
        #expect(notices.takeDue(key, now: at(2))?.read?.msgid == "m3")
        #expect(!notices.isWaiting)
    }

    @Test("whoever goes is forgotten, on either side, and nobody else")
    func forgetting() {
        let notices = ReceiptNotices()
        for author in UInt64(1)...3 {
            for reader in UInt64(1)...3 {
                let key = ReceiptNotices.Key(author: ClientID(rawValue: author), reader: PersonID(rawValue: reader))
                _ = notices.record(key, state: .read, mark: mark(1))
            }
        }
        notices.forget(author: ClientID(rawValue: 1))
        #expect(notices.count == 6)
        notices.forget(reader: PersonID(rawValue: 2))
        #expect(notices.count == 4)
        #expect(notices.waiting.count == 4)
        #expect(notices.waiting.allSatisfy { $0.author.rawValue != 1 && $0.reader.rawValue != 2 })
    }

    @Test("the table stays within its bound, and a mass leave is linear")
    func bound() {
        let notices = ReceiptNotices()
        for reader in UInt64(0)..<50_000 {
            let key = ReceiptNotices.Key(author: ClientID(rawValue: 1), reader: PersonID(rawValue: reader))
            _ = notices.record(key, state: .read, mark: mark(1))
            #expect(notices.count <= ReceiptNotices.capacity)
        }
        for reader in UInt64(0)..<50_000 { notices.forget(reader: PersonID(rawValue: reader)) }
        #expect(notices.count == 0 && !notices.isWaiting)
    }
}

@Suite("What IRC takes for a nick")
struct NickRulesTests {
    @Test("a name of RELAYMSG is nobody's nick where accounts may relay", arguments: [true, false])
    func relayedNames(relays: Bool) {
        let account = AccountSettings(name: "mirror", password: SCRAMVerifier(quickly: "pw"), mayRelay: relays)
        let map = IdentityMap(
            IdentitySettings(
                BridgeSettings(serverName: "irc.example", instanceID: "tests", accounts: [account], rooms: [])))
        #expect(map.refusal(nick: "linguini/libera", holder: nil) == (relays ? .erroneous : nil))
        #expect(map.refusal(nick: "linguini", holder: nil) == nil)
        #expect(map.refusal(nick: "irc-example", holder: nil) == nil)
        for kept in ["bridge", "BR1DGE", "mirror", "two words", "a,b", ""] {
            #expect(map.refusal(nick: kept, holder: nil) != nil, "\(kept)")
        }
    }
}

@Suite("CapabilityGroups and MemberSlots")
struct AudienceTests {
    @Test("every client is in exactly one group, whatever comes and goes")
    func groups() {
        var audience = CapabilityGroups()
        var random = SeededGenerator(seed: 5)
        var wanted: [ClientID: IRCCapabilitySet] = [:]
        let seats = (0..<40).map { MemberSlot(client: ClientID(rawValue: $0)) }
        func seat(_ client: ClientID) -> MemberSlot? { seats[Int(client.rawValue)] }
        for _ in 0..<5000 {
            let client = ClientID(rawValue: random.next() % 40)
            if random.next() % 3 == 0 {
                audience.remove(seats[Int(client.rawValue)], slotOf: seat)
                wanted[client] = nil
            } else {
                let profile = IRCCapabilitySet(rawValue: random.next() % 8)
                audience.add(seats[Int(client.rawValue)], profile: profile, slotOf: seat)
                wanted[client] = profile
            }
            #expect(audience.count == wanted.count)
        }
        var found: [ClientID: IRCCapabilitySet] = [:]
        for group in audience.groups {
            for client in group.clients { #expect(found.updateValue(group.profile, forKey: client) == nil) }
        }
        #expect(found == wanted)
    }

    @Test("a client that tries every profile leaves no trail of groups")
    func trail() {
        var audience = CapabilityGroups()
        let seat = MemberSlot(client: ClientID(rawValue: 1))
        for profile in UInt64(0)..<2000 {
            audience.add(seat, profile: IRCCapabilitySet(rawValue: profile)) { _ in seat }
        }
        #expect(audience.groups.count <= 2)
    }

    @Test("who is there from beginning to end of a walk is met once, who left is not met")
    func walk() {
        let slots = MemberSlots()
        for number in UInt64(0)..<10 { slots.insert(PersonID(rawValue: number)) }
        slots.insert(PersonID(rawValue: 3))
        #expect(slots.count == 10)
        var cursor = 0
        var met: [UInt64] = []
        for _ in 0..<4 { if let person = slots.next(&cursor) { met.append(person.rawValue) } }
        slots.remove(PersonID(rawValue: 0))
        slots.remove(PersonID(rawValue: 7))
        slots.insert(PersonID(rawValue: 20))
        slots.insert(PersonID(rawValue: 21))
        while let person = slots.next(&cursor) { met.append(person.rawValue) }
        #expect(met.count == Set(met).count)
        for stayed in [1, 2, 3, 4, 5, 6, 8, 9] as [UInt64] { #expect(met.contains(stayed)) }
        #expect(!met.dropFirst(4).contains(7))
        #expect(slots.next(&cursor) == nil)
    }
}
