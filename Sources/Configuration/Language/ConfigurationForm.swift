import BridgeTypes

/// How one kind of setting is written, read, checked and printed.
///
/// `read` changes the value only when all is well and reports a problem otherwise, so that one pass finds them all.
struct ConfigurationForm<Value>: Sendable {
    /// For "expected …".
    let expected: String
    let shape: ConfigurationShape
    let read: @Sendable (ConfigurationNode, inout Value, inout ConfigurationReader) -> Void
    /// Nil leaves the key out of a printed configuration.
    var write: @Sendable (Value) -> ConfigurationNode?
    /// Sets a value to another; of a table, only what its keys fill.
    var copy: @Sendable (_ from: Value, _ to: inout Value) -> Void = { $1 = $0 }
}

/// The structure below a key; environment variables find their key by it.
indirect enum ConfigurationShape: Sendable {
    case leaf
    /// Several texts in one value.
    case list
    case table([ConfigurationOutline])
    /// Any keys. `dash`: an underscore in a variable's name is a dash in the key, as in header names.
    case map(dash: Bool)
    /// Tables with names of one's own.
    case named([ConfigurationOutline])
    /// Tables in a row, found by the value of `identity` where they have one, else by index.
    case tables([ConfigurationOutline], identity: String?)

    /// The keys below.
    var keys: [ConfigurationOutline] {
        switch self {
        case .leaf, .list, .map: []
        case .table(let keys), .named(let keys), .tables(let keys, _): keys
        }
    }
}

/// What a reload of the configuration does about a key whose value changed.
enum ReloadEffect: Sendable {
    /// The new value is in force at once.
    case live
    /// So it is, and links that are open are opened anew.
    case reconnect
    /// The old value stays in force until a restart.
    case restart

    var about: String {
        switch self {
        case .live: "in force at once"
        case .reconnect: "in force at once; the link is opened anew"
        case .restart: "needs a restart"
        }
    }

    /// For a column of a table.
    var word: String {
        switch self {
        case .live: "at once"
        case .reconnect: "new link"
        case .restart: "restart"
        }
    }
}

/// A key without the field that it fills: its place, its form, and its documentation.
///
/// The example configuration, `chatbridge config explain` and docs/CONFIGURATION.md are made of these.
struct ConfigurationOutline: Sendable {
    let key: String
    /// Keys of one group exclude each other, as `password` and `password_file` do.
    var group: String?
    let shape: ConfigurationShape
    /// The form, for "expected …".
    let expected: String
    /// Nil: as the table in which it stands; of a section: a restart.
    var reload: ReloadEffect?
    /// One line of Markdown: what it sets, its unit, its effect. Values stand in backticks.
    let about: String
    /// The default in words, where it is no value that could be written.
    var usual: String?
    /// A value in TOML, with which the example configuration shows the key, commented out.
    var example: String?
}

extension ConfigurationForm {
    /// A form made from text; `parse` returns nil for text of another form, or throws a sentence of its own.
    static func text(
        _ expected: String, parse: @escaping @Sendable (String) throws(AddressError) -> Value?,
        print: @escaping @Sendable (Value) -> String?
    ) -> Self {
        Self(expected: expected, shape: .leaf) { node, value, reader in
            guard case .string(let raw) = node.content else {
                reader.report(node.origin, "expected \(expected), found \(node.content.kindName)")
                return
            }
            guard let text = reader.string(node) else { return }
            do throws(AddressError) {
                if let parsed = try parse(text) {
                    value = parsed
                } else {
                    // The raw text, because an expanded one may be a secret.
                    reader.report(node.origin, "expected \(expected), found \"\(raw)\"")
                }
            } catch {
                reader.report(node.origin, error.message)
            }
        } write: { value in
            print(value).map { ConfigurationNode(.string($0)) }
        }
    }
}

/// A value with one text form, such as an address.
package protocol ConfigurationText: CustomStringConvertible, Sendable {
    init(parsing text: String) throws(AddressError)
}

extension ConfigurationForm where Value: ConfigurationText {
    static func parsed(_ expected: String) -> Self {
        text(expected) { text throws(AddressError) in
            try Value(parsing: text)
        } print: {
            $0.description
        }
    }
}

// MARK: - Scalars

