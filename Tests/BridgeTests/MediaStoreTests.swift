import Glibc
import Testing

@testable import ChatBridge

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

        func age(_ name: String, by seconds: Int) {
            let at = timespec(tv_sec: time(nil) - seconds, tv_nsec: 0)
            _ = utimensat(AT_FDCWD, path + "/media/" + name, [at, at], 0)
        }

        func mode(_ name: String) -> UInt32 {
            var status = stat()
            return stat(path + "/" + name, &status) == 0 ? status.st_mode & 0o777 : 0
        }
    }

    private static func name(_ number: Int) -> String { String(repeating: "A", count: 21) + "\(number).png" }

    private func store(_ folder: Folder, maxBytes: Int = 1000, retention: Duration? = .seconds(100)) -> MediaStore {
        MediaStore(stateDirectory: folder.path, maxBytes: maxBytes, retention: retention)
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
        let store = store(folder)
        for number in 1...4 {
            #expect(store.keep(Self.name(number), Array(repeating: 0, count: 300)) == nil)
            folder.age(Self.name(number), by: 60 - number * 10)
            if number == 4 { #expect(store.read(Self.name(1)) == nil, "1200 bytes are too many") }
        }
        #expect(store.keep(Self.name(2), []) == nil)
        #expect(store.keep(Self.name(5), Array(repeating: 0, count: 300)) == nil)
        #expect(store.read(Self.name(2)) != nil && store.read(Self.name(3)) == nil)
        folder.age(Self.name(4), by: 200)
        store.sweep()
        #expect(store.read(Self.name(4)) == nil && store.read(Self.name(5)) != nil)
        #expect(store.keep(Self.name(6), Array(repeating: 0, count: 1001)) != nil)
    }

    @Test("the key of links stays, and is the owner's alone")
    func key() throws {
        let folder = try Folder()
        guard case .kept(let key) = MediaKey.load(directory: folder.path) else {
            Issue.record("not kept")
            return
        }
        #expect(key.count == 32 && MediaKey.load(directory: folder.path) == .kept(key))
        #expect(folder.mode("media.key") == 0o600)
        let other = try Folder()
        #expect(MediaKey.load(directory: other.path).key != key)
        guard case .forgotten(let lost, _) = MediaKey.load(directory: "/proc/nowhere") else {
            Issue.record("kept nowhere")
            return
        }
        #expect(lost.count == 32)
    }
}
