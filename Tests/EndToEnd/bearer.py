"""Log-in on IRC with a token of the backend: SASL OAUTHBEARER, against backends that issued the token."""

import base64
import json
import urllib.request

from accounts_sasl import challenge, respond
from backends import on
from logins import LOGIN
from peer import IRC

IDENTITY = '\n[identity]\nbearer = "main"\nrequire_login = "always"\n'
USER = {"jwt-rooms": "colette", "directus": "colette@example.com"}
PASSWORD = "pw-of-colette-51ab"


def serve(setting, more="", **options):
    setting.serve(seed=[(USER[setting.wire.name], PASSWORD)], **options)
    setting.start(more=IDENTITY + more)


def token_of(setting):
    """As the person's own app gets it."""
    named = {"jwt-rooms": "username", "directus": "email"}[setting.wire.name]
    request = urllib.request.Request(
        setting.backend.origin + LOGIN[setting.wire.name],
        json.dumps({named: USER[setting.wire.name], "password": PASSWORD}).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        found = json.load(answer)
    return found.get("data", found)["access_token"]


def show(setting, token, nick="col", name=""):
    link = IRC(setting.bridge.port)
    setting.stack.callback(link.close)
    link.nick = nick
    link.send("CAP LS 302", "NICK " + nick, "USER u 0 * :u", "CAP REQ sasl")
    link.expect("CAP", lambda line: any(
        word.startswith("sasl=") and "OAUTHBEARER" in word for word in line.params[-1].split()))
    link.expect("CAP", lambda line: line.params[1] == "ACK")
    link.send("AUTHENTICATE OAUTHBEARER")
    assert challenge(link) == b""
    header = "n,a=%s," % name if name else "n,,"
    respond(link, ("%s\1auth=Bearer %s\1\1" % (header, token)).encode())
    return link


@on("jwt-rooms", "directus")
def a_token_of_the_backend_logs_in(setting):
    serve(setting)
    token = token_of(setting)
    link = show(setting, token)
    account = link.expect("900").params[2]
    assert account.endswith("@main") and (setting.wire.name != "jwt-rooms" or account == "colette@main"), account
    link.expect("903")
    link.send("CAP END")
    link.expect("001")
    link.join("#lobby")
    link.say("#lobby", "hello from colette")
    setting.backend.expect_text("col", "hello from colette")
    # Named, and as another of the same person's clients.
    second = show(setting, token, "col", name=account)
    assert second.expect("900").params[2] == account
    second.send("CAP END")
    second.expect("001", lambda line: line.params[0] == "col")
    assert token not in setting.bridge.log() and PASSWORD not in setting.bridge.log()


@on("jwt-rooms", "directus")
def a_token_that_is_none_is_refused_with_a_word(setting):
    serve(setting)
    link = show(setting, "eyJhbGciOiJub25lIn0.e30.")
    assert json.loads(challenge(link)) == {"status": "invalid_token"}
    link.send("AUTHENTICATE " + base64.b64encode(b"\1").decode())
    link.expect("904", lambda line: line.params[-1] == "SASL authentication failed")
    other = show(setting, token_of(setting), name="liaison")
    other.expect("904", lambda line: line.params[-1] == "You may only log in as yourself")
    assert setting.bridge.log_entries("client-token-refused")
    assert "eyJhbGciOiJub25lIn0" not in setting.bridge.log()


@on("jwt-rooms")
def a_backend_in_trouble_is_no_refusal(setting):
    serve(setting)
    token = token_of(setting)
    setting.backend.set(http_fail={"status": 500, "count": 1, "path": "/api/auth/me"})
    show(setting, token).expect("904", lambda line: "cannot say at the moment" in line.params[-1])
    show(setting, token).expect("900", lambda line: line.params[2] == "colette@main")
