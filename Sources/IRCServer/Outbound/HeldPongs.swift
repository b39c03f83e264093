import BridgeTypes

/// Clients that wait for a PONG until the disk has what they said.
final class HeldPongs {
    private var clients: Set<ClientID> = []

    /// False: the client waits for too many.
    func hold(_ pong: IRCSession.HeldPong, for session: IRCSession) -> Bool {
        guard session.hold(pong) else { return false }
        clients.insert(session.id)
        return true
    }

    /// Answers that wait no longer, in order.
    func release(
        _ session: (ClientID) -> IRCSession?, where isReady: (IRCSession.HeldPong) -> Bool
    ) -> [(client: ClientID, pong: IRCSession.HeldPong)] {
        guard !clients.isEmpty else { return [] }
        var released: [(client: ClientID, pong: IRCSession.HeldPong)] = []
        for id in clients.sorted(by: { $0.rawValue < $1.rawValue }) {
            let session = session(id)
            released += session?.takePongs(while: isReady).map { (id, $0) } ?? []
            if session?.heldPongs.isEmpty ?? true { clients.remove(id) }
        }
        return released
    }
}
