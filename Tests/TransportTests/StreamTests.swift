import Glibc
import Testing
import Transport
import WireBytes

@Suite("Streams")
struct StreamTests {
    @Test("bytes come back from an echo, whatever their size", arguments: [1, 1460, 65536, 65537, 1_000_000])
    func echo(byteCount: Int) async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        try await test.run { transport, probe in
            probe.onReceived = { id, bytes, transport in
                if id == server { transport.send(server, ByteSlice(copying: bytes)) }
            }
            let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
            transport.send(client, bytes.withUnsafeBytes { ByteSlice(copying: $0) })
        }
        #expect(await test.until { probe, _ in probe.peers[client]?.received.count == byteCount })
        let intact = try await test.run { _, probe in
            probe.peers[client]?.received.enumerated().allSatisfy {
                $1 == UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8)
            }
        }
        #expect(intact == true)
    }

    @Test("two hundred connections are told apart")
    func manyConnections() async throws {
        let test = try await TestLoop()
        let address = try await test.listen()
        let clients = try await test.run { transport, probe in
            probe.onReceived = { id, bytes, transport in
                if probe.acceptedBy[id] != nil { transport.send(id, ByteSlice(copying: bytes)) }
            }
            return (0..<200).map { number in
                let id = transport.connect(to: address, timeout: .seconds(10))
                transport.send(id, "client \(number)")
                return id
            }
        }
        #expect(
            await test.until { probe, _ in
                clients.enumerated().allSatisfy { probe.text($1) == "client \($0)" }
            })
        #expect(Set(clients).count == 200)
    }

    @Test("a hundred thousand slices arrive in order through a small send buffer")
    func orderOfSlices() async throws {
        let test = try await TestLoop()
        var options = ListenOptions(host: "127.0.0.1", port: 0)
        options.sendBufferBytes = 4096
        let (client, server) = try await test.pair(options)
        let expected = (0..<100_000).reduce(0) { $0 + "\($1)\n".utf8.count }
        try await test.run { transport, _ in
            var writer = ByteWriter()
            for number in 0..<100_000 {
                writer.append(decimal: Int64(number))
                writer.append("\n")
                transport.send(server, writer.take())
            }
        }
        #expect(await test.until { probe, _ in probe.peers[client]?.received.count == expected })
        let lines = try await test.run { _, probe in
            probe.text(client).split(separator: "\n").enumerated().allSatisfy { Int($1) == $0 }
        }
        #expect(lines)
    }

    @Test("everything queued in one turn leaves in one write")
    func oneWritePerTurn() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        let before = try await test.run { transport, _ in
            for number in 0..<50 { transport.send(server, "line \(number)\n") }
            return transport.counters.sendCalls
        }
        #expect(await test.until { probe, _ in probe.text(client).hasSuffix("line 49\n") })
        let after = try await test.run { transport, _ in transport.counters.sendCalls }
        #expect(after == before + 1)
    }

    @Test("a slow reader fills its queue, loses nothing, and harms nobody else")
    func slowReader() async throws {
        let test = try await TestLoop()
        var options = ListenOptions(host: "127.0.0.1", port: 0)
        options.sendBufferBytes = 4096
        let (slow, slowServer) = try await test.pair(options)
        let (quick, quickServer) = try await test.pair()
        let total = 1_000_000
        try await test.run { transport, _ in
            transport.pauseReading(slow)
            let bytes = [UInt8](repeating: 7, count: total)
            transport.send(slowServer, bytes.withUnsafeBytes { ByteSlice(copying: $0) })
            transport.send(quickServer, "still here")
        }
        #expect(await test.until { probe, _ in probe.text(quick) == "still here" })
        let waiting = try await test.run { transport, probe in
            let waiting = transport.queuedByteCount(slowServer)
            transport.resumeReading(slow)
            #expect(probe.peers[slow]?.received.isEmpty == true)
            return waiting
        }
        #expect(waiting > 0)
        #expect(await test.until { probe, _ in probe.peers[slow]?.received.count == total })
    }

    @Test("a queue beyond its limit ends the connection, once")
    func sendLimit() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        try await test.run { transport, _ in
            transport.setSendLimit(server, bytes: 1000)
            // More than one turn hands to the kernel: the rest is beyond the limit.
            transport.send(server, String(repeating: "x", count: 64 << 20))
            transport.send(server, "y")
            transport.send(server, "z")
            #expect(transport.queuedByteCount(server) == 0)
        }
        #expect(await test.until { probe, _ in !probe.ends(server).isEmpty && !probe.ends(client).isEmpty })
        try await test.run { _, probe in
            #expect(probe.ends(server) == [.sendQueueExceeded(limit: 1000)])
            #expect(probe.ends(client) == [.reset])
            #expect(probe.reentries == 0)
        }
    }

    @Test("an owner who asks again each time is told each time, and never from within send")
    func drainedEachTime() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        try await test.run { transport, probe in
            // A generator: the next piece when the last has gone.
            probe.onDrained = { id, transport in
                guard probe.peers[server]?.drains ?? 0 < 5 else { return }
                transport.send(id, String(repeating: "x", count: 101))
                transport.notifyWhenDrained(id)
            }
            transport.send(server, String(repeating: "x", count: 100))
        }
        #expect(await test.until { probe, _ in probe.peers[client]?.received.count == 100 })
        try await test.run { transport, probe in
            #expect(probe.peers[server]?.drains == 0)
            transport.send(server, String(repeating: "x", count: 101))
            transport.notifyWhenDrained(server)
        }
        #expect(await test.until { probe, _ in probe.peers[client]?.received.count == 100 + 5 * 101 })
        #expect(await test.until { probe, _ in probe.peers[server]?.drains == 5 })
        try await test.run { _, probe in #expect(probe.reentries == 0) }
    }

    @Test("an owner who asks is told once when the queue is empty, even if it is already")
    func drainedOnce() async throws {
        let test = try await TestLoop()
        let (_, server) = try await test.pair()
        try await test.run { transport, _ in transport.notifyWhenDrained(server) }
        #expect(await test.until { probe, _ in probe.peers[server]?.drains == 1 })
        try await test.run { transport, probe in
            transport.send(server, "more")
            transport.notifyWhenDrained(server)
            #expect(probe.peers[server]?.drains == 1)
        }
        #expect(await test.until { probe, _ in probe.peers[server]?.drains == 2 })
    }

    @Test("reading pauses between two deliveries and goes on where it stopped")
    func pausing() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        let total = 300_000
        try await test.run { transport, probe in
            probe.onReceived = { id, _, transport in if id == server { transport.pauseReading(id) } }
            let bytes = [UInt8](repeating: 1, count: total)
            transport.send(client, bytes.withUnsafeBytes { ByteSlice(copying: $0) })
        }
        #expect(await test.until { probe, _ in probe.peers[server]?.deliveries == 1 })
        var deliveries = 1
        while try await test.run({ _, probe in probe.peers[server]?.received.count ?? 0 }) < total {
            try #require(deliveries < 1000)
            let seen = deliveries
            try await test.run { transport, _ in transport.resumeReading(server) }
            try #require(await test.until { probe, _ in probe.peers[server]?.deliveries ?? 0 > seen })
            let now = try await test.run { _, probe in probe.peers[server]?.deliveries ?? 0 }
            #expect(now == seen + 1)
            deliveries = now
        }
    }

    @Test(
        "of many that speak in one turn, one that is closed is not heard, and one that is paused loses nothing",
        arguments: [3000, 60_000])
    func manyInOneTurn(count: Int) async throws {
        let test = try await TestLoop()
        var pairs: [(client: ConnectionID, server: ConnectionID)] = []
        for _ in 0..<8 { pairs.append(try await test.pair()) }
        let all = pairs
        let (closed, paused) = (all[7].server, all[6].server)
        // All fit into one buffer, or not.
        let words = all.indices.map { String(repeating: "\($0)", count: count) }
        try await test.run { transport, probe in
            for (pair, text) in zip(all, words) {
                transport.pauseReading(pair.server)
                transport.send(pair.client, ByteSlice(text))
            }
            probe.onReceived = { id, _, transport in
                guard id == all[0].server else { return }
                transport.abort(closed)
                transport.pauseReading(paused)
            }
        }
        #expect(await test.until { _, transport in transport.counters.bytesSent >= 8 * count })
        try await test.run { transport, _ in for pair in all { transport.resumeReading(pair.server) } }
        #expect(await test.until { probe, _ in probe.text(all[5].server).utf8.count == count })
        try await test.run { transport, _ in transport.resumeReading(paused) }
        #expect(await test.until { probe, _ in probe.text(paused).utf8.count == count })
        #expect(await test.until { probe, _ in !probe.ends(closed).isEmpty })
        try await test.run { _, probe in
            for (pair, text) in zip(all, words) {
                #expect(probe.text(pair.server) == (pair.server == closed ? "" : text))
            }
        }
    }

    @Test("a flooder is read to its budget, and others have their turn")
    func fairness() async throws {
        let test = try await TestLoop()
        let (flooder, floodServer) = try await test.pair()
        let (modest, modestServer) = try await test.pair()
        let flood = 2_000_000
        try await test.run { transport, probe in
            transport.pauseReading(floodServer)
            transport.send(flooder, ByteSlice(String(repeating: "f", count: flood)))
        }
        // The flood waits in the socket's buffer until reading goes on.
        #expect(await test.until { _, transport in transport.counters.bytesSent >= 500_000 })
        try await test.run { transport, probe in
            probe.onReceived = { id, _, transport in
                if id == floodServer, probe.text(modestServer).isEmpty { transport.send(modest, ".") }
                if id == modestServer { probe.note = probe.peers[floodServer]?.received.count ?? 0 }
            }
            transport.resumeReading(floodServer)
        }
        #expect(await test.until { probe, _ in !probe.text(modestServer).isEmpty })
        try await test.run { _, probe in #expect(probe.note > 0 && probe.note < flood) }
        #expect(await test.until { probe, _ in probe.peers[floodServer]?.received.count == flood })
    }

    @Test("urgent bytes, as telnet sends them, stay in their place")
    func urgentData() async throws {
        let test = try await TestLoop()
        let address = try await test.listen()
        let raw = try RawSocket(port: address.port ?? 0)
        raw.send("before")
        raw.send("!", flags: Int32(MSG_OOB))
        raw.send("after")
        #expect(
            await test.until { probe, _ in
                probe.accepted.first.map { probe.text($0) == "before!after" } ?? false
            })
    }
}

