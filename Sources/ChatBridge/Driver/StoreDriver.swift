import BridgeCore
import BridgeTypes
import CSystem
import ChatModel
import Configuration
import Glibc
import IRCServer
import Rooms
import Store
import Threads
import Transport
import WireBytes

/// Carries the bridge's orders and questions to the store, and its answers back to the loop.
///
/// The store's threads report a whole batch at a time; each report is one call on the loop.
final class StoreDriver: Sendable {
    /// How long the end of the process waits for the disk.
    static let closeLimit: Duration = .seconds(10)

    /// Where the database lies; for people.
    let path: String
    /// Why no other process can look into the file until the next start; nil: it can.
    let exclusiveReason: String?
    private let store: Store
    private let record = StoreRecord()

    private init(_ store: Store, path: String, exclusiveReason: String?) {
        self.store = store
        self.path = path
        self.exclusiveReason = exclusiveReason
    }

    // MARK: - The beginning

    /// An open store and its contents.
    struct Opened: Sendable {
        var driver: StoreDriver
        var state: StoredState
        /// The file was damaged and lies here now; the store began anew.
        var movedAside: String?
    }

    /// Opens the configured store; nil where storage is in memory. Blocks on the disk.
    static func open(_ configuration: StorageConfiguration, stateDirectory: String) throws(StartError) -> Opened? {
        guard case .sqlite(let written) = configuration.place else { return nil }
        let path = written.hasPrefix("/") ? written : "\(stateDirectory)/\(written)"
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        guard folder.isEmpty || StateFile.makeDirectory(folder) else { throw unwritable(folder, errno) }
        // The dot: a file in the folder's place may be writable too.
        if !folder.isEmpty, access(folder + "/.", W_OK | X_OK) != 0 { throw unwritable(folder, errno) }
        let (store, opening): (Store, StoreOpening)
        do throws(StoreOpenError) {
            (store, opening) = try Store.open(
                settings(configuration, path: path), wallClockMilliseconds: cb_realtime_nanoseconds() / 1_000_000)
        } catch {
            throw StartError(description: error.description)
        }
        let state: StoredState
        do throws(StoreFailure) {
            state = try store.load()
        } catch {
            store.close(within: .zero)
            throw StartError(description: "The database \(path) cannot be read: \(error.sentence).")
        }
        return Opened(
            driver: StoreDriver(store, path: path, exclusiveReason: opening.exclusiveReason), state: state,
            movedAside: opening.movedAside)
    }

    /// - Parameter user: the one that the process runs as.
    static func unwritable(_ folder: String, _ code: Int32, user: uid_t = geteuid()) -> StartError {
        let remedy: String
        if code != EACCES {
            remedy = ". Name"
        } else if let owner = StateFile.owner(folder) {
            let change =
                owner.user == user ? "Let that user write there (chmod u+rwx" : "Make it that user's (chown \(user)"
            remedy =
                ": this process runs as user \(user), and it belongs to user \(owner.user), mode \(String(owner.mode, radix: 8)). "
                + "\(change) \(folder)), name"
        } else {
            remedy =
                ": it is not there, and user \(user), as whom this process runs, may not make it. Make it that user's, name"
        }
        return StartError(
            description: "\(folder) is not writable (\(String(cString: strerror(code))))\(remedy) another folder "
                + "with --state-dir or server.state_dir, or write url = \"memory:\" in [storage].")
    }

    private static func settings(_ configuration: StorageConfiguration, path: String) -> StoreSettings {
        StoreSettings(
            path: path, sync: StoreSettings.Sync(rawValue: configuration.sync.rawValue) ?? .normal,
            retention: configuration.retention,
            maxMessagesPerRoom: configuration.maxMessagesPerRoom, batchMaxMessages: configuration.batch.maxMessages,
            batchMaxWait: configuration.batch.maxWait, boot: SystemClock.boot())
    }

    /// Starts the store's threads, which answer the bridge on `loop`.
    func start(on loop: NetworkLoop) {
        let record = record
        store.start(
            settled: { settlement in
                record.settled(through: settlement.through, hasFailed: !settlement.refused.isEmpty)
                Self.answer(on: loop) { bridge, settlement, now in
                    bridge.storeSettled(
                        through: settlement.through, refused: settlement.refused, reason: settlement.reason, now: now)
                }(settlement)
            },
            condition: { condition in
                record.changed(condition)
                Self.answer(on: loop) { $0.storeConditionChanged($1, now: $2) }(condition)
            })
    }

    // MARK: - Orders and queries

    func keep(_ ticket: StoreTicket, _ changes: [StoreOperation], on loop: NetworkLoop) {
        if store.submit(ticket, changes) { return record.handedOver(ticket) }
        record.failed(.write)
        // On the loop's next turn: the bridge may react with another order that has no room. Later orders cannot be
        // settled before this report, since their settlements are queued behind it.
        loop.enqueue { transport in
            transport.tellBridge { $0.storeOverflowed(ticket, changes, now: $1) }
        }
    }

    /// Passes an answer to the bridge, on the loop.
    private static func answer<Answer: Sendable>(
        on loop: NetworkLoop, _ verb: @escaping @Sendable (Bridge, Answer, Now) -> Void
    ) -> @Sendable (Answer) -> Void {
        { answer in
            loop.enqueue { transport in transport.tellBridge { verb($0, answer, $1) } }
        }
    }

    func loadRoom(_ id: RoomID, _ key: StoredRoomKey, on loop: NetworkLoop) {
        store.loadRoom(
            key,
            timed(.load) { outcome in
                loop.enqueue { transport in
                    if case .success(let room) = outcome { transport.mirrorService?.loaded(id, room) }
                    transport.tellBridge { $0.roomLoaded(id, outcome, now: $1) }
                    transport.mirrorService?.roomOpened(transport)
                }
            })
    }

