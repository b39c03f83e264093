"""Detection of a backend's confirmations at run time: echoes that never come, begin late, or end; and acks with only the
server's id.

`echo = "auto"`, on wires and descriptions that expect an echo (`envelope`, `typed`, `custom`): "link alive by pong and no echo,
receipt or ack ever in this room within 10 s of its first message (an explicit refusal is no silence) → this backend does not
echo; confirmed by pong from then on, one log line, remembered while the process lives; an echo that comes after all is learnt
the other way round. No message doubled or lost at either turn."
"""

import json
import os
import re
import subprocess
import time

import peer
from delivery import (
    ASKED_AGAIN, SETTLED, check_once, check_sent_again, check_unknown, counts, in_backend, link_of, lose_link, say_into, seen,
)
from history import ask, texts
from marks import slow
from relay import wait_until
from scripted import ASKING, Broadcast, Envelope, Homemade, Stage, Typed, for_each, holds_for, told
from world import scenario

# How long no echo means that none comes.
LEARNT = 10
BACKENDS = {"envelope": Envelope, "typed": Typed, "custom": Broadcast}


def stage_for(wire):
    stage = Stage(BACKENDS[wire]())
    stage.face, stage.user, stage.nick = wire, None, "ann"
    stage.start()
    stage.author, stage.bob = stage.irc("ann"), stage.irc("bob")
    return stage


def wires(*names):
    return for_each(stage_for, *(names or tuple(BACKENDS)))


def learn(stage, text="first of all"):
    """The first message of a room whose backend does not echo."""
    stage.backend.echoes = False
    say_into(stage, text)
    began = time.monotonic()
    wait_until(lambda: seen(stage.bob, text), lambda: "the others see it: " + counts(stage, text), LEARNT + 6)
    return time.monotonic() - began


def lines_about_echo(stage):
    found = []
    for line in stage.bridge.log().splitlines():
        entry = json.loads(line) if line.startswith("{") else {}
        if entry.get("level") in ("info", "warn", "error") and re.search("echo", entry.get("event", "") + entry.get("msg", "")):
            found.append(line)
    return found


@wires()
def a_backend_that_never_echoes(stage):
    """Others see it, its author gets the echo and no word of failure; from then on a pong confirms, over a lost link too."""
    took = learn(stage)
    assert took > LEARNT - 1.5, "taken for one that does not echo after %.1f s" % took
    check_once(stage, "first of all", read=1)
    for n in range(3):
        began = time.monotonic()
        say_into(stage, "later %d" % n)
        stage.bob.expect_text("later %d" % n)
        stage.author.expect_text("later %d" % n)
        assert time.monotonic() - began < 3, "confirmed after %.1f s" % (time.monotonic() - began)
    lose_link(stage)
    began = time.monotonic()
    say_into(stage, "on the next link")
    stage.bob.expect_text("on the next link")
    assert time.monotonic() - began < 3, "learnt anew on the next link"
    for text in ["first of all", "later 0", "later 1", "later 2", "on the next link"]:
        check_once(stage, text, read=1, seconds=0.2)
    assert len(lines_about_echo(stage)) == 1, lines_about_echo(stage)
    return "%.1f s" % took


@wires()
def many_messages_before_it_is_known(stage):
    """All that was said in the ten seconds comes at the turn: once, in one order, and so does what is said right then."""
    stage.backend.echoes = False
    said = []
    for n in range(16):
        who = (stage.author, stage.bob)[n % 2]
        said.append("turn %d" % n)
        who.say("#lobby", said[-1])
        stage.backend.wait_read(said[-1])
        stage.author.drain()
        time.sleep(0.75)
    for client in (stage.author, stage.bob):
        wait_until(lambda: seen(client, said[-1]), lambda: "%s sees the last: %r" % (client.nick, client.texts()), LEARNT + 6)
        client.barrier()
        found = [line.params[-1] for line in client.lines if line.command == "PRIVMSG"]
        assert found == said, "%s saw %r" % (client.nick, found)
        assert not any(told(client, text) for text in said)
    assert stage.backend.texts() == said, stage.backend.texts()
    assert all(stage.backend.times_read(text) == 1 for text in said)
    # A kill leaves a gap where the backend keeps no history, and the page tells of it.
    page = [text for text in texts(ask(stage.bob, "CHATHISTORY LATEST #lobby * 50")) if not text.startswith("*** ")]
    assert page == said, page


