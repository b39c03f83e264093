public import WireBytes

// One connection of an HTTP/1.1 server: bytes in, events out; answers in, bytes out.
//
// The request side and the response side each have a state:
//
// | request  | meaning                        | next                                                         |
// |----------|--------------------------------|--------------------------------------------------------------|
// | idle     | between two requests           | first byte → head; idle time-out, drain → over               |
// | head     | a head is being read           | whole → body or complete; error, time-out → over             |
// | body     | its body is being read         | whole → complete; error, time-out, early answer → over       |
// | complete | all of it was delivered        | answered → idle, or over where the connection does not persist |
// | over     | nothing is read any more       |                                                              |
//
// | response | meaning                        | next                                                         |
// |----------|--------------------------------|--------------------------------------------------------------|
// | none     | no request                     | head read → awaited                                          |
// | awaited  | the owner owes an answer       | startResponse → sending                                      |
// | sending  | its head is out                | finishResponse → none                                        |
//
// Requests are answered in order: pipelined bytes are held, bounded, until their turn comes. After any error the rest
// of the connection is untrusted; at most one refusal is sent.

/// Times and sizes of a server's connection.
public struct HTTPServerLimits: Equatable, Sendable {
    /// Content of one request, in bytes.
    public var maxBodyBytes = HTTPBodyLimits.maxBodyBytes
    /// From the first byte of a head, or from the connection's start, to the head's end. Browsers need milliseconds.
    public var headTimeout: Duration = .seconds(10)
    /// Longest silence within a body.
    public var bodyIdleTimeout: Duration = .seconds(20)
    /// Longest time for a whole body: a megabyte over a bad line. Against peers that send a byte each 19 seconds.
    public var bodyTimeout: Duration = .seconds(300)
    /// Longest silence between requests of a persistent connection. Longer than the 60 s at which metrics are scraped.
    public var idleTimeout: Duration = .seconds(75)
    /// Requests over one connection; then it is closed, so that a drained or moved server is found sooner or later.
    public var maxRequests = 10_000
    /// Pipelined bytes held ahead of an answer. A transport that pauses reading delivers at most one read more.
    public var maxPipelinedBytes = 128 * 1024

    public init() {}
}

/// The machine of one server connection. See the top of the file for its states.
///
/// Feed it with ``bytesReceived(_:now:)``, answer each ``Event/request(_:_:)``, call ``resume(now:)`` after an answer is
/// finished, and close the transport when ``mustClose`` says so. Any bytes, cut anywhere, end in events; never in a trap.
///
/// Source: RFC 9112.
public struct HTTPServerConnection {
    public enum Event: Equatable {
        /// A head was read. An answer is owed from now on; it may be given before the body has come, which ends the
        /// connection.
        case request(HTTPRequestHead, HTTPRequestTarget)
        /// Content of the request's body, never empty.
        case bodyPart(ByteSlice)
        case requestComplete
        /// Nothing more is read. Where ``canRespond`` is true a refusal may be sent; then the transport is to be closed.
        case failed(HTTPProtocolError)
        /// The connection was silent for too long, with nothing in progress: close it without a word.
        case idleTimedOut
    }

    private enum RequestState {
        case idle
        case head
        case body
        case complete
        case over
    }

    private enum ResponseState: Equatable {
        case none
        case awaited
        case sending
    }

    private let limits: HTTPServerLimits
    private var request = RequestState.idle
    private var response = ResponseState.none
    // Not payloads of the states: taking them out for each byte that a peer sends would copy what they hold.
    private var headDecoder = HTTPHeadDecoder(.request)
    private var bodyDecoder: HTTPBodyDecoder?
    private var bodyWriter = HTTPBodyWriter(.suppressed)

    private var method = ""
    private var version = HTTPVersion.http11
    private var keepsAlive = true
    /// The client waits for 100 Continue before it sends the body.
    private var owesContinue = false
    private var requestCount = 0
    private var isDraining = false
    /// Bytes received ahead of an answer, and how many of them are used up.
    private var held: [UInt8] = []
    private var heldStart = 0

    private var deadline: MonotonicInstant?
    private var bodyDeadline: MonotonicInstant?

    public init(limits: HTTPServerLimits = HTTPServerLimits(), now: MonotonicInstant) {
        self.limits = limits
        deadline = now + limits.headTimeout
    }

    // MARK: - State

    /// Whether ``startResponse(_:body:into:)`` would be accepted.
    public var canRespond: Bool { response == .awaited }

    /// Whether a response's head is out and its end is not.
    public var isResponding: Bool { response == .sending }

    /// Whether the transport is to be closed once what was written is flushed.
    public var mustClose: Bool { request == .over && response == .none }

    /// Whether bytes are of use now. While false, the transport should pause reading; some more are held all the same.
    public var wantsBytes: Bool { request != .complete && request != .over }

    /// When ``timerFired(now:)`` is wanted, or nil.
    public var nextDeadline: MonotonicInstant? { deadline }

    // MARK: - Input

