"""Dialects without confirmations: written is not delivered. A pong proves that a message was read, a history that it was stored.

Each scenario runs with the shared account (`jwt-rooms`), on the own link of an account (`jwt-rooms-own`), and on a described
backend (`custom`), as far as they differ. The backend is scripted.py's, which distinguishes reading, answering and processing.

The guarantees are those of docs/RELIABILITY.md ("reaches the backend exactly once, after all earlier messages of the same client
in the room … or it fails, and the author gets the reason and the first words of the message") and of BACKENDS.md.
"""

import json
import signal
import time

from accounts import account
from history import ask, texts
from marks import slow
from relay import PING, wait_until
from reload import rewrite
from scripted import (
    Homemade, JWTRooms, Plain, Stage, for_each, holds_for, is_doubtful, own_account, told,
)
from world import scenario

# After so many seconds a history that lacks a message is asked once more, and only then the message goes again.
ASKED_AGAIN = 10
# Long enough for that, a reconnect, and a loaded machine.
SETTLED = 30
# For so long at most it is not certain that what a pong alone confirmed is processed: a minute, a ping's time and its answer's.
WATCHED = 120


def faces(*names):
    """Linked, with an author and `bob`."""
    return for_each(stage_for, *names)


EVERY = ("jwt-rooms", "jwt-rooms-own", "custom")
# The same with the wire that has half of it already: there the ids are the bridge's own, and what goes again does no harm.
PONGS = EVERY + ("plainjson",)
# Where the backend is an account's, and a token can be revoked.
TOKENS = ("jwt-rooms", "jwt-rooms-own")


def stage_for(face, room_extra=""):
    stage = Stage({"custom": Homemade, "plainjson": Plain}.get(face, JWTRooms)())
    stage.face = face
    stage.user = {"jwt-rooms": "liaison", "jwt-rooms-own": "alice"}.get(face)
    stage.nick = "alice" if face == "jwt-rooms-own" else "ann"
    begin(stage, room_extra)
    return stage


def begin(stage, room_extra=""):
    stage.start(room_extra=room_extra, more=own_account() if stage.face == "jwt-rooms-own" else "")
    enter(stage)
    # The first history, of which nothing is shown.
    wait_until(lambda: stage.backend.asked(), "the first history")


def enter(stage):
    """The author and somebody who reads, with the link over which the author speaks."""
    if stage.face == "jwt-rooms-own":
        stage.author = stage.log_in("alice")
        # A process that begins with something to send has opened it already.
        wait_until(lambda: stage.backend.live(stage.user), "a link of her own")
    else:
        stage.author = stage.irc(stage.nick)
    stage.bob = stage.irc("bob")
    # What is said goes out only when the account is known; a first message shows that it is.
    stage.turns = getattr(stage, "turns", 0) + 1
    first = "first words %d" % stage.turns
    stage.author.say("#lobby", first)
    for client in (stage.author, stage.bob):
        client.expect_text(first)


def link_of(stage):
    return stage.backend.wait_link(1, stage.user)


def spoken(stage, text):
    return "<%s> %s" % (stage.nick, text) if stage.face == "jwt-rooms" else text


def in_backend(stage, text):
    """How often people there can read it."""
    return stage.backend.texts().count(spoken(stage, text))


def say_into(stage, text):
    """The author says something, and the backend has read it."""
    before = stage.backend.times_read(text)
    stage.author.say("#lobby", text)
    return stage.backend.wait_read(text, before + 1)


def lose_link(stage, how="reset", wait=True):
    """The author's link ends; how many histories there were before, and the next link."""
    links = len([s for s in stage.backend.sockets if s.user == stage.user])
    asked = len(stage.backend.histories)
    stage.backend.end(link_of(stage), how)
    return asked, stage.backend.wait_link(links + 1, stage.user) if wait else None


def look(stage, asked):
    """A history is asked for; what an own link carried, the room's link may have brought with its number: no need to ask."""
    if stage.face != "jwt-rooms-own":
        return stage.backend.wait_asked(asked)
    end = time.monotonic() + 3
    while time.monotonic() < end and not stage.backend.asked(asked):
        time.sleep(0.05)


def seen(client, text):
    client.drain()
    return [line for line in client.lines if line.command == "PRIVMSG" and line.params[-1] == text and "batch" not in line.tags]


def check_once(stage, text, count=1, read=None, seconds=2):
    """The author and bob have seen it once, under one msgid, the backend and the pages have it once, and so it stays."""
    for client in (stage.author, stage.bob):
        wait_until(lambda: len(seen(client, text)) >= count, lambda: "%s sees %r: %r" % (client.nick, text, client.texts()))

    def holds():
        return (
            all(len(seen(client, text)) == count for client in (stage.author, stage.bob)) and in_backend(stage, text) == count
            and (read is None or stage.backend.times_read(text) == read))

    holds_for(seconds, holds, lambda: "%r: %s" % (text, counts(stage, text)))
    ids = [[line.tags["msgid"] for line in seen(client, text)] for client in (stage.author, stage.bob)]
    assert ids[0] == ids[1] and len(set(ids[0])) == count, ids
    page = [line for line in ask(stage.bob, "CHATHISTORY LATEST #lobby * 50") if line.params[-1] == text]
    assert [line.tags["msgid"] for line in page] == ids[0], "the page has %r, not %r" % ([line.raw for line in page], ids[0])
    assert {line.source.split("!")[0] for line in page} == {stage.nick}, page
    assert not told(stage.author, text), told(stage.author, text)
    return ids[0]


def counts(stage, text):
    return "author %d, bob %d, in the backend %d, read %d; told %r" % (
        len(seen(stage.author, text)), len(seen(stage.bob, text)), in_backend(stage, text), stage.backend.times_read(text),
        told(stage.author, text))


