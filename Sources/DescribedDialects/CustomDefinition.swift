import Dialects
public import JSONText
import WireBytes

/// A backend as its description says it is, ready for frames: pointers, rules and templates are compiled here, once.
///
/// Source: docs/backends/custom.md has every key.
public struct CustomDefinition: Sendable {
    public enum Frames: String, CaseIterable, Sendable {
        case text, binary
        /// Text, in which characters stand before the JSON, or alone: `42["message",{}]` and `2` of Socket.IO.
        case prefixed
    }

    enum Echo: String, CaseIterable, Sendable {
        case none
        case byID = "by-id"
        case byText = "by-text"
        case ack
        case auto
    }

    enum Files: String, CaseIterable, Sendable {
        /// Their addresses open for any client.
        case `public`
        /// They open with the account's token alone.
        case token
    }

    /// What the ids that the bridge gives its messages are.
    enum IDs: String, CaseIterable, Sendable {
        case text
        /// 15 digits.
        case number
    }

    enum Edits: String, CaseIterable, Sendable {
        /// The editor is known from the frame alone.
        case anybody
        /// Only a message's author can edit it.
        case author
    }

    /// A handshake field; the session fills in its `{room}` and `{token}`.
    public struct Header: Equatable, Sendable {
        public var name: String
        public var value: String
    }

    /// Where the socket is, with `{room}` and `{token}`; for configurations that do not say it themselves.
    public private(set) var url: String?
    /// Likewise.
    public private(set) var headers: [Header] = []
    /// Likewise; offered in this order.
    public private(set) var subprotocols: [String] = []
    /// The type of the frames that are sent.
    public private(set) var frames = Frames.text

