import IRCProtocol

/// The client's side of capability negotiation: what a server offers, and what of it is requested and enabled.
///
/// Source: IRCv3 capability-negotiation.
struct NetworkCapabilities {
    /// The first offered name of a row is requested.
    private static let wanted: [(capability: IRCCapability, names: [String])] = [
        (.messageTags, ["message-tags"]), (.serverTime, ["server-time"]), (.batch, ["batch"]),
        (.labeledResponse, ["labeled-response"]), (.echoMessage, ["echo-message"]), (.accountTag, ["account-tag"]),
        (.standardReplies, ["standard-replies"]), (.relaymsg, ["draft/relaymsg"]),
        (.messageRedaction, ["draft/message-redaction"]), (.multiline, ["draft/multiline"]),
        (.chatHistory, ["chathistory", "draft/chathistory"]), (.sasl, ["sasl"]),
    ]
    /// Without these the capability has no use.
    private static let needs: [IRCCapability: IRCCapabilitySet] = [
        .labeledResponse: [.batch, .messageTags], .multiline: [.batch, .messageTags], .messageRedaction: [.messageTags],
        .chatHistory: [.batch, .serverTime, .messageTags],
    ]
    /// Bytes of a value; a longer one is none.
    private static let maxValueBytes = 400

    private(set) var enabled: IRCCapabilitySet = []
    /// Names of the table with their values, in its order.
    private var offered: [String: String] = [:]
    /// Requested and not answered.
    private var requested: Set<String> = []

    /// All that was requested is answered.
    var isSettled: Bool { requested.isEmpty }

    func value(of capability: IRCCapability) -> String? { name(of: capability).flatMap { offered[$0] } }

    private func name(of capability: IRCCapability) -> String? {
        Self.wanted.first { $0.capability == capability }?.names.first { offered[$0] != nil }
    }

    /// A list of LS or NEW.
    mutating func offer(_ list: String) {
        for word in list.split(separator: " ") {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard let name = parts.first, Self.wanted.contains(where: { $0.names.contains(name) }) else { continue }
            let value = parts.count > 1 && parts[1].utf8.count <= Self.maxValueBytes ? parts[1] : ""
            offered[name] = value
        }
    }

    /// The names to request: offered, wanted, not enabled and not requested yet.
    ///
    /// - Parameter wantsLogin: SASL is of use.
    mutating func request(wantsLogin: Bool) -> [String] {
        let available = IRCCapabilitySet(Self.wanted.map(\.capability).filter { name(of: $0) != nil })
        let names = Self.wanted.compactMap { row -> String? in
            guard !enabled.contains(row.capability), row.capability != .sasl || wantsLogin,
                available.isSuperset(of: Self.needs[row.capability] ?? []), let name = name(of: row.capability),
                requested.insert(name).inserted
            else { return nil }
            return name
        }
        return names
    }

    /// - Parameter list: of ACK.
    mutating func acknowledge(_ list: String) {
        for word in list.split(separator: " ") {
            guard let row = Self.row(of: word.drop { $0 == "-" }) else { continue }
            requested.subtract(row.names)
            if word.hasPrefix("-") { enabled.remove(row.capability) } else { enabled.insert(row.capability) }
        }
    }

    /// - Parameter list: of NAK.
    /// - Returns: the names to request one by one, since one of several spoils the others.
    mutating func refuse(_ list: String) -> [String] {
        let names = list.split(separator: " ").map(String.init).filter { requested.contains($0) }
        if names.count > 1 { return names }
        requested.subtract(names)
        // What is refused is as if it was not offered.
        names.forEach { offered[$0] = nil }
        return []
    }

    /// - Parameter list: of DEL.
    mutating func withdraw(_ list: String) {
        for word in list.split(separator: " ") {
            guard let row = Self.row(of: word) else { continue }
            row.names.forEach { offered[$0] = nil }
            requested.subtract(row.names)
            enabled.remove(row.capability)
        }
        for (capability, needed) in Self.needs where !enabled.isSuperset(of: needed) { enabled.remove(capability) }
    }

    private static func row(of name: some StringProtocol) -> (capability: IRCCapability, names: [String])? {
        wanted.first { $0.names.contains { $0 == name } }
    }
}
