"""The relay ends in every possible way and restarts: messages and identities are restored."""

import glob
import os
import shutil
import signal
import sqlite3
import tempfile
import time

from accounts import account, log_in
from peer import MODERN, PATIENCE, wait_until
from world import scenario

MEMORY = '[storage]\nurl = "memory:"'


def folder(world):
    """Outlasts the relays of one scenario."""
    path = tempfile.mkdtemp(prefix="chatbridge-")
    world.stack.callback(shutil.rmtree, path, True)
    return path


def database(directory):
    return os.path.join(directory, "state", "chatbridge.db")


def kill(world):
    """The relay has no chance to do anything more."""
    world.bridge.process.kill()
    world.bridge.process.wait()
    wait_until(lambda: not world.relay.bridges(), "the old link is gone")


def settle(client, text):
    """Says something and waits until it is accepted: then everything that the relay had to keep before it is kept."""
    client.say("#lobby", text)
    client.barrier()


def settle_and_see(client, text):
    """The same for a client with echo-message, which sees what it said. Its line may come before or after the PONG of a
    barrier that is sent with it."""
    client.say("#lobby", text)
    line = client.expect_text(text)
    client.barrier()
    return line


def cannot_start(world, **options):
    """What a relay says that does not start."""
    try:
        world.start(linked=False, **options)
    except AssertionError as error:
        assert "ended with 69" in str(error), error
        return str(error)
    raise AssertionError("it started")


def log_in_as(world, name, password, nick, *channels, caps=MODERN):
    link = log_in(world, name, password, nick, "sasl " + " ".join(caps))
    link.expect("903")
    link.send("CAP END")
    link.expect("001")
    for channel in channels:
        link.join(channel)
    return link


def with_alice():
    return "[identity]\n" + account("alice", "secret")


# MARK: - Up


@scenario
def killed_with_messages_queued(world):
    """The backend is away, the relay takes what is said and is killed: the next one sends it, once and in order."""
    directory = folder(world)
    world.start(directory=directory)
    ann, remy = world.irc("ann"), world.person("Remy")
    ann.say("#lobby", "before")
    author = remy.expect_message("before")["sender_id"]
    ann.expect_text("before", "PRIVMSG")
    world.relay.hold_handshakes()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    texts = ["kept %d" % n for n in range(20)]
    for text in texts:
        ann.say("#lobby", text)
    ann.barrier()
    kill(world)
    world.relay.release_handshakes()
    world.start(directory=directory)
    for text in texts:
        assert remy.expect_message(text)["sender_id"] == author, "ann became somebody else"
    bob = world.irc("bob")
    settle(bob, "end")
    remy.expect_message("end")
    sent = [f for f in world.relay.messages_from_bridge() if f["body"].startswith("kept")]
    assert [f["body"] for f in sent] == texts, "sent as %r" % [f["body"] for f in sent]
    assert remy.bodies() == ["before"] + texts + ["end"], remy.bodies()


@scenario
def killed_before_the_backend_confirmed(world):
    """What may have arrived goes again with the same id: apps know that it is the same message."""
    directory = folder(world)
    world.start(directory=directory)
    ann, remy = world.irc("ann"), world.person("Remy")
    world.relay.swallow = True
    texts = ["swallowed %d" % n for n in range(3)]
    for text in texts:
        ann.say("#lobby", text)
    wait_until(lambda: len(world.relay.swallowed) >= 3, "the backend has all three")
    ann.barrier()
    kill(world)
    world.relay.swallow = False
    world.start(directory=directory)
    for text in texts:
        remy.expect_message(text)
    ids = [f["message_id"] for f in world.relay.messages_from_bridge() if f["body"] in texts]
    assert ids[:3] == ids[3:] and len(set(ids)) == 3, ids


