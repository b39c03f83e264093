/// Why a call beside the socket brought nothing.
public struct BackendCallFailure: Error, Equatable, Sendable {
    /// Without a full stop; repeats no secret.
    public var sentence: String
    /// The HTTP status of the answer, if there was one.
    public var status: Int?

    public init(sentence: String, status: Int? = nil) {
        self.sentence = sentence
        self.status = status
    }
}
