import Accounts
import BridgeTypes
public import ChatModel
import Media
import Rooms
import Upstream
public import WireBytes

/// Requests of the bridge to its driver. Plain values; the driver's switch over them is the only impure place. The rare
/// ones are boxed, so that those of each message are small.
public enum BridgeAction: Equatable {
    /// Queue bytes for one client.
    case send(ClientID, ByteSlice)
    /// Queue the same bytes for many clients, except the one named.
    case fanOut(ByteSlice, [ClientID], except: ClientID?)
    /// Call `clientDrained` once the client's queue is empty.
    case notifyWhenDrained(ClientID)
    /// Stop or resume reading from a client.
    case pauseReading(ClientID)
    case resumeReading(ClientID)
    /// Flush the queue, then close. `clientClosed` still follows.
    case closeClient(ClientID)
    /// Read the room's credentials; answered by `credentialsRead`, at once or later.
    ///
    /// `afterRefusal`: the backend has refused the last credentials.
    case readCredentials(RoomID, afterRefusal: Bool)
    /// Read the persisted tokens of a backend; answered by `tokensRead`.
    case readTokens(BackendID)
    /// Persist a backend's tokens; answered by `tokensSaved` once they are durable.
    indirect case saveTokens(BackendID, StoredTokens)
    /// Read the credentials of a backend account; answered by `secretsRead`.
    case readSecrets(BackendID)
    /// Send a backend an HTTP request; answered by `backendAnswered`, within the request's time-out.
    indirect case callBackend(BackendCallID, BackendCallRequest)
    /// Open a connection for a room, with TLS from its first byte on when `isSecure`; answered by `upstreamConnected`
    /// or `upstreamClosed`.
    indirect case connectUpstream(RoomID, to: UpstreamEndpoint, isSecure: Bool, timeout: Duration)
    /// Start TLS on a room's connection, which is tunnelled through a proxy to `host`; answered by `upstreamSecured` or
    /// `upstreamClosed`.
    indirect case startTLS(RoomID, host: String)
    case sendUpstream(RoomID, ByteSlice)
    /// Close a room's connection, after flushing or at once. No `upstreamClosed` is expected for it.
    case closeUpstream(RoomID, flush: Bool)
    /// Check a password on another thread; answered by `passwordChecked`, also on failure.
    indirect case checkPassword(PasswordCheck)
    /// Hash a password on another thread; answered by `passwordHashed`, also on failure.
    indirect case hashPassword(PasswordHashing)
    /// Persist changes, in the order of their tickets; answered by `storeSettled`, or by `storeOverflowed` when the
    /// write queue is full.
    case store(StoreTicket, [StoreOperation])
    /// Restore the state of a room that was just opened; answered by `roomLoaded`.
    indirect case loadRoom(RoomID, StoredRoomKey)
    /// Read messages of a room: the first `limit` of a range of sequence numbers; answered by `messagesRead`, oldest
    /// first.
    indirect case readMessages(StoreReadID, StoredRoomKey, after: Int64, through: Int64, limit: Int)
    /// Locate a page of a room's history; answered by `placesFound`.
    indirect case findPlaces(StoreReadID, StoredRoomKey, StoredPageQuery)
    /// Take one step of a search in a room's messages; answered by `messagesSearched`.
    indirect case searchMessages(StoreReadID, StoredRoomKey, StoredSearch)
    /// Persist a file, for links to it; one of that name may exist already.
    indirect case keepFile(StoredFile)
    /// The order of a mirrored room has more rows; see `RoomSettings.isMirrored`.
    case logged(RoomID)
    /// What a mirror's tool brought is in a room's order.
    indirect case mirrored(StoredMirrored)
    /// What a mirror brought could not be stored and was not taken, by its tags.
    indirect case mirrorRefused(RoomID, tags: [StoredTag])
    /// A user in a mirrored room begins to write, or ceases to.
    indirect case typing(RoomID, nick: String, Bool)
    /// Persist an uploaded file, in the same place; answered by `uploadStored`.
    indirect case storeUpload(UploadID, StoredFile)
    /// Persist the record of an upload, for ``MediaSettings/uploads`` of the next process.
    indirect case keepUpload(UploadRecord)
    /// The verdict on the token of an upload.
    case uploadTokenChecked(UInt64, UploadTokenVerdict)
    /// The result of an upload: the link to the file, or the failure.
    indirect case uploaded(UploadID, Result<String, UploadFailure>)
    indirect case note(BridgeNote)
    /// Accept no more clients. No `clientOpened` follows.
    case closeListeners
    /// Shutdown is complete.
    case stopped
}

