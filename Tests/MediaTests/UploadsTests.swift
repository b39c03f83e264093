import ChatModel
import Dialects
import Testing

@testable import Media

@Suite("Uploads")
struct UploadsTests {
    @Test("the oldest uploads are forgotten")
    func bounded() {
        var book = UploadBook()
        for number in 0...UploadRecord.capacity {
            book.add(UploadRecord(link: "l\(number)", backend: "main", attachment: ChatAttachment(kind: .file)))
        }
        #expect(book.file(at: "l0", backend: "main") == nil)
        #expect(book.file(at: "l1", backend: "main") != nil && book.file(at: "l1", backend: "other") == nil)
    }

    @Test(
        "a kept upload is of the type that is said, else of that of its name",
        arguments: [
            ("image/jpeg", "a.png", "jpg"), ("application/octet-stream", "a.PNG", "png"),
            ("text/html", "a.html", "bin"), ("image/svg+xml", "a.svg", "bin"),
            ("application/octet-stream", "png", "bin"),
            ("application/octet-stream", "a.exe", "bin"), ("application/octet-stream", "", "bin"),
        ])
    func keptType(mime: String, name: String, ending: String) {
        let file = KeptFiles.file(uploaded: UploadedFile(name: name, mime: mime, bytes: [1]))
        #expect(file.name.hasSuffix("." + ending), "\(file.name)")
    }
}
