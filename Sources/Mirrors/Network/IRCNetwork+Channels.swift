import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

// Joining, and what ends a stay.

extension IRCNetwork {
    // MARK: - Joining

    /// Joins every channel that is not joined yet, several with a line. Those with keys come first, as the keys of a line
    /// belong to its first channels.
    func joinAll(now: Now) {
        for index in channels.indices where !connection.support.isChannel(channels[index].settings.name) {
            refused(index, "channels of this network begin with \(connection.support.channelTypes)")
        }
        let pending = channels.indices.filter { channels[$0].phase == .apart }
        let order =
            pending.filter { channels[$0].settings.key != nil } + pending.filter { channels[$0].settings.key == nil }
        var line: [Int] = []
        var byteCount = 0
        for index in order {
            let channel = channels[index].settings
            let size = channel.name.utf8.count + (channel.key?.bytes.count ?? 0) + 2
            if line.count >= connection.support.joinTargets || byteCount + size > Self.maxJoinBytes {
                join(line, now: now)
                (line, byteCount) = ([], 0)
            }
            line.append(index)
            byteCount += size
        }
        join(line, now: now)
    }

    /// Bytes of a JOIN's parameters, with room for a source in front of it.
    private static let maxJoinBytes = 350

    private func join(_ indices: [Int], now: Now) {
        guard !indices.isEmpty else { return }
        let names = indices.map { channels[$0].settings.name }.joined(separator: ",")
        let keys = indices.compactMap { channels[$0].settings.key }
            .map { String(decoding: $0.bytes, as: UTF8.self) }.joined(separator: ",")
        if keys.isEmpty { request("JOIN", names) } else { request("JOIN", names, keys) }
        for index in indices { channels[index].joins(now: now.monotonic) }
    }

    func channelsTimerFired(now: Now) {
        for index in channels.indices {
            guard let due = channels[index].deadline, now.monotonic >= due else { continue }
            switch channels[index].phase {
            case .waiting: join([index], now: now)
            case .joining: waits(index, "the network did not answer the JOIN", seldom: false, now: now)
            case .joined: endCatchUp(index, now: now)
            case .apart, .refused: break
            }
        }
    }

    /// A numeric of ``NetworkJoinRefusal/table``.
    func joinRefused(_ message: IRCMessage, now: Now) {
        guard let refusal = NetworkJoinRefusal.table[message.command], message.params.count > 1,
            let index = channelIndex(message.params[1]), case .joining = channels[index].phase
        else { return }
        switch refusal.hope {
        case .none: refused(index, refusal.reason)
        case .soon: waits(index, refusal.reason, seldom: false, now: now)
        case .seldom: waits(index, refusal.reason, seldom: true, now: now)
        }
    }

    private func refused(_ index: Int, _ reason: String) {
        channels[index].refused()
        emit(.channel(channels[index].settings.name, .refused(reason: reason)))
    }

    private func waits(_ index: Int, _ reason: String, seldom: Bool, now: Now) {
        let until = channels[index].waits(seldom: seldom, now: now)
        emit(.channel(channels[index].settings.name, .waiting(reason: reason, until: until)))
    }

    // MARK: - Members

    /// A JOIN of any nick: ours may come without a request, too.
    func joinReceived(_ message: IRCMessage, now: Now) {
        guard isOurs(message.source), let source = message.source, let name = message.params.first else { return }
        learn(source: source)
        guard let index = channelIndex(name), channels[index].phase != .joined else { return }
        channels[index].joined(at: now.monotonic)
        emit(.channel(channels[index].settings.name, .joined))
        guard keepsHistory else { return }
        guard channels[index].lastSeen != nil else {
            // What is said from now on can be asked for later.
            return saw(IRCNetworkPosition(msgid: nil, time: Self.time(of: message) ?? now.wall), in: index)
        }
        beginCatchUp(index, now: now)
    }

    /// `KICK #channel nick :reason`.
    func kickReceived(_ message: IRCMessage, now: Now) {
        guard message.params.count > 1, isOurs(message.params[1]) else { return }
        let by = message.source.map { PrintableText.of(Self.nick(of: $0)) } ?? "the network"
        let said = message.params.count > 2 ? ": " + PrintableText.of(message.params[2]) : ""
        removed(from: message.params[0], "kicked by \(by)\(said)", now: now)
    }

    /// A PART of ours that we did not send.
    func partReceived(_ message: IRCMessage, now: Now) {
        guard isOurs(message.source), let name = message.params.first else { return }
        removed(from: name, "removed from the channel by the network", now: now)
    }

    private func removed(from name: String, _ reason: String, now: Now) {
        guard let index = channelIndex(name), channels[index].phase == .joined else { return }
        leave(index, reason, now: now)
    }

