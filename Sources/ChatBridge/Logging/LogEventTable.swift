import Configuration

/// An event of the log: its name, by which operators search, and what it means.
struct LogEvent: Sendable {
    /// As in the log's `event`.
    let name: String
    /// The levels that it may have, most urgent first.
    let levels: [LogLevel]
    /// What has happened, and what follows: one line of Markdown.
    let meaning: String
    /// What an operator can do; empty: nothing is wrong.
    let remedy: String

    init(_ name: String, _ levels: LogLevel..., means meaning: String, remedy: String = "") {
        (self.name, self.levels, self.meaning, self.remedy) = (name, levels, meaning, remedy)
    }
}

/// Every event that the program can write. docs/EVENTS.md is made of these rows.
enum LogEventTable {
    static let sections: [(title: String, events: [LogEvent])] = [
        ("The program and its listeners", program),
        ("Clients", clients),
        ("Links and backends", links),
        ("Rooms and messages", rooms),
        ("Storage and files", storage),
        ("Mirrors", mirrors),
    ]

    static let all = sections.flatMap(\.events)

    /// The tables of docs/EVENTS.md.
    static var text: String {
        sections.map { section in
            let rows = section.events.map { event in
                let levels = event.levels.map(\.rawValue).joined(separator: ", ")
                return "| `\(event.name)` | \(levels) | \(event.meaning) | \(event.remedy) |"
            }
            return (["### \(section.title)", "", "| event | level | meaning | remedy |", "|---|---|---|---|"] + rows)
                .joined(separator: "\n")
        }.joined(separator: "\n\n")
    }

    private static let mirrors: [LogEvent] = [
        LogEvent(
            "mirror-away", .warn,
            means: "messages wait for a mirror's tool, for `retry.max_age` at most",
            remedy: "see the reason: the tool is down, slow, or limits how much is posted"),
        LogEvent("mirror-back", .info, means: "the tool takes messages again"),
        LogEvent(
            "mirror-closed", .error,
            means: "the tool has no place for the mirror any more; it is asked again, every five minutes at last",
            remedy: "make a new webhook there, put its URL into the file, and `chatbridge reload`"),
        LogEvent(
            "mirror-gave-up", .error,
            means: "messages had waited for `retry.max_age` and are not mirrored; a line in the tool says how many",
            remedy: "a longer `retry.max_age` bridges longer outages"),
        LogEvent(
            "mirror-refused", .warn, means: "the tool refuses one message; those behind it go on",
            remedy: "see the reason; `chatbridge mirrors test NAME` shows what is posted"),
        LogEvent(
            "mirror-hook-refused", .warn,
            means: "a request to a mirror's path is not proven to come from the tool, or not in its form",
            remedy: "compare the secret with the tool's, and the clocks; else the request is forged"),
        LogEvent("mirror-read-failed", .warn, means: "messages for a mirror cannot be read now; it is tried again"),
        LogEvent("mirror-connected", .info, means: "a mirror is connected to its IRC network"),
        LogEvent(
            "mirror-disconnected", .warn,
            means: "a mirror has no connection to its IRC network; messages wait, for `retry.max_age` at most",
            remedy: "see the reason: the network is down, or refuses the mirror"),
        LogEvent("mirror-joined", .info, means: "a mirror has joined a channel of its IRC network"),
        LogEvent(
            "mirror-not-joined", .warn,
            means: "an IRC network does not let a mirror into a channel; it tries again after a growing pause",
            remedy: "see the reason; ask the channel's operators to let it in"),
        LogEvent(
            "mirror-login-refused", .warn,
            means: "an IRC network refuses the login of a mirror; it is tried again in 5 minutes",
            remedy: "see the reason; correct user, password or certificate"),
        LogEvent(
            "mirror-channel-lost", .warn,
            means: "a mirror was removed from a channel of an IRC network; it joins again after a growing pause",
            remedy: "see the reason; ask the channel's operators to let it in"),
        LogEvent(
            "mirror-relaymsg-refused", .info,
            means: "an IRC network refuses RELAYMSG in a channel: nicks stand in front of the messages there",
            remedy: "for the speakers' own nicks, make the mirror an operator of the channel"),
    ]

