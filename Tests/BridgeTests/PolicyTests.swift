import BridgeTestSupport
import ChatModel
import Dialects
import IRCProtocol
import Testing
import WireBytes

@testable import BridgeCore

private func at(_ seconds: Double) -> MonotonicInstant { MonotonicInstant(nanoseconds: Int64(seconds * 1e9)) }

@Suite("TokenBucket")
struct TokenBucketTests {
    @Test("a burst is granted, then the rate")
    func burst() {
        var bucket = TokenBucket(rate: 2, burst: 3)
        let atOnce = (0..<5).map { _ in bucket.take(now: at(0)) }
        #expect(atOnce == [true, true, true, false, false])
        #expect(bucket.take(now: at(0.4)) == false)
        #expect(bucket.take(now: at(0.5)) == true)
        let afterLong = (0..<5).map { _ in bucket.take(now: at(100)) }
        #expect(afterLong == [true, true, true, false, false])
    }

    @Test("a dear line is granted and makes the next wait longer")
    func cost() {
        var bucket = TokenBucket(rate: 1, burst: 1)
        #expect(bucket.take(3, now: at(0)) == true)
        #expect(bucket.take(now: at(2.9)) == false)
        #expect(bucket.take(now: at(3.001)) == true)
    }

    @Test("whoever waits until the next grant gets it", arguments: [0.3, 1.0, 3.0, 7.7])
    func nextGrant(rate: Double) {
        var bucket = TokenBucket(rate: rate, burst: 1)
        var now = at(0)
        for _ in 0..<1000 {
            let grant = bucket.nextGrant(now: now)
            #expect(grant >= now)
            now = grant
            #expect(bucket.take(now: now) == true)
        }
        let seconds = Double(now.nanoseconds) / 1e9
        #expect(abs(seconds - 999 / rate) < 0.01)
    }

    @Test("without a rate, or with none above zero, nothing is refused", arguments: [nil, 0, -1] as [Double?])
    func unlimited(rate: Double?) {
        var bucket = TokenBucket(rate: rate, burst: 1)
        let grants = (0..<100).map { _ in bucket.take(now: at(0)) }
        #expect(!grants.contains(false))
        #expect(bucket.nextGrant(now: at(0)) == at(0))
    }

    @Test("a clock that stands still or goes back gives nothing")
    func backwards() {
        var bucket = TokenBucket(rate: 1, burst: 1)
        #expect(bucket.take(now: at(10)) == true)
        #expect(bucket.take(now: at(5)) == false)
        #expect(bucket.take(now: at(10)) == false)
        #expect(bucket.take(now: at(11)) == true)
    }
}

@Suite("ReconnectPolicy")
struct ReconnectPolicyTests {
    private static let envelope = BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0.25)

    @Test(
        "delays double up to the cap",
        arguments: [(1, 1.0), (2, 2), (3, 4), (5, 16), (6, 30), (7, 30), (1_000_000, 30)])
    func doubling(row: (failures: Int, seconds: Double)) {
        let exact = ReconnectPolicy(traits: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0))
        var random = SeededGenerator(seed: 1)
        let delay = exact.delay(failures: row.failures, retryAfter: nil, random: &random)
        #expect(delay == .milliseconds(Int64(row.seconds * 1000)))
    }

    @Test("jitter spreads over its whole range and never leaves it")
    func jitter() {
        let policy = ReconnectPolicy(traits: Self.envelope)
        var random = SeededGenerator(seed: 2)
        let delays = (0..<2000).map { _ in policy.delay(failures: 3, retryAfter: nil, random: &random) }
        #expect(delays.allSatisfy { $0 >= .seconds(3) && $0 <= .seconds(5) })
        #expect(delays.contains { $0 < .milliseconds(3100) } && delays.contains { $0 > .milliseconds(4900) })
    }

    @Test(
        "Retry-After is a least delay, within reason",
        arguments: [(Duration.seconds(0), 1.0), (.seconds(120), 120), (.seconds(86_400), 3600)])
    func retryAfter(row: (value: Duration, seconds: Double)) {
        let exact = ReconnectPolicy(traits: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0))
        var random = SeededGenerator(seed: 3)
        #expect(
            exact.delay(failures: 1, retryAfter: row.value, random: &random) == .milliseconds(Int64(row.seconds * 1000))
        )
    }

    @Test("nonsense settings do not trap")
    func nonsense() {
        var random = SeededGenerator(seed: 4)
        for traits in [
            BackoffTraits(first: .zero, factor: 0, cap: .zero, jitter: 1),
            BackoffTraits(first: .seconds(1 << 40), factor: 1e9, cap: .seconds(1 << 31), jitter: 0),
        ] {
            let policy = ReconnectPolicy(traits: traits)
            for failures in [-1, 0, 1, .max] {
                #expect(policy.delay(failures: min(failures, 1 << 20), retryAfter: nil, random: &random) >= .zero)
            }
        }
    }
}

@Suite("ReceiptNotices")
struct ReceiptNoticesTests {
    private let key = ReceiptNotices.Key(author: ClientID(rawValue: 1), reader: PersonID(rawValue: 2))

    private func mark(_ sequence: Int) -> ReceiptNotices.Mark {
        ReceiptNotices.Mark(msgid: "m\(sequence)", sequence: sequence)
    }

    @Test("states only rise, and the newest stands for the older ones")
    func rising() {
        var notices = ReceiptNotices()
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
        var notices = ReceiptNotices()
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
        var notices = ReceiptNotices()
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
        var notices = ReceiptNotices()
        for reader in UInt64(0)..<50_000 {
            let key = ReceiptNotices.Key(author: ClientID(rawValue: 1), reader: PersonID(rawValue: reader))
            _ = notices.record(key, state: .read, mark: mark(1))
            #expect(notices.count <= ReceiptNotices.capacity)
        }
        for reader in UInt64(0)..<50_000 { notices.forget(reader: PersonID(rawValue: reader)) }
        #expect(notices.count == 0 && !notices.isWaiting)
    }
}

@Suite("Audience and MemberSlots")
struct AudienceTests {
    @Test("every client is in exactly one group, whatever comes and goes")
    func groups() {
        var audience = Audience()
        var random = SeededGenerator(seed: 5)
        var wanted: [ClientID: IRCCapabilitySet] = [:]
        let seats = (0..<40).map { Audience.Seat(client: ClientID(rawValue: $0)) }
        func seat(_ client: ClientID) -> Audience.Seat? { seats[Int(client.rawValue)] }
        for _ in 0..<5000 {
            let client = ClientID(rawValue: random.next() % 40)
            if random.next() % 3 == 0 {
                audience.remove(seats[Int(client.rawValue)], seatOf: seat)
                wanted[client] = nil
            } else {
                let profile = IRCCapabilitySet(rawValue: random.next() % 8)
                audience.add(seats[Int(client.rawValue)], profile: profile, seatOf: seat)
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
        var audience = Audience()
        let seat = Audience.Seat(client: ClientID(rawValue: 1))
        for profile in UInt64(0)..<2000 {
            audience.add(seat, profile: IRCCapabilitySet(rawValue: profile)) { _ in seat }
        }
        #expect(audience.groups.count <= 2)
    }

    @Test("who is there from beginning to end of a walk is met once, who left is not met")
    func walk() {
        var slots = MemberSlots()
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
