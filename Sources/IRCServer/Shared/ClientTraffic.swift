/// Counts about clients since the start, for the operator. Owned by the server; labels are from closed sets.
package final class ClientTraffic {
    /// Where clients come in.
    package struct Door: Hashable {
        package var listener: String
        package var transport: ClientOrigin.Transport
    }

    /// Why a client is gone.
    package enum End: String, CaseIterable {
        /// It sent QUIT.
        case quit
        /// It closed its connection.
        case closed
        /// It did not read what was queued.
        case sendq
        /// It did not answer a PING.
        case ping
        /// It did not register, or log in.
        case login
        /// It sent what is not IRC.
        case foreign
        /// The bridge stopped.
        case drain
        case error
    }

    package enum RateLimit: String, CaseIterable {
        /// Lines of a client wait for its budget.
        case messages
        /// A connection was refused, for its address or for the number of clients.
        case connections
        /// The answer to a failed log-in is delayed.
        case logins
    }

    package struct LoginOutcome: Hashable {
        /// A SASL mechanism, or `PASS`, `OPER`, `WEBIRC`, `service`.
        package var mechanism: String
        package var result: Result

        package enum Result: String, CaseIterable {
            case ok, refused, busy
        }
    }

    /// Commands that lines to clients are counted by; numerics and others are one each.
    package static let sentCommands = [
        "PRIVMSG", "NOTICE", "TAGMSG", "JOIN", "PART", "QUIT", "NICK", "numeric", "other",
    ]

    package private(set) var open: [Door: Int] = [:]
    package private(set) var opened: [Door: Int] = [:]
    package private(set) var ends = [Int](repeating: 0, count: End.allCases.count)
    package private(set) var logins: [LoginOutcome: Int] = [:]
    package private(set) var limited = [Int](repeating: 0, count: RateLimit.allCases.count)
    /// Commands of the table, in its order; last, unknown ones.
    package let receivedCommands: [String]
    package private(set) var received: [Int]
    package private(set) var sent = [Int](repeating: 0, count: ClientTraffic.sentCommands.count)

    init(_ commands: IRCCommandTable) {
        receivedCommands = commands.rows.map(\.verb) + ["other"]
        received = [Int](repeating: 0, count: receivedCommands.count)
    }

    func opened(_ origin: ClientOrigin) {
        let door = Door(listener: origin.listener, transport: origin.transport)
        open[door, default: 0] += 1
        opened[door, default: 0] += 1
    }

    func ended(_ origin: ClientOrigin, _ end: End) {
        open[Door(listener: origin.listener, transport: origin.transport), default: 0] -= 1
        if let place = End.allCases.firstIndex(of: end) { ends[place] += 1 }
    }

    func loggedIn(_ mechanism: String, _ result: LoginOutcome.Result) {
        logins[LoginOutcome(mechanism: mechanism, result: result), default: 0] += 1
    }

    func limited(_ kind: RateLimit) {
        if let place = RateLimit.allCases.firstIndex(of: kind) { limited[place] += 1 }
    }

    /// - Parameter command: nil: unknown.
    func received(_ command: IRCCommand?) { received[command?.place ?? received.count - 1] += 1 }

    func sent(_ command: String, to clientCount: Int = 1) {
        sent[Self.place(of: command)] += clientCount
    }

    private static func place(of command: String) -> Int {
        if command.utf8.first.map({ 0x30...0x39 ~= $0 }) == true { return sentCommands.count - 2 }
        return sentCommands.firstIndex(of: command) ?? sentCommands.count - 1
    }
}

extension ClientTraffic.End {
    /// Of a connection that ended below IRC, by what other users are told.
    init(connection reason: String) {
        switch reason {
        case "Connection closed": self = .closed
        case "SendQ exceeded": self = .sendq
        default: self = .error
        }
    }
}
