import ChatModel
import Dialects
import JSONText

// From a frame to events by a list of rules, of which the first that matches counts.

/// The result of a rule.
enum CustomEventKind: String, CaseIterable, Sendable {
    case message, edit, delete, typing, receipt, join, leave, presence, reaction, system, topic, history, ready, auth,
        error
    case ping, pong
    /// The account of the connection.
    case account = "self"
    /// No event: the frame is known and irrelevant.
    case ignore

    var fields: [CustomFieldName] {
        let sender: [CustomFieldName] = [.senderID, .senderName]
        switch self {
        case .message: return [.id, .room, .text, .at, .attachments, .replyTo, .ref, .encrypted, .annotations] + sender
        case .edit: return [.id, .room, .text, .at, .attachments] + sender
        case .delete: return [.ids, .room] + sender
        case .typing: return [.state, .room, .ttl] + sender
        case .receipt: return [.state, .ids, .byID, .byName, .ref, .at, .room]
        case .join, .leave: return [.userID, .userName, .room, .at]
        case .presence: return [.userID, .userName, .state, .room]
        case .reaction: return [.target, .emoji, .op, .room, .at, .counts] + sender
        case .system: return [.text, .id, .room, .at]
        case .topic: return [.text, .room]
        case .account: return [.userID, .userName]
        case .history: return [.messages, .room, .ref]
        case .ready: return [.room, .name, .ref]
        case .auth: return [.state, .text, .refresh, .ref]
        case .error: return [.code, .text, .fatal, .ref, .retry, .retryMilliseconds, .roomState]
        case .ping, .pong: return [.ref]
        case .ignore: return []
        }
    }

    /// Of each group one must be there.
    var required: [[CustomFieldName]] {
        switch self {
        case .message: [[.text, .attachments]]
        case .edit: [[.id], [.text]]
        case .delete: [[.ids]]
        case .typing, .auth: [[.state]]
        case .receipt: [[.state], [.ids]]
        case .join, .leave, .account: [[.userID, .userName]]
        case .presence: [[.userID, .userName], [.state]]
        case .reaction: [[.target], [.emoji]]
        case .system, .topic: [[.text]]
        case .history: [[.messages]]
        case .error: [[.code, .text]]
        case .ready, .ping, .pong, .ignore: []
        }
    }

    /// The words that `state`, `op` and `room_state` allow.
    var words: [CustomFieldName: [String]] {
        switch self {
        case .typing: [.state: ChatTyping.State.allCases.map(\.rawValue)]
        case .receipt: [.state: ChatReceipt.State.allCases.map(\.rawValue)]
        case .presence: [.state: ChatPresence.State.allCases.map(\.rawValue)]
        case .auth: [.state: ChatAuth.State.allCases.map(\.rawValue)]
        case .reaction: [.op: ChatReaction.Operation.allCases.map(\.rawValue)]
        case .error: [.roomState: ChatError.RoomState.allCases.map(\.rawValue)]
        default: [:]
        }
    }
}

/// One thing that must be so at one place of the frame.
enum CustomCondition: Sendable {
    enum Kind: String, CaseIterable, Sendable { case string, number, bool, object, array, null }

    /// Any of these.
    case equals([JSONValue])
    case exists(Bool)
    case type(Kind)
    case prefix([UInt8])
    case differs([JSONValue])

    /// Values are compared, and not only asked for.
    var comparesValues: Bool {
        switch self {
        case .equals, .prefix, .differs: true
        case .exists, .type: false
        }
    }

    func holds(_ field: JSONField?) -> Bool {
        switch self {
        case .equals(let values): return field.map { field in values.contains { Self.equal(field, $0) } } ?? false
        case .exists(let wanted): return (field != nil && field?.isNull == false) == wanted
        case .type(let kind): return field.map { Self.kind($0) == kind } ?? false
        case .prefix(let bytes): return field?.string?.utf8.starts(with: bytes) ?? false
        case .differs(let values): return field.map { field in !values.contains { Self.equal(field, $0) } } ?? true
        }
    }

