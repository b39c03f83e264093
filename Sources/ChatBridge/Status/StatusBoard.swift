import BridgeCore
import BridgeTypes
import ChatModel
import HTTPProtocol
import JSONText
import Rooms
import Transport
import WireBytes

/// What the status page shows beside the present: samples of the last minutes and the newest notes. Passes changes on to
/// the open pages.
final class StatusBoard: LoopClient {
    static let sampleInterval: Duration = .seconds(2)
    /// Ten minutes.
    static let maxSamples = 300
    static let maxNotes = 100
    /// Open pages; each costs a document every ``sampleInterval``.
    static let maxStreams = 16
    /// A page that takes nothing for so long is closed.
    static let maxStall: Duration = .seconds(20)

    struct Sample: Equatable {
        var at: ChatTimestamp
        /// Messages since the sample before.
        var messagesIn: Int
        var messagesOut: Int
        /// Nil: there were none.
        var p50: Duration?
        var p99: Duration?
    }

    struct Note: Equatable {
        var at: ChatTimestamp
        var note: BridgeNote
    }

    /// Sentences about questionable settings.
    let warnings: [String]
    private let store: StoreDriver?
    private weak var driver: BridgeDriver?
    private(set) var samples: [Sample] = []
    private(set) var notes: [Note] = []
    /// Notes since the last tick.
    private var freshNotes = 0
    private var streams: [HTTPExchange] = []
    private var nextSampleAt: MonotonicInstant?
    private var before: (messagesIn: Int, messagesOut: Int, latency: Histogram) = (0, 0, Histogram())

    init(warnings: [String], store: StoreDriver?) {
        self.warnings = warnings
        self.store = store
    }

    /// Begins sampling.
    func attach(_ driver: BridgeDriver, now: MonotonicInstant) {
        self.driver = driver
        nextSampleAt = now + Self.sampleInterval
    }

    /// Keeps a note, unless it is for the developer: those may hold chat text.
    func noted(_ note: BridgeNote, at: ChatTimestamp) {
        guard note.level <= .info else { return }
        if notes.count == Self.maxNotes { notes.removeFirst() }
        notes.append(Note(at: at, note: note))
        freshNotes = min(freshNotes + 1, Self.maxNotes)
    }

    // MARK: - The loop

    func owns(_ connection: ConnectionID) -> Bool { false }
    func owns(_ listener: ListenerID) -> Bool { false }
    func connectionAccepted(_ id: ConnectionID, listener: ListenerID, peer: SocketAddress, transport: Transport) {}
    func connectionReceived(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, transport: Transport) {}
    func connectionClosed(_ id: ConnectionID, _ end: StreamEnd, transport: Transport) {}

