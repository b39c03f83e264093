import IRCProtocol
import Testing
import WireBytes

/// A rich line, its form for a client with all capabilities, and for one with none.
private struct ReductionRow: Sendable, CustomTestStringConvertible {
    let name: String
    let rich: String
    let caps: IRCCapabilitySet
    let seen: String?
    var testDescription: String { name }

    init(_ name: String, _ rich: String, _ caps: IRCCapabilitySet, _ seen: String?) {
        self.name = name
        self.rich = rich
        self.caps = caps
        self.seen = seen
    }
}

private let tagged = "@time=T;msgid=M;account=A;label=L;batch=B;+typing=active;draft/x=1 PRIVMSG #a :b"

private let reductionRows: [ReductionRow] = [
    ReductionRow("nothing negotiated: no tags", tagged, [], "PRIVMSG #a :b"),
    ReductionRow("server-time alone gives time", tagged, [.serverTime], "@time=T PRIVMSG #a :b"),
    ReductionRow(
        "message-tags alone gives those without a capability of their own", tagged, [.messageTags],
        "@msgid=M;+typing=active;draft/x=1 PRIVMSG #a :b"),
    ReductionRow("account-tag alone gives account", tagged, [.accountTag], "@account=A PRIVMSG #a :b"),
    ReductionRow("labeled-response alone gives label", tagged, [.labeledResponse], "@label=L PRIVMSG #a :b"),
    ReductionRow("batch alone gives batch", tagged, [.batch], "@batch=B PRIVMSG #a :b"),
    ReductionRow("everything negotiated: untouched", tagged, .all, tagged),
    ReductionRow("TAGMSG without message-tags", "@+typing=done TAGMSG #a", [.serverTime], nil),
    ReductionRow("TAGMSG with it", "@+typing=done TAGMSG #a", [.messageTags], "@+typing=done TAGMSG #a"),
    ReductionRow("BATCH without batch", "BATCH +1 netjoin", [.messageTags], nil),
    ReductionRow(
        "the mark of a line that continues another", "@batch=1;draft/multiline-concat PRIVMSG #a :b",
        [.batch, .multiline], "@batch=1;draft/multiline-concat PRIVMSG #a :b"),
    ReductionRow(
        "… without draft/multiline", "@batch=1;draft/multiline-concat PRIVMSG #a :b", [.batch, .messageTags],
        "@batch=1 PRIVMSG #a :b"),
    ReductionRow("BATCH with it", "BATCH +1 netjoin", [.batch], "BATCH +1 netjoin"),
    ReductionRow("ACK without labeled-response", "@label=L ACK", [.messageTags], nil),
    ReductionRow("AWAY without away-notify", ":o!u@h AWAY :gone", [], nil),
    ReductionRow("AWAY with it", ":o!u@h AWAY :gone", [.awayNotify], ":o!u@h AWAY :gone"),
    ReductionRow("ACCOUNT without account-notify", ":o!u@h ACCOUNT acc", [.accountTag], nil),
    ReductionRow("SETNAME without setname", ":o!u@h SETNAME :New", [], nil),
    ReductionRow("MARKREAD without read-marker", "MARKREAD #a timestamp=T", [.messageTags], nil),
    ReductionRow("REDACT without message-redaction", ":o!u@h REDACT #a M :spam", [.messageTags], nil),
    ReductionRow("INVITE of somebody else without invite-notify", ":o!u@h INVITE bob #a", [], nil),
    ReductionRow("INVITE of the client itself", ":o!u@h INVITE ME #a", [], ":o!u@h INVITE ME #a"),
    ReductionRow("INVITE without parameters", ":o!u@h INVITE", [], nil),
    ReductionRow("JOIN without extended-join", ":o!u@h JOIN #a acc :Real Name", [], ":o!u@h JOIN #a"),
    ReductionRow("JOIN that is short already", ":o!u@h JOIN #a", [], ":o!u@h JOIN #a"),
    ReductionRow(
        "FAIL without standard-replies", "@time=T :irc FAIL PRIVMSG CANNOT_SEND #a :Not now", [.serverTime],
        "@time=T :irc NOTICE me :PRIVMSG CANNOT_SEND #a: Not now"),
    ReductionRow(
        "FAIL of a verb whose specification has it, for who negotiated that", ":irc FAIL CHATHISTORY X #a :No",
        [.chatHistory], ":irc FAIL CHATHISTORY X #a :No"),
    ReductionRow(
        "FAIL of such a verb for who did not", ":irc FAIL CHATHISTORY X #a :No", [.readMarker],
        ":irc NOTICE me :CHATHISTORY X #a: No"),
    ReductionRow(
        "FAIL of a command that has no other answers", ":irc FAIL REGISTER NEED_NICK * :Choose one", [],
        ":irc FAIL REGISTER NEED_NICK * :Choose one"),
    ReductionRow("WARN without standard-replies", ":irc WARN * X :Mind", [], ":irc NOTICE me :* X: Mind"),
    ReductionRow(
        "FAIL of a command whose own capability is there", ":irc FAIL REDACT UNKNOWN_MSGID #a M :No such message",
        [.messageRedaction], ":irc FAIL REDACT UNKNOWN_MSGID #a M :No such message"),
    ReductionRow(
        "FAIL of a batch, for who sends messages of several lines", ":irc FAIL BATCH MULTILINE_INVALID :Blank",
        [.multiline], ":irc FAIL BATCH MULTILINE_INVALID :Blank"),
    ReductionRow(
        "FAIL of one command, with the capability of another", ":irc FAIL MARKREAD INVALID_PARAMS #a :No time",
        [.messageRedaction], ":irc NOTICE me :MARKREAD INVALID_PARAMS #a: No time"),
    ReductionRow(
        "FAIL with a code that 005 announces", ":irc FAIL * INVALID_UTF8 :Not UTF-8", [],
        ":irc FAIL * INVALID_UTF8 :Not UTF-8"),
    ReductionRow("NOTE with nothing but a text", ":irc NOTE :Mind", [], ":irc NOTICE me :Mind"),
    ReductionRow("NOTE with standard-replies", ":irc NOTE A B :C", [.standardReplies], ":irc NOTE A B :C"),
    ReductionRow(
        "NAMES for a client with neither extension", "353 me = #a :@+bob!u@h +al!u@h cy!u@h", [],
        "353 me = #a :@bob +al cy"),
    ReductionRow(
        "NAMES with multi-prefix", "353 me = #a :@+bob!u@h +al!u@h", [.multiPrefix], "353 me = #a :@+bob +al"),
    ReductionRow(
        "NAMES with userhost-in-names", "353 me = #a :@+bob!u@h", [.userhostInNames], "353 me = #a :@bob!u@h"),
    ReductionRow(
        "WHO without multi-prefix", "352 me #a u h s bob H*@+B :0 R", [], "352 me #a u h s bob H*@B :0 R"),
    ReductionRow("a WHO line that is too short", "352 me #a", [], "352 me #a"),
    ReductionRow("METADATA without metadata", "METADATA Remy display-name * :Remy R.", [.batch], nil),
    ReductionRow("a WHOIS line of metadata without it", "760 me Remy display-name * :Remy R.", [], nil),
    ReductionRow(
        "who relayed, without relaymsg", "@draft/relaymsg=bot :al/net!u@h PRIVMSG #a :x", [.messageTags],
        ":al/net!u@h PRIVMSG #a :x"),
    ReductionRow(
        "who relayed, with it", "@draft/relaymsg=bot :al/net!u@h PRIVMSG #a :x", [.relaymsg],
        "@draft/relaymsg=bot :al/net!u@h PRIVMSG #a :x"),
]

