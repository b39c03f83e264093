import BridgeTypes
import Rooms
import WireBytes

// Clients that say what they have to say, end their sending side, and perhaps read on: scripts, mostly.
//
// | what waits when the client ends its sending side | then                                                            |
// |--------------------------------------------------|-----------------------------------------------------------------|
// | nothing                                          | it is gone                                                      |
// | lines, for the flood budget                      | they are carried out at the client's rate; QUIT ends it as ever |
// | a long answer, or a word of somebody else's      | the same, behind that                                           |
// | any of these, after ``IRCServer/lastWordsWait``     | it is gone                                                      |
//
// A client that does not read any more either is answered in vain, and its lines are carried out all the same: they came.

extension IRCServer {
    /// How long lines that came before a client's end may take. At the usual rate that is more than a script says, and
    /// whoever only wants to go is not seen for long.
    static let lastWordsWait: Duration = .seconds(60)

    /// The client sends no more, and may still read.
    ///
    /// - Returns: something of what it sent is yet to be carried out, so lines go on being sent to it; it is closed by
    ///   ``BridgeAction/closeClient(_:)`` in the end. False: it is gone.
    package func clientEnded(_ id: ClientID) -> Bool {
        guard let session = sessions[id] else { return false }
        noteEnd(of: session)
        processInput(session)
        return session.state != .closed
    }

    func noteEnd(of session: IRCSession) {
        guard session.sendingEnded() else { return }
        context.timers.set(.clientLiveness(session.id), at: context.now.monotonic + Self.lastWordsWait)
    }

    /// It does not read either.
    func readerGone(_ session: IRCSession) {
        session.readingEnded()
        pullLongAnswers(session)
        processInput(session)
    }

    /// Everything it sent is carried out, or has taken too long.
    func letGo(_ session: IRCSession) {
        quit(session, reason: "Connection closed")
        emit(.closeClient(session.id))
    }
}
