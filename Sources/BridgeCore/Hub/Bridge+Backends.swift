import Accounts
public import BridgeTypes
import ChatModel
import Dialects
import IRCServer
import Rooms
public import Upstream
import WireBytes

// Between rooms and backend accounts: requests one way, results the other.

extension Bridge {
    private func rooms(of account: BackendAccount) -> [Room] {
        rooms.filter { $0.settings.backend == account.settings.name }
    }

    // MARK: - The driver's side

    /// The stored tokens of a backend; nil: none, or unreadable.
    public func tokensRead(_ backend: BackendID, _ tokens: StoredTokens?, now: Now) {
        context.now = now
        guard let account = backends[backend] else { return }
        settle(account) { $0.tokensRead(tokens, &$1) }
    }

    /// The tokens were saved, or saving failed; they are used in both cases.
    public func tokensSaved(_ backend: BackendID, _ outcome: Result<Void, UpstreamCredentialsFailure>, now: Now) {
        context.now = now
        guard let account = backends[backend] else { return }
        settle(account) { $0.tokensSaved(outcome, &$1) }
    }

    /// The secrets of a backend account were read, or reading failed.
    public func secretsRead(
        _ backend: BackendID, _ outcome: Result<BackendSecrets, UpstreamCredentialsFailure>, now: Now
    ) {
        context.now = now
        guard let account = backends[backend] else { return }
        settle(account) { $0.secretsRead(outcome, &$1) }
    }

    /// A call was answered, with any status, or failed.
    public func backendAnswered(
        _ call: BackendCallID, _ backend: BackendID, _ outcome: Result<BackendCallResponse, BackendCallFailure>,
        now: Now
    ) {
        context.now = now
        guard let account = backends[backend], !irc.tokenAnswered(call, outcome, account) else { return }
        settle(account) { $0.callAnswered(call, outcome, &$1) }
    }

    /// Retries a refused or failed log-in at once.
    public func retryLogin(_ backend: String, now: Now) {
        context.now = now
        guard let account = backends[backend] else { return }
        settle(account) { $0.retryNow(&$1) }
    }

    // MARK: - Requests

    /// Submits the requests of rooms and the IRC server to the backend accounts until none is left.
    func submitBackendRequests() {
        while true {
            let wishes = context.takeRequests()
            let asked = serverWishes.take()
            guard !wishes.isEmpty || !asked.isEmpty else { return }
            // A retried log-in precedes the links that need its credentials.
            for wish in asked { submit(wish) }
            for wish in wishes { submit(wish) }
        }
    }

    private func submit(_ wish: ServerRequest) {
        switch wish {
        case .rooms(let backend):
            guard let account = backends[backend] else { return }
            settle(account) { $0.submit(.rooms, .rooms, dialectContext: DialectContext(room: ""), &$1) }
        case .retryLogin(let backend): retryLogin(backend, now: context.now)
        }
    }

    private func submit(_ wish: RoomRequest) {
        switch wish {
        case .credentials(let id, let afterRefusal):
            if let own = context.ownLinks[id] {
                guard let account = own.login.backend.flatMap({ backends[$0] }) else { return }
                return settle(account) { $0.credentialsWanted(id, afterRefusal: afterRefusal, &$1) }
            }
            guard let room = room(id), let account = backends[room.settings.backend] else { return }
            settle(account) { $0.credentialsWanted(id, afterRefusal: afterRefusal, &$1) }
        case .history(let id, let query):
            guard let room = room(id) else { return }
            guard let account = backends[room.settings.backend] else {
                let failure = BackendCallFailure(sentence: "the backend has no call for that")
                return room.historyArrived(.failure(failure), isComplete: false, context)
            }
            settle(account) {
                $0.submit(.history(id), .history(query), dialectContext: room.lane.dialectContext, &$1)
            }
        case .olderHistory(let id, let query):
            guard let room = room(id) else { return }
            guard let account = backends[room.settings.backend] else {
                return room.olderArrived(nil, isComplete: false, context)
            }
            settle(account) {
                $0.submit(.olderHistory(id), .history(query), dialectContext: room.lane.dialectContext, &$1)
            }
        case .ownIdentity(let id):
            guard let (room, own) = roomTable.ownLink(id) else { return }
            guard let account = own.login.backend.flatMap({ backends[$0] }), account.offers(.whoAmI) else {
                return room.ownNotIdentified(own, context)
            }
            settle(account) { $0.submit(.ownIdentity(id), .whoAmI, dialectContext: DialectContext(room: ""), &$1) }
        case .markRead(let id):
            if let (room, own) = roomTable.ownLink(id) {
                guard let account = own.login.backend.flatMap({ backends[$0] }) else { return }
                let name = own.dialectContext.announcedRoom ?? room.settings.upstreamRoom
                return settle(account) {
                    $0.submit(.markRead(id), .markRead(room: name), dialectContext: own.dialectContext, &$1)
                }
            }
            guard let room = room(id), let account = backends[room.settings.backend] else { return }
            let name = room.lane.dialectContext.announcedRoom ?? room.settings.upstreamRoom
            settle(account) {
                $0.submit(.markRead(id), .markRead(room: name), dialectContext: room.lane.dialectContext, &$1)
            }
        }
    }

