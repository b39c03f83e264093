import Dialects
import JSONText

/// What a description looks for in frames and does not find there, added up over all of them: for `check --frame`.
///
/// A pointer that leads nowhere is no mistake of the description's form, and an optional field may be absent from any
/// frame. Only the sum tells: a place that no frame has, beside a member with nearly that name.
public struct CustomFindings {
    public enum Finding: Equatable, Sendable {
        /// Most probably a mistake: the frames have something with nearly that name.
        case warning(String)
        /// Absent, and perhaps rightly so.
        case note(String)
    }

    /// The pointer of a condition or field.
    private struct Place: Hashable {
        /// `rule 0`, `ready_when`.
        var user: String
        /// Nil: a condition's.
        var field: String?
        /// The list whose elements the pointer begins at; nil: at the frame.
        var list: String?
        var pointer: JSONPointer
    }

    private struct Tally {
        var lookedCount = 0
        var isFound = false
        /// Nothing else stood in for it, neither another pointer nor a default.
        var isMissed = false
        /// The pointers that frames without it have.
        var others: Set<JSONPointer> = []
    }

    /// Frames without a place whose other pointers are remembered.
    private static let mostFramesCompared = 20

    private let definition: CustomDefinition
    /// The word of a list that is nearest to a word; nil: none is near.
    private let nearest: (_ word: String, _ words: [String]) -> String?
    private var frameCount = 0
    private var matched: Set<String> = []
    private var order: [Place] = []
    private var tallies: [Place: Tally] = [:]
    /// Frames that no rule matched, by the nearest rule and what it misses in them.
    private var unmatched: [(rule: Int, lack: Lack, count: Int)] = []

    public init(_ dialect: CustomDialect, nearest: @escaping (_ word: String, _ words: [String]) -> String?) {
        definition = dialect.definition
        self.nearest = nearest
    }

    /// Takes note of a frame.
    public mutating func look(at frame: UnsafeRawBufferPointer) {
        guard definition.frames == .prefixed else { return lookAtJSON(frame) }
        let json = CustomPrefix.withJSON(of: frame) { Array($0) }
        json.withUnsafeBytes { lookAtJSON($0) }
    }

    private mutating func lookAtJSON(_ frame: UnsafeRawBufferPointer) {
        guard var reader = try? JSONReader(frame, limits: JSONLimits(maxBytes: frame.count)),
            let value = try? reader.readValue(), value.kind == .object || value.kind == .array
        else { return }
        frameCount += 1
        let rules = definition.rules
        View.of(value, rules.pointers) { view in
            if let match = rules.readyMatch { look(at: match, of: "ready_when", view) }
            let holding = rules.rules.indices.filter { rules.rules[$0].match.holds(view.slots) }
            for (index, rule) in rules.rules.enumerated() { look(at: rule.match, of: "rule \(index)", view) }
            for index in holding {
                look(at: rules.rules[index], of: "rule \(index)", view)
                if !rules.rules[index].isFollowed { break }
            }
            if holding.isEmpty { findNearestRule(view) }
        }
        View.of(value, definition.replies.pointers) { view in
            for (index, rule) in definition.replies.rules.enumerated() {
                look(at: rule.match, of: "reply \(index)", view)
            }
        }
    }

    /// The mistakes first.
    public var findings: [Finding] {
        var findings: [Finding] = []
        for (rule, lack, count) in unmatched {
            let frames = count == 1 ? "a frame" : "\(count) frames"
            findings.append(.warning("rule \(rule) comes nearest to \(frames) that no rule matched: \(lack.text)"))
        }
        for place in order {
            guard let tally = tallies[place], !tally.isFound else { continue }
            let (count, hint) = (tally.lookedCount, hint(for: place.pointer, of: place.user, among: tally.others))
            guard tally.isMissed || hint != nil else { continue }
            let sentence: String
            if let field = place.field {
                let (list, ofWhat) = place.list.map { (" of \($0)", "element") } ?? ("", "frame")
                let none =
                    count == 1 ? "which its only \(ofWhat) does not have" : "which none of its \(count) \(ofWhat)s has"
                sentence = "\(place.user) reads \(field) at \(place.pointer.text)\(list), \(none)"
            } else {
                guard !matched.contains(place.user), !isReported(place) else { continue }
                let none = count == 1 ? "the only one has no" : "none of \(count) has"
                sentence = "\(place.user) matched no frame: \(none) \(place.pointer.text)"
            }
            findings.append(hint.map { .warning(sentence + Self.question($0)) } ?? .note(sentence))
        }
        return findings.filter(\.isWarning) + findings.filter { !$0.isWarning }
    }

    private func isReported(_ place: Place) -> Bool {
        unmatched.contains { place.user == "rule \($0.rule)" && place.pointer == $0.lack.pointer }
    }

    // MARK: - Fields

    /// The values of a frame, and of the element that is looked at; the same where there is none.
    private struct View {
        var frame: JSONField
        var frameSlots: CustomPointerTree.Slots
        var frameTree: CustomPointerTree
        var element: JSONField
        var slots: CustomPointerTree.Slots
        var tree: CustomPointerTree
        var list: String?

