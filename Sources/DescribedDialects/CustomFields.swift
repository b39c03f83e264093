import ChatModel
import Dialects
import JSONText
import WireBytes

// One field of an event: where its value is and how it is read.

/// The fields that a rule can fill in.
enum CustomFieldName: Int, CaseIterable, Sendable {
    case id, room, senderID, senderName, byID, byName, userID, userName, text, at, attachments, replyTo, ref
    case encrypted, annotations, ids, state, ttl, target, emoji, op, counts, messages, name, refresh, code, fatal, retry
    case retryMilliseconds, roomState
    // Of an attachment.
    case url, size, mime, thumb, width, height, duration, type, fileId
    // Of a count.
    case count, users

    var text: String {
        switch self {
        case .senderID: "sender.id"
        case .senderName: "sender.name"
        case .byID: "by.id"
        case .byName: "by.name"
        case .userID: "user.id"
        case .userName: "user.name"
        case .retryMilliseconds: "retry_ms"
        case .roomState: "room_state"
        default: "\(self)"
        }
    }

    static let attachmentFields: [Self] = [
        .url, .name, .size, .mime, .thumb, .width, .height, .duration, .type, .fileId,
    ]
    static let countFields: [Self] = [.emoji, .count, .users]

    /// The default of `as`.
    fileprivate var usualReading: CustomReading {
        switch self {
        case .id, .room, .ref, .target, .replyTo, .senderID, .byID, .userID, .fileId, .ids: .id
        case .at: .time
        case .size, .ttl, .width, .height, .count: .int
        case .encrypted, .fatal: .bool
        default: .string
        }
    }

    fileprivate var listFields: [Self]? {
        switch self {
        case .attachments: Self.attachmentFields
        case .counts: Self.countFields
        case .messages: CustomEventKind.message.fields
        default: nil
        }
    }

    fileprivate var isListOfText: Bool { self == .ids || self == .users }
}

/// `as` of a field.
enum CustomReading: String, CaseIterable, Sendable {
    case any, string, id, int, bool, time
    case timeUnix = "time:unix"
    case timeUnixMilliseconds = "time:unix_ms"
    case timeReference = "time:reference"
    case timeISO8601 = "time:iso8601"
}

enum CustomField: Sendable {
    case pointer(CustomSlot, CustomReading)
    /// The first that is there.
    case first([CustomField])
    indirect case constant(JSONValue)
    indirect case looked(CustomSlot, CustomReading, CustomLookUp)
    /// Objects of an array, each with fields of its own.
    indirect case objects(CustomSlot, CustomElement)
    /// Plain values of an array.
    indirect case values(CustomSlot, CustomElement)
}

/// What becomes of a value before it is read.
struct CustomLookUp: Sendable {
    /// The characters that stand before the value; a text without them counts as not found. Nil: none.
    var after: String?
    /// Nil: every value counts as it is.
    var map: [(key: String, value: JSONValue)]?
    var fallback: JSONValue?
}

/// The pointers and fields of each element of an array.
struct CustomElement: Sendable {
    var pointers: CustomPointerTree
    var fields: CustomFields
}

/// The fields of an event by name.
struct CustomFields: Sendable {
    private var fields = [CustomField?](repeating: nil, count: CustomFieldName.allCases.count)
    /// By the names that clients see.
    fileprivate(set) var annotations: [(name: String, field: CustomField)] = []

    subscript(name: CustomFieldName) -> CustomField? {
        get { fields[name.rawValue] }
        set { fields[name.rawValue] = newValue }
    }

    func has(_ name: CustomFieldName) -> Bool { fields[name.rawValue] != nil }

    var readsSender: Bool { has(.senderID) || has(.senderName) }

    /// Those that there are, by the names that descriptions have.
    var all: [(name: String, field: CustomField)] {
        CustomFieldName.allCases.compactMap { name in self[name].map { (name.text, $0) } } + annotations
    }
}

/// The values of a frame, and of the element that is looked at; the same where there is none.
struct CustomValues {
    /// How much of a frame may be read again for its elements, in bytes. A hostile frame of 4 MiB, half of it one value and
    /// half of it elements that all repeat that value, would otherwise become terabytes.
    static let maxRepeatedBytes = 64 * 1024 * 1024