    public mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer, now: MonotonicInstant) -> [Event] {
        var events: [Event] = []
        if request == .complete || heldStart < held.count {
            hold(bytes, &events)
        } else {
            let consumed = advance(bytes, now: now, &events)
            if request != .over, consumed < bytes.count {
                hold(UnsafeRawBufferPointer(rebasing: bytes[consumed...]), &events)
            }
        }
        return events
    }

    /// Goes on with pipelined bytes. Call it after each finished response.
    public mutating func resume(now: MonotonicInstant) -> [Event] {
        var events: [Event] = []
        guard request == .idle else { return events }
        if deadline == nil { deadline = now + limits.idleTimeout }
        guard heldStart < held.count else { return events }
        let bytes = held
        let start = heldStart
        held = []
        heldStart = 0
        let consumed = bytes.withUnsafeBytes {
            advance(UnsafeRawBufferPointer(rebasing: $0[start...]), now: now, &events)
        }
        if request != .over, start + consumed < bytes.count {
            held = bytes
            heldStart = start + consumed
        }
        return events
    }

    /// The peer will send nothing more. It may still be reading.
    public mutating func peerClosed() -> [Event] {
        keepsAlive = false
        switch request {
        case .head where headDecoder.receivedByteCount > 0, .body:
            var events: [Event] = []
            fail(.endedEarly, &events)
            return events
        case .idle, .head:
            endRequests()
            return []
        case .complete, .over:
            return []
        }
    }

    public mutating func timerFired(now: MonotonicInstant) -> [Event] {
        guard let deadline, deadline <= now else { return [] }
        self.deadline = nil
        var events: [Event] = []
        switch request {
        case .idle:
            endRequests()
            events.append(.idleTimedOut)
        case .head: fail(.timedOut(.head), &events)
        case .body: fail(.timedOut(.body), &events)
        case .complete, .over: break
        }
        return events
    }

    /// Makes the answer in progress the last. A connection between two requests is over at once; see ``mustClose``.
    public mutating func drain() {
        isDraining = true
        if request == .idle { endRequests() }
    }

    // MARK: - Reading

    /// Feeds the machine until a request is complete. Returns how many bytes were used.
    private mutating func advance(
        _ bytes: UnsafeRawBufferPointer, now: MonotonicInstant, _ events: inout [Event]
    ) -> Int {
        var offset = 0
        do throws(HTTPProtocolError) {
            while true {
                switch request {
                case .idle:
                    guard offset < bytes.count else { return offset }
                    if requestCount > 0 { deadline = now + limits.headTimeout }
                    request = .head
                case .head:
                    let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
                    guard case .request(let head, let consumed) = try headDecoder.bytesReceived(rest) else {
                        return bytes.count
                    }
                    offset += consumed
                    headDecoder = HTTPHeadDecoder(.request)
                    try begin(head, now: now, &events)
                case .body:
                    guard var decoder = bodyDecoder.take() else { return bytes.count }
                    let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
                    let step = try decoder.bytesReceived(rest)
                    bodyDecoder = decoder
                    switch step {
                    case .needMoreData:
                        if let bodyDeadline { deadline = min(now + limits.bodyIdleTimeout, bodyDeadline) }
                        return bytes.count
                    case .part(let range):
                        owesContinue = false
                        events.append(.bodyPart(ByteSlice(copying: UnsafeRawBufferPointer(rebasing: rest[range]))))
                        offset += range.upperBound
                    case .end(let consumed):
                        offset += consumed
                        complete(&events)
                    }
                case .complete, .over:
                    return offset
                }
            }
        } catch {
            fail(error, &events)
            return bytes.count
        }
    }

    private mutating func begin(
        _ head: HTTPRequestHead, now: MonotonicInstant, _ events: inout [Event]
    ) throws(HTTPProtocolError) {
        requestCount += 1
        method = head.method
        version = head.version
        // A refusal of this very head is an answer to it.
        response = .awaited
        let target = try HTTPRequestCheck.target(of: head)
        let framing = try HTTPBodyFraming(request: head)
        let decoder = try HTTPBodyDecoder(framing, maxBytes: limits.maxBodyBytes)
        // HTTP/1.0 connections do not persist: its keep-alive is an extension that proxies have misunderstood.
        keepsAlive =
            head.version >= .http11 && !head.headers.contains(token: "close", in: "Connection")
            && requestCount < limits.maxRequests && !isDraining
        // Source: RFC 9110 §10.1.1. HTTP/1.0 clients cannot expect anything.
        if head.version >= .http11, !head.headers.all("Expect").isEmpty {
            let expectations = head.headers.listItems("Expect")
            guard expectations.count == 1, ASCII.equalsIgnoringCase(expectations[0], "100-continue") else {
                throw .unknownExpectation
            }
            owesContinue = framing != .none
        } else {
            owesContinue = false
        }
        events.append(.request(head, HTTPRequestTarget(resource: target.resource, authority: target.authority)))
        if framing == .none {
            complete(&events)
        } else {
            request = .body
            bodyDecoder = decoder
            bodyAwaited(now: now)
        }
    }

    private mutating func complete(_ events: inout [Event]) {
        request = .complete
        owesContinue = false
        bodyDecoder = nil
        bodyDeadline = nil
        deadline = nil
        events.append(.requestComplete)
    }

    private mutating func fail(_ error: HTTPProtocolError, _ events: inout [Event]) {
        // An incomplete head has no owner yet who could owe an answer; it gets the refusal all the same.
        if request == .head, response == .none {
            response = .awaited
            method = ""
            version = .http11
        }
        endRequests()
        events.append(.failed(error))
    }

    private mutating func endRequests() {
        request = .over
        keepsAlive = false
        owesContinue = false
        bodyDecoder = nil
        bodyDeadline = nil
        deadline = nil
        held = []
        heldStart = 0
    }

    private mutating func hold(_ bytes: UnsafeRawBufferPointer, _ events: inout [Event]) {
        guard request != .over else { return }
        guard bytes.count <= limits.maxPipelinedBytes - (held.count - heldStart) else {
            // The request before it is sound, and its answer is still owed.
            let isOwed = response
            endRequests()
            if isOwed == .none { events.append(.failed(.pipelinedTooMuch(limit: limits.maxPipelinedBytes))) }
            return
        }
        if heldStart > held.count / 2 {
            held.removeFirst(heldStart)
            heldStart = 0
        }
        held.append(contentsOf: bytes)
    }

    /// Restarts the timers of a request's body: until now reading may have been paused, or the sender may have waited
    /// for 100 Continue.
    public mutating func bodyAwaited(now: MonotonicInstant) {
        guard request == .body else { return }
        let last = now + limits.bodyTimeout
        bodyDeadline = last
        deadline = min(now + limits.bodyIdleTimeout, last)
    }

    // MARK: - Answering

    /// Sends 100 Continue to a client that waits for it. Does nothing where none waits, or its body is coming already.
    ///
    /// Source: RFC 9110 §10.1.1, §15.2.1.
    public mutating func continueRequest(into out: inout ByteWriter) {
        guard owesContinue, response == .awaited, request == .body else { return }
        owesContinue = false
        out.append("HTTP/1.1 100 Continue\r\n\r\n")
    }

    /// Writes the head of the answer, with the fields that frame its body and end or continue the connection.
    ///
    /// The body's bytes are dropped where none may be sent, as for HEAD. An answer before the end of the request's body
    /// ends the connection.
    ///
    /// - Throws: before anything is written: for characters that must not stand in a head, for a status below 200, for
    ///   framing fields in `head`, or when no answer is owed.
    public mutating func startResponse(
        _ head: HTTPResponseHead, body: HTTPOutgoingBody, into out: inout ByteWriter
    ) throws(HTTPProtocolError) {
        guard response == .awaited else { throw .misuse("there is no request to answer") }
        guard head.status >= 200 else { throw .misuse("an interim status is no answer") }
        try head.headers.checkUnframed()
        var head = head
        head.version = .http11
        var framing = HTTPBodyWriter.Framing.suppressed
        var keeps = keepsAlive && request == .complete && !isDraining
        switch body {
        case .none:
            // Without it, the client would read to the end of the connection.
            if head.status != 204, head.status != 304 { head.headers.append(name: "Content-Length", value: "0") }
        case .length(let length):
            guard length >= 0, head.status != 204 else { throw .misuse("this answer can have no such body") }
            head.headers.append(name: "Content-Length", value: String(length))
            framing = .length(left: length)
        case .stream:
            guard head.status != 204 else { throw .misuse("this answer can have no body") }
            if version >= .http11 {
                head.headers.append(name: "Transfer-Encoding", value: "chunked")
                framing = .chunked
            } else {
                framing = .untilClose
                keeps = false
            }
        }
        if method == "HEAD" || head.status == 304 { framing = .suppressed }
        if !keeps { head.headers.append(name: "Connection", value: "close") }
        try head.serialize(into: &out)
        keepsAlive = keeps
        bodyWriter = HTTPBodyWriter(framing)
        response = .sending
    }

    /// - Throws: ``HTTPProtocolError/misuse(_:)`` for more than was announced.
    public mutating func sendBody(_ slice: ByteSlice, into out: inout ByteWriter) throws(HTTPProtocolError) {
        try slice.withUnsafeBytes { bytes throws(HTTPProtocolError) in try sendBody(bytes, into: &out) }
    }

    /// - Throws: ``HTTPProtocolError/misuse(_:)`` for more than was announced.
    public mutating func sendBody(
        _ bytes: UnsafeRawBufferPointer, into out: inout ByteWriter
    ) throws(HTTPProtocolError) {
        guard response == .sending else { throw .misuse("there is no response to add to") }
        try bodyWriter.append(bytes, into: &out)
    }

    /// Ends the answer. Then call ``resume(now:)``, unless ``mustClose``.
    ///
    /// - Throws: ``HTTPProtocolError/misuse(_:)`` for less than was announced: the connection must be broken off.
    public mutating func finishResponse(into out: inout ByteWriter) throws(HTTPProtocolError) {
        guard response == .sending else { throw .misuse("there is no response to finish") }
        try bodyWriter.finish(into: &out)
        response = .none
        if keepsAlive, request == .complete, !isDraining { request = .idle } else { endRequests() }
    }
}
