import CSystem
import Glibc
import WireBytes

// Reading, writing and closing of open connections.

extension Transport {
    // MARK: - Sending

    /// Queues `slice`; it leaves with everything else of this turn in one write. A no-op once the connection has ended
    /// or is closing. Before the connection stands, bytes wait for it.
    public func send(_ id: ConnectionID, _ slice: ByteSlice) {
        guard let connection = connections.find(id), slice.count > 0 else { return }
        guard connection.pointee.takesBytes else { return }
        connection.pointee.append(slice)
        if connection.pointee.unsentByteCount > Int(connection.pointee.sendLimit) {
            // A large queue is no proof of a slow reader: first offer it to the kernel.
            if connection.pointee.phase == .open, !connection.pointee.flags.contains(.writeBlocked) {
                flush(id, connection)
                guard connection.pointee.phase == .open, !connection.pointee.flags.contains(.writeBroken) else {
                    return
                }
            }
        }
        let queued = connection.pointee.unsentByteCount
        if queued > Int(connection.pointee.sendLimit) {
            end(id, connection, .sendQueueExceeded(limit: Int(connection.pointee.sendLimit)), reset: true)
            return
        }
        if connection.pointee.phase == .open { enlistForFlush(id, connection) }
    }

    /// Bytes that wait to be handed to the kernel; 0 for ended connections.
    public func queuedByteCount(_ id: ConnectionID) -> Int { connections.find(id)?.pointee.unsentByteCount ?? 0 }

    /// Asks for one ``TransportDelegate/connectionDrained(_:transport:)`` as soon as nothing is queued, which may be the
    /// next turn.
    public func notifyWhenDrained(_ id: ConnectionID) {
        guard let connection = connections.find(id), connection.pointee.phase != .ended else { return }
        connection.pointee.notifyWhenDrained()
        if connection.pointee.phase == .open { noteDrained(id, connection) }
    }

    /// Ends the connection with ``StreamEnd/sendQueueExceeded(limit:)`` when more than `bytes` are queued. Default
    /// ``TransportLimits/sendLimitBytes``.
    public func setSendLimit(_ id: ConnectionID, bytes: Int) {
        connections.find(id)?.pointee.setSendLimit(bytes: bytes)
    }

    /// The user of the process at the other end of a Unix socket, as the kernel knows it; nil: unknown, or no such socket.
    public func peerUser(_ id: ConnectionID) -> UInt32? {
        guard let connection = connections.find(id) else { return nil }
        var user: UInt32 = 0
        return cb_peer_user(connection.pointee.descriptor, &user) >= 0 ? user : nil
    }

    func enlistForFlush(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        if connection.pointee.enlistForFlush() { dirty.append(id) }
    }

    func flushDirty() {
        guard !dirty.isEmpty else { return }
        swap(&dirty, &dirtyNow)
        for id in dirtyNow {
            guard let connection = connections.find(id) else { continue }
            connection.pointee.leaveDirty()
            flush(id, connection)
        }
        dirtyNow.removeAll(keepingCapacity: true)
    }

    private func flush(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        switch connection.pointee.phase {
        case .securing, .open, .flushing, .retired: break
        case .free, .resolving, .connecting, .awaitingProxyHeader, .lingering, .ended: return
        }
        let layer = connection.pointee.secure
        var budget = TransportLimits.writeBudgetBytes
        while true {
            if let layer {
                if layer.engine.outbound.isEmpty { encryptNext(connection, layer) }
                if case .failed(let failure) = layer.engine.state, layer.failure == nil {
                    return failSecurely(id, connection, layer, failure)
                }
                if layer.engine.outbound.isEmpty { break }
            } else if connection.pointee.queue.isEmpty {
                break
            }
            guard budget > 0 else {
                enlistForFlush(id, connection)
                break
            }
            let descriptor = connection.pointee.descriptor
            let written =
                if let layer {
                    write(descriptor, layer.engine.outbound)
                } else {
                    write(descriptor, connection.pointee.queue)
                }
            if written > 0 {
                if let layer {
                    layer.engine.sent(Int(written))
                } else {
                    connection.pointee.consume(Int(written))
                }
                counters.sent(Int(written))
                budget -= Int(written)
            } else if written == 0 || written == -Int64(EAGAIN) {
                connection.pointee.block()
                break
            } else {
                sendFailed(id, connection, errno: Int32(truncatingIfNeeded: -written))
                return
            }
        }
        switch connection.pointee.phase {
        case .open:
            noteDrained(id, connection)
        case .flushing where !connection.pointee.hasUnsent:
            beginLingering(id, connection)
        case .retired where !connection.pointee.hasUnsent:
            discard(id, connection)
        default:
            break
        }
    }

