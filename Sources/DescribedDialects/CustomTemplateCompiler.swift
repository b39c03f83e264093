import ChatModel
import Dialects
import JSONText

// Compiles templates from JSON.

/// The names that a template may use.
struct CustomTemplateNames {
    var known: [CustomPath.Name]
    /// The list of `item`, inside `$each` and `$per`.
    var item: CustomPath.Name?

    static let everywhere: [CustomPath.Name] = [.room, .selfID, .selfName]

    init(_ known: [CustomPath.Name]) { self.known = known + Self.everywhere }

    /// Of the body of a login.
    static var account: CustomTemplateNames {
        var names = CustomTemplateNames([])
        names.known = [.accountName, .accountPassword, .accountRefresh]
        return names
    }
}

/// The commands with templates.
enum CustomCommandKind: String, CaseIterable, Sendable {
    case message, edit, delete, typing, receipt, join, leave, presence, reaction, auth, subscribe, fetch, ping, pong

    /// Suffixes behind the kind and a dot.
    var words: [String] {
        switch self {
        case .typing: ChatTyping.State.allCases.map(\.rawValue)
        case .receipt: ChatReceipt.State.allCases.map(\.rawValue)
        case .presence: ChatPresence.State.allCases.map(\.rawValue)
        case .reaction: ChatReaction.Operation.allCases.map(\.rawValue)
        default: []
        }
    }

    var names: CustomTemplateNames {
        let sender: [CustomPath.Name] = [.sender, .senderID, .senderName]
        let user: [CustomPath.Name] = [.user, .userID, .userName]
        let known: [CustomPath.Name] =
            switch self {
            case .message: [.id, .text, .at, .replyTo, .ref, .attachments, .encrypted] + sender
            case .edit: [.id, .text, .at, .attachments] + sender
            case .delete: [.ids] + sender
            case .typing: [.state, .id, .at, .ttl] + sender
            case .receipt: [.state, .ids, .ref, .at, .by, .byID, .byName]
            case .join, .leave: [.at] + user
            case .presence: [.state] + user
            case .reaction: [.target, .emoji, .op, .at] + sender
            case .auth: [.accessToken, .refreshToken, .email, .password, .ref]
            case .subscribe: [.limit]
            case .fetch: [.limit, .ref, .before, .since]
            case .ping, .pong: [.ref]
            }
        return CustomTemplateNames(known)
    }

    /// Every key of `encode`.
    static var keys: [String] {
        allCases.flatMap { kind in [kind.rawValue] + kind.words.map { "\(kind.rawValue).\($0)" } }
    }
}

extension CustomCompiler {
    // MARK: - Frames

    mutating func frames(
        _ value: JSONValue, _ path: [String], _ names: CustomTemplateNames, _ used: inout Set<CustomPath.Name>
    ) -> CustomFrameTemplate? {
        if value["$per"] != nil {
            guard let (list, inner, body) = loop("$per", value, path, names, &used) else { return nil }
            return .per(list, frame(body, path + ["as"], inner, &used))
        }
        if value["$newest"] != nil {
            guard let (list, inner, body) = loop("$newest", value, path, names, &used) else { return nil }
            return .newest(list, frame(body, path + ["as"], inner, &used))
        }
        if value["$frames"] != nil {
            guard let table = members(value, path, known: ["$frames"]), let list = table.value("$frames") else {
                return nil
            }
            var frames: [CustomTemplate] = []
            for (index, frame) in elements(list, table.path("$frames")).enumerated() {
                frames.append(self.frame(frame, table.path("$frames") + ["\(index)"], names, &used))
            }
            if frames.isEmpty { report(table.path("$frames"), "has no frame") }
            return .several(frames)
        }
        guard value.object != nil || value.array != nil || value.string != nil else {
            report(path, "must be a frame, found \(value.kindName)")
            return nil
        }
        return .one(frame(value, path, names, &used))
    }

    /// One frame: JSON, or `{"$prefix": "42", "as": JSON}` with characters before it, or these alone.
    mutating func frame(
        _ value: JSONValue, _ path: [String], _ names: CustomTemplateNames, _ used: inout Set<CustomPath.Name>
    ) -> CustomTemplate {
        guard value["$prefix"] != nil, let table = members(value, path, known: ["$prefix", "as"]),
            let written = table.value("$prefix"), let prefix = text(written, table.path("$prefix"))
        else { return template(value, path, names, &used) }
        foundPrefix()
        let pieces = pieces(prefix, table.path("$prefix"), names, &used) ?? []
        let isPlain = pieces.allSatisfy { piece in
            guard case .text(let text) = piece else { return true }
            return !text.utf8.contains { CustomPrefix.endsPrefix($0) }
        }
        if prefix.isEmpty || !isPlain {
            report(table.path("$prefix"), "must be characters without quotes, brackets and braces")
        }
        return .prefixed(pieces, table.value("as").map { template($0, table.path("as"), names, &used) })
    }