def check_sent_again(stage, text, asked, read=2):
    """It goes again, and not before a second look at the history, ten seconds after the first.

    "missing rows are asked for again after `CatchUp.patience`, and only then sent again"
    """
    backend = stage.backend
    wait_until(
        lambda: backend.times_read(text) >= read,
        lambda: "%r is sent again; %s; asked %r" % (text, counts(stage, text), backend.histories[asked:]), SETTLED)
    link = [s for s in backend.sockets if s.saw(text)][-1]
    at = link.frames[link.saw(text)[-1]][2]
    looks = [h[0] for h in backend.asked(asked) if h[0] < at]
    assert len(looks) >= 2, "sent again after %d looks at the history" % len(looks)
    assert looks[-1] - looks[0] > ASKED_AGAIN - 1, "asked again after %.1f s" % (looks[-1] - looks[0])
    assert at - looks[0] > ASKED_AGAIN - 1, "sent again %.1f s after the first look" % (at - looks[0])


# MARK: - Pongs


@faces(*PONGS)
def a_message_is_shown_when_a_pong_came(stage):
    """"written is not delivered. A WebSocket ping sent after the message whose pong returns confirms all written before it";
    "Echo, msgid and the others' view come with the confirmation"."""
    backend, link = stage.backend, link_of(stage)
    backend.hang(link)
    say_into(stage, "waits for a pong")
    holds_for(
        2, lambda: not seen(stage.author, "waits for a pong") and not seen(stage.bob, "waits for a pong"),
        "shown before anything confirmed it", stage.author, stage.bob)
    wait_until(lambda: link.unanswered, "a ping after the message")
    assert not told(stage.author, "waits for a pong"), told(stage.author, "waits for a pong")
    link.answers_pings, link.processing = True, "now"
    backend.work(link, quietly=True)
    backend.pong(link)
    check_once(stage, "waits for a pong", read=1)


@faces(*PONGS)
def one_ping_at_a_time_confirms_what_was_written_before_it(stage):
    """"(at once when none is under way, one at a time)"; "confirms all written before it": and nothing written after."""
    backend, link = stage.backend, link_of(stage)
    wait_until(lambda: not link.unanswered, "no ping is under way")
    time.sleep(0.3)
    backend.hang(link)
    before = len(link.pings())
    say_into(stage, "one")
    wait_until(lambda: len(link.pings()) == before + 1, "a ping after the message")
    assert link.frames[link.saw("one")[-1] + 1:][-1][0] == PING, "the ping is behind the message"
    for text in ("two", "three"):
        say_into(stage, text)
    holds_for(2, lambda: len(link.pings()) == before + 1, "a second ping while one is under way", stage.author)
    assert backend.pong(link) == 1
    for client in (stage.author, stage.bob):
        client.expect_text("one")
    wait_until(lambda: len(link.pings()) == before + 2, "the next ping, once the one before is answered")
    holds_for(
        1, lambda: not any(seen(client, text) for client in (stage.author, stage.bob) for text in ("two", "three")),
        "confirmed by the pong to a ping that was sent before it", stage.author, stage.bob)
    backend.work(link, quietly=True)
    backend.pong(link)
    for client in (stage.author, stage.bob):
        client.expect_text("two")
        client.expect_text("three")
    link.answers_pings, link.processing = True, "now"
    backend.pong(link)


@faces(*EVERY)
def the_ping_follows_the_message_at_once(stage):
    """The best of five, since the machine may be busy with something else."""
    delays = []
    for n in range(5):
        text = "at once %d" % n
        link = say_into(stage, text)
        place = link.saw(text)[-1]
        ping = wait_until(
            lambda: next((f for f in link.frames[place + 1:] if f[0] == PING), None), "a ping after the message", 5)
        delays.append(ping[2] - link.frames[place][2])
        stage.author.expect_text(text)
    assert min(delays) < 0.25, delays
    return "%.0f ms" % (1000 * min(delays))


@faces(*PONGS)
def one_order_for_all(stage):
    """"Echo, msgid and the others' view come with the confirmation, so they stay in one order": live and in pages, whoever
    speaks, though pongs are late and others are heard meanwhile."""
    backend, link = stage.backend, link_of(stage)
    carol = stage.irc("carol")
    everybody = (stage.author, stage.bob, carol)
    for turn in range(3):
        link.answers_pings = False
        say_into(stage, "a%d" % turn)
        backend.say("Remy", "r%d" % turn)
        stage.bob.say("#lobby", "b%d" % turn)
        backend.wait_read("b%d" % turn)
        for client in everybody:
            client.expect_text("r%d" % turn)
            if stage.face != "jwt-rooms-own":
                # On an own link the room's link shows what was processed, and that confirms as well.
                assert not seen(client, "a%d" % turn), "%s saw a%d before it was confirmed" % (client.nick, turn)
        say_into(stage, "c%d" % turn)
        link.answers_pings = True
        backend.pong(link)
        for client in everybody:
            for text in ("a", "b", "c"):
                wait_until(lambda: seen(client, "%s%d" % (text, turn)), "%s sees %s%d" % (client.nick, text, turn))
    orders = [
        [line.params[-1] for line in client.lines if line.command == "PRIVMSG" and len(line.params[-1]) == 2]
        for client in everybody]
    assert orders[0] == orders[1] == orders[2] and len(orders[0]) == 12, orders
    page = [text for text in texts(ask(carol, "CHATHISTORY LATEST #lobby * 50")) if len(text) == 2]
    assert page == orders[0], "the page has %r, live was %r" % (page, orders[0])


# MARK: - Lost links


