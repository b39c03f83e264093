"""Log-in to backends: tokens that expire, are refused or come late, and must not be readable anywhere."""

import base64
import glob
import json
import os
import re
import signal
import stat
import subprocess
import time
import urllib.request

from backends import CALM, PASSWORD, Backend, on, on_wires
from dialects import wait_line
from marks import slow
from operating import PAGES, command_output, ended, page, watch
from peer import wait_until

LOGIN = {"jwt-rooms": "/api/auth/login", "directus": "/auth/login"}
REFRESH = {"jwt-rooms": "/api/auth/refresh", "directus": "/auth/refresh"}


def with_login():
    return on_wires(lambda wire: wire.login)


def logins(setting):
    return setting.backend.requests(LOGIN[setting.wire.name])


def refreshes(setting):
    return setting.backend.requests(REFRESH[setting.wire.name])


def check_talk(setting, client, text):
    """Both ways, once."""
    setting.backend.say("Remy", "down " + text)
    wait_line(client, "down " + text)
    client.say("#lobby", "up " + text)
    setting.backend.expect_text(client.nick, "up " + text)


# MARK: - Tokens


@with_login()
def one_login_serves_socket_and_calls(setting):
    setting.start()
    ann = setting.irc("ann")
    check_talk(setting, ann, "one")
    setting.backend.control("drop", abort=True)
    setting.wait_up(2)
    check_talk(setting, ann, "two")
    assert len(logins(setting)) == 1 and not refreshes(setting), (logins(setting), refreshes(setting))


@with_login()
def a_token_is_renewed_before_it_ends(setting):
    """60 s before, or after half of a shorter life: no link is lost over it."""
    setting.serve(access_ttl=6)
    setting.start()
    ann = setting.irc("ann")
    connections = setting.backend.connections()
    wait_until(lambda: [r for r in refreshes(setting) if r["status"] == 200], "the token is renewed")
    if setting.wire.name == "directus":
        wait_until(
            lambda: len([f for f in setting.backend.frames() if f["kind"] == "auth"]) >= 2, "it is shown on the socket")
    check_talk(setting, ann, "after")
    assert setting.backend.connections() == connections, "the link was lost over it"
    assert len(logins(setting)) == 1, logins(setting)


@on("directus")
def tokens_that_end_while_connected(setting):
    """The server says so on the open socket, and sends no events until it is shown a new one."""
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    check_talk(setting, ann, "before")
    connections = setting.backend.connections()
    setting.backend.control("expire_tokens")
    missed = ["in the gap %d" % n for n in range(3)]
    for text in missed:
        setting.backend.say("Remy", text)
    wait_until(lambda: refreshes(setting), "the token is renewed")
    check_talk(setting, ann, "after")
    for client in (ann, bob):
        wait_line(client, missed[-1])
        client.barrier()
        assert client.texts("Remy") == ["down before"] + missed + ["down after"], client.texts("Remy")
    assert setting.backend.connections() == connections, "the link was lost over it"
    assert len(logins(setting)) == 1, logins(setting)


@on("directus")
def every_token_ends_while_connected(setting):
    """The refresh token too: back to name and password."""
    setting.start()
    ann = setting.irc("ann")
    setting.backend.control("expire_tokens", refresh=True)
    wait_until(lambda: len(logins(setting)) == 2, "a second login")
    check_talk(setting, ann, "after")
    assert len(logins(setting)) == 2, logins(setting)


@on("jwt-rooms")
def a_call_with_an_ended_token_is_tried_once_more(setting):
    setting.start()
    ann = setting.irc("ann")
    setting.backend.say("Remy", "read me")
    at = ann.expect_text("read me").tags["time"]
    connections = setting.backend.connections()
    setting.backend.control("expire_tokens")
    ann.send("MARKREAD #lobby timestamp=" + at)
    wait_until(
        lambda: [r["status"] for r in setting.backend.requests("/mark-read")] == [401, 200],
        lambda: "401, then 200: %r" % [r["status"] for r in setting.backend.requests("/mark-read")])
    assert len(refreshes(setting)) == 1 and len(logins(setting)) == 1
    assert setting.backend.connections() == connections, "the link was lost over it"


