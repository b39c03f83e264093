import JSONText

/// The frames of a recording, and what one says of another.
struct Evidence {
    let recording: Recording
    let isPrefixed: Bool
    /// A received one, where the others have nothing but JSON; nil: there is none.
    let frameWithoutJSON: String?
    /// Nil: no frame is answered by its number.
    let numbering: Numbering?
    /// The list of rows in events whose only element is a message; nil: messages are in no list.
    let row: String?
    let received: [LearnedFrame]
    let sent: [LearnedFrame]
    /// The place that says what a received frame is; nil: there is none.
    let kind: String?
    /// The room's own name tells no kind of frame.
    private(set) var room: String?

    mutating func isIn(_ room: String?) { self.room = room }

    init(_ recording: Recording) {
        self.recording = recording
        let incoming = recording.frames.filter { !$0.isSent }
        let bare = incoming.filter { !"{[".utf8.contains($0.text.utf8.first ?? 0) }
        let isPrefixed = bare.count * 2 > incoming.count
        self.isPrefixed = isPrefixed
        frameWithoutJSON = isPrefixed ? nil : bare.first?.text
        let numbering = isPrefixed ? Numbering(recording.frames) : nil
        self.numbering = numbering
        var frames = recording.frames.enumerated().compactMap {
            LearnedFrame($0.element, index: $0.offset, isPrefixed: isPrefixed, numbering)
        }
        row = Self.row(of: frames.filter { !$0.isSent })
        let sentRow = Self.row(of: frames.filter(\.isSent))
        for index in frames.indices {
            if let row = frames[index].isSent ? sentRow : row { frames[index].take(row: row) }
        }
        received = frames.filter { !$0.isSent }
        sent = frames.filter(\.isSent)
        kind = Self.kind(of: received)
    }

    /// The list in which the texts are that a person was asked to say; nil: they are in none.
    private static func row(of frames: [LearnedFrame]) -> String? {
        for mark in [LearnMark.other, LearnMark.own, LearnMark.reply] {
            let found = frames.filter { $0.has(mark) }
            let rows = found.compactMap { frame in
                frame.leaves.first { $0.value.string == mark && $0.list != nil && !$0.inner.isEmpty }?.list
            }
            // One's own may come back in an answer as well, which is about no other person's messages.
            if let row = rows.first, rows.count == found.count || mark != LearnMark.other { return row }
            if !found.isEmpty { return nil }
        }
        return nil
    }

    /// Whether the texts that a person was asked to say are there.
    var hasMarks: Bool {
        received.contains { frame in LearnMark.all.contains { frame.has($0) } }
    }

    /// What a frame says that it is.
    func kind(of frame: LearnedFrame) -> String? { kind.flatMap { frame.text($0) } }

    /// The place whose value sorts frames: there in most, a word, few different ones, and called so.
    private static func kind(of frames: [LearnedFrame]) -> String? {
        var places: [String: (count: Int, values: Set<String>, key: String)] = [:]
        for frame in frames {
            for leaf in frame.single {
                guard case .string(let text) = leaf.value, Words.isWord(text) || leaf.key == "prefix" else { continue }
                let isOther = [Words.people, Words.names, Words.rooms, Words.texts, Words.personIDs].contains {
                    $0.contains(leaf.key)
                }
                if isOther, !Words.kinds.contains(leaf.key) { continue }
                places[leaf.pointer, default: (0, [], leaf.key)].count += 1
                places[leaf.pointer]?.values.insert(text)
            }
        }
        func score(_ pointer: String) -> Double {
            guard let place = places[pointer] else { return 0 }
            let depth = pointer.utf8.count { $0 == UInt8(ascii: "/") }
            let isTuple = pointer.utf8.last.map { "0123456789".utf8.contains($0) } == true
            let name = Words.kinds.contains(place.key) ? 5.0 : isTuple ? 4 : 0
            let spread =
                place.values.count == 1
                ? -4.0 : place.values.count > max(frames.count / 2, 8) ? -6 : Double(min(place.values.count, 6)) * 0.7
            return Double(place.count) / Double(max(frames.count, 1)) * 10 + name - Double(depth) * 2 + spread
        }
        // Of a tuple the last word of few: `[ref, join, topic, event, payload]`.
        let best = places.keys.sorted().max { score($0) < score($1) }
        return best.flatMap { score($0) > 6 ? $0 : nil }
    }

    /// Received frames of a kind that is called so.
    func received(called stems: [String], but not: [String] = []) -> [LearnedFrame] {
        received.filter { frame in
            let words = words(of: frame)
            return words.contains { Words.have($0, stems) } && !words.contains { Words.have($0, not) }
        }
    }

    /// What a frame says that it is, outside of its row: in one place, or in several such as `type` and `event`.
    func words(of frame: LearnedFrame) -> [String] {
        frame.single.compactMap { leaf in
            leaf.pointer == kind || isKind(leaf) ? leaf.value.string : nil
        }
    }

