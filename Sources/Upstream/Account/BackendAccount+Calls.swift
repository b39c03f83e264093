import BridgeTypes
import Dialects
import WireBytes

// The calls of a backend's rooms: a few at a time, the others queued; authorised by the current token; retried after a
// stale token or trouble of the backend.

extension BackendAccount {
    struct PendingCall {
        var purpose: BackendPurpose
        var call: BackendCall
        var request: BackendRequest
        var context: DialectContext
        /// When it is given up.
        var deadline: MonotonicInstant
        /// The generation of the token that it used last.
        var generation: Int?
        var isRenewed = false
        var attempts = 0
    }

    /// Tries of one call when the backend is in trouble.
    static let maxAttempts = 3

    /// Whether the backend has such a call.
    package func offers(_ call: BackendCall) -> Bool {
        settings.httpBase != nil
            && settings.dialect.calls?.request(for: call, context: DialectContext(room: "")) != nil
    }

    /// Carries a call out, as soon as possible; answered by ``BackendEvent/answered(_:_:)``.
    package func submit(
        _ purpose: BackendPurpose, _ call: BackendCall, dialectContext: DialectContext, _ turn: inout Turn
    ) -> [BackendEvent] {
        guard settings.httpBase != nil,
            let request = settings.dialect.calls?.request(for: call, context: dialectContext)
        else {
            fail(purpose, "the backend has no call for that")
            return takeEvents()
        }
        let deadline = turn.now.monotonic + settings.limits.callTimeout
        if let why = pauses.reason(of: purpose.kind, until: deadline) {
            fail(purpose, why)
            return takeEvents()
        }
        // A queued mark covers everything read by the time it is sent.
        if case .markRead = purpose, queue.contains(where: { $0.purpose == purpose }) { return takeEvents() }
        guard queue.count < settings.limits.callsWaiting else {
            fail(purpose, "too many calls wait for \(place)")
            return takeEvents()
        }
        queue.append(
            PendingCall(
                purpose: purpose, call: call, request: request, context: dialectContext,
                deadline: deadline))
        start(&turn)
        pump(&turn)
        arm(&turn)
        return takeEvents()
    }

    private func fail(
        _ purpose: BackendPurpose, _ sentence: String, status: Int? = nil, isFinal: Bool = false
    ) {
        let failure = BackendCallFailure(sentence: sentence, status: status, isFinal: isFinal)
        events.append(.answered(purpose, .failure(failure)))
    }

    /// Sends the calls that may go.
    func pump(_ turn: inout Turn) {
        let now = turn.now.monotonic
        let canShow = isUsable(now: turn.now.monotonic)
        var index = 0
        while underWay.count < settings.limits.callsAtOnce, index < queue.count {
            if pauses.isPaused(queue[index].purpose.kind, now: now) {
                index += 1
                continue
            }
            if queue[index].request.isAuthorized, !canShow {
                if case .refused = state {
                    let call = queue.remove(at: index)
                    fail(call.purpose, trouble ?? "the login is refused", status: 401)
                } else {
                    index += 1
                }
                continue
            }
            var call = queue.remove(at: index)
            guard call.deadline > now else {
                fail(call.purpose, "no answer of \(place) in time")
                continue
            }
            call.attempts += 1
            call.generation = call.request.isAuthorized ? generation : nil
            let id = nextCall()
            underWay[id] = call
            emit(
                .call(
                    id,
                    BackendCallRequest(
                        backend: self.id, request: call.request,
                        authorization: call.request.isAuthorized ? authorization : UpstreamCredentials(),
                        timeout: call.deadline - now, maxAnswerBytes: settings.limits.answerBytes)))
        }
    }

    package func callAnswered(
        _ id: BackendCallID, _ outcome: Result<BackendCallResponse, BackendCallFailure>, _ turn: inout Turn
    ) -> [BackendEvent] {
        if !renewalAnswered(id, outcome, &turn), let call = underWay.removeValue(forKey: id) {
            switch outcome {
            case .success(let answered): self.answered(call, answered, &turn)
            case .failure(let failure):
                if failure.isFinal {
                    fail(call.purpose, scrubbed(failure.sentence), status: failure.status, isFinal: true)
                    break
                }
                // Whether it was carried out is unknown: only an idempotent call is repeated.
                let sentence = scrubbed(failure.sentence)
                pause(call.purpose.kind, nil, sentence, &turn)
                tryAgain(
                    call, if: call.request.method == .get, orFail: sentence, status: failure.status, &turn)
            }
            pump(&turn)
        }
        arm(&turn)
        return takeEvents()
    }

