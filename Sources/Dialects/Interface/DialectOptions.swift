public import JSONText

/// A dialect's own settings, as the configuration's `options` table says them.
///
/// Reading takes each option by name; ``finish()`` then refuses unread ones, so that a misspelt name is an error and
/// not a setting without effect. It consumes the options: an option read after it could never be set.
public struct DialectOptions: ~Copyable, Sendable {
    private let members: [JSONValue.Member]
    private let path: [String]
    private var known: Set<String> = []

    /// - Parameters:
    ///   - value: an object; everything else counts as an empty one.
    ///   - path: where the object stands, for errors.
    public init(_ value: JSONValue = .object([]), path: [String] = []) {
        members = value.object ?? []
        self.path = path
    }

    public var isEmpty: Bool { members.isEmpty }

    /// The option as it stands; nil when it is absent or null.
    public mutating func value(_ name: String) -> JSONValue? {
        known.insert(name)
        guard let value = members.last(where: { $0.key == name })?.value, !value.isNull else { return nil }
        return value
    }

    public mutating func text(_ name: String) throws(DialectOptionError) -> String? {
        guard let value = value(name) else { return nil }
        guard let text = value.string else { throw error(name, "must be a string") }
        return text
    }

    public mutating func flag(_ name: String) throws(DialectOptionError) -> Bool? {
        guard let value = value(name) else { return nil }
        guard let flag = value.bool else { throw error(name, "must be true or false") }
        return flag
    }

    public mutating func integer(
        _ name: String, in range: ClosedRange<Int64> = Int64.min...Int64.max
    ) throws(DialectOptionError) -> Int64? {
        guard let value = value(name) else { return nil }
        guard let number = value.integer, range.contains(number) else {
            throw error(name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// One of the choices of `type`, by raw value.
    public mutating func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String, of type: Choice.Type
    ) throws(DialectOptionError) -> Choice? where Choice.RawValue == String {
        guard let text = try text(name) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            let choices = Choice.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
            throw error(name, "must be one of \(choices)")
        }
        return choice
    }

    /// The options under `name`, a table of its own; empty when it is absent.
    public mutating func table(_ name: String) throws(DialectOptionError) -> DialectOptions {
        guard let value = value(name) else { return DialectOptions(path: path + [name]) }
        guard value.object != nil else { throw error(name, "must be a table") }
        return DialectOptions(value, path: path + [name])
    }

    /// All names in a table with names of the operator's own. All of them count as known.
    public mutating func names() -> [String] {
        for member in members { known.insert(member.key) }
        return members.map(\.key)
    }

    /// Call after the last option was read.
    ///
    /// - Throws: for the first name that was not asked for.
    public consuming func finish() throws(DialectOptionError) {
        guard let stray = members.first(where: { !known.contains($0.key) }) else { return }
        throw DialectOptionError(path: path + [stray.key], sentence: "unknown option", known: known.sorted())
    }

    public func error(_ name: String, _ sentence: String) -> DialectOptionError {
        DialectOptionError(path: path + [name], sentence: sentence)
    }
}

/// A complaint about a dialect's settings.
public struct DialectOptionError: Error, Equatable, Sendable {
    /// From the options downwards: names of members, and decimal indices of array elements.
    public var path: [String]
    /// The complaint, to be read after the path, without a full stop.
    public var sentence: String
    /// The possible names, where a name is unknown.
    public var known: [String]

    public init(path: [String], sentence: String, known: [String] = []) {
        self.path = path
        self.sentence = sentence
        self.known = known
    }
}
