import BridgeTypes
import ChatModel
import Mirrors

/// Conversations: messages in both directions.
extension NetworkScripts {
    private static let tagged = "message-tags server-time batch labeled-response echo-message"

    static let speaking = [
        NetworkConversation(
            "without capabilities one post after the other, each proven by a PONG",
            """
            usable
            say 1 #chat alice: hello
            > PRIVMSG #chat :<a·lice> hello
            > PING 6
            say 2 #chat bob: hi
            < :s PONG s :6
            > PRIVMSG #chat :<b·ob> hi
            > PING 8
            = 1 delivered
            < :s 404 bridge #chat :Cannot send to channel (+m)
            = 2 failed: Cannot send to channel (+m)
            < :s PONG s :8
            """),
        NetworkConversation(
            "a PONG proves nothing of what came behind its PING",
            """
            usable
            + 40
            > PING 5
            say 1 #chat alice: hello
            > PRIVMSG #chat :<a·lice> hello
            < :s PONG s :5
            > PING 7
            < :s PONG s :7
            = 1 delivered
            """),
        NetworkConversation(
            "echoes confirm in their order",
            """
            usable echo-message
            say 1 #chat alice: one
            > PRIVMSG #chat :<a·lice> one
            say 2 #chat alice: two
            > PRIVMSG #chat :<a·lice> two
            say 3 #chat alice: three
            > PRIVMSG #chat :<a·lice> three
            < :bridge!u@host PRIVMSG #chat :<a·lice> one
            = 1 delivered
            < :s 404 bridge #chat :Cannot send to channel (you are banned)
            = 2 failed for good: Cannot send to channel (you are banned)
            < :bridge!u@host PRIVMSG #chat :<a·lice> three
            = 3 delivered
            """),
        NetworkConversation(
            "labels confirm with the network's id",
            """
            usable \(tagged)
            say 1 #chat alice: one
            > @label=6 PRIVMSG #chat :<a·lice> one
            say 2 #chat alice: two
            > @label=7 PRIVMSG #chat :<a·lice> two
            < @label=7;msgid=m8 :bridge!u@host PRIVMSG #chat :<a·lice> two
            = 2 delivered as m8
            < @label=6 :s 404 bridge #chat :Cannot send to channel (+R)
            = 1 failed for good: Cannot send to channel (+R)
            """),
        NetworkConversation(
            "a label without an answer is proven by a PONG",
            """
            usable \(tagged)
            say 1 #chat alice: one
            > @label=6 PRIVMSG #chat :<a·lice> one
            + 9.9
            + 0.1
            > PING 7
            < PONG s 7
            = 1 delivered
            """),
        NetworkConversation(
            "an ACK, and an answer in a batch",
            """
            usable message-tags batch labeled-response
            say 1 #chat alice: one
            > @label=6 PRIVMSG #chat :<a·lice> one
            say 2 #chat alice: two
            > @label=7 PRIVMSG #chat :<a·lice> two
            < @label=6 :s ACK
            = 1 delivered
            < @label=7 :s BATCH +b labeled-response
            < @batch=b :s 404 bridge #chat :Cannot send to channel (+m)
            < :s BATCH -b
            = 2 failed: Cannot send to channel (+m)
            """),
        NetworkConversation(
            "what is under way when the connection ends has failed",
            """
            usable
            say 1 #chat alice: one
            > PRIVMSG #chat :<a·lice> one
            > PING 6
            say 2 #chat alice: two
            lost
            = 1 failed: the connection was lost before the network confirmed the message
            = 2 failed: the connection was lost before the network confirmed the message
            = reconnect in about 2 s: reset by peer
            say 3 #chat alice: three
            = 3 notNow
            """),
        NetworkConversation(
            "several lines",
            """
            usable echo-message
            say 1 #chat alice: one\\n\\n two\\n
            > PRIVMSG #chat :<a·lice> one
            > PRIVMSG #chat :<a·lice>  two
            < :bridge!u@host PRIVMSG #chat :<a·lice> one
            < :bridge!u@host PRIVMSG #chat :<a·lice>  two
            = 1 delivered
            """),
        NetworkConversation(
            "where it has been goes along, and the id of what is one line",
            """
            usable \(tagged)
            say 1 #chat alice origin=0123ab: one
            > @label=6;+chatbridge/origin=0123ab;+chatbridge/first=m2 PRIVMSG #chat :<a·lice> one
            say 2 #chat alice origin=0123ab: one\\ntwo
            > @label=7;+chatbridge/origin=0123ab PRIVMSG #chat :<a·lice> one
            > @label=8;+chatbridge/origin=0123ab PRIVMSG #chat :<a·lice> two
            """),
        NetworkConversation(
            "several lines as one",
            """
            usable \(tagged) draft/multiline=max-bytes=4096,max-lines=3
            say 1 #chat alice origin=0123ab: one\\n\\ntwo\\nthree
            > @label=6;+chatbridge/origin=0123ab BATCH +6-0 draft/multiline #chat
            > @batch=6-0 PRIVMSG #chat :<a·lice> one
            > @batch=6-0 PRIVMSG #chat :
            > @batch=6-0 PRIVMSG #chat :two
            > BATCH -6-0
            + 2
            > @label=b;+chatbridge/origin=0123ab BATCH +6-1 draft/multiline #chat
            > @batch=6-1 PRIVMSG #chat :<a·lice> three
            > BATCH -6-1
            < @label=6;msgid=m1 :bridge!u@host BATCH +x draft/multiline #chat
            < @batch=x :bridge!u@host PRIVMSG #chat :<a·lice> one
            < :s BATCH -x
            < @label=b :s FAIL BATCH MULTILINE_MAX_LINES 1 :Too many lines
            + 5
            > @label=e;+chatbridge/origin=0123ab PRIVMSG #chat :<a·lice> one
            > @label=f;+chatbridge/origin=0123ab PRIVMSG #chat :<a·lice> two
            > @label=g;+chatbridge/origin=0123ab PRIVMSG #chat :<a·lice> three
            """),
        NetworkConversation(
            "answers, with tags and without",
            """
            usable message-tags echo-message
            say 1 #chat alice reply=abc of=bob: yes
            > @+draft/reply=abc;+reply=abc PRIVMSG #chat :<a·lice> yes
            say 2 #chat alice of=bob: yes
            > PRIVMSG #chat :<a·lice> bob: yes
            """),
        NetworkConversation(
            "a network that relays no tags of clients",
            """
            usable message-tags echo-message | CLIENTTAGDENY=*
            say 1 #chat alice reply=abc of=bob origin=0123ab: yes
            > PRIVMSG #chat :<a·lice> bob: yes{0123ab}
            say 2 #chat alice reply=abc of=bob kind=react: 👍
            = 2 omitted
            typing #chat alice yes
            """),
        NetworkConversation(
            "all the other forms",
            NetworkPlayer.settings("#chat") { $0.setsTopic = true },
            """
            usable message-tags echo-message
            say 1 #chat alice kind=action: waves
            > PRIVMSG #chat :^AACTION a·lice waves^A
            say 2 #chat alice kind=edit: better
            > PRIVMSG #chat :<a·lice> * better
            say 3 #chat alice kind=notice: two messages are missing
            > NOTICE #chat :two messages are missing
            say 4 #chat alice kind=topic: the topic
            > TOPIC #chat :the topic
            say 5 #chat alice kind=react reply=abc of=bob: 👍
            > @+draft/reply=abc;+reply=abc;+draft/react=👍 TAGMSG #chat
            + 5
            say 6 #chat alice kind=unreact reply=abc of=bob: 👍
            > @+draft/reply=abc;+reply=abc;+draft/unreact=👍 TAGMSG #chat
            say 7 #chat alice kind=redact reply=abc of=bob
            = 7 omitted
            """),
        NetworkConversation(
            "what has no form there",
            """
            usable
            say 1 #chat alice kind=topic: the topic
            = 1 omitted
            say 2 #chat alice kind=react reply=abc of=bob: 👍
            = 2 omitted
            say 3 #chat alice: \\n
            = 3 omitted
            """),
        NetworkConversation(
            "our own messages can be taken back",
            """
            usable \(tagged) draft/message-redaction
            say 1 #chat alice: one
            > @label=6 PRIVMSG #chat :<a·lice> one
            < @label=6;msgid=m7 :bridge!u@host PRIVMSG #chat :<a·lice> one
            = 1 delivered as m7
            say 2 #chat alice kind=redact reply=m7 of=alice
            > @label=7 REDACT #chat m7
            < @label=7 :bridge!u@host REDACT #chat m7
            = 2 delivered
            say 3 #chat alice kind=redact reply=m7 of=alice
            > @label=8 REDACT #chat m7
            < @label=8 :s FAIL REDACT REDACT_FORBIDDEN #chat m7 :You may not
            = 3 failed for good: You may not
            """),
        NetworkConversation(
            "under the speakers' own nicks",
            """
            usable \(tagged) draft/relaymsg=/
            say 1 #chat alice: one
            > @label=6 RELAYMSG #chat alice/chat one
            < @label=6;msgid=m7;draft/relaymsg=bridge :alice/chat!~u@host PRIVMSG #chat :one
            = 1 delivered as m7
            say 2 #chat a/l!ice kind=action: waves
            > @label=7 RELAYMSG #chat alice/chat :^AACTION waves^A
            < @msgid=m9;draft/relaymsg=other :ann/far!~u@host PRIVMSG #chat :hello
            = #chat <ann/far> hello id=m9
            """),
        NetworkConversation(
            "a network that refuses RELAYMSG gets the nicks in the text",
            """
            usable \(tagged) draft/relaymsg=/
            say 1 #chat alice: one
            > @label=6 RELAYMSG #chat alice/chat one
            say 2 #chat bob: two
            > @label=7 RELAYMSG #chat bob/chat two
            < @label=6 :s FAIL RELAYMSG PRIVS_NEEDED :You cannot relay messages to this channel
            > @label=8 PRIVMSG #chat :<a·lice> one
            = note info mirror-relaymsg-refused: You cannot relay messages to this channel
            < @label=7 :s FAIL RELAYMSG PRIVS_NEEDED :You cannot relay messages to this channel
            > @label=9 PRIVMSG #chat :<b·ob> two
            < @label=8;msgid=m9 :bridge!u@host PRIVMSG #chat :<a·lice> one
            = 1 delivered as m9
            """),
        NetworkConversation(
            "writing is shown, and seldom",
            """
            usable message-tags echo-message
            typing #chat alice yes
            > @+typing=active;+chatbridge/origin=0123ab TAGMSG #chat
            typing #chat bob yes
            typing #chat alice no
            + 3
            typing #chat bob yes
            > @+typing=active;+chatbridge/origin=0123ab TAGMSG #chat
            typing #chat bob no
            > @+typing=done;+chatbridge/origin=0123ab TAGMSG #chat
            typing #chat bob no
            < @+typing=active :bridge!u@host TAGMSG #chat
            """),
        NetworkConversation(
            "the flood limit",
            """
            usable echo-message
            say 1 #chat alice: 1\\n2\\n3\\n4\\n5\\n6\\n7
            > PRIVMSG #chat :<a·lice> 1
            > PRIVMSG #chat :<a·lice> 2
            > PRIVMSG #chat :<a·lice> 3
            > PRIVMSG #chat :<a·lice> 4
            > PRIVMSG #chat :<a·lice> 5
            < PING still-there
            > PONG still-there
            + 1.1
            > PRIVMSG #chat :<a·lice> 6
            + 1.1
            > PRIVMSG #chat :<a·lice> 7
            """),
    ]

