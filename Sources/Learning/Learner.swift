public import JSONText

/// What a recording suggests: a description of the backend, with a reason for each guess.
public struct Proposal: Equatable, Sendable {
    public enum Token: Equatable, Sendable {
        case none
        /// A frame shows it.
        case frame
        /// A field of the address.
        case query(String)
        /// A header field of the handshake.
        case header(RecordedHeader)
    }

    /// The description, as the file of a `[dialects.NAME]`.
    public var description: JSONValue
    /// The room as frames name it; nil: they do not.
    public var room: String?
    /// What the backend calls the room; nil: nothing else, as far as the recording shows.
    public var roomTitle: String?
    /// The socket's address without a token.
    public var url: String?
    public var token: Token
    /// The guesses in words.
    public var reasons: [String]
    /// A message came in: there is a rule for those.
    public var hasMessages: Bool

    public var text: String { PrettyJSON.text(description) }
}

/// Guesses a backend's description from a recording.
///
/// Each guess is made from what the recording has: texts that a person was asked to say, ids that frames repeat, words
/// that backends use. All of it is for a person to look at; nothing is sent anywhere.
public struct Learner {
    private(set) var evidence: Evidence
    /// Rules with the number of conditions: the one that asks for more stands first.
    private var blocks: [(weight: Int, rules: [JSONValue])] = []
    private var explained: Set<Int> = []
    private(set) var templates: [(key: String, template: JSONValue)] = []
    private(set) var settings: [(key: String, value: JSONValue)] = []
    private(set) var reasons: [String] = []
    var hasMessages = false
    /// Ids of messages that the recording names.
    var messageIDs: Set<String> = []
    /// Ids of the app's messages that came back, by the frame that sent them.
    var returnedIDs: [Int: String] = [:]
    /// The name of the place at which messages have their ids.
    var idKey: String?
    /// The fields of a message from its row; nil: messages are in no list.
    var rowFields: JSONValue?
    /// What received messages say that they are.
    var messageKind: (pointer: String, value: String)?
    /// Where the app puts an id of its own into what it sends.
    var nonce: String?
    /// Places that have one value in the messages of several people.
    var impersonal: Set<String> = []
    /// Who the app is, by its own messages that came in.
    var own = OwnPerson()
    var isSelfFound = false
    var room: String?
    /// The name of the place at which the app says the room; nil: it does not, or the place has no name.
    var roomLabel: String?
    var token = Proposal.Token.none

    init(_ recording: Recording) { evidence = Evidence(recording) }

    /// Nil: there is no frame with JSON in it.
    public static func propose(_ recording: Recording) -> Proposal? {
        var learner = Learner(recording)
        guard !learner.evidence.received.isEmpty else { return nil }
        learner.findRoom()
        learner.findMessages()
        learner.findActions()
        learner.findPeople()
        learner.findSession()
        learner.findHistory()
        learner.noteFramesWithoutJSON()
        return learner.proposal()
    }

    private mutating func noteFramesWithoutJSON() {
        guard let frame = evidence.frameWithoutJSON else { return }
        reason(
            "\"\(frame.prefix(40))\" is no JSON and is dropped; for a rule see \"Prefixed frames\" in docs/backends/custom.md"
        )
    }

    // MARK: - Collecting

    mutating func isIn(_ room: String?) {
        self.room = room
        evidence.isIn(room)
    }
    mutating func reason(_ words: String) { reasons.append(words) }
    mutating func set(_ key: String, _ value: JSONValue) { settings.append((key, value)) }
    mutating func send(_ key: String, _ template: JSONValue) {
        if !templates.contains(where: { $0.key == key }) { templates.append((key, template)) }
    }

    func isExplained(_ frame: LearnedFrame) -> Bool { explained.contains(frame.index) }
    mutating func explain(_ frames: [LearnedFrame]) { explained.formUnion(frames.map(\.index)) }

