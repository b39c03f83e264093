"""Authorization of uploads, and attempts to block those of others: guesses, invented tokens, visitors through a web server."""

import base64
import contextlib
import http.client
import socket
import time

import bearer
from accounts import account
from backends import on
from marks import slow
from media import ask, basic, start, tables
from peer import IRC, wait_until


def post(setting, credentials, visitor=None):
    """Status and seconds of an upload that comes through a web server of this machine."""
    said = {"X-Forwarded-For": visitor} if visitor else {}
    connection = http.client.HTTPConnection("127.0.0.1", setting.http, timeout=45)
    began = time.monotonic()
    try:
        connection.request("POST", "/media/upload", b"x", {"Host": "files.test", **said, **credentials})
        answer = connection.getresponse()
        answer.read()
        return answer, time.monotonic() - began
    finally:
        connection.close()


def status(setting, credentials, visitor=None):
    return post(setting, credentials, visitor)[0].status


def token(text):
    return {"Authorization": "Bearer " + text}


def serve_tokens(setting):
    bearer.serve(setting, more=tables())
    setting.http = int(setting.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
    return bearer.token_of(setting)


def refused_on_irc(setting):
    """Seconds that a wrong password takes."""
    link = IRC(setting.bridge.port)
    link.send("CAP LS 302", "NICK evil", "USER u 0 * :u", "CAP REQ sasl")
    link.expect("CAP", lambda line: line.params[1] == "ACK")
    began = time.monotonic()
    link.send("AUTHENTICATE PLAIN")
    link.expect("AUTHENTICATE")
    link.send("AUTHENTICATE " + base64.b64encode(b"\0chef\0guess").decode())
    link.expect("904")
    link.close()
    return time.monotonic() - began


@contextlib.contextmanager
def guessing(setting, credentials, visitor):
    """A fourth wrong try, whose refusal waits for 4 s."""
    for _ in range(3):
        assert status(setting, credentials, visitor) == 401
    slow = http.client.HTTPConnection("127.0.0.1", setting.http, timeout=45)
    slow.request("POST", "/media/upload", b"x", {"Host": "files.test", "X-Forwarded-For": visitor, **credentials})
    # What came before it is read before it is answered.
    assert ask(setting, "GET", "/healthz", host="localhost").status == 200
    assert status(setting, credentials, visitor) == 429, "one try at a time"
    yield slow
    assert slow.getresponse().status == 401
    slow.close()


@on("jwt-rooms")
def guesses_of_one_visitor_keep_nobody_else_waiting(setting):
    setting.start(more=account("linguini", "sekret") + tables())
    setting.http = int(setting.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
    with guessing(setting, basic(password="wrong"), "198.51.100.66"):
        assert status(setting, basic(), "203.0.113.5") == 201, "the same account from elsewhere"
        assert status(setting, basic("linguini", "sekret"), "198.51.100.66") == 201, "another of the same household"
        assert status(setting, basic("linguini", "sekret")) == 201, "from nobody knows where"
        assert status(setting, basic(password="wrong"), "203.0.113.5") == 401


@on("jwt-rooms")
def only_a_trusted_web_server_says_for_whom_it_asks(setting):
    asked = {"198.51.100.%d" % number for number in range(3)}
    for named, is_believed, counted in (
        ('"127.0.0.0/8"', True, asked), ('"10.0.0.5"', False, {"127.0.0.1"}), ("", False, {"behind 127.0.0.1"}),
    ):
        if setting.bridge:
            setting.bridge.stop()
        setting.start(more=tables(http="trusted_proxies = [%s]" % named))
        setting.http = int(setting.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
        for number in range(3):
            answer, seconds = post(setting, basic(password="wrong"), "198.51.100.%d" % number)
            assert answer.status == 401 and (is_believed or seconds > (0, 0.9, 1.9)[number]), (named, number, seconds)
        places = {entry["address"] for entry in setting.bridge.log_entries("wrong-password")}
        assert places == counted, (named, places)


@on("jwt-rooms")
@slow("waits out the delays of refused logins, up to 4 s each")
def made_up_tokens_are_failures_of_their_visitor(setting):
    right = serve_tokens(setting)
    assert [refused_on_irc(setting) > 0.9 for _ in range(3)] == [False, True, True]
    before = len(setting.backend.requests("/auth/me"))
    for visitor in ("198.51.100.66", None):
        for number in range(3):
            answer, seconds = post(setting, token("made-up-%d" % number), visitor)
            assert answer.status == 401 and seconds > (0, 0.9, 1.9)[number], (visitor, number, seconds)
    assert len(setting.backend.requests("/auth/me")) - before == 6
    with guessing(setting, token("made-up"), "198.51.100.67"):
        assert status(setting, token(right), "203.0.113.5") == 201
        assert status(setting, token(right)) == 201, "where nobody is told apart"
    assert refused_on_irc(setting) > 3.9, "what is remembered of IRC stays"


@on("jwt-rooms")
def a_right_token_is_not_blamed_for_many_that_are_looked_at(setting):
    right = serve_tokens(setting)
    setting.backend.set(http_delay_ms=6000)
    links = [bearer.show(setting, right, nick="col%d" % number) for number in range(16)]
    answer, _ = post(setting, token(right))
    assert answer.status == 503 and answer.headers["Retry-After"] == "5", (answer.status, answer.headers)
    assert answer.headers["WWW-Authenticate"] is None
    setting.backend.set(http_delay_ms=0)
    for link in links:
        link.expect("903")
    assert status(setting, token(right)) == 201


@on("jwt-rooms")
def whoever_takes_every_connection_leaves_the_health_check(setting):
    start(setting)
    held = []
    try:
        for _ in range(140):
            held.append(socket.create_connection(("127.0.0.1", setting.http)))
        for path in ("/healthz", "/readyz") * 3:
            assert ask(setting, "GET", path, host="localhost").status == 200, path
        assert ask(setting, "POST", "/media/upload", b"x", basic()).status == 503
    finally:
        for connection in held:
            connection.close()
    wait_until(lambda: ask(setting, "POST", "/media/upload", b"x", basic()).status == 201, "the places of those who left")
