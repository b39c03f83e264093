import BridgeCore
public import ChatModel
public import Dialects
import IRCServer
import JSONText
import Upstream

// Histories over calls, as `StubCalls` asks for them, played by the test.

extension BridgeHarness {
    /// Calls since the last look.
    public func takeHistoryQueries() -> [HistoryQuery] {
        noteHistoryCalls()
        defer { historyQueries = [] }
        return historyQueries
    }

    private func noteHistoryCalls() {
        for call in accounts.takeCalls() {
            guard let query = Self.query(call) else { continue }
            openHistoryCalls.append(call)
            historyQueries.append(query)
        }
    }

    private static func query(_ call: AccountStage.Call) -> HistoryQuery? {
        let target = call.order.request.target
        guard call.path == "/history", let mark = target.firstIndex(of: "?") else { return nil }
        var fields: [String: String] = [:]
        for field in target[target.index(after: mark)...].split(separator: "&") {
            let pair = field.split(separator: "=", maxSplits: 1)
            if pair.count == 2 { fields[String(pair[0])] = String(pair[1]) }
        }
        return HistoryQuery(
            room: fields["room"] ?? "", after: fields["after"].map { ChatID($0) },
            since: fields["since"].flatMap { Int64($0) }.map { ChatTimestamp(milliseconds: $0) },
            before: fields["before"].flatMap { Int64($0) }.map { ChatTimestamp(milliseconds: $0) },
            limit: fields["limit"].flatMap { Int($0) })
    }

    /// Answers the oldest question that is open; nothing happens when there is none. A failure with a status is an answer
    /// of the server.
    public func answerHistory(_ outcome: Result<[ChatMessage], BackendCallFailure>, isComplete: Bool = false) {
        noteHistoryCalls()
        guard !openHistoryCalls.isEmpty else { return }
        let call = openHistoryCalls.removeFirst()
        if case .failure(let failure) = outcome, let status = failure.status {
            let refusal = BackendCallResponse(BackendAnswer(status: status, body: []))
            return perform { bridge, now in
                bridge.backendAnswered(call.id, call.order.backend, .success(refusal), now: now)
            }
        }
        let answered = outcome.map { messages in
            let body = JSONValue.object([
                .init("messages", .array(messages.map { ChatEvent.message($0).canonicalJSON })),
                .init("complete", .bool(isComplete)),
            ])
            return BackendCallResponse(BackendAnswer(status: 200, body: body.bytes))
        }
        perform { bridge, now in bridge.backendAnswered(call.id, call.order.backend, answered, now: now) }
    }
}