    private static let program: [LogEvent] = [
        LogEvent("listening", .info, means: "an IRC listener is open"),
        LogEvent("listening-http", .info, means: "an HTTP listener is open"),
        LogEvent("stopping", .info, means: "a signal was received; the stop in order begins"),
        LogEvent("stopped", .info, means: "the stop is complete"),
        LogEvent("reloaded", .info, means: "a reload: another configuration is in force; `changes` lists what differs"),
        LogEvent(
            "reload-refused", .error,
            means: "a reload: the configuration has errors, one in each line of the log; the one before stays in force",
            remedy: "mend the file (`chatbridge check` shows the same lines), then `chatbridge reload`, or SIGHUP"),
        LogEvent(
            "reload-deferred", .warn,
            means: "a reload: `key` differs, and stays as it was until a restart",
            remedy: "restart when it suits, or undo the change"),
        LogEvent("admin-request", .info, means: "an administrator asked at the admin socket for a change"),
        LogEvent(
            "admin-refused", .warn, means: "another user's process asked at the admin socket and was not answered",
            remedy: "run the command as the bridge's user or as root, or narrow `mode` in [admin]"),
        LogEvent(
            "admin-in-use", .warn,
            means: "another process answers at the admin socket; this one has none",
            remedy: "give each bridge a `socket` in [admin], or a `state_dir`, of its own"),
        LogEvent(
            "admin-closed", .warn, means: "the admin socket cannot be opened; the bridge runs without it",
            remedy: "see that its folder exists and may be written to, or set `socket` in [admin]"),
        LogEvent(
            "socket-unused", .warn,
            means: "the service manager handed over a socket that no `bind` names",
            remedy: "name it in a `bind` (`irc+fd://NAME`), or remove it from the socket unit"),
        LogEvent(
            "manager-unreachable", .warn,
            means: "the service manager cannot be told of the bridge's state",
            remedy: "see that `$NOTIFY_SOCKET` can be reached from the unit's sandbox"),
        LogEvent("accept-certificate-renewed", .info, means: "a changed certificate is in force for new connections"),
        LogEvent(
            "accept-certificate-kept", .error,
            means: "a changed certificate cannot be loaded; the old one stays in use",
            remedy: "see that certificate and key belong together and are readable, then send SIGHUP"),
        LogEvent(
            "accept-certificate-ending", .error, .warn,
            means: "a listener's certificate ends within two weeks, or has ended (error); clients will refuse it",
            remedy: "renew it; changed files are noticed within a minute"),
        LogEvent(
            "accept-suspended", .error,
            means: "no more connections can be accepted: too many files are open",
            remedy: "raise the limit of open files (LimitNOFILE=), or lower `max_clients` in [limits]"),
        LogEvent(
            "few-descriptors", .warn,
            means: "the process may not open as many files as `max_clients` needs",
            remedy: "raise the limit of open files (LimitNOFILE=)"),
        LogEvent(
            "start-failed", .error,
            means: "`run` cannot start and ends, with status 69 or 78; each error in the configuration has a line",
            remedy: "see the message"),
        LogEvent(
            "variable-unknown", .warn,
            means: "an environment variable begins with `CHATBRIDGE_` and is not known: it has no effect",
            remedy:
                "correct its name: a key is `CHATBRIDGE__SECTION__KEY`, and the message has the nearest; else remove it"
        ),
        LogEvent(
            "instance-id-not-kept", .warn,
            means: "the instance id cannot be stored: IRC users have new ids upstream after a restart",
            remedy: "make `state_dir` writable, or set `instance_id` in [server]"),
        LogEvent(
            "log-lines-dropped", .warn,
            means: "lines of the log did not fit a full pipe and were dropped",
            remedy: "let the reader of the log be faster, or raise `level` in [log]"),
        LogEvent(
            "registration-without-store", .warn,
            means: "registration of accounts is off, since storage is in memory only",
            remedy: "set `url` in [storage] to a file"),
    ]

