/// How objects of a ``KeyedObjects`` are told apart: by something that they hold themselves.
public protocol ObjectKeying {
    associatedtype Object: AnyObject
    associatedtype Key: Hashable
    static func key(of object: Object) -> Key
    /// The hash of an object's key; objects whose keys are dear to make may remember it.
    static func hash(of object: Object) -> Int
    static func hash(_ key: Key) -> Int
    static func isKey(_ key: Key, hash: Int, of object: Object) -> Bool
}

extension ObjectKeying {
    @inlinable
    public static func hash(of object: Object) -> Int { hash(key(of: object)) }
    @inlinable
    public static func hash(_ key: Key) -> Int { key.hashValue }
    @inlinable
    public static func isKey(_ key: Key, hash: Int, of object: Object) -> Bool { self.key(of: object) == key }
}

/// A table of objects by a key that they hold themselves, in a word for each place: a dictionary keeps the key once more.
///
/// Open addressing, linear probing, at most three quarters full. An object's key must not change while it is in the table.
///
/// Public, and not `package`: only then do other targets get code of it that is made for their objects.
public struct KeyedObjects<Keying: ObjectKeying> {
    public typealias Object = Keying.Object
    public typealias Key = Keying.Key

    /// A power of two of them, or none.
    @usableFromInline
    var places: [Object?] = []
    @usableFromInline
    var filled = 0

    @inlinable
    public init() {}

    @inlinable
    public var count: Int { filled }

    @inlinable
    public var isEmpty: Bool { filled == 0 }

    /// All objects, in no order that means anything.
    @inlinable
    public var values: some Sequence<Object> { places.lazy.compactMap { $0 } }

    /// Their keys.
    @inlinable
    public var keys: some Sequence<Key> { places.lazy.compactMap { $0.map(Keying.key) } }

    @inlinable
    public subscript(key: Key) -> Object? {
        guard count > 0 else { return nil }
        return places[place(of: key, hash: Keying.hash(key))]
    }

    /// Enters an object, in place of the one that has its key.
    @inlinable
    public mutating func insert(_ object: Object) {
        if (count + 1) * 4 > places.count * 3 { resize(to: max(8, places.count * 2)) }
        let place = place(of: Keying.key(of: object), hash: Keying.hash(of: object))
        if places[place] == nil { filled += 1 }
        places[place] = object
    }

    /// Takes the object of that key out.
    @inlinable @discardableResult
    public mutating func remove(_ key: Key) -> Object? {
        guard count > 0 else { return nil }
        var gap = place(of: key, hash: Keying.hash(key))
        guard let removed = places[gap] else { return nil }
        places[gap] = nil
        filled -= 1
        guard count > 0 else {
            places = []
            return removed
        }
        // Whoever stands behind the gap only because it was taken moves up, so that no search ends at it.
        var next = gap
        while true {
            next = (next + 1) & (places.count - 1)
            guard let object = places[next] else { return removed }
            let home = Keying.hash(of: object) & (places.count - 1)
            if (next - home) & (places.count - 1) >= (next - gap) & (places.count - 1) {
                places.swapAt(gap, next)
                gap = next
            }
        }
    }

    /// Where the object of that key is, or would be.
    @inlinable
    func place(of key: Key, hash: Int) -> Int {
        var place = hash & (places.count - 1)
        while let object = places[place], !Keying.isKey(key, hash: hash, of: object) {
            place = (place + 1) & (places.count - 1)
        }
        return place
    }

    /// Where a new object goes; its key is not in the table.
    @inlinable
    func vacancy(hash: Int) -> Int {
        var place = hash & (places.count - 1)
        while places[place] != nil { place = (place + 1) & (places.count - 1) }
        return place
    }

    @inlinable
    mutating func resize(to count: Int) {
        let objects = places
        places = Array(repeating: nil, count: count)
        for case let object? in objects { places[vacancy(hash: Keying.hash(of: object))] = object }
    }
}