    private func leave(_ index: Int, _ reason: String, now: Now) {
        endCatchUp(index, now: now)
        let until = channels[index].removed(now: now)
        emit(.channel(channels[index].settings.name, .lost(reason: reason, until: until)))
        failAll(reason, in: index)
    }

    /// 442 ERR_NOTONCHANNEL: a removal that we did not hear of.
    func notOnChannel(_ message: IRCMessage, now: Now) {
        guard message.params.count > 1, let index = channelIndex(message.params[1]), channels[index].phase == .joined
        else { return }
        leave(index, "the network says that the client is not in the channel", now: now)
    }

    /// `INVITE nick #channel`.
    func inviteReceived(_ message: IRCMessage, now: Now) {
        guard message.params.count > 1, isOurs(message.params[0]), let index = channelIndex(message.params[1]) else {
            return
        }
        switch channels[index].phase {
        case .waiting, .refused: join([index], now: now)
        case .apart, .joining, .joined: break
        }
    }

    // MARK: - History

    /// Whether the network has what was said while we were away; without a registered connection, whether the last one had it.
    package var keepsHistory: Bool {
        connection.usableAt == nil ? keptHistory : connection.capabilities.enabled.contains(.chatHistory)
    }

    /// Asks for what was said since the last message.
    private func beginCatchUp(_ index: Int, now: Now) {
        channels[index].catchesUp(usesMsgid: connection.support.historyKnowsMsgid, now: now.monotonic)
        requestPage(index, now: now)
    }

    /// Reads on in the history of a channel: the owner has taken a page, or wants again what it could not take.
    ///
    /// - Parameter position: the last message that is kept; nil: all of them were taken.
    /// - Returns: false: not before the page that is being asked for is complete.
    package func readOn(_ channel: String, from position: IRCNetworkPosition?, now: Now) -> Bool {
        guard let index = channelIndex(channel) else { return true }
        if channels[index].catchUp?.until != nil { return false }
        if let position, position != channels[index].lastSeen {
            channels[index].saw(position)
            heardIDs = RecentIDs(capacity: Self.maxHeardIDs)
        }
        // Else it is asked for when the channel is joined.
        guard state == .usable, keepsHistory, channels[index].phase == .joined, channels[index].lastSeen != nil else {
            return true
        }
        if channels[index].catchUp == nil {
            beginCatchUp(index, now: now)
        } else {
            requestPage(index, now: now)
        }
        pump(now: now)
        return true
    }

    private func requestPage(_ index: Int, now: Now) {
        guard let catchUp = channels[index].catchUp, let position = channels[index].lastSeen else { return }
        let limit = min(connection.support.historyLimit ?? Self.maxPageMessages, Self.maxPageMessages)
        let msgid = catchUp.usesMsgid ? position.msgid : nil
        // Others may be of the same moment; what is known by its id is not taken again.
        let reference =
            msgid.map { "msgid=" + $0 }
            ?? "timestamp=" + IRCServerTime.format(milliseconds: position.time.milliseconds - 1)
        request("CHATHISTORY", "AFTER", channels[index].settings.name, reference, String(limit))
        channels[index].requestsPage(usesMsgid: msgid != nil, now: now.monotonic)
    }

    private static let maxPageMessages = 100

    /// A `chathistory` batch is complete.
    func historyReceived(_ batch: IRCBatches.Batch, now: Now) {
        guard batch.head.params.count > 2, let index = channelIndex(batch.head.params[2]),
            channels[index].catchUp != nil
        else { return }
        let before = channels[index].lastSeen
        // Servers need not give them in the order of their time.
        for message in batch.lines { heard(message, in: index, isHistory: true, now: now) }
        // An empty page is the end, and so is one that leads nowhere.
        guard channels[index].lastSeen != before else { return endCatchUp(index, now: now) }
        channels[index].tookPage()
        emit(.page(channel: channels[index].settings.name))
    }

    /// `FAIL CHATHISTORY <code> <subcommand> <target> …`.
    func historyRefused(_ message: IRCMessage, now: Now) {
        guard message.params.first == "CHATHISTORY",
            let index = message.params.compactMap({ channelIndex($0) }).first
                ?? channels.firstIndex(where: { $0.catchUp != nil }),
            let catchUp = channels[index].catchUp
        else { return }
        // An id that the network no longer knows: its time is as good.
        guard catchUp.usesMsgid else { return endCatchUp(index, now: now) }
        channels[index].forgetsMsgid()
        requestPage(index, now: now)
    }

    /// All is there, or no more is to be had: what was said meanwhile follows.
    func endCatchUp(_ index: Int, now: Now) {
        guard let live = channels[index].endCatchUp() else { return }
        for message in live { heard(message, in: index, isHistory: false, now: now) }
    }
}