        static func of(_ frame: JSONField, _ tree: CustomPointerTree, _ body: (View) -> Void) {
            tree.withSlots { slots in
                var scratch = CustomScratch()
                tree.fill(slots, from: frame, &scratch)
                body(
                    View(
                        frame: frame, frameSlots: slots, frameTree: tree, element: frame, slots: slots, tree: tree))
            }
        }

        func forEach(of slot: CustomSlot, _ pointers: CustomPointerTree, _ body: (View) -> Void) {
            guard let found = self[slot] else { return }
            let elements = found.kind == .array ? Array(found.elements) : found.kind == .object ? [found] : []
            for element in elements {
                pointers.withSlots { slots in
                    var scratch = CustomScratch()
                    pointers.fill(slots, from: element, &scratch)
                    var view = self
                    (view.element, view.slots, view.tree) = (element, slots, pointers)
                    view.list = pointer(of: slot).text
                    body(view)
                }
            }
        }

        subscript(slot: CustomSlot) -> JSONField? { (slot.isOfFrame ? frameSlots : slots)[slot.index] }

        func pointer(of slot: CustomSlot) -> JSONPointer { (slot.isOfFrame ? frameTree : tree).pointers[slot.index] }

        func present(besides slot: CustomSlot) -> [JSONPointer] {
            slot.isOfFrame ? frameTree.pointers(in: frame) : tree.pointers(in: element)
        }
    }

    private mutating func look(at rule: CustomRule, of user: String, _ view: View) {
        guard let each = rule.each else { return look(at: rule.fields, of: user, nil, view) }
        record(each.slot, Place(user: user, field: "each", pointer: view.pointer(of: each.slot)), view)
        view.forEach(of: each.slot, each.pointers) { look(at: rule.fields, of: user, nil, $0) }
    }

    private mutating func look(at fields: CustomFields, of user: String, _ outer: String?, _ view: View) {
        for (name, field) in fields.all {
            look(at: field, of: user, outer.map { "\($0).\(name)" } ?? name, isStoodInFor: false, view)
        }
    }

    private mutating func look(
        at field: CustomField, of user: String, _ name: String, isStoodInFor: Bool, _ view: View
    ) {
        func place(_ slot: CustomSlot) -> Place {
            Place(
                user: user, field: name, list: slot.isOfFrame ? nil : view.list, pointer: view.pointer(of: slot))
        }
        switch field {
        case .constant: break
        case .pointer(let slot, _): record(slot, place(slot), isStoodInFor: isStoodInFor, view)
        case .looked(let slot, _, let how):
            record(slot, place(slot), isStoodInFor: isStoodInFor || how.fallback != nil, view)
        case .first(let fields):
            let isAnyFound = fields.contains { isFound($0, view) }
            for field in fields { look(at: field, of: user, name, isStoodInFor: isStoodInFor || isAnyFound, view) }
        case .objects(let slot, let element):
            record(slot, place(slot), isStoodInFor: isStoodInFor, view)
            view.forEach(of: slot, element.pointers) { look(at: element.fields, of: user, name, $0) }
        case .values(let slot, let element):
            record(slot, place(slot), isStoodInFor: isStoodInFor, view)
            view.forEach(of: slot, element.pointers) { view in
                for (_, field) in element.fields.all { look(at: field, of: user, name, isStoodInFor: false, view) }
            }
        }
    }

    private func isFound(_ field: CustomField, _ view: View) -> Bool {
        switch field {
        case .constant: true
        case .pointer(let slot, _), .looked(let slot, _, _), .objects(let slot, _), .values(let slot, _):
            view[slot] != nil
        case .first(let fields): fields.contains { isFound($0, view) }
        }
    }

    private mutating func record(_ slot: CustomSlot, _ place: Place, isStoodInFor: Bool = false, _ view: View) {
        var tally = tallies[place] ?? Tally()
        if tally.lookedCount == 0 { order.append(place) }
        tally.lookedCount += 1
        if view[slot] != nil {
            tally.isFound = true
        } else {
            if !isStoodInFor { tally.isMissed = true }
            if !tally.isFound, tally.lookedCount <= Self.mostFramesCompared {
                tally.others.formUnion(view.present(besides: slot))
            }
        }
        tallies[place] = tally
    }

    // MARK: - Conditions

    private mutating func look(at match: CustomMatch, of user: String, _ view: View) {
        if match.holds(view.slots) { matched.insert(user) }
        for (slot, condition) in match.conditions where condition.wantsValue {
            let slot = CustomSlot(isOfFrame: true, index: slot)
            record(slot, Place(user: user, pointer: view.pointer(of: slot)), view)
        }
    }

    /// The reason why a rule did not match.
    private struct Lack: Equatable {
        var pointer: JSONPointer
        var text: String
        /// A word of the frame is nearly the one that is wanted.
        var isNear: Bool
    }

