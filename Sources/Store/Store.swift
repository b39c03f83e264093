import ChatModel
import Threads

/// Persistent storage of the bridge, in one SQLite file.
///
/// The bridge submits writes without waiting; the writer's thread commits all pending ones in one transaction, so that
/// load makes the batches. The reader's thread answers questions on a connection of its own and sees every write
/// submitted before the question, as long as writing succeeds.
///
/// - A write is atomic, and writes are committed in the order of submission.
/// - Settled writes survive the end of the process, and with ``StoreSettings/Sync/full`` a crash of the machine.
/// - While writing fails (a full disk), acceptances are refused at once and all else is pending, up to
///   ``StoreSettings/inboxBytes``; the store retries by itself.
/// - An operation that SQLite refuses for itself (a second message at the same place) is left out and reported;
///   acceptances among them are refused. Operations about rows that do not exist change nothing.
public final class Store: Sendable {
    private let core: StoreCore

    private init(_ core: StoreCore) { self.core = core }

    deinit { _ = core.beginClosing(within: .seconds(1)) }

    /// Opens the file and migrates it to the present version; creates it, readable by its owner alone, when there is
    /// none.
    ///
    /// A damaged file is renamed, and a new one made. Blocks; files up to 64 MiB are read as a whole.
    ///
    /// - Parameter wallClockMilliseconds: since 1970 UTC; names damaged files, and is the base of messages' ages.
    public static func open(
        _ settings: StoreSettings, wallClockMilliseconds: Int64
    ) throws(StoreOpenError) -> (Store, StoreOpening) {
        let parts = try StoreFile.open(settings, wallClockMilliseconds: wallClockMilliseconds)
        guard let core = StoreCore(settings, parts, wallClockMilliseconds: wallClockMilliseconds) else {
            throw .cannotOpen("The database \(settings.path) cannot be opened: too many files are open.")
        }
        return (Store(core), parts.opening)
    }

    /// The state with which a bridge starts. Blocks; only before ``start(settled:condition:)``.
    ///
    /// - Parameter messagesPerRoom: the newest of each room, at most so many.
    public func load(messagesPerRoom: Int = 0) throws(StoreFailure) -> StoredState {
        guard core.inbox.withLock({ $0.stage == .opened }) else {
            throw StoreFailure("the store has started already, or is closed")
        }
        do throws(SQLiteError) {
            return try core.queries.everything(messagesPerRoom: messagesPerRoom)
        } catch {
            if error.scope == .file { StoreFile.markSuspect(core.settings.path) }
            throw StoreFailure(error.sentence)
        }
    }

    /// Starts the threads. Once.
    ///
    /// - Parameters:
    ///   - settled: called on the writer's thread after each batch, and for refusals.
    ///   - condition: called on the writer's thread when it changes. A store begins sound.
    public func start(
        settled: @escaping @Sendable (StoreSettlement) -> Void,
        condition: @escaping @Sendable (StoreCondition) -> Void
    ) {
        let isFirst = core.inbox.withLock { $0.start() }
        guard isFirst else { return }
        let core = core
        let hasReader = startsThread("store-reader") { StoreReader(core: core).run() }
        if !hasReader { core.readerEnded() }
        let hasWriter =
            hasReader
            && startsThread("store-writer") {
                StoreWriter(core, settled: settled, condition: condition).run()
            }
        if !hasWriter {
            _ = core.beginClosing(within: .zero)
            core.writerEnded()
            condition(.failing("the system has no more threads"))
        }
    }

    private func startsThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        if case .success = startDetachedThread(name: name, body) { true } else { false }
    }

    /// Submits a write. Never blocks, and may be called before ``start(settled:condition:)``.
    ///
    /// - Parameter ticket: greater than those before it, and than zero.
    /// - Returns: false when the inbox is full or the store closed; then nothing was taken, and nothing will be
    ///   reported.
    public func submit(_ ticket: StoreTicket, _ operations: [StoreOperation]) -> Bool {
        core.submit(ticket, operations)
    }

    // MARK: - Erasure

    /// Erases a person, behind all writes submitted before. Takes as long as it takes to read all messages and to write
    /// the file anew; other writes go on between its steps.
    ///
    /// - Parameter done: called on the writer's thread. A failure leaves it incomplete; another erasure completes it.
    public func erase(
        _ person: StoredPerson, _ done: @escaping @Sendable (Result<StoredErasure, StoreFailure>) -> Void
    ) {
        guard core.inbox.withLock({ $0.stage == .running }) else { return done(.failure(.closed)) }
        core.onWriter { $0.erase(person, done) }
    }

    // MARK: - Questions

    // `done` is called once, on the reader's thread, or at once when the question cannot be asked.

    /// A room with its newest ``StoredState/messagesPerRoom`` messages; an empty one when the store has nothing of it.
    public func loadRoom(
        _ key: StoredRoomKey, _ done: @escaping @Sendable (Result<StoredRoom, StoreFailure>) -> Void
    ) {
        core.ask(done) { (queries) throws(SQLiteError) in
            try queries.room(key, messagesPerRoom: StoredState.messagesPerRoom)
        }
    }

    /// The first `limit` messages whose place is greater than `after` and at most `through`, oldest first.
    public func readMessages(
        _ key: StoredRoomKey, after: Int64, through: Int64, limit: Int,
        _ done: @escaping @Sendable (Result<[StoredMessage], StoreFailure>) -> Void
    ) {
        core.ask(done) { (queries) throws(SQLiteError) in
            try queries.messages(key, after: after, through: through, limit: limit)
        }
    }

    /// The place of the page that `query` asks for, and its references. A page from which senders are left out may take
    /// many steps, between which other questions are answered; it fails beyond 1,000,000 messages.
    public func findPlaces(
        _ key: StoredRoomKey, _ query: StoredPageQuery,
        _ done: @escaping @Sendable (Result<StoredPlaces, StoreFailure>) -> Void
    ) {
        let count = core.settings.pageStepCount
        core.ask(done, inSteps: StorePageSearch()) { (queries, search) throws(SQLiteError) in
            try queries.places(key, query, &search, count: count)
        }
    }

    /// One step of a search; its answer is the next one to ask for.
    public func search(
        _ key: StoredRoomKey, _ search: StoredSearch,
        _ done: @escaping @Sendable (Result<StoredSearchStep, StoreFailure>) -> Void
    ) {
        let count = core.settings.pageStepCount
        core.ask(done) { (queries) throws(SQLiteError) in try queries.search(key, search, count: count) }
    }

    /// How many messages have a place greater than `after` and at most `through`.
    public func countMessages(
        _ key: StoredRoomKey, after: Int64, through: Int64,
        _ done: @escaping @Sendable (Result<Int, StoreFailure>) -> Void
    ) {
        core.ask(done) { (queries) throws(SQLiteError) in
            try queries.countMessages(key, after: after, through: through)
        }
    }

    // MARK: - The end

    /// Commits the pending writes and closes the file. Blocks at most about `limit`; writes that are not on disk by
    /// then are lost, and acceptances among them are refused.
    public func close(within limit: Duration) {
        if core.beginClosing(within: limit) { core.waitForEnd(within: limit) }
    }

    // MARK: - For tests

    /// Runs a closure on the writer's thread, between two batches.
    func onWriter(_ job: @escaping @Sendable (StoreWriter) -> Void) { core.onWriter(job) }
}
