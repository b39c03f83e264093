import BridgeTypes
import Dialects
import IRCProtocol
import Rooms
import WireBytes

// The answer to the room list request, or its timeout: pending LIST and JOIN commands and returning clients resume.

extension IRCServer {
    /// The room list of the template's backend has arrived.
    package func roomsListed(_ rooms: [BackendRoom]) {
        directory.listed(BackendListing(rooms, casemapping: settings.casemapping))
        context.cancel(.roomsRetry)
        endWaitingLists()
        defer { bringBackWaiting() }
        guard directory.hasJoins else { return }
        context.cancel(.roomsList)
        for (client, channel) in directory.takeJoins() {
            guard let session = sessions[client] else { continue }
            join(channel, session)
            pullLongAnswers(session)
        }
    }

    package func templateRoomsFailed() {
        guard let pause = directory.failed() else { return }
        endWaitingLists()
        context.set(.roomsRetry, at: context.now.monotonic + pause)
    }

    /// Resumes pending LIST commands: the list is there, or their wait is over.
    package func endWaitingLists() {
        context.cancel(.listing)
        for client in directory.takeLists() {
            guard let session = sessions[client],
                let listing = session.longAnswers.first?.subject as? RoomListing, case .unopened = listing.place
            else { continue }
            if directory.listing == nil { listing.stopWaiting() }
            goOn(session)
        }
    }

    /// Refuses pending joins: the room list did not arrive in time.
    package func refuseWaitingJoins() {
        for (client, channel) in directory.takeJoins() {
            guard let session = sessions[client] else { continue }
            refuseJoin(
                channel, .errNoSuchChannel, "The rooms of the backend are not known yet; try again later", session)
        }
    }

    /// Resumes clients that waited for the room list to return to their account's rooms.
    private func bringBackWaiting() {
        for client in directory.takeReturning() {
            guard let session = sessions[client] else { continue }
            bringBack(session)
            goOn(session)
        }
    }
}