    private mutating func loop(
        _ key: String, _ value: JSONValue, _ path: [String], _ names: CustomTemplateNames,
        _ used: inout Set<CustomPath.Name>
    ) -> (list: CustomPath, inner: CustomTemplateNames, body: JSONValue)? {
        guard let table = members(value, path, known: [key, "as"]), let written = table.value(key),
            let text = text(written, table.path(key))
        else { return nil }
        let lists = names.known.filter { $0 == .ids || $0 == .attachments }
        guard let list = lists.first(where: { $0.rawValue == text }) else {
            let there =
                lists.isEmpty ? "there is no list here" : "there is: " + lists.map(\.rawValue).joined(separator: ", ")
            report(table.path(key), "\"\(text)\" is no list; \(there)")
            return nil
        }
        guard let body = table.value("as") else {
            report(path, "has no \"as\"")
            return nil
        }
        used.insert(list)
        var inner = names
        inner.item = list
        return (CustomPath(name: list), inner, body)
    }

    // MARK: - Values

    mutating func template(
        _ value: JSONValue, _ path: [String], _ names: CustomTemplateNames, _ used: inout Set<CustomPath.Name>
    ) -> CustomTemplate {
        switch value {
        case .string(let text):
            return text.utf8.contains(UInt8(ascii: "{")) ? string(text, path, names, &used) : .literal(value.text)
        case .array(let elements):
            var templates: [CustomTemplate] = []
            for (index, element) in elements.enumerated() {
                templates.append(template(element, path + ["\(index)"], names, &used))
            }
            return Self.isLiteral(templates) ? .literal(value.text) : .array(templates)
        case .object:
            if value["$each"] != nil {
                guard let (list, inner, body) = loop("$each", value, path, names, &used) else {
                    return .literal("null")
                }
                return .each(list, template(body, path + ["as"], inner, &used))
            }
            for how in CustomUnwrap.allCases where value["$" + how.rawValue] != nil {
                let key = "$" + how.rawValue
                guard let table = members(value, path, known: [key]), let inner = table.value(key) else { break }
                return .wrapped(how, template(inner, table.path(key), names, &used))
            }
            return object(value, path, names, &used)
        default: return .literal(value.text)
        }
    }

    private static func isLiteral(_ templates: [CustomTemplate]) -> Bool {
        templates.allSatisfy { if case .literal = $0 { true } else { false } }
    }

    private mutating func object(
        _ value: JSONValue, _ path: [String], _ names: CustomTemplateNames, _ used: inout Set<CustomPath.Name>
    ) -> CustomTemplate {
        var members: [CustomTemplate.Member] = []
        var isPlain = true
        for member in self.members(value, path) ?? [] {
            var key = member.key
            if key.hasPrefix("$$") {
                key.removeFirst()
                isPlain = false
            } else if key.hasPrefix("$") {
                report(
                    path + [member.key],
                    "has no meaning here; a key that begins with a dollar sign is written with two of them",
                    known: ["$each", "$per", "$newest", "$frames", "$prefix", "$jsonstring", "$base64json"])
            }
            let isOptional = key.hasSuffix("?")
            if isOptional {
                key.removeLast()
                isPlain = false
            }
            let value = template(member.value, path + [member.key], names, &used)
            members.append(CustomTemplate.Member(key: key, isOptional: isOptional, value: value))
        }
        return isPlain && Self.isLiteral(members.map(\.value)) ? .literal(value.text) : .object(members)
    }

    // MARK: - Places

    private mutating func string(
        _ text: String, _ path: [String], _ names: CustomTemplateNames, _ used: inout Set<CustomPath.Name>
    ) -> CustomTemplate {
        guard let pieces = pieces(text, path, names, &used) else { return .literal("null") }
        if pieces.count == 1, let only = pieces.first {
            switch only {
            case .place(let place): return .place(place)
            case .text(let text): return .literal(JSONValue.string(text).text)
            }
        }
        return .text(pieces)
    }

    /// The text in pieces; nil for one that is reported.
    private mutating func pieces(
        _ text: String, _ path: [String], _ names: CustomTemplateNames, _ used: inout Set<CustomPath.Name>
    ) -> [CustomTemplate.Piece]? {
        var pieces: [CustomTemplate.Piece] = []
        let bytes = Array(text.utf8)
        var at = 0
        var plain: [UInt8] = []
        while at < bytes.count {
            guard bytes[at] == UInt8(ascii: "{"), at + 1 < bytes.count, bytes[at + 1] == UInt8(ascii: "{") else {
                plain.append(bytes[at])
                at += 1
                continue
            }
            let parts = Self.parts(bytes, from: at + 2)
            guard let end = parts.end else {
                report(path, "\"{{\" without \"}}\"")
                return nil
            }
            if !plain.isEmpty {
                pieces.append(.text(String(decoding: plain, as: UTF8.self)))
                plain = []
            }
            if let place = place(parts.texts, path, names, &used) { pieces.append(.place(place)) }
            at = end
        }
        if !plain.isEmpty { pieces.append(.text(String(decoding: plain, as: UTF8.self))) }
        return pieces
    }