    private static func equal(_ field: JSONField, _ value: JSONValue) -> Bool {
        switch (field.kind, value) {
        case (.string, .string(let text)):
            var text = text
            let isSame = text.withUTF8 { wanted in
                field.withRawBytes { raw in
                    guard raw.count == wanted.count else { return false }
                    for index in 0..<raw.count where raw[index] != wanted[index] { return false }
                    return true
                }
            }
            // Written alike is the same only where nothing is escaped, and with escapes it is longer.
            let isEscaped = field.withRawBytes { raw in
                (isSame || raw.count > text.utf8.count) && raw.contains(UInt8(ascii: "\\"))
            }
            return isEscaped ? field.string?.utf8.elementsEqual(text.utf8) ?? false : isSame
        case (.true, .bool(true)), (.false, .bool(false)), (.null, .null): return true
        case (.integer, .integer(let number)): return field.int64 == number
        case (.integer, _), (.decimal, _), (.object, .object), (.array, .array): return JSONValue(field).means(value)
        default: return false
        }
    }

    private static func kind(_ field: JSONField) -> Kind {
        switch field.kind {
        case .string: .string
        case .integer, .decimal: .number
        case .true, .false: .bool
        case .object: .object
        case .array: .array
        case .null: .null
        }
    }
}

/// Conditions of which all must hold.
struct CustomMatch: Sendable {
    var conditions: [(slot: Int, condition: CustomCondition)] = []

    func holds(_ slots: CustomPointerTree.Slots) -> Bool {
        for (slot, condition) in conditions where !condition.holds(slots[slot]) { return false }
        return true
    }
}

struct CustomRule: Sendable {
    var match: CustomMatch
    var kind: CustomEventKind
    /// The array with an event for each element, and the element's own pointers.
    var each: (slot: CustomSlot, pointers: CustomPointerTree)?
    /// The elements' messages make one history.
    var makesHistory: Bool
    var fields: CustomFields
    /// `then`: later rules speak of the same frame as well.
    var isFollowed = false
}

/// The result of one rule and one frame or element.
enum CustomOutcome {
    case event(ChatEvent)
    /// `at`: the part of the rule that the frame did not fit; of fields of which one is needed, all.
    case dropped(DropReason, at: String)

    static func missing(_ fields: CustomFieldName...) -> Self {
        .dropped(.missingField, at: fields.map(\.text).joined(separator: " or "))
    }
}

struct CustomRules: Sendable {
    fileprivate(set) var pointers = CustomPointerTree()
    fileprivate(set) var rules: [CustomRule] = []
    fileprivate(set) var readyMatch: CustomMatch?
    /// How long a start of typing holds where the frame does not say it, in milliseconds.
    private var typingMilliseconds: Int64 = 3000

    /// Completes addresses of files that are paths; nil: they stay as they are.
    private(set) var base: String?

    mutating func complete(addressesBy base: String) { self.base = base }

    mutating func setTypingHolds(milliseconds: Int64) { typingMilliseconds = milliseconds }

    /// Replaces the string at `pointer` by the document inside it.
    mutating func unwrap(_ pointer: JSONPointer, _ kind: CustomUnwrap) { pointers.unwrap(pointer, kind) }

    /// `rule`: the index of the one that matched. `field`: what of it the dropped frame did not fit.
    typealias Decoded = (decoded: DecodedFrame, rule: Int?, field: String?)

    func decode(_ frame: UnsafeRawBufferPointer, _ context: DialectContext) -> Decoded {
        pointers.withSlots { slots in
            var scratch = CustomScratch()
            let isContainer: Bool
            do throws(JSONError) {
                isContainer = try pointers.fill(slots, from: frame, &scratch)
            } catch {
                return (.dropped(.malformed, typeKey: nil), nil, nil)
            }
            guard isContainer else { return (.dropped(.notObject, typeKey: nil), nil, nil) }
            return decode(slots, context)
        }
    }

