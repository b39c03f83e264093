import JSONText

// Messages: theirs, ours, and what confirms ours.

extension Learner {
    mutating func findMessages() {
        guard let text = textPlace() else {
            return reason(
                "message: no frame with \(LearnMark.own) or \(LearnMark.other) came in, and none that looks like one")
        }
        hasMessages = true
        let frames = messageFrames(text)
        let group = LearnedGroup(frames: frames)
        if let kind = evidence.kind, let value = frames.first?.text(kind) { messageKind = (kind, value) }
        let sent = sentMessages()
        let own = sent.flatMap { one in frames.filter { $0.text(text) == one.frame.text(one.text) } }
        nonce = noncePlace(sent, frames, text)
        if let row = evidence.row {
            reason("each: what happened to a message came in as the only row of the list \(row)")
        }
        var fields = LearnedFields()
        fields.set("text", text, evidence.hasMarks ? "it is where the texts stood that were asked for" : "by its name")
        addRoom(group, to: &fields)
        let echoed = echoedNonce(sent, nonce, frames, text)
        addIDs(group, echoed, answered: answeredIDs(sent, frames, text), beside: text, &fields)
        let reply = replyPlace(group, fields)
        addPerson(group, "sender.id", "sender.name", to: &fields, besides: Set([reply].compactMap { $0 }))
        if let sender = fields.pointers["sender.id"] ?? fields.pointers["sender.name"] {
            impersonal = group.sharedPlaces(byAllOf: sender)
        }
        self.own = OwnPerson(
            ids: Set(fields.pointers["sender.id"].map { place in own.compactMap { $0.text(place) } } ?? []),
            names: Set(fields.pointers["sender.name"].map { place in own.compactMap { $0.text(place) } } ?? []))
        addTime(group, to: &fields)
        if let reply { fields.set("replyTo", reply, "") }
        addAttachments(group, text, &fields)
        if evidence.row != nil {
            let inside = fields.members.filter { isInRow($0.value) }
            rowFields = .object(inside.map { .init($0.key, fromRow($0.value)) })
        }
        let required = [text] + [fields.pointers["id"]].compactMap { $0 }
        let when = evidence.conditions(frames, exists: required)
        let who = evidence.hasMarks ? "a text that was asked for came in so" : "such frames have a text and a sender"
        add([rule("message", when: when, fields, why: who)], when: when, explaining: frames)
        if let id = fields.pointers["id"] {
            messageIDs.formUnion(frames.compactMap { $0.text(id) })
            idKey = group.common.first { $0.pointer == id }?.key
            for one in sent {
                let returned = frames.first {
                    $0.index > one.frame.index && $0.text(text) == one.frame.text(one.text)
                }
                returnedIDs[one.frame.index] = returned?.text(id)
            }
        }
        findOwn(sent, nonce, echoed, isEchoed: !own.isEmpty)
    }

    // MARK: - Theirs

    /// Where the text of a message is in received frames.
    func textPlace() -> String? {
        for mark in [LearnMark.other, LearnMark.own, LearnMark.reply] {
            for frame in evidence.received {
                if let leaf = frame.single.first(where: { $0.value.string == mark }) { return leaf.pointer }
            }
        }
        // Without the texts: by its name, and a sender beside it.
        var counts: [String: (count: Int, rank: Int)] = [:]
        for frame in evidence.received {
            guard !isComplaint(frame) else { continue }
            let group = LearnedGroup(frames: [frame])
            for leaf in frame.single where leaf.value.string != nil && leaf.pointer != evidence.kind {
                guard let rank = Words.texts.firstIndex(of: leaf.key), evidence.kind(of: frame) != leaf.text else {
                    continue
                }
                let person = group.person(besides: [leaf.pointer])
                if person.id != nil || person.name != nil { counts[leaf.pointer, default: (0, rank)].count += 1 }
            }
        }
        return counts.sorted { $0.key < $1.key }.max {
            ($0.value.count, -$0.value.rank) < ($1.value.count, -$1.value.rank)
        }?.key
    }

    func isComplaint(_ frame: LearnedFrame) -> Bool {
        evidence.kind(of: frame).map(Words.complain) == true || complaintPlace(frame) != nil
    }

