import BridgeTestSupport
import Glibc
import Testing
import Threads
import Transport

@testable import ChatBridge
@testable import Configuration

extension MediaStore {
    /// All of a file; nil: it is not there.
    fileprivate func read(_ name: String) -> [UInt8]? { open(name).flatMap { $0.read(0..<$0.byteCount) } }
}

@Suite("Files that are kept")
struct MediaStoreTests {
    /// A folder that is gone when the test is over.
    private final class Folder {
        let path: String

        init() throws {
            var template = Array("/tmp/chatbridge-media-XXXXXX".utf8CString)
            path = try #require(mkdtemp(&template).map { String(cString: $0) })
        }

        deinit {
            for folder in [path + "/media", path] {
                if let entries = opendir(folder) {
                    while let entry = readdir(entries) {
                        let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                        }
                        _ = unlink(folder + "/" + name)
                    }
                    closedir(entries)
                }
                rmdir(folder)
            }
        }

        var names: [String] {
            guard let entries = opendir(path + "/media") else { return [] }
            defer { closedir(entries) }
            var names: [String] = []
            while let entry = readdir(entries) {
                names.append(
                    withUnsafeBytes(of: &entry.pointee.d_name) {
                        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                    })
            }
            return names.filter { !$0.hasPrefix(".") }.sorted()
        }

        func put(_ name: String) {
            let descriptor = open(path + "/media/" + name, O_WRONLY | O_CREAT, 0o600)
            _ = write(descriptor, "x", 1)
            close(descriptor)
        }

