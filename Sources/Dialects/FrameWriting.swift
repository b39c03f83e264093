import JSONText

// Members whose names are known when this is compiled. A literal given to `JSONWriter.key` itself counts as a `String`,
// which is escaped anew with every frame.

extension JSONWriter {
    /// A member with a text.
    mutating func member(_ name: StaticString, _ text: String) {
        key(name)
        string(text)
    }

    /// A member with one of the wire's own words, which must need no escapes.
    mutating func member(_ name: StaticString, word: StaticString) {
        key(name)
        string(word)
    }

    /// The name of the member that comes next.
    mutating func name(_ name: StaticString) { key(name) }
}
