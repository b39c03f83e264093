import Accounts
import BridgeCore
import BridgeTypes
import Configuration
import Dialects
import HTTPProtocol
import IRCServer
import Media
import Transport
import WireBytes

// Files over HTTP: people upload, and links open.
//
//     OPTIONS, POST /media/upload     one file; a password or a token; 201 with Location
//     GET, HEAD     /media/f/…        a file of a backend, passed on as it comes
//     GET, HEAD     /media/d/…        a file that is kept here: it came within a message, or was uploaded
//
// Source: soju.im/filehost.

final class MediaRoutes: LoopClient {
    private let links: SignedFileLinks
    private let maxUploadBytes: Int
    /// Pages that may upload with the browser's remembered credentials; other pages must send the password themselves.
    private let origins: [OriginPattern]
    /// The relay's public host, for comparing origins.
    private let publicHost: String
    let files: MediaFiles
    private let journal: UploadJournal
    private let workers: WorkPool
    private let loop: NetworkLoop
    private let note: (BridgeNote) -> Void
    private unowned let host: any BridgeHost

    private final class Check {
        let gate: HTTPGate
        /// As the uploader wrote it; nil: a token.
        let name: String?
        /// Whose password is checked; nil: a token, or a name without an account.
        let uploader: Uploader?
        let place: UploadSource
        private var passes: [ConcurrencyLimiter.Permit]

        init(
            _ gate: HTTPGate, name: String?, _ uploader: Uploader?, _ place: UploadSource,
            _ passes: [ConcurrencyLimiter.Permit]
        ) {
            self.gate = gate
            self.name = name
            self.uploader = uploader
            self.place = place
            self.passes = passes
        }

        /// Before the answer, because with it the next request may come.
        func end() { passes = [] }
    }

    /// Passwords under way, by their attempts.
    private var checks: [UInt64: Check] = [:]
    /// Passwords and tokens under way, and refusals that wait, by visitor.
    private let tries = ConcurrencyLimiter(
        limit: MediaBounds.tries, limitOfEach: MediaBounds.triesPerVisitor,
        limitOfSharedAddress: MediaBounds.triesPerSharedAddress)
    /// The same, by the key for failures: many requests must not avoid the delays.
    private let turns = ConcurrencyLimiter(
        limit: MediaBounds.tries, limitOfEach: 1, limitOfSharedAddress: MediaBounds.tokensPerSharedAddress)
    private var refusals: [(at: MonotonicInstant, check: Check)] = []
    private var uploading: [UploadID: HTTPExchange] = [:]
    private var lastUpload: UInt64 = 0
    /// Links being stored, and the exchanges that wait for it.
    private var unkept: [String: [HTTPExchange]] = [:]
    private let places = ConcurrencyLimiter(limit: MediaBounds.uploads, limitOfEach: MediaBounds.uploadsPerAccount)

    /// The gate's object for an admitted upload.
    private final class Admission {
        let uploader: Uploader
        private let pass: ConcurrencyLimiter.Permit

        init(_ uploader: Uploader, _ pass: ConcurrencyLimiter.Permit) {
            self.uploader = uploader
            self.pass = pass
        }
    }

    init(
        _ settings: MediaSettings, origins: [OriginPattern], store: MediaStore, journal: UploadJournal,
        backends: BackendDriver, host: any BridgeHost, loop: NetworkLoop, note: @escaping (BridgeNote) -> Void
    ) {
        links = settings.links
        publicHost = (try? HTTPURL(parsing: settings.links.base))?.host ?? ""
        maxUploadBytes = settings.maxUploadBytes
        self.origins = origins
        self.host = host
        self.journal = journal
        self.loop = loop
        self.note = note
        // The disk is one.
        workers = WorkPool(name: "media", maxThreads: 1, maxWaiting: 256)
        files = MediaFiles(
            settings.links, store: store, workers: workers, backends: backends, host: host, loop: loop, note: note)
    }

