import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import WireBytes

// One account at one backend, for all the rooms there: its tokens, and the calls beside the sockets.
//
// | state      | meaning                                | verb → next                                                     |
// |------------|----------------------------------------|-----------------------------------------------------------------|
// | noTokens   | nothing was asked for yet              | start, a request → recalling, reading, holding (no credentials) |
// | recalling  | the stored tokens are being read       | tokensRead → holding, refreshing, reading                       |
// | reading    | name and password are being read       | secretsRead → loggingIn, refused; holding (no login)            |
// | loggingIn  | the login call is in flight            | answered → saving, refused, waiting                             |
// | refreshing | the refresh call is in flight          | answered → saving, reading (refused), waiting                   |
// | saving     | new tokens are being written           | tokensSaved → holding                                           |
// | holding    | tokens are usable                      | renewal due, token refused → refreshing, reading                |
// | waiting    | the backend was in trouble             | timer → refreshing, reading                                     |
// | refused    | name or password are wrong             | timer (15 min), other secrets, retryNow → reading, loggingIn    |
//
// There is one renewal at a time, whatever caused it; all requests wait for its outcome. New tokens are persisted
// before use: a refresh token serves once, and one that was used and not persisted would lock the relay out after a
// crash. Refusals name the token's generation, so that two rooms that use the same token and are refused cause one
// renewal.

/// Requests of an account to its driver.
package enum AccountAction: Equatable {
    /// Answered by ``BackendAccount/tokensRead(_:_:)``.
    case readTokens
    /// Answered by ``BackendAccount/tokensSaved(_:_:)``.
    case saveTokens(StoredTokens)
    /// Answered by ``BackendAccount/secretsRead(_:_:)``.
    case readSecrets
    /// Answered by ``BackendAccount/callAnswered(_:_:_:)``.
    case call(BackendCallID, BackendCallRequest)
    case note(BridgeNote)
}