    /// Where a frame says that something failed, apart from the place that says what it is.
    func complaintPlace(_ frame: LearnedFrame) -> Leaf? {
        frame.single.first { leaf in
            guard leaf.pointer != evidence.kind, leaf.names.count <= 3 else { return false }
            return switch leaf.value {
            case .bool(let isGood): !isGood && ["ok", "success"].contains(leaf.key)
            case .integer(let number): leaf.isError && number != 0
            case .string(let text):
                leaf.isError && !text.isEmpty
                    || ["status", "result", "state"].contains(leaf.key) && Words.isWord(text) && Words.complain(text)
            default: false
            }
        }
    }

    func messageFrames(_ text: String) -> [LearnedFrame] {
        let candidates = evidence.received.filter { $0.value(text)?.string != nil }
        let marked = candidates.filter { frame in
            [LearnMark.own, LearnMark.other, LearnMark.reply].contains(frame.text(text) ?? "")
        }
        let kinds = Dictionary(grouping: marked.isEmpty ? candidates : marked) { evidence.kind(of: $0) ?? "" }
        guard let most = kinds.max(by: { ($0.value.count, $1.key) < ($1.value.count, $0.key) }) else { return [] }
        // In a list, the frame's other words say what happened to the row.
        let words = evidence.row == nil ? nil : most.value.first.map { evidence.words(of: $0) }
        // All of that kind but what changes a message.
        return candidates.filter { frame in
            (evidence.kind(of: frame) ?? "") == most.key && frame.text(text) != LearnMark.edited
                && (words == nil || evidence.words(of: frame) == words)
        }
    }

    /// - Parameters:
    ///   - answered: Places whose values the answers to the app's own messages repeat.
    ///   - text: The place of the text.
    private mutating func addIDs(
        _ group: LearnedGroup, _ echoed: String?, answered: Set<String>, beside text: String,
        _ fields: inout LearnedFields
    ) {
        let used = fields.used
        let time = group.time(besides: used)?.leaf.pointer
        let counters = counters(group)
        // What all messages of the app have, such as a format, names none of them.
        let said = sentMessages().map { Set($0.frame.single.compactMap(\.text)) }
        let constants = said.count > 1 ? said.dropFirst().reduce(said[0]) { $0.intersection($1) } : []
        let leaves = group.common.filter { leaf in
            guard !used.contains(leaf.pointer), leaf.pointer != evidence.kind, let text = leaf.text, Words.isID(text),
                counters[leaf.pointer] != .ofConnection
            else { return false }
            let values = group.frames.compactMap { $0.text(leaf.pointer) }
            return Set(values).count == values.count || !evidence.hasMarks && Words.ids.contains(leaf.key)
        }
        func score(_ leaf: Leaf) -> Int {
            let isNamed = Words.ids.firstIndex(of: leaf.key).map { 20 - $0 } ?? 0
            let isOfPerson =
                leaf.names.dropLast().contains { Words.people.contains($0) } || Words.people.contains(leaf.key)
            let isTime = Words.times.contains(leaf.key) || leaf.pointer == time
            let isUsed =
                counters[leaf.pointer] == nil
                && group.frames.compactMap { $0.text(leaf.pointer) }.contains {
                    evidence.isReferenced($0) && !constants.contains($0)
                }
            let isTuple = leaf.names.isEmpty || leaf.names == ["body"]
            let meaning = isNamed + (isUsed && leaf.pointer != echoed ? 25 : 0)
            let isAnswered = answered.contains(leaf.pointer)
            // Where it stands makes no id of a value that nothing else calls one.
            guard meaning > 0 || isAnswered, !isOfPerson, !isTime, !isTuple else {
                return meaning - (isOfPerson || isTime || isTuple ? 40 : 0)
            }
            let isShared = leaf.names.count == 1 && isOfOtherKinds(leaf.pointer, group)
            return meaning + (isAnswered ? 50 : 0)
                + (leaf.isBeside(text) ? 5 : 0) - (isShared ? 5 : 0) - (counters[leaf.pointer] != nil ? 10 : 0)
        }
        let others = leaves.filter { $0.pointer != echoed }
        let best = others.max { (score($0), $1.pointer) < (score($1), $0.pointer) }
        if let best, score(best) > 0 {
            let isAnswered = answered.contains(best.pointer)
            fields.set(
                "id", best.pointer,
                "other in each message"
                    + (isAnswered ? ", and the answer to the app's own message names it" : "")
                    + (evidence.isReferenced(group.frames[0].text(best.pointer) ?? "")
                        ? ", and named again by what the app sent" : ""))
            if let counter = counters[best.pointer], !isAnswered {
                reason("id: " + Self.doubt(best.pointer, counter))
            }
            if let echoed { fields.set("ref", echoed, "what the app gave its message comes back there") }
        } else if let echoed {
            fields.set("id", echoed, "what the app gave its message comes back there")
        }
    }

