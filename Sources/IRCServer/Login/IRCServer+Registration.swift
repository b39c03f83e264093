import Accounts
import BridgeTypes
import ChatModel
import Digests
import IRCProtocol
import Identities
import Rooms
import Upstream
import WireBytes

// Account registration: REGISTER, and VERIFY, which is never needed here. The state machine is AccountRegistrations.
//
// Lines sent while an account is registered wait, so that answers are in the order of the lines.
//
// Source: IRCv3 account-registration.

extension IRCServer {
    // MARK: - Commands

    func registerAccount(_ wanted: String, email: String, password: String, _ session: IRCSession) {
        guard settings.registration == .everybody || settings.registration == .local && session.origin.isListenerLocal,
            context.isDurable, session.origin.allowsLogin
        else { return unknownCommand("REGISTER", session) }
        let shown = PrintableText.of(wanted, maxBytes: 64)
        guard mayRegisterNow(session) else { return registrationIsEarly("REGISTER", shown, session) }
        func refuse(_ code: String, _ text: String, of name: String? = nil) {
            refuseRegistration("REGISTER", code, name ?? shown, text, session)
        }
        if let account = session.account {
            return refuse("ALREADY_AUTHENTICATED", "You are logged in as \(account.name)", of: account.name)
        }
        // A refused nick counts as chosen too; the answer is that it is taken.
        guard let nick = session.nick ?? session.refusedNick else {
            return refuse("NEED_NICK", "Choose a nick first", of: "*")
        }
        let name = wanted == "*" ? nick : wanted
        func refuse(_ refusal: RegistrationRefusal, of name: String) {
            let (code, text) = Self.sentence(refusal)
            refuse(code, text, of: name)
        }
        if let refusal = registrations.refusal(of: name, holder: session.person) {
            return refuse(refusal, of: wanted == "*" ? nick : shown)
        }
        guard email == "*" else {
            return refuse("INVALID_EMAIL", "This server sends no mail: give * instead", of: name)
        }
        if let refusal = AccountRegistrations.refusal(ofPassword: password, for: name) {
            return refuse(refusal, of: name)
        }
        func later(_ why: String) { refuse("TEMPORARILY_UNAVAILABLE", why, of: name) }
        guard !logins.isBusy(with: session.id), !session.sasl.isUnderway else {
            return later("Finish logging in first")
        }
        // While writes are missing on disk, an earlier account of that name may be purged only in part.
        makeUpForLosses()
        guard context.ledger.condition == .sound, unkept.isEmpty else {
            return later("Accounts cannot be stored at the moment")
        }
        let address = session.origin.isLocal ? nil : session.origin.address
        if let refusal = registrations.takeSlot(from: address, now: context.now.monotonic) {
            return refuse(refusal, of: name)
        }
        begin(name, password, session)
    }

    /// Registrations need no verification here, so every code is wrong.
    func verifyAccount(_ wanted: String, _ session: IRCSession) {
        guard offersRegistration(to: session.origin) else { return unknownCommand("VERIFY", session) }
        let shown = PrintableText.of(wanted, maxBytes: 64)
        guard mayRegisterNow(session) else { return registrationIsEarly("VERIFY", shown, session) }
        if let account = session.account {
            return refuseRegistration(
                "VERIFY", "ALREADY_AUTHENTICATED", shown, "You are logged in as \(account.name)", session)
        }
        refuseRegistration("VERIFY", "INVALID_CODE", shown, "No account here waits to be confirmed", session)
    }

    /// Includes the account, which the draft omits and servers send: clients read the last parameter.
    private func registrationIsEarly(_ verb: String, _ name: String, _ session: IRCSession) {
        refuseRegistration(verb, "COMPLETE_CONNECTION_REQUIRED", name, "Connect first", session)
    }

    private func refuseRegistration(
        _ verb: String, _ code: String, _ name: String, _ text: String, _ session: IRCSession
    ) {
        reply(serverLine("FAIL", [verb, code, name.isEmpty ? "*" : name, text]), session)
    }

    private func mayRegisterNow(_ session: IRCSession) -> Bool {
        session.person != nil || session.isAdmitted || offers.registersBeforeConnect
    }

    private static func sentence(_ refusal: RegistrationRefusal) -> (code: String, text: String) {
        switch refusal {
        case .badName: ("BAD_ACCOUNT_NAME", "An account is named like a nick, and this can be none")
        case .exists: ("ACCOUNT_EXISTS", "There is an account of that name")
        case .inUse: ("ACCOUNT_EXISTS", "Somebody here is called that")
        case .lookAlike: ("BAD_ACCOUNT_NAME", "That looks like the name of somebody else")
        case .shortPassword:
            ("WEAK_PASSWORD", "A password has at least \(AccountRegistrations.minPasswordBytes) characters")
        case .passwordIsName: ("WEAK_PASSWORD", "A password is not the account's name")
        case .full: ("TEMPORARILY_UNAVAILABLE", "There are too many accounts already")
        case .tooManyHere:
            ("TEMPORARILY_UNAVAILABLE", "Too many accounts were made from your address; try again in an hour")
        }
    }

    // MARK: - Execution

    private func begin(_ name: String, _ password: String, _ session: IRCSession) {
        let hashing = context.withTurn {
            registrations.begin(
                name, SecretBytes(password.utf8), session.id, iterations: settings.passwordIterations, &$0)
        }
        session.registration = RegistrationTry(name: registrations.key(of: name), label: session.response?.label)
        // The label is for the later answer; until then lines for other clients are not part of the response.
        session.deferResponse()
        context.set(.registration(session.id), at: context.now.monotonic + AccountRegistrations.timeout)
        emit(.hashPassword(hashing))
    }