@wires()
def one_that_begins_to_echo_later(stage):
    """"an echo that comes after all is learnt the other way round": the echo of what a pong confirmed is not shown again; from
    then on it is the echo that confirms."""
    learn(stage)
    stage.backend.echoes = True
    for n in range(2):
        say_into(stage, "echoed %d" % n)
        check_once(stage, "echoed %d" % n, read=1, seconds=1)
    check_echo_confirms(stage, "by its echo")


def check_echo_confirms(stage, text):
    stage.backend.holds_echoes = True
    say_into(stage, text)
    holds_for(
        2.5, lambda: not seen(stage.author, text) and not seen(stage.bob, text), "a pong confirmed it, and not its echo",
        stage.author, stage.bob)
    assert stage.backend.release() == 1
    stage.backend.holds_echoes = False
    check_once(stage, text, read=1)


@wires()
def an_echo_that_comes_when_nobody_waits_for_it(stage):
    """The backend echoes, but slowly at first: what a pong confirmed after ten seconds is not shown again at second twelve."""
    stage.backend.echoes = stage.backend.holds_echoes = True
    say_into(stage, "slow echo")
    wait_until(lambda: seen(stage.bob, "slow echo"), lambda: counts(stage, "slow echo"), LEARNT + 6)
    msgid = seen(stage.bob, "slow echo")[0].tags["msgid"]
    assert stage.backend.release() == 1
    stage.backend.holds_echoes = False
    assert check_once(stage, "slow echo", read=1) == [msgid]
    check_echo_confirms(stage, "by its echo")


@wires()
def one_that_stops_echoing(stage):
    """It echoed, so silence is no habit of it. Nothing is lost or doubled when it stops, nor when it begins again."""
    stage.backend.echoes = True
    say_into(stage, "with an echo")
    check_once(stage, "with an echo", read=1, seconds=0.5)
    stage.backend.echoes = False
    for n in range(2):
        say_into(stage, "without %d" % n)
    holds_for(
        LEARNT + 3, lambda: not told(stage.author, "CANNOT_DELIVER"), "told that it did not arrive, which it did",
        stage.author, stage.bob)
    stage.backend.echoes = True
    lose_link(stage)
    for text in ("without 0", "without 1"):
        check_once(stage, text)
    say_into(stage, "with an echo again")
    check_once(stage, "with an echo again", read=1)
    assert stage.backend.texts() == ["with an echo", "without 0", "without 1", "with an echo again"], stage.backend.texts()


@wires()
def one_that_begins_and_stops_again(stage):
    """Both turns, one after the other, with talk at each: once each, in one order for all, nobody told otherwise."""
    learn(stage)
    said = ["first of all"]
    for turn, echoes in enumerate((True, False, True)):
        stage.backend.echoes = echoes
        for n in range(3):
            said.append("turn %d-%d" % (turn, n))
            say_into(stage, said[-1])
    # Where an echo came once, one that is missing is waited for; the next link settles it by its id.
    lose_link(stage)
    for text in said:
        check_once(stage, text, seconds=0.2)
    assert stage.backend.texts() == said, stage.backend.texts()
    seen_by = [
        [line.params[-1] for line in client.lines if line.command == "PRIVMSG" and "batch" not in line.tags]
        for client in (stage.author, stage.bob)]
    assert seen_by[0] == seen_by[1] and sorted(seen_by[0]) == sorted(said), seen_by


@wires("typed", "custom")
def a_refusal_is_no_silence(stage):
    """"(an explicit refusal is no silence)": a backend whose first answer was a refusal is not taken for one that says nothing."""
    stage.backend.refusing = ["no such luck"]
    say_into(stage, "refused first")
    wait_until(lambda: told(stage.author, "refused first"), "the author hears of it")
    assert "no such luck" in told(stage.author, "refused first")[0]
    holds_for(LEARNT + 2, lambda: not seen(stage.bob, "refused first"), "shown though refused", stage.author, stage.bob)
    check_echo_confirms(stage, "by its echo")
    assert len(told(stage.author, "refused first")) == 1 and not lines_about_echo(stage)


