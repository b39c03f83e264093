import BridgeTestSupport
import ChatModel
import Foundation
import Testing
import Transport

@testable import ChatBridge
@testable import Configuration
@testable import Store

/// A store as `[storage]` of a configuration makes it, and its file as another program sees it.
private final class StorageStage {
    private static let lobby = StoredRoomKey(backend: "lobby", room: "lobby")

    let driver: StoreDriver
    private let loop: NetworkLoop
    private var ticket: UInt64 = 0
    private var sequence: Int64

    /// - Parameter sequence: the place of the first message.
    init(_ folder: String, _ keys: String, from sequence: Int64 = 0, isStarted: Bool = true) throws {
        let storage = try load(withRoom("[storage]\n" + keys)).storage
        driver = try StoreDriverTests.open(folder, storage).driver
        loop = try NetworkLoop.start(name: "storage-keys")
        self.sequence = sequence
        if isStarted { start() }
    }

    func start() { driver.start(on: loop) }

    func end() {
        loop.stop()
        loop.waitUntilStopped()
        #expect(driver.close() == nil)
    }

    /// Hands over one order with messages of these ages, in hours.
    func keep(_ ages: [Int64]) {
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        let messages = ages.map { age in
            defer { sequence += 1 }
            return StoredMessage(
                sequence: sequence, msgid: "m\(sequence)", at: ChatTimestamp(milliseconds: now - age * 3_600_000),
                nick: "ada", source: "ada!a@b", text: "\(age) hours old")
        }
        ticket += 1
        driver.keep(StoreTicket(rawValue: ticket), messages.map { .message(Self.lobby, $0) }, on: loop)
    }

    /// The texts of what is kept, when everything that was handed over before is on disk.
    func kept() async throws -> [String] {
        try await withCheckedThrowingContinuation { continuation in
            driver.read(Self.lobby, after: -1, through: .max, limit: 10_000, on: loop) { outcome, _ in
                continuation.resume(with: outcome.map { $0.map(\.text) })
            }
        }
    }

    /// Each order lets the writer remove a slice of what is too old or too many.
    func removed() async throws -> [String] {
        for _ in 0..<5 {
            keep([])
            _ = try await kept()
        }
        return try await kept()
    }

    /// Messages that a second reader of the file finds.
    func seenBeside() throws -> Int64 {
        let reader = try SQLiteConnection(
            path: driver.path, isReadOnly: true, isExclusive: false, busyMilliseconds: 10_000)
        return try reader.integer("SELECT count(*) FROM messages")
    }

    /// Transactions in the write-ahead log.
    ///
    /// Source: sqlite.org/fileformat2.html, §4.1: a frame's second number is 0 but in the last frame of a transaction.
    func commitCount() throws -> Int {
        let log = try [UInt8](Data(contentsOf: URL(fileURLWithPath: driver.path + "-wal")))
        func number(_ offset: Int) -> Int { log[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
        let frame = 24 + number(8)
        return stride(from: 32, through: log.count - frame, by: frame).count { offset in
            // Frames of an earlier round of the log have other salts.
            log[offset + 8..<offset + 16] == log[16..<24] && number(offset + 4) != 0
        }
    }
}

@Suite("Keys of the storage, by what is on disk")
struct StorageKeyTests {
    @Test(
        "messages are removed at the age that is set",
        arguments: [
            ("", ["480 hours old", "30 hours old", "1 hours old"]), ("retention = \"1d\"", ["1 hours old"]),
            ("retention = \"off\"", ["1000 hours old", "480 hours old", "30 hours old", "1 hours old"]),
        ])
    func retention(_ keys: String, _ expected: [String]) async throws {
        let folder = try StoreDriverTests.Folder()
        // The first look at all rooms is behind the first order.
        let stage = try StorageStage(folder.path, keys, isStarted: false)
        stage.keep([1000, 480, 30, 1])
        stage.start()
        #expect(try await stage.removed() == expected)
        #expect(try stage.seenBeside() == Int64(expected.count))
        stage.end()
    }

    @Test(
        "of a room the newest messages stay, as many as is set",
        arguments: [("", 1300), ("max_messages_per_room = 1000", 1000)])
    func maxMessages(_ keys: String, _ expected: Int) async throws {
        let folder = try StoreDriverTests.Folder()
        let stage = try StorageStage(folder.path, keys, isStarted: false)
        stage.keep([2] + [Int64](repeating: 1, count: 1299))
        stage.start()
        let kept = try await stage.removed()
        #expect(kept.count == expected)
        #expect(kept.contains("2 hours old") == (expected == 1300))
        stage.end()
    }

    @Test(
        "orders that wait are written together, as many as is set", arguments: [("", 1), ("batch.max_messages = 2", 3)])
    func batches(_ keys: String, _ expected: Int) async throws {
        let folder = try StoreDriverTests.Folder()
        let stage = try StorageStage(folder.path, keys, isStarted: false)
        let before = try stage.commitCount()
        for _ in 0..<5 { stage.keep([1]) }
        stage.start()
        #expect(try await stage.kept().count == 5)
        #expect(try stage.commitCount() - before == expected)
        stage.end()
    }

    @Test("an order waits for others for the time that is set, or until there are enough")
    func waiting() async throws {
        let folder = try StoreDriverTests.Folder()
        let patient = try StorageStage(folder.path + "/patient", "batch = { max_wait = \"10s\", max_messages = 3 }")
        let prompt = try StorageStage(folder.path + "/prompt", "batch = { max_messages = 3 }")
        let began = ContinuousClock.now
        patient.keep([1])
        // Each is on disk before the next: time enough for the other, which has nothing else to do.
        for count in 1...20 as ClosedRange<Int64> {
            prompt.keep([1])
            _ = try await prompt.kept()
            #expect(try prompt.seenBeside() == count)
        }
        #expect(try patient.seenBeside() == 0 || .now - began > .seconds(9), "it was written at once")
        patient.keep([1])
        patient.keep([1])
        #expect(try await patient.kept().count == 3)
        #expect(try patient.seenBeside() == 3)
        // The end waits for no company.
        patient.keep([1])
        patient.end()
        prompt.end()
        let again = try StorageStage(folder.path + "/patient", "")
        #expect(try await again.kept().count == 4)
        again.end()
    }

    @Test("the database is where the url says, below the state's folder or anywhere")
    func place() async throws {
        let folder = try StoreDriverTests.Folder()
        for (index, url) in ["sqlite:below/chat.db", "sqlite:\(folder.path)/elsewhere.db"].enumerated() {
            let stage = try StorageStage(folder.path + "/state", "url = \"\(url)\"")
            stage.keep([1])
            #expect(try await stage.kept().count == 1)
            stage.end()
            let path = folder.path + ["/state/below/chat.db", "/elsewhere.db"][index]
            let reader = try SQLiteConnection(path: path, isReadOnly: true, isExclusive: false, busyMilliseconds: 0)
            #expect(try reader.integer("SELECT count(*) FROM messages") == 1)
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/state/chatbridge.db"))
        let storage = try load(withRoom("[storage]\nurl = \"memory:\"")).storage
        #expect(try StoreDriver.open(storage, stateDirectory: folder.path + "/none") == nil)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/none"))
    }
}
