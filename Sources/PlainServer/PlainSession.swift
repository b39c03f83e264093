import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

// A person with a terminal, as a client of the IRC server: keys in, lines of IRC out, and back from lines to what a person reads.
//
// A client like any other from the server's side, so logins, limits, receipts, histories and identities are what they are on
// IRC, and the server has no line of this.
//
// | state       | meaning                                 | leaves by                                                        |
// |-------------|-----------------------------------------|------------------------------------------------------------------|
// | naming      | a name is asked for                     | a name → registering, proving; a command of IRC → none, a program |
// | registering | NICK, USER and CAP are sent             | 001 → choosing; 433 → proving, naming; 432 → naming               |
// | proving     | a password is asked for                 | a password → registering; nothing → naming                        |
// | choosing    | in no room; one is asked for            | a room → joining; a JOIN of the account's → chatting              |
// | joining     | JOIN is sent                            | our JOIN → chatting; refused → choosing                           |
// | chatting    | a room is in front                      | the last room is left → choosing                                  |
// | leaving     | QUIT is sent                            |                                                                   |
// | passing     | a telnet by which IRC is spoken         |                                                                   |
//
// Lines that are typed ahead wait in the states that wait for the server.

package enum PlainAction: Equatable {
    case toServer([UInt8])
    case toTerminal([UInt8])
    /// It was a program that speaks IRC: these are its first bytes, and the session ends.
    case isProgram([UInt8])
    /// Whether more may be read from the terminal.
    case reads(Bool)
}

package struct PlainSettings {
    package var network = ""
    /// The server registers nobody without a password.
    package var needsLogin = false
    /// That password may be the server's and not an account's.
    package var hasServerPassword = false
    /// Local time at a moment, in seconds east of UTC.
    package var offset: (ChatTimestamp) -> Int = { _ in 0 }

    package init() {}
}

