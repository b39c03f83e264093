import JSONText

// What is done to messages: reactions, edits, deletions, receipts; and typing.

extension Learner {
    mutating func findActions() {
        for frame in evidence.received where !isExplained(frame) {
            for leaf in frame.leaves where leaf.key == "id" || leaf.key == "messageid" {
                if let text = leaf.text { messageIDs.insert(text) }
            }
        }
        findReactions()
        findEdits()
        findDeletions()
        findReceipts()
        findTyping()
    }

    /// The single value, or the list of values, that names a message.
    func target(_ frame: LearnedFrame, besides used: Set<String>, anyID: Bool = false) -> Leaf? {
        let leaves = frame.leaves.filter { leaf in
            !used.contains(leaf.pointer) && leaf.pointer != evidence.kind
                && leaf.text.map { Words.isID($0) && $0 != room } ?? false
        }
        if let known = leaves.first(where: {
            messageIDs.contains($0.text ?? "") && (Words.ids + Words.replies).contains($0.key)
        }) {
            return known
        }
        if let known = leaves.first(where: { messageIDs.contains($0.text ?? "") && !Words.people.contains($0.key) }) {
            return known
        }
        let names =
            ["target", "targetid", "messageid", "msgid", "message", "messageids", "ids", "upto", "until", "lastread"]
            + Words.ids
        return anyID
            ? LearnedGroup.best(
                leaves.filter { leaf in !leaf.names.dropLast().contains { Words.people.contains($0) } }, names) : nil
    }

    /// The pointer of one value, or of the list of plain values that it is in.
    func place(_ leaf: Leaf) -> String { leaf.list != nil && leaf.inner.isEmpty ? leaf.list ?? "" : leaf.pointer }

    // MARK: - Reactions

    private mutating func findReactions() {
        func emoji(_ frame: LearnedFrame) -> Leaf? {
            frame.single.first { ["👍", "👍️", "+1", ":+1:", ":thumbsup:", "thumbsup"].contains($0.value.string ?? "") }
                ?? LearnedGroup.best(
                    frame.single.filter { $0.value.string != nil }, ["emoji", "reaction", "emojiname", "icon"])
        }
        func isReaction(_ frame: LearnedFrame) -> Bool {
            guard let leaf = emoji(frame) else { return false }
            return leaf.value.string == LearnMark.emoji
                || frame.single.contains { Words.have($0.value.string ?? "", ["react"]) } || leaf.key == "emoji"
        }
        let frames = evidence.received.filter {
            !isExplained($0) && isReaction($0) && target($0, besides: [], anyID: true) != nil
        }
        if let first = frames.first, let shown = emoji(first),
            let target = target(first, besides: [shown.pointer], anyID: true)
        {
            let same = frames.filter { $0.value(shown.pointer) != nil && $0.value(target.pointer) != nil }
            let group = LearnedGroup(frames: same)
            var fields = LearnedFields()
            fields.set("target", target.pointer, "the id of a message")
            fields.set("emoji", shown.pointer, "")
            addOperation(group, &fields)
            addPerson(group, "sender.id", "sender.name", to: &fields)
            addRoom(group, to: &fields)
            addTime(group, to: &fields)
            let when = evidence.conditions(same, exists: [shown.pointer])
            add(
                [rule("reaction", when: when, fields, why: "an emoji and a message's id came in together")], when: when,
                explaining: same)
        }
        for frame in evidence.sent where isReaction(frame) {
            guard let shown = emoji(frame), let target = target(frame, besides: [shown.pointer], anyID: true) else {
                continue
            }
            var maker = maker(for: frame)
            maker.places[shown.pointer] = "{{emoji}}"
            maker.places[target.pointer] = maker.place("target", target)
            let isRemoval = frame.single.contains {
                Words.have($0.value.string ?? "", ["remove", "unreact", "delete"]) || $0.value == .bool(false)
            }
            send(isRemoval ? "reaction.remove" : "reaction.add", template(frame, maker))
            let flags = frame.single.filter { $0.value == .bool(true) }
            if !isRemoval, flags.count == 1, let flag = flags.first {
                maker.literals[flag.pointer] = .bool(false)
                send("reaction.remove", template(frame, maker))
                reason("encode.reaction.remove: the same with false; it was not seen")
            }
        }
    }