@faces(*EVERY)
def hung_and_reset_and_the_history_lacks_it(stage):
    """"the backend hangs …, the link is reset, history after the reconnect lacks the message": "what is missing there goes
    again", once, and everybody sees it once."""
    stage.backend.hang(link_of(stage))
    say_into(stage, "lost with its link")
    asked, _ = lose_link(stage)
    check_sent_again(stage, "lost with its link", asked)
    check_once(stage, "lost with its link", read=2, seconds=3)


@faces(*EVERY)
def hung_and_reset_and_the_history_has_it(stage):
    """"What no pong covered when the link was lost is settled by the history (the account's own rows, in order)"."""
    link = link_of(stage)
    stage.backend.hang(link)
    for n in range(3):
        say_into(stage, "arrived %d" % n)
    asked = len(stage.backend.histories)
    stage.backend.refuse = 1 << 20
    lose_link(stage, wait=False)
    stage.backend.work(link, quietly=True)
    stage.backend.refuse = 0
    stage.backend.wait_asked(asked)
    for n in range(3):
        stage.author.expect_text("arrived %d" % n)
    holds_for(
        ASKED_AGAIN + 3, lambda: all(stage.backend.times_read("arrived %d" % n) == 1 for n in range(3)),
        "sent again though the history has it", stage.author, stage.bob)
    for n in range(3):
        check_once(stage, "arrived %d" % n, read=1, seconds=0.2)


@faces(*EVERY)
def some_of_them_are_in_the_history(stage):
    """Of four in flight the backend processed two: those are settled, the others go again, in their order."""
    link = link_of(stage)
    stage.backend.hang(link)
    said = ["flight %d" % n for n in range(4)]
    for text in said:
        say_into(stage, text)
    asked = len(stage.backend.histories)
    stage.backend.refuse = 1 << 20
    lose_link(stage, wait=False)
    assert stage.backend.work(link, most=2, quietly=True) == 2
    stage.backend.refuse = 0
    stage.backend.wait_asked(asked)
    for text in said[2:]:
        check_sent_again(stage, text, asked)
    for text, read in zip(said, (1, 1, 2, 2)):
        check_once(stage, text, read=read, seconds=0.5)
    assert [text for text in stage.backend.texts() if "flight" in text] == [spoken(stage, text) for text in said]


@faces(*EVERY)
def a_pong_came_and_the_backend_lost_it(stage):
    """"A pong proves that the connection read it, not that the backend processed it: where there is a history, everything
    written in the minute before a loss is looked up in it, pong or not"; "what the IRC side was shown is not shown, numbered
    or echoed again"."""
    stage.backend.lose(link_of(stage))
    say_into(stage, "read and lost")
    ids = {client.expect_text("read and lost").tags["msgid"] for client in (stage.author, stage.bob)}
    assert in_backend(stage, "read and lost") == 0
    asked, _ = lose_link(stage)
    check_sent_again(stage, "read and lost", asked)
    assert check_once(stage, "read and lost", read=2, seconds=3) == list(ids)


@faces(*EVERY)
def the_room_is_taken_out_meanwhile(stage):
    """Confirmed by a pong, and a reload takes the room out: its link stays for as long as that may be lost; the message goes
    again, and the room is there again when the file has it."""
    link = link_of(stage)
    stage.backend.lose(link)
    say_into(stage, "read and lost")
    for client in (stage.author, stage.bob):
        client.expect_text("read and lost")
    with open(stage.bridge.config_path, encoding="utf-8") as file:
        before = file.read()
    told = rewrite(stage.bridge, lambda text: text.replace('name = "lobby"', 'name = "attic"').replace(
        'upstream_room = "General"', 'upstream_room = "Attic"').replace("{ lobby =", "{ attic ="))
    assert "rooms-opened attic; rooms-closed lobby" in told["changes"], told
    assert stage.author.expect("PART").params[0] == "#lobby"
    asked = len(stage.backend.histories)
    stage.backend.end(link)
    check_sent_again(stage, "read and lost", asked)
    told = rewrite(stage.bridge, lambda text: before)
    assert "rooms-opened lobby; rooms-closed attic" in told["changes"], told
    for client in (stage.author, stage.bob):
        client.join("#lobby")
    page = [line for line in ask(stage.bob, "CHATHISTORY LATEST #lobby * 50") if line.params[-1] == "read and lost"]
    assert len(page) == 1 and in_backend(stage, "read and lost") == 1, counts(stage, "read and lost")
    stage.author.say("#lobby", "there again")
    stage.bob.expect_text("there again")


@slow("waits out the minute in which what a pong confirmed may be lost")
@faces("jwt-rooms")
def the_room_is_called_otherwise_meanwhile(stage):
    """Under its new name the room begins once the old one has sent what it had: once, and in front of what is said there."""
    link = link_of(stage)
    stage.backend.lose(link)
    say_into(stage, "read and lost")
    stage.bob.expect_text("read and lost")
    told = rewrite(stage.bridge, lambda text: text.replace(
        'name = "lobby"', 'name = "attic"'))
    assert "rooms-opened attic; rooms-closed lobby" in told["changes"], told
    for client in (stage.author, stage.bob):
        assert client.expect("PART").params[0] == "#lobby"
        client.join("#attic")
    stage.author.say("#attic", "said later")
    asked = len(stage.backend.histories)
    stage.backend.end(link)
    check_sent_again(stage, "read and lost", asked)
    wait_until(lambda: in_backend(stage, "said later"), lambda: "sent later; " + counts(stage, "said later"), WATCHED)
    stage.bob.expect_text("said later")
    assert [text for text in stage.backend.texts() if "la" in text or "lost" in text] == [
        spoken(stage, "read and lost"), spoken(stage, "said later")], stage.backend.texts()
    page = [line.params[-1] for line in ask(stage.bob, "CHATHISTORY LATEST #attic * 2")]
    assert page == ["read and lost", "said later"], page


