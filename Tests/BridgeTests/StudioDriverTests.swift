import ChatModel
import Dialects
import Foundation
import Studio
import Testing
import Transport
import WireBytes

/// Clients of a studio over loopback, on a loop of their own.
private final class StudioTestClients: TransportDelegate {
    private struct Waiter {
        var matches: @Sendable (StudioTestSocket.Heard) -> Bool
        var found: CheckedContinuation<StudioTestSocket.Heard?, Never>
    }

    private struct Client {
        var socket: StudioTestSocket
        var waiters: [Waiter] = []
        var untaken: [StudioTestSocket.Heard] = []
        /// Said before the handshake was over.
        var unsaid: [String] = []
        /// What was heard before the end can still be asked for after it.
        var hasEnded = false
    }

    private var clients: [ConnectionID: Client] = [:]

    // MARK: From the test

    func connect(port: Int, path: String, _ transport: Transport) throws -> ConnectionID {
        let id = transport.connect(host: "127.0.0.1", port: port, timeout: .seconds(10))
        clients[id] = Client(socket: try StudioTestSocket(path: path, seed: id.rawValue))
        return id
    }

    func say(_ id: ConnectionID, _ text: String, _ transport: Transport) {
        guard let client = clients[id] else { return }
        if client.socket.isOpen {
            transport.send(id, client.socket.text(text))
        } else {
            clients[id]?.unsaid.append(text)
        }
    }

    func wait(
        _ id: ConnectionID, _ found: CheckedContinuation<StudioTestSocket.Heard?, Never>,
        _ matches: @escaping @Sendable (StudioTestSocket.Heard) -> Bool
    ) {
        guard clients[id] != nil else { return found.resume(returning: nil) }
        clients[id]?.waiters.append(Waiter(matches: matches, found: found))
        settle(id)
        if clients[id]?.hasEnded == true { dismissWaiters(id) }
    }

    private func dismissWaiters(_ id: ConnectionID) {
        let waiters = clients[id]?.waiters ?? []
        clients[id]?.waiters = []
        for waiter in waiters { waiter.found.resume(returning: nil) }
    }

    // MARK: From the loop

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {}

    func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport) {
        guard let client = clients[id] else { return }
        transport.send(id, client.socket.request())
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        guard let socket = clients[id]?.socket else { return }
        transport.send(id, socket.bytesReceived(bytes))
        if socket.isOpen, let unsaid = clients[id]?.unsaid {
            clients[id]?.unsaid = []
            for text in unsaid { transport.send(id, socket.text(text)) }
        }
        clients[id]?.untaken += socket.take()
        settle(id)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        settle(id)
        clients[id]?.hasEnded = true
        dismissWaiters(id)
    }

    /// Hands what was heard to those who wait for it, and forgets what came before it.
    private func settle(_ id: ConnectionID) {
        while let client = clients[id], let waiter = client.waiters.first,
            let index = client.untaken.firstIndex(where: waiter.matches)
        {
            clients[id]?.waiters.removeFirst()
            clients[id]?.untaken.removeFirst(index + 1)
            waiter.found.resume(returning: client.untaken[index])
        }
    }
}

/// A client of a studio, as a test holds it.
private struct StudioTestClient: Sendable {
    let loop: NetworkLoop
    let id: ConnectionID

    static func connect(_ loop: NetworkLoop, port: Int, path: String) async throws -> StudioTestClient {
        let id = try await loop.run { transport in
            let clients = try #require(transport.delegate as? StudioTestClients)
            return try clients.connect(port: port, path: path, transport)
        }
        return StudioTestClient(loop: loop, id: id)
    }

    func say(_ text: String) async {
        await loop.run { ($0.delegate as? StudioTestClients)?.say(id, text, $0) }
    }

