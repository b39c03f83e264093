import ChatModel
import Dialects
import WireBytes

// Between rooms and their backends' accounts: wishes one way, what came of them the other.

extension Bridge {
    /// A backend's list of rooms is asked for at most this often, however many clients list them.
    static let roomsListInterval: Duration = .seconds(60)

    func backend(named name: String) -> BackendAccount? {
        backendsByName[name].flatMap { backend($0) }
    }

    func backend(_ id: BackendID) -> BackendAccount? {
        backends.indices.contains(id.index) ? backends[id.index] : nil
    }

    private func rooms(of account: BackendAccount) -> [Room] {
        rooms.filter { $0.settings.backend == account.settings.name }
    }

    // MARK: - The driver's side

    /// The tokens that were kept for a backend; nil when there are none, or they cannot be read.
    public func tokensRead(_ backend: BackendID, _ tokens: StoredTokens?, now: Now) {
        context.now = now
        guard let account = self.backend(backend) else { return }
        settle(account.tokensRead(tokens, context), account)
    }

    /// The tokens are kept, or cannot be; then they are used all the same.
    public func tokensSaved(_ backend: BackendID, _ outcome: Result<Void, UpstreamCredentialsFailure>, now: Now) {
        context.now = now
        guard let account = self.backend(backend) else { return }
        settle(account.tokensSaved(outcome, context), account)
    }

    /// What a backend's account is proven with was read, or could not be.
    public func secretsRead(
        _ backend: BackendID, _ outcome: Result<BackendSecrets, UpstreamCredentialsFailure>, now: Now
    ) {
        context.now = now
        guard let account = self.backend(backend) else { return }
        settle(account.secretsRead(outcome, context), account)
    }

    /// A call was answered, with whatever status, or was not.
    public func backendAnswered(
        _ call: BackendCallID, _ backend: BackendID, _ outcome: Result<BackendAnswered, BackendCallFailure>, now: Now
    ) {
        context.now = now
        guard let account = self.backend(backend), !bearerAnswered(call, outcome, account) else { return }
        settle(account.callAnswered(call, outcome, context), account)
    }

    /// Tries at once what waits for its time: a refused login, or one that the backend could not answer.
    public func retryLogin(_ backend: String, now: Now) {
        context.now = now
        guard let account = self.backend(named: backend) else { return }
        settle(account.retryNow(context), account)
    }

    // MARK: - Wishes

    /// Asks a backend which rooms there are, unless it was asked a moment ago; the answer is kept in `backendRooms`.
    ///
    /// - Parameter isRetry: it was asked, and failed.
    func requestRooms(_ backend: String, isRetry: Bool = false) {
        let now = context.now.monotonic
        guard let account = self.backend(named: backend), !roomsAsked.contains(backend) else { return }
        if !isRetry, let last = roomsAskedAt[backend], now - last < Self.roomsListInterval { return }
        roomsAskedAt[backend] = now
        roomsAsked.insert(backend)
        settle(
            account.submit(.rooms, .rooms, dialectContext: DialectContext(room: ""), context), account)
    }

    /// Hands what rooms wished for to their accounts, until nothing is left.
    func carryOutBackendWishes() {
        while true {
            let wishes = context.takeBackendWishes()
            guard !wishes.isEmpty else { return }
            for wish in wishes { carryOut(wish) }
        }
    }