@faces(*PONGS)
def a_pong_came_and_the_history_has_it(stage):
    """Nothing is sent, shown, numbered or echoed again."""
    for n in range(3):
        say_into(stage, "safe %d" % n)
    ids = [stage.author.expect_text("safe %d" % n).tags["msgid"] for n in range(3)]
    asked, _ = lose_link(stage)
    look(stage, asked)
    holds_for(
        ASKED_AGAIN + 3, lambda: all(stage.backend.times_read("safe %d" % n) == 1 for n in range(3)),
        "sent again though the history has it", stage.author, stage.bob)
    for n in range(3):
        assert check_once(stage, "safe %d" % n, read=1, seconds=0.2) == [ids[n]]


@slow("waits out several questions for the history, 10 s apart")
@faces(*EVERY)
def what_a_history_had_once_is_settled(stage):
    """"Confirmed entries stay in the outbox … for a minute or until a history has them": what is removed there afterwards,
    by a moderator, say, does not come back."""
    say_into(stage, "removed later")
    stage.author.expect_text("removed later")
    asked, _ = lose_link(stage)
    look(stage, asked)
    stage.author.barrier()
    with stage.backend.lock:
        stage.backend.rows = [row for row in stage.backend.rows if row["text"] != spoken(stage, "removed later")]
    asked, _ = lose_link(stage)
    look(stage, asked)
    holds_for(
        ASKED_AGAIN + 4, lambda: stage.backend.times_read("removed later") == 1, "sent again after a history had it",
        stage.author, stage.bob)
    assert len(seen(stage.author, "removed later")) == len(seen(stage.bob, "removed later")) == 1


def late(stage, quietly):
    link = link_of(stage)
    stage.backend.hang(link)
    say_into(stage, "processed late")
    asked, _ = lose_link(stage)
    stage.backend.wait_asked(asked)
    assert in_backend(stage, "processed late") == 0
    stage.backend.work(link, quietly=quietly)
    holds_for(
        ASKED_AGAIN + 5, lambda: stage.backend.times_read("processed late") == 1,
        lambda: "sent again: " + counts(stage, "processed late"), stage.author, stage.bob)
    check_once(stage, "processed late", read=1)


@faces(*EVERY)
def processed_after_the_history_was_fetched(stage):
    """"The old socket's unread frames may be processed after the history was fetched: missing rows are asked for again after
    `CatchUp.patience`, and only then sent again": here the second history has it."""
    late(stage, quietly=True)


@faces(*EVERY)
def processed_after_the_history_was_fetched_and_told_live(stage):
    """The same where the backend tells the account's other sockets, the new one among them, of what an old one said."""
    late(stage, quietly=False)


def nameless_stage(identity):
    backend = Homemade("nameless", identity=identity)
    stage = Stage(backend)
    stage.face, stage.user, stage.nick = "jwt-rooms" if identity == "single" else "custom", None, "ann"
    begin(stage)
    return stage


@for_each(nameless_stage, "single", "puppet")
def without_ids_the_text_of_a_history_is_all_there_is(stage):
    """The description reads our id and none of the backend's, and the history has neither."""
    late(stage, quietly=True)


@for_each(nameless_stage, "single", "puppet")
def without_ids_what_comes_live_over_the_next_link_is_ours(stage):
    late(stage, quietly=False)


@faces(*EVERY)
def shown_by_a_pong_and_processed_after_the_history_was_fetched(stage):
    """A proxy answered the ping; the frame behind it is processed late. Shown once, numbered once, sent once."""
    link = link_of(stage)
    link.processing = "hold"
    say_into(stage, "shown, then late")
    ids = [stage.author.expect_text("shown, then late").tags["msgid"]]
    asked, _ = lose_link(stage)
    stage.backend.wait_asked(asked)
    stage.backend.work(link)
    holds_for(
        ASKED_AGAIN + 5, lambda: stage.backend.times_read("shown, then late") == 1,
        lambda: "sent again: " + counts(stage, "shown, then late"), stage.author, stage.bob)
    assert check_once(stage, "shown, then late", read=1) == ids


@faces(*EVERY)
def what_is_said_meanwhile_stays_behind_it(stage):
    """RELIABILITY: an accepted message comes "after all earlier messages of the same client in the room", also where the earlier
    one is looked up and sent again."""
    stage.backend.hang(link_of(stage))
    say_into(stage, "number 1")
    asked, _ = lose_link(stage)
    stage.backend.wait_asked(asked)
    for n in (2, 3):
        stage.author.say("#lobby", "number %d" % n)
    check_sent_again(stage, "number 1", asked)
    for n in (1, 2, 3):
        check_once(stage, "number %d" % n, seconds=0.5)
    assert [text for text in stage.backend.texts() if "number" in text] == [spoken(stage, "number %d" % n) for n in (1, 2, 3)]
    for client in (stage.author, stage.bob):
        assert [t for t in client.texts() if t.startswith("number")][:3] == ["number 1", "number 2", "number 3"], client.texts()


@faces(*TOKENS)
def the_token_is_revoked_at_that_moment(stage):
    """"The same where the token is revoked at that moment"."""
    stage.backend.hang(link_of(stage))
    say_into(stage, "without a token")
    stage.backend.revoke(stage.user)
    asked, _ = lose_link(stage)
    assert [h for h in stage.backend.handshakes if h[2] == 403], "the old token is tried"
    check_sent_again(stage, "without a token", asked)
    check_once(stage, "without a token", read=2, seconds=3)