/// The reason of a failed upload.
public enum UploadFailure: Error, Equatable, Sendable {
    /// The account may enter no room, or not the one given.
    case notAllowed
    /// The limit in bytes; nil: known to the backend only.
    case tooLarge(limit: Int?)
    case unsupportedType
    /// An error of the backend; a sentence without a full stop.
    case failed(String)
    /// It could not be stored locally.
    case notStored
}

/// Requests for the driver, in order: those of the hub, behind those that rooms made before.
package final class BridgeActions {
    private let context: RoomsContext
    private var list: [BridgeAction] = []
    /// The last action, while further bytes for the same client may follow, as the lines of an answer do.
    private var sending: (client: ClientID, bytes: ByteSlice)?
    /// The index of the first query to the store.
    private var asksStoreFrom: Int?

    package init(_ context: RoomsContext) { self.context = context }

    package func append(_ action: BridgeAction) {
        if case .send(let client, let bytes) = action, context.actions.isEmpty {
            if let before = sending, before.client == client, let all = before.bytes.extended(by: bytes) {
                sending = (client, all)
            } else {
                endSending()
                sending = (client, bytes)
            }
        } else {
            takeOver()
            list.append(action)
        }
    }

    /// Queues bytes for many clients. What the same clients get right behind it, as where a read brought many messages,
    /// is one action.
    package func fanOut(_ bytes: ByteSlice, to clients: [ClientID], except: ClientID?) {
        takeOver()
        if case .fanOut(let before, let others, let other) = list.last, other == except, others == clients,
            let both = before.extended(by: bytes)
        {
            list[list.count - 1] = .fanOut(both, clients, except: except)
        } else {
            list.append(.fanOut(bytes, clients, except: except))
        }
    }

    /// Queries the store behind all changes made so far.
    package func ask(_ question: BridgeAction) {
        takeOver()
        asksStoreFrom = asksStoreFrom ?? list.count
        list.append(question)
    }

    private func endSending() {
        guard let (client, bytes) = sending else { return }
        sending = nil
        list.append(.send(client, bytes))
    }

    private func takeOver() {
        endSending()
        guard !context.actions.isEmpty else { return }
        context.handActions { list.append(BridgeAction($0)) }
    }

    package func take() -> [BridgeAction] {
        takeOver()
        if let order = context.ledger.take() {
            let action = BridgeAction.store(order.ticket, order.changes)
            // A query about a room's history sees all earlier messages.
            if let first = asksStoreFrom { list.insert(action, at: first) } else { list.append(action) }
        }
        asksStoreFrom = nil
        defer { list.removeAll(keepingCapacity: true) }
        return list
    }
}

extension BridgeAction {
    package init(_ action: RoomsAction) {
        self =
            switch action {
            case .readCredentials(let link, let afterRefusal): .readCredentials(link, afterRefusal: afterRefusal)
            case .connectUpstream(let link, let endpoint, let isSecure, let timeout):
                .connectUpstream(link, to: endpoint, isSecure: isSecure, timeout: timeout)
            case .startTLS(let link, let host): .startTLS(link, host: host)
            case .sendUpstream(let link, let bytes): .sendUpstream(link, bytes)
            case .closeUpstream(let link, let flush): .closeUpstream(link, flush: flush)
            case .readTokens(let backend): .readTokens(backend)
            case .saveTokens(let backend, let tokens): .saveTokens(backend, tokens)
            case .readSecrets(let backend): .readSecrets(backend)
            case .callBackend(let call, let order): .callBackend(call, order)
            case .keepFile(let file): .keepFile(file)
            case .logged(let room): .logged(room)
            case .mirrored(let known): .mirrored(known)
            case .mirrorRefused(let room, let tags): .mirrorRefused(room, tags: tags)
            case .typing(let room, let nick, let isTyping): .typing(room, nick: nick, isTyping)
            case .note(let note): .note(note)
            }
    }
}
