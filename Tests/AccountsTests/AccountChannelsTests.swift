import ChatModel
import Testing

@testable import Accounts

@Suite("AccountChannels")
struct AccountChannelsTests {
    @Test("the rooms of all accounts are bounded")
    func boundedInAll() {
        let memberships = AccountChannels()
        let perAccount = AccountChannels.maxRooms
        var outcomes: [AccountChannels.Outcome] = []
        for index in 0...AccountChannels.maxRoomsInAll {
            outcomes.append(
                memberships.add(
                    StoredRoomKey(backend: "b", room: "\(index)"), channel: "#c", to: "a\(index / perAccount)"))
        }
        #expect(outcomes.last == .full && outcomes.dropLast().allSatisfy { $0 == .added })
        #expect(memberships.count == AccountChannels.maxRoomsInAll)
        let refused = StoredRoomKey(backend: "b", room: "y")
        let reports = (0..<2).map { _ in memberships.enter(refused, channel: "#c", "y", present: []).isFull }
        #expect(memberships.isFull && reports == [true, false])
        let isRemoved = memberships.remove(StoredRoomKey(backend: "b", room: "0"), from: "a0")
        #expect(isRemoved)
        let outcome = memberships.add(StoredRoomKey(backend: "b", room: "z"), channel: "#c", to: "z")
        #expect(outcome == .added)
    }

    @Test("invalid stored positions do not trap")
    func strangePositions() {
        let memberships = AccountChannels()
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
