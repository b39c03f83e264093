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

    private var openings: [ConnectionID: Entrance] = [:]
    private(set) var peers: [ConnectionID: Peer] = [:]
    /// When an undecided connection has been silent for long enough, or a session wants its timer.
    private var deadlines = DeadlineHeap<ConnectionID>()

    var isEmpty: Bool { openings.isEmpty && peers.isEmpty }

    mutating func open(_ id: ConnectionID, now: MonotonicInstant) {
        openings[id] = Entrance(verbs: Self.verbs)
        deadlines.set(id, at: now + Entrance.patience)
    }

    /// What an undecided connection has said.
    mutating func takeHeld(_ id: ConnectionID) -> [UInt8]? { openings[id]?.takeHeld() }

    mutating func remove(_ id: ConnectionID) {
        openings[id] = nil
        peers[id] = nil
        deadlines.cancel(id)
    }

    /// Takes the first bytes of a connection; nil: it is none of these, or none any more.
    mutating func received(
        _ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, now: MonotonicInstant
    ) -> Entrance.Verdict? {
        guard let verdict = openings[id]?.received(bytes) else { return nil }
        // Who has begun is given the time to end the line.
        if verdict == .undecided { deadlines.set(id, at: now + Entrance.patience) }
        return verdict
    }

    /// An undecided connection is a person's.
    ///
    /// - Returns: also what they have answered so far.
    mutating func enter(_ id: ConnectionID, _ settings: PlainSettings, now: Now) -> (peer: Peer, answers: [UInt8])? {
        guard var entrance = openings.removeValue(forKey: id) else { return nil }
        let answers = entrance.takeAnswers()
        let peer = Peer(PlainSession(settings, entrance, now: now))
        peers[id] = peer
        return (peer, answers)
    }

    /// After anything that a session did.
    mutating func settle(_ id: ConnectionID, _ peer: Peer) {
        guard peers[id] === peer else { return }
        if let next = peer.session.nextDeadline { deadlines.set(id, at: next) } else { deadlines.cancel(id) }
    }

    mutating func nextDeadline() -> MonotonicInstant? { deadlines.next() }

    mutating func popDue(_ now: MonotonicInstant) -> ConnectionID? { deadlines.popDue(now) }
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
        let now = Self.now(transport)
        guard let (peer, answers) = plain.enter(id, plainSettings(id.client), now: now) else { return }
        peer.session.begin()
        answers.withUnsafeBytes { peer.session.received($0, now: now) }
        run(peer, id, transport)
    }

    func plainTimersFired(_ transport: Transport) {
        let now = Self.now(transport)
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
        slice.withUnsafeBytes { peer.session.serverSaid($0, now: Self.now(transport)) }
        run(peer, id, transport)
    }

    private func run(_ peer: PlainClients.Peer, _ id: ConnectionID, _ transport: Transport) {
        defer { plain.settle(id, peer) }
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
