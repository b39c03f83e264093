import BridgeTypes
import Dialects
import IRCProtocol
import Rooms
import WireBytes

// The template's backend has said which rooms it has, or has not in time: who waited for that goes on.

extension IRCServer {
    /// The template's backend has told its rooms.
    package func roomsListed(_ rooms: [BackendRoom]) {
        directory.listed(BackendListing(rooms, casemapping: settings.casemapping))
        context.timers.cancel(.roomsRetry)
        endWaitingLists()
        defer { bringBackWaiting() }
        guard directory.hasJoins else { return }
        context.timers.cancel(.roomsList)
        for (client, channel) in directory.takeJoins() {
            guard let session = sessions[client] else { continue }
            join(channel, session)
            pullLongAnswers(session)
        }
    }

    package func templateRoomsFailed() {
        guard let pause = directory.failed() else { return }
        endWaitingLists()
        context.timers.set(.roomsRetry, at: context.now.monotonic + pause)
    }

    /// The list is there, or nobody waits for it any longer.
    package func endWaitingLists() {
        context.timers.cancel(.listing)
        for client in directory.takeLists() {
            guard let session = sessions[client],
                let listing = session.longAnswers.first?.subject as? RoomListing, case .unopened = listing.place
            else { continue }
            if directory.listing == nil { listing.stopWaiting() }
            goOn(session)
        }
    }

    /// The backend does not say which rooms it has.
    package func refuseWaitingJoins() {
        for (client, channel) in directory.takeJoins() {
            guard let session = sessions[client] else { continue }
            refuseJoin(
                channel, .errNoSuchChannel, "The rooms of the backend are not known yet; try again later", session)
        }
    }

    /// The backend said which rooms it has: who waited for that goes on.
    private func bringBackWaiting() {
        for client in directory.takeReturning() {
            guard let session = sessions[client] else { continue }
            bringBack(session)
            goOn(session)
        }
    }
}
