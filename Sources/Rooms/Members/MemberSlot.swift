import BridgeTypes

/// The place that a front end gives to a client of a room, among those that are shown the same. It stands in the member itself, so
/// that the front end needs no table of its own.
package class MemberSlot {
    package final let client: ClientID
    // In half words: there are fewer clients than these count.
    package final private(set) var group: Int32 = -1
    package final private(set) var position: Int32 = -1
    /// What happens now waits for what the client is still given of the past.
    package final private(set) var isHeld = false

    package init(client: ClientID) { self.client = client }

    package final var isTaken: Bool { group >= 0 }

    package final func take(group: Int, position: Int, isHeld: Bool) {
        self.group = Int32(clamping: group)
        self.position = Int32(clamping: position)
        self.isHeld = isHeld
    }

    /// The last one of the group takes the place of one that went.
    package final func move(to position: Int32) { self.position = position }

    package final func vacate() {
        group = -1
        isHeld = false
    }
}