    /// The same for a value inside another document.
    func decode(_ element: JSONField, _ context: DialectContext) -> DecodedFrame {
        pointers.withSlots { slots in
            var scratch = CustomScratch()
            pointers.fill(slots, from: element, &scratch)
            return decode(slots, context).decoded
        }
    }

    private func decode(_ slots: CustomPointerTree.Slots, _ context: DialectContext) -> Decoded {
        // Who we are, where the frame says it, holds for the rest of it.
        var context = context
        var events: [ChatEvent] = readyMatch?.holds(slots) == true ? [.ready(ChatReady())] : []
        var speaker: Int?
        // Reading one thing of several is enough; what else a frame may have is missing in some.
        var isUnderstood = false
        var flaw: (reason: DropReason, rule: Int, field: String)?
        for index in rules.indices where rules[index].match.holds(slots) {
            let isLast = !rules[index].isFollowed
            switch apply(rules[index], slots, context) {
            case .one(let event):
                // Without an array, as nearly always.
                if isLast, events.isEmpty, !isUnderstood { return (.event(event), speaker ?? index, nil) }
                if case .account(let person) = event { context.addSelf(person) }
                events.append(event)
                isUnderstood = true
            case .several(let more):
                events += more
                isUnderstood = true
            case .dropped(let why, let field): flaw = flaw ?? (why, index, field)
            }
            speaker = speaker ?? index
            if isLast { break }
        }
        if events.count == 1 { return (.event(events[0]), speaker, nil) }
        if isUnderstood || !events.isEmpty { return (.events(events), speaker, nil) }
        return (
            .dropped(flaw?.reason ?? .unknownType, typeKey: typeKey(slots)), flaw?.rule ?? speaker, flaw?.field
        )
    }

    /// The values in the places of the condition for a usable session.
    func readyValues(in frame: UnsafeRawBufferPointer) -> String {
        guard let match = readyMatch ?? rules.first(where: { $0.kind == .ready })?.match else { return "" }
        return pointers.withSlots { slots in
            var scratch = CustomScratch()
            guard (try? pointers.fill(slots, from: frame, &scratch)) == true else { return "no JSON" }
            var shown: Set<Int> = []
            let values = match.conditions.filter { shown.insert($0.slot).inserted }.map { slot, condition in
                "\(pointers.pointers[slot].text) \(Self.word(slots[slot], isCompared: condition.comparesValues))"
            }
            return values.joined(separator: " ")
        }
    }

    /// A value that tells frames apart is one word that the condition compares; anything else may be a secret, or what
    /// people said.
    private static func word(_ field: JSONField?, isCompared: Bool) -> String {
        guard let field, !field.isNull else { return "absent" }
        guard field.kind == .string else {
            return field.kind == .object || field.kind == .array ? "a \(field.kind)" : FrameText.typeKey(field)
        }
        let text = FrameText.typeKey(field)
        return !isCompared || text.utf8.contains { $0 <= 0x20 } ? "a text" : "\"\(text)\""
    }

    /// The value in the first rule's condition.
    private func typeKey(_ slots: CustomPointerTree.Slots) -> String? {
        guard let slot = rules.first(where: { !$0.match.conditions.isEmpty })?.match.conditions.first?.slot,
            let field = slots[slot], field.kind != .object, field.kind != .array, !field.isNull
        else { return nil }
        return FrameText.typeKey(field)
    }

    private enum Applied {
        /// Without an array, as nearly always.
        case one(ChatEvent)
        case several([ChatEvent])
        case dropped(DropReason, at: String)
    }

    private func apply(_ rule: CustomRule, _ slots: CustomPointerTree.Slots, _ context: DialectContext) -> Applied {
        if rule.kind == .ignore { return .several([]) }
        let values = CustomValues(frame: slots, base: base)
        guard let each = rule.each else {
            switch make(rule.kind, rule.fields, values, context) {
            case .event(let event): return .one(event)
            case .dropped(let reason, let field): return .dropped(reason, at: field)
            }
        }
        guard let array = values[each.slot], array.kind == .array else { return .dropped(.wrongType, at: "each") }
        var events: [ChatEvent] = []
        var messages: [ChatMessage] = []
        values.forEach(of: array.elements, each.pointers) { values in
            guard case .event(let event) = make(rule.kind, rule.fields, values, context) else { return }
            if rule.makesHistory, case .message(let message) = event {
                messages.append(message)
            } else {
                events.append(event)
            }
        }
        return rule.makesHistory ? .one(.history(ChatHistory(messages: messages))) : .several(events)
    }