@scenario
def killed_after_the_backend_confirmed(world):
    """What has certainly arrived is not sent again."""
    directory = folder(world)
    world.start(directory=directory)
    ann, remy = world.irc("ann"), world.person("Remy")
    texts = ["arrived %d" % n for n in range(5)]
    for text in texts:
        ann.say("#lobby", text)
        ann.expect_text(text)
    # Accepted after those were seen confirmed, so that is on disk too.
    settle(ann, "last")
    remy.expect_message("last")
    kill(world)
    world.start(directory=directory)
    remy.say("hello")
    world.irc("bob")
    settle(world.irc("eve"), "end")
    remy.expect_message("end")
    sent = [f["body"] for f in world.relay.messages_from_bridge() if f["body"] in texts]
    assert sent == texts, sent


@scenario
def five_kills_in_the_middle_of_talk(world):
    """Everything that was accepted is upstream once and in order; what came after the last PONG may be, or not."""
    directory = folder(world)
    remy = world.person("Remy")
    accepted, said = [], []
    for turn in range(5):
        world.start(directory=directory)
        ann = world.irc("ann")
        for n in range(30):
            said.append("turn %d message %d" % (turn, n))
            ann.say("#lobby", said[-1])
        ann.barrier()
        accepted += said[-30:]
        for n in range(30):
            said.append("turn %d message %d, perhaps" % (turn, n))
            ann.say("#lobby", said[-1])
        kill(world)
    world.start(directory=directory)
    settle(world.irc("ann"), "end")
    remy.expect_message("end")
    arrived = remy.bodies("ann")
    assert arrived[-1] == "end"
    arrived.pop()
    assert len(set(arrived)) == len(arrived), "doubled"
    missing = [text for text in accepted if text not in set(arrived)]
    assert not missing, "%d accepted ones are lost, the first is %r" % (len(missing), missing[0])
    order = [said.index(text) for text in arrived]
    assert order == sorted(order), "out of order"
    return "%d accepted, %d of %d others arrived" % (
        len(accepted), len(arrived) - len(accepted), len(said) - len(accepted))


@scenario
def stopped_in_order_while_the_backend_is_away(world):
    directory = folder(world)
    world.start(directory=directory, server_extra='drain = "1s"')
    ann, remy = world.irc("ann"), world.person("Remy")
    world.relay.hold_handshakes()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    ann.say("#lobby", "for later")
    ann.barrier()
    status = world.bridge.terminate()
    assert status == 0, "exit status %r" % status
    world.relay.release_handshakes()
    world.start(directory=directory)
    remy.expect_message("for later")
    assert remy.bodies() == ["for later"]


@scenario
def stopped_in_order_right_after_a_line(world):
    """Who answers in time gets nothing again; who hangs keeps nobody waiting for long, and gets it again."""
    directory = folder(world)
    world.start(directory=directory, tables=with_alice())
    remy = world.person("Remy")
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    hangs = log_in_as(world, "alice@desk", "secret", "alice", "#lobby")
    remy.say("heard")
    alice.expect_text("heard")
    hangs.expect_text("heard")
    began = time.monotonic()
    world.bridge.process.send_signal(signal.SIGTERM)
    alice.wait_closed()
    status = world.bridge.process.wait(PATIENCE)
    assert status == 0, "exit status %r" % status
    took = time.monotonic() - began
    assert took >= 2, "the client that hangs was given no time"
    world.start(directory=directory, tables=with_alice())
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    hangs = log_in_as(world, "alice@desk", "secret", "alice", "#lobby")
    remy.say("live")
    alice.expect_text("live")
    hangs.expect_text("live")
    assert alice.texts("Remy") == ["live"], alice.texts("Remy")
    assert hangs.texts("Remy") == ["heard", "live"], hangs.texts("Remy")
    return "stopped in %.1f s" % took


@scenario
def memory_keeps_nothing(world):
    directory = folder(world)
    world.start(directory=directory, tables=MEMORY)
    ann = world.irc("ann")
    world.relay.hold_handshakes()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    settle(ann, "gone with the process")
    kill(world)
    world.relay.release_handshakes()
    world.start(directory=directory, tables=MEMORY)
    remy = world.person("Remy")
    settle(world.irc("bob"), "end")
    remy.expect_message("end")
    assert remy.bodies() == ["end"], remy.bodies()
    assert sorted(os.listdir(os.path.join(directory, "state"))) == ["admin.sock", "instance-id"]


