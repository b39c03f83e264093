public import WireBytes

/// Why a proxy opened no tunnel. Always the proxy's doing; the transport is of no further use.
public enum HTTPTunnelRefusal: Error, Equatable, Sendable {
    /// The proxy answered with another status than 2xx. `retryAfter` is the header as it came.
    case status(Int, reason: String, retryAfter: String?)
    /// The bytes are not an HTTP head, and why.
    case malformed(String)

    /// Whether the proxy wants other credentials; trying again soon would not help. 407 is the status for it; tinyproxy
    /// 1.11 sends 401 when they are wrong.
    ///
    /// Source: RFC 9110 §15.5.8; observed, tinyproxy with BasicAuth.
    public var isAboutCredentials: Bool {
        if case .status(let status, _, _) = self { return status == 407 || status == 401 }
        return false
    }
}

/// A tunnel through an HTTP proxy: CONNECT bytes out, the answer's bytes in.
///
/// Once it is established, all bytes in both directions belong to the tunnelled protocol, from the first one after the
/// answer's head on.
///
/// Source: RFC 9110 §9.3.6.
public struct HTTPProxyTunnel: Sendable {
    public enum Outcome: Equatable, Sendable {
        case needMoreData
        /// `consumed` bytes of those fed last belong to the proxy's answer; the rest came through the tunnel.
        case established(consumed: Int)
        case refused(HTTPTunnelRefusal)
    }

    /// Interim answers (1xx) that are skipped before the final one.
    public static let maxInterimResponses = 4

    public let proxy: HTTPProxy
    /// `host:port` at the far end, as in the request.
    public let destination: String
    private let head: HTTPRequestHead
    private var decoder = HTTPHeadDecoder(.response)
    private var interimCount = 0
    private var finished: Outcome?

    /// - Parameters:
    ///   - url: the end of the tunnel; its host and port count.
    ///   - userAgent: sent when not empty.
    /// - Throws: ``HTTPProtocolError/invalidOutgoingField(_:)`` when `userAgent` cannot stand in a header.
    public init(to url: HTTPURL, through proxy: HTTPProxy, userAgent: String = "") throws(HTTPProtocolError) {
        self.proxy = proxy
        destination = url.isIPv6Literal ? "[\(url.host)]:\(url.port)" : "\(url.host):\(url.port)"
        var headers = HTTPHeaders([("Host", destination)])
        if let authorization = proxy.authorization {
            headers.append(name: "Proxy-Authorization", value: authorization)
        }
        if !userAgent.isEmpty {
            guard HTTPHeaders.isValidValue(userAgent) else { throw .invalidOutgoingField("User-Agent") }
            headers.append(name: "User-Agent", value: userAgent)
        }
        head = HTTPRequestHead(method: "CONNECT", target: destination, headers: headers)
    }

    /// Writes the request.
    public func request(into out: inout ByteWriter) throws(HTTPProtocolError) { try head.serialize(into: &out) }

    /// Feeds bytes from the proxy. After an outcome other than `.needMoreData` the machine is over and repeats it.
    public mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        if let finished { return finished }
        var offset = 0
        while true {
            let step: HTTPHeadDecoder.Step
            do throws(HTTPProtocolError) {
                step = try decoder.bytesReceived(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
            } catch {
                return finish(.refused(.malformed(error.sentence)))
            }
            guard case .response(let response, let consumed) = step else { return .needMoreData }
            offset += consumed
            switch response.status {
            case 100...199 where interimCount < Self.maxInterimResponses:
                interimCount += 1
                decoder = HTTPHeadDecoder(.response)
            case 200...299:
                // A length in such an answer has no meaning. Source: RFC 9110 §9.3.6.
                return finish(.established(consumed: offset))
            default:
                return finish(
                    .refused(
                        .status(
                            response.status, reason: response.reason,
                            retryAfter: response.headers.first("Retry-After"))))
            }
        }
    }

    private mutating func finish(_ outcome: Outcome) -> Outcome {
        finished = outcome
        return outcome
    }

    /// The reason of a refusal, for an operator.
    public func sentence(_ refusal: HTTPTunnelRefusal) -> String {
        switch refusal {
        case .malformed(let why): return "the answer of the proxy \(proxy) is not HTTP: \(why)"
        case .status(let status, let reason, let retryAfter):
            let answer = "\(status)\(reason.isEmpty ? "" : " " + reason)"
            let later = RetryAfter.clause(retryAfter)
            switch status {
            case 401 where proxy.hasCredentials, 407 where proxy.hasCredentials:
                return "the proxy \(proxy) refused our user name and password (\(answer))"
            case 407: return "the proxy \(proxy) wants a user name and a password (\(answer))"
            case 403, 405, 501: return "the proxy \(proxy) does not allow connections to \(destination) (\(answer))"
            case 502, 504: return "the proxy \(proxy) cannot reach \(destination) (\(answer))\(later)"
            default: return "the proxy \(proxy) answered \(answer) instead of connecting to \(destination)\(later)"
            }
        }
    }
}
