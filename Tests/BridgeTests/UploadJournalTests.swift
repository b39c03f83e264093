import BridgeCore
import BridgeTestSupport
import ChatModel
import Glibc
import IRCServer
import Media
import Testing

@testable import ChatBridge
@testable import Configuration

@Suite("Uploads that are remembered")
struct UploadJournalTests {
    /// A folder that is gone when the test is over.
    private final class Folder {
        let path: String
        var file: String { path + "/" + UploadJournal.fileName }

        init() throws {
            var template = Array("/tmp/chatbridge-uploads-XXXXXX".utf8CString)
            path = try #require(mkdtemp(&template).map { String(cString: $0) })
        }

        deinit {
            _ = unlink(file)
            rmdir(path)
        }

        func append(_ text: String) {
            let descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            _ = write(descriptor, text, text.utf8.count)
            close(descriptor)
        }
    }

    private static func record(_ number: Int) -> UploadRecord {
        UploadRecord(
            link: "https://chat.example/f/\(number)", backend: "main",
            attachment: ChatAttachment(kind: .image, url: "/f/\(number)", name: "c\"a\nt \(number).png"))
    }

    @Test(
        "everything of a file is read again",
        arguments: [
            ChatAttachment(kind: .file),
            ChatAttachment(
                kind: .video, url: "/f/1", name: "é\u{2028}.mp4", size: 5_000_000_000, mime: "video/mp4",
                thumbnail: "/t/1", width: 1920, height: 1080, duration: 12.5, fileID: "5b1c"),
        ])
    func contents(_ file: ChatAttachment) {
        let record = UploadRecord(link: "l", backend: "main", attachment: file)
        let line = UploadJournal.line(record)
        #expect(line.dropFirst().dropLast().contains(0x0A) == false)
        #expect(UploadJournal.record(Array(line.dropFirst())) == record)
    }

    @Test("what was uploaded is known to the next process, for its owner alone")
    func survives() throws {
        let folder = try Folder()
        let first = UploadJournal(stateDirectory: folder.path)
        #expect(first.load().isEmpty)
        for number in 1...3 { #expect(first.append(Self.record(number)) == nil) }
        #expect(UploadJournal(stateDirectory: folder.path).load() == (1...3).map(Self.record))
        var status = stat()
        #expect(stat(folder.file, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }

    @Test("a line that is not whole costs nothing but itself")
    func torn() throws {
        let folder = try Folder()
        let journal = UploadJournal(stateDirectory: folder.path)
        #expect(journal.append(Self.record(1)) == nil)
        folder.append(#"{"link":"https://chat.exam"#)
        #expect(journal.append(Self.record(2)) == nil)
        folder.append("nonsense\n[]\n{}\n\n")
        #expect(UploadJournal(stateDirectory: folder.path).load() == [Self.record(1), Self.record(2)])
    }

    @Test("only the newest count, and the file does not grow")
    func bounded() throws {
        let folder = try Folder()
        let journal = UploadJournal(stateDirectory: folder.path, capacity: 10)
        var largest: Int64 = 0
        for number in 1...100 {
            #expect(journal.append(Self.record(number)) == nil)
            var status = stat()
            #expect(stat(folder.file, &status) == 0)
            largest = max(largest, Int64(status.st_size))
        }
        #expect(largest <= 20 * Int64(UploadJournal.line(Self.record(100)).count))
        #expect(UploadJournal(stateDirectory: folder.path, capacity: 10).load() == (91...100).map(Self.record))
    }

    @Test("a folder that cannot be written is told")
    func unwritable() {
        #expect(UploadJournal(stateDirectory: "/proc/nowhere").append(Self.record(1)) != nil)
    }
}
