import BridgeTypes
import ChatModel
import Media
import Upstream
import WireBytes

/// What rooms, their links and the accounts behind these ask of the machine. The hub puts it into its own list, in order.
package enum RoomsAction {
    case readCredentials(RoomID, afterRefusal: Bool)
    case connectUpstream(RoomID, to: UpstreamEndpoint, isSecure: Bool, timeout: Duration)
    case startTLS(RoomID, host: String)
    case sendUpstream(RoomID, ByteSlice)
    case closeUpstream(RoomID, flush: Bool)
    case readTokens(BackendID)
    case saveTokens(BackendID, StoredTokens)
    case readSecrets(BackendID)
    case callBackend(BackendCallID, BackendCallOrder)
    case keepFile(KeptFile)
    case note(BridgeNote)
}
