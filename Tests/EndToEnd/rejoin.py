"""Automatic JOIN of accounts at log-in: without a JOIN, and no message is lost or repeated."""

from accounts import account
from peer import MODERN, wait_until
from restarts import MEMORY, folder, kill, log_in_as, settle
from retracting import kept
from world import scenario

ROOMS = ("lobby", "kitchen")


def tables(identity="", more=""):
    return "[identity]\n%s\n%s%s" % (identity, account("alice", "secret"), more)


def places(client, *wanted):
    """Where the first lines stand that `wanted` like, each a command and a word in its parameters."""
    found = []
    for command, word in wanted:
        at = [n for n, line in enumerate(client.lines) if line.command == command and word in line.params]
        assert at, "no %s %s" % (command, word)
        found.append(at[0])
    return found


def entered(client):
    """The rooms that the client was told it entered, in order."""
    client.barrier()
    own = [line for line in client.lines if line.command == "JOIN" and line.source.startswith(client.nick + "!")]
    return [line.params[0] for line in own]


@scenario
def who_enters_is_shown_the_last_lines(world):
    """`history_on_join`: behind the names, nothing twice on one connection; from memory, and from the disk of a relay that died."""
    # The gap that a death leaves is one line of the four.
    for storage, count in ((MEMORY, 3), ("", 4)):
        directory = folder(world)
        world.start(directory=directory, tables=storage, room_extra="history_on_join = %d" % count)
        ann, remy = world.irc("ann"), world.person("Remy")
        for n in range(5):
            remy.say("old %d" % n)
            ann.expect_text("old %d" % n)
        settle(ann, "five")
        if not storage:
            wait_until(lambda: "five" in kept(directory), "it is on disk with its place in the room")
            kill(world)
            world.start(directory=directory, room_extra="history_on_join = %d" % count)
        bob, carol = world.plain("bob", join=None), world.irc("carol", join=None)
        for client in (bob, carol):
            client.send("JOIN #lobby")
            client.expect("366")
            remy.say("live for " + client.nick)
            client.expect_text("live for " + client.nick)
        bob.expect_text("live for carol")
        said = [text.split("] ", 1) for text in bob.texts()]
        assert [text[-1] for text in said] == ["old 3", "old 4", "five", "live for bob", "live for carol"], said
        assert all(text[0].startswith("[") for text in said[:3]), said
        assert carol.texts() == ["old 4", "five", "live for bob", "live for carol"], carol.texts()
        opened = [line.params[1:] for line in carol.lines if line.command == "BATCH" and line.params[0].startswith("+")]
        assert opened == [["chathistory", "#lobby"]], opened
        bob.send("PART #lobby")
        bob.expect("PART")
        remy.say("meanwhile")
        carol.expect_text("meanwhile")
        bob.send("JOIN #lobby")
        remy.say("again")
        bob.expect_text("again")
        said = [text.rsplit("] ", 1)[-1] for text in bob.texts()]
        assert said[5:] == ["meanwhile", "again"], said
        world.bridge.terminate()
        remy.close()
    world.bridge = None


@scenario
def killed_and_back_in_the_rooms_with_what_was_missed(world):
    """The relay is killed; who logs in to the next is in the rooms, and gets what was said meanwhile behind the names, once
    and in order. A client that asks for history is sent nothing by itself, and gets the same when it asks."""
    directory = folder(world)
    world.start(rooms=ROOMS, directory=directory, tables=tables())
    bob, remy = world.irc("bob"), world.person("Remy")
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#kitchen", "#lobby")
    remy.say("heard")
    alice.expect_text("heard")
    alice.expect("PING", lambda line: line.params[-1].startswith("cb-"))
    alice.barrier()
    # The connection ends without a word.
    alice.close()
    missed = ["missed %d" % n for n in range(20)]
    for text in missed:
        remy.say(text)
        bob.expect_text(text)
    settle(bob, "kept")
    kill(world)
    world.start(rooms=ROOMS, directory=directory, tables=tables())

    alice = log_in_as(world, "alice@phone", "secret", "alice")
    for text in missed + ["kept"]:
        alice.expect_text(text)
    remy.say("live")
    alice.expect_text("live")
    assert entered(alice) == ["#kitchen", "#lobby"], entered(alice)
    assert alice.texts("Remy") == missed + ["live"], alice.texts("Remy")
    order = places(alice, ("JOIN", "#lobby"), ("MARKREAD", "#lobby"), ("366", "#lobby"), ("PRIVMSG", missed[0]))
    assert order == sorted(order), order
    # As clients do that keep their list of rooms.
    alice.send("JOIN #lobby", "JOIN #kitchen")
    assert entered(alice) == ["#kitchen", "#lobby"], entered(alice)
    assert alice.texts("Remy") == missed + ["live"], alice.texts("Remy")

    asking = list(MODERN) + ["draft/chathistory"]
    desk = log_in_as(world, "alice@desk", "secret", "alice", caps=asking)
    desk.expect("366", lambda line: line.params[1] == "#lobby")
    assert entered(desk) == ["#kitchen", "#lobby"], entered(desk)
    assert desk.texts("Remy") == [], desk.texts("Remy")
    desk.send("CHATHISTORY LATEST #lobby * 50")
    desk.expect_text("live")
    assert desk.texts("Remy") == ["heard"] + missed + ["live"], desk.texts("Remy")