    func nextDeadline() -> MonotonicInstant? { nextSampleAt }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        guard let due = nextSampleAt, now >= due, let driver else { return }
        nextSampleAt = now + Self.sampleInterval
        takeSample(driver.bridge, at: BridgeDriver.now(transport).wall)
        streams.removeAll { !$0.isOpen }
        if !streams.isEmpty {
            let event = event(driver, samples: samples.suffix(1), notes: notes.suffix(freshNotes), transport)
            for stream in streams {
                if let stall = stream.stall(transport), stall > Self.maxStall {
                    stream.breakOff(transport)
                } else {
                    stream.write(event, transport: transport)
                }
            }
        }
        freshNotes = 0
    }

    private func takeSample(_ bridge: Bridge, at: ChatTimestamp) {
        let relayed = bridge.relayedCounts
        let latency = bridge.latency.down + bridge.latency.up
        let fresh = latency.since(before.latency)
        if samples.count == Self.maxSamples { samples.removeFirst() }
        samples.append(
            // Rooms of a template take their counts along.
            Sample(
                at: at, messagesIn: max(0, relayed.down - before.messagesIn),
                messagesOut: max(0, relayed.up - before.messagesOut), p50: fresh.quantile(0.5),
                p99: fresh.quantile(0.99)))
        before = (relayed.down, relayed.up, latency)
    }

    // MARK: - Documents

    /// The document of /status.json.
    func document(_ driver: BridgeDriver, _ transport: Transport) -> [UInt8] {
        var writer = JSONWriter()
        append(driver, to: &writer, transport)
        return writer.finish() + [UInt8(ascii: "\n")]
    }

    /// Begins a stream of events: everything now, then changes.
    func open(_ exchange: HTTPExchange, _ driver: BridgeDriver, _ transport: Transport) {
        streams.removeAll { !$0.isOpen }
        guard streams.count < Self.maxStreams else {
            return exchange.respond(
                503, headers: HTTPHeaders([("Content-Type", "text/plain; charset=utf-8"), ("Retry-After", "10")]),
                body: Array("too many open pages\n".utf8), transport: transport)
        }
        exchange.begin(200, headers: .notStored("text/event-stream"), transport: transport)
        guard exchange.head.method != "HEAD" else { return exchange.finish(transport: transport) }
        exchange.write(event(driver, samples: samples[...], notes: notes[...], transport), transport: transport)
        streams.append(exchange)
    }

    /// Source: HTML, "Server-sent events".
    private func event(
        _ driver: BridgeDriver, samples: ArraySlice<Sample>, notes: ArraySlice<Note>, _ transport: Transport
    ) -> ByteSlice {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("status")
        append(driver, to: &writer, transport)
        writer.key("interval")
        writer.seconds(Self.sampleInterval)
        writer.key("samples")
        writer.beginArray()
        for sample in samples {
            writer.beginArray()
            writer.integer(sample.at.milliseconds)
            writer.integer(Int64(sample.messagesIn))
            writer.integer(Int64(sample.messagesOut))
            writer.seconds(sample.p50)
            writer.seconds(sample.p99)
            writer.endArray()
        }
        writer.endArray()
        writer.key("notes")
        append(notes, to: &writer)
        writer.endObject()
        return ByteSlice(copying: Array("data: ".utf8) + writer.finish() + Array("\n\n".utf8))
    }

    private func append(_ driver: BridgeDriver, to writer: inout JSONWriter, _ transport: Transport) {
        let bridge = driver.bridge
        let status = bridge.status(now: BridgeDriver.now(transport))
        let certificates = driver.certificateEnds(transport)
        let readiness = Readiness(
            rooms: bridge.roomStates, isRunning: bridge.isRunning, storage: store?.condition ?? .sound, isStrict: false)
        writer.beginObject()
        status.appendMembers(to: &writer)
        writer.key("ready")
        writer.bool(readiness.isReady)
        append("reasons", readiness.reasons, to: &writer)
        writer.key("troubles")
        writer.beginArray()
        for trouble in StatusTrouble.all(status, certificates: certificates) {
            writer.beginObject()
            writer.key("level")
            writer.string(trouble.level.rawValue)
            writer.key("subject")
            writer.string(trouble.subject)
            writer.key("text")
            writer.string(trouble.text)
            writer.endObject()
        }
        writer.endArray()
        append("warnings", warnings, to: &writer)
        writer.key("certificates")
        writer.beginArray()
        for certificate in certificates {
            writer.beginObject()
            writer.key("listener")
            writer.string(certificate.listener)
            writer.key("ends_at")
            writer.time(ChatTimestamp(milliseconds: certificate.at * 1000))
            writer.endObject()
        }
        writer.endArray()
        writer.key("latency")
        writer.beginObject()
        for (name, histogram) in [("down", bridge.latency.down), ("up", bridge.latency.up)] {
            writer.key(text: name)
            writer.beginObject()
            writer.key("count")
            writer.integer(Int64(histogram.count))
            writer.key("p50")
            writer.seconds(histogram.quantile(0.5))
            writer.key("p99")
            writer.seconds(histogram.quantile(0.99))
            writer.endObject()
        }
        writer.endObject()
        writer.endObject()
    }

    private func append(_ key: String, _ texts: [String], to writer: inout JSONWriter) {
        writer.key(text: key)
        writer.beginArray()
        for text in texts { writer.string(text) }
        writer.endArray()
    }

    private func append(_ notes: ArraySlice<Note>, to writer: inout JSONWriter) {
        writer.beginArray()
        for entry in notes {
            writer.beginObject()
            writer.key("at")
            writer.time(entry.at)
            writer.key("level")
            writer.string("\(entry.note.level)")
            writer.key("event")
            writer.string(entry.note.event)
            writer.key("text")
            writer.string(entry.note.text)
            writer.key("about")
            writer.string(
                entry.note.metadata.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }
                    .map { "\($0.key)=\($0.value)" }.joined(separator: " "))
            writer.endObject()
        }
        writer.endArray()
    }
}