    private func replyPlace(_ group: LearnedGroup, _ fields: LearnedFields) -> String? {
        guard let id = fields.pointers["id"] else { return nil }
        let ids = Set(group.frames.compactMap { $0.text(id) })
        let leaves = group.any.filter { leaf in
            leaf.pointer != id && !fields.used.contains(leaf.pointer)
                && group.frames.contains { frame in
                    frame.text(leaf.pointer).map { ids.contains($0) && $0 != frame.text(id) } ?? false
                }
        }
        return (leaves.first ?? LearnedGroup.best(group.any.filter { $0.text != nil }, Words.replies))?.pointer
    }

    private mutating func addAttachments(_ group: LearnedGroup, _ text: String, _ fields: inout LearnedFields) {
        guard let (files, isPath) = attachments(group, text) else { return }
        fields.set("attachments", files, "an address of a file is there")
        guard isPath else { return }
        reason(
            "files: an address is a path, and is looked for below http_base; say \"files\": \"token\" where it opens with the "
                + "token alone")
    }

    /// The field for files, and whether their addresses are paths.
    func attachments(_ group: LearnedGroup, _ text: String) -> (json: JSONValue, isPath: Bool)? {
        let leaves = group.frames.flatMap(\.leaves)
        let address = leaves.first { leaf in
            guard let value = leaf.value.string, leaf.pointer != text else { return false }
            return ["url", "href", "fileurl", "src", "link", "uri", "path"].contains(leaf.key)
                && (value.hasPrefix("http") || value.hasPrefix("/"))
        }
        guard let address else { return nil }
        let list =
            address.list
            ?? String(address.pointer[..<(address.pointer.lastIndex(of: "/") ?? address.pointer.startIndex)])
        func inside(_ leaf: Leaf) -> String? {
            if address.list != nil { return leaf.list == list ? leaf.inner : nil }
            guard leaf.list == nil, leaf.pointer.hasPrefix(list + "/") else { return nil }
            return String(leaf.pointer.dropFirst(list.count))
        }
        var inner: [JSONValue.Member] = []
        let names: [(String, [String])] = [
            ("url", [address.key]), ("name", ["name", "filename", "title", "label", "n"]),
            ("size", ["size", "bytes", "filesize", "length"]),
            ("mime", ["mime", "mimetype", "contenttype", "type"]), ("width", ["width", "w"]),
            ("height", ["height", "h"]),
            ("thumb", ["thumb", "thumbnail", "preview"]), ("fileId", ["fileid", "id"]),
        ]
        for (field, keys) in names {
            let found = leaves.first { leaf in
                guard keys.contains(leaf.key), let place = inside(leaf),
                    !inner.contains(where: { $0.value.string == place })
                else { return false }
                return field != "mime" || leaf.value.string?.contains("/") == true
            }
            if let place = found.flatMap(inside) { inner.append(.init(field, .string(place))) }
        }
        return (
            .object([.init("each", .string(list)), .init("fields", .object(inner))]),
            address.value.string?.hasPrefix("/") == true
        )
    }

    // MARK: - Ours

    struct SentMessage {
        var frame: LearnedFrame
        var text: String
    }

    func sentMessages() -> [SentMessage] {
        let marked = evidence.sent.compactMap { frame in
            frame.single.first { [LearnMark.own, LearnMark.reply].contains($0.value.string ?? "") }
                .map { SentMessage(frame: frame, text: $0.pointer) }
        }
        guard marked.isEmpty else { return marked }
        let same = evidence.sent.filter { frame in messageKind.map { frame.text($0.pointer) == $0.value } ?? true }
        return (same.isEmpty ? evidence.sent : same).compactMap { frame in
            let texts = frame.single.filter { leaf in
                let isKind = Words.kinds.contains(leaf.key) && (leaf.key != "msg" || frame.single.count == 1)
                return leaf.value.string?.isEmpty == false && !isKind
            }
            return LearnedGroup.best(texts, Words.texts).map { SentMessage(frame: frame, text: $0.pointer) }
        }
    }

