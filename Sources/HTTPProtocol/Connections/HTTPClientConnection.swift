public import WireBytes

// One connection of an HTTP/1.1 client: a request out, its response in, and perhaps another.
//
// | state    | meaning                                  | next                                                    |
// |----------|------------------------------------------|---------------------------------------------------------|
// | idle     | no request                               | startRequest → head                                     |
// | head     | the response's head is awaited           | final head → body; error, time-out, end → over          |
// | body     | its body is being read                   | whole → idle, or over; error, time-out, end → over      |
// | over     | of no more use                           |                                                         |
//
// Requests are not pipelined. Unsolicited bytes end the connection: they could be the answer to an earlier request.

/// Times and sizes of a client's connection.
public struct HTTPClientLimits: Equatable, Sendable {
    /// Content of one response, in bytes.
    public var maxBodyBytes = HTTPBodyLimits.maxBodyBytes
    /// From the request's start to the response's head.
    public var headTimeout: Duration = .seconds(30)
    /// Longest silence within a response's body.
    public var bodyIdleTimeout: Duration = .seconds(30)
    /// Interim responses before the final one. Proxies send one or two.
    public var maxInterimResponses = 4

    public init() {}
}

/// The machine of one client connection. See the top of the file for its states.
///
/// Source: RFC 9112.
public struct HTTPClientConnection {
    public enum Event: Equatable {
        /// 1xx; the real one follows.
        case interim(HTTPResponseHead)
        case response(HTTPResponseHead)
        /// Content of the response's body, never empty.
        case bodyPart(ByteSlice)
        /// The response is whole. ``isReusable`` says whether the connection may take another request.
        case responseComplete
        /// The connection is of no more use. No ``responseComplete`` follows.
        case failed(HTTPProtocolError)
    }

    private enum State {
        case idle
        case head
        case body
        case over
    }

    private let limits: HTTPClientLimits
    private var state = State.idle
    private var headDecoder = HTTPHeadDecoder(.response)
    private var bodyDecoder: HTTPBodyDecoder?
    private var bodyWriter: HTTPBodyWriter?
    private var method = ""
    private var keepsAlive = true
    private var interimCount = 0
    private var deadline: MonotonicInstant?

    public init(limits: HTTPClientLimits = HTTPClientLimits()) { self.limits = limits }

    // MARK: - State

    /// Whether another request may be started.
    public var isReusable: Bool { state == .idle && keepsAlive }

    /// Whether nothing of the response to the present request has come: where it is safe to send twice, it may be sent
    /// again over another connection.
    public var isUnanswered: Bool { state == .head && headDecoder.receivedByteCount == 0 && interimCount == 0 }

    /// When ``timerFired(now:)`` is wanted, or nil.
    public var nextDeadline: MonotonicInstant? { deadline }

    // MARK: - Asking

    /// Writes the head of a request, with the fields that frame its body. `head` has its Host already.
    ///
    /// - Throws: before anything is written: for characters that must not stand in a head, for framing fields in
    ///   `head`, or while a request is in progress.
    public mutating func startRequest(
        _ head: HTTPRequestHead, body: HTTPOutgoingBody, now: MonotonicInstant, into out: inout ByteWriter
    ) throws(HTTPProtocolError) {
        guard isReusable else { throw .misuse("the connection cannot take a request") }
        guard head.method != "CONNECT", head.version == .http11 else { throw .misuse("this request cannot be sent") }
        guard head.headers.all("Host").count == 1 else { throw .misuse("a request has one Host") }
        try head.headers.checkUnframed()
        guard head.headers.first("Upgrade") == nil, head.headers.first("Expect") == nil else {
            throw .misuse("nothing can be upgraded or expected here")
        }
        var head = head
        var framing = HTTPBodyWriter.Framing.suppressed
        switch body {
        case .none:
            // Source: RFC 9110 §8.6, for methods that give a body a meaning.
            if ["POST", "PUT", "PATCH"].contains(head.method) {
                head.headers.append(name: "Content-Length", value: "0")
            }
        case .length(let length):
            guard length >= 0 else { throw .misuse("a body has no such length") }
            head.headers.append(name: "Content-Length", value: String(length))
            framing = .length(left: length)
        case .stream:
            head.headers.append(name: "Transfer-Encoding", value: "chunked")
            framing = .chunked
        }
        try head.serialize(into: &out)
        method = head.method
        bodyWriter = HTTPBodyWriter(framing)
        headDecoder = HTTPHeadDecoder(.response)
        interimCount = 0
        keepsAlive = true
        state = .head
        deadline = now + limits.headTimeout
    }

