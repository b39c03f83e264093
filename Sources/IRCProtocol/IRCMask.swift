/// A pattern for nicks, sources and channel names: `*` stands for any bytes, `?` for one, and letters match without regard
/// to ASCII case.
///
/// Source: modern.ircdocs.horse, "Wildcard Expressions".
public struct IRCMask: Sendable, Equatable {
    /// As it was given.
    public let text: String
    private let pattern: [UInt8]
    private let casemapping: IRCCasemapping

    /// Runs of `*` count as one, so that no pattern is slow.
    public init(_ text: String, casemapping: IRCCasemapping = .ascii) {
        self.text = text
        self.casemapping = casemapping
        var pattern: [UInt8] = []
        for byte in casemapping.fold(text).utf8 where byte != UInt8(ascii: "*") || pattern.last != byte {
            pattern.append(byte)
        }
        self.pattern = pattern
    }

    /// Equal for masks that the same names fit.
    public var key: String { String(decoding: pattern, as: UTF8.self) }

    /// Masks are equal when the same names fit both.
    public static func == (a: IRCMask, b: IRCMask) -> Bool { a.pattern == b.pattern }

    /// Whether the text holds a wildcard: else it is a plain name.
    public var isPattern: Bool { pattern.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") } }

    /// Takes time with the product of both lengths at worst, and those are bounded by a line.
    public func matches(_ name: String) -> Bool {
        var folded = casemapping.fold(name)
        return folded.withUTF8 { matches($0) }
    }

    private func matches(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        var at = 0
        var place = 0
        // The place to go on from when the bytes after the last star do not fit.
        var star: (place: Int, at: Int)?
        while at < name.count {
            if place < pattern.count, pattern[place] == UInt8(ascii: "*") {
                star = (place, at)
                place += 1
            } else if place < pattern.count, pattern[place] == UInt8(ascii: "?") || pattern[place] == name[at] {
                place += 1
                at += 1
            } else if let known = star {
                star = (known.place, known.at + 1)
                place = known.place + 1
                at = known.at + 1
            } else {
                return false
            }
        }
        while place < pattern.count, pattern[place] == UInt8(ascii: "*") { place += 1 }
        return place == pattern.count
    }

    /// A mask for a ban list in its full form: `bob` is `bob!*@*`, `bob!x` is `bob!x@*`, `x@host` is `*!x@host`.
    ///
    /// Source: modern.ircdocs.horse, "Ban Channel Mode".
    public static func hostmask(_ text: String) -> String {
        let hasBang = text.utf8.contains(UInt8(ascii: "!"))
        let hasAt = text.utf8.contains(Byte.at)
        switch (hasBang, hasAt) {
        case (true, true): return text
        case (true, false): return text + "@*"
        case (false, true): return "*!" + text
        case (false, false): return text + "!*@*"
        }
    }
}
