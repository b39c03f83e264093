/// How a tool writes marks, as a row of data: the reader and the writer know no tool.
///
/// Literal text never becomes markup. By the tool there are four ways to that: a backslash, HTML's entities, zero-width
/// spaces around a mark (which then has no boundary of a word beside it), or a character that looks alike.
package struct MarkupSyntax: Sendable {
    struct Mark {
        var style: MarkedText.Style
        /// Written before and behind the words.
        var text: String
    }

    /// What one or two of a character mean around words.
    struct Emphasis {
        var one: MarkedText.Style?
        var two: MarkedText.Style?
    }

    enum LinkForm { case bare, slack, markdown(hasAngles: Bool) }
    /// What stands between `<` and `>`.
    enum AngleForm { case none, slack, discord, address }

    /// Outermost first. Styles without a row are left out.
    var marks: [Mark] = []
    var emphases: [UInt8: Emphasis] = [:]
    /// Characters that are no marks within a word.
    var wordBound: Set<Unicode.Scalar> = []
    /// Marks end with their line.
    var marksEndWithLine = false
    /// Words between `` ` ``.
    var hasCode = false
    /// Lines between ```` ``` ````.
    var hasFences = false
    /// The first line of a fenced block may be the name of a language.
    var fenceHasLanguage = true
    /// mIRC's formatting codes. Source: https://modern.ircdocs.horse/formatting
    var hasIRCCodes = false
    var linkForm = LinkForm.bare
    var angleForm = AngleForm.none
    var hasMarkdownLinks = false
    /// `&`, `<` and `>` are entities.
    var hasEntities = false
    /// Escaped by a backslash.
    var backslashed: Set<Unicode.Scalar> = []
    /// Escaped by zero-width spaces on both sides.
    var guarded: Set<Unicode.Scalar> = []
    /// Replaced by one that looks alike, where nothing escapes.
    var substitutes: [Unicode.Scalar: Unicode.Scalar] = [:]
    /// Escaped at the beginning of a line, by a backslash where there are such, else by a zero-width space before it;
    /// and so is the full stop behind a number there, where the list has one.
    var lineStart: Set<Unicode.Scalar> = []
    var lineEnd = "\n"
    /// A line behind a quoted one belongs to the quote.
    var quotesGoOn = false

    /// An `@` in front of a name is a mention.
    var mentionsNames = false

    private init() {}

    private init(_ change: (inout MarkupSyntax) -> Void) { change(&self) }

    /// Between the parts of what would be a mark.
    static let guardian: Unicode.Scalar = "\u{200B}"
    /// Mentions of all members, behind an `@`.
    static let everybody = ["here", "channel", "everyone", "all"]

    /// Letters, digits, what combines with them, and the zero-width space, which makes a boundary none.
    static func isWord(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.value < 0x80 { return scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) }
        if scalar == guardian { return true }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: return true
        default: return scalar.properties.isAlphabetic || scalar.properties.numericType != nil
        }
    }

    /// Beside these a zero-width space is the writer's.
    var guards: Set<Unicode.Scalar> {
        var set = guarded.union(["@"])
        if backslashed.isEmpty { set.formUnion(lineStart.union(["!"])) }
        if hasEntities { set.insert("&") }
        if mentionsNames { set.insert("!") }
        return set
    }
}

// MARK: - The tools

extension MarkupSyntax {
    /// Nothing is markup.
    package static let plain = MarkupSyntax()

    /// What people type on IRC and in most chats: formatting codes, `` `code` ``, fenced blocks, addresses.
    package static let irc = MarkupSyntax {
        $0.marks = [
            Mark(style: .underline, text: "\u{1F}"), Mark(style: .bold, text: "\u{02}"),
            Mark(style: .strikethrough, text: "\u{1E}"), Mark(style: .italic, text: "\u{1D}"),
            Mark(style: .code, text: "\u{11}"),
        ]
        $0.hasIRCCodes = true
        $0.hasCode = true
        $0.hasFences = true
    }

    /// Source: https://docs.slack.dev/messaging/formatting-message-text
    package static let slack = MarkupSyntax {
        $0.marks = [
            Mark(style: .bold, text: "*"), Mark(style: .strikethrough, text: "~"), Mark(style: .italic, text: "_"),
            Mark(style: .code, text: "`"),
        ]
        $0.emphases = [
            UInt8(ascii: "*"): Emphasis(one: .bold), UInt8(ascii: "_"): Emphasis(one: .italic),
            UInt8(ascii: "~"): Emphasis(one: .strikethrough),
        ]
        $0.wordBound = ["*", "_", "~"]
        $0.marksEndWithLine = true
        $0.hasCode = true
        $0.hasFences = true
        $0.fenceHasLanguage = false
        $0.linkForm = .slack
        $0.angleForm = .slack
        $0.hasEntities = true
        $0.guarded = ["*", "_", "~", "`"]
        $0.lineStart = [">"]
    }

