import BridgeTypes
import Identities

/// The interface through which a room shows itself to users.
package protocol RoomFrontEnd: AnyObject {
    func show(_ event: RoomEvent, in room: Room, to readers: RoomAudience)
    func tell(_ answer: RoomAnswer, in room: Room, to client: ClientID, label: String?)
    func tell(_ reading: RoomReading, in room: Room, to client: ClientID)
    /// A change of an upstream person, for all users that share a room with them, once each.
    func changed(_ person: PersonID, _ change: PersonChange)
    /// A client entered, left, or is being sent the backlog.
    func enter(_ member: LocalMember, isHeld: Bool, in room: Room)
    func leave(_ member: LocalMember, in room: Room)
    /// Calls back once the client has acknowledged all that was written to it before this.
    func whenReceived(by client: ClientID, _ received: @escaping () -> Void)
    /// Notifies these clients of failed messages in a room, behind notices in progress.
    func tellUntold(in room: Room, to clients: [ClientID])
    /// Whether the client is connected, in any rooms.
    func isHere(_ client: ClientID) -> Bool
    /// The room's link was closed because the room is empty.
    func roomFellSilent(_ room: RoomID)
    /// JOINs waiting for the room's link may proceed.
    func roomOpened(_ room: RoomID)
}
