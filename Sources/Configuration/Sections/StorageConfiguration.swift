/// Persistent storage.
package struct StorageConfiguration: Equatable, Sendable {
    /// The guarantee of a commit.
    package enum Sync: String, CaseIterable, Sendable {
        /// Survives the end of the process.
        case normal
        /// Survives a power loss too.
        case full
        /// Neither is certain.
        case off
    }

    package var place = StoragePlace.sqlite(path: StoragePlace.defaultFile)
    /// Age at which messages are removed. Nil: never.
    package var retention: Duration? = .seconds(30 * 24 * 60 * 60)
    /// Older messages are removed. Nil: unlimited.
    package var maxMessagesPerRoom: Int? = 100_000
    package var sync = Sync.normal
    package var batch = StorageBatchConfiguration()

    package init() {}

    /// Smallest limit of messages per room: an hour of a busy one.
    package static let minMessagesPerRoom = 1000
    package static let maxMessagesPerRoomLimit = 1_000_000_000

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "url", \.place, .parsed("\"sqlite:PATH\" or \"memory:\""),
            about: """
                `sqlite:PATH`, relative to `state_dir`, for one process; `memory:`: all state is lost at exit (the \
                demo's default)
                """),
        ConfigurationKey(
            "retention", \.retention, .durationOrOff,
            about: "age at which messages are removed; `off`: never"),
        ConfigurationKey(
            "max_messages_per_room", \.maxMessagesPerRoom, .integerOrOff(minMessagesPerRoom...maxMessagesPerRoomLimit),
            about: "number of newest messages that are stored; `off`: all"),
        ConfigurationKey(
            "sync", \.sync, .choice,
            about: """
                durability: `normal` through a crash of the process, `full` also through a power loss; `off`: a \
                crash may lose data
                """),
        ConfigurationKey(
            "batch", \.batch, .section(StorageBatchConfiguration.rows, inline: true),
            about: """
                changes in one transaction, and the delay to collect them; by default only while another is written
                """),
    ]
}

/// How many changes are committed together. Load makes the batches: while one is written the next one gathers.
package struct StorageBatchConfiguration: Equatable, Sendable {
    package var maxMessages = 500
    /// How long the first change waits for others.
    package var maxWait: Duration = .zero

    /// Longest wait for others; an author waits as long for the acceptance.
    package static let longestWait: Duration = .seconds(10)

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "max_messages", \.maxMessages, .integer(1...100_000),
            about: "changes in one transaction"),
        ConfigurationKey(
            "max_wait", \.maxWait, .duration(atMost: longestWait),
            about: "delay to collect changes"),
    ]
}

/// Location of the store.
package enum StoragePlace: Equatable, ConfigurationText {
    /// Nowhere: it ends with the process.
    case memory
    /// One file; a path that does not begin with `/` is in the state directory.
    case sqlite(path: String)

    static let defaultFile = "chatbridge.db"

    private static let memoryText = "memory:"
    private static let sqlitePrefix = "sqlite:"
    /// Longest path, in bytes. Source: limits.h, PATH_MAX, less the suffixes of the files beside it.
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

/// Keys of planned features: they get a message of their own, not that of a misspelt key.
enum PlannedKeys {
    private static let sentences = [
        "storage.pool": "is for PostgreSQL, which is not built yet; leave it out",
        "cluster": "several instances on one storage are not built yet; leave [cluster] out",
    ]

    /// The message for the key at `path` (dotted, lower case), or for one below it; nil: it is not planned.
    static func sentence(_ path: [String]) -> String? {
        for (planned, sentence) in sentences {
            let steps = planned.split(separator: ".").map(String.init)
            if path.count >= steps.count, Array(path[..<steps.count]) == steps { return sentence }
        }
        return nil
    }
}
