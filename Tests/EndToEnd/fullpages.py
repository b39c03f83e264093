"""CHATHISTORY while the disk is full: shown messages are part of the page, and no client loses a message permanently.

"What is in memory belongs to the page (gap lines too), or the answer says that it is incomplete and the rest is delivered
when there is room." Both are taken here: a page that lacks something must say so, and what it lacks must come once there is
room, without another word of the client.
"""

import time

from accounts import account
from faults import Talk, gap_lines, stay
from fulldisk import empty_disk, fill_disk, http_port, readiness, talk_until_refused
from history import ask, texts
from peer import MODERN, wait_until
from restarts import folder, kill, log_in_as, settle_and_see, with_alice
from world import scenario

ASKING = MODERN + ["draft/chathistory", "soju.im/search"]
HTTP = '[[http]]\nbind = "http://127.0.0.1:0"\n'


class Full:
    """A room with three messages that are on disk, then a full disk, then three that were shown live."""

    def __init__(self, world, tables="", **options):
        self.world = world
        world.start(tables=HTTP + tables, **options)
        self.http = http_port(world)
        self.ann, self.remy = world.irc("ann"), world.person("Remy")
        self.lines = {}
        self.filler = set()
        for n in range(3):
            self.say("kept %d" % n)
        # On disk, all of them.
        self.lines["and this"] = settle_and_see(self.ann, "and this")

    def say(self, text, sees=None):
        """Remy says it, and everybody who is there sees it."""
        self.remy.say(text)
        for client in [self.ann] + list(sees or ()):
            line = client.expect_text(text)
        self.lines[text] = line
        return line

    def fill(self):
        fill_disk(self.world.bridge.process.pid)
        # From here on each message that reaches the room stays in memory.
        said, refused = talk_until_refused(self.world, self.ann)
        self.filler = {text for number, text in enumerate(said) if number not in refused}
        self.ann.barrier()
        stay(0.3, self.ann)
        self.ann.drain()
        assert readiness(self.http)[0] == 503, "the disk is not full"

    def empty(self):
        empty_disk(self.world.bridge.process.pid)
        wait_until(lambda: readiness(self.http)[0] == 200, lambda: "ready again: %s" % readiness(self.http)[1])

    def others(self, lines):
        """What is no filler."""
        return [line for line in lines if line.params[-1] not in self.filler]


INCOMPLETE = ("incomplete", "not complete", "cannot be read", "missing here", "later")


def page(client, question):
    """The lines of an answer, and whether it said that it is incomplete."""
    client.barrier()
    begin = client.cursor
    client.send("@label=page " + question)
    client.barrier()
    answer = client.lines[begin:]
    opened = [line.params[0][1:] for line in answer if line.command == "BATCH" and line.tags.get("label") == "page"]
    lines = [line for line in answer if line.tags.get("batch") in opened]
    said = any(
        line.command in ("FAIL", "WARN", "NOTE", "NOTICE") and any(word in line.params[-1] for word in INCOMPLETE)
        for line in answer)
    refused = [line.raw for line in answer if line.command == "FAIL"]
    assert opened or said, "%s while the disk is full is refused: %s" % (question, refused)
    return lines, said


def must_have(full, client, question, wanted, exact=True):
    """The page has it, in order, or says that it is incomplete; answers what is still owed."""
    lines, is_incomplete = page(client, question)
    got = texts(full.others(lines))
    if exact and got == wanted or not exact and [text for text in got if text in wanted] == wanted:
        for line in lines:
            shown = full.lines.get(line.params[-1])
            if shown and line.command == "PRIVMSG":
                assert line.tags["msgid"] == shown.tags["msgid"], (line.raw, shown.raw)
                assert line.tags["time"] == shown.tags["time"], (line.raw, shown.raw)
        return []
    assert is_incomplete, "%s while the disk is full: %r instead of %r, and not a word about it" % (question, got, wanted)
    return [text for text in wanted if text not in got]


def pay(full, client, owed):
    """There is room again: what pages lacked comes by itself."""
    full.empty()
    wait_until(
        lambda: client.drain() or set(owed) <= {line.params[-1] for line in client.lines},
        lambda: "what was owed is delivered: %r" % [text for text in owed if text not in client.texts()])


