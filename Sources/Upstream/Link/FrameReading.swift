import ChatModel
import Dialects

/// Decodes the frames of one read, in order.
///
/// The room's announced id holds from the frame on that announces it.
struct FrameReading {
    let dialect: any Dialect
    private(set) var context: DialectContext
    private(set) var events: [LinkEvent] = []
    /// Frames that the wire's own rules want as an answer.
    private(set) var replies: [EncodedFrame] = []
    /// What the frames have in place of ``Dialect/readyCondition``, while that is waited for.
    private(set) var readyValues: [String] = []
    /// A frame is of the dialect, also one that says nothing.
    private(set) var hasUnderstood = false
    private let repliesByRule: Bool
    private let waitsForReady: Bool

    init(dialect: any Dialect, repliesByRule: Bool, waitsForReady: Bool, context: DialectContext) {
        self.dialect = dialect
        self.context = context
        self.repliesByRule = repliesByRule
        self.waitsForReady = waitsForReady && dialect.readyCondition != nil
    }

    mutating func received(_ payload: UnsafeRawBufferPointer, isBinary: Bool) {
        if waitsForReady { readyValues.append(dialect.readyValues(in: payload)) }
        var wantsAnswer = false
        if repliesByRule {
            let answers = dialect.automaticReplies(to: payload, context: context)
            wantsAnswer = !answers.isEmpty
            replies += answers
        }
        switch dialect.decode(payload, isBinary: isBinary, context: context) {
        case .event(let event):
            hasUnderstood = true
            note(event, byteCount: payload.count)
        case .several(let chat):
            hasUnderstood = true
            for event in chat { note(event, byteCount: payload.count / chat.count) }
        case .dropped(let reason, let typeKey):
            // A frame whose only purpose was an answer is not unknown.
            if wantsAnswer, reason == .unknownType {
                hasUnderstood = true
                return
            }
            // Those that no rule wants may be most, and have no place.
            let place = reason == .unknownType ? nil : dialect.dropPlace(of: payload, context: context)
            events.append(.dropped(reason, byteCount: payload.count, typeKey: typeKey, place: place))
        }
    }

    private mutating func note(_ event: ChatEvent, byteCount: Int) {
        if case .ready(let ready) = event { context.announced(ready) }
        events.append(.chat(event, byteCount: byteCount))
    }
}
