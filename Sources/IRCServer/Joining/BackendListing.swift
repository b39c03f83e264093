import BridgeTypes
import Dialects
import IRCProtocol

/// The rooms that a backend says it has, as channels.
struct BackendListing {
    /// Rooms of one backend that are listed and can be looked up; a list is as long as a backend likes.
    static let maxRooms = 10_000
    /// Bytes of a channel's name after its `#` that may open a room; as for configured channels.
    static let maxNameBytes = 63

    struct Entry {
        var channel: String
        var room: BackendRoom
    }

    private(set) var entries: [Entry] = []
    private var indices: [String: Int] = [:]

    init(_ rooms: [BackendRoom], casemapping: IRCCasemapping) {
        for room in rooms.prefix(Self.maxRooms) {
            guard let channel = Self.channel(room.name) else { continue }
            let key = casemapping.fold(channel)
            // Two rooms of one name cannot be told apart by it; the second is found by its id.
            if indices[key] == nil {
                indices[key] = entries.count
                entries.append(Entry(channel: channel, room: room))
            } else if let other = Self.channel(room.id), indices[casemapping.fold(other)] == nil {
                indices[casemapping.fold(other)] = entries.count
                entries.append(Entry(channel: other, room: room))
            }
        }
        for (index, entry) in entries.enumerated() {
            guard let channel = Self.channel(entry.room.id) else { continue }
            let key = casemapping.fold(channel)
            if indices[key] == nil { indices[key] = index }
        }
    }

    func entry(folded channel: String) -> Entry? { indices[channel].map { entries[$0] } }

    /// What a room is called today that the backend knows by this id or name; nil: it is not found by that.
    func channel(of upstreamRoom: String, casemapping: IRCCasemapping) -> String? {
        guard let id = Self.channel(upstreamRoom), let entry = entry(folded: casemapping.fold(id)),
            entry.room.id == upstreamRoom || entry.room.id.isEmpty && entry.room.name == upstreamRoom
        else { return nil }
        return entry.channel
    }

    /// `#general-chat` for "General Chat"; nil when nothing is left of the name.
    static func channel(_ name: String) -> String? {
        var text = ""
        var dashed = false
        for scalar in name.unicodeScalars {
            if scalar == " " || scalar == "," || scalar == ":" || PrintableText.isControl(scalar)
                || scalar.properties.isWhitespace
            {
                // At the ends, and next to another, a dash says nothing.
                dashed = !text.isEmpty
            } else {
                if dashed { text += "-" }
                dashed = false
                let isUpper = scalar.value >= 0x41 && scalar.value <= 0x5A
                text.unicodeScalars.append(isUpper ? Unicode.Scalar(UInt8(scalar.value) | 0x20) : scalar)
            }
        }
        let kept = PrintableText.prefix(of: text, maxBytes: maxNameBytes)
        return kept.isEmpty ? nil : "#" + kept
    }
}
