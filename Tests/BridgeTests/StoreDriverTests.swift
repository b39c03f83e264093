import BridgeTestSupport
import ChatModel
import Foundation
import Testing
import Transport

@testable import ChatBridge
@testable import Configuration

@Suite("A store beside the loop")
struct StoreDriverTests {
    /// A folder of its own for each test.
    final class Folder {
        let path: String

        init() throws {
            path = NSTemporaryDirectory() + "chatbridge-store-" + UUID().uuidString
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    static let identity = StoredIdentity(
        backend: "lobby", person: ChatPerson(id: ChatID("7"), name: "Remy"), nick: "remy2", realname: "Remy",
        lastSeen: ChatTimestamp(milliseconds: 1_700_000_000_000))

    static func open(_ folder: String, _ storage: StorageConfiguration = StorageConfiguration()) throws
        -> StoreDriver.Opened
    {
        try #require(try StoreDriver.open(storage, stateDirectory: folder))
    }

    /// Keeps one identity, as a bridge would, and closes.
    static func keepIdentity(_ folder: String) throws {
        let loop = try NetworkLoop.start(name: "store-test")
        let opened = try open(folder)
        opened.driver.start(on: loop)
        opened.driver.keep(StoreTicket(rawValue: 1), [.identity(identity)], on: loop)
        loop.stop()
        loop.waitUntilStopped()
        #expect(opened.driver.close() == nil)
    }

    static func message(_ body: () throws -> Void) -> String {
        do {
            try body()
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test("what was handed over before the end is there at the next start")
    func restart() throws {
        let folder = try Folder()
        #expect(try Self.open(folder.path).state == StoredState())
        try Self.keepIdentity(folder.path)
        let again = try Self.open(folder.path)
        #expect(again.state.identities == [Self.identity])
        #expect(again.movedAside == nil)
        #expect(again.driver.close() == nil)
    }

    @Test("the state's folder is made, and the file is for its owner alone")
    func folderIsMade() throws {
        let folder = try Folder()
        let opened = try Self.open(folder.path + "/new/state")
        #expect(opened.driver.path == folder.path + "/new/state/chatbridge.db")
        let attributes = try FileManager.default.attributesOfItem(atPath: opened.driver.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(opened.driver.close() == nil)
    }

    @Test("nothing is opened where nothing is to be kept")
    func memory() throws {
        let folder = try Folder()
        var storage = StorageConfiguration()
        storage.place = .memory
        #expect(try StoreDriver.open(storage, stateDirectory: folder.path) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    }

    @Test("a folder that cannot be is refused with a way out")
    func unwritable() throws {
        let folder = try Folder()
        try Data("a file".utf8).write(to: URL(fileURLWithPath: folder.path + "/file"))
        let refusal = Self.message { _ = try Self.open(folder.path + "/file/state") }
        #expect(
            refusal
                == "\(folder.path)/file/state is not writable (Not a directory). Name "
                + "another folder with --state-dir or server.state_dir, or write url = \"memory:\" in [storage].")
    }

    @Test("a folder that cannot be written is refused with both users, and with what helps", arguments: [0, 1, 2])
    func foreign(_ kind: Int) throws {
        let folder = try Folder()
        #expect(chmod(folder.path, 0o750) == 0)
        let us = geteuid()
        let (place, user, words) = [
            (
                folder.path, 65532,
                "this process runs as user 65532, and it belongs to user \(us), mode 750. Make it that user's (chown 65532 "
                    + "\(folder.path))"
            ),
            (
                folder.path, us,
                "this process runs as user \(us), and it belongs to user \(us), mode 750. Let that user write there (chmod "
                    + "u+rwx \(folder.path))"
            ),
            (
                folder.path + "/deeper", 65532,
                "it is not there, and user 65532, as whom this process runs, may not make it. Make it that user's"
            ),
        ][kind]
        #expect(
            StoreDriver.unwritable(place, EACCES, user: user).description
                == "\(place) is not writable (Permission denied): \(words), name another folder with --state-dir or "
                + "server.state_dir, or write url = \"memory:\" in [storage].")
    }

    @Test("a second one on the same file is refused, and the first goes on")
    func twice() throws {
        let folder = try Folder()
        let first = try Self.open(folder.path)
        let refusal = Self.message { _ = try Self.open(folder.path) }
        #expect(refusal.contains("in use by another process"), "\(refusal)")
        #expect(first.driver.close() == nil)
        #expect(try Self.open(folder.path).driver.close() == nil)
    }

    @Test("a file of a newer version is refused and left as it is")
    func newer() throws {
        let folder = try Folder()
        try Self.keepIdentity(folder.path)
        let url = URL(fileURLWithPath: folder.path + "/chatbridge.db")
        var bytes = try Data(contentsOf: url)
        // Source: sqlite.org/fileformat.html, §1.3: the user version, big-endian.
        bytes[bytes.startIndex + 62] = 0x7F
        try bytes.write(to: url)
        let refusal = Self.message { _ = try Self.open(folder.path) }
        #expect(refusal.contains("written by a newer one"), "\(refusal)")
        #expect(try Data(contentsOf: url) == bytes)
    }

    @Test("a damaged file is set aside, and the start says where")
    func damaged() throws {
        let folder = try Folder()
        try Self.keepIdentity(folder.path)
        let garbage = Data(repeating: 0xA5, count: 8192)
        try garbage.write(to: URL(fileURLWithPath: folder.path + "/chatbridge.db"))
        let opened = try Self.open(folder.path)
        #expect(opened.state == StoredState())
        let aside = try #require(opened.movedAside)
        #expect(try Data(contentsOf: URL(fileURLWithPath: aside)) == garbage)
        #expect(opened.driver.close() == nil)
    }

    @Test("a service of a damaged file starts and tells the log; one of a file in use does not start")
    func service() async throws {
        let folder = try Folder()
        try Data(repeating: 0xA5, count: 8192).write(to: URL(fileURLWithPath: folder.path + "/chatbridge.db"))
        let configuration = try load(
            withRoom(
                "[server]\nstate_dir = \"\(folder.path)\"\ndrain = \"0s\"\n"
                    + "[[listeners]]\nbind = \"irc://127.0.0.1:0\""))
        let told = CollectedLog()
        func start() async throws -> BridgeService {
            try await BridgeService.start(
                configuration, instanceID: "t", environment: testEnvironment(),
                log: Logger(subsystem: .main, configuration: configuration.log, sink: told), note: { _ in })
        }
        let first = try await start()
        #expect(told.text.contains("store-damaged"))
        do {
            let second = try await start()
            second.shutdown()
            await second.waitUntilStopped()
            Issue.record("two services share one file")
        } catch {
            #expect("\(error)".contains("in use by another process"))
        }
        first.shutdown()
        #expect(await first.waitUntilStopped() == nil)
    }
}
