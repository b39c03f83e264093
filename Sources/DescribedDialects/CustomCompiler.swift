public import Dialects
import JSONText

/// Everything that is wrong with a custom dialect's definition, in the order in which it was found.
public struct CustomDefinitionError: Error, Equatable, Sendable {
    /// At least one. Each path leads from the definition to the culprit.
    public var problems: [DialectOptionError]

    public init(_ problems: [DialectOptionError]) { self.problems = problems }
}

extension DialectOptionError {
    /// The path as a JSON pointer: `/decode/2/when/~1op`.
    public var pointer: String { JSONPointer(tokens: path).text }
}

/// Reads a definition and collects all its faults.
struct CustomCompiler {
    private(set) var problems: [DialectOptionError] = []
    /// Whether a frame begins with something else than JSON.
    private(set) var hasPrefix = false

    mutating func foundPrefix() { hasPrefix = true }

    mutating func report(_ path: [String], _ sentence: String, known: [String] = []) {
        problems.append(DialectOptionError(path: path, sentence: sentence, known: known))
    }

    /// The members of an object, each key at most once; nil for another kind, which is reported.
    mutating func members(_ value: JSONValue, _ path: [String]) -> [JSONValue.Member]? {
        guard let members = value.object else {
            report(path, "must be a table, found \(value.kindName)")
            return nil
        }
        var seen: Set<String> = []
        for member in members where !seen.insert(member.key).inserted {
            report(path + [member.key], "stands here twice")
        }
        return members
    }

    /// The members of an object with names among `known`.
    mutating func members(_ value: JSONValue, _ path: [String], known: [String]) -> JSONTable? {
        guard let members = members(value, path) else { return nil }
        for member in members where !known.contains(member.key) {
            report(path + [member.key], "unknown key", known: known)
        }
        return JSONTable(members: members, path: path)
    }

    mutating func elements(_ value: JSONValue, _ path: [String]) -> [JSONValue] {
        guard let elements = value.array else {
            report(path, "must be a list, found \(value.kindName)")
            return []
        }
        return elements
    }

    mutating func text(_ value: JSONValue, _ path: [String]) -> String? {
        guard let text = value.string else {
            report(path, "must be a string, found \(value.kindName)")
            return nil
        }
        return text
    }

    mutating func choice<Choice: RawRepresentable & CaseIterable>(
        _ value: JSONValue, _ path: [String], of type: Choice.Type
    ) -> Choice? where Choice.RawValue == String {
        guard let text = text(value, path) else { return nil }
        if let choice = Choice(rawValue: text) { return choice }
        let names = Choice.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
        report(path, "\"\(text)\" is none of \(names)")
        return nil
    }

    /// Seconds as a duration.
    mutating func seconds(_ value: JSONValue, _ path: [String], in range: ClosedRange<Double>) -> Duration? {
        guard let number = number(value, path, in: range) else { return nil }
        return .milliseconds(Int64(number * 1000))
    }

    mutating func number(_ value: JSONValue, _ path: [String], in range: ClosedRange<Double>) -> Double? {
        guard let number = value.double, range.contains(number) else {
            report(path, "must be a number from \(Self.plain(range.lowerBound)) to \(Self.plain(range.upperBound))")
            return nil
        }
        return number
    }

    // The same of a member; nil where it is absent, too.

    mutating func text(_ name: String, of table: JSONTable) -> String? {
        table.value(name).flatMap { text($0, table.path(name)) }
    }

    mutating func choice<Choice: RawRepresentable & CaseIterable>(_ name: String, of table: JSONTable) -> Choice?
    where Choice.RawValue == String {
        table.value(name).flatMap { choice($0, table.path(name), of: Choice.self) }
    }

    mutating func seconds(_ name: String, of table: JSONTable, in range: ClosedRange<Double>) -> Duration? {
        table.value(name).flatMap { seconds($0, table.path(name), in: range) }
    }

    mutating func number(_ name: String, of table: JSONTable, in range: ClosedRange<Double>) -> Double? {
        table.value(name).flatMap { number($0, table.path(name), in: range) }
    }

    /// The elements of a list with their paths; none where it is absent.
    mutating func elements(_ name: String, of table: JSONTable) -> [(value: JSONValue, path: [String])] {
        guard let written = table.value(name) else { return [] }
        let path = table.path(name)
        return elements(written, path).enumerated().map { ($0.element, path + ["\($0.offset)"]) }
    }

    private static func plain(_ number: Double) -> String { JSONValue.number(number).text }

    mutating func pointer(_ text: String, _ path: [String]) -> JSONPointer? {
        guard let pointer = JSONPointer(text) else {
            report(path, "\"\(text)\" is no pointer: it begins with \"/\", and \"~\" is written \"~0\", \"/\" \"~1\"")
            return nil
        }
        guard pointer.tokens.count <= CustomPointerTree.maxDepth else {
            report(path, "has more than \(CustomPointerTree.maxDepth) steps")
            return nil
        }
        return pointer
    }
}

/// An object of a definition, with the path to it.
struct JSONTable {
    let members: [JSONValue.Member]
    let path: [String]

    /// The value called `name`; nil when it is absent or null.
    func value(_ name: String) -> JSONValue? {
        guard let value = members.last(where: { $0.key == name })?.value, !value.isNull else { return nil }
        return value
    }

    func path(_ name: String) -> [String] { path + [name] }
}

extension JSONValue {
    /// The name of its kind in complaints.
    var kindName: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .integer, .double, .literal: "a number"
        case .string: "a string"
        case .array: "a list"
        case .object: "a table"
        }
    }

    /// Equality regardless of the order of members; strings by code points.
    func means(_ other: JSONValue) -> Bool {
        switch (self, other) {
        case (.string(let a), .string(let b)): return a.utf8.elementsEqual(b.utf8)
        case (.array(let a), .array(let b)): return a.count == b.count && zip(a, b).allSatisfy { $0.means($1) }
        case (.object(let a), .object(let b)):
            return a.count == b.count && a.allSatisfy { x in other[x.key].map { x.value.means($0) } ?? false }
        default: return self == other
        }
    }
}