    static let hearing = [
        NetworkConversation(
            "what people say",
            """
            usable
            < :ann!u@h PRIVMSG #chat :hello
            = #chat <ann> hello
            < :ann!u@h PRIVMSG #CHAT :^AACTION waves^A
            = #chat * ann waves
            < :ann!u@h NOTICE #chat :a notice
            = #chat <ann> a notice
            < @msgid=m1;bot;+draft/reply=m0;+chatbridge/origin=0123ab :bot!u@h PRIVMSG #chat :tagged
            = #chat <bot> tagged id=m1 reply=m0 origin=0123ab bot
            < @msgid=m1 :bot!u@h PRIVMSG #chat :tagged
            < @+typing=active :ann!u@h TAGMSG #chat
            = #chat ann writes
            < @+typing=done :ann!u@h TAGMSG #chat
            = #chat ann ceases
            < @msgid=m2;+draft/reply=m1;+draft/react=👍 :ann!u@h TAGMSG #chat
            = #chat ann add 👍 on m1 id=m2 reply=m1
            < @+reply=m1;+draft/unreact=👍 :ann!u@h TAGMSG #chat
            = #chat ann remove 👍 on m1 reply=m1
            < :ann!u@h REDACT #chat m1 :oops
            = #chat ann takes back m1
            """),
        NetworkConversation(
            "what is nobody's word",
            """
            usable
            < :s NOTICE #chat :the server speaks
            < :ChanServ!s@services NOTICE #chat :a service speaks
            < :bridge!u@host PRIVMSG #chat :our echo
            < :ann!u@h PRIVMSG #chat :^AVERSION^A
            < :ann!u@h PRIVMSG #chat
            < PRIVMSG #chat :without a source
            < :ann!u@h PRIVMSG @#chat :for operators
            < :ann!u@h TOPIC #chat :a topic
            """),
        NetworkConversation(
            "private messages",
            """
            usable
            < :ann!u@h PRIVMSG bridge :are you there?
            > NOTICE ann :I am a bridge between #chat and another chat. Nobody reads what is sent to me here.
            < :ann!u@h PRIVMSG bridge :hello?
            < :ann!u@h NOTICE bridge :hello?
            < :NickServ!s@services PRIVMSG bridge :This nick is registered
            < :ann!u@h PRIVMSG bridge :^AVERSION^A
            > NOTICE ann :^AVERSION chatbridge^A
            < :bob!u@h PRIVMSG bridge :^APING 123^A
            + 2
            < :bob!u@h PRIVMSG bridge :^APING 123^A
            > NOTICE bob :^APING 123^A
            """),
        NetworkConversation(
            "several lines as one message",
            """
            usable \(tagged) draft/multiline=max-bytes=4096
            < @msgid=m1 :ann!u@h BATCH +a draft/multiline #chat
            < @batch=a :ann!u@h PRIVMSG #chat :one
            < :bob!u@h PRIVMSG #chat :between
            = #chat <bob> between
            < @batch=a :ann!u@h PRIVMSG #chat :two
            < @batch=a;draft/multiline-concat :ann!u@h PRIVMSG #chat : and a half
            < BATCH -a
            = #chat <ann> one\\ntwo and a half id=m1
            < BATCH +n netsplit a.example b.example
            < @batch=n :bob!u@h QUIT :a.example b.example
            < BATCH -n
            """),
        NetworkConversation(
            "a mark of the places that a message has passed is read",
            """
            usable
            < :ann!u@h PRIVMSG #chat :hello\(OriginChain([OriginChain.Place("0123ab")].compactMap { $0 }).mark)
            = #chat <ann> hello origin=0123ab
            """),
    ]