    /// Where the app puts an id of its own: other in each message, and no time.
    private func noncePlace(_ sent: [SentMessage], _ frames: [LearnedFrame], _ text: String) -> String? {
        guard let first = sent.first else { return nil }
        let said = Set(sent.compactMap { $0.frame.text($0.text) })
        let foreign = frames.filter { frame in frame.text(text).map { !said.contains($0) } ?? true }
        /// What messages with other words have too, and not as what they answer, names no message.
        func isShared(_ value: String) -> Bool {
            foreign.contains { frame in
                frame.leaves.contains { $0.text == value && !$0.names.contains(where: Words.replies.contains) }
            }
        }
        let leaves = first.frame.single.filter { leaf in
            guard leaf.pointer != first.text, let text = leaf.text, Words.isID(text), text != room, !isShared(text),
                !Words.replies.contains(leaf.key), !Words.times.contains(leaf.key),
                !leaf.names.dropLast().contains(where: { Words.people.contains($0) })
            else { return false }
            let values = sent.compactMap { $0.frame.text(leaf.pointer) }
            return Set(values).count == values.count && values.count == sent.count
                && (sent.count > 1 || evidence.received.contains { $0.leaves.contains { $0.text == text } })
        }
        let answered = leaves.filter { leaf in
            sent.contains { one in
                evidence.received.contains { frame in
                    frame.index > one.frame.index && frame.leaves.contains { $0.text == one.frame.text(leaf.pointer) }
                }
            }
        }
        // A string that comes back is the app's own id; a number beside it only counts.
        let strings = answered.filter { $0.value.string != nil }
        let returned = strings.filter { leaf in
            sent.contains { one in
                frames.contains { $0.index > one.frame.index && $0.has(one.frame.text(leaf.pointer) ?? "") }
            }
        }
        // A number that no answer repeats ties nothing to anything.
        let silent = leaves.filter { $0.value.string != nil }
        let best = [returned, strings, answered, silent].first { !$0.isEmpty } ?? []
        let named = LearnedGroup.best(best, Words.nonces + Words.ids)
        return (named ?? (answered.isEmpty ? nil : best.first { $0.names.isEmpty } ?? best.first))?.pointer
    }

    /// Where a message that came back has the app's own id.
    private func echoedNonce(_ sent: [SentMessage], _ nonce: String?, _ frames: [LearnedFrame], _ text: String)
        -> String?
    {
        // Messages have no number.
        guard let nonce, nonce != Numbering.pointer else { return nil }
        func isEcho(_ frame: LearnedFrame, of one: SentMessage, at pointer: String) -> Bool {
            frame.index > one.frame.index && frame.text(pointer) == one.frame.text(nonce)
        }
        let numbered = sent.filter { $0.frame.text(nonce) != nil }
        let returned = numbered.count { one in
            frames.contains { $0.index > one.frame.index && $0.text(text) == one.frame.text(one.text) }
        }
        // A short one may be found elsewhere by chance, but not of each message that came back.
        return frames.flatMap(\.single).map(\.pointer).first { pointer in
            pointer != text
                && numbered.count { one in frames.contains { isEcho($0, of: one, at: pointer) } } >= max(returned, 1)
        }
    }

    private mutating func findOwn(_ sent: [SentMessage], _ nonce: String?, _ echoed: String?, isEchoed: Bool) {
        // The one with the most members shows all that can be there, but a file would stay in each.
        let plain = sent.filter { one in
            !one.frame.leaves.contains { ["url", "href", "src", "mime", "mimetype"].contains($0.key) }
        }
        let fullest = (plain.isEmpty ? sent : plain).max { $0.frame.leaves.count < $1.frame.leaves.count }
        guard let first = sent.first, let fullest else {
            return reason("encode.message: nothing that the app sent has the text of a message")
        }
        var maker = maker(for: fullest.frame)
        maker.places[fullest.text] = "{{text}}"
        if let nonce { maker.places[nonce] = idPlace(nonce, in: fullest.frame) }
        for leaf in fullest.frame.single where maker.places[leaf.pointer] == nil {
            guard let text = leaf.text else { continue }
            if Words.replies.contains(leaf.key)
                || messageIDs.contains(text) && fullest.frame.index != first.frame.index && leaf.pointer != nonce
            {
                maker.places[leaf.pointer] = maker.place("replyTo", leaf)
                maker.optional.insert(leaf.pointer)
            }
        }
        let person = LearnedGroup(frames: [fullest.frame]).person(besides: Set(maker.places.keys))
        if let id = person.id { maker.places[id.pointer] = "{{sender.id}}" }
        if let name = person.name { maker.places[name.pointer] = "{{sender.name}}" }
        sayConstants(sent, fullest.frame, maker)
        send("message", template(fullest.frame, maker))
        if person.id != nil || person.name != nil {
            reason(
                "identity: the app says in each message who speaks. Where the server looks only at the login, say \"identity\": \"single\" and take {{sender.*}} out"
            )
        }
        if echoed != nil {
            set("echo", .string("by-id"))
            reason("echo: by-id, since the app's own message came back with the id that the app gave it")
        } else if let nonce, findAck(sent, nonce) {
            set("echo", .string("ack"))
            reason(
                "echo: ack, since an answer named the id that the app gave its message, and the message itself "
                    + (isEchoed ? "came back without it" : "did not come back with it")
            )
        } else if isEchoed {
            set("echo", .string("by-text"))
            reason("echo: by-text, since the app's own message came back without an id of the app's")
        } else {
            reason("echo: nothing that came in confirms a message; left out, so that a pong does")
        }
    }

