public import Dialects
public import Digests
public import HTTPProtocol
public import Rooms
import Upstream

extension SCRAMVerifier {
    /// Of a password in a single round, for tests with ten thousand log-ins.
    public init(quickly password: String) {
        self.init(password: SecretBytes(password.utf8), salt: Array("salt".utf8), iterations: 1)
    }
}

extension RoomSettings {
    public init(
        name: String, topic: String = "", backend: String? = nil, dialect: any Dialect, url: HTTPURL,
        upstreamRoom: String? = nil
    ) {
        self.init(
            LinkSettings(name: name, backend: backend, dialect: dialect, url: url, upstreamRoom: upstreamRoom),
            topic: topic)
    }

    /// A room at `ws://chat.example/NAME` of the backend `b`, which is never pinged and is called the same there.
    public static func stub(
        _ name: String, dialect: any Dialect = StubDialect { _ in }, connect: ConnectPolicy = .always
    ) throws -> RoomSettings {
        var room = RoomSettings(
            name: name, backend: "b", dialect: dialect, url: try HTTPURL(parsing: "ws://chat.example/\(name)"),
            upstreamRoom: name)
        room.ping = .zero
        room.connect = connect
        return room
    }
}
