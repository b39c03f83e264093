import BridgeTypes
import Configuration
import Glibc
import Studio
import Transport

// The commands with the built-in chat backend.

extension ServiceCommands {
    // MARK: - demo

    static let demoRoom = "lobby"

    static func demo(
        _ options: GlobalOptions, environment: ConfigurationEnvironment, output: @escaping Output, errors: Output
    ) async -> Int32 {
        var configuration: Configuration
        do {
            // The demo's backend has no persistent state.
            configuration = try ConfigurationLoader.load(
                options.request(needsRooms: false, storage: .memory), from: environment
            ).configuration
        } catch {
            errors(error.description + "\n")
            return ExitCode.configuration
        }
        let studio: StudioDriver
        do {
            studio = try await StudioDriver.start(host: "127.0.0.1", port: 0, rooms: [demoRoom], visitor: true)
        } catch {
            errors("chatbridge: the demo's chat backend cannot start: \(error)\n")
            return ExitCode.unavailable
        }
        defer { studio.stop() }
        do {
            configuration.rooms = [try demoRoomConfiguration(port: studio.port)]
        } catch {
            errors("chatbridge: \(error)\n")
            return ExitCode.software
        }
        return await serve(
            configuration, options, environment, errors: errors,
            observe: { note in
                guard note.event == "client-joined", let nick = note.metadata["nick"] else { return }
                studio.greet(room: demoRoom, name: nick)
            },
            started: { service in output(demoText(service.addresses.first, studioPort: studio.port)) })
    }

    private static func demoRoomConfiguration(port: Int) throws(AddressError) -> RoomConfiguration {
        var room = RoomConfiguration()
        room.name = demoRoom
        room.channel = "#" + demoRoom
        room.upstreamRoom = demoRoom
        room.topic = "The demo room: say hello, watch Remy type, answer and read"
        room.url = try UpstreamURL(parsing: "ws://127.0.0.1:\(port)/\(demoRoom)")
        return room
    }

    /// Instructions in five lines.
    static func demoText(_ address: SocketAddress?, studioPort: Int) -> String {
        let host = address?.host ?? "127.0.0.1"
        let port = address?.port.map(String.init) ?? "6667"
        return """
            The demo runs: an IRC server on \(host) port \(port), in front of a small chat backend with a visitor.
              irssi    irssi -c \(host) -p \(port)       then  /join #\(demoRoom)
              WeeChat  /server add demo \(host)/\(port) -notls   /connect demo   /join #\(demoRoom)
              by hand  nc \(host) \(port)                then type  NICK me, USER me 0 * :Me, JOIN #\(demoRoom)
            The backend: ws://127.0.0.1:\(studioPort)/\(demoRoom). Ctrl-C ends it. Yours: make run CONFIG=your.toml\n
            """
    }

    // MARK: - studio

    static let studioPort = 8080

    static func studio(_ options: GlobalOptions, port: UInt16?, output: Output, errors: Output) async -> Int32 {
        do {
            let studio = try await StudioDriver.start(
                host: "127.0.0.1", port: port.map(Int.init) ?? studioPort, rooms: [demoRoom], visitor: true)
            output("The studio relays chat on ws://127.0.0.1:\(studio.port)/ROOM; the visitor is in \(demoRoom).\n")
            let signals = try NetworkLoop.start(name: "signals")
            let (ended, end) = AsyncStream<Void>.makeStream()
            try await signals.run { transport throws(TransportError) in
                try transport.watchSignals([SIGTERM, SIGINT]) { _, _ in end.finish() }
            }
            for await _ in ended {}
            studio.stop()
            studio.waitUntilStopped()
            signals.stop()
            return ExitCode.ok
        } catch {
            errors("chatbridge: the studio cannot start: \(error)\n")
            return ExitCode.unavailable
        }
    }
}
