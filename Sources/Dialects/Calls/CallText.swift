import JSONText
import WireBytes

// Addresses of calls and values of answers, for all dialects with calls.

/// Text within the target of a request.
package enum CallTarget {
    /// `text` with everything but letters, digits, `-`, `.`, `_` and `~` as `%XX`.
    ///
    /// Source: RFC 3986 §2.3.
    package static func encoded(_ text: String) -> String {
        var out: [UInt8] = []
        out.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            if ASCII.isLetter(byte) || ASCII.isDigit(byte) || "-._~".utf8.contains(byte) {
                out.append(byte)
            } else {
                let digits = Array("0123456789ABCDEF".utf8)
                out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// `room` as one path segment; nil for `.` and `..`, and for control characters.
    static func segment(_ room: String) -> String? {
        guard !room.isEmpty, room != ".", room != "..",
            room.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) })
        else { return nil }
        return encoded(room)
    }
}

/// An address while its places are filled.
private struct AddressWriter {
    private(set) var text = ""
    /// The parameter that stood behind the `?` was left out, and the next one takes its place.
    private var isMarkLost = false

    mutating func add(_ plain: String) {
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
    mutating func addOptional(_ name: String, _ value: String?) {
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

/// An address with places in single braces; `{?name}` leaves its parameter out where there is no value.
package struct AddressTemplate: Sendable, Equatable {
    package enum Piece: Equatable, Sendable {
        case text(String)
        case place(String, isOptional: Bool)
    }

    package private(set) var pieces: [Piece] = []

    package init(_ text: String) {
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            if open > rest.startIndex { pieces.append(.text(String(rest[..<open]))) }
            let name = rest[rest.index(after: open)..<close]
            let isOptional = name.hasPrefix("?")
            pieces.append(.place(String(name.dropFirst(isOptional ? 1 : 0)), isOptional: isOptional))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { pieces.append(.text(String(rest))) }
    }

    /// The names of the places.
    package var names: [String] { pieces.compactMap { if case .place(let name, _) = $0 { name } else { nil } } }

    /// The places as they are written, `?` included.
    package var places: [String] {
        pieces.compactMap {
            if case .place(let name, let isOptional) = $0 { (isOptional ? "?" : "") + name } else { nil }
        }
    }

    /// - Parameter value: percent-encoded; nil: unknown.
    package func filled(_ value: (String) -> String?) -> String {
        var address = AddressWriter()
        for piece in pieces {
            switch piece {
            case .text(let plain): address.add(plain)
            case .place(let name, isOptional: true): address.addOptional(name, value(name))
            case .place(let name, isOptional: false): address.add(value(name) ?? "")
            }
        }
        return address.text
    }
}

/// The target of a call as an operator writes it, with the places `{room}`, `{since}`, `{limit}`, and for messages older than
/// a known one `{before}` and `{before_id}`.
///
/// Either a path from the root of the backend's HTTP base, or a whole address; then placeholders stand behind the host
/// only, so that no value can choose the server.
struct CallTemplate: Sendable, Equatable {
    enum Placeholder: String, CaseIterable, Sendable {
        case room, since, limit, before
        case beforeID = "before_id"

        /// There is not always a value.
        var mayBeUnknown: Bool { self == .before || self == .beforeID }
    }

    private let template: AddressTemplate

    /// A complaint about a template.
    struct Failure: Error, Equatable {
        let sentence: String
    }

    init(_ text: String) throws(Failure) {
        let bytes = text.utf8
        guard bytes.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "\\") }) else {
            throw Failure(sentence: "must be percent-encoded and without a fragment")
        }
        // Bytes before the first place that a placeholder may have.
        var front = 1
        if let scheme = ["http://", "https://"].first(where: { text.hasPrefix($0) }) {
            let authority = bytes.dropFirst(scheme.utf8.count).prefix {
                $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?")
            }
            guard !authority.isEmpty else { throw Failure(sentence: "must name a host") }
            front = scheme.utf8.count + authority.count
        } else if !text.hasPrefix("/") || text.hasPrefix("//") {
            throw Failure(sentence: "must begin with \"/\", \"http://\" or \"https://\"")
        }
        template = AddressTemplate(text)
        var position = 0
        for piece in template.pieces {
            switch piece {
            case .text(let plain) where !plain.contains(where: { $0 == "{" || $0 == "}" }): position += plain.utf8.count
            case .place(let name, let isOptional) where Self.isKnown(name, isOptional):
                guard position >= front else {
                    throw Failure(sentence: "must not have placeholders in scheme, host or port")
                }
                position += name.utf8.count + (isOptional ? 3 : 2)
            default:
                let names = Placeholder.allCases.map {
                    "{\($0.rawValue)}" + ($0.mayBeUnknown ? ", {?\($0.rawValue)}" : "")
                }
                throw Failure(sentence: "can have only the placeholders \(names.joined(separator: ", "))")
            }
        }
    }

    private static func isKnown(_ name: String, _ isOptional: Bool) -> Bool {
        Placeholder(rawValue: name).map { !isOptional || $0.mayBeUnknown } ?? false
    }

    func has(_ placeholder: Placeholder) -> Bool { template.names.contains(placeholder.rawValue) }

    /// The target; nil when the room cannot stand in one.
    func target(room: String, since: String, limit: Int, before: String? = nil, beforeID: String? = nil) -> String? {
        guard let room = CallTarget.segment(room) else { return nil }
        return template.filled { name in
            switch Placeholder(rawValue: name) {
            case .room: room
            case .since: CallTarget.encoded(since)
            case .limit: String(limit)
            case .before: before.map(CallTarget.encoded)
            case .beforeID: beforeID.map(CallTarget.encoded)
            case nil: nil
            }
        }
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

    /// The complaint of an unknown server; nil when it has no text at the usual places.
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