    /// The parts between `{{` and `}}`, separated by bars; bars and braces inside JSON do not count.
    private static func parts(_ bytes: [UInt8], from start: Int) -> (texts: [String], end: Int?) {
        var texts: [String] = []
        var part: [UInt8] = []
        var depth = 0
        var isQuoted = false
        var at = start
        func finished() -> String { String(decoding: trimmed(part), as: UTF8.self) }
        while at < bytes.count {
            let byte = bytes[at]
            if isQuoted {
                if byte == UInt8(ascii: "\\"), at + 1 < bytes.count {
                    part.append(byte)
                    at += 1
                } else if byte == UInt8(ascii: "\"") {
                    isQuoted = false
                }
                part.append(bytes[at])
                at += 1
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isQuoted = true
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}") where depth == 0:
                if at + 1 < bytes.count, bytes[at + 1] == byte {
                    texts.append(finished())
                    return (texts, at + 2)
                }
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth = max(depth - 1, 0)
            case UInt8(ascii: "|") where depth == 0:
                texts.append(finished())
                part = []
                at += 1
                continue
            default: break
            }
            part.append(byte)
            at += 1
        }
        return (texts, nil)
    }

    private static func trimmed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var rest = bytes[...]
        while rest.first == 0x20 { rest.removeFirst() }
        while rest.last == 0x20 { rest.removeLast() }
        return rest
    }

    private mutating func place(
        _ parts: [String], _ path: [String], _ names: CustomTemplateNames, _ used: inout Set<CustomPath.Name>
    ) -> CustomPlace? {
        guard let first = parts.first, let found = self.path(first, path, names) else { return nil }
        used.insert(found.name == .item ? names.item ?? .item : found.name)
        var filters: [CustomFilter] = []
        for part in parts.dropFirst() {
            if let filter = filter(part, path, isTime: found.name.isTime) { filters.append(filter) }
        }
        return CustomPlace(path: found, filters: filters)
    }

    private mutating func path(_ text: String, _ path: [String], _ names: CustomTemplateNames) -> CustomPath? {
        if let name = CustomPath.Name(rawValue: text), names.known.contains(name) { return CustomPath(name: name) }
        let steps = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        if steps.first == "item", let item = names.item {
            if steps.count == 1 { return CustomPath(name: .item) }
            if item == .attachments, steps.count == 2, let part = CustomPath.Part(rawValue: steps[1]) {
                return CustomPath(name: .item, part: part)
            }
        }
        for list in [CustomPath.Name.ids, .attachments]
        where steps.first == list.rawValue && names.known.contains(list) && steps.count > 1 {
            guard let index = Int(steps[1]), index >= 0 else { break }
            if steps.count == 2 { return CustomPath(name: list, index: index) }
            if list == .attachments, steps.count == 3, let part = CustomPath.Part(rawValue: steps[2]) {
                return CustomPath(name: list, index: index, part: part)
            }
        }
        if Self.tokenWords.contains(text) {
            report(
                path,
                "\"{{\(text)}}\" has no value here: a frame that shows the token is \"encode.auth\", where it is called "
                    + "\"{{access_token}}\", and the room's auth is { type = \"message\", \u{2026} }")
            return nil
        }
        var known = names.known.map(\.rawValue)
        if let item = names.item {
            known += item == .attachments ? CustomPath.Part.allCases.map { "item.\($0.rawValue)" } : ["item"]
        }
        report(path + [text], "unknown value", known: known)
        return nil
    }

    /// Words for a token in templates that have none.
    private static let tokenWords: Set<String> = ["token", "access_token", "accessToken", "jwt", "auth", "auth_token"]

    private mutating func filter(_ text: String, _ path: [String], isTime: Bool) -> CustomFilter? {
        let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
        let name = String(text[..<(colon ?? text.endIndex)])
        var argument: JSONValue?
        if let colon {
            let written = String(text[text.utf8.index(after: colon)...])
            do throws(JSONError) {
                argument = try JSONValue(parsing: written)
            } catch {
                report(path, "what follows \"\(name):\" is no JSON: \(written)")
                return nil
            }
        }
        guard CustomFilter.names.contains(name) else {
            report(path + [name], "unknown filter", known: CustomFilter.names)
            return nil
        }
        if CustomFilter.timeNames.contains(name), !isTime {
            report(path, "\"\(name)\" is for times: at, before, since")
            return nil
        }
        let takesArgument = name == "default" || name == "map"
        guard takesArgument == (argument != nil) else {
            report(
                path,
                takesArgument ? "\"\(name)\" needs JSON behind a colon" : "\"\(name)\" takes nothing behind a colon")
            return nil
        }
        switch name {
        case "unix": return .unix
        case "unix_ms": return .unixMilliseconds
        case "reference": return .reference
        case "iso8601": return .iso8601
        case "iso8601_ms": return .iso8601Milliseconds
        case "int": return .int
        case "string": return .string
        case "json": return .json
        case "upper": return .upper
        case "lower": return .lower
        case "default": return argument.map { .fallback($0) }
        default:
            guard let members = argument?.object else {
                report(path, "\"map\" needs a JSON object")
                return nil
            }
            return .map(members.map { ($0.key, $0.value) })
        }
    }
}
