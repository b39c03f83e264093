import BridgeTypes

/// The place that a front end gives to a client among those with identical output. Stored in the member itself, so that
/// the front end needs no table.
package class MemberSlot {
    package final let client: ClientID
    // 32 bits: there are fewer clients than that.
    package final private(set) var group: Int32 = -1
    package final private(set) var position: Int32 = -1
    /// Live events wait for the backlog that the client is being sent.
    package final private(set) var isHeld = false

    package init(client: ClientID) { self.client = client }

    package final var isTaken: Bool { group >= 0 }

    package final func take(group: Int, position: Int, isHeld: Bool) {
        self.group = Int32(clamping: group)
        self.position = Int32(clamping: position)
        self.isHeld = isHeld
    }

    /// The last one of the group fills a vacated place.
    package final func move(to position: Int32) { self.position = position }

    package final func vacate() {
        group = -1
        isHeld = false
    }
}
