public import Accounts
public import BridgeTypes
import ChatModel
public import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import IRCServer
public import Media
import Rooms
import Upstream
import WireBytes

// Files: uploads go to the backend's upload call, or are stored locally where the backend has none; signed links to a
// backend's files are served with its token. The driver speaks HTTP with visitors; permissions and targets are decided here.

/// The access to a linked file.
public enum FileAccess: Equatable, Sendable {
    /// - Parameter generation: identifies the credentials, for ``Bridge/fileCredentialsRefused(_:generation:now:)``.
    case order(BackendCallRequest, generation: Int)
    /// There are no credentials at the moment.
    case notYet
    case unknown
}

/// The start of identifying the owner of a token.
public enum UploadTokenCheck: Equatable, Sendable {
    /// Answered with `.uploadTokenChecked`.
    case begun(attempt: UInt64)
    /// It is no token, or no backend identifies owners.
    case impossible
    /// Too many checks are pending.
    case busy
}

extension Bridge {
    /// Time limit for a file of a backend: the largest at 50 kB/s. The HTTP server closes slower readers earlier.
    static let fileTimeout: Duration = .seconds(6 * 60 * 60)
    /// Stall time-out of a backend, the same as the HTTP server's for readers.
    static let fileStallTimeout: Duration = .seconds(60)
    /// Size limit of relayed files in bytes, against endless ones. Files are streamed, not buffered.
    static let maxFileBytes = 1024 * 1024 * 1024

    // MARK: - Authentication of uploads

    private static func takesUploads(_ account: BackendAccount) -> Bool {
        !account.settings.isOnDemand && account.offers(.upload(UploadedFile(name: "", mime: "", bytes: [])))
    }

    /// See ``LoginMachine/uploadSource(_:from:)``.
    public func uploadSource(_ name: String, from visitor: String) -> UploadSource {
        irc.logins.uploadSource(name, from: visitor)
    }

    /// The check of an upload's password; its verdict goes to ``uploadChecked(_:at:_:now:)``.
    ///
    /// - Parameter name: of an account, with or without a client name.
    public func uploadCheck(_ name: String, _ password: [UInt8]) -> PasswordCheck {
        irc.logins.uploadCheck(name, password)
    }

    /// - Returns: the delay of the refusal; nil: the password is correct.
    public func uploadChecked(
        _ name: String, at place: UploadSource, _ verdict: PasswordVerdict, now: Now
    ) -> Duration? {
        context.now = now
        if verdict == .wrong {
            context.note(
                .warn, "wrong-password", "an upload had a wrong password",
                ["address": place.visitor, "account": irc.logins.uploader(name)?.name ?? ""])
        }
        return irc.logins.uploadChecked(at: place, verdict, now: now.monotonic)
    }

    /// Whose password ``uploadCheck(_:_:)`` checks; nil: there is no such account.
    public func uploader(_ name: String) -> Uploader? { irc.logins.uploader(name) }

    /// The same as it is now; nil: its account is gone, or has another password than the one that was checked.
    public func present(_ uploader: Uploader) -> Uploader? { irc.logins.present(uploader) }

    // MARK: - Tokens of uploads

    /// Whether a backend identifies the owners of tokens.
    public var takesUploadTokens: Bool { irc.logins.acceptsTokens }

    /// See ``LoginMachine/uploadTokenSource(from:)``.
    public func uploadTokenSource(from visitor: String) -> UploadSource {
        LoginMachine.uploadTokenSource(from: visitor)
    }

    /// Begins to identify the owner of `token`.
    ///
    /// - Parameter token: as after `Bearer `.
    public func uploadTokenCheck(_ token: String, at place: UploadSource, now: Now) -> UploadTokenCheck {
        context.now = now
        switch irc.logins.checkUploadToken(token, at: place) {
        case .impossible: return .impossible
        case .busy: return .busy
        case .ask(let attempt, let call, let order):
            emit(.callBackend(call, order))
            return .begun(attempt: attempt)
        }
    }

    // MARK: - Uploading

    /// Uploads a file to a backend, or stores it locally; answered with `.uploaded`.
    ///
    /// - Parameters:
    ///   - uploader: authenticated; nil: none.
    ///   - room: of the message that will link to the file, if given: a room's name or channel.
    public func upload(_ id: UploadID, _ file: UploadedFile, by uploader: Uploader?, room: String?, now: Now) {
        context.now = now
        func refuse(_ failure: UploadFailure) { emit(.uploaded(id, .failure(failure))) }
        guard let media = settings.media, let uploader = uploader?.account else { return refuse(.notAllowed) }
        guard file.bytes.count <= media.maxUploadBytes else { return refuse(.tooLarge(limit: media.maxUploadBytes)) }
        guard let place = uploadRoom(of: uploader, room) else { return refuse(.notAllowed) }
        func begin(stored: StoredFile?) {
            context.uploads.begin(
                id,
                RunningUpload(
                    room: place.settings.name, backend: place.settings.backend, file: file.name,
                    account: uploader.name, stored: stored))
        }
        guard let shared = uploadAccount(of: place) else {
            let stored = StoredFiles.file(uploaded: file)
            begin(stored: stored)
            return emit(.storeUpload(id, stored))
        }
        let account = ownAccount(of: uploader, in: place) ?? shared
        let call = BackendCall.upload(file)
        guard account.settings.dialect.calls?.request(for: call, context: DialectContext(room: "")) != nil else {
            return refuse(.tooLarge(limit: nil))
        }
        begin(stored: nil)
        settle(account) { $0.submit(.upload(id), call, dialectContext: DialectContext(room: ""), &$1) }
    }

