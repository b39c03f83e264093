/// The tools for which there are forms, by their names in the configuration.
package enum MirrorTool: String, CaseIterable, Sendable {
    case slack, mattermost, rocketchat, discord, teams, json

    package var form: any MirrorForm {
        switch self {
        case .slack: SlackForm()
        case .mattermost: MattermostForm()
        case .rocketchat: RocketChatForm()
        case .discord: DiscordForm()
        case .teams: TeamsForm()
        case .json: JSONForm()
        }
    }
}
