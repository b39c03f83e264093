import Configuration
import IRCServer
import Transport

/// The driver's view of a listener: the origin of its clients, and their STS policy.
struct ClientListener {
    let bind: ListenerAddress
    /// ``bind`` as text, which all its clients share.
    let label: String
    private let isLoopback: Bool
    private let allowsLogin: Bool
    /// Proxies trusted for client addresses.
    var proxies = TrustedPeers()
    /// Nil: clients speak IRC as it is.
    var site: WebSocketSite?
    var sts: STSAnnouncement?
    /// What a browser is given that asks for no WebSocket.
    var folder: WebFolder?
    /// People with a terminal are served in words.
    var isForPeople = false
    /// Names of TLS clients that ``sts`` is for; none: any name.
    var stsNames: [String] = []

    init(bind: ListenerAddress) {
        self.bind = bind
        label = bind.description
        (isLoopback, allowsLogin) = (bind.isLoopback, bind.allowsLogin)
    }

    init(_ listener: ListenerConfiguration, serverName: String) {
        self.init(bind: listener.bind)
        proxies = TrustedPeers(listener.trustedProxies)
        if bind.isWebSocket { site = WebSocketSite(listener, serverName: serverName) }
        isForPeople = listener.plain == .on && !bind.isWebSocket
        if case .lasting(let duration) = listener.sts, bind.scheme == .ircs {
            sts = .duration(seconds: UInt32(clamping: duration.components.seconds))
            stsNames = listener.hosts
        }
    }

    /// Where a client comes from, as limits and logins see it.
    ///
    /// - Parameter peer: the client, as the socket or a trusted proxy names it; the proxy itself where it names none.
    func origin(of peer: SocketAddress, requestedName: String?) -> ClientOrigin {
        let address = if case .unix = peer { ClientOrigin.localName } else { peer.host }
        var origin = ClientOrigin(
            address: address, isLocal: peer.isLoopback || proxies.contains(peer),
            // Clients of a proxy are remote, even on a loopback listener.
            isListenerLocal: isLoopback && proxies.isEmpty, allowsLogin: allowsLogin,
            sts: announcement(requestedName: requestedName))
        origin.isUnixSocket = bind.isUnixSocket
        origin.listener = label
        return origin
    }

    /// A client that named no host learns nothing about one.
    ///
    /// Source: IRCv3 sts, "Server Name Indication".
    private func announcement(requestedName: String?) -> STSAnnouncement? {
        guard case .duration = sts else { return sts }
        guard let requestedName else { return nil }
        return stsNames.isEmpty || stsNames.contains(requestedName) ? sts : nil
    }

    /// Points listeners without TLS to the first one with an STS policy.
    ///
    /// Loopback listeners are left out: certificates for local names are rare, and the connection is private.
    ///
    /// - Parameter ports: the bound ports, by listener.
    static func leadToTLS(
        _ listeners: inout [(id: ListenerID, listener: ClientListener)], _ configured: [ListenerConfiguration],
        ports: [ListenerID: Int]
    ) {
        let target = zip(listeners, configured).first { one, listener in
            if case .duration(let seconds) = one.listener.sts, seconds > 0 { return listener.bind.scheme == .ircs }
            return false
        }
        guard let (one, listener) = target, let number = listener.stsPort ?? ports[one.id],
            let port = UInt16(exactly: number)
        else { return }
        for index in listeners.indices {
            let bind = listeners[index].listener.bind
            if bind.scheme == .ircInsecure, !bind.isLoopback { listeners[index].listener.sts = .port(port) }
        }
    }
}