    let ofFrame: CustomPointerTree.Slots
    let ofElement: CustomPointerTree.Slots
    /// See ``CustomRules/base``.
    let base: String?
    /// The rest of ``maxRepeatedBytes``; nil outside elements.
    private let budget: UnsafeMutablePointer<Int>?

    init(frame: CustomPointerTree.Slots, base: String?) {
        ofFrame = frame
        ofElement = frame
        self.base = base
        budget = nil
    }

    private init(
        ofFrame: CustomPointerTree.Slots, ofElement: CustomPointerTree.Slots, base: String?,
        budget: UnsafeMutablePointer<Int>
    ) {
        self.base = base
        self.ofFrame = ofFrame
        self.ofElement = ofElement
        self.budget = budget
    }

    subscript(slot: CustomSlot) -> JSONField? {
        guard let field = (slot.isOfFrame ? ofFrame : ofElement)[slot.index], !field.isNull else { return nil }
        if slot.isOfFrame, let budget {
            budget.pointee -= field.withRawBytes { $0.count }
            if budget.pointee < 0 { return nil }
        }
        return field
    }

    /// Calls `body` for each of `elements` with its values.
    func forEach(of elements: some Sequence<JSONField>, _ pointers: CustomPointerTree, _ body: (CustomValues) -> Void) {
        var ownBudget = Self.maxRepeatedBytes
        withUnsafeMutablePointer(to: &ownBudget) { own in
            for element in elements {
                pointers.withSlots { slots in
                    var scratch = CustomScratch()
                    pointers.fill(slots, from: element, &scratch)
                    body(CustomValues(ofFrame: ofFrame, ofElement: slots, base: base, budget: budget ?? own))
                }
            }
        }
    }
}

// MARK: - Reading

/// A value on its way into an event.
private enum CustomSource {
    case field(JSONField)
    case value(JSONValue)

    /// Its text, as `reading` sees it.
    func text(_ reading: CustomReading) -> String? {
        switch (self, reading) {
        case (.field(let field), .string), (.field(let field), .any):
            return field.string ?? (field.isNull ? nil : field.rawText)
        case (.field(let field), .id):
            // Ids are shortened when they are longer than any.
            return FrameText.name(field).map { $0.utf8.count > ChatID.maxBytes ? ChatID($0).rawValue : $0 }
        case (.field(let field), .bool): return field.bool.map { "\($0)" }
        case (_, .int): return integer.map { "\($0)" }
        case (_, .time), (_, .timeUnix), (_, .timeUnixMilliseconds), (_, .timeReference), (_, .timeISO8601):
            return time(reading).map { "\($0.milliseconds)" }
        case (.value(let value), .bool): return value.bool.map { "\($0)" }
        case (.value(let value), _): return value.string ?? (value.isNull ? nil : value.text)
        }
    }

    var integer: Int64? {
        switch self {
        case .field(let field):
            switch field.kind {
            case .integer: return field.int64
            case .decimal: return field.double.flatMap(Self.whole)
            case .string: return field.string.flatMap { Int64($0) }
            default: return nil
            }
        case .value(let value):
            return value.integer ?? value.double.flatMap(Self.whole) ?? value.string.flatMap { Int64($0) }
        }
    }

    /// Without the fraction.
    private static func whole(_ value: Double) -> Int64? {
        value.magnitude < 0x1p63 ? Int64(value) : nil
    }

    var number: Double? {
        let number: Double? =
            switch self {
            case .field(let field): field.double ?? field.string.flatMap { $0.utf8.count <= 64 ? Double($0) : nil }
            case .value(let value): value.double
            }
        return number.flatMap { $0.isFinite ? $0 : nil }
    }

    var flag: Bool? {
        switch self {
        case .field(let field): field.bool
        case .value(let value): value.bool
        }
    }

    func time(_ reading: CustomReading) -> ChatTimestamp? {
        let time = FrameTime(epoch: reading == .timeReference ? .reference : .unix)
        switch self {
        case .field(let field): return time.read(field)
        case .value(let value): return time.read(value)
        }
    }
}

extension CustomLookUp {
    /// Nil: the value counts as not found.
    fileprivate func source(_ field: JSONField) -> CustomSource? {
        var text: String?
        if let after {
            guard let whole = field.string, whole.utf8.starts(with: after.utf8) else { return nil }
            text = String(whole.utf8.dropFirst(after.utf8.count))
        }
        guard let map else { return text.map { .value(.string($0)) } ?? .field(field) }
        let key = text ?? field.string ?? field.rawText
        return map.first { $0.key.utf8.elementsEqual(key.utf8) }.map { .value($0.value) }
    }
}

