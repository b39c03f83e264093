import ChatModel
import JSONText

// Ids, names and times as all dialects read them. Backends differ in their spelling, and a strict relay would lose
// messages over it.

/// Ids and names out of JSON.
package enum FrameText {
    /// Longest type value in the log, in code points. No dialect has one half as long.
    static let maxTypeKeyLength = 64

    /// An id: a string that is not empty, or a number in decimal digits, all of them. Nil for everything else.
    package static func id(_ field: JSONField?) -> ChatID? {
        guard let field else { return nil }
        switch field.kind {
        case .string: return field.isEmptyString ? nil : string(field)
        case .integer where !field.isMinusZero: return field.withRawBytes { ChatID(utf8: $0) }
        default: return number(field).map { ChatID($0) }
        }
    }

    /// The same as text, without looking for a UUID in it: for rooms and references.
    package static func name(_ field: JSONField?) -> String? {
        guard let field else { return nil }
        guard field.kind == .string else { return number(field) }
        return field.isEmptyString ? nil : field.string
    }

    /// A number in decimal digits, all of them.
    private static func number(_ field: JSONField) -> String? {
        switch field.kind {
        case .integer:
            // As it is written: JSON knows one spelling of every whole number, but for the zero.
            return field.isMinusZero ? "0" : field.withRawBytes(copied)
        case .decimal:
            guard let value = field.double else { return nil }
            if let whole = JSONField.wholeNumber(value) { return String(whole) }
            return value.description
        case .string, .object, .array, .true, .false, .null: return nil
        }
    }

    /// Well-formed UTF-8 as text.
    private static func copied(_ bytes: UnsafeRawBufferPointer) -> String {
        String(unsafeUninitializedCapacity: bytes.count) { out in
            UnsafeMutableRawBufferPointer(out).copyMemory(from: bytes)
            return bytes.count
        }
    }

    /// Two names with a blank between them; nil when one of them is no string or empty, or has escapes.
    static func joinedPlain(_ first: JSONField, _ second: JSONField) -> String? {
        guard first.isPlainString, second.isPlainString, first.byteCount > 0, second.byteCount > 0 else { return nil }
        return first.withRawBytes { first in
            second.withRawBytes { second in
                String(unsafeUninitializedCapacity: first.count + 1 + second.count) { out in
                    let raw = UnsafeMutableRawBufferPointer(out)
                    raw.copyMemory(from: first)
                    raw[first.count] = UInt8(ascii: " ")
                    UnsafeMutableRawBufferPointer(rebasing: raw[(first.count + 1)...]).copyMemory(from: second)
                    return first.count + 1 + second.count
                }
            }
        }
    }

    /// Most ids are UUIDs without escapes: no string is made of them.
    private static func string(_ field: JSONField) -> ChatID? {
        if field.isPlainString { return field.withRawBytes { ChatID(utf8: $0) } }
        return field.string.map { ChatID($0) }
    }

    /// A name: a string that is not empty.
    static func nonEmpty(_ field: JSONField?) -> String? {
        guard let field, !field.isEmptyString else { return nil }
        return field.string
    }

    /// The type value of a frame, for the log.
    package static func typeKey(_ field: JSONField) -> String {
        field.withRawBytes { bytes in
            // At most four bytes to a code point; a half one at the end falls to the limit below.
            let front = String(decoding: bytes.prefix(maxTypeKeyLength * 4), as: UTF8.self)
            return String(String.UnicodeScalarView(front.unicodeScalars.prefix(maxTypeKeyLength)))
        }
    }
}

extension JSONWriter {
    /// An id as it was received.
    package mutating func id(_ id: ChatID) {
        if !string(byteCount: 36, { id.writeUUID(to: $0) }) { string(id.rawValue) }
    }

    /// The same within a string.
    package mutating func appendToString(_ id: ChatID) {
        if !appendToString(byteCount: 36, { id.writeUUID(to: $0) }) { appendToString(id.rawValue) }
    }
}