package final class BackendAccount {
    enum State: Equatable {
        case noTokens
        case recalling
        case reading
        case loggingIn
        case refreshing
        case saving
        case holding
        case waiting(until: MonotonicInstant)
        case refused(until: MonotonicInstant)
    }

    /// The credentials in use.
    struct Held {
        var shown: Shown
        var since: MonotonicInstant
        /// Its lifetime by the backend's answer.
        var lifetime: Duration?
        /// When it ends; nil: not known, or never.
        var expiresAt: MonotonicInstant?
        var renewAt: MonotonicInstant?
        /// The backend took it at least once.
        var isProven = false
        var isRefused = false
    }

    enum Shown {
        case nothing
        case fixed(UpstreamCredentials)
        case tokens(BackendTokens)
    }

    /// The identity of the account at the backend.
    enum Identification: Equatable {
        case unknown
        case asked
        /// The backend gave no answer; the next attempt is then, or when a link comes up, or with other tokens.
        case waiting(until: MonotonicInstant)
        case known(ChatPerson)
    }

    /// One room's experience with the tokens.
    private struct RoomUse {
        /// The generation that opened its last session.
        var opened: Int
        /// A session that it opened was long enough.
        var hasServed = false
        /// How long that was usable before the backend closed it with a code that may be about the login or about the
        /// room; nil: it was not, or the refusal that followed was handled.
        var evictedAfter: Duration?

        var lasted: Bool { evictedAfter.map { $0 >= UpstreamSession.shortestLogin } ?? false }

        mutating func refusalSeen() {
            if lasted { hasServed = true }
            evictedAfter = nil
        }
    }

    /// Wait after the first vain question for the account's identity; each further one doubles it.
    static let identificationPause: Duration = .seconds(10)
    /// The longest of these waits. Meanwhile messages of the account look like those of another user.
    static let longestIdentificationPause: Duration = .seconds(5 * 60)
    /// Interval between readings of refused secrets: a replaced password file is noticed within this.
    static let secretsCheckInterval: Duration = .seconds(10)
    /// Refresh calls that fail for other reasons than the token before a login is tried instead.
    static let maxRefreshFailures = 3
    /// Where a refusal may be about something else than the token, one of them in this time leads to a renewal.
    static let doubtfulRenewalPause: Duration = .seconds(60)
    /// Pause before the second renewal in a row that opens no session; each further one doubles it.
    static let minRenewalBackoff: Duration = .milliseconds(500)
    /// A lifetime below this is more likely a number in another unit.
    static let shortestUsualLifetime: Duration = .seconds(2)
    /// A token with a lifetime of at least this that ends after less than a hundredth of it had its lifetime in another
    /// unit.
    static let longLifetime: Duration = .seconds(60 * 60)
    /// No renewal ahead of time sooner than this, however short-lived the tokens are.
    static let shortestHold: Duration = .seconds(1)
    /// An end further away than this is not watched; 2^31 s is a usual encoding of never.
    static let longestHold: Duration = .seconds(366 * 24 * 60 * 60)

    package let id: BackendID
    package let settings: BackendSettings
    private let policy: ReconnectPolicy
    private(set) var state: State = .noTokens
    private(set) var held: Held?
    /// The number of the credentials in use: others than before have another number.
    package private(set) var generation = 0
    /// For the next renewal; nil: log in.
    private var refreshToken: String?
    private var refreshFailures = 0
    /// Renewals that failed in a row.
    private var failures = 0
    /// Why there are no credentials; a sentence without a full stop.
    private(set) var trouble: String?
    private var secrets: BackendSecrets?
    private var refusedSecrets: BackendSecrets?
    private var renewalCall: BackendCallID?
    /// The server that was asked for tokens last: a login may lie elsewhere.
    private var renewalPlace: String?
    /// When a refusal last led to a renewal.
    private var refusalRenewedAt: MonotonicInstant?
    /// The backend accepted credentials of this login at least once since the program started.
    private var hasBeenTaken = false
    /// Refusals that led to a renewal since a token opened a session.
    private var refusedRenewals = 0
    /// The last token ended long before its time.
    private var endedEarly = false
    private var hasReportedLifetime = false
    private var use: [RoomID: RoomUse] = [:]
    private var hasReportedSaveTrouble = false
    /// Rooms that wait for the outcome.
    private var waitingRooms: [RoomID] = []
    /// The generation that each room was given.
    private var issued: [RoomID: Int] = [:]
    /// Rooms whose request failed, until credentials are available again.
    private var failedRooms: Set<RoomID> = []
    private(set) var identification = Identification.unknown
    private var identificationFailures = 0
    var events: [BackendEvent] = []
    private var actions: [AccountAction] = []
    private let shared: UpstreamShared

    // The calls; see BackendAccount+Calls.swift.
    var queue: [PendingCall] = []
    var underWay: [BackendCallID: PendingCall] = [:]
    var pauses = CallPauses()
    /// When calls were last refused with a token that was renewed for them.
    var refusedCalls: [BackendPurpose.Subject: MonotonicInstant] = [:]
    var nextLookAt: MonotonicInstant?

    package init(id: BackendID, settings: BackendSettings, shared: UpstreamShared) {
        self.id = id
        self.shared = shared
        self.settings = settings
        self.policy = ReconnectPolicy(traits: settings.dialect.traits.backoff)
    }

    func takeEvents() -> [BackendEvent] {
        defer { events = [] }
        return events
    }

    /// Returns the requests to the driver since the last call, in order.
    package func takeActions() -> [AccountAction] {
        guard !actions.isEmpty else { return [] }
        defer { actions = [] }
        return actions
    }

    func emit(_ action: AccountAction) { actions.append(action) }

    private func note(_ level: BridgeNote.Level, _ event: String, _ text: String, _ metadata: NoteMetadata) {
        emit(.note(BridgeNote(level, event, text, metadata)))
    }

    /// A number for a call of this account.
    func nextCall() -> BackendCallID { shared.nextCall() }

    private var loginCalls: (any DialectCalls)? { settings.login?.calls ?? settings.dialect.calls }
    private static let noRoom = DialectContext(room: "")

    // MARK: - Requests

    /// Gets credentials, if that is not under way.
    package func start(_ turn: inout Turn) {
        guard state == .noTokens else { return }
        if settings.login != nil {
            state = .recalling
            emit(.readTokens)
        } else if settings.authenticates {
            readSecrets(&turn)
        } else {
            hold(.nothing, lifetime: nil, &turn)
        }
    }

    /// A room asks for credentials; answered by ``BackendEvent/credentials(_:_:)``.
    package func credentialsWanted(_ room: RoomID, afterRefusal: Bool, _ turn: inout Turn) -> [BackendEvent] {
        if afterRefusal, let shown = issued[room] { refused(generation: shown, .link(room), &turn) }
        waitingRooms.removeAll { $0 == room }
        waitingRooms.append(room)
        start(&turn)
        answerRooms(&turn)
        arm(&turn)
        return takeEvents()
    }

    /// Ends a wait now.
    package func retryNow(_ turn: inout Turn) -> [BackendEvent] {
        switch state {
        case .waiting: renew(&turn)
        case .refused: readSecrets(&turn)
        default: break
        }
        arm(&turn)
        return takeEvents()
    }

    /// Other name and password than the refused ones may be there: they are looked for now.
    package func lookForSecrets(_ turn: inout Turn) -> [BackendEvent] {
        if case .refused = state { nextLookAt = turn.now.monotonic }
        arm(&turn)
        return takeEvents()
    }

    /// The backend accepted this room's credentials.
    package func accepted(by room: RoomID) {
        guard let shown = issued[room] else { return }
        if use[room]?.opened != shown { use[room] = RoomUse(opened: shown) }
        refusedRenewals = 0
        if shown == generation { proven() }
    }

    /// The backend closed a session of this room, with a code that may be about the login.
    package func evicted(_ room: RoomID, after usable: Duration) { use[room]?.evictedAfter = usable }

    /// The room is removed.
    package func remove(_ room: RoomID) {
        use[room] = nil
        issued[room] = nil
        failedRooms.remove(room)
        waitingRooms.removeAll { $0 == room }
    }

    /// The rooms that wait for credentials; they will wait elsewhere.
    func takeWaitingRooms() -> [RoomID] {
        defer { waitingRooms = [] }
        return waitingRooms
    }

    /// Whether the room's last request failed and nothing better followed; clears it.
    package func endWait(of room: RoomID) -> Bool { failedRooms.remove(room) != nil }

    /// Whether the room was given credentials.
    package func hasServed(_ room: RoomID) -> Bool { issued[room] != nil }

    /// The room was given the current credentials.
    package func reissued(to room: RoomID) { issued[room] = generation }

    func proven() {
        held?.isProven = true
        hasBeenTaken = true
    }

    /// Whether the held credentials can be used now.
    package func isUsable(now: MonotonicInstant) -> Bool {
        guard let held, !held.isRefused else { return false }
        switch state {
        case .holding: return true
        // The end of the old token has not come while the new one is awaited.
        case .waiting: return held.expiresAt.map { now < $0 } ?? true
        default: return false
        }
    }

    /// The use of the credentials that was refused.
    enum Refused: Equatable {
        case link(RoomID)
        case call
        case file
    }

    /// Credentials of `generation` were refused. True when they are being replaced, or have been.
    @discardableResult
    func refused(generation refused: Int, _ who: Refused, _ turn: inout Turn) -> Bool {
        guard refused == generation else { return true }
        switch state {
        case .recalling, .reading, .loggingIn, .refreshing, .saving: return true
        case .noTokens, .refused: return false
        case .waiting:
            held?.isRefused = true
            return false
        case .holding: break
        }
        guard let held else { return false }
        let sinceLast = refusalRenewedAt.map { turn.now.monotonic - $0 } ?? ReconnectPolicy.refusedDelay
        // Of a login that never worked: the tokens are not at fault, and each try could lock the account.
        let isDue =
            hasBeenTaken ? mayHaveExpired(for: who, sinceLast: sinceLast) : sinceLast >= ReconnectPolicy.refusedDelay
        if case .link(let room) = who { use[room]?.refusalSeen() }
        guard isDue else { return false }
        if held.isProven { noteEnd(of: held, &turn) }
        refusalRenewedAt = turn.now.monotonic
        refusedRenewals += 1
        self.held?.isRefused = true
        note(
            .info, "backend-token-refused", "the token was rejected; refreshing it",
            ["backend": settings.name])
        renew(&turn)
        return true
    }

    /// Credentials of `generation` were refused for a file.
    package func fileCredentialsRefused(generation: Int, _ turn: inout Turn) -> [BackendEvent] {
        refused(generation: generation, .file, &turn)
        arm(&turn)
        return takeEvents()
    }

    /// Whether a refusal can be about a token: of one that no longer opens sessions, or whose lifetime has ended. A
    /// room that was never let in, or was let in and then evicted, may have another reason: there the same token is
    /// used once more, which settles it.
    ///
    /// - Parameter sinceLast: time since a refusal led to a renewal.
    private func mayHaveExpired(for who: Refused, sinceLast: Duration) -> Bool {
        let isQuiet = sinceLast >= Self.doubtfulRenewalPause
        switch who {
        // A call is repeated to find out; see ``answered(_:_:_:)``.
        case .call: return true
        // Any client with a link to a file can ask for it, at any rate.
        case .file: return isQuiet
        case .link(let room):
            guard let known = use[room] else { return isQuiet }
            if known.opened == generation, known.evictedAfter != nil {
                // A token that let the room in for a while, and then for no time at all, has ended too.
                return known.hasServed && !known.lasted || isQuiet
            }
            guard refusedRenewals > 0 else { return true }
            // Half of a link's wait, so that one alone is never too early.
            let pause = Self.minRenewalBackoff * (1 << min(refusedRenewals - 1, 16))
            return sinceLast >= min(pause, ReconnectPolicy.refusedDelay)
        }
    }

    // MARK: - Lifetimes

    private var loginIsDescribed: Bool { settings.login?.calls != nil }

    /// Reports a lifetime in a unit that it is not in: seconds as milliseconds.
    private func noteLifetime(_ lifetime: Duration, _ turn: inout Turn) {
        guard lifetime < Self.shortestUsualLifetime else { return }
        reportLifetime(
            "tokens are said to hold for \(lifetime.wholeNanoseconds / 1_000_000) ms; if the backend counts seconds, "
                + (loginIsDescribed ? "write" : "describe the login with login_url and")
                + " expires_in_unit = \"s\"", &turn)
    }

    /// The reverse: a token that ends long before its time had its lifetime perhaps read a thousand times too long. The
    /// end is noticed at the next use of the token, which may be much later.
    private func noteEnd(of held: Held, _ turn: inout Turn) {
        let age = turn.now.monotonic - held.since
        guard let lifetime = held.lifetime, lifetime >= Self.longLifetime, age * 100 < lifetime else {
            return endedEarly = false
        }
        // Once may be chance: it may have been revoked.
        guard endedEarly else { return endedEarly = true }
        reportLifetime(
            "tokens are said to hold for \(PrintableText.spoken(seconds: Int(lifetime / .seconds(1)))) and end within "
                + "\(PrintableText.spoken(seconds: Int(age / .seconds(1)))); if the backend counts milliseconds, "
                + (loginIsDescribed ? "write" : "describe the login with login_url and")
                + " expires_in_unit = \"ms\"", &turn)
    }

    private func reportLifetime(_ sentence: String, _ turn: inout Turn) {
        guard !hasReportedLifetime else { return }
        hasReportedLifetime = true
        note(.warn, "backend-lifetime-odd", sentence, ["backend": settings.name])
    }

    // MARK: - Renewing

    private func renew(_ turn: inout Turn) {
        guard settings.login != nil else { return readSecrets(&turn) }
        guard let token = refreshToken, refreshFailures < Self.maxRefreshFailures,
            let request = loginCalls?.request(for: .refresh(token: token), context: Self.noRoom)
        else { return readSecrets(&turn) }
        state = .refreshing
        order(request, &turn)
    }

    private func readSecrets(_ turn: inout Turn) {
        state = .reading
        emit(.readSecrets)
    }

    private func order(_ request: BackendRequest, _ turn: inout Turn) {
        let call = nextCall()
        renewalCall = call
        renewalPlace = (try? HTTPURL(parsing: request.target))?.host ?? place
        emit(
            .call(
                call,
                BackendCallRequest(
                    backend: id, request: request, authorization: UpstreamCredentials(),
                    timeout: settings.limits.callTimeout, maxAnswerBytes: settings.limits.answerBytes)))
    }

    /// The stored tokens were read; nil where there are none.
    package func tokensRead(_ stored: StoredTokens?, _ turn: inout Turn) -> [BackendEvent] {
        guard state == .recalling else { return [] }
        guard let stored, stored.owner == settings.tokenOwner, !stored.access.isEmpty else {
            readSecrets(&turn)
            return takeEvents()
        }
        refreshToken = stored.refresh
        let left = stored.expiresAt.map {
            Duration.milliseconds($0.milliseconds &- turn.now.wall.milliseconds)
        }
        if let left, left <= settings.login?.refreshBefore ?? .zero {
            renew(&turn)
        } else {
            hold(.tokens(BackendTokens(access: stored.access, refresh: stored.refresh)), lifetime: left, &turn)
        }
        arm(&turn)
        return takeEvents()
    }

    package func secretsRead(
        _ outcome: Result<BackendSecrets, UpstreamCredentialsFailure>, _ turn: inout Turn
    ) -> [BackendEvent] {
        defer { arm(&turn) }
        let isDue: Bool
        switch state {
        case .reading: isDue = true
        case .refused: isDue = false
        default: return []
        }
        switch outcome {
        case .failure(let failure):
            if isDue { beRefused(failure.sentence, nil, &turn) }
        case .success(.fixed(let credentials)):
            secrets = .fixed(credentials)
            if isDue || refusedSecrets != secrets { hold(.fixed(credentials), lifetime: nil, &turn) }
        case .success(.login(let user, let password)):
            let fresh = BackendSecrets.login(user: user, password: password)
            // Refused secrets wait for their time, also when a room or a token caused the reading.
            if !isDue, fresh == refusedSecrets { return [] }
            secrets = fresh
            guard let request = loginCalls?.request(for: .logIn(user: user, password: password), context: Self.noRoom)
            else {
                beRefused("nothing says how to log in there", fresh, &turn)
                break
            }
            state = .loggingIn
            note(
                .debug, "backend-login", "logging in", ["backend": settings.name])
            order(request, &turn)
        }
        return takeEvents()
    }

    /// An answer to the login or refresh call. False when `call` is none of these.
    func renewalAnswered(
        _ call: BackendCallID, _ outcome: Result<BackendCallResponse, BackendCallFailure>, _ turn: inout Turn
    ) -> Bool {
        guard call == renewalCall else { return false }
        renewalCall = nil
        switch (state, outcome) {
        case (.loggingIn, .success(let answered)), (.refreshing, .success(let answered)):
            renewalAnswered(answered, isLogin: state == .loggingIn, &turn)
        case (.loggingIn, .failure(let failure)), (.refreshing, .failure(let failure)):
            renewalFailed(failure.sentence, retryAfter: nil, &turn)
        default: break
        }
        return true
    }

    private func renewalAnswered(_ answered: BackendCallResponse, isLogin: Bool, _ turn: inout Turn) {
        let answer = answered.answer
        let what = isLogin ? "the login" : "the token's renewal"
        let place = renewalPlace ?? place
        if (200..<300).contains(answer.status) {
            let call = isLogin ? BackendCall.logIn(user: "", password: "") : .refresh(token: "")
            let reply = loginCalls?.reply(to: call, answer: answer, context: Self.noRoom)
            if case .tokens(let tokens)? = reply, !tokens.access.isEmpty { return adopt(tokens, &turn) }
            // A used token is no good for a second try.
            if !isLogin { refreshToken = nil }
            return renewalFailed("\(what) at \(place) was answered without a token", retryAfter: nil, &turn)
        }
        let why = sentence(what, answer, at: place)
        if Self.isTransient(answer.status) {
            renewalFailed(why, retryAfter: answered.retryAfter, &turn)
        } else if isLogin {
            beRefused(why, secrets, &turn)
        } else {
            refreshToken = nil
            note(
                .info, "backend-refresh-refused", "the refresh token is no longer good; logging in",
                ["backend": settings.name, "reason": why])
            readSecrets(&turn)
        }
    }

    /// Statuses about the moment, not about the request.
    static func isTransient(_ status: Int) -> Bool { status >= 500 || [408, 425, 429].contains(status) }

    package var place: String { settings.httpBase?.host ?? settings.name }

    /// The text of an answer with a status other than 2xx, with the secrets replaced.
    ///
    /// - Parameter at: the server that answered; nil: ``place``.
    package func sentence(_ what: String, _ answer: BackendAnswer, at server: String? = nil) -> String {
        var complaint = (loginCalls ?? settings.dialect.calls)?.complaint(answer) ?? ""
        if complaint.isEmpty, let calls = settings.dialect.calls { complaint = calls.complaint(answer) ?? "" }
        let text = SecretScrubber.printable(complaint, of: knownSecrets, shortest: Self.shortestSecret)
        return "\(what) at \(server ?? place) was answered \(answer.status)" + (text.isEmpty ? "" : " (\(text))")
    }

    package func scrubbed(_ text: String) -> String {
        SecretScrubber.scrubbed(text, of: knownSecrets, shortest: Self.shortestSecret)
    }

    /// A very short one would match by chance. In bytes.
    private static let shortestSecret = 4

    private var knownSecrets: [String] {
        var known = knownTokens
        if case .login(_, let password)? = secrets { known.append(password) }
        if case .fixed(let credentials)? = held?.shown { known += credentials.secrets }
        return known
    }

    /// The same without passwords.
    package var knownTokens: [String] {
        var known: [String] = []
        if let refreshToken { known.append(refreshToken) }
        if case .tokens(let tokens)? = held?.shown { known.append(tokens.access) }
        if case .fixed(let credentials)? = held?.shown { known += credentials.tokens }
        return known
    }

    private func adopt(_ fresh: BackendTokens, _ turn: inout Turn) {
        var tokens = fresh
        // Where refresh tokens serve again and again, the answer has none.
        if tokens.refresh == nil, state == .refreshing { tokens.refresh = refreshToken }
        refreshToken = tokens.refresh
        let wall = turn.now.wall.milliseconds
        let lifetime = tokens.lifetime(wallMilliseconds: wall).flatMap { $0 > 0 ? $0 : nil }
        tokens.lifetimeMilliseconds = lifetime
        if let lifetime { noteLifetime(.milliseconds(lifetime), &turn) }
        fetched = (tokens, turn.now.monotonic)
        state = .saving
        let end = lifetime.flatMap { wall.addingReportingOverflow($0).overflow ? nil : wall + $0 }
        emit(
            .saveTokens(
                StoredTokens(
                    access: tokens.access, refresh: tokens.refresh,
                    expiresAt: end.map { ChatTimestamp(milliseconds: $0) }, owner: settings.tokenOwner)))
    }

    /// Tokens that are not persisted yet, and when they came.
    private var fetched: (tokens: BackendTokens, at: MonotonicInstant)?

    package func tokensSaved(
        _ outcome: Result<Void, UpstreamCredentialsFailure>, _ turn: inout Turn
    ) -> [BackendEvent] {
        guard state == .saving, let (tokens, at) = fetched else { return [] }
        fetched = nil
        if case .failure(let failure) = outcome, !hasReportedSaveTrouble {
            hasReportedSaveTrouble = true
            note(
                .warn, "backend-tokens-not-kept", "cannot store the tokens; the next start logs in again",
                ["backend": settings.name, "reason": failure.sentence])
        }
        let spent = turn.now.monotonic - at
        hold(.tokens(tokens), lifetime: tokens.lifetimeMilliseconds.map { .milliseconds($0) - spent }, &turn)
        note(
            .debug, "backend-tokens-renewed", "there are new tokens", ["backend": settings.name])
        arm(&turn)
        return takeEvents()
    }

    private func hold(_ shown: Shown, lifetime: Duration?, _ turn: inout Turn) {
        if case .fixed(let fresh) = shown, case .fixed(let old)? = held?.shown, fresh == old {
            // Read again and found the same.
            state = .holding
            held?.isRefused = false
        } else {
            let now = turn.now.monotonic
            generation += 1
            var fresh = Held(shown: shown, since: now, lifetime: lifetime)
            if let lifetime, lifetime <= Self.longestHold {
                fresh.expiresAt = now + max(lifetime, .zero)
                let ahead = lifetime - (settings.login?.refreshBefore ?? .zero)
                fresh.renewAt = now + max(ahead, lifetime / 2, Self.shortestHold)
            }
            held = fresh
            state = .holding
            events.append(.renewed)
        }
        failures = 0
        refreshFailures = 0
        trouble = nil
        refusedSecrets = nil
        nextLookAt = nil
        answerRooms(&turn)
        pump(&turn)
    }

    // MARK: - Trouble

    private func renewalFailed(_ why: String, retryAfter: Duration?, _ turn: inout Turn) {
        if state == .refreshing { refreshFailures += 1 }
        failures += 1
        trouble = why
        let delay = turn.draw { policy.delay(failures: failures, retryAfter: retryAfter, random: &$0) }
        state = .waiting(until: turn.now.monotonic + delay)
        note(
            .warn, "backend-login-failed", why,
            [
                "backend": settings.name, "failures": String(failures),
                "retry-in": String(delay.wholeNanoseconds / 1_000_000) + "ms",
            ])
        answerRooms(&turn)
        pump(&turn)
    }

    private func beRefused(_ why: String, _ secrets: BackendSecrets?, _ turn: inout Turn) {
        refusedSecrets = secrets
        trouble = why
        let now = turn.now.monotonic
        state = .refused(until: now + ReconnectPolicy.refusedDelay)
        nextLookAt = now + Self.secretsCheckInterval
        note(
            .error, "backend-login-refused", "\(why); the next try is in 15 min, or when the secrets change",
            ["backend": settings.name])
        answerRooms(&turn)
        failCalls(BackendCallFailure(sentence: why, status: 401), &turn)
    }

    /// Answers the rooms that wait, if the outcome is known.
    private func answerRooms(_ turn: inout Turn) {
        let outcome: Result<UpstreamCredentials, UpstreamCredentialsFailure>
        switch state {
        case _ where isUsable(now: turn.now.monotonic): outcome = .success(credentials)
        case .waiting: outcome = .failure(UpstreamCredentialsFailure(trouble ?? "there is no token yet"))
        case .refused:
            outcome = .failure(UpstreamCredentialsFailure(trouble ?? "the login is refused", isRefusal: true))
        // Refused credentials without a replacement yet: the backend refuses again, and the room waits.
        case .holding: outcome = .success(credentials)
        default: return
        }
        for room in waitingRooms {
            if case .success = outcome {
                issued[room] = generation
                failedRooms.remove(room)
            } else {
                failedRooms.insert(room)
            }
            events.append(.credentials(room, outcome))
        }
        waitingRooms = []
    }

    // MARK: - Credentials

    /// For a room's socket.
    package var credentials: UpstreamCredentials {
        switch held?.shown {
        case nil, .nothing: return UpstreamCredentials()
        case .fixed(let credentials): return credentials
        case .tokens(let tokens):
            switch settings.login?.sendAs ?? .bearer {
            case .header(let name, let format):
                let value = format.replacing("{token}", with: tokens.access)
                return UpstreamCredentials(headers: [.init(name: name, value: value)])
            case .query(let name): return UpstreamCredentials(query: [.init(name: name, value: tokens.access)])
            case .message: return UpstreamCredentials(socket: .accessToken(tokens.access))
            }
        }
    }

    /// For a call.
    package var authorization: UpstreamCredentials {
        func bearer(_ token: String) -> UpstreamCredentials {
            UpstreamCredentials(headers: [.init(name: "Authorization", value: "Bearer " + token)])
        }
        switch held?.shown {
        case nil, .nothing: return UpstreamCredentials()
        case .fixed(let credentials):
            if case .accessToken(let token)? = credentials.socket { return bearer(token) }
            return UpstreamCredentials(headers: credentials.headers, query: credentials.query)
        case .tokens(let tokens):
            if case .header? = settings.login?.sendAs { return credentials }
            return bearer(tokens.access)
        }
    }

    /// When the token in use ends; nil: not known, or never.
    package var expiresAt: MonotonicInstant? { held?.expiresAt }

    // MARK: - Identity

    /// The account's identity, where the backend has named it.
    package var person: ChatPerson? { if case .known(let person) = identification { person } else { nil } }

    /// The question for the identity is in flight.
    package var isIdentifying: Bool { identification == .asked }

    /// Asks the backend for the account's identity, unless it is known, or the question is in flight.
    package func identify(_ turn: inout Turn) -> [BackendEvent] {
        guard settings.authenticates, !settings.isOnDemand, offers(.whoAmI) else { return takeEvents() }
        switch identification {
        case .asked, .known: return takeEvents()
        case .unknown, .waiting: break
        }
        identification = .asked
        return submit(.whoAmI, .whoAmI, dialectContext: Self.noRoom, &turn)
    }

    /// The backend named the account's identity.
    package func identified(as person: ChatPerson) { identification = .known(person) }

    package func identificationFailed(_ turn: inout Turn) {
        guard case .asked = identification else { return }
        var pause = Self.identificationPause
        for _ in 0..<min(identificationFailures, 10) where pause < Self.longestIdentificationPause { pause *= 2 }
        identificationFailures += 1
        identification = .waiting(until: turn.now.monotonic + min(pause, Self.longestIdentificationPause))
        arm(&turn)
    }

    // MARK: - Time

    package func timerFired(_ turn: inout Turn) -> [BackendEvent] {
        let now = turn.now.monotonic
        if case .waiting(let until) = identification, now >= until { events = identify(&turn) }
        switch state {
        case .holding:
            if let due = held?.renewAt, now >= due {
                held?.renewAt = nil
                renew(&turn)
            }
        case .waiting(let until):
            if now >= until { renew(&turn) }
        case .refused(let until):
            if now >= until {
                readSecrets(&turn)
            } else if let due = nextLookAt, now >= due {
                nextLookAt = now + Self.secretsCheckInterval
                emit(.readSecrets)
            }
        case .noTokens, .recalling, .reading, .loggingIn, .refreshing, .saving: break
        }
        callTimerFired(&turn)
        arm(&turn)
        return takeEvents()
    }

    /// Sets the one timer to the next deadline.
    func arm(_ turn: inout Turn) {
        var due: [MonotonicInstant?] = [callsDue(now: turn.now.monotonic)]
        if case .waiting(let until) = identification { due.append(until) }
        switch state {
        case .holding: due.append(held?.renewAt)
        case .waiting(let until): due.append(until)
        case .refused(let until): due += [until, nextLookAt]
        case .noTokens, .recalling, .reading, .loggingIn, .refreshing, .saving: break
        }
        if let next = due.compactMap(\.self).min() {
            turn.set(.backend(id), at: next)
        } else {
            turn.cancel(.backend(id))
        }
    }
}
