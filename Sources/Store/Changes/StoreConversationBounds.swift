import ChatModel

/// Limits the bytes of private conversations, which are invisible to others and share the disk with all.
///
/// The bytes are counted once a process and then added up, so the sum may only be too large: it is counted anew before
/// anything is removed. A sixteenth is removed at once, so that counting is rare.
final class StoreConversationBounds {
    /// The bytes that a conversation and an account may have.
    struct Limits: Sendable {
        var conversation = StoredConversation.maxBytes
        var account = StoredConversation.maxBytesOfAccount
    }

    /// Accounts and conversations whose bytes are cached, each about 100 bytes. With more the cache is cleared.
    private static let capacity = 20_000
    /// Rows read at a time.
    private static let sliceCount = 64

    private let limits: Limits
    /// By the room's id, and by the account's folded name.
    private var conversations: [Int64: Int64] = [:]
    private var accounts: [String: Int64] = [:]
    private let total: SQLiteStatement
    private let ofAccount: SQLiteStatement
    private let front: SQLiteStatement
    private let removeFront: SQLiteStatement

    init(_ connection: SQLiteConnection, _ limits: Limits) throws(SQLiteError) {
        self.limits = limits
        // The approximate bytes of a row beside its text are the same as in memory.
        let size = "(\(StoredConversation.fixedByteCount) + length(CAST(text AS BLOB)) + coalesce(length(tags), 0))"
        total = try connection.prepare("SELECT coalesce(sum(\(size)), 0) FROM messages WHERE room = ?")
        ofAccount = try connection.prepare(
            """
            SELECT id FROM rooms WHERE backend = '' AND (substr(room, 1, length(?1) + 1) = ?1 || char(10)
            OR substr(room, -(length(?1) + 1)) = char(10) || ?1) ORDER BY id
            """)
        front = try connection.prepare(
            "SELECT seq, \(size) FROM messages WHERE room = ? ORDER BY seq LIMIT \(Self.sliceCount)")
        removeFront = try connection.prepare("DELETE FROM messages WHERE room = ? AND seq <= ?")
    }

    /// The conversation's room is removed, and its id may be reused.
    func remove(room: Int64) { conversations[room] = nil }

    /// The transaction was rolled back.
    func removeAll() {
        conversations = [:]
        accounts = [:]
    }

    /// A message was entered in a conversation.
    func entered(_ message: StoredMessage, room: Int64, _ key: StoredRoomKey, _ values: SQLiteValues)
        throws(SQLiteError)
    {
        guard let parties = key.parties else { return }
        if conversations.count + accounts.count > Self.capacity { removeAll() }
        let size = StoredConversation.byteCount(of: message)
        var known: Int64
        if let before = conversations[room] { known = before + size } else { known = try bytes(ofRoom: room, values) }
        if known > limits.conversation {
            known = try bytes(ofRoom: room, values)
            let excess = known - Self.enough(limits.conversation)
            if known > limits.conversation { known -= try remove(excess, ofRoom: room, values) }
        }
        conversations[room] = known
        for account in Set([parties.one, parties.other]) where !StoredConversation.isVisitor(account) {
            let known: Int64
            if let before = accounts[account] { known = before + size } else { known = try bytes(of: account, values) }
            accounts[account] = known
            if known > limits.account { try trim(account, values) }
        }
    }

    private static func enough(_ limit: Int64) -> Int64 { limit / 16 * 15 }

    private func bytes(ofRoom room: Int64, _ values: SQLiteValues) throws(SQLiteError) -> Int64 {
        values.add(room)
        return try values.integer(total) ?? 0
    }

    private func rooms(of account: String, _ values: SQLiteValues) throws(SQLiteError) -> [Int64] {
        values.add(account)
        defer { values.finish(ofAccount) }
        try values.bind(to: ofAccount)
        var rooms: [Int64] = []
        while try ofAccount.step() { rooms.append(ofAccount.integer(0)) }
        return rooms
    }

    private func bytes(of account: String, _ values: SQLiteValues) throws(SQLiteError) -> Int64 {
        var sum: Int64 = 0
        for room in try rooms(of: account, values) {
            if let known = conversations[room] {
                sum += known
            } else {
                let known = try bytes(ofRoom: room, values)
                conversations[room] = known
                sum += known
            }
        }
        return sum
    }

    /// Takes the oldest messages from the largest conversations of an account until it is below its limit: small
    /// conversations stay, regardless of whose messages fill the others.
    private func trim(_ account: String, _ values: SQLiteValues) throws(SQLiteError) {
        var sizes: [(room: Int64, bytes: Int64)] = []
        for room in try rooms(of: account, values) { sizes.append((room, try bytes(ofRoom: room, values))) }
        var sum = sizes.reduce(0) { $0 + $1.bytes }
        var excess = sum > limits.account ? sum - Self.enough(limits.account) : 0
        while excess > 0 {
            sizes.sort { ($0.bytes, $1.room) > ($1.bytes, $0.room) }
            guard let largest = sizes.first else { break }
            // Down to the next one, and a little further, so that equal ones take turns.
            let lead = largest.bytes - (sizes.dropFirst().first?.bytes ?? 0)
            let freed = try remove(min(excess, lead + limits.account / 64), ofRoom: largest.room, values)
            guard freed > 0 else { break }
            sizes[0].bytes -= freed
            sum -= freed
            excess -= freed
        }
        for (room, bytes) in sizes { conversations[room] = bytes }
        accounts[account] = sum
    }

    /// Removes oldest messages, but never the newest one, until so many bytes are free; returns the number of bytes.
    private func remove(_ excess: Int64, ofRoom room: Int64, _ values: SQLiteValues) throws(SQLiteError) -> Int64 {
        var freed: Int64 = 0
        while freed < excess {
            var rows: [(sequence: Int64, bytes: Int64)] = []
            do {
                values.add(room)
                defer { values.finish(front) }
                try values.bind(to: front)
                while try front.step() { rows.append((front.integer(0), front.integer(1))) }
            }
            let isEnd = rows.count < Self.sliceCount
            var end: Int64?
            for row in isEnd ? rows.dropLast() : rows[...] where freed < excess {
                end = row.sequence
                freed += row.bytes
            }
            guard let end else { break }
            values.add(room)
            values.add(end)
            try values.run(removeFront)
            if isEnd { break }
        }
        return freed
    }
}
