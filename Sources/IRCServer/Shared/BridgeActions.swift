import Rooms

/// What the driver is to do, in order: what the hub asks for itself, and what the rooms left before that.
package final class BridgeActions {
    private let context: RoomsContext
    private var list: [BridgeAction] = []
    /// The first of them that asks the store something.
    private var asksStoreFrom: Int?

    package init(_ context: RoomsContext) { self.context = context }

    package func append(_ action: BridgeAction) {
        takeOver()
        list.append(action)
    }

    /// Asks the store something about all that was changed until now.
    package func ask(_ question: BridgeAction) {
        takeOver()
        asksStoreFrom = asksStoreFrom ?? list.count
        list.append(question)
    }

    private func takeOver() {
        guard !context.actions.isEmpty else { return }
        context.handActions { list.append(BridgeAction($0)) }
    }

    package func take() -> [BridgeAction] {
        takeOver()
        if let order = context.ledger.take() {
            let action = BridgeAction.store(order.ticket, order.changes)
            // Who asks about a room's past sees all that was said before.
            if let first = asksStoreFrom { list.insert(action, at: first) } else { list.append(action) }
        }
        asksStoreFrom = nil
        defer { list.removeAll(keepingCapacity: true) }
        return list
    }
}

extension BridgeAction {
    package init(_ action: RoomsAction) {
        self =
            switch action {
            case .readCredentials(let link, let afterRefusal): .readCredentials(link, afterRefusal: afterRefusal)
            case .connectUpstream(let link, let endpoint, let isSecure, let timeout):
                .connectUpstream(link, to: endpoint, isSecure: isSecure, timeout: timeout)
            case .startTLS(let link, let host): .startTLS(link, host: host)
            case .sendUpstream(let link, let bytes): .sendUpstream(link, bytes)
            case .closeUpstream(let link, let flush): .closeUpstream(link, flush: flush)
            case .readTokens(let backend): .readTokens(backend)
            case .saveTokens(let backend, let tokens): .saveTokens(backend, tokens)
            case .readSecrets(let backend): .readSecrets(backend)
            case .callBackend(let call, let order): .callBackend(call, order)
            case .keepFile(let file): .keepFile(file)
            case .note(let note): .note(note)
            }
    }
}