    var routes: [HTTPRoute] {
        [
            HTTPRoute(method: "OPTIONS", path: SignedFileLinks.uploadPath) { [weak self] exchange, transport in
                self?.options(exchange, transport)
            },
            HTTPRoute(
                method: "POST", path: SignedFileLinks.uploadPath, maxBodyBytes: maxUploadBytes,
                refusalFields: { [weak self] in self?.sharing($0) ?? [] },
                gate: { [weak self] gate, transport in self?.uploadBegins(gate, transport) },
                answer: { [weak self] exchange, transport in self?.uploadCame(exchange, transport) }),
        ] + files.routes
    }

    // MARK: - Uploads

    private func options(_ exchange: HTTPExchange, _ transport: Transport) {
        let fields =
            sharing(exchange.head) + [
                ("Allow", "OPTIONS, POST"), ("Accept-Post", "*/*"),
                ("Access-Control-Allow-Methods", "OPTIONS, POST"),
                ("Access-Control-Allow-Headers", "Authorization, Content-Type, Content-Disposition"),
                ("Access-Control-Max-Age", "600"),
            ]
        exchange.respond(204, headers: HTTPHeaders(fields), transport: transport)
    }

    /// CORS headers for web clients. Any page may upload with a password of its own; with the browser's remembered
    /// credentials only pages that may also connect.
    ///
    /// Source: Fetch, "CORS protocol".
    private func sharing(_ head: HTTPRequestHead) -> [(name: String, value: String)] {
        var fields = [(name: "Access-Control-Expose-Headers", value: "Location"), (name: "Vary", value: "Origin")]
        if let origin = head.headers.first("Origin"), head.headers.all("Origin").count == 1,
            origins.contains(where: { $0.matches(origin, host: publicHost) })
        {
            fields += [
                (name: "Access-Control-Allow-Origin", value: origin),
                (name: "Access-Control-Allow-Credentials", value: "true"),
            ]
        } else {
            fields.append((name: "Access-Control-Allow-Origin", value: "*"))
        }
        return fields
    }

    private func uploadBegins(_ gate: HTTPGate, _ transport: Transport) {
        guard let shown = UploadCredentials(gate.head.headers) else { return refuseStranger(gate, transport) }
        if case .token = shown, !host.bridge.takesUploadTokens { return refuseStranger(gate, transport) }
        guard !MediaHeaders.mayBeForged(gate.head, origins: origins, host: publicHost) else {
            return gate.refuse(
                403, headers: sharing(gate.head),
                "A page of another site uploads with a Content-Type of the file or a Content-Disposition\n",
                transport: transport)
        }
        guard MediaHeaders.uploadedType(gate.head.headers) != "multipart/form-data" else {
            return gate.refuse(
                415, headers: sharing(gate.head), "Send the file itself, not a form with it (curl: -T, not -F)\n",
                transport: transport)
        }
        guard !places.isFull, checks.count < MediaBounds.checks else { return refuseBusy(gate, transport) }
        let visitor = gate.visitor
        guard !tries.isFull else { return refuseBusy(gate, transport) }
        // One of an account's passwords at a time. Tokens say nothing of whose they are before they were asked about, so
        // where visitors are not told apart, the made-up ones of one must not be the one try of all.
        let (name, place): (String?, UploadSource) =
            switch shown {
            case .password(let name, _): (name, host.bridge.uploadSource(name, from: visitor.key))
            case .token: (nil, host.bridge.uploadTokenSource(from: visitor.key))
            }
        let isSharedAddress = name == nil && visitor.isSharedAddress
        guard let visit = tries.take(for: visitor),
            let turn = turns.take(for: place.failures, isSharedAddress: isSharedAddress)
        else {
            return gate.refuse(
                429, headers: sharing(gate.head) + [("Retry-After", "\(MediaBounds.retryAfter)")],
                "Another upload of yours is being checked; try again\n", transport: transport)
        }
        let check = Check(gate, name: name, name.flatMap(host.bridge.uploader), place, [visit, turn])
        switch shown {
        case .password(let name, let password):
            let order = host.bridge.uploadCheck(name, password)
            checks[order.attempt] = check
            host.checkUpload(order, transport)
        case .token(let token):
            switch host.bridge.uploadTokenCheck(token, at: place, now: Now(transport)) {
            case .begun(let attempt):
                checks[attempt] = check
                host.run(transport)
            case .impossible:
                check.end()
                refuseStranger(gate, transport)
            case .busy:
                check.end()
                refuseBusy(gate, because: Self.manyLogIn, transport)
            }
        }
    }

