import ChatModel
import HTTPProtocol

/// What a tool takes, for those who look after the queue.
package struct MirrorFormTraits: Sendable {
    /// Posts that one request can carry.
    package var postsAtOnce = 1
    /// Characters of a message's text, in units of UTF-16; a longer one is cut into several requests.
    package var maxTextCharacters: Int

    package init(maxTextCharacters: Int) { self.maxTextCharacters = maxTextCharacters }
}

/// What the configuration says of posts to a tool.
package struct MirrorWording: Equatable, Sendable {
    /// The name under which a post appears, where the tool takes one. `{nick}`, `{room}` and `{channel}` stand for
    /// these.
    package var username = "{nick}"
    /// The address of a picture of the speaker; empty: none. `{nick}` and the others as above, percent-encoded.
    package var avatarURL = ""
    /// Mentions of all members, `@here` and the like, notify none of them.
    package var defusesMentions = true

    package init() {}
}

/// A request to a tool.
package struct MirrorRequest: Equatable, Sendable {
    package var method: String
    /// Behind the path of the hook's address, such as `/messages/123`.
    package var pathSuffix: String
    /// Joined to the query of the hook's address, such as `wait=true`.
    package var query: String
    package var headers: [HTTPHeaders.Field]
    package var body: [UInt8]
    /// The posts that it carries, as indexes; several requests may carry one.
    package var posts: Range<Int>

    package init(
        method: String = "POST", pathSuffix: String = "", query: String = "", headers: [HTTPHeaders.Field] = [],
        body: [UInt8], posts: Range<Int>
    ) {
        self.method = method
        self.pathSuffix = pathSuffix
        self.query = query
        self.headers = headers
        self.body = body
        self.posts = posts
    }
}

/// A tool's answer to a request.
package struct MirrorAnswer: Equatable, Sendable {
    package var status: Int
    package var headers: HTTPHeaders
    package var body: [UInt8]

    package init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// What an answer means. Reasons are parts of a sentence, without secrets and without a full stop.
package enum MirrorOutcome: Equatable, Sendable {
    /// - Parameter ids: the tool's ids of the request's posts, where it gives any. Of a post in several requests the
    /// first
    ///   id counts.
    case taken(ids: [String?])
    /// The same request may succeed later; nil: when, it does not say.
    case later(reason: String, after: Duration?)
    /// This request never will; others may.
    case refused(reason: String)
    /// The hook is gone, or we are not let in: nothing will be taken until the operator changes that.
    case closed(reason: String)
}

/// A request of a tool to a hook of ours, with a valid body.
package struct HookRequest: Equatable, Sendable {
    package var method: String
    /// Without the `?`, not decoded.
    package var query: String
    package var headers: HTTPHeaders
    package var body: [UInt8]
    package var at: ChatTimestamp

    package init(
        method: String = "POST", query: String = "", headers: HTTPHeaders = HTTPHeaders(), body: [UInt8],
        at: ChatTimestamp
    ) {
        self.method = method
        self.query = query
        self.headers = headers
        self.body = body
        self.at = at
    }
}

/// What a tool's request is.
package enum HookReading: Equatable, Sendable {
    /// - Parameter answer: the body of the answer once all are taken, of type `application/json`; nil: none.
    case arrivals([MirrorArrival], answer: String? = nil)
    /// The tool tests the hook, and wants this for an answer.
    case answer(String, type: String)
    /// It cannot be proven that the tool sent it, or when: 401. The reason is for the log alone.
    case unproven(reason: String)
    /// It is not in the tool's form: 400. The reason is a part of a sentence, for the tool's administrator.
    case malformed(reason: String)
}

/// A secret with which a tool proves its requests, or the relay its own.
package struct MirrorSecret: Equatable, Sendable {
    package var bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
}

extension MirrorSecret: Redacted {
    package var description: String { "***" }
}

/// One tool's form of posts and hooks: a value without state.
package protocol MirrorForm: Sendable {
    var traits: MirrorFormTraits { get }

    /// The requests for the posts at the head of a queue, in order; a post without a form there has none. At most
    /// ``MirrorFormTraits/postsAtOnce`` posts are given.
    func requests(for posts: [MirrorPost], _ wording: MirrorWording) -> [MirrorRequest]

    /// A request as it is sent at this time: signed, where the form has a signature.
    func signed(_ request: MirrorRequest, by secret: MirrorSecret, now: ChatTimestamp) -> MirrorRequest

    func outcome(of request: MirrorRequest, _ answer: MirrorAnswer) -> MirrorOutcome

    /// Proves and reads a request of the tool. Comparisons with the secret take the same time for any input.
    func read(_ hook: HookRequest, secret: MirrorSecret) -> HookReading
}

extension MirrorForm {
    package func signed(_ request: MirrorRequest, by secret: MirrorSecret, now: ChatTimestamp) -> MirrorRequest {
        request
    }
}
