import Glibc
import HTTPProtocol
import Transport
import WSProtocol

/// The echo programs that `scripts/autobahn` holds against the Autobahn TestSuite: the bridge's own transport and
/// WebSocket, and nothing of the bridge.
enum AutobahnCommands {
    typealias Output = (String) -> Void

    /// The suite's largest message is 16 MiB.
    static let limits = WebSocketLimits(maxFrameBytes: 32 * 1024 * 1024, maxMessageBytes: 32 * 1024 * 1024)
    /// Everything but an empty message is compressed, so that the suite sees as much of it as there is.
    static let compression = WebSocketCompression(leastCompressedBytes: 1)

    /// Walks through the cases of the fuzzing server at `url`. The status says only whether the walk was completed: the
    /// results are in the server's report.
    static func client(url: String, agent: String, only: Int?, errors: Output) async -> Int32 {
        let base = url.hasSuffix("/") ? String(url.dropLast()) : url
        do {
            // A good base makes good URLs, with any suffix.
            _ = try HTTPURL(parsing: base + "/runCase?case=1&agent=" + agent)
        } catch {
            errors("chatbridge: \(base) with agent \(agent): \(error.sentence)\n")
            return ExitCode.usage
        }
        do {
            let loop = try NetworkLoop.start(name: "autobahn")
            let (ends, end) = AsyncStream<String?>.makeStream()
            await loop.run { transport in
                let walk = AutobahnWalk(base: base, agent: agent, only: only) { trouble in
                    end.yield(trouble)
                    end.finish()
                }
                transport.attach(walk)
                walk.begin(transport)
            }
            var status = ExitCode.ok
            for await trouble in ends {
                guard let trouble else { continue }
                errors("chatbridge: \(trouble)\n")
                status = ExitCode.unavailable
            }
            loop.stop()
            return status
        } catch {
            errors("chatbridge: the Autobahn client cannot start: \(error)\n")
            return ExitCode.unavailable
        }
    }

    /// Echoes on 127.0.0.1 until a signal.
    static func server(port: UInt16, output: Output, errors: Output) async -> Int32 {
        do {
            let loop = try NetworkLoop.start(name: "autobahn")
            let (ended, end) = AsyncStream<Void>.makeStream()
            let address = try await loop.run { transport throws(TransportError) in
                transport.attach(AutobahnHost())
                let address = try transport.listen(ListenOptions(host: "127.0.0.1", port: Int(port))).1
                try transport.watchSignals([SIGTERM, SIGINT]) { _, _ in end.finish() }
                return address
            }
            output("Echoing on ws://\(address)\n")
            for await _ in ended {}
            loop.stop()
            return ExitCode.ok
        } catch {
            errors("chatbridge: the Autobahn server cannot start: \(error)\n")
            return ExitCode.unavailable
        }
    }
}
