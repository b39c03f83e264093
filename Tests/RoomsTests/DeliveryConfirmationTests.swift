import Dialects
import Testing

@testable import Rooms

@Suite("DeliveryConfirmation")
struct DeliveryConfirmationTests {
    enum Event { case answered, missed, readBefore, readAfter, linkLost }

    struct Row: CustomTestStringConvertible {
        var name: String
        var confirmation: DialectTraits.Confirmation
        var isGuess = false
        var events: [Event]
        var answers: DeliveryConfirmation.Answers
        /// Number of unexpected answers.
        var news = 0
        var testDescription: String { name }
    }

    static let rows = [
        Row(name: "promised and silent", confirmation: .receipt, events: [.missed, .readAfter], answers: .promised),
        Row(name: "presumed at first", confirmation: .echoByID, isGuess: true, events: [], answers: .presumed),
        Row(
            name: "presumed and silent", confirmation: .echoByID, isGuess: true, events: [.missed, .readAfter],
            answers: .absent, news: 1),
        Row(
            name: "a pong of before the doubt proves nothing", confirmation: .echoByID, isGuess: true,
            events: [.missed, .readBefore], answers: .presumed),
        Row(
            name: "nor does one over the next link", confirmation: .echoByID, isGuess: true,
            events: [.missed, .linkLost, .readAfter], answers: .presumed),
        Row(
            name: "answered once, never doubted again", confirmation: .receipt, isGuess: true,
            events: [.answered, .missed, .readAfter], answers: .promised),
        Row(
            name: "it answers after all", confirmation: .echoByID, isGuess: true,
            events: [.missed, .readAfter, .answered], answers: .presumed, news: 2),
        Row(name: "nothing is expected", confirmation: .none, events: [.missed, .readAfter], answers: .absent),
        Row(name: "an echo nobody promised", confirmation: .none, events: [.answered], answers: .presumed, news: 1),
        Row(
            name: "and it stays away again", confirmation: .none, events: [.answered, .missed, .readAfter],
            answers: .absent, news: 2),
    ]

    @Test("the confirmation inferred from answers", arguments: rows)
    func table(_ row: Row) {
        var traits = DialectTraits(
            name: "t", identity: .single, messageIDOrigin: .client, echoesOwnMessages: false,
            confirmation: row.confirmation, typingOut: .none,
            backoff: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(1), jitter: 0, degradedAfter: 1))
        traits.confirmationIsGuess = row.isGuess
        var delivery = DeliveryConfirmation(traits)
        var news = 0
        for event in row.events {
            switch event {
            case .answered: news += delivery.answered() ? 1 : 0
            case .missed: delivery.missed(frameCount: 5)
            case .readBefore: news += delivery.hasRead(frameCount: 4) ? 1 : 0
            case .readAfter: news += delivery.hasRead(frameCount: 5) ? 1 : 0
            case .linkLost: delivery.linkLost()
            }
        }
        #expect(delivery.answers == row.answers)
        #expect(news == row.news)
        #expect(delivery.acceptsPongs == (row.answers == .absent))
        switch (row.answers, row.confirmation) {
        case (.absent, _): #expect(delivery.confirmation == .none)
        case (_, .none): #expect(delivery.confirmation == .echoByID)
        default: #expect(delivery.confirmation == row.confirmation)
        }
    }
}
