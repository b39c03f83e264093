import WireBytes

/// The owner of a loop's connections.
///
/// Called on the loop only, and never from within a call to the transport: the results of `send`, `connect`, `abort`
/// and the others are reported in a later turn. A delegate may call anything on the transport from every one of
/// these.
public protocol TransportDelegate: AnyObject {
    /// On a listener with TLS, called when the handshake is done. On one behind a proxy, `peer` is the client that
    /// the PROXY header names.
    func connectionAccepted(
        _ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport)

    /// An outgoing connection stands, its TLS included. Bytes sent before now leave after this call.
    func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport)

    /// `bytes` are never empty, at most ``TransportLimits/receiveBytes``, and valid only during the call.
    /// TLS stands on a connection for which ``Transport/startTLS(_:_:host:)`` asked.
    func connectionSecured(_ id: ConnectionID, transport: Transport)

    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport)

    /// The queue is empty after ``Transport/notifyWhenDrained(_:)``.
    func connectionDrained(_ id: ConnectionID, transport: Transport)

    /// Called exactly once for each accepted or connected id, unless it was aborted silently or the loop stopped.
    ///
    /// All bytes received before the end have been delivered, unless reading was stopped by a local close. After
    /// ``StreamEnd/endOfStream`` the peer may still be reading: bytes queued when this call returns are still sent,
    /// for at most ``TransportLimits/endOfStreamLinger``, or, after ``Transport/continueHalfClosed(_:)``, for as long as the
    /// half-closed connection lasts. It is called again then, at its end.
    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport)

    /// The instant given to ``Transport/setDeadline(_:)`` has come. It is cleared; set the next one.
    func deadlineReached(now: MonotonicInstant, transport: Transport)

    /// Once a turn, after everything else and before the one flush; may still send.
    func turnWillFlush(now: MonotonicInstant, transport: Transport)

    /// The listener rests for ``TransportLimits/acceptRest`` because descriptors or memory ran out, or the like.
    func acceptSuspended(_ listener: ListenerID, errno: Int32, transport: Transport)

    /// A connection to a listener with TLS ended before its handshake was done; ``connectionAccepted`` was not and will
    /// not be called for it.
    func handshakeFailed(_ end: StreamEnd, listener: ListenerID, peer: SocketAddress, transport: Transport)

    /// A connection to a listener behind a proxy was dropped; ``connectionAccepted`` was not and will not be called
    /// for it.
    ///
    /// - Parameter peer: the proxy, or an untrusted peer.
    func proxyHeaderFailed(
        _ failure: ProxyHeaderFailure, listener: ListenerID, peer: SocketAddress, transport: Transport)

    /// Files of certificates have changed. Without an error the new ones are in force for new connections; with one the
    /// old stay in force.
    func certificatesChanged(_ user: CertificateUser, error: TLSSetupError?, transport: Transport)
}

extension TransportDelegate {
    public func connectionOpened(_ id: ConnectionID, peer: SocketAddress, transport: Transport) {}
    public func connectionSecured(_ id: ConnectionID, transport: Transport) {}
    public func connectionDrained(_ id: ConnectionID, transport: Transport) {}
    public func deadlineReached(now: MonotonicInstant, transport: Transport) {}
    public func turnWillFlush(now: MonotonicInstant, transport: Transport) {}
    public func acceptSuspended(_ listener: ListenerID, errno: Int32, transport: Transport) {}
    public func handshakeFailed(
        _ end: StreamEnd, listener: ListenerID, peer: SocketAddress, transport: Transport
    ) {}
    public func proxyHeaderFailed(
        _ failure: ProxyHeaderFailure, listener: ListenerID, peer: SocketAddress, transport: Transport
    ) {}
    public func certificatesChanged(_ user: CertificateUser, error: TLSSetupError?, transport: Transport) {}
}
