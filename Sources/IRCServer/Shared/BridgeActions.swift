import Accounts
import BridgeTypes
public import ChatModel
import Media
import Rooms
import Upstream
public import WireBytes

/// What the bridge asks its driver to do. Plain values; the driver's switch over them is the only impure place.
public enum BridgeAction: Equatable {
    /// Queue bytes for one client.
    case send(ClientID, ByteSlice)
    /// Queue the same bytes for many clients, except the one named.
    case fanOut(ByteSlice, [ClientID], except: ClientID?)
    /// Call `clientDrained` once the client's queue is empty.
    case notifyWhenDrained(ClientID)
    /// Stop or resume taking bytes from a client.
    case pauseReading(ClientID)
    case resumeReading(ClientID)
    /// Flush what is queued, then close. `clientClosed` still follows.
    case closeClient(ClientID)
    /// Read the room's credentials; answered by `credentialsRead`, at once or later.
    ///
    /// `afterRefusal`: the backend has refused what was read last.
    case readCredentials(RoomID, afterRefusal: Bool)
    /// Read the tokens that are kept for a backend; answered by `tokensRead`.
    case readTokens(BackendID)
    /// Keep a backend's tokens, so that they outlast a crash; answered by `tokensSaved`, when they do.
    case saveTokens(BackendID, StoredTokens)
    /// Read what a backend's account is proven with; answered by `secretsRead`.
    case readSecrets(BackendID)
    /// Ask a backend by HTTP; answered by `backendAnswered`, within the order's time.
    case callBackend(BackendCallID, BackendCallRequest)
    /// Open a connection for a room, encrypted from its first byte on when `isSecure`; answered by `upstreamConnected` or
    /// `upstreamClosed`.
    case connectUpstream(RoomID, to: UpstreamEndpoint, isSecure: Bool, timeout: Duration)
    /// Begin TLS on a room's connection, which leads through a proxy to `host`; answered by `upstreamSecured` or
    /// `upstreamClosed`.
    case startTLS(RoomID, host: String)
    case sendUpstream(RoomID, ByteSlice)
    /// Close a room's connection: after flushing, or at once. No `upstreamClosed` is expected for it.
    case closeUpstream(RoomID, flush: Bool)
    /// Check a password on another thread; answered by `passwordChecked`, also when it cannot be done.
    case checkPassword(PasswordCheck)
    /// Hash a password on another thread; answered by `passwordHashed`, also when it cannot be done.
    case hashPassword(PasswordHashing)
    /// Keep changes, in the order of their tickets; answered by `storeSettled`, or by `storeOverflowed` when there is no
    /// room for them.
    case store(StoreTicket, [StoreOperation])
    /// Read what is kept of a room that was opened just now; answered by `roomLoaded`.
    case loadRoom(RoomID, StoredRoomKey)
    /// Read messages of a room: the first `limit` after one place, up to another; answered by `messagesRead`, oldest first.
    case readMessages(StoreReadID, StoredRoomKey, after: Int64, through: Int64, limit: Int)
    /// Find where a page of a room lies; answered by `placesFound`.
    case findPlaces(StoreReadID, StoredRoomKey, StoredPageQuery)
    /// Take one step of looking for messages of a room; answered by `messagesSearched`.
    case searchMessages(StoreReadID, StoredRoomKey, StoredSearch)
    /// Keep a file, so that links lead to it; one of that name may be there already.
    case keepFile(StoredFile)
    /// Keep a file that was uploaded, in the same place; answered by `uploadStored`.
    case storeUpload(UploadID, StoredFile)
    /// For ``MediaSettings/uploads`` of the next process.
    case keepUpload(UploadRecord)
    /// What became of an upload: the link to the file, or why there is none.
    case uploadTokenChecked(UInt64, UploadTokenVerdict)
    case uploaded(UploadID, Result<String, UploadFailure>)
    case note(BridgeNote)
    /// Shutdown is complete.
    case stopped
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
    /// It could not be stored here.
    case notStored
}

/// What the driver is to do, in order: what the hub asks for itself, and what the rooms left before that.
package final class BridgeActions {
    private let context: RoomsContext
    private var list: [BridgeAction] = []
    /// The first of them that asks the store something.
    private var asksStoreFrom: Int?

    package init(_ context: RoomsContext) { self.context = context }

    package func append(_ action: BridgeAction) {
        takeOver()
        list.append(action)
    }

    /// Asks the store something about all that was changed until now.
    package func ask(_ question: BridgeAction) {
        takeOver()
        asksStoreFrom = asksStoreFrom ?? list.count
        list.append(question)
    }

    private func takeOver() {
        guard !context.actions.isEmpty else { return }
        context.handActions { list.append(BridgeAction($0)) }
    }

    package func take() -> [BridgeAction] {
        takeOver()
        if let order = context.ledger.take() {
            let action = BridgeAction.store(order.ticket, order.changes)
            // Who asks about a room's past sees all that was said before.
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
            case .note(let note): .note(note)
            }
    }
}
