import JSONText

// What was said before: in a frame, or in the answer to a call.

extension Learner {
    mutating func findHistory() {
        for frame in evidence.received where !isExplained(frame) {
            let same = evidence.received.filter {
                !isExplained($0) && evidence.kind(of: $0) == evidence.kind(of: frame)
            }
            let when = evidence.conditions(same)
            guard let rule = historyRule(frame, when) else { continue }
            add([rule], when: when, explaining: same)
            break
        }
        let calls = evidence.recording.calls.reversed().filter { $0.method == "GET" && (200..<300).contains($0.status) }
        guard !calls.contains(where: { addCall($0) }),
            let empty = calls.first(where: { $0.answer.array?.isEmpty == true })
        else { return }
        reason(
            "history: the answer to \(Self.withoutToken(empty.url).url) was an empty list; where that is the history, learn "
                + "again in a room in which something was said")
    }

    /// A rule for a frame with a list of messages; nil: it has none.
    func historyRule(_ frame: LearnedFrame, _ when: JSONValue) -> JSONValue? {
        // In a history a row is one of many, even where there is no other.
        let lists = Set(LearnedFrame(element: frame.json).leaves.compactMap(\.list)).sorted()
        for list in lists {
            guard let array = value(at: list, frame.json)?.array else { continue }
            guard let fields = fieldsOfRows(array) else { continue }
            var history = LearnedFields()
            history.set(
                "messages", .object([.init("each", .string(list)), .init("fields", fields.json)]),
                "rows with a text and a sender")
            if let pointer = roomPointer(LearnedGroup(frames: [frame])) { history.set("room", pointer, "") }
            return rule("history", when: when, history, why: "a list of messages came in")
        }
        guard let row = evidence.row, let rowFields, value(at: row, frame.json)?.array?.isEmpty == true else {
            return nil
        }
        var history = LearnedFields()
        history.set(
            "messages", .object([.init("each", .string(row)), .init("fields", rowFields)]), "as in other frames")
        return rule("history", when: when, history, why: "a guess: an empty list came in where others have messages")
    }

    /// The fields of a message in the rows of a list; nil: they are no messages.
    private func fieldsOfRows(_ array: [JSONValue]) -> LearnedFields? {
        let rows = array.filter { $0.object != nil }.prefix(200).map { LearnedFrame(element: $0) }
        guard let first = rows.first else { return nil }
        let group = LearnedGroup(frames: Array(rows))
        let marked = rows.lazy.flatMap(\.single).first { LearnMark.all.contains($0.value.string ?? "") }
        let named = LearnedGroup.best(first.single.filter { $0.value.string != nil }, Words.texts)
        guard let text = marked ?? named else { return nil }
        var fields = LearnedFields()
        fields.set("text", text.pointer, "")
        let person = group.person(besides: fields.used)
        guard person.id != nil || person.name != nil else { return nil }
        let ids = group.common.filter { leaf in
            let values = rows.compactMap { $0.text(leaf.pointer) }
            return leaf.pointer != text.pointer && Set(values).count == values.count && values.allSatisfy(Words.isID)
                && !leaf.names.dropLast().contains { Words.people.contains($0) } && !Words.times.contains(leaf.key)
        }
        let cited = citedPlaces
        let known = ids.first { leaf in
            cited.contains(leaf.pointer) || rows.contains { messageIDs.contains($0.text(leaf.pointer) ?? "") }
        }
        let usual = LearnedGroup.best(ids, [idKey].compactMap(\.self) + Words.ids)
        if let id = known ?? usual { fields.set("id", id.pointer, "") }
        let nonces = Set(sentMessages().flatMap { $0.frame.single.compactMap(\.text) })
        let ref = group.any.first { leaf in
            Words.nonces.contains(leaf.key)
                && rows.contains { nonces.contains($0.text(leaf.pointer) ?? "") && $0.text(leaf.pointer) != room }
        }
        if let ref, ref.pointer != fields.pointers["id"] { fields.set("ref", ref.pointer, "") }
        if let id = person.id { fields.set("sender.id", id.pointer, "") }
        if let name = person.name { fields.set("sender.name", name.pointer, "") }
        addTime(group, to: &fields)
        if let files = attachments(group, text.pointer) { fields.set("attachments", files.json, "") }
        if let reply = LearnedGroup.best(
            group.any.filter { $0.text != nil && !fields.used.contains($0.pointer) }, Words.replies)
        {
            fields.set("replyTo", reply.pointer, "")
        }
        return fields
    }

