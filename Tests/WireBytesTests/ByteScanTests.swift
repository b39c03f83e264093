import BridgeTestSupport
import Testing
import WireBytes

@Suite("Looking at bytes eight at a time")
struct ByteScanTests {
    /// Every byte at every place of texts of several lengths, among others that are ordinary.
    private static func each(_ body: ([UInt8]) -> Void) {
        for length in [0, 1, 7, 8, 9, 15, 16, 17, 40] {
            let plain = (0..<length).map { UInt8(ascii: "a") + UInt8($0 % 26) }
            body(plain)
            for place in plain.indices {
                for byte in UInt8.min ... .max {
                    var bytes = plain
                    bytes[place] = byte
                    body(bytes)
                }
            }
        }
    }

    @Test("printable ASCII is what a look at each byte says")
    func printable() {
        Self.each { bytes in
            let seen = bytes.withUnsafeBytes { ByteScan.isPrintableASCII($0) }
            #expect(seen == bytes.allSatisfy { 0x20..<0x7F ~= $0 }, "\(bytes)")
        }
    }

    @Test("the least byte is what a look at each byte says", arguments: [UInt8(0x20), 0x21, 0x80])
    func least(_ least: UInt8) {
        Self.each { bytes in
            let seen = bytes.withUnsafeBytes { ByteScan.has(noByteBelow: least, $0) }
            #expect(seen == bytes.allSatisfy { $0 >= least }, "\(bytes)")
        }
    }

    @Test("the first of three bytes is found from any place", arguments: [UInt64(1), 2])
    func first(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        let (a, b, c) = (UInt8(ascii: "@"), UInt8(ascii: ":"), UInt8(0x0A))
        for _ in 0..<2000 {
            // Neighbours of those that are looked for, and of zero.
            let choice: [UInt8] = [a, a + 1, b, b - 1, c, c + 1, 0, 1, 0x80, 0xFF, 0x61, 0x61, 0x61, 0x61]
            let bytes = (0..<Int.random(in: 0...40, using: &rng)).map { _ in choice.randomElement(using: &rng) ?? a }
            let start = Int.random(in: 0...bytes.count, using: &rng)
            let seen = bytes.withUnsafeBytes { ByteScan.firstOffset(of: a, b, c, in: $0, from: start) }
            #expect(seen == bytes[start...].firstIndex { $0 == a || $0 == b || $0 == c }, "\(rng.seed) \(bytes)")
        }
    }
}