    private func answered(_ call: PendingCall, _ answered: BackendCallResponse, _ turn: inout Turn) {
        let answer = answered.answer
        switch answer.status {
        case 200..<300:
            pauses.succeeded(call.purpose.kind)
            refusedCalls[call.purpose.subject] = nil
            if let shown = call.generation, shown == generation { proven() }
            let reply =
                settings.dialect.calls?.reply(to: call.call, answer: answer, context: call.context)
                ?? .unusable(.unsupported)
            if case .unusable(let reason) = reply {
                fail(call.purpose, "the answer of \(place) cannot be read (\(reason.rawValue))", status: answer.status)
            } else {
                events.append(.answered(call.purpose, .success(reply)))
            }
        case let status where isStale(status) && call.generation != nil:
            // With a token that is known to be good, 403 is about the request.
            let isAboutToken = status != 403 || held?.isProven != true || call.generation != generation
            // Another token made no difference a while ago.
            let now = turn.now.monotonic
            let subject = call.purpose.subject
            let wasInVain = refusedCalls[subject].map { now - $0 < ReconnectPolicy.refusedDelay } ?? false
            if call.isRenewed { refusedCalls[subject] = now }
            guard isAboutToken, !call.isRenewed, !wasInVain, let shown = call.generation,
                refused(generation: shown, .call, &turn)
            else { return fail(call.purpose, sentence("a call", answer), status: status) }
            var call = call
            call.isRenewed = true
            queue.insert(call, at: 0)
        case let status where Self.isTransient(status):
            // These two mean that nothing was done.
            let isUndone = status == 429 || status == 503
            let sentence = sentence("a call", answer)
            if isUndone, let pause = answered.retryAfter { pauseAll(pause, sentence, &turn) }
            pause(call.purpose.kind, answered.retryAfter, sentence, &turn)
            tryAgain(
                call, if: isUndone || call.request.method == .get, orFail: sentence, status: status, &turn)
        case let status: fail(call.purpose, sentence("a call", answer), status: status)
        }
    }

    private func isStale(_ status: Int) -> Bool {
        settings.login?.staleStatuses.contains(status) ?? (status == 401 || status == 403)
    }

    private func tryAgain(
        _ call: PendingCall, if isAllowed: Bool, orFail sentence: String, status: Int?, _ turn: inout Turn
    ) {
        let isBlocked = pauses.reason(of: call.purpose.kind, until: call.deadline) != nil
        guard isAllowed, call.attempts < Self.maxAttempts, !isBlocked else {
            return fail(call.purpose, sentence, status: status)
        }
        queue.insert(call, at: 0)
    }

    /// Pauses one kind of call: as long as the backend asks, else longer each time.
    private func pause(
        _ kind: BackendPurpose.Kind, _ retryAfter: Duration?, _ sentence: String, _ turn: inout Turn
    ) {
        pauses.failed(kind, retryAfter: retryAfter, reason: sentence, now: turn.now.monotonic)
        failBlockedCalls()
    }

    /// Pauses all calls, as the backend asks.
    private func pauseAll(_ pause: Duration, _ sentence: String, _ turn: inout Turn) {
        pauses.holdAll(for: pause, reason: sentence, now: turn.now.monotonic)
        failBlockedCalls()
    }

    /// Fails the calls whose deadline is within the pause now, with the reason of the pause.
    private func failBlockedCalls() {
        queue.removeAll { call in
            guard let why = pauses.reason(of: call.purpose.kind, until: call.deadline) else { return false }
            fail(call.purpose, why)
            return true
        }
    }

    /// Fails all calls: there is no token for a while.
    func failCalls(_ failure: BackendCallFailure, _ turn: inout Turn) {
        for call in queue where call.request.isAuthorized { events.append(.answered(call.purpose, .failure(failure))) }
        queue.removeAll { $0.request.isAuthorized }
    }

    /// Gives way to an account of the same backend with other settings: all calls fail.
    ///
    /// - Returns: also the rooms that wait for credentials, and must ask the other one.
    package func retire() -> (events: [BackendEvent], waiting: [RoomID]) {
        for call in underWay.values.sorted(by: { $0.deadline < $1.deadline }) + queue {
            fail(call.purpose, "\(place) has other settings now")
        }
        underWay = [:]
        queue = []
        return (takeEvents(), takeWaitingRooms())
    }

    // MARK: - Time

    func callsDue(now: MonotonicInstant) -> MonotonicInstant? {
        queue.map { call in
            // A call that may go and does not waits for something else.
            guard let end = pauses.end(of: call.purpose.kind), end > now else { return call.deadline }
            return min(end, call.deadline)
        }.min()
    }

    func callTimerFired(_ turn: inout Turn) {
        let now = turn.now.monotonic
        for call in queue where now >= call.deadline { fail(call.purpose, trouble ?? "no answer of \(place) in time") }
        queue.removeAll { now >= $0.deadline }
        pump(&turn)
    }
}
