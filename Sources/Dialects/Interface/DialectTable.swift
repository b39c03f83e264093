/// Every dialect by its configuration name.
public enum DialectTable {
    public struct Row: Sendable {
        public let name: String
        /// Other names that configurations may use.
        public let aliases: [String]
        /// Whether there is an option `base`, the backend's HTTP base: without a slash at its end, and filled in where the
        /// operator does not write it.
        public var takesBase = false
        /// Makes the dialect, or throws a complaint about its options.
        public let make: @Sendable (consuming DialectOptions) throws(DialectOptionError) -> any Dialect
    }

    public static let rows: [Row] = [
        Row(name: "envelope", aliases: ["pixar"]) { options throws(DialectOptionError) in
            try options.finish()
            return EnvelopeDialect()
        },
        Row(name: "jwt-rooms", aliases: [], takesBase: true) { options throws(DialectOptionError) in
            try JWTRoomsDialect(options)
        },
        Row(name: "plainjson", aliases: ["article"], takesBase: true) { options throws(DialectOptionError) in
            try PlainJSONDialect(options)
        },
        Row(name: "typed", aliases: []) { options throws(DialectOptionError) in try TypedDialect(options) },
        Row(name: "swiftchat", aliases: []) { options throws(DialectOptionError) in try SwiftChatDialect(options) },
        Row(name: "directus", aliases: [], takesBase: true) { options throws(DialectOptionError) in
            try DirectusDialect(options)
        },
    ]

    /// The row for a name or an alias, or nil.
    public static func row(named name: String) -> Row? {
        rows.first { $0.name == name || $0.aliases.contains(name) }
    }

    /// The dialect called `name`; nil when there is none.
    ///
    /// - Throws: a complaint about the options.
    public static func dialect(
        named name: String, options: consuming DialectOptions = DialectOptions()
    ) throws(DialectOptionError) -> (any Dialect)? {
        try row(named: name)?.make(options)
    }

    public static var names: [String] { rows.map(\.name) }
}