# MARK: - Down, and who is who


@scenario
def nick_numbers_are_kept(world):
    """Two people of one name: whoever was the second one stays it, also when they are the first to speak."""
    directory = folder(world)
    world.start(directory=directory)
    ann = world.irc("ann")
    people = [world.person("Remy"), world.person("Remy")]
    nicks = []
    for number, person in enumerate(people):
        person.say("I am %d" % number)
        nicks.append(ann.expect_text("I am %d" % number).source.split("!")[0])
    assert nicks[0] != nicks[1], nicks
    settle(ann, "kept")
    kill(world)
    world.start(directory=directory)
    ann = world.irc("ann")
    for number in (1, 0):
        people[number].say("still %d" % number)
        nick = ann.expect_text("still %d" % number).source.split("!")[0]
        assert nick == nicks[number], "%s is %s now" % (nicks[number], nick)


@scenario
def nicks_that_a_new_casemapping_makes_one(world):
    """One of the two people upstream keeps the nick, and the other gets another one."""
    directory = folder(world)
    people = [world.person("Remy[1]"), world.person("Remy{1}")]
    for casemapping, kept in (("ascii", 2), ("rfc1459", 1)):
        world.start(directory=directory, server_extra='casemapping = "%s"' % casemapping)
        ann = world.irc("ann")
        nicks = []
        for number, person in enumerate(people):
            person.say("%d, %s" % (number, casemapping))
            nicks.append(ann.expect_text("%d, %s" % (number, casemapping)).source.split("!")[0])
        assert [nick == person.name for nick, person in zip(nicks, people)].count(True) == kept, nicks
        settle(ann, "kept")
        kill(world)
    world.bridge = None
    assert len({nick.replace("[", "{").replace("]", "}") for nick in nicks}) == 2, nicks


@scenario
def a_message_that_comes_again_is_shown_once(world):
    """The backend says after the restart what it said before it, with the same id."""
    directory = folder(world)
    world.start(directory=directory)
    ann, remy = world.irc("ann"), world.person("Remy")
    message_id = remy.say("only once")
    ann.expect_text("only once")
    settle(ann, "kept")
    kill(world)
    world.start(directory=directory)
    ann = world.irc("ann")
    remy.say("only once", message_id=message_id)
    remy.say("new")
    ann.expect_text("new")
    assert ann.texts("Remy") == ["new"], ann.texts("Remy")


@scenario
def a_read_marker_is_kept(world):
    directory = folder(world)
    world.start(directory=directory, tables=with_alice())
    alice, remy = log_in_as(world, "alice", "secret", "alice", "#lobby"), world.person("Remy")
    remy.say("read me")
    at = alice.expect_text("read me").tags["time"]
    alice.send("MARKREAD #lobby timestamp=" + at)
    alice.expect("MARKREAD", lambda line: line.params[-1] == "timestamp=" + at)
    settle(alice, "kept")
    kill(world)
    world.start(directory=directory, tables=with_alice())
    alice = log_in_as(world, "alice", "secret", "alice")
    alice.send("JOIN #lobby")
    marker = alice.expect("MARKREAD", lambda line: line.params[0] == "#lobby")
    assert marker.params[-1] == "timestamp=" + at, marker.raw


