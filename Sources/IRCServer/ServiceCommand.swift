import IRCProtocol
import Rooms

/// A command of the service `*bridge`: what it takes, what its line costs, what help says of it, and its handler.
struct ServiceCommand: Sendable {
    /// The asker may use the command, and said at least its words.
    typealias Handler = @Sendable (_ server: IRCServer, _ request: ServiceRequest, _ session: IRCSession) -> Void

    let name: String
    /// As IRC's own commands are written: `<required> [optional]`.
    let parameters: String
    /// Words without which the answer is how the command is used.
    let minParams: Int
    let isForAdmins: Bool
    /// Flood tokens of the whole line, as in ``IRCCommand``.
    let penalty: Int
    /// What stands behind the first word is a password.
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

/// What somebody says behind a command of the service.
struct ServiceRequest {
    let words: [String]
    /// The same in one piece.
    let rest: String
    /// How the command is used.
    let usage: String
}

/// What the service understands.
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

    /// The command that somebody meant who typed `word`: the only one that begins so, or one a slip of the fingers away.
    func suggestion(for word: some StringProtocol, isAdmin: Bool) -> String? {
        guard word.utf8.count <= Self.maxWordBytes else { return nil }
        let typed = Array(IRCCasemapping.ascii.fold(String(word)).utf8)
        let names = rows.lazy.filter { isAdmin || !$0.isForAdmins }.map(\.name)
        let longer = names.filter { typed.count >= 2 && $0.utf8.starts(with: typed) }
        if longer.count == 1 { return longer.first }
        return names.first { Self.isNear(typed, Array($0.utf8)) }
    }

    /// More than any command has, so nothing that long is compared.
    private static let maxWordBytes = 32

    /// Whether one letter too many, too few or wrong, or two that changed places, tell the words apart.
    private static func isNear(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        let start = zip(a, b).prefix { $0 == $1 }.count
        let (restA, restB) = (a[start...], b[start...])
        let end = zip(restA.reversed(), restB.reversed()).prefix { $0 == $1 }.count
        let (middleA, middleB) = (Array(restA.dropLast(end)), Array(restB.dropLast(end)))
        if middleA.count <= 1, middleB.count <= 1 { return min(a.count, b.count) > 1 }
        return middleA.count == 2 && middleB.count == 2 && middleA == middleB.reversed()
    }

    /// The words without the password of a login: what comes back to a client is on its screen and in its logs.
    func withoutPassword(_ text: String) -> String {
        let words = MessageText.withoutFormatting(text).split(separator: " ", maxSplits: 2)
        guard words.count > 2, row(named: words[0])?.hasPassword == true else { return text }
        return "\(words[0]) \(words[1]) ***"
    }
}
