/// The newest of a series of ids.
package struct RecentIDs {
    private let capacity: Int
    private var known: Set<String> = []
    private var order: [String] = []
    /// The place of the oldest, once all places are taken.
    private var oldest = 0

    package init(capacity: Int) { self.capacity = capacity }

    /// It did not happen after all.
    package mutating func remove(_ id: String) { known.remove(id) }

    package func contains(_ id: String) -> Bool { known.contains(id) }

    /// False: it was known.
    @discardableResult
    package mutating func insert(_ id: String) -> Bool {
        guard known.insert(id).inserted else { return false }
        if order.count < capacity {
            order.append(id)
        } else {
            known.remove(order[oldest])
            order[oldest] = id
            oldest = (oldest + 1) % capacity
        }
        return true
    }
}
