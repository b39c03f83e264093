import ChatModel
public import Dialects
import JSONText

// The calls beside the socket that a custom dialect describes: logging in, refreshing and history.

/// `login`, `refresh` and `history` of a custom dialect.
public struct CustomCalls: DialectCalls {
    struct TokenCall: Sendable {
        var target: String
        var body: CustomTemplate
        var access: JSONPointer
        var refresh: JSONPointer?
        /// Seconds.
        var lifetime: JSONPointer?
    }

    struct HistoryCall: Sendable {
        enum Order: String, CaseIterable, Sendable {
            case oldestFirst = "oldest-first"
            case newestFirst = "newest-first"
        }

        var address: CustomAddress
        /// One slot: the array of items.
        var pointers: CustomPointerTree
        var items: Int
        var order: Order
        /// The server's page size, whatever the limit; nil: unknown.
        var page: Int?
        /// The answer to `after` begins right behind that message.
        var isExclusive = false
        /// Nil: an item looks like a frame.
        var element: CustomElement?
    }

    /// How many messages are asked for where a limit has a place and everything is wanted.
    ///
    /// Source: chat backends, "recent ring of 2000 ids": half of it, so that live frames have room beside.
    static let mostMessages = 1000

    /// So many elements, none of them readable, are of another kind than is described; fewer may be deleted messages.
    static let tellingCount = 3

    var login: TokenCall?
    var refreshing: TokenCall?
    var history: HistoryCall?
    var rules = CustomRules()

    var isEmpty: Bool { login == nil && refreshing == nil && history == nil }

    public var takesBefore: Bool {
        history?.address.names.contains { ["before", "before_ms", "before_id"].contains($0) } ?? false
    }

    public var takesAfter: Bool {
        history?.address.names.contains { ["after", "since", "since_ms"].contains($0) } ?? false
    }

    public var beginsBehind: Bool { history?.isExclusive ?? false }

    public func request(for call: BackendCall, context: DialectContext) -> BackendRequest? {
        var account = CustomTemplateScope.Account()
        switch call {
        case .logIn(let user, let password):
            account.name = user
            account.password = password
            return login.flatMap { Self.request($0, account, context) }
        case .refresh(let token):
            account.refresh = token
            return refreshing.flatMap { Self.request($0, account, context) }
        case .history(let query):
            return history.flatMap { $0.address.filled(query, page: $0.page) }.map { BackendRequest(.get, $0) }
        case .whoAmI, .rooms, .markRead, .upload: return nil
        }
    }

    private static func request(
        _ call: TokenCall, _ account: CustomTemplateScope.Account, _ context: DialectContext
    ) -> BackendRequest? {
        var writer = JSONWriter()
        let scope = CustomTemplateScope(context: context, account: account)
        do throws(CustomTemplateFailure) { try call.body.write(scope, to: &writer) } catch { return nil }
        return BackendRequest(.post, call.target, body: .json(writer.finish()), isAuthorized: false)
    }

    public func reply(to call: BackendCall, answer: BackendAnswer, context: DialectContext) -> BackendReply {
        switch call {
        case .logIn: return login.map { Self.tokens($0, answer) } ?? .unusable(.unsupported)
        case .refresh: return refreshing.map { Self.tokens($0, answer) } ?? .unusable(.unsupported)
        case .history(let query):
            return history.map { messages($0, query, answer, context) } ?? .unusable(.unsupported)
        case .whoAmI, .rooms, .markRead, .upload: return .unusable(.unsupported)
        }
    }

    private static func tokens(_ call: TokenCall, _ answer: BackendAnswer) -> BackendReply {
        guard let json = try? JSONValue(parsing: answer.body) else { return .unusable(.malformed) }
        guard let found = json[call.access] else { return .unusable(.missingField) }
        guard let access = found.string, !access.isEmpty else { return .unusable(.wrongType) }
        let refresh = call.refresh.flatMap { json[$0]?.string }.flatMap { $0.isEmpty ? nil : $0 }
        let seconds = call.lifetime.flatMap { json[$0]?.double }.flatMap { (1...1e9).contains($0) ? $0 : nil }
        return .tokens(
            BackendTokens(
                access: access, refresh: refresh, lifetimeMilliseconds: seconds.map { Int64($0 * 1000) }))
    }

