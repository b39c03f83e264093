import BridgeTypes
import Configuration
import Glibc
import Studio
import Transport

// The commands with the built-in chat backend.

extension ServiceCommands {
    // MARK: - demo

    static let demoRoom = "lobby"
    /// The first one has the visitor.
    static let demoRooms = [
        StudioRoomSettings(
            name: demoRoom, topic: "The demo room: say hello, watch Remy type, answer and read",
            channel: "#" + demoRoom),
        StudioRoomSettings(name: "kitchen", topic: "For two windows and a friend", channel: "#kitchen"),
        StudioRoomSettings(name: "garden", topic: "Quiet, so far", channel: "#garden"),
    ]

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
            studio = try await StudioDriver.start(
                host: "127.0.0.1", port: 0,
                settings: StudioSettings(rooms: demoRooms, visitedRooms: [demoRoom]))
        } catch {
            errors("chatbridge: the demo's chat backend cannot start: \(error)\n")
            return ExitCode.unavailable
        }
        defer { studio.stop() }
        do {
            configuration.backends = [try demoBackend(port: studio.port)]
            configuration.rooms = try demoRooms.map { room throws(AddressError) in
                try demoRoomConfiguration(room, port: studio.port)
            }
        } catch {
            errors("chatbridge: \(error)\n")
            return ExitCode.software
        }
        configuration.listeners.append(pageListener(pagePort: studio.port))
        let isLinked = linksAreShown(options.color, environment.variables)
        return await serve(
            configuration, options, environment, errors: errors,
            started: { service in
                // The page's listener is the last one.
                if let port = service.addresses.last?.port { studio.announce(relay: "ws://127.0.0.1:\(port)/") }
                output(demoText(service.addresses.first, studioPort: studio.port, isLinked: isLinked))
            })
    }

    /// One for all rooms, so that a person is the same in each.
    private static func demoBackend(port: Int) throws(AddressError) -> BackendConfiguration {
        var room = RoomConfiguration()
        room.dialect = demoDialect
        room.url = try UpstreamURL(parsing: "ws://127.0.0.1:\(port)/typed/{room}")
        return BackendConfiguration(name: "demo", room: room)
    }

    /// The one with the most to see: replies, edits, reactions, receipts, joins and leaves.
    private static let demoDialect = "typed"

    private static func demoRoomConfiguration(
        _ studioRoom: StudioRoomSettings, port: Int
    ) throws(AddressError) -> RoomConfiguration {
        var room = RoomConfiguration()
        room.name = studioRoom.name
        room.channel = "#" + studioRoom.name
        room.backend = "demo"
        room.upstreamRoom = studioRoom.name
        room.topic = studioRoom.topic
        room.dialect = demoDialect
        room.url = try UpstreamURL(parsing: "ws://127.0.0.1:\(port)/typed/\(studioRoom.name)")
        return room
    }

    /// IRC over WebSocket for the studio's page, and for no other page.
    private static func pageListener(pagePort: Int) -> ListenerConfiguration {
        var listener = ListenerConfiguration()
        listener.bind = ListenerAddress(scheme: .ws, endpoint: HostPort(host: "127.0.0.1", port: 0), path: "/")
        listener.origins = ["127.0.0.1", "localhost"].map {
            .site(scheme: "http", host: $0, port: pagePort, isBelow: false)
        }
        return listener
    }

    /// Whether standard output is a terminal that can be assumed to know links, or to ignore them as it should.
    private static func linksAreShown(_ color: ColorChoice, _ variables: [String: String]) -> Bool {
        guard isatty(STDOUT_FILENO) == 1, color != .never, variables["NO_COLOR", default: ""].isEmpty else {
            return false
        }
        return !["", "dumb", "linux"].contains(variables["TERM", default: ""])
    }

    /// A web address as a terminal's link: OSC 8, the address, and its text.
    private static func link(_ address: String, isLinked: Bool) -> String {
        isLinked ? "\u{1B}]8;;\(address)\u{1B}\\\(address)\u{1B}]8;;\u{1B}\\" : address
    }

    /// Instructions in six lines.
    static func demoText(_ address: SocketAddress?, studioPort: Int, isLinked: Bool = false) -> String {
        let host = address?.host ?? "127.0.0.1"
        let port = address?.port.map(String.init) ?? "6667"
        let page = link("http://127.0.0.1:\(studioPort)/", isLinked: isLinked)
        return """
            The demo runs: IRC on \(host) port \(port); behind it a small chat backend with a visitor.
              browser  \(page)            the chat, IRC beside it, and both wires
              irssi    irssi -c \(host) -p \(port)       then  /join #\(demoRoom)
              WeeChat  /server add demo \(host)/\(port) -notls   /connect demo   /join #\(demoRoom)
              telnet   telnet \(host) \(port)            then a name and a room; no IRC to know
            The backend: ws://127.0.0.1:\(studioPort)/\(demoRoom). Ctrl-C ends it. Yours: chatbridge run --config your.toml\n
            """
    }

    // MARK: - studio

    static let studioPort = 8080

    static func studio(
        _ options: GlobalOptions, port: UInt16?, database: String?, environment: ConfigurationEnvironment,
        output: Output, errors: Output
    ) async -> Int32 {
        do {
            let studio = try await StudioDriver.start(
                host: "127.0.0.1", port: port.map(Int.init) ?? studioPort,
                settings: StudioSettings(
                    rooms: demoRooms.map { StudioRoomSettings(name: $0.name, topic: $0.topic) },
                    visitedRooms: [demoRoom]),
                database: database)
            let isLinked = linksAreShown(options.color, environment.variables)
            output(
                "The studio relays chat on ws://127.0.0.1:\(studio.port)/ROOM; the visitor is in \(demoRoom).\n"
                    + "A browser gets a chat at \(link("http://127.0.0.1:\(studio.port)/", isLinked: isLinked))\n")
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
