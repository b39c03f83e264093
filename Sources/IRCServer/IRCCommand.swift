import IRCProtocol

/// A command that clients may send: what is checked before its handler runs, what its line costs, and the handler.
struct IRCCommand: Sendable {
    /// The line's sender has what the command needs, and the line at least its parameters.
    typealias Handler = @Sendable (_ server: IRCServer, _ message: IRCMessage, _ session: IRCSession) -> Void

    /// What a client must have; else the answer is 451, or 481.
    enum Needs: Equatable {
        case nothing
        case registration
        /// This, until it is registered.
        case registrationOr(IRCCapability)
        /// And registration.
        case operatorRights

        func areMet(beforeRegistrationWith caps: IRCCapabilitySet) -> Bool {
            switch self {
            case .nothing: true
            case .registrationOr(let capability): caps.contains(capability)
            case .registration, .operatorRights: false
            }
        }
    }

    /// In upper case, as ``IRCParse`` gives it.
    let verb: String
    /// What a person types behind it: `<required> [optional]`.
    let parameters: String
    /// Parameters without which the answer is 461. Where the field has an answer of its own for a missing parameter
    /// (409, 411, 412, 431), the handler gives it and this is 0. What is too much is not looked at.
    let minParams: Int
    let needs: Needs
    /// Flood tokens: 0 for what must never delay a client, 1 for a line, more for what makes many lines.
    let penalty: Int
    /// One line for HELP and the documentation.
    let summary: String
    let handle: Handler

    init(
        _ verb: String, takes parameters: String = "", minParams: Int = 0, needs: Needs = .registration,
        penalty: Int = 1, _ summary: String, _ handle: @escaping Handler
    ) {
        self.verb = verb
        self.parameters = parameters
        self.minParams = minParams
        self.needs = needs
        self.penalty = penalty
        self.summary = summary
        self.handle = handle
    }
}

/// The commands that a bridge takes.
package struct IRCCommandTable: Sendable {
    let rows: [IRCCommand]
    private let byVerb: [String: IRCCommand]

    init(_ rows: [IRCCommand]) {
        self.rows = rows
        byVerb = Dictionary(rows.map { ($0.verb, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// - Parameter verb: in upper case. Nil for 421.
    subscript(verb: String) -> IRCCommand? { byVerb[verb] }
}

// MARK: - HELP

// Source: modern.ircdocs.horse, "HELP message".

extension IRCCommand {
    var help: [String] { [parameters.isEmpty ? verb : verb + " " + parameters, "", verb + " " + summary + "."] }
}

extension IRCCommandTable {
    /// Bytes of a line of verbs: what a terminal shows without wrapping, behind time and server.
    private static let maxIndexBytes = 60
    /// Bytes of a topic that are looked at: more than any verb has.
    private static let maxTopicBytes = 32

    /// - Parameter topic: a verb in any case.
    func command(named topic: String) -> IRCCommand? { self[String(topic.prefix(Self.maxTopicBytes)).uppercased()] }

    /// The lines of HELP without a topic: what this is, and the commands, some in a line.
    var helpIndex: [String] {
        var lines = ["HELP <command> explains one of these commands:", ""]
        var line = ""
        for verb in rows.map(\.verb).sorted() {
            if line.utf8.count + 1 + verb.utf8.count > Self.maxIndexBytes {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? verb : " " + verb
        }
        if !line.isEmpty { lines.append(line) }
        return lines
    }
}
