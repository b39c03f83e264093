import ChatModel
import JSONText

// What goes into the addresses of calls, and what comes out of their answers, for all dialects with calls.

/// Text within the target of a request.
enum CallTarget {
    /// `text` with everything but letters, digits, `-`, `.`, `_` and `~` as `%XX`.
    ///
    /// Source: RFC 3986 §2.3.
    static func encoded(_ text: String) -> String {
        var out: [UInt8] = []
        out.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                out.append(byte)
            default:
                out += [UInt8(ascii: "%"), hexDigit(byte >> 4), hexDigit(byte & 0xF)]
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    /// `room` as one segment of a path; nil for what would lead elsewhere, and for control characters.
    static func segment(_ room: String) -> String? {
        guard !room.isEmpty, room != ".", room != "..",
            room.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) })
        else { return nil }
        return encoded(room)
    }
}

/// An address as its places are filled.
package struct AddressWriter {
    package private(set) var text = ""
    /// The parameter that stood behind the `?` was left out, and the next one takes its place.
    private var isMarkLost = false

    package init() {}

    package mutating func add(_ plain: String) {
        if isMarkLost, plain.hasPrefix("&"), !text.contains("?") {
            text += "?" + plain.dropFirst()
        } else {
            text += plain
        }
    }

    /// A value that may be unknown. Behind `name=` it is the value of that parameter, which is left out without one; else it
    /// is a parameter of its own name.
    ///
    /// - Parameter value: percent-encoded.
    package mutating func addOptional(_ name: String, _ value: String?) {
        if let parameter {
            if let value { return text += value }
            isMarkLost = isMarkLost || text[parameter] == "?"
            text.removeSubrange(parameter...)
        } else if let value {
            text += (text.contains("?") ? "&" : "?") + name + "=" + value
        } else {
            isMarkLost = isMarkLost || !text.contains("?")
        }
    }

    /// Where a parameter begins that has no value yet.
    private var parameter: String.Index? {
        guard let start = text.lastIndex(where: { $0 == "?" || $0 == "&" }) else { return nil }
        let name = text[text.index(after: start)...]
        return name.count > 1 && name.firstIndex(of: "=") == name.indices.last ? start : nil
    }
}

/// The target of a call as an operator writes it, with places in braces in it: `{room}`, `{since}`, `{limit}`, and for what is
/// older than a message `{before}` and `{before_id}`. `{?before}` leaves its parameter out where nothing is known.
///
/// Either a path from the root of the backend's HTTP base, or a whole address; then placeholders stand behind the host
/// only, so that no value can choose whom we talk to.
struct CallTemplate: Sendable, Equatable {
    enum Placeholder: String, CaseIterable, Sendable {
        case room, since, limit, before
        case beforeID = "before_id"

        /// There is not always a value.
        var mayBeUnknown: Bool { self == .before || self == .beforeID }
    }

    private enum Part: Equatable, Sendable {
        case text(String)
        case placeholder(Placeholder, isOptional: Bool)
    }

    private let parts: [Part]

    /// What is wrong with a template.
    struct Failure: Error, Equatable {
        let sentence: String
    }

    init(_ text: String) throws(Failure) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "\\") }) else {
            throw Failure(sentence: "must be percent-encoded and without a fragment")
        }
        // Where placeholders may begin.
        let front: Int
        if let scheme = ["http://", "https://"].first(where: { bytes.starts(with: $0.utf8) }) {
            let authority = bytes.dropFirst(scheme.utf8.count)
            let end = authority.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? bytes.endIndex
            guard end > authority.startIndex else { throw Failure(sentence: "must name a host") }
            front = end
        } else {
            guard bytes.first == UInt8(ascii: "/"), bytes.dropFirst().first != UInt8(ascii: "/") else {
                throw Failure(sentence: "must begin with \"/\", \"http://\" or \"https://\"")
            }
            front = 1
        }
        var parts: [Part] = []
        var literal: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.first {
            guard byte == UInt8(ascii: "{") || byte == UInt8(ascii: "}") else {
                literal.append(byte)
                rest = rest.dropFirst()
                continue
            }
            let close = rest.firstIndex(of: UInt8(ascii: "}")) ?? rest.startIndex
            let inside = rest[(rest.startIndex + 1)..<max(close, rest.startIndex + 1)]
            let isOptional = inside.first == UInt8(ascii: "?")
            guard byte == UInt8(ascii: "{"), close > rest.startIndex,
                let placeholder = Placeholder(
                    rawValue: String(decoding: inside.dropFirst(isOptional ? 1 : 0), as: UTF8.self)),
                !isOptional || placeholder.mayBeUnknown
            else {
                let names = Placeholder.allCases.map {
                    "{\($0.rawValue)}" + ($0.mayBeUnknown ? ", {?\($0.rawValue)}" : "")
                }
                throw Failure(sentence: "can have only the placeholders \(names.joined(separator: ", "))")
            }
            guard rest.startIndex >= front else {
                throw Failure(sentence: "must not have placeholders in scheme, host or port")
            }
            if !literal.isEmpty { parts.append(.text(String(decoding: literal, as: UTF8.self))) }
            literal = []
            parts.append(.placeholder(placeholder, isOptional: isOptional))
            rest = rest[(close + 1)...]
        }
        if !literal.isEmpty { parts.append(.text(String(decoding: literal, as: UTF8.self))) }
        self.parts = parts
    }

    func has(_ placeholder: Placeholder) -> Bool {
        parts.contains { if case .placeholder(placeholder, _) = $0 { true } else { false } }
    }

    /// The target; nil when the room cannot stand in one.
    func target(room: String, since: String, limit: Int, before: String? = nil, beforeID: String? = nil) -> String? {
        guard let room = CallTarget.segment(room) else { return nil }
        var address = AddressWriter()
        for part in parts {
            guard case .placeholder(let placeholder, let isOptional) = part else {
                if case .text(let text) = part { address.add(text) }
                continue
            }
            let value: String? =
                switch placeholder {
                case .room: room
                case .since: CallTarget.encoded(since)
                case .limit: String(limit)
                case .before: before.map(CallTarget.encoded)
                case .beforeID: beforeID.map(CallTarget.encoded)
                }
            if isOptional { address.addOptional(placeholder.rawValue, value) } else { address.add(value ?? "") }
        }
        return address.text
    }
}

