/// One message tag.
///
/// ``name`` is as on the wire, with vendor and the `+` of client-only tags; ``value`` is unescaped. An empty value and no
/// value mean the same and are both nil.
///
/// Source: IRCv3 message-tags, "Format".
public struct IRCTag: Hashable, Sendable {
    public var name: String
    public var value: String?

    public init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value?.isEmpty == true ? nil : value
    }

    /// Whether the tag belongs to clients: servers relay it and do not vouch for it.
    public var isClientOnly: Bool { name.utf8.first == UInt8(ascii: "+") }
}

/// One IRC line, in either direction, as owned values: the richest form, with nothing escaped and no CR LF.
///
/// ``IRCParse`` decodes it, ``IRCEncoder`` encodes it, and ``reduced(for:nick:)`` removes the parts that a client did
/// not negotiate.
///
/// Source: modern.ircdocs.horse, "Message Format"; IRCv3 message-tags.
public struct IRCMessage: Hashable, Sendable {
    public var tags: [IRCTag]
    /// `nick!user@host` or a server name, without the colon.
    public var source: String?
    /// A verb in upper case, or three digits.
    public var command: String
    /// At most 15. Only the last may contain spaces, begin with a colon or be empty.
    public var params: [String]

    public init(tags: [IRCTag] = [], source: String? = nil, command: String, params: [String] = []) {
        self.tags = tags
        self.source = source
        self.command = command
        self.params = params
    }

    /// A numeric reply. The first of `params` is the client's nick, or `*` before it has one.
    public init(tags: [IRCTag] = [], source: String?, numeric: IRCNumeric, params: [String] = []) {
        self.init(tags: tags, source: source, command: numeric.code, params: params)
    }

    /// The tag of that exact name, or nil.
    public func tag(_ name: String) -> IRCTag? {
        tags.first { $0.name == name }
    }

    /// Sets a tag, replacing one of the same name in place.
    public mutating func setTag(_ name: String, _ value: String? = nil) {
        let tag = IRCTag(name, value)
        if let index = tags.firstIndex(where: { $0.name == name }) {
            tags[index] = tag
        } else {
            tags.append(tag)
        }
    }

    public mutating func removeTag(_ name: String) { tags.removeAll { $0.name == name } }

    /// Puts another text in the place of the last parameter, where there is one.
    mutating func replaceLastParam(by text: String) {
        guard let last = params.indices.last else { return }
        params[last] = text
    }

}

// MARK: - Standard replies

extension IRCMessage {
    /// A refusal: the command was not carried out.
    ///
    /// - Parameters:
    ///   - command: the verb that is answered, or `*` for none.
    ///   - code: for software: upper case letters, digits and `_`.
    ///   - context: the subject of the refusal, in the order that the code's specification names; no spaces.
    ///   - text: for people.
    ///
    /// Source: IRCv3 standard-replies.
    public static func fail(
        _ command: String, _ code: String, _ context: String..., text: String, source: String? = nil
    ) -> IRCMessage {
        IRCMessage(source: source, command: "FAIL", params: [command, code] + context + [text])
    }

    /// A warning: the command was carried out, with a reservation. Shapes as in ``fail(_:_:_:text:source:)``.
    ///
    /// Source: IRCv3 standard-replies.
    public static func warn(
        _ command: String, _ code: String, _ context: String..., text: String, source: String? = nil
    ) -> IRCMessage {
        IRCMessage(source: source, command: "WARN", params: [command, code] + context + [text])
    }

    /// A piece of information about a command. Shapes as in ``fail(_:_:_:text:source:)``.
    ///
    /// Source: IRCv3 standard-replies.
    public static func note(
        _ command: String, _ code: String, _ context: String..., text: String, source: String? = nil
    ) -> IRCMessage {
        IRCMessage(source: source, command: "NOTE", params: [command, code] + context + [text])
    }
}