extension CustomFields {
    /// The field's value after `convert`; nil when it is absent or cannot be converted.
    private func read<T>(
        _ name: CustomFieldName, _ values: CustomValues, _ convert: (CustomSource, CustomReading) -> T?
    ) -> T? {
        guard let field = fields[name.rawValue] else { return nil }
        return Self.read(field, values, convert)
    }

    private static func read<T>(
        _ field: CustomField, _ values: CustomValues, _ convert: (CustomSource, CustomReading) -> T?
    ) -> T? {
        switch field {
        case .pointer(let slot, let reading): return values[slot].flatMap { convert(.field($0), reading) }
        case .first(let fields):
            for field in fields {
                if let found = read(field, values, convert) { return found }
            }
            return nil
        case .constant(let value): return convert(.value(value), .any)
        case .looked(let slot, let reading, let how):
            if let found = values[slot], let source = how.source(found), let made = convert(source, reading) {
                return made
            }
            return how.fallback.flatMap { convert(.value($0), .any) }
        case .objects, .values: return nil
        }
    }

    func text(_ name: CustomFieldName, _ values: CustomValues) -> String? {
        read(name, values) { $0.text($1) }
    }

    /// The room that the event names.
    func room(_ values: CustomValues) -> String? { nonEmpty(.room, values) }

    func ref(_ values: CustomValues) -> String? { nonEmpty(.ref, values) }

    func sender(_ values: CustomValues) -> ChatPerson { person(.senderID, .senderName, values) }

    func nonEmpty(_ name: CustomFieldName, _ values: CustomValues) -> String? {
        read(name, values) { source, reading in source.text(reading).flatMap { $0.isEmpty ? nil : $0 } }
    }

    func id(_ name: CustomFieldName, _ values: CustomValues) -> ChatID? {
        read(name, values) { source, reading in
            if case .field(let field) = source, reading == .id { return FrameText.id(field) }
            return source.text(reading).flatMap { $0.isEmpty ? nil : ChatID($0) }
        }
    }

    func time(_ name: CustomFieldName, _ values: CustomValues) -> ChatTimestamp? {
        read(name, values) { $0.time($1) }
    }

    func integer(_ name: CustomFieldName, _ values: CustomValues) -> Int64? {
        read(name, values) { source, _ in source.integer }
    }

    func number(_ name: CustomFieldName, _ values: CustomValues) -> Double? {
        read(name, values) { source, _ in source.number }
    }

    /// How long a refusal for too much lasts, in milliseconds; nil where the frame does not say it, or not credibly.
    func retry(_ values: CustomValues) -> Int64? {
        let milliseconds = number(.retryMilliseconds, values) ?? number(.retry, values).map { $0 * 1000 }
        return milliseconds.flatMap { (0...Self.longestRetry).contains($0) ? Int64($0) : nil }
    }

    /// A day, in milliseconds: the longest wait that is not taken for another number.
    private static let longestRetry = 86_400_000.0

    func flag(_ name: CustomFieldName, _ values: CustomValues) -> Bool {
        read(name, values) { source, _ in source.flag } ?? false
    }

    func person(_ id: CustomFieldName, _ name: CustomFieldName, _ values: CustomValues) -> ChatPerson {
        ChatPerson(id: self.id(id, values), name: nonEmpty(name, values))
    }

    /// Texts of a list. A pointer to one value is a list of one.
    func texts(_ name: CustomFieldName, _ values: CustomValues) -> [String] {
        guard let field = fields[name.rawValue] else { return [] }
        return Self.texts(field, values)
    }

