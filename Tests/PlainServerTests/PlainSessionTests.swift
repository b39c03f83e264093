import BridgeTypes
import ChatModel
import IRCProtocol
import Testing
import WireBytes

@testable import PlainServer

/// A person on one side, and the lines of a server on the other.
@Suite("A person and the server")
struct PlainSessionTests {
    /// A socket of lines; `asked` is what the server hears, `screen` what the person sees.
    private final class Stage {
        let session: PlainSession
        var now = Now(
            monotonic: MonotonicInstant(nanoseconds: 1_000_000_000),
            wall: ChatTimestamp(milliseconds: 1_795_262_400_000))
        var asked: [String] = []
        var screen = ""
        var program: [UInt8]?
        var reads = true
        /// To the terminal, as bytes.
        var sent: [UInt8] = []

        init(needsLogin: Bool = false, hasServerPassword: Bool = false, typed: String = "") {
            var settings = PlainSettings()
            settings.network = "test"
            settings.needsLogin = needsLogin
            settings.hasServerPassword = hasServerPassword
            session = PlainSession(settings, Entrance(verbs: ["NICK", "USER", "CAP", "JOIN", "LIST"]), now: now)
            session.begin(Array(typed.utf8), now: now)
            take()
        }

        private func take() {
            for action in session.takeActions() {
                switch action {
                case .toServer(let bytes):
                    asked += String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
                case .toTerminal(let bytes):
                    sent += bytes
                    screen += String(decoding: bytes, as: UTF8.self)
                case .isProgram(let bytes): program = bytes
                case .reads(let reads): self.reads = reads
                }
            }
        }

        func type(_ text: String) {
            Array(text.utf8).withUnsafeBytes { session.received($0, now: now) }
            take()
        }

        /// Becomes a telnet in character mode: DO ECHO, DO SUPPRESS-GO-AHEAD, TERMINAL-TYPE xterm.
        func telnet() {
            bytes([255, 253, 1, 255, 253, 3, 255, 250, 24, 0] + Array("xterm".utf8) + [255, 240])
        }

        func bytes(_ bytes: [UInt8]) {
            bytes.withUnsafeBytes { session.received($0, now: now) }
            take()
        }

        func server(_ lines: String...) {
            for line in lines {
                Array((line + "\r\n").utf8).withUnsafeBytes { session.serverSaid($0, now: now) }
            }
            take()
        }

        func pass(_ time: Duration) {
            now = now.later(by: time)
            while let next = session.nextDeadline, next <= now.monotonic { session.timerFired(now: now); take() }
        }

        func end() -> Bool {
            defer { take() }
            return session.ended(now: now)
        }

        func takeScreen() -> String {
            defer { screen = "" }
            return screen
        }

        func takeAsked() -> [String] {
            defer { asked = [] }
            return asked
        }

        static let capabilities =
            "message-tags server-time batch labeled-response echo-message standard-replies draft/multiline draft/read-marker sasl"

        func enter() {
            type("bob\n")
            server(":s CAP * LS :\(Self.capabilities)", ":s CAP * ACK :\(Self.capabilities)")
            server(":s 001 bob :Welcome", ":s 422 bob :No MOTD", ":s 322 bob #lobby 2 :soup", ":s 323 bob :End")
            type("\n")
            server(":bob!~b@s JOIN #lobby", ":s 353 bob = #lobby :bob @Remy", ":s 366 bob #lobby :End")
            _ = takeAsked()
            _ = takeScreen()
        }
    }

