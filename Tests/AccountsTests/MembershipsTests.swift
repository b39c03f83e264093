import ChatModel
import Testing

@testable import Accounts

@Suite("Memberships")
struct MembershipsTests {
    @Test("all accounts together have a bounded number of rooms")
    func boundedInAll() {
        let memberships = Memberships()
        let perAccount = Memberships.maxRooms
        var outcomes: [Memberships.Outcome] = []
        for index in 0...Memberships.maxRoomsInAll {
            outcomes.append(
                memberships.add(
                    StoredRoomKey(backend: "b", room: "\(index)"), channel: "#c", to: "a\(index / perAccount)"))
        }
        #expect(outcomes.last == .full && outcomes.dropLast().allSatisfy { $0 == .added })
        #expect(memberships.count == Memberships.maxRoomsInAll)
        let told = (0..<2).map { _ in memberships.isFullForTheFirstTime() }
        #expect(told == [true, false])
        let isRemoved = memberships.remove(StoredRoomKey(backend: "b", room: "0"), from: "a0")
        #expect(isRemoved)
        let outcome = memberships.add(StoredRoomKey(backend: "b", room: "z"), channel: "#c", to: "z")
        #expect(outcome == .added)
    }

    @Test("positions that no program wrote trap nobody")
    func strangePositions() {
        let memberships = Memberships()
        for position in [Int64.min, -1, 0, .max, .max - 1, 7] {
            memberships.restore(
                StoredMembership(
                    account: "a", room: StoredRoomKey(backend: "b", room: "\(position)"), channel: "#c",
                    position: position), of: "a")
        }
        #expect(memberships.rooms(of: "a").map(\.position) == [7])
        let outcome = memberships.add(StoredRoomKey(backend: "b", room: "x"), channel: "#x", to: "a")
        #expect(outcome == .added)
        #expect(memberships.first(of: "a", from: 8)?.channel == "#x")
    }
}