@on("jwt-rooms")
def a_backend_that_closes_with_1008_at_the_end_of_a_token(setting):
    setting.serve(close_on_expiry=True)
    setting.start()
    ann = setting.irc("ann")
    setting.backend.control("expire_tokens")
    setting.wait_up(2)
    check_talk(setting, ann, "after")
    assert len(logins(setting)) == 1, logins(setting)
    assert len(refreshes(setting)) == 1, refreshes(setting)


@on("jwt-rooms")
def a_backend_that_closes_with_1008_again_and_again(setting):
    """A login that worked and ended is no refusal: the room comes back, after a pause where the session was a short one."""
    setting.serve(close_on_expiry=True)
    setting.start()
    ann = setting.irc("ann")
    for turn in range(2):
        setting.wait_up(1 + turn)
        setting.backend.control("expire_tokens")
    ann.say("#lobby", "kept")
    setting.wait_up(3)
    setting.backend.expect_text("ann", "kept")
    assert len(logins(setting)) == 1 and len(refreshes(setting)) == 2, (logins(setting), refreshes(setting))
    assert not setting.bridge.log_entries("backend-login-refused")


@slow("waits for the ends of several tokens")
@with_login()
def tokens_that_end_after_seconds_each(setting):
    """However often: each is followed by the next at once, and where the login is a frame no link is lost."""
    options = {"close_on_expiry": True} if setting.wire.name == "jwt-rooms" else {}
    setting.serve(**options)
    setting.start()
    ann = setting.irc("ann")
    connections = setting.backend.connections()
    for turn in range(4):
        time.sleep(5.5)
        setting.backend.control("expire_tokens")
        wait_until(lambda: len(refreshes(setting)) == turn + 1, "the token is renewed")
        check_talk(setting, ann, "turn %d" % turn)
    assert len(logins(setting)) == 1 and len(refreshes(setting)) == 4, (logins(setting), refreshes(setting))
    if setting.wire.name == "directus":
        assert setting.backend.connections() == connections, "the link was lost over it"
    waits = [entry.get("retry-in") for entry in setting.bridge.log_entries("upstream-lost")]
    assert set(waits) <= {"0ms"}, waits


def away(setting, **expire):
    """The link is lost, the tokens end, the link may come back."""
    setting.start()
    ann = setting.irc("ann")
    check_talk(setting, ann, "before")
    setting.backend.set(refuse=-1)
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    setting.backend.control("expire_tokens", **expire)
    ann.say("#lobby", "while away")
    setting.backend.say("Remy", "meanwhile")
    setting.backend.set(refuse=0)
    setting.wait_up(2)
    setting.backend.expect_text("ann", "while away")
    wait_line(ann, "meanwhile")
    check_talk(setting, ann, "after")
    ann.barrier()
    assert ann.texts("Remy") == ["down before", "meanwhile", "down after"], ann.texts("Remy")
    assert setting.backend.heard("ann") == ["up before", "while away", "up after"], setting.backend.heard("ann")


@with_login()
def tokens_that_end_while_away(setting):
    away(setting)
    assert len(refreshes(setting)) == 1 and len(logins(setting)) == 1, (refreshes(setting), logins(setting))


@with_login()
def every_token_ends_while_away(setting):
    away(setting, refresh=True)
    assert len(refreshes(setting)) <= 1 and len(logins(setting)) == 2, (refreshes(setting), logins(setting))


@with_login()
def a_restart_goes_on_with_the_saved_tokens(setting):
    setting.start()
    files = glob.glob(os.path.join(setting.directory, "state", "backends", "*.tokens.json"))
    assert len(files) == 1, "saved: %r" % files
    assert stat.S_IMODE(os.stat(files[0]).st_mode) == 0o600, oct(os.stat(files[0]).st_mode)
    assert setting.bridge.terminate() == 0
    setting.start()
    check_talk(setting, setting.irc("ann"), "again")
    assert len(logins(setting)) == 1, "logged in again: %r" % logins(setting)


