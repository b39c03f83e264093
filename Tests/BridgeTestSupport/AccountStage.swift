import BridgeCore
import BridgeTypes
import ChatModel
import Dialects
import IRCServer
import Upstream

/// What surrounds the accounts at backends: a disk with tokens, secrets, and servers that answer calls, all played by the
/// test.
public struct AccountStage {
    public struct Call: Equatable {
        public var id: BackendCallID
        public var order: BackendCallOrder

        public var path: String { String(order.request.target.prefix { $0 != "?" }) }

        /// The token that it shows, without `Bearer `.
        public var token: String? {
            order.authorization.headers.first { $0.name == "Authorization" }.map {
                $0.value.hasPrefix("Bearer ") ? String($0.value.dropFirst(7)) : $0.value
            }
        }

        public var body: String {
            if case .json(let bytes) = order.request.body { String(decoding: bytes, as: UTF8.self) } else { "" }
        }
    }

    /// Kept tokens, by the index of the backend.
    public var disk: [Int: StoredTokens] = [:]
    /// False: the test answers, with `Bridge.tokensSaved`.
    public var saves = true
    public var saveFailure: UpstreamCredentialsFailure?
    public var secrets: [Int: Result<BackendSecrets, UpstreamCredentialsFailure>] = [:]
    /// Answers a call at once; nil leaves it open, for the test.
    public var server: ((Call) -> Result<BackendAnswered, BackendCallFailure>?)?
    /// Calls in their order, answered or not.
    public private(set) var calls: [Call] = []
    /// What was saved, in order, whether or not it reached the disk.
    public private(set) var saved: [StoredTokens] = []
    private var waiting: [BridgeAction] = []

    public init() {}

    mutating func ordered(_ action: BridgeAction) {
        waiting.append(action)
        switch action {
        case .callBackend(let id, let order): calls.append(Call(id: id, order: order))
        case .saveTokens(_, let tokens): saved.append(tokens)
        default: break
        }
    }

    /// Calls since the last look.
    public mutating func takeCalls() -> [Call] {
        defer { calls = [] }
        return calls
    }

    /// Answers what was ordered first; false when nothing is to be answered.
    mutating func answerOne(_ bridge: Bridge, _ now: Now) -> Bool {
        while !waiting.isEmpty {
            switch waiting.removeFirst() {
            case .readTokens(let id): bridge.tokensRead(id, disk[id.index], now: now)
            case .saveTokens(let id, let tokens):
                guard saves else { continue }
                if let saveFailure {
                    bridge.tokensSaved(id, .failure(saveFailure), now: now)
                } else {
                    disk[id.index] = tokens
                    bridge.tokensSaved(id, .success(()), now: now)
                }
            case .readSecrets(let id):
                let none = UpstreamCredentialsFailure("there are no secrets")
                bridge.secretsRead(id, secrets[id.index] ?? .failure(none), now: now)
            case .callBackend(let id, let order):
                guard let answer = server?(Call(id: id, order: order)) else { continue }
                bridge.backendAnswered(id, order.backend, answer, now: now)
            default: continue
            }
            return true
        }
        return false
    }
}
