import IRCProtocol
import Rooms

// A message of several lines on its way in.
//
// | state   | meaning                                | verb → next                                                           |
// |---------|----------------------------------------|-----------------------------------------------------------------------|
// | none    | lines are messages of their own        | BATCH + → open, or refused                                            |
// | open    | lines of the batch are gathered        | its lines → open; a mistake → refused; BATCH - → none, and it is said  |
// | refused | the client was told; the rest is taken | BATCH + → open, or refused; BATCH - → none                            |
//
// One batch at a time, and no more bytes than one message may have. Whatever else the client sends meanwhile is handled as
// always: only what claims to belong to a batch is looked at here.

/// A batch that a client has opened.
struct IncomingBatch: Equatable {
    /// Bytes of a reference; clients use a few digits.
    static let maxReferenceBytes = 64

    let reference: String
    var target = ""
    /// The tags of the whole.
    var tags: [IRCTag] = []
    /// Of the line that opened it, to be answered when it is over.
    var label: String?
    var words = SpokenText(text: "")
    var lineCount = 0
    /// Not every line is blank.
    var hasWords = false
    /// The client was told why; what is still to come of it is dropped.
    var isRefused = false
}

/// What a line of a batch comes to.
enum BatchStep {
    /// There is nothing to say to it yet, or any more.
    case taken
    case refused(IRCMessage)
    case complete(IncomingBatch)
}