    private mutating func addCall(_ call: RecordedCall) -> Bool {
        for (pointer, array) in Self.lists(in: call.answer) {
            guard let fields = fieldsOfRows(array) else { continue }
            let hasID = fields.pointers["id"] != nil
            let (address, page) = address(call.url, hasID: hasID) { beginning($0, array, fields) }
            if !hasID, !cursors.isEmpty {
                reason(
                    "history: its rows have no id that other frames or calls name, so it is not asked from a message on"
                )
            }
            var members = [JSONValue.Member("get", .string(address))]
            if !pointer.isEmpty { members.append(.init("items", .string(pointer))) }
            members.append(.init("order", .string(isNewestFirst(array, fields) ? "newest-first" : "oldest-first")))
            if let page { members.append(.init("page", .integer(page))) }
            members.append(.init("fields", fields.json))
            set("history", .object(members))
            reason(
                "history: the app called \(Self.withoutToken(call.url).url), and rows of the answer have a text and a sender"
            )
            return true
        }
        return false
    }

    /// The place for the beginning of everything, such as `since=0`: an id or a time, by the name of its parameter where rows have
    /// both as numbers; nil: they have neither.
    private func beginning(_ name: String, _ array: [JSONValue], _ fields: LearnedFields) -> String? {
        let rows = array.map { LearnedFrame(element: $0) }
        func areNumbers(_ field: String, from least: Int64) -> Bool {
            guard let pointer = fields.pointers[field] else { return false }
            return rows.allSatisfy { $0.text(pointer).flatMap { Int64($0) }.map { $0 >= least } ?? false }
        }
        let id = areNumbers("id", from: 0) ? "after" : nil
        let time = areNumbers("at", from: 100_000_000_000) ? "since_ms" : nil
        return ["since", "from"].contains(Words.plain(name)) ? time ?? id : id ?? time
    }

    private func isNewestFirst(_ array: [JSONValue], _ fields: LearnedFields) -> Bool {
        let place = fields.pointers["at"] ?? fields.pointers["id"] ?? ""
        let rows = array.map { LearnedFrame(element: $0) }
        guard let first = rows.first?.value(place), let last = rows.last?.value(place) else { return false }
        if let a = first.double, let b = last.double { return a > b }
        return (first.string ?? "") > (last.string ?? "")
    }

    /// The lists of an answer, with their pointers.
    private static func lists(in answer: JSONValue) -> [(String, [JSONValue])] {
        var lists: [(String, [JSONValue])] = answer.array.map { [("", $0)] } ?? []
        for member in answer.object ?? [] {
            if let array = member.value.array { lists.append(("/" + LearnedFrame.escaped(member.key), array)) }
            for inner in member.value.object ?? [] {
                guard let array = inner.value.array else { continue }
                lists.append(("/" + LearnedFrame.escaped(member.key) + "/" + LearnedFrame.escaped(inner.key), array))
            }
        }
        return lists
    }

    /// Where rows of answers have what a call names a message by.
    private var citedPlaces: Set<String> {
        let cursors = cursors
        guard !cursors.isEmpty else { return [] }
        let rows = evidence.recording.calls.lazy.flatMap { Self.lists(in: $0.answer) }.flatMap(\.1)
        let leaves = rows.filter { $0.object != nil }.flatMap { LearnedFrame(element: $0).single }
        return Set(leaves.filter { cursors.contains($0.text ?? "") }.map(\.pointer))
    }

