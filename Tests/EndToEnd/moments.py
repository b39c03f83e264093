"""Lines of one moment, and of wrong clocks: the times that are shown order a room as the room does.

The rule: shown time = max(newest shown + 1 ms, min(said, now)), raised by at most 60 s; beyond that its own time stands and
the room's sequence alone orders. A sender's clock may lead by five minutes; a jump of the relay's own clock raises nobody;
MARKREAD still reaches every line.
"""

import os
import random
import shutil
import struct
import subprocess
import time

from backends import on, on_wires
from faults import clock, seconds
from history import ask, differences, texts
from peer import MODERN, envelope, new_id, wait_until
from restarts import folder, kill, log_in_as, settle, with_alice
from roughness import found, lost
from world import scenario

ASKING = MODERN + ["draft/chathistory"]


# MARK: - Times as numbers of milliseconds


def milliseconds(line):
    return round(seconds(line.tags["time"]) * 1000)


def ms(at):
    return round(at * 1000)


def shown(client, *wanted):
    """The lines of these texts, in the order in which they were shown; each must be there once."""
    lines = [line for line in client.lines if line.command == "PRIVMSG" and line.params[-1] in wanted]
    assert sorted(texts(lines)) == sorted(wanted), differences(list(wanted), texts(lines))
    return lines


def increasing(lines):
    """Who sorts by time has the lines as the room has them."""
    times = [milliseconds(line) for line in lines]
    wrong = [n for n in range(1, len(times)) if times[n] <= times[n - 1]]
    assert not wrong, "%d of %d lines show no later time than the one before, the first: %r at %s behind %r at %s" % (
        len(wrong), len(times), lines[wrong[0]].params[-1], lines[wrong[0]].tags["time"], lines[wrong[0] - 1].params[-1],
        lines[wrong[0] - 1].tags["time"])


def expected(said):
    """What the rule makes of these moments, all of which are past, in a room where nothing was shown before."""
    out, newest = [], None
    for at in said:
        time_shown = at if newest is None else max(newest + 1, at)
        if time_shown - at > 60_000:
            time_shown = at
        newest = time_shown if newest is None else max(newest, time_shown)
        out.append(time_shown)
    return out


def say_as(person, name, text, at):
    """Somebody else through the same connection, so that the backend has one order. Moments are whole quarters of a second: what
    stands in JSON is then exactly what is meant."""
    people = vars(person).setdefault("others", {})
    message_id = new_id()
    person.send_raw(envelope("message", people.setdefault(name, new_id()), name, text, message_id, at))
    return message_id


def burst(world, client, moments, names=("Remy", "Wes"), prefix="line"):
    """Says one line at each of these moments; answers the lines as the client got them, and the ids upstream."""
    remy = world.person("carrier")
    said = ["%s %03d" % (prefix, n) for n in range(len(moments))]
    ids = [say_as(remy, names[n % len(names)], text, at) for n, (text, at) in enumerate(zip(said, moments))]
    client.expect_text(said[-1], patience=30)
    lines = shown(client, *said)
    assert texts(lines) == said, "shown in another order: %s" % differences(said, texts(lines))
    return lines, ids


# MARK: - Bursts


@scenario
def counting_goes_on_when_another_time_comes_between(world):
    """"Lines of one moment are set 1 ms apart only against the line before; once another time comes between, counting starts
    again": A at T, B at T, C at T + 0.5 s, D at T."""
    world.start()
    ann, start = world.irc("ann"), int(time.time()) - 30
    moments = [start, start, start + 0.5, start, start + 0.5, start, start, start + 0.25, start + 1, start]
    lines, _ = burst(world, ann, moments)
    increasing(lines)
    assert [milliseconds(line) for line in lines] == expected([ms(at) for at in moments]), [
        line.tags["time"] for line in lines]


@scenario
def bursts_with_mixed_times(world):
    """Times strictly increase in the room's order, each is what the rule says, and none is raised by more than 60 s."""
    world.start(rooms=("lobby",) + tuple("room%d" % n for n in range(4)))
    for seed in range(4):
        chance, room = random.Random(seed), "room%d" % seed
        client = world.irc("ann%d" % seed, join="#" + room)
        remy = world.person("carrier", room)
        start = int(time.time()) - 50
        moments = [start] + [start + chance.choice((0, 1, 1.25, 2, 7, 20.75, 40)) for _ in range(139)]
        said = ["%d line %03d" % (seed, n) for n in range(len(moments))]
        for n, (text, at) in enumerate(zip(said, moments)):
            say_as(remy, ("Remy", "Wes", "Kim")[n % 3], text, at)
        client.expect_text(said[-1])
        lines = shown(client, *said)
        assert texts(lines) == said, differences(said, texts(lines))
        increasing(lines)
        for line, at in zip(lines, moments):
            assert 0 <= milliseconds(line) - ms(at) <= 60_000, "%s, said at %s" % (line.raw, clock(at))
        assert [milliseconds(line) for line in lines] == expected([ms(at) for at in moments])


