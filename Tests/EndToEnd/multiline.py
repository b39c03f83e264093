"""Messages of several lines, both ways, against the built program; and other special forms of messages."""

import itertools
import time

from peer import MODERN, PATIENCE
from world import scenario

MULTILINE = tuple(MODERN) + ("draft/multiline",)
REFERENCES = itertools.count(1)


def paste(client, target, lines, tags="", label=None):
    """Sends `lines` as one batch; a line that begins with `+` continues the one before."""
    name = "p%d" % next(REFERENCES)
    front = ";".join(([] if label is None else ["label=" + label]) + ([tags] if tags else []))
    client.send("%sBATCH +%s draft/multiline %s" % ("@%s " % front if front else "", name, target))
    for line in lines:
        concat = line.startswith("+")
        client.send(
            "@batch=%s%s PRIVMSG %s :%s"
            % (name, ";draft/multiline-concat" if concat else "", target, line[1:] if concat else line))
    client.send("BATCH -" + name)


def next_line(client):
    end = time.monotonic() + PATIENCE
    while client.cursor >= len(client.lines):
        assert not client.closed and time.monotonic() < end, "%s got no further line" % client.nick
        client.pump(0.05)
    client.cursor += 1
    return client.lines[client.cursor - 1]


def read_batch(client):
    """(line that opened it, its text, its lines) of the next multiline batch."""
    head = client.expect("BATCH", lambda line: line.params[0].startswith("+") and "draft/multiline" in line.params)
    name = head.params[0][1:]
    text, lines = None, []
    while True:
        line = next_line(client)
        if line.command == "BATCH" and line.params[0] == "-" + name:
            return head, text, lines
        assert line.tags.get("batch") == name, "stands between the lines of a batch: " + line.raw
        lines.append(line)
        if text is None:
            text = line.params[1]
        else:
            text += ("" if "draft/multiline-concat" in line.tags else "\n") + line.params[1]


@scenario
def a_paste_is_one_message_upstream_and_one_batch_back(world):
    world.start()
    ann, bob = world.irc("ann", caps=MULTILINE), world.irc("bob", caps=MULTILINE)
    old, remy = world.plain("old"), world.person("Remy")
    paste(ann, "#lobby", ["first 🍲", "", "and the ", "+rest of it"], label="l1")
    frame = remy.expect_message("first 🍲\n\nand the rest of it")
    assert frame["sender_name"] == "ann", frame
    for client in (ann, bob):
        head, text, lines = read_batch(client)
        assert text == "first 🍲\n\nand the rest of it", text
        assert "msgid" in head.tags and len(lines) == 4, head.raw
        assert (head.tags.get("label") == "l1") == (client is ann), head.raw
    for words in ("first 🍲", "and the ", "rest of it"):
        old.expect_text(words)


@scenario
def a_message_with_line_ends_comes_as_one_batch(world):
    world.start()
    ann, old = world.irc("ann", caps=MULTILINE), world.plain("old")
    remy = world.person("Remy")
    long = "ratatouille " * 80
    remy.say("one\n\n" + long + "end")
    head, text, lines = read_batch(ann)
    assert text == "one\n\n" + long + "end", text
    assert head.source.startswith("Remy!") and "msgid" in head.tags, head.raw
    assert all(len(line.raw.encode()) < 512 + len("@batch=xxxxxxx;draft/multiline-concat ") for line in lines)
    old.expect_text("one")
    remy.say("after")
    old.expect_text("after")
    said = [line.params[1] for line in old.lines if line.command == "PRIVMSG"]
    assert said[0] == "one" and "".join(said[1:-1]) == long + "end", said


@scenario
def a_message_of_a_million_lines_is_one_message_and_no_flood(world):
    world.start()
    ann, old = world.irc("ann", caps=MULTILINE), world.plain("old")
    remy = world.person("Remy")
    remy.say("x\n" * 400000)
    remy.say("after")
    head, text, lines = read_batch(ann)
    assert len(lines) == 101, "%d lines" % len(lines)
    assert text.endswith("… 399900 more lines: /msg *bridge show " + head.tags["msgid"]), text[-80:]
    ann.expect_text("after")
    old.expect_text("after")
    assert len([line for line in old.lines if line.command == "PRIVMSG"]) == 102


@scenario
def mistakes_in_a_batch_are_told_once_and_reach_nobody(world):
    world.start()
    ann, remy = world.irc("ann", caps=MULTILINE), world.person("Remy")
    paste(ann, "#lobby", ["x" * 400] * 60)
    fail = ann.expect("FAIL")
    assert fail.params[:2] == ["BATCH", "MULTILINE_MAX_BYTES"], fail.raw
    ann.send("BATCH +q draft/multiline #lobby")
    ann.send("@batch=q PRIVMSG #other :x")
    fail = ann.expect("FAIL", lambda line: "MULTILINE_INVALID_TARGET" in line.params)
    assert fail.params[2:4] == ["#lobby", "#other"], fail.raw
    ann.send("BATCH -q")
    paste(ann, "#lobby", ["this", "arrives"])
    first = remy.expect("message", lambda frame: frame["event"] == "message")
    assert first["body"] == "this\narrives", first
    ann.barrier()
    assert len([line for line in ann.lines if line.command == "FAIL"]) == 2


@scenario
def a_paste_waits_for_the_link_like_any_message(world):
    world.start()
    ann = world.irc("ann", caps=MULTILINE)
    world.relay.hold_handshakes()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    paste(ann, "#lobby", ["while it", "is away"])
    ann.barrier()
    note = ann.expect("NOTE", lambda line: "QUEUED" in line.params)
    assert "while it is away" in note.params[-1], note.raw


@scenario
def a_client_that_goes_in_the_middle_of_a_batch_says_nothing(world):
    world.start()
    ann, bob = world.irc("ann", caps=MULTILINE), world.irc("bob", caps=MULTILINE)
    remy = world.person("Remy")
    ann.send("BATCH +q draft/multiline #lobby")
    ann.send("@batch=q PRIVMSG #lobby :half")
    ann.barrier()
    ann.close()
    bob.say("#lobby", "whole")
    first = remy.expect("message", lambda frame: frame["event"] == "message")
    assert first["body"] == "whole", first


@scenario
def names_and_nicks_stand_for_each_other(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    chef = world.person("Chef Gusteau")
    chef.say("bonjour")
    ann.expect_text("bonjour")
    ann.say("#lobby", "Chef-Gusteau: is @Chef-Gusteau there?")
    remy.expect_message("Chef Gusteau: is @Chef Gusteau there?")
    remy.say("@Chef Gusteau ann asks")
    ann.expect_text("@Chef-Gusteau ann asks")


@scenario
def ctcp_to_somebody_upstream_is_answered_by_the_bridge(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    remy.say("here")
    ann.expect_text("here")
    ann.say("Remy", "\x01PING 1234\x01")
    answer = ann.expect("NOTICE", lambda line: line.params[0] == "ann")
    assert answer.source.startswith("Remy!") and answer.params[1] == "\x01PING 1234\x01", answer.raw
