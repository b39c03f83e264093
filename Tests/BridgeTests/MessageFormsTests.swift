import Accounts
import BridgeTestSupport
import ChatModel
import Digests
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("The forms of messages")
struct MessageFormsTests {
    private func stage(
        _ dialect: ActionsStubDialect = ActionsStubDialect(), echoes: Bool = true
    ) throws -> ActionsStage {
        let stage = try ActionsStage(dialect, echoes: echoes)
        stage.enter(1, "alice")
        stage.enter(2, "bob")
        stage.enter(3, "carol", caps: "")
        stage.backend("message|id=m1|from=s1|name=Chef Gusteau|text=soup")
        _ = stage.happened()
        return stage
    }

    private func up(_ stage: ActionsStage) -> [String] {
        stage.happened().compactMap { line in
            line.hasPrefix("U0> ") ? line.firstRange(of: "|text=").map { String(line[$0.upperBound...]) } : nil
        }
    }

    // MARK: - Formatting

    struct Formatting: CustomTestStringConvertible, Sendable {
        let what: String
        let written: String
        let sent: String

        var testDescription: String { what }
    }

    @Test(
        "formatting codes are never sent raw",
        arguments: [
            Formatting(what: "bold", written: "a \u{2}b\u{2} c", sent: "a b c"),
            Formatting(what: "italics, underline", written: "\u{1D}a\u{1D} \u{1F}b\u{1F}", sent: "a b"),
            Formatting(what: "strike, monospace", written: "\u{1E}a\u{1E} \u{11}b\u{11}", sent: "a b"),
            Formatting(what: "reverse, reset", written: "\u{16}a\u{F} b", sent: "a b"),
            Formatting(what: "colours", written: "\u{3}4,12red\u{3} \u{3}04x\u{3}99", sent: "red x"),
            Formatting(what: "a colour before digits", written: "\u{3}04123", sent: "123"),
            Formatting(what: "hexadecimal colours", written: "\u{4}ff0000,00FF00red\u{4}", sent: "red"),
            Formatting(what: "a comma that is no background", written: "\u{3}4, x", sent: ", x"),
            Formatting(what: "an ACTION's", written: "\u{1}ACTION \u{2}stirs\u{2}\u{1}", sent: "* alice stirs"),
        ])
    func formatting(row: Formatting) throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :" + row.written)
        let lines = stage.happened()
        #expect(lines.first?.hasSuffix("|text=" + row.sent) == true, "\(lines)")
        // IRC users see what was written.
        #expect(lines.contains("C3< :alice!~u@bridge PRIVMSG #lobby :" + row.written))
    }

    @Test("a message of formatting alone has no text")
    func onlyFormatting() throws {
        let stage = try stage()
        stage.harness.send(1, "@label=1 PRIVMSG #lobby :\u{2}\u{3}4")
        #expect(stage.happened() == ["C1< @label=1 :bridge 412 alice :No text to send"])
    }

    @Test("markup from upstream stays text, its controls go")
    func markup() throws {
        let stage = try stage()
        stage.backend("message|id=m2|from=s1|name=Chef Gusteau|text=*bold* `x` \u{2}b\u{2} \u{3}4c")
        #expect(
            stage.happened().last == "C3< :Chef-Gusteau!chat@chat.example PRIVMSG #lobby :*bold* `x` b 4c")
    }

    // MARK: - CTCP

    @Test(
        "CTCP questions to a person upstream are answered by the bridge",
        arguments: [
            ("VERSION", #"VERSION chatbridge .*, for somebody on chat\.example"#), ("PING 123 456", "PING 123 456"),
            ("PING", "PING"), ("TIME", #"TIME 20\d\d-\d\d-\d\dT[0-9:.]+Z"#),
            ("CLIENTINFO", "CLIENTINFO ACTION CLIENTINFO PING TIME VERSION"), ("version", "VERSION .*"),
        ])
    func questions(question: String, answer: String) throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG Chef-Gusteau :\u{1}\(question)\u{1}")
        let lines = stage.happened()
        #expect(lines.count == 1)
        let wanted = try Regex("C1< :Chef-Gusteau!chat@chat\\.example NOTICE alice :\u{1}\(answer)\u{1}")
        #expect(lines.first?.wholeMatch(of: wanted) != nil, "\(lines)")
    }

    @Test("other CTCP is refused as private messages are; answers to questions are for nobody")
    func otherQuestions() throws {
        let stage = try stage()
        stage.harness.send(1, "@label=1 PRIVMSG Chef-Gusteau :\u{1}DCC SEND x 1 2 3\u{1}")
        stage.harness.send(1, "NOTICE Chef-Gusteau :\u{1}VERSION mine\u{1}")
        #expect(
            stage.happened() == [
                "C1< @label=1 :bridge FAIL PRIVMSG CANNOT_DELIVER Chef-Gusteau "
                    + ":This is a user of the chat backend (chat.example), which takes no private messages from here: DCC SEND x 1 2 3"
            ])
        stage.harness.send(1, "PRIVMSG #lobby :\u{1}VERSION\u{1}")
        #expect(up(stage) == [])
    }

    // MARK: - Mentions

    struct Mention: CustomTestStringConvertible, Sendable {
        let from: String
        let to: String

        init(_ from: String, _ to: String) {
            self.from = from
            self.to = to
        }

        var testDescription: String { from }
    }

    @Test(
        "nicks of people upstream become their names on the way up, exactly",
        arguments: [
            Mention("Chef-Gusteau: hello", "Chef Gusteau: hello"),
            Mention("Chef-Gusteau, hello", "Chef Gusteau, hello"),
            Mention("chef-gusteau: hello", "Chef Gusteau: hello"), Mention("Chef-Gusteau:", "Chef Gusteau:"),
            Mention("bob, Chef-Gusteau: hello", "bob, Chef Gusteau: hello"),
            Mention("hello @Chef-Gusteau.", "hello @Chef Gusteau."), Mention("(@Chef-Gusteau)", "(@Chef Gusteau)"),
            Mention("@Chef-Gusteau's soup", "@Chef Gusteau's soup"),
            Mention("mail a@Chef-Gusteau", "mail a@Chef-Gusteau"), Mention("@Chef-Gusteaux", "@Chef-Gusteaux"),
            Mention("Chef-Gusteau hello", "Chef-Gusteau hello"), Mention("Chef-Gusteau:hello", "Chef-Gusteau:hello"),
            Mention("bob: hello", "bob: hello"), Mention("BOB: @bob @Bob", "BOB: @bob @Bob"),
            Mention("@nobody: hello", "@nobody: hello"), Mention("@", "@"),
            Mention(": x", ": x"),
        ])
    func mentionsUp(row: Mention) throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :" + row.from)
        #expect(up(stage) == [row.to])
    }

    @Test(
        "names become nicks on the way down, exactly",
        arguments: [
            Mention("@Chef Gusteau look", "@Chef-Gusteau look"), Mention("Chef Gusteau: look", "Chef-Gusteau: look"),
            Mention("look, @Chef Gusteau!", "look, @Chef-Gusteau!"), Mention("@Chef Gusteaux", "@Chef Gusteaux"),
            Mention("@Chef", "@Chef"), Mention("@alice look", "@alice look"),
            Mention("Chef Gusteau look", "Chef Gusteau look"),
            Mention("@chef gusteau", "@chef gusteau"), Mention("x@Chef Gusteau", "x@Chef Gusteau"),
        ])
    func mentionsDown(row: Mention) throws {
        let stage = try stage()
        stage.backend("message|id=m2|from=s2|name=Remy|text=" + row.from)
        #expect(stage.happened().last == "C3< :Remy!chat@chat.example PRIVMSG #lobby :" + row.to)
    }

    @Test("a name that two people have is nobody's, and who left is nobody")
    func ambiguousMentions() throws {
        let stage = try stage()
        stage.backend("message|id=m2|from=s2|name=Chef Gusteau|text=I am one too")
        _ = stage.happened()
        stage.backend("message|id=m3|from=s3|name=Remy|text=@Chef Gusteau")
        #expect(stage.happened().last?.hasSuffix(":@Chef Gusteau") == true)
        stage.harness.send(1, "PRIVMSG #lobby :Chef-Gusteau2: hello")
        #expect(up(stage) == ["Chef Gusteau: hello"])
        stage.backend("leave|from=s2|name=Chef Gusteau")
        _ = stage.happened()
        stage.harness.send(1, "PRIVMSG #lobby :Chef-Gusteau2: hello")
        #expect(up(stage) == ["Chef-Gusteau2: hello"])
    }

    // MARK: - Tags

    @Test("what the backend says beside the text goes to clients with tags, at once and in the history")
    func annotations() throws {
        let stage = try stage()
        stage.backend("message|id=m2|from=s1|name=Chef Gusteau|text=soup|note=too hot")
        let note = #"+example.com/note=too\shot"#
        var lines = stage.happened()
        #expect(lines.first?.contains(";\(note) :Chef-Gusteau!") == true, "\(lines)")
        #expect(lines.last == "C3< :Chef-Gusteau!chat@chat.example PRIVMSG #lobby :soup")
        stage.harness.send(1, "CHATHISTORY LATEST #lobby * 1")
        lines = stage.happened()
        #expect(lines.contains { $0.contains(";\(note);batch=") }, "\(lines)")
    }

    @Test("a reply goes to the others under both names, whichever the client knows")
    func replyNames() throws {
        let stage = try stage()
        let msgid = stage.newestMsgid()
        for name in ["+reply", "+draft/reply"] {
            stage.harness.send(1, "@\(name)=\(msgid) PRIVMSG #lobby :yes")
            let line = stage.happened().first { $0.hasPrefix("C2") }
            #expect(line?.contains(";+reply=\(msgid);+draft/reply=\(msgid) :alice") == true)
        }
    }

    @Test("typing goes under its ratified name, and goes up, whichever the client uses")
    func typingNames() throws {
        let stage = try stage()
        stage.harness.send(1, "@+draft/typing=active TAGMSG #lobby")
        let lines = stage.happened()
        #expect(lines.first == "U0> typing|state=start|from=[alice]|name=alice")
        #expect(lines.contains { $0.hasPrefix("C2< @") && $0.contains(";+typing=active :alice!~u@bridge TAGMSG") })
        #expect(!lines.contains { $0.contains("draft/typing") || $0.hasPrefix("C3") })
    }

    @Test("receipts of clients are dropped without a word")
    func droppedTags() throws {
        let stage = try stage()
        stage.harness.send(1, "@+draft/read=x;+draft/delivered=x TAGMSG #lobby")
        #expect(stage.happened() == [])
        stage.harness.send(1, "@label=1;+draft/read=x TAGMSG #lobby")
        #expect(stage.happened() == ["C1< @label=1 :bridge ACK"])
        stage.harness.send(1, "@+draft/read=x;msgid=mine;account=me PRIVMSG #lobby :words")
        let line = try #require(stage.happened().first { $0.hasPrefix("C2") })
        #expect(!line.contains("read") && !line.contains("mine") && !line.contains("account"))
    }

    @Test("client tags of more than 4094 bytes are 417, and the line is not taken")
    func longTags() throws {
        let stage = try stage()
        stage.harness.send(1, "@+reply=\(String(repeating: "x", count: 4088)) PRIVMSG #lobby :too much")
        #expect(stage.happened() == ["C1< :bridge 417 alice :Input line was too long"])
        stage.harness.send(1, "@+reply=\(String(repeating: "x", count: 4087)) PRIVMSG #lobby :fits")
        #expect(stage.happened().first?.hasSuffix("|text=fits") == true)
    }

    @Test("TAGMSG in all its forms")
    func tagMessages() throws {
        let stage = try stage()
        stage.harness.send(1, "TAGMSG")
        stage.harness.send(1, "@+typing=active TAGMSG nobody")
        stage.harness.send(1, "@+typing=active TAGMSG #nowhere")
        stage.harness.send(1, "@+typing=active TAGMSG Chef-Gusteau")
        stage.harness.send(1, "TAGMSG bob")
        stage.harness.send(3, "@+typing=active TAGMSG #lobby")
        let lines = stage.happened().map { $0.replacing(/msgid=[^; ]+/, with: "msgid=M") }
        #expect(
            lines == [
                "C1< :bridge 461 alice TAGMSG :Not enough parameters", "C1< :bridge 401 alice nobody :No such nick",
                "C1< :bridge 403 alice #nowhere :No such room", "U0> typing|state=start|from=[carol]|name=carol",
                "C1< @msgid=M;+typing=active :carol!~u@bridge TAGMSG #lobby",
                "C2< @msgid=M;+typing=active :carol!~u@bridge TAGMSG #lobby",
            ], "\(lines)")
    }

    @Test("a private message keeps the channel in whose context it is meant", arguments: ["PRIVMSG", "NOTICE"])
    func channelContext(verb: String) throws {
        let stage = try stage()
        for name in ["+draft/channel-context", "+channel-context"] {
            stage.harness.send(1, "@\(name)=#lobby \(verb) bob :here")
            let lines = stage.happened()
            #expect(lines.count == 2)
            #expect(lines.allSatisfy { $0.contains(";\(name)=#lobby :alice!~u@bridge \(verb) bob :here") })
        }
    }

    @Test("private messages between IRC users: one msgid for all, labels, the away text, and a person's other clients")
    func privateMessages() throws {
        let account = AccountSettings(name: "alice", password: SCRAMVerifier(quickly: "secret"))
        let stage = try ActionsStage(ActionsStubDialect(), accounts: [account])
        stage.enter(1, "alice", login: "alice")
        stage.enter(2, "alice", caps: "message-tags znc.in/self-message", login: "alice")
        stage.enter(3, "bob")
        _ = stage.happened()
        stage.harness.send(3, "@label=1;+draft/channel-context=#lobby PRIVMSG alice :psst")
        var lines = stage.happened()
        let msgid = try #require(lines.first?.firstMatch(of: /@msgid=([^; ]+)/)?.1)
        let tags = "@msgid=\(msgid);+draft/channel-context=#lobby"
        #expect(
            lines == [
                "C1< \(tags) :bob!~u@bridge PRIVMSG alice :psst", "C2< \(tags) :bob!~u@bridge PRIVMSG alice :psst",
                "C3< \(tags);label=1 :bob!~u@bridge PRIVMSG alice :psst",
            ], "\(lines)")
        stage.harness.send(3, "AWAY :asleep")
        _ = stage.happened()
        stage.harness.send(1, "@label=2 PRIVMSG bob :yes?")
        lines = stage.happened().map { $0.replacing(/msgid=[^; ]+/, with: "msgid=M") }
        #expect(
            lines == [
                "C3< @msgid=M :alice!~u@bridge PRIVMSG bob :yes?", "C2< @msgid=M :alice!~u@bridge PRIVMSG bob :yes?",
                "C1< @label=2 :bridge BATCH +b1 labeled-response",
                "C1< @msgid=M;batch=b1 :alice!~u@bridge PRIVMSG bob :yes?",
                "C1< @batch=b1 :bridge 301 alice bob asleep",
                "C1< :bridge BATCH -b1",
            ], "\(lines)")
    }

    // MARK: - Words instead of tags

    @Test("clients without tags hear of reactions in words, a few a minute")
    func reactionsInWords() throws {
        let stage = try stage(echoes: false)
        let msgid = stage.newestMsgid()
        stage.backend("react|target=m1|emoji=👍|op=add|from=s2|name=Remy")
        stage.backend("react|target=m1|emoji=👍|op=remove|from=s2|name=Remy")
        stage.harness.send(1, "@+reply=\(msgid);+draft/react=🍲 TAGMSG #lobby")
        let notices = stage.happened().filter { $0.contains(" NOTICE ") }
        #expect(
            notices == [
                "C3< :bridge NOTICE #lobby :*** Remy reacted with 👍 to Chef-Gusteau's: soup",
                "C3< :bridge NOTICE #lobby :*** Remy took 👍 back from Chef-Gusteau's: soup",
                "C3< :bridge NOTICE #lobby :*** alice reacted with 🍲 to Chef-Gusteau's: soup",
            ])
        for number in 1...20 { stage.backend("react|target=m1|emoji=👍|op=add|from=x\(number)|name=x\(number)") }
        #expect(stage.happened().filter { $0.contains(" NOTICE ") }.count == 2)
    }

    @Test("clients without tags see whom a reply answers, unless its words say so")
    func repliesInWords() throws {
        let stage = try stage()
        stage.backend("message|id=m2|from=s2|name=Remy|text=delicious|reply=m1")
        stage.backend("message|id=m3|from=s2|name=Remy|text=Chef Gusteau, delicious|reply=m1")
        stage.backend("message|id=m4|from=s2|name=Remy|text=I mean it|reply=m3")
        let plain = stage.happened().filter { $0.hasPrefix("C3") && $0.contains("PRIVMSG") }
        let front = "C3< :Remy!chat@chat.example PRIVMSG #lobby :"
        #expect(
            plain == [front + "Chef-Gusteau: delicious", front + "Chef-Gusteau, delicious", front + "I mean it"])
    }

    struct Edit: CustomTestStringConvertible, Sendable {
        let old: String
        let new: String
        let shown: String?

        var testDescription: String { "\(old) → \(new)" }
    }

    @Test(
        "a short change of a long text is a substitution",
        arguments: [
            Edit(
                old: "the soup is on teh stove, help yourself", new: "the soup is on the stove, help yourself",
                shown: "s/teh/the/"),
            Edit(
                old: "see you at the restaurant tonight then", new: "see you at the restaurant tomorrow then",
                shown: "s/tonight/tomorrow/"),
            Edit(
                old: "we eat soup today and only soup it is", new: "we eat soup today and not only soup it is",
                shown: "s/and/and not/"),
            Edit(old: "teh soup", new: "the soup", shown: nil),
            Edit(
                old: "a cat, a dog, and a cat sat on the mat there",
                new: "a cat, a dog, and a bat sat on the mat there",
                shown: nil),
            Edit(old: "either/or is what we say around here", new: "and/or is what we say around here", shown: nil),
            Edit(old: "one two three four five six seven", new: "seven six five four three two one", shown: nil),
            Edit(
                old: "a line and\nanother line of the same text", new: "a line und\nanother line of the same text",
                shown: nil),
        ])
    func substitutions(row: Edit) { #expect(Room.substitution(from: row.old, to: row.new) == row.shown) }

    @Test("an edit is told as a substitution with its target")
    func substitutedEdit() throws {
        let stage = try stage()
        stage.backend("message|id=m2|from=s2|name=Remy|text=the soup is on teh stove, help yourself")
        let msgid = stage.newestMsgid()
        _ = stage.happened()
        stage.backend("edit|id=m2|from=s2|name=Remy|text=the soup is on the stove, help yourself")
        #expect(
            stage.happened() == [
                "C1< @+reply=\(msgid);+draft/reply=\(msgid) :Remy!chat@chat.example PRIVMSG #lobby :s/teh/the/",
                "C2< @+reply=\(msgid);+draft/reply=\(msgid) :Remy!chat@chat.example PRIVMSG #lobby :s/teh/the/",
                "C3< :Remy!chat@chat.example PRIVMSG #lobby :s/teh/the/",
            ])
    }
}
