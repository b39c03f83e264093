import BridgeTypes

/// Clients with a PONG that waits until their messages are on disk.
final class DelayedPongs {
    private var clients: Set<ClientID> = []

    /// Holds a PONG. False: too many are held for the client.
    func hold(_ pong: IRCSession.HeldPong, for session: IRCSession) -> Bool {
        guard session.hold(pong) else { return false }
        clients.insert(session.id)
        return true
    }

    /// PONGs that wait no longer, in order.
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
