import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

/// Why an action was not carried out, in the words of the answer.
package struct ActionRefusal: Equatable {
    package var code: String
    /// A sentence without a full stop.
    package var text: String

    package init(code: String, text: String) {
        self.code = code
        self.text = text
    }
}

extension ActionRefusal {
    package static let unknownMessage = ActionRefusal(code: "UNKNOWN_MSGID", text: "No such message, or it is too old")
}

/// Whose messages somebody may take back.
package enum RedactionRight {
    case own
    /// Also those of other IRC users, as a channel operator: the backend has them from us.
    case ofIRCUsers
    /// Also those of people upstream, as an administrator, as far as the backend lets the room's account.
    case everybodys
}
