import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import IRCProtocol
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Media
@testable import Rooms

@Suite("MessageRendering")
struct MessageRenderingTests {
    private func bodies(
        _ text: String, _ attachments: [ChatAttachment] = [], encrypted: Bool = false, lines: Int = 100,
        bytes: Int = 16 * 1024
    ) -> [String] {
        MessageRendering.bodies(
            text: text, attachments: attachments, isEncrypted: encrypted, budget: 400,
            limits: LimitSettings {
                $0.multilineMaxBytes = bytes
                $0.multilineMaxLines = lines
            })
    }

    struct TextRow: CustomTestStringConvertible, Sendable {
        let what: String
        let text: String
        let bodies: [String]

        var testDescription: String { what }
    }

    @Test(
        "a text becomes lines",
        arguments: [
            TextRow(what: "one line", text: "hello", bodies: ["hello"]),
            TextRow(what: "nothing", text: "", bodies: []),
            TextRow(what: "only line ends", text: "\n\r\n\r", bodies: []),
            TextRow(
                what: "every kind of line end", text: "a\nb\r\nc\rd\u{2028}e\u{85}f",
                bodies: ["a", "b", "c", "d", "e", "f"]),
            TextRow(what: "tab", text: "a\tb", bodies: ["a b"]),
            TextRow(what: "controls", text: "\u{1}ACTION x\u{1}\u{0}\u{3}4red\u{7F}\u{9B}", bodies: ["ACTION x4red"]),
            TextRow(what: "markup stays", text: "*bold* <b>", bodies: ["*bold* <b>"]),
            TextRow(what: "a leading colon and slash stay", text: ":) /quit", bodies: [":) /quit"]),
        ])
    func text(row: TextRow) { #expect(bodies(row.text) == row.bodies) }

    @Test("lines and bytes are limited, and what is left out is counted")
    func limits() {
        #expect(bodies("1\n2\n3\n4", lines: 2) == ["1", "2", "… 2 more lines"])
        #expect(bodies("1\n2\n3", lines: 2) == ["1", "2", "… 1 more line"])
        let million = bodies(String(repeating: "x\n", count: 1_000_000), lines: 10)
        #expect(million.count == 11 && million.last == "… 999990 more lines")
        let long = bodies(String(repeating: "y", count: 4 << 20), bytes: 1000)
        #expect(long.dropLast().joined().utf8.count <= 1000)
        #expect(long.last == "… 1 more line")
        #expect(bodies(String(repeating: "é\n", count: 10), bytes: 5).dropLast() == ["é", "é"])
    }

    @Test("no piece exceeds its budget or cuts a character, and joined they are the text")
    func pieces() {
        let text = String(repeating: "👩🏽‍🍳é ", count: 300)
        let pieces = bodies(text)
        #expect(pieces.joined() == text)
        #expect(pieces.allSatisfy { $0.utf8.count <= 400 })
        #expect(pieces.reduce(0) { $0 + $1.count } == text.count)
    }

    struct AttachmentRow: CustomTestStringConvertible, Sendable {
        let attachment: ChatAttachment
        let line: String

        var testDescription: String { line }
    }

    @Test(
        "an attachment is one line",
        arguments: [
            AttachmentRow(
                attachment: ChatAttachment(kind: .image, url: "https://x/c.png", name: "c.png", size: 12_345),
                line: "[image] c.png (12 KiB) https://x/c.png"),
            AttachmentRow(attachment: ChatAttachment(kind: .file), line: "[file] not available through a link"),
            AttachmentRow(
                attachment: ChatAttachment(kind: .audio, size: 5 << 20),
                line: "[audio] (5 MiB), not available through a link"),
            AttachmentRow(
                attachment: ChatAttachment(kind: .image, name: "c.png"),
                line: "[image] c.png, not available through a link"),
            AttachmentRow(
                attachment: ChatAttachment(kind: .image, url: "/api/files/7", name: "c.png", size: -1),
                line: "[image] c.png, not available through a link"),
            AttachmentRow(
                attachment: ChatAttachment(kind: .image, url: "data:image/png;base64,AAAA"),
                line: "[image] not available through a link"),
            AttachmentRow(
                attachment: ChatAttachment(kind: .image, size: 2000, inline: "AAAA"), line: "[image, 1 KiB, inline]"),
            AttachmentRow(
                attachment: ChatAttachment(kind: .document, url: "https://x/a b\r\nQUIT", name: "a\nb\u{1}"),
                line: "[document] a b, not available through a link"),
            AttachmentRow(
                attachment: ChatAttachment(kind: .video, url: "HTTPS://x/a b\u{202E}.mp4"),
                line: "[video] HTTPS://x/a%20b%E2%80%AE.mp4"),
        ])
    func attachment(row: AttachmentRow) {
        #expect(bodies("", [row.attachment]) == [row.line])
        #expect(bodies("see", [row.attachment]) == ["see", row.line])
    }

    @Test("of many attachments twenty are shown, and the others counted")
    func manyAttachments() {
        let many = Array(repeating: ChatAttachment(kind: .file, url: "https://x/"), count: 23)
        #expect(bodies("", many) == Array(repeating: "[file] https://x/", count: 20) + ["… 3 more attachments"])
    }

    @Test("a link is never cut: it begins a line of its own where it would be")
    func linksWhole() {
        let url = "https://x/" + String(repeating: "p", count: 300)
        let name = String(repeating: "n", count: 120)
        #expect(
            bodies("", [ChatAttachment(kind: .file, url: url, name: name)]) == ["[file] \(name) ", url])
        let text = "short " + url + " middle (" + url + ") end"
        #expect(bodies(text).joined() == text)
        #expect(bodies(text).filter { $0.contains(url) }.count == 2)
        let huge = "see https://x/" + String(repeating: "p", count: 1500)
        #expect(bodies(huge).joined() == huge)
    }

