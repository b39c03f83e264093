"""Refusals of the backend: refused actions on messages are not shown as done; of refused messages only the author is notified."""

import json
import os
import time

from backends import on
from history import ask, refused, texts
from marks import slow
from relay import wait_until
from scripted import Broadcast, Homemade, JWTRooms, Stage, Typed, for_each, holds_for, told
from world import scenario


@on("directus")
def directus_that_lets_nobody_delete(setting):
    """A message is taken back when the server has done it: refused, it stands for everybody, and its author hears why."""
    setting.serve(deletes=False)
    setting.start()
    ann = setting.irc("ann", more=["draft/message-redaction"])
    bob = setting.irc("bob", more=["draft/message-redaction"])
    ann.say("#lobby", "said once")
    msgid = ann.expect_text("said once").tags["msgid"]
    bob.expect_text("said once")
    assert refused(ann, "REDACT #lobby %s" % msgid) == "REDACT_FORBIDDEN"
    bob.barrier()
    assert not [line for line in bob.lines if line.command == "REDACT"]
    assert texts(ask(bob, "CHATHISTORY LATEST #lobby * 10")) == ["said once"]
    setting.backend.set(deletes=True)
    ann.send("@label=again REDACT #lobby %s" % msgid)
    line = ann.expect("REDACT", lambda line: line.tags.get("label") == "again")
    assert line.params[:2] == ["#lobby", msgid], line
    assert bob.expect("REDACT").params == ["#lobby", msgid]
    assert "said once" not in texts(ask(bob, "CHATHISTORY LATEST #lobby * 10"))


# MARK: - Errors that do not say which message they are about

# "Without `ref`, it belongs to no message unless only one is in flight."


class _Wire:
    """How a message is left in flight, confirmed, and refused without a word of which."""

    def __init__(self, name):
        self.name = name
        self.backend = {"typed": Typed, "custom": Broadcast, "jwt-rooms": JWTRooms}[name]()

    def error(self, link, text):
        if self.name == "jwt-rooms":
            self.backend.refuse_message(link, text)
        else:
            self.backend.error(link, text)

    def hold(self, link):
        link.processing = "hold"
        # There a pong confirms; elsewhere it says that the link is alive.
        link.answers_pings = self.name != "jwt-rooms"

    def confirm(self, link):
        self.backend.work(link)
        link.processing, link.answers_pings = "now", True
        self.backend.pong(link)


def error_stage(name):
    wire = _Wire(name)
    stage = Stage(wire.backend)
    stage.how = wire
    stage.start()
    stage.ann, stage.bob = stage.irc("ann"), stage.irc("bob")
    # One that is confirmed, so that the room knows how.
    for client in (stage.ann, stage.bob):
        client.say("#lobby", "hello of " + client.nick)
        for reader in (stage.ann, stage.bob):
            reader.expect_text("hello of " + client.nick)
    return stage


ERRORS = ("typed", "custom", "jwt-rooms")


@for_each(error_stage, *ERRORS)
def an_error_without_ref_while_two_are_in_flight(stage):
    """Another person's message is not reported as refused, nor "it arrived after all"."""
    link = stage.backend.wait_link()
    stage.how.hold(link)
    stage.ann.say("#lobby", "of ann")
    stage.backend.wait_read("of ann")
    stage.bob.say("#lobby", "of bob")
    stage.backend.wait_read("of bob")
    stage.how.error(link, "something went wrong")
    holds_for(
        2, lambda: not told(stage.ann, "of ann") and not told(stage.bob, "of bob"),
        lambda: "blamed: %r" % (told(stage.ann, "of ann") + told(stage.bob, "of bob")), stage.ann, stage.bob)
    stage.how.confirm(link)
    for client in (stage.ann, stage.bob):
        for text in ("of ann", "of bob"):
            client.expect_text(text, patience=20)
        client.barrier()
        assert client.texts().count("of ann") == client.texts().count("of bob") == 1, client.texts()
        lines = [line for words in ("after all", "of ann", "of bob") for line in told(client, words)]
        assert not lines, lines
    assert stage.backend.times_read("of ann") == stage.backend.times_read("of bob") == 1


@for_each(error_stage, *ERRORS)
def an_error_without_ref_while_one_is_in_flight(stage):
    """Then it is that one: its author hears why, and the others never see it."""
    link = stage.backend.wait_link()
    stage.how.hold(link)
    stage.ann.say("#lobby", "of ann alone")
    stage.backend.wait_read("of ann alone")
    stage.how.error(link, "something went wrong")
    wait_until(lambda: told(stage.ann, "of ann alone"), "ann hears of it", 5)
    lines = told(stage.ann, "of ann alone")
    assert len(lines) == 1 and "something went wrong" in lines[0], lines
    link.held.clear()
    stage.how.confirm(link)
    stage.bob.say("#lobby", "next")
    stage.bob.expect_text("next")
    stage.ann.expect_text("next")
    assert "of ann alone" not in stage.bob.texts(), "shown to others though refused"
    assert not told(stage.bob, "of ann alone"), told(stage.bob, "of ann alone")
    assert stage.backend.times_read("of ann alone") == 1


@for_each(error_stage, *ERRORS)
def an_error_without_ref_while_none_is_in_flight(stage):
    """What was confirmed a moment ago is not refused."""
    stage.ann.say("#lobby", "of a moment ago")
    stage.bob.expect_text("of a moment ago")
    stage.ann.expect_text("of a moment ago")
    stage.how.error(stage.backend.wait_link(), "something went wrong")
    stage.backend.say("Remy", "end")
    stage.ann.expect_text("end")
    holds_for(1, lambda: not told(stage.ann, "of a moment ago"), lambda: repr(told(stage.ann, "of a moment ago")), stage.ann)


# MARK: - A log-in refused by a frame


class _Guarded(Homemade):
    """Takes every handshake, and then says of the token in the address what it thinks of it."""

    def opened(self, link):
        if link.query.get("token") != "right":
            link.send(json.dumps({"op": "denied", "why": "this token is not ours"}))
            link.ending = 1000

    def description(self):
        found = super().description()
        found["decode"].insert(0, {
            "when": {"/op": "denied"}, "event": "auth", "fields": {"state": {"const": "failed"}, "text": "/why"}})
        return found


@slow("waits for the next look at the token's file, of which there is one in 10 s")
@scenario
def a_token_that_a_frame_refuses_waits_for_its_file(_):
    """The room hears the backend's words, the token is not shown again and again, and a new one is at once."""
    with Stage(_Guarded("echo")) as stage:
        token = os.path.join(stage.directory, "token")
        with open(token, "w", encoding="utf-8") as file:
            file.write("wrong")
        stage.start(
            room_extra='auth = { type = "query", param = "token", token_file = "%s" }\n' % token, linked=False)
        ann = stage.irc("ann")
        ann.expect("NOTICE", lambda line: "this token is not ours" in line.params[1])
        # One more attempt follows soon, in case the token had expired, and the third later than that.
        attempts = []
        for number in 2, 3:
            wait_until(lambda: len(stage.backend.sockets) >= number, "attempt %d" % number, 10)
            attempts.append(time.monotonic())
        assert attempts[1] - attempts[0] > 1.5, "%.1f s" % (attempts[1] - attempts[0])
        with open(token, "w", encoding="utf-8") as file:
            file.write("right")
        wait_until(lambda: [link for link in stage.backend.live() if link.query["token"] == "right"], "the new one is shown", 15)
        ann.say("#lobby", "hello")
        ann.expect_text("hello")
        stage.bridge.check_alive()