@Suite("Ends of streams")
struct StreamEndTests {
    @Test("close after flush delivers everything, then the end")
    func closeAfterFlush() async throws {
        let test = try await TestLoop()
        var options = ListenOptions(host: "127.0.0.1", port: 0)
        options.sendBufferBytes = 4096
        let (client, server) = try await test.pair(options)
        let total = 3_000_000
        try await test.run { transport, _ in
            transport.send(server, ByteSlice(String(repeating: "x", count: total)))
            transport.closeAfterFlush(server, linger: .seconds(10))
            transport.send(server, "too late")
            // Input that crosses the close must not turn it into a reset.
            transport.send(client, "still talking")
        }
        #expect(await test.until { probe, _ in !probe.ends(client).isEmpty && !probe.ends(server).isEmpty })
        try await test.run { transport, probe in
            #expect(probe.peers[client]?.received.count == total)
            #expect(probe.ends(client) == [.endOfStream])
            #expect(probe.ends(server) == [.closedByUs])
            #expect(probe.text(server).isEmpty)
            #expect(transport.connectionCount == 0)
            #expect(probe.reentries == 0)
        }
    }

    @Test("close after flush gives up on a peer that does not read")
    func lingerEnds() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        try await test.run { transport, _ in
            transport.pauseReading(client)
            transport.send(server, ByteSlice(String(repeating: "x", count: 15_000_000)))
            transport.closeAfterFlush(server, linger: .milliseconds(30))
        }
        #expect(await test.until { probe, _ in probe.ends(server) == [.closedByUs] })
    }

    @Test("without linger one write is tried")
    func zeroLinger() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        try await test.run { transport, _ in
            transport.send(server, "goodbye")
            transport.closeAfterFlush(server, linger: .zero)
        }
        #expect(await test.until { probe, _ in !probe.ends(client).isEmpty && !probe.ends(server).isEmpty })
        try await test.run { _, probe in
            #expect(probe.text(client) == "goodbye")
            #expect(probe.ends(client) == [.endOfStream])
        }
    }

    @Test("a peer that sends and closes its side is heard, and answered")
    func halfClose() async throws {
        let test = try await TestLoop()
        let address = try await test.listen()
        try await test.run { _, probe in
            probe.onReceived = { id, bytes, transport in transport.send(id, ByteSlice(copying: bytes)) }
            probe.onClosed = { id, _, transport in transport.send(id, " and goodbye") }
        }
        let raw = try RawSocket(port: address.port ?? 0)
        raw.send("hello")
        raw.finishSending()
        #expect(raw.readToEnd() == "hello and goodbye")
        #expect(await test.until { probe, _ in probe.accepted.first.map { probe.ends($0) } == [.endOfStream] })
        #expect(await test.until { _, transport in transport.connectionCount == 0 })
    }

    @Test("the answer to a half-closed peer leaves even when it does not fit at once")
    func longAnswerAfterHalfClose() async throws {
        let test = try await TestLoop()
        var options = ListenOptions(host: "127.0.0.1", port: 0)
        options.sendBufferBytes = 4096
        let address = try await test.listen(options)
        let total = 1_000_000
        try await test.run { _, probe in
            probe.onReceived = { id, _, transport in
                transport.send(id, ByteSlice(String(repeating: "x", count: total)))
            }
        }
        let raw = try RawSocket(port: address.port ?? 0)
        raw.send("?")
        raw.finishSending()
        // Read at once: the answer has a time to leave, which a busy machine may use up before a wait returns.
        #expect(raw.readToEnd().utf8.count == total)
        #expect(await test.until { probe, _ in probe.accepted.first.map { probe.ends($0) } == [.endOfStream] })
        #expect(await test.until { _, transport in transport.connectionCount == 0 })
    }

    @Test("a half-closed peer that is kept is answered for as long as the owner likes, and its end is reported again")
    func keptAfterHalfClose() async throws {
        let test = try await TestLoop()
        let address = try await test.listen()
        try await test.run { _, probe in
            probe.onClosed = { id, end, transport in
                guard end == .endOfStream else { return }
                transport.continueHalfClosed(id)
                transport.send(id, "one")
                transport.notifyWhenDrained(id)
            }
            probe.onDrained = { id, transport in
                transport.send(id, " two")
                transport.closeAfterFlush(id, linger: .seconds(10))
            }
        }
        let raw = try RawSocket(port: address.port ?? 0)
        raw.send("hello")
        raw.finishSending()
        #expect(raw.readToEnd() == "one two")
        #expect(
            await test.until { probe, _ in
                probe.accepted.first.map { probe.ends($0) } == [.endOfStream, .closedByUs]
            })
        #expect(await test.until { _, transport in transport.connectionCount == 0 })
        try await test.run { _, probe in #expect(probe.reentries == 0) }
    }

    @Test("a half-closed peer that is kept can be closed at once, as an owner does whose answer is a goodbye")
    func keptAndClosedAtOnce() async throws {
        for aborts in [false, true] {
            let test = try await TestLoop()
            let address = try await test.listen()
            try await test.run { _, probe in
                probe.onClosed = { id, end, transport in
                    guard end == .endOfStream else { return }
                    transport.continueHalfClosed(id)
                    transport.send(id, "goodbye")
                    if aborts { transport.abort(id) } else { transport.closeAfterFlush(id, linger: .seconds(10)) }
                }
            }
            let raw = try RawSocket(port: address.port ?? 0)
            raw.send("hello")
            raw.finishSending()
            #expect(raw.readToEnd() == (aborts ? "" : "goodbye"))
            #expect(
                await test.until { probe, _ in
                    probe.accepted.first.map { probe.ends($0) } == [.endOfStream, .closedByUs]
                })
            #expect(await test.until { _, transport in transport.connectionCount == 0 })
        }
    }

    @Test("a kept peer that does not read any more breaks the connection, and that is reported")
    func keptAndGone() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        try await test.run { transport, probe in
            probe.onClosed = { id, end, transport in
                guard id == server, end == .endOfStream else { return }
                transport.continueHalfClosed(id)
                probe.onDeadline = { transport in
                    transport.send(server, "are you there?")
                    transport.setDeadline(transport.now + .milliseconds(20))
                }
                transport.setDeadline(transport.now)
            }
            transport.closeAfterFlush(client, linger: .zero)
        }
        #expect(await test.until { probe, _ in probe.ends(server) == [.endOfStream, .reset] })
        #expect(await test.until { _, transport in transport.connectionCount == 0 })
    }

    @Test("the end of a paused stream waits until reading goes on")
    func endWhilePaused() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        try await test.run { transport, _ in
            transport.pauseReading(server)
            transport.send(client, "last words")
            transport.closeAfterFlush(client, linger: .milliseconds(20))
        }
        #expect(await test.until { probe, _ in probe.ends(client) == [.closedByUs] })
        try await test.run { transport, probe in
            #expect(probe.ends(server).isEmpty && probe.text(server).isEmpty)
            transport.resumeReading(server)
        }
        #expect(await test.until { probe, _ in probe.ends(server) == [.endOfStream] })
        try await test.run { _, probe in #expect(probe.text(server) == "last words") }
    }

    @Test("abort drops what is queued, is reported once, and later calls do nothing")
    func abort() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        try await test.run { transport, probe in
            transport.send(server, "never sent")
            transport.abort(server)
            transport.abort(server)
            transport.closeAfterFlush(server, linger: .seconds(1))
            #expect(probe.ends(server).isEmpty)
        }
        #expect(await test.until { probe, _ in !probe.ends(server).isEmpty && !probe.ends(client).isEmpty })
        try await test.run { _, probe in
            #expect(probe.ends(server) == [.closedByUs])
            #expect(probe.ends(client) == [.reset])
            #expect(probe.text(client).isEmpty)
        }
    }

    @Test("a silent abort is not reported")
    func silentAbort() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        try await test.run { transport, _ in transport.abort(server, silently: true) }
        #expect(await test.until { probe, transport in !probe.ends(client).isEmpty && transport.connectionCount == 0 })
        try await test.run { _, probe in #expect(probe.ends(server).isEmpty) }
    }

    @Test("an owner may abort from within any callback", arguments: ["accepted", "received", "closed"])
    func abortInCallback(callback: String) async throws {
        let test = try await TestLoop()
        let address = try await test.listen()
        try await test.run { _, probe in
            switch callback {
            case "accepted": probe.onAccepted = { $1.abort($0) }
            case "received": probe.onReceived = { $2.abort($0) }
            default: probe.onClosed = { $2.abort($0) }
            }
        }
        let raw = try RawSocket(port: address.port ?? 0)
        if callback != "accepted" {
            raw.send("hello")
            raw.finishSending()
        }
        #expect(
            await test.until { probe, transport in
                probe.accepted.first.map { probe.ends($0).count } == 1 && transport.connectionCount == 0
            })
    }

    @Test("the id of an ended connection means nothing, even when its slot has a new tenant")
    func generations() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        try await test.run { transport, _ in
            transport.abort(server)
            transport.abort(client)
        }
        #expect(await test.until { _, transport in transport.connectionCount == 0 })
        let (newClient, newServer) = try await test.pair()
        #expect(Set([newClient.slot, newServer.slot]) == Set([client.slot, server.slot]))
        try await test.run { transport, _ in
            for old in [client, server, ConnectionID(rawValue: 0), ConnectionID(rawValue: .max)] {
                transport.send(old, "to a ghost")
                transport.pauseReading(old)
                transport.resumeReading(old)
                transport.notifyWhenDrained(old)
                transport.closeAfterFlush(old, linger: .zero)
                transport.abort(old, silently: true)
                #expect(transport.queuedByteCount(old) == 0)
            }
            transport.send(newServer, "to the living")
        }
        #expect(await test.until { probe, _ in probe.text(newClient) == "to the living" })
    }

    @Test("a send to a peer that is gone ends the connection after its last words")
    func sendToGonePeer() async throws {
        let test = try await TestLoop()
        let address = try await test.listen()
        try await test.run { _, probe in probe.onAccepted = { $1.pauseReading($0) } }
        do {
            let raw = try RawSocket(port: address.port ?? 0)
            raw.send("last words")
            #expect(await test.until { probe, _ in !probe.accepted.isEmpty })
        }
        // The socket is closed. One turn may pass before the reset that answers the first bytes is here, so keep talking.
        let server = try await test.run { transport, probe in
            let server = try #require(probe.accepted.first)
            transport.resumeReading(server)
            transport.send(server, "anybody there?")
            return server
        }
        #expect(await test.until { probe, _ in probe.ends(server).count == 1 })
        try await test.run { _, probe in #expect(probe.text(server) == "last words") }
    }
}
