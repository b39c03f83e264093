import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

// A person with a terminal, as a client of the IRC server: keys in, lines of IRC out, and back from lines to what a person reads.
//
// A client like any other from the server's side, so logins, limits, receipts, histories and identities are what they are on
// IRC, and the server has no line of this.
//
//     bytes of the terminal ─▶ Terminal ─▶ TypedAhead ─▶ PlainRegistration, a command, or a message ─▶ PlainActions
//     bytes of the server ─▶ ServerLines ─▶ PlainRegistration, PlainRooms, SentRequests ─▶ Terminal
//
// | state       | meaning                                        | leaves by                                              |
// |-------------|------------------------------------------------|--------------------------------------------------------|
// | registering | on the way to 001, by `PlainRegistration`      | 001 → chatting; a command of IRC → none, or passing    |
// | chatting    | in rooms or about to be, by `PlainRooms`       | /quit, ERROR, the terminal's end → leaving             |
// | leaving     | QUIT is sent, or ERROR was received            |                                                        |
// | passing     | a telnet by which IRC is spoken                |                                                        |
//
// Lines that are typed ahead wait for the server.

package struct PlainSettings {
    package var network = ""
    /// The server registers no client without a password.
    package var needsLogin = false
    /// That password may be the server's and not an account's.
    package var hasServerPassword = false
    /// Local time at a moment, in seconds east of UTC.
    package var offset: (ChatTimestamp) -> Int = { _ in 0 }

    package init() {}
}

