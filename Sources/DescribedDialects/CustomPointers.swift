import JSONText
import WireBytes

// Pointers into frames. All pointers of a definition are one tree; a frame is walked once along it, and the values lie
// in numbered slots. Pointers are parsed once, and other parts of the frame are skipped.

/// Where a pointer's value lies after the walk.
struct CustomSlot: Hashable, Sendable {
    /// From the frame; else from the element of the innermost `each`.
    var isOfFrame: Bool
    var index: Int
}

/// How a string is replaced by the JSON inside it.
enum CustomUnwrap: String, Sendable, CaseIterable {
    case jsonString = "jsonstring"
    case base64JSON = "base64json"
}

/// The pointers that begin at one place, as a tree of names.
struct CustomPointerTree: Sendable {
    /// Most names in one pointer: walking recurses once for each.
    static let maxDepth = 64

    /// One name on the way, ready to be compared.
    private struct Step: Sendable {
        let text: String
        let bytes: [UInt8]
        /// The name as a place in an array.
        let index: Int?
        let node: Int

        init(_ text: String, node: Int) {
            self.text = text
            bytes = Array(text.utf8)
            index = JSONPointer(tokens: [text]).arrayIndex
            self.node = node
        }

        @inline(__always)
        func matches(_ key: JSONField) -> Bool {
            // Any escape makes a name longer than it is.
            key.byteCount >= bytes.count && bytes.withUnsafeBufferPointer { key.equals($0) }
        }
    }

    private struct Node: Sendable {
        var steps: [Step] = []
        var slot: Int?
        var unwrap: CustomUnwrap?
        /// Every slot below and here, for a member that occurs again.
        var slotsBelow: [Int] = []
        var lastIndex = -1

        /// Whether the value itself is of no interest.
        var isOnlyPassed: Bool { slot == nil && unwrap == nil && !steps.isEmpty }
    }

    private var nodes = [Node()]
    /// By slot.
    private(set) var pointers: [JSONPointer] = []
    var slotCount: Int { pointers.count }

    /// The slot of the value at `pointer`.
    mutating func slot(for pointer: JSONPointer) -> Int {
        let path = nodePath(pointer)
        let node = path.last ?? 0
        if let slot = nodes[node].slot { return slot }
        let slot = slotCount
        pointers.append(pointer)
        nodes[node].slot = slot
        for node in path { nodes[node].slotsBelow.append(slot) }
        return slot
    }

    /// Replaces the string at `pointer` by the JSON inside it.
    mutating func unwrap(_ pointer: JSONPointer, _ how: CustomUnwrap) {
        let node = nodePath(pointer).last ?? 0
        nodes[node].unwrap = how
    }

    /// The nodes from the root to the pointer's end; new ones where there are none.
    private mutating func nodePath(_ pointer: JSONPointer) -> [Int] {
        var path = [0]
        var at = 0
        for token in pointer.tokens {
            if let step = nodes[at].steps.first(where: { $0.text.utf8.elementsEqual(token.utf8) }) {
                at = step.node
            } else {
                let step = Step(token, node: nodes.count)
                nodes.append(Node())
                nodes[at].steps.append(step)
                nodes[at].lastIndex = max(nodes[at].lastIndex, step.index ?? -1)
                at = step.node
            }
            path.append(at)
        }
        return path
    }

    // MARK: - Walking

    typealias Slots = UnsafeMutableBufferPointer<JSONField?>

    /// Calls `body` with slots that are empty.
    func withSlots<R>(_ body: (Slots) -> R) -> R {
        withUnsafeTemporaryAllocation(of: JSONField?.self, capacity: max(slotCount, 1)) { slots in
            slots.initialize(repeating: nil)
            return body(slots)
        }
    }

    /// Walks a whole document, which the caller has bounded already.
    ///
    /// - Returns: whether it is an object or an array, possibly one inside a string.
    func fill(
        _ slots: Slots, from document: UnsafeRawBufferPointer, _ scratch: inout CustomScratch
    ) throws(JSONError) -> Bool {
        var reader = try JSONReader(document, limits: JSONLimits(maxBytes: document.count))
        if nodes[0].slot == nil, nodes[0].unwrap == nil {
            // The usual case: the outermost container is walked while it is checked.
            if try reader.enterObject() {
                try walk(&reader, 0, slots, &scratch)
                try reader.finish()
                return true
            }
            if try reader.enterArray() {
                var index = 0
                while let element = try reader.nextElement() {
                    self.element(index, element, of: 0, slots, &scratch)
                    index += 1
                }
                try reader.finish()
                return true
            }
        }
        let value = try reader.readValue()
        try reader.finish()
        let outermost = visit(value, 0, slots, &scratch)
        return outermost.kind == .object || outermost.kind == .array
    }

