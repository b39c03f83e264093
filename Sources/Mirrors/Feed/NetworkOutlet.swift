/// The posts of one batch for a channel, one after another: what was delivered of a batch is not repeated when the rest is.
package struct NetworkOutlet {
    package enum Step: Equatable, Sendable {
        case post(MirrorPost)
        case settled(MirrorOutcome)
    }

    private var posts: [MirrorPost] = []
    /// The network's, of those that it has taken.
    private var ids: [String?] = []
    /// Why the network refused one of the batch.
    package private(set) var refusal: String?

    package init() {}

    package mutating func begin(_ posts: [MirrorPost]) { (self.posts, ids, refusal) = (posts, [], nil) }

    /// The first post that the network has not taken yet.
    package var next: Step {
        if posts.indices.contains(ids.count) { return .post(posts[ids.count]) }
        // The others of the batch may have been taken.
        if let refusal, posts.count <= 1 { return .settled(.refused(reason: refusal)) }
        return .settled(.taken(ids: ids))
    }

    /// The network has the post, or there is no form for it there.
    package mutating func delivered(id: String?) -> Step {
        if ids.count < posts.count { ids.append(id) }
        return next
    }

    /// - Parameter isFinal: the same post will not succeed later.
    package mutating func failed(_ reason: String, isFinal: Bool) -> Step {
        guard isFinal else { return .settled(.later(reason: reason, after: nil)) }
        refusal = reason
        return delivered(id: nil)
    }
}