    /// Notes which rule a frame came nearest to: all of its conditions hold but one, or what is there looks much like
    /// what is wanted.
    private mutating func findNearestRule(_ view: View) {
        let present = Set(view.tree.pointers(in: view.frame))
        var best: (rule: Int, lack: Lack, count: Int)?
        for (index, rule) in definition.rules.rules.enumerated() {
            let lacks = rule.match.conditions.filter { !$0.condition.holds(view.slots[$0.slot]) }
                .map { lack($0.condition, $0.slot, of: "rule \(index)", present, view) }
            let isNear = lacks.allSatisfy(\.isNear)
            guard let first = lacks.first, isNear || lacks.count == 1 && rule.match.conditions.count > 1 else {
                continue
            }
            guard let other = best else {
                best = (index, first, lacks.count)
                continue
            }
            if (isNear ? 0 : 1, lacks.count) < (other.lack.isNear ? 0 : 1, other.count) {
                best = (index, first, lacks.count)
            }
        }
        guard let best else { return }
        if let known = unmatched.firstIndex(where: { $0.rule == best.rule && $0.lack == best.lack }) {
            unmatched[known].count += 1
        } else {
            unmatched.append((best.rule, best.lack, 1))
        }
    }

    private func lack(
        _ condition: CustomCondition, _ slot: Int, of user: String, _ present: Set<JSONPointer>, _ view: View
    ) -> Lack {
        let pointer = view.tree.pointers[slot]
        guard let field = view.slots[slot] else {
            let near = hint(for: pointer, of: user, among: present)
            let hint = near.flatMap { condition.holds(at: $0, in: view.frame, view.tree) ? $0 : nil }
            let text = "\(pointer.text) is not there" + (hint.map(Self.question) ?? "")
            return Lack(pointer: pointer, text: text, isNear: hint != nil)
        }
        let found = FrameText.typeKey(field)
        let isNear = field.kind == .string && condition.words.contains { nearest($0, [found]) != nil }
        let text = "\(pointer.text) is \(field.kind == .string ? Self.quoted(found) : found)\(condition.demand)"
        return Lack(pointer: pointer, text: text, isNear: isNear)
    }

    // MARK: - Pointers that are near

    /// A pointer with one name slightly other, or with one more level, that the same rule does not use.
    private func hint(
        for pointer: JSONPointer, of user: String, among others: Set<JSONPointer>
    ) -> JSONPointer? {
        let used = order.filter { $0.user == user }.map(\.pointer)
        let others = others.subtracting(used).sorted { $0.text < $1.text }
        for index in pointer.tokens.indices.reversed() where pointer.tokens[index].count > 1 {
            let alike = others.filter {
                $0.tokens.count == pointer.tokens.count && $0.differs(from: pointer, at: index)
            }
            guard let name = nearest(pointer.tokens[index], alike.map { $0.tokens[index] }) else { continue }
            return alike.first { $0.tokens[index] == name }
        }
        let deeper = others.filter { $0.tokens.count == pointer.tokens.count + 1 && $0.contains(pointer) }
        return deeper.count == 1 ? deeper.first : nil
    }

    private static func question(_ pointer: JSONPointer) -> String { " (did you mean \(quoted(pointer.text))?)" }

    fileprivate static func quoted(_ text: String) -> String { JSONValue.string(text).text }
}

extension CustomFindings.Finding {
    fileprivate var isWarning: Bool { if case .warning = self { true } else { false } }
}

extension JSONPointer {
    /// Whether the name at `index` is the only difference.
    fileprivate func differs(from other: JSONPointer, at index: Int) -> Bool {
        tokens.indices.allSatisfy { $0 == index || tokens[$0] == other.tokens[$0] }
    }

    /// Whether the other's names stand here in that order, with others between.
    fileprivate func contains(_ other: JSONPointer) -> Bool {
        var rest = other.tokens[...]
        for token in tokens where token == rest.first { rest.removeFirst() }
        return rest.isEmpty
    }
}

extension CustomCondition {
    /// Whether it cannot hold where there is nothing.
    fileprivate var wantsValue: Bool {
        switch self {
        case .equals, .type, .prefix, .exists(true): true
        case .exists(false), .differs: false
        }
    }

    /// The texts that it wants.
    fileprivate var words: [String] {
        if case .equals(let values) = self { values.compactMap(\.string) } else { [] }
    }

    /// Whether it would hold with another pointer.
    fileprivate func holds(at pointer: JSONPointer, in frame: JSONField, _ tree: CustomPointerTree) -> Bool {
        var tree = tree
        let slot = tree.slot(for: pointer)
        return tree.withSlots { slots in
            var scratch = CustomScratch()
            tree.fill(slots, from: frame, &scratch)
            return holds(slots[slot])
        }
    }

    /// What it wants of a value that is there.
    fileprivate var demand: String {
        switch self {
        case .equals(let values): ", not \(values.map(\.text).joined(separator: " or "))"
        case .type(let kind): ", not of type \"\(kind.rawValue)\""
        case .prefix(let bytes):
            " and does not begin with \(CustomFindings.quoted(String(decoding: bytes, as: UTF8.self)))"
        case .exists, .differs: ""
        }
    }
}