    /// Walks the rest of an object that the reader has entered. Objects that are only on the way to something are entered
    /// in turn, so that they are not read twice.
    private func walk(
        _ reader: inout JSONReader, _ node: Int, _ slots: Slots, _ scratch: inout CustomScratch
    ) throws(JSONError) {
        while let key = try reader.nextKey() {
            guard let child = child(of: node, key) else {
                _ = try reader.readValue()
                continue
            }
            clear(child, slots)
            if nodes[child].isOnlyPassed, try reader.enterObject() {
                try walk(&reader, child, slots, &scratch)
            } else {
                visit(try reader.readValue(), child, slots, &scratch)
            }
        }
    }

    /// Walks one element; the slots must be empty.
    func fill(_ slots: Slots, from element: JSONField, _ scratch: inout CustomScratch) {
        _ = visit(element, 0, slots, &scratch)
    }

    @discardableResult
    private func visit(_ value: JSONField, _ node: Int, _ slots: Slots, _ scratch: inout CustomScratch) -> JSONField {
        var value = value
        if let how = nodes[node].unwrap, let inner = scratch.unwrapped(value, how) { value = inner }
        if let slot = nodes[node].slot { slots[slot] = value }
        guard !nodes[node].steps.isEmpty else { return value }
        switch value.kind {
        case .object:
            for (key, value) in value.members {
                guard let child = child(of: node, key) else { continue }
                clear(child, slots)
                visit(value, child, slots, &scratch)
            }
        case .array where nodes[node].lastIndex >= 0:
            var index = 0
            for element in value.elements {
                self.element(index, element, of: node, slots, &scratch)
                index += 1
                if index > nodes[node].lastIndex { break }
            }
        default: break
        }
        return value
    }

    /// The node below `node` that the name leads to.
    @inline(__always)
    private func child(of node: Int, _ key: JSONField) -> Int? {
        for index in nodes[node].steps.indices where nodes[node].steps[index].matches(key) {
            return nodes[node].steps[index].node
        }
        return nil
    }

    /// The last of members with one name counts, with all that is below.
    @inline(__always)
    private func clear(_ node: Int, _ slots: Slots) {
        for index in nodes[node].slotsBelow.indices { slots[nodes[node].slotsBelow[index]] = nil }
    }

    private func element(
        _ index: Int, _ value: JSONField, of node: Int, _ slots: Slots, _ scratch: inout CustomScratch
    ) {
        guard index <= nodes[node].lastIndex else { return }
        for step in nodes[node].steps where step.index == index { visit(value, step.node, slots, &scratch) }
    }
}

extension CustomPointerTree {
    /// Elements of an array that ``pointers(in:)`` names; the others are of the same kind.
    private static let mostElements = 8

    /// The pointers to all values in `value`, strings unwrapped as in a walk; for reports.
    func pointers(in value: JSONField) -> [JSONPointer] {
        var scratch = CustomScratch()
        var found: [JSONPointer] = []
        collect(value, 0, [], &scratch, &found)
        return found
    }

    private func collect(
        _ value: JSONField, _ node: Int?, _ tokens: [String], _ scratch: inout CustomScratch,
        _ found: inout [JSONPointer]
    ) {
        var value = value
        if let how = node.flatMap({ nodes[$0].unwrap }), let inner = scratch.unwrapped(value, how) { value = inner }
        if !tokens.isEmpty { found.append(JSONPointer(tokens: tokens)) }
        guard tokens.count < Self.maxDepth else { return }
        for (key, member) in value.members {
            let inner = node.flatMap { child(of: $0, key) }
            collect(member, inner, tokens + [key.string ?? key.rawText], &scratch, &found)
        }
        for (index, element) in value.elements.enumerated().prefix(Self.mostElements) {
            let inner = node.flatMap { node in nodes[node].steps.first { $0.index == index }?.node }
            collect(element, inner, tokens + ["\(index)"], &scratch, &found)
        }
    }
}

/// Owns the bytes of unwrapped strings while a frame is read.
struct CustomScratch: ~Copyable {
    private var buffers: [UnsafeMutableRawBufferPointer] = []

    deinit { for buffer in buffers { buffer.deallocate() } }

    /// The JSON inside a string; nil for other values and unusable strings.
    mutating func unwrapped(_ field: JSONField, _ how: CustomUnwrap) -> JSONField? {
        guard let text = field.string else { return nil }
        let bytes: [UInt8]
        switch how {
        case .jsonString: bytes = Array(text.utf8)
        case .base64JSON:
            guard let decoded = Base64.decode(text) ?? Base64.decodeURLSafe(text) else { return nil }
            bytes = decoded
        }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(bytes.count, 1), alignment: 1)
        buffer.copyBytes(from: bytes)
        buffers.append(buffer)
        do throws(JSONError) {
            var reader = try JSONReader(UnsafeRawBufferPointer(rebasing: buffer[..<bytes.count]))
            let value = try reader.readValue()
            try reader.finish()
            return value
        } catch {
            return nil
        }
    }
}

extension JSONPointer {
    /// The last name as a place in an array: digits without a leading zero.
    fileprivate var arrayIndex: Int? {
        guard let token = tokens.last, !token.isEmpty, token.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }),
            token.utf8.count == 1 || token.utf8.first != UInt8(ascii: "0")
        else { return nil }
        return Int(token)
    }
}
