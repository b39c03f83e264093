import HTTPProtocol
import Media
import Transport
import Upstream
import WireBytes

/// One file on its way from a backend to a client, as fast as the client reads.
///
/// One part of the file may be requested, on condition that the file is unchanged, whether the backend supports such
/// conditions or not; several parts get the whole file. The backend's Content-Range has to fit the request, or the
/// answer is dropped.
///
/// Source: RFC 9110 §13.1, §14.
final class MediaRelay: HTTPBodyReceiver {
    enum Answer: Equatable {
        /// The client has an answer, or its head.
        case begun
        /// The backend's status; 0: it did not answer, or not as it was asked.
        case refused(status: Int)
    }

    private let exchange: HTTPExchange
    private let file: LinkedFile
    private var range: HTTPByteRange?
    private var order: (order: BackendCallRequest, backends: BackendDriver)?
    private(set) var answer = Answer.refused(status: 0)
    /// Called once.
    private var ended: ((Transport) -> Void)?
    private var call: HTTPClient.CallID?
    private weak var client: HTTPClient?
    /// Bytes since the reader last had everything.
    private var written = 0
    /// The answer has no body, or not one that is wanted.
    private var isWhole = false
    /// The part belongs to another file than the condition's, or is out of its range.
    private var isOther = false

    init(_ exchange: HTTPExchange, file: LinkedFile) {
        self.exchange = exchange
        self.file = file
        range = HTTPByteRange(request: exchange.head)
    }

    /// - Parameter ended: called once, when nothing more comes.
    func begin(
        _ order: BackendCallRequest, _ backends: BackendDriver, _ transport: Transport,
        ended: @escaping (Transport) -> Void
    ) {
        self.ended = ended
        ask(order, backends, transport)
    }

    private func ask(_ order: BackendCallRequest, _ backends: BackendDriver, _ transport: Transport) {
        client = backends.files
        self.order = (order, backends)
        // Unencoded: the client's accepted encodings are unknown.
        var fields = [(name: "Accept-Encoding", value: "identity")]
        var passed = ["If-None-Match", "If-Modified-Since"]
        if let range {
            fields.append((name: "Range", value: range.field))
            passed.append("If-Range")
        }
        for name in passed {
            let values = exchange.head.headers.all(name)
            if values.count == 1, HTTPHeaders.isValidValue(values[0]) { fields.append((name: name, value: values[0])) }
        }
        // The relay lives as long as the call that it receives.
        call = backends.fetch(order, fields: fields, transport, self) { outcome, transport in
            self.finished(outcome, transport)
        }
        if call == nil { finished(.failure(.cancelled), transport) }
    }

    /// The file is no longer wanted. Not to be called while a part of it is being received.
    func cancel(_ transport: Transport) {
        if let call { client?.cancel(call, transport: transport) }
    }

    func headReceived(_ head: HTTPResponseHead, transport: Transport) -> Bool {
        guard exchange.isOpen else { return false }
        switch head.status {
        case 200: pass(head, length: Self.length(head), transport)
        case 206:
            guard case .part(let part, let total)? = contentRange(head), !Self.isInParts(head),
                Self.length(head).map({ $0 == part.count }) ?? true
            else { break }
            guard isSame(head) else {
                isOther = true
                return false
            }
            pass(
                head, [("Content-Range", HTTPContentRange.part(part, total: total).field)], length: part.count,
                transport)
        case 304:
            answer = .begun
            isWhole = true
            exchange.respond(304, headers: Self.validators(head), transport: transport)
        case 416:
            guard range != nil else { break }
            // That another file has no such part says nothing of theirs.
            guard isSame(head) else {
                isOther = true
                return false
            }
            answer = .begun
            isWhole = true
            var headers = HTTPHeaders([("Content-Type", "text/plain; charset=utf-8")])
            if case .unsatisfied(let total)? = contentRange(head) {
                headers.append(name: "Content-Range", value: HTTPContentRange.unsatisfied(total: total).field)
            }
            exchange.respond(
                416, headers: headers, body: Array("The file has no such part\n".utf8), transport: transport)
        default: answer = .refused(status: head.status)
        }
        guard answer == .begun, !isWhole else { return false }
        guard exchange.head.method != "HEAD" else {
            isWhole = true
            exchange.finish(transport: transport)
            return false
        }
        return true
    }

    /// Whether the file satisfies If-Range. Source: RFC 9110 §13.1.5.
    private func isSame(_ head: HTTPResponseHead) -> Bool {
        let conditions = exchange.head.headers.all("If-Range")
        guard let condition = conditions.first else { return true }
        guard conditions.count == 1, !condition.hasPrefix("W/") else { return false }
        return condition == head.headers.first("ETag") || condition == head.headers.first("Last-Modified")
    }

    private func contentRange(_ head: HTTPResponseHead) -> HTTPContentRange? {
        let fields = head.headers.all("Content-Range")
        return range != nil && fields.count == 1 ? HTTPContentRange(fields[0]) : nil
    }

    /// Several parts, of which only one was asked for.
    private static func isInParts(_ head: HTTPResponseHead) -> Bool {
        head.headers.first("Content-Type").map { ASCII.lowercased($0).hasPrefix("multipart/") } ?? false
    }

    private static func length(_ head: HTTPResponseHead) -> Int? {
        head.headers.first("Content-Length").flatMap { ASCII.decimal($0.utf8) }
    }

    private static func validators(_ head: HTTPResponseHead) -> HTTPHeaders {
        var headers = HTTPHeaders()
        for name in ["Last-Modified", "ETag"] {
            if let value = head.headers.first(name) { headers.append(name: name, value: value) }
        }
        return headers
    }

    private func pass(
        _ head: HTTPResponseHead, _ more: [(name: String, value: String)] = [], length: Int?, _ transport: Transport
    ) {
        var headers = MediaHeaders.fields(type: head.headers.first("Content-Type"), name: file.name)
        for field in Self.validators(head).fields { headers.append(field) }
        for name in ["Accept-Ranges", "Content-Encoding"] {
            if let value = head.headers.first(name) { headers.append(name: name, value: value) }
        }
        for field in more { headers.append(name: field.name, value: field.value) }
        answer = .begun
        exchange.begin(head.status, headers: headers, length: length, transport: transport)
    }

    func partReceived(_ part: ByteSlice, transport: Transport) -> HTTPBodyDemand {
        guard exchange.isOpen else { return .stop }
        exchange.write(part, transport: transport)
        written += part.count
        guard exchange.isOpen else { return .stop }
        guard written >= MediaBounds.window else { return .more }
        written = 0
        exchange.whenDrained(transport) { [weak self] transport in
            guard let self, let call = self.call else { return }
            if self.exchange.isOpen {
                self.client?.resume(call, transport: transport)
            } else {
                self.cancel(transport)
            }
        }
        return .pause
    }

    private func finished(_ outcome: Result<HTTPClientResponse, HTTPClientError>, _ transport: Transport) {
        if isOther, exchange.isOpen, let (order, backends) = order {
            isOther = false
            range = nil
            return ask(order, backends, transport)
        }
        guard answer == .begun, !isWhole, exchange.isOpen else { return end(transport) }
        guard case .success = outcome else {
            // The client must see that the rest does not come.
            exchange.breakOff(transport)
            return end(transport)
        }
        // After all bytes are taken: a closing connection leaves little time for the rest.
        exchange.whenDrained(transport) { transport in
            self.exchange.finish(transport: transport)
            self.end(transport)
        }
    }

    private func end(_ transport: Transport) {
        ended?(transport)
        ended = nil
    }
}