    /// An uploaded file was stored, or storing failed.
    public func uploadStored(_ id: UploadID, isStored: Bool, now: Now) {
        context.now = now
        guard let upload = context.uploads.end(id), let media = settings.media, let stored = upload.stored else {
            return
        }
        guard isStored else { return emit(.uploaded(id, .failure(.notStored))) }
        noteUpload(upload, bytes: Int64(stored.bytes.count))
        let file = LinkedFile(room: upload.room, location: .stored(stored.name), name: upload.file)
        emit(.uploaded(id, .success(media.links.url(of: file, now: context.now.wall))))
    }

    private func noteUpload(_ upload: RunningUpload, bytes: Int64?) {
        context.note(
            .info, "client-uploaded", "a file was uploaded",
            [
                "account": upload.account, "backend": upload.stored == nil ? upload.backend : "",
                "room": upload.room, "bytes": bytes.map(String.init) ?? "",
            ])
    }

    /// The room of a file: the given one, else one with the uploader, else the first; rooms whose backend takes files come
    /// first.
    private func uploadRoom(of uploader: AccountSettings, _ named: String?) -> Room? {
        let here = irc.person(of: uploader).map { irc.sessions(of: $0).flatMap { $0.rooms } } ?? []
        let known = rooms.filter { uploader.rooms?.contains($0.settings.name) ?? true }
        if let named, !named.isEmpty {
            let folded = settings.casemapping.fold(named)
            return known.first { $0.settings.name == named || settings.casemapping.fold($0.channel) == folded }
        }
        func best(_ rooms: [Room]) -> Room? { rooms.first { uploadAccount(of: $0) != nil } ?? rooms.first }
        return best(known.filter { here.contains($0.id) }) ?? best(known)
    }

    /// The account that uploads to the room's backend; nil: the backend has no upload call.
    private func uploadAccount(of room: Room) -> BackendAccount? {
        backends[room.settings.backend].flatMap { Self.takesUploads($0) ? $0 : nil }
    }

    /// The uploader's own backend account in the room, which uploads as it sends messages: with its own permissions, and
    /// without the room's account as a fallback.
    private func ownAccount(of uploader: AccountSettings, in room: Room) -> BackendAccount? {
        context.ownLogin(of: uploader.name, in: room.settings.name)?.backend.flatMap { backends[$0] }
    }

    func uploadAnswered(
        _ id: UploadID, _ outcome: Result<BackendReply, BackendCallFailure>, _ account: BackendAccount
    ) {
        guard let upload = context.uploads.end(id), let media = settings.media else { return }
        switch outcome {
        case .success(.attachment(let attachment)):
            guard let link = link(to: attachment, upload, account, media) else {
                return emit(.uploaded(id, .failure(.failed("\(account.place) does not say where the file is"))))
            }
            let record = UploadRecord(link: link, backend: upload.backend, attachment: attachment)
            if context.uploads.record(record) { emit(.keepUpload(record)) }
            noteUpload(upload, bytes: attachment.size)
            emit(.uploaded(id, .success(link)))
        case .success: emit(.uploaded(id, .failure(.failed("the answer of \(account.place) is no file"))))
        case .failure(let failure):
            let why: UploadFailure =
                switch failure.status {
                case 413: .tooLarge(limit: nil)
                case 415: .unsupportedType
                default: .failed(failure.sentence)
                }
            emit(.uploaded(id, .failure(why)))
        }
    }

    /// A link that is valid for all users.
    private func link(
        to attachment: ChatAttachment, _ upload: RunningUpload, _ account: BackendAccount, _ media: MediaSettings
    ) -> String? {
        guard let address = attachment.url, let base = account.settings.httpBase else { return nil }
        let url = RoomFileLinks.absolute(address, base)
        guard !SecretFinder(account.knownTokens).isIn(link: url) else { return nil }
        var shown = attachment
        shown.url = url
        shown.name = upload.file
        let links = RoomFileLinks(
            links: media.links, room: upload.room, guarded: context.guardedBases[upload.backend],
            now: context.now.wall)
        return links.url(of: shown) ?? WebLink.shown(url)
    }

    // MARK: - Files of backends

    /// The access to a linked file at a backend.
    public func fileAccess(_ file: LinkedFile, now: Now) -> FileAccess {
        context.now = now
        guard case .backend(let target) = file.location, let account = backend(ofRoom: file.room),
            let base = account.settings.httpBase
        else { return .unknown }
        context.drive(account) { account.start(&$0) }
        guard account.isUsable(now: now.monotonic) else { return .notYet }
        let request = BackendRequest(.get, "\(base.scheme)://\(base.hostHeader)\(target)")
        return .order(
            BackendCallRequest(
                backend: account.id, request: request, authorization: account.authorization,
                timeout: Self.fileTimeout, maxAnswerBytes: Self.maxFileBytes, stallTimeout: Self.fileStallTimeout),
            generation: account.generation)
    }

    /// The backend rejected the credentials for a file; they are renewed if possible.
    public func fileCredentialsRefused(_ backend: BackendID, generation: Int, now: Now) {
        context.now = now
        guard let account = backends[backend] else { return }
        settle(account) { $0.fileCredentialsRefused(generation: generation, &$1) }
    }

    /// The backend account of a room, also of a closed room of the template.
    private func backend(ofRoom name: String) -> BackendAccount? {
        let open = rooms.first { $0.settings.name == name }?.settings.backend
        return (open ?? settings.template?.backend).flatMap { backends[$0] }
    }
}
