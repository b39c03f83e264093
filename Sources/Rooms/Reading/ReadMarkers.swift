import ChatModel

/// The read position of a member.
package struct ReadMarker {
    package var at: ChatTimestamp
    /// The sequence number of the newest message that it passed. Some wires count whole seconds: the next message may
    /// bear the same time.
    package var sequence: Int
}

/// The read markers of a room, by the readers' ids upstream, present or not.
package final class ReadMarkers {
    /// Markers of absent readers are dropped past this.
    private static let capacity = 10_000

    private var markers: [ChatID: ReadMarker] = [:]

    package var values: some Sequence<ReadMarker> { markers.values }

    package subscript(reader: ChatID) -> ReadMarker? { markers[reader] }

    /// - Parameter isHere: asked where the table is full.
    func set(_ marker: ReadMarker, of reader: ChatID, keeping isHere: (ChatID) -> Bool) {
        if markers.count >= Self.capacity, markers[reader] == nil { markers = markers.filter { isHere($0.key) } }
        markers[reader] = marker
    }

    func restore(_ stored: [StoredMarker]) {
        for marker in stored.sorted(by: { $0.at < $1.at }).suffix(Self.capacity) {
            markers[marker.reader] = ReadMarker(at: marker.at, sequence: Int(clamping: marker.sequence))
        }
    }

    func forget(_ reader: ChatID) { markers[reader] = nil }
}