    /// A rule for frames; one that is `followed` lets later rules of its block speak as well.
    func rule(
        _ event: String, when: JSONValue, _ fields: LearnedFields, each: String? = nil, isFollowed: Bool = false,
        why: String
    ) -> JSONValue {
        var members = [JSONValue.Member("comment", .string(([why] + fields.reasons).joined(separator: "; ")))]
        if when.object?.isEmpty == false { members.append(.init("when", when)) }
        let isOfRow = each == nil && fields.members.contains { isInRow($0.value) }
        if let each = each ?? (isOfRow ? evidence.row : nil) { members.append(.init("each", .string(each))) }
        members.append(.init("event", .string(event)))
        let places = fields.members.map { field in
            JSONValue.Member(field.key, isOfRow ? fromRow(field.value) : described(field.value))
        }
        if !places.isEmpty { members.append(.init("fields", .object(places))) }
        if isFollowed { members.append(.init("then", .string("continue"))) }
        return .object(members)
    }

    /// A field as a description has it, in which the number of a frame is part of its prefix.
    private func described(_ field: JSONValue) -> JSONValue {
        guard let numbering = evidence.numbering, field.string == Numbering.pointer else { return field }
        return numbering.field
    }

    /// Whether the pointers of a field lead into the row that the event is about.
    func isInRow(_ field: JSONValue) -> Bool {
        guard let row = evidence.row else { return false }
        switch field {
        case .string(let pointer): return pointer.hasPrefix(row + "/0/")
        case .array(let fields): return fields.contains { isInRow($0) }
        default: return ["ptr", "each"].contains { field[$0].map { isInRow($0) } ?? false }
        }
    }

    /// The field with pointers from the row, and `^` in front of those from the frame.
    func fromRow(_ field: JSONValue) -> JSONValue {
        guard let row = evidence.row else { return field }
        switch field {
        case .string(let pointer):
            return .string(
                pointer.hasPrefix(row + "/0/")
                    ? String(decoding: pointer.utf8.dropFirst(row.utf8.count + 2), as: UTF8.self) : "^" + pointer)
        case .array(let fields): return .array(fields.map(fromRow))
        case .object(let members):
            return .object(
                members.map { ["ptr", "each"].contains($0.key) ? .init($0.key, fromRow($0.value)) : $0 })
        default: return field
        }
    }

    mutating func add(_ rules: [JSONValue], when: JSONValue, explaining frames: [LearnedFrame]) {
        blocks.append((when.object?.count ?? 0, rules))
        explain(frames)
    }

    /// A person's fields under `id` and `name`.
    func addPerson(
        _ group: LearnedGroup, _ id: String, _ name: String, to fields: inout LearnedFields,
        besides more: Set<String> = []
    ) {
        // What comes back there is a request's id, and no person's.
        let person = group.person(
            besides: fields.used.union(more).union(nonce.map { [$0] } ?? []).union(impersonal))
        if let leaf = person.id { fields.set(id, leaf.pointer, "") }
        if let leaf = person.name { fields.set(name, leaf.pointer, "") }
    }

    func addTime(_ group: LearnedGroup, to fields: inout LearnedFields) {
        guard let (leaf, reading) = group.time(besides: fields.used) else { return }
        if let reading {
            fields.set(
                "at", .object([.init("ptr", .string(leaf.pointer)), .init("as", .string(reading))]),
                "seconds since 2001, by the time at which the frame came")
        } else {
            fields.set("at", leaf.pointer, "")
        }
    }

    /// A template from a sent frame: the room and the time have places already.
    func maker(for frame: LearnedFrame) -> TemplateMaker {
        var maker = TemplateMaker()
        for leaf in frame.single {
            if let room, leaf.text == room, isNamedAsRoom(leaf) || leaf.names.isEmpty {
                maker.places[leaf.pointer] = maker.place("room", leaf)
            }
        }
        if let (leaf, reading) = LearnedGroup(frames: [frame]).time(besides: Set(maker.places.keys)) {
            let filter: String =
                if leaf.value.string != nil { "iso8601_ms" } else if reading != nil { "reference" } else {
                    (leaf.value.double ?? 0) > 1e11 ? "unix_ms" : "unix"
                }
            maker.places[leaf.pointer] = "{{at|\(filter)}}"
        }
        return maker
    }