package final class PlainSession {
    enum State {
        case naming
        case registering
        case proving
        case choosing
        case joining
        case chatting
        case leaving
        /// It is a program after all, behind a telnet.
        case passing
    }

    /// Input that waits for the server, in lines; beyond it the terminal is not read.
    static let maxWaiting = 200
    /// A person who has pressed no key for so long may have left the screen.
    static let activity: Duration = .seconds(5 * 60)
    static let markDelay: Duration = .milliseconds(200)
    static let typingLasts: Duration = .seconds(6)
    static let typingInterval: Duration = .seconds(3)
    static let markPatience: Duration = .seconds(10)
    static let endPatience: Duration = .seconds(60)
    /// An echo that comes later is worth a word.
    static let sendingPatience: Duration = .seconds(1)

    let settings: PlainSettings
    let entrance: Entrance
    var state = State.naming
    var screen = Screen()
    var editor = LineEditor()
    private var telnet = Telnet()
    private var keys = KeyReader()
    private var decoder = IRCLineDecoder(limits: IRCLimits(maxReceivedTagBytes: IRCLimits.maxTagBytes))
    var batches = IRCBatches(Set(IRCBatches.Batch.Kind.allCases))
    private var writer = ByteWriter()
    private var actions: [PlainAction] = []
    var now: Now

    // What the server knows of the person.
    var nick = ""
    /// The name as it was typed.
    var wishedNick = ""
    var password: String?
    var offered: Set<String> = []
    var enabled: Set<String> = []
    var hasNegotiated = false
    var isIntroduced = false
    var isLoggedIn = false

    // Rooms.
    var rooms: [PlainRoom] = []
    /// In front.
    var current: String?
    /// Rooms that may be chosen, as the server lists them.
    var listed: [String] = []
    /// What was asked for by JOIN.
    var joining: String?
    /// Rooms whose NAMES were asked for by the person.
    var namesAsked: Set<String> = []

    // What was said.
    var lastLabel = 0
    /// Own messages that the server has not shown yet, oldest first.
    var pending: [(label: String, text: String, at: MonotonicInstant)] = []
    /// Labels of what commands have asked for.
    var requests: Set<String> = []
    /// What was shown last, for dividers.
    var shown: (at: ChatTimestamp, time: LocalTime)?
    /// News of receipts that wait for a line to go with.
    var quietNews: ScreenText?

    // The person's own hand.
    var activeAt: MonotonicInstant
    var markAt: MonotonicInstant?
    var typingSentAt: MonotonicInstant?
    var typedAt: MonotonicInstant?

    private var question = ""
    private var waiting: [String] = []
    private var isPaused = false
    /// The terminal sends no more; what it has sent is given so long.
    private var endsAt: MonotonicInstant?
    /// Bytes for the server, of a telnet that speaks IRC.
    private var passed: [UInt8] = []
    /// Things that a flood of keys would cause over and over are done once a read.
    private var isAnswered = false
    private var pings: [(token: String, at: MonotonicInstant)] = []
    /// A telnet in line mode shows nothing while a password is typed.
    private var hidesByEcho = false
    /// Whether the terminal answers a timing mark; nil: it was not asked.
    private var answersMarks: Bool?

    package init(_ settings: PlainSettings, _ entrance: Entrance, now: Now) {
        self.settings = settings
        self.entrance = entrance
        self.now = now
        activeAt = now.monotonic
    }

    // MARK: - Actions

    package func takeActions() -> [PlainAction] {
        defer { actions = [] }
        return actions
    }

    func say(_ message: IRCMessage) {
        IRCEncoder.append(message, to: &writer)
        actions.append(.toServer(writer.take().withUnsafeBytes { Array($0) }))
    }

    func say(_ command: String, _ params: String...) { say(IRCMessage(command: command, params: params)) }

    /// Everything that was done to the screen since, as one write.
    private func flush() {
        refreshStatus()
        screen.draw(editor)
        let bytes = telnet.takeOutput() + Array(screen.takeOutput().utf8)
        if !bytes.isEmpty { actions.append(.toTerminal(bytes)) }
    }

    // MARK: - Verbs

    /// The person appears: greets, and asks for a name.
    ///
    /// A socket of nothing shows the bytes of a telnet command as a sign or two, over which the greeting is written.
    package func begin() {
        telnet.ask(.windowSize)
        let greeting = "\rWelcome to \(ScreenText.printable(settings.network)).\r\nThis is a chat; /quit leaves it.\r\n"
        actions.append(.toTerminal(telnet.takeOutput() + Array(greeting.utf8)))
        askName()
        flush()
    }

    package func received(_ bytes: UnsafeRawBufferPointer, now: Now) {
        self.now = now
        activeAt = now.monotonic
        isAnswered = false
        for (index, byte) in bytes.enumerated() {
            if byte != Telnet.interpret, telnet.isInText {
                typed(byte)
            } else {
                let wasSpoken = telnet.isSpoken
                let event = telnet.received(byte)
                if !wasSpoken, telnet.isSpoken { greetTelnet() }
                if let event { take(event) }
            }
            if state == .passing, !telnet.isSpoken {
                actions.append(.isProgram(Array(bytes[(index + 1)...])))
                return
            }
        }
        noteTyping()
        if markAt == nil { planMark() }
        goOn()
        flush()
    }

    /// The terminal sends no more.
    ///
    /// - Returns: what it has sent is still to be worked off; the session then leaves by itself.
    package func ended(now: Now) -> Bool {
        self.now = now
        endsAt = now.monotonic + Self.endPatience
        if !editor.isEmpty { press(.enter) }
        goOn()
        flush()
        // A program's lines are its own to end.
        return state != .naming && state != .passing
    }

    package func serverSaid(_ bytes: UnsafeRawBufferPointer, now: Now) {
        self.now = now
        if state == .passing { return actions.append(.toTerminal(Array(bytes))) }
        decoder.append(bytes)
        while let message = decoder.withNextLine({ Self.message($0) }) { if let message { heard(message) } }
        goOn()
        flush()
    }

    private static func message(_ line: IRCLineDecoder.Line) -> IRCMessage? {
        guard case .line(let bytes) = line else { return nil }
        return try? IRCParse.parse(bytes)
    }

    package func timerFired(now: Now) {
        self.now = now
        for index in rooms.indices { rooms[index].endTyping(now: now.monotonic) }
        if let endsAt, endsAt <= now.monotonic { quit() }
        if let at = markAt, at <= now.monotonic { mark() }
        if let typedAt, typedAt + Self.typingLasts <= now.monotonic { stopTyping() }
        if let first = pings.first, first.at + Self.markPatience <= now.monotonic {
            answersMarks = false
            answerPings(all: true)
        }
        flush()
    }

    package var nextDeadline: MonotonicInstant? {
        var deadlines = rooms.flatMap { room in room.typing.map { $0.until } }
        if let endsAt, state != .leaving { deadlines.append(endsAt) }
        if let markAt { deadlines.append(markAt) }
        if let typedAt { deadlines.append(typedAt + Self.typingLasts) }
        if let ping = pings.first { deadlines.append(ping.at + Self.markPatience) }
        // Once: then it is shown.
        if let first = pending.first, now.monotonic - first.at < Self.sendingPatience {
            deadlines.append(first.at + Self.sendingPatience)
        }
        return deadlines.min()
    }

    // MARK: - Telnet

    private func greetTelnet() {
        telnet.offer(.echo)
        telnet.offer(.suppressGoAhead)
        telnet.offer(.binary)
        telnet.ask(.binary)
        telnet.ask(.terminalType)
        telnet.ask(.windowSize)
    }

    private func take(_ event: Telnet.Event) {
        switch event {
        case .byte(let byte): typed(byte)
        case .agreed:
            let isByKeys = telnet.weDo(.echo) && telnet.weDo(.suppressGoAhead)
            screen.change(to: isByKeys ? .characters : .lines)
            // What was asked stands in front of the cursor, and is drawn with the answer from now on.
            if isByKeys, state != .chatting { screen.prompt = question }
        case .windowSize(let columns, _): screen.setColumns(columns)
        case .terminalType(let type): screen.abilities = Screen.Abilities(terminalType: type)
        case .mark:
            answersMarks = true
            answerPings(all: false)
        case .interrupt: press(.interrupt)
        case .areYouThere: if answersOnce() { screen.show(ScreenText("Yes.", .dim)) }
        case .eraseCharacter: press(.backspace)
        case .eraseLine: press(.eraseLine)
        }
    }

    /// The server asks whether its lines were received. Where the terminal can say so, it does.
    func pinged(_ token: String) {
        guard telnet.isSpoken, answersMarks != false else { return say("PONG", token) }
        telnet.requestMark()
        // Whether it does is seen once.
        if answersMarks == nil { say("PONG", token) } else { pings.append((token, now.monotonic)) }
    }

    private func answerPings(all: Bool) {
        while let ping = pings.first {
            pings.removeFirst()
            say("PONG", ping.token)
            if !all { return }
        }
    }

    // MARK: - Keys

    private func typed(_ byte: UInt8) {
        if state == .passing { pass(byte) } else if let key = keys.received(byte) { press(key) }
    }

    private func press(_ key: Key) {
        switch key {
        case .scalar(let scalar): editor.insert(scalar)
        case .unreadable: editor.markUnreadable()
        case .enter: return enter()
        case .backspace: editor.backspace()
        case .delete: editor.delete()
        case .left: editor.left()
        case .right: editor.right()
        case .home: editor.home()
        case .end: editor.end()
        case .up: if !screen.isSecret { editor.earlier() }
        case .down: if !screen.isSecret { editor.later() }
        case .tab: if answersOnce() { complete() }
        case .eraseLine: editor.eraseToStart()
        case .eraseToEnd: editor.eraseToEnd()
        case .eraseWord: editor.eraseWord()
        case .interrupt:
            if editor.isEmpty, answersOnce() { screen.show(ScreenText("/quit leaves.", .dim)) }
            editor.clear()
        case .endOfInput:
            if editor.isEmpty { quit() }
        case .redraw: screen.forget()
        }
    }

    /// The keyboard of a telnet ends lines by CR LF or CR NUL.
    private func pass(_ byte: UInt8) {
        if byte != 0 { passed.append(byte == 0x0D ? 0x0A : byte) }
    }

    private func answersOnce() -> Bool {
        defer { isAnswered = true }
        return !isAnswered
    }

    private func enter() {
        guard !editor.isTooLong, !editor.isUnreadable else {
            let why =
                editor.isTooLong
                ? "That line is longer than \(LineEditor.maxBytes / 1024) KiB" : "That was not in UTF-8"
            editor.clear()
            screen.show(ScreenText(why + "; nothing was sent.", .failure))
            return askAgain()
        }
        // Nothing is said by it.
        if state == .chatting, editor.isEmpty { return }
        isAnswered = false
        let isMessage = state == .chatting && !editor.text.hasPrefix("/")
        if !isMessage { screen.leaveRow(editor) }
        waiting.append(editor.take(isKept: !screen.isSecret && state == .chatting))
        typedAt = nil
        typingSentAt = nil
        goOn()
    }

    /// Works off what was typed, as far as nothing has to be waited for.
    private func goOn() {
        while !waiting.isEmpty, !isBusy {
            let line = waiting.removeFirst()
            if state == .passing { passed += Array((line + "\n").utf8) } else { take(line: line) }
        }
        if !passed.isEmpty {
            actions.append(.toServer(passed))
            passed = []
        }
        if (waiting.count > Self.maxWaiting) != isPaused {
            isPaused.toggle()
            actions.append(.reads(!isPaused))
        }
        if endsAt != nil, waiting.isEmpty, !isBusy, pending.isEmpty, state != .leaving { quit() }
    }

    private var isBusy: Bool { state == .registering || state == .joining }

    private func take(line: String) {
        switch state {
        case .naming: if entrance.isCommand(line.utf8) { passOn(line) } else { named(line) }
        case .proving: proven(line)
        case .choosing: if line.hasPrefix("/") { command(line) } else { choose(line) }
        case .chatting: if line.hasPrefix("/") { command(line) } else { speak(line) }
        case .registering, .joining, .leaving, .passing: break
        }
    }

    /// A program speaks, or a person who knows how.
    private func passOn(_ line: String) {
        state = .passing
        editor.clear()
        screen.prompt = ""
        if screen.mode == .lines { screen.show(ScreenText()) }
        telnet.withdraw(.echo)
        telnet.withdraw(.suppressGoAhead)
        screen.change(to: .lines)
        actions.append(.toServer(Array((line + "\r\n").utf8)))
    }

    // MARK: - Questions

    func askName() {
        state = .naming
        ask("Your name: ")
    }

    /// An answer that was none.
    private func askAgain() {
        switch state {
        case .naming: askName()
        case .proving, .choosing: screen.ask(question)
        case .registering, .joining, .chatting, .leaving, .passing: break
        }
    }

    func ask(_ question: String, isSecret: Bool = false) {
        self.question = question
        screen.isSecret = isSecret
        // Hidden by the terminal where that is a telnet in line mode, and by nothing in a socket of its own.
        if isSecret, screen.mode == .lines, telnet.isSpoken {
            telnet.offer(.echo)
            hidesByEcho = true
        } else if !isSecret, hidesByEcho {
            telnet.withdraw(.echo)
            hidesByEcho = false
            screen.leaveSecret()
        }
        screen.ask(question)
    }

    var hidesSecrets: Bool { screen.mode == .characters || telnet.isSpoken }
}
