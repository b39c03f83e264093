import BridgeTestSupport
import Glibc
import Mirrors
import Testing

@Suite struct MarkupReadingTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var syntax: MarkupSyntax
        var text: String
        var parts: [MarkedText.Part]

        init(_ syntax: MarkupSyntax, _ text: String, _ parts: MarkedText.Part...) {
            self.syntax = syntax
            self.text = text
            self.parts = parts
        }

        var testDescription: String { text.debugDescription }
    }

    @Test(arguments: [
        // Formatting codes, and what people type.
        Case(.irc, "a \u{02}b\u{02} c", .text("a "), .text("b", .bold), .text(" c")),
        Case(.irc, "\u{1D}\u{02}x\u{0F}y", .text("x", [.bold, .italic]), .text("y")),
        Case(.irc, "\u{03}04,12red\u{03} \u{04}FF0000hex", .text("red hex")),
        Case(.irc, "\u{03},5", .text(",5")),
        Case(
            .irc, "\u{11}m\u{11}\u{1E}s\u{1E}\u{1F}u", .text("m", .code), .text("s", .strikethrough),
            .text("u", .underline)),
        Case(.irc, "\u{02}bold\nnext", .text("bold", .bold), .text("\nnext")),
        Case(.irc, "see `code *x*` and *this*", .text("see "), .text("code *x*", .code), .text(" and *this*")),
        Case(.irc, "a\n```swift\nlet x\n```\nb", .text("a"), .block("let x"), .text("b")),
        Case(.irc, "```one```", .block("one")),
        Case(.irc, "``` unclosed", .text("``` unclosed")),
        Case(.irc, "(see https://x.org/a_(b)).", .text("(see "), .link("https://x.org/a_(b)"), .text(").")),
        Case(.irc, "HTTP://X.org, nohttp://y http://", .link("HTTP://X.org"), .text(", nohttp://y http://")),
        Case(.irc, "a\0b\u{7F}c\r\nd\re", .text("abc\nd\ne")),

        Case(
            .slack, "*b* _i_ ~s~ `c`", .text("b", .bold), .text(" "), .text("i", .italic), .text(" "),
            .text("s", .strikethrough), .text(" "), .text("c", .code)),
        Case(.slack, "*_both_* 2*3*4 snake_case_x", .text("both", [.bold, .italic]), .text(" 2*3*4 snake_case_x")),
        Case(.slack, "* a * _unclosed", .text("* a * _unclosed")),
        Case(.slack, "*not\nbold*", .text("*not\nbold*")),
        Case(.slack, "&lt;b&gt; &amp;amp; &copy;", .text("<b> &amp; &copy;")),
        Case(.slack, "<https://x.org/?a=1&amp;b=2|the *site*>", .link("https://x.org/?a=1&b=2", label: "the *site*")),
        Case(
            .slack, "<https://x.org> <https://x.org|https://x.org>", .link("https://x.org"), .text(" "),
            .link("https://x.org")),
        Case(.slack, "<mailto:a@x.org|a@x.org> <tel:123>", .text("a@x.org 123")),
        Case(.slack, "<@U1> <@U2|bob> <#C1|general> <!here> <!subteam^S1|@ops>", .text("@U1 @bob #general @here @ops")),
        Case(.slack, "<!date^1392734382^{date}|Feb 18>", .text("Feb 18")),
        Case(.slack, "< a > <> <x", .text("< a > <> <x")),
        Case(.slack, "```a &lt; b\nc```", .block("a < b\nc")),
        Case(.slack, "```js\nx```", .block("js\nx")),

        Case(
            .discord, "**b** *i* _i_ __u__ ~~s~~", .text("b", .bold), .text(" "), .text("i", .italic), .text(" "),
            .text("i", .italic), .text(" "), .text("u", .underline), .text(" "), .text("s", .strikethrough)),
        Case(.discord, "***both***", .text("both", [.bold, .italic])),
        Case(.discord, "**bold *both***", .text("bold ", .bold), .text("both", [.bold, .italic])),
        Case(.discord, "\\*no\\* \\\\ \\a", .text("*no* \\ \\a")),
        Case(.discord, "<@1> <@!2> <@&3> <#4> <:ok:5> <a:go:6> <t:7:R>", .text("@ann @2 @role #4 :ok: :go: <t:7:R>")),
        Case(.discord, "||spoiler||", .text("||spoiler||")),
        Case(
            .discord, "[label](https://x.org) <https://y.org>", .link("https://x.org", label: "label"), .text(" "),
            .link("https://y.org")),
        Case(.discord, "[no](javascript:x)", .text("[no](javascript:x)")),
        Case(.discord, "``a`b``", .text("a`b", .code)),

        Case(.mattermost, "__b__ a_b_c a*b*c", .text("b", .bold), .text(" a_b_c a"), .text("b", .italic), .text("c")),
        Case(.mattermost, "![alt](https://x.org/i.png)", .link("https://x.org/i.png", label: "alt")),
        Case(.mattermost, "[a\\]b](https://x.org/(1))", .link("https://x.org/(1)", label: "a]b")),
        Case(.mattermost, "*a\n\nb*", .text("*a\n\nb*")),

        Case(
            .rocketChat, "*b* **b** _i_ ~s~ ~~s~~", .text("b", .bold), .text(" "), .text("b", .bold), .text(" "),
            .text("i", .italic), .text(" "), .text("s", .strikethrough), .text(" "), .text("s", .strikethrough)),
    ])
    func reads(_ row: Case) {
        #expect(MarkedText(row.text, as: row.syntax, names: ["1": "ann"]).parts == row.parts)
    }

    @Test(
        arguments: [
            (
                "<p>Hi <b>there</b> &amp; <i>you</i></p>",
                [.text("Hi "), .text("there", .bold), .text(" & "), .text("you", .italic)]
            ),
            ("<p>a</p><p>b</p>", [.text("a\nb")]),
            ("a<br>b<br/>c", [.text("a\nb\nc")]),
            ("<at>Bot</at> hi", [.text("@Bot hi")]),
            ("<a href=\"https://x.org/?a=1&amp;b=2\">x</a>", [.link("https://x.org/?a=1&b=2", label: "x")]),
            ("<a href=\"javascript:x\">x</a> https://y.org", [.text("x "), .link("https://y.org")]),
            ("<pre>a\n &lt;b&gt;\n</pre>c", [.block("a\n <b>"), .text("c")]),
            ("<code>x</code></b></b><b>y", [.text("x", .code), .text("y", .bold)]),
            ("&#65;&#x42;&#99999999;&nope;&", [.text("AB&#99999999;&nope;&")]),
            ("1 < 2 <unclosed", [.text("1 < 2 <unclosed")]),
            ("<script>x</script><emoji alt=\"😀\"></emoji>", [.text("x😀")]),
        ] as [(String, [MarkedText.Part])])
    func readsHTML(_ html: String, _ parts: [MarkedText.Part]) {
        #expect(MarkedText(html: html).parts == parts)
    }

    /// Quadratic time would be minutes for each. Of the processor: a time limit also counts the waiting for other tests.
    @Test(
        arguments: [
            "*", "_", "`", "``", "` `` ", "```", "<", "[", "[a](", "\\[", "**a _b ", "&", "&lt;", "http://",
            "https://a)",
            "\u{02}",
            "\u{200B}", "<b>", "<a href=\"", "<at>", "<@", "a*\n", "*a\n", "*a* b", "\u{301}", "||", "![", "[\\[",
        ])
    func hostileTextsTakeLinearTime(_ unit: String) {
        let text = String(repeating: unit, count: (1 << 15) / unit.utf8.count)
        let began = Self.processorTime
        for syntax in Self.all {
            let read = MarkedText(text, as: syntax)
            #expect(!read.written(as: syntax, maxCharacters: 2000).contains { $0.utf16.count > 2000 })
        }
        #expect(MarkedText(html: text).plain.utf8.count <= 2 * text.utf8.count)
        #expect(Self.processorTime - began < .seconds(60))
    }

    /// Of the thread.
    private static var processorTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    static let all: [MarkupSyntax] = [.plain, .irc, .slack, .discord, .mattermost, .rocketChat, .teamsCard]
}
