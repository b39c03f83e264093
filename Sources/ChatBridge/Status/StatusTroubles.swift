import BridgeCore
import BridgeTypes
import ChatModel
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

    var level: Level
    /// `room lobby`, `storage`, `certificate of ircs://…`.
    var subject: String
    /// A sentence without a full stop.
    var text: String
}

extension StatusTrouble {
    /// A queue whose oldest message waits for so long does not get smaller by itself.
    static let queueAge: Duration = .seconds(30)
    /// Tokens are renewed a minute before they end; this is late.
    static let tokenLead: Duration = .seconds(30)
    /// Issuers renew after two thirds of 90 days; with two weeks left, something failed.
    static let certificateLead: Duration = .seconds(14 * 24 * 60 * 60)

    static func all(_ status: BridgeStatus, certificates: [(listener: String, at: Int64)]) -> [StatusTrouble] {
        var found: [StatusTrouble] = []
        if case .failing(let reason) = status.storage {
            found.append(StatusTrouble(level: .error, subject: "storage", text: reason))
        }
        for room in status.rooms { found += troubles(of: room, at: status.at) }
        for certificate in certificates {
            let left = certificate.at - status.at.milliseconds / 1000
            guard left < certificateLead.components.seconds else { continue }
            found.append(
                StatusTrouble(
                    level: left < 0 ? .error : .warning, subject: "certificate of \(certificate.listener)",
                    text: left < 0 ? "ended \(spoken(-left)) ago" : "ends in \(spoken(left))"))
        }
        return found.filter { $0.level == .error } + found.filter { $0.level == .warning }
    }

    private static func troubles(of room: RoomStatus, at now: ChatTimestamp) -> [StatusTrouble] {
        let subject = "room \(room.state.name)"
        var found: [StatusTrouble] = []
        if !room.state.isUp, let reason = room.state.reason, room.state.link != .stopped {
            let since = room.since.map { " for \(spoken((now.milliseconds - $0.milliseconds) / 1000))" } ?? ""
            let next = room.retryIn.map { "; next try in \(spoken($0.components.seconds))" } ?? ""
            found.append(StatusTrouble(level: .error, subject: subject, text: "down\(since): \(reason)\(next)"))
        }
        if let ends = room.tokenEndsAt, room.state.link != .stopped {
            let left = ends.milliseconds - now.milliseconds
            if left <= 0 {
                found.append(
                    StatusTrouble(level: .error, subject: subject, text: "its token ended \(spoken(-left / 1000)) ago"))
            } else if left < tokenLead.components.seconds * 1000 {
                found.append(
                    StatusTrouble(level: .warning, subject: subject, text: "its token ends in \(spoken(left / 1000))"))
            }
        }
        if let age = room.oldestQueuedFor, age >= queueAge || room.queued * 5 >= room.queueLimit * 4 {
            let isFull = room.queued >= room.queueLimit
            found.append(
                StatusTrouble(
                    level: isFull ? .error : .warning, subject: subject,
                    text: "\(room.queued) of \(room.queueLimit) messages wait, the oldest for "
                        + spoken(age.components.seconds)))
        }
        return found
    }

    private static func spoken(_ seconds: Int64) -> String { PrintableText.spoken(seconds: Int(clamping: seconds)) }
}
