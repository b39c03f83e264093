import Configuration
import DescribedDialects
import Dialects

/// The confirmation of messages in a room with a described dialect, and the fate of unconfirmed ones when the link is
/// lost: deduced from the description, so the operator should see it.
struct ConfirmationReport: Equatable {
    var room: String
    var confirmedBy: String
    var afterALostLink: String

    /// One for each room with a described dialect, in their order.
    static func reports(_ configuration: Configuration) -> [Self] {
        configuration.rooms.compactMap { room in
            guard let dialect = try? configuration.dialect(of: room) as? CustomDialect else { return nil }
            return Self(room: room.name, dialect.traits)
        }
    }

    init(room: String, _ traits: DialectTraits) {
        self.room = room
        confirmedBy = Self.confirmedBy(traits)
        afterALostLink = Self.afterALostLink(traits) + (traits.isConfirmationDoubtful ? Self.doubt : "")
    }

    var line: String { "room \"\(room)\": confirmed by: \(confirmedBy); after a lost link: \(afterALostLink)" }

    private static func confirmedBy(_ traits: DialectTraits) -> String {
        switch (traits.confirmation, traits.messageIDOrigin) {
        case (.echoByID, _): "echo by id (the message comes back with the id that we gave it)"
        case (.echoByText, _): "echo by text (the message comes back with an id of the backend's)"
        case (.receipt, .server): "ack (receipt with ids and ref)"
        case (.receipt, .client): "receipt (with the id that we gave the message)"
        case (.none, _): "pong (a ping sent after the message shows that the backend's connection has read it)"
        }
    }

    private static func afterALostLink(_ traits: DialectTraits) -> String {
        let hasHistory = traits.history != .none
        switch (traits.confirmation, traits.messageIDOrigin, hasHistory) {
        case (.none, let origin, true):
            return "the history decides what arrived; what it lacks twice, at least 10 s apart, goes again, once"
                + (origin == .client ? ", with the same id" : "")
        case (_, .client, true): return "what the history has arrived, the rest goes again with the same id"
        case (_, .client, false): return "what was not confirmed goes again with the same id"
        case (_, .server, true): return "the history decides, else the author is told"
        case (_, .server, false): return "the author is told that it is not known whether it was delivered"
        }
    }

    private static let doubt =
        ". Deduced from the rules: a backend that lives and answers nothing within 10 s of its first message is"
        + " confirmed by pong instead"
}

extension DialectTraits {
    /// Whether a pong may replace the deduced confirmation.
    fileprivate var isConfirmationDoubtful: Bool { confirmationIsGuess && confirmation != .none }
}
