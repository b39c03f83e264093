public import ChatModel

/// The relay's own identities in a room, for codecs.
public struct DialectContext: Sendable {
    /// Every upstream id under which we speak: one for each IRC user where senders can be named.
    public private(set) var selfIDs: Set<ChatID> { didSet { selfFilter = Self.filter(selfIDs) } }
    /// The relay's names, for wires without ids.
    public private(set) var selfNames: Set<String>
    /// The room's id or name on the backend, as the configuration says it.
    public let room: String
    /// The room's id as the backend announced it when the session became usable; frames and calls use it where they want
    /// an id and the configuration gave a name.
    public private(set) var announcedRoom: String?
    /// The bits of ``selfIDs``: messages mostly come from others, and these ids then need no hashing.
    private var selfFilter: UInt64

    public init(selfIDs: Set<ChatID> = [], selfNames: Set<String> = [], room: String, announcedRoom: String? = nil) {
        self.selfIDs = selfIDs
        self.selfNames = selfNames
        self.room = room
        self.announcedRoom = announcedRoom
        selfFilter = Self.filter(selfIDs)
    }

    /// More ids than bits leave hardly a bit out, and each change of the set would cost more.
    private static func filter(_ ids: Set<ChatID>) -> UInt64 {
        ids.count > 64 ? ~0 : ids.reduce(0) { $0 | $1.filterBit }
    }

    /// We speak under this id as well. Returns whether that was news.
    @discardableResult
    public mutating func addSelf(_ id: ChatID) -> Bool { selfIDs.insert(id).inserted }

    public mutating func addSelf(name: String) { selfNames.insert(name) }

    public mutating func addSelf(_ person: ChatPerson) {
        if let id = person.id { addSelf(id) }
        if let name = person.name { addSelf(name: name) }
    }

    /// We no longer speak under this id.
    public mutating func removeSelf(_ id: ChatID) { selfIDs.remove(id) }

    public mutating func removeSelf(_ person: ChatPerson) {
        if let id = person.id { selfIDs.remove(id) }
        if let name = person.name { selfNames.remove(name) }
    }

    /// The session became usable, and perhaps named the room.
    public mutating func announced(_ ready: ChatReady) {
        if let room = ready.room { announcedRoom = room }
    }

    /// Whether `person` is one of us: by id where there is one, else by exact name.
    public func isSelf(_ person: ChatPerson) -> Bool {
        if let id = person.id { return isSelf(id) }
        if let name = person.name { return isOwnName(name) }
        return false
    }

    /// Byte by byte: strings that are equal in Swift may be different people there.
    func isOwnName(_ name: String) -> Bool {
        selfNames.contains(name) && selfNames.contains { TextBytes.areSame($0, name) }
    }

    /// Whether `id` is one of the relay's.
    public func isSelf(_ id: ChatID) -> Bool { selfFilter & id.filterBit != 0 && selfIDs.contains(id) }
}
