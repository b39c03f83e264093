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

// Files: what IRC users upload goes to a backend's own upload call, or is kept here where the backend has none; what links
// of ours lead to at a backend is asked for with its token. The driver speaks HTTP with people, this says who may and where
// to.

/// How a linked file is asked for.
public enum FileAccess: Equatable, Sendable {
    /// - Parameter generation: names what is shown, for ``Bridge/fileRefused(_:generation:now:)``.
    case order(BackendCallOrder, generation: Int)
    /// There is nothing to show at this moment.
    case notYet
    case unknown
}

/// Whether a backend is asked whose a token is.
public enum UploadTokenCheck: Equatable, Sendable {
    /// Answered with `.uploadTokenChecked`.
    case begun(attempt: UInt64)
    /// It is no token, or nobody could be asked.
    case impossible
    /// Too many are being looked at.
    case busy
}

extension Bridge {
    /// How long a file of a backend may take on its way, in all: the largest at 50 kB/s. Who reads slower than is worth
    /// waiting for is cut off by the server, whatever is left of this.
    static let fileTimeout: Duration = .seconds(6 * 60 * 60)
    /// How long a backend may bring nothing of a file that is wanted. As the server waits for readers.
    static let fileStallTimeout: Duration = .seconds(60)
    /// Largest file that is passed on, in bytes. Nothing of it is held here; this is against endless ones.
    static let maxFileBytes = 1024 * 1024 * 1024

    // MARK: - Who may upload

    private static func takesUploads(_ account: BackendAccount) -> Bool {
        !account.settings.isOnDemand && account.offers(.upload(UploadedFile(name: "", mime: "", bytes: [])))
    }

    /// See ``LoginDesk/uploadPlace(_:from:)``.
    public func uploadPlace(_ name: String, from visitor: String) -> UploadPlace {
        irc.logins.uploadPlace(name, from: visitor)
    }

    /// The check of a password that came with an upload; its verdict goes to ``uploadChecked(_:at:_:now:)``.
    ///
    /// - Parameter name: of an account, with or without the name of a client behind it.
    public func uploadCheck(_ name: String, _ password: [UInt8]) -> PasswordCheck {
        irc.logins.uploadCheck(name, password)
    }

    /// - Returns: nil: the password is right. Else how long the refusal waits.
    public func uploadChecked(
        _ name: String, at place: UploadPlace, _ verdict: PasswordVerdict, now: Now
    ) -> Duration? {
        context.now = now
        if verdict == .wrong {
            context.note(
                .warn, "wrong-password", "an upload had a wrong password",
                ["address": place.visitor, "account": irc.logins.uploader(name)?.name ?? ""])
        }
        return irc.logins.uploadChecked(at: place, verdict, now: now.monotonic)
    }

    /// - Parameter name: as for ``uploadCheck(_:_:)``; whoever it is has shown the password.
    public func uploader(_ name: String) -> Uploader? { irc.logins.uploader(name) }

    // MARK: - Tokens that come with uploads

    /// Whether a backend is asked whose a token is.
    public var takesUploadTokens: Bool { irc.logins.asksForTokens }

    /// See ``LoginDesk/uploadTokenPlace(from:)``.
    public func uploadTokenPlace(from visitor: String) -> UploadPlace { LoginDesk.uploadTokenPlace(from: visitor) }

