import IRCProtocol
import WireBytes

// What a client sends, line by line as its budget allows; and what is not IRC but arrives all the same.

extension Bridge {
    /// Flood tokens that even a line without a penalty costs: a tenth, so that nobody notices and nobody can send a
    /// hundred thousand of them a second.
    static let leastPenalty = 0.1

    /// Handles the lines that a client's budget allows, and sees to it that the rest waits without growing.
    func processInput(_ session: IRCSession) {
        var isAllDone = false
        while session.state != .closed, !session.hasLongAnswers, session.registration == nil,
            session.gatewayTry == nil, !waitsToBecomeOperator(session),
            session.heldMessage == nil || !waitsToRegister(session)
        {
            let grant = session.budget.nextGrant(now: context.now.monotonic)
            if grant > context.now.monotonic {
                isAllDone = session.decoder.bufferedByteCount == 0 && session.heldMessage == nil
                if !isAllDone { context.timers.set(.clientBudget(session.id), at: grant) }
                break
            }
            guard let input = nextInput(session) else {
                isAllDone = true
                break
            }
            if case .message(let message) = input, waitsToRegister(session), !mayComeEarly(message, session) {
                session.heldMessage = message
            } else {
                handle(input, session)
            }
        }
        guard session.state != .closed else { return }
        if session.hasEnded, isAllDone { return letGo(session) }
        let held = session.decoder.bufferedByteCount
        if held > settings.limits.receiveQueueBytes, !session.isReadingPaused {
            session.isReadingPaused = true
            context.emit(.pauseReading(session.id))
        } else if session.isReadingPaused, held <= settings.limits.receiveQueueBytes / 2 {
            session.isReadingPaused = false
            context.emit(.resumeReading(session.id))
        }
    }

    private enum Input {
        case message(IRCMessage)
        case rejected(IRCLineError, label: String?)
        case tooLong
    }

    private func nextInput(_ session: IRCSession) -> Input? {
        if let held = session.heldMessage {
            session.heldMessage = nil
            return .message(held)
        }
        return session.decoder.withNextLine { line -> Input in
            switch line {
            case .tooLong: return .tooLong
            case .line(let bytes):
                do throws(IRCLineError) {
                    return .message(try IRCParse.parse(bytes))
                } catch {
                    return .rejected(error, label: error == .invalidUTF8 ? Self.label(of: bytes) : nil)
                }
            }
        }
    }

    private func mayComeEarly(_ message: IRCMessage, _ session: IRCSession) -> Bool {
        commands[message.command]?.needs.areMet(beforeRegistrationWith: session.caps) ?? false
    }

    private func handle(_ input: Input, _ session: IRCSession) {
        switch input {
        case .tooLong:
            noteBadLine(session, "too-long")
            pay(1, session)
            reply(session.numeric(.errInputTooLong, "Input line was too long"), session)
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
            let command = commands[message.command]
            if let label = message.tag("label")?.value { expectAnswer(to: label, session) }
            pay(session.isGathered(message) ? 0 : servicePenalty(of: message) ?? command?.penalty ?? 1, session)
            carryOut(command, message, session)
        }
        finishResponse(session)
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
            return reply(session.numeric(.errNoPrivileges, "Permission Denied- You're not an IRC operator"), session)
        }
        command.handle(self, message, session)
    }

    private func notRegistered(_ session: IRCSession) {
        reply(session.numeric(.errNotRegistered, "You have not registered"), session)
    }

    func unknownCommand(_ verb: String, _ session: IRCSession) {
        guard session.person != nil else { return notRegistered(session) }
        reply(
            session.numeric(.errUnknownCommand, NickMaker.prefix(of: verb, maxBytes: 64), "Unknown command"), session)
    }

    func needMoreParams(_ verb: String, _ session: IRCSession) {
        reply(session.numeric(.errNeedMoreParams, verb, "Not enough parameters"), session)
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
        session.response = IRCSession.LabeledResponse(label: NickMaker.prefix(of: label, maxBytes: 64))
    }

    /// The label of a line that is refused for its text: the tags in front may be in order all the same.
    private static func label(of line: UnsafeRawBufferPointer) -> String? {
        guard line.first == UInt8(ascii: "@"), let end = line.firstIndex(of: 0x20) else { return nil }
        let tags = Array(line[..<end]) + Array(" X".utf8)
        return tags.withUnsafeBytes { (try? IRCParse.parse($0))?.tag("label")?.value }
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
            context.emit(.send(session.id, context.writer.take()))
        }
        forget(session)
        context.emit(.closeClient(session.id))
    }
}

/// What is not IRC but arrives on IRC ports, told by its first bytes.
enum ForeignProtocol: Equatable {
    case http
    case tls
    case smtp
    case proxy

    /// Bytes by which any of them is known.
    static let longestMark = 16

    var name: String {
        switch self {
        case .http: "HTTP"
        case .tls: "TLS"
        case .smtp: "SMTP"
        case .proxy: "the PROXY protocol (which the listener's proxy_protocol turns on)"
        }
    }

    /// What that protocol's client understands; nil: nothing could be.
    var answer: StaticString? {
        switch self {
        case .http:
            """
            HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 59\r\n\
            Connection: close\r\n\r\nThis is an IRC port. Connect with an IRC client or telnet.\n
            """
        // A fatal alert, protocol_version: RFC 8446 §6.
        case .tls: "\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\u{46}"
        case .smtp: "ERROR :This is an IRC port\r\n"
        case .proxy: nil
        }
    }

    private static let httpMethods = [
        "GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "PRI * HTTP/2",
    ]

    /// Methods that are verbs of IRC too: the version at the end of the line tells which of the two is meant.
    private static let sharedMethods: Set<String> = ["CONNECT", "TRACE"]

    /// By a whole line.
    init?(_ message: IRCMessage) {
        if Self.sharedMethods.contains(message.command), message.params.last?.hasPrefix("HTTP/") == true {
            self = .http
        } else {
            self.init(verb: message.command)
        }
    }

    /// By a command's verb, in upper case.
    init?(verb: String) {
        if Self.httpMethods.contains(where: { $0.utf8.count == verb.utf8.count + 1 && $0.hasPrefix(verb) }) {
            self = .http
        } else if verb == "EHLO" || verb == "HELO" {
            self = .smtp
        } else if verb == "PROXY" {
            self = .proxy
        } else {
            return nil
        }
    }

    /// Looks at the first bytes of a connection. Verbs of IRC are never taken for anything else.
    static func recognise(_ bytes: UnsafeRawBufferPointer) -> ForeignProtocol? {
        if bytes.count >= 2, bytes[0] == 0x16, bytes[1] == 0x03 { return .tls }
        let head = bytes.prefix(longestMark)
        // The signature of the second version begins with two empty lines and ends in a QUIT.
        if head.starts(with: [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51]) { return .proxy }
        if httpMethods.contains(where: { head.starts(with: $0.utf8) }) { return .http }
        if ["EHLO ", "HELO "].contains(where: { head.starts(with: $0.utf8) }) { return .smtp }
        if head.starts(with: "PROXY ".utf8) { return .proxy }
        return nil
    }
}