    /// One system call with as many slices as it takes. Returns the kernel's result: bytes, or the negated errno.
    private func write(_ descriptor: Int32, _ queue: borrowing OutboundQueue) -> Int64 {
        counters.callSend()
        if queue.sliceCount == 1 {
            var result: Int64 = 0
            queue.forEachPending(limit: 1) { result = cb_send(descriptor, $0.baseAddress, $0.count) }
            return result
        }
        let limit = min(queue.sliceCount, TransportLimits.spansPerWrite)
        return withUnsafeTemporaryAllocation(of: cb_span.self, capacity: limit) { spans in
            var filled = 0
            queue.forEachPending(limit: limit) { bytes in
                spans.initializeElement(at: filled, to: cb_span(base: bytes.baseAddress, count: bytes.count))
                filled &+= 1
            }
            return cb_send_spans(descriptor, spans.baseAddress, Int32(filled))
        }
    }

    private func noteDrained(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        if connection.pointee.takeDrained() { report(id, .drained) }
    }

    private func sendFailed(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, errno: Int32) {
        if connection.pointee.phase == .retired { return discard(id, connection) }
        let stands = connection.pointee.phase == .open || connection.pointee.phase == .securing
        let mayHaveSent = stands && (errno == EPIPE || errno == ECONNRESET)
        if mayHaveSent, connection.pointee.flags.isDisjoint(with: [.paused, .endReported]) {
            // The peer is gone, but its last bytes may still lie in the receive buffer.
            connection.pointee.breakWriting()
            enlistForReading(id, connection)
        } else {
            end(id, connection, mayHaveSent ? .reset : .sendFailed(errno: errno), reset: true)
        }
    }

    // MARK: - Receiving

    /// Delivers no bytes, and no end of the stream, until ``resumeReading(_:)``, but for what was read of it in this turn: the
    /// bytes being delivered now, where this is called for the connection they came from.
    public func pauseReading(_ id: ConnectionID) {
        guard let connection = connections.find(id), connection.pointee.isBeforeClosing else { return }
        connection.pointee.pause()
    }

    public func resumeReading(_ id: ConnectionID) {
        guard let connection = connections.find(id), connection.pointee.flags.contains(.paused) else { return }
        connection.pointee.resume()
        if connection.pointee.flags.contains(.readable) { enlistForReading(id, connection) }
    }

    func enlistForReading(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        if connection.pointee.enlistForReading() { ready.append(id) }
    }

    /// Reads from all that have something, then delivers: what many clients have said is taken in one stretch of kernel, and
    /// worked off in one stretch of ours, with the processor's caches full of one of them.
    func readFromReady() {
        guard !ready.isEmpty else { return }
        tls.beginTurn()
        swap(&ready, &readyNow)
        var filled = 0
        for id in readyNow {
            guard let connection = connections.find(id) else { continue }
            connection.pointee.leaveReady()
            guard connection.pointee.mayReadAhead else {
                deliver(&filled)
                read(id, connection)
                continue
            }
            if receiveBuffer.count - filled < TransportLimits.receiveBytes { deliver(&filled) }
            counters.callReceive()
            let count = cb_receive(
                connection.pointee.descriptor, receiveBuffer.baseAddress?.advanced(by: filled),
                TransportLimits.receiveBytes)
            guard count > 0 else {
                deliver(&filled)
                gotNothing(id, connection, count)
                continue
            }
            counters.received(Int(count))
            received.append((id, filled..<filled + Int(count)))
            filled += Int(count)
            if count < TransportLimits.receiveBytes {
                connection.pointee.readShort()
            } else {
                enlistForReading(id, connection)
            }
        }
        deliver(&filled)
        readyNow.removeAll(keepingCapacity: true)
    }