@slow("waits until a link without pongs is given up")
@wires()
def a_link_without_pongs_teaches_nothing(stage):
    """"link alive by pong": without, the link is lost, and what was on it goes again under its id."""
    link = link_of(stage)
    stage.backend.hang(link)
    say_into(stage, "into a hung backend")
    holds_for(
        LEARNT + 4, lambda: not link.is_open or not seen(stage.bob, "into a hung backend"), "shown without any answer",
        stage.author, stage.bob)
    wait_until(lambda: in_backend(stage, "into a hung backend"), lambda: counts(stage, "into a hung backend"), SETTLED)
    stage.backend.work(link)
    check_once(stage, "into a hung backend", seconds=3)
    assert not lines_about_echo(stage), lines_about_echo(stage)


@wires()
def killed_before_it_is_known(stage):
    """What was said in the ten seconds is neither lost nor doubled by `kill -9`; the next process finds out by itself."""
    stage.backend.echoes = False
    for n in range(3):
        say_into(stage, "early %d" % n)
    time.sleep(2)
    stage.kill()
    stage.again()
    stage.author, stage.bob = stage.irc("ann"), stage.irc("bob")
    stage.author.say("#lobby", "after it")
    wait_until(lambda: seen(stage.bob, "after it"), lambda: counts(stage, "after it"), 2 * LEARNT + 6)
    said = ["early 0", "early 1", "early 2", "after it"]
    assert stage.backend.texts() == said, stage.backend.texts()
    # A kill leaves a gap where the backend keeps no history, and the page tells of it.
    page = [text for text in texts(ask(stage.bob, "CHATHISTORY LATEST #lobby * 50")) if not text.startswith("*** ")]
    assert page == said, page


# MARK: - Acks: the server's id and our nonce, and no echo


def ack_stage(kind):
    """`deduced`: the description says nothing of echoes; `named`: `echo = "ack"`; `alone`: without a history."""
    stage = Stage(Homemade("ack", has_history=kind != "alone", echo="ack" if kind == "named" else None))
    stage.face, stage.user, stage.nick = "custom", None, "ann"
    stage.start(room_extra='queue = { max_age = "5s" }\n' if kind == "alone" else "")
    stage.author = stage.irc("ann", caps=ASKING + ("draft/message-redaction",))
    stage.bob = stage.irc("bob", caps=ASKING + ("draft/message-redaction",))
    return stage


def kinds(*names):
    return for_each(ack_stage, *(names or ("deduced", "named")))


@kinds("deduced", "named", "alone")
def an_ack_confirms(stage):
    """"`receipt` with `ids` = server's id and `ref` = our nonce, no echo": the ack confirms, and nothing does before it."""
    link = link_of(stage)
    link.processing = "hold"
    say_into(stage, "acked")
    holds_for(2, lambda: not seen(stage.author, "acked") and not seen(stage.bob, "acked"), "shown before the ack", stage.author)
    link.processing = "now"
    stage.backend.work(link)
    check_once(stage, "acked", read=1)


@kinds()
def an_ack_tells_the_id(stage):
    """"reactions, `REDACT` and receipts on one's own messages": with the id that the ack told."""
    say_into(stage, "mine")
    msgid = stage.author.expect_text("mine").tags["msgid"]
    stage.bob.expect_text("mine")
    number = stage.backend.rows[-1]["id"]
    who = {"id": "U-remy", "name": "Remy"}

    stage.backend.tell("react", on=number, mark="👍", **{"from": who})
    tag = stage.bob.expect("TAGMSG", lambda line: "+draft/react" in line.tags)
    assert tag.tags.get("+reply", tag.tags.get("+draft/reply")) == msgid, tag.raw
    stage.backend.tell("seen", ids=[number], **{"from": who})
    tag = stage.author.expect("TAGMSG", lambda line: "+draft/read" in line.tags)
    assert tag.tags["+draft/read"] == msgid, tag.raw

    stage.bob.send("@+draft/react=🎉;+reply=%s TAGMSG #lobby" % msgid)
    wait_until(lambda: (number, "🎉") in stage.backend.reactions, lambda: "a reaction goes up: %r" % stage.backend.reactions)
    stage.author.send("@label=back REDACT #lobby " + msgid)
    answer = stage.author.expect("REDACT", lambda line: line.tags.get("label") == "back")
    assert answer.params[:2] == ["#lobby", msgid], answer.raw
    wait_until(lambda: stage.backend.deletions, "the deletion goes up")
    assert stage.backend.deletions == [number], stage.backend.deletions
    for client in (stage.author, stage.bob):
        assert not told(client, "cannot carry"), told(client, "cannot carry")