    private static let manyLogIn = "Too many people log in at this moment; try again"

    private func refuseBusy(
        _ gate: HTTPGate, because why: String = "Too many files are being uploaded; try again", _ transport: Transport
    ) {
        gate.refuse(
            503, headers: sharing(gate.head) + [("Retry-After", "\(MediaBounds.retryAfter)")], why + "\n",
            transport: transport)
    }

    /// Source: RFC 9110 §11.6.1; RFC 6750 §3.1.
    private func refuseStranger(_ gate: HTTPGate, token wasRefused: Bool = false, _ transport: Transport) {
        var fields = [(name: "WWW-Authenticate", value: "Basic realm=\"chatbridge\", charset=\"UTF-8\"")]
        if host.bridge.takesUploadTokens {
            let why = wasRefused ? ", error=\"invalid_token\"" : ""
            fields.append((name: "WWW-Authenticate", value: "Bearer realm=\"chatbridge\"" + why))
        }
        gate.refuse(
            401, headers: sharing(gate.head) + fields,
            "Log in as on IRC: the name of your account and its password\n", transport: transport)
    }

    /// The verdict on a password.
    func uploadChecked(_ attempt: UInt64, _ verdict: PasswordVerdict, _ transport: Transport) {
        guard let check = checks.removeValue(forKey: attempt), let name = check.name else { return }
        let wait = host.bridge.uploadChecked(name, at: check.place, verdict, now: Now(transport))
        host.run(transport)
        switch (verdict, wait) {
        case (.correct, _): admit(check, check.uploader.flatMap(host.bridge.present), transport)
        case (.unavailable, _):
            check.end()
            refuseBusy(check.gate, because: Self.manyLogIn, transport)
        case (.wrong, let wait): refuseLater(check, wait ?? .zero, transport)
        }
    }

    /// The backend's word on a token.
    func uploadTokenChecked(_ attempt: UInt64, _ verdict: UploadTokenVerdict, _ transport: Transport) {
        guard let check = checks.removeValue(forKey: attempt) else { return }
        switch verdict {
        case .belongs(let uploader): admit(check, uploader, transport)
        case .unknown:
            check.end()
            refuseBusy(check.gate, because: "Nobody can say at the moment whose token that is; try again", transport)
        case .refused(let wait): refuseLater(check, wait, transport)
        }
    }

    private func admit(_ check: Check, _ uploader: Uploader?, _ transport: Transport) {
        check.end()
        // The account went, or got another password, while it was checked.
        guard let uploader else { return refuseStranger(check.gate, transport) }
        guard let pass = places.take(for: uploader.name) else { return refuseBusy(check.gate, transport) }
        check.gate.open(Admission(uploader, pass), transport: transport)
    }

    /// The permit lasts until the refusal is sent, even if the client is gone.
    private func refuseLater(_ check: Check, _ wait: Duration, _ transport: Transport) {
        refusals.append((transport.now + wait, check))
        refuseDue(transport.now, transport)
    }

    private func refuseDue(_ now: MonotonicInstant, _ transport: Transport) {
        let due = refusals.filter { $0.at <= now }
        refusals.removeAll { $0.at <= now }
        for (_, check) in due {
            check.end()
            refuseStranger(check.gate, token: check.name == nil, transport)
        }
    }

