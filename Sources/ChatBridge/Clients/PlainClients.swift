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
        private var serverReads = true
        private var sessionReads = true
        var isRead: Bool { serverReads && sessionReads }

        init(_ session: PlainSession) { self.session = session }

        func serverReads(_ reads: Bool) { serverReads = reads }
        func sessionReads(_ reads: Bool) { sessionReads = reads }
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