@with_login()
def a_kill_in_the_middle_of_a_renewal_locks_nobody_out(setting):
    """Refresh tokens are single use: the new one is saved before anything else is done with it."""
    setting.serve(access_ttl=4)
    setting.start()
    wait_until(lambda: refreshes(setting), "the token is being renewed")
    setting.bridge.process.kill()
    setting.bridge.process.wait()
    setting.start()
    check_talk(setting, setting.irc("ann"), "again")


@on("jwt-rooms")
def two_rooms_of_one_backend_share_one_login(setting):
    setting.serve()
    setting.start(
        more='\n[[rooms]]\nname = "random"\nbackend = "main"\nupstream_room = "Random"\n' + CALM, linked=False)
    setting.wait_up(2)
    ann, bob = setting.irc("ann"), setting.irc("bob", join="#random")
    setting.backend.say("Remy", "in general")
    setting.backend.say("Remy", "in random", room="Random")
    ann.expect_text("in general")
    bob.expect_text("in random")
    for client in (ann, bob):
        client.barrier()
        assert len(client.texts()) == 1, client.texts()
    setting.backend.control("expire_tokens")
    setting.backend.control("drop", abort=True)
    setting.wait_up(4)
    assert len(logins(setting)) == 1 and len(refreshes(setting)) == 1, (logins(setting), refreshes(setting))


@on("jwt-rooms")
def rooms_of_one_backend_come_one_after_the_other(setting):
    """Each socket holds a connection of that backend's database, and there are fifteen."""
    setting.serve(arguments=[x for n in range(1, 6) for x in ("--seed-room", "R%d" % n)], accept_delay_ms=200)
    setting.start(linked=False, room="R1", more="".join(
        '\n[[rooms]]\nname = "r%d"\nbackend = "main"\nupstream_room = "R%d"\n%s' % (n, n, CALM) for n in range(2, 6)))
    setting.wait_up(5)
    assert setting.backend.state()["handshakes_at_once"] == 1, setting.backend.state()["handshakes_at_once"]


@on("jwt-rooms")
def another_login_of_the_account_takes_the_refresh_token(setting):
    """There is one for each account there: after somebody else logged in, ours is worth nothing."""
    setting.start()
    ann = setting.irc("ann")
    request = urllib.request.Request(
        setting.backend.origin + LOGIN["jwt-rooms"],
        json.dumps({"username": "liaison", "password": PASSWORD}).encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=5).read()
    setting.backend.control("expire_tokens")
    setting.backend.control("drop", abort=True)
    setting.wait_up(2)
    check_talk(setting, ann, "after")


# MARK: - Logins that fail


@with_login()
def a_wrong_password_is_tried_once_and_said(setting):
    setting.serve()
    user = "liaison" if setting.wire.name == "jwt-rooms" else "liaison@example.com"
    setting.start(linked=False, auth='user = "%s"\npassword = "not-this-one-1c9e"\n' % user)
    ann = setting.irc("ann")
    wait_until(lambda: logins(setting), "a login")
    time.sleep(1.5)
    assert [r["status"] for r in logins(setting)] == [401], "tries lock accounts: %r" % logins(setting)
    said = ann.texts(command="NOTICE")
    assert any(re.search("log|password|credential|refuse", text) for text in said), said
    assert "not-this-one-1c9e" not in setting.bridge.log()


def failing_login(setting, status, count=2, headers=None):
    setting.serve(
        http_fail={"status": status, "count": count, "path": LOGIN[setting.wire.name], "headers": headers or {}})
    began = time.monotonic()
    setting.start()
    check_talk(setting, setting.irc("ann"), "after")
    statuses = [r["status"] for r in logins(setting)]
    assert statuses == [status] * count + [200], statuses
    return "linked after %.1f s" % (time.monotonic() - began)


@with_login()
def a_login_answered_with_500(setting):
    return failing_login(setting, 500)