    /// Whether a reaction comes or goes, where one value says it.
    private func addOperation(_ group: LearnedGroup, _ fields: inout LearnedFields) {
        let words: [(String, String)] = [
            ("add", "add"), ("added", "add"), ("set", "add"), ("on", "add"), ("put", "add"), ("true", "add"),
            ("remove", "remove"), ("removed", "remove"), ("unset", "remove"), ("off", "remove"), ("del", "remove"),
            ("false", "remove"),
        ]
        for leaf in group.common where !fields.used.contains(leaf.pointer) && leaf.pointer != evidence.kind {
            let values = Set(group.frames.compactMap { $0.value(leaf.pointer).map { $0.string ?? $0.text } })
            let known = values.filter { value in words.contains { $0.0 == value } }
            guard known == values else { continue }
            let isFlag = leaf.value.bool != nil
            let map = words.filter { word in
                isFlag ? ["true", "false"].contains(word.0) : values.contains(word.0) || word.0 == word.1
            }
            fields.set(
                "op",
                .object([
                    .init("ptr", .string(leaf.pointer)), .init("as", .string("any")),
                    .init("map", .object(map.map { .init($0.0, .string($0.1)) })),
                ]), "the word for taking one away is a guess where none was seen")
            return
        }
    }

    // MARK: - Edits and deletions

    private mutating func findEdits() {
        var marked = evidence.received.filter { !isExplained($0) && $0.has(LearnMark.edited) }
        // What else has the text is an answer to the app.
        if let row = evidence.row, marked.contains(where: { $0.has(LearnMark.edited, in: row) }) {
            marked.removeAll { !$0.has(LearnMark.edited, in: row) }
        }
        let named = evidence.received(
            called: ["edit", "update", "change", "modif"], but: ["react", "presence", "typing", "member"])
        let frames = (marked.isEmpty ? named.filter { !isExplained($0) } : marked)
        for (_, frames) in Dictionary(grouping: frames, by: { evidence.kind(of: $0) ?? "" }).sorted(by: {
            $0.key < $1.key
        }) {
            guard let first = frames.first else { continue }
            let text =
                first.single.first { $0.value.string == LearnMark.edited }
                ?? LearnedGroup.best(
                    first.single.filter { $0.value.string != nil && $0.pointer != evidence.kind },
                    Words.texts + ["new", "newtext"])
            guard let text, let target = target(first, besides: [text.pointer], anyID: true) else { continue }
            let same = frames.filter { $0.value(text.pointer) != nil && $0.value(target.pointer) != nil }
            let group = LearnedGroup(frames: same)
            var fields = LearnedFields()
            fields.set("id", target.pointer, "the id of a message")
            fields.set("text", text.pointer, "the new text")
            addPerson(group, "sender.id", "sender.name", to: &fields)
            addRoom(group, to: &fields)
            addTime(group, to: &fields)
            let when = evidence.conditions(same, exists: [target.pointer])
            add(
                [rule("edit", when: when, fields, why: "a message's new text came in so")], when: when, explaining: same
            )
        }
    }

    private mutating func findDeletions() {
        let stems = ["delete", "remov", "retract", "unsend", "redact", "revoke", "erase"]
        let frames = evidence.received(called: stems, but: ["react", "member", "user"]).filter { !isExplained($0) }
        if let first = frames.first, let target = target(first, besides: [], anyID: true) {
            let same = frames.filter { $0.value(target.pointer) != nil }
            let group = LearnedGroup(frames: same)
            var fields = LearnedFields()
            fields.set("ids", place(target), "the id of a message")
            addPerson(group, "sender.id", "sender.name", to: &fields, besides: [target.pointer])
            addRoom(group, to: &fields)
            let when = evidence.conditions(same)
            add([rule("delete", when: when, fields, why: "by its name")], when: when, explaining: same)
        }
        for frame in evidence.sent(called: stems, but: ["react"]) {
            guard let target = target(frame, besides: [], anyID: true) else { continue }
            send("delete", listTemplate(frame, target))
        }
    }

    /// One frame for each id, or one with all of them, as the frame has it.
    private func listTemplate(_ frame: LearnedFrame, _ target: Leaf) -> JSONValue {
        var maker = maker(for: frame)
        let isList = target.list != nil && target.inner.isEmpty
        maker.places[place(target)] = isList ? "{{ids}}" : maker.place("item", target)
        let template = template(frame, maker)
        return isList ? template : .object([.init("$per", .string("ids")), .init("as", template)])
    }

    // MARK: - Receipts