    // MARK: - Events

    private func make(
        _ kind: CustomEventKind, _ fields: CustomFields, _ values: CustomValues, _ context: DialectContext
    ) -> CustomOutcome {
        switch kind {
        case .message:
            return fields.message(values, context).map { .event(.message($0)) } ?? .missing(.text, .attachments)
        case .edit: return edit(fields, values, context)
        case .delete: return delete(fields, values)
        case .reaction: return reaction(fields, values, context)
        case .typing: return typing(fields, values, context)
        case .receipt: return receipt(fields, values, context)
        case .join: return membership(fields, values, context, ChatEvent.join)
        case .leave: return membership(fields, values, context, ChatEvent.leave)
        case .presence: return presence(fields, values)
        case .system:
            guard let text = fields.text(.text, values) else { return .missing(.text) }
            let (id, room, at) = (fields.id(.id, values), fields.room(values), fields.time(.at, values))
            return .event(.system(ChatSystemNotice(text: text, id: id, room: room, at: at)))
        case .topic:
            // A room without one has null there.
            return .event(.topic(ChatTopic(text: fields.text(.text, values) ?? "", room: fields.room(values))))
        case .account:
            let person = fields.person(.userID, .userName, values)
            guard person.id != nil || person.name != nil else { return .missing(.userID, .userName) }
            return .event(.account(person))
        case .history:
            let messages = fields.messages(values, context)
            return .event(.history(ChatHistory(messages: messages, room: fields.room(values), ref: fields.ref(values))))
        case .ready:
            let name = fields.nonEmpty(.name, values)
            return .event(.ready(ChatReady(room: fields.room(values), name: name, ref: fields.ref(values))))
        case .auth: return auth(fields, values)
        case .error:
            let (code, text) = (fields.nonEmpty(.code, values), fields.nonEmpty(.text, values))
            guard code != nil || text != nil else { return .missing(.code, .text) }
            let isFatal = fields.flag(.fatal, values)
            return .event(
                .error(
                    ChatError(
                        code: code ?? "", text: text ?? "", isFatal: isFatal, ref: fields.ref(values),
                        retryAfterMilliseconds: fields.retry(values),
                        // Most codes are about no room.
                        roomState: fields.text(.roomState, values).flatMap(ChatError.RoomState.init(rawValue:)))))
        case .ping: return .event(.ping(ref: fields.ref(values)))
        case .pong: return .event(.pong(ref: fields.ref(values)))
        case .ignore: return .dropped(.unsupported, at: "event")
        }
    }

    private func edit(_ fields: CustomFields, _ values: CustomValues, _ context: DialectContext) -> CustomOutcome {
        guard let id = fields.id(.id, values) else { return .missing(.id) }
        guard let text = fields.text(.text, values) else { return .missing(.text) }
        let person = fields.sender(values)
        return .event(
            .edit(
                ChatEdit(
                    id: id, text: text, room: fields.room(values), sender: person, at: fields.time(.at, values),
                    attachments: fields.attachments(values), isSelf: context.isSelf(person))))
    }

    private func delete(_ fields: CustomFields, _ values: CustomValues) -> CustomOutcome {
        let ids = fields.ids(.ids, values)
        guard !ids.isEmpty else { return .missing(.ids) }
        return .event(.delete(ChatDelete(ids: ids, room: fields.room(values), sender: fields.sender(values))))
    }

