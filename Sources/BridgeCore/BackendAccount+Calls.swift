import Dialects
import WireBytes

// The calls of a backend's rooms: a few at a time, the others in a queue; shown the token of the moment; tried again when
// the token was stale or the backend was in trouble.

extension BackendAccount {
    struct PendingCall {
        var purpose: BackendPurpose
        var call: BackendCall
        var request: BackendRequest
        var context: DialectContext
        /// When it is given up.
        var deadline: MonotonicInstant
        /// The token that it showed last.
        var generation: Int?
        var isRenewed = false
        var attempts = 0
    }

    /// Tries of one call when the backend is in trouble.
    static let maxAttempts = 3
    /// Wait after the first failed call; each further one in a row doubles it.
    static let firstPause: Duration = .seconds(1)
    /// The longest of these waits.
    static let longestPause: Duration = .seconds(60)

    /// Whether the backend has such a call.
    func offers(_ call: BackendCall) -> Bool {
        settings.httpBase != nil
            && settings.dialect.calls?.request(for: call, context: DialectContext(room: "")) != nil
    }

    /// Carries a call out, as soon as may be; answered by ``BackendEvent/answered(_:_:)``.
    func submit(
        _ purpose: BackendPurpose, _ call: BackendCall, dialectContext: DialectContext, _ context: BridgeContext
    ) -> [BackendEvent] {
        guard settings.httpBase != nil,
            let request = settings.dialect.calls?.request(for: call, context: dialectContext)
        else {
            fail(purpose, "the backend has no call for that")
            return takeEvents()
        }
        guard queue.count < settings.limits.callsWaiting else {
            fail(purpose, "too many calls wait for \(place)")
            return takeEvents()
        }
        queue.append(
            PendingCall(
                purpose: purpose, call: call, request: request, context: dialectContext,
                deadline: context.now.monotonic + settings.limits.callTimeout))
        start(context)
        pump(context)
        arm(context)
        return takeEvents()
    }

    private func fail(_ purpose: BackendPurpose, _ sentence: String, status: Int? = nil) {
        events.append(.answered(purpose, .failure(BackendCallFailure(sentence: sentence, status: status))))
    }

    /// Sends what may go.
    func pump(_ context: BridgeContext) {
        let now = context.now.monotonic
        if let pausedUntil {
            guard now >= pausedUntil else { return }
            self.pausedUntil = nil
        }
        let canShow = isUsable(context)
        var index = 0
        while underWay.count < settings.limits.callsAtOnce, index < queue.count {
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
            let id = context.nextBackendCall()
            underWay[id] = call
            context.emit(
                .callBackend(
                    id,
                    BackendCallOrder(
                        backend: self.id, request: call.request,
                        authorization: call.request.isAuthorized ? authorization : UpstreamCredentials(),
                        timeout: call.deadline - now, maxAnswerBytes: settings.limits.answerBytes)))
        }
    }

    func callAnswered(
        _ id: BackendCallID, _ outcome: Result<BackendAnswered, BackendCallFailure>, _ context: BridgeContext
    ) -> [BackendEvent] {
        if !renewalAnswered(id, outcome, context), let call = underWay.removeValue(forKey: id) {
            switch outcome {
            case .success(let answered): self.answered(call, answered, context)
            case .failure(let failure):
                // Whether it was carried out is not known: only what can be done twice is done again.
                pause(nil, context)
                tryAgain(
                    call, if: call.request.method == .get, orFail: scrubbed(failure.sentence), status: failure.status,
                    context)
            }
            pump(context)
        }
        arm(context)
        return takeEvents()
    }

    private func answered(_ call: PendingCall, _ answered: BackendAnswered, _ context: BridgeContext) {
        let answer = answered.answer
        switch answer.status {
        case 200..<300:
            callFailures = 0
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
            // With a token that is known to be good, 403 is about what was asked.
            let isAboutToken = status != 403 || held?.isProven != true || call.generation != generation
            guard isAboutToken, !call.isRenewed, let shown = call.generation, refused(generation: shown, context)
            else { return fail(call.purpose, sentence("a call", answer), status: status) }
            var call = call
            call.isRenewed = true
            queue.insert(call, at: 0)
        case let status where Self.isTransient(status):
            pause(answered.retryAfter, context)
            // These two say that nothing was done.
            let isUndone = status == 429 || status == 503
            tryAgain(
                call, if: isUndone || call.request.method == .get, orFail: sentence("a call", answer), status: status,
                context)
        case let status: fail(call.purpose, sentence("a call", answer), status: status)
        }
    }

    private func isStale(_ status: Int) -> Bool {
        settings.login?.staleStatuses.contains(status) ?? (status == 401 || status == 403)
    }

    private func tryAgain(
        _ call: PendingCall, if isAllowed: Bool, orFail sentence: String, status: Int?, _ context: BridgeContext
    ) {
        let resumes = pausedUntil ?? context.now.monotonic
        guard isAllowed, call.attempts < Self.maxAttempts, resumes < call.deadline else {
            return fail(call.purpose, sentence, status: status)
        }
        queue.insert(call, at: 0)
    }

    /// Leaves the backend alone for a while: as long as it wants, else longer each time.
    private func pause(_ retryAfter: Duration?, _ context: BridgeContext) {
        var pause = Self.firstPause
        for _ in 0..<min(callFailures, 10) where pause < Self.longestPause { pause *= 2 }
        callFailures += 1
        pause = max(min(pause, Self.longestPause), min(retryAfter ?? .zero, ReconnectPolicy.longestRetryAfter))
        let until = context.now.monotonic + pause
        pausedUntil = max(pausedUntil ?? until, until)
    }

    /// Nobody can be asked with a token for a while.
    func failCalls(_ failure: BackendCallFailure, _ context: BridgeContext) {
        for call in queue where call.request.isAuthorized { events.append(.answered(call.purpose, .failure(failure))) }
        queue.removeAll { $0.request.isAuthorized }
    }

    // MARK: - Time

    var callsDue: MonotonicInstant? {
        guard !queue.isEmpty else { return nil }
        return [queue.map(\.deadline).min(), pausedUntil].compactMap(\.self).min()
    }

    func callTimerFired(_ context: BridgeContext) {
        let now = context.now.monotonic
        for call in queue where now >= call.deadline { fail(call.purpose, trouble ?? "no answer of \(place) in time") }
        queue.removeAll { now >= $0.deadline }
        pump(context)
    }
}
