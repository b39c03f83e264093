import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Media
import Rooms

extension IRCServer {
    /// The rows of 005: what this server can do, by the settings in force. Lengths are in bytes.
    func makeISupport() -> [[String]] {
        let limits = settings.limits
        var support = IRCISupport()
        support.add("AWAYLEN", IRCSession.maxAwayBytes)
        support.add("BOT", "B")
        support.add("CASEMAPPING", settings.casemapping.rawValue)
        support.add("CHANMODES", "b,,,imnt")
        support.add("CHANNELLEN", IRCNames.standardChannelBytes)
        support.add("CHANTYPES", "#")
        support.add("CHATHISTORY", limits.historyLimit)
        support.add("ELIST", ListFilter.elist)
        support.add("HOSTLEN", 63)
        support.add("KICKLEN", Self.maxKickBytes)
        support.add("MAXLIST", "b:\(RoomModeration.maxBans)")
        support.add("MAXTARGETS", IRCSession.maxTargets)
        support.add("MODES", Self.maxModeChanges)
        support.add("MONITOR", Monitors.maxTargets)
        support.add("MSGREFTYPES", "msgid,timestamp")
        support.add("NAMELEN", IRCSession.maxRealnameBytes)
        support.add("NETWORK", settings.network)
        support.add("NICKLEN", settings.nicks.maxBytes)
        support.add("PREFIX", "(ov)@+")
        support.add("SAFELIST")
        // Clients are neither delayed nor closed for sending much.
        if limits.messagesPerSecond == nil { support.add("SAFERATE") }
        support.add("TARGMAX", dispatch.commands.targetLimits)
        support.add("TOPICLEN", RoomModeration.maxTopicBytes)
        support.add("USERLEN", IRCSession.maxUserBytes)
        support.add("UTF8ONLY")
        support.add("WHOX")
        // Source: IRCv3 account-registration, "ISUPPORT token".
        if settings.requireLogin == .always, settings.password == nil { support.add("draft/ACCOUNTREQUIRED") }
        if let icon = settings.icon { support.add("draft/ICON", icon) }
        // Source: soju.im/filehost; IRCv3 filehost, a draft of the same.
        if takesUploads, let url = settings.media?.uploadURL {
            support.add("draft/FILEHOST", url)
            support.add("soju.im/FILEHOST", url)
        }
        return support.rows
    }
}
