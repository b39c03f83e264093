import BridgeTypes
import Dialects
import HTTPProtocol
import Rooms
import Transport
import Upstream

/// Executes the requests of backend accounts: calls over HTTP on the loop, files beside it.
final class BackendDriver {
    /// Files are small and the disk is one.
    static let fileThreads = 1
    /// Pieces of work that wait for the disk: each backend has one at a time.
    static let maxWaitingFiles = 1000

    let client = HTTPClient()
    /// For files: they take long, and calls must not wait for slow readers.
    let files = HTTPClient(connectionsPerOrigin: MediaBounds.downloads)
    /// By the backend's name.
    private var places: [String: BackendPlace]
    /// By the index of the backend.
    private var names: [String]
    private let store: TokenStore
    private var secrets: @Sendable (String) -> Result<BackendSecrets, UpstreamCredentialsFailure>
    private let loop: NetworkLoop
    private let workers = WorkPool(
        name: "files", maxThreads: BackendDriver.fileThreads, maxWaiting: BackendDriver.maxWaitingFiles)
    private var random = BufferedSystemRandom()

    /// - Parameters:
    ///   - names: of the backends, in the order of the bridge's settings.
    ///   - secrets: reads the account's credentials; called on another thread.
    init(
        loop: NetworkLoop, names: [String], places: [String: BackendPlace], store: TokenStore,
        secrets: @escaping @Sendable (String) -> Result<BackendSecrets, UpstreamCredentialsFailure>
    ) {
        self.loop = loop
        self.names = names
        self.places = places
        self.store = store
        self.secrets = secrets
    }

    /// The configuration was read again.
    func take(
        names: [String], places: [String: BackendPlace],
        secrets: @escaping @Sendable (String) -> Result<BackendSecrets, UpstreamCredentialsFailure>
    ) {
        self.names = names
        self.places.merge(places) { $1 }
        self.secrets = secrets
    }

    /// False: there are none.
    func removeTokens(_ backend: String) -> Bool { store.remove(backend: backend) }

    private func name(_ id: BackendID) -> String { names.indices.contains(id.index) ? names[id.index] : "" }

    func call(
        _ order: BackendCallRequest, _ transport: Transport,
        _ done: @escaping @Sendable (Result<BackendCallResponse, BackendCallFailure>, Transport) -> Void
    ) {
        let request: HTTPClientRequest
        do throws(BackendCallFailure) {
            guard let place = places[name(order.backend)] else {
                throw BackendCallFailure(sentence: "the backend has no http_base")
            }
            request = try place.request(order, using: &random)
        } catch {
            // Later, as every answer: the caller is in the middle of something.
            let failure = error
            return loop.enqueue { done(.failure(failure), $0) }
        }
        let host = request.url.host
        client.send(request, transport: transport) { outcome, transport in
            switch outcome {
            case .success(let response):
                let wall = transport.wallClockMilliseconds
                let retryAfter = response.head.headers.first("Retry-After").flatMap {
                    RetryAfter.delay($0, wallMilliseconds: wall)
                }
                let answer = BackendAnswer(status: response.head.status, body: response.body)
                done(.success(BackendCallResponse(answer, retryAfter: retryAfter)), transport)
            case .failure(let error):
                done(
                    .failure(BackendCallFailure(sentence: "\(host): \(error.sentence)", isFinal: error.isFinal)),
                    transport)
            }
        }
    }

    /// Asks for a file, which comes to `receiver`.
    ///
    /// - Parameter fields: more of the request's head, which can stand there.
    /// - Returns: nil: the file cannot be requested, and `done` is not called.
    func fetch(
        _ order: BackendCallRequest, fields: [(name: String, value: String)], _ transport: Transport,
        _ receiver: any HTTPBodyReceiver, _ done: @escaping HTTPClient.Completion
    ) -> HTTPClient.CallID? {
        guard let place = places[name(order.backend)], var request = try? place.request(order, using: &random)
        else { return nil }
        request.headers.removeAll("Accept")
        request.headers.append(name: "Accept", value: "*/*")
        for field in fields { request.headers.append(name: field.name, value: field.value) }
        return files.send(request, transport: transport, receiver: receiver, completion: done)
    }

    func readTokens(_ id: BackendID, _ done: @escaping @Sendable (StoredTokens?, Transport) -> Void) {
        let (store, name, loop) = (store, name(id), loop)
        let isTaken = workers.submit {
            let tokens = store.read(backend: name)
            loop.enqueue { done(tokens, $0) }
        }
        if !isTaken { loop.enqueue { done(nil, $0) } }
    }

    func saveTokens(
        _ id: BackendID, _ tokens: StoredTokens,
        _ done: @escaping @Sendable (Result<Void, UpstreamCredentialsFailure>, Transport) -> Void
    ) {
        let (store, name, loop) = (store, name(id), loop)
        let isTaken = workers.submit {
            let outcome: Result<Void, UpstreamCredentialsFailure>
            do throws(UpstreamCredentialsFailure) {
                outcome = .success(try store.save(tokens, backend: name))
            } catch {
                outcome = .failure(error)
            }
            loop.enqueue { done(outcome, $0) }
        }
        if !isTaken { loop.enqueue { done(.failure(Self.busy), $0) } }
    }

    func readSecrets(
        _ id: BackendID,
        _ done: @escaping @Sendable (Result<BackendSecrets, UpstreamCredentialsFailure>, Transport) -> Void
    ) {
        let (secrets, name, loop) = (secrets, name(id), loop)
        let isTaken = workers.submit {
            let outcome = secrets(name)
            loop.enqueue { done(outcome, $0) }
        }
        if !isTaken { loop.enqueue { done(.failure(Self.busy), $0) } }
    }

    private static let busy = UpstreamCredentialsFailure("the write queue is full")
}
