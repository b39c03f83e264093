import BridgeCore
import Configuration
import IRCServer
import Transport
import WireBytes

/// What the driver knows of a listener: where its clients come from, and what they are told.
struct ClientListener {
    var bind: ListenerAddress
    /// Who may say for whom it connects.
    var proxies = TrustedPeers()
    /// Nil: clients speak IRC as it is.
    var site: WebSocketSite?
    var sts: STSAnnouncement?
    /// Names of TLS clients that ``sts`` is for; none: any name.
    var stsNames: [String] = []

    init(bind: ListenerAddress) { self.bind = bind }

    init(_ listener: ListenerConfiguration, serverName: String) {
        bind = listener.bind
        proxies = TrustedPeers(listener.trustedProxies)
        if bind.isWebSocket { site = WebSocketSite(listener, serverName: serverName) }
        if case .lasting(let duration) = listener.sts, bind.scheme == .ircs {
            sts = .duration(seconds: UInt32(clamping: duration.components.seconds))
            stsNames = listener.hosts
        }
    }

    /// Where a client comes from, as limits and logins see it.
    ///
    /// - Parameter peer: the client, as the socket or a trusted proxy says; a proxy itself where it speaks of nobody.
    func origin(of peer: SocketAddress, requestedName: String?) -> ClientOrigin {
        let address = if case .unix = peer { ClientOrigin.localName } else { peer.host }
        return ClientOrigin(
            address: address, isLocal: peer.isLoopback || proxies.contains(peer),
            // What a proxy lets in comes from elsewhere, wherever we are bound.
            isListenerLocal: bind.isLoopback && proxies.isEmpty, allowsLogin: bind.allowsLogin,
            sts: announcement(requestedName: requestedName))
    }

    /// A client that named no host learns nothing about one.
    ///
    /// Source: IRCv3 sts, "Server Name Indication".
    private func announcement(requestedName: String?) -> STSAnnouncement? {
        guard case .duration = sts else { return sts }
        guard let requestedName else { return nil }
        return stsNames.isEmpty || stsNames.contains(requestedName) ? sts : nil
    }

    /// Has the listeners without TLS lead to the first that asks clients to keep to it.
    ///
    /// Those on loopback do not: a certificate for this machine's names is hardly ever there, and nobody listens in.
    ///
    /// - Parameter ports: what is bound, by listener.
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
