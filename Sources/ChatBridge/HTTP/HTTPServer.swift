import HTTPProtocol
import Transport
import WireBytes

/// Bounds of the server besides those of each connection's machine.
enum HTTPServerBounds {
    /// Connections at once, over all listeners. Probes, scrapers and a few people; each may cost a body and a queue.
    static let maxConnections = 128
    /// Connections at once of one visitor, and requests of one behind a proxy: five browsers' worth. A proxy may have
    /// three quarters of ``maxConnections``.
    static let connectionsPerVisitor = 32
    /// Reserved connections for vital routes only, so that health checks succeed when all others are taken. When all
    /// are taken, the oldest is closed.
    static let spareConnections = 16
    /// Those of one visitor: a supervisor's, and one of a check beside it, before they are in each other's way.
    static let sparePerVisitor = 4
    /// Bytes that may wait for a client when more are written; one that reads slower is dropped. What is written at once
    /// may be longer: the metrics of a thousand rooms are.
    static let sendQueueBytes = 1024 * 1024
    /// Retry-After of refusals for lack of a connection, in seconds.
    static let retryAfter = 5
    /// How long a route may take to begin its answer.
    static let answerTimeout: Duration = .seconds(60)
    /// How long the last bytes for a client may take to leave.
    static let closeLinger: Duration = .seconds(2)
}

/// A small HTTP server on a loop: a table of routes, names that are answered to, and refusals.
///
/// It runs an ``HTTPServerConnection`` for each client. Bodies are collected up to the route's limit; answers come from
/// the routes, at once or later.
final class HTTPServer: LoopClient {
    /// By reference, because a machine cannot be taken out of a dictionary and back without a copy.
    private final class Peer {
        var connection: HTTPServerConnection
        let address: SocketAddress
        /// The owner of the connection; a proxy's requests may be other visitors'.
        let visitor: HTTPVisitor
        let site: HTTPSite
        /// The request with an incomplete body.
        var pending: (head: HTTPRequestHead, target: HTTPRequestTarget, route: HTTPRoute, visitor: HTTPVisitor)?
        var body: [UInt8] = []
        /// The route has not decided yet whether it takes the request.
        var isGated = false
        /// All of the request has come, and the gate is still shut.
        var isWhole = false
        var pass: AnyObject?
        /// Waits for the queue to be empty.
        var drained: ((Transport) -> Void)?
        var pace: HTTPPace
        /// Bytes that were queued since the connection began.
        var written = 0
        /// One of the server's connections, let go with this; nil: a spare one.
        private let place: ConcurrencyLimiter.Permit?
        /// The permit of a visitor behind a proxy, until there is an answer.
        var visit: ConcurrencyLimiter.Permit?
        /// Number of the exchange that is owed an answer; 0 for none.
        var exchange: UInt64 = 0
        var answerBy: MonotonicInstant?
        var isPaused = false
        /// Answers given now are seen by the loop in ``pump(_:_:_:_:)``, which must not be entered twice.
        var isPumping = false

        /// Nothing but vital routes may be asked here, and once only.
        var isSpare: Bool { place == nil }

        init(
            _ connection: HTTPServerConnection, _ address: SocketAddress, _ visitor: HTTPVisitor, _ site: HTTPSite,
            _ pace: HTTPPace.Limits, _ place: ConcurrencyLimiter.Permit?
        ) {
            self.connection = connection
            self.address = address
            self.visitor = visitor
            self.site = site
            self.pace = HTTPPace(pace)
            self.place = place
        }
    }

    private let limits: HTTPServerLimits
    private let pace: HTTPPace.Limits
    private let places = ConcurrencyLimiter(
        limit: HTTPServerBounds.maxConnections, limitOfEach: HTTPServerBounds.connectionsPerVisitor)
    /// Permits of visitors behind proxies.
    private let visits = ConcurrencyLimiter(
        limit: HTTPServerBounds.maxConnections + HTTPServerBounds.spareConnections,
        limitOfEach: HTTPServerBounds.connectionsPerVisitor)
    /// In the order in which they came; some may be gone.
    private var spares: [ConnectionID] = []
    private var listeners: [ListenerID: HTTPSite] = [:]
    private var peers: [ConnectionID: Peer] = [:]
    /// Closing: their last bytes leave, nothing else happens to them.
    private var leaving: Set<ConnectionID> = []
    private var deadlines = DeadlineHeap<ConnectionID>()
    private var writer = ByteWriter()
    private var lastExchange: UInt64 = 0

