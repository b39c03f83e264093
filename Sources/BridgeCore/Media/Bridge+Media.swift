import ChatModel
public import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import WireBytes

// Files: what IRC users upload goes to a backend's own upload call, or is kept here where the backend has none; what links
// of ours lead to at a backend is asked for with its token. The driver speaks HTTP with people, this says who may and where
// to.

/// An upload of somebody, in the driver's numbers.
public struct UploadID: Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// Where the password or the token of an upload comes from.
public struct UploadPlace: Hashable, Sendable {
    /// As the driver tells visitors apart: an address, a network that one customer has, or what stands for many.
    public var visitor: String
    /// Whose failures count together, and who has one try at a time.
    public var failures: String
}

/// Why an upload came to nothing.
public enum UploadFailure: Error, Equatable, Sendable {
    /// The account may enter no room, or not the one that was named.
    case notAllowed
    /// In bytes; nil: only the backend knows.
    case tooLarge(limit: Int?)
    case unsupportedType
    /// The backend's trouble; a sentence without a full stop.
    case failed(String)
    /// It could not be kept here.
    case notStored
}

/// How a linked file is asked for.
public enum FileAccess: Equatable, Sendable {
    /// - Parameter generation: names what is shown, for ``Bridge/fileRefused(_:generation:now:)``.
    case order(BackendCallOrder, generation: Int)
    /// There is nothing to show at this moment.
    case notYet
    case unknown
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

    /// Whether people can upload files at all.
    var takesUploads: Bool { settings.media != nil && hasAccounts }

    private static func takesUploads(_ account: BackendAccount) -> Bool {
        !account.settings.isOnDemand && account.offers(.upload(UploadedFile(name: "", mime: "", bytes: [])))
    }

    /// Where a password comes from that is shown with an upload. Each account has its own failures there, so that somebody's
    /// guesses keep nobody else waiting, and all names that are none have theirs in common.
    ///
    /// - Parameters:
    ///   - name: of an account, with or without the name of a client behind it.
    ///   - visitor: compared as it is.
    public func uploadPlace(_ name: String, from visitor: String) -> UploadPlace {
        let account = account(named: ClientName.split(name).account)
        return UploadPlace(
            visitor: visitor, failures: "\(visitor) account \(account.map { AccountBook.fold($0.name) } ?? "*")")
    }

    /// The check of a password that came with an upload; its verdict goes to ``uploadChecked(_:at:_:now:)``.
    ///
    /// - Parameter name: of an account, with or without the name of a client behind it.
    public func uploadCheck(_ name: String, _ password: [UInt8]) -> PasswordCheck {
        lastAttempt &+= 1
        let account = account(named: ClientName.split(name).account)
        return PasswordCheck(
            client: ClientID(rawValue: 0), attempt: lastAttempt,
            verifier: account?.password ?? .unmatchable(iterations: accounts.passwordCost),
            password: SecretBytes(password), cost: accounts.passwordCost)
    }

    /// - Returns: nil: the password is right. Else how long the refusal waits.
    public func uploadChecked(
        _ name: String, at place: UploadPlace, _ verdict: PasswordVerdict, now: Now
    ) -> Duration? {
        context.now = now
        switch verdict {
        case .correct:
            uploadThrottle.succeeded(at: place.failures)
            return nil
        case .unavailable: return .zero
        case .wrong:
            context.note(
                .warn, "wrong-password", "an upload had a wrong password",
                ["address": place.visitor, "account": account(named: ClientName.split(name).account)?.name ?? ""])
            return uploadThrottle.failed(at: place.failures, now: now.monotonic)
        }
    }

    /// - Parameter name: as for ``uploadCheck(_:_:)``; whoever it is has shown the password.
    public func uploader(_ name: String) -> Uploader? {
        account(named: ClientName.split(name).account).map { Uploader(account: $0) }
    }

    // MARK: - Uploading

