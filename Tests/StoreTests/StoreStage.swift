import ChatModel
import Foundation
import Testing

@testable import Store

/// A folder of a test's own, removed with it.
final class StoreFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "chatbridge-store-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String) -> String { path + "/" + name }

    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    /// A copy of the database `name` as it is on disk now: the state after a crash.
    func crashCopy(of name: String, as copy: String) throws {
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: file(name) + suffix) {
            try FileManager.default.copyItem(atPath: file(name) + suffix, toPath: file(copy) + suffix)
        }
    }
}

/// A running store, and its reports.
final class StoreStage {
    enum Event: Equatable {
        case settled(StoreSettlement)
        case condition(StoreCondition)
    }

    static let someTime: Int64 = 1_750_000_000_000

    let folder: StoreFolder
    let store: Store
    let opening: StoreOpening
    private var events: AsyncStream<Event>.Iterator
    private let event: AsyncStream<Event>.Continuation
    private var ticket: UInt64 = 0
    private(set) var through: UInt64 = 0
    private(set) var refused: [UInt64] = []
    private(set) var reasons: [String] = []
    private(set) var conditions: [StoreCondition] = []

    /// - Parameter starts: otherwise writes are pending until ``start()``.
    init(
        _ folder: StoreFolder? = nil, name: String = "a.db", wall: Int64 = someTime, starts: Bool = true,
        _ change: (inout StoreSettings) -> Void = { _ in }
    ) throws {
        let folder = try folder ?? StoreFolder()
        self.folder = folder
        var settings = StoreSettings(path: folder.file(name))
        settings.retryPause = .milliseconds(1)
        change(&settings)
        (store, opening) = try Store.open(settings, wallClockMilliseconds: wall)
        let (stream, event) = AsyncStream<Event>.makeStream()
        events = stream.makeAsyncIterator()
        self.event = event
        if starts { start() }
    }

    deinit { store.close(within: .seconds(10)) }

    func start() {
        let event = event
        store.start(settled: { event.yield(.settled($0)) }, condition: { event.yield(.condition($0)) })
    }

    /// Submits one write; returns its number, or nil when it is not taken.
    @discardableResult
    func submit(_ operations: [StoreOperation]) -> UInt64? {
        ticket += 1
        return store.submit(StoreTicket(rawValue: ticket), operations) ? ticket : nil
    }

    /// The store's next report.
    @discardableResult
    func next() async -> Event? {
        guard let next = await events.next() else { return nil }
        switch next {
        case .settled(let settlement):
            #expect(settlement.through.rawValue >= through)
            through = settlement.through.rawValue
            refused += settlement.refused.map(\.rawValue)
            if let reason = settlement.reason { reasons.append(reason) }
        case .condition(let condition): conditions.append(condition)
        }
        return next
    }

    /// Waits until all that was handed over is settled.
    func settle() async {
        while through < ticket { await next() }
    }

    func refusal(of ticket: UInt64) async {
        while !refused.contains(ticket) { await next() }
    }

    func condition(_ wanted: StoreCondition) async {
        while conditions.last != wanted { await next() }
    }

    func submitAndSettle(_ operations: [StoreOperation]) async {
        submit(operations)
        await settle()
    }

    /// Does something on the writer's thread and waits for it.
    func onWriter(_ body: @escaping @Sendable (StoreWriter) -> Void) async {
        await withCheckedContinuation { continuation in
            store.onWriter { writer in
                body(writer)
                continuation.resume()
            }
        }
    }

    func sql(_ sql: String) async {
        await onWriter { writer in
            do { try writer.connection.execute(sql) } catch { Issue.record("\(sql): \(error)") }
        }
    }

    func removeOld() async {
        await withCheckedContinuation { continuation in
            store.onWriter { $0.removeNow { continuation.resume() } }
        }
    }

    func room(_ key: StoredRoomKey) async throws -> StoredRoom {
        try await withCheckedContinuation { continuation in
            store.loadRoom(key) { continuation.resume(returning: $0) }
        }.get()
    }

    func messages(
        _ key: StoredRoomKey, after: Int64 = -1, through: Int64 = .max, limit: Int = 1_000_000
    ) async throws -> [StoredMessage] {
        try await withCheckedContinuation { continuation in
            store.readMessages(key, after: after, through: through, limit: limit) {
                continuation.resume(returning: $0)
            }
        }.get()
    }

    func count(_ key: StoredRoomKey, after: Int64 = -1, through: Int64 = .max) async throws -> Int {
        try await withCheckedContinuation { continuation in
            store.countMessages(key, after: after, through: through) { continuation.resume(returning: $0) }
        }.get()
    }
}

/// The contents of a file, by a store that is opened for this alone.
func stored(_ folder: StoreFolder, _ name: String = "a.db", boot: String? = nil) throws -> StoredState {
    let (store, opening) = try Store.open(
        StoreSettings(path: folder.file(name), boot: boot), wallClockMilliseconds: StoreStage.someTime)
    defer { store.close(within: .seconds(10)) }
    #expect(opening.movedAside == nil)
    return try store.load(messagesPerRoom: StoredState.messagesPerRoom)
}

// MARK: - Records

extension StoredRoomKey {
    static let lobby = StoredRoomKey(backend: "b", room: "lobby")
    static let attic = StoredRoomKey(backend: "b", room: "attic")
}

extension StoredMessage {
    static func plain(_ sequence: Int64, at: Int64 = StoreStage.someTime, text: String? = nil) -> StoredMessage {
        StoredMessage(
            sequence: sequence, msgid: "m\(sequence)", sender: ChatPerson(id: ChatID("p")),
            at: ChatTimestamp(milliseconds: at), nick: "n", source: "n!u@h", text: text ?? "text \(sequence)")
    }
}

/// The answer to a question to a store.
func ask<Answer: Sendable>(
    _ question: (@escaping @Sendable (Result<Answer, StoreFailure>) -> Void) -> Void
) async throws -> Answer {
    try await withCheckedContinuation { continuation in question { continuation.resume(returning: $0) } }.get()
}

extension StoredOutboxEntry {
    static func plain(
        _ id: String, in room: StoredRoomKey = .lobby, state: State = .queued, text: String = "hello"
    ) -> StoredOutboxEntry {
        StoredOutboxEntry(
            id: ChatID(id), room: room, sender: ChatPerson(name: "a"), sentAs: text,
            acceptedAt: ChatTimestamp(milliseconds: StoreStage.someTime), author: ChatID("a"), nick: "a",
            source: "a!a@h", text: text, state: state)
    }
}
