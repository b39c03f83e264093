public import BridgeTypes
import ChatModel
import HTTPProtocol
import IRCServer
import Identities
import Rooms
import Upstream
import WireBytes

extension Bridge {
    /// - Parameter hasClients: whether to list the clients, of which there may be many.
    public func status(now: Now, hasClients: Bool = true) -> BridgeStatus {
        BridgeStatus(
            serverName: settings.serverName, network: settings.network, version: settings.version, at: now.wall,
            startedAt: irc.startedAt, isRunning: isRunning, storage: context.ledger.condition,
            rooms: rooms.map { status(of: $0, now) },
            clients: hasClients
                ? irc.sessions.values.map { status(of: $0) }.sorted {
                    ($0.connectedAt, $0.id) < ($1.connectedAt, $1.id)
                } : [])
    }

    // MARK: - Counts, for metrics

    package var clientTraffic: ClientTraffic { irc.traffic }

    /// The connected clients.
    package var clientIDs: some Sequence<ClientID> { irc.sessions.values.lazy.map(\.id) }

    package var latency: RelayLatency { context.latency }

    /// Messages of all open rooms since they were opened.
    package var relayedCounts: (down: Int, up: Int) {
        rooms.reduce(into: (0, 0)) { sums, room in
            sums.0 += room.traffic.down[.message]
            sums.1 += room.traffic.up[.message]
        }
    }

    /// The actions of this turn were carried out. Called with the clock as it is then.
    package func turnEnded(at moment: MonotonicInstant) {
        if context.latency.isTurnOpen { context.latency.turnEnded(after: moment - context.now.monotonic) }
    }

    func state(of room: Room) -> RoomState {
        RoomState(
            name: room.settings.name, link: room.link.condition, hasBeenUp: room.link.hasBeenUp,
            failures: room.link.failures, reason: room.link.isUp ? nil : room.link.lastReason,
            isOnDemand: room.settings.connect == .whileJoined, isRequired: room.settings.isRequired,
            hasFailed: room.hasFailed, isDisabled: room.isDisabled)
    }

    private func status(of room: Room, _ now: Now) -> RoomStatus {
        let link = room.link
        let began = link.upSince ?? room.outage?.since
        let retryIn = link.state == .waiting ? link.retryAt.map { max(.zero, $0 - now.monotonic) } : nil
        return RoomStatus(
            state: state(of: room), channel: room.channel, host: room.settings.url.host,
            since: began.map { Self.wall($0, now) }, retryIn: retryIn,
            awaitsCredentials: link.awaitsCredentials, roundTrip: link.roundTrip,
            upstreamUsers: room.upstreamCount, clients: room.locals.count, queued: room.waitingCountOfAll,
            queueLimit: room.settings.queueMaxMessages,
            oldestQueuedFor: room.waitingSince.map { now.monotonic - $0 },
            unconfirmed: room.unconfirmedCount,
            oldestUnconfirmedFor: room.unconfirmedSince.map { now.monotonic - $0 },
            isPaced: room.isPaced(at: now.monotonic),
            down: room.traffic.down, up: room.traffic.up,
            lastMessageAt: room.traffic.lastMessageAt, undecodable: room.droppedFrames.values.reduce(0, +),
            misread: room.misreadFrames, understandsNothing: room.understandsNothing,
            historyFailure: room.historyFailure,
            tokenEndsAt: backends[room.settings.backend]?.expiresAt.map { Self.wall($0, now) },
            attempts: link.attempts)
    }

    private func status(of session: IRCSession) -> ClientStatus {
        let origin = session.origin
        return ClientStatus(
            id: session.id.rawValue, nick: session.nick,
            account: session.person.flatMap { context.identities[$0]?.account }, address: origin.address,
            transport: origin.transport, listener: origin.listener, isRegistered: session.person != nil,
            connectedAt: session.connectedAt, idleSince: session.lastSpokeAt,
            rooms: session.rooms.compactMap { room($0)?.settings.name }, isPaused: session.isReadingPaused)
    }

    /// The time on the wall clock of an instant, as far as the clock was not set since.
    private static func wall(_ instant: MonotonicInstant, _ now: Now) -> ChatTimestamp {
        now.wall.after((instant - now.monotonic).wholeNanoseconds / 1_000_000)
    }
}
