import ChatModel
import JSONText

/// A room: its messages, and who is in it.
struct StudioRoom {
    /// Messages of a room. Beyond them the oldest are dropped, a tenth at a time.
    static let maxMessages = 20_000
    /// People announced by one peer: the bridge announces all IRC users of a room.
    static let maxMembers = 2000

    /// The room's number on wires with numbers, from 1.
    let number: Int64
    let name: String
    let createdAt: ChatTimestamp
    var topic = ""
    /// Oldest first, by number.
    private(set) var messages: [StudioMessage] = []
    private var numbers: [ChatID: Int64] = [:]
    /// In the order in which they came; a person may be here by several peers.
    private(set) var members: [(peer: StudioPeerID, person: ChatPerson)] = []

    init(number: Int64, name: String, createdAt: ChatTimestamp, topic: String = "") {
        self.number = number
        self.name = name
        self.createdAt = createdAt
        self.topic = topic
    }

    // MARK: - Messages

    func message(_ id: ChatID) -> StudioMessage? {
        if let number = numbers[id] { return message(number: number) }
        return Int64(id.rawValue).flatMap { message(number: $0) }
    }

    func message(number: Int64) -> StudioMessage? { index(of: number).map { messages[$0] } }

    mutating func append(_ message: StudioMessage) {
        if messages.count >= Self.maxMessages {
            for old in messages.prefix(Self.maxMessages / 10) { numbers[old.id] = nil }
            messages.removeFirst(Self.maxMessages / 10)
        }
        numbers[message.id] = message.number
        messages.append(message)
    }

    /// - Returns: the changed message; nil when there is none, or `change` says that nothing changed.
    mutating func change(_ id: ChatID, _ change: (inout StudioMessage) -> Bool) -> StudioMessage? {
        guard let number = numbers[id] ?? Int64(id.rawValue), let index = index(of: number),
            change(&messages[index])
        else { return nil }
        return messages[index]
    }

    /// The newest `limit` messages before `id`, or of all; oldest first.
    func page(before id: ChatID?, limit: Int) -> (messages: ArraySlice<StudioMessage>, hasMore: Bool) {
        let end = id.flatMap { numbers[$0] }.flatMap(index) ?? messages.count
        let start = max(0, end - limit)
        return (messages[start..<end], start > 0)
    }

    /// Messages of others that `name` has not read.
    func unread(by name: String) -> Int {
        messages.count { $0.senderName != name && !$0.isDeleted && !$0.readers.contains(name) }
    }

    mutating func markRead(by name: String) -> [ChatID] {
        var ids: [ChatID] = []
        for index in messages.indices
        where messages[index].senderName != name && !messages[index].isDeleted
            && !messages[index].readers.contains(name)
        {
            messages[index].raise(.read, by: ChatPerson(name: name))
            ids.append(messages[index].id)
        }
        return ids
    }

    private func index(of number: Int64) -> Int? {
        var (low, high) = (0, messages.count)
        while low < high {
            let middle = (low + high) / 2
            if messages[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low < messages.count && messages[low].number == number ? low : nil
    }

    // MARK: - Members

    /// - Returns: whether they were not here by any peer.
    mutating func enter(_ person: ChatPerson, by peer: StudioPeerID) -> Bool {
        let isHere = members.contains { StudioMessage.isSame($0.person, person) }
        guard members.count < Self.maxMembers,
            !members.contains(where: { $0.peer == peer && StudioMessage.isSame($0.person, person) })
        else { return false }
        members.append((peer, person))
        return !isHere
    }

    /// - Returns: whether they are not here by any other peer.
    mutating func leave(_ person: ChatPerson, by peer: StudioPeerID) -> Bool {
        guard
            let index = members.firstIndex(where: { $0.peer == peer && StudioMessage.isSame($0.person, person) })
        else { return false }
        members.remove(at: index)
        return !members.contains { StudioMessage.isSame($0.person, person) }
    }

    /// All who were here by `peer` alone.
    mutating func leaveAll(by peer: StudioPeerID) -> [ChatPerson] {
        let theirs = members.filter { $0.peer == peer }.map(\.person)
        guard !theirs.isEmpty else { return [] }
        members.removeAll { $0.peer == peer }
        return theirs.filter { person in !members.contains { StudioMessage.isSame($0.person, person) } }
    }
}
