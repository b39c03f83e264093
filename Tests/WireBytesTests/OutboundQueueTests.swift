import BridgeTestSupport
import Testing

@testable import WireBytes

@Suite("bytes that a connection has yet to send")
struct OutboundQueueTests {
    private static func pending(_ queue: borrowing OutboundQueue, limit: Int = 1000) -> [UInt8] {
        var bytes: [UInt8] = []
        queue.forEachPending(limit: limit) { bytes += $0 }
        return bytes
    }

    @Test("what is appended comes out once and in order, however it is cut", arguments: LawSeeds.seeds(50))
    func model(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var first = ByteWriter()
        var second = ByteWriter()
        var queue = OutboundQueue()
        var (wanted, next): ([UInt8], UInt8) = ([], 0)
        for _ in 0..<300 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<6:
                let line = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                    next &+= 1
                    return next
                }
                wanted += line
                // Slices of one writer lie side by side, those of two do not.
                if Bool.random(using: &random) {
                    first.append(line)
                    queue.append(first.take())
                } else {
                    second.append(line)
                    queue.append(second.take())
                }
            case 6..<9:
                let sent = Int.random(in: 0...wanted.count, using: &random)
                queue.consume(sent)
                wanted.removeFirst(sent)
            default:
                guard Int.random(in: 0..<10, using: &random) == 0 else { break }
                queue.removeAll()
                wanted = []
            }
            #expect(queue.byteCount == wanted.count && queue.isEmpty == wanted.isEmpty)
            #expect((queue.sliceCount == 0) == wanted.isEmpty)
            #expect(Self.pending(queue) == wanted)
            #expect(wanted.starts(with: Self.pending(queue, limit: 1)))
        }
    }

    @Test("memory lives as long as bytes of it wait, and no longer")
    func memory() {
        weak var chunk: ByteChunk?
        var queue = OutboundQueue()
        /// Hands the only reference over.
        func fill() {
            let slice = ByteSlice("hello")
            chunk = slice.chunk
            queue.append(slice)
        }
        fill()
        #expect(chunk != nil && Self.pending(queue) == Array("hello".utf8))
        queue.consume(4)
        #expect(chunk != nil && Self.pending(queue) == Array("o".utf8))
        queue.consume(1)
        #expect(chunk == nil)
        fill()
        queue.append(ByteSlice("behind it"))
        queue.consume(5)
        #expect(chunk == nil && Self.pending(queue) == Array("behind it".utf8))
        fill()
        queue.removeAll()
        #expect(chunk == nil && queue.isEmpty)
        fill()
        queue = OutboundQueue()
        #expect(chunk == nil)
    }
}
