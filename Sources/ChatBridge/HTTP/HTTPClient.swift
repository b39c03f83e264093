import HTTPProtocol
import Transport
import WireBytes

/// Bounds of the client, over all requests.
enum HTTPClientBounds {
    /// Connections to one origin at once, as many as browsers make: the calls of a backend, and its account's renewal.
    static let connectionsPerOrigin = 6
    /// Connections at once, idle ones included.
    static let maxConnections = 32
    /// How long an idle connection stays open. Servers close after 5 s to 75 s; a request that meets a closed one is
    /// sent again.
    static let idleTime: Duration = .seconds(15)
    /// How long an idle connection serves requests that cannot be sent again when it turns out to be gone: well below the
    /// 5 s after which the hastiest servers close.
    static let freshTime: Duration = .seconds(2)
    /// Requests that wait for a connection.
    static let maxWaiting = 256
}

/// An HTTP client on a loop: one request at a time over a connection, which is reused.
///
/// Answers come through a callback on the loop, never from within ``send(_:transport:completion:)``.
final class HTTPClient: LoopClient {
    typealias Completion = (Result<HTTPClientResponse, HTTPClientError>, Transport) -> Void

    /// Names a request until it is answered; numbers are not reused.
    struct CallID: Hashable, Sendable {
        var rawValue: UInt64
    }

    private struct Call {
        var request: HTTPClientRequest
        var patience: HTTPTimeout
        var redirects = 0
        var connection: ConnectionID?
        /// The reused connection of an earlier try was gone.
        var isSecondTry = false
        var response: HTTPResponseHead?
        var body: [UInt8] = []
        /// Takes the answer as it comes; nil: it is gathered.
        var receiver: (any HTTPBodyReceiver)?
        var completion: Completion
    }

    /// By reference, because a machine cannot be taken out of a dictionary and back without a copy.
    private final class Link {
        let route: HTTPClientRoute
        var connection = HTTPClientConnection()
        var isOpen = false
        /// Asked of a proxy and not answered yet.
        var tunnel: HTTPProxyTunnel?
        /// TLS begins behind a proxy.
        var isSecuring = false
        /// The current request; nil while idle.
        var call: CallID?
        /// Nothing is read: the receiver cannot take more at the moment.
        var isPaused = false
        /// Requests before the present one.
        var usedCount = 0
        /// When its last request was answered.
        var idleSince = MonotonicInstant(nanoseconds: 0)

        init(_ route: HTTPClientRoute, call: CallID) {
            self.route = route
            self.call = call
        }
    }

    private enum Deadline: Hashable {
        case call(CallID)
        case link(ConnectionID)
    }

    private var calls: [CallID: Call] = [:]
    private var links: [ConnectionID: Link] = [:]
    /// Without a connection yet, in order.
    private var waiting: [CallID] = []
    private var finished: [(Completion, Result<HTTPClientResponse, HTTPClientError>)] = []
    private var deadlines = DeadlineHeap<Deadline>()
    private var lastCall: UInt64 = 0
    private var writer = ByteWriter()
    private let connectionsPerOrigin: Int

    /// - Parameter connectionsPerOrigin: to one origin at once.
    init(connectionsPerOrigin: Int = HTTPClientBounds.connectionsPerOrigin) {
        self.connectionsPerOrigin = connectionsPerOrigin
    }

    // MARK: - The owner's side

    /// - Parameter receiver: takes the answer as it comes; the completion's has no body then.
    @discardableResult
    func send(
        _ request: HTTPClientRequest, transport: Transport, receiver: (any HTTPBodyReceiver)? = nil,
        completion: @escaping Completion
    ) -> CallID {
        lastCall += 1
        let id = CallID(rawValue: lastCall)
        let patience = HTTPTimeout(request, now: transport.now)
        calls[id] = Call(request: request, patience: patience, receiver: receiver, completion: completion)
        deadlines.set(.call(id), at: patience.nextLook(now: transport.now) ?? transport.now)
        if waiting.count >= HTTPClientBounds.maxWaiting {
            finish(id, .failure(.busy(limit: HTTPClientBounds.maxWaiting)), transport)
        } else {
            waiting.append(id)
            serveWaiting(transport)
        }
        return id
    }