@scenario
def a_line_that_is_older_than_a_minute_keeps_its_time(world):
    """"raised by at most 60 s; beyond that its own time stands": the line shows its own time, and those behind it go on from
    the newest that was shown."""
    world.start()
    ann, now = world.irc("ann"), int(time.time()) - 5
    moments = [now, now - 50, now - 59.75, now - 61, now - 3600, now, now - 0.25, now + 1]
    lines, _ = burst(world, ann, moments)
    got = [milliseconds(line) for line in lines]
    assert got == expected([ms(at) for at in moments]), [line.tags["time"] for line in lines]
    assert got[3] == ms(now - 61) and got[4] == ms(now - 3600), "its own time stands"
    increasing([line for n, line in enumerate(lines) if n not in (3, 4)])


@scenario
def ones_own_lines_between_those_of_slow_clocks(world):
    """Remy's clock is seven seconds late: what IRC users say between his lines, by the relay's clock, raises his and keeps the
    order; everybody sees one time for a line."""
    world.start()
    ann, bob, remy = world.irc("ann"), world.irc("bob"), world.person("Remy")
    said = []
    for n in range(12):
        said += ["up %d" % n, "down %d" % n]
        ann.say("#lobby", said[-2])
        ann.expect_text(said[-2])
        remy.say(said[-1], sent_at=time.time() - 7)
        ann.expect_text(said[-1])
    bob.expect_text(said[-1])
    lines = shown(ann, *said)
    increasing(lines)
    assert [line.tags["time"] for line in shown(bob, *said)] == [line.tags["time"] for line in lines]
    now = time.time()
    assert all(seconds(line.tags["time"]) <= now + 0.1 for line in lines), lines[-1].raw


@scenario
def a_sender_ahead_does_not_raise_the_others(world):
    """"a sender's clock may lead by five minutes": min(said, now), so what Wes says from four minutes ahead is shown as of now,
    and what others say behind it is not raised into the future."""
    world.start()
    ann, remy = world.irc("ann"), world.person("carrier")
    said = []
    for n in range(6):
        for name, lead in (("Wes", 240), ("Remy", 0)):
            said.append("%s %d" % (name, n))
            before = time.time()
            say_as(remy, name, said[-1], before + lead)
            line = ann.expect_text(said[-1])
            at, after = seconds(line.tags["time"]), time.time()
            assert before - 0.5 <= at <= after + 0.1, "%s, said %d s ahead of %s, is shown at %s" % (
                said[-1], lead, clock(before), clock(at))
    increasing(shown(ann, *said))


@scenario
def a_sender_far_ahead_does_not_raise_the_others(world):
    """A clock that leads by more than five minutes raises nobody either."""
    world.start()
    ann, remy = world.irc("ann"), world.person("carrier")
    for n in range(4):
        say_as(remy, "Wes", "Wes %d" % n, time.time() + 86400)
        ann.expect_text("Wes %d" % n)
        before = time.time()
        say_as(remy, "Remy", "Remy %d" % n, before)
        at = seconds(ann.expect_text("Remy %d" % n).tags["time"])
        assert before - 0.01 <= at <= time.time() + 0.1, "said at %s, shown at %s" % (clock(before), clock(at))


# MARK: - Of the wires


