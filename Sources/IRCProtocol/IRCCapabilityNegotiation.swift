import WireBytes

/// One client's capability negotiation: the capabilities that it enabled, and whether registration waits for `CAP END`.
///
/// `CAP LS` or `CAP REQ` before registration holds registration until `CAP END`. A REQ is granted whole or not at all.
/// Lists are cut so that each line fits 510 bytes with `:server CAP nick …` around it.
///
/// Source: IRCv3 capability-negotiation.
public struct IRCCapabilityNegotiation: Sendable {
    /// One `CAP` line to the client; the caller puts `:server CAP <nick or *>` in front.
    public struct Reply: Hashable, Sendable {
        public var subcommand: String
        /// The parameters after the subcommand: a list, after `*` when more of it follows. Never empty.
        public var params: [String]

        public init(subcommand: String, params: [String]) {
            self.subcommand = subcommand
            self.params = params
        }
    }

    /// The result of a `CAP` command.
    public enum Outcome: Hashable, Sendable {
        /// Send these; they may be none.
        case replies([Reply])
        /// Negotiation is over: registration may go on. Never after registration.
        case ended
        /// Answer 410 ERR_INVALIDCAPCMD with the subcommand as the client wrote it.
        case invalid(subcommand: String)
        /// Answer 461 ERR_NEEDMOREPARAMS.
        case needMoreParams
    }

    /// Bytes of one reply's list.
    public static let maxListBytes = IRCEncoder.maxContentBytes - IRCLimits.listOverheadBytes

    /// The capabilities that the client may request.
    public private(set) var available: IRCCapabilitySet
    /// The capabilities that the client has enabled.
    public private(set) var enabled: IRCCapabilitySet = []
    /// Registration waits for `CAP END`.
    public private(set) var isNegotiating = false
    private var knows302 = false
    /// 301, or 302 once the client has asked for it or later. Never goes down.
    public var version: Int { knows302 ? 302 : 301 }

    private var values: [IRCCapability: String]
    /// The names under which capabilities were enabled, in that order. At most one for each name in the table.
    private var enabledNames: ShortList<IRCCapabilityTable.Name> = []

    /// - Parameter values: the text after `name=` in a list for 302 clients; no spaces.
    public init(available: IRCCapabilitySet, values: [IRCCapability: String] = [:]) {
        self.available = available
        self.values = values
    }

    /// Executes a `CAP` command with these parameters, the subcommand first.
    ///
    /// - Parameter listBytes: bytes that a list may have in the only line for a client below version 302: at most
    ///   ``listBytes(server:nick:)``.
    public mutating func commandReceived(
        params: [String], isRegistered: Bool, listBytes: Int = maxListBytes
    ) -> Outcome {
        guard let subcommand = params.first, !subcommand.isEmpty else { return .needMoreParams }
        switch IRCCasemapping.ascii.fold(subcommand) {
        case "ls":
            if !isRegistered { isNegotiating = true }
            return .replies(list(asked: params.dropFirst().first, listBytes))
        case "list":
            return .replies(wholeList("LIST", enabledNames.map(\.text), listBytes))
        case "req":
            guard params.count > 1 else { return .needMoreParams }
            if !isRegistered { isNegotiating = true }
            return .replies(request(words(params.dropFirst())))
        case "end":
            guard !isRegistered else { return .replies([]) }
            isNegotiating = false
            return .ended
        default:
            return .invalid(subcommand: subcommand)
        }
    }

    /// Bytes that the list of `:server CAP nick LIST :` may have.
    public static func listBytes(server: String, nick: String) -> Int {
        IRCEncoder.maxContentBytes - ": CAP  LIST :".utf8.count - server.utf8.count - nick.utf8.count
    }

    /// Replaces the offered capabilities by `available`; those no longer offered are disabled. One with a changed value
    /// is announced as new.
    ///
    /// - Parameter values: as in ``init(available:values:)``; nil: the same as before.
    /// - Returns: NEW and DEL lines, where the client has cap-notify; else none.
    public mutating func availabilityChanged(
        to available: IRCCapabilitySet, values: [IRCCapability: String]? = nil
    ) -> [Reply] {
        var available = available
        // A policy ends by its time, never by being taken away. Source: IRCv3 sts, "Mechanism".
        if self.available.contains(.sts) { available.insert(.sts) }
        var added = available.subtracting(self.available)
        let removed = self.available.subtracting(available)
        if let values {
            for kept in available.intersection(self.available).members where values[kept] != self.values[kept] {
                added.insert(kept)
            }
            self.values = values
        }
        self.available = available
        let notifies = enabled.contains(.capNotify)
        enabled = enabled.intersection(available)
        enabledNames.removeAll { removed.contains($0.capability) }
        guard notifies else { return [] }
        var lines: [Reply] = []
        if !removed.isEmpty {
            let names = removed.members.flatMap { IRCCapabilityTable.row(for: $0).names }
            lines += replies("DEL", names)
        }
        if !added.isEmpty { lines += replies("NEW", advertised(added)) }
        return lines
    }

