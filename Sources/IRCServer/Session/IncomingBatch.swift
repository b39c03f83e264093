import IRCProtocol
import Rooms

// An incoming message of several lines.
//
// | state   | meaning                            | verb → next                                                      |
// |---------|------------------------------------|------------------------------------------------------------------|
// | none    | lines are messages of their own    | BATCH + → open, or refused                                       |
// | open    | lines of the batch are gathered    | its lines → open; an error → refused; BATCH - → none, it is sent |
// | refused | FAIL was sent; the rest is ignored | BATCH + → open, or refused; BATCH - → none                       |
//
// One batch at a time, within the size limit of one message. All other input is processed as usual: only lines that
// claim to belong to a batch are examined here.

/// A batch that a client has opened.
struct IncomingBatch: Equatable {
    /// Bytes of a reference; clients use a few digits.
    static let maxReferenceBytes = 64

    let reference: String
    var target = ""
    /// The tags of the message.
    var tags: [IRCTag] = []
    /// The label of the opening line, answered at the end of the batch.
    var label: String?
    var words = SpokenText(text: "")
    var lineCount = 0
    /// At least one line is not blank.
    var hasWords = false
    /// FAIL was sent; the rest of the batch is ignored.
    var isRefused = false
}

/// The outcome of one line of a batch.
enum BatchStep {
    /// No answer: it is gathered, or ignored.
    case taken
    case refused(IRCMessage)
    case complete(IncomingBatch)
}