package final class PlainSession {
    enum State {
        case registering
        case chatting
        case leaving
        case passing
    }

    private let network: String
    private let entrance: Entrance
    private(set) var now: Now
    private(set) var state = State.registering
    private var actions = PlainActions()
    private var server = ServerLines()
    private var ahead = TypedAhead()
    /// When a name is asked for again, behind a refused one.
    private var asksAgainAt: MonotonicInstant?
    var terminal = Terminal()
    var registration: PlainRegistration
    var rooms = PlainRooms()
    var sent = SentRequests()
    var dividers: TimeDividers
    var presence: PlainPresence

    package init(_ settings: PlainSettings, _ entrance: Entrance, now: Now) {
        network = settings.network
        self.entrance = entrance
        self.now = now
        registration = PlainRegistration(settings)
        dividers = TimeDividers(offset: settings.offset)
        presence = PlainPresence(now: now.monotonic)
    }

    /// Behind a refused name, the pause in typing after which another is asked for. What is typed until then may be the password
    /// that was to follow, and is dropped: longer than between two keys of a line, and than until the refusal is read.
    private static let refusalPause: Duration = .seconds(1)

    // MARK: - Actions

    package func takeActions() -> [PlainAction] { actions.take() }

    func say(_ message: IRCMessage) { actions.say(message) }

    func say(_ command: String, _ params: String...) { say(IRCMessage(command: command, params: params)) }

    /// Everything that was done to the screen since, as one write.
    private func flush() {
        terminal.setStatus(momentText)
        let bytes = terminal.takeOutput()
        if !bytes.isEmpty { actions.append(.toTerminal(bytes)) }
    }

    // MARK: - Verbs

    /// The person appears: greets, and asks for a name.
    ///
    /// - Parameter typed: what has come before that.
    package func begin(_ typed: [UInt8], now: Now) {
        terminal.greet(network: network)
        registration.askName()
        takeSteps()
        typed.withUnsafeBytes { received($0, now: now) }
    }

    package func received(_ bytes: UnsafeRawBufferPointer, now: Now) {
        self.now = now
        presence.keyPressed(now: now.monotonic)
        terminal.beginRead()
        if asksAgainAt != nil { asksAgainAt = now.monotonic + Self.refusalPause }
        for (index, byte) in bytes.enumerated() {
            if let input = terminal.received(byte) { take(input) }
            if state == .passing, !terminal.isTelnet {
                actions.append(.isProgram(Array(bytes[(index + 1)...])))
                return
            }
        }
        noteTyping()
        planMark()
        goOn()
        flush()
    }

    /// The terminal sends no more.
    ///
    /// - Returns: what it has sent is still to be worked off; the session then leaves by itself.
    package func ended(now: Now) -> Bool {
        self.now = now
        ahead.end(now: now.monotonic)
        goOn()
        flush()
        // A program's lines are its own to end.
        return state != .passing
    }

    package func serverSaid(_ bytes: UnsafeRawBufferPointer, now: Now) {
        self.now = now
        if state == .passing { return actions.append(.toTerminal(Array(bytes))) }
        for event in server.received(bytes) { heard(event) }
        goOn()
        flush()
    }

    package func timerFired(now: Now) {
        self.now = now
        rooms.updateAll { $0.endTyping(now: now.monotonic) }
        if let time = asksAgainAt, time <= now.monotonic { askNameAgain() }
        if let end = ahead.deadline, end <= now.monotonic { quit() }
        if presence.takeMark(now: now.monotonic) { mark() }
        if presence.hasPaused(now: now.monotonic) { stopTyping() }
        flush()
    }

    package var nextDeadline: MonotonicInstant? {
        let deadlines = [
            isHere ? ahead.deadline : nil, asksAgainAt, presence.deadline, sent.deadline(now: now.monotonic),
        ]
        return (deadlines.compactMap { $0 } + rooms.all.flatMap { $0.typing.map(\.until) }).min()
    }

    // MARK: - What is typed

    private func take(_ input: Terminal.Input) {
        switch input {
        case .line(let line):
            presence.sent()
            // Enter once more, as the answer takes its time. At a telnet nothing else is typed unseen behind a password, and
            // another guess would be said in a room.
            guard !registration.isChecking(line.text),
                !(line.isHidden && terminal.isTelnet && registration.hasGivenPassword)
            else { return }
            ahead.append(line)
            goOn()
        case .byte(let byte): actions.pass(byte)
        case .tab: complete()
        case .endOfInput: quit()
        case .received(let token): say("PONG", token)
        }
    }

    /// Works off what was typed, as far as nothing has to be waited for.
    private func goOn() {
        while !isBusy, let line = ahead.next() { take(line: line) }
        if let reads = ahead.takeReads() { actions.append(.reads(reads)) }
        if ahead.hasEnded, ahead.isEmpty, !isBusy, sent.messageCount == 0 { quit() }
    }

    private var isBusy: Bool {
        switch state {
        case .registering: registration.state == .registering || registration.state == .refused
        case .chatting: rooms.isWaiting
        case .leaving, .passing: false
        }
    }

    private func take(line typed: TypedLine) {
        terminal.taken(typed, leadsToSecret: state == .registering)
        let line = typed.text
        switch state {
        case .registering: answer(line)
        case .chatting where line.hasPrefix("/"): command(line)
        case .chatting: if rooms.state == .choosing { choose(line) } else { speak(line) }
        case .passing: actions.append(.toServer(Array((line + "\n").utf8)))
        case .leaving: break
        }
    }

    /// The name, or the password.
    private func answer(_ line: String) {
        if registration.state == .proving {
            registration.proven(line)
        } else if entrance.isCommand(line.utf8) {
            return pass(line)
        } else if ["/quit", "/exit", "quit", "exit"].contains(line.trimming.lowercased()) {
            return quit()
        } else {
            registration.named(line)
        }
        takeSteps()
    }

    /// A program speaks, or a person who knows how.
    private func pass(_ line: String) {
        state = .passing
        terminal.passThrough()
        actions.append(.toServer(Array((line + "\r\n").utf8)))
    }

    /// Does what the registration wants.
    func takeSteps() {
        for step in registration.takeSteps() {
            switch step {
            case .say(let message): say(message)
            case .show(let text): terminal.show(text)
            case .refuse(let why): refuse(why)
            case .refuseName(let why):
                terminal.show(ScreenText(why, .failure))
                asksAgainAt = now.monotonic + Self.refusalPause
            case .askName: terminal.ask("Your name: ")
            case .askPassword: terminal.askPassword()
            }
        }
    }

    /// An answer does not go, and is asked for again.
    func refuse(_ why: String) {
        terminal.show(ScreenText(why, .failure))
        dropTypedAhead()
    }

    private func dropTypedAhead() {
        guard !ahead.isEmpty else { return }
        ahead.removeAll()
        terminal.show(ScreenText("What was typed behind it is left out.", .dim))
    }

    private func askNameAgain() {
        asksAgainAt = nil
        guard state == .registering else { return }
        if let begun = terminal.takeBegunLine() { ahead.append(begun) }
        dropTypedAhead()
        registration.askName()
        takeSteps()
        goOn()
    }

    // MARK: - Coming and going

    private var isHere: Bool { state == .registering || state == .chatting }

    /// 001 RPL_WELCOME.
    func welcomed(_ nick: String?) {
        guard state == .registering else { return }
        registration.welcomed(nick)
        takeSteps()
        state = .chatting
        terminal.endPrompt()
        rooms.beginListing()
        say("LIST")
    }

    func quit(_ reason: String = "") {
        guard isHere else { return }
        state = .leaving
        terminal.endPrompt()
        let nick = registration.nick
        terminal.show(ScreenText("Goodbye\(nick.isEmpty ? "" : ", \(nick)").", .dim))
        if reason.isEmpty { say("QUIT") } else { say("QUIT", reason) }
    }

    /// Without the words of IRC around it: `Closing Link: ADDRESS (REASON)`.
    private static func plain(_ reason: String) -> Substring {
        guard reason.hasPrefix("Closing Link: "), reason.hasSuffix(")"), let start = reason.firstIndex(of: "(") else {
            return reason[...]
        }
        return reason[reason.index(after: start)...].dropLast()
    }

    /// The server has ended the connection.
    func closed(_ reason: String) {
        guard state != .leaving else { return }
        let again = state == .registering ? " Connect again for another try." : ""
        state = .leaving
        terminal.endPrompt()
        terminal.show(ScreenText("The connection ends: \(Self.plain(reason)).\(again)", .failure))
    }
}
