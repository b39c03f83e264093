import BridgeCore
import BridgeTypes
import ChatModel
import JSONText
import Upstream
import WireBytes

/// Something that an operator should look at, worst first.
struct StatusTrouble: Equatable {
    enum Level: String {
        /// Messages are lost, refused or not relayed now.
        case error
        /// That is near.
        case warning
    }

    enum Kind: String, CaseIterable {
        case storage, link, dialect, history, token, queue, rate, mirror, certificate, reload

        /// What to do about it: a sentence without a full stop.
        var remedy: String {
            switch self {
            case .storage: "make room on the disk, or mend it; the bridge goes on by itself"
            case .link: "\"chatbridge check --connect\" says what is at fault; the bridge tries again by itself"
            case .dialect: "see frame-dropped in the log, and set dialect; \"chatbridge learn\" describes one"
            case .history:
                "\"chatbridge check --connect\" asks for it and says what is at fault; new messages are relayed"
            case .token: "see in the log why the renewal failed, or replace the token; then reconnect the room"
            case .queue:
                "see why the backend confirms nothing, or an account's own link is down (own-link-failed in the log); "
                    + "a full queue refuses messages, old ones are returned"
            case .rate:
                "more is said than limits.upstream_messages_per_second, or the backend, lets through; a full queue "
                    + "refuses messages"
            case .mirror: "see the tool, and its webhook; messages wait for retry.max_age, then they are given up"
            case .certificate: "renew it; changed files are noticed within a minute"
            case .reload: "mend the file and run \"chatbridge reload\"; until then the configuration before is in force"
            }
        }
    }

    var kind: Kind
    var level: Level
    /// The room's name, or the listener's address; empty: there is only one such.
    var name: String
    /// A sentence without a full stop.
    var text: String

    /// `room lobby`, `storage`, `certificate of ircs://…`.
    var subject: String {
        switch kind {
        case .storage: "storage"
        case .link, .dialect, .history, .token, .queue, .rate: "room \(name)"
        case .mirror: "mirror \(name)"
        case .certificate: "certificate of \(name)"
        case .reload: "reload"
        }
    }

    func append(to writer: inout JSONWriter) {
        writer.beginObject()
        for (key, value) in [
            ("kind", kind.rawValue), ("level", level.rawValue), ("subject", subject), ("text", text),
            ("remedy", kind.remedy),
        ] {
            writer.key(text: key)
            writer.string(value)
        }
        writer.endObject()
    }
}

extension StatusTrouble {
    /// A queue whose oldest message waits for so long does not get smaller by itself.
    static let queueAge: Duration = .seconds(30)
    /// Tokens are renewed a minute before they end; this is late.
    static let tokenLead: Duration = .seconds(30)
    /// So many frames that should have been read, without one message, are no chance.
    static let misreadFrames = 3
    /// Issuers renew after two thirds of 90 days; with two weeks left, something failed.
    static let certificateLead: Duration = .seconds(14 * 24 * 60 * 60)

    /// - Parameter refusal: of the last reload; nil: it was applied.
    static func all(
        _ status: BridgeStatus, certificates: [CertificateEnd], mirrors: [MirrorStatus] = [],
        refusal: ConfigurationReload.Refusal? = nil
    ) -> [StatusTrouble] {
        var found: [StatusTrouble] = []
        if case .failing(let reason) = status.storage {
            found.append(StatusTrouble(kind: .storage, level: .error, name: "", text: reason))
        }
        for room in status.rooms { found += troubles(of: room, at: status.at) }
        for mirror in mirrors {
            guard let reason = mirror.reason, let since = mirror.since else { continue }
            let age = spoken(seconds(from: since, to: status.at))
            found.append(
                StatusTrouble(
                    kind: .mirror, level: mirror.state == .closed ? .error : .warning, name: mirror.name,
                    text: "the tool has taken nothing for \(age): \(reason)"))
        }
        for certificate in certificates {
            let left = seconds(from: status.at, to: certificate.at)
            guard left < certificateLead.components.seconds else { continue }
            found.append(
                StatusTrouble(
                    kind: .certificate, level: left < 0 ? .error : .warning, name: certificate.listener,
                    text: left < 0 ? "ended \(spoken(-left)) ago" : "ends in \(spoken(left))"))
        }
        if let refusal {
            let ago = spoken((status.at.milliseconds - refusal.at.milliseconds) / 1000)
            found.append(
                StatusTrouble(
                    kind: .reload, level: .warning, name: "", text: "refused \(ago) ago: \(refusal.sentence)"))
        }
        return found.filter { $0.level == .error } + found.filter { $0.level == .warning }
    }

    private static func troubles(of room: RoomStatus, at now: ChatTimestamp) -> [StatusTrouble] {
        let name = room.state.name
        var found: [StatusTrouble] = []
        if !room.state.isUp, let reason = room.state.reason, room.state.link != .stopped {
            let since = room.since.map { " for \(spoken(seconds(from: $0, to: now)))" } ?? ""
            let sooner = room.awaitsCredentials ? ", or within 10 s of other credentials" : ""
            let next = room.retryIn.map { "; next try in \(spoken($0.components.seconds))\(sooner)" } ?? ""
            found.append(
                StatusTrouble(kind: .link, level: .error, name: name, text: "down\(since): \(reason)\(next)"))
        }
        if room.understandsNothing {
            found.append(
                StatusTrouble(
                    kind: .dialect, level: .error, name: name,
                    text: "none of the \(room.undecodable) frames that came was understood"))
        } else if room.messagesIn == 0, room.misread >= misreadFrames {
            found.append(
                StatusTrouble(
                    kind: .dialect, level: .warning, name: name,
                    text: "no message came, and \(room.misread) frames had not what the dialect says"))
        }
        if room.state.isUp, let reason = room.historyFailure {
            found.append(
                StatusTrouble(
                    kind: .history, level: .warning, name: name, text: "its history does not come: \(reason)"))
        }
        if let ends = room.tokenEndsAt, room.state.link != .stopped {
            let left = ends.milliseconds - now.milliseconds
            if left <= 0 {
                found.append(
                    StatusTrouble(
                        kind: .token, level: .error, name: name,
                        text: "its token ended \(spoken(-left / 1000)) ago"))
            } else if left < tokenLead.components.seconds * 1000 {
                found.append(
                    StatusTrouble(
                        kind: .token, level: .warning, name: name, text: "its token ends in \(spoken(left / 1000))"))
            }
        }
        if let age = room.oldestQueuedFor, age >= queueAge || room.queued * 5 >= room.queueLimit * 4 {
            let isFull = room.queued >= room.queueLimit
            found.append(
                StatusTrouble(
                    kind: room.isPaced ? .rate : .queue, level: isFull ? .error : .warning, name: name,
                    text: "\(room.queued) of \(room.queueLimit) messages wait\(room.isPaced ? " to be sent" : ""), "
                        + "the oldest for \(spoken(age.components.seconds))"))
        }
        return found
    }

    private static func seconds(from start: ChatTimestamp, to end: ChatTimestamp) -> Int64 {
        (end.milliseconds - start.milliseconds) / 1000
    }

    private static func spoken(_ seconds: Int64) -> String {
        let day: Int64 = 24 * 60 * 60
        return seconds < 2 * day ? PrintableText.spoken(seconds: Int(clamping: seconds)) : "\(seconds / day) days"
    }
}
