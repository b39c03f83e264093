import ChatModel
import Mirrors
import Testing

@Suite("Ids that mirrors know")
struct KnownIDsTests {
    @Test("the newest ids of a series are known, and one that is taken back is not")
    func recent() {
        var ids = RecentIDs(capacity: 3)
        let isNew = ["a", "b", "c", "a", "d"].map { ids.insert($0) }
        #expect(isNew == [true, true, true, false, true])
        #expect(["a", "b", "c", "d"].map(ids.contains) == [false, true, true, true])
        ids.remove("c")
        #expect(!ids.contains("c"))
    }

    @Test("a mirror's tool has as many messages as are stored under ids of its own, and the oldest go")
    func ofTool() {
        var ids = ToolIDs()
        let room = StoredRoomKey(backend: "b", room: "lobby")
        for number in 0...StoredMirrored.perMirror {
            ids.insert(
                StoredMirrored(
                    mirror: "team", room: room, msgid: "m\(number)", toolID: "t\(number)", isTheirs: number % 2 == 0))
        }
        #expect(["t0", "t1", "t\(StoredMirrored.perMirror)"].map(ids.contains) == [false, true, true])
        #expect(ids["m0", in: room] == nil && ids["m1", in: room] == "t1")
        #expect(!ids.isTheirs("m0", in: room) && !ids.isTheirs("m1", in: room) && ids.isTheirs("m2", in: room))
    }
}