    /// Hands over what was read ahead, in the order in which it was. One that an owner has closed meanwhile has no more to say.
    private func deliver(_ filled: inout Int) {
        guard filled > 0 else { return }
        swap(&received, &receivedNow)
        for (id, place) in receivedNow where connections.find(id)?.pointee.phase == .open {
            delegate?.connectionReceived(
                id, UnsafeRawBufferPointer(rebasing: receiveBuffer[place]), transport: self)
        }
        receivedNow.removeAll(keepingCapacity: true)
        filled = 0
    }

    private func read(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        var budget = TransportLimits.readBudgetBytes
        while budget > 0 {
            guard connection.pointee.flags.contains(.readable), !connection.pointee.isPaused else { return }
            switch connection.pointee.phase {
            case .open where !connection.pointee.flags.contains(.endReported), .awaitingProxyHeader, .securing,
                .flushing,
                .lingering:
                break
            default: return
            }
            let layer = connection.pointee.secure
            if let layer, !prepareToRead(id, connection, layer) { return }
            let capacity =
                layer == nil && connection.pointee.phase != .awaitingProxyHeader
                ? TransportLimits.receiveBytes : TLSLimits.receiveBytes
            counters.callReceive()
            let count = cb_receive(connection.pointee.descriptor, receiveBuffer.baseAddress, capacity)
            if count > 0 {
                budget -= Int(count)
                counters.received(Int(count))
                let bytes = UnsafeRawBufferPointer(rebasing: receiveBuffer[..<Int(count)])
                if connection.pointee.phase == .open || connection.pointee.phase == .securing {
                    if let layer {
                        receiveSecurely(id, connection, layer, bytes)
                    } else {
                        delegate?.connectionReceived(id, bytes, transport: self)
                    }
                    // The owner may have closed it, and the slot may even be another connection's.
                    guard connections.find(id) != nil else { return }
                } else if connection.pointee.phase == .awaitingProxyHeader {
                    receiveProxyHeader(id, connection, bytes)
                    // From here on it may be another kind of connection, which is read in its own way.
                    if connections.find(id) != nil { enlistForReading(id, connection) }
                    return
                }
                if count < capacity, layer?.isUnknown != true, !connection.pointee.flags.contains(.readToEnd) {
                    connection.pointee.readShort()
                    return
                }
            } else {
                return gotNothing(id, connection, count)
            }
        }
        enlistForReading(id, connection)
    }

    /// A read brought no bytes: `result` is 0 at the end of the stream, else the negated errno.
    private func gotNothing(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ result: Int64) {
        switch result {
        case 0:
            // On a half-closed connection the kernel repeats this with every other event.
            let isNews = connection.pointee.peerEnds()
            if !isNews, connection.pointee.phase == .open, !connection.pointee.flags.contains(.writeBroken) { return }
            peerEnded(id, connection)
        case -Int64(EAGAIN): connection.pointee.readEmpty()
        default:
            let errno = Int32(truncatingIfNeeded: -result)
            end(id, connection, errno == ECONNRESET ? .reset : .receiveFailed(errno: errno), reset: false)
        }
    }

    private func peerEnded(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        if connection.pointee.phase == .awaitingProxyHeader {
            end(id, connection, .endOfStream, reset: false)
        } else if connection.pointee.phase == .securing {
            end(id, connection, .tlsFailed(.closedDuringHandshake), reset: false)
        } else if connection.pointee.flags.contains(.writeBroken) {
            end(id, connection, .reset, reset: false)
        } else if connection.pointee.phase == .open {
            reportEnd(id, connection, connection.pointee.secure == nil ? .endOfStream : .tlsTruncated)
        } else if connection.pointee.phase == .lingering {
            end(id, connection, .closedByUs, reset: false)
        }
    }

    /// Reports the end of the peer's stream in the next turn, so that answers the owner makes at the end of this one
    /// are queued before.
    func reportEnd(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ reason: StreamEnd) {
        connection.pointee.endReported()
        report(id, .closed(reason))
    }

    // MARK: - Closing

