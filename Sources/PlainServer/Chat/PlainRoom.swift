import BridgeTypes
import ChatModel
import WireBytes

/// A room as the person knows it.
struct PlainRoom {
    /// A message that can be answered, reacted to, or named in words.
    struct Message {
        var id: String
        var nick: String
        var text: String
    }

    /// Messages that are remembered for that.
    private static let maxMessages = 200
    /// More are not named.
    private static let maxTyping = 20
    /// Nicks for the Tab key. In a larger room the rest is typed.
    private static let maxMembers = 5000

    /// With its `#`.
    let name: String
    private var messages: [Message] = []
    /// By their nicks in lower case.
    private var nicks: [String: String] = [:]
    /// The oldest message that was shown, by its id or time.
    private(set) var oldest: (id: String?, time: String)?
    /// The time of the newest that was shown. Not always the latest: a clock may have been ahead for a while.
    private var newest: String?
    /// Where the read marker belongs; nil: it is there.
    private(set) var unmarked: String?
    /// Messages since the room was in front.
    private(set) var unread = 0
    /// Who is typing, and until when that counts.
    private(set) var typing: [(nick: String, until: MonotonicInstant)] = []
    /// Of the person's newest message.
    private var receipts = Receipts()

    private struct Receipts: Equatable {
        var id: String?
        var delivered: [String] = []
        var read: [String] = []
    }

    init(_ name: String) { self.name = name }

    /// A message is shown.
    ///
    /// - Parameters:
    ///   - isOwn: of the person's, just now.
    ///   - isHistory: said before.
    mutating func said(_ message: PlainMessage, isOwn: Bool, isHistory: Bool) {
        stopTyping(message.nick)
        enter(message.nick)
        if oldest == nil || (isHistory && message.stamp < oldest?.time ?? "") { oldest = (message.id, message.stamp) }
        if !isHistory || message.stamp > newest ?? "" {
            newest = message.stamp
            unmarked = newest
        }
        guard let id = message.id else { return }
        messages.append(Message(id: id, nick: message.nick, text: message.text))
        if messages.count > Self.maxMessages { messages.removeFirst() }
        if isOwn { receipts = Receipts(id: id) }
    }

    // MARK: - Reading

    mutating func countUnread() { unread += 1 }

    /// The room is brought to the front.
    mutating func look() { unread = 0 }

    /// The read marker has moved, by this person here or elsewhere.
    mutating func mark(_ time: String) { if time >= unmarked ?? "" { unmarked = nil } }

    // MARK: - Messages

    func message(_ id: String) -> Message? { messages.last { $0.id == id } }

    /// The newest by this person, or by all but one.
    func newest(by nick: String?, but own: String) -> Message? {
        messages.last { message in
            if let nick { return PlainNames.areSame(message.nick, nick) }
            return !PlainNames.areSame(message.nick, own)
        }
    }

    // MARK: - Members

    /// In the order of the alphabet.
    var members: [String] { nicks.sorted { $0.key < $1.key }.map(\.value) }

    func has(_ nick: String) -> Bool { nicks[nick.lowercased()] != nil }

    mutating func enter(_ nick: String) {
        if nicks.count < Self.maxMembers { nicks[nick.lowercased()] = nick }
    }

    mutating func leave(_ nick: String) {
        nicks[nick.lowercased()] = nil
        stopTyping(nick)
    }

    mutating func rename(_ nick: String, to other: String) {
        guard nicks.removeValue(forKey: nick.lowercased()) != nil else { return }
        nicks[other.lowercased()] = other
        stopTyping(nick)
    }

    mutating func forgetMembers() { nicks = [:] }

    // MARK: - The moment

    mutating func type(_ nick: String, until: MonotonicInstant) {
        stopTyping(nick)
        if typing.count < Self.maxTyping { typing.append((nick, until)) }
    }

    mutating func stopTyping(_ nick: String) { typing.removeAll { PlainNames.areSame($0.nick, nick) } }

    mutating func endTyping(now: MonotonicInstant) { typing.removeAll { $0.until <= now } }

    /// How far the person's newest message is.
    var tick: String? {
        if !receipts.read.isEmpty { return "✓✓ read by \(PlainNames.list(receipts.read))" }
        if !receipts.delivered.isEmpty { return "✓✓ delivered to \(PlainNames.list(receipts.delivered))" }
        return receipts.id == nil ? nil : "✓ sent"
    }

    /// A user has got or read a message of the person's, with all before it.
    ///
    /// - Returns: it says something about the newest.
    mutating func receipt(of id: String, by nick: String, isRead: Bool) -> Bool {
        guard receipts.id == id else { return false }
        let before = receipts
        receipts.delivered.removeAll { PlainNames.areSame($0, nick) }
        if isRead {
            if !receipts.read.contains(where: { PlainNames.areSame($0, nick) }) { receipts.read.append(nick) }
        } else if !receipts.read.contains(where: { PlainNames.areSame($0, nick) }) {
            receipts.delivered.append(nick)
        }
        return receipts != before
    }
}
