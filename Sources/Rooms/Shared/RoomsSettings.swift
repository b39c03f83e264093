import BridgeTypes
import Identities
import Media
import Upstream

/// Settings common to all rooms.
package struct RoomsSettings {
    /// The relay's own name in the rooms.
    package var serverName: String
    package var nicks: NickSettings
    package var membersPerRoom: Int
    /// Sustained rate of frames to a room, with a burst; nil: no limit.
    package var upstreamMessagesPerSecond: Double?
    package var upstreamMessagesBurst: Double
    /// New connections over all rooms together; nil: no limit.
    package var upstreamConnectsPerSecond: Double?
    /// Backends with an account or calls.
    package var backends: [BackendSettings]
    /// Own credentials of accounts, by the account's and the room's name.
    package var ownLogins: [String: [String: OwnLoginSettings]]
    /// Files that the relay serves; nil: none.
    package var media: MediaSettings?
    /// Whether chat text may be noted, at trace.
    package var notesChatText: Bool

    package init(
        serverName: String, nicks: NickSettings = NickSettings(), membersPerRoom: Int = 10_000,
        upstreamMessagesPerSecond: Double? = 5, upstreamMessagesBurst: Double = 10,
        upstreamConnectsPerSecond: Double? = 20, backends: [BackendSettings] = [],
        ownLogins: [String: [String: OwnLoginSettings]] = [:], media: MediaSettings? = nil, notesChatText: Bool = false
    ) {
        self.serverName = serverName
        self.nicks = nicks
        self.membersPerRoom = membersPerRoom
        self.upstreamMessagesPerSecond = upstreamMessagesPerSecond
        self.upstreamMessagesBurst = upstreamMessagesBurst
        self.upstreamConnectsPerSecond = upstreamConnectsPerSecond
        self.backends = backends
        self.ownLogins = ownLogins
        self.media = media
        self.notesChatText = notesChatText
    }
}