@on("jwt-rooms", "directus")
def whole_bursts_of_a_wire_whose_server_stamps(setting):
    """140 lines of two authors, live and out of the history, on wires that count whole seconds or not: all times differ, they
    go up in the room's order, and those who were there, those who ask and those who come later see the same."""
    setting.start()
    ann, bob = setting.irc("ann", more=["draft/chathistory"]), setting.irc("bob")
    chance, start, said = random.Random(4), int(time.time()) - 50, []

    def say(count, is_live=True):
        for _ in range(count):
            said.append("line %03d" % len(said))
            at = start + len(said) // 20
            # Live, a second may come once more behind the next.
            at -= chance.choice((0, 0, 1)) if is_live else 0
            setting.backend.say(chance.choice(("Remy", "Wes")), said[-1], at=at)

    say(50)
    ann.expect_text(said[-1])
    lost(setting, abort=True)
    wait_until(lambda: setting.bridge.log_entries("upstream-lost"), "the loss is seen")
    say(40, is_live=False)
    found(setting)
    setting.wait_up(2)
    ann.expect_text(said[-1], patience=30)
    say(50)
    for client in (ann, bob):
        client.expect_text(said[-1])
        lines = shown(client, *said)
        assert texts(lines) == said, differences(said, texts(lines))
        increasing(lines)
        for n, line in enumerate(lines):
            moved = seconds(line.tags["time"]) - (start + (n + 1) // 20 - 1)
            assert 0 <= moved <= 62, "%s is moved by %.3f s" % (line.raw, moved)
    live = [(line.params[-1], line.tags["time"], line.tags["msgid"]) for line in shown(ann, *said)]
    page = [line for line in ask(ann, "CHATHISTORY LATEST #lobby * 500") if line.command == "PRIVMSG"]
    assert [(line.params[-1], line.tags["time"], line.tags["msgid"]) for line in page] == live, "times changed"


@on_wires(lambda wire: wire.name not in ("jwt-rooms", "directus"))
def a_burst_of_two_authors(setting):
    """Said as fast as the backend takes it: each line has a time of its own, in the room's order."""
    setting.start()
    ann, said = setting.irc("ann"), []
    at = int(time.time()) - 20
    for n in range(60):
        said.append("line %03d" % n)
        setting.backend.say(("Remy", "Wes")[n % 2], said[-1], at=at + (0, 3, 1, 0)[n % 4])
    ann.expect_text(said[-1])
    lines = shown(ann, *said)
    assert texts(lines) == said, differences(said, texts(lines))
    increasing(lines)


# MARK: - By timestamps, to every line


def mixed(now):
    """Moments of every kind: equal ones, older ones, and some that are too old to be raised."""
    return [
        now - 30, now - 30, now - 29.5, now - 30, now - 200, now - 30, now - 200, now - 3000, now - 29.5, now - 28, now - 200,
        now - 28, now - 30, now - 20, now - 3000, now - 20,
    ]


def each_once_by_times(client, said):
    """Leafing on and back by the times of what came, each message once, whatever the pages' length."""
    for limit in (1, 2, 5):
        found = page = ask(client, "CHATHISTORY LATEST #lobby * %d" % limit)
        while page:
            page = ask(client, "CHATHISTORY BEFORE #lobby timestamp=%s %d" % (page[0].tags["time"], limit))
            found = page + found
            assert len(found) < 4 * len(said) + 20, "it never ends: %r" % texts(found)[:20]
        got = [text for text in texts(found) if text in said]
        assert got == said, "BEFORE, %d at a time: %s" % (limit, differences(said, got))
        first = ask(client, "CHATHISTORY AFTER #lobby timestamp=1999-01-01T00:00:00.000Z %d" % limit)
        found = page = first
        while page:
            page = ask(client, "CHATHISTORY AFTER #lobby timestamp=%s %d" % (page[-1].tags["time"], limit))
            found = found + page
            assert len(found) < 4 * len(said) + 20, "it never ends: %r" % texts(found)[-20:]
        got = [text for text in texts(found) if text in said]
        assert got == said, "AFTER, %d at a time: %s" % (limit, differences(said, got))


@scenario
def chathistory_by_times_reaches_every_line(world):
    """"a client that continues from the `time` of a page's first or last message gets each message once, also with wrong clocks or
    several messages of one time" (docs/IRC.md), before and after `kill -9`, for present and absent clients; live lines, pages
    and both processes show one time for one msgid."""
    directory = folder(world)
    world.start(directory=directory)
    ann = world.irc("ann", caps=ASKING)
    lines, _ = burst(world, ann, mixed(int(time.time()) - 5))
    said, known = texts(lines), {line.tags["msgid"]: line.tags["time"] for line in lines}
    for turn in range(2):
        for client in (ann, world.irc("bob%d" % turn, caps=ASKING)):
            each_once_by_times(client, said)
            page = [line for line in ask(client, "CHATHISTORY LATEST #lobby * 100") if line.tags.get("msgid") in known]
            assert {line.tags["msgid"]: line.tags["time"] for line in page} == known, "times changed"
        if not turn:
            settle(ann, "kept")
            kill(world)
            world.start(directory=directory)
            ann = world.irc("ann", caps=ASKING)


@scenario
def targets_tell_the_time_that_the_newest_line_shows(world):
    """A client compares the time in CHATHISTORY TARGETS with that of the newest line that it has: live, and after a restart."""
    directory = folder(world)
    world.start(directory=directory)
    ann, start = world.irc("ann", caps=ASKING), int(time.time()) - 100
    lines, _ = burst(world, ann, [start, start + 1] + [start] * 5)
    wanted = ["#lobby", lines[-1].tags["time"]]

    def told(client):
        client.barrier()
        begin = client.cursor
        client.send("CHATHISTORY TARGETS timestamp=%s timestamp=2099-01-01T00:00:00.000Z 10" % lines[-2].tags["time"])
        client.barrier()
        return [line.params[-2:] for line in client.lines[begin:] if line.command == "CHATHISTORY"]

    assert told(ann) == [wanted], "%r instead of %r" % (told(ann), wanted)
    settle(ann, "kept")
    kill(world)
    world.start(directory=directory)
    ann = world.irc("ann", caps=ASKING)
    # The gap is newer than all that was said.
    assert [name for name, _ in told(ann)] == ["#lobby"], told(ann)


@scenario
def a_client_that_goes_on_by_the_time_of_its_last_line(world):
    """A lost connection: who asks for what came AFTER the time of their last live line gets all that came since, whatever the
    clocks of those who said it."""
    world.start()
    now = int(time.time()) - 5
    bob = world.irc("bob")
    moments = mixed(now)
    remy, said = world.person("carrier"), []
    for n, at in enumerate(moments):
        ann = world.irc("ann%d" % n, caps=ASKING)
        said.append("line %03d" % n)
        say_as(remy, "Remy", said[-1], at)
        last = ann.expect_text(said[-1]).tags["time"]
        ann.close()
        rest = ["rest %03d.%d" % (n, k) for k in range(3)]
        for k, text in enumerate(rest):
            say_as(remy, "Wes", text, moments[(n + k) % len(moments)])
        bob.expect_text(rest[-1])
        again = world.irc("ann-again%d" % n, caps=ASKING)
        got = texts(ask(again, "CHATHISTORY AFTER #lobby timestamp=%s 500" % last))
        assert [text for text in got if text in rest] == rest, "behind %r at %s: %r" % (said[-1], last, got)
        again.close()


@scenario
def markread_reaches_every_line(world):
    """"MARKREAD still reaches every line": a person who reads line by line, in the room's order, has in the end read each, for
    those who wrote them too; what is marked is kept over a restart, and reaches what comes then."""
    directory = folder(world)
    world.start(directory=directory, tables=with_alice())
    alice = log_in_as(world, "alice", "secret", "alice", "#lobby", caps=ASKING)
    now, ids = int(time.time()) - 5, []

    def read_everything(prefix):
        remy = world.person("carrier")
        for n, at in enumerate(mixed(now)):
            ids.append(say_as(remy, "Remy", "%s %03d" % (prefix, n), at))
            line = alice.expect_text("%s %03d" % (prefix, n))
            alice.send("MARKREAD #lobby timestamp=" + line.tags["time"])
            alice.barrier()
        wait_until(
            lambda: receipts(world) >= set(ids),
            lambda: "every line is read; unread: %r" % [n for n, one in enumerate(ids) if one not in receipts(world)], 30)

    read_everything("line")
    alice.barrier()
    kill(world)
    world.start(directory=directory, tables=with_alice())
    alice = log_in_as(world, "alice", "secret", "alice", "#lobby", caps=ASKING)
    read_everything("after the restart")


def receipts(world):
    with world.relay.lock:
        return {f["message_id"] for _, f in world.relay.from_bridge if f.get("event") == "readReceipt"}


@scenario
def markread_of_the_last_line_reads_what_is_before_it(world):
    """One MARKREAD with the time of the room's last line, which is too old to be raised: "the room's sequence alone orders", so
    it has been read as far as that line; asked from a page, before a restart and behind one."""
    directory = folder(world)
    world.start(directory=directory, tables=with_alice())
    for turn in range(2):
        alice = log_in_as(world, "alice", "secret", "alice", "#lobby", caps=ASKING)
        # Each that keeps its own time has another, so that a time names one line.
        moments = [at - turn / 4 - n for n, at in enumerate(mixed(int(time.time()) - 25)[:-1])]
        lines, ids = burst(world, alice, moments, names=("Remy",), prefix="turn %d" % turn)
        page = ask(alice, "CHATHISTORY LATEST #lobby * 50")
        last = [line for line in page if line.params[-1] == lines[-1].params[-1]][0]
        assert last.tags["time"] == lines[-1].tags["time"], (last.raw, lines[-1].raw)
        assert len([line for line in page if line.tags["time"] == last.tags["time"]]) == 1, last.raw
        alice.send("MARKREAD #lobby timestamp=" + last.tags["time"])
        wait_until(
            lambda: receipts(world) >= set(ids),
            lambda: "turn %d: every line is read; unread: %r" % (
                turn, [n for n, one in enumerate(ids) if one not in receipts(world)]))
        alice.barrier()
        if not turn:
            kill(world)
            world.start(directory=directory, tables=with_alice())


# MARK: - The relay's own clock

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile double *offset;
static int (*real)(clockid_t, struct timespec *);
__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("CLOCK_FILE"), O_RDONLY);
    offset = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    real = dlsym(RTLD_NEXT, "clock_gettime");
}
int clock_gettime(clockid_t which, struct timespec *at) {
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(which, at);
    if (!status && offset && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) at->tv_sec += (long)*offset;
    return status;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) { at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000; }
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def preloaded(directory, source):
    """The word for `env` that lays these functions over those of the C library."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "a C compiler (cc) makes the library, and there is none"
    path, library = os.path.join(directory, "shim.c"), os.path.join(directory, "shim.so")
    with open(path, "w", encoding="ascii") as file:
        file.write(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, path, "-ldl"], check=True, timeout=60)
    return "LD_PRELOAD=" + library


class WrongClock:
    """A relay whose time of day can be set wrong by whole seconds; its monotonic clock stays right."""

    def __init__(self, world):
        directory = folder(world)
        self.path = os.path.join(directory, "offset")
        self.set(0)
        self.wrapper = ("env", preloaded(directory, SHIM), "CLOCK_FILE=" + self.path)

    def set(self, offset):
        mode = "r+b" if os.path.exists(self.path) else "wb"
        with open(self.path, mode) as file:
            file.write(struct.pack("d", offset))


def jump(world, offset):
    clocks = WrongClock(world)
    world.start(wrapper=clocks.wrapper)
    ann, remy = world.irc("ann", caps=ASKING), world.person("Remy")
    said, behind = [], []

    def talk(name, is_right):
        for n in range(4):
            said.append("%s %d, by ann" % (name, n))
            ann.say("#lobby", said[-1])
            own = ann.expect_text(said[-1])
            if name == "wrong":
                assert abs(seconds(own.tags["time"]) - time.time() - offset) < 61, "the clock does not jump: " + own.raw
            before = time.time()
            said.append("%s %d, by Remy" % (name, n))
            remy.say(said[-1], sent_at=before)
            at = seconds(ann.expect_text(said[-1]).tags["time"])
            if is_right:
                behind.append((said[-1], round(at - before, 3)))

    talk("before", True)
    clocks.set(offset)
    talk("wrong", offset > 0)
    clocks.set(0)
    talk("after", True)
    raised = [one for one in behind if not -0.01 <= one[1] <= 0.5]
    assert not raised, "raised: %r" % raised
    each_once_by_times(world.irc("bob", caps=ASKING), said)
    lines = shown(ann, *said)
    assert texts(lines) == said, differences(said, texts(lines))


@scenario
def the_relays_clock_jumps_ahead_and_back(world):
    """"a jump of our own clock raises nobody": what IRC users said while it was an hour ahead bears that time, and nothing that
    is said behind it does."""
    jump(world, 3600)


@scenario
def the_relays_clock_jumps_back_and_ahead(world):
    jump(world, -3600)


@scenario
def a_restart_behind_a_clock_that_was_ahead(world):
    """The newest time that was shown is from the wrong clock, and the next process reads it from disk: it raises nobody."""
    clocks, directory = WrongClock(world), folder(world)
    world.start(wrapper=clocks.wrapper, directory=directory)
    clocks.set(86400)
    ann, remy = world.irc("ann"), world.person("Remy")
    ann.say("#lobby", "from tomorrow")
    assert seconds(ann.expect_text("from tomorrow").tags["time"]) > time.time() + 80000
    settle(ann, "kept")
    kill(world)
    clocks.set(0)
    world.start(wrapper=clocks.wrapper, directory=directory)
    ann = world.irc("ann", caps=ASKING)
    said = ["from tomorrow", "kept"]
    for n in range(5):
        before = time.time()
        said.append("today %d" % n)
        remy.say(said[-1], sent_at=before)
        at = seconds(ann.expect_text(said[-1]).tags["time"])
        assert -0.01 <= at - before <= 0.5, "raised by %.3f s" % (at - before)
    each_once_by_times(ann, said)