    @Test("an encrypted message says so unless it has a text")
    func encrypted() {
        #expect(bodies("", encrypted: true) == ["[encrypted message]"])
        #expect(bodies("hint", encrypted: true) == ["hint"])
    }

    @Test(
        "IRC formatting does not go upstream",
        arguments: [
            ("plain", "plain"),
            ("\u{2}b\u{2} \u{1D}i\u{1D} \u{1F}u\u{1F} \u{1E}s\u{1E} \u{11}m\u{11} \u{16}r\u{F}", "b i u s m r"),
            ("\u{3}4red", "red"), ("\u{3}04,12x", "x"), ("\u{3}123", "3"), ("\u{3},5x", ",5x"), ("\u{3}4,x", ",x"),
            ("\u{3}", ""), ("\u{4}FF0000,00FF00x", "x"), ("\u{4}FF00", ""), ("5\u{3}1", "5"), ("a\tb", "a\tb"),
        ])
    func formatting(row: (String, String)) { #expect(MessageText.withoutFormatting(row.0) == row.1) }

    @Test("ACTION is told from other CTCP")
    func ctcp() {
        #expect(MessageText.action("\u{1}ACTION waves\u{1}") == "waves")
        #expect(MessageText.action("\u{1}ACTION waves") == "waves")
        #expect(MessageText.action("ACTION waves") == nil)
        #expect(MessageRendering.isForeignCTCP("\u{1}VERSION\u{1}"))
        #expect(MessageRendering.isForeignCTCP("\u{1}"))
        #expect(!MessageRendering.isForeignCTCP("\u{1}ACTION x\u{1}"))
    }

    @Test("an excerpt is short, flat and cheap")
    func excerpts() {
        #expect(MessageText.excerpt("a\nb\r\nc") == "a b c")
        #expect(MessageText.excerpt(String(repeating: "x", count: 61)) == String(repeating: "x", count: 60) + "…")
        #expect(MessageText.excerpt(String(repeating: "x", count: 60)) == String(repeating: "x", count: 60))
        let heavy = "a" + String(repeating: "\u{301}", count: 1 << 20)
        #expect(MessageText.excerpt(heavy).utf8.count <= 250)
        #expect(MessageText.excerpt("") == "")
    }

    @Test("pieces of a line fit with their source, and only the first carries what makes it a message")
    func linePieces() {
        let source = String(repeating: "n", count: 30) + "!~user@" + String(repeating: "h", count: 63)
        for text in [
            String(repeating: "word ", count: 90), String(repeating: "é", count: 220),
            "\u{1}ACTION " + String(repeating: "w", count: 440) + "\u{1}",
        ] {
            let head = IRCMessage(
                tags: [IRCTag("time", "T"), IRCTag("msgid", "M"), IRCTag("+reply", "R")], source: source,
                command: "PRIVMSG", params: ["#lobby"])
            let pieces = MessageRendering.utterance(head, SpokenText(text: text)).messages(for: [.messageTags]) { "b" }
            #expect(pieces.count > 1)
            for (index, piece) in pieces.enumerated() {
                let body = piece.params[1]
                #expect(":\(source) PRIVMSG #lobby :\(body)".utf8.count <= 510)
                #expect(piece.tags.map(\.name) == (index == 0 ? ["time", "msgid", "+reply"] : ["time"]))
                #expect(body.hasPrefix("\u{1}ACTION ") == text.hasPrefix("\u{1}"))
            }
            let words = pieces.map { MessageText.action($0.params[1]) ?? $0.params[1] }.joined()
            #expect(words == MessageText.action(text) ?? text)
        }
    }
}
