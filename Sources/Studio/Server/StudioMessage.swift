import ChatModel
import Dialects
import JSONText

/// A message as a room keeps it: every wire's form of it is made from this.
struct StudioMessage: Equatable {
    /// Counts over all rooms, from 1; the id on wires with numbers.
    let number: Int64
    let id: ChatID
    let sender: ChatPerson
    let at: ChatTimestamp
    private(set) var text: String
    private(set) var attachments: [ChatAttachment] = []
    let replyTo: ChatID?
    private(set) var isEdited = false
    /// Deleted messages stay as empty ones, so that numbers and replies go on meaning something.
    private(set) var isDeleted = false
    /// In the order in which they came; one of an emoji and a person at most.
    private(set) var reactions: [Reaction] = []
    /// The highest state that another user reported.
    private(set) var state = ChatReceipt.State.sent
    /// Names of those who read it.
    private(set) var readers: Set<String> = []

    struct Reaction: Equatable {
        var emoji: String
        var sender: ChatPerson
    }

    /// Bounds of what is remembered of one message besides its text.
    static let maxReactions = 200
    static let maxReaders = 200

    /// The name that is shown; people without one have their id.
    var senderName: String { sender.name ?? sender.id?.rawValue ?? "unknown" }

    init(
        number: Int64, id: ChatID, sender: ChatPerson, at: ChatTimestamp, text: String,
        attachments: [ChatAttachment] = [], replyTo: ChatID? = nil
    ) {
        (self.number, self.id, self.sender, self.at) = (number, id, sender, at)
        (self.text, self.attachments, self.replyTo) = (text, attachments, replyTo)
    }

    /// - Returns: false: it is deleted.
    mutating func edit(_ text: String) -> Bool {
        guard !isDeleted else { return false }
        self.text = text
        isEdited = true
        return true
    }

    /// - Returns: whether it was there.
    mutating func delete() -> Bool {
        guard !isDeleted else { return false }
        isDeleted = true
        text = ""
        attachments = []
        reactions = []
        return true
    }

    /// - Returns: whether anything changed.
    mutating func react(_ emoji: String, by sender: ChatPerson, isOn: Bool) -> Bool {
        let index = reactions.firstIndex { $0.emoji == emoji && Self.isSame($0.sender, sender) }
        switch (isOn, index) {
        case (true, nil):
            guard reactions.count < Self.maxReactions else { return false }
            reactions.append(Reaction(emoji: emoji, sender: sender))
            return true
        case (false, let index?):
            reactions.remove(at: index)
            return true
        default: return false
        }
    }

    mutating func raise(_ new: ChatReceipt.State, by reader: ChatPerson) {
        if new == .read, let name = reader.name, readers.count < Self.maxReaders { readers.insert(name) }
        if Self.rank(new) > Self.rank(state) { state = new }
    }

    private static func rank(_ state: ChatReceipt.State) -> Int {
        switch state {
        case .sent: 0
        case .delivered: 1
        case .read: 2
        }
    }

    /// By id where both have one, else by name.
    static func isSame(_ a: ChatPerson, _ b: ChatPerson) -> Bool {
        if let a = a.id, let b = b.id { return a == b }
        return a.name == b.name
    }

    /// For wires without files: the text, and below it the files' addresses.
    var textWithLinks: String {
        ([text] + attachments.compactMap(\.url)).filter { !$0.isEmpty }.joined(separator: "\n")
    }
}

/// What happened in a room, as all wires are told of it.
enum StudioEvent: Equatable {
    case message(StudioMessage)
    case edit(StudioMessage)
    case delete([ChatID], by: ChatPerson)
    case typing(ChatPerson, isActive: Bool)
    case receipt(ChatReceipt.State, [ChatID], by: ChatPerson)
    /// `message` is the one after the reaction.
    case reaction(emoji: String, isOn: Bool, by: ChatPerson, message: StudioMessage)
    case join(ChatPerson)
    case leave(ChatPerson)
}
