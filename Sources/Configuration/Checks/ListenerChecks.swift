extension ConfigurationCompletion {
    mutating func checkListeners() {
        if configuration.listeners.isEmpty {
            report(origin("listeners") ?? .builtIn, "there is no listener, so no way in")
        }
        var seen: [HostPort: ConfigurationOrigin] = [:]
        for (index, listener) in configuration.listeners.enumerated() {
            let bind = listener.bind
            guard let place = origin("listeners[\(index)].bind") else {
                if let whole = origin("listeners[\(index)]") { report(whole, "this listener has no bind") }
                continue
            }
            if isRefused("listeners[\(index)].bind") { continue }
            for key in ["mode", "group"] where !bind.isUnixSocket {
                if let written = origin("listeners[\(index)].\(key)") {
                    report(written, "\(key) is for a socket file: bind = \"irc+unix:///PATH\"")
                }
            }
            if bind.endpoint.port != 0 || bind.isUnixSocket || bind.sockets != nil {
                // A path begins with a slash, a socket's name has none.
                let key = bind.sockets.map { HostPort(host: $0.name, port: 0) } ?? bind.endpoint
                if let first = seen[key] {
                    let what = bind.endpoint.port == 0 ? key.host : key.description
                    report(place, "\(what) is bound twice (first at \(first))")
                } else {
                    seen[key] = place
                }
            }
            checkTLS(listener, at: "listeners[\(index)]")
            checkAccess(listener, at: "listeners[\(index)]")
            guard !bind.isLoopback else { continue }
            switch bind.scheme {
            case .irc, .ws:
                report(
                    place,
                    "plain text beyond loopback must say so: write \"\(bind.insecure)\" (or bind 127.0.0.1)")
            case .ircUnix, .wsUnix: break
            case .ircInsecure, .ircs, .wsInsecure, .wss:
                if !isLoginSettled {
                    report(
                        place,
                        "\(bind.reach) can be reached from other machines and nobody needs a password: set "
                            + "password or password_file in [identity], or write require_login = \"never\"")
                }
            }
        }
    }

    /// Whether access is decided: there is a password or another login, or an explicit setting that none is needed.
    var isLoginSettled: Bool {
        if configuration.identity.password != nil { return true }
        let hasAccounts =
            !configuration.accounts.isEmpty || configuration.identity.registration != .off
            || !configuration.identity.bearer.isEmpty
        if hasAccounts, configuration.identity.requireLogin != .never { return true }
        if origin("identity.require_login") != nil, configuration.identity.requireLogin == .never { return true }
        // A password that was written and refused has its own complaint.
        return ["password", "password_file", "password_credential"].contains { isRefused("identity.\($0)") }
    }

    /// Rules between the keys of a listener besides address and TLS.
    mutating func checkAccess(_ listener: ListenerConfiguration, at path: String) {
        let bind = listener.bind
        // A printed configuration contains the defaults.
        if !bind.isWebSocket, listener.origins != ListenerConfiguration().origins,
            let place = origin("\(path).origins")
        {
            report(place, "origins are for browsers: bind = \"ws://…\" or \"wss://…\"")
        }
        if !bind.isWebSocket, !listener.webRoot.isEmpty, let place = origin("\(path).web_root") {
            report(place, "web_root is for browsers: bind = \"ws://…\" or \"wss://…\"")
        }
        if bind.isWebSocket, listener.plain != ListenerConfiguration().plain, let place = origin("\(path).plain") {
            report(place, "plain is for people with telnet: browsers have a WebSocket")
        }
        if !bind.isWebSocket, listener.sts == .off, !listener.hosts.isEmpty, let place = origin("\(path).hosts") {
            report(place, "hosts mean nothing here: they are for ws:// and wss://, and for ircs:// with sts")
        }
        if listener.proxyProtocol != .off, listener.trustedProxies.isEmpty, isMissing("\(path).trusted_proxies") {
            report(
                origin("\(path).proxy_protocol") ?? .builtIn,
                "proxy_protocol needs trusted_proxies: from others a PROXY header would be a lie")
        }
        if listener.proxyProtocol == .off, !listener.trustedProxies.isEmpty, !bind.isWebSocket,
            let place = origin("\(path).trusted_proxies"), !isRefused("\(path).proxy_protocol")
        {
            report(place, "trusted_proxies mean nothing without proxy_protocol = \"v1v2\"")
        }
        if bind.sockets == nil, listener.trustedProxies.contains(.unix) != bind.isUnixSocket,
            !listener.trustedProxies.isEmpty,
            let place = origin("\(path).trusted_proxies")
        {
            report(
                place,
                bind.isUnixSocket
                    ? "a socket file has no addresses: trusted_proxies = [\"unix\"]"
                    : "\"unix\" is for a listener with a socket file")
        }
        if listener.sts != .off, bind.scheme != .ircs {
            report(
                origin("\(path).sts") ?? .builtIn,
                "sts is said by an ircs:// listener; plain ones then lead to it by themselves")
        }
        if listener.stsPort != nil, listener.sts == .off, !isRefused("\(path).sts"),
            let place = origin("\(path).sts_port")
        {
            report(place, "sts_port means nothing without sts")
        }
        // Clients of a proxy or a gateway are remote, even on a loopback listener.
        if bind.isLoopback, listener.isBehindProxy, !isLoginSettled {
            report(
                origin("\(path).trusted_proxies") ?? .builtIn,
                "\(bind) can be reached from other machines through its proxy and nobody needs a password: set "
                    + "password or password_file in [identity], or write require_login = \"never\"")
        }
    }

    /// Whether a list was left empty: refused elements have their own complaint.
    private func isMissing(_ list: String) -> Bool { origin(list) == nil || problems.isEmpty }

    mutating func checkGateways() {
        for (index, gateway) in configuration.identity.webirc.enumerated() {
            let at = "identity.webirc[\(index)]"
            let place = origin(at) ?? .builtIn
            if gateway.password == nil,
                !["password", "password_file", "password_credential"].contains(where: { isRefused("\(at).\($0)") })
            {
                report(place, "this gateway has no password; \"chatbridge hash-password\" makes the hash of one")
            }
            if gateway.from.isEmpty, isMissing("\(at).from") {
                report(place, "this gateway may connect from nowhere; from = [\"10.0.0.1\"] says where it is")
            }
        }
        if !configuration.identity.webirc.isEmpty, problems.isEmpty, !isLoginSettled {
            report(
                origin("identity.webirc") ?? .builtIn,
                "through a gateway people come from other machines and nobody needs a password: set password or "
                    + "password_file in [identity], or write require_login = \"never\"")
        }
    }
}
