import BridgeTestSupport
import Testing

@testable import Rooms

@Suite("SlotTable")
struct SlotTableTests {
    @Test("agrees with a dictionary, also with equal hashes", arguments: [UInt32.max, 3, 0])
    func likeADictionary(mask: UInt32) {
        var random = SeededGenerator(seed: UInt64(mask) + 7)
        var table = SlotTable()
        var ring: [Int?] = Array(repeating: nil, count: 100)
        for step in 0..<5000 {
            let slot = Int(random.next() % 100)
            if let key = ring[slot] {
                table.remove(slot, SlotTable.hash("\(key)") & mask)
                ring[slot] = nil
            }
            if random.next() % 4 > 0 {
                // Unique keys.
                let key = step
                ring[slot] = key
                table.insert(slot, SlotTable.hash("\(key)") & mask)
            }
            let asked = Int(random.next() % UInt64(step + 1))
            let found = table.slot(SlotTable.hash("\(asked)") & mask) { ring[$0] == asked }
            #expect(found == ring.firstIndex(of: asked))
        }
    }

    @Test("removing an absent slot has no effect")
    func absent() {
        var table = SlotTable()
        table.remove(1, 1)
        table.insert(1, 1)
        table.remove(2, 1)
        table.remove(1, 2)
        #expect(table.slot(1) { _ in true } == 1)
        table.remove(1, 1)
        #expect(table.slot(1) { _ in true } == nil)
    }
}
