import ChatModel
import JSONText

/// The one call that a ``PlainJSONDialect`` can have: messages from an address that the configuration gives.
struct PlainJSONCalls: DialectCalls {
    /// The value of `{limit}` for a query without limit, in messages.
    static let unlimited = 10_000

    let dialect: PlainJSONDialect
    let template: CallTemplate

    var takesBefore: Bool { template.has(.before) || template.has(.beforeID) }

    var takesAfter: Bool { template.has(.since) }

    func request(for call: BackendCall, context: DialectContext) -> BackendRequest? {
        guard case .history(let query) = call else { return nil }
        let since = query.since.map(PlainJSONDialect.secondBefore) ?? ChatTimestamp(milliseconds: 0)
        // Times on the wire are whole seconds: up to the end of this one.
        let before = query.before.map { ChatTimestamp(milliseconds: min($0.milliseconds, .max - 999) + 999) }
        return template.target(
            room: query.room, since: dialect.spelled(since), limit: Self.limit(query),
            before: before.map(dialect.spelled),
            beforeID: query.beforeID?.rawValue
        ).map { BackendRequest(.get, $0) }
    }

    private static func limit(_ query: HistoryQuery) -> Int { max(query.limit ?? unlimited, 1) }

    /// The history counts as complete when fewer messages came than were asked for: there are none between these and the
    /// time that the query names. Where it can be asked for page by page, when none came: some servers give less than is asked.
    func reply(to call: BackendCall, answer: BackendAnswer, context: DialectContext) -> BackendReply {
        guard case .history(let query) = call else { return .unusable(.unsupported) }
        var messages: [ChatMessage] = []
        let outcome = CallAnswer.forEachElement(of: answer) { element in
            if let message = dialect.message(inHistory: element, context) { messages.append(message) }
        }
        switch outcome {
        case .failure(let failure): return .unusable(failure.reason)
        case .success(let count):
            let isComplete = takesBefore ? count == 0 : !template.has(.limit) || count < Self.limit(query)
            return .messages(messages, isComplete: isComplete)
        }
    }

    /// The article does not say how a server complains; these are the usual names.
    func complaint(_ answer: BackendAnswer) -> String? {
        guard let value = try? JSONValue(parsing: answer.body) else { return nil }
        return ["error", "message", "detail"].lazy.compactMap { CallAnswer.complaint(value[$0]?.string) }.first
    }
}
