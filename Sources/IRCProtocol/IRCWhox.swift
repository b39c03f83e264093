/// A WHO with `%`: the requested fields, in the order of the answer.
///
/// Source: IRCv3 WHOX.
public struct IRCWhoxRequest: Hashable, Sendable {
    /// A field, in the order in which RPL_WHOSPCRPL gives them. The raw value is its letter.
    public enum Field: String, CaseIterable, Sendable {
        case token = "t"
        case channel = "c"
        case user = "u"
        case ip = "i"
        case host = "h"
        case server = "s"
        case nick = "n"
        case flags = "f"
        case hopCount = "d"
        case idle = "l"
        case account = "a"
        case opLevel = "o"
        case realname = "r"
    }

    /// The fields asked for, each once, in the order of the answer.
    public var fields: [Field]
    /// One to three digits, given back in the answer; nil when none was sent. An answer with ``Field/token`` gives `0` then.
    public var token: String?
    /// Letters before the `%`, as in a plain WHO: `o` asks for operators only.
    public var flags: String

    /// Reads the second parameter of WHO: `o%tcuhnfdlaor,42`. Unknown letters are ignored.
    ///
    /// - Returns: nil when there is no `%`: the request is a plain WHO.
    public init?(parsing param: String) {
        let bytes = param.utf8
        guard let percent = bytes.firstIndex(of: UInt8(ascii: "%")) else { return nil }
        let rest = bytes[bytes.index(after: percent)...]
        let comma = rest.firstIndex(of: UInt8(ascii: ",")) ?? rest.endIndex
        let letters = rest[..<comma]
        fields = Field.allCases.filter { field in
            field.rawValue.utf8.first.map { letters.contains($0) } ?? false
        }
        let token = comma < rest.endIndex ? rest[rest.index(after: comma)...] : rest[rest.endIndex...]
        if (1...3).contains(token.count), token.allSatisfy(Byte.isDigit) { self.token = String(Substring(token)) }
        flags = String(Substring(bytes[..<percent]))
    }
}
