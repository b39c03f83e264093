public import ChatModel

extension DecodedFrame {
    /// What the frame says; nil when it was dropped.
    public var events: [ChatEvent]? { if case .events(let events) = self { events } else { nil } }
}

extension EncodedCommand {
    /// The frames that say it, oldest first; nil when it cannot be said.
    public var frames: [EncodedFrame]? { if case .frames(let frames) = self { frames } else { nil } }
}