@with_login()
def a_login_answered_with_503_and_retry_after(setting):
    failing_login(setting, 503, 1, {"Retry-After": "2"})
    first, second = (r["at"] for r in logins(setting))
    assert second - first > 1.8, "tried again after %.2f s" % (second - first)


@with_login()
def a_login_answered_with_429_and_retry_after(setting):
    failing_login(setting, 429, 1, {"Retry-After": "2"})
    first, second = (r["at"] for r in logins(setting))
    assert second - first > 1.8, "tried again after %.2f s" % (second - first)


@with_login()
def a_login_that_takes_its_time(setting):
    setting.serve(http_delay_ms=2500)
    setting.start()
    check_talk(setting, setting.irc("ann"), "after")
    assert len(logins(setting)) == 1, logins(setting)


@on("jwt-rooms", "plainjson", "custom")
def a_history_that_fails_blocks_nobody(setting):
    """500 for ever: live talk goes on, and the calls are no storm."""
    path = {"jwt-rooms": "/api/messages", "plainjson": "/messages", "custom": "/places"}[setting.wire.name]
    setting.serve(http_fail={"status": 500, "count": -1, "path": path})
    setting.start(linked=False)
    ann = setting.irc("ann")
    setting.backend.control("wait", connections=1, timeout=10)
    time.sleep(0.5)
    began = time.monotonic()
    setting.backend.say("Remy", "live")
    ann.expect_text("live", patience=20)
    check_talk(setting, ann, "on")
    tries = len(setting.backend.requests(path))
    assert tries <= 6, "%d calls for the history in %.1f s" % (tries, time.monotonic() - began)


@on("jwt-rooms", "plainjson", "custom")
def a_history_that_hangs_blocks_nobody(setting):
    """The room is let go after ten seconds at the most, with all that came meanwhile, in order."""
    setting.start()
    ann = setting.irc("ann")
    setting.backend.set(http_delay_ms=60_000)
    setting.backend.control("drop", abort=True)
    setting.backend.control("wait", connections=1, timeout=10)
    time.sleep(0.5)
    began = time.monotonic()
    texts = ["live %d" % n for n in range(3)]
    for text in texts:
        setting.backend.say("Remy", text)
    ann.expect_text("live 2", patience=20)
    assert ann.texts("Remy") == texts, ann.texts("Remy")
    return "released after %.1f s" % (time.monotonic() - began)


@on("jwt-rooms")
def a_history_answered_with_401_is_asked_again_with_a_new_token(setting):
    setting.start()
    ann = setting.irc("ann")
    setting.backend.say("Remy", "known")
    ann.expect_text("known")
    setting.backend.set(refuse=-1)
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    setting.backend.say("Remy", "missed")
    setting.backend.set(refuse=0, http_fail={"status": 401, "count": 1, "path": "/api/messages"})
    ann.expect_text("missed")
    assert len(refreshes(setting)) + len(logins(setting)) - 1 == 1, (refreshes(setting), logins(setting))


# MARK: - Handshakes that are refused


@with_login()
def a_handshake_refused_with_403_renews_the_token_once(setting):
    setting.start()
    ann = setting.irc("ann")
    begin = setting.backend.state()["handshakes"]
    setting.backend.set(refuse=-1, refuse_status=403)
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    ann.expect("NOTICE", lambda line: "refuses" in line.params[-1])
    time.sleep(0.6)
    tries = setting.backend.state()["handshakes"] - begin
    assert tries <= 2, "%d handshakes at once after a 403" % tries
    assert len(refreshes(setting)) <= 1 and len(logins(setting)) <= 2, (refreshes(setting), logins(setting))


# MARK: - Tokens by other ways


@on("typed", "plainjson")
def a_token_in_a_header(setting):
    setting.serve(auth="token", tokens=["tk-header-55aa"])
    setting.start(auth='auth = { type = "bearer", token = "tk-header-55aa" }\n')
    check_talk(setting, setting.irc("ann"), "one")


