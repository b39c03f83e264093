import IRCProtocol

/// A client command: the checks in front of its handler, its flood cost, and the handler.
final class IRCCommand: Sendable {
    /// Called only if the client meets `needs` and the line has at least `minParams` parameters.
    typealias Handler = @Sendable (_ server: IRCServer, _ message: IRCMessage, _ session: IRCSession) -> Void

    /// Precondition on the client; if it is not met, the answer is 451 or 481.
    enum Needs: Equatable, Sendable {
        case nothing
        case registration
        /// Registration, or this capability.
        case registrationOr(IRCCapability)
        /// Registration and operator rights.
        case operatorRights

        func areMet(beforeRegistrationWith caps: IRCCapabilitySet) -> Bool {
            switch self {
            case .nothing: true
            case .registrationOr(let capability): caps.contains(capability)
            case .registration, .operatorRights: false
            }
        }
    }

    /// In upper case, as ``IRCParse`` returns it.
    let verb: String
    /// Syntax of the parameters, for HELP: `<required> [optional]`.
    let parameters: String
    /// Required parameters; with fewer the answer is 461. 0 where IRC has a numeric for the missing parameter (409,
    /// 411, 412, 431), which the handler sends. Extra parameters are ignored.
    let minParams: Int
    let needs: Needs
    /// Flood tokens: 0 for commands that must never delay a client, 1 for a line, more for commands that cause many
    /// lines.
    let penalty: Int
    let targets: TargetList?
    /// One line for HELP and the documentation.
    let summary: String
    let handle: Handler
    /// In the table that it is a row of.
    let place: Int
    /// The parameter that names targets, separated by commas, and how many. A line with more is refused whole (407), so
    /// that a client knows what was done; ISUPPORT announces it.
    struct TargetList: Sendable {
        enum Place: Sendable { case first, second, last }
        let place: Place
        let limit: Int

        init(_ place: Place, atMost limit: Int) {
            self.place = place
            self.limit = limit
        }

        /// Nil: they are not too many.
        func firstOfTooMany(in params: [String]) -> String? {
            let param: String? =
                switch place {
                case .first: params.first
                case .second: params.count > 1 ? params[1] : nil
                case .last: params.last
                }
            guard let param, param.utf8.count > limit else { return nil }
            let names = param.split(separator: ",", maxSplits: limit)
            return names.count > limit ? names.first.map(String.init) : nil
        }
    }

    init(
        _ verb: String, takes parameters: String = "", minParams: Int = 0, needs: Needs = .registration,
        penalty: Int = 1, targets: TargetList? = nil, _ summary: String, place: Int = 0, _ handle: @escaping Handler
    ) {
        self.verb = verb
        self.parameters = parameters
        self.minParams = minParams
        self.needs = needs
        self.penalty = penalty
        self.targets = targets
        self.summary = summary
        self.handle = handle
        self.place = place
    }

    fileprivate func placed(_ place: Int) -> IRCCommand {
        IRCCommand(
            verb, takes: parameters, minParams: minParams, needs: needs, penalty: penalty, targets: targets, summary,
            place: place, handle)
    }
}

/// All commands of a bridge, by verb.
package struct IRCCommandTable: Sendable {
    let rows: [IRCCommand]
    private let byVerb: [String: IRCCommand]

    init(_ rows: [IRCCommand]) {
        let rows = rows.enumerated().map { $1.placed($0) }
        self.rows = rows
        byVerb = Dictionary(rows.map { ($0.verb, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// - Parameter verb: in upper case. Nil: unknown (421).
    subscript(verb: String) -> IRCCommand? { byVerb[verb] }

    /// As ISUPPORT has it: `JOIN:50,KICK:4`. A NAMES for several rooms is answered too, with one end for each, as clients
    /// expect; a server that announces several is expected to end all of them with one line.
    var targetLimits: String {
        (rows.compactMap { row in row.targets.map { "\(row.verb):\($0.limit)" } } + ["NAMES:1"]).sorted()
            .joined(separator: ",")
    }
}

// MARK: - HELP

// Source: modern.ircdocs.horse, "HELP message".

extension IRCCommand {
    var help: [String] { [parameters.isEmpty ? verb : verb + " " + parameters, "", verb + " " + summary + "."] }
}

extension IRCCommandTable {
    /// Bytes of a line of verbs: it fits a terminal without wrapping, behind time and server.
    private static let maxIndexBytes = 60
    /// Bytes of a topic that are looked up: longer than any verb.
    private static let maxTopicBytes = 32

    /// - Parameter topic: a verb in any case.
    func command(named topic: String) -> IRCCommand? { self[String(topic.prefix(Self.maxTopicBytes)).uppercased()] }

    /// The lines of HELP without a topic: an introduction, and the commands, several on each line.
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