    init(limits: HTTPServerLimits = HTTPServerLimits(), pace: HTTPPace.Limits = HTTPPace.Limits()) {
        self.limits = limits
        self.pace = pace
    }

    // MARK: - The owner's side

    /// Opens a listener, with TLS where `options` have it.
    func listen(
        _ options: ListenOptions, site: HTTPSite, transport: Transport
    ) throws(TransportError) -> [SocketAddress] {
        let (id, _) = try transport.listen(options)
        listeners[id] = site
        return transport.addresses(of: id)
    }

    /// Closes the listeners, and every connection after the answer in progress.
    func close(_ transport: Transport) {
        for id in listeners.keys { transport.closeListener(id) }
        listeners = [:]
        for (id, peer) in peers {
            peer.connection.drain()
            settle(id, peer, transport)
        }
    }

    var connectionCount: Int { peers.count }

    // MARK: - Events of the transport

    func owns(_ connection: ConnectionID) -> Bool {
        (!peers.isEmpty && peers[connection] != nil) || (!leaving.isEmpty && leaving.contains(connection))
    }

    func owns(_ listener: ListenerID) -> Bool { listeners[listener] != nil }

    func label(of listener: ListenerID) -> String? { listeners[listener]?.label }

    func nextDeadline() -> MonotonicInstant? { deadlines.next() }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer address: SocketAddress, transport: Transport)
    {
        guard let site = listeners[listener] else { return transport.abort(id, silently: true) }
        let visitor = HTTPVisitor(address, site.proxies)
        let place = places.take(for: visitor)
        if place == nil {
            // The request is not known yet; a client will retry. A remote visitor at its own limit needs no health
            // check.
            guard site.hasVitalRoutes, visitor.isSharedAddress || places.isFull else {
                return transport.abort(id, silently: true)
            }
            makeRoom(for: visitor, transport)
            spares.append(id)
        }
        let peer = Peer(HTTPServerConnection(limits: limits, now: transport.now), address, visitor, site, pace, place)
        peers[id] = peer
        settle(id, peer, transport)
    }

    /// Frees one reserved connection: of the same visitor if it has several, else the oldest.
    private func makeRoom(for visitor: HTTPVisitor, _ transport: Transport) {
        spares.removeAll { peers[$0]?.isSpare != true }
        let own = spares.filter { peers[$0]?.visitor == visitor }
        if own.count >= HTTPServerBounds.sparePerVisitor, let first = own.first {
            breakOff(first, transport)
        } else if spares.count >= HTTPServerBounds.spareConnections, let first = spares.first {
            breakOff(first, transport)
        }
    }

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {
        guard let peer = peers[id] else { return }
        pump(id, peer, peer.connection.bytesReceived(bytes, now: transport.now), transport)
    }

    func connectionDrained(_ id: ConnectionID, transport: Transport) {
        guard let peer = peers[id], let drained = peer.drained.take() else { return }
        peer.pace.drained(taken: taken(of: id, peer, transport), now: transport.now)
        drained(transport)
    }

    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {
        let drained = peers.removeValue(forKey: id)?.drained
        leaving.remove(id)
        deadlines.cancel(id)
        drained?(transport)
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        while let id = deadlines.popDue(now) {
            guard let peer = peers[id] else { continue }
            if let answerBy = peer.answerBy, answerBy <= now {
                peer.answerBy = nil
                peer.isGated = false
                peer.connection.drain()
                refuse(id, peer, 503, transport)
            }
            if let look = peer.pace.nextLook, look <= now,
                !peer.pace.look(taken: taken(of: id, peer, transport), now: now)
            {
                breakOff(id, transport)
                continue
            }
            // Behind a closed gate no body is late.
            pump(id, peer, peer.isGated ? [] : peer.connection.timerFired(now: now), transport)
        }
    }

    // MARK: - Requests

    /// Handles events, and those of requests sent ahead as long as they are answered at once.
    private func pump(
        _ id: ConnectionID, _ peer: Peer, _ events: [HTTPServerConnection.Event], _ transport: Transport
    ) {
        guard !peer.isPumping else { return }
        peer.isPumping = true
        var events = events
        while !events.isEmpty {
            for event in events { handle(event, id, peer, transport) }
            events = peer.connection.resume(now: transport.now)
        }
        // An answer from outside may have released pipelined requests.
        peer.isPumping = false
        settle(id, peer, transport)
    }

    private func handle(_ event: HTTPServerConnection.Event, _ id: ConnectionID, _ peer: Peer, _ transport: Transport) {
        switch event {
        case .request(let head, let target):
            lastExchange += 1
            peer.exchange = lastExchange
            peer.body = []
            peer.isGated = false
            peer.isWhole = false
            peer.pass = nil
            peer.visit = nil
            peer.pace.reset()
            begin(head, target, id, peer, transport)
        case .bodyPart(let slice):
            guard let (head, _, route, _) = peer.pending else { break }
            if slice.count > route.maxBodyBytes - peer.body.count {
                peer.isGated = false
                peer.pending = nil
                peer.body = []
                refuse(id, peer, 413, headers: route.refusalFields?(head) ?? [], transport)
            } else {
                slice.withUnsafeBytes { peer.body.append(contentsOf: $0) }
            }
        case .requestComplete:
            if peer.isGated {
                peer.isWhole = true
            } else {
                complete(id, peer, transport)
            }
        case .failed(let error):
            let fields = peer.pending.flatMap { $0.route.refusalFields?($0.head) } ?? []
            peer.isGated = false
            peer.pending = nil
            peer.body = []
            if peer.connection.canRespond {
                lastExchange += 1
                peer.exchange = lastExchange
                refuse(id, peer, error.statusHint, headers: fields, transport)
            } else if peer.connection.isResponding {
                breakOff(id, transport)
            }
        case .idleTimedOut: break
        }
    }

    /// Selects the route, or refuses as soon as the head suffices.
    private func begin(
        _ head: HTTPRequestHead, _ target: HTTPRequestTarget, _ id: ConnectionID, _ peer: Peer, _ transport: Transport
    ) {
        if peer.isSpare { peer.connection.drain() }
        guard peer.site.hosts.allows(target, version: head.version) else { return refuse(id, peer, 421, transport) }
        let candidates = peer.site.routes.filter { $0.matches(path: target.path) }
        guard !candidates.isEmpty else { return refuse(id, peer, 404, transport) }
        guard let route = candidates.first(where: { $0.matches(method: head.method) }) else {
            var allowed: [String] = []
            for method in candidates.flatMap({ $0.method == "GET" ? ["GET", "HEAD"] : [$0.method] })
            where !allowed.contains(method) { allowed.append(method) }
            return refuse(id, peer, 405, headers: [("Allow", allowed.joined(separator: ", "))], transport)
        }
        let more = route.refusalFields?(head) ?? []
        let retry = [(name: "Retry-After", value: "\(HTTPServerBounds.retryAfter)")] + more
        guard !peer.isSpare || route.isVital else { return refuse(id, peer, 503, headers: retry, transport) }
        let visitor = HTTPVisitor(peer.address, head.headers, peer.site.proxies)
        if visitor != peer.visitor {
            guard let visit = visits.take(for: visitor) else { return refuse(id, peer, 429, headers: retry, transport) }
            peer.visit = visit
        }
        if let length = head.headers.first("Content-Length").flatMap({ ASCII.decimal($0.utf8) }),
            length > route.maxBodyBytes
        {
            return refuse(id, peer, 413, headers: more, transport)
        }
        peer.pending = (head, target, route, visitor)
        guard let gate = route.gate else {
            peer.connection.continueRequest(into: &writer)
            return flush(id, transport)
        }
        peer.isGated = true
        peer.answerBy = transport.now + HTTPServerBounds.answerTimeout
        gate(
            HTTPGate(head: head, target: target, visitor: visitor, server: self, connection: id, number: peer.exchange),
            transport)
    }

    /// All of the request is there.
    private func complete(_ id: ConnectionID, _ peer: Peer, _ transport: Transport) {
        guard let (head, target, route, visitor) = peer.pending else { return }
        let exchange = HTTPExchange(
            head: head, target: target, body: peer.body, visitor: visitor, pass: peer.pass, server: self,
            connection: id, number: peer.exchange)
        peer.pending = nil
        peer.body = []
        peer.pass = nil
        peer.answerBy = transport.now + HTTPServerBounds.answerTimeout
        route.answer(exchange, transport)
    }

    func openGate(_ id: ConnectionID, _ number: UInt64, _ pass: AnyObject?, _ transport: Transport) {
        guard let peer = open(id, number), peer.isGated else { return }
        peer.isGated = false
        peer.pass = pass
        peer.answerBy = nil
        if peer.isWhole {
            complete(id, peer, transport)
        } else {
            peer.connection.bodyAwaited(now: transport.now)
            peer.connection.continueRequest(into: &writer)
            flush(id, transport)
        }
        settle(id, peer, transport)
    }

    /// The rest of the body is dropped.
    func refuseGate(_ id: ConnectionID, _ number: UInt64) {
        guard let peer = open(id, number) else { return }
        peer.isGated = false
        peer.pending = nil
        peer.body = []
    }

    // MARK: - Answers

    /// Reasons of the statuses that this program sends. Source: RFC 9110 §15; RFC 6585 §5.
    static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 204: "No Content"
        case 206: "Partial Content"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 413: "Content Too Large"
        case 410: "Gone"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 505: "HTTP Version Not Supported"
        default: ""
        }
    }

    private func refuse(
        _ id: ConnectionID, _ peer: Peer, _ status: Int, headers: [(name: String, value: String)] = [],
        _ transport: Transport
    ) {
        let fields = HTTPHeaders([("Content-Type", "text/plain; charset=utf-8")] + headers)
        respond(id, peer.exchange, status, fields, Array("\(status) \(Self.reason(status))\n".utf8), transport)
    }

    func isOpen(_ id: ConnectionID, _ number: UInt64) -> Bool { open(id, number) != nil }

    private func open(_ id: ConnectionID, _ number: UInt64) -> Peer? {
        guard let peer = peers[id], peer.exchange == number, number > 0 else { return nil }
        return peer
    }

    func respond(
        _ id: ConnectionID, _ number: UInt64, _ status: Int, _ headers: HTTPHeaders, _ body: [UInt8],
        _ transport: Transport
    ) {
        guard let peer = open(id, number) else { return }
        answer(id, peer, transport) { (out: inout ByteWriter) throws(HTTPProtocolError) in
            let length: HTTPOutgoingBody = body.isEmpty ? .none : .length(body.count)
            try peer.connection.startResponse(Self.head(status, headers, transport), body: length, into: &out)
            try peer.connection.sendBody(ByteSlice(copying: body), into: &out)
            try peer.connection.finishResponse(into: &out)
        }
    }

    func begin(
        _ id: ConnectionID, _ number: UInt64, _ status: Int, _ headers: HTTPHeaders, _ body: HTTPOutgoingBody,
        _ transport: Transport
    ) {
        guard let peer = open(id, number) else { return }
        answer(id, peer, transport) { (out: inout ByteWriter) throws(HTTPProtocolError) in
            try peer.connection.startResponse(Self.head(status, headers, transport), body: body, into: &out)
        }
    }

    func write(_ id: ConnectionID, _ number: UInt64, _ slice: ByteSlice, _ transport: Transport) {
        guard let peer = open(id, number) else { return }
        answer(id, peer, transport) { (out: inout ByteWriter) throws(HTTPProtocolError) in
            try peer.connection.sendBody(slice, into: &out)
        }
    }

    /// False when the exchange is over.
    func whenDrained(
        _ id: ConnectionID, _ number: UInt64, _ transport: Transport, _ then: @escaping (Transport) -> Void
    ) -> Bool {
        guard let peer = open(id, number) else { return false }
        peer.drained = then
        peer.pace.waits(taken: taken(of: id, peer, transport), now: transport.now)
        transport.notifyWhenDrained(id)
        settle(id, peer, transport)
        return true
    }

    /// How long the client has taken none of the waiting bytes; nil: none wait, or the exchange is over.
    func stall(_ id: ConnectionID, _ number: UInt64, _ transport: Transport) -> Duration? {
        guard let peer = open(id, number) else { return nil }
        return peer.pace.stall(taken: taken(of: id, peer, transport), now: transport.now)
    }

    /// Bytes that left the queue.
    private func taken(of id: ConnectionID, _ peer: Peer, _ transport: Transport) -> Int {
        peer.written - transport.queuedByteCount(id)
    }

    func breakOff(_ id: ConnectionID, _ number: UInt64, _ transport: Transport) {
        if open(id, number) != nil { breakOff(id, transport) }
    }

    func finish(_ id: ConnectionID, _ number: UInt64, _ transport: Transport) {
        guard let peer = open(id, number) else { return }
        answer(id, peer, transport) { (out: inout ByteWriter) throws(HTTPProtocolError) in
            try peer.connection.finishResponse(into: &out)
        }
    }

    /// Every answer is dated and not to be guessed at.
    private static func head(_ status: Int, _ headers: HTTPHeaders, _ transport: Transport) -> HTTPResponseHead {
        var headers = headers
        headers.append(name: "Date", value: HTTPDate.text(wallMilliseconds: transport.wallClockMilliseconds))
        headers.append(name: "X-Content-Type-Options", value: "nosniff")
        return HTTPResponseHead(status: status, reason: reason(status), headers: headers)
    }

    /// Writes a part of an answer; a framing error aborts the connection.
    private func answer(
        _ id: ConnectionID, _ peer: Peer, _ transport: Transport,
        _ write: (inout ByteWriter) throws(HTTPProtocolError) -> Void
    ) {
        do throws(HTTPProtocolError) {
            try write(&writer)
        } catch {
            writer.truncate(to: 0)
            breakOff(id, transport)
            return
        }
        flush(id, transport)
        peer.answerBy = nil
        if !peer.connection.isResponding, !peer.connection.canRespond {
            peer.exchange = 0
            peer.visit = nil
            pump(id, peer, peer.isPumping ? [] : peer.connection.resume(now: transport.now), transport)
        } else {
            settle(id, peer, transport)
        }
    }

    private func flush(_ id: ConnectionID, _ transport: Transport) {
        let slice = writer.take()
        guard !slice.isEmpty else { return }
        peers[id]?.written += slice.count
        transport.setSendLimit(id, bytes: HTTPServerBounds.sendQueueBytes + slice.count)
        transport.send(id, slice)
    }

    private func breakOff(_ id: ConnectionID, _ transport: Transport) {
        let drained = peers.removeValue(forKey: id)?.drained
        deadlines.cancel(id)
        transport.abort(id, silently: true)
        drained?(transport)
    }

    /// Brings the transport in line with the machine: its end, its deadline, whether it reads.
    private func settle(_ id: ConnectionID, _ peer: Peer, _ transport: Transport) {
        guard !peer.isPumping, peers[id] != nil else { return }
        if peer.connection.mustClose {
            peers[id] = nil
            deadlines.cancel(id)
            leaving.insert(id)
            transport.closeAfterFlush(id, linger: HTTPServerBounds.closeLinger)
            return
        }
        let wantsBytes = peer.connection.wantsBytes && !peer.isGated
        if wantsBytes == peer.isPaused {
            peer.isPaused.toggle()
            if peer.isPaused { transport.pauseReading(id) } else { transport.resumeReading(id) }
        }
        let machine = peer.isGated ? nil : peer.connection.nextDeadline
        if let deadline = [machine, peer.answerBy, peer.pace.nextLook].compactMap(\.self).min() {
            deadlines.set(id, at: deadline)
        } else {
            deadlines.cancel(id)
        }
    }
}

extension ByteSlice {
    init(copying bytes: [UInt8]) { self = bytes.withUnsafeBytes { ByteSlice(copying: $0) } }
}
