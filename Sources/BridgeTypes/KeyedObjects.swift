/// The key of the objects in a ``KeyedObjects`` table: a value that the objects hold themselves.
public protocol ObjectKeying {
    associatedtype Object: AnyObject
    associatedtype Key: Hashable
    static func key(of object: Object) -> Key
    /// The hash of an object's key; objects may cache it where computing the key is expensive.
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

// Ids are numbers that no peer chooses, so they need no keyed hash.

extension ObjectKeying where Key == ClientID {
    @inlinable
    public static func hash(_ key: ClientID) -> Int { spread(key.rawValue) }
}

extension ObjectKeying where Key == PersonID {
    package static func hash(_ key: PersonID) -> Int { spread(key.rawValue) }
}

/// Brings all bits of a number into the lower ones.
@usableFromInline
func spread(_ number: UInt64) -> Int {
    let product = number &* 0x9E37_79B9_7F4A_7C15
    return Int(truncatingIfNeeded: product >> 32 ^ product) & .max
}

/// A hash table of objects that hold their own key, one word a slot: a dictionary would store each key a second time.
///
/// Open addressing, linear probing, at most three quarters full. An object's key must not change while it is in the table.
///
/// Public rather than `package`, so that other targets get specialised code.
public struct KeyedObjects<Keying: ObjectKeying> {
    public typealias Object = Keying.Object
    public typealias Key = Keying.Key

    /// Their number is a power of two, or zero.
    @usableFromInline
    var slots: [Object?] = []
    @usableFromInline
    var occupied = 0

    @inlinable
    public init() {}

    @inlinable
    public var count: Int { occupied }

    @inlinable
    public var isEmpty: Bool { occupied == 0 }

    /// All objects, unordered.
    @inlinable
    public var values: some Sequence<Object> { slots.lazy.compactMap { $0 } }

    /// Their keys.
    @inlinable
    public var keys: some Sequence<Key> { slots.lazy.compactMap { $0.map(Keying.key) } }

    @inlinable
    public subscript(key: Key) -> Object? {
        guard count > 0 else { return nil }
        return slots[slot(of: key, hash: Keying.hash(key))]
    }

    /// Inserts an object, replacing the one with the same key.
    @inlinable
    public mutating func insert(_ object: Object) {
        if (count + 1) * 4 > slots.count * 3 { resize(to: max(8, slots.count * 2)) }
        let slot = slot(of: Keying.key(of: object), hash: Keying.hash(of: object))
        if slots[slot] == nil { occupied += 1 }
        slots[slot] = object
    }

    /// Removes and returns the object with that key.
    @inlinable @discardableResult
    public mutating func remove(_ key: Key) -> Object? {
        guard count > 0 else { return nil }
        var gap = slot(of: key, hash: Keying.hash(key))
        guard let removed = slots[gap] else { return nil }
        slots[gap] = nil
        occupied -= 1
        guard count > 0 else {
            slots = []
            return removed
        }
        // Backward-shift deletion: displaced objects move up, so that no probe ends at the gap.
        var next = gap
        while true {
            next = (next + 1) & (slots.count - 1)
            guard let object = slots[next] else { return removed }
            let home = Keying.hash(of: object) & (slots.count - 1)
            if (next - home) & (slots.count - 1) >= (next - gap) & (slots.count - 1) {
                slots.swapAt(gap, next)
                gap = next
            }
        }
    }

    /// The slot of the object with that key, or the free slot for it.
    @inlinable
    func slot(of key: Key, hash: Int) -> Int {
        var slot = hash & (slots.count - 1)
        while let object = slots[slot], !Keying.isKey(key, hash: hash, of: object) {
            slot = (slot + 1) & (slots.count - 1)
        }
        return slot
    }

    /// The slot for an object whose key is not in the table.
    @inlinable
    func freeSlot(hash: Int) -> Int {
        var slot = hash & (slots.count - 1)
        while slots[slot] != nil { slot = (slot + 1) & (slots.count - 1) }
        return slot
    }

    @inlinable
    mutating func resize(to count: Int) {
        let objects = slots
        slots = Array(repeating: nil, count: count)
        for case let object? in objects { slots[freeSlot(hash: Keying.hash(of: object))] = object }
    }
}