    /// Whether a word says what a frame is, apart from the place that all frames have.
    func isKind(_ leaf: Leaf) -> Bool {
        Words.kinds.contains(leaf.key) && leaf.names.count == 1 && leaf.value.string.map(Words.isWord) == true
    }

    /// Whether the conditions of a rule hold for a frame.
    func matches(_ frame: LearnedFrame, _ conditions: JSONValue) -> Bool {
        (conditions.object ?? []).allSatisfy { member in
            let found = frame.value(member.key)
            switch member.value {
            case .object(let conditions):
                guard let begin = conditions.first(where: { $0.key == "prefix" })?.value.string else {
                    return found != nil
                }
                // The number is a part of the prefix there.
                return found?.string?.hasPrefix(begin) == true && frame.value(Numbering.pointer) != nil
            case .array(let values): return found.map { values.contains($0) } ?? false
            default: return found == member.value
            }
        }
    }

    /// Sent frames that have one of the words as a value or a name.
    func sent(called stems: [String], but not: [String] = []) -> [LearnedFrame] {
        sent.filter { frame in
            func matches(_ stems: [String]) -> Bool {
                frame.single.contains { leaf in
                    leaf.value.string.map { Words.isWord($0) && Words.have($0, stems) } ?? false
                }
            }
            return matches(stems) && !matches(not)
        }
    }

    /// Whether a sent frame other than `frame` names the value: then it is an id, and no accident.
    func isReferenced(_ text: String, besides frame: LearnedFrame? = nil) -> Bool {
        sent.contains { other in
            other.index != frame?.index && other.leaves.contains { $0.text == text }
        }
    }

    // MARK: - Conditions

    /// What tells `wanted` from the other received frames.
    func conditions(_ wanted: [LearnedFrame], exists: [String] = []) -> JSONValue {
        guard let first = wanted.first else { return .object([]) }
        let indexes = Set(wanted.map(\.index))
        var rest = received.filter { !indexes.contains($0.index) }
        var members: [JSONValue.Member] = []
        let number = exists.contains(Numbering.pointer) ? nil : self.number(of: wanted)
        if let number { rest = rest.filter { $0.text(Numbering.pointer) == number } }
        if let kind, wanted.allSatisfy({ $0.value(kind) != nil }) {
            var values: [JSONValue] = []
            for frame in wanted {
                if let value = frame.value(kind), !values.contains(value) { values.append(value) }
            }
            members.append(.init(kind, values.count == 1 ? values[0] : .array(values)))
            rest = rest.filter { frame in frame.value(kind).map { values.contains($0) } ?? false }
        }
        var candidates: [(pointer: String, value: JSONValue)] = []
        for leaf in first.single where leaf.pointer != kind {
            // In a tuple a place is a name.
            let isName = Words.kinds.contains(leaf.key) || leaf.names.isEmpty || leaf.names == ["body"]
            let isWord: Bool =
                switch leaf.value {
                case .string(let text): isName && Words.isWord(text) && text != room
                case .bool: true
                default: false
                }
            if isWord, wanted.allSatisfy({ $0.value(leaf.pointer) == leaf.value }) {
                candidates.append((leaf.pointer, leaf.value))
            }
        }
        candidates += exists.map { ($0, .object([.init("exists", .bool(true))])) }
        while !rest.isEmpty, members.count < 5 {
            func left(_ candidate: (pointer: String, value: JSONValue)) -> [LearnedFrame] {
                rest.filter { frame in
                    let found = frame.value(candidate.pointer)
                    return candidate.value.object != nil ? found != nil : found == candidate.value
                }
            }
            guard let best = candidates.min(by: { left($0).count < left($1).count }), left(best).count < rest.count
            else { break }
            members.append(.init(best.pointer, best.value))
            rest = left(best)
        }
        if members.isEmpty {
            members = exists.map { .init($0, .object([.init("exists", .bool(true))])) }
        }
        return .object(withNumbers(members, wanted, number))
    }

    /// The number that all frames have; nil: none, or others.
    private func number(of frames: [LearnedFrame]) -> String? {
        let numbers = Set(frames.map { $0.text(Numbering.pointer) })
        return numbers.count == 1 ? numbers.first.flatMap(\.self) : nil
    }

    /// The conditions as a description has them, in which the number is part of the prefix.
    private func withNumbers(
        _ members: [JSONValue.Member], _ wanted: [LearnedFrame], _ number: String?
    ) -> [JSONValue.Member] {
        guard let numbering, wanted.allSatisfy({ $0.text(Numbering.pointer) != nil }) else { return members }
        let prefix: JSONValue =
            number.map { .string(numbering.received + $0) }
            ?? .object([.init("prefix", .string(numbering.received))])
        return [.init("/prefix", prefix)] + members.filter { !["/prefix", Numbering.pointer].contains($0.key) }
    }
}

// MARK: - Places with a meaning

/// Who the app is, as its own messages say.
struct OwnPerson {
    var ids: Set<String> = []
    var names: Set<String> = []
}

