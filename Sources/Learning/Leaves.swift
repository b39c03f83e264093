import JSONText
import WireBytes

// Frames as the plain values in them, each with its place.

/// A plain value of a frame.
struct Leaf {
    /// Where it is, from the frame.
    var pointer: String
    /// The names on the way, in small letters without separators; numbers are left out.
    var names: [String]
    /// The list that it is in, and its place in the element; nil: in none.
    var list: String?
    var inner: String
    /// Which element of the list.
    var element = 0
    var value: JSONValue

    var key: String { names.last ?? "" }
    /// The name by which places of one meaning are known; `id` alone says nothing.
    var label: String {
        ["id", "name", "key", "uuid"].contains(key) ? names.suffix(2).joined(separator: " ") : key
    }
    /// Whether it is, or is in, what a frame calls its error.
    var isError: Bool { ["error", "err", "errors"].contains(names.first { $0 != "body" } ?? "") }
    /// Whether both are members of one object.
    func isBeside(_ other: String) -> Bool {
        pointer.lastIndex(of: "/").map { pointer[..<$0] } == other.lastIndex(of: "/").map { other[..<$0] }
    }

    /// A string, or a number's digits.
    var text: String? {
        switch value {
        case .string(let text): text
        case .integer(let number): "\(number)"
        case .literal(let text): text
        default: nil
        }
    }
}

/// How a string holds JSON.
enum Wrapping: String { case jsonString = "jsonstring", base64JSON = "base64json" }

struct LearnedFrame {
    var index: Int
    var at: Int64?
    var isSent: Bool
    /// As the description sees it: `{"prefix": …, "body": …}` where characters stand before the JSON, and `number` where
    /// they end in one.
    var json: JSONValue
    var leaves: [Leaf] = []
    var wrapped: [(pointer: String, how: Wrapping)] = []
    /// A list whose only element counts as a part of the frame: the row that an event is about.
    private var row: String?

    func value(_ pointer: String) -> JSONValue? { leaves.first { $0.pointer == pointer }?.value }
    func text(_ pointer: String) -> String? { leaves.first { $0.pointer == pointer }?.text }

    /// The leaves that are not in a list.
    var single: [Leaf] { leaves.filter { $0.list == nil } }

    /// Whether the text is in the only row of a list.
    func has(_ text: String, in row: String) -> Bool {
        leaves.contains { $0.value.string == text && $0.pointer.hasPrefix(row + "/0/") }
    }

    func has(_ text: String) -> Bool { leaves.contains { $0.value.string == text } }

    init?(_ frame: RecordedFrame, index: Int, isPrefixed: Bool, _ numbering: Numbering? = nil) {
        self.index = index
        at = frame.at
        isSent = frame.isSent
        if isPrefixed {
            let end = frame.text.utf8.firstIndex { "{[\"".utf8.contains($0) } ?? frame.text.utf8.endIndex
            let prefix = frame.text[..<end]
            let number = numbering?.number(prefix, isSent: isSent)
            var members = [JSONValue.Member("prefix", .string(String(prefix.dropLast(number?.count ?? 0))))]
            if let number { members.append(.init("number", .string(String(number)))) }
            if end < frame.text.utf8.endIndex {
                guard let body = try? JSONValue(parsing: String(frame.text[end...])) else { return nil }
                members.append(.init("body", body))
            }
            json = .object(members)
        } else {
            guard let parsed = try? JSONValue(parsing: frame.text), parsed.object != nil || parsed.array != nil else {
                return nil
            }
            json = parsed
        }
        walk(json, "", [], nil, isTuple: true)
    }

    /// Takes the only element of the list for a part of the frame, if it has such a list.
    mutating func take(row: String) {
        let inside = leaves.filter { $0.list == row }
        guard !inside.isEmpty, inside.allSatisfy({ $0.element == 0 && !$0.inner.isEmpty }) else { return }
        self.row = row
        leaves = []
        wrapped = []
        walk(json, "", [], nil, isTuple: true)
    }

    /// A value inside an answer, such as a row of a history.
    init(element json: JSONValue) {
        index = 0
        isSent = false
        self.json = json
        walk(json, "", [], nil, isTuple: true)
    }

    /// - Parameter isTuple: an array here is the frame itself, in which each place has a meaning of its own.
    private mutating func walk(
        _ value: JSONValue, _ pointer: String, _ names: [String], _ list: (pointer: String, from: Int, element: Int)?,
        isTuple: Bool
    ) {
        guard pointer.utf8.count < 300, leaves.count < 5000 else { return }
        switch value {
        case .object(let members):
            for member in members {
                let name = Words.plain(member.key)
                walk(
                    member.value, pointer + "/" + Self.escaped(member.key), names + [name], list,
                    isTuple: isTuple && pointer.isEmpty && member.key == "body")
            }
        case .array(let elements):
            let isList =
                pointer != row && (!isTuple || elements.allSatisfy { $0.object != nil } && elements.count > 1)
            for (index, element) in elements.enumerated().prefix(200) {
                let place = "\(pointer)/\(index)"
                let inList = isList && list == nil ? (pointer, place.utf8.count, index) : list
                walk(element, place, names, inList, isTuple: false)
            }
        case .string(let text) where text.utf8.count > 1:
            if let (inner, how) = Self.unwrapped(text) {
                if list == nil { wrapped.append((pointer, how)) }
                return walk(inner, pointer, names, list, isTuple: false)
            }
            add(value, pointer, names, list)
        case .null: break
        default: add(value, pointer, names, list)
        }
    }