    private static func texts(_ field: CustomField, _ values: CustomValues) -> [String] {
        func usable(_ source: CustomSource, _ reading: CustomReading) -> String? {
            source.text(reading).flatMap { $0.isEmpty ? nil : $0 }
        }
        switch field {
        case .pointer(let slot, let reading):
            guard let found = values[slot] else { return [] }
            if found.kind == .array { return found.elements.compactMap { usable(.field($0), reading) } }
            return usable(.field(found), reading).map { [$0] } ?? []
        case .first(let fields):
            for field in fields {
                let found = texts(field, values)
                if !found.isEmpty { return found }
            }
            return []
        case .constant(.array(let elements)): return elements.compactMap { usable(.value($0), .any) }
        case .constant(let value): return usable(.value(value), .any).map { [$0] } ?? []
        case .looked: return read(field, values, usable).map { [$0] } ?? []
        case .values(let slot, let element):
            var texts: [String] = []
            each(slot, element, values) { fields, values in
                if let text = fields.nonEmpty(.id, values) { texts.append(text) }
            }
            return texts
        case .objects: return []
        }
    }

    func ids(_ name: CustomFieldName, _ values: CustomValues) -> [ChatID] { texts(name, values).map { ChatID($0) } }

    /// Calls `body` for each element of the array at `slot`; an object there counts as the only element.
    private static func each(
        _ slot: CustomSlot, _ element: CustomElement, _ values: CustomValues,
        _ body: (CustomFields, CustomValues) -> Void
    ) {
        guard let found = values[slot] else { return }
        switch found.kind {
        case .array: values.forEach(of: found.elements, element.pointers) { body(element.fields, $0) }
        case .object: values.forEach(of: CollectionOfOne(found), element.pointers) { body(element.fields, $0) }
        default: break
        }
    }

    private func objects(
        _ name: CustomFieldName, _ values: CustomValues, _ body: (CustomFields, CustomValues) -> Void
    ) {
        func read(_ field: CustomField) -> Bool {
            switch field {
            case .objects(let slot, let element):
                guard values[slot] != nil else { return false }
                Self.each(slot, element, values, body)
                return true
            case .first(let fields): return fields.contains { read($0) }
            default: return false
            }
        }
        if let field = fields[name.rawValue] { _ = read(field) }
    }

    func attachments(_ values: CustomValues) -> [ChatAttachment] {
        guard has(.attachments) else { return [] }
        var attachments: [ChatAttachment] = []
        objects(.attachments, values) { fields, values in
            let mime = fields.nonEmpty(.mime, values)
            let hint = fields.text(.type, values).flatMap(ChatAttachment.Kind.init(rawValue:))
            let attachment = ChatAttachment(
                kind: hint ?? FrameAttachment.kind(mime: mime), url: fields.address(.url, values),
                name: fields.nonEmpty(.name, values), size: fields.integer(.size, values), mime: mime,
                thumbnail: fields.address(.thumb, values), width: fields.integer(.width, values),
                height: fields.integer(.height, values), duration: fields.number(.duration, values),
                fileID: fields.nonEmpty(.fileId, values))
            // Nothing to show and nothing to fetch: no attachment.
            if attachment.url != nil || attachment.name != nil || attachment.fileID != nil {
                attachments.append(attachment)
            }
        }
        return attachments
    }

    /// The address of a file. A path is below the backend's HTTP base, as it is for calls.
    private func address(_ name: CustomFieldName, _ values: CustomValues) -> String? {
        guard let address = nonEmpty(name, values), let base = values.base else { return nonEmpty(name, values) }
        let beginning = address.utf8.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        // With a scheme, or a host alone.
        guard !beginning.contains(UInt8(ascii: ":")), !address.hasPrefix("//") else { return address }
        return address.hasPrefix("/") ? base + address : base + "/" + address
    }

    func counts(_ values: CustomValues) -> [ChatReaction.Count] {
        guard has(.counts) else { return [] }
        var counts: [ChatReaction.Count] = []
        objects(.counts, values) { fields, values in
            guard let emoji = fields.nonEmpty(.emoji, values) else { return }
            let users = fields.texts(.users, values)
            counts.append(
                .init(emoji: emoji, count: fields.integer(.count, values) ?? Int64(users.count), users: users))
        }
        return counts
    }

    /// Longer values are cut, so that all of a message fit into the tags of a line.
    private static let maxAnnotationScalars = 64

    private func annotations(_ values: CustomValues) -> [StoredTag] {
        annotations.compactMap { name, field in
            guard let text = Self.read(field, values, { $0.text($1) }), !text.isEmpty else { return nil }
            return StoredTag(
                name: name,
                value: String(String.UnicodeScalarView(text.unicodeScalars.prefix(Self.maxAnnotationScalars))))
        }
    }

