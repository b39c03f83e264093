import BridgeCore
import Transport
import Upstream

/// A step of a link's opening, in the order in which they come.
enum ConnectStep: String, CaseIterable, Sendable {
    case credentials, lookup, tcp, proxy, tls, handshake, login, readiness, history, identity, frames

    /// The step that a link is at; nil: none yet, or none any more.
    ///
    /// - Parameter isOwn: an account's own link, whose room has the history, and which waits for the account's identity.
    init?(_ progress: LinkProgress, _ connection: ConnectionProgress?, isOwn: Bool) {
        switch progress.stage {
        case .idle, .failed: return nil
        case .credentials: self = .credentials
        case .connecting:
            switch connection {
            case .resolving: self = .lookup
            case .connecting: self = .tcp
            case .securing: self = .tls
            // It stands, or has ended; the link does not know yet.
            case .open, nil: return nil
            }
        case .tunnelling: self = .proxy
        case .securing: self = .tls
        case .handshaking: self = .handshake
        case .authenticating: self = .login
        case .awaitingReady: self = .readiness
        case .usable:
            if isOwn {
                guard progress.isIdentifying else { return nil }
                self = .identity
            } else {
                if progress.isCaughtUp { return nil }
                self = .history
            }
        }
    }
}

extension ConnectStep {
    func comes(before other: ConnectStep) -> Bool {
        guard let one = Self.allCases.firstIndex(of: self), let two = Self.allCases.firstIndex(of: other) else {
            return false
        }
        return one < two
    }
}

/// The party at fault for a failed step, and the remedy.
struct ConnectAdvice: Equatable, Sendable {
    var fault: String
    var remedy: String

    /// - Parameters:
    ///   - status: the HTTP status that refused the handshake.
    ///   - isProxied: the connection goes through a proxy.
    ///   - account: whose own log-in it is; nil: the room's.
    static func about(_ step: ConnectStep, status: Int?, isProxied: Bool, account: String? = nil) -> ConnectAdvice {
        let credentials = account.map { "the credentials in upstream of the account \($0)" } ?? "the room's credentials"
        return switch step {
        case .credentials:
            ConnectAdvice(
                fault: "\(credentials), or the log-in at the backend",
                remedy:
                    "see that user, password or token and their files are right, and that http_base is the log-in's host"
            )
        case .lookup:
            ConnectAdvice(
                fault: "the name in the URL, or this machine's name service",
                remedy: "check the spelling of the host, and what this machine's name service says of it")
        case .tcp where isProxied, .proxy:
            ConnectAdvice(
                fault: "the proxy",
                remedy: "check proxy (or HTTPS_PROXY, HTTP_PROXY, ALL_PROXY), its user and password, and what it allows"
            )
        case .tcp:
            ConnectAdvice(
                fault: "the backend, or the network on the way",
                remedy:
                    "see that the backend runs and listens on this address and port, and that no firewall is between")
        case .tls:
            ConnectAdvice(
                fault: "the backend's certificate, or the authorities that are trusted here",
                remedy:
                    "for a private certificate name its authority in tls.ca, or its key in tls.pin_sha256; check the host's "
                    + "name and both clocks; a port without TLS is written ws://")
        case .handshake: refused(status, credentials)
        case .login:
            ConnectAdvice(
                fault: credentials,
                remedy:
                    "the backend took the connection and refused the log-in: check auth, and the account at the backend"
            )
        case .readiness:
            ConnectAdvice(
                fault: "the room at the backend, or the dialect",
                remedy: "check upstream_room and dialect, and whether the account may enter the room")
        case .history:
            ConnectAdvice(
                fault: "the backend's history, or what the configuration says of it",
                remedy:
                    "messages are relayed all the same; check http_base, upstream_room, auth, history_url or the history of "
                    + "a description, and whether the account may read it")
        case .frames:
            ConnectAdvice(
                fault: "the dialect",
                remedy:
                    "the backend speaks another: set dialect; \"chatbridge check --frame\" tries a captured frame, and "
                    + "\"chatbridge learn\" describes a backend")
        case .identity:
            ConnectAdvice(
                fault: credentials,
                remedy:
                    "see whose account the token or the user is, and that as, where it is written, is that account's id or name"
            )
        }
    }

