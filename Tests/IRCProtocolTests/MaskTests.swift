import IRCProtocol
import Testing

@Suite("IRC masks and help")
struct MaskTests {
    @Test(
        "a pattern fits what it says",
        arguments: [
            ("*", "", true), ("*", "anything", true), ("", "", true), ("", "a", false), ("bob", "Bob", true),
            ("bob", "bobby", false), ("bo?", "bob", true), ("bo?", "bo", false), ("*b", "bob", true),
            ("b*b", "bb", true), ("b*b", "b", false), ("*!*@chat.example", "Remy!chat@chat.example", true),
            ("*!*@chat.example", "Remy!chat@chat.example.org", false), ("a**b***c", "aXbYc", true),
            ("*a*b*c*", "xxaxxbxxc", true), ("*a*b*c*", "xxaxxcxxb", false), ("é?", "éa", true),
            ("*ab", "aab", true), ("?*?", "a", false), ("?*?", "ab", true),
        ] as [(String, String, Bool)])
    func matches(_ pattern: String, _ name: String, _ isMatch: Bool) {
        #expect(IRCMask(pattern).matches(name) == isMatch)
    }

    @Test("a pattern that invites to try everything is done at once")
    func isFast() {
        let mask = IRCMask(String(repeating: "*a", count: 150) + "*b")
        #expect(!mask.matches(String(repeating: "a", count: 500)))
    }

    @Test("masks are the same when the same names fit")
    func equality() {
        #expect(IRCMask("BOB!*@*") == IRCMask("bob!**@*"))
        #expect(IRCMask("bob") != IRCMask("bo?"))
        #expect(IRCMask("a[", casemapping: .rfc1459).matches("A{"))
        #expect(!IRCMask("a[").matches("a{"))
        #expect(IRCMask("bo?").isPattern && IRCMask("*").isPattern && !IRCMask("bob").isPattern)
    }

    @Test(
        "a ban has all three parts",
        arguments: [
            ("bob", "bob!*@*"), ("bob!x", "bob!x@*"), ("x@host", "*!x@host"), ("b!x@host", "b!x@host"),
            ("*", "*!*@*"),
        ])
    func hostmasks(_ given: String, _ full: String) { #expect(IRCMask.hostmask(given) == full) }
}
