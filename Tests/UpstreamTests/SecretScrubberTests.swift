import Testing

@testable import Upstream

@Suite("Words without secrets")
struct SecretScrubberTests {
    struct Words: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var text: String
        var secrets: [String]
        var shown: String

        init(_ testDescription: String, _ text: String, _ secrets: [String], _ shown: String) {
            (self.testDescription, self.text, self.secrets, self.shown) = (testDescription, text, secrets, shown)
        }
    }

    @Test(
        "words are shown without secrets",
        arguments: [
            Words("none", "all is well", [], "all is well"),
            Words("a short one stays", "1234567 is wrong", ["1234567"], "1234567 is wrong"),
            Words("twice", "12345678,12345678", ["12345678"], "***,***"),
            Words("one inside another", "123456789", ["12345678", "123456789"], "***"),
            Words("with a control character inside", "1234\u{1}5678", ["12345678"], "***"),
            Words("with an accent behind", "12345678\u{301}", ["12345678"], "***\u{301}"),
            Words(
                "too long to be looked at whole", String(repeating: "x", count: 5000), ["12345678"],
                String(repeating: "x", count: 120)),
            Words(
                "cut in the middle, and most of it secret", String(repeating: "s", count: 4090) + "12345678",
                [String(repeating: "s", count: 4090), "12345678"], "******"),
            Words("cut by somebody else", "wrong: 123456789", ["1234567890"], "wrong: ***"),
            Words("only like a secret's beginning", "wrong: 1234567", ["1234567890"], "wrong: 1234567"),
        ])
    func words(_ row: Words) {
        #expect(SecretScrubber.printable(row.text, of: row.secrets) == row.shown)
    }
}
