public import ChatModel

/// Why a frame gave no event, or a command no frame.
public enum DropReason: String, Sendable, CaseIterable {
    case malformed
    case notObject = "not-object"
    case missingField = "missing-field"
    case wrongType = "wrong-type"
    case unknownType = "unknown-type"
    case unsupported
    case tooLong = "too-long"
}

/// Where a description dropped a frame. It has nothing of the frame, so that it can be logged.
public struct DropPlace: Equatable, Sendable {
    /// The place of the rule in `decode`, from 0.
    public var rule: Int
    /// What of the rule the frame did not fit.
    public var field: String?

    public init(rule: Int, field: String?) { (self.rule, self.field) = (rule, field) }
}

public enum DecodedFrame: Sendable {
    /// Understood: one event, as nearly always; without an array, which would cost as much as the rest.
    case event(ChatEvent)
    /// Understood: any other number of events; none when a frame needs none. Made by ``events(_:)``.
    case several([ChatEvent])
    /// Nothing usable. `typeKey` is the frame's own type value where it had one, for the log.
    case dropped(DropReason, typeKey: String?)

    /// Understood; may be empty when a frame needs no event.
    public static func events(_ events: [ChatEvent]) -> DecodedFrame {
        events.count == 1 ? .event(events[0]) : .several(events)
    }

    /// The events of the frame; nil when it was dropped.
    public var events: [ChatEvent]? {
        switch self {
        case .event(let event): [event]
        case .several(let events): events
        case .dropped: nil
        }
    }
}

extension DecodedFrame: Equatable {
    public static func == (a: DecodedFrame, b: DecodedFrame) -> Bool {
        switch (a, b) {
        case (.dropped(let x, let xKey), .dropped(let y, let yKey)): x == y && xKey == yKey
        case (.dropped, _), (_, .dropped): false
        default: a.events == b.events
        }
    }
}

/// One WebSocket message to send.
public struct EncodedFrame: Equatable, Sendable {
    public var bytes: [UInt8]
    public var isBinary: Bool

    public init(bytes: [UInt8], isBinary: Bool) {
        self.bytes = bytes
        self.isBinary = isBinary
    }
}

public enum EncodedCommand: Sendable {
    /// One frame, as nearly always.
    case frame(EncodedFrame)
    /// Any other number of frames, oldest first. Made by ``frames(_:)``.
    case several([EncodedFrame])
    /// The wire has no form for it; the session decides how to proceed.
    case unsupported(DropReason)

    /// Oldest first.
    public static func frames(_ frames: [EncodedFrame]) -> EncodedCommand {
        frames.count == 1 ? .frame(frames[0]) : .several(frames)
    }

    /// One text frame; `.tooLong` beyond `maxBytes`.
    static func text(_ bytes: [UInt8], maxBytes: Int = DialectTraits.usualMaxFrameBytes) -> EncodedCommand {
        bytes.count <= maxBytes ? .frame(EncodedFrame(bytes: bytes, isBinary: false)) : .unsupported(.tooLong)
    }

    /// The frames of the command, oldest first; nil when there is no form for it.
    public var frames: [EncodedFrame]? {
        switch self {
        case .frame(let frame): [frame]
        case .several(let frames): frames
        case .unsupported: nil
        }
    }
}

extension EncodedCommand: Equatable {
    public static func == (a: EncodedCommand, b: EncodedCommand) -> Bool {
        switch (a, b) {
        case (.unsupported(let x), .unsupported(let y)): x == y
        case (.unsupported, _), (_, .unsupported): false
        default: a.frames == b.frames
        }
    }
}
