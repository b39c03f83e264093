import BridgeTypes
import DescribedDialects
import JSONText

// What a reload does with the difference between two configurations.

/// The difference between the configuration in force and one that was read later.
///
/// Rooms and accounts come and go by their names. What becomes of any other change says the ``ReloadEffect`` of its key's row.
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
    /// Mirrors that are new, gone, or have other settings.
    package private(set) var changedMirrors: [String] = []
    /// Other keys that are in force at once, such as `limits.max_clients`.
    package private(set) var changedKeys: [String] = []
    /// Keys that are as they were until a restart.
    package private(set) var deferredKeys: [String] = []
    /// The configuration in force afterwards.
    package private(set) var result: Configuration

    package init(from old: Configuration, to new: Configuration) {
        result = old
        let backends = Dictionary(old.backends.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let changed = new.backends.filter { backend in
            backends[backend.name].map { !BackendConfiguration.rows.isLive(from: $0, to: backend) } ?? false
        }
        var next = old
        let edited = editedDialects(from: old, to: new)
        next.rooms = rooms(
            from: old, to: new, changedBackends: Set(changed.map(\.name)), editedDialects: Set(edited.keys))
        next.accounts = accounts(from: old, to: new)
        // Rooms are complete without these.
        next.roomDefaults = new.roomDefaults
        next.dialects =
            old.dialects.map { edited[$0.name] ?? $0 }
            + new.dialects.filter { added in !old.dialects.contains { $0.name == added.name } }
        let names = Set(new.backends.map(\.name))
        next.backends = new.backends + old.backends.filter { !names.contains($0.name) }
        result = next
        take(\.server, ServerConfiguration.rows, named: "server", new)
        take(\.limits, LimitSettings.rows, named: "limits", new)
        takeMirrors(new)
        deferred(from: result, to: new)
    }

    /// All that differs, under words for people.
    package var lists: [(title: String, names: [String])] {
        [
            ("rooms-opened", addedRooms), ("rooms-closed", removedRooms), ("rooms-reconnected", reconnectedRooms),
            ("rooms-changed", changedRooms), ("accounts-added", addedAccounts), ("accounts-removed", removedAccounts),
            ("accounts-changed", changedAccounts), ("mirrors-changed", changedMirrors), ("keys-changed", changedKeys),
            ("keys-deferred", deferredKeys),
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

    // MARK: - Dialects

    /// Descriptions with other content that their rooms can use from the next link on: messages are confirmed in the same
    /// way, and nothing else that a session depends on differs. Others wait for a restart.
    private mutating func editedDialects(
        from old: Configuration, to new: Configuration
    ) -> [String: DialectConfiguration] {
        var edited: [String: DialectConfiguration] = [:]
        // Any channel may be open by it.
        let ofTemplate = old.rooms.first(where: \.isTemplate)?.dialect
        for known in old.dialects {
            guard let written = new.dialects.first(where: { $0.name == known.name }) else {
                deferredKeys.append("dialects.\(known.name)")
                continue
            }
            guard written != known else { continue }
            if known.name != ofTemplate, known.hasTraits(of: written.definition) {
                edited[known.name] = written
            } else {
                deferredKeys += known.keysForRestart(to: written).map { "dialects.\(known.name).\($0)" }
            }
        }
        return edited
    }

    // MARK: - Rooms

    private mutating func rooms(
        from old: Configuration, to new: Configuration, changedBackends: Set<String>, editedDialects: Set<String>
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
            let changes = RoomConfiguration.allRows.changes(from: known, to: room)
            guard !changes.contains(where: { $0.reload == .restart }) else {
                deferredKeys += changes.map(\.name).sorted().map { "rooms.\(room.name).\($0)" }
                rooms.append(known)
                continue
            }
            if !RoomConfiguration.allRows.isLive(from: known, to: room) || changedBackends.contains(room.backend)
                || editedDialects.contains(room.dialect)
            {
                reconnectedRooms.append(room.name)
            } else if !changes.isEmpty {
                changedRooms.append(room.name)
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
            var taken = account
            for row in AccountConfiguration.rows.changes(from: known, to: account) where row.reload == .restart {
                deferredKeys.append("accounts.\(account.name).\(row.name)")
                row.copy(known, &taken)
            }
            if taken != known { changedAccounts.append(account.name) }
            return taken
        }
    }

    // MARK: - Mirrors

    /// A path that is new is answered by the listeners that serve hooks already.
    private mutating func takeMirrors(_ new: Configuration) {
        let before = Dictionary(result.mirrors.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let after = Set(new.mirrors.map(\.name))
        changedMirrors =
            new.mirrors.filter { before[$0.name] != $0 }.map(\.name)
            + result.mirrors.map(\.name).filter { !after.contains($0) }
        result.take(mirrors: new.mirrors)
    }

    // MARK: - The rest

    private mutating func take<Section: Equatable>(
        _ section: WritableKeyPath<Configuration, Section>, _ rows: [ConfigurationKey<Section>], named name: String,
        _ new: Configuration
    ) {
        for row in rows.changes(from: result[keyPath: section], to: new[keyPath: section]) where row.reload == .live {
            row.copy(new[keyPath: section], &result[keyPath: section])
            changedKeys.append("\(name).\(row.name)")
        }
    }

    private mutating func deferred(from old: Configuration, to new: Configuration) {
        var (old, new) = (old, new)
        // Reported by themselves.
        (old.rooms, old.accounts, new.rooms, new.accounts) = ([], [], [], [])
        (old.mirrors, new.mirrors) = ([], [])
        (old.dialects, new.dialects) = ([], [])
        guard old != new else { return }
        let found = ConfigurationSchema.root.write(old).differences(from: ConfigurationSchema.root.write(new))
        deferredKeys += found.isEmpty ? ["a secret"] : found
    }
}

extension DialectConfiguration {
    fileprivate func hasTraits(of other: CustomDefinition) -> Bool {
        CustomDialect(definition).traits == CustomDialect(other).traits
    }

    /// The keys for which another description waits for a restart: those that alone would make it wait, or else all
    /// that differ.
    fileprivate func keysForRestart(to other: Self) -> [String] {
        let (mine, theirs) = (json.object ?? [], other.json.object ?? [])
        let added = theirs.map(\.key).filter { json[$0] == nil }
        let differing = (mine.map(\.key) + added).filter { json[$0] != other.json[$0] }
        let decisive = differing.filter { key in
            let members = mine.filter { $0.key != key } + theirs.filter { $0.key == key }
            guard let changed = try? CustomDefinition(.object(members)) else { return false }
            return !hasTraits(of: changed)
        }
        return decisive.isEmpty ? differing.isEmpty ? ["file"] : differing : decisive
    }
}

extension Array {
    /// The rows whose fields differ; of several rows of one field the first.
    fileprivate func changes<Section: Equatable>(
        from old: Section, to new: Section
    ) -> Self where Element == ConfigurationKey<Section> {
        var current = old
        return filter { row in
            let before = current
            row.copy(new, &current)
            return current != before
        }
    }

    /// Whether all that differs is in force at once.
    fileprivate func isLive<Section: Equatable>(
        from old: Section, to new: Section
    ) -> Bool where Element == ConfigurationKey<Section> {
        var current = old
        for row in self where row.reload == .live { row.copy(new, &current) }
        return current == new
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
