"""Ownership: two users with canonically equivalent names, accounts with reused names, and state that must not be taken over."""

import json
import sqlite3
import urllib.request

from accounts import account
from backends import on
from bearer import IDENTITY, show
from history import ask, texts
from logins import LOGIN
from restarts import database, folder, log_in_as, settle
from service import ask as ask_service
from world import scenario

COMPOSED, DECOMPOSED = "jos\u00e9", "jose\u0301"


def people(*names):
    return '[identity]\nregistration = "on"\n' + "".join(account(name, password) for name, password in names)


def token(setting, name, password):
    request = urllib.request.Request(
        setting.backend.origin + LOGIN["jwt-rooms"], json.dumps({"username": name, "password": password}).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        found = json.load(answer)
    return found.get("data", found)["access_token"]


@on("jwt-rooms")
def two_people_whom_unicode_takes_for_one(setting):
    """The backend knows both by their bytes; neither is ever the other here, nor whom the configuration means."""
    setting.serve(seed=[(COMPOSED, "pw-of-the-one"), (DECOMPOSED, "pw-of-the-other"), ("andre\u0301", "pw-of-andre")])
    setting.start(more=IDENTITY + account("boss", "x-y-z-secret", 'bearer = ["andr\u00e9"]\nadmin = true'))
    one = show(setting, token(setting, COMPOSED, "pw-of-the-one"), "one")
    assert one.expect("900").params[2].encode() == (COMPOSED + "@main").encode()
    for name, password, nick in ((DECOMPOSED, "pw-of-the-other", "two"), ("andre\u0301", "pw-of-andre", "three")):
        link = show(setting, token(setting, name, password), nick)
        link.expect("904", lambda line: "cannot be an account here" in line.params[-1])
        assert not any(line.command == "900" for line in link.lines), nick


@scenario
def an_account_of_an_old_name_inherits_nothing(world):
    """No cursor, no history without entering, no marker, no choice: a stranger has the name now."""
    directory = folder(world)
    world.start(directory=directory, server_extra=people(("Ann", "secret"), ("zoe", "other")))
    ann = log_in_as(world, "Ann@phone", "secret", "ann", "#lobby")
    zoe = log_in_as(world, "zoe", "other", "zoe", "#lobby")
    ann.send("CAP REQ :draft/read-marker draft/chathistory")
    zoe.say("#lobby", "said while Ann was Ann")
    ann.expect_text("said while Ann was Ann")
    ask_service(ann, "mute zoe")
    ann.send("MARKREAD zoe timestamp=2026-01-01T08:00:00.000Z", "MARKREAD #lobby timestamp=2026-01-01T08:00:00.000Z")
    ann.expect("MARKREAD", lambda line: line.params[0] == "#lobby" and line.params[1] != "*")
    settle(ann, "kept")
    world.bridge.terminate()

    world.start(directory=directory, server_extra=people(("zoe", "other")))
    stranger = world.irc("Ann", join=None)
    stranger.send("CAP REQ :draft/account-registration", "REGISTER * * correct-horse")
    stranger.expect("REGISTER", lambda line: line.params[0] == "SUCCESS")
    stranger.send("QUIT")
    stranger.close()
    for again in (False, True):
        if again:
            world.bridge.terminate()
            world.start(directory=directory, server_extra=people(("zoe", "other")))
        stranger = log_in_as(world, "Ann@phone", "correct-horse", "stranger")
        stranger.send("CAP REQ :draft/read-marker draft/chathistory")
        stranger.expect("CAP", lambda line: line.params[1] == "ACK" and "draft/chathistory" in line.params[-1])
        stranger.send("CHATHISTORY LATEST #lobby * 9")
        stranger.expect("FAIL", lambda line: line.params[:2] == ["CHATHISTORY", "INVALID_TARGET"])
        for target in ("zoe", "#lobby"):
            stranger.send("MARKREAD " + target)
            assert stranger.expect("MARKREAD", lambda line: line.params[0] == target).params[1] == "*"
        assert ask_service(stranger, "mute") == ["You have muted nobody."]
        assert not stranger.texts("zoe")
        stranger.close()
    with sqlite3.connect(database(directory)) as disk:
        for table in ("markers", "choices"):
            assert disk.execute("SELECT count(*) FROM " + table).fetchone() == (0,), table
        assert [row[0] for row in disk.execute("SELECT account FROM cursors")] == ["zoe"]


@scenario
def choices_of_an_account_that_is_written_otherwise(world):
    """What is chosen under one spelling holds under another, and what is undone there stays so."""
    directory = folder(world)
    said = {}
    for spelling in ("Ann", "ANN", "ann"):
        world.start(directory=directory, server_extra=people((spelling, "secret"), ("bob", "other")))
        ann = log_in_as(world, spelling, "secret", "ann", "#lobby")
        bob = log_in_as(world, "bob", "other", "bob", "#lobby")
        said[spelling] = ask_service(ann, "mute")
        ask_service(ann, {"Ann": "mute bob", "ANN": "unmute bob", "ann": "mute"}[spelling])
        settle(ann, "kept " + spelling)
        bob.close()
        if spelling != "ann":
            world.bridge.terminate()
    assert said == {
        "Ann": ["You have muted nobody."], "ANN": ["You do not hear bob."], "ann": ["You have muted nobody."]}, said


@scenario
def nobody_removes_what_they_told_another(world):
    """Whoever talks to hundreds loses sight of their own conversations; those whom they talked to keep theirs."""
    world.start(server_extra=people(("ann", "secret"), ("mallory", "other")))
    ann = log_in_as(world, "ann", "secret", "ann", "#lobby")
    mallory = log_in_as(world, "mallory", "other", "mallory", "#lobby")
    for client in (ann, mallory):
        client.send("CAP REQ :draft/chathistory")
        client.barrier()
    mallory.say("ann", "I said this")
    ann.expect_text("I said this")
    puppet = world.irc("p", join=None)
    for number in range(201):
        puppet.send("NICK p%d" % number)
        puppet.barrier()
        mallory.say("p%d" % number, "x")
        mallory.barrier()
    assert texts(ask(ann, "CHATHISTORY LATEST mallory * 10")) == ["I said this"]
    assert texts(ask(mallory, "CHATHISTORY LATEST p0 * 10")) == []
    assert texts(ask(mallory, "CHATHISTORY LATEST p200 * 10")) == ["x"]
