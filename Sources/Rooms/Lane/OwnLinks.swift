import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

/// The accounts with own links in a room, and the messages of their earlier links.
package final class OwnLinks {
    /// A person's identification on the backend.
    private enum Key: Hashable {
        case id(ChatID)
        /// As bytes: names that differ in one are two people there.
        case name([UInt8])
    }

    /// A message of an account from before the start with an unknown upstream id.
    struct SentBefore {
        var msgid: String
        var sender: ChatPerson
        var text: String
    }

    private var byAccount: [String: OwnLink] = [:]
    /// Accounts by their identification on the backend.
    private var people: [Key: String] = [:]
    /// Message ids made by their links.
    let messageIDs = OwnMessageIDs()
    private var sentBefore: [SentBefore] = []
    /// Outboxes of links that are not open, by account.
    private var resting: [String: Outbox] = [:]

    /// The room's link brings our references as well.
    private(set) var hearsReferences = false

    package var isEmpty: Bool { byAccount.isEmpty }
    package var values: some Collection<OwnLink> { byAccount.values }
    package subscript(account: String) -> OwnLink? { byAccount[account] }

    /// In a fixed order.
    var sorted: [OwnLink] { byAccount.values.sorted { $0.account < $1.account } }

    /// The own link of a person on the backend.
    func speaking(_ sender: ChatPerson) -> OwnLink? {
        guard !byAccount.isEmpty else { return nil }
        if let id = sender.id { return people[.id(id)].flatMap { byAccount[$0] } }
        return sender.name.flatMap { people[.name(Array($0.utf8))] }.flatMap { byAccount[$0] }
    }

    /// The room's link brought a message of an own link with its reference.
    func hearReferences() { hearsReferences = true }

    func insert(_ own: OwnLink) { byAccount[own.account] = own }

    /// The link is closed for good.
    func remove(_ own: OwnLink) {
        byAccount[own.account] = nil
        if !own.outbox.failures.isEmpty { resting[own.account] = own.outbox }
        disclaim(own)
    }

    /// Registers the ids and names under which the backend shows the account.
    func claim(_ own: OwnLink) {
        for id in own.dialectContext.selfIDs { people[.id(id)] = own.account }
        for name in own.dialectContext.selfNames { people[.name(Array(name.utf8))] = own.account }
    }

    func disclaim(_ own: OwnLink) { people = people.filter { $0.value != own.account } }

    // MARK: - From before the start

    func sentBefore(_ message: SentBefore) { sentBefore.append(message) }

    var hasSentBefore: Bool { !sentBefore.isEmpty }

    /// Removes the newest message from before the start that matches a history's.
    func takeSentBefore(_ message: ChatMessage) -> String? {
        sentBefore.lastIndex { sent in
            sent.text == message.text
                && (sent.sender.id == message.senderID
                    || TextBytes.areSame(sent.sender.name, message.sender.name))
        }.map { sentBefore.remove(at: $0).msgid }
    }

    // MARK: - Outboxes without a link

    var hasResting: Bool { !resting.isEmpty }

    /// Accounts with queued messages and no link.
    var waitingAccounts: [String] {
        resting.keys.sorted().filter { resting[$0]?.isEmpty == false && byAccount[$0] == nil }
    }

    func restore(_ left: [StoredOutboxEntry], of account: String, _ settings: RoomSettings, _ now: Now) {
        resting[account, default: Outbox(settings.dialect.traits)].restore(left, settings, now)
    }

    /// Removes a waiting message that has arrived already.
    func confirmResting(_ id: ChatID) -> OutboxEntry? {
        for account in resting.keys.sorted() {
            if let entry = resting[account]?.confirm(id: id, sender: nil) { return entry }
        }
        return nil
    }

    func takeResting(of account: String) -> Outbox? { resting.removeValue(forKey: account) }

    /// - Returns: failures whose authors no longer exist.
    func eraseFailed() -> [FailedMessages.Item] {
        sorted.flatMap { $0.eraseFailed() } + resting.keys.sorted().flatMap { resting[$0]?.eraseFailed() ?? [] }
    }

    func disown(_ author: ChatID, as nobody: ChatID) -> [FailedMessages.Item] {
        sorted.flatMap { $0.disown(author, as: nobody) }
            + resting.keys.sorted().flatMap { resting[$0]?.disown(author, as: nobody) ?? [] }
    }
}