extension ConfigurationForm where Value == String {
    /// Any string that `check` has no sentence against.
    static func string(_ check: @escaping @Sendable (String) -> String? = { _ in nil }) -> Self {
        text("a string") { text throws(AddressError) in
            if let complaint = check(text) { throw AddressError(complaint) }
            return text
        } print: {
            $0
        }
    }
}

extension ConfigurationForm {
    /// A form of one plain value; `parse` returns nil for a node of another form.
    static func scalar(
        _ expected: String, parse: @escaping @Sendable (ConfigurationNode, inout ConfigurationReader) -> Value?,
        write: @escaping @Sendable (Value) -> ConfigurationNode
    ) -> Self {
        Self(expected: expected, shape: .leaf) { node, value, reader in
            if let parsed = parse(node, &reader) {
                value = parsed
            } else {
                reader.report(node.origin, "expected \(expected), found \(node.found)")
            }
        } write: {
            write($0)
        }
    }
}

extension ConfigurationForm where Value == Bool {
    static var boolean: Self {
        scalar("true or false") { node, reader in
            if case .boolean(let written) = node.content { return written }
            return reader.bareText(node).flatMap { Bool($0) }
        } write: {
            ConfigurationNode(.boolean($0))
        }
    }
}

extension ConfigurationForm where Value == Int {
    static func integer(_ range: ClosedRange<Int>) -> Self {
        scalar("a whole number from \(range.lowerBound) to \(range.upperBound)") { node, reader in
            reader.integer(node).flatMap { range.contains($0) ? $0 : nil }
        } write: {
            ConfigurationNode(.integer(Int64($0)))
        }
    }

    /// Bytes, within `range`.
    static func size(_ range: ClosedRange<Int>) -> Self {
        let bounds = "\(SizeText.format(range.lowerBound)) to \(SizeText.format(range.upperBound))"
        let expected = "a size from \(bounds), such as \"64KiB\""
        return Self(expected: expected, shape: .leaf) { node, value, reader in
            var bytes: Int?
            if case .integer(let written) = node.content {
                bytes = Int(exactly: written)
            } else if case .string = node.content {
                guard let text = reader.string(node) else { return }
                bytes = SizeText.parse(text)
            }
            if let bytes, range.contains(bytes) {
                value = bytes
            } else {
                reader.report(node.origin, "expected \(expected), found \(node.found)")
            }
        } write: {
            ConfigurationNode(.string(SizeText.format($0)))
        }
    }
}

extension ConfigurationForm where Value == Int? {
    /// A number, or nil for 0 and `"off"`.
    static func integerOrOff(_ range: ClosedRange<Int>) -> Self {
        scalar("a whole number from \(range.lowerBound) to \(range.upperBound), or \"off\"") { node, reader in
            switch node.content {
            case .integer(0), .string("off"), .string("0"): .some(nil)
            default: reader.integer(node).flatMap { range.contains($0) ? .some($0) : nil }
            }
        } write: {
            $0.map { ConfigurationNode(.integer(Int64($0))) } ?? ConfigurationNode(.string("off"))
        }
    }
}

extension ConfigurationForm where Value == Double {
    static func number(_ range: ClosedRange<Double>) -> Self {
        scalar("a number from \(NumberText.format(range.lowerBound)) to \(NumberText.format(range.upperBound))") {
            node, reader in
            reader.number(node).flatMap { range.contains($0) ? $0 : nil }
        } write: {
            NumberText.node($0)
        }
    }
}

extension ConfigurationForm where Value == Double? {
    /// Events a second; `"off"` and 0 are no limit. The lower bound prevents a bucket that refills once in hours.
    static var rate: Self {
        scalar("a rate a second from 0.01 to 1000000, or \"off\"") { node, reader in
            if case .string("off") = node.content { return .some(nil) }
            guard let number = reader.number(node) else { return nil }
            if number == 0 { return .some(nil) }
            return (0.01...1_000_000).contains(number) ? .some(number) : nil
        } write: {
            $0.map(NumberText.node) ?? ConfigurationNode(.string("off"))
        }
    }
}

extension ConfigurationForm where Value == Duration {
    /// A duration of at least `minimum`. With a minimum of zero, `"0"` and `"off"` say zero.
    static func duration(atLeast minimum: Duration = .zero) -> Self {
        let bound = minimum == .zero ? "" : " of at least \(DurationText.format(minimum))"
        let form = Self.text("a duration\(bound), such as \"500ms\", \"30s\", \"5m\", \"12h\" or \"7d\"") {
            (text: String) throws(AddressError) -> Duration? in
            guard let duration = DurationText.parse(text), duration >= minimum else { return nil }
            return duration
        } print: {
            DurationText.format($0)
        }
        return minimum == .zero ? form.acceptingZero(.zero) : form
    }