@Suite("IRC reduction to what a client negotiated")
struct ReductionTests {
    @Test("a client sees what it negotiated", arguments: reductionRows)
    fileprivate func reduces(row: ReductionRow) throws {
        let seen = try parse(row.rich).reduced(for: row.caps, nick: "me")
        #expect(try seen == row.seen.map { try parse($0) })
    }

    @Test("with every capability nothing changes", arguments: reductionRows)
    fileprivate func richest(row: ReductionRow) throws {
        let rich = try parse(row.rich)
        #expect(rich.reduced(for: .all, nick: "me") == rich)
    }

    @Test("reducing twice is reducing once", arguments: reductionRows)
    fileprivate func idempotent(row: ReductionRow) throws {
        let rich = try parse(row.rich)
        for caps in Self.everySingleOneMissing + Self.everySingleOneAlone {
            let once = rich.reduced(for: caps, nick: "me")
            #expect(once?.reduced(for: caps, nick: "me") == once)
        }
    }

    @Test("a line is appended as its reduced form", arguments: reductionRows)
    fileprivate func appended(row: ReductionRow) throws {
        let rich = try parse(row.rich)
        for caps in Self.everySingleOneMissing + Self.everySingleOneAlone + [row.caps] {
            var appended = ByteWriter()
            var encoded = ByteWriter()
            let command = rich.append(reducedFor: caps, nick: "me", to: &appended)
            let reduced = rich.reduced(for: caps, nick: "me")
            if let reduced { IRCEncoder.append(reduced, to: &encoded) }
            #expect(command == reduced?.command)
            #expect(appended.take() == encoded.take())
        }
    }

