import BridgeTypes
import ChatModel
import Testing

@Suite struct OriginChainTests {
    private static let room = OriginChain.Place(room: "lobby", of: "one")
    private static let mirror = OriginChain.Place(mirror: "lobby", of: "one")
    private static let far = OriginChain.Place(room: "lobby", of: "two")

    @Test func placesDiffer() {
        #expect(Set([Self.room, Self.mirror, Self.far]).count == 3)
    }

    @Test func aPlaceCountsOnce() {
        let chain = OriginChain().passing(Self.room).passing(Self.far)
        #expect(chain.passing(Self.room) == chain)
        #expect(chain.contains(Self.far) && !chain.contains(Self.mirror))
    }

    @Test func asATag() throws {
        let chain = OriginChain().passing(Self.room).passing(Self.mirror)
        #expect(OriginChain(chain.text) == chain)
        #expect(OriginChain(tags: [try #require(chain.storedTag)]) == chain)
        #expect(OriginChain().storedTag == nil)
    }

    @Test(arguments: ["", "a", "12345", "1234567", "+12345", "12345g", "123456,", ",123456", "123456;abcdef"])
    func noChain(_ text: String) {
        #expect(OriginChain(text) == nil)
    }

    @Test func longChainsAreCut() {
        let text = (0..<100).map { "\(100_000 + $0)" }.joined(separator: ",")
        #expect(OriginChain(text)?.places.count == OriginChain.maxPlaces)
    }

    @Test(arguments: [
        "", "hello", "hello 👋🏽", "two\nlines", "ends in \u{2063}", "\u{2063} begins", "❤\u{FE0F} and ☎\u{FE0E}",
    ])
    func asAMark(_ text: String) {
        let chain = OriginChain().passing(Self.room).passing(Self.far)
        let split = OriginChain.split(text + chain.mark)
        #expect(split.text == text)
        #expect(split.chain == chain)
    }

    @Test func withoutAMark() {
        for text in ["", "hello", "a\u{2063}b", "❤\u{FE0F}"] {
            let split = OriginChain.split(text)
            #expect(split.text == text)
            #expect(split.chain.isEmpty)
        }
    }

    @Test func aMarkInsideAndCutMarks() {
        let chain = OriginChain().passing(Self.room)
        let mark = chain.mark
        #expect(OriginChain.split("before\(mark) (edited)").text == "before (edited)")
        #expect(OriginChain.split("before\(mark) (edited)").chain == chain)
        // Without its end it names nobody, and is no text either.
        let cut = String(String.UnicodeScalarView(mark.unicodeScalars.dropLast()))
        #expect(OriginChain.split("a" + cut + "b").text == "ab")
        #expect(OriginChain.split("a" + cut + "b").chain.isEmpty)
    }

    @Test func marksAddUp() {
        let (a, b) = (OriginChain().passing(Self.room), OriginChain().passing(Self.far))
        #expect(OriginChain.split("x" + a.mark + "y" + b.mark).chain == OriginChain([Self.room, Self.far]))
        let flood = String(repeating: a.mark, count: 1000)
        #expect(OriginChain.split(flood).chain == a)
    }
}
