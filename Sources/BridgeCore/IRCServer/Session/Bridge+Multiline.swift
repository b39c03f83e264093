import IRCProtocol

// A message of several lines that is complete, and how messages of several lines leave.

extension Bridge {
    /// PRIVMSG, NOTICE or TAGMSG of a batch; false: it is a message of its own.
    func takeBatchedLine(_ message: IRCMessage, _ session: IRCSession) -> Bool {
        guard let step = session.batchedLine(message) else { return false }
        carryOut(step, session)
        return true
    }

    func carryOut(_ step: BatchStep, _ session: IRCSession) {
        switch step {
        case .taken: break
        case .refused(let line): reply(line, session)
        case .complete(let batch): multiline(batch, session)
        }
    }

    private func multiline(_ batch: IncomingBatch, _ session: IRCSession) {
        var penalty = IRCSession.penalty(lineCount: batch.lineCount)
        // What it is told in this way costs what it costs in one line.
        if isService(batch.target) { penalty += servicePenalty(of: batch.words.text) - 1 }
        _ = session.budget.take(Double(penalty), now: context.now.monotonic)
        if let label = batch.label {
            // The line that ends the batch may have one too; nothing else answers it.
            finishResponse(session)
            session.response = IRCSession.LabeledResponse(label: label)
        }
        message(.privmsg, targets: [batch.target], words: batch.words, tags: batch.tags, session)
    }

    func echo(_ said: IRCUtterance, to client: ClientID, label: String?) {
        guard let session = sessions[client], session.caps.contains(.echoMessage) else { return }
        let lines = said.messages(for: session.caps, reference: nextBatchReference)
        guard lines.first?.command == "BATCH" else { return echo(lines, to: client, label: label) }
        let backlog = runningBacklog(ofTarget: said.head.params.first, session)
        for (index, line) in lines.enumerated() {
            if label != nil || backlog != nil {
                write(line, to: session, label: index == 0 ? label : nil, batch: nil, heldBy: backlog)
            } else {
                deliver(line, to: client, label: nil)
            }
        }
    }

    func deliver(_ said: IRCUtterance, to client: ClientID) {
        guard let session = sessions[client] else { return }
        for line in said.messages(for: session.caps, reference: nextBatchReference) {
            deliver(line, to: client, label: nil)
        }
    }

    /// Whether an answer is one batch from beginning to end, which can carry the label itself.
    static func isOneBatch(_ lines: [IRCMessage]) -> Bool {
        guard lines.count > 1, let first = lines.first, let last = lines.last, first.command == "BATCH",
            last.command == "BATCH", let opened = first.params.first, let closed = last.params.first,
            opened.hasPrefix("+"), closed.hasPrefix("-"), opened.dropFirst() == closed.dropFirst()
        else { return false }
        let reference = String(opened.dropFirst())
        return lines.dropFirst().dropLast().allSatisfy { $0.tag("batch")?.value == reference }
    }
}
