import Upstream

extension RoomPassage {
    package init(_ step: Step, in room: Room) { self.init(step, over: room.lane) }

    init(_ step: Step, over lane: SendLane) {
        let link = lane.link
        self.init(step, room: lane.roomName, account: lane.account) { link.scrubbed($0) }
    }
}