    /// Has the backend asked whose `token` is.
    ///
    /// - Parameter token: as after `Bearer `.
    public func uploadTokenCheck(_ token: String, at place: UploadPlace, now: Now) -> UploadTokenCheck {
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

    /// Takes a file to a backend, or has it kept here; answered with `.uploaded`.
    ///
    /// - Parameters:
    ///   - uploader: whoever it is has shown that; nil: nobody.
    ///   - room: where it will be said, if the uploader says so: a room's name or channel.
    public func upload(_ id: UploadID, _ file: UploadedFile, by uploader: Uploader?, room: String?, now: Now) {
        context.now = now
        func refuse(_ failure: UploadFailure) { emit(.uploaded(id, .failure(failure))) }
        guard let media = settings.media, let uploader = uploader?.account else { return refuse(.notAllowed) }
        guard file.bytes.count <= media.maxUploadBytes else { return refuse(.tooLarge(limit: media.maxUploadBytes)) }
        guard let place = uploadPlace(of: uploader, room) else { return refuse(.notAllowed) }
        func begin(kept: KeptFile?) {
            context.uploads.begin(
                id,
                RunningUpload(
                    room: place.settings.name, backend: place.settings.backend, file: file.name,
                    account: uploader.name, kept: kept))
        }
        guard let shared = uploadAccount(of: place) else {
            let kept = KeptFiles.file(uploaded: file)
            begin(kept: kept)
            return emit(.storeUpload(id, kept))
        }
        let account = ownAccount(of: uploader, in: place) ?? shared
        let call = BackendCall.upload(file)
        guard account.settings.dialect.calls?.request(for: call, context: DialectContext(room: "")) != nil else {
            return refuse(.tooLarge(limit: nil))
        }
        begin(kept: nil)
        settle(account) { $0.submit(.upload(id), call, dialectContext: DialectContext(room: ""), &$1) }
    }

    /// A file that was uploaded is kept, or cannot be; `isKept` tells which.
    public func uploadStored(_ id: UploadID, isKept: Bool, now: Now) {
        context.now = now
        guard let upload = context.uploads.end(id), let media = settings.media, let kept = upload.kept else {
            return
        }
        guard isKept else { return emit(.uploaded(id, .failure(.notStored))) }
        noteUpload(upload, bytes: Int64(kept.bytes.count))
        let file = LinkedFile(room: upload.room, place: .kept(kept.name), name: upload.file)
        emit(.uploaded(id, .success(media.links.url(of: file, now: context.now.wall))))
    }

    private func noteUpload(_ upload: RunningUpload, bytes: Int64?) {
        context.note(
            .info, "client-uploaded", "a file was uploaded",
            [
                "account": upload.account, "backend": upload.kept == nil ? upload.backend : "",
                "room": upload.room, "bytes": bytes.map(String.init) ?? "",
            ])
    }

    /// The room of a file: the one that the uploader says, else one where they are, else the first; those whose backend takes
    /// files before the others.
    private func uploadPlace(of uploader: AccountSettings, _ named: String?) -> Room? {
        let here = irc.person(of: uploader).map { irc.sessions(of: $0).flatMap { $0.rooms } } ?? []
        let known = rooms.filter { uploader.rooms?.contains($0.settings.name) ?? true }
        if let named, !named.isEmpty {
            let folded = settings.casemapping.fold(named)
            return known.first { $0.settings.name == named || settings.casemapping.fold($0.channel) == folded }
        }
        func best(_ rooms: [Room]) -> Room? { rooms.first { uploadAccount(of: $0) != nil } ?? rooms.first }
        return best(known.filter { here.contains($0.id) }) ?? best(known)
    }

    /// Who takes files to the room's backend; nil: it has no call for that.
    private func uploadAccount(of room: Room) -> BackendAccount? {
        backends[room.settings.backend].flatMap { Self.takesUploads($0) ? $0 : nil }
    }

    /// Who says things in the room as themselves also uploads as themselves: what they may, and whose the file is, is
    /// between them and the backend. As with messages, the room's account does not stand in.
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
            if context.uploads.remember(record) { emit(.keepUpload(record)) }
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

    /// What opens the file for everybody.
    private func link(
        to attachment: ChatAttachment, _ upload: RunningUpload, _ account: BackendAccount, _ media: MediaSettings
    ) -> String? {
        guard let address = attachment.url, let base = account.settings.httpBase else { return nil }
        let url = FileLinks.absolute(address, base)
        guard !SecretFinder(account.knownTokens).isIn(link: url) else { return nil }
        var shown = attachment
        shown.url = url
        shown.name = upload.file
        let links = FileLinks(
            links: media.links, room: upload.room, guarded: context.guardedBases[upload.backend],
            now: context.now.wall)
        return links.url(of: shown) ?? WebLink.shown(url)
    }

    // MARK: - Files of backends

    /// How to ask for a file that a link leads to, which lies at a backend.
    public func fileAccess(_ file: LinkedFile, now: Now) -> FileAccess {
        context.now = now
        guard case .backend(let target) = file.place, let account = backend(ofRoom: file.room),
            let base = account.settings.httpBase
        else { return .unknown }
        context.drive(account) { account.start(&$0) }
        guard account.isUsable(now: now.monotonic) else { return .notYet }
        let request = BackendRequest(.get, "\(base.scheme)://\(base.hostHeader)\(target)")
        return .order(
            BackendCallOrder(
                backend: account.id, request: request, authorization: account.authorization,
                timeout: Self.fileTimeout, maxAnswerBytes: Self.maxFileBytes, stallTimeout: Self.fileStallTimeout),
            generation: account.generation)
    }

    /// The backend did not take what was shown with a file; it is renewed, where it can be.
    public func fileRefused(_ backend: BackendID, generation: Int, now: Now) {
        context.now = now
        guard let account = backends[backend] else { return }
        settle(account) { $0.fileRefused(generation: generation, &$1) }
    }

    /// A link may be of a room that the template opened, and that is gone.
    private func backend(ofRoom name: String) -> BackendAccount? {
        let open = rooms.first { $0.settings.name == name }?.settings.backend
        return (open ?? settings.template?.backend).flatMap { backends[$0] }
    }
}
