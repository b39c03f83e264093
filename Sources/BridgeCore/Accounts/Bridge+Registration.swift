import ChatModel
public import Digests
import IRCProtocol
import WireBytes

// Making an account: REGISTER, and VERIFY, which has nothing to do here.
//
// | state      | meaning                                  | leaves by                                              |
// |------------|------------------------------------------|---------------------------------------------------------|
// | hashing    | the password is being hashed             | hash → keeping; no thread, client gone, 30 s → given up  |
// | keeping    | the store was told                       | on disk → made; refused, failing, 30 s → given up        |
//
// From the beginning on the name is nobody else's. The client hears of success when the account is on disk, and what it
// sends meanwhile waits, so that the order of answers is that of the lines. What was given up when the store knew of it
// already is taken back there.
//
// Source: IRCv3 account-registration.

/// An account that is being made.
struct AccountRegistration {
    var client: ClientID
    var name: String
    /// Names the hashing.
    var attempt: UInt64
    /// Of the line that asked for it.
    var label: String?
    /// The order that keeps it; nil: the password is still being hashed.
    var kept: (ticket: StoreTicket, account: AccountSettings)?
}

extension Bridge {
    /// Bytes of a password that is not too easily guessed. Source: NIST SP 800-63B §5.1.1.1.
    static let minPasswordBytes = 8
    /// Longest wait for an account: hashing takes a second, more when many wait, and a disk that stalls is not to hold up a
    /// client for longer than it waits for other answers.
    static let registrationWait: Duration = .seconds(30)

    // MARK: - What clients ask

    func registerAccount(_ wanted: String, email: String, password: String, _ session: IRCSession) {
        guard settings.registration == .everybody || settings.registration == .local && session.origin.isListenerLocal,
            context.isDurable, session.origin.allowsLogin
        else { return unknownCommand("REGISTER", session) }
        let shown = NickMaker.prefix(of: UpstreamSession.printable(wanted), maxBytes: 64)
        guard mayRegisterNow(session) else { return registrationIsEarly("REGISTER", shown, session) }
        func refuse(_ code: String, _ text: String, of name: String? = nil) {
            refuseRegistration("REGISTER", code, name ?? shown, text, session)
        }
        if let account = session.account {
            return refuse("ALREADY_AUTHENTICATED", "You are logged in as \(account.name)", of: account.name)
        }
        // A nick that was refused is a wish all the same, and the answer is that somebody has it.
        guard let nick = session.nick ?? session.refusedNick else {
            return refuse("NEED_NICK", "Choose a nick first", of: "*")
        }
        let name = wanted == "*" ? nick : wanted
        if let (code, text) = complaint(name: name, session) {
            return refuse(code, text, of: wanted == "*" ? nick : shown)
        }
        guard email == "*" else {
            return refuse("INVALID_EMAIL", "This server sends no mail: give * instead", of: name)
        }
        if let (code, text) = Self.complaint(password: password, of: name) { return refuse(code, text, of: name) }
        func later(_ why: String) { refuse("TEMPORARILY_UNAVAILABLE", why, of: name) }
        guard session.passwordTry == nil, !session.sasl.isUnderway else { return later("Finish logging in first") }
        // While something is missing on disk, an earlier account of that name may be forgotten only in part.
        makeUpForLosses()
        guard context.ledger.condition == .sound, context.unkept.isEmpty else {
            return later("Accounts cannot be kept at the moment")
        }
        guard accounts.hasRoom(for: registrations.count + 1) else {
            return later("There are too many accounts already")
        }
        guard session.origin.isLocal || registrationThrottle.take(session.origin.address, now: context.now.monotonic)
        else { return later("Too many accounts were made from your address; try again in an hour") }
        begin(name, password, session)
    }