@on("typed", "plainjson")
def a_token_in_the_query(setting):
    setting.serve(auth="token", tokens=["tk-query-55aa"])
    setting.start(auth='auth = { type = "query", param = "token", token = "tk-query-55aa" }\n')
    check_talk(setting, setting.irc("ann"), "one")
    assert "tk-query-55aa" not in setting.bridge.log()


@on("directus")
def a_static_token_needs_no_login(setting):
    setting.serve(arguments=["--seed-user", "static@example.com:pw:tk-static-55aa"])
    setting.start(auth='auth = { type = "message", token = "tk-static-55aa" }\n')
    check_talk(setting, setting.irc("ann"), "one")
    assert not logins(setting), logins(setting)


@on("directus")
def a_strict_server_wants_the_token_in_the_query(setting):
    setting.serve(auth_mode="strict", arguments=["--seed-user", "static@example.com:pw:tk-static-55aa"])
    setting.start(auth='auth = { type = "query", param = "access_token", token = "tk-static-55aa" }\n')
    check_talk(setting, setting.irc("ann"), "one")


@on("directus")
def a_public_server_wants_none(setting):
    setting.serve(auth_mode="public")
    setting.start(auth='auth = { type = "none" }\n')
    setting.backend.say("Remy", "before")
    ann = setting.irc("ann")
    setting.backend.say("Remy", "down")
    ann.expect_text("down")


@on("custom")
def a_key_in_a_header_of_its_own(setting):
    setting.serve(keys=["tk-parlour-55aa"])
    setting.start(
        auth='auth = { type = "header", name = "X-Parlour-Key", format = "key {token}", token = "tk-parlour-55aa" }\n')
    check_talk(setting, setting.irc("ann"), "one")


LOGIN_IN_WORDS = """
  [rooms.auth]
  type = "login"
  login_url = "%(base)s/keys"
  login_body = { who = "bridge", word = "%(word)s" }
  refresh_url = "%(base)s/keys/renew"
  refresh_body = { renew = "{refresh_token}" }
  access_token_at = "/grant/key"
  refresh_token_at = "/grant/renew"
  expires_in_at = "/grant/seconds"
  send_as = { in = "header", name = "X-Parlour-Key", format = "key {token}" }
"""


@on("custom")
def a_login_described_in_the_configuration(setting):
    """Nothing in the program knows this backend: how to log in stands in the configuration alone."""
    setting.serve(accounts={"bridge": PASSWORD}, key_ttl=6)
    setting.start(
        room_extra=CALM + LOGIN_IN_WORDS % {"base": setting.backend.origin, "word": PASSWORD})
    ann = setting.irc("ann")
    check_talk(setting, ann, "one")
    renewed = wait_until(lambda: setting.backend.requests("/keys/renew"), "the key is renewed ahead of its end")
    assert len(renewed) == 1 and len(setting.backend.requests("/keys")) == 2
    setting.backend.set(key_ttl=900)
    setting.backend.control("expire_tokens", refresh=True)
    setting.backend.control("drop", abort=True)
    setting.wait_up(2)
    check_talk(setting, ann, "two")
    assert setting.backend.requests("/keys")[-1]["path"] == "/keys", "back to the password"
    look_for({PASSWORD}, {"the log": setting.bridge.log()})


# MARK: - Any room of a backend


@on("jwt-rooms")
def any_room_of_the_backend_can_be_joined(setting):
    setting.serve()
    setting.start(more='\n[[rooms]]\nname = "*"\nbackend = "main"\n' + CALM)
    ann = setting.irc("ann")
    ann.send("LIST")
    ann.expect("323")
    listed = [line.params[1].lower() for line in ann.lines if line.command == "322"]
    assert "#lobby" in listed and "#random" in listed and "#tech-talk" in listed, listed
    for channel, room in (("#random", "Random"), ("#tech-talk", "Tech Talk")):
        ann.join(channel)
        ann.say(channel, "hello " + room)
        setting.backend.expect_text("ann", "hello " + room)
        setting.backend.say("Remy", "hi in " + room, room=room)
        line = ann.expect_text("hi in " + room)
        assert line.params[0].lower() == channel, line.raw
    ann.send("JOIN #there-is-no-such-room")
    wait_until(
        lambda: ann.drain() or [x for x in ann.lines if x.command in ("403", "405")],
        lambda: "the join is refused: %r" % [x.raw for x in ann.lines[-3:]])
    assert len(logins(setting)) == 1, logins(setting)


