/// A large value that is the same in most copies: they share it until one of them changes.
@propertyWrapper
package struct Shared<Value> {
    private final class Box {
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    private var box: Box

    package init(wrappedValue: Value) { box = Box(wrappedValue) }

    package var wrappedValue: Value {
        get { box.value }
        set {
            if isKnownUniquelyReferenced(&box) { box.value = newValue } else { box = Box(newValue) }
        }
    }
}

extension Shared: Equatable where Value: Equatable {
    package static func == (one: Self, other: Self) -> Bool {
        one.box === other.box || one.box.value == other.box.value
    }
}

// A box is written only while a single copy refers to it, so that no other thread can read it then.
extension Shared: @unchecked Sendable where Value: Sendable {}
