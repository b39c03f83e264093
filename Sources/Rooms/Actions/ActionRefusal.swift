import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

/// The reason for refusing an action, worded for the reply.
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

/// The messages that a user may redact.
package enum RedactionRight {
    case own
    /// Also those of other IRC users, as a channel operator: the relay sent them upstream itself.
    case ofIRCUsers
    /// Also those of upstream people, as an administrator, as far as the backend permits the room's account.
    case ofEveryone
}

/// The outcome of an action.
package enum ActionResult: Equatable {
    case done
    case refused(ActionRefusal)
    /// The backend has to be asked first; the reply follows its answer, with the given label.
    case later
}