    /// The next thing heard that matches; nil when the connection ends before.
    func hear(
        _ matches: @escaping @Sendable (StudioTestSocket.Heard) -> Bool
    ) async -> StudioTestSocket.Heard? {
        await withCheckedContinuation { found in
            loop.enqueue { transport in
                guard let clients = transport.delegate as? StudioTestClients else {
                    return found.resume(returning: nil)
                }
                clients.wait(id, found, matches)
            }
        }
    }

    func hearText(containing part: String) async -> String? {
        let heard = await hear { if case .text(let text) = $0 { part.isEmpty || text.contains(part) } else { false } }
        return if case .text(let text) = heard { text } else { nil }
    }
}

@Suite(.timeLimit(.minutes(1))) struct StudioDriverTests {
    /// A message as a client of the dialect writes it.
    private func message(_ text: String, from name: String) throws -> String {
        let message = ChatMessage(
            id: ChatID("M-\(name)-\(text)"), sender: ChatPerson(id: ChatID("id-\(name)"), name: name), text: text,
            at: ChatTimestamp(milliseconds: 1_763_695_136_000))
        let encoded = EnvelopeDialect().encode(.message(message), context: DialectContext(room: "lobby"))
        guard let frames = encoded.frames else { throw StudioTestFailure.notEncoded }
        return frames.map { String(decoding: $0.bytes, as: UTF8.self) }.joined()
    }

    private enum StudioTestFailure: Error { case notEncoded }

    private func withStudio(
        visitor: Bool, _ body: (StudioDriver, NetworkLoop) async throws -> Void
    ) async throws {
        let studio = try await StudioDriver.start(
            port: 0, settings: StudioSettings(visitedRooms: visitor ? ["lobby"] : []))
        let loop = try NetworkLoop.start(name: "studio-test")
        await loop.run { $0.attach(StudioTestClients()) }
        defer {
            studio.stop()
            loop.stop()
            studio.waitUntilStopped()
            loop.waitUntilStopped()
        }
        try await body(studio, loop)
    }

    @Test("two clients in a room hear each other over loopback, and the third in another room does not")
    func relays() async throws {
        try await withStudio(visitor: false) { studio, loop in
            let ada = try await StudioTestClient.connect(loop, port: studio.port, path: "/lobby")
            let ben = try await StudioTestClient.connect(loop, port: studio.port, path: "/lobby")
            let eve = try await StudioTestClient.connect(loop, port: studio.port, path: "/garden")
            // An own echo proves that its sender is in the room.
            await ben.say("ben is here")
            #expect(await ben.hearText(containing: "ben is here") != nil)
            await eve.say("eve is here")
            #expect(await eve.hearText(containing: "eve is here") != nil)
            await ada.say("hello")
            #expect(await ada.hearText(containing: "hello") == "hello")
            #expect(await ben.hearText(containing: "hello") == "hello")
            await eve.say("only me")
            #expect(await eve.hearText(containing: "") == "only me")
        }
    }

    @Test("the visitor answers a barrier, and a greeting arrives after typing")
    func visits() async throws {
        try await withStudio(visitor: true) { studio, loop in
            let ada = try await StudioTestClient.connect(loop, port: studio.port, path: "/lobby")
            await ada.say(try message("ping-7", from: "ada"))
            #expect(await ada.hearText(containing: "ada: pong-7") != nil)
            studio.greet(room: "lobby", name: "cyd")
            studio.greet(room: "nowhere", name: "cyd")
            #expect(await ada.hearText(containing: #""event":"typing""#) != nil)
            let greeting = try #require(await ada.hearText(containing: "cyd"))
            #expect(greeting.contains(#""sender_name":"\#(StudioVisitor.name)""#))
        }
    }

    @Test("whoever reads too slowly is dropped, and the others go on")
    func dropsSlowReaders() async throws {
        try await withStudio(visitor: false) { studio, loop in
            let ada = try await StudioTestClient.connect(loop, port: studio.port, path: "/lobby")
            let slow = try await StudioTestClient.connect(loop, port: studio.port, path: "/lobby")
            await slow.say("about to sleep")
            #expect(await slow.hearText(containing: "about to sleep") != nil)
            await loop.run { $0.pauseReading(slow.id) }
            // More than its queue and any socket buffers between may hold; each echo paces the next.
            let chunk = String(repeating: "x", count: 256 * 1024)
            for number in 0..<80 {
                await ada.say("\(number) \(chunk)")
                #expect(await ada.hearText(containing: "\(number) x") != nil)
            }
            await loop.run { $0.resumeReading(slow.id) }
            #expect(await slow.hear { $0 == .text("never said") } == nil)
            await ada.say("still here")
            #expect(await ada.hearText(containing: "still here") != nil)
        }
    }

    @Test("stopping says goodbye, and the port is free afterwards")
    func stops() async throws {
        let studio = try await StudioDriver.start(port: 0, settings: StudioSettings(visitedRooms: ["lobby"]))
        let loop = try NetworkLoop.start(name: "studio-test")
        await loop.run { $0.attach(StudioTestClients()) }
        let ada = try await StudioTestClient.connect(loop, port: studio.port, path: "/lobby")
        await ada.say("x")
        #expect(await ada.hearText(containing: "x") != nil)
        studio.stop()
        #expect(await ada.hear { $0 == .close(1001) } == .close(1001))
        loop.stop()
        loop.waitUntilStopped()
        studio.stop()
        studio.waitUntilStopped()
        studio.greet(room: "lobby", name: "nobody hears this")
        let again = try await StudioDriver.start(port: studio.port)
        #expect(again.port == studio.port)
        again.stop()
        again.waitUntilStopped()
    }

    /// A path in a directory that is removed afterwards.
    private func withDatabase(_ body: (String) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "studio-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try await body(directory.appending(path: "studio.db").path)
    }

    @Test("with a database, rooms are there after a restart; without, they are not")
    func persists() async throws {
        try await withDatabase { path in
            for (database, isKept) in [(path, false), (path, true), (nil, false)] as [(String?, Bool)] {
                let studio = try await StudioDriver.start(port: 0, database: database)
                let loop = try NetworkLoop.start(name: "studio-test")
                await loop.run { $0.attach(StudioTestClients()) }
                let ada = try await StudioTestClient.connect(loop, port: studio.port, path: "/typed/lobby")
                let history = try #require(await ada.hearText(containing: "chat.history"))
                #expect(history.contains("remember me") == isKept)
                await ada.say(
                    #"{"type":"chat.message","payload":{"room":"lobby","id":"m1","senderId":"a","senderName":"Ada","#
                        + #""text":"remember me \u0000 'too'","sentAt":1}}"#)
                #expect(await ada.hearText(containing: #""state":"sent""#) != nil)
                studio.stop()
                loop.stop()
                studio.waitUntilStopped()
                loop.waitUntilStopped()
            }
        }
    }

    @Test("a file that is no database, or one of another program, is an error and stays as it is")
    func refusesForeignFiles() async throws {
        try await withDatabase { path in
            let text = Data("not a database, but a diary of some length".utf8)
            try text.write(to: URL(filePath: path))
            await #expect(throws: StudioDatabaseError.self) { try await StudioDriver.start(port: 0, database: path) }
            #expect(try Data(contentsOf: URL(filePath: path)) == text)
            await #expect(throws: StudioDatabaseError.self) {
                try await StudioDriver.start(port: 0, database: path + "/below")
            }
        }
    }

    @Test("a port that is taken is an error, not a trap")
    func refusesTakenPorts() async throws {
        let studio = try await StudioDriver.start(port: 0)
        await #expect(throws: TransportError.self) {
            try await StudioDriver.start(port: studio.port)
        }
        await #expect(throws: TransportError.portOutOfRange(70_000)) {
            try await StudioDriver.start(port: 70_000)
        }
        studio.stop()
        studio.waitUntilStopped()
    }
}