    private static let clients: [LogEvent] = [
        LogEvent("client-connected", .debug, means: "a client connected"),
        LogEvent("client-registered", .info, means: "an IRC user has registered and is here"),
        LogEvent("client-closed", .debug, means: "a client's connection has ended"),
        LogEvent(
            "client-refused", .warn,
            means: "a connection was refused by a limit, or as the bridge stops",
            remedy: "if it was no attack, raise `max_clients`, `max_clients_per_ip` or `accepts_per_second_per_ip`"),
        LogEvent(
            "client-handshake-failed", .info,
            means: "a client's TLS handshake failed",
            remedy: "where it is one of yours: check its TLS settings and the listener's certificate"),
        LogEvent(
            "client-proxy-refused", .warn,
            means: "a connection to a listener behind a proxy had no valid PROXY header, or not from a trusted proxy",
            remedy: "check `trusted_proxies` and the proxy's configuration"),
        LogEvent("client-gateway", .debug, means: "a WEBIRC gateway connects for a client"),
        LogEvent(
            "client-gateway-refused", .warn,
            means: "a client used WEBIRC without being a gateway",
            remedy: "check `webirc` in [identity]: password and addresses"),
        LogEvent(
            "client-turned-away", .info,
            means: "a request for a WebSocket was refused",
            remedy: "for a page of yours: `origins` and `hosts` of the listener"),
        LogEvent(
            "foreign-protocol", .warn,
            means: "another protocol was spoken on an IRC port",
            remedy: "the client's port or scheme is wrong"),
        LogEvent("bad-line", .info, means: "a client sent a line that is no IRC message"),
        LogEvent(
            "wrong-password", .warn,
            means: "a password was wrong",
            remedy: "if it recurs from one address, block it"),
        LogEvent("client-login", .info, means: "a client logged in to an account"),
        LogEvent("client-logout", .info, means: "a client logged out"),
        LogEvent(
            "client-login-overload", .warn,
            means: "too many passwords wait for their check; one was not checked",
            remedy: "if it recurs: lower the cost of hashes (`hash-password --iterations`), or find who tries"),
        LogEvent(
            "client-token-refused", .warn,
            means: "the backend refuses a client's token",
            remedy: "the user needs a new token"),
        LogEvent("client-oper", .info, means: "an IRC user became an operator"),
        LogEvent("client-joined", .debug, means: "an IRC user entered a room"),
        LogEvent("client-kicked", .info, means: "an IRC user was removed from a room"),
        LogEvent("client-killed", .warn, means: "an operator ended an IRC user's connections"),
        LogEvent(
            "client-twins", .info,
            means: "two clients of an account have one name; a number distinguishes them"),
        LogEvent(
            "client-forgotten", .info,
            means: "an account has too many clients; the one unused for longest is forgotten"),
        LogEvent("client-uploaded", .info, means: "a file was uploaded"),
        LogEvent("account-made", .info, means: "an account was registered"),
        LogEvent(
            "account-shadowed", .warn,
            means: "a registered account has the name of a configured one, which counts",
            remedy: "rename one of them"),
        LogEvent(
            "account-unreadable", .error,
            means: "an account cannot log in: its stored password is no hash",
            remedy: "set a new password"),
        LogEvent(
            "memberships-full", .warn,
            means: "too many rooms of accounts are stored: newly joined ones are not restored at log-in"),
    ]

