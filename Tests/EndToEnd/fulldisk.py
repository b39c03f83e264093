"""A full disk, from the start or later: relaying continues, and no accepted message is lost."""

import contextlib
import http.client
import os
import re
import resource
import sqlite3
import subprocess

from history import ASKING, ask, texts
from peer import BINARY_PATH, wait_until
from restarts import database, folder, kill, log_in_as, settle, settle_and_see, with_alice
from world import scenario

DUMP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "StoreTests", "Dumps", "v3.sql")


def readiness(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def fill_disk(process):
    """A limit for each file instead of a disk that is full: the kernel's answer differs, what it means does not.

    Smaller than an empty database, so that what is in its log cannot be moved into it to make room; and larger than what
    is logged, for which it counts too.
    """
    _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (24 * 1024, hard))


def empty_disk(process):
    _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (hard, hard))


@scenario
def stopped_in_order_while_nothing_can_be_kept(world):
    """The exit status and the log say that the end was not a good one."""
    world.start(log_extra='level = "info"', server_extra='drain = "1s"')
    ann = world.irc("ann")
    fill_disk(world.bridge.process.pid)
    while not world.bridge.log_entries("store-failing"):
        for _ in range(50):
            ann.say("#lobby", "x" * 300)
        ann.barrier()
        world.bridge.check_alive()
        assert len(ann.lines) < 20_000, "everything is kept on a disk that is full"
    status = world.bridge.terminate()
    assert status == 74, "exit status %r" % status
    (entry,) = world.bridge.log_entries("store-incomplete")
    assert entry["level"] == "error" and "may not be stored" in entry["msg"], entry
    world.bridge = None


def talk_until_refused(world, client):
    """Says more and more until the relay says that it cannot be kept; answers what was said, and the numbers of what was
    refused."""
    said, refused = [], set()
    while not refused:
        assert len(said) < 5000, "5000 messages were accepted on a disk that is full"
        talk(client, 50, said, refused)
        world.bridge.check_alive()
    return said, refused


def talk(client, count, said, refused):
    for _ in range(count):
        said.append("m%05d %s" % (len(said), "x" * 300))
        client.say("#lobby", said[-1])
    client.barrier()
    for line in client.lines:
        if line.command == "FAIL" and "CANNOT_STORE" in line.params:
            refused.update(int(number) for number in re.findall(r"m(\d{5})", line.params[-1]))


def http_port(world):
    (entry,) = wait_until(lambda: world.bridge.log_entries("listening-http"), "HTTP is served")
    return int(entry["address"].rsplit(":")[-1])


@scenario
def a_full_disk(world):
    """Relaying goes on, what cannot be kept is refused aloud, and all is well again when there is room."""
    world.start(tables='[[http]]\nbind = "http://127.0.0.1:0"', log_extra='level = "info"')
    port = http_port(world)
    ann, remy = world.irc("ann"), world.person("Remy")
    settle(ann, "before")
    remy.expect_message("before")
    assert readiness(port)[0] == 200, readiness(port)

    process = world.bridge.process.pid
    fill_disk(process)
    said, refused = talk_until_refused(world, ann)
    status, body = readiness(port)
    assert status == 503 and "storage: " in body, body
    remy.say("still relaying")
    ann.expect_text("still relaying")
    told = [line for line in ann.lines if line.command == "NOTICE" and "cannot be stored" in line.params[-1]]
    assert len(told) == 1, "told %d times that nothing is kept" % len(told)

    empty_disk(process)
    wait_until(lambda: readiness(port)[0] == 200, lambda: "ready again: %s" % readiness(port)[1])
    before = set(refused)
    talk(ann, 20, said, refused)
    assert refused == before, "refused on a disk with room: %r" % sorted(refused - before)
    settle(ann, "end")
    remy.expect_message("end")
    wanted = ["before"] + [text for number, text in enumerate(said) if number not in refused] + ["end"]
    got = remy.bodies("ann")
    assert got == wanted, "%d arrived, %d were accepted" % (len(got), len(wanted))
    log = world.bridge.log()
    assert '"event":"store-failing"' in log and '"event":"store-sound"' in log
    return "%d of %d refused" % (len(refused), len(said))


