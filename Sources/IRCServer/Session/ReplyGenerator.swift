import IRCProtocol

/// An answer that may be longer than a client's queue should be: pulled as the queue drains, in order with live lines.
///
/// It references neither the bridge nor the session; its position is in the variables of its step.
final class ReplyGenerator {
    /// The key for finding it; nil: it is never looked up.
    let subject: AnyObject?
    /// Produces one line at most: the window of the client's queue is checked between two.
    let next: () -> Step
    /// Side effects that are due even if the client reads no more.
    let unread: () -> Void

    enum Step {
        /// It continues; nil: there was nothing to write, or it is written already.
        case more(IRCMessage?)
        case last(IRCMessage?)
        /// It is pulled again when the awaited event has occurred.
        case waits
    }

    init(of subject: AnyObject? = nil, unread: @escaping () -> Void = {}, _ next: @escaping () -> Step) {
        self.subject = subject
        self.next = next
        self.unread = unread
    }

    static func line(_ line: IRCMessage) -> ReplyGenerator { ReplyGenerator { .last(line) } }
}