    /// The messages of a `history`; unusable ones are left out.
    func messages(_ values: CustomValues, _ context: DialectContext) -> [ChatMessage] {
        var messages: [ChatMessage] = []
        objects(.messages, values) { fields, values in
            if let message = fields.message(values, context) { messages.append(message) }
        }
        return messages
    }

    /// Nil without a text and without an attachment.
    func message(_ values: CustomValues, _ context: DialectContext) -> ChatMessage? {
        let text = text(.text, values)
        let attachments = attachments(values)
        guard text != nil || !attachments.isEmpty else { return nil }
        let sender = person(.senderID, .senderName, values)
        return ChatMessage(
            id: id(.id, values), room: nonEmpty(.room, values), sender: sender, text: text ?? "",
            at: time(.at, values), attachments: attachments, replyTo: id(.replyTo, values),
            ref: nonEmpty(.ref, values), isSelf: context.isSelf(sender), isEncrypted: flag(.encrypted, values),
            annotations: annotations.isEmpty ? [] : annotations(values))
    }
}

// MARK: - Compiling

/// Where pointers of the rule being compiled go.
struct CustomPointerScope {
    var ofFrame: CustomPointerTree
    /// Inside `each`.
    var ofElement: CustomPointerTree?

    mutating func slot(for pointer: JSONPointer, fromFrame: Bool) -> CustomSlot {
        if !fromFrame, let index = ofElement?.slot(for: pointer) { return CustomSlot(isOfFrame: false, index: index) }
        return CustomSlot(isOfFrame: true, index: ofFrame.slot(for: pointer))
    }
}

extension CustomCompiler {
    /// A pointer, from the frame with `^` in front.
    mutating func slot(_ text: String, _ path: [String], _ scope: inout CustomPointerScope) -> CustomSlot? {
        let fromFrame = text.utf8.first == UInt8(ascii: "^")
        guard let pointer = pointer(fromFrame ? String(text.dropFirst()) : text, path) else { return nil }
        return scope.slot(for: pointer, fromFrame: fromFrame)
    }

    mutating func fields(
        _ value: JSONValue, _ path: [String], allowed: [CustomFieldName], words: [CustomFieldName: [String]] = [:],
        _ scope: inout CustomPointerScope
    ) -> CustomFields {
        var fields = CustomFields()
        guard let table = members(value, path, known: allowed.map(\.text)) else { return fields }
        for member in table.members {
            guard let name = allowed.first(where: { $0.text == member.key }) else { continue }
            if name == .annotations {
                fields.annotations = annotations(member.value, path + [member.key], &scope)
                continue
            }
            fields[name] = field(member.value, path + [member.key], name, words: words[name], &scope)
        }
        return fields
    }

    /// At most so many, see `maxAnnotationScalars`.
    private static var maxAnnotations: Int { 6 }

    private mutating func annotations(
        _ value: JSONValue, _ path: [String], _ scope: inout CustomPointerScope
    ) -> [(name: String, field: CustomField)] {
        guard let members = members(value, path) else { return [] }
        if members.count > Self.maxAnnotations { report(path, "has more than \(Self.maxAnnotations)") }
        return members.compactMap { member in
            let path = path + [member.key]
            guard Self.isVendorTag(member.key) else {
                report(path, "must be named as a client-only tag of your own: \"+example.com/priority\"")
                return nil
            }
            return field(member.value, path, .name, words: nil, &scope).map { (member.key, $0) }
        }
    }

    /// A name without a vendor is for tags that clients agree on, and that the relay gives itself.
    private static func isVendorTag(_ name: String) -> Bool {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let vendor = parts.first, vendor.contains("."), vendor.first == "+", vendor.count > 1,
            name.utf8.count <= 64
        else { return false }
        return (vendor.dropFirst() + parts[1]).utf8.allSatisfy {
            ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
        } && !parts[1].isEmpty
    }

