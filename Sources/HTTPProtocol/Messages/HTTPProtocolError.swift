/// A fault of a message: the party at fault, the status that a server answers with, and a sentence.
///
/// Every remote case ends the connection: after it the peers may disagree about where a message ends.
public enum HTTPProtocolError: Error, Equatable, Sendable {
    // MARK: Heads

    case headTooLarge(limit: Int)
    case startLineTooLong(limit: Int)
    case tooManyHeaders(limit: Int)
    case malformedStartLine
    case unsupportedVersion
    case malformedHeader
    case lineEndingNotCRLF
    case obsoleteLineFolding
    case missingHost
    case duplicateHost
    /// Host, or the authority of an absolute target, is no host with an optional port.
    case malformedHost
    /// The target names another host than the Host field.
    case hostMismatch
    /// None of the forms that the method may have.
    case malformedTarget
    /// CONNECT: this is no proxy.
    case unsupportedMethod
    /// An expectation other than `100-continue`.
    case unknownExpectation

    // MARK: Bodies

    case ambiguousBodyLength
    /// The body is transferred in a coding other than chunked.
    case unsupportedTransferCoding
    case bodyTooLarge(limit: Int)
    case malformedChunk
    case chunkLineTooLong(limit: Int)
    /// All chunk extensions of a body together.
    case chunkExtensionsTooLong(limit: Int)
    case trailersTooLarge(limit: Int)
    /// A trailer field that would change how the message is framed or routed.
    case forbiddenTrailer

    // MARK: Conversations

    /// The peer did not send what was due in time.
    case timedOut(HTTPWait)
    /// The connection ended within a message.
    case endedEarly
    /// More pipelined bytes than are held.
    case pipelinedTooMuch(limit: Int)
    /// A server speaks without having been asked, or more than was asked.
    case unexpectedResponse
    case tooManyInterimResponses(limit: Int)

    // MARK: Local

    /// An outgoing head has a character that would break it. Nothing was written.
    case invalidOutgoingField(String)
    /// A call that does not fit the state, such as a body longer than announced. Nothing was written.
    case misuse(String)

    /// The status with which a server refuses such a request.
    ///
    /// Source: RFC 9110 §15.5, §15.6; RFC 6585 §5.
    public var statusHint: Int {
        switch self {
        case .headTooLarge, .tooManyHeaders, .trailersTooLarge: 431
        case .startLineTooLong: 414
        case .unsupportedVersion: 505
        case .unsupportedTransferCoding, .unsupportedMethod: 501
        case .bodyTooLarge: 413
        case .unknownExpectation: 417
        case .timedOut: 408
        case .invalidOutgoingField, .misuse: 500
        default: 400
        }
    }

    /// The fault, without a full stop.
    public var sentence: String {
        switch self {
        case .headTooLarge(let limit): "the HTTP head is longer than \(limit) bytes"
        case .startLineTooLong(let limit): "the first line of the HTTP head is longer than \(limit) bytes"
        case .tooManyHeaders(let limit): "the HTTP head has more than \(limit) fields"
        case .malformedStartLine: "the first line is not HTTP"
        case .unsupportedVersion: "the HTTP version is not 1.x"
        case .malformedHeader: "an HTTP header field is malformed"
        case .lineEndingNotCRLF: "a line of the HTTP head does not end in CRLF"
        case .obsoleteLineFolding: "an HTTP header field is folded over lines"
        case .missingHost: "the HTTP request has no Host"
        case .duplicateHost: "the HTTP request has more than one Host"
        case .malformedHost: "the host of the HTTP request is malformed"
        case .hostMismatch: "the HTTP request names two different hosts"
        case .malformedTarget: "the target of the HTTP request is malformed"
        case .unsupportedMethod: "this server is not a proxy"
        case .unknownExpectation: "the HTTP request expects something unknown"
        case .ambiguousBodyLength: "the length of the HTTP body is ambiguous"
        case .unsupportedTransferCoding: "the HTTP body has a transfer coding other than chunked"
        case .bodyTooLarge(let limit): "the HTTP body is longer than \(limit) bytes"
        case .malformedChunk: "a chunk of the HTTP body is malformed"
        case .chunkLineTooLong(let limit): "the head of a chunk is longer than \(limit) bytes"
        case .chunkExtensionsTooLong(let limit): "the chunk extensions are longer than \(limit) bytes"
        case .trailersTooLarge(let limit): "the HTTP trailers are longer than \(limit) bytes"
        case .forbiddenTrailer: "an HTTP trailer field belongs into the head"
        case .timedOut(let wait): "\(wait.sentence) did not come in time"
        case .endedEarly: "the connection ended within an HTTP message"
        case .pipelinedTooMuch(let limit): "more than \(limit) bytes were sent ahead of an answer"
        case .unexpectedResponse: "the server sent an HTTP response that was not asked for"
        case .tooManyInterimResponses(let limit): "the server sent more than \(limit) interim responses"
        case .invalidOutgoingField(let name): "\(name) has a character that must not stand in an HTTP head"
        case .misuse(let what): what
        }
    }
}

/// The part of a message that was awaited.
public enum HTTPWait: Equatable, Sendable {
    case head
    case body

    var sentence: String {
        switch self {
        case .head: "the HTTP head"
        case .body: "the HTTP body"
        }
    }
}
