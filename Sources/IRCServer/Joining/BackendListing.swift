import BridgeTypes
import Dialects
import IRCProtocol

/// The rooms that a backend lists, as channels.
struct BackendListing {
    /// Rooms of one backend that are listed and can be looked up; the backend's own list may be longer.
    static let maxRooms = 10_000
    /// Bytes of a channel name after its `#` that may open a room; as for configured channels.
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
            // Of two rooms with one name the second can only be found by its id.
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

    /// Today's channel of the room that the backend knows by this id or name; nil: not found.
    func channel(of upstreamRoom: String, casemapping: IRCCasemapping) -> String? {
        guard let id = Self.channel(upstreamRoom), let entry = entry(folded: casemapping.fold(id)),
            entry.room.id == upstreamRoom || entry.room.id.isEmpty && entry.room.name == upstreamRoom
        else { return nil }
        return entry.channel
    }

    /// The channel of a room name: `#general-chat` for "General Chat"; nil when no usable character is left.
    static func channel(_ name: String) -> String? {
        var text = ""
        var dashed = false
        for scalar in name.unicodeScalars {
            if scalar == " " || scalar == "," || scalar == ":" || PrintableText.isControl(scalar)
                || scalar.properties.isWhitespace
            {
                // Leading, trailing and repeated dashes are dropped.
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