/// Times out of JSON: numbers of any usual unit and ISO 8601.
///
/// A bad time never costs a message: an unreadable one is nil, which stands for the time of receipt.
package struct FrameTime {
    /// Since when small numbers count.
    package enum Epoch: Sendable {
        /// 1970-01-01.
        case unix
        /// 2001-01-01, for numbers below 1.2e9; greater ones are since 1970. Reference-date seconds stay below that until
        /// 2039, and Unix seconds have been above it since 2008.
        case reference
    }

    /// 9999-12-31T23:59:59.999Z.
    package static let latestMilliseconds: Int64 = 253_402_300_799_999
    /// Seconds from 1970-01-01 to 2001-01-01.
    package static let referenceDateSeconds: Double = 978_307_200
    /// Longest text that is looked at, in bytes: any ISO 8601 time or number fits.
    static let maxTextBytes = 64

    var epoch = Epoch.unix
    /// The offset from UTC of times without zone, in seconds.
    var naiveOffsetSeconds: Int64 = 0

    package init(epoch: Epoch = .unix, naiveOffsetSeconds: Int64 = 0) {
        self.epoch = epoch
        self.naiveOffsetSeconds = naiveOffsetSeconds
    }

    /// A number, or a string that is ISO 8601 or a number.
    package func read(_ field: JSONField?) -> ChatTimestamp? {
        guard let field else { return nil }
        switch field.kind {
        case .integer, .decimal:
            guard let value = field.double else { return nil }
            return number(value)
        case .string:
            // Hardly any time is written with escapes, and without them it is read where it stands.
            if field.isPlainString { return field.withRawBytes { self.text($0) } }
            guard let text = field.string else { return nil }
            return self.text(text)
        case .object, .array, .true, .false, .null: return nil
        }
    }

    package func read(_ value: JSONValue?) -> ChatTimestamp? {
        guard let value else { return nil }
        if case .string(let text) = value { return self.text(text) }
        return value.double.flatMap(number)
    }

    /// Detects the unit by the size of the number.
    @inline(__always)
    func number(_ value: Double) -> ChatTimestamp? {
        let milliseconds: Double
        if value >= 1e14 {
            milliseconds = value / 1000
        } else if value >= 1e11 {
            milliseconds = value
        } else if epoch == .reference, value < 1.2e9 {
            milliseconds = (value + Self.referenceDateSeconds) * 1000
        } else {
            milliseconds = value * 1000
        }
        // Cutting off is rounding down here: numbers below 1 are refused.
        let raised = milliseconds + 0.5
        guard raised >= 1, raised < Double(Self.latestMilliseconds + 1) else { return nil }
        return ChatTimestamp(milliseconds: Int64(raised))
    }

    /// ISO 8601, or a number in quotes. White space around it does not count.
    func text(_ text: String) -> ChatTimestamp? {
        var text = text
        return text.withUTF8 { self.text(UnsafeRawBufferPointer($0)) }
    }

    private func text(_ bytes: UnsafeRawBufferPointer) -> ChatTimestamp? {
        guard bytes.count <= Self.maxTextBytes else { return nil }
        var scan = ISOScanner(bytes: bytes)
        if let time = scan.timestamp(naiveOffsetSeconds: naiveOffsetSeconds) {
            return (1...Self.latestMilliseconds).contains(time) ? ChatTimestamp(milliseconds: time) : nil
        }
        // Only characters of JSON numbers: `Double` itself would also take `inf`, `nan` and hexadecimal.
        guard
            scan.trimmed.allSatisfy({ byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: "e"), UInt8(ascii: "E"):
                    true
                default: false
                }
            }), let value = Double(String(decoding: scan.trimmed, as: UTF8.self)), value.isFinite
        else { return nil }
        return number(value)
    }
}

/// `YYYY-MM-DD`, `T` or a blank, `HH:MM`, then optionally `:SS`, a fraction of up to nine digits after `.` or `,`, and `Z`
/// or an offset with or without a colon.
private struct ISOScanner {
    let trimmed: UnsafeBufferPointer<UInt8>
    /// The unread bytes lie between two pointers.
    private var at: UnsafePointer<UInt8>?
    private let end: UnsafePointer<UInt8>?

    init(bytes: UnsafeRawBufferPointer) {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
        var bytes = bytes.assumingMemoryBound(to: UInt8.self)
        while let last = bytes.last, isSpace(last) { bytes = UnsafeBufferPointer(rebasing: bytes.dropLast()) }
        while let first = bytes.first, isSpace(first) { bytes = UnsafeBufferPointer(rebasing: bytes.dropFirst()) }
        trimmed = bytes
        at = bytes.baseAddress
        end = bytes.baseAddress.map { $0 + bytes.count }
    }

    private var count: Int {
        guard let at, let end else { return 0 }
        return end - at
    }

    /// Takes the next byte if it is `a` or `b`.
    @inline(__always)
    private mutating func take(_ a: Unicode.Scalar, or b: Unicode.Scalar? = nil) -> UInt8? {
        guard let next = at, count > 0 else { return nil }
        let byte = next.pointee
        guard byte == UInt8(ascii: a) || b.map({ byte == UInt8(ascii: $0) }) ?? false else { return nil }
        at = next + 1
        return byte
    }

