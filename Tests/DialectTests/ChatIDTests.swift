import BridgeTestSupport
import ChatModel
import Testing

@Suite("chat ids")
struct ChatIDTests {
    static let upper = "3F2504E0-4F89-41D3-9A0C-0305E82C3301"

    @Test(
        "the spelling received is kept",
        arguments: [
            upper, upper.lowercased(), "3f2504E0-4F89-41D3-9A0C-0305E82C3301", "00000000-0000-0000-0000-000000000000",
            "0123456789abcdef", "", "é", "7", "3F2504E0-4F89-41D3-9A0C-0305E82C330G",
            "3F2504E0+4F89-41D3-9A0C-0305E82C3301", "3F2504E04F89-41D3-9A0C-0305E82C33011",
            "ffffffff-FFFF-ffff-FFFF-ffffffffffff", "@F2504E0-4F89-41D3-9A0C-0305E82C3301",
            "àààà04E0-4F89-41D3-9A0C-0305E82C", "`f2504e0-4f89-41d3-9a0c-0305e82c3301",
        ])
    func spelling(_ text: String) {
        let id = ChatID(text)
        #expect(Array(id.rawValue.utf8) == Array(text.utf8))
        var bytes = Array(text.utf8)
        let again = bytes.withUnsafeMutableBytes { ChatID(utf8: UnsafeRawBufferPointer($0)) }
        #expect(Array(again.rawValue.utf8) == Array(text.utf8))
        #expect(again == id && again.hashValue == id.hashValue)
        #expect(id.utf8Count == text.utf8.count)
    }

    @Test("a random id is a UUID with version and variant, follows its generator, and is read again as the same")
    func random() {
        var generator = SeededGenerator(seed: 5)
        var same = SeededGenerator(seed: 5)
        var seen: Set<ChatID> = []
        for _ in 0..<200 {
            let id = ChatID.random(using: &generator)
            #expect(id == ChatID.random(using: &same))
            #expect(seen.insert(id).inserted)
            let text = Array(id.rawValue.utf8)
            #expect(id.isUUIDShaped && text[14] == UInt8(ascii: "4") && "89AB".utf8.contains(text[19]))
            #expect(id.rawValue == id.rawValue.uppercased() && ChatID(id.rawValue) == id)
        }
    }

    @Test("each hexadecimal digit is read and written in either case, at each place")
    func digits() {
        for place in 0..<32 {
            for digit in "0123456789abcdefABCDEF".utf8 {
                var hex = Array(repeating: digit < 0x60 ? UInt8(ascii: "A") : UInt8(ascii: "a"), count: 32)
                hex[place] = digit
                var text: [UInt8] = []
                for (index, byte) in hex.enumerated() {
                    if [8, 12, 16, 20].contains(index) { text.append(UInt8(ascii: "-")) }
                    text.append(byte)
                }
                let id = ChatID(String(decoding: text, as: UTF8.self))
                #expect(id.isUUIDShaped && Array(id.rawValue.utf8) == text)
            }
        }
    }

    @Test("every byte that is no hexadecimal digit makes it an id of another shape, at each place")
    func noDigits() {
        for byte in UInt8(0)..<0x80 where !(Character(UnicodeScalar(byte)).isHexDigit) {
            for place in [0, 7, 9, 16, 22, 28, 35] {
                var text = Array(Self.upper.utf8)
                text[place] = byte
                let id = ChatID(String(decoding: text, as: UTF8.self))
                #expect(!id.isUUIDShaped && Array(id.rawValue.utf8) == text)
            }
        }
    }

    @Test("an id of any length costs little, and different ones stay different")
    func long() {
        let long = String(repeating: "é", count: 1_000_000)
        #expect(ChatID(long).utf8Count <= ChatID.maxBytes)
        #expect(ChatID(long) == ChatID(long))
        #expect(ChatID(long) != ChatID(long + "x"))
        #expect(ChatID("x" + long) != ChatID("y" + long))
        let most = String(repeating: "x", count: ChatID.maxBytes)
        #expect(ChatID(most).rawValue == most)
        #expect(ChatPerson(name: long).name?.utf8.count ?? .max <= ChatPerson.maxNameBytes)
    }

    @Test("ids of any length keep their bytes, and none is the beginning of another", arguments: ["x", "\0", "é"])
    func lengths(_ unit: String) {
        let ids = (0...40).map { ChatID(String(repeating: unit, count: $0)) }
        #expect(Set(ids).count == ids.count)
        for (count, id) in ids.enumerated() {
            #expect(Array(id.rawValue.utf8) == Array(String(repeating: unit, count: count).utf8))
            #expect(id.utf8Count == count * unit.utf8.count)
            #expect(id != ChatID(id.rawValue + "y") && id == ChatID(id.rawValue))
        }
    }

    @Test("an id takes three words, with or without its being there")
    func size() {
        #expect(MemoryLayout<ChatID>.size == 24)
        #expect(MemoryLayout<ChatID?>.size == 24)
    }

    @Test("UUIDs compare without case, everything else byte by byte")
    func comparing() {
        let mixed = "3f2504E0-4F89-41D3-9A0C-0305E82C3301"
        #expect(Set([ChatID(Self.upper), ChatID(Self.upper.lowercased()), ChatID(mixed)]).count == 1)
        #expect(ChatID(mixed).canonical == Self.upper)
        #expect(ChatID(mixed) != ChatID("3f2504E0-4F89-41D3-9A0C-0305E82C3302"))
        #expect(ChatID("abc") != ChatID("ABC"))
        // The same text to people, other bytes.
        #expect(ChatID("e\u{301}") != ChatID("é"))
        #expect(ChatID("") != ChatID(Self.upper))
    }
}
