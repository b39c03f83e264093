import JSONText

/// A sent frame with places for what differs from one to the next.
struct TemplateMaker {
    /// `{{…}}` by the pointer of what it replaces.
    var places: [String: String] = [:]
    /// Values that stand there instead.
    var literals: [String: JSONValue] = [:]
    /// Members that are left out when their place is empty.
    var optional: Set<String> = []

    /// The place of an id: a number where the app sent one.
    func place(_ name: String, _ leaf: Leaf) -> String { leaf.value.string == nil ? "{{\(name)|int}}" : "{{\(name)}}" }

    func template(of frame: LearnedFrame, isPrefixed: Bool) -> JSONValue {
        guard isPrefixed, let prefix = frame.json["prefix"]?.string else { return build(frame.json, "") }
        let number = places[Numbering.pointer] ?? frame.text(Numbering.pointer) ?? ""
        var members = [JSONValue.Member("$prefix", .string(prefix + number))]
        if let body = frame.json["body"] { members.append(.init("as", build(body, "/body"))) }
        return .object(members)
    }

    private func build(_ json: JSONValue, _ pointer: String) -> JSONValue {
        if let place = places[pointer] { return .string(place) }
        if let literal = literals[pointer] { return literal }
        switch json {
        case .object(let members):
            return .object(
                members.map { member in
                    let inner = pointer + "/" + LearnedFrame.escaped(member.key)
                    let key = (member.key.hasPrefix("$") ? "$" : "") + member.key
                    return JSONValue.Member(optional.contains(inner) ? key + "?" : key, build(member.value, inner))
                })
        case .array(let elements):
            return .array(elements.enumerated().map { build($0.element, "\(pointer)/\($0.offset)") })
        case .string(let text):
            guard let (inner, how) = LearnedFrame.unwrapped(text) else { return json }
            return .object([.init("$" + how.rawValue, build(inner, pointer))])
        default: return json
        }
    }
}

/// JSON for reading: what fits stays on a line.
struct PrettyJSON {
    private static let width = 110

    static func text(_ json: JSONValue) -> String { lines(json, "", first: 0) + "\n" }

    private static func lines(_ json: JSONValue, _ indent: String, first: Int) -> String {
        let flat = spaced(json)
        if indent.utf8.count + first + flat.utf8.count <= width, !indent.isEmpty { return flat }
        let inner = indent + "  "
        switch json {
        case .object(let members) where !members.isEmpty:
            let parts = members.map { member in
                let key = JSONValue.string(member.key).text + ": "
                return inner + key + lines(member.value, inner, first: key.utf8.count)
            }
            return "{\n" + parts.joined(separator: ",\n") + "\n" + indent + "}"
        case .array(let elements) where !elements.isEmpty:
            return "[\n" + elements.map { inner + lines($0, inner, first: 0) }.joined(separator: ",\n") + "\n" + indent
                + "]"
        default: return flat
        }
    }

    private static func spaced(_ json: JSONValue) -> String {
        switch json {
        case .object(let members):
            "{" + members.map { JSONValue.string($0.key).text + ": " + spaced($0.value) }.joined(separator: ", ") + "}"
        case .array(let elements): "[" + elements.map(spaced).joined(separator: ", ") + "]"
        default: json.text
        }
    }
}