    /// Gives a request up; its callback says so. Again is harmless.
    func cancel(_ id: CallID, transport: Transport) {
        finish(id, .failure(.cancelled), transport)
        serveWaiting(transport)
    }

    /// Goes on after a receiver wanted a pause. Harmless at any time.
    func resume(_ id: CallID, transport: Transport) {
        guard let connection = calls[id]?.connection, let link = links[connection], link.isPaused else { return }
        link.isPaused = false
        calls[id]?.patience.moved(now: transport.now)
        transport.resumeReading(connection)
    }

    /// Gives everything up and closes every connection.
    func close(_ transport: Transport) {
        for id in calls.keys { finish(id, .failure(.cancelled), transport) }
        for id in links.keys { drop(id, transport) }
    }

    var connectionCount: Int { links.count }

    // MARK: - Connections

    /// Assigns waiting requests to idle connections, or to new ones within the limits.
    private func serveWaiting(_ transport: Transport) {
        var left: [CallID] = []
        for id in waiting {
            guard let call = calls[id] else { continue }
            if !serve(id, call.request, transport) { left.append(id) }
        }
        waiting = left
    }

    /// False when the request must wait.
    private func serve(_ id: CallID, _ request: HTTPClientRequest, _ transport: Transport) -> Bool {
        let route: HTTPClientRoute
        do throws(HTTPClientError) {
            route = try HTTPClientRoute(request)
        } catch {
            finish(id, .failure(error), transport)
            return true
        }
        let kept = links.first { _, link in
            link.call == nil && link.route == route && link.connection.isReusable
                && (request.isRepeatable || transport.now - link.idleSince < HTTPClientBounds.freshTime)
        }
        if let (connection, link) = kept {
            link.call = id
            calls[id]?.connection = connection
            begin(connection, link, transport)
            return true
        }
        let sisters = links.count { $0.value.route.origin == route.origin }
        guard sisters < connectionsPerOrigin else { return false }
        if links.count >= HTTPClientBounds.maxConnections {
            // An idle connection to another origin makes room.
            guard let idle = links.first(where: { $0.value.call == nil })?.key else { return false }
            drop(idle, transport)
        }
        let link = Link(route, call: id)
        do throws(HTTPProtocolError) {
            if let proxy = route.proxy { link.tunnel = try HTTPProxyTunnel(to: request.url, through: proxy) }
        } catch {
            finish(id, .failure(.protocolError(error)), transport)
            return true
        }
        let connection = connect(route, until: calls[id]?.patience.deadline, transport)
        links[connection] = link
        calls[id]?.connection = connection
        return true
    }

    /// The one place where connections are made.
    private func connect(
        _ route: HTTPClientRoute, until deadline: MonotonicInstant?, _ transport: Transport
    ) -> ConnectionID {
        let left = max((deadline ?? transport.now) - transport.now, .milliseconds(1))
        if let proxy = route.proxy {
            return transport.connect(host: proxy.host, port: Int(proxy.port), timeout: left)
        }
        return transport.connect(host: route.origin.host, port: Int(route.origin.port), timeout: left, tls: route.tls)
    }

    private func drop(_ id: ConnectionID, _ transport: Transport) {
        links[id] = nil
        deadlines.cancel(.link(id))
        transport.abort(id, silently: true)
    }

    /// Sends the link's request.
    private func begin(_ id: ConnectionID, _ link: Link, _ transport: Transport) {
        guard link.isOpen, let callID = link.call, let call = calls[callID] else { return }
        var limits = HTTPClientLimits()
        limits.maxBodyBytes = call.request.maxBodyBytes
        // The call's own deadline is the bound; the machine's would only come first.
        limits.headTimeout = call.request.timeout
        limits.bodyIdleTimeout = call.request.timeout
        link.connection = HTTPClientConnection(limits: limits)
        var headers = HTTPHeaders([("Host", call.request.url.hostHeader)])
        for field in call.request.headers.fields where !ASCII.equalsIgnoringCase(field.name, "Host") {
            headers.append(field)
        }
        let head = HTTPRequestHead(method: call.request.method, target: call.request.url.pathAndQuery, headers: headers)
        do throws(HTTPProtocolError) {
            let body = call.request.body
            // All of it waits at once: its size is the caller's responsibility.
            if let body, body.count > TransportLimits.sendLimitBytes / 2 {
                transport.setSendLimit(id, bytes: body.count + TransportLimits.sendLimitBytes)
            }
            try link.connection.startRequest(
                head, body: body.map { .length($0.count) } ?? .none, now: transport.now, into: &writer)
            if let body { try link.connection.sendBody(ByteSlice(copying: body), into: &writer) }
            try link.connection.finishRequest(into: &writer)
        } catch {
            writer.truncate(to: 0)
            finish(callID, .failure(.protocolError(error)), transport)
            return
        }
        let slice = writer.take()
        transport.send(id, slice)
        deadlines.cancel(.link(id))
    }

