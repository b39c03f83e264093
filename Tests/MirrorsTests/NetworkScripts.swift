import Mirrors

/// Conversations: registration and channels.
enum NetworkScripts {
    static let password = MirrorSecret(Array("secret".utf8))

    static let registration = [
        NetworkConversation(
            "a server without capabilities",
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < :s 421 bridge CAP :Unknown command
            < :s 001 bridge :Welcome
            = ready
            < :s 005 bridge CHANTYPES=# NICKLEN=9 :are supported by this server
            < :s 376 bridge :End of MOTD
            > JOIN #chat
            < :bridge!~u@host JOIN :#chat
            = #chat joined
            """),
        NetworkConversation(
            "what is offered and of use is requested",
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < :s CAP * LS * :account-tag away-notify batch echo-message setname draft/event-playback
            < :s CAP * LS :labeled-response message-tags draft/chathistory draft/multiline=max-bytes=4096,max-lines=24
            > CAP REQ :message-tags batch labeled-response echo-message account-tag draft/multiline
            < :s CAP * ACK :message-tags batch labeled-response
            < :s CAP * ACK :echo-message account-tag draft/multiline
            > CAP END
            < :s 001 bridge :Welcome
            = ready
            < :s CAP bridge NEW :server-time
            > CAP REQ :server-time draft/chathistory
            < :s CAP bridge ACK :server-time draft/chathistory
            < :s CAP bridge DEL :batch
            """),
        NetworkConversation(
            "a refused list is requested one by one",
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < CAP * LS :message-tags server-time
            > CAP REQ :message-tags server-time
            < CAP * NAK :message-tags server-time
            > CAP REQ :message-tags
            > CAP REQ :server-time
            < CAP * NAK :message-tags
            < CAP * ACK :server-time
            > CAP END
            """),
        NetworkConversation(
            "PLAIN",
            NetworkPlayer.settings("#chat") { $0.login = .plain(user: "bot", password: password) },
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < CAP * LS :sasl=PLAIN,EXTERNAL
            > CAP REQ :sasl
            < CAP * ACK :sasl
            > AUTHENTICATE PLAIN
            < AUTHENTICATE +
            > AUTHENTICATE AGJvdABzZWNyZXQ=
            < :s 900 bridge bridge!u@h bot :You are now logged in
            < :s 903 bridge :SASL authentication successful
            > CAP END
            < :s 001 bridge :Welcome
            = ready
            """),
        NetworkConversation(
            "EXTERNAL, and a server password",
            NetworkPlayer.settings("#chat") {
                $0.login = .external
                $0.serverPassword = password
            },
            """
            open
            > CAP LS :302
            > PASS secret
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < CAP * LS :sasl
            > CAP REQ :sasl
            < CAP * ACK :sasl
            > AUTHENTICATE EXTERNAL
            < AUTHENTICATE +
            > AUTHENTICATE +
            < :s 903 bridge :SASL authentication successful
            > CAP END
            """),
        NetworkConversation(
            "a login that is refused is not tried again soon",
            NetworkPlayer.settings("#chat") { $0.login = .plain(user: "bot", password: password) },
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < CAP * LS :sasl
            > CAP REQ :sasl
            < CAP * ACK :sasl
            > AUTHENTICATE PLAIN
            < AUTHENTICATE +
            > AUTHENTICATE AGJvdABzZWNyZXQ=
            < :s 904 bridge :SASL authentication failed
            = note warn mirror-login-refused: SASL authentication failed
            = close
            lost
            = reconnect in about 300 s: the login failed: SASL authentication failed
            """),
        NetworkConversation(
            "a network without the mechanism is not told the password",
            NetworkPlayer.settings("#chat") { $0.login = .scramSHA256(user: "bot", password: password) },
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < CAP * LS :sasl=PLAIN
            > CAP REQ :sasl
            < CAP * ACK :sasl
            = note warn mirror-login-refused: the network does not offer SASL SCRAM-SHA-256
            = close
            """),
        NetworkConversation(
            "a network without SASL is left",
            NetworkPlayer.settings("#chat") { $0.login = .external },
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < :s 001 bridge :Welcome
            = note warn mirror-login-refused: the network registers clients without SASL
            = close
            """),
        NetworkConversation(
            "a success without a proof is none",
            NetworkPlayer.settings("#chat") { $0.login = .scramSHA256(user: "bot", password: password) },
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < CAP * LS :sasl
            > CAP REQ :sasl
            < CAP * ACK :sasl
            > AUTHENTICATE SCRAM-SHA-256
            < :s 903 bridge :SASL authentication successful
            = note warn mirror-login-refused: the network did not prove that it knows the password
            = close
            """),
        NetworkConversation(
            "a nick that is taken",
            NetworkPlayer.settings("#chat") { $0.alternativeNicks = ["relay"] },
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < :s 433 * bridge :Nickname is already in use
            > NICK relay
            < :s 437 * relay :Nick is temporarily unavailable
            > NICK bridge_
            < :s 433 * bridge_ :Nickname is already in use
            > NICK bridge__
            < :s 001 bridge__ :Welcome
            = ready
            < :s 005 bridge__ CHANTYPES=# :are supported
            < :s 376 bridge__ :End of MOTD
            > JOIN #chat
            < :bridge__!u@host JOIN #chat
            = #chat joined
            + 60
            > PING 7
            > NICK bridge
            < PONG s 7
            < :s 433 bridge__ bridge :Nickname is already in use
            + 59
            < PING x
            > PONG x
            + 1
            > NICK bridge
            < :bridge__!u@host NICK :bridge
            """),
        NetworkConversation(
            "a nick that is watched",
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < :s 433 * bridge :Nickname is already in use
            > NICK bridge_
            < :s 001 bridge_ :Welcome
            = ready
            < :s 005 bridge_ CHANTYPES=# MONITOR=100 BOT=B :are supported
            < :s 376 bridge_ :End of MOTD
            > MODE bridge_ +B
            > MONITOR + bridge
            > JOIN #chat
            < :s 730 bridge_ :bridge!u@h
            < :s 731 bridge_ :bridge
            > NICK bridge
            < :bridge_!u@host NICK bridge
            > MONITOR - bridge
            """),
        NetworkConversation(
            "a nick that the server does not like",
            NetworkPlayer.settings("#chat") { $0.nick = "1ünder" },
            """
            open
            > CAP LS :302
            > NICK 1ünder
            > USER chatbridge 0 * chatbridge
            < :s 432 * 1ünder :Erroneous Nickname
            > NICK nder_
            < :s 001 nder_ :Welcome
            = ready
            """),
        NetworkConversation(
            "a nick that is too long",
            NetworkPlayer.settings("#chat") { $0.nick = "chatbridge" },
            """
            open
            > CAP LS :302
            > NICK chatbridge
            > USER chatbridge 0 * chatbridge
            < :s 432 * chatbridge :Nickname too long, max. 9 characters
            > NICK chatbrid_
            < :s 433 * chatbrid_ :Nickname is already in use
            > NICK chatbri__
            < :s 001 chatbri__ :Welcome
            = ready
            """),
        NetworkConversation(
            "a server that does not go on",
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < PING :cookie
            > PONG cookie
            + 60
            = close
            lost
            = reconnect in about 2 s: the network did not register the client within 60 s
            """),
    ]

    static let channels = [
        NetworkConversation(
            "several with a line, those with keys first",
            NetworkPlayer.settings("#a", "#b", "&c") {
                $0.channels[1].key = MirrorSecret(Array("key".utf8))
            },
            """
            open
            > CAP LS :302
            > NICK bridge
            > USER chatbridge 0 * chatbridge
            < :s 001 bridge :Welcome
            = ready
            < :s 005 bridge CHANTYPES=# TARGMAX=JOIN:2,PRIVMSG:1 :are supported
            < :s 422 bridge :No MOTD
            > JOIN #b,#a key
            = &c refused: channels of this network begin with #
            < :s 475 bridge #b :Cannot join channel (+k)
            = #b waits 900 s: the channel has another key
            < :bridge!u@h JOIN #A
            = #a joined
            """),
        NetworkConversation(
            "a full channel is tried with a growing wait",
            """
            usable
            < :bridge!u@host PART #chat
            = #chat lost for 5 s: removed from the channel by the network
            + 5
            > JOIN #chat
            < :s 471 bridge #chat :Cannot join channel (+l)
            = #chat waits 30 s: the channel is full
            + 30
            > JOIN #chat
            < :s 471 bridge #chat :Cannot join channel (+l)
            = #chat waits 60 s: the channel is full
            """),
        NetworkConversation(
            "kicked, and again",
            """
            usable
            < :op!u@h KICK #chat bridge :no bridges
            = #chat lost for 5 s: kicked by op: no bridges
            + 5
            > JOIN #chat
            < :bridge!u@host JOIN #chat
            = #chat joined
            < :op!u@h KICK #chat Bridge
            = #chat lost for 10 s: kicked by op
            + 10
            > JOIN #chat
            < :s 474 bridge #chat :Cannot join channel (+b)
            = #chat waits 900 s: the channel has banned this client
            < :op!u@h INVITE bridge #chat
            > JOIN #chat
            < :bridge!u@host JOIN #chat
            = #chat joined
            """),
        NetworkConversation(
            "a JOIN without an answer",
            """
            usable
            < :op!u@h KICK #chat bridge :out
            = #chat lost for 5 s: kicked by op: out
            + 35
            > JOIN #chat
            = #chat waits 30 s: the network did not answer the JOIN
            """),
        NetworkConversation(
            "a channel for TLS only",
            """
            usable
            < :op!u@h KICK #chat bridge :out
            = #chat lost for 5 s: kicked by op: out
            + 5
            > JOIN #chat
            < :s 489 bridge #chat :Cannot join channel (SSL is required)
            = #chat refused: the channel takes users over TLS only
            """),
        NetworkConversation(
            "channels that are none of ours",
            """
            usable
            < :bridge!u@host JOIN #elsewhere
            < :ann!u@h PRIVMSG #elsewhere :hello
            < :op!u@h KICK #elsewhere bridge :out
            < :op!u@h INVITE bridge #elsewhere
            < :op!u@h KICK #chat ann :out
            < :ann!u@h PART #chat
            < :ann!u@h QUIT :a.example b.example
            """),
        NetworkConversation(
            "a removal that was not heard of",
            """
            usable
            say 1 #chat alice: hello
            > PRIVMSG #chat :<a·lice> hello
            > PING 6
            < :s 442 bridge #chat :You're not on that channel
            = 1 failed: You're not on that channel
            = #chat lost for 5 s: the network says that the client is not in the channel
            say 2 #chat alice: hello
            = 2 notNow
            """),
    ]
}
