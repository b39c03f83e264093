/// Limits concurrent work, in total and for each owner. A permit is one place; it is released with its last reference,
/// however the work ends.
final class ConcurrencyLimiter {
    final class Permit {
        private let places: ConcurrencyLimiter
        private let owner: String

        fileprivate init(_ places: ConcurrencyLimiter, _ owner: String) {
            self.places = places
            self.owner = owner
        }

        deinit { places.free(owner) }
    }

    private let limit: Int
    private let limitOfEach: Int
    private let limitOfSharedAddress: Int
    private(set) var taken = 0
    private var takenByOwner: [String: Int] = [:]

    /// - Parameter limitOfSharedAddress: the limit of an owner that may be many clients; nil: three quarters of all,
    ///   since it may be all clients or a single one.
    init(limit: Int, limitOfEach: Int, limitOfSharedAddress: Int? = nil) {
        self.limit = limit
        self.limitOfEach = limitOfEach
        self.limitOfSharedAddress = limitOfSharedAddress ?? limit - limit / 4
    }

    var isFull: Bool { taken >= limit }

    /// Whether `owner` has as many places as one may have.
    ///
    /// - Parameter isSharedAddress: the owner may be many indistinguishable clients.
    func isFull(for owner: String, isSharedAddress: Bool = false) -> Bool {
        takenByOwner[owner, default: 0] >= (isSharedAddress ? limitOfSharedAddress : limitOfEach)
    }

    /// - Returns: nil: there is none.
    func take(for owner: String, isSharedAddress: Bool = false) -> Permit? {
        guard !isFull, !isFull(for: owner, isSharedAddress: isSharedAddress) else { return nil }
        taken += 1
        takenByOwner[owner, default: 0] += 1
        return Permit(self, owner)
    }

    private func free(_ owner: String) {
        taken -= 1
        guard let count = takenByOwner[owner] else { return }
        takenByOwner[owner] = count > 1 ? count - 1 : nil
    }
}

extension ConcurrencyLimiter {
    func isFull(for visitor: HTTPVisitor) -> Bool { isFull(for: visitor.key, isSharedAddress: visitor.isSharedAddress) }

    func take(for visitor: HTTPVisitor) -> Permit? { take(for: visitor.key, isSharedAddress: visitor.isSharedAddress) }
}
