import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms

/// The reason for refusing a history request: the text of its FAIL.
struct HistoryRefusal: Error, Equatable {
    var command = "CHATHISTORY"
    var code: String
    var context: [String]
    /// A sentence without a full stop.
    var text: String

    static func invalid(_ context: String..., text: String) -> HistoryRefusal {
        HistoryRefusal(code: "INVALID_PARAMS", context: context, text: text)
    }

    static func unknown(_ msgid: String, _ subcommand: String, _ target: String) -> HistoryRefusal {
        HistoryRefusal(
            code: "MESSAGE_ERROR", context: [subcommand, target, msgid], text: "No such message is known here")
    }

    func line(from server: String) -> IRCMessage {
        IRCMessage(
            source: server, command: "FAIL", params: [command, code] + context.map { PrintableText.word($0) } + [text])
    }
}

/// A `CHATHISTORY` request. Only the syntax is checked.
///
/// Source: IRCv3 chathistory, "Subcommands".
enum HistoryRequest: Equatable {
    case page(subcommand: String, target: String, StoredPageQuery.Selection, limit: Int)
    /// Targets whose newest message lies between the times, counted from the first time.
    case targets(from: ChatTimestamp, to: ChatTimestamp, limit: Int)

    /// Significant digits of a limit: more than any limit has.
    private static let maxLimitDigits = 9

    /// - Parameter params: at least the subcommand.
    init(_ params: [String]) throws(HistoryRefusal) {
        let subcommand = params.first.map(IRCCasemapping.ascii.fold)?.uppercased() ?? ""
        let counts = ["LATEST": 4, "BEFORE": 4, "AFTER": 4, "AROUND": 4, "BETWEEN": 5, "TARGETS": 4]
        guard let count = counts[subcommand] else {
            throw .invalid(params.first ?? "", text: "Unknown command")
        }
        guard params.count >= count else { throw .invalid(subcommand, text: "Insufficient parameters") }
        guard params.count == count else { throw .invalid(subcommand, text: "Too many parameters") }
        let limit = try Self.limit(params[count - 1], subcommand)
        if subcommand == "TARGETS" {
            self = .targets(
                from: try Self.time(params[1], subcommand), to: try Self.time(params[2], subcommand), limit: limit)
            return
        }
        let target = params[1]
        func reference(_ index: Int) throws(HistoryRefusal) -> StoredReference {
            try Self.reference(params[index], subcommand, target)
        }
        let selection: StoredPageQuery.Selection
        switch subcommand {
        case "LATEST": selection = .newest(after: params[2] == "*" ? nil : try reference(2), before: nil)
        case "BEFORE": selection = .newest(after: nil, before: try reference(2))
        case "AFTER": selection = .oldest(after: try reference(2))
        case "AROUND": selection = .around(try reference(2))
        default: selection = .between(try reference(2), try reference(3))
        }
        self = .page(subcommand: subcommand, target: target, selection, limit: limit)
    }

    private static func limit(_ text: String, _ subcommand: String) throws(HistoryRefusal) -> Int {
        let digits = text.utf8
        guard !digits.isEmpty, digits.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else {
            throw .invalid(subcommand, text, text: "Invalid limit")
        }
        return Int(text.prefix(maxLimitDigits)) ?? .max
    }

    private static func time(_ text: String, _ subcommand: String) throws(HistoryRefusal) -> ChatTimestamp {
        let name = "timestamp="
        guard text.hasPrefix(name), let at = IRCServerTime.parse(String(text.dropFirst(name.count))) else {
            throw .invalid(subcommand, text, text: "Invalid timestamp")
        }
        return ChatTimestamp(milliseconds: at)
    }

    private static func reference(
        _ text: String, _ subcommand: String, _ target: String
    ) throws(HistoryRefusal) -> StoredReference {
        guard let equals = text.firstIndex(of: "=") else {
            throw .invalid(subcommand, text, text: "Not a message reference")
        }
        let value = String(text[text.index(after: equals)...])
        switch text[..<equals] {
        case "timestamp": return .time(try time(text, subcommand))
        case "msgid":
            guard !value.isEmpty else { throw .invalid(subcommand, text, text: "Not a message reference") }
            return .message(value)
        default:
            throw HistoryRefusal(
                code: "INVALID_MSGREFTYPE", context: [subcommand, target, text],
                text: "References are by msgid or by timestamp")
        }
    }
}

/// A `SEARCH` request. Only the syntax is checked.
///
/// Source: soju, search.
struct SearchRequest: Equatable {
    /// The room, or the nick of a private conversation; nil: all of them.
    var channel: String?
    let search: StoredSearch

    /// Messages in one answer: about as many as a user reads. Each is held until it is written.
    static let maxLimit = 100

    /// - Parameter params: the attributes, written like tags.
    init(_ params: [String]) throws(HistoryRefusal) {
        func refusal(_ given: String, _ text: String) -> HistoryRefusal {
            HistoryRefusal(command: "SEARCH", code: "INVALID_PARAMS", context: [given], text: text)
        }
        guard params.count == 1 else { throw refusal("*", "The attributes are one parameter") }
        var (nick, text): (String?, String?)
        var (after, before): (ChatTimestamp?, ChatTimestamp?)
        var most = Self.maxLimit
        for part in params[0].split(separator: ";") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let (name, value) = (String(pair[0]), pair.count > 1 ? Self.unescaped(pair[1]) : "")
            func time() throws(HistoryRefusal) -> ChatTimestamp {
                guard let at = IRCServerTime.parse(value) else { throw refusal(name, "Invalid timestamp") }
                return ChatTimestamp(milliseconds: at)
            }
            switch name {
            case "in": channel = value
            case "from": nick = value
            case "text": text = value
            case "after": after = try time()
            case "before": before = try time()
            case "limit":
                guard let limit = Int(value), limit > 0 else { throw refusal(name, "Invalid limit") }
                most = min(limit, Self.maxLimit)
            default: throw refusal(name, "Unknown attribute")
            }
        }
        search = StoredSearch(nick: nick, text: text, after: after, before: before, limit: most)
    }

    /// Source: IRCv3 message-tags, "Escaping values".
    private static func unescaped(_ text: Substring) -> String {
        var plain = String.UnicodeScalarView()
        var isEscaped = false
        for scalar in text.unicodeScalars {
            guard isEscaped else {
                if scalar == "\\" { isEscaped = true } else { plain.append(scalar) }
                continue
            }
            isEscaped = false
            switch scalar {
            case ":": plain.append(";")
            case "s": plain.append(" ")
            case "r": plain.append("\r")
            case "n": plain.append("\n")
            default: plain.append(scalar)
            }
        }
        return String(plain)
    }
}
