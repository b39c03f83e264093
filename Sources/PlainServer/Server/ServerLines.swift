import IRCProtocol
import WireBytes

/// Bytes of the server to its lines, with what it sends as one batch together.
struct ServerLines: ~Copyable {
    enum Event {
        /// A line; also several that are one message, and those of a labelled answer, each with the label.
        case line(IRCMessage)
        case history(IRCBatches.Batch)
        case found(IRCBatches.Batch)
        /// Many at once.
        case came([IRCMessage])
        case left([IRCMessage])
    }

    private var decoder = IRCLineDecoder(limits: IRCLimits(maxReceivedTagBytes: IRCLimits.maxTagBytes))
    private var batches = IRCBatches(Set(IRCBatches.Batch.Kind.allCases))

    mutating func received(_ bytes: UnsafeRawBufferPointer) -> [Event] {
        decoder.append(bytes)
        var events: [Event] = []
        while let message = decoder.withNextLine({ Self.message($0) }) { if let message { take(message, &events) } }
        return events
    }

    private static func message(_ line: IRCLineDecoder.Line) -> IRCMessage? {
        guard case .line(let bytes) = line else { return nil }
        return try? IRCParse.parse(bytes)
    }

    private mutating func take(_ message: IRCMessage, _ events: inout [Event]) {
        if message.command == "BATCH" {
            if let batch = batches.received(message) { ended(batch, &events) }
        } else if !batches.take(message) {
            events.append(.line(message))
        }
    }

    private mutating func ended(_ batch: IRCBatches.Batch, _ events: inout [Event]) {
        switch batch.kind {
        case .multiline: if let whole = batch.message { take(whole, &events) }
        case .history: events.append(.history(batch))
        case .search: events.append(.found(batch))
        case .labeledResponse:
            for var line in batch.lines {
                line.removeTag("batch")
                if let label = batch.head.tag("label")?.value { line.setTag("label", label) }
                take(line, &events)
            }
        case .joins: events.append(.came(batch.lines))
        case .leaves: events.append(.left(batch.lines))
        }
    }
}
