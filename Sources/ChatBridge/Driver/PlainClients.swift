import BridgeCore
import BridgeTypes
import CSystem
import ChatModel
import IRCServer
import PlainServer
import Transport
import WireBytes

// Clients whose first words show whether a program speaks IRC, or a person types.

/// The connections that are undecided, and the people.
struct PlainClients {
    /// Verbs of first lines that are no person's: those of IRC, and those that the IRC server turns away.
    static let verbs = IRCServer.firstVerbs

    /// A person. By reference, as a screen is too large to be taken out of a table and back.
    final class Peer {
        let session: PlainSession
        /// The terminal is read when neither of the two is false.
        var serverReads = true
        var sessionReads = true

        init(_ session: PlainSession) { self.session = session }
    }

    private struct Opening {
        var entrance: Entrance
        var settings: PlainSettings
        var until: MonotonicInstant
    }

    private var openings: [ConnectionID: Opening] = [:]
    private(set) var peers: [ConnectionID: Peer] = [:]

    var isEmpty: Bool { openings.isEmpty && peers.isEmpty }

    mutating func open(_ id: ConnectionID, _ settings: PlainSettings, now: MonotonicInstant) {
        openings[id] = Opening(
            entrance: Entrance(verbs: Self.verbs), settings: settings, until: now + Entrance.patience)
    }

    /// What an undecided connection has said.
    mutating func takeHeld(_ id: ConnectionID) -> [UInt8]? { openings[id]?.entrance.takeHeld() }

    mutating func remove(_ id: ConnectionID) {
        openings[id] = nil
        peers[id] = nil
    }

    enum Verdict {
        /// It is no connection of this kind, or no more: the bytes are the IRC server's.
        case program([UInt8]?)
        case undecided
        case person(Peer, [UInt8])
    }

    /// Takes the first bytes of a connection.
    mutating func received(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, now: Now) -> Verdict {
        guard openings[id] != nil else { return .program(nil) }
        switch openings[id]?.entrance.received(bytes) {
        case .undecided:
            // Who has begun is given the time to end the line.
            openings[id]?.until = now.monotonic + Entrance.patience
            return .undecided
        case .program?, nil:
            let held = openings[id]?.entrance.takeHeld() ?? []
            openings[id] = nil
            return .program(held)
        case .person?: return becomePerson(id, now: now).map { .person($0, $1) } ?? .program(nil)
        }
    }

    private mutating func becomePerson(_ id: ConnectionID, now: Now) -> (Peer, [UInt8])? {
        guard var opening = openings.removeValue(forKey: id) else { return nil }
        let held = opening.entrance.takeAnswers()
        let peer = Peer(PlainSession(opening.settings, opening.entrance, now: now))
        peers[id] = peer
        return (peer, held)
    }

    var nextDeadline: MonotonicInstant? {
        (openings.values.map(\.until) + peers.values.compactMap { $0.session.nextDeadline }).min()
    }

    /// A connection that has been silent for long enough to be a person's.
    mutating func popSilent(now: Now) -> (ConnectionID, Peer, [UInt8])? {
        guard let id = openings.first(where: { $0.value.until <= now.monotonic })?.key,
            let (peer, held) = becomePerson(id, now: now)
        else { return nil }
        return (id, peer, held)
    }

    func due(now: MonotonicInstant) -> [ConnectionID] {
        peers.filter { $0.value.session.nextDeadline.map { $0 <= now } ?? false }.map(\.key)
    }
}

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
        let now = Self.now(transport)
        if let peer = plain.peers[id] {
            peer.session.received(bytes, now: now)
            run(peer, id, transport)
            return true
        }
        switch plain.received(id, bytes, now: now) {
        case .program(nil): return false
        case .program(let held?):
            held.withUnsafeBytes { bridge.clientReceived(id.client, $0, now: now) }
            run(transport)
        case .undecided: break
        case .person(let peer, let held): begin(peer, id, held, transport)
        }
        return true
    }

    private func begin(_ peer: PlainClients.Peer, _ id: ConnectionID, _ held: [UInt8], _ transport: Transport) {
        peer.session.begin()
        held.withUnsafeBytes { peer.session.received($0, now: Self.now(transport)) }
        run(peer, id, transport)
        run(transport)
    }

    func plainTimersFired(_ transport: Transport) {
        let now = Self.now(transport)
        while let (id, peer, held) = plain.popSilent(now: now) { begin(peer, id, held, transport) }
        for id in plain.due(now: now.monotonic) {
            guard let peer = plain.peers[id] else { continue }
            peer.session.timerFired(now: now)
            run(peer, id, transport)
        }
    }

    /// Shows a person what the server sends.
    func showPlain(_ peer: PlainClients.Peer, _ id: ConnectionID, _ slice: ByteSlice, _ transport: Transport) {
        slice.withUnsafeBytes { peer.session.serverSaid($0, now: Self.now(transport)) }
        run(peer, id, transport)
    }

    private func run(_ peer: PlainClients.Peer, _ id: ConnectionID, _ transport: Transport) {
        for action in peer.session.takeActions() {
            switch action {
            case .toTerminal(let bytes): transport.send(id, ByteSlice(copying: bytes))
            case .toServer(let bytes):
                hasAnswered = true
                bytes.withUnsafeBytes { bridge.clientReceived(id.client, $0, now: Self.now(transport)) }
            case .isProgram(let bytes):
                hasAnswered = true
                plain.remove(id)
                bytes.withUnsafeBytes { bridge.clientReceived(id.client, $0, now: Self.now(transport)) }
            case .reads(let reads):
                peer.sessionReads = reads
                settleReading(peer, id, transport)
            }
        }
    }

    /// The server wants more of a client, or no more for now.
    func setPlainReading(_ peer: PlainClients.Peer, _ id: ConnectionID, _ reads: Bool, _ transport: Transport) {
        peer.serverReads = reads
        settleReading(peer, id, transport)
    }

    private func settleReading(_ peer: PlainClients.Peer, _ id: ConnectionID, _ transport: Transport) {
        if peer.serverReads, peer.sessionReads { transport.resumeReading(id) } else { transport.pauseReading(id) }
    }

    /// A connection has ended, or half of it.
    ///
    /// - Returns: the terminal sends no more, and its session works off what it has.
    func plainClosed(_ id: ConnectionID, _ end: StreamEnd, _ transport: Transport) -> Bool {
        guard !plain.isEmpty else { return false }
        let isHalf = end == .endOfStream || end == .tlsTruncated
        if isHalf, let peer = plain.peers[id], peer.session.ended(now: Self.now(transport)) {
            transport.continueHalfClosed(id)
            run(peer, id, transport)
            return true
        }
        if let held = plain.takeHeld(id), isHalf {
            // A last line without its end.
            held.withUnsafeBytes { bridge.clientReceived(id.client, $0, now: Self.now(transport)) }
        }
        plain.remove(id)
        return false
    }
}
