import BridgeTypes

// What a reload does with the difference between two configurations.

/// The difference between the configuration in force and one that was read later.
///
/// | what differs                                             | on reload                                                  |
/// |----------------------------------------------------------|------------------------------------------------------------|
/// | a room is there, or is not                               | it is opened, or closed                                    |
/// | what a room is: channel, upstream_room, backend, dialect | kept as it was until a restart                             |
/// | how a room connects: url, auth, tls, headers, …          | its link is opened anew; clients and messages stay         |
/// | all else of a room                                       | in force at once                                           |
/// | accounts, most limits, some of server                    | in force at once                                           |
/// | everything else                                          | kept as it was until a restart                             |
package struct ConfigurationChange: Equatable, Sendable {
    package private(set) var addedRooms: [String] = []
    package private(set) var removedRooms: [String] = []
    /// Rooms whose link is opened anew.
    package private(set) var reconnectedRooms: [String] = []
    /// Rooms with other changes.
    package private(set) var changedRooms: [String] = []
    package private(set) var addedAccounts: [String] = []
    package private(set) var removedAccounts: [String] = []
    package private(set) var changedAccounts: [String] = []
    /// Other keys that are in force at once, such as `limits.max_clients`.
    package private(set) var changedKeys: [String] = []
    /// Keys that are as they were until a restart.
    package private(set) var deferredKeys: [String] = []
    /// The configuration in force afterwards.
    package private(set) var result: Configuration

    package init(from old: Configuration, to new: Configuration) {
        result = old
        let backends = Dictionary(old.backends.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let changed = new.backends.filter { backends[$0.name] != nil && backends[$0.name] != $0 }.map(\.name)
        var next = old
        next.rooms = rooms(from: old, to: new, changedBackends: Set(changed))
        next.accounts = accounts(from: old, to: new)
        // Rooms are complete without these.
        next.roomDefaults = new.roomDefaults
        next.dialects += new.dialects.filter { added in !old.dialects.contains { $0.name == added.name } }
        let names = Set(new.backends.map(\.name))
        next.backends = new.backends + old.backends.filter { !names.contains($0.name) }
        result = next
        take(\.server, LiveKeys.server, named: "server", new)
        take(\.limits, LiveKeys.limits, named: "limits", new)
        deferred(from: result, to: new)
    }

    /// All that differs, under words for people.
    package var lists: [(title: String, names: [String])] {
        [
            ("rooms-opened", addedRooms), ("rooms-closed", removedRooms), ("rooms-reconnected", reconnectedRooms),
            ("rooms-changed", changedRooms), ("accounts-added", addedAccounts), ("accounts-removed", removedAccounts),
            ("accounts-changed", changedAccounts), ("keys-changed", changedKeys), ("keys-deferred", deferredKeys),
        ]
    }

    package var isEmpty: Bool { lists.allSatisfy(\.names.isEmpty) }

    /// The backends that are new, or that rooms reach in another way now.
    package func changedBackends(from old: Configuration) -> Set<String> {
        let before = Set(old.rooms.map(\.backendName) + old.backends.map(\.name))
        let anew = Set(reconnectedRooms)
        return Set(
            result.rooms.lazy.filter { anew.contains($0.name) || !before.contains($0.backendName) }.map(\.backendName))
    }

    // MARK: - Rooms

    private mutating func rooms(
        from old: Configuration, to new: Configuration, changedBackends: Set<String>
    ) -> [RoomConfiguration] {
        let before = Dictionary(old.rooms.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let after = Set(new.rooms.map(\.name))
        removedRooms = old.rooms.map(\.name).filter { !after.contains($0) && $0 != RoomConfiguration.templateName }
        var rooms: [RoomConfiguration] = []
        for room in new.rooms where !room.isTemplate {
            guard let known = before[room.name] else {
                addedRooms.append(room.name)
                rooms.append(room)
                continue
            }
            guard known != room else { rooms.append(room); continue }
            let differing = Self.differing(known, room)
            guard differing.isDisjoint(with: LiveKeys.ofRoomItself), known.dialect == room.dialect else {
                deferredKeys += differing.sorted().map { "rooms.\(room.name).\($0)" }
                rooms.append(known)
                continue
            }
            if known.isReached(as: room), !changedBackends.contains(room.backend) {
                changedRooms.append(room.name)
            } else {
                reconnectedRooms.append(room.name)
            }
            rooms.append(room)
        }
        // Any channel may be open by it.
        rooms += old.rooms.filter(\.isTemplate)
        if old.rooms.first(where: \.isTemplate) != new.rooms.first(where: \.isTemplate) {
            deferredKeys.append("rooms.\(RoomConfiguration.templateName)")
        }
        return rooms
    }

    /// The keys that two rooms have different values of; of a secret it cannot be seen.
    private static func differing(_ a: RoomConfiguration, _ b: RoomConfiguration) -> Set<String> {
        func node(_ room: RoomConfiguration) -> ConfigurationNode? {
            ConfigurationForm.section(RoomConfiguration.ownRows + RoomConfiguration.rows).write(room)
        }
        return Set(node(a).differences(from: node(b)).map { String($0.prefix { $0 != "." }) })
    }

    // MARK: - Accounts

    private mutating func accounts(from old: Configuration, to new: Configuration) -> [AccountConfiguration] {
        let before = Dictionary(old.accounts.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let after = Set(new.accounts.map(\.name))
        removedAccounts = old.accounts.map(\.name).filter { !after.contains($0) }
        return new.accounts.map { account in
            guard let known = before[account.name] else {
                addedAccounts.append(account.name)
                return account
            }
            guard known != account else { return account }
            var taken = account
            // Their links are known by them.
            if known.upstream != account.upstream {
                deferredKeys.append("accounts.\(account.name).upstream")
                taken.upstream = known.upstream
            }
            if taken != known { changedAccounts.append(account.name) }
            return taken
        }
    }

    // MARK: - The rest

    private mutating func take<Section: Equatable>(
        _ section: WritableKeyPath<Configuration, Section>, _ keys: [LiveKey<Section>], named name: String,
        _ new: Configuration
    ) {
        for key in keys where key.differs(result[keyPath: section], new[keyPath: section]) {
            key.copy(new[keyPath: section], &result[keyPath: section])
            changedKeys.append("\(name).\(key.name)")
        }
    }

    private mutating func deferred(from old: Configuration, to new: Configuration) {
        var (old, new) = (old, new)
        // Reported by themselves.
        (old.rooms, old.accounts, new.rooms, new.accounts) = ([], [], [], [])
        guard old != new else { return }
        let found = ConfigurationSchema.root.write(old).differences(from: ConfigurationSchema.root.write(new))
        deferredKeys += found.isEmpty ? ["a secret"] : found
    }
}

// MARK: - What is in force at once

private struct LiveKey<Section> {
    let name: String
    let differs: (Section, Section) -> Bool
    let copy: (Section, inout Section) -> Void

    init<Value: Equatable>(_ name: String, _ path: WritableKeyPath<Section, Value>) {
        self.name = name
        differs = { $0[keyPath: path] != $1[keyPath: path] }
        copy = { $1[keyPath: path] = $0[keyPath: path] }
    }
}

private enum LiveKeys {
    /// What a room is. With another one its messages would be another room's.
    static let ofRoomItself: Set<String> = [
        "channel", "upstream_room", "backend", "dialect", "options", "identity", "compression", "mode", "relay_nick",
    ]

    static var server: [LiveKey<ServerConfiguration>] {
        [
            LiveKey("motd", \.motd), LiveKey("description", \.description), LiveKey("drain", \.drain),
            LiveKey("prestop_delay", \.prestopDelay),
        ]
    }

    static var limits: [LiveKey<LimitSettings>] {
        [
            LiveKey("max_clients", \.maxClients), LiveKey("max_clients_per_ip", \.maxClientsPerAddress),
            LiveKey("accepts_per_second_per_ip", \.acceptsPerSecondPerAddress),
            LiveKey("registration_timeout", \.registrationTimeout), LiveKey("ping_interval", \.pingInterval),
            LiveKey("ping_timeout", \.pingTimeout), LiveKey("messages_per_second", \.messagesPerSecond),
            LiveKey("messages_burst", \.messagesBurst), LiveKey("recvq", \.receiveQueueBytes),
            LiveKey("members_per_room", \.membersPerRoom), LiveKey("template_rooms", \.templateRooms),
            LiveKey("backlog", \.backlog), LiveKey("history_limit", \.historyLimit),
        ]
    }
}

extension RoomConfiguration {
    /// Whether a link that is open fits `other` as well.
    fileprivate func isReached(as other: RoomConfiguration) -> Bool {
        var moved = self
        moved.topic = other.topic
        moved.receipts = other.receipts
        moved.memberIdle = other.memberIdle
        moved.queue = other.queue
        moved.connect = other.connect
        moved.historyOnJoin = other.historyOnJoin
        moved.isRequired = other.isRequired
        moved.giveUpAfter = other.giveUpAfter
        return moved == other
    }
}

extension Optional where Wrapped == ConfigurationNode {
    /// The dotted keys that the two have different values of; elements of a list are named by their number.
    fileprivate func differences(from other: ConfigurationNode?, at path: String = "") -> [String] {
        func below(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }
        guard self != other else { return [] }
        switch (self?.content, other?.content) {
        case (.table(let mine)?, .table(let theirs)?):
            let keys = mine.map(\.key) + theirs.map(\.key).filter { key in !mine.contains { $0.key == key } }
            return keys.flatMap { key in
                mine.first { $0.key == key }?.node.asOptional.differences(
                    from: theirs.first { $0.key == key }?.node, at: below(key)) ?? [below(key)]
            }
        case (.array(let mine)?, .array(let theirs)?) where mine.count == theirs.count && self?.isInline == false:
            return zip(mine, theirs).enumerated().flatMap { index, pair in
                pair.0.asOptional.differences(from: pair.1, at: below("\(index)"))
            }
        default: return [path]
        }
    }
}

extension ConfigurationNode { fileprivate var asOptional: ConfigurationNode? { self } }
