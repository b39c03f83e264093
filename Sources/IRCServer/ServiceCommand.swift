import BridgeTypes
import IRCProtocol
import Rooms

/// A command of the service `*bridge`: its parameters, flood cost, help and handler.
struct ServiceCommand: Sendable {
    /// Called only if the asker may use the command and has given at least `minParams` words.
    typealias Handler = @Sendable (_ server: IRCServer, _ request: ServiceRequest, _ session: IRCSession) -> Void

    let name: String
    /// Syntax of the parameters, as for IRC commands: `<required> [optional]`.
    let parameters: String
    /// Required words; with fewer the answer is the usage.
    let minParams: Int
    let isForAdmins: Bool
    /// Flood tokens of the whole line, as in ``IRCCommand``.
    let penalty: Int
    /// The words behind the first parameter are a password.
    let hasPassword: Bool
    /// One line, for the list of commands.
    let summary: String
    /// Sentences, for the command's own help.
    let details: [String]
    let handle: Handler

    init(
        _ name: String, takes parameters: String = "", minParams: Int = 0, isForAdmins: Bool = false,
        penalty: Int = 1, hasPassword: Bool = false, _ summary: String, details: [String] = [],
        _ handle: @escaping Handler
    ) {
        self.name = name
        self.parameters = parameters
        self.minParams = minParams
        self.isForAdmins = isForAdmins
        self.penalty = penalty
        self.hasPassword = hasPassword
        self.summary = summary
        self.details = details
        self.handle = handle
    }

    var usage: String { name + (parameters.isEmpty ? "" : " " + parameters) }
}

/// The arguments of a service command.
struct ServiceRequest {
    let words: [String]
    /// The same, unsplit.
    let rest: String
    /// The usage of the command.
    let usage: String
}

/// All service commands, by name.
package struct ServiceCommandTable: Sendable {
    let rows: [ServiceCommand]
    private let byName: [String: ServiceCommand]

    init(_ rows: [ServiceCommand]) {
        self.rows = rows
        byName = Dictionary(rows.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// - Parameter word: in any case.
    func row(named word: some StringProtocol) -> ServiceCommand? {
        guard word.utf8.count <= Self.maxWordBytes else { return nil }
        return byName[IRCCasemapping.ascii.fold(String(word))]
    }

    /// The likely command for a mistyped `word`: the only one with this prefix, or the nearest.
    func suggestion(for word: some StringProtocol, isAdmin: Bool) -> String? {
        guard word.utf8.count <= Self.maxWordBytes else { return nil }
        let typed = Array(IRCCasemapping.ascii.fold(String(word)).utf8)
        let names = rows.lazy.filter { isAdmin || !$0.isForAdmins }.map(\.name)
        let longer = names.filter { typed.count >= 2 && $0.utf8.starts(with: typed) }
        if longer.count == 1 { return longer.first }
        return NearestName.suggestion(for: String(word), among: names)
    }

    /// Longer than any command, so nothing beyond it is compared.
    private static let maxWordBytes = 32

    /// The text without the password of a login: replies appear on the client's screen and in its logs.
    func withoutPassword(_ text: String) -> String {
        let words = MessageText.withoutFormatting(text).split(separator: " ", maxSplits: 2)
        guard words.count > 2, row(named: words[0])?.hasPassword == true else { return text }
        return "\(words[0]) \(words[1]) ***"
    }
}
