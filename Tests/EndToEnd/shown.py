"""Hidden data, and the information that its absence reveals: links with secrets, guesses at a password, and `check --print` of descriptions."""

import json
import os
import subprocess
import tempfile

import peer
from backends import PASSWORD, on
from claims import check
from world import scenario

HEX = "0123456789abcdef0123456789abcdef"


def say_link(setting, link, name="f.png"):
    """Somebody on the backend sends a file that lies there; the line that IRC users see."""
    client = setting.clients[0]
    if setting.wire.name == "jwt-rooms":
        say_link.count += 1
        setting.backend.control("raw", json={
            "type": "message", "message_id": 9000 + say_link.count, "room_id": 1, "sender": "Mallory", "content": "",
            "message": "", "message_type": "image", "file_url": link, "file_name": name, "file_size": 5,
            "mime_type": "image/png", "timestamp": "2026-11-23T06:00:00", "reactions": [], "user_reaction": None})
    elif setting.wire.name == "typed":
        setting.backend.do("say", "Mallory", text="", attachments=[
            {"url": link, "name": name, "mimeType": "image/png", "size": 5, "kind": "image"}])
    else:
        setting.backend.do("say", "Mallory", text="", things=[{"href": link, "label": name, "bytes": 5, "ct": "image/png"}])
    return client.expect("PRIVMSG", lambda line: line.source.startswith("Mallory!") and "(5 B)" in line.params[-1]).params[-1]


say_link.count = 0


WRONG = PASSWORD[:-1] + "z"


def start_with_a_password(setting):
    basic = 'auth = { type = "basic", user = "bridge", password = "%s" }\n' % PASSWORD
    setting.start(auth=basic if setting.wire.name == "typed" else "")
    return setting.irc("ann")


@on("jwt-rooms", "typed")
def links_are_no_oracle_for_a_password(setting):
    """A link with a guess in it that is right is shown exactly as one with a wrong guess."""
    start_with_a_password(setting)
    for form in ("https://f.example/%s.png", "https://f.example/%s/a.png", "https://f.example/a.png?q=%s", "https://%s.example/"):
        shown = [say_link(setting, form % guess).replace(guess, "GUESS") for guess in (PASSWORD, WRONG)]
        assert shown[0] == shown[1], "%r tells a right guess from a wrong one: %r" % (form, shown)
        assert "GUESS" in shown[0] or "not available" in shown[0], shown


@on("jwt-rooms", "directus", "typed")
def words_are_no_oracle_for_a_password(setting):
    """Neither are the words that somebody on the backend says."""
    ann = start_with_a_password(setting)
    for form in ("%s", "say %s now", "https://f.example/%s", "https://f.example/?q=%s", "(%s)"):
        shown = []
        for guess in (PASSWORD, WRONG):
            setting.backend.say("Mallory", form % guess)
            shown.append(ann.expect("PRIVMSG", lambda line: line.source.startswith("Mallory!")).params[-1].replace(guess, "GUESS"))
        assert shown[0] == shown[1], "%r tells a right guess from a wrong one: %r" % (form, shown)


HIDDEN = (
    "?token=" + HEX, "?token=abc", "?access_token=abc", "?size=large&token=" + HEX, "?TOKEN=" + HEX, "?Token=abc",
    "?t%6fken=" + HEX, "?size=large&access%5Ftoken=abc", "#token=" + HEX, "#access_token=abc",
)
SHOWN = ("?size=large", "?id=" + HEX, "?v=3&page=2", "?tokens=3", "#token")


@on("typed", "custom")
def links_with_a_usual_name_are_one_rule(setting):
    """"`?token=<32 hex>` in a link is shown while `?access_token=abc` is hidden": neither is, however it is written."""
    setting.start()
    setting.irc("ann")
    shown = [query for query in HIDDEN if query in say_link(setting, "https://f.example/a.png" + query)]
    assert not shown, "shown: %r" % shown
    hidden = [query for query in SHOWN if query not in say_link(setting, "https://f.example/a.png" + query)]
    assert not hidden, "hidden, though nothing in it lets anybody in: %r" % hidden


