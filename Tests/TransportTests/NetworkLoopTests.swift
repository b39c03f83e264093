import Glibc
import Testing
import Transport
import WireBytes

@Suite("The network loop")
struct NetworkLoopTests {
    @Test("work from many threads runs on one, in each thread's order")
    func crossThread() async throws {
        let test = try await TestLoop()
        let loop = test.loop
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<4 {
                group.addTask {
                    for step in 0..<1000 {
                        loop.enqueue { transport in
                            guard let probe = transport.delegate as? Probe else { return }
                            let id = ConnectionID(rawValue: UInt64(lane))
                            let seen = probe.peers[id]?.deliveries ?? 0
                            if seen == step { probe.peers[id, default: .init()].deliveries += 1 }
                        }
                    }
                }
            }
        }
        #expect(
            await test.until { probe, _ in
                (0..<4).allSatisfy { probe.peers[ConnectionID(rawValue: $0)]?.deliveries == 1000 }
            })
    }

    @Test("run comes after what was enqueued before it")
    func runAfterEnqueue() async throws {
        let test = try await TestLoop()
        for step in 1...100 {
            test.loop.enqueue { ($0.delegate as? Probe)?.note += 1 }
            #expect(try await test.run { _, probe in probe.note } == step)
        }
    }

    @Test("run throws what its body throws")
    func runThrows() async throws {
        let test = try await TestLoop()
        await #expect(throws: TransportError.portOutOfRange(-1)) {
            try await test.loop.run { transport throws(TransportError) in
                _ = try transport.listen(ListenOptions(host: "127.0.0.1", port: -1))
            }
        }
    }

    @Test("a task that prefers the loop runs on its thread")
    func executorPreference() async throws {
        let test = try await TestLoop()
        let loop = test.loop
        let onLoop = await Task(executorPreference: loop.executor) {
            loop.executor.isIsolatingCurrentContext()
        }.value
        #expect(onLoop == true)
        #expect(loop.executor.isIsolatingCurrentContext() == false)
    }

    @Test("the deadline comes once, not early, and the clock does not move within a turn")
    func deadline() async throws {
        let test = try await TestLoop()
        let (started, reached): (MonotonicInstant, MonotonicInstant) = await withCheckedContinuation { continuation in
            test.loop.enqueue { transport in
                guard let probe = transport.delegate as? Probe else { return }
                let started = transport.now
                probe.onDeadline = { transport in
                    probe.note += 1
                    continuation.resume(returning: (started, transport.now))
                }
                transport.setDeadline(started + .milliseconds(5))
            }
        }
        #expect(reached - started >= .milliseconds(5))
        try await test.run { transport, probe in
            #expect(probe.note == 1)
            #expect(transport.now == transport.now)
            #expect(transport.wallClockMilliseconds > 1_600_000_000_000)
        }
    }

    @Test("deadlines in the past and at the end of time are survived")
    func extremeDeadlines() async throws {
        let test = try await TestLoop()
        try await test.run { transport, probe in
            probe.onDeadline = { transport in
                probe.note += 1
                transport.setDeadline(MonotonicInstant(nanoseconds: .max))
            }
            transport.setDeadline(MonotonicInstant(nanoseconds: .min))
        }
        #expect(await test.until { probe, _ in probe.note == 1 })
        try await test.run { transport, probe in transport.setDeadline(nil) }
    }

    @Test("stop sends what is queued, closes everything, and can be waited for by several")
    func stopping() async throws {
        let test = try await TestLoop()
        let loop = test.loop
        let address = try await test.listen()
        let raw = try RawSocket(port: address.port ?? 0)
        #expect(await test.until { probe, _ in probe.accepted.count == 1 })
        loop.enqueue { transport in
            guard let probe = transport.delegate as? Probe, let id = probe.accepted.first else { return }
            transport.send(id, "last words")
        }
        loop.stop()
        loop.stop()
        loop.waitUntilStopped()
        loop.waitUntilStopped()
        #expect(raw.readToEnd() == "last words")
        // The port is free again.
        let successor = try await TestLoop()
        let port = try #require(address.port)
        #expect(try await successor.listen(ListenOptions(host: "127.0.0.1", port: port)) == address)
    }

    @Test("a loop that has stopped still answers, with an empty transport")
    func afterStop() async throws {
        let loop = try NetworkLoop.start(name: "a name that is longer than the kernel keeps")
        loop.stop()
        loop.waitUntilStopped()
        loop.enqueue { _ in Issue.record("ran after the stop") }
        for _ in 0..<20 {
            let count = await loop.run { transport in
                transport.send(transport.connect(host: "127.0.0.1", port: 1, timeout: .seconds(1)), "x")
                return transport.connectionCount
            }
            #expect(count == 0)
        }
        await #expect(throws: TransportError.systemCallFailed(call: "listen", errno: ECANCELED)) {
            _ = try await loop.run { try $0.listen(ListenOptions(host: "127.0.0.1", port: 0)).1 }
        }
    }

    @Test("awaiting a loop while it stops always comes back")
    func stopRace() async throws {
        for _ in 0..<50 {
            let loop = try NetworkLoop.start(name: "race")
            await withTaskGroup(of: Int.self) { group in
                for _ in 0..<4 { group.addTask { await loop.run { $0.connectionCount } } }
                group.addTask {
                    loop.stop()
                    return 0
                }
                for await count in group { #expect(count == 0) }
            }
            loop.waitUntilStopped()
        }
    }

    @Test("an idle loop does not turn")
    func idle() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        // Settle: the events of the handshake are over when an echo is.
        try await test.run { transport, _ in transport.send(client, "x") }
        #expect(await test.until { probe, _ in probe.text(server) == "x" })
        let before = try await test.run { transport, _ in transport.counters.turns }
        let after = try await test.run { transport, _ in transport.counters.turns }
        #expect(after - before <= 2)
    }
}

@Suite("Services of the machine")
struct SystemServicesTests {
    @Test("random numbers do not repeat across refills, nor between copies")
    func random() {
        var one = BufferedSystemRandom()
        var copy = one
        var seen: Set<UInt64> = []
        for _ in 0..<2000 {
            seen.insert(one.next())
            seen.insert(copy.next())
        }
        #expect(seen.count == 4000)
    }

    @Test("the soft limit of open files meets the hard one")
    func openFiles() throws {
        var limit = rlimit()
        #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        let raised = try #require(ProcessLimits.raiseOpenFiles())
        #expect(UInt(raised) == min(limit.rlim_max, rlim_t(Int.max)))
        #expect(ProcessLimits.openFiles == raised)
    }

    @Test("the machine has a name, and a pipe is no terminal")
    func machine() {
        #expect(!Machine.hostName.isEmpty)
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        #expect(!Machine.isTerminal(ends[0]))
        ends.forEach { _ = close($0) }
    }

    @Test("signals arrive on the loop")
    func signals() async throws {
        let test = try await TestLoop()
        try await test.run { transport, probe in
            try transport.watchSignals([SIGUSR2]) { signal, _ in probe.note = Int(signal) }
        }
        kill(getpid(), SIGUSR2)
        #expect(await test.until { probe, _ in probe.note == Int(SIGUSR2) })
    }
}