@faces(*TOKENS)
def the_token_is_revoked_by_a_running_backend(stage):
    """"… against a running backend": it reads, answers pings, drops what comes under the token, and closes with 1008."""
    stage.backend.lose(link_of(stage))
    stage.backend.revoke(stage.user)
    say_into(stage, "refused unsaid")
    asked, _ = lose_link(stage, 1008)
    check_sent_again(stage, "refused unsaid", asked)
    check_once(stage, "refused unsaid", read=2, seconds=3)


@faces("jwt-rooms-own")
def both_links_die(stage):
    """The own link and the room's, at once: "own links too"."""
    for link in stage.backend.live():
        stage.backend.hang(link)
    say_into(stage, "both links")
    asked = len(stage.backend.histories)
    for link in stage.backend.live():
        stage.backend.end(link)
    check_sent_again(stage, "both links", asked)
    check_once(stage, "both links", read=2, seconds=3)


@faces(*EVERY)
def the_author_left_meanwhile(stage):
    """What was accepted does not need its author any more."""
    stage.backend.hang(link_of(stage))
    say_into(stage, "and away")
    stage.author.barrier()
    stage.author.send("QUIT :gone")
    stage.bob.expect("QUIT")
    asked, _ = lose_link(stage)
    check_sent_again(stage, "and away", asked)
    stage.bob.expect_text("and away")
    holds_for(3, lambda: in_backend(stage, "and away") == len(seen(stage.bob, "and away")) == 1, "once", stage.bob)
    check_page(stage, "and away")


@slow("waits out several questions for the history, 10 s apart")
@faces("jwt-rooms", "custom")
def lost_within_the_minute(stage):
    """"everything written in the minute before a loss is looked up in it, pong or not": 40 s before it, too."""
    stage.backend.lose(link_of(stage))
    say_into(stage, "forty seconds old")
    ids = {client.expect_text("forty seconds old").tags["msgid"] for client in (stage.author, stage.bob)}
    holds_for(
        40, lambda: stage.backend.times_read("forty seconds old") == 1 and link_of(stage).is_open, "nothing happens meanwhile",
        stage.author, stage.bob)
    asked, _ = lose_link(stage)
    check_sent_again(stage, "forty seconds old", asked)
    assert check_once(stage, "forty seconds old", read=2, seconds=3) == list(ids)


# MARK: - Histories that fail, or do not reach


@slow("waits out several questions for the history, 10 s apart")
@faces(*EVERY)
def a_history_that_fails_at_first_decides_nothing(stage):
    """Not sent again while nothing is known; then the history has it."""
    link = link_of(stage)
    stage.backend.hang(link)
    say_into(stage, "who knows")
    stage.backend.history_statuses = [500] * 1000
    before = len(stage.backend.histories)
    lose_link(stage)
    stage.backend.work(link, quietly=True)
    wait_until(lambda: len(stage.backend.histories) > before, "a history is asked for")
    holds_for(4, lambda: stage.backend.times_read("who knows") == 1, "sent again unseen", stage.author, stage.bob)
    stage.backend.history_statuses = []
    wait_until(lambda: seen(stage.author, "who knows"), lambda: "settled: " + counts(stage, "who knows"), 2 * SETTLED)
    check_once(stage, "who knows", read=1, seconds=ASKED_AGAIN + 3)


@slow("waits out several questions for the history, 10 s apart")
@faces(*EVERY)
def a_history_that_fails_at_first_and_lacks_it(stage):
    stage.backend.hang(link_of(stage))
    say_into(stage, "who knows")
    stage.backend.history_statuses = [500] * 1000
    before = len(stage.backend.histories)
    asked, _ = lose_link(stage)
    wait_until(lambda: len(stage.backend.histories) > before, "a history is asked for")
    holds_for(4, lambda: stage.backend.times_read("who knows") == 1, "sent again unseen", stage.author, stage.bob)
    stage.backend.history_statuses = []
    wait_until(lambda: stage.backend.times_read("who knows") == 2, "sent again", 3 * SETTLED)
    check_once(stage, "who knows", read=2, seconds=3)


@scenario
def what_the_history_cannot_reach_is_told_as_unknown():
    """"What the history cannot reach is told as unknown and never sent again": five rows, and eight were said meanwhile."""
    # Told at once, or when it is too old to wait: both are in time here.
    with stage_for("custom", 'queue = { max_age = "12s" }\n') as stage:
        backend = stage.backend
        for n in range(3):
            backend.say("Remy", "known %d" % n)
            stage.bob.expect_text("known %d" % n)
        backend.history_limit = 5
        backend.hang(link_of(stage))
        say_into(stage, "beyond reach")
        backend.refuse = 1 << 20
        asked, _ = lose_link(stage, wait=False)
        for n in range(8):
            backend.say("Remy", "meanwhile %d" % n)
        backend.refuse = 0
        backend.wait_asked(asked)
        stage.bob.expect_text("meanwhile 7")
        check_unknown(stage, "beyond reach")


def check_unknown(stage, text, read=1, seconds=ASKED_AGAIN + 4):
    wait_until(lambda: told(stage.author, text), lambda: "the author hears of %r; %s" % (text, counts(stage, text)), SETTLED)
    holds_for(
        seconds, lambda: stage.backend.times_read(text) == read and not seen(stage.bob, text),
        lambda: "sent again, or shown: " + counts(stage, text), stage.author, stage.bob)
    lines = told(stage.author, text)
    assert len(lines) == 1 and is_doubtful(lines[0]), lines
    assert not told(stage.bob, text), told(stage.bob, text)


def without_history(**options):
    stage = Stage(Homemade(has_history=False))
    stage.face, stage.user, stage.nick = "custom", None, "ann"
    # A wire whose server names ids tells it after max_age, and may tell it sooner: both are in time here.
    stage.start(room_extra='queue = { max_age = "5s" }\n', **options)
    return stage


