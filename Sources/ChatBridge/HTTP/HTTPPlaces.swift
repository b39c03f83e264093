/// Places for what is under way at a time, in all and for each owner: whoever holds a pass has one, and lets it go with the
/// pass, however the work ends.
final class HTTPPlaces {
    final class Pass {
        private let places: HTTPPlaces
        private let owner: String

        fileprivate init(_ places: HTTPPlaces, _ owner: String) {
            self.places = places
            self.owner = owner
        }

        deinit { places.free(owner) }
    }

    private let limit: Int
    private let limitOfEach: Int
    private let limitOfCrowd: Int
    private(set) var taken = 0
    private var takenByOwner: [String: Int] = [:]

    /// - Parameter limitOfCrowd: what an owner may have who may be many; nil: three quarters of all, because it may be
    ///   everybody, and one person as well.
    init(limit: Int, limitOfEach: Int, limitOfCrowd: Int? = nil) {
        self.limit = limit
        self.limitOfEach = limitOfEach
        self.limitOfCrowd = limitOfCrowd ?? limit - limit / 4
    }

    var isFull: Bool { taken >= limit }

    /// Whether `owner` has as many places as one may have.
    ///
    /// - Parameter isCrowd: they may be many, who cannot be told apart.
    func isFull(for owner: String, isCrowd: Bool = false) -> Bool {
        takenByOwner[owner, default: 0] >= (isCrowd ? limitOfCrowd : limitOfEach)
    }

    /// - Returns: nil: there is none.
    func take(for owner: String, isCrowd: Bool = false) -> Pass? {
        guard !isFull, !isFull(for: owner, isCrowd: isCrowd) else { return nil }
        taken += 1
        takenByOwner[owner, default: 0] += 1
        return Pass(self, owner)
    }

    private func free(_ owner: String) {
        taken -= 1
        guard let count = takenByOwner[owner] else { return }
        takenByOwner[owner] = count > 1 ? count - 1 : nil
    }
}

extension HTTPPlaces {
    func isFull(for visitor: HTTPVisitor) -> Bool { isFull(for: visitor.key, isCrowd: visitor.isCrowd) }

    func take(for visitor: HTTPVisitor) -> Pass? { take(for: visitor.key, isCrowd: visitor.isCrowd) }
}
