import BridgeTypes

/// How far the end of the process has come; the table is at ``Bridge/shutdown(now:)``.
package final class Lifecycle {
    package private(set) var phase = Phase.running
    /// Clients whose last answer is awaited before the bridge stops.
    private var clientsToAnswer: Set<ClientID> = []

    package enum Phase: Equatable {
        case running
        /// Asked to stop: queues are given time to empty.
        case draining
        /// Clients say what they have got.
        case asking
        /// Clients are told and closed, links say goodbye.
        case closing
        case stopped
    }

    package func drain() { phase = .draining }
    package func ask() { phase = .asking }
    package func close() { phase = .closing }
    package func stop() { phase = .stopped }

    package var awaitsAnswers: Bool { !clientsToAnswer.isEmpty }

    package func awaitAnswer(of client: ClientID) { clientsToAnswer.insert(client) }

    /// The client needs no more time.
    ///
    /// - Returns: whether it was the last of which that is true.
    package func answered(_ client: ClientID) -> Bool {
        phase == .asking && clientsToAnswer.remove(client) != nil && clientsToAnswer.isEmpty
    }
}
