import ChatModel

/// The place of a store's file, its limits, and its durability.
public struct StoreSettings: Sendable {
    /// The condition for a commit.
    public enum Sync: String, Sendable, CaseIterable {
        /// Handed to the kernel: survives a crash of the process, not always one of the machine.
        case normal
        /// Flushed to the disk.
        case full
        /// None: a crash of the machine may damage the file.
        case off
    }

    /// The database; beside it lie `path` with `-wal`, `-shm` and `.lock`. Its folder must exist.
    public var path: String
    public var sync: Sync
    /// Messages with an older time are removed. Nil: never.
    public var retention: Duration?
    /// The newest messages of each room that stay; up to a sixteenth more stay for a while. Nil: all.
    public var maxMessagesPerRoom: Int?
    /// Writes in one transaction. More at once are fewer pages to write, and longer to wait for.
    public var batchMaxMessages: Int
    /// How long the first write of a transaction waits for others. Zero: it does not; writes that come during a
    /// transaction make the next one, so that load makes the batches.
    public var batchMaxWait: Duration
    /// Bytes that pending writes may take up in memory.
    public var inboxBytes: Int
    /// The boot id of the machine: a reading of its monotonic clock is meaningless after the next boot. Nil: unknown.
    public var boot: String?

    // Tests alone set these.

    /// The largest number of pages of the file. Nil: SQLite's own limit.
    var maxPageCount: Int?
    /// Pause between a failure and the next attempt.
    var retryPause: Duration = .seconds(1)
    var conversationLimits = StoreConversationBounds.Limits()
    /// Messages read in one step, of a search or for a page from which some senders are left out.
    var pageStepCount = StorePageSearch.stepCount

    /// The default of ``batchMaxMessages``: about 10 ms of work, during which the next batch gathers.
    public static let defaultBatchMaxMessages = 500
    /// The default of ``inboxBytes``, 64 MiB: minutes of a busy relay whose disk hangs.
    public static let defaultInboxBytes = 64 << 20

    public init(
        path: String, sync: Sync = .normal, retention: Duration? = nil, maxMessagesPerRoom: Int? = nil,
        batchMaxMessages: Int = defaultBatchMaxMessages, batchMaxWait: Duration = .zero,
        inboxBytes: Int = defaultInboxBytes, boot: String? = nil
    ) {
        self.path = path
        self.sync = sync
        self.retention = retention
        self.maxMessagesPerRoom = maxMessagesPerRoom
        self.batchMaxMessages = batchMaxMessages
        self.batchMaxWait = batchMaxWait
        self.inboxBytes = inboxBytes
        self.boot = boot
    }
}

/// Why there is no store. Each is a sentence for the operator.
public enum StoreOpenError: Error, Equatable, CustomStringConvertible {
    /// A later version of the program wrote the file; it was left as it is.
    case newer(path: String, found: Int, known: Int)
    /// Another process, or another store of this one, has the file open.
    case inUse(path: String)
    /// Anything else, as a sentence that names the path.
    case cannotOpen(String)

    public var description: String {
        switch self {
        case .newer(let path, let found, let known):
            "The database \(path) is of version \(found), and this program knows versions up to \(known): it was written "
                + "by a newer one. Use that, or another file."
        case .inUse(let path):
            "The database \(path) is in use by another process. Two cannot share one file."
        case .cannotOpen(let sentence): sentence
        }
    }
}

/// The outcome of opening a store.
public struct StoreOpening: Equatable, Sendable {
    /// The new path of a damaged file; the store began empty.
    public var movedAside: String?
    /// Why the store has the file exclusively until it is closed, so that no other program can read it: there was no
    /// room for the memory that several programs share, or it could not be had otherwise. A part of a sentence; nil:
    /// others can read.
    public var exclusiveReason: String?

    public init(movedAside: String? = nil, exclusiveReason: String? = nil) {
        self.movedAside = movedAside
        self.exclusiveReason = exclusiveReason
    }
}

/// The outcome of writes.
public struct StoreSettlement: Equatable, Sendable {
    /// Every write up to this one is on disk or refused. Never decreases; zero before the first.
    public var through: StoreTicket
    /// Writes whose acceptances are not persisted. Each is named once, and may lie beyond ``through``: other operations
    /// of the same write, or of earlier ones, are still pending.
    public var refused: [StoreTicket]
    /// Why a write was refused, or an operation left out; a part of a sentence.
    public var reason: String?

    public init(through: StoreTicket, refused: [StoreTicket] = [], reason: String? = nil) {
        self.through = through
        self.refused = refused
        self.reason = reason
    }
}
