/// What stands between the bytes of a person's connection and the lines that are typed and shown: telnet's options, keys, the
/// line being typed, and the screen.
struct Terminal {
    enum Input: Equatable {
        /// Enter was pressed.
        case line(TypedLine)
        /// A byte as it was sent, behind ``passThrough()``.
        case byte(UInt8)
        case tab
        case endOfInput
        /// All that was sent before a PING with this token was received.
        case received(token: String)
    }

    /// What the line being typed is for.
    private enum Purpose: Equatable {
        case nothing
        /// The answer to a question that is to come, and may be about a secret.
        case unasked
        /// The answer to a question.
        case answer(to: String)
        case password
        /// A message for a room.
        case message

        var mayBeSecret: Bool { self == .unasked || self == .password }
    }

    private var telnet = Telnet()
    private var keys = KeyReader()
    private var editor = LineEditor()
    private var screen = Screen()
    private var purpose = Purpose.nothing { didSet { settleHiding() } }
    /// The line being typed was begun when it might be a secret: it is not shown, also where it is for something else
    /// by now.
    private var isHidden = false
    /// News that wait for a line to go with, where printing them would cut the line being typed in two.
    private var heldNews: ScreenText?
    /// A telnet in line mode shows nothing while a password is typed, as it takes us for the one who shows it.
    private var hidesByEcho = false
    private var isPassingThrough = false
    /// What a flood of keys would cause over and over is done once a read.
    private var hasReacted = false

    // MARK: - In

    /// The client has sent a telnet command, so it is no plain socket.
    var isTelnet: Bool { telnet.isSpoken }
    /// The person's own terminal shows what is typed, and keeps it when it is sent.
    var showsOwnLines: Bool { screen.mode == .lines }

    /// What is being typed, key by key, is for others.
    var isTypingMessage: Bool {
        guard screen.mode == .characters, purpose == .message, !editor.isEmpty else { return false }
        return Self.isMessage(editor.text) || editor.text.hasPrefix("/me ")
    }

    private static func isMessage(_ line: String) -> Bool { !line.hasPrefix("/") }

    /// More bytes were read, of which each is given to ``received(_:)``.
    mutating func beginRead() { hasReacted = false }

    mutating func received(_ byte: UInt8) -> Input? {
        if byte != Telnet.interpret, telnet.isInText { return typed(byte) }
        return telnet.received(byte).flatMap { take($0) }
    }

    /// From here on each byte is ``Input/byte(_:)``, and whatever is typed is shown by the person's own terminal.
    mutating func passThrough() {
        isPassingThrough = true
        editor.clear()
        endPrompt()
        if screen.mode == .lines { screen.show(ScreenText()) }
        telnet.withdraw(.echo)
        telnet.withdraw(.suppressGoAhead)
        screen.change(to: .lines)
    }

    // MARK: - Telnet

    private mutating func negotiate() {
        telnet.offer(.echo)
        telnet.offer(.suppressGoAhead)
        telnet.offer(.binary)
        telnet.ask(.binary)
        telnet.ask(.terminalType)
        telnet.ask(.windowSize)
    }

    private mutating func take(_ event: Telnet.Event) -> Input? {
        switch event {
        case .byte(let byte): return typed(byte)
        case .agreed: screen.change(to: telnet.weDo(.echo) && telnet.weDo(.suppressGoAhead) ? .characters : .lines)
        case .windowSize(let columns, _): screen.setColumns(columns)
        case .terminalType(let type): screen.setAbilities(terminalType: type)
        case .mark(let token): return .received(token: token)
        case .interrupt: return press(.interrupt)
        case .areYouThere: if reactsOnce() { show(ScreenText("Yes.", .dim)) }
        case .eraseCharacter: return press(.backspace)
        case .eraseLine: return press(.eraseLine)
        }
        return nil
    }

    /// The server asks whether its lines were received. A telnet says so, and none answers for it: what it was sent may
    /// be lost, and itself gone.
    ///
    /// - Returns: false: the terminal has no way to say it, and the server is answered at once; true:
    ///   ``Input/received(token:)`` follows.
    mutating func confirmsReceipt(of token: String) -> Bool {
        guard telnet.isSpoken else { return false }
        telnet.requestMark(token)
        return true
    }

    // MARK: - Keys

    private mutating func typed(_ byte: UInt8) -> Input? {
        guard isPassingThrough else { return keys.received(byte).flatMap { press($0) } }
        // The keyboard of a telnet ends lines by CR LF or CR NUL.
        return byte == 0 ? nil : .byte(byte == 0x0D ? 0x0A : byte)
    }

    private mutating func press(_ key: Key) -> Input? {
        defer { settleHiding() }
        switch key {
        case .scalar(let scalar): editor.insert(scalar)
        case .unreadable: editor.markUnreadable()
        case .enter: return enter().map { .line($0) }
        case .backspace: editor.backspace()
        case .delete: editor.delete()
        case .left: editor.left()
        case .right: editor.right()
        case .home: editor.home()
        case .end: editor.end()
        case .up: if !isHidden { editor.earlier() }
        case .down: if !isHidden { editor.later() }
        case .tab: return !isHidden && reactsOnce() ? .tab : nil
        case .eraseLine: editor.eraseToStart()
        case .eraseToEnd: editor.eraseToEnd()
        case .eraseWord: editor.eraseWord()
        case .interrupt:
            if editor.isEmpty, reactsOnce() { show(ScreenText("/quit leaves.", .dim)) }
            editor.clear()
        case .endOfInput: return editor.isEmpty ? .endOfInput : nil
        case .redraw: screen.forget()
        }
        return nil
    }