@on("typed")
def configured_tokens_stay_hidden(setting):
    """That passwords are left out of it does not show a token that the bridge holds."""
    token = "tk-header-55aa-of-the-bridge"
    setting.serve(auth="token", tokens=[token])
    setting.start(auth='auth = { type = "bearer", token = "%s" }\n' % token)
    ann = setting.irc("ann")
    for form in (token, token.replace("-", "%2D"), token.replace("-", "%2d")):
        line = say_link(setting, "https://f.example/%s/a.png" % form)
        assert form not in line and "f.example" not in line, line
    setting.backend.say("Mallory", "look: " + token)
    assert token not in ann.expect("PRIVMSG", lambda line: "look" in line.params[-1]).params[-1]


# MARK: - check --print


SECRETS = [
    "tok-one-0123456789abcdef", "tok-two-5566778899", "nested-three-abc", "pw-four-abcdef", "in-list-five-xyz",
    "encoded-six-77"]
DESCRIPTION = {
    "on_open": [
        {"op": "hello", "token": SECRETS[0], "v": 3},
        {"op": "auth", "data": {"access_token": SECRETS[1], "deeper": {"Token": SECRETS[2]}}},
        {"op": "login", "user": "bridge", "password": SECRETS[3], "all": [{"refresh_token": SECRETS[4]}]},
        {"op": "sub", "ch": "{{room}}"},
    ],
    "decode": [{"when": {"/op": "msg"}, "event": "message", "fields": {"id": "/id", "text": "/text"}}],
    "encode": {"message": {"op": "send", "text": "{{text}}", "token": SECRETS[5]}},
}


def toml(value):
    if isinstance(value, dict):
        return "{ %s }" % ", ".join("%s = %s" % (json.dumps(key), toml(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return "[%s]" % ", ".join(toml(inner) for inner in value)
    return json.dumps(value)


def printed(text, *flags):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")}
    with tempfile.TemporaryDirectory(prefix="chatbridge-") as directory:
        path = os.path.join(directory, "chatbridge.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(
            [peer.BINARY_PATH, "check", "--print", *flags, "--config", path], capture_output=True, text=True, timeout=60,
            check=False, env={**environment, "PARLOUR_TOKEN": "from-the-environment-99"})
        assert done.returncode == 0, done
        return done.stdout + done.stderr


ROOM = '\n[[rooms]]\nname = "lobby"\ndialect = "mine"\nurl = "ws://127.0.0.1:9/x?token=%s&access_token=abc-def-7&size=big"\n' % HEX


@scenario
def check_prints_no_secret_of_a_description():
    """Written in the configuration itself, or taken from the environment: a template's constants are secrets where their keys
    say so; what a template says otherwise is still to be read."""
    inline = "[dialects.mine]\n" + "\n".join("%s = %s" % (key, toml(value)) for key, value in DESCRIPTION.items()) + "\n"
    in_environment = inline.replace(SECRETS[0], "${PARLOUR_TOKEN}")
    for text in (inline, in_environment):
        for flags in ((), ("--json",)):
            said = printed(text + ROOM, *flags)
            found = [secret for secret in [*SECRETS, "from-the-environment-99", HEX, "abc-def-7"] if secret in said]
            assert not found, "%r prints %r" % (flags, found)
            if not flags:
                assert "{{room}}" in said and "{{text}}" in said and '"hello"' in said, said


@scenario
def check_prints_no_secret_of_a_login():
    """The words that a login is made of, wherever they stand."""
    said = printed(
        '[backends.shop]\ndialect = "typed"\nurl = "ws://127.0.0.1:9/{room}"\n[backends.shop.auth]\ntype = "login"\n'
        'login_url = "/login"\nlogin_body = { who = "bridge", word = "login-word-31337" }\n'
        'refresh_url = "/renew"\nrefresh_body = { renew = "{refresh_token}", client_secret = "client-secret-31337" }\n'
        'access_token_at = "/a"\n\n[[rooms]]\nname = "lobby"\nbackend = "shop"\n')
    assert "31337" not in said, [line for line in said.splitlines() if "31337" in line]


@scenario
def check_says_what_is_wrong_without_the_secret():
    """A mistake beside a token is told without the token."""
    status, said = check(
        '[dialects.mine]\non_open = [{ op = "hello", token = "%s", x = "{{nonsense}}" }]\n'
        'decode = [{ when = { "/op" = "msg" }, event = "message", fields = { id = "/id", text = "/text" } }]\n'
        'encode = { message = { op = "send", text = "{{text}}" } }\n' % SECRETS[0] + ROOM)
    assert SECRETS[0] not in said and HEX not in said, (status, said)
