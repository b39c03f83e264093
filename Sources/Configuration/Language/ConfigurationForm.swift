/// How one kind of setting is written, read, checked and printed.
///
/// `read` changes the value only when all is well and reports a problem otherwise, so that one pass finds them all.
struct ConfigurationForm<Value>: Sendable {
    /// For "expected …".
    let expected: String
    let shape: ConfigurationShape
    let read: @Sendable (ConfigurationNode, inout Value, inout ConfigurationReader) -> Void
    /// Nil leaves the key out of a printed configuration.
    let write: @Sendable (Value) -> ConfigurationNode?
}

/// What may lie below a key; how names of environment variables find their place.
indirect enum ConfigurationShape: Sendable {
    case leaf
    /// Several texts in one value.
    case list
    case table([(key: String, shape: ConfigurationShape)])
    /// Any keys. `dash` tells that an underscore of a variable's name is a dash in the key, as in header names.
    case map(dash: Bool)
    /// Tables with names of one's own.
    case named([(key: String, shape: ConfigurationShape)])
    /// Tables in a row, found by the value of `identity` where they have one, else by index.
    case tables([(key: String, shape: ConfigurationShape)], identity: String?)
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
                    // The raw text: what an interpolation brought may be a secret.
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

extension ConfigurationForm where Value == Bool {
    static var boolean: Self {
        Self(expected: "true or false", shape: .leaf) { node, value, reader in
            if case .boolean(let written) = node.content {
                value = written
                return
            }
            switch reader.bareText(node) {
            case "true": value = true
            case "false": value = false
            default: reader.report(node.origin, "expected true or false, found \(node.found)")
            }
        } write: {
            ConfigurationNode(.boolean($0))
        }
    }
}

extension ConfigurationForm where Value == Int {
    static func integer(_ range: ClosedRange<Int>) -> Self {
        let expected = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        return Self(expected: expected, shape: .leaf) { node, value, reader in
            var number: Int?
            if case .integer(let written) = node.content {
                number = Int(exactly: written)
            } else if let text = reader.bareText(node) {
                number = Int(text)
            }
            if let number, range.contains(number) {
                value = number
            } else {
                reader.report(node.origin, "expected \(expected), found \(node.found)")
            }
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

extension ConfigurationForm where Value == Double {
    static func number(_ range: ClosedRange<Double>) -> Self {
        let expected = "a number from \(NumberText.format(range.lowerBound)) to \(NumberText.format(range.upperBound))"
        return Self(expected: expected, shape: .leaf) { node, value, reader in
            if let number = reader.number(node), range.contains(number) {
                value = number
            } else {
                reader.report(node.origin, "expected \(expected), found \(node.found)")
            }
        } write: {
            NumberText.node($0)
        }
    }
}

extension ConfigurationForm where Value == Double? {
    /// Events a second; `"off"` and 0 are no limit. The lower bound keeps a bucket from standing still for hours.
    static var rate: Self {
        let expected = "a rate a second from 0.01 to 1000000, or \"off\""
        return Self(expected: expected, shape: .leaf) { node, value, reader in
            if case .string("off") = node.content {
                value = nil
                return
            }
            guard let number = reader.number(node), number == 0 || (0.01...1_000_000).contains(number) else {
                reader.report(node.origin, "expected \(expected), found \(node.found)")
                return
            }
            value = number == 0 ? nil : number
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
    /// - Parameter initial: what to read into where there is nothing yet; never seen.
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

    /// What `check` has no sentence against; not printed where it is not written.
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

    /// A table with keys of one's own, kept in the order in which they were written. A later layer adds to what is
    /// there and replaces equal keys (whatever their case).
    static func map<Element: Sendable>(
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
            var node = ConfigurationNode(
                .table(
                    elements.map {
                        ConfigurationNode.Entry(
                            key: key($0), keyOrigin: .builtIn, node: ConfigurationNode(.string(print($0))))
                    }))
            node.isInline = true
            return node
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
    /// What was found, for messages: the text as written for scalars, before any interpolation.
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