    var identity: DialectTraits.Identity?
    var echo = Echo.auto
    var ids = IDs.text
    var edits = Edits.anybody
    var files = Files.public
    var rules = CustomRules()
    var templates: [String: CustomFrameTemplate] = [:]
    var onOpen: CustomFrameTemplate?
    var ping: CustomFrameTemplate?
    var pingInterval: Duration?
    var typingRefresh: Duration = .milliseconds(2500)
    var backoff = BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0.25)
    var replies = CustomReplies()
    var calls: CustomCalls?
    /// The names in the message template.
    var messageNames: Set<CustomPath.Name> = []

    static let keys = [
        "dialect", "comment", "url", "headers", "subprotocols", "frames", "identity", "echo", "ids", "edits",
        "files", "on_open", "ready_when", "ping", "reply", "typing", "reconnect", "login", "refresh", "history",
        "unwrap", "decode",
        "encode",
    ]

    /// Longest time in a definition, in seconds: a day.
    private static let maxSeconds = 86_400.0

    /// Compiles a definition.
    ///
    /// - Throws: everything that is wrong with it, with the path of each culprit.
    public init(_ json: JSONValue) throws(CustomDefinitionError) {
        var compiler = CustomCompiler()
        if let table = compiler.members(json, [], known: Self.keys) {
            connection(table, &compiler)
            session(table, &compiler)
            frames(table, &compiler)
            if echo == .ack { checkAck(table.path("echo"), &compiler) }
            let calls = compiler.calls(table, rules: rules)
            if !calls.isEmpty { self.calls = calls }
        }
        guard compiler.problems.isEmpty else { throw CustomDefinitionError(compiler.problems) }
    }

    /// The same with addresses of files completed by the backend's HTTP base.
    func completing(addressesBy base: String?) -> Self {
        guard let base else { return self }
        var definition = self
        definition.rules.complete(addressesBy: base)
        definition.calls?.rules.complete(addressesBy: base)
        return definition
    }

    // MARK: - Confirmations

    /// Rules for receipts that can say that the backend has a message.
    private var sentReceipts: [CustomRule] {
        rules.rules.filter { $0.kind == .receipt && $0.fields.canSay("sent", .state) }
    }

    /// Whether a receipt can confirm a message: that needs a client-chosen id.
    var hasSentReceipt: Bool { messageNames.contains(.id) && !sentReceipts.isEmpty }

    /// Whether such a receipt names the client-chosen id as `ref`, beside the backend's own.
    var hasAck: Bool { hasSentReceipt && sentReceipts.contains { $0.fields.has(.ref) } }

    private func checkAck(_ path: [String], _ compiler: inout CustomCompiler) {
        if sentReceipts.isEmpty {
            compiler.report(path, "\"ack\" needs a \"receipt\" rule that can say \"sent\", with \"ids\" and \"ref\"")
        } else if !sentReceipts.contains(where: { $0.fields.has(.ref) }) {
            compiler.report(
                path,
                "\"ack\" needs \"ref\" in the \"receipt\" rule that says \"sent\": the id that we gave the message")
        }
        if !messageNames.contains(.id) {
            compiler.report(path, "\"ack\" needs \"{{id}}\" in \"encode.message\": the ack names the message by it")
        }
    }

    // MARK: - The socket

    private mutating func connection(_ table: JSONTable, _ compiler: inout CustomCompiler) {
        if let written = table.value("dialect"), written.string != "custom" {
            compiler.report(table.path("dialect"), "must be \"custom\" here")
        }
        if let text = compiler.text("url", of: table) {
            let schemes = ["ws://", "wss://", "ws+unix://"]
            compiler.url(text, table.path("url"), schemes: schemes, places: ["room", "token", "user"])
            url = text
        }
        if let written = table.value("headers") {
            for member in compiler.members(written, table.path("headers")) ?? [] {
                let path = table.path("headers") + [member.key]
                if !ASCII.isToken(member.key) { compiler.report(path, "is not a header field's name") }
                guard let value = compiler.text(member.value, path) else { continue }
                if value.utf8.contains(where: { $0 == 0 || $0 == 0x0A || $0 == 0x0D }) {
                    compiler.report(path, "contains a line break or NUL")
                }
                compiler.places(value, path, known: ["room", "token", "user"])
                headers.append(Header(name: member.key, value: value))
            }
        }
        for (element, path) in compiler.elements("subprotocols", of: table) {
            guard let name = compiler.text(element, path) else { continue }
            if !ASCII.isToken(name) { compiler.report(path, "is not a subprotocol's name") }
            subprotocols.append(name)
        }
        frames = compiler.choice("frames", of: table) ?? .text
        if let written = table.value("reconnect") { reconnect(written, table.path("reconnect"), &compiler) }
    }

    private mutating func reconnect(_ written: JSONValue, _ path: [String], _ compiler: inout CustomCompiler) {
        guard let table = compiler.members(written, path, known: ["first", "factor", "cap", "jitter"]) else { return }
        let first = compiler.seconds("first", of: table, in: 0.1...Self.maxSeconds)
        let cap = compiler.seconds("cap", of: table, in: 0.1...Self.maxSeconds)
        let factor = compiler.number("factor", of: table, in: 1...100)
        let jitter = compiler.number("jitter", of: table, in: 0...1)
        backoff = BackoffTraits(
            first: first ?? backoff.first, factor: factor ?? backoff.factor, cap: cap ?? backoff.cap,
            jitter: jitter ?? backoff.jitter, degradedAfter: backoff.degradedAfter)
        if backoff.cap < backoff.first { compiler.report(table.path("cap"), "is shorter than \"first\"") }
    }

    // MARK: - The session

    private mutating func session(_ table: JSONTable, _ compiler: inout CustomCompiler) {
        identity = compiler.choice("identity", of: table)
        echo = compiler.choice("echo", of: table) ?? .auto
        ids = compiler.choice("ids", of: table) ?? .text
        edits = compiler.choice("edits", of: table) ?? .anybody
        files = compiler.choice("files", of: table) ?? .public
        var used: Set<CustomPath.Name> = []
        let opening = compiler.elements("on_open", of: table).map {
            compiler.frame($0.value, $0.path, CustomCommandKind.subscribe.names, &used)
        }
        if !opening.isEmpty { onOpen = .several(opening) }
        if let written = table.value("ping"),
            let inner = compiler.members(written, table.path("ping"), known: ["every", "frame"])
        {
            pingInterval = compiler.seconds("every", of: inner, in: 1...Self.maxSeconds)
            if let frame = inner.value("frame") {
                ping = compiler.frames(frame, inner.path("frame"), CustomCommandKind.ping.names, &used)
            } else {
                compiler.report(inner.path, "has no \"frame\"")
            }
        }
        if let written = table.value("reply") { compiler.replies(written, table.path("reply"), &replies) }
        if let written = table.value("typing"),
            let inner = compiler.members(written, table.path("typing"), known: ["refresh", "ttl"])
        {
            typingRefresh = compiler.seconds("refresh", of: inner, in: 0.3...Self.maxSeconds) ?? typingRefresh
            if let seconds = compiler.number("ttl", of: inner, in: 0.5...Self.maxSeconds) {
                rules.setTypingHolds(milliseconds: Int64(seconds * 1000))
            }
        }
    }

    // MARK: - Frames

    private mutating func frames(_ table: JSONTable, _ compiler: inout CustomCompiler) {
        for (element, path) in compiler.elements("unwrap", of: table) {
            guard let inner = compiler.members(element, path, known: ["ptr", "as"]) else { continue }
            guard inner.value("ptr") != nil, inner.value("as") != nil else {
                compiler.report(path, "needs \"ptr\" and \"as\"")
                continue
            }
            let kind: CustomUnwrap? = compiler.choice("as", of: inner)
            if let text = compiler.text("ptr", of: inner), let pointer = compiler.pointer(text, inner.path("ptr")),
                let kind
            {
                rules.unwrap(pointer, kind)
                replies.pointers.unwrap(pointer, kind)
            }
        }
        if let written = table.value("decode") {
            compiler.rules(written, table.path("decode"), &rules)
        } else {
            compiler.report([], "has no \"decode\"")
        }
        if let written = table.value("ready_when") {
            compiler.readiness(written, table.path("ready_when"), &rules)
        }
        if let written = table.value("encode") { encode(written, table.path("encode"), &compiler) }
        if frames != .prefixed, compiler.hasPrefix {
            compiler.report(table.path("frames"), "must be \"prefixed\" where a template has \"$prefix\"")
        }
        if onOpen != nil, templates["subscribe"] != nil {
            compiler.report(table.path("encode") + ["subscribe"], "says the same as \"on_open\"; keep one of them")
        }
        if templates["auth"] != nil,
            !rules.rules.contains(where: { $0.kind == .auth && $0.fields.canSay("ok", .state) })
        {
            compiler.report(
                table.path("encode") + ["auth"],
                "needs an \"auth\" rule in \"decode\" that can say \"ok\": the session waits for the answer to its log-in"
            )
        }
        if ping != nil, templates["ping"] != nil {
            compiler.report(table.path("encode") + ["ping"], "says the same as \"ping\"; keep one of them")
        }
    }

    private mutating func encode(_ value: JSONValue, _ path: [String], _ compiler: inout CustomCompiler) {
        let keys = CustomCommandKind.keys
        guard let table = compiler.members(value, path, known: keys) else { return }
        for member in table.members where keys.contains(member.key) {
            let word = member.key.prefix { $0 != "." }
            guard let kind = CustomCommandKind(rawValue: String(word)) else { continue }
            var used: Set<CustomPath.Name> = []
            templates[member.key] = compiler.frames(member.value, path + [member.key], kind.names, &used)
            if kind == .message { messageNames = used }
        }
    }
}

