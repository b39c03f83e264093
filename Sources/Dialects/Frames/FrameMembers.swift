import JSONText

/// The members of an object that a dialect reads. Valid for as long as the frame's bytes are.
protocol FrameMembers {
    init()
    /// Called for each member in order: the last of members with the same name counts.
    mutating func set(_ key: JSONField, _ value: JSONField)
}

extension FrameMembers {
    /// Reads an object that a reader has passed.
    init(_ object: JSONField) {
        self.init()
        for (key, value) in object.members { set(key, value) }
    }

    /// Reads a whole frame.
    ///
    /// - Returns: nil, or why the frame cannot be read.
    @inline(__always)
    mutating func read(_ frame: UnsafeRawBufferPointer) -> DropReason? {
        do throws(JSONError) {
            var reader = try JSONReader(frame)
            let isObject = try reader.enterObject()
            if isObject {
                while let (key, value) = try reader.nextMember() { set(key, value) }
            } else {
                _ = try reader.readValue()
            }
            try reader.finish()
            return isObject ? nil : .notObject
        } catch {
            return .malformed
        }
    }
}
