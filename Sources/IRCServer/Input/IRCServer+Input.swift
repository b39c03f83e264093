import Accounts
import BridgeTypes
import IRCProtocol
import Rooms
import WireBytes

// What a client sends, line by line as its budget allows; and what is not IRC but arrives all the same.

extension IRCServer {
    /// Flood tokens that even a line without a penalty costs: a tenth, so that nobody notices and nobody can send a
    /// hundred thousand of them a second.
    static let leastPenalty = 0.1

    /// Handles the lines that a client's budget allows, and sees to it that the rest waits without growing.
    package func processInput(_ session: IRCSession) {
        var isAllDone = false
        while session.state != .closed, !session.hasLongAnswers, session.registration == nil,
            session.gatewayTry == nil, !waitsToBecomeOperator(session),
            session.heldMessage == nil || !waitsToRegister(session)
        {
            let grant = session.budget.nextGrant(now: context.now.monotonic)
            if grant > context.now.monotonic {
                isAllDone = !session.hasInput
                if !isAllDone { context.timers.set(.clientBudget(session.id), at: grant) }
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
            // A request whose first bytes came one by one; no verb of IRC is among those.
            if session.person == nil, let foreign = ForeignProtocol(message) {
                return turnAway(session, foreign)
            }
            let command = dispatch.commands[message.command]
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

    /// Checks what the command's row asks for, and runs its handler.
    private func carryOut(_ command: IRCCommand?, _ message: IRCMessage, _ session: IRCSession) {
        guard let command else { return unknownCommand(message.command, session) }
        guard session.person != nil || command.needs.areMet(beforeRegistrationWith: session.caps) else {
            return notRegistered(session)
        }
        guard message.params.count >= command.minParams else { return needMoreParams(command.verb, session) }
        if command.needs == .operatorRights, !isOperators(session) {
            return reply(.errNoPrivileges, "Permission Denied- You're not an IRC operator", to: session)
        }
        command.handle(self, message, session)
    }

    /// The answer to a line that is no message; nil: none.
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
        context.note(
            .info, "bad-line", "a client sent a line that is no IRC message",
            ["address": session.origin.address, "nick": session.nick ?? "", "reason": reason])
    }

    func turnAway(_ session: IRCSession, _ foreign: ForeignProtocol) {
        context.note(
            .warn, "foreign-protocol", "\(foreign.name) was spoken on an IRC port",
            ["address": session.origin.address, "reason": foreign.name])
        if let answer = foreign.answer {
            context.writer.append(answer)
            emit(.send(session.id, context.writer.take()))
        }
        forget(session)
        emit(.closeClient(session.id))
    }

    /// What a client says behind all that it takes to come in waits for the verdict on who it is, unless it may come before that:
    /// scripts say everything in one piece.
    private func waitsToRegister(_ session: IRCSession) -> Bool {
        session.isReadyToRegister && (logins.isBusy(with: session.id) || newcomers[session.id]?.deadline != nil)
    }

    /// What a client says behind OPER waits for the verdict: it may need the rights that it asked for. The wait before the
    /// verdict is told holds nothing up, or a client would see by its next answer which verdict it is.
    private func waitsToBecomeOperator(_ session: IRCSession) -> Bool { logins.isChecking(session.id, for: .oper) }
}

extension Dispatch {
    package static let standard = Dispatch(
        commands: .standard, serviceCommands: .standard, frontEnd: { IRCFrontEnd($0, $1) },
        register: { $0.register($1) }, processInput: { $0.processInput($1) })
}