    /// Nothing that is made here has to be confirmed, so no code is right.
    func verifyAccount(_ wanted: String, _ session: IRCSession) {
        guard offersRegistration(to: session.origin) else { return unknownCommand("VERIFY", session) }
        let shown = NickMaker.prefix(of: UpstreamSession.printable(wanted), maxBytes: 64)
        guard mayRegisterNow(session) else { return registrationIsEarly("VERIFY", shown, session) }
        if let account = session.account {
            return refuseRegistration(
                "VERIFY", "ALREADY_AUTHENTICATED", shown, "You are logged in as \(account.name)", session)
        }
        refuseRegistration("VERIFY", "INVALID_CODE", shown, "No account here waits to be confirmed", session)
    }

    /// With the account, which the draft leaves out and servers send: clients read the last parameter.
    private func registrationIsEarly(_ verb: String, _ name: String, _ session: IRCSession) {
        refuseRegistration(verb, "COMPLETE_CONNECTION_REQUIRED", name, "Connect first", session)
    }

    private func refuseRegistration(
        _ verb: String, _ code: String, _ name: String, _ text: String, _ session: IRCSession
    ) {
        reply(
            IRCMessage(
                source: settings.serverName, command: "FAIL",
                params: [verb, code, name.isEmpty ? "*" : name, text]), session)
    }

    private func mayRegisterNow(_ session: IRCSession) -> Bool {
        session.person != nil || session.isAdmitted || registersBeforeConnect
    }

    private func complaint(name: String, _ session: IRCSession) -> (code: String, text: String)? {
        switch context.identities.refusal(nick: name, holder: session.person) {
        case nil: return nil
        case .erroneous: return ("BAD_ACCOUNT_NAME", "An account is named like a nick, and this can be none")
        case .inUse:
            if accounts[name] != nil || registrations[AccountBook.fold(name)] != nil {
                return ("ACCOUNT_EXISTS", "There is an account of that name")
            }
            // Nobody's name is made an account of by somebody else.
            if context.identities.person(nick: name) != nil {
                return ("ACCOUNT_EXISTS", "Somebody here is called that")
            }
            return ("BAD_ACCOUNT_NAME", "That looks like the name of somebody else")
        }
    }

    private static func complaint(password: String, of name: String) -> (code: String, text: String)? {
        if password.utf8.count < minPasswordBytes {
            return ("WEAK_PASSWORD", "A password has at least \(minPasswordBytes) characters")
        }
        if AccountBook.fold(password) == AccountBook.fold(name) {
            return ("WEAK_PASSWORD", "A password is not the account's name")
        }
        return nil
    }

    // MARK: - Making it

    private func begin(_ name: String, _ password: String, _ session: IRCSession) {
        let key = AccountBook.fold(name)
        lastAttempt &+= 1
        registrations[key] = AccountRegistration(
            client: session.id, name: name, attempt: lastAttempt, label: session.response?.label)
        // The label goes on the answer, which comes later; until then lines for others are not part of it.
        session.response?.isDeferred = true
        session.registration = key
        context.identities.reserve(account: name)
        context.timers.set(.accountAnswer(session.id), at: context.now.monotonic + Self.registrationWait)
        context.emit(
            .hashPassword(
                PasswordHashing(
                    client: session.id, attempt: lastAttempt, password: SecretBytes(password.utf8),
                    salt: context.randomBytes(SCRAMVerifier.saltByteCount), iterations: settings.passwordIterations)))
    }

    /// The answer to a `.hashPassword`; nil: it was never made, too many wait already.
    public func passwordHashed(_ id: ClientID, attempt: UInt64, _ verifier: SCRAMVerifier?, now: Now) {
        context.now = now
        guard let (key, making) = registrations.first(where: { $0.value.attempt == attempt }), making.kept == nil
        else { return }
        guard sessions[id] != nil else { return giveUp(key, nil) }
        guard let verifier else { return giveUp(key, "Too many people log in at this moment; try again") }
        makeUpForLosses()
        guard context.ledger.condition == .sound, context.unkept.isEmpty else {
            return giveUp(key, "Accounts cannot be kept at the moment")
        }
        let account = AccountSettings(name: making.name, password: verifier)
        registrations[key]?.kept = (context.ledger.next, account)
        context.keep(
            .account(StoredAccount(name: making.name, password: verifier.description, madeAt: context.now.wall)))
        forgetEarlier(making.name)
    }

