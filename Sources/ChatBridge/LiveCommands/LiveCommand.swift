import BridgeTypes
import ChatModel
import Configuration
import WireBytes

/// A command at a running bridge.
enum LiveCommand: Equatable, Sendable {
    enum StatusForm: Equatable, Sendable {
        case screen, watch, json, ready
    }

    case status(StatusForm)
    case reload
    case rooms(json: Bool)
    /// `reconnect`, `disable` or `enable`.
    case changeRoom(AdminRequest, room: String)
    case clients(json: Bool)
    case kick(Int64)
    case mirrors
    case tail(room: String?, json: Bool, raw: Bool)
    case say(room: String, text: String)
    case history(room: String, since: HistoryStart?, limit: Int?, json: Bool)
    case export(room: String)
    case backup(file: String)
    case forget(user: String, isAccount: Bool, isConfirmed: Bool)
    case drain
}

/// Where a history begins: at a time, or so long ago.
enum HistoryStart: Equatable, Sendable {
    case at(milliseconds: Int64)
    case ago(Duration)

    /// Reads `2026-11-21`, `2026-11-21T12:03[:10][Z]`, with a blank for the T, all in UTC; or `10m`, `2h`, `7d`.
    init?(_ text: String) {
        if let duration = DurationText.parse(text), duration > .zero {
            self = .ago(duration)
            return
        }
        let form = #/(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?Z?)?/#
        guard let match = text.wholeMatch(of: form) else { return nil }
        func number(_ digits: Substring?) -> Int64 { digits.flatMap { Int64($0) } ?? 0 }
        let (month, day, hour, minute) = (
            number(match.2), number(match.3), number(match.4), number(match.5)
        )
        guard (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, number(match.6) < 60 else {
            return nil
        }
        let date = CivilTime.day(year: number(match.1), month: month, day: day)
        self = .at(milliseconds: ((date * 24 + hour) * 60 + minute) * 60_000 + number(match.6) * 1000)
    }

    func milliseconds(now: Int64) -> Int64 {
        switch self {
        case .at(let milliseconds): milliseconds
        case .ago(let duration): now - duration.components.seconds * 1000
        }
    }
}

extension CommandLineParser {
    /// The command of a row that is about a running bridge; nil: another row.
    static func liveCommand(_ name: CommandName, _ words: Words) throws(UsageError) -> LiveCommand? {
        func has(_ flag: String) -> Bool { words.value(of: flag) != nil }
        switch name {
        case .status: return .status(try statusForm(words))
        case .reload: return .reload
        case .rooms: return try roomsCommand(words)
        case .clients: return try clientsCommand(words)
        case .mirrors: return words.operands.isEmpty ? .mirrors : nil
        case .tail: return .tail(room: words.operands.first, json: has("json"), raw: has("raw"))
        case .say:
            guard words.operands.count > 1, let room = words.operands.first else {
                throw UsageError(message: "\"say\" needs a room and a text: say ROOM TEXT")
            }
            return .say(room: room, text: words.operands.dropFirst().joined(separator: " "))
        case .history:
            let room = try operand(words, "\"history\" needs a room: history ROOM")
            let limit = try number(words, "limit", in: 1...Int(AdminService.maxHistoryLimit)) {
                "--limit \"\($0)\" is not a number from 1 to \(AdminService.maxHistoryLimit)"
            }
            let since = try words.value(of: "since").map { (text) throws(UsageError) -> HistoryStart in
                guard let start = HistoryStart(text) else {
                    throw UsageError(
                        message: "--since \"\(text)\" is no time: 10m, 2h, 7d, 2026-11-21 or 2026-11-21T12:03:10Z")
                }
                return start
            }
            return .history(room: room, since: since, limit: limit, json: has("json"))
        case .export: return .export(room: try operand(words, "\"export\" needs a room: export ROOM"))
        case .backup: return .backup(file: try operand(words, "\"backup\" needs a file: backup FILE"))
        case .forget:
            return .forget(
                user: try operand(words, "\"forget\" needs a person: forget USER"), isAccount: has("account"),
                isConfirmed: has("yes"))
        case .drain: return .drain
        default: return nil
        }
    }

    private static func operand(_ words: Words, _ message: String) throws(UsageError) -> String {
        guard let word = words.operands.first, !word.isEmpty else { throw UsageError(message: message) }
        return word
    }

    private static func statusForm(_ words: Words) throws(UsageError) -> LiveCommand.StatusForm {
        let forms: [(flag: String, form: LiveCommand.StatusForm)] = [
            ("watch", .watch), ("json", .json), ("ready", .ready),
        ]
        let asked = forms.filter { words.value(of: $0.flag) != nil }
        if asked.count > 1 {
            throw UsageError(message: "--\(asked[0].flag) and --\(asked[1].flag) exclude each other")
        }
        return asked.first?.form ?? .screen
    }

    private static func roomsCommand(_ words: Words) throws(UsageError) -> LiveCommand {
        let isJSON = words.value(of: "json") != nil
        guard let verb = words.operands.first else { return .rooms(json: isJSON) }
        let verbs: [AdminRequest] = [.reconnect, .disable, .enable]
        guard let request = verbs.first(where: { $0.rawValue == verb }) else {
            let hint = NearestName.hint(for: verb, among: verbs.map(\.rawValue))
            throw UsageError(
                message: "\"rooms\" has no \"\(verb)\"\(hint); there are reconnect, disable and enable NAME")
        }
        guard words.operands.count == 2 else {
            throw UsageError(message: "\"rooms \(verb)\" needs a room: rooms \(verb) NAME")
        }
        if isJSON { throw UsageError(message: "--json goes with the list only, not with \"rooms \(verb)\"") }
        return .changeRoom(request, room: words.operands[1])
    }

    private static func clientsCommand(_ words: Words) throws(UsageError) -> LiveCommand {
        let isJSON = words.value(of: "json") != nil
        guard let verb = words.operands.first else { return .clients(json: isJSON) }
        guard verb == "kick" else {
            let hint = NearestName.hint(for: verb, among: ["kick"])
            throw UsageError(message: "\"clients\" has no \"\(verb)\"\(hint); there is kick ID")
        }
        guard words.operands.count == 2, let id = Int64(words.operands[1]), id > 0 else {
            throw UsageError(message: "\"clients kick\" needs the number of a client, as \"clients\" shows it")
        }
        if isJSON { throw UsageError(message: "--json goes with the list only, not with \"clients kick\"") }
        return .kick(id)
    }
}
