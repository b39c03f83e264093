import Configuration
import HTTPProtocol
import Transport
import WireBytes

/// Which requests a listener opens a WebSocket for.
///
/// A browser sends such a request for any page, to any machine that the page names. So the page's origin must be
/// permitted (`origins`), and the requested name must be the listener's: a foreign name can be made to resolve to this
/// address (DNS rebinding), and the foreign page would then be one "of the same host". A numeric address cannot be
/// rebound.
///
/// Source: RFC 6455 §4.2.2, §10.2.
struct WebSocketSite: Sendable {
    /// As on the request line, without the query.
    var path: String
    var origins: [OriginPattern]
    /// In lower case, without ports.
    var hosts: [String]
    /// Proxies with a trusted X-Forwarded-For.
    var proxies = TrustedPeers()

    enum Verdict: Equatable, Sendable {
        /// - Parameter client: the client named by a trusted proxy; nil: the other end itself.
        case admitted(client: SocketAddress?)
        case refused(status: Int, why: String)
    }

    init(path: String, origins: [OriginPattern], hosts: [String], proxies: TrustedPeers = TrustedPeers()) {
        self.path = path
        self.origins = origins
        self.hosts = hosts
        self.proxies = proxies
    }

    init(_ listener: ListenerConfiguration, serverName: String) {
        var hosts = listener.hosts + [serverName.lowercased(), "localhost"]
        if !listener.bind.isUnixSocket, listener.bind.sockets == nil {
            hosts.append(listener.bind.endpoint.host.lowercased())
        }
        self.init(
            path: listener.bind.path, origins: listener.origins, hosts: hosts,
            proxies: TrustedPeers(listener.trustedProxies))
    }

    /// - Parameter peer: the other end of the connection.
    func judge(_ request: HTTPRequestHead, peer: SocketAddress) -> Verdict {
        let target: HTTPRequestTarget
        do throws(HTTPProtocolError) {
            target = try HTTPRequestTarget(of: request)
        } catch {
            return .refused(status: error.statusHint, why: error.sentence)
        }
        guard target.path == path else { return .refused(status: 404, why: "there is nothing at \(target.path)") }
        let host = target.host
        if let refusal = judge(host: host) { return refusal }
        let written = request.headers.all("Origin")
        // Programs that are no browsers have none.
        if !written.isEmpty {
            guard written.count == 1, let origin = written.first,
                origins.contains(where: { $0.matches(origin, host: host) })
            else {
                return .refused(
                    status: 403,
                    why: "the origin \"\(written.joined(separator: ", "))\" is not among the listener's origins")
            }
        }
        return .admitted(client: proxies.contains(peer) ? Self.client(request, proxies) : nil)
    }

    /// Nil: the listener is called that.
    func judge(host: String) -> Verdict? {
        if origins.contains(.any) || hosts.contains(host) || NetworkAddress(host) != nil { return nil }
        return .refused(status: 421, why: "the Host \"\(host)\" is not among the listener's hosts")
    }

    /// The last address that is not a trusted proxy's: earlier entries were written by the client.
    private static func client(_ request: HTTPRequestHead, _ proxies: TrustedPeers) -> SocketAddress? {
        for text in request.headers.listItems("X-Forwarded-For").reversed() {
            guard let address = address(text) else { return nil }
            if let numeric = address.networkAddress, !proxies.contains(numeric) { return address }
        }
        return nil
    }

    /// `192.0.2.1`, `2001:db8::1` and both with a port, as proxies write them.
    private static func address(_ text: String) -> SocketAddress? {
        if let numeric = NetworkAddress(text) {
            return numeric.bytes.isEmpty ? nil : SocketAddress(host: text, port: 0)
        }
        return SocketAddress(text)
    }
}
