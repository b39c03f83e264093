import BridgeTypes

/// Connected administrators, by account or by OPER, and the recipients of WALLOPS.
final class Operators {
    private var people: Set<PersonID> = []
    private(set) var wallopsReaders: Set<PersonID> = []

    var count: Int { people.count }

    func contains(_ person: PersonID) -> Bool { people.contains(person) }

    /// False: already an operator.
    @discardableResult
    func add(_ person: PersonID) -> Bool { people.insert(person).inserted }

    /// False: not an operator.
    func remove(_ person: PersonID) -> Bool { people.remove(person) != nil }

    /// False: no change.
    func setReadsWallops(_ person: PersonID, _ reads: Bool) -> Bool {
        reads ? wallopsReaders.insert(person).inserted : wallopsReaders.remove(person) != nil
    }

    /// The person has disconnected.
    func forget(_ person: PersonID) {
        people.remove(person)
        wallopsReaders.remove(person)
    }
}
