import BridgeTestSupport
import BridgeTypes
import ChatModel
import Testing
import Upstream

@testable import Accounts
@testable import ChatBridge
@testable import Configuration
@testable import IRCServer
@testable import Identities
@testable import PlainServer
@testable import Rooms
@testable import Store
@testable import Studio

/// Numbers of constants, which no test of a behaviour reaches by counting.
@Suite("Numbers in the documents are those of the program")
struct DocumentedNumbersTests {
    private static let rows: [(page: String, words: String)] = [
        ("docs/IRC.md", "left \(IdentityMap.nickCooldown.components.seconds / 60) minutes ago"),
        ("docs/IRC.md", "at most \(AccountChannels.maxRooms) rooms"),
        ("docs/IRC.md", "up to \(HistoryAnswer.maxSearchedBytes >> 20) MiB of text"),
        ("docs/IRC.md", "access to \(PrivateConversations.maxCountOfAccount) conversations"),
        ("docs/IRC.md", "and \(PrivateConversations.maxMemoryBytes >> 20) MiB of all together"),
        ("docs/IRC.md", "batches of at most \(JoinBatches.maxPortion) every quarter of a second"),
        (
            "docs/BACKENDS.md",
            "At most \(OlderHistory.maxRows) messages and \(OlderHistory.maxBytes >> 20) MiB from before the beginning"
        ),
        (
            "docs/BACKENDS.md",
            "\(MediaBounds.uploads) uploads run at a time, \(MediaBounds.uploadsPerAccount) of one account (503), and "
                + "\(MediaBounds.downloads) downloads, \(MediaBounds.downloadsPerVisitor) of one visitor"
        ),
        (
            "docs/BACKENDS.md",
            "reads nothing for \(seconds(HTTPPace.Limits().stall)) s, or less than "
                + "\(HTTPPace.Limits().bytesPerSecond >> 10) KiB/s over \(seconds(HTTPPace.Limits().window)) s, is "
                + "disconnected, and after \(seconds(MediaBounds.patience)) s already"
        ),
        (
            "docs/BACKENDS.md",
            "Of \(HTTPServerBounds.maxConnections) connections one visitor has at most "
                + "\(HTTPServerBounds.connectionsPerVisitor); another \(HTTPServerBounds.spareConnections) are reserved"
        ),
        ("docs/BACKENDS.md", "at most \(grouped(MediaStore.maxFiles)); the oldest are removed"),
        ("docs/BACKENDS.md", "\(BackendLimits().callsAtOnce) at a time, \(BackendLimits().callsWaiting) waiting"),
        ("docs/BACKENDS.md", "rooms that a backend lists | \(grouped(BackendListing.maxRooms)) |"),
        ("docs/backends/custom.md", "one of more than \(grouped(CatchUp.maxForward)) messages is left out"),
        ("docs/MIRRORS.md", "newest \(MirrorService.firstsPerRoom) messages that mirrors have brought to a room"),
        (
            "docs/SECURITY.md",
            "\(seconds(CatchUp.patience)) s, \(CatchUp.maxHeldEvents) events, \(CatchUp.maxHeldBytes >> 20) MiB; "
                + "\(CatchUp.maxShown) shown"
        ),
        ("README.md", "Of an outage the newest \(CatchUp.maxShown) come"),
        ("README.md", "the newest \(LimitSettings().backlog) (`backlog`)"),
        (
            "docs/ADMIN.md",
            "At most \(AdminLimits.maxConnections) connections; a request has at most "
                + "\(AdminLimits.maxRequestBytes >> 10) KiB, and at most \(AdminLimits.maxWaiting) may wait"
        ),
        (
            "docs/ADMIN.md",
            "the newest \(AdminService.defaultHistoryLimit), or \(grouped(Int(AdminService.maxHistoryLimit))) with "
                + "`since`"
        ),
        ("docs/ADMIN.md", "in transactions of \(StoreEraser.sliceCount) messages"),
        (
            "docs/FEATURES.md",
            "at most \(LimitSettings().multilineMaxLines) lines and \(LimitSettings().multilineMaxBytes >> 10) KiB of "
                + "a message"
        ),
        ("docs/FEATURES.md", "among the room's last \(RecentLog.capacity)"),
        ("docs/MIRRORS.md", "those among the room's last \(StoredState.messagesPerRoom)"),
        ("docs/FAQ.md", "in the database, for \(days(StorageConfiguration().retention)) days"),
        ("docs/MIRRORS.md", "messages from there wait in memory, \(HeldArrivals.maxItems) at most"),
        ("docs/MIRRORS.md", "more than \(MirrorService.maxHookBytes >> 10) KiB is refused"),
        ("docs/OPERATIONS.md", "exits with 0 | \(seconds(StoreDriver.closeLimit)) s, where the disk stalls"),
        ("docs/SECURITY.md", "where \(BridgeDriver.maxWaitingPasswords) wait, a log-in is refused"),
        ("docs/SECURITY.md", "at most \(BridgeDriver.passwordThreads == 2 ? "two" : "?") at a time"),
        ("docs/SECURITY.md", "made \(ReplyGenerators.window >> 10) KiB at a time"),
        (
            "docs/SECURITY.md",
            "\(BackendLimits().callsAtOnce) at a time, \(BackendLimits().callsWaiting) waiting, "
                + "\(seconds(BackendLimits().callTimeout)) s and \(BackendLimits().answerBytes >> 20) MiB each"
        ),
        ("docs/STUDIO.md", "up to \(StudioLimits.maxPeers) in all"),
        ("docs/STUDIO.md", "has \(grouped(StudioRoom.maxMessages)) messages at most"),
        ("docs/STUDIO.md", "there are \(StudioRooms.maxRooms) rooms at most"),
        ("docs/TELNET.md", "or nothing for \(seconds(Entrance.patience)) s"),
        ("README.md", "it asks for a name after \(seconds(Entrance.patience)) s"),
        ("docs/TELNET.md", "for at most \(seconds(PlainPresence.typingLasts)) s"),
        ("docs/UPGRADING.md", "versions up to \(StoreSchema.version): it"),
        ("README.md", "Version \(BuildInformation.release); before 1.0.0"),
        ("docs/RELIABILITY.md", "buffered in memory, up to \(StoreSettings.defaultInboxBytes >> 20) MiB"),
    ]

    private static func days(_ duration: Duration?) -> Int64 { duration.map(seconds).map { $0 / 86400 } ?? 0 }

    private static func seconds(_ duration: Duration) -> Int64 { duration.components.seconds }

    /// `65,536`; of numbers below a million.
    private static func grouped(_ number: Int) -> String {
        let rest = String(number % 1000)
        return "\(number / 1000)," + String(repeating: "0", count: 3 - rest.count) + rest
    }

    @Test("each number stands in its sentence")
    func numbers() throws {
        for row in Self.rows {
            let page = try RepositoryFile.text(row.page).split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(page.contains(row.words), "\(row.page): \(row.words)")
        }
    }
}