    private static let links: [LogEvent] = [
        LogEvent("upstream-open", .debug, means: "the WebSocket is open; the session is not usable yet"),
        LogEvent("upstream-up", .info, means: "the link is usable"),
        LogEvent(
            "upstream-lost", .warn, .info,
            means: "a usable link was lost; reconnecting",
            remedy: "see the reason: the backend's own log, or the network"),
        LogEvent(
            "upstream-reopened", .info,
            means: "the link is closed and opened anew on purpose; the text says why"),
        LogEvent(
            "upstream-failed", .warn, .info,
            means: "the link cannot be opened; retrying",
            remedy: "`chatbridge check --connect` names the step that fails"),
        LogEvent(
            "upstream-redirected", .info,
            means: "the backend redirects; the other address is asked this time",
            remedy: "change `url`, if it is for good"),
        LogEvent(
            "upstream-credentials-changed", .info,
            means: "refused credentials were replaced; trying again at once"),
        LogEvent(
            "upstream-insecure", .warn,
            means: "the server's certificate is not checked at all",
            remedy: "remove `insecure` from [rooms.tls]; use `ca` or `pin_sha256`"),
        LogEvent("backend-login", .debug, means: "logging in to the backend"),
        LogEvent(
            "backend-login-failed", .warn,
            means: "the log-in failed; it is tried again",
            remedy: "see the reason; check `http_base`"),
        LogEvent(
            "backend-login-refused", .error,
            means: "the backend refuses user or password; the next attempt is in 15 minutes, or when they change",
            remedy: "correct user and password"),
        LogEvent("backend-refresh-refused", .info, means: "the refresh token is no longer valid; logging in"),
        LogEvent("backend-token-refused", .info, means: "the token was rejected; refreshing"),
        LogEvent("backend-tokens-renewed", .debug, means: "there are new tokens"),
        LogEvent(
            "backend-token-late", .error, .warn,
            means: "the token of a room's log-in ends and was not renewed in time, or has ended (error)",
            remedy: "see `backend-login-failed` or `backend-login-refused`, or replace the token; then "
                + "`chatbridge rooms reconnect`"),
        LogEvent(
            "backend-tokens-not-kept", .warn,
            means: "tokens cannot be stored: the next start logs in again",
            remedy: "make `state_dir` writable"),
        LogEvent(
            "backend-lifetime-odd", .warn,
            means: "the lifetime of a token makes no sense",
            remedy: "check `expires_in_at` and `expires_in_unit`, and both clocks"),
        LogEvent(
            "backend-call-failed", .warn, .info,
            means: "a call to the backend failed",
            remedy: "see the reason; where it is a history, messages may be missing"),
        LogEvent(
            "backend-auth", .error, .debug,
            means: "the answer to a log-in on the socket",
            remedy: "where it is an error: check the room's auth"),
        LogEvent(
            "backend-error", .error, .warn,
            means: "the backend reported an error",
            remedy: "see its text and its own log"),
        LogEvent(
            "frame-dropped", .warn,
            means: "a frame was not understood",
            remedy: "`chatbridge check --frame` shows how frames are decoded; check `dialect`, or `rule` and `field`"),
        LogEvent(
            "nothing-understood", .error,
            means: "none of the frames that the backend has sent to a room was understood",
            remedy: "`frame-dropped` says why; `dialect` names the backend's, and `chatbridge learn` describes one"),
        LogEvent("own-link-up", .info, means: "an account is linked to the backend as itself"),
        LogEvent(
            "own-link-lost", .warn, .info,
            means: "an account's own link was lost; reconnecting",
            remedy: "see the reason"),
        LogEvent("own-link-reopened", .info, means: "an account's own link is closed and opened anew on purpose"),
        LogEvent(
            "own-link-failed", .warn, .info,
            means: "an account's own link cannot be opened; retrying",
            remedy: "see the reason; check the account's `upstream`"),
        LogEvent(
            "own-link-auth", .error,
            means: "the backend refuses an account's own log-in on the socket",
            remedy: "check the account's `upstream`"),
        LogEvent(
            "own-link-error", .error, .warn,
            means: "the backend reported an error on an account's own link",
            remedy: "see its text"),
        LogEvent(
            "own-login-barred", .error,
            means: "an account's own log-in is the account that the room itself uses",
            remedy: "give one of them another account"),
        LogEvent("link-renewed", .info, means: "an administrator asked for a new link"),
    ]

