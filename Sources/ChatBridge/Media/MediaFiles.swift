import BridgeCore
import BridgeTypes
import Dialects
import HTTPProtocol
import Media
import Transport
import Upstream
import WireBytes

/// Opens links: files of backends are passed on as they come, files that came within messages are read from the disk.
///
/// Each is one of ``MediaBounds/downloads``, and one of those that its visitor may have, until the visitor has all of it.
final class MediaFiles {
    private let links: SignedFileLinks
    private let store: MediaStore
    private let backends: BackendDriver
    private let loop: NetworkLoop
    private unowned let host: any BridgeHost
    private let note: (BridgeNote) -> Void
    private let workers: WorkPool

    private struct Running {
        var exchange: HTTPExchange
        var pass: ConcurrencyLimiter.Permit
        /// Of a backend's file, once it was asked for.
        weak var relay: MediaRelay?
    }

    /// A file that waits for its backend's token.
    private struct Waiting {
        var number: UInt64
        var exchange: HTTPExchange
        var file: LinkedFile
        /// The generation of the refused token.
        var refused: Int?
        var until: MonotonicInstant
    }

    /// A stored file on its way.
    private struct Reading {
        var exchange: HTTPExchange
        var file: LinkedFile
        /// Nil: it is being opened.
        var source: MediaStoreFile?
        /// The unwritten rest.
        var rest = 0..<0
    }

    private let places = ConcurrencyLimiter(limit: MediaBounds.downloads, limitOfEach: MediaBounds.downloadsPerVisitor)
    private var running: [UInt64: Running] = [:]
    private var lastNumber: UInt64 = 0
    private var reading: [UInt64: Reading] = [:]
    private var waiting: [Waiting] = []
    private var unsavedBytes = 0
    private var sweepAt = MonotonicInstant(nanoseconds: .min)

    init(
        _ links: SignedFileLinks, store: MediaStore, workers: WorkPool, backends: BackendDriver, host: any BridgeHost,
        loop: NetworkLoop, note: @escaping (BridgeNote) -> Void
    ) {
        self.links = links
        self.store = store
        self.workers = workers
        self.backends = backends
        self.host = host
        self.loop = loop
        self.note = note
    }

    var routes: [HTTPRoute] {
        ["f", "d"].map { kind in
            HTTPRoute(method: "GET", path: SignedFileLinks.prefix + kind + "/*") { [weak self] exchange, transport in
                self?.open(exchange, transport)
            }
        }
    }

    // MARK: - Opening

    private func open(_ exchange: HTTPExchange, _ transport: Transport) {
        switch links.file(at: exchange.target.path, now: Now(transport).wall) {
        case .failure(.unknown): exchange.respond(404, "There is no such file\n", transport: transport)
        case .failure(.expired): exchange.respond(410, "This link has expired\n", transport: transport)
        case .success(let file):
            let visitor = exchange.visitor
            if places.isFull || places.isFull(for: visitor) { endAbandoned(transport) }
            guard !places.isFull(for: visitor) else { return refuse(exchange, 429, transport) }
            if places.isFull { endStalled(transport) }
            guard let pass = places.take(for: visitor) else { return refuse(exchange, 503, transport) }
            lastNumber += 1
            running[lastNumber] = Running(exchange: exchange, pass: pass)
            switch file.location {
            case .stored(let name): openKept(lastNumber, exchange, file, name, transport)
            case .backend:
                ask(
                    Waiting(
                        number: lastNumber, exchange: exchange, file: file, refused: nil,
                        until: transport.now + MediaBounds.renewal), transport)
            }
        }
    }

    private func refuse(_ exchange: HTTPExchange, _ status: Int, _ transport: Transport) {
        exchange.respond(
            status,
            headers: HTTPHeaders([
                ("Content-Type", "text/plain; charset=utf-8"), ("Retry-After", "\(MediaBounds.retryAfter)"),
            ]), body: Array("Too many files are on their way; try again\n".utf8), transport: transport)
    }

    private func ended(_ number: UInt64) {
        running[number] = nil
        reading[number] = nil
    }

    /// Cancels requests to backends for files that are no longer wanted.
    private func endAbandoned(_ transport: Transport) {
        for (number, running) in running where !running.exchange.isOpen {
            running.relay?.cancel(transport)
            ended(number)
        }
    }

    /// Ends the longest stalled download if it is long enough, to make room.
    private func endStalled(_ transport: Transport) {
        let stalls = running.compactMap { number, running in
            running.exchange.stall(transport).map { (number: number, stall: $0, exchange: running.exchange) }
        }
        guard let longest = stalls.max(by: { $0.stall < $1.stall }), longest.stall >= MediaBounds.patience else {
            return
        }
        ended(longest.number)
        longest.exchange.breakOff(transport)
    }

    // MARK: - Files of backends

    private func ask(_ wish: Waiting, _ transport: Transport) {
        guard wish.exchange.isOpen else { return ended(wish.number) }
        switch host.bridge.fileAccess(wish.file, now: Now(transport)) {
        case .unknown:
            ended(wish.number)
            wish.exchange.respond(404, "There is no such file\n", transport: transport)
        case .order(let order, let generation) where generation != wish.refused:
            let relay = MediaRelay(wish.exchange, file: wish.file)
            running[wish.number]?.relay = relay
            relay.begin(order, backends, transport) { [weak self, weak relay] transport in
                guard let self, let relay else { return }
                self.ended(relay, wish, order.backend, generation, transport)
            }
        case .order, .notYet:
            guard transport.now < wish.until else {
                ended(wish.number)
                return refuse(wish.exchange, 503, transport)
            }
            waiting.append(wish)
        }
        host.run(transport)
    }