@on("jwt-rooms")
def rooms_of_a_backend_that_starts_after_the_relay(setting):
    """Which rooms there are is asked until it is known; who wants into one waits for that, and a LIST for a moment."""
    setting.backend = first = Backend(setting.wire)
    first.stop()
    setting.start(linked=False, more='\n[[rooms]]\nname = "*"\nbackend = "main"\n' + CALM)
    ann = setting.irc("ann", join=None)
    began = time.monotonic()
    ann.send("LIST", "JOIN #random")
    ann.expect("323", patience=5)
    assert time.monotonic() - began < 4.5, "a LIST waits for a moment only"
    setting.serve(arguments=("--port", str(first.port)))
    ann.expect("366", patience=10)
    ann.send("LIST")
    ann.expect("323")
    listed = [line.params[1].lower() for line in ann.lines if line.command == "322"]
    assert "#tech-talk" in listed, listed
    ann.say("#random", "hello")
    setting.backend.expect_text("ann", "hello")


@on("jwt-rooms")
def a_list_waits_for_a_backend_that_is_slow(setting):
    setting.serve()
    os.kill(setting.backend.process, signal.SIGSTOP)
    try:
        setting.start(linked=False, more='\n[[rooms]]\nname = "*"\nbackend = "main"\n' + CALM)
        ann = setting.irc("ann", join=None)
        ann.send("LIST")
        ann.expect("321")
    finally:
        os.kill(setting.backend.process, signal.SIGCONT)
    ann.expect("323")
    listed = [line.params[1].lower() for line in ann.lines if line.command == "322"]
    assert "#random" in listed and "#tech-talk" in listed, listed


# MARK: - Secrets


def planted(setting):
    """Every secret that the bridge holds or ever held, as it stands in files and frames."""
    secrets = {"tk-header-55aa", "tk-query-55aa", "tk-parlour-55aa", PASSWORD}
    for path in glob.glob(os.path.join(setting.directory, "state", "backends", "*")):
        with open(path, encoding="utf-8") as file:
            secrets |= {value for value in walk(json.load(file)) if len(value) >= 20}
    state = setting.backend.state()
    for connection in state["connections"]:
        for name in ("token", "access_token"):
            if connection["query"].get(name):
                secrets.add(connection["query"][name])
    for frame in setting.backend.frames():
        if frame["kind"] == "auth":
            secrets |= {v for k, v in frame["raw"].items() if k.endswith("token") or k == "password"}
    return secrets


def walk(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)
    elif isinstance(value, str):
        yield value


def look_for(secrets, places):
    """Each secret in each place: as it is, in base64, percent-encoded."""
    for secret in secrets:
        forms = {secret, base64.b64encode(secret.encode()).decode().rstrip("="), secret.replace("-", "%2D")}
        for name, text in places.items():
            for form in forms:
                at = text.find(form)
                assert at < 0, "a secret (%s…) stands in %s: …%s<here>" % (secret[:4], name, text[max(0, at - 80) : at])


