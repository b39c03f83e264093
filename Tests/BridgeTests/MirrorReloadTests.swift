import BridgeTestSupport
import BridgeTypes
import Testing

@testable import ChatBridge
@testable import Configuration

/// What a mirror knows of its tool when a reload changes its keys.
@Suite("A mirror over a reload")
struct MirrorReloadTests {
    private func mirror(_ username: String, after before: Mirror?) throws -> Mirror {
        var configuration = MirrorConfiguration()
        configuration.name = "team"
        configuration.kind = .json
        configuration.rooms = ["lobby"]
        configuration.username = username
        return Mirror(
            try MirrorPlan(configuration, installation: "i", environment: testEnvironment()), after: before, stored: [],
            underWay: before == nil ? ["stored"] : [], random: AnyRandomNumberGenerator(SeededGenerator(seed: 1)))
    }

    @Test("what the tool has brought and no room's order has yet is not taken again")
    func underWay() throws {
        let before = try mirror("{nick}", after: nil)
        before.took("a")
        before.took("b")
        before.couldNotStore("b", in: "lobby")
        let after = try mirror("{nick} there", after: before)
        #expect(["stored", "a", "b", "c"].map(after.hasTaken) == [true, true, false, false])
    }
}
