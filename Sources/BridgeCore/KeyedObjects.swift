/// How objects of a ``KeyedObjects`` are told apart: by something that they hold themselves.
protocol ObjectKeying {
    associatedtype Object: AnyObject
    associatedtype Key: Hashable
    static func key(of object: Object) -> Key
}

/// A table of objects by a key that they hold themselves, in a word for each place: a dictionary keeps the key once more.
///
/// Open addressing, linear probing, at most three quarters full. An object's key must not change while it is in the table.
struct KeyedObjects<Keying: ObjectKeying> {
    typealias Object = Keying.Object
    typealias Key = Keying.Key

    /// A power of two of them, or none.
    private var places: [Object?] = []
    private(set) var count = 0

    init() {}

    var isEmpty: Bool { count == 0 }

    /// All objects, in no order that means anything.
    var values: some Sequence<Object> { places.lazy.compactMap { $0 } }

    /// Their keys.
    var keys: some Sequence<Key> { places.lazy.compactMap { $0.map(Keying.key) } }

    subscript(key: Key) -> Object? {
        guard count > 0 else { return nil }
        return places[place(of: key)]
    }

    /// Enters an object, in place of the one that has its key.
    mutating func insert(_ object: Object) {
        if (count + 1) * 4 > places.count * 3 { resize(to: max(8, places.count * 2)) }
        let place = place(of: Keying.key(of: object))
        if places[place] == nil { count += 1 }
        places[place] = object
    }

    /// Takes the object of that key out.
    @discardableResult
    mutating func remove(_ key: Key) -> Object? {
        guard count > 0 else { return nil }
        var gap = place(of: key)
        guard let removed = places[gap] else { return nil }
        places[gap] = nil
        count -= 1
        guard count > 0 else {
            places = []
            return removed
        }
        // Whoever stands behind the gap only because it was taken moves up, so that no search ends at it.
        var next = gap
        while true {
            next = (next + 1) & (places.count - 1)
            guard let object = places[next] else { return removed }
            let home = home(of: Keying.key(of: object))
            if (next - home) & (places.count - 1) >= (next - gap) & (places.count - 1) {
                places.swapAt(gap, next)
                gap = next
            }
        }
    }

    private func home(of key: Key) -> Int { key.hashValue & (places.count - 1) }

    /// Where the object of that key is, or would be.
    private func place(of key: Key) -> Int {
        var place = home(of: key)
        while let object = places[place], Keying.key(of: object) != key { place = (place + 1) & (places.count - 1) }
        return place
    }

    private mutating func resize(to count: Int) {
        let objects = places
        places = Array(repeating: nil, count: count)
        for case let object? in objects { places[place(of: Keying.key(of: object))] = object }
    }
}