    private func messages(
        _ call: HistoryCall, _ query: HistoryQuery, _ answer: BackendAnswer, _ context: DialectContext
    ) -> BackendReply {
        answer.body.withUnsafeBytes { body in
            call.pointers.withSlots { slots in
                var scratch = CustomScratch()
                do throws(JSONError) {
                    _ = try call.pointers.fill(slots, from: body, &scratch)
                } catch {
                    return .unusable(.malformed)
                }
                guard let items = slots[call.items], !items.isNull else { return .unusable(.missingField) }
                guard items.kind == .array else { return .unusable(.wrongType) }
                var messages: [ChatMessage] = []
                var count = 0
                var isReadable = false
                if let element = call.element {
                    CustomValues(frame: slots, base: rules.base).forEach(of: items.elements, element.pointers) {
                        values in
                        count += 1
                        if let message = element.fields.message(values, context) { messages.append(message) }
                    }
                    isReadable = !messages.isEmpty
                } else {
                    for item in items.elements {
                        count += 1
                        switch rules.decode(item, context) {
                        case .event(.message(let message)): messages.append(message)
                        case .several(let events):
                            for case .message(let message) in events { messages.append(message) }
                        case .event, .dropped(.unknownType, _): break
                        case .dropped: continue
                        }
                        isReadable = true
                    }
                }
                // It says nothing of what the room has, and above all not that a message is missing.
                if !isReadable, count >= Self.tellingCount { return .unusable(.missingField) }
                // Some servers answer with all rooms of the account.
                messages.removeAll { !context.isOwnRoom($0.room) }
                if call.order == .newestFirst { messages.reverse() }
                // Some servers give less than is asked for. Where that can be seen, only an empty page is the end.
                let full =
                    takesBefore && call.page == nil ? 1 : min(query.limit ?? Self.mostMessages, call.page ?? .max)
                return .messages(messages, isComplete: query.since == nil && count < full)
            }
        }
    }

    public func complaint(_ answer: BackendAnswer) -> String? { CallAnswer.usualComplaint(answer) }
}

/// The address of a history call.
struct CustomAddress: Sendable {
    /// Names that do not always have a value; with a `?` in front, the parameter is left out then.
    private static let optionalPlaces = ["since", "since_ms", "after", "before", "before_ms", "before_id"]
    static let historyPlaces = ["room", "limit"] + optionalPlaces + optionalPlaces.map { "?" + $0 }

    private let template: AddressTemplate

    init(_ text: String) { template = AddressTemplate(text) }

    static func places(_ text: String) -> [String] { AddressTemplate(text).places }

    var names: [String] { template.names }

    /// Nil when a value may not stand in an address.
    func filled(_ query: HistoryQuery, page: Int?) -> String? {
        var isValid = true
        let address = template.filled { name in
            let value: String? =
                switch name {
                case "room": query.room
                case "limit": "\(min(query.limit ?? CustomCalls.mostMessages, page ?? .max))"
                case "since": query.since.map { ISOTime.text($0, fraction: true) }
                case "since_ms": query.since.map { "\($0.milliseconds)" }
                case "after": query.after?.rawValue
                case "before": query.before.map { ISOTime.text($0, fraction: true) }
                case "before_ms": query.before.map { "\($0.milliseconds)" }
                case "before_id": query.beforeID?.rawValue
                default: nil
                }
            let encoded = value.flatMap(Self.encoded)
            if value != nil, encoded == nil { isValid = false }
            return encoded
        }
        return isValid ? address : nil
    }