    /// Orders are on disk: accounts among them are made.
    func registrationsSettled() {
        guard !registrations.isEmpty else { return }
        let ready = registrations.filter { $0.value.kept.map { context.ledger.isSettled($0.ticket) } ?? false }
        for (key, making) in ready.sorted(by: { $0.value.attempt < $1.value.attempt }) {
            registrations[key] = nil
            if let account = making.kept?.account { made(account, making) }
        }
    }

    /// An order found no room.
    func registrationsLost(_ ticket: StoreTicket) {
        for (key, making) in registrations where making.kept?.ticket == ticket {
            registrations[key]?.kept = nil
            giveUp(key, "Too much waits for the disk; try again")
        }
    }

    /// Nothing can be kept at the moment.
    func registrationsFailed() {
        for (key, _) in registrations.sorted(by: { $0.value.attempt < $1.value.attempt }) {
            giveUp(key, "Accounts cannot be kept at the moment")
        }
    }

    func registrationTimedOut(_ id: ClientID) {
        guard let key = sessions[id]?.registration else { return }
        giveUp(key, "This takes too long; try again later")
    }

    private func made(_ account: AccountSettings, _ making: AccountRegistration) {
        let hadAccounts = !accounts.isEmpty
        guard accounts.addMade(account) else { return }
        let session = sessions[making.client]
        context.note(
            .info, "account-made", "somebody made an account",
            ["account": account.name, "address": session?.origin.address ?? ""])
        if let session {
            answer(making, session) {
                reply(
                    IRCMessage(
                        source: settings.serverName, command: "REGISTER",
                        params: ["SUCCESS", account.name, "Account created"]), session)
                loggedIn(session, PasswordTry(attempt: 0, purpose: .newAccount, account: account))
            }
        }
        if !hadAccounts { offersChanged() }
    }

    /// - Parameter why: what the client is told, if it is there; nil: nothing.
    private func giveUp(_ key: String, _ why: String?) {
        guard let making = registrations.removeValue(forKey: key) else { return }
        context.identities.release(account: making.name)
        if making.kept != nil { context.keep(.forgetAccount(name: making.name)) }
        guard let session = sessions[making.client], let why else { return }
        answer(making, session) {
            refuseRegistration("REGISTER", "TEMPORARILY_UNAVAILABLE", making.name, why, session)
        }
    }

    /// Tells the client how it ended, and goes on with what it sent meanwhile.
    private func answer(_ making: AccountRegistration, _ session: IRCSession, _ body: () -> Void) {
        session.registration = nil
        context.timers.cancel(.accountAnswer(session.id))
        if let label = making.label { session.response = IRCSession.LabeledResponse(label: label) }
        body()
        finishResponse(session)
        goOnRegistering(session)
        pullLongAnswers(session)
        processInput(session)
    }

    // MARK: - From before

    /// Enters what an earlier process kept.
    func restoreAccounts(_ stored: [StoredAccount]) {
        for kept in stored {
            guard let verifier = try? SCRAMVerifier(parsing: kept.password) else {
                context.note(
                    .error, "account-unreadable", "an account is not let in: what is kept of its password is no hash",
                    ["account": kept.name])
                continue
            }
            guard accounts.addMade(AccountSettings(name: kept.name, password: verifier)) else {
                context.note(
                    .warn, "account-shadowed",
                    "an account that somebody made has the name of a configured one, which counts",
                    ["account": kept.name])
                continue
            }
            context.identities.reserve(account: kept.name)
            context.accountsMadeAt[kept.name] = kept.madeAt
        }
    }
}
