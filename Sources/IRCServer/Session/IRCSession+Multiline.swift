import BridgeTypes
import IRCProtocol
import Rooms

// An incoming message of several lines; the states are at the head of IncomingBatch.swift.

extension IRCSession {
    /// Gathered lines cost little: the message is charged when it is complete.
    func isGathered(_ message: IRCMessage) -> Bool {
        guard let batch = incomingBatch, message.command == "PRIVMSG" else { return false }
        return message.tag("batch")?.value == batch.reference
    }

    /// Flood tokens of a complete batch: every line is delivered to all members in the end.
    static func penalty(lineCount: Int) -> Int { 1 + lineCount / 10 }

    // MARK: - BATCH

    /// Source: IRCv3 batch; IRCv3 multiline.
    func batchStep(_ message: IRCMessage) -> BatchStep {
        let word = message.params[0]
        let reference = String(word.dropFirst())
        switch word.utf8.first {
        case UInt8(ascii: "+"): return open(reference, message)
        case UInt8(ascii: "-"): return close(reference)
        default: return invalid("BATCH begins with + or -", label: nil)
        }
    }

    private func open(_ reference: String, _ message: IRCMessage) -> BatchStep {
        guard caps.contains(.multiline), caps.contains(.batch) else {
            return invalid("Only clients with batch and draft/multiline send batches", label: nil)
        }
        let isDouble = incomingBatch.map { !$0.isRefused } ?? false
        let isName =
            !reference.isEmpty && reference.utf8.count <= IncomingBatch.maxReferenceBytes
            && !reference.utf8.contains { $0 <= 0x20 || $0 == 0x7F }
        var batch = IncomingBatch(reference: isName ? reference : "")
        batch.isRefused = true
        defer { incomingBatch = batch }
        guard isName else { return invalid("That is no name for a batch", label: nil) }
        guard !isDouble else { return invalid("One batch at a time; both are dropped", label: nil) }
        guard message.params.count > 2, message.params[1] == "draft/multiline", !message.params[2].isEmpty else {
            return invalid("Batches from clients are draft/multiline, to one target", label: nil)
        }
        batch.isRefused = false
        batch.target = message.params[2]
        batch.tags = message.tags.filter(\.isClientOnly)
        if response != nil {
            // Answered by the echo, or at the end of the batch.
            batch.label = response?.label
            deferResponse()
        }
        return .taken
    }

    private func close(_ reference: String) -> BatchStep {
        guard let batch = incomingBatch else {
            return caps.contains(.multiline) ? invalid("No batch is open", label: nil) : .taken
        }
        incomingBatch = nil
        guard !batch.isRefused else { return .taken }
        guard batch.reference == reference else {
            return invalid("The batch that is open has another name", label: batch.label)
        }
        guard batch.hasWords else { return invalid("A message has words", label: batch.label) }
        return .complete(batch)
    }

    // MARK: - Lines

    /// Processes a line of a batch; nil: it belongs to none.
    func batchedLine(_ message: IRCMessage) -> BatchStep? {
        guard caps.contains(.multiline), let reference = message.tag("batch")?.value else { return nil }
        guard var batch = incomingBatch else { return invalid("No such batch is open", label: nil) }
        guard !batch.isRefused else { return .taken }
        func refuse(_ code: String, _ context: [String], _ text: String) -> BatchStep {
            let label = batch.label
            batch = IncomingBatch(reference: batch.reference, isRefused: true)
            incomingBatch = batch
            return refusal(code, context, text, label: label)
        }
        guard batch.reference == reference else {
            return refuse("MULTILINE_INVALID", [], "The batch that is open has another name")
        }
        guard message.command == "PRIVMSG", let target = message.params.first else {
            return refuse("MULTILINE_INVALID", [], "Only PRIVMSG stands in a batch")
        }
        guard terms.casemapping.fold(target) == terms.casemapping.fold(batch.target) else {
            return refuse(
                "MULTILINE_INVALID_TARGET", [PrintableText.word(batch.target), PrintableText.word(target)],
                "All lines of a batch have its target")
        }
        let text = message.params.count > 1 ? message.params[1] : ""
        let isContinuation = message.tag("draft/multiline-concat") != nil
        guard !isContinuation || !text.isEmpty else {
            return refuse("MULTILINE_INVALID", [], "A line that continues another is not blank")
        }
        guard batch.lineCount < multilineLimits.lines else {
            return refuse("MULTILINE_MAX_LINES", [String(multilineLimits.lines)], "The message has too many lines")
        }
        let joint = batch.lineCount > 0 && !isContinuation ? 1 : 0
        guard batch.words.text.utf8.count + joint + text.utf8.count <= multilineLimits.bytes else {
            return refuse("MULTILINE_MAX_BYTES", [String(multilineLimits.bytes)], "The message is too long")
        }
        if joint > 0 { batch.words.text += "\n" }
        if isContinuation, batch.lineCount > 0 { batch.words.cuts.append(batch.words.text.utf8.count) }
        batch.words.text += text
        batch.lineCount += 1
        if !text.isEmpty { batch.hasWords = true }
        incomingBatch = batch
        return .taken
    }

    private func invalid(_ text: String, label: String?) -> BatchStep {
        refusal("MULTILINE_INVALID", [], text, label: label)
    }

    private func refusal(_ code: String, _ context: [String], _ text: String, label: String?) -> BatchStep {
        var line = IRCMessage(source: serverName, command: "FAIL", params: ["BATCH", code] + context + [text])
        if let label { line.setTag("label", label) }
        return .refused(line)
    }
}