@scenario
def pages_while_the_disk_is_full(world):
    """What was shown belongs to pages at once, and to who comes back; and it stays so, with room and over a restart."""
    options = dict(
        directory=folder(world), tables=with_alice() + '\n[[http]]\nbind = "http://127.0.0.1:0"',
        log_extra='level = "info"')
    world.start(**options)
    port = http_port(world)
    ann, remy = world.irc("ann", caps=ASKING), world.person("Remy")
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    settle_and_see(ann, "before")
    alice.expect_text("before")
    alice.barrier()
    alice.close()

    fill_disk(world.bridge.process.pid)
    said, shown = ["m%d" % n for n in range(12)], {}
    for text in said:
        remy.say(text)
        shown[text] = ann.expect_text(text).tags
    wait_until(lambda: readiness(port)[0] == 503, lambda: "failing: %s" % readiness(port)[1])

    def pages(client):
        def page(line):
            return [(line.tags["msgid"], line.tags["time"], line.params[-1]) for line in ask(client, line)]

        def around(reference):
            return [
                page("CHATHISTORY %s #lobby %s %d" % (question, reference, limit))
                for question, limit in (("AFTER", 3), ("BEFORE", 5), ("AROUND", 5), ("LATEST", 4))]

        return [around(name + "=" + shown["m5"][tag]) for name, tag in (("msgid", "msgid"), ("timestamp", "time"))] + [
            page("CHATHISTORY LATEST #lobby * 12"),
            page("CHATHISTORY BETWEEN #lobby msgid=%s msgid=%s 50" % (shown["m2"]["msgid"], shown["m9"]["msgid"])),
            page("SEARCH in=#lobby;text=m1")]

    def words(found):
        return [words(page) if isinstance(page[0], list) else [row[-1] for row in page] for page in found]

    full = pages(ann)
    by_place = [said[6:9], said[:5], said[3:8], said[8:]]
    assert words(full) == [by_place, by_place, said, said[3:9], ["m1", "m10", "m11"]], words(full)
    # Who does not ask is told all the same.
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    alice.expect_text(said[-1])
    assert alice.texts("Remy") == said, alice.texts("Remy")
    alice.close()

    empty_disk(world.bridge.process.pid)
    wait_until(lambda: readiness(port)[0] == 200, lambda: "ready again: %s" % readiness(port)[1])
    assert pages(ann)[:2] == full[:2], "other pages with room"
    kill(world)
    world.start(**options)
    ann = world.irc("ann", caps=ASKING)
    # The newest is a gap now: nobody listened during the restart.
    assert [found[:3] for found in pages(ann)[:2]] == [found[:3] for found in full[:2]], "other pages after a restart"


def starts_on_a_full_disk(world, end):
    """What was accepted before is sent, what cannot be kept is refused aloud, and all is well again when there is room."""
    directory = folder(world)
    options = dict(
        directory=directory, tables='[[http]]\nbind = "http://127.0.0.1:0"', log_extra='level = "info"',
        server_extra='drain = "1s"')
    world.start(**options)
    ann, remy = world.irc("ann"), world.person("Remy")
    settle_and_see(ann, "before")
    world.relay.hold_handshakes()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    settle(ann, "accepted")
    end(world)
    world.relay.release_handshakes()

    # As fill_disk, from the first moment.
    world.start(wrapper=("prlimit", "--fsize=%d:unlimited" % (24 * 1024)), **options)
    (entry,) = world.bridge.log_entries("store-alone")
    assert entry["level"] == "warn", entry
    port = http_port(world)
    remy.expect_message("accepted")
    ann = world.irc("ann", caps=ASKING)
    # What is on disk, and what waits for room.
    known = texts(ask(ann, "CHATHISTORY LATEST #lobby * 10"))
    assert known[0] == "before" and known[1].startswith("*** What was said between") and known[2:] == ["accepted"], known
    status, body = wait_until(lambda: readiness(port) if readiness(port)[0] == 503 else None, "it says what is full")
    assert "storage: " in body, body
    said, refused = talk_until_refused(world, ann)
    remy.say("still relaying")
    ann.expect_text("still relaying")

    empty_disk(world.bridge.process.pid)
    wait_until(lambda: readiness(port)[0] == 200, lambda: "ready again: %s" % readiness(port)[1])
    known = texts(ask(ann, "CHATHISTORY AFTER #lobby timestamp=2001-01-01T00:00:00.000Z 3"))
    assert known[0] == "before" and known[1].startswith("*** What was said between") and known[2] == "accepted", known
    settle(ann, "end")
    remy.expect_message("end")
    wanted = ["before", "accepted"] + [text for number, text in enumerate(said) if number not in refused] + ["end"]
    assert remy.bodies("ann") == wanted, remy.bodies("ann")
    status = world.bridge.terminate()
    assert status == 0, "exit status %r" % status

    world.start(**options)
    assert not world.bridge.log_entries("store-alone")
    ann = world.irc("ann", caps=ASKING)
    known = texts(ask(ann, "CHATHISTORY LATEST #lobby * 3"))
    assert known[:2] == ["still relaying", "end"] and known[2].startswith("*** "), known
    settle(ann, "once more")
    remy.expect_message("once more")
    assert remy.bodies("ann") == wanted + ["once more"], remy.bodies("ann")


@scenario
def a_disk_that_is_full_when_a_relay_starts_that_was_stopped(world):
    def stop(world):
        assert world.bridge.terminate() == 0

    starts_on_a_full_disk(world, stop)


@scenario
def a_disk_that_is_full_when_a_relay_starts_that_was_killed(world):
    starts_on_a_full_disk(world, kill)


@scenario
def an_older_database_waits_for_room(world):
    """On a full disk it is neither migrated nor changed, and the relay does not start; with room it is, and whole."""
    directory = folder(world)
    world.start(directory=directory)
    assert world.bridge.terminate() == 0
    os.remove(database(directory))
    with contextlib.closing(sqlite3.connect(database(directory))) as file, open(DUMP, encoding="utf-8") as dump:
        file.executescript(dump.read())

    def version():
        with contextlib.closing(sqlite3.connect(database(directory))) as file:
            return file.execute("PRAGMA user_version").fetchone()[0]

    started = subprocess.run(
        ["prlimit", "--fsize=%d:unlimited" % (24 * 1024), BINARY_PATH, "run", "--config", world.bridge.config_path],
        stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert started.returncode == 69 and "cannot be opened" in started.stderr and version() == 3, started
    world.start(directory=directory)
    assert version() > 3
    remy, ann = world.person("Remy"), world.irc("ann")
    settle(ann, "as before")
    remy.expect_message("as before")