    private func reaction(_ fields: CustomFields, _ values: CustomValues, _ context: DialectContext) -> CustomOutcome {
        guard let target = fields.id(.target, values) else { return .missing(.target) }
        guard let emoji = fields.nonEmpty(.emoji, values) else { return .missing(.emoji) }
        var operation = ChatReaction.Operation.add
        if fields.has(.op) {
            guard let text = fields.text(.op, values) else { return .missing(.op) }
            guard let word = ChatReaction.Operation(rawValue: text) else {
                return .dropped(.wrongType, at: CustomFieldName.op.text)
            }
            operation = word
        }
        let person = fields.sender(values)
        return .event(
            .reaction(
                ChatReaction(
                    target: target, emoji: emoji, operation: operation, sender: person, room: fields.room(values),
                    at: fields.time(.at, values), counts: fields.counts(values), isSelf: context.isSelf(person))))
    }

    private func typing(_ fields: CustomFields, _ values: CustomValues, _ context: DialectContext) -> CustomOutcome {
        word(.state, fields, values) { (state: ChatTyping.State) in
            let person = fields.sender(values)
            // With neither, it would be a member without a name.
            guard !fields.readsSender || person.id != nil || person.name != nil else {
                return .missing(.senderID, .senderName)
            }
            let ttl = state == .start ? fields.integer(.ttl, values) ?? typingMilliseconds : nil
            return .event(
                .typing(
                    ChatTyping(
                        state: state, sender: person, room: fields.room(values), ttlMilliseconds: ttl,
                        isSelf: context.isSelf(person))))
        }
    }

    private func receipt(_ fields: CustomFields, _ values: CustomValues, _ context: DialectContext) -> CustomOutcome {
        word(.state, fields, values) { (state: ChatReceipt.State) in
            let ids = fields.ids(.ids, values)
            guard !ids.isEmpty else { return .missing(.ids) }
            let person = fields.person(.byID, .byName, values)
            return .event(
                .receipt(
                    ChatReceipt(
                        state: state, ids: ids, by: person, ref: fields.ref(values), at: fields.time(.at, values),
                        room: fields.room(values), isSelf: context.isSelf(person))))
        }
    }

    private func membership(
        _ fields: CustomFields, _ values: CustomValues, _ context: DialectContext,
        _ event: (ChatMembership) -> ChatEvent
    ) -> CustomOutcome {
        let person = fields.person(.userID, .userName, values)
        guard person.id != nil || person.name != nil else { return .missing(.userID, .userName) }
        return .event(
            event(
                ChatMembership(
                    user: person, room: fields.room(values), at: fields.time(.at, values),
                    isSelf: context.isSelf(person))))
    }

    private func presence(_ fields: CustomFields, _ values: CustomValues) -> CustomOutcome {
        word(.state, fields, values) { (state: ChatPresence.State) in
            let person = fields.person(.userID, .userName, values)
            guard person.id != nil || person.name != nil else { return .missing(.userID, .userName) }
            return .event(.presence(ChatPresence(user: person, state: state, room: fields.room(values))))
        }
    }

    private func auth(_ fields: CustomFields, _ values: CustomValues) -> CustomOutcome {
        word(.state, fields, values) { (state: ChatAuth.State) in
            let (text, refresh) = (fields.nonEmpty(.text, values), fields.nonEmpty(.refresh, values))
            return .event(.auth(ChatAuth(state: state, text: text, refresh: refresh, ref: fields.ref(values))))
        }
    }

    private func word<Word: RawRepresentable>(
        _ name: CustomFieldName, _ fields: CustomFields, _ values: CustomValues, _ make: (Word) -> CustomOutcome
    ) -> CustomOutcome where Word.RawValue == String {
        guard let text = fields.text(name, values) else { return .missing(name) }
        guard let word = Word(rawValue: text) else { return .dropped(.wrongType, at: name.text) }
        return make(word)
    }
}

// MARK: - Compiling

extension CustomCompiler {
    private static let ruleKeys = ["when", "each", "as", "event", "fields", "then", "comment"]

    mutating func rules(_ value: JSONValue, _ path: [String], _ rules: inout CustomRules) {
        for (index, element) in elements(value, path).enumerated() {
            if let rule = rule(element, path + ["\(index)"], &rules.pointers) { rules.rules.append(rule) }
        }
    }

