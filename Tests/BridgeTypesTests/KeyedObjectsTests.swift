import BridgeTestSupport
import BridgeTypes
import Testing

private final class Thing {
    let key: UInt64
    init(_ key: UInt64) { self.key = key }
}

private enum ByKey: ObjectKeying {
    static func key(of thing: Thing) -> UInt64 { thing.key }
}

@Suite("KeyedObjects")
struct KeyedObjectsTests {
    @Test("behaves like a dictionary", arguments: [4, 40, 3000] as [UInt64])
    func law(keys: UInt64) {
        var random = SeededGenerator(seed: keys)
        var table = KeyedObjects<ByKey>()
        var wanted: [UInt64: Thing] = [:]
        for round in 0..<20_000 {
            let key = random.next() % keys
            // Mostly insertions first, then mostly removals.
            if random.next() % 8 < (round < 10_000 ? 5 : 2) {
                let thing = Thing(key)
                table.insert(thing)
                wanted[key] = thing
            } else {
                #expect(table.remove(key) === wanted.removeValue(forKey: key))
            }
            #expect(table.count == wanted.count)
            let asked = random.next() % keys
            #expect(table[asked] === wanted[asked])
        }
        #expect(table.keys.sorted() == wanted.keys.sorted())
        #expect(table.values.allSatisfy { wanted[$0.key] === $0 })
        for key in wanted.keys { #expect(table.remove(key) === wanted[key]) }
        #expect(table.isEmpty && table[0] == nil && table.remove(0) == nil)
    }
}
