import BridgeTypes
import HTTPProtocol
import JSONText

// What the forms have in common on the way out: the words of a post, and the name over them.

extension MirrorWording {
    /// The longest name that Discord takes; the others take no shorter one.
    private static let maxNameCharacters = 80

    /// The name over a post; nil: none.
    func name(over post: MirrorPost) -> String? {
        var name = filled(username, of: post) { $0 }
        name.unicodeScalars.removeAll { $0.value < 0x20 || $0.value == 0x7F }
        while name.utf16.count > Self.maxNameCharacters { name.removeLast() }
        return name.isEmpty ? nil : name
    }

    /// The speaker cannot be told from the name over a post.
    var hidesNick: Bool { !username.contains("{nick}") }

    func avatar(of post: MirrorPost) -> String? {
        guard !avatarURL.isEmpty else { return nil }
        return filled(avatarURL, of: post) { HTTPURL.percentEncoded($0) }
    }

    private func filled(_ template: String, of post: MirrorPost, _ encode: (String) -> String) -> String {
        template.replacing("{room}", with: encode(post.room)).replacing("{channel}", with: encode(post.channel))
            .replacing("{nick}", with: encode(post.speaker.nick))
    }
}

/// How the words of posts stand in a tool.
struct PostWording {
    var syntax: MarkupSyntax
    /// Of a message, with the mark of its origin.
    var maxCharacters: Int
    /// The tool shows names of ours over messages; else they begin the words.
    var showsNames: Bool
    /// Answers begin with a quote.
    var quotes: Bool
    /// An edit is a message of its own, and says so.
    var marksEdits = true

    /// The texts of the messages that a post becomes, each with the mark of its origin; none where the tool has no form
    /// for it, or nothing is to be said.
    func texts(of post: MirrorPost, _ wording: MirrorWording) -> [String] {
        guard let words = words(of: post) else { return [] }
        let mark = post.origin.mark
        var writer = MarkupWriter(
            syntax, defusesMentions: wording.defusesMentions, maxCharacters: maxCharacters - mark.utf16.count)
        if quotes, post.replyTo != nil, let target = post.target {
            let excerpt = String(target.excerpt.map { $0.isNewline ? " " : $0 })
            writer.quote(MarkedText([.text(target.nick, .bold), .text(": \(excerpt)")]))
        }
        writer.write(MarkedText(name(over: post, wording) + words.parts + links(post)))
        return writer.finish().map { $0 + mark }
    }

    /// The texts of several posts, short ones together in one, each with the posts that are in it.
    func texts(
        of posts: [MirrorPost], _ wording: MirrorWording, separator: String
    ) -> [(text: String, posts: Range<Int>)] {
        var whole: [(text: String, posts: Range<Int>)] = []
        for (index, post) in posts.enumerated() {
            let texts = texts(of: post, wording)
            for text in texts {
                if texts.count == 1, let last = whole.last,
                    last.text.utf16.count + separator.utf16.count + text.utf16.count <= maxCharacters
                {
                    whole[whole.count - 1] = (last.text + separator + text, last.posts.lowerBound..<(index + 1))
                } else {
                    whole.append((text, index..<(index + 1)))
                }
            }
        }
        return whole
    }

    private func words(of post: MirrorPost) -> MarkedText? {
        switch post.content {
        case .message(let text): text.isBlank && post.files.isEmpty ? nil : text
        case .edit(let text, of: _):
            marksEdits ? MarkedText([.text("(edited)", .italic), .text(" ")] + text.parts) : text
        case .action(let text): text.adding(.italic)
        case .topic(let topic):
            MarkedText([.text("changed the topic to: ", .italic)] + MarkedText(topic, as: .irc).parts)
        case .notice(let notice): MarkedText(notice, as: .irc).adding(.italic)
        case .takenBack, .reaction: nil
        }
    }

    private func name(over post: MirrorPost, _ wording: MirrorWording) -> [MarkedText.Part] {
        let isHidden = showsNames ? wording.hidesNick : true
        guard isHidden else { return [] }
        let name = showsNames ? post.speaker.nick : wording.name(over: post) ?? post.speaker.nick
        switch post.content {
        case .notice, .takenBack, .reaction: return []
        case .action, .topic: return [.text(name, .bold), .text(" ")]
        case .message, .edit: return [.text(name, .bold), .text(": ")]
        }
    }

    /// The files, each on a line of its own.
    private func links(_ post: MirrorPost) -> [MarkedText.Part] {
        var isFirst = post.content.isWithoutWords
        return post.files.flatMap { file -> [MarkedText.Part] in
            defer { isFirst = false }
            let link = MarkedText.Part.link(file.url, label: file.name)
            return isFirst ? [link] : [.text("\n"), link]
        }
    }
}

extension MirrorPost.Content {
    fileprivate var isWithoutWords: Bool {
        if case .message(let text) = self { text.isBlank } else { false }
    }
}

extension JSONValue {
    /// An object of those members that are there.
    static func members(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        .object(members.compactMap { key, value in value.map { Member(key, $0) } })
    }
}

extension MirrorRequest {
    /// A request with a JSON document.
    init(
        json body: JSONValue, method: String = "POST", pathSuffix: String = "", query: String = "", posts: Range<Int>
    ) {
        self.init(
            method: method, pathSuffix: pathSuffix, query: query,
            headers: [HTTPHeaders.Field(name: "Content-Type", value: "application/json")], body: body.bytes,
            posts: posts)
    }
}

extension MirrorForm {
    /// The requests of each post for itself.
    func requests(of posts: [MirrorPost], _ make: (MirrorPost, Range<Int>) -> [MirrorRequest]) -> [MirrorRequest] {
        posts.enumerated().flatMap { make($1, $0..<($0 + 1)) }
    }
}