    @Test("a client without a nick is addressed as *")
    func noNick() {
        let seen = IRCMessage.fail("JOIN", "X", text: "No").reduced(for: [], nick: "")
        #expect(seen == IRCMessage(command: "NOTICE", params: ["*", "JOIN X: No"]))
    }

    @Test("every row of the table is exercised above, and every capability has its place")
    func complete() throws {
        let commands = try Set(reductionRows.map { try parse($0.rich).command })
        #expect(commands.isSuperset(of: IRCReductionTable.commands.map(\.command)))
        let needed = IRCCapabilitySet(
            IRCReductionTable.commands.map(\.needs) + IRCReductionTable.tags.map(\.needs) + [.messageTags])
        // These change a session's behaviour, not the form of a line.
        let behaviour: IRCCapabilitySet = [
            .echoMessage, .noImplicitNames, .capNotify, .sasl, .selfMessage, .accountRegistration, .sts, .chatHistory,
            .eventPlayback, .search, .extendedMonitor, .preAway, .extendedISupport,
        ]
        #expect(needed.union(behaviour) == .all)
        #expect(needed.intersection(behaviour).isEmpty)
    }

    @Test("clients with equal rendering profiles see a room's lines alike")
    func profiles() throws {
        let roomCommands: Set = [
            "PRIVMSG", "TAGMSG", "BATCH", "AWAY", "ACCOUNT", "SETNAME", "INVITE", "JOIN", "REDACT",
        ]
        let lines = try reductionRows.map { try parse($0.rich) }.filter { roomCommands.contains($0.command) }.map {
            var line = $0
            line.tags.removeAll { $0.name == "label" }
            return line
        }
        #expect(lines.count > 9)
        for caps in Self.everySingleOneMissing + Self.everySingleOneAlone {
            for line in lines {
                // Another user's nick: an invitation goes to one user and is no room line for that one.
                #expect(
                    line.reduced(for: caps, nick: "else") == line.reduced(for: caps.renderingProfile, nick: "else"))
            }
        }
        #expect(IRCCapabilitySet.all.renderingProfile != .all)
    }

    @Test(
        "each capability of the profile changes some room line",
        arguments: IRCCapabilitySet.all.renderingProfile.members)
    func profileIsTight(capability: IRCCapability) throws {
        let caps = IRCCapabilitySet.all.subtracting([capability])
        let lines = try reductionRows.map { try parse($0.rich) }
        #expect(lines.contains { $0.reduced(for: caps, nick: "else") != $0 })
    }

    private static let everySingleOneMissing = IRCCapability.allCases.map { IRCCapabilitySet.all.subtracting([$0]) }
    private static let everySingleOneAlone = IRCCapability.allCases.map { IRCCapabilitySet([$0]) } + [[]]
}
