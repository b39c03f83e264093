import BridgeTypes
import ChatModel
import Dialects
import Identities
import Media
import Upstream
import WireBytes

/// A PRIVMSG to the room, checked by the session.
package struct Submission: Equatable {
    package var words: SpokenText
    /// Client-only tags for other clients.
    package var annotations: [StoredTag]
    /// The msgid of the message that it answers.
    package var replyTo: String?
    /// Label to be answered by the echo; nil when there is nothing to answer.
    package var label: String?
    /// The network address of a guest; nil: identified otherwise.
    package var network: String?

    package init(
        words: SpokenText, annotations: [StoredTag], replyTo: String? = nil, label: String? = nil,
        network: String? = nil
    ) {
        self.words = words
        self.annotations = annotations
        self.replyTo = replyTo
        self.label = label
        self.network = network
    }

    package var text: String { words.text }
}
