import BridgeTypes

/// A frame as it is on the wire.
package struct TappedFrame {
    /// A room, or an account's own link.
    package var link: RoomID
    package var isIncoming: Bool
    package var isBinary: Bool
    /// The text without the link's secrets; nil: it carries a log-in, or is no text.
    package var text: String?
    package var byteCount: Int
}

/// The state that the links and the accounts of one relay share.
package final class UpstreamShared {
    package let connects: ConnectQueue
    /// Backends whose links use the account's credentials, not the driver's.
    private var backendsWithLogin: Set<String> = []
    private var accountTokens: [String: [String]] = [:]
    /// Counts the changes of secrets.
    package private(set) var secretsVersion = 0
    private var lastCall: UInt64 = 0
    /// Receives the frames of all links; nil, as nearly always: there is no observer.
    private(set) var frameTap: ((TappedFrame) -> Void)?

    /// - Parameter connectsPerSecond: over all links together; nil: no limit.
    package init(connectsPerSecond: Double?, backends: [BackendSettings]) {
        connects = ConnectQueue(connectsPerSecond: connectsPerSecond)
        take(backends)
    }

    /// The backends of a configuration, in addition to those before.
    package func take(_ backends: [BackendSettings]) {
        for backend in backends {
            if backend.login == nil {
                backendsWithLogin.remove(backend.name)
            } else {
                backendsWithLogin.insert(backend.name)
            }
        }
    }

    package func hasLogin(_ backend: String) -> Bool { backendsWithLogin.contains(backend) }

    /// Known secrets of a backend's account, which must not be repeated.
    package func tokens(of backend: String) -> [String] { accountTokens[backend] ?? [] }

    /// An account has other tokens.
    package func renewed(_ account: BackendAccount) {
        accountTokens[account.settings.name] = account.knownTokens
        secretsChanged()
    }

    func secretsChanged() { secretsVersion &+= 1 }

    /// Passes on the frames of all links; nil ends it.
    package func watch(_ tap: ((TappedFrame) -> Void)?) { frameTap = tap }

    /// A number for a call to a backend.
    package func nextCall() -> BackendCallID {
        lastCall += 1
        return BackendCallID(rawValue: lastCall)
    }
}