    private mutating func findReceipts() {
        let stems = ["read", "seen", "receipt"]
        for frame in evidence.received(called: stems + ["deliver"], but: ["thread", "ready", "already"])
        where !isExplained(frame) {
            guard let target = target(frame, besides: [], anyID: true) else { continue }
            let kind = evidence.kind(of: frame)
            let same = evidence.received.filter {
                !isExplained($0) && evidence.kind(of: $0) == kind && $0.value(target.pointer) != nil
            }
            let group = LearnedGroup(frames: same)
            var fields = LearnedFields()
            let states = group.common.first { leaf in
                leaf.pointer != evidence.kind
                    && same.allSatisfy { ["sent", "delivered", "read"].contains($0.text(leaf.pointer) ?? "") }
            }
            if let states {
                fields.set("state", states.pointer, "")
            } else {
                let isDelivery = kind.map { Words.have($0, ["deliver"]) } ?? false
                fields.set(
                    "state", .object([.init("const", .string(isDelivery ? "delivered" : "read"))]),
                    "by the frame's name")
            }
            fields.set("ids", place(target), "the id of a message")
            addPerson(group, "by.id", "by.name", to: &fields, besides: [target.pointer])
            addRoom(group, to: &fields)
            addTime(group, to: &fields)
            let when = evidence.conditions(same)
            add([rule("receipt", when: when, fields, why: "by its name")], when: when, explaining: same)
        }
        for frame in evidence.sent(called: stems, but: ["thread", "ready"]) {
            guard let target = target(frame, besides: [], anyID: true) else { continue }
            guard !templates.contains(where: { $0.key == "receipt.read" }) else { break }
            let isUpTo = frame.single.contains { leaf in
                Words.have(leaf.key, ["upto", "last", "until", "through"])
                    || Words.have(leaf.value.string ?? "", ["upto"])
            }
            guard isUpTo else {
                send("receipt.read", listTemplate(frame, target))
                continue
            }
            var maker = maker(for: frame)
            maker.places[target.pointer] = maker.place("item", target)
            send("receipt.read", .object([.init("$newest", .string("ids")), .init("as", template(frame, maker))]))
            reason("encode.receipt.read: one frame for all that was read, by the name of what it says")
        }
    }

    // MARK: - Typing

    private mutating func findTyping() {
        let stems = ["typing", "compos", "writing"]
        let stops = ["stop", "idle", "paus", "end", "clear", "cancel"]
        func isTyping(_ frame: LearnedFrame) -> Bool {
            frame.single.contains { leaf in
                leaf.value.string.map { Words.isWord($0) && Words.have($0, stems) } ?? false
                    || leaf.value.bool != nil && Words.have(leaf.key, stems)
            }
        }
        func isStop(_ frame: LearnedFrame) -> Bool {
            frame.single.contains { leaf in
                leaf.value == .bool(false)
                    || leaf.value.string.map { Words.isWord($0) && Words.have($0, stops) } ?? false
            }
        }
        let frames = evidence.received.filter { !isExplained($0) && isTyping($0) }
        for (_, same) in Dictionary(grouping: frames, by: { evidence.kind(of: $0) ?? "" }).sorted(by: {
            $0.key < $1.key
        }) {
            let group = LearnedGroup(frames: same)
            var fields = LearnedFields()
            let flag = group.common.first { $0.value.bool != nil }
            let word = group.common.first { leaf in
                leaf.pointer != evidence.kind
                    && leaf.value.string.map { Words.isWord($0) && Words.have($0, stops + stems + ["start"]) } ?? false
            }
            if let flag {
                fields.set(
                    "state",
                    .object([
                        .init("ptr", .string(flag.pointer)), .init("as", .string("any")),
                        .init("map", .object([.init("true", .string("start")), .init("false", .string("stop"))])),
                    ]), "")
            } else if let word {
                let values = Set(same.compactMap { $0.text(word.pointer) }).sorted()
                let map = values.map { JSONValue.Member($0, .string(Words.have($0, stops) ? "stop" : "start")) }
                fields.set(
                    "state", .object([.init("ptr", .string(word.pointer)), .init("map", .object(map))]),
                    "by the words that were seen")
            } else {
                fields.set(
                    "state", .object([.init("const", .string(same.allSatisfy(isStop) ? "stop" : "start"))]),
                    "by the frame's name")
            }
            addPerson(group, "sender.id", "sender.name", to: &fields)
            addRoom(group, to: &fields)
            let when = evidence.conditions(same)
            add([rule("typing", when: when, fields, why: "by its name")], when: when, explaining: same)
        }
        for frame in evidence.sent where isTyping(frame) {
            var maker = maker(for: frame)
            let person = LearnedGroup(frames: [frame]).person(besides: Set(maker.places.keys))
            if let id = person.id { maker.places[id.pointer] = "{{sender.id}}" }
            if let name = person.name { maker.places[name.pointer] = "{{sender.name}}" }
            send(isStop(frame) ? "typing.stop" : "typing.start", template(frame, maker))
        }
    }
}
