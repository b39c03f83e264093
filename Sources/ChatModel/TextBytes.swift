/// Byte-wise comparison of names of people and rooms, as backends compare them.
///
/// Swift's own comparison takes `é` for `e` and an accent, so that two people of a backend would be one here.
public enum TextBytes {
    /// Whether both are the same bytes in UTF-8.
    public static func areSame(_ a: String, _ b: String) -> Bool {
        let (x, y) = (a.utf8, b.utf8)
        guard x.count == y.count else { return false }
        let compared = x.withContiguousStorageIfAvailable { x in
            y.withContiguousStorageIfAvailable { y in
                var differences: UInt8 = 0
                for index in 0..<min(x.count, y.count) { differences |= x[index] ^ y[index] }
                return differences == 0
            }
        }
        return (compared ?? nil) ?? x.elementsEqual(y)
    }

    /// The same of texts that may be missing.
    public static func areSame(_ a: String?, _ b: String?) -> Bool {
        switch (a, b) {
        case (nil, nil): true
        case (let a?, let b?): areSame(a, b)
        default: false
        }
    }

    /// Feeds the bytes, and where they end.
    public static func hash(_ text: String, into hasher: inout Hasher) {
        let isFed: Void? = text.utf8.withContiguousStorageIfAvailable {
            hasher.combine(bytes: UnsafeRawBufferPointer($0))
        }
        if isFed == nil { for byte in text.utf8 { hasher.combine(byte) } }
        // No byte of UTF-8.
        hasher.combine(0xFF as UInt8)
    }

    /// The same of a text that may be missing.
    public static func hash(_ text: String?, into hasher: inout Hasher) {
        hasher.combine(text != nil)
        if let text { hash(text, into: &hasher) }
    }
}

extension ChatPerson {
    /// Names are compared byte by byte: without ids they identify people.
    public static func == (a: Self, b: Self) -> Bool { a.id == b.id && TextBytes.areSame(a.name, b.name) }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(id)
        TextBytes.hash(name, into: &hasher)
    }
}

extension StoredRoomKey {
    /// Rooms of a backend are compared byte by byte.
    public static func == (a: Self, b: Self) -> Bool {
        TextBytes.areSame(a.room, b.room) && TextBytes.areSame(a.backend, b.backend)
    }

    public func hash(into hasher: inout Hasher) {
        TextBytes.hash(backend, into: &hasher)
        TextBytes.hash(room, into: &hasher)
    }
}
