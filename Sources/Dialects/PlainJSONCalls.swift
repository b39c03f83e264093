import ChatModel
import JSONText

/// The one call that a ``PlainJSONDialect`` can have: messages from an address that the configuration gives.
struct PlainJSONCalls: DialectCalls {
    /// What `{limit}` becomes when everything is wanted, in messages.
    static let unlimited = 10_000

    let dialect: PlainJSONDialect
    let template: CallTemplate

    func request(for call: BackendCall, context: DialectContext) -> BackendRequest? {
        guard case .history(let query) = call else { return nil }
        let since = query.since.map(PlainJSONDialect.secondBefore) ?? ChatTimestamp(milliseconds: 0)
        return template.target(room: query.room, since: dialect.spelled(since), limit: Self.limit(query))
            .map { BackendRequest(.get, $0) }
    }

    private static func limit(_ query: HistoryQuery) -> Int { max(query.limit ?? unlimited, 1) }

    /// The history counts as complete when fewer messages came than were asked for: there are none between these and the
    /// time that the query names.
    func reply(to call: BackendCall, answer: BackendAnswer, context: DialectContext) -> BackendReply {
        guard case .history(let query) = call else { return .unusable(.unsupported) }
        var messages: [ChatMessage] = []
        let outcome = CallAnswer.forEachElement(of: answer) { element in
            if let message = dialect.message(inHistory: element, context) { messages.append(message) }
        }
        switch outcome {
        case .failure(let failure): return .unusable(failure.reason)
        case .success(let count):
            return .messages(messages, isComplete: !template.has(.limit) || count < Self.limit(query))
        }
    }

    /// The article does not say how a server complains; these are the usual names.
    func complaint(_ answer: BackendAnswer) -> String? {
        guard let value = try? JSONValue(parsing: answer.body) else { return nil }
        return ["error", "message", "detail"].lazy.compactMap { CallAnswer.complaint(value[$0]?.string) }.first
    }
}
