import Accounts
import BridgeTypes
import IRCProtocol
import Rooms
import WireBytes

// Input of a client, line by line as its flood budget permits; and requests of other protocols.

extension IRCServer {
    /// Flood tokens of a line without a penalty: a tenth, which is not noticeable, yet prevents a hundred thousand
    /// lines a second.
    static let leastPenalty = 0.1

    /// Processes the lines that a client's budget permits, and bounds the rest by pausing the reading.
    package func processInput(_ session: IRCSession) {
        var isAllDone = false
        while session.state != .closed, !session.hasLongAnswers, session.registration == nil,
            session.gatewayTry == nil, !waitsToBecomeOperator(session),
            session.heldMessage == nil || !waitsToRegister(session)
        {
            let grant = session.budget.nextGrant(now: context.now.monotonic)
            if grant > context.now.monotonic {
                isAllDone = !session.hasInput
                if !isAllDone {
                    traffic.limited(.messages)
                    context.set(.clientBudget(session.id), at: grant)
                }
                break
            }
            guard let input = session.nextInput() else {
                isAllDone = true
                break
            }
            if case .message(let message) = input, waitsToRegister(session), !mayComeEarly(message, session) {
                session.putBack(message)
            } else {
                handle(input, session)
            }
        }
        guard session.state != .closed else { return }
        if session.hasEnded, isAllDone { return letGo(session) }
        switch session.readingChange(limit: settings.limits.receiveQueueBytes) {
        case .pause: emit(.pauseReading(session.id))
        case .resume: emit(.resumeReading(session.id))
        case nil: break
        }
    }

    private func mayComeEarly(_ message: IRCMessage, _ session: IRCSession) -> Bool {
        dispatch.commands[message.command]?.needs.areMet(beforeRegistrationWith: session.caps) ?? false
    }

    private func handle(_ input: IRCSession.Input, _ session: IRCSession) {
        switch input {
        case .tooLong:
            noteBadLine(session, "too-long")
            pay(1, session)
            reply(.errInputTooLong, "Input line was too long", to: session)
        case .rejected(let error, let label):
            if let label { expectAnswer(to: label, session) }
            noteBadLine(session, "\(error)")
            pay(1, session)
            if let line = refusal(of: error) { reply(line, session) }
        case .message(let message):
            // A request of another protocol whose first bytes arrived one by one; its verbs are not IRC commands.
            if session.person == nil, let foreign = ForeignProtocol(message) {
                return turnAway(session, foreign)
            }
            let command = dispatch.commands[message.command]
            traffic.received(command)
            if let label = message.tag("label")?.value { expectAnswer(to: label, session) }
            pay(session.isGathered(message) ? 0 : servicePenalty(of: message) ?? command?.penalty ?? 1, session)
            carryOut(command, message, session)
        }
        outbound.finishResponse(session)
        pullLongAnswers(session)
    }

    private func pay(_ penalty: Int, _ session: IRCSession) {
        _ = session.budget.take(max(Double(penalty), Self.leastPenalty), now: context.now.monotonic)
    }

    /// Checks the requirements of the command's row, and runs its handler.
    private func carryOut(_ command: IRCCommand?, _ message: IRCMessage, _ session: IRCSession) {
        guard let command else { return unknownCommand(message.command, session) }
        guard session.person != nil || command.needs.areMet(beforeRegistrationWith: session.caps) else {
            return notRegistered(session)
        }
        guard message.params.count >= command.minParams else { return needMoreParams(command.verb, session) }
        if command.needs == .operatorRights, !isOperators(session) {
            return reply(.errNoPrivileges, "Permission Denied- You're not an IRC operator", to: session)
        }
        // A line of a batch is refused with its batch.
        if let first = command.targets?.firstOfTooMany(in: message.params), !session.isGathered(message) {
            return tooManyTargets(command.verb, first, session)
        }
        command.handle(self, message, session)
    }

    /// The reply to a malformed line; nil: none.
    private func refusal(of error: IRCLineError) -> IRCMessage? {
        func fail(_ code: String, _ text: String) -> IRCMessage {
            .fail("*", code, text: text, source: settings.serverName)
        }
        switch error {
        case .invalidUTF8: return fail("INVALID_UTF8", "The line is not UTF-8 and was not taken.")
        case .containsNUL:
            return fail("INVALID_LINE", "The line holds a NUL or a bare CR and was not taken.")
        case .malformedTags: return fail("INVALID_TAGS", "The line's tags have no command after them.")
        case .empty, .noCommand: return nil
        }
    }

    private func expectAnswer(to label: String, _ session: IRCSession) {
        guard session.caps.contains(.labeledResponse), !label.isEmpty else { return }
        session.response = IRCSession.LabeledResponse(label: PrintableText.prefix(of: label, maxBytes: 64))
    }

    private func noteBadLine(_ session: IRCSession, _ reason: String) {
        note(
            .info, "bad-line", "a client sent a line that is no IRC message", of: session,
            ["nick": session.nick ?? "", "reason": reason])
    }

    func turnAway(_ session: IRCSession, _ foreign: ForeignProtocol) {
        note(
            .warn, "foreign-protocol", "\(foreign.name) was spoken on an IRC port", of: session,
            ["reason": foreign.name])
        if let answer = foreign.answer {
            context.write { $0.append(answer) }
            emit(.send(session.id, context.takeWritten()))
        }
        forget(session, .foreign)
        emit(.closeClient(session.id))
    }

    /// Lines behind a complete registration wait for the verdict on the client's identity, except commands that are
    /// valid before registration: scripts send all lines at once.
    private func waitsToRegister(_ session: IRCSession) -> Bool {
        session.isReadyToRegister && (logins.isBusy(with: session.id) || newcomers[session.id]?.deadline != nil)
    }

    /// Lines behind OPER wait for the verdict: they may need operator rights. The delay of the verdict's reply blocks
    /// no lines, or the next answer would reveal the verdict early.
    private func waitsToBecomeOperator(_ session: IRCSession) -> Bool { logins.isChecking(session.id, for: .oper) }
}

extension Dispatch {
    package static let standard = Dispatch(
        commands: .standard, serviceCommands: .standard, frontEnd: { IRCFrontEnd($0, $1) },
        register: { $0.register($1) }, processInput: { $0.processInput($1) })
}