@kinds()
def own_lines_do_not_return_as_somebody_else(stage):
    """"after an outage one's own lines return as `colette2`"."""
    for n in range(3):
        say_into(stage, "mine %d" % n)
        stage.bob.expect_text("mine %d" % n)
    stage.backend.refuse = 1 << 20
    asked, _ = lose_link(stage, wait=False)
    stage.backend.say("Remy", "meanwhile")
    stage.backend.refuse = 0
    stage.backend.wait_asked(asked)
    for client in (stage.author, stage.bob):
        client.expect_text("meanwhile")
        client.barrier()
        assert client.texts() == ["mine 0", "mine 1", "mine 2", "meanwhile"], client.texts()
        strangers = {line.source.split("!")[0] for line in client.lines if line.command in ("JOIN", "PRIVMSG")}
        assert strangers == {"ann", "bob", "Remy"}, strangers
    for n in range(3):
        check_once(stage, "mine %d" % n, read=1, seconds=0.2)


@kinds()
def a_lost_ack_and_the_history_has_it(stage):
    """"a lost ack doubles the message": the history has it, so it does not go again, and its id is known."""
    stage.backend.acks = False
    say_into(stage, "ack lost")
    asked, _ = lose_link(stage)
    stage.backend.acks = True
    stage.backend.wait_asked(asked)
    holds_for(
        ASKED_AGAIN + 3, lambda: stage.backend.times_read("ack lost") == 1 and in_backend(stage, "ack lost") == 1,
        lambda: "doubled: " + counts(stage, "ack lost"), stage.author, stage.bob)
    msgid = check_once(stage, "ack lost", read=1)[0]
    stage.bob.send("@+draft/react=🎉;+reply=%s TAGMSG #lobby" % msgid)
    number = stage.backend.rows[-1]["id"]
    wait_until(lambda: (number, "🎉") in stage.backend.reactions, lambda: "a reaction goes up: %r" % stage.backend.reactions)


@kinds()
def a_lost_ack_and_the_history_lacks_it(stage):
    stage.backend.hang(link_of(stage))
    say_into(stage, "lost with its ack")
    asked, _ = lose_link(stage)
    check_sent_again(stage, "lost with its ack", asked)
    check_once(stage, "lost with its ack", read=2, seconds=3)


@kinds("alone")
def a_lost_ack_without_a_history(stage):
    """The server makes the ids, and a second sending would be a second message: its author is told that it is not known."""
    stage.backend.hang(link_of(stage))
    say_into(stage, "nobody knows")
    lose_link(stage)
    check_unknown(stage, "nobody knows")


def checked(kind):
    with ack_stage(kind) as stage:
        made = subprocess.run(
            [peer.BINARY_PATH, "check", "--config", os.path.join(stage.directory, "chatbridge.toml")], capture_output=True,
            text=True, timeout=30, cwd=stage.directory)
        assert made.returncode == 0, made.stdout + made.stderr
        return made.stdout + made.stderr


@scenario
def check_says_which_confirmation_was_deduced():
    """"`check` prints which confirmation was deduced and what follows from it at a lost link"."""
    deduced, alone = checked("deduced"), checked("alone")
    for output in (deduced, alone):
        assert re.search(r"\back\b", output), "no word of the ack: %r" % output
        assert re.search(r"link|connection|reconnect", output), "no word of a lost link: %r" % output

    def words(output):
        """Without what differs by run."""
        return re.sub(r"/\S+|\d+", "", output)
    assert words(deduced) != words(alone), "with and without a history a lost link means something else: %r" % deduced
    assert "history" in deduced, deduced