    /// Leaves the connection half-closed, for sending alone, until the owner closes it or it breaks, which is
    /// reported once more. To be called from within ``TransportDelegate/connectionClosed(_:_:transport:)``, where it may
    /// be closed at once; without effect on a connection that has ended.
    public func continueHalfClosed(_ id: ConnectionID) {
        guard let connection = connections.find(id), connection.pointee.phase == .open else { return }
        connection.pointee.halfClose()
    }

    /// Sends the queue, closes, and waits for the peer to close too, discarding its bytes. When `linger` has passed
    /// and not everything is sent, the rest is dropped; zero means that one write is tried. The connection ends with
    /// ``StreamEnd/closedByUs``. One that is not open yet ends at once.
    public func closeAfterFlush(_ id: ConnectionID, linger: Duration) {
        guard let connection = connections.find(id) else { return }
        switch connection.pointee.phase {
        case .resolving, .connecting, .awaitingProxyHeader, .securing:
            end(id, connection, .closedByUs, reset: false)
        case .open where !connection.pointee.flags.contains(.endReported):
            connection.pointee.beginFlushing()
            timers.set(.linger(id), at: now + max(linger, .zero))
            if connection.pointee.flags.contains(.readable) { enlistForReading(id, connection) }
            enlistForFlush(id, connection)
        case .open, .free, .flushing, .lingering, .retired, .ended:
            break
        }
    }

    /// Ends the connection now: the queue is dropped and the peer sees a reset. Ends with ``StreamEnd/closedByUs``,
    /// or without a report when `silently`.
    public func abort(_ id: ConnectionID, silently: Bool = false) {
        guard let connection = connections.find(id), connection.pointee.phase != .retired else { return }
        if silently { connection.pointee.silence() }
        if connection.pointee.phase != .ended { end(id, connection, .closedByUs, reset: true) }
    }

    private func beginLingering(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        guard !connection.pointee.flags.contains(.peerEnded), let limit = timers[.linger(id)], limit > now else {
            end(id, connection, .closedByUs, reset: false)
            return
        }
        connection.pointee.beginLingering()
        _ = shutdown(connection.pointee.descriptor, Int32(SHUT_WR))
        timers.set(.linger(id), at: min(limit, now + TransportLimits.lingeringClose))
        if connection.pointee.flags.contains(.readable) { enlistForReading(id, connection) }
    }

    func lingerTimerFired(_ id: ConnectionID) {
        guard let connection = connections.find(id) else { return }
        if connection.pointee.phase == .retired {
            discard(id, connection)
        } else if connection.pointee.phase == .flushing, connection.pointee.flags.contains(.dirty) {
            // Zero linger: this turn's write has not been tried yet. Afterwards the timer is due again.
            flushFinally(id, connection)
        } else {
            end(id, connection, .closedByUs, reset: connection.pointee.hasUnsent)
        }
    }

    private func flushFinally(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        connection.pointee.leaveDirty()
        flush(id, connection)
        if connections.find(id) != nil, connection.pointee.phase == .flushing {
            end(id, connection, .closedByUs, reset: connection.pointee.hasUnsent)
        }
    }

    /// Closes the socket and reports `reason` in the next turn, unless an end was reported before.
    func end(
        _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ reason: StreamEnd, reset: Bool
    ) {
        let byUs = connection.pointee.phase == .flushing || connection.pointee.phase == .lingering
        closeDescriptor(connection, reset: reset)
        timers.cancel(.linger(id))
        abandonAttempt(id)
        connection.pointee.ended()
        if let layer = connection.pointee.secure { leaveHandshake(id, layer) }
        guard connection.pointee.endReported() else { return }
        report(id, .closed(byUs ? connection.pointee.secure?.failure ?? .closedByUs : reason))
    }

    /// Drops a connection whose end was reported already.
    func discard(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
        closeDescriptor(connection, reset: connection.pointee.hasUnsent)
        timers.cancel(.linger(id))
        connections.release(id)
    }

    func closeDescriptor(_ connection: UnsafeMutablePointer<Connection>, reset: Bool) {
        guard let descriptor = connection.pointee.detach() else { return }
        if reset { cb_close_with_reset(descriptor) } else { cb_close(descriptor) }
    }
}
