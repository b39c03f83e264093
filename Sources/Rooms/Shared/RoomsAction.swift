import BridgeTypes
import ChatModel
import Media
import Upstream
import WireBytes

/// Requests of rooms, links and backend accounts to the machine. The hub moves them to its own list, in order.
package enum RoomsAction {
    case readCredentials(RoomID, afterRefusal: Bool)
    case connectUpstream(RoomID, to: UpstreamEndpoint, isSecure: Bool, timeout: Duration)
    case startTLS(RoomID, host: String)
    case sendUpstream(RoomID, ByteSlice)
    case closeUpstream(RoomID, flush: Bool)
    case readTokens(BackendID)
    case saveTokens(BackendID, StoredTokens)
    case readSecrets(BackendID)
    case callBackend(BackendCallID, BackendCallRequest)
    case keepFile(StoredFile)
    /// A mirrored room's order has more rows.
    case logged(RoomID)
    /// What a mirror brought is in a room's order.
    case mirrored(StoredMirrored)
    /// What a mirror brought could not be stored and was not taken, by its tags.
    case mirrorRefused(RoomID, tags: [StoredTag])
    /// A user in a mirrored room begins to write, or ceases to.
    case typing(RoomID, nick: String, Bool)
    case note(BridgeNote)
}