    /// A duration up to `maximum`; `"0"` and `"off"` say zero.
    static func duration(atMost maximum: Duration) -> Self {
        let form = Self.duration()
        return Self(expected: form.expected, shape: form.shape) { node, value, reader in
            var inner = value
            form.read(node, &inner, &reader)
            guard inner <= maximum else {
                return reader.report(node.origin, "is longer than \(DurationText.format(maximum))")
            }
            value = inner
        } write: {
            form.write($0)
        }
    }
}

extension ConfigurationForm where Value == Duration? {
    /// A duration, or nil for `"0"` and `"off"`.
    static var durationOrOff: Self {
        text("a duration such as \"500ms\", \"30s\", \"5m\", \"12h\" or \"7d\", or \"off\"") {
            (text: String) throws(AddressError) -> Duration?? in
            guard let duration = DurationText.parse(text) else { return nil }
            return .some(duration == .zero ? nil : duration)
        } print: {
            $0.map(DurationText.format) ?? "off"
        }.acceptingZero(nil)
    }
}

extension ConfigurationForm {
    /// The same form, also reading TOML's bare 0, which needs no unit.
    fileprivate func acceptingZero(_ zero: Value) -> Self where Value: Sendable {
        let read = self.read
        return Self(
            expected: expected, shape: shape,
            read: { node, value, reader in
                if case .integer(0) = node.content {
                    value = zero
                } else {
                    read(node, &value, &reader)
                }
            }, write: write)
    }
}

extension ConfigurationForm where Value: CaseIterable & RawRepresentable & Sendable, Value.RawValue == String {
    /// One of the enum's raw values.
    static var choice: Self {
        let names = Value.allCases.map(\.rawValue)
        let expected = names.map { "\"\($0)\"" }.joined(separator: " or ")
        return Self(expected: expected, shape: .leaf) { node, value, reader in
            guard case .string = node.content else {
                reader.report(node.origin, "expected \(expected), found \(node.found)")
                return
            }
            guard let text = reader.string(node) else { return }
            if let written = Value(rawValue: text) {
                value = written
            } else {
                let hint = NearestName.hint(for: text, among: Value.allCases.map(\.rawValue))
                reader.report(node.origin, "expected \(expected), found \(node.found)\(hint)")
            }
        } write: {
            ConfigurationNode(.string($0.rawValue))
        }
    }
}

// MARK: - Combinations

extension ConfigurationForm {
    /// The same form for an optional field; nil is left out when printed.
    ///
    /// - Parameter initial: the value to read into where there is none yet; never visible.
    func optional(from initial: Value) -> ConfigurationForm<Value?> where Value: Sendable {
        let (read, write) = (self.read, self.write)
        return ConfigurationForm<Value?>(expected: expected, shape: shape) { node, value, reader in
            var inner = value ?? initial
            let before = reader.problems.count
            read(node, &inner, &reader)
            if reader.problems.count == before { value = inner }
        } write: {
            $0.flatMap(write)
        }
    }

    /// A string that `check` accepts; nil is not printed.
    static func optionalString(_ check: @escaping @Sendable (String) -> String?) -> Self where Value == String? {
        ConfigurationForm<String>.string(check).optional(from: "")
    }

    /// A list of texts that `check` has no sentence against.
    static func texts(of noun: String, check: @escaping @Sendable (String) -> String?) -> Self
    where Value == [String] {
        list(of: noun) { text throws(AddressError) in
            if let complaint = check(text) { throw AddressError(complaint) }
            return text
        } print: {
            $0
        }
    }

    /// A list of values that have a text form.
    static func list<Element: ConfigurationText>(of noun: String) -> Self where Value == [Element] {
        list(of: noun) { text throws(AddressError) in
            try Element(parsing: text)
        } print: {
            $0.description
        }
    }

    /// A list of an enum's raw values.
    ///
    /// - Parameter unknown: the predicate for an unknown one, for messages.
    static func choices<Choice: CaseIterable & RawRepresentable & Sendable>(of noun: String, unknown: String) -> Self
    where Value == [Choice], Choice.RawValue == String {
        list(of: noun) { text throws(AddressError) in
            if let choice = Choice(rawValue: text) { return choice }
            let names = Choice.allCases.map(\.rawValue)
            let hint = NearestName.hint(for: text, among: names)
            throw AddressError("\"\(text)\" \(unknown)\(hint); this version has: \(names.joined(separator: ", "))")
        } print: {
            $0.rawValue
        }
    }

