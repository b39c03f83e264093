import JSONText
import Transport
import WireBytes

/// A request and the way back to its client. Everything is a no-op once the client is gone or the answer complete.
final class AdminExchange {
    private unowned let server: AdminServer
    unowned let transport: Transport
    private let connection: ConnectionID
    private(set) var isOpen = true
    /// Its items end with the connection only.
    let isStream: Bool
    private var ended: (() -> Void)?
    private var continuation: (() -> Void)?

    init(_ server: AdminServer, _ connection: ConnectionID, isStream: Bool = false, _ transport: Transport) {
        self.server = server
        self.connection = connection
        self.isStream = isStream
        self.transport = transport
    }

    func item(_ value: JSONValue) { if isOpen { send(AdminLine.item(value).bytes) } }

    func done(_ members: [JSONValue.Member] = []) { complete(AdminLine.done(.object(members)).bytes) }

    func fail(_ code: AdminFailure.Code, _ message: String) {
        complete(AdminLine.error(AdminFailure(code, message)).bytes)
    }

    /// Completes the answer with its last line.
    func complete(_ line: [UInt8]) {
        guard isOpen else { return }
        send(line)
        close()
        server.completed(connection, transport)
    }

    private func send(_ line: [UInt8]) { transport.send(connection, line.withUnsafeBytes { ByteSlice(copying: $0) }) }

    /// The time of day, in milliseconds since 1970.
    var wallMilliseconds: Int64 { transport.wallClockMilliseconds }

    /// Bytes that the client has not taken yet.
    var unreadBytes: Int { transport.queuedByteCount(connection) }

    /// Goes on once the client has taken everything.
    func whenDrained(_ body: @escaping () -> Void) {
        guard isOpen else { return }
        continuation = body
        transport.notifyWhenDrained(connection)
    }

    /// Called once, when the answer is complete or the client is gone.
    func whenEnded(_ body: @escaping () -> Void) { ended = body }

    func drained() {
        guard let body = continuation else { return }
        continuation = nil
        body()
    }

    /// The client is gone.
    func close() {
        guard isOpen else { return }
        isOpen = false
        continuation = nil
        let body = ended
        ended = nil
        body?()
    }
}
