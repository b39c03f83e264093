import BridgeTestSupport
import ChatModel
import Testing

@Suite("QuickHash")
struct QuickHashTests {
    private let hashes = QuickHash()

    @Test(
        "equal ids have equal hashes",
        arguments: [
            ("6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
            ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6Ba7b810-9dad-11D1-80b4-00c04fd430c8"),
            ("$event:example.org", "$event:example.org"),
            (String(repeating: "long", count: 40), String(repeating: "long", count: 40)), ("7", "7"), ("", ""),
        ])
    func equal(one: String, other: String) {
        #expect(ChatID(one) == ChatID(other))
        #expect(hashes.hash(ChatID(one)) == hashes.hash(ChatID(other)))
    }

    @Test("texts of all lengths that differ in one place have different hashes")
    func different() {
        var seen: Set<UInt64> = []
        var count = 0
        for length in 0...70 {
            let text = Array(repeating: UInt8(ascii: "a"), count: length)
            for place in 0...length {
                var other = text
                // The last one is the text itself.
                if place < length { other[place] = UInt8(ascii: "b") }
                seen.insert(hashes.hash(String(decoding: other, as: UTF8.self)))
                count += 1
            }
        }
        #expect(seen.count == count)
    }

    @Test("the lower half of the hashes of numbers in a row is spread over a table")
    func spread() {
        // With every key, since a process has only one.
        for _ in 0..<100 {
            let hashes = QuickHash()
            var places: Set<UInt64> = []
            for number in 0..<4096 { places.insert(hashes.hash(ChatID("\(number)")) & 4095) }
            // By chance 2589 of the places are taken.
            #expect(places.count > 2450)
        }
    }

    @Test("another process has other hashes")
    func keyed() {
        #expect(QuickHash().hash("a text") != hashes.hash("a text"))
    }
}