    /// - Throws: ``HTTPProtocolError/misuse(_:)`` for more than was announced.
    public mutating func sendBody(_ slice: ByteSlice, into out: inout ByteWriter) throws(HTTPProtocolError) {
        try slice.withUnsafeBytes { bytes throws(HTTPProtocolError) in try sendBody(bytes, into: &out) }
    }

    /// - Throws: ``HTTPProtocolError/misuse(_:)`` for more than was announced.
    public mutating func sendBody(
        _ bytes: UnsafeRawBufferPointer, into out: inout ByteWriter
    ) throws(HTTPProtocolError) {
        guard bodyWriter != nil else { throw .misuse("there is no request to add to") }
        try bodyWriter?.append(bytes, into: &out)
    }

    /// Ends the request. Required after each ``startRequest(_:body:now:into:)``, also without a body.
    public mutating func finishRequest(into out: inout ByteWriter) throws(HTTPProtocolError) {
        guard let writer = bodyWriter else { throw .misuse("there is no request to finish") }
        try writer.finish(into: &out)
        bodyWriter = nil
    }

    // MARK: - Input

    public mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer, now: MonotonicInstant) -> [Event] {
        var events: [Event] = []
        var offset = 0
        do throws(HTTPProtocolError) {
            while true {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
                switch state {
                case .over: return events
                case .idle:
                    if !rest.isEmpty { throw .unexpectedResponse }
                    return events
                case .head:
                    guard case .response(let head, let consumed) = try headDecoder.bytesReceived(rest) else {
                        return events
                    }
                    offset += consumed
                    headDecoder = HTTPHeadDecoder(.response)
                    try begin(head, now: now, &events)
                case .body:
                    guard var decoder = bodyDecoder.take() else { return events }
                    let step = try decoder.bytesReceived(rest)
                    bodyDecoder = decoder
                    switch step {
                    case .needMoreData:
                        deadline = now + limits.bodyIdleTimeout
                        return events
                    case .part(let range):
                        events.append(.bodyPart(ByteSlice(copying: UnsafeRawBufferPointer(rebasing: rest[range]))))
                        offset += range.upperBound
                    case .end(let consumed):
                        offset += consumed
                        complete(&events)
                    }
                }
            }
        } catch {
            fail(error, &events)
            return events
        }
    }

    /// The server will send nothing more. Ends a body that lasts to the end of the connection.
    public mutating func peerClosed() -> [Event] {
        var events: [Event] = []
        keepsAlive = false
        switch state {
        case .idle, .over: end()
        case .head: fail(.endedEarly, &events)
        case .body:
            if bodyDecoder?.mayEndHere == true {
                complete(&events)
            } else {
                fail(.endedEarly, &events)
            }
        }
        return events
    }

    public mutating func timerFired(now: MonotonicInstant) -> [Event] {
        guard let deadline, deadline <= now else { return [] }
        var events: [Event] = []
        fail(.timedOut(state == .head ? .head : .body), &events)
        return events
    }

    // MARK: - Reading

    private mutating func begin(
        _ head: HTTPResponseHead, now: MonotonicInstant, _ events: inout [Event]
    ) throws(HTTPProtocolError) {
        if head.status < 200 {
            // No upgrade was asked for. Source: RFC 9110 §15.2.2.
            guard head.status != 101 else { throw .unexpectedResponse }
            interimCount += 1
            guard interimCount <= limits.maxInterimResponses else {
                throw .tooManyInterimResponses(limit: limits.maxInterimResponses)
            }
            events.append(.interim(head))
            return
        }
        let framing = try HTTPBodyFraming(response: head, to: method)
        bodyDecoder = try HTTPBodyDecoder(framing, maxBytes: limits.maxBodyBytes)
        // An answer before the end of the request's body leaves the rest of it in doubt.
        if head.version < .http11 || framing == .untilClose || bodyWriter != nil
            || head.headers.contains(token: "close", in: "Connection")
        {
            keepsAlive = false
        }
        state = .body
        deadline = now + limits.bodyIdleTimeout
        events.append(.response(head))
    }

    private mutating func complete(_ events: inout [Event]) {
        if keepsAlive {
            bodyDecoder = nil
            deadline = nil
            state = .idle
        } else {
            end()
        }
        events.append(.responseComplete)
    }

    private mutating func fail(_ error: HTTPProtocolError, _ events: inout [Event]) {
        guard state != .over else { return }
        end()
        events.append(.failed(error))
    }

    private mutating func end() {
        state = .over
        keepsAlive = false
        bodyDecoder = nil
        bodyWriter = nil
        deadline = nil
    }
}