@scenario
def without_a_history_the_author_is_told_that_it_is_not_known():
    """"without history the author is told that it is not known", and it is never sent again."""
    with without_history() as stage:
        enter(stage)
        stage.backend.hang(link_of(stage))
        say_into(stage, "into the dark")
        lose_link(stage)
        check_unknown(stage, "into the dark")


@scenario
def without_a_history_a_pong_is_all_there_is():
    """Confirmed by a pong, and no history to look it up in: neither told nor sent again."""
    with without_history() as stage:
        enter(stage)
        stage.backend.lose(link_of(stage))
        say_into(stage, "read, at least")
        for client in (stage.author, stage.bob):
            client.expect_text("read, at least")
        lose_link(stage)
        holds_for(
            ASKED_AGAIN + 4, lambda: stage.backend.times_read("read, at least") == 1 and not told(stage.author, "read, at least"),
            lambda: counts(stage, "read, at least"), stage.author, stage.bob)
        assert len(seen(stage.author, "read, at least")) == len(seen(stage.bob, "read, at least")) == 1


@scenario
def without_a_history_and_killed():
    """The same over `kill -9`: told to the account when it is back, and not sent again."""
    with without_history(more=account("alice", "secret")) as stage:
        stage.nick = "alice"
        stage.author, stage.bob = stage.log_in("alice"), stage.irc("bob")
        stage.backend.hang(link_of(stage))
        say_into(stage, "into the dark")
        stage.kill()
        stage.again()
        stage.author, stage.bob = stage.log_in("alice"), stage.irc("bob")
        check_unknown(stage, "into the dark")


# MARK: - Other devices of the account


@faces("jwt-rooms-own")
def another_device_says_the_same_while_the_link_is_down(stage):
    """"Rows of another device of the account are matched in order, each once": one row is the message, the other is shown."""
    link = link_of(stage)
    stage.backend.hang(link)
    say_into(stage, "ok")
    asked = len(stage.backend.histories)
    stage.backend.refuse = 1 << 20
    for socket in stage.backend.live():
        stage.backend.end(socket)
    stage.backend.work(link)
    stage.backend.as_user("alice", "ok")
    stage.backend.refuse = 0
    stage.backend.wait_asked(asked)
    wait_until(lambda: len(seen(stage.bob, "ok")) == 2, lambda: "bob sees both: " + counts(stage, "ok"))
    holds_for(
        ASKED_AGAIN + 3, lambda: len(seen(stage.bob, "ok")) == 2 and stage.backend.times_read("ok") == 1,
        lambda: counts(stage, "ok"), stage.author, stage.bob)
    lines = seen(stage.bob, "ok")
    assert len({line.tags["msgid"] for line in lines}) == 2 and {line.source.split("!")[0] for line in lines} == {"alice"}, lines


@faces("jwt-rooms-own")
def what_another_device_said_before_is_not_the_message(stage):
    """A row that was shown as another device's is matched already: the message that came after it is missing, and goes again."""
    stage.backend.as_user("alice", "ok")
    stage.bob.expect_text("ok")
    stage.backend.hang(link_of(stage))
    say_into(stage, "ok")
    asked, _ = lose_link(stage)
    check_sent_again(stage, "ok", asked)
    wait_until(lambda: len(seen(stage.bob, "ok")) == 2, lambda: counts(stage, "ok"))
    holds_for(
        3, lambda: len(seen(stage.bob, "ok")) == 2 and in_backend(stage, "ok") == 2 and stage.backend.times_read("ok") == 2,
        lambda: counts(stage, "ok"), stage.author, stage.bob)


@faces(*EVERY)
def said_twice_and_kept_once(stage):
    """Two messages with one text, one row: the first is settled by it, the second is missing."""
    link = link_of(stage)
    stage.backend.hang(link)
    say_into(stage, "ok")
    say_into(stage, "ok")
    asked = len(stage.backend.histories)
    stage.backend.refuse = 1 << 20
    lose_link(stage, wait=False)
    assert stage.backend.work(link, most=1, quietly=True) == 1
    stage.backend.refuse = 0
    check_sent_again(stage, "ok", asked, read=3)
    check_once(stage, "ok", count=2, read=3, seconds=3)


# MARK: - kill -9


def restart(stage):
    """The next process, and somebody who reads. An own link is there while its account is in the room."""
    stage.again()
    if stage.face == "jwt-rooms-own":
        stage.author = stage.log_in("alice")
    stage.bob = stage.irc("bob")


def return_from(stage):
    """The next process, and everybody talks: what is settled by the first look keeps nobody waiting."""
    stage.again()
    enter(stage)


def check_page(stage, text, msgid=None, author=None):
    """Everybody who asks finds it once."""
    def page():
        return [line for line in ask(stage.bob, "CHATHISTORY LATEST #lobby * 50") if line.params[-1] == text]
    lines = wait_until(page, lambda: "%r is in a page; %s" % (text, counts(stage, text)))
    assert len(lines) == 1 and msgid in (None, lines[0].tags["msgid"]), [line.raw for line in lines]
    assert lines[0].source.split("!")[0] == (author or stage.nick), lines[0].raw


@faces(*EVERY)
def killed_before_a_pong_and_the_history_lacks_it(stage):
    """"the same look-up after `kill -9`"."""
    stage.backend.hang(link_of(stage))
    say_into(stage, "killed with it")
    stage.kill()
    asked = len(stage.backend.histories)
    restart(stage)
    check_sent_again(stage, "killed with it", asked)
    check_page(stage, "killed with it")
    holds_for(
        4, lambda: in_backend(stage, "killed with it") == 1 and stage.backend.times_read("killed with it") == 2,
        lambda: counts(stage, "killed with it"), stage.bob)