    private func ended(
        _ relay: MediaRelay, _ wish: Waiting, _ backend: BackendID, _ generation: Int, _ transport: Transport
    ) {
        guard relay.answer == .refused(status: 401), wish.refused == nil else {
            ended(wish.number)
            guard case .refused(let status) = relay.answer else { return }
            let isMissing = [401, 403, 404, 410].contains(status)
            return wish.exchange.respond(
                isMissing ? 404 : 502,
                isMissing ? "There is no such file\n" : "The backend does not give the file\n", transport: transport)
        }
        host.bridge.fileCredentialsRefused(backend, generation: generation, now: Now(transport))
        host.run(transport)
        var again = wish
        again.refused = generation
        waiting.append(again)
    }

    // MARK: - Files within messages

    private func openKept(
        _ number: UInt64, _ exchange: HTTPExchange, _ file: LinkedFile, _ name: String, _ transport: Transport
    ) {
        let (store, loop) = (store, loop)
        let isTaken = workers.submit {
            let source = store.open(name)
            loop.enqueue { transport in
                transport.bridgeHost?.media?.files.keptOpened(number, name, source, transport)
            }
        }
        guard isTaken else {
            ended(number)
            return refuse(exchange, 503, transport)
        }
        reading[number] = Reading(exchange: exchange, file: file)
    }

    fileprivate func keptOpened(_ number: UInt64, _ name: String, _ source: MediaStoreFile?, _ transport: Transport) {
        guard let (exchange, file) = reading[number].map({ ($0.exchange, $0.file) }) else { return }
        guard let source else {
            ended(number)
            return exchange.respond(404, "There is no such file\n", transport: transport)
        }
        var headers = MediaHeaders.fields(type: MediaHeaders.type(ofKept: name), name: file.name)
        let reply = MediaHeaders.reply(to: exchange.head, length: source.byteCount, tag: "\"\(name)\"")
        for field in reply.fields { headers.append(name: field.name, value: field.value) }
        guard let part = reply.part else {
            ended(number)
            return exchange.respond(reply.status, headers: headers, transport: transport)
        }
        exchange.begin(reply.status, headers: headers, length: part.count, transport: transport)
        reading[number]?.source = source
        reading[number]?.rest = exchange.head.method == "HEAD" ? 0..<0 : part
        readNext(number, transport)
    }

    /// A window at a time, as fast as they come and are taken: of no file more than that is held.
    private func readNext(_ number: UInt64, _ transport: Transport) {
        guard let (exchange, rest) = reading[number].map({ ($0.exchange, $0.rest) }) else { return }
        guard let source = reading[number]?.source, exchange.isOpen, !rest.isEmpty else {
            ended(number)
            return exchange.finish(transport: transport)
        }
        let (loop, part) = (loop, rest.prefix(MediaBounds.window))
        let isTaken = workers.submit {
            let bytes = source.read(part)
            loop.enqueue { transport in
                transport.bridgeHost?.media?.files.keptRead(number, bytes, transport)
            }
        }
        guard isTaken else {
            ended(number)
            return exchange.breakOff(transport)
        }
        reading[number]?.rest = part.upperBound..<rest.upperBound
    }

    fileprivate func keptRead(_ number: UInt64, _ bytes: [UInt8]?, _ transport: Transport) {
        guard let exchange = reading[number]?.exchange else { return }
        guard let bytes else {
            ended(number)
            return exchange.breakOff(transport)
        }
        exchange.write(ByteSlice(copying: bytes), transport: transport)
        exchange.whenDrained(transport) { [weak self] in self?.readNext(number, $0) }
    }

    func keep(_ file: StoredFile) {
        let (store, loop, count) = (store, loop, file.bytes.count)
        guard unsavedBytes + count <= MediaBounds.unsavedBytes else { return notKept("the write queue is full") }
        let isTaken = workers.submit {
            let why = store.keep(file.name, file.bytes)
            loop.enqueue { $0.bridgeHost?.media?.files.kept(count, why) }
        }
        if isTaken { unsavedBytes += count } else { notKept("the write queue is full") }
    }

    /// - Parameter why: a sentence where it could not be.
    fileprivate func kept(_ count: Int, _ why: String?) {
        unsavedBytes -= count
        if let why { notKept(why) }
    }

    /// Keeps an upload; there are no more of these at a time than ``MediaBounds/uploads``.
    func store(_ id: UploadID, _ file: StoredFile) {
        let (store, loop) = (store, loop)
        let finish: @Sendable (String?) -> Void = { why in
            loop.enqueue { $0.bridgeHost?.media?.files.stored(id, why, $0) }
        }
        if !workers.submit({ finish(store.keep(file.name, file.bytes)) }) { finish("the write queue is full") }
    }

    fileprivate func stored(_ id: UploadID, _ why: String?, _ transport: Transport) {
        if let why { notKept(why) }
        host.bridge.uploadStored(id, isStored: why == nil, now: Now(transport))
        host.run(transport)
    }

    private func notKept(_ why: String) {
        note(BridgeNote(.warn, "file-not-kept", "cannot store a file", ["reason": why]))
    }

    // MARK: - The loop

    var nextDeadline: MonotonicInstant? { (waiting.map(\.until) + [sweepAt]).min() }

    /// Old files go, whether new ones come or not. Also the first thing that is done.
    func sweepDue(_ now: MonotonicInstant) {
        guard now >= sweepAt else { return }
        sweepAt = now + MediaBounds.sweepInterval
        let store = store
        _ = workers.submit { store.sweep() }
    }

    /// Renewed tokens come with some turn of the loop.
    func turnWillFlush(_ transport: Transport) {
        guard !waiting.isEmpty else { return }
        let wishes = waiting
        waiting = []
        for wish in wishes { ask(wish, transport) }
    }
}