    private mutating func field(
        _ value: JSONValue, _ path: [String], _ name: CustomFieldName, words: [String]?,
        _ scope: inout CustomPointerScope
    ) -> CustomField? {
        switch value {
        case .string(let text):
            if name.listFields != nil {
                report(path, "needs a table { \"each\": pointer, \"fields\": … }")
                return nil
            }
            return slot(text, path, &scope).map { .pointer($0, name.usualReading) }
        case .array(let choices):
            if choices.isEmpty { report(path, "names no pointer") }
            var fields: [CustomField] = []
            for (index, choice) in choices.enumerated() {
                if choice.array != nil {
                    report(path + ["\(index)"], "must be a pointer or a table, found a list")
                } else if let field = field(choice, path + ["\(index)"], name, words: words, &scope) {
                    fields.append(field)
                }
            }
            return .first(fields)
        case .object: break
        default:
            report(path, "must be a pointer, a list of pointers or a table, found \(value.kindName)")
            return nil
        }
        if value["const"] != nil {
            guard let table = members(value, path, known: ["const"]) else { return nil }
            guard let constant = table.value("const") else {
                report(table.path("const"), "null says nothing; leave the field out")
                return nil
            }
            check(constant, table.path("const"), words)
            return .constant(constant)
        }
        if value["each"] != nil { return list(value, path, name, &scope) }
        return looked(value, path, name, words, &scope)
    }

    private mutating func check(_ value: JSONValue, _ path: [String], _ words: [String]?) {
        guard let words else { return }
        guard let text = value.string, words.contains(text) else {
            report(path, "\(value.text) is none of \(words.map { "\"\($0)\"" }.joined(separator: ", "))")
            return
        }
    }

    private mutating func looked(
        _ value: JSONValue, _ path: [String], _ name: CustomFieldName, _ words: [String]?,
        _ scope: inout CustomPointerScope
    ) -> CustomField? {
        let known = ["ptr", "after", "as", "map", "default", "const", "each"]
        guard let table = members(value, path, known: known) else { return nil }
        if name.listFields != nil {
            report(path, "needs \"each\" and \"fields\"")
            return nil
        }
        guard let pointer = table.value("ptr") else {
            report(path, "has no \"ptr\"")
            return nil
        }
        var place: CustomSlot?
        if let text = text(pointer, table.path("ptr")) { place = slot(text, table.path("ptr"), &scope) }
        var reading = name.usualReading
        if let how = table.value("as") {
            reading = choice(how, table.path("as"), of: CustomReading.self) ?? reading
        }
        var how = CustomLookUp(after: self.text("after", of: table), fallback: table.value("default"))
        if let written = table.value("map"), let members = members(written, table.path("map")) {
            how.map = members.map { ($0.key, $0.value) }
            for member in members { check(member.value, table.path("map") + [member.key], words) }
        }
        if let fallback = how.fallback { check(fallback, table.path("default"), words) }
        return place.map { .looked($0, reading, how) }
    }

    private mutating func list(
        _ value: JSONValue, _ path: [String], _ name: CustomFieldName, _ scope: inout CustomPointerScope
    ) -> CustomField? {
        let isOfObjects = name.listFields != nil
        let known = ["each"] + (isOfObjects ? ["fields"] : ["ptr", "as"])
        guard let table = members(value, path, known: known) else { return nil }
        guard isOfObjects || name.isListOfText else {
            report(path, "\(name.text) is one value, so \"each\" has no place here")
            return nil
        }
        guard let pointer = table.value("each"), let text = text(pointer, table.path("each")),
            let slot = slot(text, table.path("each"), &scope)
        else { return nil }
        var inner = CustomPointerScope(ofFrame: scope.ofFrame, ofElement: CustomPointerTree())
        defer { scope.ofFrame = inner.ofFrame }
        if let allowed = name.listFields {
            guard let fields = table.value("fields") else {
                report(path, "has no \"fields\"")
                return nil
            }
            let words =
                name == .attachments ? [CustomFieldName.type: ChatAttachment.Kind.allCases.map(\.rawValue)] : [:]
            let compiled = self.fields(fields, table.path("fields"), allowed: allowed, words: words, &inner)
            return .objects(slot, CustomElement(pointers: inner.ofElement ?? CustomPointerTree(), fields: compiled))
        }
        var reading = CustomReading.id
        if let how = table.value("as") { reading = choice(how, table.path("as"), of: CustomReading.self) ?? reading }
        var inside = ""
        if let pointer = table.value("ptr") { inside = self.text(pointer, table.path("ptr")) ?? "" }
        guard let place = self.slot(inside, table.path("ptr"), &inner) else { return nil }
        var fields = CustomFields()
        fields[.id] = .pointer(place, reading)
        return .values(slot, CustomElement(pointers: inner.ofElement ?? CustomPointerTree(), fields: fields))
    }
}
