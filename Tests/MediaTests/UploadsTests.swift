import ChatModel
import Dialects
import Testing

@testable import Media

@Suite("Uploads")
struct UploadsTests {
    @Test("the oldest uploads are evicted")
    func bounded() {
        var recent = RecentUploads()
        for number in 0...UploadRecord.capacity {
            recent.add(UploadRecord(link: "l\(number)", backend: "main", attachment: ChatAttachment(kind: .file)))
        }
        #expect(recent.file(at: "l0", backend: "main") == nil)
        #expect(recent.file(at: "l1", backend: "main") != nil && recent.file(at: "l1", backend: "other") == nil)
    }

    @Test(
        "a stored upload has the extension of its MIME type, else of its name",
        arguments: [
            ("image/jpeg", "a.png", "jpg"), ("application/octet-stream", "a.PNG", "png"),
            ("text/html", "a.html", "bin"), ("image/svg+xml", "a.svg", "bin"),
            ("application/octet-stream", "png", "bin"),
            ("application/octet-stream", "a.exe", "bin"), ("application/octet-stream", "", "bin"),
        ])
    func storedType(mime: String, name: String, ending: String) {
        let file = StoredFiles.file(uploaded: UploadedFile(name: name, mime: mime, bytes: [1]))
        #expect(file.name.hasSuffix("." + ending), "\(file.name)")
    }
}
