import HTTPProtocol

/// The proxy between a room and its backend.
package enum UpstreamProxy: Hashable, Sendable {
    /// As `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    case environment
    case off
    case proxy(HTTPProxy)

    package func rules(environment: HTTPProxyRules) -> HTTPProxyRules {
        switch self {
        case .environment: environment
        case .off: .direct
        case .proxy(let proxy): HTTPProxyRules(always: proxy)
        }
    }
}

extension ConfigurationForm where Value == UpstreamProxy {
    static var proxy: Self {
        Self(expected: "a proxy such as \"http://127.0.0.1:3128\", \"off\" or \"\"", shape: .leaf) {
            node, value, reader in
            guard let text = reader.string(node) else { return }
            switch text {
            case "": value = .environment
            case "off": value = .off
            default:
                do throws(HTTPProxyError) {
                    value = .proxy(try HTTPProxy(parsing: text))
                } catch {
                    reader.report(node.origin, error.sentence)
                }
            }
        } write: { value in
            switch value {
            case .environment: ConfigurationNode(.string(""))
            case .off: ConfigurationNode(.string("off"))
            case .proxy(let proxy):
                .hiding(proxy, as: "http://\(proxy.hasCredentials ? Secret.blank + "@" : "")\(proxy)")
            }
        }
    }
}