@scenario
def what_was_said_while_a_client_was_away_comes_after_a_restart(world):
    """Said before the kill, seen after it: with the old msgid, time and author, once, and nothing that it had."""
    directory = folder(world)
    world.start(directory=directory, tables=with_alice())
    bob, remy = world.irc("bob"), world.person("Remy")
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    remy.say("heard")
    alice.expect_text("heard")
    # The relay asks whether she has it; her next PONG is in front of this one of its.
    alice.expect("PING", lambda line: line.params[-1].startswith("cb-"))
    alice.barrier()
    alice.send("QUIT")
    alice.expect("ERROR")
    remy.say("missed by alice")
    missed = bob.expect_text("missed by alice")
    settle_and_see(bob, "bob said so too")
    settle(bob, "kept")
    kill(world)
    world.start(directory=directory, tables=with_alice())
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    again = alice.expect_text("missed by alice")
    assert again.tags["msgid"] == missed.tags["msgid"], (again.raw, missed.raw)
    assert again.tags["time"] == missed.tags["time"], (again.raw, missed.raw)
    assert again.source == missed.source, (again.raw, missed.raw)
    alice.expect_text("bob said so too")
    remy.say("live")
    alice.expect_text("live")
    assert alice.texts("Remy") == ["missed by alice", "live"], alice.texts("Remy")
    joined = next(n for n, line in enumerate(alice.lines) if line.command == "366")
    assert all(n > joined for n, line in enumerate(alice.lines) if line.command == "PRIVMSG"), "before the JOIN's end"


@scenario
def a_gap_is_told_where_nothing_can_be_fetched(world):
    """The backend keeps no history: the room is told that something may be missing, once."""
    directory = folder(world)
    world.start(directory=directory, tables=with_alice())
    remy = world.person("Remy")
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    remy.say("before")
    alice.expect_text("before")
    settle(alice, "kept")
    kill(world)
    remy.say("into the void")
    world.start(directory=directory, tables=with_alice())
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    gap = alice.expect("NOTICE", lambda line: "is missing" in line.params[-1])
    assert "chatbridge/gap" in gap.tags, gap.raw
    remy.say("after")
    alice.expect_text("after")
    told = [text for text in alice.texts(command="NOTICE") if "is missing" in text]
    assert len(told) == 1, told


# MARK: - The file


@scenario
def a_damaged_database_is_set_aside(world):
    directory = folder(world)
    world.start(directory=directory)
    settle(world.irc("ann"), "kept")
    assert world.bridge.terminate() == 0
    wait_until(lambda: not world.relay.bridges(), "the old link is gone")
    for path in glob.glob(database(directory) + "-*"):
        os.unlink(path)
    garbage = os.urandom(100_000)
    with open(database(directory), "wb") as file:
        file.write(garbage)
    world.start(directory=directory)
    entries = world.bridge.log_entries("store-damaged")
    assert len(entries) == 1 and entries[0]["level"] == "error", entries
    with open(entries[0]["moved-to"], "rb") as file:
        assert file.read() == garbage, "what was set aside is not what was there"
    ann, remy = world.irc("ann"), world.person("Remy")
    settle(ann, "a new beginning")
    remy.expect_message("a new beginning")


@scenario
def a_database_of_a_newer_version_is_refused(world):
    directory = folder(world)
    world.start(directory=directory)
    settle(world.irc("ann"), "kept")
    assert world.bridge.terminate() == 0
    with sqlite3.connect(database(directory)) as file:
        (known,) = file.execute("PRAGMA user_version").fetchone()
        file.execute("PRAGMA user_version = %d" % (known + 1))
    file.close()
    said = cannot_start(world, directory=directory)
    assert "is of version %d, and this program knows versions up to %d" % (known + 1, known) in said, said
    with sqlite3.connect(database(directory)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (known + 1,)
        file.execute("PRAGMA user_version = %d" % known)
    file.close()
    world.start(directory=directory)


@scenario
def two_relays_on_one_file(world):
    directory = folder(world)
    first = world.start(directory=directory)
    ann, remy = world.irc("ann"), world.person("Remy")
    said = cannot_start(world, directory=directory)
    assert "in use by another process" in said, said
    world.bridge = first
    settle(ann, "undisturbed")
    remy.expect_message("undisturbed")


@scenario
def a_state_folder_that_cannot_be(world):
    directory = folder(world)
    with open(os.path.join(directory, "state"), "w", encoding="ascii") as file:
        file.write("not a folder")
    said = cannot_start(world, directory=directory)
    assert "is not writable (Not a directory)" in said and "memory:" in said, said
    # Where nothing is to be kept that is no reason not to start.
    world.start(directory=directory, tables=MEMORY)
    assert world.bridge.log_entries("instance-id-not-kept")
