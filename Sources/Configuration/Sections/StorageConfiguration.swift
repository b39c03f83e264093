/// What outlasts the process, and where.
package struct StorageConfiguration: Equatable, Sendable {
    /// What a commit waits for.
    package enum Sync: String, CaseIterable, Sendable {
        /// Outlasts the end of the process.
        case normal
        /// Outlasts a power loss too.
        case full
        /// Neither is certain.
        case off
    }

    package var place = StoragePlace.sqlite(path: StoragePlace.defaultFile)
    /// What was said longer ago is removed. Nil: never.
    package var retention: Duration? = .seconds(30 * 24 * 60 * 60)
    /// The newest are kept. Nil: all.
    package var maxMessagesPerRoom: Int? = 100_000
    package var sync = Sync.normal
    package var batch = StorageBatchConfiguration()

    package init() {}

    /// Fewest messages of a room that may be kept, where there is a limit: an hour of a busy one.
    package static let minMessagesPerRoom = 1000
    package static let maxMessagesPerRoomLimit = 1_000_000_000
}

/// How many changes are committed together. Load makes the batches: while one is written the next one gathers.
package struct StorageBatchConfiguration: Equatable, Sendable {
    package var maxMessages = 500
    /// How long the first change waits for others.
    package var maxWait: Duration = .zero

    /// Longest wait for others; whoever speaks waits as long to hear that it is kept.
    package static let longestWait: Duration = .seconds(10)
}

/// Where it is kept.
package enum StoragePlace: Equatable, Sendable, CustomStringConvertible {
    /// Nowhere: it ends with the process.
    case memory
    /// One file; a path that does not begin with `/` is in the state directory.
    case sqlite(path: String)

    static let defaultFile = "chatbridge.db"

    private static let memoryText = "memory:"
    private static let sqlitePrefix = "sqlite:"
    /// Longest path, in bytes. Source: limits.h, PATH_MAX, less what is appended for the files beside it.
    private static let maxPathBytes = 4000

    /// Parses `memory:` and `sqlite:PATH`.
    ///
    /// The text is never repeated in a complaint: addresses of databases hold passwords.
    package init(parsing text: String) throws(AddressError) {
        let known = "this version has: sqlite:PATH, memory:"
        if text == Self.memoryText {
            self = .memory
            return
        }
        for scheme in ["postgres:", "postgresql:"] where text.hasPrefix(scheme) {
            throw AddressError("storage in PostgreSQL is not built yet; \(known)")
        }
        guard text.hasPrefix(Self.sqlitePrefix) else {
            throw AddressError("storage is written as sqlite:PATH, such as \"sqlite:\(Self.defaultFile)\"; \(known)")
        }
        let path = String(text.dropFirst(Self.sqlitePrefix.count))
        if path == ":memory:" { throw AddressError("what is not to be kept is written as \"memory:\"") }
        guard !path.hasPrefix("//") else {
            throw AddressError(
                "a file is written as sqlite:PATH, without slashes in front: \"sqlite:/var/lib/chat.db\"")
        }
        guard !path.isEmpty, !path.hasSuffix("/"), path.utf8.count <= Self.maxPathBytes,
            !path.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else {
            throw AddressError("a file needs a path of one line, such as \"sqlite:\(Self.defaultFile)\"")
        }
        self = .sqlite(path: path)
    }

    package var description: String {
        switch self {
        case .memory: Self.memoryText
        case .sqlite(let path): Self.sqlitePrefix + path
        }
    }
}

// MARK: - Forms

extension ConfigurationForm where Value == StoragePlace {
    static var storagePlace: Self {
        text("\"sqlite:PATH\" or \"memory:\"") { text throws(AddressError) in
            try StoragePlace(parsing: text)
        } print: {
            $0.description
        }
    }
}

extension ConfigurationForm where Value == Int? {
    /// A number, or nil for 0 and `"off"`.
    static func integerOrOff(_ range: ClosedRange<Int>) -> Self {
        let expected = "a whole number from \(range.lowerBound) to \(range.upperBound), or \"off\""
        return Self(expected: expected, shape: .leaf) { node, value, reader in
            let number: Int?
            switch node.content {
            case .integer(0), .string("off"), .string("0"):
                value = nil
                return
            case .integer(let written): number = Int(exactly: written)
            default: number = reader.bareText(node).flatMap { Int($0) }
            }
            if let number, range.contains(number) {
                value = number
            } else {
                reader.report(node.origin, "expected \(expected), found \(node.found)")
            }
        } write: {
            $0.map { ConfigurationNode(.integer(Int64($0))) } ?? ConfigurationNode(.string("off"))
        }
    }
}

extension ConfigurationForm where Value == Duration {
    /// A duration up to `maximum`; `"0"` and `"off"` say zero.
    static func duration(atMost maximum: Duration) -> Self {
        let form = Self.duration()
        return Self(expected: form.expected, shape: form.shape) { node, value, reader in
            var inner = value
            form.read(node, &inner, &reader)
            guard inner <= maximum else {
                reader.report(node.origin, "is longer than \(DurationText.format(maximum))")
                return
            }
            value = inner
        } write: {
            form.write($0)
        }
    }
}

// MARK: - Rows

extension StorageConfiguration {
    static let rows: [ConfigurationKey<StorageConfiguration>] = [
        ConfigurationKey("url", \.place, .storagePlace, "sqlite:PATH, from state_dir | memory: (nothing is kept)"),
        ConfigurationKey("retention", \.retention, .durationOrOff, "what was said longer ago is removed; or \"off\""),
        ConfigurationKey(
            "max_messages_per_room", \.maxMessagesPerRoom,
            .integerOrOff(minMessagesPerRoom...maxMessagesPerRoomLimit), "the newest are kept; or \"off\""),
        ConfigurationKey(
            "sync", \.sync, .choice, "normal: survives a crash | full: a power loss too | off: a crash may lose data"),
        ConfigurationKey("batch", \.batch, .section(batchRows, inline: true), "what is committed together"),
    ]

    static let batchRows: [ConfigurationKey<StorageBatchConfiguration>] = [
        ConfigurationKey("max_messages", \.maxMessages, .integer(1...100_000), "changes in one transaction"),
        ConfigurationKey(
            "max_wait", \.maxWait, .duration(atMost: StorageBatchConfiguration.longestWait),
            "how long the first waits for others"),
    ]
}

/// Keys that are decided and not built: whoever writes one learns that, and not that it is misspelt.
enum PlannedKeys {
    private static let sentences = [
        "storage.pool": "is for PostgreSQL, which is not built yet; leave it out",
        "cluster": "several instances on one storage are not built yet; leave [cluster] out",
    ]

    /// What to say of the key at `path` (dotted, lower case), or of one below it; nil: it is not planned.
    static func sentence(_ path: [String]) -> String? {
        for (planned, sentence) in sentences {
            let steps = planned.split(separator: ".").map(String.init)
            if path.count >= steps.count, Array(path[..<steps.count]) == steps { return sentence }
        }
        return nil
    }
}