    func readMessages(
        _ id: StoreReadID, _ key: StoredRoomKey, after: Int64, through: Int64, limit: Int, on loop: NetworkLoop
    ) {
        store.readMessages(
            key, after: after, through: through, limit: limit,
            timed(.read, Self.answer(on: loop) { $0.messagesRead(id, $1, now: $2) }))
    }

    /// The same for an asker beside the bridge; `done` is called on the loop.
    func read(
        _ key: StoredRoomKey, after: Int64, through: Int64, limit: Int, on loop: NetworkLoop,
        _ done: @escaping @Sendable (Result<[StoredMessage], StoreFailure>, Transport) -> Void
    ) {
        store.readMessages(key, after: after, through: through, limit: limit) { outcome in
            loop.enqueue { done(outcome, $0) }
        }
    }

    /// The same for an asker beside the bridge; `done` is called on the loop.
    func find(
        _ key: StoredRoomKey, _ query: StoredPageQuery, on loop: NetworkLoop,
        _ done: @escaping @Sendable (Result<StoredPlaces, StoreFailure>, Transport) -> Void
    ) {
        store.findPlaces(key, query) { outcome in loop.enqueue { done(outcome, $0) } }
    }

    /// Erases a person behind all changes before; `done` is called on the loop.
    func erase(
        _ person: StoredPerson, on loop: NetworkLoop,
        _ done: @escaping @Sendable (Result<StoredErasure, StoreFailure>, Transport) -> Void
    ) {
        store.erase(person) { outcome in loop.enqueue { done(outcome, $0) } }
    }

    func findPlaces(_ id: StoreReadID, _ key: StoredRoomKey, _ query: StoredPageQuery, on loop: NetworkLoop) {
        store.findPlaces(key, query, timed(.find, Self.answer(on: loop) { $0.placesFound(id, $1, now: $2) }))
    }

    func searchMessages(_ id: StoreReadID, _ key: StoredRoomKey, _ search: StoredSearch, on loop: NetworkLoop) {
        store.search(key, search, timed(.search, Self.answer(on: loop) { $0.messagesSearched(id, $1, now: $2) }))
    }

    /// Measures a query from now to its answer.
    private func timed<Answer>(
        _ operation: StoreMeasurements.Operation,
        _ answer: @escaping @Sendable (Result<Answer, StoreFailure>) -> Void
    ) -> @Sendable (Result<Answer, StoreFailure>) -> Void {
        let (record, began) = (record, SystemClock.monotonic())
        return { result in
            record.answered(operation, after: SystemClock.monotonic() - began)
            if case .failure = result { record.failed(operation) }
            answer(result)
        }
    }

    /// Times and failures since the start.
    var measurements: StoreMeasurements { record.state.measurements }

    /// How the store is; for supervisors.
    var condition: StoreCondition { record.state.condition }

    // MARK: - The end

    /// Flushes pending orders and closes the file. Blocks at most about `limit`.
    ///
    /// - Returns: a sentence for the operator when some messages may not be stored; nil when all are.
    func close(within limit: Duration = closeLimit) -> String? {
        let began = ContinuousClock.now
        store.close(within: limit)
        let state = record.state
        if case .failing(let reason) = state.condition { return "recent messages may not be stored: \(reason)" }
        // A store that ran out of time drops pending orders and counts them as settled.
        guard state.settled >= state.handedOver, ContinuousClock.now - began < limit else {
            return "recent messages may not be stored: the disk took too long"
        }
        return nil
    }
}

/// How long the store took, and what failed.
struct StoreMeasurements: Sendable {
    enum Operation: String, CaseIterable, Sendable {
        /// A transaction of changes.
        case write
        /// The stored state of a room that is opened.
        case load
        /// Messages by their places.
        case read
        /// The places of a page.
        case find
        case search
    }

    private(set) var times: [Operation: Histogram] = [:]
    private(set) var errors: [Operation: Int] = [:]

    mutating func answered(_ operation: Operation, after time: Duration) {
        times[operation, default: Histogram()].observe(time)
    }

    mutating func failed(_ operation: Operation) { errors[operation, default: 0] += 1 }
}

/// Progress of the store, readable after the loop has ended.
private final class StoreRecord: Sendable {
    struct State {
        var handedOver = StoreTicket(rawValue: 0)
        var settled = StoreTicket(rawValue: 0)
        var condition = StoreCondition.sound
        var measurements = StoreMeasurements()
        /// Orders under way, oldest first.
        var underWay: [(ticket: StoreTicket, at: MonotonicInstant)] = []
    }

    private let now = Locked(State())

    var state: State { now.withLock { $0 } }

    func handedOver(_ ticket: StoreTicket) {
        let at = SystemClock.monotonic()
        now.withLock { state in
            state.handedOver = max(state.handedOver, ticket)
            // The writer may have been faster.
            if ticket > state.settled { state.underWay.append((ticket, at)) }
        }
    }

    func settled(through ticket: StoreTicket, hasFailed: Bool) {
        let at = SystemClock.monotonic()
        now.withLock { state in
            state.settled = max(state.settled, ticket)
            let done = state.underWay.prefix { $0.ticket <= ticket }
            for order in done { state.measurements.answered(.write, after: at - order.at) }
            state.underWay.removeFirst(done.count)
            if hasFailed { state.measurements.failed(.write) }
        }
    }

    func answered(_ operation: StoreMeasurements.Operation, after time: Duration) {
        now.withLock { $0.measurements.answered(operation, after: time) }
    }

    func failed(_ operation: StoreMeasurements.Operation) { now.withLock { $0.measurements.failed(operation) } }

    func changed(_ condition: StoreCondition) { now.withLock { $0.condition = condition } }
}