        func mode(_ name: String) -> UInt32 {
            var status = stat()
            return stat(path + "/" + name, &status) == 0 ? status.st_mode & 0o777 : 0
        }
    }

    private static func name(_ number: Int) -> String { String(repeating: "A", count: 21) + "\(number).png" }

    /// Seconds since 1970, for stores that are to believe them.
    private final class Clock: Sendable {
        private let now = Locked(Int64(1_795_262_400))
        var read: @Sendable () -> Int64 { { self.now.withLock { $0 } * 1_000_000_000 } }
        func advance(by seconds: Int64) { now.withLock { $0 += seconds } }
    }

    private func store(
        _ folder: Folder, maxBytes: Int = 3 * 4096, retention: Duration? = .seconds(100), maxFiles: Int = 100,
        clock: Clock = Clock()
    ) -> MediaStore {
        MediaStore(
            stateDirectory: folder.path, maxBytes: maxBytes, retention: retention, maxFiles: maxFiles,
            clock: clock.read)
    }

    @Test("a file is kept for its owner, and read again")
    func isKept() throws {
        let folder = try Folder()
        let store = store(folder)
        #expect(store.read(Self.name(1)) == nil)
        #expect(store.keep(Self.name(1), [1, 2, 3]) == nil)
        #expect(store.keep(Self.name(1), [1, 2, 3]) == nil, "again is harmless")
        #expect(store.read(Self.name(1)) == [1, 2, 3])
        #expect(folder.mode("media/" + Self.name(1)) == 0o600 && folder.mode("media") == 0o700)
    }

    @Test(
        "names that are not ours lead nowhere",
        arguments: [
            "", ".", "..", "../media.key", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA.", "A.png",
            "AAAAAAAAAAAAAAAAAAAAA/.png", "AAAAAAAAAAAAAAAAAAAAAA.p/g", "AAAAAAAAAAAAAAAAAAAAAA.png.x",
            "AAAAAAAAAAAAAAAAAAAAAA.123.new",
        ])
    func names(_ name: String) throws {
        let store = store(try Folder())
        #expect(!MediaStore.isName(name))
        #expect(store.keep(name, [1]) != nil && store.read(name) == nil)
    }

    @Test("old files go, then the oldest until there is room; what is sent again is new")
    func sweeps() throws {
        let folder = try Folder()
        let clock = Clock()
        let store = store(folder, clock: clock)
        for number in 1...4 {
            #expect(store.keep(Self.name(number), [1]) == nil)
            clock.advance(by: 10)
        }
        #expect(store.read(Self.name(1)) == nil, "a byte takes a block, and four blocks are too many")
        #expect(store.keep(Self.name(2), [1]) == nil)
        clock.advance(by: 10)
        #expect(store.keep(Self.name(5), [1]) == nil)
        #expect(store.read(Self.name(2)) != nil && store.read(Self.name(3)) == nil)
        clock.advance(by: 85)
        store.sweep()
        #expect(folder.names == [Self.name(2), Self.name(5)], "4 is 105 s old")
        #expect(store.keep(Self.name(6), Array(repeating: 0, count: 3 * 4096 + 1)) != nil)
        #expect(folder.names == [Self.name(2), Self.name(5)], "nothing goes for what cannot be kept")
        #expect(store.keep(Self.name(6), Array(repeating: 0, count: 2 * 4096 + 1)) == nil)
        #expect(folder.names == [Self.name(6)])
    }

    @Test("many tiny files are few: the oldest go, whoever comes after a restart knows them all")
    func tinyFiles() throws {
        let folder = try Folder()
        let clock = Clock()
        func name(_ number: Int) -> String {
            let digits = String(number)
            return String(repeating: "B", count: 22 - digits.count) + digits + ".bin"
        }
        let first = store(folder, maxBytes: .max, retention: nil, maxFiles: 50, clock: clock)
        for number in 0..<500 {
            #expect(first.keep(name(number), [UInt8(number & 255)]) == nil)
            clock.advance(by: 1)
        }
        #expect(folder.names == (450..<500).map(name))
        #expect(first.read(name(449)) == nil && first.read(name(450)) == [UInt8(450 & 255)])
        let second = store(folder, maxBytes: 20 * 4096, retention: nil, maxFiles: 50, clock: clock)
        second.sweep()
        #expect(folder.names == (480..<500).map(name), "the times of the files are their order")
    }

    @Test("what has the same contents is kept once, under whatever type")
    func sameContents() throws {
        let folder = try Folder()
        let store = store(folder)
        let name = Self.name(1)
        let other = name.replacing(".png", with: ".mp4")
        #expect(store.keep(name, [1, 2]) == nil && store.keep(other, [1, 2]) == nil)
        #expect(folder.names == [name])
        #expect(store.read(other) == [1, 2] && store.read(name) == [1, 2])
        folder.put(other)
        let later = self.store(folder)
        later.sweep()
        #expect(folder.names.count == 1, "an earlier version kept both")
    }

    @Test("a file is read in parts, and to its end though its name goes")
    func parts() throws {
        let folder = try Folder()
        let store = store(folder)
        #expect(store.keep(Self.name(1), Array(0..<100)) == nil)
        let file = try #require(store.open(Self.name(1)))
        #expect(file.byteCount == 100 && file.read(10..<13) == [10, 11, 12])
        #expect(unlink(folder.path + "/media/" + Self.name(1)) == 0)
        #expect(file.read(98..<100) == [98, 99] && file.read(0..<0) == [])
        #expect(file.read(99..<101) == nil && file.read(-1..<1) == nil)
        #expect(store.open(Self.name(1)) == nil && store.open("../media.key") == nil)
    }

    @Test("what shrinks while it is read is not made up")
    func shrinks() throws {
        let folder = try Folder()
        let store = store(folder)
        #expect(store.keep(Self.name(1), Array(0..<100)) == nil)
        let file = try #require(store.open(Self.name(1)))
        #expect(truncate(folder.path + "/media/" + Self.name(1), 50) == 0)
        #expect(file.read(0..<50)?.count == 50 && file.read(40..<60) == nil)
    }

    @Test("what somebody else removed can be kept again")
    func removed() throws {
        let folder = try Folder()
        let store = store(folder)
        #expect(store.keep(Self.name(1), [1]) == nil)
        #expect(unlink(folder.path + "/media/" + Self.name(1)) == 0)
        #expect(store.read(Self.name(1)) == nil)
        #expect(store.keep(Self.name(1), [1]) == nil && store.read(Self.name(1)) == [1])
    }

    @Test("the key of links stays, and is the owner's alone")
    func key() throws {
        let folder = try Folder()
        guard case .stored(let key) = MediaKey.load(directory: folder.path) else {
            Issue.record("not kept")
            return
        }
        #expect(key.count == 32 && MediaKey.load(directory: folder.path) == .stored(key))
        #expect(folder.mode("media.key") == 0o600)
        let other = try Folder()
        #expect(MediaKey.load(directory: other.path).value != key)
        guard case .unsaved(let lost, _) = MediaKey.load(directory: "/proc/nowhere") else {
            Issue.record("kept nowhere")
            return
        }
        #expect(lost.count == 32)
    }
}
