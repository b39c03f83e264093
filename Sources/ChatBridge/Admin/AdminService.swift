import BridgeCore
import BridgeTypes
import ChatModel
import Configuration
import JSONText
import Rooms
import Transport
import Upstream

/// What the requests of ``AdminTable`` do: they read the bridge, or call one of its verbs.
final class AdminService {
    let driver: BridgeDriver
    let store: StoreDriver?
    private let configuration: ConfigurationReload?
    let loop: NetworkLoop
    private let instanceID: String
    private let watchers = AdminWatchers()
    /// Questions to the store that are not answered yet.
    private var questions: [UInt64: (Result<[StoredMessage], StoreFailure>) -> Void] = [:]
    private var places: [UInt64: (Result<StoredPlaces, StoreFailure>) -> Void] = [:]
    private var lastQuestion: UInt64 = 0
    var erasures: [UInt64: (Result<StoredErasure, StoreFailure>) -> Void] = [:]

    init(
        _ driver: BridgeDriver, store: StoreDriver?, reload: ConfigurationReload?, loop: NetworkLoop,
        instanceID: String
    ) {
        self.driver = driver
        self.store = store
        configuration = reload
        self.loop = loop
        self.instanceID = instanceID
    }

    var bridge: Bridge { driver.bridge }

    /// Calls a verb of the bridge and runs what follows from it.
    func perform<Result>(_ exchange: AdminExchange, _ verb: (Bridge, Now) -> Result) -> Result {
        let result = verb(bridge, Now(exchange.transport))
        driver.run(exchange.transport)
        return result
    }

    /// The configured name of the room that a request names, or nil and an answer.
    func room(_ call: AdminCall, _ exchange: AdminExchange) -> String? {
        let asked = call.text("room") ?? ""
        if let name = bridge.roomName(asked) { return name }
        let names = bridge.roomNames
        let shown = names.prefix(20).joined(separator: ", ") + (names.count > 20 ? ", …" : "")
        exchange.fail(.notFound, "there is no room \"\(asked)\"; there are: \(shown)")
        return nil
    }

    // MARK: - State

    func status(_ exchange: AdminExchange) {
        var writer = JSONWriter(capacity: 4096)
        writer.beginObject()
        writer.key("done")
        writer.beginObject()
        StatusDocument(driver, store: store, reload: configuration, exchange.transport)
            .appendMembers(to: &writer)
        writer.key("instance")
        writer.string(instanceID)
        writer.endObject()
        writer.endObject()
        exchange.complete(writer.finish() + [UInt8(ascii: "\n")])
    }

    func ready(_ exchange: AdminExchange) {
        let readiness = Readiness(bridge, store)
        exchange.done([
            .init("ready", .bool(readiness.isReady)),
            .init("reasons", .array(readiness.reasons.map { .string($0) })),
        ])
    }

    /// The client makes the copy, with its own rights.
    func storePlace(_ exchange: AdminExchange) {
        guard let store else {
            return exchange.fail(
                .unavailable, "nothing is stored: storage is in memory (url = \"memory:\" in [storage])")
        }
        if let reason = store.exclusiveReason {
            return exchange.fail(
                .unavailable,
                "the database is open for the bridge alone until its next start (\(reason)), so no other "
                    + "program can read it")
        }
        exchange.done([.init("path", .string(store.path))])
    }

    /// As SIGHUP does. The lists that are empty are left out.
    func reload(_ exchange: AdminExchange) {
        switch configuration?.run(exchange.transport) {
        case .applied(let change)?:
            exchange.done(
                change.lists.filter { !$0.names.isEmpty }.map { list in
                    .init(list.title, .array(list.names.map { .string($0) }))
                })
        case .refused(let problems)?:
            for problem in problems { exchange.item(.object([.init("problem", .string(problem))])) }
            exchange.fail(.configuration, "nothing was changed: the configuration has errors")
        case .impossible? where bridge.isRunning, nil:
            exchange.fail(.unavailable, "the bridge has no configuration that it could read again")
        case .impossible?: exchange.fail(.unavailable, "the bridge is stopping")
        }
    }

    // MARK: - Rooms and clients