    private func uploadCame(_ exchange: HTTPExchange, _ transport: Transport) {
        guard let pass = exchange.pass as? Admission else {
            return exchange.respond(401, "", transport: transport)
        }
        guard !exchange.body.isEmpty else {
            return answer(exchange, 400, "There is no file in this request", transport)
        }
        let type = MediaHeaders.uploadedType(exchange.head.headers)
        let file = UploadedFile(
            name: MediaHeaders.uploadedName(exchange.head.headers, type: type), mime: type, bytes: exchange.body)
        lastUpload += 1
        let id = UploadID(rawValue: lastUpload)
        uploading[id] = exchange
        host.bridge.upload(
            id, file, by: pass.uploader, room: Self.room(exchange.target), now: Now(transport))
        host.run(transport)
    }

    /// `?room=NAME`: the room of the message, for scripts that are not on IRC.
    private static func room(_ target: HTTPRequestTarget) -> String? {
        let items = target.query?.split(separator: "&") ?? []
        return items.first { $0.hasPrefix("room=") }.flatMap { HTTPURL.percentDecoded(String($0.dropFirst(5))) }
    }

    func uploaded(_ id: UploadID, _ outcome: Result<String, UploadFailure>, _ transport: Transport) {
        guard let exchange = uploading.removeValue(forKey: id) else { return }
        switch outcome {
        case .success(let link):
            if unkept[link] == nil { answer(exchange, link, transport) } else { unkept[link]?.append(exchange) }
        case .failure(.notAllowed):
            answer(exchange, 403, "There is no such room that you may enter", transport)
        case .failure(.tooLarge(let limit)):
            answer(
                exchange, 413, "The file is too large" + (limit.map { "; at most \($0) bytes are taken" } ?? ""),
                transport)
        case .failure(.unsupportedType): answer(exchange, 415, "The backend does not take this kind of file", transport)
        case .failure(.failed(let why)): answer(exchange, 502, "The file was not taken: \(why)", transport)
        // Source: RFC 4918 §11.5.
        case .failure(.notStored): answer(exchange, 507, "There is no room for the file", transport)
        }
    }

    /// Stores the record of an upload. The client is answered afterwards, so that returned links are persistent.
    func keepUpload(_ record: UploadRecord) {
        let (journal, loop, link) = (journal, loop, record.link)
        let isTaken = workers.submit {
            let why = journal.append(record)
            loop.enqueue { $0.bridgeHost?.media?.uploadKept(link, why, $0) }
        }
        if isTaken { unkept[link] = unkept[link] ?? [] } else { uploadNotKept("the write queue is full") }
    }

    /// - Parameter why: a sentence where it could not be.
    fileprivate func uploadKept(_ link: String, _ why: String?, _ transport: Transport) {
        if let why { uploadNotKept(why) }
        for exchange in unkept.removeValue(forKey: link) ?? [] { answer(exchange, link, transport) }
    }

    private func uploadNotKept(_ why: String) {
        note(
            BridgeNote(
                .warn, "upload-not-kept",
                "cannot store the record of an upload; after a restart its link is sent as text", ["reason": why]))
    }

    private func answer(_ exchange: HTTPExchange, _ link: String, _ transport: Transport) {
        let fields =
            sharing(exchange.head) + [
                ("Location", link), ("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store"),
            ]
        exchange.respond(201, headers: HTTPHeaders(fields), body: Array((link + "\n").utf8), transport: transport)
    }

    private func answer(_ exchange: HTTPExchange, _ status: Int, _ sentence: String, _ transport: Transport) {
        exchange.respond(
            status, headers: HTTPHeaders(sharing(exchange.head) + [("Content-Type", "text/plain; charset=utf-8")]),
            body: Array((sentence + "\n").utf8), transport: transport)
    }

    // MARK: - The loop

    func owns(_ connection: ConnectionID) -> Bool { false }
    func owns(_ listener: ListenerID) -> Bool { false }

    func nextDeadline() -> MonotonicInstant? {
        (refusals.map(\.at) + [files.nextDeadline].compactMap(\.self)).min()
    }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        refuseDue(now, transport)
        files.sweepDue(now)
    }

    func turnWillFlush(now: MonotonicInstant, transport: Transport) { files.turnWillFlush(transport) }

    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {}
    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {}
    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {}
}
