import BridgeCore
import HTTPProtocol
import Transport
import WireBytes

/// One file on its way from a backend to whoever opened its link, as fast as that one reads.
final class MediaRelay: HTTPBodyReceiver {
    private let exchange: HTTPExchange
    private let file: LinkedFile
    /// What the backend answered with; nil: nothing yet, or nothing at all.
    private(set) var status: Int?
    /// The answer to the one who asked has begun.
    private(set) var hasBegun = false
    /// Called once.
    var ended: ((Transport) -> Void)?
    private var call: HTTPClient.CallID?
    private weak var client: HTTPClient?
    /// Bytes since the reader last had everything.
    private var written = 0

    init(_ exchange: HTTPExchange, file: LinkedFile) {
        self.exchange = exchange
        self.file = file
    }

    func begin(_ order: BackendCallOrder, _ backends: BackendDriver, _ transport: Transport) {
        client = backends.files
        // The relay lives as long as the call that it receives.
        call = backends.fetch(order, range: exchange.head.headers.first("Range"), transport, self) {
            outcome, transport in
            self.finished(outcome, transport)
        }
        if call == nil { finished(.failure(.cancelled), transport) }
    }

    func headReceived(_ head: HTTPResponseHead, transport: Transport) -> Bool {
        status = head.status
        guard head.status == 200 || head.status == 206, exchange.isOpen else { return false }
        var headers = MediaHeaders.fields(type: head.headers.first("Content-Type"), name: file.name)
        for name in ["Content-Range", "Accept-Ranges", "Last-Modified", "ETag", "Content-Encoding"] {
            if let value = head.headers.first(name) { headers.append(name: name, value: value) }
        }
        hasBegun = true
        let length = head.headers.first("Content-Length").flatMap { ASCII.decimal($0.utf8) }
        exchange.begin(head.status, headers: headers, length: length, transport: transport)
        guard exchange.head.method != "HEAD" else {
            exchange.finish(transport: transport)
            return false
        }
        return true
    }

    func partReceived(_ part: ByteSlice, transport: Transport) -> HTTPBodyWish {
        guard exchange.isOpen else { return .stop }
        exchange.write(part, transport: transport)
        written += part.count
        guard written >= MediaBounds.window else { return .more }
        written = 0
        exchange.whenDrained(transport) { [weak self] transport in
            guard let self, let call = self.call else { return }
            self.client?.resume(call, transport: transport)
        }
        return .pause
    }

    private func finished(_ outcome: Result<HTTPClientResponse, HTTPClientError>, _ transport: Transport) {
        if hasBegun, exchange.isOpen {
            // Whoever waits for the rest must see that it does not come.
            if case .success = outcome { exchange.finish(transport: transport) } else { exchange.breakOff(transport) }
        }
        ended?(transport)
        ended = nil
    }
}