@scenario
def left_rooms_stay_left(world):
    """PART counts, also when the relay is killed right behind the answer to a PING; QUIT does not."""
    directory = folder(world)
    world.start(rooms=ROOMS, directory=directory, tables=tables())
    alice = log_in_as(world, "alice", "secret", "alice", "#lobby", "#kitchen")
    alice.send("PART #lobby")
    alice.barrier()
    kill(world)
    world.start(rooms=ROOMS, directory=directory, tables=tables())
    alice = log_in_as(world, "alice", "secret", "alice")
    alice.expect("366", lambda line: line.params[1] == "#kitchen")
    assert entered(alice) == ["#kitchen"], entered(alice)
    alice.send("QUIT")
    alice.expect("ERROR")
    alice = log_in_as(world, "alice", "secret", "alice")
    alice.expect("366", lambda line: line.params[1] == "#kitchen")


@scenario
def who_left_a_room_enters_it_as_a_newcomer(world):
    """Behind a PART the account's place in the room is forgotten: on the next connection come the last lines, known or not."""
    world.start(tables=tables(), room_extra="history_on_join = 2")
    ann, remy = world.irc("ann"), world.person("Remy")
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    for text in "one", "two", "three":
        remy.say(text)
        alice.expect_text(text)
    alice.barrier()
    alice.send("PART #lobby", "QUIT")
    alice.expect("ERROR")
    remy.say("four")
    ann.expect_text("four")
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    remy.say("five")
    alice.expect_text("five")
    assert alice.texts("Remy") == ["three", "four", "five"], alice.texts("Remy")


@scenario
def in_memory_they_come_back_while_the_process_lives(world):
    directory = folder(world)
    world.start(rooms=ROOMS, directory=directory, tables=MEMORY + "\n" + tables())
    alice = log_in_as(world, "alice", "secret", "alice", "#kitchen")
    alice.send("QUIT")
    alice.expect("ERROR")
    alice = log_in_as(world, "alice", "secret", "alice")
    alice.expect("366", lambda line: line.params[1] == "#kitchen")
    alice.barrier()
    kill(world)
    world.start(rooms=ROOMS, directory=directory, tables=MEMORY + "\n" + tables())
    alice = log_in_as(world, "alice", "secret", "alice")
    assert entered(alice) == [], entered(alice)


@scenario
def who_does_not_want_it_is_in_no_room(world):
    """By the configuration, and by what the person says to the bridge, which is kept."""
    directory = folder(world)
    off, on = tables("rejoin = false"), tables("rejoin = true")
    world.start(rooms=ROOMS, directory=directory, tables=off)
    alice = log_in_as(world, "alice", "secret", "alice", "#kitchen")
    alice.barrier()
    kill(world)
    world.start(rooms=ROOMS, directory=directory, tables=off)
    alice = log_in_as(world, "alice", "secret", "alice")
    assert entered(alice) == [], entered(alice)
    alice.join("#lobby")
    alice.send("PRIVMSG *bridge :rejoin on")
    alice.barrier()
    kill(world)
    world.start(rooms=ROOMS, directory=directory, tables=off)
    alice = log_in_as(world, "alice", "secret", "alice")
    alice.expect("366", lambda line: line.params[1] == "#lobby")
    alice.send("PRIVMSG *bridge :rejoin off")
    alice.barrier()
    kill(world)
    world.start(rooms=ROOMS, directory=directory, tables=on)
    alice = log_in_as(world, "alice", "secret", "alice")
    assert entered(alice) == [], entered(alice)


@scenario
def rooms_of_the_template_come_back(world):
    """Rooms that were opened by joining them are opened again by whoever was in them."""
    directory = folder(world)
    wild = '[[rooms]]\nname = "*"\nurl = "%s"\ndialect = "envelope"\n' % world.relay.url("{room}")
    world.start(directory=directory, tables=tables() + wild)
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#attic")
    remy = world.person("Remy", "attic")
    world.relay.wait_for_bridge("attic")
    remy.say("up here")
    alice.expect_text("up here")
    alice.barrier()
    kill(world)
    world.start(directory=directory, tables=tables() + wild)
    alice = log_in_as(world, "alice@phone", "secret", "alice")
    alice.expect("366", lambda line: line.params[1] == "#attic")
    world.relay.wait_for_bridge("attic")
    remy.say("still here")
    alice.expect_text("still here")
    assert alice.texts("Remy").count("still here") == 1