    // MARK: - Events of the transport

    func owns(_ connection: ConnectionID) -> Bool { !links.isEmpty && links[connection] != nil }

    func owns(_ listener: ListenerID) -> Bool { false }

    func nextDeadline() -> MonotonicInstant? {
        finished.isEmpty ? deadlines.next() : MonotonicInstant(nanoseconds: .min)
    }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {}

    func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport) {
        guard let link = links[id] else { return }
        guard let tunnel = link.tunnel else { return stands(id, link, transport) }
        do throws(HTTPProtocolError) {
            try tunnel.request(into: &writer)
            transport.send(id, writer.take())
        } catch {
            writer.truncate(to: 0)
            if let call = link.call { finish(call, .failure(.protocolError(error)), transport) }
        }
    }

    /// The connection leads to the server, and is secured where it is to be.
    private func stands(_ id: ConnectionID, _ link: Link, _ transport: Transport) {
        link.tunnel = nil
        link.isSecuring = false
        link.isOpen = true
        begin(id, link, transport)
    }

    func connectionSecured(_ id: ConnectionID, transport: Transport) {
        guard let link = links[id], link.isSecuring else { return }
        stands(id, link, transport)
    }

    private func tunnelReceived(
        _ bytes: UnsafeRawBufferPointer, _ id: ConnectionID, _ link: Link, _ transport: Transport
    ) {
        guard let outcome = link.tunnel?.bytesReceived(bytes) else { return }
        switch outcome {
        case .needMoreData: return
        case .refused(let refusal):
            let sentence = link.tunnel?.sentence(refusal) ?? "the proxy refused"
            if let call = link.call { finish(call, .failure(.notConnected(sentence)), transport) }
            serveWaiting(transport)
        case .established(let consumed):
            // Bytes before a request cannot come from the server.
            guard consumed == bytes.count else {
                if let call = link.call {
                    finish(call, .failure(.notConnected("the proxy sent more than its answer")), transport)
                }
                return serveWaiting(transport)
            }
            guard let tls = link.route.tls else { return stands(id, link, transport) }
            link.tunnel = nil
            link.isSecuring = true
            transport.startTLS(id, tls, host: link.route.origin.host)
        }
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        guard let link = links[id] else { return }
        if let call = link.call { calls[call]?.patience.moved(now: transport.now) }
        guard link.tunnel == nil else { return tunnelReceived(bytes, id, link, transport) }
        handle(link.connection.bytesReceived(bytes, now: transport.now), id, link, transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        guard let link = links.removeValue(forKey: id) else { return }
        deadlines.cancel(.link(id))
        defer { serveWaiting(transport) }
        guard let callID = link.call, let call = calls[callID] else { return }
        guard link.isOpen else {
            finish(callID, .failure(.notConnected(end.description)), transport)
            return
        }
        // A reused connection may be closed while the request is on its way; then no part of an answer comes.
        if link.usedCount > 0, link.connection.isUnanswered, !call.isSecondTry,
            call.request.isRepeatable
        {
            calls[callID]?.isSecondTry = true
            calls[callID]?.connection = nil
            waiting.insert(callID, at: 0)
            return
        }
        let isCutOff = end != .endOfStream || link.connection.isUnanswered
        let events = isCutOff ? [] : link.connection.peerClosed()
        handle(events, id, link, transport)
        // Neither whole nor refused: it was cut off.
        if calls[callID]?.connection == id {
            finish(callID, .failure(.connectionLost(end.description)), transport)
        }
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        while let due = deadlines.popDue(now) {
            switch due {
            case .call(let id):
                guard let call = calls[id] else { break }
                let isPaused = call.connection.flatMap { links[$0] }?.isPaused == true
                if let look = call.patience.nextLook(now: now, isPaused: isPaused) {
                    deadlines.set(.call(id), at: look)
                } else {
                    finish(id, .failure(.timedOut), transport)
                }
            case .link(let id): drop(id, transport)
            }
        }
        serveWaiting(transport)
    }

    /// Callbacks run here, outside of any change of state.
    func turnWillFlush(now: MonotonicInstant, transport: Transport) {
        while !finished.isEmpty {
            let ready = finished
            finished = []
            for (completion, result) in ready { completion(result, transport) }
        }
    }

    // MARK: - Answers

    private func handle(
        _ events: [HTTPClientConnection.Event], _ id: ConnectionID, _ link: Link, _ transport: Transport
    ) {
        defer { serveWaiting(transport) }
        for event in events {
            guard let callID = link.call else {
                // Idle connections have nothing to say.
                drop(id, transport)
                return
            }
            switch event {
            case .interim: break
            case .response(let head):
                calls[callID]?.response = head
                guard let receiver = calls[callID]?.receiver, !redirects(callID, head) else { break }
                guard receiver.headReceived(head, transport: transport) else {
                    return finish(callID, .failure(.cancelled), transport)
                }
            case .bodyPart(let slice):
                guard let receiver = calls[callID]?.receiver else {
                    slice.withUnsafeBytes { calls[callID]?.body.append(contentsOf: $0) }
                    break
                }
                guard let head = calls[callID]?.response, !redirects(callID, head) else { break }
                switch receiver.partReceived(slice, transport: transport) {
                case .more: break
                case .pause:
                    guard !link.isPaused else { break }
                    link.isPaused = true
                    transport.pauseReading(id)
                case .stop: return finish(callID, .failure(.cancelled), transport)
                }
            case .responseComplete:
                if link.isPaused {
                    link.isPaused = false
                    transport.resumeReading(id)
                }
                link.call = nil
                link.usedCount += 1
                link.idleSince = transport.now
                calls[callID]?.connection = nil
                if link.connection.isReusable {
                    deadlines.set(.link(id), at: transport.now + HTTPClientBounds.idleTime)
                } else {
                    drop(id, transport)
                }
                answered(callID, transport)
            case .failed(let error):
                finish(callID, .failure(.protocolError(error)), transport)
            }
        }
    }

    /// Whether the answer is only the way to another one.
    private func redirects(_ id: CallID, _ head: HTTPResponseHead) -> Bool {
        calls[id]?.request.followsRedirects == true && HTTPRedirect.statuses.contains(head.status)
            && head.headers.first("Location") != nil
    }

    private func answered(_ id: CallID, _ transport: Transport) {
        guard var call = calls[id], let head = call.response else { return }
        guard redirects(id, head), let location = head.headers.first("Location")
        else {
            let response = HTTPClientResponse(head: head, body: call.body, url: call.request.url)
            finish(id, .success(response), transport)
            return
        }
        guard call.redirects < HTTPRedirect.limit else {
            finish(id, .failure(.tooManyRedirects(limit: HTTPRedirect.limit)), transport)
            return
        }
        do throws(HTTPClientError) {
            call.request = try HTTPRedirect.next(call.request, status: head.status, location: location)
        } catch {
            finish(id, .failure(error), transport)
            return
        }
        call.redirects += 1
        call.isSecondTry = false
        call.response = nil
        call.body = []
        calls[id] = call
        waiting.append(id)
    }

    private func finish(_ id: CallID, _ result: Result<HTTPClientResponse, HTTPClientError>, _ transport: Transport) {
        guard let call = calls.removeValue(forKey: id) else { return }
        deadlines.cancel(.call(id))
        // Late bytes on its connection would be taken for the next answer.
        if let connection = call.connection { drop(connection, transport) }
        finished.append((call.completion, result))
    }
}
