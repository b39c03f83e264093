import ChatModel
import Testing

@testable import Rooms

@Suite("Links to pictures")
struct ImageLinkTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String { text }
        let text: String
        let name: String?

        init(_ text: String, _ name: String? = nil) { (self.text, self.name) = (text, name) }
    }

    @Test(
        "a message that is only a link to a picture is one; everything else is words",
        arguments: [
            Row("https://a.example/cat.png", "cat.png"), Row("http://a.example/b/c/Cat%20two.JPEG", "Cat%20two.JPEG"),
            Row("https://a.example/cat.webp?width=9#x", "cat.webp"), Row("https://a.example/.png"),
            Row("https://a.example/cat.png look"), Row("see https://a.example/cat.png"), Row("ftp://a.example/cat.png"),
            Row("https://a.example"), Row("https://cat.png"), Row("https:///cat.png"), Row("https://a.example/cat"),
            Row("https://a.example/cat.svg"), Row("https://a.example/x?file=cat.png"), Row(""), Row("https://"),
            Row("https://a.example/\u{1}cat.png"),
        ])
    func links(row: Row) {
        let attachment = ImageLink.attachment(in: row.text)
        #expect(attachment?.name == row.name)
        #expect(attachment?.url == row.name.map { _ in row.text })
    }
}