// MARK: - Replies

/// Frames that are answered by rule, besides their events.
struct CustomReplies: Sendable {
    var pointers = CustomPointerTree()
    var rules: [(match: CustomMatch, frame: CustomFrameTemplate)] = []
}

extension CustomCompiler {
    mutating func replies(_ value: JSONValue, _ path: [String], _ replies: inout CustomReplies) {
        for (index, element) in elements(value, path).enumerated() {
            guard let table = members(element, path + ["\(index)"], known: ["when", "send"]) else { continue }
            guard let condition = table.value("when"), let frame = table.value("send") else {
                report(table.path, "needs \"when\" and \"send\"")
                continue
            }
            let match = match(condition, table.path("when"), &replies.pointers)
            if match.conditions.isEmpty { report(table.path("when"), "would answer every frame") }
            var used: Set<CustomPath.Name> = []
            if let frame = frames(frame, table.path("send"), CustomTemplateNames([]), &used) {
                replies.rules.append((match, frame))
            }
        }
    }

    // MARK: - Addresses

    /// Single braces; complains of names that are not known.
    mutating func places(_ text: String, _ path: [String], known: [String]) {
        for name in CustomAddress.places(text) where !known.contains(name) {
            report(path + [name], "unknown place in braces", known: known)
        }
    }

    /// A URL with one of `schemes`; places may not stand before its path.
    mutating func url(_ text: String, _ path: [String], schemes: [String], places known: [String]) {
        places(text, path, known: known)
        guard let scheme = schemes.first(where: { text.hasPrefix($0) }) else {
            let beginnings = schemes.map { "\"\($0)\"" }.joined(separator: " or ")
            report(path, "\"\(text)\" does not begin with \(beginnings)")
            return
        }
        if text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) {
            report(path, "contains a blank or a control character")
        }
        guard scheme != "/" else { return }
        let authority = text.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if authority.isEmpty, scheme != "ws+unix://" { report(path, "\"\(text)\" names no host") }
        if authority.contains("{") { report(path, "braces may stand only behind the host and port") }
    }
}