@faces(*EVERY)
def killed_before_a_pong_and_the_history_has_it(stage):
    link = link_of(stage)
    stage.backend.hang(link)
    say_into(stage, "killed with it")
    stage.kill()
    stage.backend.work(link, quietly=True)
    return_from(stage)
    check_page(stage, "killed with it")
    holds_for(
        ASKED_AGAIN + 4, lambda: stage.backend.times_read("killed with it") == 1, "sent again", stage.author, stage.bob)
    check_page(stage, "killed with it")


@faces(*EVERY)
def killed_after_a_pong_and_the_history_lacks_it(stage):
    """"Confirmed entries stay in the outbox, on disk too, for a minute": what a pong confirmed is looked up as well, and keeps
    its msgid."""
    stage.backend.lose(link_of(stage))
    say_into(stage, "shown and lost")
    msgid = stage.author.expect_text("shown and lost").tags["msgid"]
    stage.author.barrier()
    stage.kill()
    asked = len(stage.backend.histories)
    restart(stage)
    check_sent_again(stage, "shown and lost", asked)
    holds_for(
        4, lambda: in_backend(stage, "shown and lost") == 1 and stage.backend.times_read("shown and lost") == 2,
        lambda: counts(stage, "shown and lost"), stage.bob)
    assert not seen(stage.bob, "shown and lost"), "shown live a second time"
    check_page(stage, "shown and lost", msgid)


@faces(*EVERY)
def killed_after_a_pong_and_the_history_has_it(stage):
    say_into(stage, "shown and kept")
    msgid = stage.author.expect_text("shown and kept").tags["msgid"]
    stage.author.barrier()
    stage.kill()
    return_from(stage)
    holds_for(
        ASKED_AGAIN + 4, lambda: stage.backend.times_read("shown and kept") == 1, "sent again", stage.author, stage.bob)
    assert not seen(stage.bob, "shown and kept"), "shown live a second time"
    check_page(stage, "shown and kept", msgid)


@faces(*EVERY)
def killed_between_the_two_looks(stage):
    stage.backend.hang(link_of(stage))
    say_into(stage, "killed in between")
    asked, _ = lose_link(stage)
    stage.backend.wait_asked(asked)
    time.sleep(2)
    assert stage.backend.times_read("killed in between") == 1
    stage.kill()
    restart(stage)
    wait_until(
        lambda: in_backend(stage, "killed in between") == 1, lambda: "it arrives: " + counts(stage, "killed in between"), SETTLED)
    check_page(stage, "killed in between")
    holds_for(
        4, lambda: in_backend(stage, "killed in between") == 1 and stage.backend.times_read("killed in between") == 2,
        lambda: counts(stage, "killed in between"), stage.bob)


@slow("waits out several questions for the history, 10 s apart")
@faces(*EVERY)
def killed_when_it_had_just_gone_again(stage):
    """The second sending arrives, and the relay dies before it hears of it: the next one finds it in the history."""
    stage.backend.hang(link_of(stage))
    say_into(stage, "the second time")
    stage.backend.answers_pings, stage.backend.processing = False, "hold"
    asked, _ = lose_link(stage)
    link = stage.backend.wait_read("the second time", 2, patience=SETTLED)
    stage.kill()
    stage.backend.answers_pings, stage.backend.processing = True, "now"
    stage.backend.work(link, quietly=True)
    return_from(stage)
    holds_for(
        ASKED_AGAIN + 4, lambda: stage.backend.times_read("the second time") == 2, "sent a third time", stage.author, stage.bob)
    check_page(stage, "the second time")


# MARK: - Faults on top of each other


def check_settled(stage, text, patience=3 * SETTLED):
    """RELIABILITY: once in the backend and shown once, or reported to its author; never both, never neither."""
    def settled():
        return in_backend(stage, text) and seen(stage.author, text) or told(stage.author, text)
    wait_until(settled, lambda: "%r is settled: %s" % (text, counts(stage, text)), patience)
    holds_for(
        ASKED_AGAIN + 3, lambda: in_backend(stage, text) + bool(told(stage.author, text)) == 1,
        lambda: counts(stage, text), stage.author, stage.bob)
    for client in (stage.author, stage.bob):
        assert len(seen(client, text)) <= 1, "%s: %s" % (client.nick, counts(stage, text))
    assert bool(seen(stage.bob, text)) == bool(in_backend(stage, text)), counts(stage, text)


@faces(*EVERY)
def two_deaths_within_a_second(stage):
    stage.backend.hang(link_of(stage))
    say_into(stage, "two deaths")
    lose_link(stage)
    asked, _ = lose_link(stage)
    stage.backend.wait_asked(asked)
    check_sent_again(stage, "two deaths", asked)
    check_once(stage, "two deaths", read=2, seconds=3)


@slow("waits out several questions for the history, 10 s apart")
@faces(*EVERY)
def the_next_link_dies_while_the_history_is_on_its_way(stage):
    stage.backend.hang(link_of(stage))
    say_into(stage, "half a history")
    stage.backend.history_gate.clear()
    _, link = lose_link(stage)
    time.sleep(0.3)
    asked, _ = lose_link(stage)
    stage.backend.history_gate.set()
    wait_until(
        lambda: stage.backend.times_read("half a history") == 2, lambda: "sent again: " + counts(stage, "half a history"), SETTLED)
    check_once(stage, "half a history", read=2, seconds=ASKED_AGAIN + 2)