    /// Source: https://support.discord.com/hc/en-us/articles/210298617 and
    /// https://discord.com/developers/docs/reference#message-formatting
    package static let discord = markdown {
        $0.marks.insert(Mark(style: .underline, text: "__"), at: 0)
        $0.emphases[UInt8(ascii: "_")] = Emphasis(one: .italic, two: .underline)
        $0.angleForm = .discord
        $0.backslashed = ["\\", "*", "_", "~", "`", "|", "<", "["]
    }

    /// Source: https://docs.mattermost.com/collaborate/format-messages.html
    package static let mattermost = markdown {
        $0.emphases[UInt8(ascii: "_")] = Emphasis(one: .italic, two: .bold)
        $0.backslashed = ["\\", "*", "_", "~", "`", "|", "<", "[", "&"]
        $0.quotesGoOn = true
        $0.mentionsNames = true
    }

    /// Nothing escapes its emphasis, which needs no boundary of a word either.
    ///
    /// Source: https://github.com/RocketChat/Rocket.Chat/blob/develop/packages/message-parser/src/grammar.pegjs
    package static let rocketChat = MarkupSyntax {
        $0.mentionsNames = true
        $0.marks = [
            Mark(style: .bold, text: "*"), Mark(style: .strikethrough, text: "~"), Mark(style: .italic, text: "_"),
            Mark(style: .code, text: "`"),
        ]
        $0.emphases = [
            UInt8(ascii: "*"): Emphasis(one: .bold, two: .bold),
            UInt8(ascii: "_"): Emphasis(one: .italic, two: .italic),
            UInt8(ascii: "~"): Emphasis(one: .strikethrough, two: .strikethrough),
        ]
        $0.wordBound = ["_"]
        $0.marksEndWithLine = true
        $0.hasCode = true
        $0.hasFences = true
        $0.linkForm = .markdown(hasAngles: false)
        $0.hasMarkdownLinks = true
        $0.guarded = ["]", "<", "|"]
        $0.substitutes = ["*": "\u{2217}", "_": "\u{FF3F}", "~": "\u{223C}", "`": "\u{02CB}"]
        $0.lineStart = [">", "#", "-", "."]
    }

    /// The Markdown of text in an Adaptive Card: bold, italic, lists and links; one line end is a blank.
    ///
    /// Source: https://learn.microsoft.com/en-us/adaptive-cards/authoring-cards/text-features
    package static let teamsCard = MarkupSyntax {
        $0.marks = [Mark(style: .bold, text: "**"), Mark(style: .italic, text: "_")]
        $0.emphases = [
            UInt8(ascii: "*"): Emphasis(one: .italic, two: .bold),
            UInt8(ascii: "_"): Emphasis(one: .italic, two: .bold),
        ]
        $0.wordBound = ["_"]
        $0.linkForm = .markdown(hasAngles: false)
        $0.hasMarkdownLinks = true
        $0.backslashed = ["\\", "*", "_", "["]
        $0.lineStart = ["-", "+", "#", ">", "."]
        $0.lineEnd = "\n\n"
        $0.quotesGoOn = true
    }

    /// Source: https://spec.commonmark.org/0.31.2/ and https://github.github.com/gfm/
    private static func markdown(_ change: (inout MarkupSyntax) -> Void) -> MarkupSyntax {
        var syntax = MarkupSyntax {
            $0.marks = [
                Mark(style: .bold, text: "**"), Mark(style: .strikethrough, text: "~~"),
                Mark(style: .italic, text: "*"),
                Mark(style: .code, text: "`"),
            ]
            $0.emphases = [
                UInt8(ascii: "*"): Emphasis(one: .italic, two: .bold),
                UInt8(ascii: "~"): Emphasis(two: .strikethrough),
            ]
            $0.wordBound = ["_"]
            $0.hasCode = true
            $0.hasFences = true
            $0.linkForm = .markdown(hasAngles: true)
            $0.angleForm = .address
            $0.hasMarkdownLinks = true
            $0.lineStart = [">", "#", "-", "+", "=", "."]
        }
        change(&syntax)
        return syntax
    }
}
