import ChatModel

/// Where a store keeps its file, and how.
public struct StoreSettings: Sendable {
    /// What a commit waits for.
    public enum Sync: String, Sendable, CaseIterable {
        /// The kernel has it: outlasts the end of the process, not always that of the machine.
        case normal
        /// The disk says that it has it.
        case full
        /// Nothing. A machine that stops may leave a damaged file.
        case off
    }

    /// The database; beside it lie `path` with `-wal`, `-shm` and `.lock`. Its folder must exist.
    public var path: String
    public var sync: Sync
    /// Messages whose time is further back are removed. Nil: never.
    public var retention: Duration?
    /// Of each room so many of the newest messages are kept, and for a while a sixteenth more. Nil: all.
    public var maxMessagesPerRoom: Int?
    /// Orders in one transaction. More at once are fewer pages to write, and longer to wait for.
    public var batchMaxMessages: Int
    /// How long the first order of a transaction waits for others. Zero: it does not; what comes while a transaction is
    /// written makes the next one, so that load makes the batches.
    public var batchMaxWait: Duration
    /// Bytes that orders may take up in memory until they are kept.
    public var inboxBytes: Int
    /// Which start of the machine this is: what its monotonic clock counted means nothing after the next. Nil: unknown.
    public var boot: String?

    // Tests alone set these.

    /// The file grows to so many pages and no further. Nil: SQLite's own limit.
    var maxPageCount: Int?
    /// After a failure, until the next attempt.
    var retryPause: Duration = .seconds(1)
    var conversationLimits = StoreConversationBounds.Limits()
    /// Messages looked at in one step, of a search or for a page from which some people are left out.
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

/// Why there is no store. Each is a sentence for whoever starts the program.
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

/// What happened when a store was opened.
public struct StoreOpening: Equatable, Sendable {
    /// The file was damaged: it lies here now, and the store began anew.
    public var movedAside: String?
    /// Why the store has the file for itself until it is closed, and no other program can look into it: there was no room
    /// for what several programs share, or it could not be had otherwise. A part of a sentence; nil: others can look.
    public var aloneBecause: String?

    public init(movedAside: String? = nil, aloneBecause: String? = nil) {
        self.movedAside = movedAside
        self.aloneBecause = aloneBecause
    }
}

/// What became of orders.
public struct StoreSettlement: Equatable, Sendable {
    /// Everything up to this order is on disk or refused. Never goes back; zero while there is nothing to name.
    public var through: StoreTicket
    /// Orders whose acceptances are not kept. Each is named once, and may lie beyond ``through``: other changes of the
    /// same order, or of orders before it, still wait.
    public var refused: [StoreTicket]
    /// Why something was refused, or why a change was left out; a part of a sentence.
    public var reason: String?

    public init(through: StoreTicket, refused: [StoreTicket] = [], reason: String? = nil) {
        self.through = through
        self.refused = refused
        self.reason = reason
    }
}
