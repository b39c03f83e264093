"""Attacks of one peer on another: messages in another's name, guesses at passwords, rooms of others."""

import base64
import json
import time

from accounts import account, log_in, start
from backends import on
from peer import IRC, MODERN
from world import scenario


def typed(setting, kind, payload):
    """A frame that says who did it, or does not, as whoever wrote it likes."""
    text = base64.b64encode(json.dumps(payload).encode()).decode()
    setting.backend.control("raw", json={"type": "chat." + kind, "payload": text})


@on("typed")
def nobody_changes_what_another_said(setting):
    setting.start()
    caps = list(MODERN) + ["draft/message-redaction", "account-tag"]
    ann, bob = setting.irc("ann", caps=caps), setting.irc("bob", caps=caps)
    bob.say("#lobby", "I stay")
    sent = setting.backend.expect("the message", kind="message")
    msgid = ann.expect_text("I stay").tags["msgid"]
    for who in ({}, {"senderId": sent["sender"], "senderName": "bob"}):
        typed(setting, "edit", {"id": sent["id"], "text": "I resign %d" % len(who), **who})
        line = ann.expect("NOTICE", lambda line: "I resign %d" % len(who) in line.params[-1])
        assert "was changed by the backend" in line.params[-1] and "account" not in line.tags, line.raw
        assert "!" not in line.source, line.raw
    assert not [text for text in ann.texts("bob") if "resign" in text], ann.texts("bob")
    typed(setting, "delete", {"ids": [sent["id"]], "senderId": sent["sender"], "senderName": "bob"})
    line = ann.expect("REDACT")
    assert line.params[:2] == ["#lobby", msgid] and "!" not in line.source, line.raw


@scenario
def a_right_password_does_not_pay_for_guesses(world):
    start(world, account("ann", "ann's own"), account("mallory", "mallory's"), identity='require_login = "always"')
    waits = []
    for _ in range(4):
        link = log_in(world, "ann", "guess", nick="guest")
        began = time.monotonic()
        link.expect("904", patience=15)
        waits.append(time.monotonic() - began)
        log_in(world, "mallory", "mallory's", nick="mal").expect("903")
    assert waits[2] > 1.8 and waits[3] > 3.8, waits
    log_in(world, "ann", "ann's own").expect("903")
    return "guesses waited %s" % ", ".join("%.1f s" % wait for wait in waits)


@scenario
def a_room_of_others_is_none(world):
    world.start(
        rooms=("lobby", "secret"), server_extra="[identity]\n" + account("ann", "ann's own", 'rooms = ["lobby"]'))
    bob = world.irc("bob", join="#secret")
    bob.send("TOPIC #secret :the plan")
    ann = log_in(world, "ann", "ann's own")
    ann.send("CAP END")
    ann.expect("422")

    def answers(room):
        ann.send(
            *(line % room for line in ("JOIN %s", "TOPIC %s", "MODE %s", "MODE %s b", "PART %s", "PRIVMSG %s :hi", "NAMES %s")))
        before = len(ann.lines)
        ann.barrier()
        return [line.raw.replace(room, "#room") for line in ann.lines[before:] if line.command != "PONG"]

    assert answers("#secret") == answers("#nowhere") != []


@scenario
def one_client_cannot_take_every_room(world):
    wild = '[[rooms]]\nname = "*"\nurl = "%s"\ndialect = "envelope"\n' % world.relay.url("{room}")
    world.start(tables=wild)
    ann, bob = world.irc("ann"), world.irc("bob")
    ann.send("JOIN " + ",".join("#a%d" % number for number in range(10)))
    ann.expect("366", lambda line: line.params[1] == "#a9")
    ann.send("JOIN #a10")
    ann.expect("405", lambda line: line.params[1] == "#a10")
    bob.send("JOIN #GENERAL")
    bob.expect("366", lambda line: line.params[1] == "#GENERAL")
    ann.send("PART #a0", "JOIN #general")
    assert "open as #GENERAL" in ann.expect("403").params[-1]
    for name in ("#..%2Fadmin", "#%2e%2e", "#x%252f..%252f..", "#..\\admin"):
        ann.send("JOIN " + name)
        assert ann.expect("403").params[1:] == [name, "That cannot be the name of a room"], name