@slow("waits out several questions for the history, 10 s apart")
@faces(*EVERY)
def the_second_sending_is_lost_too(stage):
    """"sent again, at most once": whatever is done then, it is there once at most, and if it is not, its author hears so."""
    stage.backend.hang(link_of(stage))
    say_into(stage, "twice unlucky")
    stage.backend.processing = "hold"
    stage.backend.answers_pings = False
    lose_link(stage)
    link = stage.backend.wait_read("twice unlucky", 2, patience=SETTLED)
    stage.backend.answers_pings, stage.backend.processing = True, "now"
    stage.backend.end(link)
    check_settled(stage, "twice unlucky")


@faces(*EVERY)
def the_relay_stands_still_while_the_backend_dies(stage):
    """The pong lies in the relay's socket when the link is reset: it is the history that decides."""
    link = link_of(stage)
    stage.backend.hang(link)
    say_into(stage, "stood still")
    stage.bridge.process.send_signal(signal.SIGSTOP)
    try:
        stage.backend.pong(link)
        time.sleep(0.2)
        stage.backend.end(link)
        time.sleep(1)
    finally:
        stage.bridge.process.send_signal(signal.SIGCONT)
    wait_until(lambda: stage.backend.times_read("stood still") == 2, lambda: counts(stage, "stood still"), SETTLED)
    check_once(stage, "stood still", read=2, seconds=3)


@slow("waits out several questions for the history, 10 s apart")
@faces(*EVERY)
def everything_at_once(stage):
    """Three in flight, one of them processed; the token ends, connections are reset, the history fails, the relay is killed
    between the looks, and the old socket's second frame is processed after the next process is linked."""
    link = link_of(stage)
    stage.backend.hang(link)
    said = ["storm %d" % n for n in range(3)]
    for text in said:
        say_into(stage, text)
    if stage.user:
        stage.backend.revoke(stage.user)
    stage.backend.refuse = 3
    stage.backend.history_statuses = [500]
    asked = len(stage.backend.histories)
    lose_link(stage)
    stage.backend.work(link, most=1, quietly=True)
    wait_until(lambda: len(stage.backend.histories) > asked, "a history is asked for")
    time.sleep(1)
    stage.kill()
    asked = len(stage.backend.histories)
    restart(stage)
    stage.backend.wait_asked(asked)
    stage.backend.work(link, most=1)
    wait_until(
        lambda: all(in_backend(stage, text) for text in said),
        lambda: "all arrive: " + "; ".join(counts(stage, text) for text in said), 2 * SETTLED)
    holds_for(
        ASKED_AGAIN + 4, lambda: [in_backend(stage, text) for text in said] == [1, 1, 1],
        lambda: "; ".join(counts(stage, text) for text in said), stage.bob)
    assert [stage.backend.times_read(text) for text in said] == [1, 1, 2], [stage.backend.times_read(text) for text in said]
    for text in said:
        check_page(stage, text)


@slow("waits out several questions for the history, 10 s apart")
@faces(*EVERY)
def a_conversation_through_many_deaths(stage):
    """Links die again and again with messages in flight; each is there once, in order, and seen once, in order."""
    said = []
    for turn in range(5):
        link = link_of(stage)
        fault = ("hang", "lose", "none", "hang", "lose")[turn]
        for n in range(3):
            said.append("talk %d" % len(said))
            stage.author.say("#lobby", said[-1])
            if n == 1 and fault == "hang":
                stage.backend.hang(link)
            elif n == 1 and fault == "lose":
                stage.backend.lose(link)
        stage.author.barrier()
        lose_link(stage)
    wait_until(
        lambda: all(in_backend(stage, text) for text in said) and all(seen(stage.bob, text) for text in said),
        lambda: "all arrive; the backend has %r" % stage.backend.texts(), 4 * SETTLED)
    holds_for(
        ASKED_AGAIN + 3, lambda: all(in_backend(stage, text) == 1 for text in said), lambda: repr(stage.backend.texts()),
        stage.author, stage.bob)
    assert [text for text in stage.backend.texts() if "talk" in text] == [spoken(stage, text) for text in said]
    for client in (stage.author, stage.bob):
        assert [t for t in client.texts() if t.startswith("talk")] == said, client.texts()


# MARK: - plainjson, whose acks come from people, if at all


def plain_stage(has_history=True):
    stage = Stage(Plain(has_history))
    stage.face, stage.user, stage.nick = "plainjson", None, "ann"
    stage.start()
    enter(stage)
    return stage


def message_ids(stage, text):
    return [json.loads(f[1])["id"] for s in stage.backend.sockets for n, f in enumerate(s.frames) if n in s.saw(text)]


@scenario
def plainjson_a_pong_came_and_the_backend_lost_it():
    """"for every wire that confirms nothing …: where there is a history, everything written in the minute before a loss is
    looked up in it, pong or not". The id is the bridge's own, and stays."""
    with plain_stage() as stage:
        stage.backend.lose(link_of(stage))
        say_into(stage, "read and lost")
        ids = {client.expect_text("read and lost").tags["msgid"] for client in (stage.author, stage.bob)}
        lose_link(stage)
        wait_until(lambda: stage.backend.times_read("read and lost") >= 2, lambda: counts(stage, "read and lost"), SETTLED)
        assert check_once(stage, "read and lost", seconds=4) == list(ids)
        assert len(set(message_ids(stage, "read and lost"))) == 1


@scenario
def plainjson_without_a_pong_goes_again_under_its_id():
    """BACKENDS: "What was written to a link that was then lost goes again with the same id where the ids are the bridge's
    own": with a history or without."""
    for has_history in (True, False):
        with plain_stage(has_history) as stage:
            stage.backend.hang(link_of(stage))
            say_into(stage, "hung")
            lose_link(stage)
            wait_until(lambda: in_backend(stage, "hung") == 1, lambda: counts(stage, "hung"), SETTLED)
            check_once(stage, "hung", seconds=4)
            assert len(set(message_ids(stage, "hung"))) == 1
