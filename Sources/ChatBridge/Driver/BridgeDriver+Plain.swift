import BridgeCore
import BridgeTypes
import CSystem
import ChatModel
import PlainServer
import Transport
import WireBytes

// People with a terminal.

extension BridgeDriver {
    /// What a session is told of the server.
    func plainSettings(_ client: ClientID) -> PlainSettings {
        var settings = PlainSettings()
        settings.network = bridge.networkName
        settings.needsLogin = bridge.needsLogin(client)
        settings.hasServerPassword = bridge.hasServerPassword
        settings.offset = { Int(cb_local_offset($0.milliseconds / 1000)) }
        return settings
    }

    /// False: these are bytes for the IRC server.
    func plainReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, _ transport: Transport) -> Bool {
        let now = Now(transport)
        if let peer = plain.peers[id] {
            peer.session.received(bytes, now: now)
            run(peer, id, transport)
            return true
        }
        switch plain.received(id, bytes, now: now.monotonic) {
        case nil: return false
        case .undecided?: break
        case .person?: begin(id, transport)
        case .program?:
            let held = plain.takeHeld(id) ?? []
            plain.remove(id)
            held.withUnsafeBytes { bridge.clientReceived(id.client, $0, now: now) }
        }
        return true
    }

    private func begin(_ id: ConnectionID, _ transport: Transport) {
        let now = Now(transport)
        guard let (peer, answers) = plain.enter(id, plainSettings(id.client), now: now) else { return }
        peer.session.begin(answers, now: now)
        run(peer, id, transport)
    }

    func plainTimersFired(_ transport: Transport) {
        let now = Now(transport)
        while let id = plain.popDue(now.monotonic) {
            if let peer = plain.peers[id] {
                peer.session.timerFired(now: now)
                run(peer, id, transport)
            } else {
                begin(id, transport)
            }
        }
    }

    /// Shows a person what the server sends.
    func showPlain(_ peer: PlainClients.Peer, _ id: ConnectionID, _ slice: ByteSlice, _ transport: Transport) {
        slice.withUnsafeBytes { peer.session.serverSaid($0, now: Now(transport)) }
        run(peer, id, transport)
    }

    private func run(_ peer: PlainClients.Peer, _ id: ConnectionID, _ transport: Transport) {
        defer { plain.settle(id, peer) }
        for action in peer.session.takeActions() {
            switch action {
            case .toTerminal(let bytes): transport.send(id, ByteSlice(copying: bytes))
            case .toServer(let bytes):
                hasAnswered = true
                bytes.withUnsafeBytes { bridge.clientReceived(id.client, $0, now: Now(transport)) }
            case .isProgram(let bytes):
                hasAnswered = true
                plain.remove(id)
                bytes.withUnsafeBytes { bridge.clientReceived(id.client, $0, now: Now(transport)) }
            case .reads(let reads):
                peer.sessionReads(reads)
                settleReading(peer, id, transport)
            }
        }
    }

    /// The server wants more of a client, or no more for now.
    func setPlainReading(_ peer: PlainClients.Peer, _ id: ConnectionID, _ reads: Bool, _ transport: Transport) {
        peer.serverReads(reads)
        settleReading(peer, id, transport)
    }

    private func settleReading(_ peer: PlainClients.Peer, _ id: ConnectionID, _ transport: Transport) {
        if peer.isRead { transport.resumeReading(id) } else { transport.pauseReading(id) }
    }

    /// A connection has ended, or half of it.
    ///
    /// - Returns: the terminal sends no more, and its session works off what it has.
    func plainClosed(_ id: ConnectionID, _ end: StreamEnd, _ transport: Transport) -> Bool {
        guard !plain.isEmpty else { return false }
        let isHalf = end == .endOfStream || end == .tlsTruncated
        if isHalf, let peer = plain.peers[id], peer.session.ended(now: Now(transport)) {
            transport.continueHalfClosed(id)
            run(peer, id, transport)
            return true
        }
        if let held = plain.takeHeld(id), isHalf {
            // A last line without its end.
            held.withUnsafeBytes { bridge.clientReceived(id.client, $0, now: Now(transport)) }
        }
        plain.remove(id)
        return false
    }
}
