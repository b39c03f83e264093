import BridgeCore
import BridgeTypes
import ChatModel
import Transport
import Upstream
import WireBytes

/// Watches the links of a bridge from the end of each turn, and makes reports of what it sees. Belongs to the loop.
final class ConnectWatch {
    private struct Link {
        var report: ConnectReport
        var isProxied: Bool
        var login: ConnectLink.Login?
        /// The step under way and its beginning.
        var current: (step: ConnectStep, since: MonotonicInstant)?
        var detail: [ConnectStep: String] = [:]

        func step(_ step: ConnectStep, _ since: MonotonicInstant, _ now: MonotonicInstant) -> ConnectReport.Step {
            let elapsed = (now - since).components
            let milliseconds = Double(elapsed.seconds) * 1000 + Double(elapsed.attoseconds) / 1e15
            return ConnectReport.Step(step: step, milliseconds: milliseconds, detail: detail[step])
        }

        /// Tells of frames that were not understood, of a backend of which nothing was.
        mutating func judge(_ progress: LinkProgress, _ since: MonotonicInstant, _ now: MonotonicInstant) {
            guard report.isGood, login == nil else { return }
            var step = step(.frames, since, now)
            if progress.understandsNothing {
                report.fail(
                    step, "nothing that came was understood (frames: \(progress.strangeFrames))",
                    .about(.frames, status: nil, isProxied: false))
            } else {
                step.detail = "not understood, but too few to judge the dialect: \(progress.strangeFrames)"
                report.append(step)
            }
        }

        /// Tells who an account's own log-in is at the backend, and whether it can be.
        mutating func identify(as person: ChatPerson?, besides room: ChatPerson?) {
            guard let login, report.isGood else { return }
            let written = login.person.isEmpty ? nil : login.person
            guard let person else {
                return report.identified(
                    written.map { "\($0), as the configuration says" } ?? "the backend has not said who this is")
            }
            let (id, name) = (person.id?.rawValue, person.name)
            let words = [name, id.map { name == nil ? $0 : "(id \($0))" }].compactMap(\.self)
            report.identified(PrintableText.of(words.joined(separator: " ")))
            if let written, written != id, written != name {
                refute("as = \"\(written)\" is another", login)
            } else if login.isOther, let room, room.isSame(as: person) {
                refute("it is the room's own account, and must be another", login)
            }
        }

        private mutating func refute(_ reason: String, _ login: ConnectLink.Login) {
            report.fail(
                ConnectReport.Step(step: .identity, milliseconds: 0), reason,
                .about(.identity, status: nil, isProxied: false, account: login.account))
        }
    }

    /// By room; those that are settled are removed.
    private var open: [RoomID: Link] = [:]
    private var order: [RoomID] = []
    private var settled: [RoomID: Link] = [:]
    private var latest: [RoomID: LinkProgress] = [:]
    private var listeningSince: MonotonicInstant?
    /// Called once, when all links are settled and what comes next is of interest: ``giveUp(_:_:)`` is wanted a little later.
    private let listen: () -> Void
    /// Called once with the reports, in the order of the rooms.
    private var finished: ([ConnectReport]) -> Void

    /// - Parameter links: by name.
    init(
        _ links: [String: ConnectLink], _ progress: [LinkProgress], listen: @escaping () -> Void,
        finished: @escaping ([ConnectReport]) -> Void
    ) {
        self.listen = listen
        self.finished = finished
        for room in progress {
            guard let link = links[room.name] else { continue }
            order.append(room.room)
            open[room.room] = Link(
                report: ConnectReport(room: link.room, account: link.login?.account, url: link.url),
                isProxied: link.isProxied, login: link.login)
        }
    }

    /// Takes note of what has changed in this turn.
    func look(_ driver: BridgeDriver, _ transport: Transport) {
        let now = transport.now
        for progress in driver.bridge.linkProgress {
            latest[progress.room] = progress
            guard let link = open[progress.room] else { continue }
            let connection = driver.connection(of: progress.room)
            let phase = connection.flatMap { transport.progress(of: $0) }
            let step = ConnectStep(progress, phase, isOwn: link.login != nil)
            if let step { advance(progress, to: step, now) }
            if let connection, phase == .open { describe(progress.room, connection, transport) }
            if progress.stage == .failed {
                fail(progress, progress.reason ?? "the attempt failed", now)
            } else if progress.stage == .usable, step == nil {
                end(progress, now)
            }
        }
        guard open.isEmpty else { return }
        // Most are understood early: a history, or an answer to the log-in.
        let isInDoubt = settled.contains { id, link in
            link.report.isGood && link.login == nil
                && latest[id].map { !$0.hasUnderstood && !$0.understandsNothing } ?? false
        }
        guard isInDoubt else { return finish(now) }
        if listeningSince == nil {
            listeningSince = now
            listen()
        }
    }