/// Values out of answers.
package enum CallAnswer {
    /// Longest complaint that is passed on, in code points: one line of IRC.
    static let maxComplaintLength = 300

    /// An id in an answer: a string that is not empty, or a number.
    static func id(_ value: JSONValue?) -> String? {
        switch value {
        case .string(let text): text.isEmpty ? nil : text
        case .integer(let number): String(number)
        case .literal(let digits): digits
        default: nil
        }
    }

    static func nonEmpty(_ value: JSONValue?) -> String? {
        guard let text = value?.string, !text.isEmpty else { return nil }
        return text
    }

    /// A token that can stand in a header; nil for everything else, so that no answer can add a line to a request.
    static func token(_ value: JSONValue?) -> String? {
        guard let text = nonEmpty(value), text.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else { return nil }
        return text
    }

    /// A complaint of reasonable length; nil when there is none.
    static func complaint(_ text: String?) -> String? {
        guard let text, !text.isEmpty else { return nil }
        return String(String.UnicodeScalarView(text.unicodeScalars.prefix(maxComplaintLength)))
    }

    /// Where servers usually put why they refuse.
    private static let usualComplaints = [
        "/message", "/error/message", "/errors/0/message", "/error_description", "/detail", "/error", "/reason",
    ].compactMap { JSONPointer($0) }
    /// Longest of these that is passed on, in code points.
    private static let maxUsualComplaintLength = 200

    /// What a server nothing is known of complains of; nil when there are no words, or they stand elsewhere.
    package static func usualComplaint(_ answer: BackendAnswer) -> String? {
        guard let json = try? JSONValue(parsing: answer.body) else { return nil }
        for pointer in usualComplaints {
            guard let text = json[pointer]?.string, !text.isEmpty else { continue }
            let shown = text.unicodeScalars.prefix(maxUsualComplaintLength).map { $0.value < 0x20 ? " " : $0 }
            return String(String.UnicodeScalarView(shown))
        }
        return nil
    }

    /// Calls `body` with each element of an answer that is an array.
    ///
    /// - Returns: how many there were, or why there are none.
    static func forEachElement(
        of answer: BackendAnswer, _ body: (JSONField) -> Void
    ) -> Result<Int, CallAnswerFailure> {
        answer.body.withUnsafeBytes { bytes in
            var count = 0
            do throws(JSONError) {
                // The caller has bounded the answer already.
                let limits = JSONLimits(maxBytes: bytes.count)
                // Nothing of a malformed answer counts, so it is read to its end first.
                var check = try JSONReader(bytes, limits: limits)
                let isArray = try check.readValue().kind == .array
                try check.finish()
                guard isArray else { return .failure(CallAnswerFailure(reason: .wrongType)) }
                var reader = try JSONReader(bytes, limits: limits)
                guard try reader.enterArray() else { return .failure(CallAnswerFailure(reason: .wrongType)) }
                while let element = try reader.nextElement() {
                    count += 1
                    body(element)
                }
            } catch {
                return .failure(CallAnswerFailure(reason: .malformed))
            }
            return .success(count)
        }
    }
}

/// Why an answer says nothing.
struct CallAnswerFailure: Error, Equatable {
    let reason: DropReason
}