/// Where the fields of an event are, with reasons.
struct LearnedFields {
    private(set) var members: [JSONValue.Member] = []
    private(set) var reasons: [String] = []
    private(set) var pointers: [String: String] = [:]

    mutating func set(_ name: String, _ pointer: String, _ why: String) {
        set(name, .string(pointer), why)
        pointers[name] = pointer
    }

    mutating func set(_ name: String, _ value: JSONValue, _ why: String) {
        members.append(.init(name, value))
        if !why.isEmpty { reasons.append("\(name): \(why)") }
    }

    var json: JSONValue { .object(members) }
    var used: Set<String> { Set(pointers.values) }
}

/// Frames, or rows of a list, that are of one kind.
struct LearnedGroup {
    var frames: [LearnedFrame]

    /// Single plain values that nearly all have.
    var common: [Leaf] {
        any.filter { leaf in frames.count { $0.value(leaf.pointer) != nil } * 5 >= frames.count * 4 }
    }

    /// Single plain values that some have.
    var any: [Leaf] {
        var seen: Set<String> = []
        return frames.flatMap(\.single).filter { seen.insert($0.pointer).inserted }
    }

    /// The best of `leaves` by the place of their name in `names`.
    static func best(_ leaves: [Leaf], _ names: [String]) -> Leaf? {
        leaves.filter { names.contains($0.key) }.min {
            (names.firstIndex(of: $0.key) ?? 0, $0.pointer.utf8.count) < (
                names.firstIndex(of: $1.key) ?? 0, $1.pointer.utf8.count
            )
        }
    }

    /// A person's id and name.
    func person(besides used: Set<String>) -> (id: Leaf?, name: Leaf?) {
        let leaves = any.filter { !used.contains($0.pointer) && ($0.text?.utf8.count ?? 0) > 0 }
        func isOfPerson(_ leaf: Leaf) -> Bool {
            leaf.names.dropLast().contains { Words.people.contains($0) } || Words.people.contains(leaf.key)
                || Words.personIDs.dropFirst().contains(leaf.key) && leaf.key != "key"
                || Words.names.contains(leaf.key) && leaf.key != "label" && leaf.key != "name"
        }
        // What most frames have goes before what only some have.
        let usual = Set(common.map(\.pointer))
        let all = leaves.filter(isOfPerson)
        let people = all.contains { usual.contains($0.pointer) } ? all.filter { usual.contains($0.pointer) } : all
        let name = Self.best(
            people.filter { $0.value.string != nil && !Self.looksMade($0.text ?? "") }, Words.names)
        let id = Self.best(
            people.filter { leaf in
                leaf.pointer != name?.pointer
                    && (leaf.names.dropLast().contains { Words.people.contains($0) }
                        || leaf.key != "id" && leaf.key != "key")
            }, Words.personIDs + Words.people)
        guard name != nil || id != nil else {
            let made = Self.best(people, Words.people)
            return (made, nil)
        }
        return (id, name)
    }

    /// Places with one value in frames of several people.
    func sharedPlaces(byAllOf sender: String) -> Set<String> {
        func values(_ pointer: String) -> Set<String?> { Set(frames.map { $0.text(pointer) }) }
        guard values(sender).subtracting([nil]).count > 1 else { return [] }
        return Set(common.map(\.pointer).filter { values($0).count == 1 })
    }

    /// Numbers, and ids that a program made.
    static func looksMade(_ text: String) -> Bool {
        let digits = text.utf8.count { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return text.utf8.count >= 20 && digits > 4 && !text.contains(" ") || digits == text.utf8.count
    }

    /// A time, and how it is read; `at` is when the frame came.
    func time(besides used: Set<String>) -> (leaf: Leaf, reading: String?)? {
        func reading(_ leaf: Leaf, _ at: Int64?) -> String?? {
            let isNamed = Words.times.contains(leaf.key)
            if let text = leaf.value.string {
                let bytes = Array(text.utf8)
                guard bytes.count >= 16, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-") else {
                    return nil
                }
                return .some(nil)
            }
            guard let number = leaf.value.double else { return nil }
            if let at, number > 3e8, number < 1.2e9, abs((number + 978_307_200) * 1000 - Double(at)) < 86_400_000 {
                return .some("time:reference")
            }
            if isNamed, at == nil, number > 6e8, number < 1e9 { return .some("time:reference") }
            guard (1e9...5e9).contains(number) || (1e12...5e12).contains(number) else { return nil }
            return isNamed || at.map { abs((number > 1e11 ? number : number * 1000) - Double($0)) < 86_400_000 } == true
                ? .some(nil) : nil
        }
        let found = any.filter { !used.contains($0.pointer) }.compactMap { leaf in
            reading(leaf, frames.first?.at).map { (leaf: leaf, reading: $0) }
        }
        return found.min { rank($0.leaf) < rank($1.leaf) }
    }

    private func rank(_ leaf: Leaf) -> Int { Words.times.firstIndex(of: leaf.key) ?? Words.times.count }
}
