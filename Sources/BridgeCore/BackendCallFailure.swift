/// Why a call beside the socket gave nothing; a sentence without a full stop that repeats no secret.
public struct BackendCallFailure: Error, Equatable, Sendable {
    public var sentence: String
    /// The HTTP status, where there was an answer.
    public var status: Int?

    public init(sentence: String, status: Int? = nil) {
        self.sentence = sentence
        self.status = status
    }
}
