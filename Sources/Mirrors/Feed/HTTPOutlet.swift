import ChatModel

/// The requests of one batch after another: what has succeeded of a batch is not repeated when the rest is.
package struct HTTPOutlet {
    private let form: any MirrorForm
    private let wording: MirrorWording
    private let secret: MirrorSecret?
    private var posts: [MirrorPost] = []
    private var requests: [MirrorRequest] = []
    /// The index of the request under way.
    private var current = 0
    private var ids: [String?] = []
    /// Why the tool refused one of the batch's requests.
    package private(set) var refusal: String?

    package init(_ form: any MirrorForm, _ wording: MirrorWording, secret: MirrorSecret?) {
        self.form = form
        self.wording = wording
        self.secret = secret
    }

    package enum Step: Equatable, Sendable {
        case send(MirrorRequest)
        case settled(MirrorOutcome)
    }

    package mutating func begin(_ posts: [MirrorPost]) {
        ids = [String?](repeating: nil, count: posts.count)
        (self.posts, current, refusal) = (posts, 0, nil)
        let size = max(1, form.traits.postsAtOnce)
        // A notice goes alone: the next process does not know of it, and is to repeat the rest under the same key.
        let noticeCount = posts.first?.isNotice == true ? 1 : 0
        requests = noticeCount > 0 ? requests(for: 0..<noticeCount) : []
        requests += stride(from: noticeCount, to: posts.count, by: size).flatMap {
            requests(for: $0..<min(posts.count, $0 + size))
        }
    }

    private func requests(for range: Range<Int>) -> [MirrorRequest] {
        form.requests(for: Array(posts[range]), wording).map { request in
            var request = request
            request.posts =
                (request.posts.lowerBound + range.lowerBound)..<(request.posts.upperBound + range.lowerBound)
            return request
        }
    }

    /// The first request that the tool has not answered yet, with the time of now.
    package func next(now: ChatTimestamp) -> Step {
        guard requests.indices.contains(current) else {
            // The others of the batch may have been taken.
            if let refusal, ids.count <= 1 { return .settled(.refused(reason: refusal)) }
            return .settled(.taken(ids: ids))
        }
        let request = requests[current]
        return .send(secret.map { form.signed(request, by: $0, now: now) } ?? request)
    }

    package mutating func answered(_ answer: MirrorAnswer, now: ChatTimestamp) -> Step {
        guard requests.indices.contains(current) else { return next(now: now) }
        let request = requests[current]
        switch form.outcome(of: request, answer) {
        case .taken(let given):
            // Of a long text in several requests the first bears its id.
            for (post, id) in zip(request.posts, given) where ids.indices.contains(post) && ids[post] == nil {
                ids[post] = id
            }
            current += 1
            return next(now: now)
        case .refused(let reason):
            // One of several may be what it does not like.
            if request.posts.count > 1 {
                requests.replaceSubrange(
                    current...current, with: request.posts.flatMap { self.requests(for: $0..<($0 + 1)) })
                return next(now: now)
            }
            refusal = reason
            current += 1
            return next(now: now)
        case .later(let reason, let after): return .settled(.later(reason: reason, after: after))
        case .closed(let reason): return .settled(.closed(reason: reason))
        }
    }
}
