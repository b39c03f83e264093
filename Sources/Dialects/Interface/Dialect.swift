public import ChatModel

/// A translator between one backend's JSON frames and ``ChatModel``.
///
/// A dialect is a value without clock, state or I/O: the session around it supplies ids and times and decides what to do
/// with what a frame says. To add one, write a type that conforms and give it a row in ``DialectTable``.
public protocol Dialect: Sendable {
    /// What the session must know about this wire.
    var traits: DialectTraits { get }

    /// Translates one frame. Any bytes end in events or a named drop reason.
    ///
    /// - Parameters:
    ///   - frame: the whole payload of one WebSocket message; valid only during the call.
    ///   - isBinary: whether it came as a binary message.
    ///   - context: who we are in this room.
    func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame

    /// Translates one command into the frames that carry it, oldest first.
    func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand

    /// Frames that a frame asks for by rule, whatever else it says; only asked of a dialect whose traits say so.
    func automaticReplies(to frame: UnsafeRawBufferPointer, context: DialectContext) -> [EncodedFrame]

    /// The calls beside the socket; nil when there are none.
    var calls: (any DialectCalls)? { get }
}

extension Dialect {
    public func automaticReplies(to frame: UnsafeRawBufferPointer, context: DialectContext) -> [EncodedFrame] { [] }
    public var calls: (any DialectCalls)? { nil }
}
