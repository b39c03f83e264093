import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Rooms

// Settings of the components, derived from the bridge's.

extension IdentitySettings {
    package init(_ settings: BridgeSettings) {
        let (casemapping, nicks) = (settings.casemapping, settings.nicks)
        // Upstream, a relayed name has the id of a user with this nick.
        let relays = settings.accounts.contains(where: \.mayRelay)
        self.init(
            nicks: nicks,
            rules: NickRules(
                fold: { casemapping.fold($0) },
                isLegal: { IRCNames.isValidNickname($0, maxBytes: nicks.maxBytes, utf8: nicks.utf8) },
                mayBeTaken: { !relays || !RelayedName.isOne($0) },
                skeleton: { Confusables.skeleton(casemapping.foldPunctuation($0)) }),
            instanceID: settings.instanceID, reserved: [settings.serverName, "bridge", "*bridge"],
            accounts: settings.accounts.map(\.name))
    }
}

extension RoomsSettings {
    package init(_ settings: BridgeSettings) {
        let limits = settings.limits
        self.init(
            serverName: settings.serverName, nicks: settings.nicks, membersPerRoom: limits.membersPerRoom,
            upstreamMessagesPerSecond: limits.upstreamMessagesPerSecond,
            upstreamMessagesBurst: limits.upstreamMessagesBurst,
            upstreamConnectsPerSecond: limits.upstreamConnectsPerSecond, backends: settings.backends,
            ownLogins: Dictionary(
                settings.accounts.filter { !$0.ownLogins.isEmpty }.map { ($0.name, $0.ownLogins) },
                uniquingKeysWith: { first, _ in first }),
            media: settings.media, notesChatText: settings.notesChatText)
    }
}