    /// Percent-encoded; nil for `.`, `..` and control characters.
    static func encoded(_ value: String) -> String? {
        guard value != ".", value != "..", !value.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        return CallTarget.encoded(value)
    }
}

// MARK: - Compiling

extension CustomCompiler {
    private static let schemes = ["https://", "http://", "/"]

    mutating func calls(_ table: JSONTable, rules: CustomRules) -> CustomCalls {
        var calls = CustomCalls()
        calls.rules = rules
        if let written = table.value("login") { calls.login = tokenCall(written, table.path("login")) }
        if let written = table.value("refresh") { calls.refreshing = tokenCall(written, table.path("refresh")) }
        if let written = table.value("history") { calls.history = historyCall(written, table.path("history")) }
        return calls
    }

    private mutating func tokenCall(_ value: JSONValue, _ path: [String]) -> CustomCalls.TokenCall? {
        guard let table = members(value, path, known: ["post", "body", "token", "refresh", "expires"]) else {
            return nil
        }
        var target: String?
        if let written = table.value("post") {
            target = text(written, table.path("post"))
            if let target { url(target, table.path("post"), schemes: Self.schemes, places: []) }
        } else {
            report(path, "has no \"post\"")
        }
        var body: CustomTemplate?
        if let written = table.value("body") {
            var used: Set<CustomPath.Name> = []
            body = template(written, table.path("body"), .account, &used)
        } else {
            report(path, "has no \"body\"")
        }
        if table.value("token") == nil { report(path, "has no \"token\"") }
        let access = pointer("token", of: table)
        let refresh = pointer("refresh", of: table)
        let lifetime = pointer("expires", of: table)
        guard let target, let body, let access else { return nil }
        return CustomCalls.TokenCall(target: target, body: body, access: access, refresh: refresh, lifetime: lifetime)
    }

    private mutating func pointer(_ name: String, of table: JSONTable) -> JSONPointer? {
        text(name, of: table).flatMap { pointer($0, table.path(name)) }
    }

    private mutating func historyCall(_ value: JSONValue, _ path: [String]) -> CustomCalls.HistoryCall? {
        guard let table = members(value, path, known: ["get", "items", "order", "page", "exclusive", "fields"]) else {
            return nil
        }
        var address: CustomAddress?
        if let written = table.value("get") {
            if let text = text(written, table.path("get")) {
                url(text, table.path("get"), schemes: Self.schemes, places: CustomAddress.historyPlaces)
                address = CustomAddress(text)
            }
        } else {
            report(path, "has no \"get\"")
        }
        let order = choice("order", of: table) ?? CustomCalls.HistoryCall.Order.oldestFirst
        let page = number("page", of: table, in: 1...1000).map { Int($0) }
        var isExclusive = false
        if let written = table.value("exclusive") {
            isExclusive = written.bool ?? false
            if written.bool == nil { report(table.path("exclusive"), "must be true or false") }
            if isExclusive, let address, !address.names.contains("after") {
                report(table.path("exclusive"), "is about {after}, which \"get\" does not have")
            }
        }
        let items = table.value("items") == nil ? JSONPointer(tokens: []) : pointer("items", of: table)
        var scope = CustomPointerScope(ofFrame: CustomPointerTree(), ofElement: CustomPointerTree())
        var element: CustomElement?
        if let written = table.value("fields") {
            let fields = fields(written, table.path("fields"), allowed: CustomEventKind.message.fields, &scope)
            if !fields.has(.id), let place = address?.names.first(where: { ["after", "before_id"].contains($0) }) {
                report(table.path("fields"), "{\(place)} in \"get\" needs \"id\": it is the id of a message")
            }
            element = CustomElement(pointers: scope.ofElement ?? CustomPointerTree(), fields: fields)
        }
        guard let address, let items else { return nil }
        let slot = scope.ofFrame.slot(for: items)
        return CustomCalls.HistoryCall(
            address: address, pointers: scope.ofFrame, items: slot, order: order, page: page,
            isExclusive: isExclusive, element: element)
    }
}
