import BridgeTestSupport
import ChatModel
import Dialects
import HTTPProtocol
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A backend that can be asked who its account is.
@Suite("Asking who the account is")
struct AccountIdentificationTests {
    private struct World {
        let harness: BridgeHarness
        let server: TokenServer

        func account(_ room: Int) -> ChatPerson { harness.bridge.rooms[room].accountPerson }
        /// How often the backend was asked since the last look.
        func asked() -> Int { server.takeLog().count { $0 == "/me" } }
    }

    /// A fixed token, one room, and a template for all others of the backend.
    private static func world(_ prepare: (TokenServer) -> Void = { _ in }) throws -> World {
        @Sendable func room(_ name: String) -> RoomSettings? {
            guard let url = try? HTTPURL(parsing: "ws://chat.example/\(name)") else { return nil }
            var room = RoomSettings(
                name: name, backend: "main", dialect: AccountDialect(), url: url, upstreamRoom: name)
            room.ping = .zero
            room.identity = .single
            return room
        }
        let server = TokenServer()
        server.issue(access: "fixed-secret")
        prepare(server)
        let harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t", rooms: [try #require(room("lobby"))],
                backends: [
                    BackendSettings(
                        name: "main", dialect: AccountDialect(), httpBase: try HTTPURL(parsing: "http://chat.example"),
                        authenticates: true)
                ],
                template: RoomTemplate(backend: "main") { room($0) }))
        harness.accounts.secrets[0] = .success(
            .fixed(
                UpstreamCredentials(headers: [.init(name: "Authorization", value: "Bearer fixed-secret")])))
        harness.accounts.server = { server.answer($0) }
        harness.start()
        return World(harness: harness, server: server)
    }

    @Test("a room that is opened later knows the account too")
    func laterRooms() throws {
        let world = try Self.world()
        #expect(world.account(0) == ChatPerson(id: ChatID("7"), name: "bridge"))
        world.harness.connect(1)
        world.harness.send(1, "NICK bob")
        world.harness.send(1, "USER u 0 * :r")
        world.harness.send(1, "JOIN #General")
        #expect(world.harness.bridge.rooms.count == 2)
        #expect(world.account(1) == ChatPerson(id: ChatID("7"), name: "bridge"))
        #expect(world.harness.bridge.rooms[1].lane.dialectContext.isSelf(ChatPerson(id: ChatID("7"))))
    }

    @Test("an account that could not be asked for is asked for again, less and less often, until it is known")
    func again() throws {
        let world = try Self.world { $0.trouble["/me"] = Array(repeating: TokenServer.answer(404), count: 100) }
        #expect(world.asked() > 0)
        #expect(world.account(0).name == "chatbridge")
        world.harness.advance(by: .seconds(60))
        let early = world.asked()
        #expect(early >= 2, "while whatever was wrong may be over in a moment")
        world.harness.advance(by: .seconds(3600))
        let late = world.asked()
        #expect((10...20).contains(late), "every 5 min")
        world.server.trouble = [:]
        world.harness.advance(by: .seconds(300))
        #expect(world.asked() == 1)
        #expect(world.account(0) == ChatPerson(id: ChatID("7"), name: "bridge"))
        world.harness.advance(by: .seconds(3600))
        #expect(world.asked() == 0)
        #expect(world.harness.violations == [])
    }

    @Test("a link that comes up asks at once")
    func linkUp() throws {
        let world = try Self.world { $0.trouble["/me"] = Array(repeating: TokenServer.answer(404), count: 100) }
        world.harness.advance(by: .seconds(3600))
        _ = world.asked()
        world.server.trouble = [:]
        world.harness.endTransport(0, reason: "reset")
        world.harness.advance(by: .seconds(5))
        #expect(world.asked() == 1)
        #expect(world.account(0).id == ChatID("7"))
    }
}
