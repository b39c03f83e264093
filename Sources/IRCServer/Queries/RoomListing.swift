/// A LIST on its way to a client.
final class RoomListing {
    enum Place {
        /// The rooms, from this one on.
        case open(next: Int)
        /// Those that the template's backend has and nobody has opened.
        case unopened(next: Int)
    }

    let filter: ListFilter
    private(set) var place = Place.open(next: 0)
    /// It waits no longer for the backend to say which rooms it has.
    private(set) var isImpatient = false

    init(filter: ListFilter) { self.filter = filter }

    func listed(openRoom index: Int) { place = .open(next: index + 1) }
    func listedOpenRooms() { place = .unopened(next: 0) }
    func listed(unopenedRoom index: Int) { place = .unopened(next: index + 1) }
    func stopWaiting() { isImpatient = true }
}
