import IRCProtocol

// What the service understands, as a table: its help, its suggestions and its page in the documentation come from the rows.

/// A command of the service `*bridge`.
enum ServiceCommand: String, CaseIterable {
    case help
    case rooms
    case status
    case who
    case seen
    case history
    case search
    case show
    case notices
    case receipts
    case rejoin
    case mute
    case unmute
    case whoami
    case login
    case logout
    case reconnect
}

enum ServiceCommandTable {
    struct Row {
        let command: ServiceCommand
        /// As IRC's own commands are written: `<required> [optional]`.
        let parameters: String
        /// Words without which the answer is how the command is used.
        let minParams: Int
        let isForAdmins: Bool
        /// Flood tokens of the whole line, as in ``IRCCommand``.
        let penalty: Int
        /// One line, for the list of commands.
        let summary: String
        /// Sentences, for the command's own help.
        let details: [String]

        init(
            _ command: ServiceCommand, takes parameters: String = "", minParams: Int = 0, isForAdmins: Bool = false,
            penalty: Int = 1, _ summary: String, details: [String] = []
        ) {
            self.command = command
            self.parameters = parameters
            self.minParams = minParams
            self.isForAdmins = isForAdmins
            self.penalty = penalty
            self.summary = summary
            self.details = details
        }

        var usage: String { command.rawValue + (parameters.isEmpty ? "" : " " + parameters) }
    }

    static let rows: [Row] = [
        Row(.help, takes: "[<command>]", penalty: 2, "explains a command, or lists them"),
        Row(
            .rooms, penalty: 3, "lists the rooms that you may enter",
            details: ["JOIN enters one. Rooms that a backend has and nobody has opened yet are listed too."]),
        Row(
            .status, takes: "[<#room>]", penalty: 3, "tells how the rooms and their links are",
            details: [
                "Of each room: whether it is linked to its backend; if not, since when, why, and when the next try is;"
                    + " and how many messages wait."
            ]),
        Row(
            .who, takes: "[<#room>]", penalty: 2, "lists the people of a room, on both sides",
            details: [
                "With their display names where those are others than their nicks, and whether they are away or type.",
                "Without a room: the one that you are in, if that is one only.",
            ]),
        Row(
            .seen, takes: "<#room>", minParams: 1, penalty: 2, "tells who got and who read what you said",
            details: [
                "The newest message that each reader of yours has read, or got, as far as the backend tells; and how many"
                    + " of your messages wait."
            ]),
        Row(
            .history, takes: "<#room> [<n> [before <msgid>]]", minParams: 1, penalty: 3, "shows what was said before",
            details: [
                "The last 10 messages, or as many as you say. Times are UTC.",
                "Of long messages the first lines; show has the rest.",
                "What the bridge has not kept comes from the backend, where it can be asked.",
            ]),
        Row(
            .search, takes: "[<#room>] <words>", minParams: 1, penalty: 4, "looks for what was said before",
            details: [
                "The words as they stand, in any case of letters; in a room, or in all that you are in. The newest \(ServiceReading.maxFound).",
                "Only what the bridge has kept is looked through. Each comes with its msgid, which show and history take.",
            ]),
        Row(
            .show, takes: "<msgid> [<from>]", minParams: 1, penalty: 3, "shows a message whole",
            details: [
                "Messages that are too long for a room end in \"… more lines\" and the msgid.",
                "At most \(ServiceReading.maxLines) lines at a time; <from> says where to go on, in bytes.",
            ]),
        Row(
            .notices, takes: "[on|off]", "says it at once when somebody got or read what you said",
            details: [
                "For clients that do not show it themselves; seen tells the same whenever you ask.",
                "At most one notice for each reader in two seconds; the newest message stands for all before it.",
                "Your choice holds for all clients of your account, and outlasts the bridge where that keeps what is said;"
                    + " without an account it holds for this connection.",
            ]),
        Row(
            .receipts, takes: "[marker|speaking|off|default]", "says what others hear of your reading",
            details: [
                "marker: they hear how far you have read when your client moves your read marker.",
                "speaking: also when you say something; then you have read what came before.",
                "off: they hear nothing. default: as the room or the configuration has it.",
                "Your choice holds for all clients of your account, and outlasts the bridge where that keeps what is said;"
                    + " without an account it holds for this connection.",
            ]),
        Row(
            .rejoin, takes: "[on|off]", "says whether you are in your rooms again when you log in",
            details: [
                "on: your account stays in the rooms that you join, until you PART them or are kicked, also while you are away.",
                "off: each client joins by itself; what was remembered is forgotten.",
                "Your choice holds for all clients of your account, and outlasts the bridge where that keeps what is said.",
            ]),
        Row(
            .mute, takes: "[<person>]", "hides what somebody says from you, or lists whom you muted",
            details: [
                "Nobody else notices. Joins and leaves still show. What they said before is left out too, also of the pages and"
                    + " searches that your client asks for.",
                "Holds for all clients of your account, and outlasts the bridge where that keeps what is said; without an"
                    + " account it holds for this connection.",
            ]),
        Row(.unmute, takes: "<person>", minParams: 1, "shows again what somebody says"),
        Row(.whoami, "tells who you are here, and on the backends"),
        Row(
            .login, takes: "[<account> <password>]", penalty: 2, "logs in to an account",
            details: [
                "With nothing behind it: to the account of your client's certificate.",
                "SASL or PASS at the start of the connection do the same before anybody sees you.",
            ]),
        Row(
            .logout, penalty: 2, "leaves your account",
            details: [
                "You stay in your rooms as somebody without an account. Your other clients stay logged in."
            ]),
        Row(
            .reconnect, takes: "<#room>", minParams: 1, isForAdmins: true, penalty: 3, "opens a room's link anew",
            details: ["A link that waits for its next try is tried now; one that stands is closed and opened again."]),
    ]

    private static let byName: [String: Row] = Dictionary(
        rows.map { ($0.command.rawValue, $0) }, uniquingKeysWith: { first, _ in first })

    /// - Parameter word: in any case.
    static func row(named word: some StringProtocol) -> Row? {
        guard word.utf8.count <= maxWordBytes else { return nil }
        return byName[IRCCasemapping.ascii.fold(String(word))]
    }

    /// The command that somebody meant who typed `word`: the only one that begins so, or one a slip of the fingers away.
    static func suggestion(for word: some StringProtocol, isAdmin: Bool) -> String? {
        guard word.utf8.count <= maxWordBytes else { return nil }
        let typed = Array(IRCCasemapping.ascii.fold(String(word)).utf8)
        let names = rows.lazy.filter { isAdmin || !$0.isForAdmins }.map(\.command.rawValue)
        let longer = names.filter { typed.count >= 2 && $0.utf8.starts(with: typed) }
        if longer.count == 1 { return longer.first }
        return names.first { isNear(typed, Array($0.utf8)) }
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
}
