/// A list that mostly has one element or none, which then lies in the list itself: only more than one cost an allocation.
@frozen
public struct ShortList<Element>: RandomAccessCollection, RangeReplaceableCollection, ExpressibleByArrayLiteral {
    @frozen
    @usableFromInline
    enum Storage {
        case none
        case one(Element)
        case several([Element])
    }

    @usableFromInline var storage = Storage.none

    @inlinable
    public init() {}

    @inlinable
    public init(_ elements: some Sequence<Element>) { store(Array(elements)) }

    @inlinable
    public init(arrayLiteral elements: Element...) { store(elements) }

    @inlinable
    public var startIndex: Int { 0 }

    @inlinable
    public var endIndex: Int {
        switch storage {
        case .none: 0
        case .one: 1
        case .several(let elements): elements.count
        }
    }

    @inlinable
    public subscript(position: Int) -> Element {
        switch storage {
        case .none: preconditionFailure("beyond the end of the list")
        case .one(let element):
            precondition(position == 0, "beyond the end of the list")
            return element
        case .several(let elements): return elements[position]
        }
    }

    @inlinable
    public mutating func append(_ element: Element) {
        if case .none = storage { storage = .one(element) } else { store(Array(self) + [element]) }
    }

    @inlinable
    public mutating func replaceSubrange(_ range: Range<Int>, with elements: some Collection<Element>) {
        var all = Array(self)
        all.replaceSubrange(range, with: elements)
        store(all)
    }

    /// `O(n)`, as is each removal: these lists are short.
    @inlinable
    mutating func store(_ elements: [Element]) {
        storage =
            switch elements.count {
            case 0: .none
            case 1: .one(elements[0])
            default: .several(elements)
            }
    }
}

extension ShortList: Equatable where Element: Equatable {
    @inlinable
    public static func == (a: ShortList, b: ShortList) -> Bool { a.elementsEqual(b) }
}

extension ShortList: Sendable where Element: Sendable {}
extension ShortList.Storage: Sendable where Element: Sendable {}
