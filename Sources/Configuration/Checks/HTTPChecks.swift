extension ConfigurationCompletion {
    /// Rules between the keys of `[[http]]` and of the listeners.
    mutating func checkHTTP() {
        var seen: [HostPort: String] = [:]
        for (index, listener) in configuration.listeners.enumerated() {
            guard let place = origin("listeners[\(index)].bind") else { continue }
            let named = listener.bind.sockets.map { HostPort(host: $0.name, port: 0) }
            if let key = named ?? (listener.bind.endpoint.port == 0 ? nil : listener.bind.endpoint) {
                seen[key] = "\(place)"
            }
        }
        for (index, http) in configuration.http.enumerated() {
            let at = "http[\(index)]"
            guard let place = origin("\(at).bind") else {
                if let whole = origin(at) { report(whole, "this HTTP listener has no bind") }
                continue
            }
            if problems.contains(where: { $0.origin == place }) { continue }
            let endpoint = http.bind.endpoint
            let named = http.bind.sockets.map { HostPort(host: $0.name, port: 0) }
            if let key = named ?? (endpoint.port == 0 ? nil : endpoint) {
                if let first = seen[key] {
                    report(place, "\(key.port == 0 ? key.host : key.description) is bound twice (first at \(first))")
                } else {
                    seen[key] = "\(place)"
                }
            }
            if http.bind.scheme == .http, !http.bind.isLoopback {
                var consent = http.bind
                consent.scheme = .httpInsecure
                report(
                    place, "plain text beyond loopback must say so: write \"\(consent)\" (or bind 127.0.0.1)")
            }
            checkTLS(http, at: at)
            if http.bind.sockets == nil, http.trustedProxies.contains(.unix),
                let place = origin("\(at).trusted_proxies")
            {
                report(place, "HTTP is not served on socket files: \"unix\" is nobody here")
            }
            checkHTTPToken(of: http, at, place)
        }
    }

    private mutating func checkHTTPToken(of http: HTTPConfiguration, _ at: String, _ bind: ConfigurationOrigin) {
        let guarded = http.serve.filter(\.needsToken)
        guard let token = http.token else {
            // A proxy in front may let in any client; its operator has to see to that.
            guard let first = guarded.first, !http.bind.isLoopback else { return }
            return report(
                origin("\(at).serve") ?? bind,
                "\(first.rawValue) beyond loopback needs a token: write token_file (or bind 127.0.0.1)")
        }
        let place = AuthConfiguration.tokenKeys.compactMap { origin("\(at).\($0)") }.first ?? bind
        if guarded.isEmpty { report(place, "a token is for metrics and status, which are not served here") }
        if case .text(let secret) = token, secret.revealed.utf8.count < HTTPConfiguration.shortestToken {
            report(place, "a token of fewer than \(HTTPConfiguration.shortestToken) characters can be guessed")
        }
    }

    /// Rules between `[media]` and `[[http]]`.
    mutating func checkMedia() {
        let serving = configuration.http.firstIndex { $0.serve.contains(.media) }
        if configuration.media.publicURL == nil {
            guard let serving, let place = origin("http[\(serving)].serve") else { return }
            report(place, "media are served under media.public_url, which is empty")
        } else if serving == nil, let place = origin("media.public_url") {
            report(place, "no [[http]] listener serves media: give one serve = [\"media\"]")
        }
    }
}
