import BridgeTypes
import Dialects
import Upstream

// Adapters between machines with actions of their own and the bridge's list.

extension RoomsContext {
    /// Runs a verb of a link, and passes on its actions.
    package func drive<Outcome>(_ link: UpstreamSession, _ verb: (inout Turn) -> Outcome) -> Outcome {
        let outcome = verb(&turn)
        link.handActions { carryOut($0, of: link) }
        return outcome
    }

    /// Runs a verb of a backend account, and passes on its actions.
    package func drive<Outcome>(_ account: BackendAccount, _ verb: (inout Turn) -> Outcome) -> Outcome {
        let outcome = verb(&turn)
        for action in account.takeActions() { carryOut(action, of: account) }
        return outcome
    }

    private func carryOut(_ action: LinkAction, of link: UpstreamSession) {
        let room = link.room
        switch action {
        case .readCredentials(let afterRefusal) where link.usesAccount:
            requestCredentials(room, afterRefusal: afterRefusal)
        case .readCredentials(let afterRefusal): emit(.readCredentials(room, afterRefusal: afterRefusal))
        case .connect(let endpoint, let isSecure, let timeout):
            emit(.connectUpstream(room, to: endpoint, isSecure: isSecure, timeout: timeout))
        case .startTLS(let host): emit(.startTLS(room, host: host))
        case .send(let bytes): emit(.sendUpstream(room, bytes))
        case .close(let flush): emit(.closeUpstream(room, flush: flush))
        case .note(let note): emit(.note(note))
        }
    }

    private func carryOut(_ action: AccountAction, of account: BackendAccount) {
        switch action {
        case .readTokens: emit(.readTokens(account.id))
        case .saveTokens(let tokens): emit(.saveTokens(account.id, tokens))
        case .readSecrets: emit(.readSecrets(account.id))
        case .call(let call, let order): emit(.callBackend(call, order))
        case .note(let note): emit(.note(note))
        }
    }

    /// Takes the links that may connect now.
    package func takeConnectSlots() -> [RoomID] { upstream.connects.grant(&turn) }
}

// Verbs of links as rooms use them.
extension UpstreamSession {
    package func start(_ context: RoomsContext) { context.drive(self) { start(&$0) } }

    package func stop(_ context: RoomsContext) -> [LinkEvent] { context.drive(self) { stop(&$0) } }

    func reopen(
        _ reason: String, restartsTry: Bool = false, _ context: RoomsContext
    ) -> (outcome: Reopening, events: [LinkEvent]) {
        context.drive(self) { reopen(reason, restartsTry: restartsTry, &$0) }
    }

    /// False: the link cannot send now.
    package func send(_ command: EncodedCommand, _ context: RoomsContext) -> Bool {
        switch command {
        case .frame(let frame): context.drive(self) { send(frame, &$0) }
        case .several(let frames): send(frames, context)
        case .unsupported: false
        }
    }

    package func send(_ frames: [EncodedFrame], _ context: RoomsContext) -> Bool {
        context.drive(self) { send(frames, &$0) }
    }

    package func checkLiveness(requiresAnswer: Bool = false, _ dialectContext: DialectContext, _ context: RoomsContext)
    {
        context.drive(self) { checkLiveness(requiresAnswer: requiresAnswer, dialectContext, &$0) }
    }

    func probeDelivery(_ context: RoomsContext) { context.drive(self) { probeDelivery(&$0) } }

    package func credentialsRenewed(
        _ fresh: UpstreamCredentials, dialectContext: DialectContext, _ context: RoomsContext
    ) -> [LinkEvent] {
        context.drive(self) { credentialsRenewed(fresh, dialectContext: dialectContext, &$0) }
    }
}