    private mutating func reactsOnce() -> Bool {
        defer { hasReacted = true }
        return !hasReacted
    }

    /// - Returns: nil: nothing that can be sent was typed.
    private mutating func enter() -> TypedLine? {
        // A telnet that does not show what is typed does not show the line's end.
        if !hidesByEcho { screen.enterPressed() }
        guard !editor.isTooLong, !editor.isUnreadable else {
            let why =
                editor.isTooLong
                ? "That line is longer than \(LineEditor.maxBytes / 1024) KiB" : "That was not in UTF-8"
            editor.clear()
            show(ScreenText(why + "; nothing was sent.", .failure))
            switch purpose {
            case .answer(let question): screen.ask(question)
            case .password: screen.ask(passwordQuestion)
            case .nothing, .unasked, .message: break
            }
            return nil
        }
        hasReacted = false
        if purpose == .message, editor.isEmpty { return nil }
        return TypedLine(text: editor.take(isKept: purpose == .message && !isHidden), isHidden: isHidden)
    }

    /// What was typed behind the last Enter, where that is known; nil: nothing.
    mutating func takeBegunLine() -> TypedLine? {
        guard !editor.isEmpty else { return nil }
        defer { settleHiding() }
        return TypedLine(text: editor.take(isKept: false), isHidden: isHidden)
    }

    /// A line is taken for what is asked now, however long ago it was typed.
    ///
    /// - Parameter leadsToSecret: the next question may be about one.
    mutating func taken(_ line: TypedLine, leadsToSecret: Bool) {
        switch purpose {
        case .nothing, .unasked: break
        case .answer, .password:
            screen.leaveRow(line.isHidden ? "" : line.text)
            endPrompt(leadsToSecret ? .unasked : .nothing)
        case .message:
            // A message is shown by the server's echo, in its place among those of others.
            if !Self.isMessage(line.text) { screen.leaveRow(line.isHidden ? "" : line.text) }
        }
    }

    /// Once a line is begun as a secret, a question that comes meanwhile does not bring it to light.
    private mutating func settleHiding() {
        if purpose.mayBeSecret {
            isHidden = true
        } else {
            if editor.isEmpty { isHidden = false }
            guard hidesByEcho else { return }
            hidesByEcho = false
            // Where every key comes, the server draws them from now on.
            if screen.mode == .lines { telnet.withdraw(.echo) }
        }
    }

    // MARK: - The Tab key

    /// The word in front of the cursor that may be completed, and the text in front of it.
    var wordAtCursor: (word: String, before: String) {
        let start = wordStart
        return (String(editor.characters[start..<editor.cursor]), String(editor.characters[..<start]))
    }

    private var wordStart: Int { editor.characters[..<editor.cursor].lastIndex(of: " ").map { $0 + 1 } ?? 0 }

    mutating func replaceWord(by text: String) { editor.replace(wordStart..<editor.cursor, by: text) }

    mutating func beep() { screen.beep() }

    // MARK: - Out

    /// Welcomes a new connection.
    ///
    /// A telnet is asked before it has shown that it is one: it is the sooner silent where a password is typed. A socket of
    /// nothing shows the bytes as signs, over which the greeting is written.
    mutating func greet(network: String) {
        negotiate()
        screen.returnToStart()
        show(ScreenText("Welcome to \(network)."))
        show("This is a chat; /quit leaves it.")
    }

    /// Shows a line, behind news that waited for one.
    mutating func show(_ text: ScreenText) {
        if let news = heldNews {
            heldNews = nil
            screen.show(news)
        }
        screen.show(text)
    }

    /// Replaces news of a moment ago that has not been seen yet. Nothing, where ``setStatus(_:)`` shows them.
    mutating func hold(_ news: ScreenText?) { heldNews = screen.hasStatus ? nil : news }

    /// About this moment, above the line being typed.
    mutating func setStatus(_ text: ScreenText) { screen.setStatus(text) }

    mutating func ask(_ question: String) {
        purpose = .answer(to: question)
        screen.ask(question)
    }

    mutating func askPassword() {
        purpose = .password
        screen.ask(passwordQuestion)
    }

    private var passwordQuestion: String {
        screen.mode == .characters || telnet.isSpoken ? "Password: " : "Password (it can be seen here): "
    }

    /// Hides a password as far as the terminal can; that it is a telnet may turn out behind the question.
    private mutating func hidePassword() {
        guard purpose == .password, telnet.isSpoken else { return }
        if screen.mode == .lines, !hidesByEcho {
            telnet.offer(.echo)
            hidesByEcho = true
        }
        screen.rephrase(passwordQuestion)
    }

    /// What is typed is for this room.
    mutating func talk(in room: String) {
        purpose = .message
        screen.setPrompt("\(room)> ")
    }

    /// Nothing is asked for any more.
    mutating func endPrompt() { endPrompt(.nothing) }

    private mutating func endPrompt(_ next: Purpose) {
        purpose = next
        screen.setPrompt("")
    }

    /// Everything that was done since, as one write.
    mutating func takeOutput() -> [UInt8] {
        hidePassword()
        screen.setSecret(isHidden)
        screen.draw(editor)
        return telnet.takeOutput() + Array(screen.takeOutput().utf8)
    }
}
