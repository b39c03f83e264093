import ChatModel
import JSONText
import WireBytes

// The wire of an article about WebSocket clients in Swift: an object with a type and a payload, and the payload is the
// base64 of a JSON object, as a `JSONEncoder` writes `Data`.
//
//     {"type": "chat.message", "payload": "eyJpZCI6Im0xIiwi..."}
//
// The article fixes this much and leaves the types to the application; ``TypedDialect/PayloadType`` lists those of this
// dialect. Dates are seconds since 2001, the encoder's default. Frames go out binary and are read either way.
//
// A reader here meets servers of any language, so a payload may also be unpadded or URL-safe base64, a plain object, or an
// array of byte values, which is the encoder's other strategy for `Data`.

/// Type and base64 payload.
///
/// Source: observed, typed fixtures/in.jsonl, out.jsonl.
public struct TypedDialect: Dialect {
    /// Kinds of payload.
    enum PayloadType: Int, CaseIterable {
        case message, edit, delete, typing, receipt, presence, reaction, system, history, error

        /// The name on the wire where the options do not rename it.
        var defaultName: String { "chat.\(self)" }
    }

    /// How long a start of typing holds without another, in milliseconds. The wire does not say; the same as elsewhere.
    public static let typingMilliseconds: Int64 = 3000

    /// Names on the wire by raw value of the type.
    private let names: [[UInt8]]
    /// The frame before the base64, by raw value of the type.
    let heads: [[UInt8]]
    /// Whether frames that are no JSON objects are messages, and messages are sent so.
    let isPlainText: Bool
    private let plainTextSender: ChatPerson

    /// Options: `types`, a table of other names for types; `fallback_text`, whether bare strings are messages; and
    /// `fallback_sender`, their sender's name.
    public init(_ options: consuming DialectOptions = DialectOptions()) throws(DialectOptionError) {
        var types = try options.table("types")
        var names: [[UInt8]] = []
        for type in PayloadType.allCases {
            let name = try types.text(type.defaultName) ?? type.defaultName
            guard !name.isEmpty else { throw types.error(type.defaultName, "must not be empty") }
            let bytes = Array(name.utf8)
            guard !names.contains(bytes) else {
                throw types.error(type.defaultName, "is the name of another type already")
            }
            names.append(bytes)
        }
        try types.finish()
        isPlainText = try options.flag("fallback_text") ?? false
        traits = Self.traits(isPlainText: isPlainText)
        plainTextSender = ChatPerson(name: try options.text("fallback_sender").flatMap { $0.isEmpty ? nil : $0 })
        try options.finish()
        self.names = names
        heads = names.map { name in
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("type", String(decoding: name, as: UTF8.self))
            writer.key("payload")
            writer.beginString()
            return writer.finish()
        }
    }

    /// A wire of bare strings has no senders and no confirmations, even beside typed frames.
    public let traits: DialectTraits

    private static func traits(isPlainText: Bool) -> DialectTraits {
        var traits = DialectTraits(
            name: "typed", identity: isPlainText ? .single : .puppet,
            messageIDOrigin: isPlainText ? .server : .client, echoesOwnMessages: false,
            confirmation: isPlainText ? .none : .receipt, typingOut: isPlainText ? .none : .startStop,
            backoff: BackoffTraits(
                first: .seconds(1), factor: 2, cap: .seconds(60), jitter: 0.25, degradedAfter: 10))
        traits.readReport = isPlainText ? .none : .eachMessage
        traits.tellsOfLeaves = true
        // The article leaves receipts to the application.
        traits.confirmationIsGuess = !isPlainText
        traits.namesSenders = !isPlainText
        return traits
    }

    // MARK: - The envelope

    private struct Envelope: FrameMembers {
        var type: JSONField?
        var payload: JSONField?

        @inline(__always)
        mutating func set(_ key: JSONField, _ value: JSONField) {
            switch key {
            case "type": type = value
            case "payload": payload = value
            default: break
            }
        }
    }

    public func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        var envelope = Envelope()
        if let flaw = envelope.read(frame) { return isPlainText ? plainText(frame) : .dropped(flaw, typeKey: nil) }
        guard let type = envelope.type, !type.isNull else { return .dropped(.missingField, typeKey: nil) }
        guard let payload = envelope.payload, !payload.isNull else {
            return .dropped(.missingField, typeKey: FrameText.typeKey(type))
        }
        guard type.kind == .string else { return .dropped(.wrongType, typeKey: FrameText.typeKey(type)) }
        guard let known = payloadType(type) else { return .dropped(.unknownType, typeKey: FrameText.typeKey(type)) }
        let decoded = open(payload, as: known, context)
        if case .dropped(let reason, _) = decoded { return .dropped(reason, typeKey: FrameText.typeKey(type)) }
        return decoded
    }

    private func payloadType(_ field: JSONField) -> PayloadType? {
        names.firstIndex { $0.withUnsafeBufferPointer(field.equals) }.flatMap(PayloadType.init(rawValue:))
    }

    /// A text frame on wires without JSON. A number or a word of JSON is a text, too.
    private func plainText(_ frame: UnsafeRawBufferPointer) -> DecodedFrame {
        var bytes = frame
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = UnsafeRawBufferPointer(rebasing: bytes[3...]) }
        guard !bytes.isEmpty, let text = String(validating: bytes, as: UTF8.self) else {
            return .dropped(.malformed, typeKey: nil)
        }
        return .event(.message(ChatMessage(sender: plainTextSender, text: text)))
    }

    // MARK: - The payload

    private func open(_ payload: JSONField, as type: PayloadType, _ context: DialectContext) -> DecodedFrame {
        switch payload.kind {
        case .object: return TypedPayload(payload).decoded(type, context)
        case .string:
            // Allocated and not on the stack: that takes a closure, which would copy the context and the result.
            let scratch = UnsafeMutableRawBufferPointer.allocate(
                byteCount: Base64.decodedCapacity(payload.byteCount), alignment: 8)
            defer { scratch.deallocate() }
            guard let count = payload.withUTF8({ Base64.decodeTolerant($0, into: scratch) }) ?? nil else {
                return .dropped(.malformed, typeKey: nil)
            }
            return Self.read(scratch, count, type, context)
        case .array:
            // Every element takes a digit and a comma at least.
            let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: payload.byteCount / 2, alignment: 8)
            defer { scratch.deallocate() }
            var count = 0
            for element in payload.elements {
                guard let value = element.int64, 0...255 ~= value, count < scratch.count else {
                    return .dropped(.wrongType, typeKey: nil)
                }
                scratch[count] = UInt8(truncatingIfNeeded: value)
                count += 1
            }
            return Self.read(scratch, count, type, context)
        case .integer, .decimal, .true, .false, .null: return .dropped(.wrongType, typeKey: nil)
        }
    }

    private static func read(
        _ scratch: UnsafeMutableRawBufferPointer, _ count: Int, _ type: PayloadType, _ context: DialectContext
    ) -> DecodedFrame {
        var payload = TypedPayload()
        let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(scratch)[..<count])
        if let flaw = payload.read(bytes) { return .dropped(flaw, typeKey: nil) }
        return payload.decoded(type, context)
    }
}