    /// Takes a file to a backend, or has it kept here; answered with `.uploaded`.
    ///
    /// - Parameters:
    ///   - uploader: whoever it is has shown that; nil: nobody.
    ///   - room: where it will be said, if the uploader says so: a room's name or channel.
    public func upload(_ id: UploadID, _ file: UploadedFile, by uploader: Uploader?, room: String?, now: Now) {
        context.now = now
        func refuse(_ failure: UploadFailure) { context.emit(.uploaded(id, .failure(failure))) }
        guard let media = settings.media, let uploader = uploader?.account else { return refuse(.notAllowed) }
        guard file.bytes.count <= media.maxUploadBytes else { return refuse(.tooLarge(limit: media.maxUploadBytes)) }
        guard let place = uploadPlace(of: uploader, room) else { return refuse(.notAllowed) }
        var running = RunningUpload(
            room: place.settings.name, backend: place.settings.backend, file: file.name, account: uploader.name)
        guard let shared = uploadAccount(of: place) else {
            let kept = KeptFiles.file(uploaded: file)
            running.kept = kept
            uploads[id] = running
            return context.emit(.storeUpload(id, kept))
        }
        let account = ownAccount(of: uploader, in: place) ?? shared
        let call = BackendCall.upload(file)
        guard account.settings.dialect.calls?.request(for: call, context: DialectContext(room: "")) != nil else {
            return refuse(.tooLarge(limit: nil))
        }
        uploads[id] = running
        settle(account.submit(.upload(id), call, dialectContext: DialectContext(room: ""), context), account)
    }

    /// A file that was uploaded is kept, or cannot be; `isKept` tells which.
    public func uploadStored(_ id: UploadID, isKept: Bool, now: Now) {
        context.now = now
        guard let upload = uploads.removeValue(forKey: id), let media = settings.media, let kept = upload.kept else {
            return
        }
        guard isKept else { return context.emit(.uploaded(id, .failure(.notStored))) }
        noteUpload(upload, bytes: Int64(kept.bytes.count))
        let file = LinkedFile(room: upload.room, place: .kept(kept.name), name: upload.file)
        context.emit(.uploaded(id, .success(media.links.url(of: file, now: context.now.wall))))
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
        let here = person(of: uploader).map { sessions(of: $0).flatMap { $0.rooms } } ?? []
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
        backend(named: room.settings.backend).flatMap { Self.takesUploads($0) ? $0 : nil }
    }

    /// Who says things in the room as themselves also uploads as themselves: what they may, and whose the file is, is
    /// between them and the backend. As with messages, the room's account does not stand in.
    private func ownAccount(of uploader: AccountSettings, in room: Room) -> BackendAccount? {
        context.ownLogins[uploader.name]?[room.settings.name]?.backend.flatMap { backend(named: $0) }
    }

    func uploadAnswered(
        _ id: UploadID, _ outcome: Result<BackendReply, BackendCallFailure>, _ account: BackendAccount
    ) {
        guard let upload = uploads.removeValue(forKey: id), let media = settings.media else { return }
        switch outcome {
        case .success(.attachment(let attachment)):
            guard let link = link(to: attachment, upload, account, media) else {
                return context.emit(.uploaded(id, .failure(.failed("\(account.place) does not say where the file is"))))
            }
            let record = UploadRecord(link: link, backend: upload.backend, attachment: attachment)
            if record.byteCount <= UploadRecord.maxBytes {
                context.uploads.add(record)
                context.emit(.keepUpload(record))
            }
            noteUpload(upload, bytes: attachment.size)
            context.emit(.uploaded(id, .success(link)))
        case .success: context.emit(.uploaded(id, .failure(.failed("the answer of \(account.place) is no file"))))
        case .failure(let failure):
            let why: UploadFailure =
                switch failure.status {
                case 413: .tooLarge(limit: nil)
                case 415: .unsupportedType
                default: .failed(failure.sentence)
                }
            context.emit(.uploaded(id, .failure(why)))
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
        return links.url(of: shown) ?? MessageRendering.link(url)
    }

    // MARK: - Files of backends

    /// How to ask for a file that a link leads to, which lies at a backend.
    public func fileAccess(_ file: LinkedFile, now: Now) -> FileAccess {
        context.now = now
        guard case .backend(let target) = file.place, let account = backend(ofRoom: file.room),
            let base = account.settings.httpBase
        else { return .unknown }
        account.start(context)
        guard account.isUsable(context) else { return .notYet }
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
        guard let account = self.backend(backend) else { return }
        account.refused(generation: generation, .file, context)
        account.arm(context)
        settle(account.takeEvents(), account)
    }

    /// A link may be of a room that the template opened, and that is gone.
    private func backend(ofRoom name: String) -> BackendAccount? {
        let open = rooms.first { $0.settings.name == name }?.settings.backend
        return (open ?? settings.template?.backend).flatMap { backend(named: $0) }
    }
}

/// What an upload will be known by.
struct RunningUpload {
    /// In whose name links to the file are made.
    var room: String
    /// The room's, whoever uploads there.
    var backend: String
    var file: String
    var account: String
    /// What is kept here; nil: the backend gets it.
    var kept: KeptFile?
}