    @Test("a name, a room, and there")
    func entrance() {
        let stage = Stage()
        #expect(stage.takeScreen().contains("Your name: "))
        stage.type("bob\n")
        #expect(stage.takeAsked() == ["CAP LS :302"])
        stage.server(":s CAP * LS * :message-tags", ":s CAP * LS :sasl=PLAIN,X soju.im/unknown")
        #expect(stage.takeAsked() == ["CAP REQ :message-tags sasl"])
        stage.server(":s CAP * ACK :message-tags sasl")
        #expect(stage.takeAsked() == ["NICK bob", "USER bob 0 * bob", "CAP END"])
        stage.server(":s 001 bob :Welcome")
        #expect(stage.takeAsked() == ["LIST"])
        stage.server(":s 322 bob #lobby 2 :The soup", ":s 322 bob #attic 0 :", ":s 323 bob :End")
        let screen = stage.takeScreen()
        #expect(screen.contains("  #lobby  2 people  The soup\r\n"))
        #expect(screen.hasSuffix("Which room [#lobby]? "))
        stage.type("attic\n")
        #expect(stage.takeAsked() == ["JOIN #attic"])
        stage.server(":s 471 bob #attic :It is full")
        #expect(stage.takeScreen().contains("#attic: It is full\r\nWhich room [#lobby]? "))
        stage.type("cellar\n")
        #expect(stage.takeAsked() == [], "a room that is not listed begins with #")
        #expect(stage.takeScreen().hasSuffix("begins with #.\r\nWhich room [#lobby]? "))
        stage.type("#cellar\n")
        #expect(stage.takeAsked() == ["JOIN #cellar"])
        stage.server(":s 403 bob #cellar :No such channel")
        stage.type("\n")
        #expect(stage.takeAsked() == ["JOIN #lobby"])
        stage.server(":bob!~b@s JOIN #lobby", ":s 353 bob = #lobby :bob @Remy", ":s 366 bob #lobby :End")
        #expect(stage.takeScreen().contains("Here with you: Remy."))
        stage.type("hi\n")
        #expect(stage.takeAsked() == ["@label=p1 PRIVMSG #lobby :hi"])
    }

    @Test("what is typed ahead waits for what it answers")
    func ahead() {
        let stage = Stage()
        stage.type("bob\n#lobby\nfirst\nsecond\n")
        #expect(stage.takeAsked() == ["CAP LS :302"])
        stage.server(":s CAP * LS :", ":s 001 bob :Welcome")
        #expect(stage.takeAsked() == ["NICK bob", "USER bob 0 * bob", "CAP END", "LIST"])
        stage.server(":s 323 bob :End")
        #expect(stage.takeAsked() == ["JOIN #lobby"])
        #expect(stage.end(), "a pipe that has said all")
        stage.server(":bob!~b@s JOIN #lobby")
        #expect(stage.takeAsked() == ["@label=p1 PRIVMSG #lobby :first", "@label=p2 PRIVMSG #lobby :second"])
        stage.server("@label=p1 :bob!~b@s PRIVMSG #lobby first")
        #expect(stage.takeAsked() == [], "the second is not confirmed yet")
        stage.server("@label=p2 :bob!~b@s PRIVMSG #lobby second")
        #expect(stage.takeAsked() == ["QUIT"])
    }

    @Test("a pipe that nobody confirms leaves after a minute")
    func unconfirmed() {
        let stage = Stage()
        stage.enter()
        stage.type("said\n")
        #expect(stage.end())
        stage.pass(.seconds(59))
        #expect(!stage.asked.contains("QUIT"))
        stage.pass(.seconds(2))
        #expect(stage.asked.last == "QUIT")
    }

    @Test("half a line is not said when the connection ends", arguments: [false, true])
    func halfALine(speaksTelnet: Bool) {
        let stage = Stage()
        if speaksTelnet { stage.telnet() }
        stage.enter()
        stage.type("said\nI would nev")
        _ = stage.end()
        #expect(stage.takeAsked().filter { $0.contains("PRIVMSG") } == ["@label=p1 PRIVMSG #lobby :said"])
    }

    @Test("more than is sensible typed ahead is not read")
    func flooded() {
        let stage = Stage()
        stage.type("bob\n" + String(repeating: "#line\n", count: TypedAhead.maxLines + 1))
        #expect(!stage.reads)
        stage.server(":s CAP * LS :", ":s 001 bob :Welcome", ":s 323 bob :End")
        stage.server(":s 403 bob #line :No such room")
        #expect(stage.reads)
    }

    @Test("a command of IRC in place of a name is a program's")
    func program() {
        let stage = Stage()
        stage.type("NICK ann\r\nUSER a 0 * :b\r\n")
        #expect(stage.asked == ["NICK ann"])
        #expect(stage.program.map { String(decoding: $0, as: UTF8.self) } == "\nUSER a 0 * :b\r\n")
    }