    private static let history = NetworkPlayer.settings("#chat") {
        $0.channels[0].lastSeen = IRCNetworkPosition(msgid: "m0", time: ChatTimestamp(milliseconds: 1_795_262_400_000))
    }

    static let ends = [
        NetworkConversation(
            "silence",
            """
            usable
            + 39.9
            + 0.1
            > PING 5
            + 29.9
            + 0.1
            = close
            < :ann!u@h PRIVMSG #chat :too late
            lost
            = reconnect in about 2 s: the network did not answer a PING
            """),
        NetworkConversation(
            "the network ends it",
            """
            usable
            < ERROR :Closing Link: host (Throttled: Reconnecting too fast)
            = close
            lost
            = reconnect in about 120 s: the network ended the connection: Closing Link: host (Throttled: Reconnecting too fast)
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < :s 465 bridge :You are banned
            = close
            lost
            = reconnect in about 900 s: the network has banned this client
            """),
        NetworkConversation(
            "failed attempts make the wait longer until one is usable, and short connections until one lasts",
            NetworkPlayer.settings("#chat") { $0.pingInterval = .seconds(3600) },
            """
            lost
            = reconnect in about 2 s: reset by peer
            lost
            = reconnect in about 4 s: reset by peer
            lost
            = reconnect in about 8 s: reset by peer
            usable
            lost
            = reconnect in about 2 s: reset by peer
            usable
            lost
            = reconnect in about 4 s: reset by peer
            usable
            lost
            = reconnect in about 8 s: reset by peer
            lost
            = reconnect in about 8 s: reset by peer
            lost
            = reconnect in about 8 s: reset by peer
            lost
            = reconnect in about 8 s: reset by peer
            lost
            = reconnect in about 16 s: reset by peer
            usable
            + 290
            lost
            = reconnect in about 2 s: reset by peer
            """),
        NetworkConversation(
            "leaving",
            """
            usable
            stop
            > QUIT :the relay is stopped
            + 2
            = close
            lost
            = stopped
            """),
        NetworkConversation(
            "history is caught up with page by page, and comes before what is said meanwhile",
            history,
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < CAP * LS :message-tags server-time batch draft/chathistory
            > CAP REQ :message-tags server-time batch draft/chathistory
            < CAP * ACK :message-tags server-time batch draft/chathistory
            > CAP END
            < :s 001 bridge :Welcome
            = ready
            < :s 005 bridge CHANTYPES=# CHATHISTORY=2 MSGREFTYPES=msgid,timestamp :are supported
            < :s 422 bridge :No MOTD
            > JOIN #chat
            < :bridge!u@host JOIN #chat
            > CHATHISTORY AFTER #chat msgid=m0 2
            = #chat joined
            < @msgid=m5 :ann!u@h PRIVMSG #chat :live
            < BATCH +h chathistory #chat
            < @batch=h;msgid=m1 :ann!u@h PRIVMSG #chat :one
            < @batch=h;msgid=mm :bob!u@h BATCH +ml draft/multiline #chat
            < @batch=ml :bob!u@h PRIVMSG #chat :two
            < @batch=ml :bob!u@h PRIVMSG #chat :lines
            < BATCH -ml
            < BATCH -h
            = #chat <ann> one id=m1
            = #chat seen m1
            = #chat <bob> two\\nlines id=mm
            = #chat seen mm
            = #chat page
            on #chat
            > CHATHISTORY AFTER #chat msgid=mm 2
            < BATCH +h chathistory #chat
            < @batch=h;msgid=m4 :bridge!u@host PRIVMSG #chat :ours
            < @batch=h;msgid=m5 :ann!u@h PRIVMSG #chat :live
            < BATCH -h
            = #chat seen m4
            = #chat <ann> live id=m5
            = #chat seen m5
            = #chat page
            + 35
            on #chat
            > CHATHISTORY AFTER #chat msgid=m5 2
            < BATCH +h chathistory #chat
            < BATCH -h
            < @msgid=m6 :ann!u@h PRIVMSG #chat :after
            = #chat <ann> after id=m6
            = #chat seen m6
            """),
        NetworkConversation(
            "what the owner could not take is asked for again",
            history,
            """
            usable message-tags server-time batch draft/chathistory
            < BATCH +h chathistory #chat
            < BATCH -h
            < @msgid=m1 :ann!u@h PRIVMSG #chat :one
            = #chat <ann> one id=m1
            = #chat seen m1
            < @msgid=m2 :ann!u@h PRIVMSG #chat :two
            = #chat <ann> two id=m2
            = #chat seen m2
            on #chat m1
            > CHATHISTORY AFTER #chat msgid=m1 100
            on #chat m1
            < @msgid=m3 :ann!u@h PRIVMSG #chat :live
            < BATCH +h chathistory #chat
            < @batch=h;msgid=m2 :ann!u@h PRIVMSG #chat :two
            < BATCH -h
            = #chat <ann> two id=m2
            = #chat seen m2
            = #chat page
            on #chat
            > CHATHISTORY AFTER #chat msgid=m2 100
            < BATCH +h chathistory #chat
            < BATCH -h
            = #chat <ann> live id=m3
            = #chat seen m3
            """),
        NetworkConversation(
            "the place in a channel begins with the JOIN",
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < CAP * LS :message-tags server-time batch draft/chathistory
            > CAP REQ :message-tags server-time batch draft/chathistory
            < CAP * ACK :message-tags server-time batch draft/chathistory
            > CAP END
            < :s 001 bridge :Welcome
            = ready
            < :s 422 bridge :No MOTD
            > JOIN #chat
            < @time=2026-11-21T12:00:00.001Z :bridge!u@host JOIN #chat
            = #chat joined
            = #chat seen -
            lost
            = reconnect in about 2 s: reset by peer
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < CAP * LS :message-tags server-time batch draft/chathistory
            > CAP REQ :message-tags server-time batch draft/chathistory
            < CAP * ACK :message-tags server-time batch draft/chathistory
            > CAP END
            < :s 001 bridge :Welcome
            = ready
            < :s 422 bridge :No MOTD
            > JOIN #chat
            < :bridge!u@host JOIN #chat
            > CHATHISTORY AFTER #chat timestamp=2026-11-21T12:00:00.000Z 100
            = #chat joined
            """),
        NetworkConversation(
            "a notice of the server, which is in no history, is no place in the channel",
            history,
            """
            usable message-tags server-time batch draft/chathistory
            < BATCH +h chathistory #chat
            < BATCH -h
            < @time=2026-11-21T12:00:07.000Z;msgid=m1 :ann!u@h PRIVMSG #chat :one
            = #chat <ann> one id=m1
            = #chat seen m1
            < @time=2026-11-21T12:00:08.000Z :s NOTICE #chat :*** This room has no link at the moment
            < @time=2026-11-21T12:00:09.000Z :ChanServ!s@s NOTICE #chat :Be nice
            < @time=2026-11-21T12:00:10.000Z :dan!u@h NOTICE #chat :here and not kept
            = #chat <dan> here and not kept
            on #chat
            > CHATHISTORY AFTER #chat msgid=m1 100
            """),
        NetworkConversation(
            "an id that the network no longer knows",
            history,
            """
            usable message-tags server-time batch draft/chathistory
            < :s FAIL CHATHISTORY INVALID_MSGREFTYPE AFTER #chat :msgid-based history requests are not supported
            > CHATHISTORY AFTER #chat timestamp=2026-11-21T11:59:59.999Z 100
            < @msgid=m5 :ann!u@h PRIVMSG #chat :live
            + 30
            = #chat <ann> live id=m5
            = #chat seen m5
            """),
    ]
}
