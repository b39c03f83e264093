import Testing
import WireBytes

@Suite("ShortList")
struct ShortListTests {
    @Test("is an array, whatever is done to it")
    func law() {
        var list: ShortList<Int> = []
        var array: [Int] = []
        var state: UInt64 = 7
        func check() {
            #expect(Array(list) == array)
            #expect(list == ShortList(array))
            #expect(list.count == array.count && list.first == array.first && list.last == array.last)
        }
        for step in 0..<2000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let choice = Int(state >> 33)
            switch choice % 5 {
            case 0, 1:
                list.append(step)
                array.append(step)
            case 2 where !array.isEmpty:
                let place = choice / 5 % array.count
                #expect(list[place] == array[place])
                list.remove(at: place)
                array.remove(at: place)
            case 3:
                list.removeAll { $0 % 3 == choice / 5 % 3 }
                array.removeAll { $0 % 3 == choice / 5 % 3 }
            default:
                let range = 0..<(choice / 5 % (array.count + 1))
                list.replaceSubrange(range, with: [step, step + 1])
                array.replaceSubrange(range, with: [step, step + 1])
            }
            check()
        }
    }
}

@Suite("DeadlineHeap")
struct DeadlineHeapTests {
    private func at(_ nanoseconds: UInt64) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: Int64(nanoseconds))
    }

    @Test("each key comes once, at its last deadline, earliest first", arguments: [3, 50, 400] as [UInt64])
    func law(keys: UInt64) {
        var heap = DeadlineHeap<UInt64>()
        var wanted: [UInt64: MonotonicInstant] = [:]
        var state: UInt64 = keys
        var now: UInt64 = 0
        for _ in 0..<20_000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let key = state >> 33 % keys
            switch state >> 20 & 7 {
            case 0:
                heap.cancel(key)
                wanted[key] = nil
            case 1:
                now += 2
                var last = MonotonicInstant(nanoseconds: .min)
                while let next = heap.next(), let due = heap.popDue(at(now)) {
                    #expect(next >= last && wanted.removeValue(forKey: due) == next)
                    last = next
                }
                #expect(wanted.values.allSatisfy { $0 > at(now) })
            default:
                // Few deadlines, so that keys return to those they had.
                let deadline = at(now + state >> 40 % 8)
                heap.set(key, at: deadline)
                wanted[key] = deadline
            }
            #expect(heap.count == wanted.count && heap[key] == wanted[key])
            #expect(heap.next() == wanted.values.min())
        }
    }

    @Test("a key that swings between two deadlines leaves no trail")
    func swings() {
        var heap = DeadlineHeap<Int>()
        heap.set(-1, at: at(1))
        for _ in 0..<20_000 {
            heap.set(1, at: at(5))
            heap.set(1, at: at(6))
        }
        #expect(heap.entryCount <= 100)
        #expect(heap.popDue(at(10)) == -1 && heap.popDue(at(10)) == 1 && heap.popDue(at(10)) == nil)
    }
}
