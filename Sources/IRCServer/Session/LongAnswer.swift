import IRCProtocol

/// An answer that may be longer than a client's queue should be: pulled as the queue drains, in order with live lines.
///
/// It holds neither the bridge nor the session; where it stands is in the variables of its step.
final class LongAnswer {
    /// What it is found by; nil: nobody looks for it.
    let subject: AnyObject?
    /// The next line, at most: the window of the client's queue is looked at between two.
    let next: () -> Step
    /// What it does all the same when nobody reads the answers any more.
    let unread: () -> Void

    enum Step {
        /// It goes on; nil: there was nothing to write, or it is written already.
        case more(IRCMessage?)
        case last(IRCMessage?)
        /// It is pulled when what it waits for is there.
        case waits
    }

    init(of subject: AnyObject? = nil, unread: @escaping () -> Void = {}, _ next: @escaping () -> Step) {
        self.subject = subject
        self.next = next
        self.unread = unread
    }

    static func line(_ line: IRCMessage) -> LongAnswer { LongAnswer { .last(line) } }
}
