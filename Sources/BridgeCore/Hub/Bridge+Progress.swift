public import BridgeTypes
public import ChatModel
import IRCServer
import Rooms
public import Upstream

/// How far the opening of a room's link is.
public struct LinkProgress: Equatable, Sendable {
    public var room: RoomID
    /// The room's name in the configuration.
    public var name: String
    public var stage: LinkStage
    /// Why the last attempt failed: a sentence without a full stop, without secrets.
    public var reason: String?
    /// The HTTP status that refused the last handshake.
    public var status: Int?
    /// The first history has come, or there is none to wait for.
    public var isCaughtUp: Bool
    /// Why a history is missing: a part of a sentence.
    public var historyFailure: String?
    /// Who the backend says that the account of the link is; nil: it has not said so.
    public var person: ChatPerson?
    /// It was asked, and has not answered.
    public var isIdentifying: Bool
    /// Something that the backend sent is of the dialect.
    public var hasUnderstood: Bool
    /// Frames that should have been, where nothing was.
    public var strangeFrames: Int
    /// They are so many that the dialect seems to be another.
    public var understandsNothing: Bool
}

extension Bridge {
    /// The progress of each room's link, in the order of the settings.
    public var linkProgress: [LinkProgress] {
        rooms.map { room in
            let account = backends[room.settings.backend]
            return LinkProgress(
                room: room.id, name: room.settings.name, stage: room.link.progress, reason: room.link.lastReason,
                status: room.link.lastStatus, isCaughtUp: room.isLive, historyFailure: room.historyFailure,
                person: account?.person ?? room.announcedAccount, isIdentifying: account?.isIdentifying ?? false,
                hasUnderstood: room.hasUnderstood, strangeFrames: room.strangeFrames,
                understandsNothing: room.understandsNothing)
        }
    }
}