    func template(_ frame: LearnedFrame, _ maker: TemplateMaker) -> JSONValue {
        maker.template(of: frame, isPrefixed: evidence.isPrefixed)
    }

    // MARK: - The proposal

    private func proposal() -> Proposal {
        var rules = blocks.sorted { $0.weight > $1.weight }.flatMap(\.rules)
        let rest = evidence.received.filter { !isExplained($0) }
        var known: Set<String> = []
        for frame in rest {
            guard let kind = evidence.kind, let value = frame.text(kind), known.insert(value).inserted else { continue }
            let when = evidence.conditions(rest.filter { $0.text(kind) == value })
            rules.append(
                rule(
                    "ignore", when: when, LearnedFields(),
                    why: "no meaning found; such a frame: \(frame.json.text.prefix(200))"))
        }
        if let answers = answersRule(rest) { rules.append(answers) }
        var members: [JSONValue.Member] = [
            .init("dialect", .string("custom")),
            .init(
                "comment", .array((["Proposed by chatbridge learn. Look at each guess."] + reasons).map { .string($0) })
            ),
        ]
        if evidence.isPrefixed { members.append(.init("frames", .string("prefixed"))) }
        members += settings.map { .init($0.key, $0.value) }
        let wrapped = wrappings()
        if !wrapped.isEmpty { members.append(.init("unwrap", .array(wrapped))) }
        members.append(.init("decode", .array(rules)))
        if !templates.isEmpty { members.append(.init("encode", .object(templates.map { .init($0.key, $0.template) }))) }
        return Proposal(
            description: .object(members), room: room, roomTitle: roomTitle(),
            url: evidence.recording.url.map { Self.withoutToken($0).url }, token: token, reasons: reasons,
            hasMessages: hasMessages)
    }

    /// Ignores answers that do not say what they are; nil: there are none, or nothing tells them from other frames.
    private func answersRule(_ rest: [LearnedFrame]) -> JSONValue? {
        let answers = rest.filter { evidence.kind == nil || evidence.kind(of: $0) == nil }
        guard let first = answers.first else { return nil }
        let common = first.single.filter { leaf in answers.allSatisfy { $0.value(leaf.pointer) != nil } }
        var members = evidence.conditions(answers, exists: common.map(\.pointer)).object ?? []
        let state = common.first { leaf in
            ["status", "ok", "success", "result"].contains(leaf.key)
                && answers.allSatisfy { $0.value(leaf.pointer) == leaf.value }
        }
        // One that says another state may be a refusal.
        if let state {
            members.removeAll { $0.key == state.pointer }
            members.append(.init(state.pointer, state.value))
        }
        let when = JSONValue.object(members)
        let indexes = Set(answers.map(\.index))
        guard !members.isEmpty,
            !evidence.received.contains(where: {
                evidence.matches($0, when) && !indexes.contains($0.index) && !isExplained($0)
            })
        else { return nil }
        return rule(
            "ignore", when: when, LearnedFields(),
            why: "no meaning found; such a frame: \(first.json.text.prefix(200))")
    }

    private func wrappings() -> [JSONValue] {
        var seen: Set<String> = []
        return evidence.received.flatMap(\.wrapped).compactMap { pointer, how in
            guard seen.insert(pointer).inserted else { return nil }
            return .object([.init("ptr", .string(pointer)), .init("as", .string(how.rawValue))])
        }
    }

    /// An address without what may be a secret, and the name of the field that it was.
    static func withoutToken(_ url: String) -> (url: String, field: String?) {
        guard let mark = url.firstIndex(of: "?") else { return (url, nil) }
        var field: String?
        let rest = url[url.index(after: mark)...].split(separator: "&").filter { part in
            let name = String(part.prefix { $0 != "=" })
            let plain = Words.plain(name)
            // In an address nothing else is called so.
            guard Words.tokens.contains(plain) || Words.isToken(plain, String(part.dropFirst(name.count + 1))) else {
                return true
            }
            field = name
            return false
        }
        return (url[..<mark] + (rest.isEmpty ? "" : "?" + rest.joined(separator: "&")), field)
    }
}