    private mutating func add(
        _ value: JSONValue, _ pointer: String, _ names: [String],
        _ list: (pointer: String, from: Int, element: Int)?
    ) {
        let inner = list.map { String(decoding: pointer.utf8.dropFirst($0.from), as: UTF8.self) } ?? ""
        leaves.append(
            Leaf(
                pointer: pointer, names: names, list: list?.pointer, inner: inner, element: list?.element ?? 0,
                value: value))
    }

    static func unwrapped(_ text: String) -> (JSONValue, Wrapping)? {
        if text.hasPrefix("{") || text.hasPrefix("[{") {
            guard let inner = try? JSONValue(parsing: text) else { return nil }
            return (inner, .jsonString)
        }
        guard text.hasPrefix("ey") || text.hasPrefix("W3"), !text.contains("."), text.utf8.count >= 12,
            let bytes = Base64.decode(text), let inner = try? JSONValue(parsing: bytes), inner.object != nil
        else { return nil }
        return (inner, .base64JSON)
    }

    static func escaped(_ key: String) -> String {
        key.replacing("~", with: "~0").replacing("/", with: "~1")
    }
}

/// Words that backends name things by.
enum Words {
    /// Small letters without separators, so that `message_id` is `messageId`.
    static func plain(_ key: String) -> String {
        String(String.UnicodeScalarView(key.lowercased().unicodeScalars.filter { $0 != "_" && $0 != "-" }))
    }

    static let kinds = [
        "type", "t", "op", "event", "kind", "action", "cmd", "command", "method", "msg", "e", "ev", "did", "prefix",
        "messagetype",
    ]
    static let texts = ["text", "body", "message", "content", "msg", "txt", "words", "say", "said"]
    static let ids = [
        "id", "messageid", "msgid", "mid", "uuid", "guid", "key", "no", "number", "seq", "eventid",
    ]
    static let nonces = ["nonce", "cid", "clientid", "ref", "tag", "tempid", "localid", "clientmsgid", "txnid", "rid"]
    static let people = [
        "user", "from", "sender", "author", "by", "who", "member", "owner", "usercreated", "u", "person", "peer",
    ]
    /// Whether something called so is a person, or several.
    static func isPerson(_ key: String) -> Bool {
        let one = key.hasSuffix("s") ? String(key.dropLast()) : key
        return people.contains(one) || people.contains(key)
            || ["you", "me", "self", "account", "profile"].contains(one)
    }

    static let personIDs = [
        "id", "uid", "userid", "senderid", "authorid", "sub", "key", "memberid", "ownerid", "fromid",
    ]
    static let names = [
        "name", "nick", "nickname", "label", "display", "displayname", "username", "sendername", "login", "handle",
        "firstname", "authorname", "usernick", "alias", "sender", "user", "from", "author", "by", "who",
    ]
    static let rooms = [
        "room", "channel", "ch", "place", "topic", "conversation", "chat", "roomid", "channelid", "conversationid",
        "roomname", "group", "space", "chatid", "collection",
    ]
    /// In an object about a room: its id, and its title. Elsewhere a name beside a room's id is a person's.
    static let roomIDs = ["id", "uuid"]
    static let roomTitles = ["title", "name", "displayname", "roomname", "label"]
    static let times = [
        "at", "ts", "time", "timestamp", "sentat", "createdat", "date", "when", "datecreated", "created", "sent",
        "createat", "createdms", "sentms", "timestampms",
    ]
    static let replies = ["replyto", "re", "parent", "inreplyto", "parentid", "reply", "quote", "replytoid", "answers"]
    static let pings = ["ping", "heartbeat", "hb", "keepalive", "beat"]
    static let tokens = ["token", "accesstoken", "jwt", "ticket", "auth", "authtoken", "apikey", "key", "secret"]

    /// Whether something called so, with this value, is most probably a token: a name can also be that of another thing.
    static func isToken(_ name: String, _ value: String) -> Bool {
        let isJWT = value.hasPrefix("ey") && value.utf8.count { $0 == UInt8(ascii: ".") } == 2
        if isJWT || value.hasPrefix("Bearer ") || value.contains(LearnMark.token) { return true }
        if ["auth", "key", "session"].contains(name) { return isOpaque(value) }
        return tokens.contains(name) || name.hasSuffix("token") || name.hasSuffix("apikey")
    }

    /// Made by a machine: long, without blanks, of letters and digits.
    private static func isOpaque(_ text: String) -> Bool {
        text.utf8.count >= 16 && !text.utf8.contains { $0 <= 0x20 } && text.utf8.contains(where: ASCII.isDigit)
            && text.utf8.contains(where: ASCII.isLetter)
    }

    /// Whether the word of a protocol is about a refusal or a failure.
    static func complain(_ text: String) -> Bool {
        have(text, ["error", "fail", "refus", "reject", "nack", "denied"])
    }

    /// Whether one of `stems` begins a word of the text: `userTyping` and `typing_start` have `typing`.
    static func have(_ text: String, _ stems: [String]) -> Bool {
        let plain = plain(text).replacing(".", with: "").replacing(":", with: "").replacing("/", with: "")
        return stems.contains { plain.contains($0) }
    }

    /// A word of a protocol, and nothing that a person wrote or a machine made up.
    static func isWord(_ text: String) -> Bool {
        guard (1...40).contains(text.utf8.count), !text.contains(" "), !LearnMark.all.contains(text) else {
            return false
        }
        let digits = text.utf8.count { ASCII.isDigit($0) }
        return digits * 2 < text.utf8.count || text.utf8.count <= 3
    }

    /// Fit to be an id: short and without blanks.
    static func isID(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count) && !text.utf8.contains(where: { $0 <= 0x20 })
    }
}