    /// The place of the message's own id, which is a number where the app's is.
    private mutating func idPlace(_ nonce: String, in frame: LearnedFrame) -> String {
        guard nonce == Numbering.pointer || frame.value(nonce)?.string == nil else { return "{{id}}" }
        set("ids", .string("number"))
        reason("ids: number, since the app numbers its messages")
        return "{{id|int}}"
    }

    /// A rule for the answer that has the app's own id; false where there is none.
    private mutating func findAck(_ sent: [SentMessage], _ nonce: String) -> Bool {
        var answers: [LearnedFrame] = []
        /// Answers to messages that came back, with the ids of these.
        var named: [(answer: LearnedFrame, id: String)] = []
        var place: Leaf?
        for one in sent {
            guard let value = one.frame.text(nonce) else { continue }
            for frame in evidence.received
            where frame.index > one.frame.index && !isExplained(frame) && !isComplaint(frame) {
                let isNumber = nonce == Numbering.pointer
                guard let leaf = frame.single.first(where: { $0.text == value && (!isNumber || $0.pointer == nonce) })
                else { continue }
                guard place == nil || place?.pointer == leaf.pointer else { continue }
                place = leaf
                answers.append(frame)
                if let id = returnedIDs[one.frame.index] { named.append((frame, id)) }
                break
            }
        }
        guard let place, !answers.isEmpty else { return false }
        let group = LearnedGroup(frames: answers)
        let counters = counters(group)
        let others = group.common.filter { leaf in
            leaf.pointer != place.pointer && Set(answers.compactMap { $0.text(leaf.pointer) }).count == answers.count
                && !Words.times.contains(leaf.key) && leaf.text.map { Words.isID($0) && $0 != room } ?? false
                && !(counters[leaf.pointer] == .ofConnection && isElsewhere(leaf.pointer, than: answers))
        }
        let returned = group.any.first { leaf in
            !named.isEmpty && leaf.pointer != place.pointer
                && named.allSatisfy { $0.answer.text(leaf.pointer) == $0.id }
        }
        let referenced = others.first { leaf in
            answers.contains { evidence.isReferenced($0.text(leaf.pointer) ?? "") && leaf.pointer != evidence.kind }
        }
        let id = returned ?? referenced ?? LearnedGroup.best(others, [idKey].compactMap(\.self) + Words.ids)
        var fields = LearnedFields()
        fields.set("state", .object([.init("const", .string("sent"))]), "")
        if let id {
            fields.set(
                "ids", id.pointer,
                "the backend's id" + (returned == nil ? "" : ", which the message that came back has too"))
            fields.set("ref", place.pointer, "the id that the app gave its message")
            messageIDs.formUnion(answers.compactMap { $0.text(id.pointer) })
        } else {
            fields.set("ids", place.pointer, "the id that the app gave its message; there is no other")
        }
        addTime(group, to: &fields)
        addRoom(group, to: &fields)
        let when = evidence.conditions(answers, exists: [id?.pointer, place.pointer].compactMap { $0 })
        add(
            [rule("receipt", when: when, fields, why: "it came after each message of the app")], when: when,
            explaining: answers + evidence.received.filter { evidence.matches($0, when) })
        return id != nil
    }

    /// Whether frames that are neither answers nor messages have a value there too.
    private func isElsewhere(_ pointer: String, than answers: [LearnedFrame]) -> Bool {
        let indexes = Set(answers.map(\.index))
        return evidence.received.contains {
            !isExplained($0) && !indexes.contains($0.index) && $0.value(pointer) != nil
        }
    }
}
