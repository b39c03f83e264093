import BridgeTypes

/// The rooms of a person, and which of them is in front.
///
/// | state    | meaning                | leaves by                                                                            |
/// |----------|------------------------|--------------------------------------------------------------------------------------|
/// | listing  | LIST is sent           | its end → choosing; → inFront where there is a room, as an account may be in some    |
/// | choosing | in no room             | a room is asked for → joining; a JOIN of the account's → inFront; /rooms → listing   |
/// | joining  | JOIN is sent           | our JOIN → inFront; refused → choosing; → inFront where there is a room              |
/// | inFront  | a room is in front     | the last room is left → choosing; another is asked for → joining; /rooms → listing   |
struct PlainRooms {
    enum State: Equatable {
        case listing
        case choosing
        case joining(String)
        case inFront
    }

    /// What leaving a room leads to.
    enum Left: Equatable {
        case background
        /// Another room, which is to be brought to the front.
        case next(String)
        /// There is none.
        case last
    }

    /// More are not offered.
    private static let maxListed = 1000

    private(set) var state = State.listing
    private(set) var all: [PlainRoom] = []
    /// The name of the one in front.
    private(set) var current: String?
    /// Names of rooms that may be chosen, as the server lists them.
    private(set) var listed: [String] = []
    /// Names of rooms whose members the person has asked for.
    private var membersAsked: Set<String> = []

    /// A room's name as a person writes it, with or without `#`.
    static func name(_ word: some StringProtocol) -> String { word.hasPrefix("#") ? String(word) : "#" + word }

    /// The server is to answer before more can be asked.
    var isWaiting: Bool {
        switch state {
        case .listing, .joining: true
        case .choosing, .inFront: false
        }
    }

    var isJoining: Bool { if case .joining = state { true } else { false } }

    // MARK: - One room

    private func index(of name: String) -> Int? { all.firstIndex { PlainNames.areSame($0.name, name) } }

    subscript(name: String) -> PlainRoom? { index(of: name).map { all[$0] } }

    var front: PlainRoom? { current.flatMap { self[$0] } }

    func isInFront(_ name: String) -> Bool { current.map { PlainNames.areSame($0, name) } ?? false }

    mutating func update(_ name: String, _ change: (inout PlainRoom) -> Void) {
        if let index = index(of: name) { change(&all[index]) }
    }

    mutating func updateAll(_ change: (inout PlainRoom) -> Void) {
        for index in all.indices { change(&all[index]) }
    }

    // MARK: - The list

    func isListed(_ name: String) -> Bool { listed.contains { PlainNames.areSame($0, name) } }

    /// LIST is sent.
    mutating func beginListing() {
        listed = []
        state = .listing
    }

    /// 322 RPL_LIST.
    ///
    /// - Returns: the person waits for it.
    mutating func take(listed name: String) -> Bool {
        guard listed.count < Self.maxListed else { return false }
        listed.append(name)
        return state == .listing
    }

    /// 323 RPL_LISTEND.
    ///
    /// - Returns: a room is to be asked for.
    mutating func endListing() -> Bool { state == .listing && settle() }

    private mutating func settle() -> Bool {
        state = current == nil ? .choosing : .inFront
        return state == .choosing
    }

    // MARK: - Coming and going

    /// JOIN is sent.
    mutating func beginJoining(_ name: String) { state = .joining(name) }

    /// JOIN is refused.
    ///
    /// - Returns: another room is to be asked for.
    mutating func endJoining() -> Bool { if case .joining = state { settle() } else { false } }

    /// Our JOIN.
    ///
    /// - Returns: the room is to be brought to the front.
    mutating func entered(_ name: String, as nick: String) -> Bool {
        if index(of: name) == nil { all.append(PlainRoom(name)) }
        update(name) {
            $0.forgetMembers()
            $0.enter(nick)
        }
        switch state {
        case .joining(let wanted) where PlainNames.areSame(wanted, name):
            state = .inFront
            return true
        case .choosing: state = .inFront
        case .listing, .joining, .inFront: break
        }
        return current == nil
    }

    mutating func bringToFront(_ name: String) {
        guard let index = index(of: name) else { return }
        all[index].look()
        current = all[index].name
    }

    mutating func leave(_ name: String) -> Left {
        guard let index = index(of: name) else { return .background }
        all.remove(at: index)
        guard isInFront(name) else { return .background }
        current = nil
        guard let next = all.last else {
            state = .choosing
            return .last
        }
        return .next(next.name)
    }

    // MARK: - Members

    /// NAMES is sent, as the person wants to see them.
    mutating func askMembers(of name: String) {
        membersAsked.insert(name)
        update(name) { $0.forgetMembers() }
    }

    /// - Returns: the person has asked.
    mutating func takeMembersAsked(_ name: String) -> Bool { membersAsked.remove(name) != nil }
}
