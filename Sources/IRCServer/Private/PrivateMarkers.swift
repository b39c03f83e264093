import ChatModel
import WireBytes

/// Read markers of private conversations.
package struct PrivateMarkers {
    /// Limit per person: more than any user has conversations; beyond it a new one is refused.
    static let maxCountOfPerson = 200

    /// The form in which nicks are compared. Stored nicks are folded as ASCII, which any other form can be made of.
    private let fold: (String) -> String
    /// By owner, then by the folded nick of the other party.
    private var markers: [ChatID: [String: ChatTimestamp]] = [:]

    enum Outcome: Equatable {
        case moved
        /// The marker is there already, or further.
        case stays
        case full
    }

    init(fold: @escaping (String) -> String) { self.fold = fold }

    func marker(of owner: ChatID, with nick: String) -> ChatTimestamp? { markers[owner]?[fold(nick)] }

    /// Markers only move forward.
    mutating func move(_ owner: ChatID, with nick: String, to at: ChatTimestamp) -> Outcome {
        let (own, nick) = (markers[owner] ?? [:], fold(nick))
        if let old = own[nick], at <= old { return .stays }
        guard own[nick] != nil || own.count < Self.maxCountOfPerson else { return .full }
        markers[owner, default: [:]][nick] = at
        return .moved
    }

    mutating func forget(_ owner: ChatID) { markers[owner] = nil }

    // MARK: - Persistence

    /// The stored key of all markers: a room that no backend has.
    package static let storedKey = StoredRoomKey(backend: "", room: "")

    /// A reader of that room: the owner, and the nick of the other party.
    static func stored(_ owner: ChatID, with nick: String, _ at: ChatTimestamp) -> StoredMarker {
        StoredMarker(reader: ChatID(owner.canonical + " " + ASCII.lowercased(nick)), at: at, sequence: 0)
    }

    /// The owner of a reader of that room, and the nick of the other party.
    private static func parts(_ reader: ChatID) -> (owner: ChatID, nick: String)? {
        let parts = reader.rawValue.split(separator: " ", maxSplits: 1).map(String.init)
        return parts.count == 2 ? (ChatID(parts[0]), parts[1]) : nil
    }

    /// The marker to persist; nil: there is none.
    func stored(_ reader: ChatID) -> StoredMarker? {
        guard let (owner, nick) = Self.parts(reader), let at = marker(of: owner, with: nick) else { return nil }
        return Self.stored(owner, with: nick, at)
    }

    mutating func restore(_ kept: [StoredMarker]) {
        for marker in kept.sorted(by: { $0.at > $1.at }) {
            guard let (owner, nick) = Self.parts(marker.reader) else { continue }
            _ = move(owner, with: nick, to: marker.at)
        }
    }
}