    @Test("by a telnet IRC can be spoken as well, and such a program ends by itself")
    func telnetProgram() {
        let stage = Stage()
        stage.telnet()
        stage.type("NICK ann\r\nUSER a 0 * :b\r\nJO")
        #expect(stage.takeAsked() == ["NICK ann", "USER a 0 * :b", "JO"])
        #expect(stage.program == nil)
        _ = stage.takeScreen()
        stage.server(":s 001 ann :Welcome")
        #expect(stage.takeScreen() == ":s 001 ann :Welcome\r\n")
        #expect(!stage.end() && stage.asked.isEmpty && stage.screen.isEmpty)
    }

    @Test("a name of somebody else's wants its password, and none means another name")
    func taken() {
        let stage = Stage()
        stage.type("remy\n")
        stage.server(":s CAP * LS :sasl", ":s CAP * ACK :sasl", ":s 433 * remy :Nickname is already in use")
        #expect(stage.takeScreen().contains("Password"))
        _ = stage.takeAsked()
        stage.type("\n")
        #expect(stage.takeScreen().hasSuffix("Your name: "))
        stage.type("remy\n")
        stage.server(":s 433 * remy :Nickname is already in use")
        stage.type("wrong\n")
        #expect(stage.takeAsked() == ["NICK remy", "AUTHENTICATE PLAIN"])
        stage.server("AUTHENTICATE +", ":s 904 * :SASL authentication failed")
        let screen = stage.takeScreen()
        #expect(screen.contains("There is no account remy with that password.") && !screen.contains("SASL"))
        #expect(screen.hasSuffix("Password (it can be seen here): "))
        _ = stage.takeAsked()
        stage.type("right\n")
        stage.server("AUTHENTICATE +")
        #expect(
            stage.takeAsked() == ["AUTHENTICATE PLAIN", "AUTHENTICATE \(Base64.encode(Array("\0remy\0right".utf8)))"])
        stage.server(":s 903 * :Welcome")
        #expect(stage.takeAsked() == ["NICK remy"])
        #expect(!stage.screen.contains("right") && !stage.screen.contains("wrong"))
    }

    // MARK: - Typed ahead

    /// A question that is not answered yet stands in front of the password's.
    private static let untilPassword = [
        ":s CAP * LS :sasl", ":s CAP * ACK :sasl", ":s 433 * ann :Nickname is already in use",
    ]

    @Test("what was typed before the greeting is the name and the password", arguments: [false, true])
    func typedBeforeTheGreeting(atOnce: Bool) {
        let stage = Stage(typed: atOnce ? "ann\r\nsecret\r\n" : "ann\r\n")
        #expect(stage.takeScreen().hasSuffix("Your name: ann\r\n"))
        if !atOnce { stage.type("secret\r\n") }
        for line in Self.untilPassword { stage.server(line) }
        #expect(stage.takeAsked().suffix(2) == ["CAP END", "AUTHENTICATE PLAIN"])
        stage.server("AUTHENTICATE +")
        #expect(stage.takeAsked() == ["AUTHENTICATE \(Base64.encode(Array("\0ann\0secret".utf8)))"])
        #expect(!stage.screen.contains("secret") && !stage.screen.contains("Your name"))
    }

    @Test("a password is shown neither before it is asked for nor while it is checked")
    func hiddenAhead() {
        let stage = Stage()
        stage.telnet()
        stage.type("ann\rsec")
        stage.type("ret\r")
        for line in Self.untilPassword { stage.server(line) }
        stage.type("secret\rsec")
        stage.server("AUTHENTICATE +", ":s 903 * :Welcome", ":s 001 ann :Welcome")
        stage.server(":s 322 ann #lobby 2 :", ":s 323 ann :End")
        #expect(stage.asked.last == "LIST", "the password once more is no answer")
        stage.type("ret\r")
        #expect(stage.asked.last == "LIST", "nor is it a room")
        #expect(!stage.screen.contains("sec") && !stage.screen.contains("ret"))
        stage.type("lob")
        #expect(stage.takeScreen().hasSuffix("lob"))
    }

    @Test("another guess while a password is checked is said in no room", arguments: [false, true])
    func guessedTwice(isTelnet: Bool) {
        let stage = Stage()
        if isTelnet { stage.telnet() }
        stage.type("ann\r\n")
        for line in Self.untilPassword { stage.server(line) }
        stage.type("secret\r\nother\r\nsec")
        stage.server("AUTHENTICATE +", ":s 903 * :Welcome", ":s 001 ann :Welcome", ":ann!a@s JOIN #lobby")
        stage.server(":s 366 ann #lobby :End of /NAMES list", ":s 323 ann :End")
        stage.type("ret\r\nhello\r\n")
        // A pipe may say what it wants behind its password.
        #expect(
            stage.asked.filter { $0.contains("PRIVMSG") }.map { String($0.drop { $0 != ":" }.dropFirst()) }
                == (isTelnet ? ["hello"] : ["other", "secret", "hello"]))
    }

    @Test("a name with a client's logs that client in")
    func namedClient() {
        let stage = Stage(typed: "ann@desk\r\n")
        for line in Self.untilPassword { stage.server(line) }
        #expect(stage.takeAsked().contains("NICK ann"))
        stage.type("secret\r\n")
        stage.server("AUTHENTICATE +")
        #expect(stage.takeAsked().last == "AUTHENTICATE \(Base64.encode(Array("\0ann@desk\0secret".utf8)))")
    }

    @Test("a telnet that is known as one behind the question for a password hides it all the same")
    func telnetBehindThePassword() {
        let echo: [UInt8] = [255, 251, 1]
        for byLines in [false, true] {
            let stage = Stage(needsLogin: true, typed: "ann\r\n")
            stage.server(Self.untilPassword[0], Self.untilPassword[1])
            #expect(stage.takeScreen().hasSuffix("Password (it can be seen here): "))
            stage.sent = []
            // A telnet by lines refuses the first offer of an echo, and takes that for a password.
            stage.bytes(byLines ? [255, 254, 1, 255, 254, 3] : [255, 253, 1, 255, 253, 3])
            // Over the words of the first.
            let blanks = byLines ? "" : String(repeating: " ", count: 22) + String(repeating: "\u{8}", count: 22)
            #expect(stage.takeScreen().hasSuffix("\rPassword: " + blanks))
            #expect(stage.sent.starts(with: echo) == byLines)
        }
    }

    @Test("an answer that does not go takes what was typed behind it along")
    func refusedAhead() {
        let name = Stage(typed: "a,nn\nsecret\n")
        name.server(":s CAP * LS :", ":s 432 * a,nn :Erroneous nickname")
        #expect(name.takeAsked().suffix(3) == ["NICK a,nn", "USER ann 0 * a,nn", "CAP END"])
        let refusal =
            "a,nn cannot be a name here. A name is short, begins with a letter, and has no signs but - and _.\r\n"
        let dropped = "What was typed behind it is left out.\r\n"
        #expect(name.takeScreen().hasSuffix(refusal))
        name.pass(.seconds(1))
        #expect(name.takeScreen() == dropped + "Your name: ")
        let password = Stage(typed: "ann\nwrong\n#lobby\n")
        for line in Self.untilPassword { password.server(line) }
        password.server("AUTHENTICATE +", ":s 904 * :SASL authentication failed")
        #expect(password.asked.filter { $0 == "AUTHENTICATE PLAIN" }.count == 1)
        #expect(password.takeScreen().contains(dropped))
    }

    @Test("a password that comes behind the refusal of the name is no name, and not shown", arguments: [false, true])
    func passwordBehindRefusal(byKeys: Bool) {
        let stage = Stage()
        if byKeys { stage.telnet() }
        stage.type("a,nn\r\n")
        stage.server(":s CAP * LS :", ":s 432 * a,nn :Erroneous nickname")
        _ = stage.takeAsked()
        _ = stage.takeScreen()
        // A line at once, or key by key, each within the pause that the one before has begun.
        stage.pass(.milliseconds(300))
        if byKeys {
            for key in ["s", "e", "c", "r", "e", "t", "\r\n", "m", "o"] {
                stage.type(key); stage.pass(.milliseconds(900))
            }
        } else {
            stage.type("secret\n")
        }
        #expect(!stage.takeScreen().contains("Your name: "))
        stage.pass(.seconds(1))
        let screen = stage.takeScreen()
        #expect(screen.contains("What was typed behind it is left out.") && screen.contains("Your name: "))
        #expect(stage.takeAsked() == [])
        stage.type("ann\r\n")
        #expect(stage.takeAsked() == ["NICK ann"])
        #expect(!String(decoding: stage.sent, as: UTF8.self).contains("se"))
    }

    @Test("a pipe that ends behind a refused name is left")
    func endBehindRefusal() {
        let stage = Stage(typed: "a,nn\nsecret\n")
        #expect(stage.end())
        stage.server(":s CAP * LS :", ":s 432 * a,nn :Erroneous nickname")
        stage.pass(.seconds(1))
        #expect(stage.takeAsked().last == "QUIT" && !stage.screen.contains("secret"))
    }

    @Test("a password that was typed behind a free name is no room's name")
    func passwordOfNone() {
        let stage = Stage(typed: "amm\nsecret\n")
        stage.server(":s CAP * LS :", ":s 001 amm :Welcome", ":s 322 amm #lobby 2 :", ":s 323 amm :End")
        #expect(stage.asked.last == "LIST")
        #expect(!stage.screen.contains("secret"))
    }

    // MARK: - Log-in

    @Test("a command in place of a name is none")
    func commandForName() {
        let stage = Stage()
        stage.type("/help\n")
        #expect(stage.takeAsked() == [] && stage.takeScreen().hasSuffix("/quit leaves.\r\n"))
        stage.pass(.seconds(1))
        #expect(stage.takeScreen() == "Your name: ")
    }

    @Test("an account that is called otherwise where it is connected says so")
    func otherNick() {
        let stage = Stage()
        stage.type("ann\n")
        stage.server(":s CAP * LS :", ":s 001 annie :Welcome")
        #expect(
            stage.takeScreen().hasSuffix(
                "Hello, annie.\r\nYour account is called annie where it is connected already; /nick changes it.\r\n"))
    }

    @Test("an end in the middle of a log-in is told without the words of IRC, and what to do")
    func endedEarly() {
        let stage = Stage(needsLogin: true, hasServerPassword: true)
        stage.type("ann\n")
        stage.server(":s CAP * LS :")
        stage.type("wrong\n")
        _ = stage.takeScreen()
        stage.server(":s 464 * :Password incorrect", "ERROR :Closing Link: 127.0.0.1 (Password incorrect)")
        #expect(
            stage.takeScreen() == "The connection ends: Password incorrect. Connect again for another try.\r\n")
    }

    @Test("where a log-in takes no passwords, none is asked for")
    func noPasswords() {
        let stage = Stage(needsLogin: true)
        stage.type("ann\n")
        stage.server(":s CAP * LS :sasl=EXTERNAL,SCRAM-SHA-256")
        stage.pass(.seconds(1))
        let screen = stage.takeScreen()
        #expect(screen.contains("none is taken on this connection") && screen.hasSuffix("Your name: "))
    }

    @Test("a password of the server's own is tried where it is no account's")
    func serverPassword() {
        let stage = Stage(needsLogin: true, hasServerPassword: true)
        stage.type("bob\n")
        stage.server(":s CAP * LS :sasl", ":s CAP * ACK :sasl")
        #expect(stage.takeScreen().contains("Password"))
        stage.type("5esame\n")
        stage.server("AUTHENTICATE +", ":s 904 * :No")
        #expect(stage.asked.suffix(4) == ["PASS 5esame", "NICK bob", "USER bob 0 * bob", "CAP END"])
    }

    @Test("messages, answers, actions and the time between them")
    func messages() {
        let stage = Stage()
        stage.enter()
        stage.server(
            "@time=2026-11-21T12:00:10.000Z;msgid=m1 :Remy!c@h PRIVMSG #lobby :the soup is ready",
            "@time=2026-11-21T12:00:20.000Z;msgid=m2;+reply=m1 :Linguini!c@h PRIVMSG #lobby :finally",
            "@time=2026-11-21T12:06:20.000Z :Remy!c@h PRIVMSG #lobby :\u{1}ACTION waves\u{1}",
            "@time=2026-11-22T12:06:21.000Z :Remy!c@h PRIVMSG bob :psst\u{1B}[2J",
            "@time=2026-11-22T12:06:21.000Z;+reply=m1;+draft/react=👍 :Linguini!c@h TAGMSG #lobby",
            ":Remy!c@h REDACT #lobby m1 :oops")
        #expect(
            stage.takeScreen().split(separator: "\r\n").map(String.init) == [
                "12:00 <Remy> the soup is ready", "12:00 <Linguini> (to Remy: \"the soup is ready\") finally",
                "──── 12:06 ────", "12:06 * Remy waves", "──── Sunday, 22 November 2026 ────", "12:06 [Remy] psst[2J",
                "Linguini reacted 👍 to Remy's \"the soup is ready\"", "Remy took back a message: \"the soup is ready\"",
            ])
    }

    @Test("several lines are one message")
    func multiline() {
        let stage = Stage()
        stage.enter()
        stage.server(
            "@time=2026-11-21T12:00:10.000Z;msgid=m1 :Remy!c@h BATCH +1 draft/multiline #lobby",
            "@batch=1 :Remy!c@h PRIVMSG #lobby :one", "@batch=1 :Remy!c@h PRIVMSG #lobby :two",
            "@batch=1;draft/multiline-concat :Remy!c@h PRIVMSG #lobby :, too", ":s BATCH -1")
        #expect(stage.takeScreen() == "12:00 <Remy> one\r\n      two, too\r\n")
        stage.type(String(repeating: "word ", count: 200) + "\n")
        let asked = stage.takeAsked()
        #expect(asked.first == "@label=p1 BATCH +p1 draft/multiline #lobby" && asked.last == "BATCH -p1")
        #expect(asked.allSatisfy { $0.utf8.count < 500 })
    }

    @Test("a refusal says of which message, and why")
    func refused() {
        let stage = Stage()
        stage.enter()
        stage.type("too much\n")
        stage.server("@label=p1 :s FAIL PRIVMSG QUEUE_FULL #lobby :Too many messages wait")
        #expect(stage.takeScreen() == "Not sent: \"too much\": Too many messages wait\r\n")
        stage.type("/msg Remy a: secret\n")
        stage.server("@label=p2 :s FAIL PRIVMSG CANNOT_DELIVER Remy :It takes none: a: secret")
        #expect(stage.takeScreen() == "Not sent: \"a: secret\": It takes none\r\n", "the text is said once")
    }

    @Test("who is there is answered once what was typed before is taken")
    func who() {
        let stage = Stage()
        stage.enter()
        stage.type("hi\n/who\n")
        #expect(stage.takeAsked() == ["@label=p1 PRIVMSG #lobby :hi", "PING #lobby"])
        stage.server(":s PONG s #lobby")
        #expect(stage.takeAsked() == ["NAMES #lobby"])
        _ = stage.takeScreen()
        stage.server(":s 353 bob = #lobby :bob @Remy", ":s 366 bob #lobby :End")
        #expect(stage.takeScreen() == "In #lobby: Remy, bob\r\n")
    }

    @Test("what is on the screen is read while somebody sits there")
    func reading() {
        let stage = Stage()
        stage.enter()
        let line = "@time=2026-11-21T12:00:10.000Z :Remy!c@h PRIVMSG #lobby :look"
        stage.server(line)
        stage.pass(.milliseconds(250))
        #expect(stage.takeAsked() == ["MARKREAD #lobby timestamp=2026-11-21T12:00:10.000Z"])
        stage.pass(.seconds(10 * 60))
        stage.server("@time=2026-11-21T12:10:10.000Z :Remy!c@h PRIVMSG #lobby :look again")
        stage.pass(.seconds(60))
        #expect(stage.takeAsked() == [], "nobody has pressed a key for long")
        stage.type(" ")
        stage.pass(.milliseconds(250))
        #expect(stage.takeAsked() == ["MARKREAD #lobby timestamp=2026-11-21T12:10:10.000Z"])
        stage.server("@time=2026-11-20T12:10:10.000Z :Remy!c@h PRIVMSG #lobby :the clock was a day ahead")
        stage.pass(.seconds(1))
        #expect(stage.takeAsked() == ["MARKREAD #lobby timestamp=2026-11-20T12:10:10.000Z"])
    }

    @Test("in a terminal of keys: typing is told, and who types and reads stands above the line")
    func character() {
        let stage = Stage()
        stage.telnet()
        stage.enter()
        stage.type("he")
        #expect(stage.takeAsked() == ["@+typing=active TAGMSG #lobby"])
        stage.type("y")
        #expect(stage.takeAsked() == [], "not at each key")
        stage.type("\u{7F}\u{7F}\u{7F}")
        #expect(stage.takeAsked() == ["@+typing=done TAGMSG #lobby"])
        stage.type("hey\r")
        #expect(stage.takeAsked().last == "@label=p1 PRIVMSG #lobby :hey")
        stage.server("@label=p1;msgid=m1;time=2026-11-21T12:00:10.000Z :bob!~b@s PRIVMSG #lobby hey")
        #expect(stage.takeScreen().contains("✓ sent"))
        stage.server("@+draft/read=m1 :Remy!c@h TAGMSG #lobby", "@+typing=active :Linguini!c@h TAGMSG #lobby")
        #expect(stage.takeScreen().contains("✓✓ read by Remy   … Linguini is typing"))
        stage.pass(.seconds(7))
        #expect(!stage.takeScreen().contains("typing"))
    }

    @Test("what is said while another room is entered is shown once")
    func speaksWhileJoining() {
        let stage = Stage()
        stage.telnet()
        stage.enter()
        stage.type("/join attic\rhello\r")
        stage.server(":bob!~b@s JOIN #attic", ":s 366 bob #attic :End")
        #expect(stage.takeAsked().last == "@label=p1 PRIVMSG #attic :hello")
        #expect(!stage.takeScreen().contains("> hello"), "its place is among the messages of others")
        stage.server("@label=p1;msgid=m1 :bob!~b@s PRIVMSG #attic hello")
        #expect(stage.takeScreen().contains("hello"))
    }

    @Test("the last room is left, and the question for another stays until it is answered or declined")
    func withoutRoom() {
        let stage = Stage()
        stage.enter()
        stage.type("/part\n")
        stage.server(":bob!~b@s PART #lobby")
        #expect(stage.takeScreen() == "You left #lobby.\r\nWhich room [#lobby]? ")
        stage.type("/who\n")
        #expect(stage.takeScreen().hasSuffix("You are in no room; /join ROOM enters one.\r\nWhich room [#lobby]? "))
        stage.type("/quit\n")
        #expect(stage.takeScreen() == "Goodbye, bob.\r\n")
    }

    @Test("a telnet answers each PING by a mark, one without marks by refusing it, and one that is gone does not")
    func pinged() {
        let (will, wont): ([UInt8], [UInt8]) = ([255, 251, 6], [255, 252, 6])
        for answer in [will, wont] {
            let stage = Stage()
            stage.telnet()
            stage.enter()
            stage.server("PING :1", "PING :2")
            #expect(stage.takeAsked() == [], "nothing shows that the first lines were received")
            stage.bytes(answer)
            #expect(stage.takeAsked() == ["PONG 1"])
            stage.pass(.seconds(3600))
            #expect(!stage.asked.contains("PONG 2"))
            stage.bytes(answer)
            #expect(stage.takeAsked().first == "PONG 2")
        }
        let pipe = Stage()
        pipe.enter()
        pipe.server("PING :1")
        #expect(pipe.takeAsked() == ["PONG 1"], "it has no way to say it")
    }

    @Test("Tab completes names, and shows them where there are several")
    func tab() {
        let stage = Stage()
        stage.enter()
        stage.server(":Ringo!c@h JOIN #lobby", ":Remedy!c@h JOIN #lobby")
        _ = stage.takeScreen()
        stage.type("ri\thi\n")
        #expect(stage.takeAsked().last == "@label=p1 PRIVMSG #lobby :Ringo: hi")
        stage.type("re\t")
        stage.type("\t")
        #expect(stage.takeScreen().contains("Remedy  Remy"))
        stage.type("\u{15}/wh\t\n")
        #expect(stage.takeAsked() == ["PING #lobby"])
    }

    @Test("a slip of the fingers gets the nearest command, and help fits a screen")
    func help() {
        let stage = Stage()
        stage.enter()
        stage.type("/hlep\n")
        #expect(stage.takeScreen().contains("Did you mean /help?"))
        stage.type("/help\n")
        let lines = stage.takeScreen().split(separator: "\r\n")
        #expect(lines.count <= 22 && lines.allSatisfy { TextWidth.of($0) < 80 })
        for row in PlainCommand.all { #expect(lines.contains { $0.contains("/" + row.name) }) }
        stage.type("//slash\n")
        #expect(stage.takeAsked() == ["@label=p1 PRIVMSG #lobby :/slash"])
    }
}