    /// A list of texts. A variable separates them with commas.
    static func list<Element: Sendable>(
        of noun: String, parse: @escaping @Sendable (String) throws(AddressError) -> Element,
        print: @escaping @Sendable (Element) -> String
    ) -> Self where Value == [Element] {
        let expected = "a list of \(noun), such as [\"a\", \"b\"]"
        return Self(expected: expected, shape: .list) { node, value, reader in
            var nodes = node.elements
            if case .string(let text) = node.content, node.origin.layer != .file {
                nodes = text.split(separator: ",").map {
                    ConfigurationNode(.string(String(Trimmed.text($0))), origin: node.origin)
                }
            } else if case .array = node.content {
            } else {
                reader.report(node.origin, "expected \(expected), found \(node.content.kindName)")
                return
            }
            var elements: [Element] = []
            for element in nodes {
                guard let text = reader.string(element) else { continue }
                do throws(AddressError) {
                    elements.append(try parse(text))
                } catch {
                    reader.report(element.origin, error.message)
                }
            }
            value = elements
        } write: { elements in
            ConfigurationNode(.array(elements.map { ConfigurationNode(.string(print($0))) }))
        }
    }

    /// A table with arbitrary keys, in written order. A later layer adds to it and replaces equal keys (compared
    /// case-insensitively).
    static func map<Element: Hashable & Sendable>(
        of noun: String, dash: Bool = false, key: @escaping @Sendable (Element) -> String,
        parse: @escaping @Sendable (_ key: String, _ text: String) throws(MapError) -> Element,
        print: @escaping @Sendable (Element) -> String
    ) -> Self where Value == [Element] {
        let expected = "a table of \(noun), such as { name = \"value\" }"
        return Self(expected: expected, shape: .map(dash: dash)) { node, value, reader in
            guard case .table(let entries) = node.content else {
                reader.report(node.origin, "expected \(expected), found \(node.content.kindName)")
                return
            }
            for entry in entries {
                reader.descend(entry.key, origin: entry.node.origin) { reader in
                    guard let text = reader.string(entry.node) else { return }
                    do throws(MapError) {
                        let element = try parse(entry.key, text)
                        value.removeAll { key($0).lowercased() == entry.key.lowercased() }
                        value.append(element)
                    } catch {
                        switch error {
                        case .key(let message): reader.report(entry.keyOrigin, message)
                        case .value(let message): reader.report(entry.node.origin, message)
                        }
                    }
                }
            }
        } write: { elements in
            .table(elements.map { (key($0), .hiding($0, as: print($0))) }, inline: true)
        }
    }
}

/// Whether a map's key or its value is refused.
enum MapError: Error, Equatable {
    case key(String)
    case value(String)
}

enum Trimmed {
    /// `text` without spaces and tabs at its ends.
    static func text(_ text: Substring) -> Substring {
        var text = text
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}

enum NumberText {
    /// A number without a needless fraction.
    static func format(_ number: Double) -> String {
        Int64(exactly: number).map { "\($0)" } ?? "\(number)"
    }

    @Sendable static func node(_ number: Double) -> ConfigurationNode {
        ConfigurationNode(Int64(exactly: number).map { .integer($0) } ?? .real(number))
    }
}

extension ConfigurationReader {
    /// The whole number at `node`, or nil.
    fileprivate mutating func integer(_ node: ConfigurationNode) -> Int? {
        if case .integer(let written) = node.content { return Int(exactly: written) }
        return bareText(node).flatMap { Int($0) }
    }

    /// The finite number at `node`, or nil.
    fileprivate mutating func number(_ node: ConfigurationNode) -> Double? {
        switch node.content {
        case .integer(let written): return Double(written)
        case .real(let written): return written.isFinite ? written : nil
        default: return bareText(node).flatMap { Double($0) }.flatMap { $0.isFinite ? $0 : nil }
        }
    }
}

extension ConfigurationNode {
    /// The found value for messages: scalars as written, before any interpolation.
    var found: String {
        switch content {
        case .string(let text): "\"\(text)\""
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .boolean(let flag): "\(flag)"
        default: content.kindName
        }
    }
}