def live_on_a_full_disk(world):
    full = Full(world)
    asker = world.irc("bob", caps=ASKING)
    full.fill()
    for n in range(3):
        full.say("live %d" % n, sees=[asker])
        # No two of one millisecond: that is another matter (moments.py).
        time.sleep(0.005)
    return full, asker


LIVE = ["live 0", "live 1", "live 2"]


def by(full, text, kind):
    return "%s=%s" % (kind, full.lines[text].tags["msgid" if kind == "msgid" else "time"])


@scenario
def latest(world):
    """"answers an empty page, or "no such message" for one just shown live"."""
    full, asker = live_on_a_full_disk(world)
    owed = must_have(full, asker, "CHATHISTORY LATEST #lobby * 3", LIVE)
    owed += must_have(full, asker, "CHATHISTORY LATEST #lobby * 2", LIVE[1:])
    for kind in ("msgid", "timestamp"):
        owed += must_have(full, asker, "CHATHISTORY LATEST #lobby %s 10" % by(full, "live 0", kind), LIVE[1:])
        owed += must_have(full, asker, "CHATHISTORY LATEST #lobby %s 2" % by(full, "and this", kind), LIVE[1:])
    pay(full, asker, owed)
    must_have(full, asker, "CHATHISTORY LATEST #lobby * 3", LIVE)


@scenario
def after(world):
    full, asker = live_on_a_full_disk(world)
    owed = []
    for kind in ("msgid", "timestamp"):
        owed += must_have(full, asker, "CHATHISTORY AFTER #lobby %s 10" % by(full, "live 0", kind), LIVE[1:])
        owed += must_have(full, asker, "CHATHISTORY AFTER #lobby %s 500" % by(full, "and this", kind), LIVE)
        owed += must_have(full, asker, "CHATHISTORY AFTER #lobby %s 1" % by(full, "live 1", kind), LIVE[2:])
    pay(full, asker, owed)


@scenario
def before(world):
    full, asker = live_on_a_full_disk(world)
    owed = []
    for kind in ("msgid", "timestamp"):
        owed += must_have(full, asker, "CHATHISTORY BEFORE #lobby %s 1" % by(full, "live 1", kind), LIVE[:1])
        owed += must_have(full, asker, "CHATHISTORY BEFORE #lobby %s 2" % by(full, "live 2", kind), LIVE[:2])
        owed += must_have(
            full, asker, "CHATHISTORY BEFORE #lobby %s 500" % by(full, "live 2", kind),
            ["kept 0", "kept 1", "kept 2", "and this"] + LIVE[:2])
    pay(full, asker, owed)


@scenario
def around(world):
    full, asker = live_on_a_full_disk(world)
    owed = []
    for kind in ("msgid", "timestamp"):
        owed += must_have(full, asker, "CHATHISTORY AROUND #lobby %s 3" % by(full, "live 1", kind), LIVE)
    pay(full, asker, owed)


@scenario
def between(world):
    full, asker = live_on_a_full_disk(world)
    owed = []
    for kind in ("msgid", "timestamp"):
        for first, last, wanted in (
            ("live 0", "live 2", ["live 1"]), ("live 2", "live 0", ["live 1"]),
            ("kept 2", "live 2", ["and this"] + LIVE[:2]),
        ):
            owed += must_have(full, asker, "CHATHISTORY BETWEEN #lobby %s %s 500" % (
                by(full, first, kind), by(full, last, kind)), wanted)
    pay(full, asker, owed)


@scenario
def targets(world):
    """A client that comes back asks first where something was said: the room must be among them, with the time of its newest
    line, which is only in memory."""
    full, asker = live_on_a_full_disk(world)
    since = full.lines["live 0"].tags["time"]
    asker.send("@label=t CHATHISTORY TARGETS timestamp=%s timestamp=2099-01-01T00:00:00.000Z 10" % since)
    asker.barrier()
    told = [line.params[-2:] for line in asker.lines if line.command == "CHATHISTORY" and line.params[0] == "TARGETS"]
    assert told == [["#lobby", full.lines["live 2"].tags["time"]]], "%r, and the newest is of %s" % (
        told, full.lines["live 2"].tags["time"])


