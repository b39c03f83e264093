/// Why a call beside the socket brought nothing.
public struct BackendCallFailure: Error, Equatable, Sendable {
    /// Without a full stop; repeats no secret.
    public var sentence: String
    /// The HTTP status of the answer, if there was one.
    public var status: Int?
    /// The same call would end the same way: its answer is too large, or it leads elsewhere.
    public var isFinal: Bool

    public init(sentence: String, status: Int? = nil, isFinal: Bool = false) {
        self.sentence = sentence
        self.status = status
        self.isFinal = isFinal
    }
}