    private static let rooms: [LogEvent] = [
        LogEvent("room-opened", .info, means: "a room of the template, or of a reloaded configuration, was opened"),
        LogEvent(
            "room-closed", .info,
            means: "an empty room of the template, or one that the configuration no longer has, was closed"),
        LogEvent(
            "room-failed", .error,
            means: "the room had no link for `give_up_after` and counts as failed, for `/readyz` too; trying goes on",
            remedy: "see the reason in the log before it, then the backend or the room's login"),
        LogEvent(
            "room-degraded", .error,
            means: "the room has been without its backend for long; trying goes on",
            remedy: "`chatbridge check --connect` names the step that fails"),
        LogEvent(
            "room-full", .warn,
            means: "more upstream users than `members_per_room`; the others speak through one nick",
            remedy: "raise `members_per_room` in [limits]"),
        LogEvent("people-lost", .info, means: "the link is down for long; upstream users are marked as absent"),
        LogEvent(
            "other-room", .info,
            means: "messages of another room came over the link and are not shown",
            remedy: "check `upstream_room`"),
        LogEvent("message-up", .trace, means: "the first words of a message from IRC, with `messages = true`"),
        LogEvent(
            "message-down", .trace,
            means: "the first words of a message from the backend, with `messages = true`"),
        LogEvent(
            "message-failed", .warn,
            means: "a message from IRC was not delivered; its author is told",
            remedy: "see the reason"),
        LogEvent(
            "message-refused", .warn,
            means: "messages from IRC were refused at once",
            remedy: "see the reason; `queue` has the limits"),
        LogEvent(
            "messages-without-room", .warn,
            means: "messages from IRC wait in the store for a room that is not open",
            remedy: "restore the room in the configuration, or let them expire"),
        LogEvent(
            "queue-waiting", .error, .warn,
            means: "messages from IRC wait for the backend for 30 s, or fill four fifths of the room's queue; error: "
                + "it is full, and refuses messages",
            remedy: "see in the text whether the backend confirms nothing, or `limits.upstream_messages_per_second` is "
                + "too low"),
        LogEvent("failure-untold", .error, means: "an author who did not return was not told of a failed message"),
        LogEvent(
            "action-refused", .warn,
            means: "the backend refused an edit, a reaction or the like",
            remedy: "see its words"),
        LogEvent(
            "complaint-unclear", .warn,
            means: "the backend refused something without saying which message",
            remedy: "see its own log"),
        LogEvent("echo-learned", .info, means: "the backend answers messages; answers are awaited from now on"),
        LogEvent("echo-absent", .info, means: "the backend does not answer messages; from now on a pong confirms"),
        LogEvent("account-learned", .info, means: "the id of the bridge's account was learned from an echo"),
        LogEvent("account-doubted", .info, means: "the account's learned id proved wrong and is forgotten"),
        LogEvent(
            "unknown-own-message", .info,
            means: "a message under one of the bridge's ids was not sent by it; it is shown",
            remedy: "two bridges with one `instance_id`, or one account: give each its own"),
        LogEvent(
            "id-reused", .warn,
            means: "the backend gave a message an id that another has: its ids begin anew at a restart",
            remedy: "read no `id` in its description"),
        LogEvent(
            "history-failed", .warn,
            means: "older messages could not be fetched",
            remedy: "see the reason; it is tried again"),
        LogEvent(
            "history-short", .warn,
            means: "the backend's history does not reach back to the last known message: a gap is shown"),
        LogEvent("history-skipped", .warn, means: "too much was said while a history was awaited; it is skipped"),
    ]

    private static let storage: [LogEvent] = [
        LogEvent(
            "store-failing", .error,
            means: "writing to the store fails; messages are not stored",
            remedy: "see the reason: a full disk, permissions"),
        LogEvent("store-sound", .info, means: "writing works again"),
        LogEvent("store-gap", .warn, means: "writing works again; some messages are missing in the store"),
        LogEvent(
            "store-overflow", .error,
            means: "too many changes wait for the store; messages are not stored",
            remedy: "the disk is too slow or stuck"),
        LogEvent(
            "store-incomplete", .error,
            means: "the program ended before all changes were on disk",
            remedy: "see the reason"),
        LogEvent(
            "store-damaged", .error,
            means: "the database was damaged; it was set aside, and a new one is used",
            remedy: "restore a backup, or examine the file with sqlite3"),
        LogEvent(
            "store-alone", .warn,
            means: "the database is open for this process alone: other programs cannot read it until the next start",
            remedy: "see the reason: memory maps on this file system"),
        LogEvent("room-not-loaded", .error, means: "a room cannot be read from the store", remedy: "see the reason"),
        LogEvent(
            "backlog-failed", .error,
            means: "missed messages cannot be read from the store",
            remedy: "see the reason"),
        LogEvent(
            "history-unreadable", .error,
            means: "the history cannot be read from the store",
            remedy: "see the reason"),
        LogEvent(
            "media-key-forgotten", .warn,
            means: "the key that signs links cannot be stored: links are invalid after a restart",
            remedy: "make `state_dir` writable"),
        LogEvent(
            "file-not-kept", .warn,
            means: "a file cannot be stored",
            remedy: "see the reason; `max_bytes` in [media], and the disk"),
        LogEvent(
            "upload-not-kept", .warn,
            means: "the record of an upload cannot be stored: after a restart its link is sent as text",
            remedy: "make `state_dir` writable"),
    ]
}