    @inline(__always)
    private mutating func digits(_ wanted: Int) -> Int64? {
        guard let next = at, count >= wanted else { return nil }
        var value: Int64 = 0
        for index in 0..<wanted {
            let digit = next[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            value = value &* 10 &+ Int64(digit)
        }
        at = next + wanted
        return value
    }

    private typealias WholeSeconds = (year: Int64, month: Int64, day: Int64, hour: Int64, minute: Int64, second: Int64)

    /// Takes `YYYY-MM-DDTHH:MM:SS`, as nearly every time begins, by words; nil, and nothing is taken, when something else
    /// comes.
    @inline(__always)
    private mutating func wholeSeconds() -> WholeSeconds? {
        guard let next = at, count >= 19 else { return nil }
        let raw = UnsafeRawPointer(next)
        // Each byte minus its expected value: a digit becomes its number, a separator 0. Backwards: `0000-00-` and
        // `00T00:00`.
        let (dateForm, clockForm): (UInt64, UInt64) = (0x2D30_302D_3030_3030, 0x3030_3A30_3054_3030)
        let front = UInt64(littleEndian: raw.loadUnaligned(as: UInt64.self)) ^ dateForm
        let back = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self)) ^ clockForm
        let colon = next[16] ^ UInt8(ascii: ":")
        let (ten, one) = (next[17] &- UInt8(ascii: "0"), next[18] &- UInt8(ascii: "0"))
        // Values above 9, and above 0 for separators, get or have their top bit.
        let others =
            (front &+ 0x7F76_767F_7676_7676) | front | (back &+ 0x7676_7F76_767F_7676) | back
        guard others & 0x8080_8080_8080_8080 == 0, colon == 0, ten < 10, one < 10 else { return nil }
        // In each byte the number that it and the next one are.
        let (dates, clocks) = (front &* 10 &+ front >> 8, back &* 10 &+ back >> 8)
        func pair(_ pairs: UInt64, _ offset: UInt64) -> Int64 {
            Int64(truncatingIfNeeded: (pairs >> (offset &* 8)) & 0xFF)
        }
        at = next + 19
        return (
            pair(dates, 0) * 100 + pair(dates, 2), pair(dates, 5), pair(clocks, 0), pair(clocks, 3), pair(clocks, 6),
            Int64(ten) * 10 + Int64(one)
        )
    }

    /// Milliseconds since 1970, rounded half up; nil when the text is no time.
    mutating func timestamp(naiveOffsetSeconds: Int64) -> Int64? {
        let date: (year: Int64, month: Int64, day: Int64)
        let clock: (hour: Int64, minute: Int64)
        var second: Int64 = 0
        var nanoseconds: Int64 = 0
        let hasSeconds: Bool
        if let front = wholeSeconds() {
            date = (front.year, front.month, front.day)
            clock = (front.hour, front.minute)
            second = front.second
            hasSeconds = true
        } else {
            guard let year = digits(4), take("-") != nil, let month = digits(2), take("-") != nil,
                let day = digits(2), take("T", or: " ") != nil, let hour = digits(2), take(":") != nil,
                let minute = digits(2)
            else { return nil }
            date = (year, month, day)
            clock = (hour, minute)
            hasSeconds = take(":") != nil
            if hasSeconds {
                guard let value = digits(2) else { return nil }
                second = value
            }
        }
        if hasSeconds, take(".", or: ",") != nil {
            var decimals = 0
            while decimals < 9, let digit = digits(1) {
                nanoseconds = nanoseconds * 10 + digit
                decimals += 1
            }
            guard decimals > 0 else { return nil }
            for _ in decimals..<9 { nanoseconds *= 10 }
        }
        while take(" ") != nil {}
        var offset = naiveOffsetSeconds
        if take("Z", or: "z") != nil {
            offset = 0
        } else if let sign = take("+", or: "-") {
            guard let hours = digits(2) else { return nil }
            _ = take(":")
            guard let minutes = digits(2) else { return nil }
            offset = (hours * 3600 + minutes * 60) * (sign == UInt8(ascii: "+") ? 1 : -1)
        }
        // A leap second is the last one of its minute here.
        guard count == 0, date.year >= 1, (1...12).contains(date.month),
            (1...Self.days(in: date.month, of: date.year)).contains(date.day),
            clock.hour < 24, clock.minute < 60, second <= 60
        else { return nil }
        let seconds =
            Self.daysSince1970(year: date.year, month: date.month, day: date.day) * 86_400 + clock.hour * 3600
            + clock.minute * 60 + min(second, 59) &- offset
        return seconds &* 1000 &+ (nanoseconds + 500_000) / 1_000_000
    }

    private static func days(in month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days in the proleptic Gregorian calendar; years begin in March here, so that the leap day is a year's last.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month > 2 ? year : year - 1
        let era = shifted / 400
        let yearOfEra = shifted % 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}

extension DialectContext {
    /// Whether `name` is one of the relay's, on wires without ids. Mostly there is one, and comparing costs less than a
    /// hash.
    func isSelfName(_ name: String?) -> Bool {
        guard let name else { return false }
        if selfNames.count == 1, let only = selfNames.first { return TextBytes.areSame(name, only) }
        return isOwnName(name)
    }
}
