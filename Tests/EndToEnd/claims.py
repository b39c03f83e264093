"""Configured claims about a dialect: `public_files` takes effect, and an unsupported identity is refused."""

import base64
import json
import os
import re
import subprocess
import tempfile
import urllib.request

import peer
from backends import CALM, on
from dialects import PNG
from media import get, start
from peer import wait_until


# MARK: - public_files


def link_of(setting, client, name):
    setting.backend.do("upload", "Remy", filename=name, mime="image/png", data_b64=PNG, text="look")
    return client.expect("PRIVMSG", lambda line: name.split(".")[0] in line.params[-1] or "/assets/" in line.params[-1]).params[-1]


def with_options(text):
    return CALM.rstrip() + "\noptions = { %s }\n" % text


@on("directus")
def public_files_have_their_own_links(setting):
    """"`public_files` of `directus` can never be set". docs/backends/directus.md: "files open without a token, so that their own
    links are shown", also where the bridge serves files."""
    setting.serve(assets_public=True)
    start(setting, room_extra=with_options("public_files = true"))
    ann = setting.irc("ann")
    text = link_of(setting, ann, "cat.png")
    link = text.split()[-1]
    assert link.startswith(setting.backend.origin + "/assets/"), text
    with urllib.request.urlopen(link, timeout=10) as answer:
        assert answer.read() == base64.b64decode(PNG)


@on("directus")
def public_files_without_media(setting):
    """Nothing is served by the bridge: the link is the backend's, and not "not available through a link"."""
    setting.serve(assets_public=True)
    setting.start(room_extra=with_options("public_files = true"))
    text = link_of(setting, setting.irc("ann"), "cat.png")
    assert text.split()[-1].startswith(setting.backend.origin + "/assets/"), text


@on("directus")
def files_that_are_not_public_lead_through_the_bridge(setting):
    """The default, and the same said aloud."""
    for options in (CALM, with_options("public_files = false")):
        if setting.bridge:
            setting.bridge.stop()
        start(setting, room_extra=options)
        text = link_of(setting, setting.irc("ann"), "cat.png")
        assert get(setting, text.split()[-1]).body == base64.b64decode(PNG), text


@on("directus")
def public_files_that_are_no_truth_value(setting):
    """A mistake in the option is told as any other, with its place."""
    status, said = check(BACKEND % ("directus", 'options = { public_files = "maybe" }'))
    assert status == 78 and "public_files" in said and re.search(r":\d+:\d+: ", said), (status, said)
    status, said = check(BACKEND % ("directus", "options = { public_files = true }"))
    assert status == 0, said


# MARK: - identity


BACKEND = (
    '[backends.main]\ndialect = "%s"\nurl = "ws://127.0.0.1:9/ws/{room}"\nuser = "bridge"\npassword = "secret"\n%s\n\n'
    '[[rooms]]\nname = "lobby"\nbackend = "main"\n'
)
ROOM = '[[rooms]]\nname = "lobby"\ndialect = "%s"\nurl = "ws://127.0.0.1:9/ws/{room}"\n%s\n'


def check(text, command="check", files=()):
    """Exit status and what it said; the configuration is in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="chatbridge-") as directory:
        path = os.path.join(directory, "chatbridge.toml")
        for name, content in files:
            with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                file.write(content)
        with open(path, "w", encoding="utf-8") as file:
            file.write('[server]\nname = "bridge.test"\nstate_dir = "%s/state"\n\n[[listeners]]\nbind = "irc://127.0.0.1:0"\n\n'
                       % directory + text)
        done = subprocess.run(
            [peer.BINARY_PATH, command, "--config", path], capture_output=True, text=True, timeout=60, check=False,
            env={k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")})
        return done.returncode, done.stdout + done.stderr


def refused_with_what_to_write(text, dialect, files=()):
    status, said = check(text, files=files)
    assert status == 78, "exit status %d: %s" % (status, said)
    told = [line for line in said.splitlines() if "identity" in line]
    assert told and re.search(r":\d+:\d+: ", told[0]), "no place: %r" % said
    assert "puppet" in said and dialect in said, "not which: %r" % said
    assert '"single"' in said or "single" in told[0] or '"auto"' in said, "not what to write: %r" % said


def identity_of(dialect):
    refused_with_what_to_write(BACKEND % (dialect, 'identity = "puppet"'), dialect)
    refused_with_what_to_write((BACKEND % (dialect, "")) + 'identity = "puppet"\n', dialect)
    refused_with_what_to_write(ROOM % (dialect, 'identity = "puppet"\nauth = { type = "none" }'), dialect)
    # What `check` refuses, nothing starts with.
    status, said = check(BACKEND % (dialect, 'identity = "puppet"'), command="run")
    assert status == 78 and "identity" in said, (status, said)
    for fine in ("single", "auto"):
        status, said = check(BACKEND % (dialect, 'identity = "%s"' % fine))
        assert status == 0, said


@on("jwt-rooms", "directus")
def puppets_where_the_dialect_has_none(setting):
    """"`identity = "puppet"` on `jwt-rooms` and `directus`: `check` refuses what the dialect cannot do and says what to
    write"."""
    identity_of(setting.wire.name)


@on("jwt-rooms", "directus")
def puppets_by_room_defaults(setting):
    """Said for all rooms, it is a mistake for those of such a dialect; the same words are right for the others."""
    defaults = '[room_defaults]\nidentity = "puppet"\n\n'
    refused_with_what_to_write(defaults + BACKEND % (setting.wire.name, ""), setting.wire.name)
    status, said = check(defaults + ROOM % ("envelope", ""))
    assert status == 0, said


@on("envelope", "typed", "plainjson", "swiftchat")
def both_where_the_dialect_has_both(setting):
    """BACKENDS.md: "On a dialect of puppets the shared account is `chatbridge`"."""
    for identity in ("puppet", "single", "auto"):
        status, said = check(ROOM % (setting.wire.name, 'identity = "%s"' % identity))
        assert status == 0, said


@on("custom")
def puppets_of_a_description_that_names_no_sender(setting):
    """"refuses what the dialect cannot do": a template that does not mention `sender` can carry nobody's name; with `sender` in
    it, it can."""
    for sender, wanted in ((None, 78), ("{{sender.name}}", 0)):
        template = {"op": "send", "cid": "{{id}}", "txt": "{{text}}"}
        if sender:
            template["as"] = sender
        definition = json.dumps({
            "decode": [{
                "when": {"/op": "msg"}, "event": "message",
                "fields": {"id": "/cid", "text": "/txt", "sender.name": "/as"}}],
            "encode": {"message": template}})
        status, said = check(
            '[dialects.mine]\nfile = "mine.json"\n\n' + ROOM % ("mine", 'identity = "puppet"'), files=[("mine.json", definition)])
        assert status == wanted, "exit status %d: %s" % (status, said)
        assert wanted == 0 or "identity" in said, said


@on("jwt-rooms", "directus")
def with_single_every_line_comes_once(setting):
    """What the refusal is there for: "every line then comes twice and nobody's name is carried"."""
    setting.start(room_extra=CALM + 'identity = "single"\n')
    ann, bob = setting.irc("ann"), setting.irc("bob")
    ann.say("#lobby", "once")
    setting.backend.expect_text("ann", "once")
    bob.expect_text("once")
    setting.backend.say("Remy", "behind it")
    for client in (ann, bob):
        client.expect_text("behind it")
        client.barrier()
        wait_until(lambda: client.drain() or "once" in " ".join(client.texts()), "it is there")
        assert [text for text in client.texts() if "once" in text] == ["once"], client.texts()
