/// Conversations as servers have them, recorded with the lines that a client of this kind writes.
extension NetworkScripts {
    static let recorded = [
        NetworkConversation(
            "ngIRCd 26",
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < :ng.test CAP * LS :multi-prefix
            > CAP END
            < :ng.test 001 bridge :Welcome to the Internet Relay Network bridge!~chatbridge@127.0.0.1
            = ready
            < :ng.test 004 bridge ng.test ngircd-26.1 abBcCFiIoqrRswx abehiIklmMnoOPqQrRstvVz
            < :ng.test 005 bridge RFC2812 IRCD=ngIRCd CHARSET=UTF-8 CASEMAPPING=ascii PREFIX=(qaohv)~&@%+ CHANTYPES=#&+ CHANMODES=beI,k,l,imMnOPQRstVz CHANLIMIT=#&+:10 :are supported on this server
            < :ng.test 005 bridge CHANNELLEN=50 NICKLEN=9 TOPICLEN=490 AWAYLEN=127 KICKLEN=400 MODES=5 MAXLIST=beI:50 EXCEPTS=e INVEX=I PENALTY FNC :are supported on this server
            < :ng.test 376 bridge :End of MOTD command
            > JOIN #chat
            < :bridge!~chatbridge@127.0.0.1 JOIN :#chat
            = #chat joined
            < :ng.test 353 bridge = #chat :@bridge
            < :ng.test 366 bridge #chat :End of NAMES list
            say 1 #chat alice: hello
            > PRIVMSG #chat :<a·lice> hello
            > PING 6
            < :ng.test PONG ng.test :6
            = 1 delivered
            """),
        NetworkConversation(
            "InspIRCd 3",
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < :insp.test NOTICE * :*** Looking up your hostname...
            < :insp.test CAP * LS :account-notify account-tag away-notify batch cap-notify echo-message extended-join extended-monitor inspircd.org/poison inspircd.org/standard-replies labeled-response message-tags multi-prefix server-time
            > CAP REQ :message-tags server-time batch labeled-response echo-message account-tag
            < @time=2026-11-27T01:13:01.281Z :insp.test CAP bridge ACK :message-tags server-time batch labeled-response echo-message account-tag
            > CAP END
            < @time=2026-11-27T01:13:02.743Z :insp.test 001 bridge :Welcome to the Test IRC Network bridge!chatbridge@127.0.0.1
            = ready
            < :insp.test 005 bridge AWAYLEN=200 BOT=B CASEMAPPING=ascii CHANLIMIT=#:20 CHANMODES=b,k,l,MRimnprstz CHANNELLEN=64 CHANTYPES=# ELIST=CMNTU EXTBAN=,RUmz HOSTLEN=64 KEYLEN=32 KICKLEN=255 :are supported by this server
            < :insp.test 005 bridge LINELEN=512 MAXLIST=b:100 MAXTARGETS=20 MODES=20 MONITOR=30 NAMELEN=128 NAMESX NETWORK=Test NICKLEN=30 PREFIX=(ov)@+ SAFELIST STATUSMSG=@+ TOPICLEN=307 :are supported by this server
            < @time=2026-11-27T01:13:02.744Z :insp.test 422 bridge :Message of the day file is missing.
            > MODE bridge +B
            > JOIN #chat
            < :bridge!chatbridge@127.0.0.1 MODE bridge :+B
            < :bridge!chatbridge@127.0.0.1 JOIN :#chat
            = #chat joined
            say 1 #chat alice: muted?
            > @label=7 PRIVMSG #chat :<a·lice> muted?
            < @time=2026-11-27T01:13:07.684Z;label=7 :insp.test 404 bridge #chat :You cannot send messages to this channel whilst a m: (mute) extban is set matching you.
            = 1 failed for good: You cannot send messages to this channel whilst a m: (mute) extban is set matching you.
            """),
    ]
}
