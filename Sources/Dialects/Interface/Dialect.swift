public import ChatModel

/// A translator between one backend's JSON frames and ``ChatModel``.
///
/// A dialect is a value without clock, state or I/O: the session around it supplies ids and times and acts on the
/// events. To add one, write a type that conforms and give it a row in ``DialectTable``.
public protocol Dialect: Sendable {
    /// The properties of the wire that the session depends on.
    var traits: DialectTraits { get }

    /// Translates one frame. Any bytes end in events or a named drop reason.
    ///
    /// - Parameters:
    ///   - frame: the whole payload of one WebSocket message; valid only during the call.
    ///   - isBinary: whether it came as a binary message.
    ///   - context: the relay's own identities in this room.
    func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame

    /// Translates one command into the frames that carry it, oldest first.
    func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand

    /// Replies that a frame requires by rule, besides its events; only for a dialect whose traits have them.
    func automaticReplies(to frame: UnsafeRawBufferPointer, context: DialectContext) -> [EncodedFrame]

    /// Where a description dropped this frame; nil: by no rule of one.
    func dropPlace(of frame: UnsafeRawBufferPointer, context: DialectContext) -> DropPlace?

    /// What makes a session usable, as its description calls it; nil: the wire's own frame does.
    var readyCondition: String? { get }
    /// What a frame has in the places of ``readyCondition``: values that tell frames apart, and no texts.
    func readyValues(in frame: UnsafeRawBufferPointer) -> String

    /// The calls beside the socket; nil when there are none.
    var calls: (any DialectCalls)? { get }
}

extension Dialect {
    public func automaticReplies(to frame: UnsafeRawBufferPointer, context: DialectContext) -> [EncodedFrame] { [] }
    public func dropPlace(of frame: UnsafeRawBufferPointer, context: DialectContext) -> DropPlace? { nil }
    public var readyCondition: String? { nil }
    public func readyValues(in frame: UnsafeRawBufferPointer) -> String { "" }
    public var calls: (any DialectCalls)? { nil }
}