    private static func refused(_ status: Int?, _ credentials: String) -> ConnectAdvice {
        guard let status else {
            return ConnectAdvice(
                fault: "the program that listens there",
                remedy:
                    "it gave no valid answer to a WebSocket handshake: check port and scheme (ws:// or wss://), subprotocol "
                    + "and handshake_timeout")
        }
        return switch status {
        case 401, 403, 407:
            ConnectAdvice(
                fault: credentials,
                remedy:
                    "the backend knows the address and refuses the token: check auth, its type, and with type = \"query\" the "
                    + "parameter's name (param, by default access_token), and that the token is valid and may open this room"
            )
        case 404, 410:
            ConnectAdvice(
                fault: "the path in the URL",
                remedy:
                    "the server knows no such path: check url and upstream_room, and that a gateway passes the path on")
        case 408, 429, 500...599:
            ConnectAdvice(
                fault: "the backend, or the gateway in front of it",
                remedy:
                    "it is overloaded, failing or not started: see its own log; the bridge tries again by itself, and honours "
                    + "Retry-After")
        default:
            ConnectAdvice(
                fault: "the address in the URL",
                remedy:
                    "a web server answered, but opened no WebSocket: check the path, and that a gateway passes Upgrade on"
            )
        }
    }
}

/// A link that is opened.
struct ConnectLink {
    /// An account's own log-in.
    struct Login {
        var account: String
        /// As it is written; empty: it is not.
        var person: String
        /// The room's account cannot be this one, too: their messages would look alike.
        var isOther: Bool
    }

    var room: String
    /// Nil: the room's link.
    var login: Login?
    /// The address without secrets.
    var url: String
    var isProxied = false
}

/// One link, from its start to a usable room or to the step that failed.
struct ConnectReport: Equatable, Sendable {
    struct Step: Equatable, Sendable {
        var step: ConnectStep
        var isGood = true
        /// Thousandths of a second.
        var milliseconds: Double
        var detail: String?
    }

    var room: String
    /// Whose own log-in it is; nil: the room's.
    var account: String?
    /// The address without secrets.
    var url: String
    /// Of an own log-in: who the account is at the backend, and by whose word.
    private(set) var person: String?
    private(set) var steps: [Step] = []
    private(set) var advice: ConnectAdvice?

    init(room: String, account: String? = nil, url: String) {
        (self.room, self.account, self.url) = (room, account, url)
    }

    var isGood: Bool { advice == nil }

    mutating func append(_ step: Step) { steps.append(step) }

    /// The last step failed, or what it found is wrong.
    mutating func fail(_ step: Step, _ reason: String, _ advice: ConnectAdvice) {
        var step = step
        (step.isGood, step.detail) = (false, reason)
        append(step)
        self.advice = advice
    }

    mutating func identified(_ person: String) { self.person = person }

    mutating func beginAnew() { steps = [] }

    /// Adds to what is known of the last step of its kind.
    mutating func describe(_ step: ConnectStep, _ detail: String) {
        if let index = steps.lastIndex(where: { $0.step == step }) { steps[index].detail = detail }
    }

    /// Lines for people.
    var text: String {
        var lines = ["room \(room)\(account.map { " as \($0)" } ?? ""): \(url)"]
        for step in steps {
            let time = Self.time(step.milliseconds)
            let head = "  \(padded(step.step.rawValue, 12))\(step.isGood ? "ok    " : "failed")  \(padded(time, 8))"
            lines.append((head + (step.detail.map { "  \($0)" } ?? "")).trimmed)
        }
        if let person { lines.append("  \(padded("account", 12))\(person)") }
        if let advice {
            lines.append("  \(padded("at fault", 12))\(advice.fault)")
            lines.append("  \(padded("remedy", 12))\(advice.remedy)")
        } else {
            lines.append("  \(padded("usable", 12))after \(Self.time(steps.reduce(0) { $0 + $1.milliseconds }))")
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func time(_ milliseconds: Double) -> String {
        milliseconds < 10 ? "\((milliseconds * 10).rounded() / 10) ms" : "\(Int(milliseconds.rounded())) ms"
    }

    private func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(width - text.count, 0))
    }

    /// `room`, for an own log-in `account` and `person`, `url`, `ok`, `steps` (each `step`, `ok`, `ms`, and `detail` where
    /// there is one), and where one failed `fault` and `remedy`.
    var json: String {
        let steps = steps.map { step in
            let detail = step.detail.map { ",\"detail\":\(LogText.quoted($0))" } ?? ""
            let time = (step.milliseconds * 1000).rounded() / 1000
            return "{\"step\":\"\(step.step.rawValue)\",\"ok\":\(step.isGood),\"ms\":\(time)\(detail)}"
        }
        let advice =
            advice.map { ",\"fault\":\(LogText.quoted($0.fault)),\"remedy\":\(LogText.quoted($0.remedy))" } ?? ""
        let whose =
            (account.map { ",\"account\":\(LogText.quoted($0))" } ?? "")
            + (person.map { ",\"person\":\(LogText.quoted($0))" } ?? "")
        return "{\"room\":\(LogText.quoted(room))\(whose),\"url\":\(LogText.quoted(url)),\"ok\":\(isGood),\"steps\":["
            + steps.joined(separator: ",") + "]\(advice)}"
    }
}

extension String {
    fileprivate var trimmed: String { String(reversed().drop { $0 == " " }.reversed()) }
}