@scenario
def searching(world):
    full, asker = live_on_a_full_disk(world)
    owed = must_have(full, asker, "SEARCH text=live;in=#lobby", LIVE)
    pay(full, asker, owed)


@scenario
def leafing_through_memory_and_disk(world):
    """From the newest line, which is in memory, back to the first, which is on disk, in pages of three: each line once."""
    full, asker = live_on_a_full_disk(world)
    found = chunk = ask(asker, "CHATHISTORY LATEST #lobby * 3")
    while chunk:
        chunk = ask(asker, "CHATHISTORY BEFORE #lobby msgid=%s 3" % chunk[0].tags["msgid"])
        found = chunk + found
    ids = [line.tags["msgid"] for line in found]
    assert len(set(ids)) == len(ids), "twice"
    got = texts(full.others(found))
    assert got == ["kept 0", "kept 1", "kept 2", "and this"] + LIVE, got
    was_shown = full.filler & set(full.ann.texts("ann"))
    assert was_shown <= set(texts(found)), "%d that were shown are in no page" % len(was_shown - set(texts(found)))
    full.empty()
    asker.barrier()
    again = [line.tags["msgid"] for line in ask(asker, "CHATHISTORY LATEST #lobby * 500")]
    assert [msgid for msgid in again if msgid in ids] == ids[-500:], "other pages than before"


@scenario
def gap_lines_too(world):
    """"What is in memory belongs to the page (gap lines too)": the link is lost while the disk is full."""
    full, asker = live_on_a_full_disk(world)
    world.relay.drop()
    wait_until(lambda: gap_lines(asker), "the gap is told")
    full.say("behind the gap", sees=[asker])
    (gap,) = gap_lines(asker)
    lines, is_incomplete = page(asker, "CHATHISTORY LATEST #lobby * 5")
    wanted = LIVE + [gap.params[-1], "behind the gap"]
    assert texts(lines) == wanted or is_incomplete, "%r instead of %r, and not a word about it" % (texts(lines), wanted)
    told = gap_lines(asker, lines)
    assert is_incomplete or [(line.tags["msgid"], line.tags["chatbridge/gap"], line.tags["time"]) for line in told] == [
        (gap.tags["msgid"], gap.tags["chatbridge/gap"], gap.tags["time"])], [line.raw for line in told]
    full.empty()
    lines = ask(asker, "CHATHISTORY LATEST #lobby * 5")
    assert texts(lines) == wanted, "when there is room: %r instead of %r" % (texts(lines), wanted)


# MARK: - Who comes back meanwhile


def missed_while_away(world, caps, is_told_by_itself, end=None):
    """A client of an account is cut off, the disk fills up, the room talks, the client comes back while it is full; it has
    everything in the end, once."""
    directory = folder(world)
    full = Full(world, tables=with_alice(), directory=directory)
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby", caps=caps)
    full.say("last that she had", sees=[alice])
    alice.expect("PING", lambda line: line.params[-1].startswith("cb-"))
    alice.barrier()
    newest = full.lines["last that she had"]
    alice.close()
    full.fill()
    for text in LIVE:
        full.say(text)
    world.relay.drop()
    wait_until(lambda: gap_lines(full.ann), "the gap is told")
    full.say("behind the gap")
    again = log_in_as(world, "alice@phone", "secret", "alice", "#lobby", caps=caps)
    if not is_told_by_itself:
        for kind in ("msgid", "timestamp"):
            again.send("CHATHISTORY AFTER #lobby %s 500" % ("%s=%s" % (
                kind, newest.tags["msgid" if kind == "msgid" else "time"])))
            again.barrier()
    full.say("she is back")
    full.empty()
    if end:
        end(world)
    wanted = LIVE + ["behind the gap", "she is back"]
    wait_until(
        lambda: again.drain() or set(wanted) <= set(again.texts("Remy")),
        lambda: "she has everything; missing: %r" % [t for t in wanted if t not in again.texts("Remy")])
    assert gap_lines(again), "she was never told of the gap"
    by_id = {}
    for line in again.lines:
        if line.command == "PRIVMSG" and line.source.startswith("Remy!"):
            by_id.setdefault(line.tags["msgid"], []).append(line.params[-1])
    assert len(by_id) == len(wanted), "other msgids for the same: %r" % by_id
    for text in wanted:
        known = [msgid for msgid, said in by_id.items() if text in said]
        assert known == [full.lines[text].tags["msgid"]], (text, known)
    return full, again