    func reconnect(_ call: AdminCall, _ exchange: AdminExchange) {
        guard let room = room(call, exchange) else { return }
        let outcome = perform(exchange) { $0.reconnect(room, now: $1) }
        exchange.done([.init("room", .string(room)), .init("outcome", .string(outcome?.rawValue ?? ""))])
    }

    func disable(_ call: AdminCall, _ exchange: AdminExchange) {
        guard let room = room(call, exchange) else { return }
        let isChanged = perform(exchange) { $0.disable(room, now: $1) }
        exchange.done([.init("room", .string(room)), .init("changed", .bool(isChanged == true))])
    }

    func enable(_ call: AdminCall, _ exchange: AdminExchange) {
        guard let room = room(call, exchange) else { return }
        let isChanged = perform(exchange) { $0.enable(room, now: $1) }
        exchange.done([.init("room", .string(room)), .init("changed", .bool(isChanged == true))])
    }

    /// Bytes of a reason that are shown.
    private static let maxReasonBytes = 200

    func kick(_ call: AdminCall, _ exchange: AdminExchange) {
        let number = call.number("id") ?? 0
        let asked = PrintableText.of(call.text("reason") ?? "", maxBytes: Self.maxReasonBytes)
        let reason = asked.isEmpty ? "Disconnected by an administrator" : asked
        let client = ClientID(rawValue: UInt64(clamping: number))
        guard perform(exchange, { $0.disconnect(client, reason: reason, now: $1) }) else {
            return exchange.fail(.notFound, "there is no client \(number)")
        }
        exchange.done([.init("id", .integer(number))])
    }

    func drain(_ exchange: AdminExchange) {
        guard bridge.isRunning else { return exchange.fail(.unavailable, "the bridge is stopping already") }
        exchange.done()
        driver.shutdown(exchange.transport)
    }

    func say(_ call: AdminCall, _ exchange: AdminExchange) {
        guard let room = room(call, exchange) else { return }
        let text = call.text("text") ?? ""
        guard !MessageText.cleanBody(text).allSatisfy(\.isWhitespace) else {
            return exchange.fail(.badRequest, "there is nothing to say")
        }
        guard bridge.isRunning else { return exchange.fail(.unavailable, "the bridge is stopping") }
        switch perform(exchange, { $0.say(text, in: room, now: $1) }) {
        case .queueFull?: exchange.fail(.unavailable, "too many messages of this room wait for the backend")
        case .done?:
            exchange.done([
                .init("room", .string(room)), .init("queued", .bool(!bridge.isLive(room))),
            ])
        default: exchange.fail(.unavailable, "the room takes no message now")
        }
    }

    // MARK: - Watching

    func tail(_ call: AdminCall, _ exchange: AdminExchange) {
        var only: String?
        if call.text("room") != nil {
            guard let room = room(call, exchange) else { return }
            only = room
        }
        watchers.add(exchange, room: only, isRaw: call.flag("raw"), bridge)
    }

    // MARK: - The store

    func nextQuestion() -> UInt64 {
        lastQuestion += 1
        return lastQuestion
    }

    /// The first `limit` messages of a range of places, from the store or from memory.
    func read(
        _ room: String, after: Int64, through: Int64, limit: Int,
        _ done: @escaping (Result<[StoredMessage], StoreFailure>) -> Void
    ) {
        guard let store, let key = bridge.storedKey(of: room) else {
            return done(
                .success(
                    bridge.messagesInMemory(of: room)?.messages(after: after, through: through, limit: limit) ?? []))
        }
        let question = nextQuestion()
        questions[question] = done
        store.read(key, after: after, through: through, limit: limit, on: loop) { outcome, transport in
            transport.adminServer?.service.questions.removeValue(forKey: question)?(outcome)
        }
    }

    func find(
        _ room: String, _ query: StoredPageQuery, _ done: @escaping (Result<StoredPlaces, StoreFailure>) -> Void
    ) {
        guard let store, let key = bridge.storedKey(of: room) else {
            return done(.success(bridge.messagesInMemory(of: room)?.places(query) ?? StoredPlaces()))
        }
        let question = nextQuestion()
        places[question] = done
        store.find(key, query, on: loop) { outcome, transport in
            transport.adminServer?.service.places.removeValue(forKey: question)?(outcome)
        }
    }
}
