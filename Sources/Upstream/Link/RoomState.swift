/// The state of a room's link, for operators and probes.
public struct RoomState: Equatable, Sendable {
    public enum Link: String, CaseIterable, Sendable {
        case up
        /// On the way: waiting for a slot, opening the connection, shaking hands, or not ready for chat yet.
        case connecting
        /// Between two tries.
        case waiting
        /// Closing, or not started.
        case stopped
    }

    /// The room's name in the configuration.
    public var name: String
    public var link: Link
    /// Whether the link was usable at least once since the start.
    public var hasBeenUp: Bool
    /// Tries that failed in a row since the link was last usable for long.
    public var failures: Int
    /// Why it is not up; a sentence without a full stop. Nil when it is up, or nothing went wrong yet.
    public var reason: String?
    /// Has a link only while a client is in the room, so that its absence is no trouble.
    public var isOnDemand: Bool
    /// Counts for readiness.
    public var isRequired: Bool
    /// Not up for longer than `give_up_after`.
    public var hasFailed: Bool
    /// An administrator closed the link, and wants none for now.
    public var isDisabled: Bool

    public init(
        name: String, link: Link, hasBeenUp: Bool, failures: Int, reason: String?, isOnDemand: Bool = false,
        isRequired: Bool = true, hasFailed: Bool = false, isDisabled: Bool = false
    ) {
        self.name = name
        self.link = link
        self.hasBeenUp = hasBeenUp
        self.failures = failures
        self.reason = reason
        self.isOnDemand = isOnDemand
        self.isRequired = isRequired
        self.hasFailed = hasFailed
        self.isDisabled = isDisabled
    }

    public var isUp: Bool { link == .up }
}

extension UpstreamSession {
    package var condition: RoomState.Link {
        switch state {
        case .open: isUp ? .up : .connecting
        case .gated, .authorizing, .connecting, .tunnelling, .securing, .handshaking: .connecting
        case .waiting: .waiting
        case .stopped, .closing: .stopped
        }
    }
}

/// The step that a link's opening has reached.
public enum LinkStage: Equatable, Sendable {
    /// Not started, closing, or waiting for its turn to connect.
    case idle
    /// Credentials are read, or the account logs in.
    case credentials
    case connecting
    /// A proxy was asked for a connection.
    case tunnelling
    /// TLS begins behind the proxy.
    case securing
    case handshaking
    /// The login is sent on the socket.
    case authenticating
    case awaitingReady
    case usable
    /// The attempt failed.
    case failed
}

extension UpstreamSession {
    package var progress: LinkStage {
        switch state {
        case .stopped, .gated, .closing: .idle
        case .authorizing: .credentials
        case .connecting: .connecting
        case .tunnelling: .tunnelling
        case .securing: .securing
        case .handshaking: .handshaking
        case .waiting: .failed
        case .open:
            switch stage {
            case .authenticating: .authenticating
            case .awaitingReady: .awaitingReady
            case .usable: .usable
            }
        }
    }
}
