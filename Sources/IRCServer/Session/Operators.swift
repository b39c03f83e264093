import BridgeTypes

/// Administrators who are here, by account or by OPER, and who reads WALLOPS.
final class Operators {
    private var people: Set<PersonID> = []
    private(set) var wallopsReaders: Set<PersonID> = []

    var count: Int { people.count }

    func contains(_ person: PersonID) -> Bool { people.contains(person) }

    /// False: they were one.
    @discardableResult
    func add(_ person: PersonID) -> Bool { people.insert(person).inserted }

    /// False: they were none.
    func remove(_ person: PersonID) -> Bool { people.remove(person) != nil }

    /// False: that was so.
    func setReadsWallops(_ person: PersonID, _ reads: Bool) -> Bool {
        reads ? wallopsReaders.insert(person).inserted : wallopsReaders.remove(person) != nil
    }

    /// The person is gone.
    func forget(_ person: PersonID) {
        people.remove(person)
        wallopsReaders.remove(person)
    }
}
