import BridgeCore
import BridgeTypes
import HTTPProtocol
import IRCServer
import Transport
import WSProtocol
import WireBytes

// Clients over WebSocket, between the transport and the bridge.
//
// | stage   | what arrives                    | leaves by                                                           |
// |---------|---------------------------------|---------------------------------------------------------------------|
// | opening | an HTTP request                 | accepted → open, and the bridge hears of it; refused, time-out → closing |
// | open    | messages, each a line           | Close, a broken rule, the bridge's wish → closing                   |
// | closing | nothing is read                 | our last bytes have left                                            |

extension BridgeDriver {
    // MARK: - Opening

    func beginWebSocket(
        _ id: ConnectionID, _ listener: ListenerID, _ known: ClientListener, peer: SocketAddress, _ transport: Transport
    ) {
        let isCounted = !peer.isLoopback && !known.proxies.contains(peer)
        let opening = WebSocketOpening(listener: listener, peer: peer, isCounted: isCounted)
        guard webSockets.open(id, opening, now: transport.now) else {
            noteTurnedAway(peer, "too many requests for a WebSocket are under way", transport)
            return transport.abort(id, silently: true)
        }
    }

    func openingReceived(
        _ id: ConnectionID, _ listener: ListenerID, _ peer: SocketAddress, _ bytes: UnsafeRawBufferPointer,
        _ transport: Transport
    ) {
        guard let site = listeners[listener]?.site else { return transport.abort(id) }
        if webSockets.openings[id]?.hasReceived == false, let (answer, why) = WebSocketOpening.answerToOthers(bytes) {
            return turnAway(id, ByteSlice(answer), why, transport)
        }
        guard let outcome = webSockets.handshake(id, bytes) else { return }
        switch outcome {
        case .needMoreData: return
        case .refused(let response, let why):
            turnAway(id, ByteSlice(copying: response), why, transport)
        case .plainHTTP(let request, _):
            if serveFile(id, request, site, listeners[listener]?.folder, transport) { return }
            // Other faults of the request come first: a foreign page may not connect with an upgrade either.
            switch site.judge(request, peer: peer) {
            case .refused(let status, let why): turnAway(id, status, why, transport)
            case .admitted:
                turnAway(
                    id, 426, "IRC is spoken over WebSocket here", transport,
                    headers: [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")])
            }
        case .accept(let request, let offered, let consumed):
            switch site.judge(request, peer: peer) {
            case .refused(let status, let why): turnAway(id, status, why, transport)
            case .admitted(let client):
                accept(id, client ?? peer, offered, transport)
                let rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
                if !rest.isEmpty, let peer = webSockets.peers[id] { webSocketReceived(id, peer, rest, transport) }
            }
        }
    }

    /// Answers a request for a file of the listener's folder; false: it is for none.
    private func serveFile(
        _ id: ConnectionID, _ request: HTTPRequestHead, _ site: WebSocketSite, _ folder: WebFolder?,
        _ transport: Transport
    ) -> Bool {
        guard let folder, request.method == "GET" || request.method == "HEAD",
            let target = try? HTTPRequestTarget(of: request), site.judge(host: target.host) == nil,
            let response = folder.response(
                to: request, path: target.path,
                date: HTTPDate.text(wallMilliseconds: transport.wallClockMilliseconds)),
            webSockets.endOpening(id) != nil
        else { return false }
        transport.send(id, response)
        transport.closeAfterFlush(id, linger: Self.clientLinger)
        return true
    }

    private func accept(_ id: ConnectionID, _ client: SocketAddress, _ offered: [String], _ transport: Transport) {
        guard let opening = webSockets.endOpening(id), let listener = listeners[opening.listener] else { return }
        let subprotocol = offered.lazy.compactMap { WebSocketSubprotocol(rawValue: $0) }.first
        guard let response = webSockets.acceptance(opening, subprotocol) else {
            return transport.abort(id, silently: true)
        }
        transport.send(id, response)
        webSockets.add(id, WebSocketPeer(subprotocol: subprotocol, compression: opening.handshake.compression))
        var origin = listener.origin(of: client, requestedName: nil)
        origin.security = Self.security(of: id, transport)
        origin.isWebSocket = true
        bridge.clientOpened(id.client, origin: origin, now: Now(transport))
        run(transport)
    }

    private func turnAway(
        _ id: ConnectionID, _ status: Int, _ why: String, _ transport: Transport,
        headers: [(name: String, value: String)] = []
    ) {
        let reason = status == 426 ? "Upgrade Required" : HTTPServer.reason(status)
        guard let response = webSockets.refusal(status, reason, headers, body: why + "\n") else {
            return transport.abort(id, silently: true)
        }
        turnAway(id, response, why, transport)
    }

    private func turnAway(_ id: ConnectionID, _ response: ByteSlice, _ why: String, _ transport: Transport) {
        guard let opening = webSockets.endOpening(id) else { return }
        noteTurnedAway(opening.peer, why, transport)
        transport.send(id, response)
        transport.closeAfterFlush(id, linger: Self.clientLinger)
    }

    private func noteTurnedAway(_ peer: SocketAddress, _ why: String, _ transport: Transport) {
        noteSparingly(
            .info, "client-turned-away", "a request for a WebSocket was turned away: \(LogText.shortened(why))", peer,
            transport)
    }

    func endLateOpenings(_ transport: Transport) {
        while let id = webSockets.popLate(transport.now) {
            turnAway(id, 408, "no request came in time", transport)
        }
    }

    // MARK: - Lines in

    func webSocketReceived(
        _ id: ConnectionID, _ peer: WebSocketPeer, _ bytes: UnsafeRawBufferPointer, _ transport: Transport
    ) {
        // Bytes read during a pause queue behind the held ones.
        guard !peer.isPaused, !peer.hasHeld else { return peer.hold(bytes) }
        var rest = bytes
        while webSockets.peers[id] === peer {
            var ended: String?
            var isText: Bool?
            let (hasEvent, answer) = webSockets.takeEvent(of: peer, from: &rest) { event in
                switch event {
                case .text(let message):
                    isText = true
                    takeLine(message)
                case .binary(let message):
                    isText = false
                    takeLine(message)
                case .ping, .pong: break
                case .closeReceived(let code, _): ended = Self.quitReason(code)
                case .failed(let failure): ended = "WebSocket: \(failure.sentence)"
                }
            }
            if let answer { transport.send(id, answer) }
            if let isText, peer.said(isText: isText) { webSockets.note(id, peer.kind) }
            if let ended { return endWebSocket(id, ended, transport) }
            guard hasEvent else { return }
            if !lineFromWebSocket.isEmpty {
                lineFromWebSocket.withUnsafeBytes {
                    bridge.clientReceived(id.client, $0, now: Now(transport))
                }
                lineFromWebSocket.removeAll(keepingCapacity: true)
                run(transport)
            }
            if peer.isPaused, !rest.isEmpty { return peer.hold(rest) }
        }
    }

    /// Makes a line of a message, for the bridge to take.
    ///
    /// A message is one line. A break at its end is removed, since some clients send one; a break within becomes a byte
    /// that lines may not contain, so that the bridge refuses the line visibly.
    private func takeLine(_ message: UnsafeRawBufferPointer) {
        let (cr, lf): (UInt8, UInt8) = (0x0D, 0x0A)
        var line = message
        while let last = line.last, last == lf || last == cr {
            line = UnsafeRawBufferPointer(rebasing: line.dropLast())
        }
        guard !line.isEmpty else { return }
        for byte in line { lineFromWebSocket.append(byte == lf ? cr : byte) }
        lineFromWebSocket.append(lf)
    }

    private static func quitReason(_ code: WebSocketCloseCode?) -> String {
        switch code {
        case nil, .normalClosure?, .goingAway?: "Connection closed"
        case let code?: "Connection closed with code \(code)"
        }
    }

    /// The client or a protocol error ended the WebSocket; the Close frame is queued.
    private func endWebSocket(_ id: ConnectionID, _ reason: String, _ transport: Transport) {
        webSockets.remove(id)
        transport.closeAfterFlush(id, linger: Self.clientLinger)
        bridge.clientClosed(id.client, reason: reason, now: Now(transport))
        run(transport)
    }

    // MARK: - Actions of the bridge

    /// Says goodbye in the WebSocket's own way, before the connection is closed.
    func closeWebSocket(_ id: ConnectionID, _ transport: Transport) {
        // Browsers' clients come back by themselves when they hear why.
        let code: WebSocketCloseCode = bridge.isServing ? .normalClosure : .serviceRestart
        if let goodbye = webSockets.close(id, code, now: transport.now) { transport.send(id, goodbye) }
    }

    func pauseReading(_ id: ConnectionID, _ transport: Transport) {
        if let peer = plain.peers[id] { return setPlainReading(peer, id, false, transport) }
        webSockets.peers[id]?.pause()
        transport.pauseReading(id)
    }

    func resumeReading(_ id: ConnectionID, _ transport: Transport) {
        if let peer = plain.peers[id] { return setPlainReading(peer, id, true, transport) }
        guard let peer = webSockets.peers[id] else { return transport.resumeReading(id) }
        peer.resume()
        // Not from here: the results must not overtake queued actions.
        webSockets.resumed(id)
    }

    /// Processes held bytes once the bridge's actions are carried out.
    func continueResumed(_ transport: Transport) {
        guard webSockets.beginContinuing() else { return }
        defer { webSockets.endContinuing() }
        while let id = webSockets.nextResumed() {
            guard let peer = webSockets.peers[id], !peer.isPaused else { continue }
            let held = peer.takeHeld()
            held.withUnsafeBytes { webSocketReceived(id, peer, $0, transport) }
            if !peer.isPaused, webSockets.peers[id] === peer { transport.resumeReading(id) }
        }
    }
}
