import CTOML

/// Reads TOML text into a ``ConfigurationNode`` tree that knows where everything was written.
package enum TOMLReader {
    /// Largest configuration text, in bytes. A thousand rooms fit; it bounds the cost of a wrong path (a log, a disk
    /// image).
    package static let maxByteCount = 1024 * 1024

    /// Most dots in one line. toml++ bounds the nesting of values but not of dotted keys, and its tables are built and
    /// freed by recursion: `a.a.a.…` a hundred thousand times would overflow the stack.
    static let maxDotsPerLine = 500

    /// Parses a whole document.
    ///
    /// - Throws: the first syntax error with its line and column in `path`.
    static func parse(_ bytes: [UInt8], path: String) throws(ConfigurationProblem) -> ConfigurationNode {
        guard bytes.count <= maxByteCount else {
            throw ConfigurationProblem(
                origin: .path(path), message: "is larger than \(maxByteCount / 1024) KiB, which no configuration needs")
        }
        if let line = lineWithTooManyDots(bytes) {
            throw ConfigurationProblem(
                origin: .file(path: path, line: line, column: 1),
                message: "there are more than \(maxDotsPerLine) dots in this line, which no key needs")
        }
        let document = bytes.withUnsafeBytes { buffer in
            cb_toml_parse(buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
        }
        guard let document else {
            throw ConfigurationProblem(origin: .path(path), message: "cannot be parsed: out of memory")
        }
        defer { cb_toml_free(document) }

        var line: UInt32 = 0
        var column: UInt32 = 0
        if let message = cb_toml_error(document, &line, &column) {
            throw ConfigurationProblem(
                origin: .file(path: path, line: Int(line), column: Int(column)), message: String(cString: message))
        }
        var cursor = Cursor(document: document, path: path)
        return cursor.next()?.node ?? ConfigurationNode(.table([]), origin: .path(path))
    }

    private static func lineWithTooManyDots(_ bytes: [UInt8]) -> Int? {
        var line = 1
        var dots = 0
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                line += 1
                dots = 0
            } else if byte == UInt8(ascii: ".") {
                dots += 1
                if dots > maxDotsPerLine { return line }
            }
        }
        return nil
    }

    private struct Cursor {
        let document: OpaquePointer
        let path: String
        var index = 0

        init(document: OpaquePointer, path: String) {
            self.document = document
            self.path = path
        }

        mutating func next() -> ConfigurationNode.Entry? {
            guard index < cb_toml_node_count(document), let raw = cb_toml_node_at(document, index)?.pointee else {
                return nil
            }
            index += 1
            let content: ConfigurationNode.Content
            switch Int(raw.kind) {
            case CB_TOML_TABLE:
                content = .table(children(raw.child_count))
            case CB_TOML_ARRAY:
                content = .array(children(raw.child_count).map(\.node))
            case CB_TOML_INTEGER: content = .integer(raw.integer)
            case CB_TOML_REAL: content = .real(raw.real)
            case CB_TOML_BOOLEAN: content = .boolean(raw.boolean)
            case CB_TOML_DATE: content = .date(text(raw.text, raw.text_count))
            default: content = .string(text(raw.text, raw.text_count))
            }
            return ConfigurationNode.Entry(
                key: text(raw.key, raw.key_count),
                keyOrigin: .file(path: path, line: Int(raw.key_line), column: Int(raw.key_column)),
                node: ConfigurationNode(
                    content, origin: .file(path: path, line: Int(raw.line), column: Int(raw.column))))
        }

        private mutating func children(_ count: Int) -> [ConfigurationNode.Entry] {
            var entries: [ConfigurationNode.Entry] = []
            entries.reserveCapacity(count)
            for _ in 0..<count {
                guard let entry = next() else { break }
                entries.append(entry)
            }
            return entries
        }

        private func text(_ base: UnsafePointer<CChar>?, _ count: Int) -> String {
            String(decoding: UnsafeRawBufferPointer(start: base, count: count), as: UTF8.self)
        }
    }
}

extension ConfigurationProblem: Error {}