    // MARK: - Subcommands

    private mutating func list(asked: String?, _ listBytes: Int) -> [Reply] {
        if let asked, Self.isAtLeast302(asked) {
            knows302 = true
            // "cap-notify is implicitly enabled" for these clients, whether or not it is listed.
            if available.contains(.capNotify), let name = IRCCapabilityTable.Name("cap-notify") { enable(name) }
        }
        return wholeList("LS", advertised(available), listBytes)
    }

    private mutating func request(_ words: [String]) -> [Reply] {
        var changes: [(name: IRCCapabilityTable.Name, enables: Bool)] = []
        for word in words {
            let enables = word.utf8.first != UInt8(ascii: "-")
            // STS is advertised, never requested. Source: IRCv3 sts, "Mechanism".
            guard let name = IRCCapabilityTable.Name(enables ? word : String(word.dropFirst())),
                available.contains(name.capability), name.capability != .sts,
                enables || name.capability != .capNotify || version < 302
            else {
                return replies("NAK", words)
            }
            changes.append((name, enables))
        }
        for change in changes {
            if change.enables { enable(change.name) } else { disable(change.name) }
        }
        return replies("ACK", words)
    }

    private mutating func enable(_ name: IRCCapabilityTable.Name) {
        enabled.insert(name.capability)
        if !enabledNames.contains(name) { enabledNames.append(name) }
    }

    /// A capability of several names stays while one of them is enabled.
    private mutating func disable(_ name: IRCCapabilityTable.Name) {
        enabledNames.removeAll { $0 == name }
        if !enabledNames.contains(where: { $0.capability == name.capability }) { enabled.remove(name.capability) }
    }

    private func advertised(_ set: IRCCapabilitySet) -> [String] {
        var set = set
        guard version >= 302 else {
            // Without its value it has no meaning. Source: IRCv3 sts, "Details".
            set.remove(.sts)
            // Other names are drafts of the first, younger than the clients that get one line.
            return set.members.compactMap { IRCCapabilityTable.row(for: $0).names.first }
        }
        return set.members.flatMap { capability in
            IRCCapabilityTable.row(for: capability).names.map { name in
                if let value = values[capability] { "\(name)=\(value)" } else { name }
            }
        }
    }

    // MARK: - Lists

    /// The words of parameters: clients write the list as one parameter, or omit its colon.
    private func words(_ params: ArraySlice<String>) -> [String] {
        params.flatMap { $0.utf8.split(separator: Byte.space).map { String(Substring($0)) } }
    }

    /// A list for a client that takes it as complete. Only version 302 knows that more lines may follow, by a mark; an
    /// older client takes a second line for another list, so it gets one line's worth.
    ///
    /// Source: IRCv3 capability-negotiation, "Multiline replies to CAP LS and CAP LIST".
    private func wholeList(_ subcommand: String, _ words: [String], _ listBytes: Int) -> [Reply] {
        guard version < 302 else { return replies(subcommand, words, marksMore: true) }
        return Array(replies(subcommand, words, maxBytes: listBytes).prefix(1))
    }

    /// Lines of a list, none longer than `maxBytes`; an empty list is one line.
    ///
    /// - Parameter marksMore: the subcommand marks every line but the last with `*`.
    private func replies(
        _ subcommand: String, _ words: [String], maxBytes: Int = maxListBytes, marksMore: Bool = false
    ) -> [Reply] {
        var lines = [""]
        for word in words {
            let word = word.utf8.count > maxBytes ? Self.truncated(word) : word
            let current = lines[lines.count - 1]
            if current.isEmpty {
                lines[lines.count - 1] = word
            } else if current.utf8.count + 1 + word.utf8.count <= maxBytes {
                lines[lines.count - 1] = current + " " + word
            } else {
                lines.append(word)
            }
        }
        return lines.enumerated().map { index, line in
            let hasMore = marksMore && index < lines.count - 1
            return Reply(subcommand: subcommand, params: hasMore ? ["*", line] : [line])
        }
    }

    private static func truncated(_ word: String) -> String {
        IRCTextSplitter.split(word, budget: maxListBytes).first ?? ""
    }

    private static func isAtLeast302(_ asked: String) -> Bool {
        var number = 0
        for byte in asked.utf8 {
            guard Byte.isDigit(byte) else { return false }
            number = min(number * 10 + Int(byte &- UInt8(ascii: "0")), 100_000)
        }
        return number >= 302
    }
}