@on("typed", "plainjson", "jwt-rooms", "directus", "custom")
def secrets_are_nowhere_to_be_read(setting):
    """The log at its loudest, IRC lines, the command line, files that others can read, the frames that `tail --raw` shows,
    status and metrics; failures included."""
    auth = {
        "typed": 'auth = { type = "bearer", token = "tk-header-55aa" }\n',
        "plainjson": 'auth = { type = "query", param = "token", token = "tk-query-55aa" }\n',
        "custom": 'auth = { type = "header", name = "X-Parlour-Key", format = "key {token}",'
        ' token = "tk-parlour-55aa" }\n',
    }.get(setting.wire.name, "")
    served = {
        "typed": {"auth": "token", "tokens": ["tk-header-55aa"]},
        "plainjson": {"auth": "token", "tokens": ["tk-query-55aa"]},
        "custom": {"keys": ["tk-parlour-55aa"]},
    }.get(setting.wire.name, {})
    setting.serve(**served)
    setting.start(auth=auth, log='level = "trace"\nmessages = true', more="\n" + PAGES)
    tails = [watch(setting, "tail", "--raw", *more) for more in ((), ("--json",))]
    ann, bob = setting.irc("ann"), setting.plain("bob")
    secrets = planted(setting)
    check_talk(setting, ann, "one")
    if setting.wire.media:
        setting.backend.do("upload", "Remy", filename="cat.png", mime="image/png", data_b64="AAAA")
        ann.expect("PRIVMSG", lambda line: "cat" in line.params[-1])
    if setting.wire.login:
        setting.backend.control("expire_tokens")
        setting.backend.control("drop", abort=True)
        setting.wait_up(2)
        secrets |= planted(setting)
    # Failures that a careless program would spell out with the URL.
    before = setting.ups()
    setting.backend.set(refuse=2, refuse_status=502)
    setting.backend.control("drop", code=1011, reason="no")
    setting.wait_up(before + 1)
    setting.backend.set(refuse=-1, refuse_status=401)
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: "refuses" in line.params[-1])
    ann.send("PRIVMSG *bridge :status", "WHOIS Remy", "STATS o", "ADMIN", "INFO", "VERSION", "MOTD", "LIST")
    for client in (ann, bob):
        client.barrier()
    secrets |= planted(setting)
    with open("/proc/%d/cmdline" % setting.bridge.process.pid, encoding="utf-8") as file:
        command = file.read()
    frames = [ended(tail) for tail in tails]
    for text in frames:
        # The log-ins of the links that were opened meanwhile are among them, without what they carry.
        assert "up one" in text and "down one" in text, text[-2000:]
        if setting.wire.name == "directus":
            assert "bytes, not shown" in text or '"bytes"' in text, text[:2000]
    look_for(secrets, {
        "tail --raw": frames[0], "tail --raw --json": frames[1],
        "status --json": command_output(setting, "status", "--json"), "status": command_output(setting, "status"),
        "the metrics": page(setting, "/metrics"), "/status.json": page(setting, "/status.json"),
        "the page's stream": page(setting, "/status/stream", lines=1),
        "the log": setting.bridge.log(), "the command line": command,
        "lines to ann": "\n".join(line.raw for line in ann.lines),
        "lines to bob": "\n".join(line.raw for line in bob.lines),
    })
    for path, _, names in os.walk(os.path.join(setting.directory, "state")):
        for name in names:
            file = os.path.join(path, name)
            if stat.S_IMODE(os.stat(file).st_mode) & 0o077:
                with open(file, encoding="utf-8", errors="replace") as opened:
                    look_for(secrets, {file: opened.read()})
    return "%d secrets" % len(secrets)


# MARK: - TLS


@with_login()
def over_tls(setting):
    """Login, socket, calls and renewal, all by the same authority."""
    cert, key = (os.path.join(setting.directory, name) for name in ("cert.pem", "key.pem"))
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=backend", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        capture_output=True, text=True, timeout=30)
    assert made.returncode == 0, made.stderr
    setting.serve(arguments=["--tls-cert", cert, "--tls-key", key])
    user = "liaison" if setting.wire.name == "jwt-rooms" else "liaison@example.com"
    setting.start(auth='user = "%s"\npassword = "%s"\ntls = { ca = "%s" }\n' % (user, PASSWORD, cert))
    ann = setting.irc("ann")
    check_talk(setting, ann, "one")
    setting.backend.control("expire_tokens")
    setting.backend.control("drop", abort=True)
    setting.wait_up(2)
    check_talk(setting, ann, "two")
    assert len(logins(setting)) == 1 and len(refreshes(setting)) == 1