@scenario
def a_client_that_asks_comes_back(world):
    """"a client that reconnects then misses it for good": it asks for what came after its last line, gets an answer, and never
    asks again."""
    missed_while_away(world, ASKING, False)


@scenario
def a_client_on_the_relays_own_backlog_comes_back(world):
    """"while one on the relay's own backlog gets it later"."""
    missed_while_away(world, MODERN, True)


@scenario
def afterwards_nothing_is_missed_by_anybody(world):
    """The disk was full, the link was lost, somebody came back meanwhile; a restart later the page has all of it, once and in
    the room's order, the gap in its place."""
    full, again = missed_while_away(world, ASKING, False)
    lines = [line for line in full.ann.lines if "msgid" in line.tags and line.params[0] == "#lobby"]
    live = [line.tags["msgid"] for line in lines if line.command in ("PRIVMSG", "NOTICE")]
    settle_and_see(full.ann, "kept at last")
    assert world.bridge.terminate() == 0
    options = dict(directory=world.bridge.directory, tables=HTTP + with_alice())
    world.start(**options)
    bob = world.irc("bob", caps=ASKING)
    found = chunk = ask(bob, "CHATHISTORY LATEST #lobby * 500")
    while len(chunk) == 500:
        chunk = ask(bob, "CHATHISTORY BEFORE #lobby msgid=%s 500" % chunk[0].tags["msgid"])
        found = chunk + found
    ids = [line.tags["msgid"] for line in found]
    assert len(set(ids)) == len(ids), "twice"
    assert [msgid for msgid in ids if msgid in live] == live, "%d of %d lines that were shown are there" % (
        len([msgid for msgid in live if msgid in ids]), len(live))


@scenario
def killed_while_the_disk_is_full(world):
    """`kill -9` while what was shown is only in memory: for a client that was away it is in the page of the next process, or
    lies in a gap that it is told, since this backend has no history."""
    directory = folder(world)
    full = Full(world, tables=with_alice(), directory=directory)
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby", caps=MODERN)
    full.say("last that she had", sees=[alice])
    alice.expect("PING", lambda line: line.params[-1].startswith("cb-"))
    alice.barrier()
    alice.close()
    full.fill()
    talk = Talk()

    def speak(text):
        full.remy.say(text)
        full.ann.expect_text(text)

    for text in LIVE:
        talk.say(speak, text)
        time.sleep(0.5)
    kill(world)
    talk.say(lambda text: full.remy.say(text), "while there was no relay")
    world.start(directory=directory, tables=HTTP + with_alice())
    again = log_in_as(world, "alice@phone", "secret", "alice", "#lobby", caps=MODERN)
    full.remy.say("live again")
    again.expect_text("live again")
    return "missing %r" % talk.check(again)


@scenario
def a_room_of_its_own_while_the_disk_is_full(world):
    """Two rooms, one of which had nothing on disk before: its page is what was shown in it, and nothing of the other."""
    world.start(rooms=("lobby", "attic"), tables=HTTP + account("alice", "secret"))
    full = Full.__new__(Full)
    full.world, full.http, full.lines, full.filler = world, http_port(world), {}, set()
    full.ann, full.remy = world.irc("ann"), world.person("Remy")
    settle_and_see(full.ann, "kept")
    upstairs, wes = world.irc("bob", join="#attic", caps=ASKING), world.person("Wes", "attic")
    full.fill()
    for text in LIVE:
        wes.say(text)
        full.lines[text] = upstairs.expect_text(text)
    owed = must_have(full, upstairs, "CHATHISTORY LATEST #attic * 10", LIVE)
    owed += must_have(full, upstairs, "CHATHISTORY AFTER #attic msgid=%s 10" % full.lines["live 0"].tags["msgid"], LIVE[1:])
    pay(full, upstairs, owed)