    /// What calls name a message by, to get those before or behind it.
    private var cursors: Set<String> {
        let fields = evidence.recording.calls.lazy.flatMap { Self.queryFields($0.url) }
        return Set(
            fields.filter { $0.value != "0" && Self.place($0.name, of: $0.value)?.namesMessage ?? false }.map(\.value))
    }

    private static func queryFields(_ url: some StringProtocol) -> [(name: String, value: String, whole: String)] {
        url.split(separator: "?", maxSplits: 1).dropFirst().joined().split(separator: "&").map { field in
            let name = field.prefix { $0 != "=" }
            return (String(name), String(field.dropFirst(name.count + 1)), String(field))
        }
    }

    private static let limits: Set<String> = ["limit", "count", "pagesize", "perpage", "size", "n", "first"]

    private static func isPageSize(_ value: String) -> Bool { Int64(value).map { (1...1000).contains($0) } ?? false }

    /// The place of what is asked for before or after, by the name of its parameter and a value.
    private static func place(_ name: String, of value: String) -> (name: String, namesMessage: Bool)? {
        // How many there may be, and not which.
        if Words.plain(name) == "max", isPageSize(value) { return nil }
        let isTime = value.contains("-") && value.contains(":")
        let isMilliseconds = value.utf8.count >= 12 && Int64(value) != nil
        switch Words.plain(name) {
        case "before", "beforeid", "until", "max", "maxid", "older", "to":
            return isTime ? ("before", false) : isMilliseconds ? ("before_ms", false) : ("before_id", true)
        case "after", "afterid", "since", "from", "sinceid", "min":
            return isTime ? ("since", false) : isMilliseconds ? ("since_ms", false) : ("after", true)
        default: return nil
        }
    }

    /// The path with places for what differs, and the server's page.
    ///
    /// - Parameter beginning: the place that 0 has in a parameter of this name; nil: it has none.
    private func address(
        _ url: String, hasID: Bool, beginning: (String) -> String?
    ) -> (String, page: Int64?) {
        var rest = Self.withoutToken(url).url[...]
        if let scheme = rest.firstRange(of: "://") {
            let path = rest[scheme.upperBound...]
            rest = path.firstIndex(of: "/").map { path[$0...] } ?? "/"
        }
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = parts[0].split(separator: "/", omittingEmptySubsequences: false).map { part in
            part == room.map { $0[...] } ? "{room}" : String(part)
        }.joined(separator: "/")
        var page: Int64?
        var query = Self.queryFields(rest).map { name, value, whole -> String in
            switch Words.plain(name) {
            case let plain where Self.limits.contains(plain) || plain == "max" && Self.isPageSize(value):
                page = Self.isPageSize(value) ? Int64(value) : nil
                return "\(name)={limit}"
            default: break
            }
            if let place = Self.place(name, of: value) {
                if value == "0", !place.name.hasPrefix("before") {
                    return beginning(name).map { "\(name)={?\($0)}" } ?? ""
                }
                return place.namesMessage && !hasID ? "" : "\(name)={?\(place.name)}"
            }
            return value == room ? "\(name)={room}" : whole
        }
        query.removeAll { $0.isEmpty || $0.hasSuffix("=") }
        return (path + (query.isEmpty ? "" : "?" + query.joined(separator: "&")), page)
    }

    private func value(at pointer: String, _ json: JSONValue) -> JSONValue? {
        var found: JSONValue? = json
        for part in pointer.split(separator: "/") {
            let key = part.replacing("~1", with: "/").replacing("~0", with: "~")
            if case .string(let text)? = found { found = LearnedFrame.unwrapped(text)?.0 }
            let name = String(key)
            found =
                found?[name]
                ?? Int(name).flatMap { index in found?.array.flatMap { $0.indices.contains(index) ? $0[index] : nil } }
        }
        return found
    }
}