    /// The result of a `.hashPassword`; nil: rejected, too many were pending.
    package func passwordHashed(_ id: ClientID, attempt: UInt64, _ verifier: SCRAMVerifier?) {
        guard let key = registrations.pendingName(attempt: attempt) else { return }
        guard sessions[id] != nil else { return giveUp(key, nil) }
        guard let verifier else { return giveUp(key, "Too many people log in at this moment; try again") }
        makeUpForLosses()
        guard context.ledger.condition == .sound, unkept.isEmpty else {
            return giveUp(key, "Accounts cannot be stored at the moment")
        }
        guard let account = registrations.finishHashing(key, verifier, under: context.ledger.next, at: context.now.wall)
        else { return }
        context.keep(.account(account))
        _ = purge(account.name, as: context.freshChatID())
    }

    /// Completes the registrations whose accounts are on disk.
    package func registrationsSettled() {
        guard registrations.count > 0 else { return }
        var hadAccounts = !accounts.isEmpty
        for (client, account) in registrations.takeSettled({ context.ledger.isSettled($0) }) {
            made(account, client)
            if !hadAccounts { offersChanged() }
            hadAccounts = true
        }
    }

    /// Cancels registrations whose write did not fit the store's queue.
    package func registrationsLost(_ ticket: StoreTicket) {
        for key in registrations.markLost(ticket) { giveUp(key, "The write queue is full; try again") }
    }

    /// Cancels all registrations: the store cannot be written.
    package func registrationsFailed() {
        for key in registrations.inOrder { giveUp(key, "Accounts cannot be stored at the moment") }
    }

    package func registrationTimedOut(_ id: ClientID) {
        guard let key = sessions[id]?.registration?.name else { return }
        giveUp(key, "This takes too long; try again later")
    }

    private func made(_ account: AccountSettings, _ client: ClientID) {
        let session = sessions[client]
        note(.info, "account-made", "somebody made an account", of: session, ["account": account.name])
        guard let session else { return }
        answerRegistration(session) {
            reply(serverLine("REGISTER", ["SUCCESS", account.name, "Account created"]), session)
            loggedIn(session, Login(.newAccount, account))
        }
    }

    /// Cancels a registration.
    ///
    /// - Parameter why: the reason for the client, if it is connected; nil: no reply.
    private func giveUp(_ key: String, _ why: String?) {
        guard let (client, name, isWritten) = registrations.cancel(key) else { return }
        if isWritten { context.keep(.removeAccount(name: name)) }
        guard let session = sessions[client], let why else { return }
        answerRegistration(session) {
            refuseRegistration("REGISTER", "TEMPORARILY_UNAVAILABLE", name, why, session)
        }
    }

    /// Sends the outcome, and resumes the client's input.
    private func answerRegistration(_ session: IRCSession, _ body: () -> Void) {
        let label = session.registration?.label
        session.registration = nil
        context.cancel(.registration(session.id))
        if let label { session.response = IRCSession.LabeledResponse(label: label) }
        body()
        outbound.finishResponse(session)
        goOnRegistering(session)
        goOn(session)
    }

    // MARK: - Restart

    /// Restores the accounts of earlier processes.
    package func restoreAccounts(_ stored: [StoredAccount]) {
        for trouble in registrations.restore(stored) {
            switch trouble {
            case .unreadable(let name):
                context.note(
                    .error, "account-unreadable", "an account cannot log in: its stored password is no hash",
                    ["account": name])
            case .shadowed(let name):
                context.note(
                    .warn, "account-shadowed",
                    "a registered account has the name of another one, which counts; its data stays in the store",
                    ["account": name])
            }
        }
    }

    // MARK: - Reuse of an account name

    // A new account under the name of an earlier one inherits no data.
    //
    // | data of the earlier account                                | handling                                         |
    // |------------------------------------------------------------|--------------------------------------------------|
    // | preferences, private conversations, memberships            | purged                                           |
    // | delivery cursors, and with them the right to read a room's | purged in all rooms, open or not                 |
    // | history without entering it                                |                                                  |
    // | read markers of rooms and of conversations                 | purged                                           |
    // | its record of reported receipts                            | purged                                           |
    // | accepted messages without a confirmation                   | sent all the same; their outcome is not reported |
    // | failures that were not reported                            | not reported                                     |
    // | older messages                                             | unchanged; the new account cannot take them back |
    //
    // An IRC user's upstream id is derived from the account's name as spelled, so messages and markers are found by
    // that id; all other data is stored under the folded name.

    /// Purges an account's data. The purge and a new account are one write to the store, so that an account never has
    /// another's data.
    ///
    /// - Parameter nobody: the author of its messages from now on.
    /// - Returns: how much there was, without messages.
    func purge(_ account: String, as nobody: ChatID) -> StoredErasure {
        var purged = StoredErasure()
        if let chosen = choices.reset(account: AccountName.fold(account)) {
            context.keep(.choices(chosen))
            purged.records += 1
        }
        purged.conversations += forgetConversations(of: account)
        let left = memberships.reset(account: account)
        for change in left { context.keep(change) }
        let dropped = cursors.drop(account: account)
        for (client, room) in dropped {
            context.keep(.dropCursor(account: client.account, client: client.client, room))
        }
        purged.records += left.count + dropped.count
        purgeAuthors(account, as: nobody)
        return purged
    }

    private func purgeAuthors(_ account: String, as nobody: ChatID) {
        // Private read markers belong to a backend without a name.
        for backend in keptBackends.union([""]).sorted() {
            let author = context.identities.puppetID(account: account, backend: backend)
            context.keep(.removeAuthor(author, as: nobody))
            privateMessages.forgetMarkers(of: author)
            for room in rooms where room.settings.backend == backend {
                room.forget(author: author, as: nobody, context)
            }
        }
    }
}
