"""Accounts without a password: log-in by certificate or by a token of the backend only."""

import base64

import accounts
import bearer
from accounts_sasl import Scram, begin, challenge, folder_of, make_certificate, respond, secure, start_secure
from backends import on
from claims import check
from marks import slow
from peer import IRC
from world import scenario

ROOM = '[[rooms]]\nname = "lobby"\nurl = "ws://127.0.0.1:9/x"\n\n'
PRINT = ":".join(["ab"] * 32)


@scenario
def a_certificate_or_a_token_is_enough():
    """`check` takes an account with any of the three, and none with none of them."""
    with_bearer = '[backends.main]\ndialect = "jwt-rooms"\nurl = "ws://127.0.0.1:9/ws/{room}"\nuser = "b"\npassword = "s"\n\n' \
        '[[rooms]]\nname = "attic"\nbackend = "main"\n\n[identity]\nbearer = "main"\n\n'
    for tables, extra, wanted in (
        ("", 'certfp = ["%s"]' % PRINT, 0), ("", 'certfp = ["%s"]\nadmin = true' % PRINT, 0),
        (with_bearer, 'bearer = ["colette"]', 0), (with_bearer, 'bearer = ["colette"]\ncertfp = ["%s"]' % PRINT, 0),
        ("", "", 78), ("", "admin = true", 78), ("", "certfp = []", 78), (with_bearer, "bearer = []", 78),
        ("", 'password = ""\n', 78),
    ):
        status, said = check(ROOM + tables + '[[accounts]]\nname = "carl"\n%s\n' % extra)
        assert status == wanted, (extra, status, said)
        assert wanted == 0 or "carl" in said or "password" in said, said


@scenario
def a_certificate_logs_in_where_there_is_no_password(world):
    folder = folder_of(world)
    cert, key, fingerprint = make_certificate(folder, "carl")
    stranger = make_certificate(folder, "stranger")[:2]
    port = start_secure(world, folder, '[[accounts]]\nname = "carl"\nadmin = true\ncertfp = ["%s"]\n' % fingerprint,
                        accounts.account("alice", "secret"))
    link = secure(world, port, (cert, key))
    begin(link, "EXTERNAL", "carl")
    link.expect("AUTHENTICATE")
    link.send("AUTHENTICATE +")
    link.expect("900", lambda line: line.params[2] == "carl")
    link.send("CAP END")
    link.expect("001", lambda line: line.params[0] == "carl")
    link.join("#lobby")
    other = secure(world, port, stranger)
    begin(other, "EXTERNAL", "other")
    other.expect("AUTHENTICATE")
    other.send("AUTHENTICATE +")
    other.expect("904")
    # The nick is the account's, as any.
    thief = world.irc("thief")
    thief.send("NICK carl")
    thief.expect("433")


@scenario
@slow("waits for the answers to wrong passwords, each later than the one before")
def no_password_opens_an_account_that_has_none(world):
    """Not the empty one either, by any way in; and SCRAM's answer looks like that of any account."""
    world.start(
        server_extra='[[accounts]]\nname = "carl"\nadmin = true\ncertfp = ["%s"]\n' % PRINT
        + accounts.account("alice", "secret"))
    # Each from an address of its own, so that none waits for the others' failures.
    places = iter(range(2, 100))

    def come():
        link = IRC(world.bridge.port, source="127.0.0.%d" % next(places))
        world.stack.callback(link.close)
        return link

    for password in ("", "x", "carl", PRINT, PRINT.replace(":", "")):
        link = come()
        begin(link, "PLAIN")
        link.expect("AUTHENTICATE")
        respond(link, b"\0carl\0" + password.encode())
        link.expect("904", patience=40)
        assert not [found for found in link.lines if found.command in ("900", "903")]
    heard = []
    for name in ("carl", "nobody"):
        link = come()
        begin(link, "SCRAM-SHA-256")
        challenge(link)
        side = Scram(name, "")
        respond(link, side.first)
        answer = challenge(link)
        heard.append(dict(part.split("=", 1) for part in answer.decode().split(",")))
        respond(link, side.proof(answer))
        link.expect("904", patience=40)
    assert heard[0]["i"] == heard[1]["i"] and len(heard[0]["s"]) == len(heard[1]["s"]), heard
    link = come()
    link.nick = "oper"
    link.send("NICK oper", "USER o 0 * :o")
    link.expect("001")
    link.send("OPER carl x")
    link.expect("464", patience=40)
    assert not [line for line in link.lines if line.command == "381"]


@on("jwt-rooms")
def a_token_logs_in_where_there_is_no_password(setting):
    """The account that names the person of the backend: with its rooms, and with no other way in."""
    bearer.serve(setting, more='[[accounts]]\nname = "chef"\nadmin = true\nbearer = ["colette"]\n')
    link = bearer.show(setting, bearer.token_of(setting), "chef")
    link.expect("900", lambda line: line.params[2] == "chef")
    link.expect("903")
    link.send("CAP END")
    link.expect("001", lambda line: line.params[0] == "chef")
    link.join("#lobby")
    link.say("#lobby", "by token alone")
    setting.backend.expect_text("chef", "by token alone")
    wrong = IRC(setting.bridge.port)
    setting.stack.callback(wrong.close)
    wrong.nick = "chef"
    wrong.send("CAP LS 302", "NICK x", "USER u 0 * :u", "CAP REQ sasl", "AUTHENTICATE PLAIN")
    wrong.expect("AUTHENTICATE")
    wrong.send("AUTHENTICATE " + base64.b64encode(b"\0chef\0").decode())
    wrong.expect("904")