    func fireBackendTimer(_ id: BackendID) {
        guard let account = backends[id] else { return }
        settle(account) { $0.timerFired(&$1) }
    }

    /// Notifies the backend account of accepted credentials, or of a closed session.
    ///
    /// - Parameters:
    ///   - wasUp: the link's state before the event.
    ///   - taken: the number of accepted log-ins before the event.
    func noteLink(
        _ link: UpstreamSession, of room: RoomID, backend: @autoclosure () -> String, wasUp: Bool, taken: UInt64
    ) {
        guard link.loginsTaken != taken || wasUp && !link.isUp, let account = backends[backend()] else { return }
        if link.loginsTaken != taken { account.accepted(by: room) }
        if !link.isUp, let usable = link.evictedAfter { account.evicted(room, after: usable) }
    }

    // MARK: - Results

    /// Calls a verb of a backend account and handles its events.
    func settle(_ account: BackendAccount, _ verb: (BackendAccount, inout Turn) -> [BackendEvent]) {
        handle(context.drive(account) { verb(account, &$0) }, of: account)
    }

    func handle(_ events: [BackendEvent], of account: BackendAccount) {
        for event in events {
            switch event {
            case .credentials(let id, let outcome):
                drive(id) { $0.credentialsRead(outcome, dialectContext: $1, &$2) }
            case .renewed: renewed(account)
            case .answered(let purpose, let outcome): answered(purpose, outcome, account)
            }
        }
    }

    private func renewed(_ account: BackendAccount) {
        context.upstream.renewed(account)
        for room in rooms(of: account) where room.link.usesAccount {
            if account.endWait(of: room.id) {
                // The link waits for credentials.
                if room.link.state == .waiting { room.link.start(context) }
            } else if account.hasServed(room.id) {
                if room.link.takesRenewedCredentials { account.reissued(to: room.id) }
                room.tokenRenewed(account.credentials, context)
            }
        }
        for own in context.ownLinks.values.sorted(by: { $0.id.index > $1.id.index })
        where own.login.backend == account.settings.name && own.link.usesAccount {
            if account.endWait(of: own.id) {
                if own.link.state == .waiting { own.link.start(context) }
            } else if account.hasServed(own.id) {
                if own.link.takesRenewedCredentials { account.reissued(to: own.id) }
                drive(own.id) { $0.credentialsRenewed(account.credentials, dialectContext: $1, &$2) }
            }
        }
        settle(account) { $0.identify(&$1) }
    }

    private func answered(
        _ purpose: BackendPurpose, _ outcome: Result<BackendReply, BackendCallFailure>, _ account: BackendAccount
    ) {
        if case .failure(let failure) = outcome { noteFailure(purpose, failure, account) }
        switch purpose {
        case .whoAmI:
            guard case .success(.person(let person)) = outcome else {
                return context.drive(account) { account.identificationFailed(&$0) }
            }
            account.identified(as: person)
            for room in rooms(of: account) { room.accountIdentified(person, context) }
        case .ownIdentity(let id):
            guard let (room, own) = roomTable.ownLink(id) else { return }
            guard case .success(.person(let person)) = outcome else { return room.ownNotIdentified(own, context) }
            room.ownIdentified(own, person, context)
        case .rooms:
            if case .success(.rooms(let rooms)) = outcome { irc.roomsListed(rooms) } else { irc.templateRoomsFailed() }
        case .history(let id):
            guard let room = room(id) else { return }
            switch outcome {
            case .success(.messages(let messages, let isComplete)):
                room.historyArrived(.success(messages), isComplete: isComplete, context)
            case .success:
                let failure = BackendCallFailure(sentence: "the answer of \(account.place) is no history")
                room.historyArrived(.failure(failure), isComplete: false, context)
            case .failure(let failure): room.historyArrived(.failure(failure), isComplete: false, context)
            }
        case .olderHistory(let id):
            guard let room = room(id) else { return }
            guard case .success(.messages(let messages, let isComplete)) = outcome else {
                return room.olderArrived(nil, isComplete: false, context)
            }
            room.olderArrived(messages, isComplete: isComplete, context)
        case .markRead: break
        case .upload(let id): uploadAnswered(id, outcome, account)
        }
    }

    private func noteFailure(_ purpose: BackendPurpose, _ failure: BackendCallFailure, _ account: BackendAccount) {
        let (what, room): (String, RoomID?) =
            switch purpose {
            case .whoAmI: ("who-am-i", nil)
            case .rooms: ("rooms", nil)
            case .history(let id): ("history", id)
            case .olderHistory(let id): ("older-history", id)
            case .markRead(let id): ("mark-read", id)
            case .ownIdentity(let id): ("who-am-i", id)
            case .upload: ("upload", nil)
            }
        context.note(
            .info, "backend-call-failed", failure.sentence,
            [
                "backend": account.settings.name, "call": what,
                "room": room.flatMap { self.room($0)?.settings.name } ?? "",
                "status": failure.status.map(String.init) ?? "",
            ])
    }
}