    private mutating func rule(
        _ value: JSONValue, _ path: [String], _ pointers: inout CustomPointerTree
    ) -> CustomRule? {
        guard let table = members(value, path, known: Self.ruleKeys) else { return nil }
        let match = table.value("when").map { self.match($0, table.path("when"), &pointers) } ?? CustomMatch()
        guard let written = table.value("event") else {
            report(path, "has no \"event\"")
            return nil
        }
        guard let name = text(written, table.path("event")) else { return nil }
        guard let kind = CustomEventKind(rawValue: name) else {
            report(table.path("event") + [name], "unknown event", known: CustomEventKind.allCases.map(\.rawValue))
            return nil
        }
        var scope = CustomPointerScope(ofFrame: pointers)
        defer { pointers = scope.ofFrame }
        var each: CustomSlot?
        if let written = table.value("each"), let text = text(written, table.path("each")) {
            each = slot(text, table.path("each"), &scope)
            scope.ofElement = CustomPointerTree()
        }
        var makesHistory = false
        if let written = table.value("as"), let text = text(written, table.path("as")) {
            makesHistory = text == "history"
            if !makesHistory {
                report(table.path("as"), "\"\(text)\" is not \"history\"")
            } else if kind != .message || table.value("each") == nil {
                report(table.path("as"), "a history is made of messages with \"each\"")
            }
        }
        var fields = CustomFields()
        if let written = table.value("fields") {
            fields = self.fields(written, table.path("fields"), allowed: kind.fields, words: kind.words, &scope)
        }
        for group in kind.required where !group.contains(where: { table.value("fields")?[$0.text] != nil }) {
            let names = group.map { "\"\($0.text)\"" }.joined(separator: " or ")
            report(table.path("fields"), "\(kind.rawValue) needs \(names)")
        }
        var isFollowed = false
        if let written = table.value("then"), let text = text(written, table.path("then")) {
            isFollowed = text == "continue"
            if !isFollowed { report(table.path("then"), "\"\(text)\" is not \"continue\"") }
        }
        return CustomRule(
            match: match, kind: kind, each: each.map { ($0, scope.ofElement ?? CustomPointerTree()) },
            makesHistory: makesHistory, fields: fields, isFollowed: isFollowed)
    }

    /// The condition for a usable session.
    mutating func readiness(_ value: JSONValue, _ path: [String], _ rules: inout CustomRules) {
        rules.readyMatch = match(value, path, &rules.pointers)
    }

    mutating func match(_ value: JSONValue, _ path: [String], _ pointers: inout CustomPointerTree) -> CustomMatch {
        var match = CustomMatch()
        for member in members(value, path) ?? [] {
            let path = path + [member.key]
            guard let pointer = pointer(member.key, path) else { continue }
            let slot = pointers.slot(for: pointer)
            for condition in conditions(member.value, path) { match.conditions.append((slot, condition)) }
        }
        return match
    }

    private mutating func conditions(_ value: JSONValue, _ path: [String]) -> [CustomCondition] {
        switch value {
        case .array(let values):
            if values.isEmpty { report(path, "an empty list matches nothing") }
            return [.equals(values)]
        case .object:
            guard let table = members(value, path, known: ["exists", "type", "prefix", "not"]) else { return [] }
            if table.members.isEmpty {
                report(path, "says nothing; a value must be a table with exists, type, prefix or not")
            }
            var conditions: [CustomCondition] = []
            for member in table.members {
                let path = path + [member.key]
                switch member.key {
                case "exists":
                    if let flag = member.value.bool {
                        conditions.append(.exists(flag))
                    } else {
                        report(path, "must be true or false")
                    }
                case "type":
                    if let kind = choice(member.value, path, of: CustomCondition.Kind.self) {
                        conditions.append(.type(kind))
                    }
                case "prefix":
                    if let text = text(member.value, path) { conditions.append(.prefix(Array(text.utf8))) }
                case "not": conditions.append(.differs(member.value.array ?? [member.value]))
                default: break
                }
            }
            return conditions
        default: return [.equals([value])]
        }
    }
}
