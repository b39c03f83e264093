import Dialects
import HTTPProtocol
import Transport
import Upstream
import WireBytes

/// The origin and the HTTP settings of a backend: turns a dialect's request into a complete one.
struct BackendPlace: Sendable {
    /// The backend's own; tokens go nowhere else.
    var base: HTTPURL?
    /// Where the operator's login URLs lead, which may be another server. No token is shown there.
    var loginURLs: [HTTPURL] = []
    var headers: [(name: String, value: String)] = []
    var userAgent = ""
    var tls: TLSClientSettings?
    var proxies = HTTPProxyRules.direct

    /// The request as the client sends it.
    ///
    /// - Throws: a sentence without secrets, when the target lies elsewhere or something cannot stand in a head.
    func request(
        _ order: BackendCallRequest, using random: inout some RandomNumberGenerator
    ) throws(BackendCallFailure) -> HTTPClientRequest {
        let url = try self.url(order.request)
        var request = HTTPClientRequest(
            url.addingToQuery(order.authorization.query.map { ($0.name, $0.value) }),
            method: order.request.method.rawValue)
        request.timeout = order.timeout
        request.stallTimeout = order.stallTimeout
        request.maxBodyBytes = order.maxAnswerBytes
        request.tls = tls
        // With the relay's certificate, a backend could answer for the relay and not for the client.
        if order.carriesClientTokenOnly { request.tls?.identity = nil }
        request.proxies = proxies
        // A redirect would change a POST, and calls have one address.
        request.followsRedirects = order.request.method == .get
        var fields = [(name: "Accept", value: "application/json")]
        if !userAgent.isEmpty { fields.append((name: "User-Agent", value: userAgent)) }
        // Credentials of an order replace configured headers of the same name: servers take either of two, and would
        // judge a client's token by the configuration's.
        let shown = Set(order.authorization.headers.map { ASCII.lowercased($0.name) })
        if isOwn(url), !order.carriesClientTokenOnly {
            fields += headers.filter { !shown.contains(ASCII.lowercased($0.name)) }
        }
        fields += order.authorization.headers.map { ($0.name, $0.value) }
        switch order.request.body {
        case .none:
            // Some servers want a length with every POST.
            if order.request.method == .post || order.request.method == .patch { request.body = [] }
        case .json(let bytes):
            fields.append((name: "Content-Type", value: "application/json"))
            request.body = bytes
        case .multipart(let parts, let fileField, let file):
            let form = HTTPMultipartWriter(using: &random)
            var writer = ByteWriter()
            for part in parts { form.append(field: part.name, value: part.value, into: &writer) }
            do throws(HTTPProtocolError) {
                try form.beginFile(name: fileField, fileName: file.name, contentType: file.mime, into: &writer)
            } catch {
                throw BackendCallFailure(sentence: error.sentence)
            }
            writer.append(file.bytes)
            form.endFile(into: &writer)
            form.finish(into: &writer)
            fields.append((name: "Content-Type", value: form.contentType))
            request.body = writer.take().withUnsafeBytes { Array($0) }
        }
        for field in fields where !HTTPHeaders.isValidValue(field.value) {
            throw BackendCallFailure(sentence: "\(field.name) has a character that must not stand in an HTTP head")
        }
        request.headers = HTTPHeaders(fields)
        return request
    }

    private func isOwn(_ url: HTTPURL) -> Bool { base.map { HTTPOrigin($0) == HTTPOrigin(url) } ?? false }

    private func url(_ request: BackendRequest) throws(BackendCallFailure) -> HTTPURL {
        let isPath = request.target.utf8.first == UInt8(ascii: "/")
        var text = request.target
        if isPath {
            guard let base else { throw BackendCallFailure(sentence: "the backend has no http_base") }
            let folder = base.pathAndQuery.utf8.prefix { $0 != UInt8(ascii: "?") }
            let path = String(decoding: folder.last == UInt8(ascii: "/") ? folder.dropLast() : folder, as: UTF8.self)
            text = "\(base.scheme)://\(base.hostHeader)\(path)\(request.target)"
        }
        let url: HTTPURL
        do throws(HTTPURLError) {
            url = try HTTPURL(parsing: text)
        } catch {
            throw BackendCallFailure(sentence: "a call has no usable URL: \(error.sentence)")
        }
        let isLogin = !request.isAuthorized && loginURLs.contains { HTTPOrigin($0) == HTTPOrigin(url) }
        guard isOwn(url) || isLogin else {
            throw BackendCallFailure(sentence: "\(url.scheme)://\(url.hostHeader) is not the backend's own server")
        }
        // A room's name must not lead elsewhere.
        guard !HTTPURL.climbs(url.pathAndQuery) else {
            throw BackendCallFailure(sentence: "the path of a call leaves its place")
        }
        return url
    }
}
