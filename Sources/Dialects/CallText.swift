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

/// The target of a call as an operator writes it, with `{room}`, `{since}` and `{limit}` in it.
///
/// Either a path from the root of the backend's HTTP base, or a whole address; then placeholders stand behind the host
/// only, so that no value can choose whom we talk to.
struct CallTemplate: Sendable, Equatable {
    enum Placeholder: String, CaseIterable, Sendable { case room, since, limit }

    private enum Part: Equatable, Sendable {
        case text(String)
        case placeholder(Placeholder)
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
            guard byte == UInt8(ascii: "{"), let close = rest.firstIndex(of: UInt8(ascii: "}")),
                let placeholder = Placeholder(
                    rawValue: String(decoding: rest[(rest.startIndex + 1)..<close], as: UTF8.self))
            else {
                let names = Placeholder.allCases.map { "{\($0.rawValue)}" }.joined(separator: ", ")
                throw Failure(sentence: "can have only the placeholders \(names)")
            }
            guard rest.startIndex >= front else {
                throw Failure(sentence: "must not have placeholders in scheme, host or port")
            }
            if !literal.isEmpty { parts.append(.text(String(decoding: literal, as: UTF8.self))) }
            literal = []
            parts.append(.placeholder(placeholder))
            rest = rest[(close + 1)...]
        }
        if !literal.isEmpty { parts.append(.text(String(decoding: literal, as: UTF8.self))) }
        self.parts = parts
    }

    func has(_ placeholder: Placeholder) -> Bool { parts.contains(.placeholder(placeholder)) }

    /// The target; nil when the room cannot stand in one.
    func target(room: String, since: String, limit: Int) -> String? {
        guard let room = CallTarget.segment(room) else { return nil }
        return parts.reduce(into: "") { target, part in
            switch part {
            case .text(let text): target += text
            case .placeholder(.room): target += room
            case .placeholder(.since): target += CallTarget.encoded(since)
            case .placeholder(.limit): target += String(limit)
            }
        }
    }
}

/// Values out of answers.
enum CallAnswer {
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
    static func usualComplaint(_ answer: BackendAnswer) -> String? {
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
