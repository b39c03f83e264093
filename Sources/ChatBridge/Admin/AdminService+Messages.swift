import ChatModel
import Dialects
import IRCProtocol
import JSONText
import Rooms

// Messages of a room, a few at a time: the next ones are read when the client has taken those before.

extension AdminService {
    /// Messages read at a time; each may have attachments of some megabytes.
    private static let messagesAtOnce = 100
    static let defaultHistoryLimit: Int64 = 50
    static let maxHistoryLimit: Int64 = 10_000

    func history(_ call: AdminCall, _ exchange: AdminExchange) {
        guard let room = room(call, exchange) else { return }
        let since = call.number("since").map { ChatTimestamp(milliseconds: $0) }
        let limit = call.number("limit") ?? (since == nil ? Self.defaultHistoryLimit : Self.maxHistoryLimit)
        guard (1...Self.maxHistoryLimit).contains(limit) else {
            return exchange.fail(.badRequest, "\"limit\" is a number from 1 to \(Self.maxHistoryLimit)")
        }
        let query = StoredPageQuery(
            .newest(after: since.map { .time($0.after(-1)) }, before: nil), limit: Int(limit), withTakenBack: true)
        find(room, query) { [self] outcome in
            switch outcome {
            case .failure(let failure): exchange.fail(.unavailable, failure.sentence)
            case .success(let places):
                guard let first = places.sequences.first, let last = places.sequences.last else {
                    return exchange.done([.init("count", .integer(0))])
                }
                send(room, after: first - 1, through: last, query, count: 0, exchange)
            }
        }
    }

    func export(_ call: AdminCall, _ exchange: AdminExchange) {
        guard let room = room(call, exchange) else { return }
        send(room, after: .min, through: .max, nil, count: 0, exchange)
    }

    /// - Parameter query: leaves out what it does not show; nil: everything.
    private func send(
        _ room: String, after: Int64, through: Int64, _ query: StoredPageQuery?, count: Int64,
        _ exchange: AdminExchange
    ) {
        read(room, after: after, through: through, limit: Self.messagesAtOnce) { [self] outcome in
            switch outcome {
            case .failure(let failure): exchange.fail(.unavailable, failure.sentence)
            case .success(let rows):
                let shown = query.map { query in rows.filter(query.shows) } ?? rows
                let count = count + Int64(shown.count)
                write(shown[...], room, exchange) { [self] in
                    guard let last = rows.last, rows.count == Self.messagesAtOnce, last.sequence < through else {
                        return exchange.done([.init("count", .integer(count))])
                    }
                    exchange.whenDrained { [self] in
                        send(room, after: last.sequence, through: through, query, count: count, exchange)
                    }
                }
            }
        }
    }

    /// Writes as much as may wait for the client at once, and the rest when it has taken that.
    private func write(
        _ rows: ArraySlice<StoredMessage>, _ room: String, _ exchange: AdminExchange, then: @escaping () -> Void
    ) {
        var rest = rows
        while exchange.unreadBytes < AdminLimits.streamQueueBytes {
            guard let row = rest.popFirst() else { return then() }
            exchange.item(row.json(room: room))
        }
        exchange.whenDrained { [self, rest] in write(rest, room, exchange, then: then) }
    }
}

extension StoredMessage {
    /// As `history` and `export` give it; absent members are empty.
    func json(room: String) -> JSONValue {
        .canonical([
            "room": room, "seq": self.sequence, "msgid": self.msgid,
            "at": IRCServerTime.format(milliseconds: self.at.milliseconds),
            "kind": String(describing: self.kind), "nick": self.nick, "source": self.source,
            "account": self.account, "text": self.text, "sent_as": self.sentAs, "upstream_id": self.upstreamID,
            "sender": self.sender,
            "reply_to": self.replyTo, "deleted": self.isTakenBack, "encrypted": self.isEncrypted,
            "from_irc": self.author != nil,
            "client": self.client, "attachments": self.attachments,
            "backend_at": self.backendAt.map { IRCServerTime.format(milliseconds: $0.milliseconds) },
            "gap_from": self.gapFrom.map { IRCServerTime.format(milliseconds: $0.milliseconds) },
            "tags": JSONValue.object(self.clientTags.map { .init($0.name, .string($0.value ?? "")) }),
        ])
    }
}