    /// Ends the watch: what is not settled has failed.
    func giveUp(_ driver: BridgeDriver, _ transport: Transport) {
        for progress in driver.bridge.linkProgress where open[progress.room] != nil {
            fail(progress, "not done in time", transport.now)
        }
        finish(transport.now)
    }

    private func finish(_ now: MonotonicInstant) {
        for (id, progress) in latest where progress.strangeFrames > 0 {
            settled[id]?.judge(progress, listeningSince ?? now, now)
        }
        var rooms: [String: ChatPerson] = [:]
        for (id, link) in settled where link.login == nil { rooms[link.report.room] = latest[id]?.person }
        finished(
            order.compactMap { id in
                guard var link = settled[id] else { return nil }
                link.identify(as: latest[id]?.person, besides: rooms[link.report.room])
                return link.report
            })
        finished = { _ in }
    }

    // MARK: - One room

    private func advance(_ progress: LinkProgress, to step: ConnectStep, _ now: MonotonicInstant) {
        guard var link = open[progress.room], link.current?.step != step else { return }
        // A refusal that was followed by another attempt at once, in one turn: the steps are those of the last attempt.
        if progress.reason != nil, let last = link.current?.step, step.comes(before: last) {
            link.report.beginAnew()
            link.current = nil
        }
        if let (last, since) = link.current { link.report.append(link.step(last, since, now)) }
        // A connection that stood at the end of the turn in which it began.
        if step == .handshake, !link.report.steps.contains(where: { $0.step == .tcp }) {
            link.report.append(ConnectReport.Step(step: .tcp, milliseconds: 0))
        }
        link.current = (step, now)
        open[progress.room] = link
    }

    /// Notes the address, the cipher and the certificate of a connection that stands.
    private func describe(_ room: RoomID, _ id: ConnectionID, _ transport: Transport) {
        guard open[room]?.detail[.tls] == nil, let security = transport.securityDescription(id) else { return }
        var words = [security]
        if let certificate = transport.peerCertificate(id) {
            let days = certificate.daysLeft
            let left = days < 0 ? "expired \(certificate.notAfter)" : "\(days) days left"
            words.append("certificate of \(certificate.subject) by \(certificate.issuer), \(left)")
        }
        let text = words.joined(separator: "; ")
        open[room]?.detail[.tls] = text
        // TLS was settled in the turn before.
        open[room]?.report.describe(.tls, text)
    }

    private func fail(_ progress: LinkProgress, _ reason: String, _ now: MonotonicInstant) {
        guard var link = open.removeValue(forKey: progress.room) else { return }
        let (step, since) = link.current ?? (.tcp, now)
        link.report.fail(
            link.step(step, since, now), reason,
            .about(step, status: progress.status, isProxied: link.isProxied, account: link.login?.account))
        settled[progress.room] = link
    }

    private func end(_ progress: LinkProgress, _ now: MonotonicInstant) {
        guard var link = open.removeValue(forKey: progress.room) else { return }
        if let (step, since) = link.current {
            let last = link.step(step, since, now)
            if step == .history, let failure = progress.historyFailure {
                link.report.fail(last, failure, .about(.history, status: nil, isProxied: false))
            } else if step == .identity, progress.person == nil, let login = link.login, login.person.isEmpty {
                link.report.fail(
                    last, "the backend did not say who the account is",
                    .about(.identity, status: nil, isProxied: false, account: login.account))
            } else {
                link.report.append(last)
            }
        }
        settled[progress.room] = link
    }
}

extension ChatPerson {
    /// By id where both have one: two people may share a name.
    fileprivate func isSame(as other: ChatPerson) -> Bool {
        if let id, let otherID = other.id { return id == otherID }
        return name != nil && TextBytes.areSame(name, other.name)
    }
}
