/// Suggestions for misspelt names.
package enum NearestName {
    /// Longest word that is compared, in characters; names are shorter, and the comparison is quadratic in it.
    static let maxWordLength = 64

    /// The candidate closest to `word`, or nil when none is close enough to be a slip of the fingers: a third of the
    /// word's length, at least one, at most three changes.
    package static func suggestion(for word: String, among candidates: some Sequence<String>) -> String? {
        let typed = Array(word.lowercased())
        guard !typed.isEmpty, typed.count <= maxWordLength else { return nil }
        let allowed = min(max(typed.count / 3, 1), 3)
        var best: (name: String, distance: Int)?
        for candidate in candidates {
            // Names are ASCII; a difference in length is a distance already.
            if abs(candidate.utf8.count - typed.count) > allowed { continue }
            let distance = editDistance(typed, Array(candidate.lowercased()))
            if distance <= allowed, distance < best?.distance ?? .max { best = (candidate, distance) }
        }
        return best?.name
    }

    /// ` (did you mean "token"?)`, or nothing.
    package static func hint(for word: String, among candidates: some Sequence<String>) -> String {
        suggestion(for: word, among: candidates).map { " (did you mean \"\($0)\"?)" } ?? ""
    }

    /// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
    package static func editDistance(_ a: [Character], _ b: [Character]) -> Int {
        if a.isEmpty || b.isEmpty { return max(a.count, b.count) }
        var beforePrevious: [Int] = []
        var previous = Array(0...b.count)
        for i in 1...a.count {
            var current = [i]
            current.reserveCapacity(b.count + 1)
            for j in 1...b.count {
                let replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
                var distance = min(replaced, previous[j] + 1, current[j - 1] + 1)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
                    distance = min(distance, beforePrevious[j - 2] + 1)
                }
                current.append(distance)
            }
            beforePrevious = previous
            previous = current
        }
        return previous[b.count]
    }
}