    private func carryOut(_ wish: BackendWish) {
        switch wish {
        case .credentials(let id, let afterRefusal):
            if let own = context.ownLinks[id] {
                guard let account = own.login.backend.flatMap({ backend(named: $0) }) else { return }
                return settle(account.credentialsWanted(id, afterRefusal: afterRefusal, context), account)
            }
            guard let room = room(id), let account = backend(named: room.settings.backend) else { return }
            settle(account.credentialsWanted(id, afterRefusal: afterRefusal, context), account)
        case .history(let id, let query):
            guard let room = room(id) else { return }
            guard let account = backend(named: room.settings.backend) else {
                let failure = BackendCallFailure(sentence: "the backend has no call for that")
                return room.historyArrived(.failure(failure), isComplete: false, context)
            }
            settle(
                account.submit(.history(id), .history(query), dialectContext: room.lane.dialectContext, context),
                account)
        case .olderHistory(let id, let query):
            guard let room = room(id) else { return }
            guard let account = backend(named: room.settings.backend) else {
                return room.olderArrived(nil, isComplete: false, context)
            }
            settle(
                account.submit(.olderHistory(id), .history(query), dialectContext: room.lane.dialectContext, context),
                account)
        case .ownIdentity(let id):
            guard let (room, own) = ownLink(id) else { return }
            guard let account = own.login.backend.flatMap({ backend(named: $0) }), account.offers(.whoAmI) else {
                return room.ownNotIdentified(own, context)
            }
            settle(
                account.submit(.ownIdentity(id), .whoAmI, dialectContext: DialectContext(room: ""), context), account)
        case .markRead(let id):
            if let (room, own) = ownLink(id) {
                guard let account = own.login.backend.flatMap({ backend(named: $0) }) else { return }
                let name = own.dialectContext.announcedRoom ?? room.settings.upstreamRoom
                return settle(
                    account.submit(
                        .markRead(id), .markRead(room: name), dialectContext: own.dialectContext, context), account)
            }
            guard let room = room(id), let account = backend(named: room.settings.backend) else { return }
            let name = room.lane.dialectContext.announcedRoom ?? room.settings.upstreamRoom
            settle(
                account.submit(
                    .markRead(id), .markRead(room: name), dialectContext: room.lane.dialectContext, context), account)
        }
    }

    func fireBackendTimer(_ id: BackendID) {
        guard let account = backend(id) else { return }
        settle(account.timerFired(context), account)
    }

    /// What a link showed was taken, or the backend has closed what that opened.
    ///
    /// - Parameters:
    ///   - wasUp: before.
    ///   - taken: how often, before.
    func noteLink(_ link: UpstreamSession, of room: RoomID, backend: String, wasUp: Bool, taken: UInt64) {
        guard let account = self.backend(named: backend), wasUp || link.loginsTaken != taken else { return }
        if link.loginsTaken != taken { account.accepted(by: room) }
        if !link.isUp, let usable = link.sentAwayAfter { account.sentAway(room, after: usable) }
    }

    // MARK: - What came of it

    func settle(_ events: [BackendEvent], _ account: BackendAccount) {
        for event in events {
            switch event {
            case .credentials(let id, let outcome):
                drive(id) { $0.credentialsRead(outcome, dialectContext: $1, context) }
            case .renewed: renewed(account)
            case .answered(let purpose, let outcome): answered(purpose, outcome, account)
            }
        }
    }

    private func renewed(_ account: BackendAccount) {
        context.accountTokens[account.settings.name] = account.knownTokens
        context.secretsVersion &+= 1
        for room in rooms(of: account) where context.roomsWithAccount.contains(room.id) {
            if account.failedRooms.remove(room.id) != nil {
                // It waits because there was nothing to show.
                if room.link.state == .waiting { room.link.start(context) }
            } else if account.given[room.id] != nil {
                if room.link.takesRenewedCredentials { account.reissued(to: room.id) }
                room.tokenRenewed(account.credentials, context)
            }
        }
        for own in context.ownLinks.values.sorted(by: { $0.id.index > $1.id.index })
        where own.login.backend == account.settings.name && context.roomsWithAccount.contains(own.id) {
            if account.failedRooms.remove(own.id) != nil {
                if own.link.state == .waiting { own.link.start(context) }
            } else if account.given[own.id] != nil {
                if own.link.takesRenewedCredentials { account.reissued(to: own.id) }
                drive(own.id) { $0.credentialsRenewed(account.credentials, dialectContext: $1, context) }
            }
        }
        settle(account.identify(context), account)
    }

    private func answered(
        _ purpose: BackendPurpose, _ outcome: Result<BackendReply, BackendCallFailure>, _ account: BackendAccount
    ) {
        if case .failure(let failure) = outcome { noteFailure(purpose, failure, account) }
        switch purpose {
        case .whoAmI:
            guard case .success(.person(let person)) = outcome else { return account.identificationFailed(context) }
            account.identification = .known(person)
            for room in rooms(of: account) { room.accountIdentified(person, context) }
        case .ownIdentity(let id):
            guard let (room, own) = ownLink(id) else { return }
            guard case .success(.person(let person)) = outcome else { return room.ownNotIdentified(own, context) }
            room.ownIdentified(own, person, context)
        case .rooms:
            roomsAsked.remove(account.settings.name)
            if case .success(.rooms(let rooms)) = outcome {
                backendRooms[account.settings.name] = rooms
            } else {
                templateRoomsFailed(account.settings.name)
            }
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
