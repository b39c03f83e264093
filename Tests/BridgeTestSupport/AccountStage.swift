import BridgeCore
import BridgeTypes
import ChatModel
import Dialects
import IRCServer
import Upstream

/// The simulated environment of backend accounts: a disk with tokens, secrets, and servers that answer calls.
public struct AccountStage {
    public struct Call: Equatable {
        public var id: BackendCallID
        public var order: BackendCallRequest

        public var path: String { String(order.request.target.prefix { $0 != "?" }) }

        /// The bearer token.
        public var token: String? {
            order.authorization.headers.first { $0.name == "Authorization" }.map {
                $0.value.hasPrefix("Bearer ") ? String($0.value.dropFirst(7)) : $0.value
            }
        }

        public var body: String {
            if case .json(let bytes) = order.request.body { String(decoding: bytes, as: UTF8.self) } else { "" }
        }
    }

    /// Stored tokens, by the index of the backend.
    public var disk: [Int: StoredTokens] = [:]
    /// False: the test answers, with `Bridge.tokensSaved`.
    public var saves = true
    public var saveFailure: UpstreamCredentialsFailure?
    public var secrets: [Int: Result<BackendSecrets, UpstreamCredentialsFailure>] = [:]
    /// Answers a call at once; nil leaves it open, for the test.
    public var server: ((Call) -> Result<BackendCallResponse, BackendCallFailure>?)?
    /// Calls in their order, answered or not.
    public private(set) var calls: [Call] = []
    /// Saved tokens, in order, also those that did not reach the disk.
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

    /// Answers the oldest call; false: none is pending.
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
