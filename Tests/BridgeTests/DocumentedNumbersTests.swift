import BridgeTestSupport
import BridgeTypes
import ChatModel
import Testing

@testable import Accounts
@testable import IRCServer
@testable import Identities
@testable import Rooms

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
        ("docs/MIRRORS.md", "newest \(StoredMirrored.perMirror) messages that mirrors have brought"),
        (
            "docs/SECURITY.md",
            "\(seconds(CatchUp.patience)) s, \(CatchUp.maxHeldEvents) events, \(CatchUp.maxHeldBytes >> 20) MiB; "
                + "\(CatchUp.maxShown) shown"
        ),
        ("README.md", "Of an outage the newest \(CatchUp.maxShown) come"),
        ("README.md", "the newest \(LimitSettings().backlog) (`backlog`)"),
    ]

    private static func seconds(_ duration: Duration) -> Int64 { duration.components.seconds }

    @Test("each number stands in its sentence")
    func numbers() throws {
        for row in Self.rows {
            let page = try RepositoryFile.text(row.page).split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(page.contains(row.words), "\(row.page): \(row.words)")
        }
    }
}
