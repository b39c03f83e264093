import BridgeTypes
import ChatModel

extension Room {
    /// What a mirror brought is in the room's order: its tool's id for it is stored with it.
    func noteArrival(of origin: OutboxEntry.Origin, msgid: String, _ context: RoomsContext) {
        func tag(_ name: String) -> String? { origin.clientTags.first { $0.name == name }?.value }
        guard origin.client == nil, let id = tag(StoredMirrored.tag), let mirror = tag(RelayedName.tag) else { return }
        let known = StoredMirrored(mirror: mirror, room: storedKey, msgid: msgid, toolID: id, isTheirs: true)
        context.keep(.mirrored(known))
        context.emit(.mirrored(known))
    }

    /// A message was not stored, and so not taken. False: no mirror brought it.
    func tellMirror(_ origin: OutboxEntry.Origin, _ context: RoomsContext) -> Bool {
        let tags = origin.clientTags.map { StoredTag(name: $0.name, value: $0.value) }
        guard origin.client == nil, tags.contains(where: { $0.name == RelayedName.tag }) else { return false }
        context.emit(.mirrorRefused(id, tags: tags))
        return true
    }
}
