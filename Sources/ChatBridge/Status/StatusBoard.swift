import BridgeCore
import BridgeTypes
import ChatModel
import HTTPProtocol
import JSONText
import Rooms
import Transport
import WireBytes

/// The past that the status page shows: samples of the last minutes and the newest notes. Sends changes to the open
/// pages.
final class StatusBoard: ConnectionlessLoopClient {
    static let sampleInterval: Duration = .seconds(2)
    /// Ten minutes.
    static let maxSamples = 300
    static let maxNotes = 100
    /// Open pages; each costs a document every ``sampleInterval``.
    static let maxStreams = 16
    /// Clients that an open page shows.
    static let maxClients = 200
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

    private struct Counts: Equatable {
        var samples = 0
        var notes = 0
    }

    /// An open page.
    private final class Stream {
        let exchange: HTTPExchange
        /// What it was sent.
        var sent = Counts()
        /// It has taken the event before. Until then it gets no other, so that no more than one waits.
        var isDrained = true

        init(_ exchange: HTTPExchange) { self.exchange = exchange }
    }

    struct Note: Equatable {
        var at: ChatTimestamp
        var note: BridgeNote
    }

    /// Sentences about questionable settings.
    let warnings: [String]
    private let store: StoreDriver?
    private let reload: ConfigurationReload?
    private weak var host: (any BridgeHost)?
    private(set) var samples: [Sample] = []
    private(set) var notes: [Note] = []
    /// Samples and notes since the start, those that were dropped included.
    private var counts = Counts()
    private var streams: [Stream] = []
    private var nextSampleAt: MonotonicInstant?
    private var before: (messagesIn: Int, messagesOut: Int, latency: Histogram) = (0, 0, Histogram())

    init(warnings: [String], store: StoreDriver?, reload: ConfigurationReload? = nil) {
        self.warnings = warnings
        self.store = store
        self.reload = reload
    }

    /// Begins sampling.
    func attach(_ host: any BridgeHost, now: MonotonicInstant) {
        self.host = host
        nextSampleAt = now + Self.sampleInterval
    }

    /// Keeps a note, unless it is for the developer: those may hold chat text.
    func noted(_ note: BridgeNote, at: ChatTimestamp) {
        guard note.level <= .info else { return }
        if notes.count == Self.maxNotes { notes.removeFirst() }
        notes.append(Note(at: at, note: note))
        counts.notes += 1
    }

    // MARK: - The loop

    func nextDeadline() -> MonotonicInstant? { nextSampleAt }

    func deadlineReached(now: MonotonicInstant, transport: Transport) {
        guard let due = nextSampleAt, now >= due, let host else { return }
        nextSampleAt = now + Self.sampleInterval
        takeSample(host.bridge, at: Now(transport).wall)
        streams.removeAll { !$0.exchange.isOpen }
        guard !streams.isEmpty else { return }
        let status = status(host, transport)
        // Pages that keep up get the same event.
        var last: (sent: Counts, event: ByteSlice)?
        for stream in streams {
            if stream.isDrained {
                let same = last.flatMap { $0.sent == stream.sent ? $0.event : nil }
                let event = same ?? event(status, behind: stream.sent)
                last = (stream.sent, event)
                send(event, to: stream, transport)
            } else if let stall = stream.exchange.stall(transport), stall > Self.maxStall {
                stream.exchange.breakOff(transport)
            }
        }
    }

    private func send(_ event: ByteSlice, to stream: Stream, _ transport: Transport) {
        stream.sent = counts
        stream.isDrained = false
        stream.exchange.write(event, transport: transport)
        stream.exchange.whenDrained(transport) { [weak stream] _ in stream?.isDrained = true }
    }

    private func takeSample(_ bridge: Bridge, at: ChatTimestamp) {
        let relayed = bridge.relayedCounts
        let latency = bridge.latency.down + bridge.latency.up
        let fresh = latency.since(before.latency)
        counts.samples += 1
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
    func document(_ transport: Transport) -> [UInt8] {
        guard let host else { return [] }
        var writer = JSONWriter()
        append(StatusDocument(host, store: store, reload: reload, transport), host.bridge.latency, to: &writer)
        return writer.finish() + [UInt8(ascii: "\n")]
    }

    /// Begins a stream of events: everything now, then changes.
    func open(_ exchange: HTTPExchange, _ transport: Transport) {
        guard let host else { return }
        streams.removeAll { !$0.exchange.isOpen }
        guard streams.count < Self.maxStreams else {
            return exchange.respond(
                503, headers: HTTPHeaders([("Content-Type", "text/plain; charset=utf-8"), ("Retry-After", "10")]),
                body: Array("too many open pages\n".utf8), transport: transport)
        }
        exchange.begin(200, headers: .notStored("text/event-stream"), transport: transport)
        guard exchange.head.method != "HEAD" else { return exchange.finish(transport: transport) }
        let stream = Stream(exchange)
        streams.append(stream)
        send(event(status(host, transport), behind: Counts()), to: stream, transport)
    }

    /// The status for an open page, as JSON.
    private func status(_ host: any BridgeHost, _ transport: Transport) -> [UInt8] {
        var writer = JSONWriter()
        var document = StatusDocument(host, store: store, reload: reload, transport)
        document.limitClients(to: Self.maxClients)
        append(document, host.bridge.latency, to: &writer)
        return writer.finish()
    }

    /// The status with the samples and notes since then.
    ///
    /// Source: HTML, "Server-sent events".
    private func event(_ status: [UInt8], behind sent: Counts) -> ByteSlice {
        let (samples, notes) = (
            samples.suffix(counts.samples - sent.samples), notes.suffix(counts.notes - sent.notes)
        )
        var writer = JSONWriter()
        writer.beginObject()
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
        let head = Array("data: {\"status\":".utf8) + status + [UInt8(ascii: ",")]
        return ByteSlice(copying: head + writer.finish().dropFirst() + Array("\n\n".utf8))
    }

    private func append(_ document: StatusDocument, _ latency: RelayLatency, to writer: inout JSONWriter) {
        writer.beginObject()
        document.appendMembers(to: &writer)
        writer.texts("warnings", warnings)
        writer.key("latency")
        writer.beginObject()
        for (name, histogram) in [("down", latency.down), ("up", latency.up)] {
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
            writer.string(entry.note.metadata.sorted.map { "\($0.key)=\($0.value)" }.joined(separator: " "))
            writer.endObject()
        }
        writer.endArray()
    }
}
