import BridgeCore
import BridgeTypes
import Transport
import Upstream
import WireBytes

/// Watches the links of a bridge from the end of each turn, and makes reports of what it sees. Belongs to the loop.
final class ConnectWatch {
    private struct Link {
        var report: ConnectReport
        var isProxied: Bool
        /// The step under way and its beginning.
        var current: (step: ConnectStep, since: MonotonicInstant)?
        var detail: [ConnectStep: String] = [:]

        func step(_ step: ConnectStep, _ since: MonotonicInstant, _ now: MonotonicInstant) -> ConnectReport.Step {
            let elapsed = (now - since).components
            let milliseconds = Double(elapsed.seconds) * 1000 + Double(elapsed.attoseconds) / 1e15
            return ConnectReport.Step(step: step, milliseconds: milliseconds, detail: detail[step])
        }
    }

    /// By room; those that are settled are removed.
    private var open: [RoomID: Link] = [:]
    private var order: [RoomID] = []
    private var settled: [RoomID: ConnectReport] = [:]
    /// Called once with the reports, in the order of the rooms.
    private var finished: ([ConnectReport]) -> Void

    /// - Parameter links: the rooms by name, each with its address and whether a proxy is in between.
    init(
        _ links: [String: (url: String, isProxied: Bool)], _ progress: [LinkProgress],
        finished: @escaping ([ConnectReport]) -> Void
    ) {
        self.finished = finished
        for room in progress {
            guard let link = links[room.name] else { continue }
            order.append(room.room)
            open[room.room] = Link(
                report: ConnectReport(room: room.name, url: link.url), isProxied: link.isProxied)
        }
    }

    /// Takes note of what has changed in this turn.
    func look(_ driver: BridgeDriver, _ transport: Transport) {
        let now = transport.now
        for progress in driver.bridge.linkProgress where open[progress.room] != nil {
            let connection = driver.connection(of: progress.room)
            let phase = connection.flatMap { transport.progress(of: $0) }
            let step = ConnectStep(progress.stage, phase, isCaughtUp: progress.isCaughtUp)
            if let step { advance(progress.room, to: step, now) }
            if let connection, phase == .open { describe(progress.room, connection, transport) }
            if progress.stage == .failed {
                fail(progress, progress.reason ?? "the attempt failed", now)
            } else if progress.stage == .usable, progress.isCaughtUp {
                end(progress, now)
            }
        }
        finishIfSettled()
    }

    /// Ends the watch: what is not settled has failed.
    func giveUp(_ driver: BridgeDriver, _ transport: Transport) {
        for progress in driver.bridge.linkProgress where open[progress.room] != nil {
            fail(progress, "not done in time", transport.now)
        }
        finishIfSettled()
    }

    private func finishIfSettled() {
        guard open.isEmpty else { return }
        finished(order.compactMap { settled[$0] })
        finished = { _ in }
    }

    // MARK: - One room

    private func advance(_ room: RoomID, to step: ConnectStep, _ now: MonotonicInstant) {
        guard var link = open[room], link.current?.step != step else { return }
        if let (last, since) = link.current { link.report.append(link.step(last, since, now)) }
        // A connection that stood at the end of the turn in which it began.
        if step == .handshake, !link.report.steps.contains(where: { $0.step == .tcp }) {
            link.report.append(ConnectReport.Step(step: .tcp, milliseconds: 0))
        }
        link.current = (step, now)
        open[room] = link
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
        var failed = link.step(step, since, now)
        failed.isGood = false
        failed.detail = reason
        link.report.append(failed)
        link.report.advice = .about(step, status: progress.status, isProxied: link.isProxied)
        settled[progress.room] = link.report
    }

    private func end(_ progress: LinkProgress, _ now: MonotonicInstant) {
        guard var link = open.removeValue(forKey: progress.room) else { return }
        if let (step, since) = link.current {
            var last = link.step(step, since, now)
            if step == .history, let failure = progress.historyFailure {
                last.isGood = false
                last.detail = failure
                link.report.advice = .about(.history, status: nil, isProxied: false)
            }
            link.report.append(last)
        }
        settled[progress.room] = link.report
    }
}
