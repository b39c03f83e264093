"""The last lines of a room at the JOIN of a client without an account and without `draft/chathistory`, once."""

import contextlib
import re
import time

from accounts import account
from backends import on
from peer import MODERN, wait_until
from restarts import MEMORY, folder, kill, log_in_as, settle
from service import ask as ask_service
from world import scenario

DEFAULT = 20
OLD = re.compile(r"^\[\d\d:\d\d\] ")

# Without this, scenarios have `history_on_join = 0`.
USUAL = "\n[room_defaults]\n"


def said_before(world, count, name="m", room="lobby", sent_at=None):
    """So many messages, which somebody has seen."""
    remy, witness = world.person("Remy", room), world.irc("witness", join="#" + room)
    for number in range(count):
        remy.say("%s%d" % (name, number), sent_at=sent_at and sent_at + number)
    witness.expect_text("%s%d" % (name, count - 1))
    witness.send("QUIT")
    witness.wait_closed()
    return remy


def words(client, begin=0, channel="#lobby"):
    """What was said in a room, in the order in which it came, without what is put in front of it."""
    client.barrier()
    return [
        re.sub(r"^(\[\d\d:\d\d\] )?(<[^>]+> )?", "", line.params[-1]) for line in client.lines[begin:]
        if line.command == "PRIVMSG" and line.params[0] == channel]


def is_shown(client, wanted, begin=0, channel="#lobby"):
    """This and nothing else, and it stays at that."""
    found = []

    def all_there():
        found[:] = words(client, begin, channel)
        return len(found) >= len(wanted)

    with contextlib.suppress(AssertionError):
        wait_until(all_there, "the last lines", patience=5)
    client.barrier()
    assert words(client, begin, channel) == wanted, "shown %r instead of %r" % (words(client, begin, channel), wanted)


def place(client, accept):
    return next(number for number, line in enumerate(client.lines) if accept(line))


@scenario
def a_plain_client_gets_the_last_lines_behind_the_names(world):
    world.start(tables=USUAL)
    remy = said_before(world, 25)
    guest = world.plain("guest")
    wanted = ["m%d" % number for number in range(25 - DEFAULT, 25)]
    is_shown(guest, wanted)
    names = place(guest, lambda line: line.command == "366")
    for number, line in enumerate(guest.lines):
        if line.command == "PRIVMSG":
            assert number > names, "before the names: " + line.raw
            assert OLD.match(line.params[-1]), "no old time in front: " + line.raw
            assert line.source.startswith("Remy!") or "<Remy> " in line.params[-1], line.raw
    remy.say("live")
    line = guest.expect("PRIVMSG", lambda line: line.params[-1] == "live")
    assert line.source.startswith("Remy!"), line.raw
    is_shown(guest, wanted + ["live"])


@scenario
def a_modern_client_gets_a_batch_with_the_old_times(world):
    world.start(tables=USUAL)
    began = int(time.time()) - 3600
    said_before(world, 5, sent_at=began)
    guest = world.irc("guest")
    is_shown(guest, ["m%d" % number for number in range(5)])
    batch = next(line for line in guest.lines if line.command == "BATCH" and line.params[0].startswith("+"))
    assert batch.params[1:] == ["chathistory", "#lobby"], batch.raw
    inside = [line for line in guest.lines if line.command == "PRIVMSG"]
    assert {line.tags.get("batch") for line in inside} == {batch.params[0][1:]}, [line.raw for line in inside]
    for number, line in enumerate(inside):
        assert line.params[-1] == "m%d" % number and line.source.startswith("Remy!") and line.tags.get("msgid"), line.raw
        wanted = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(began + number))
        assert line.tags["time"].startswith(wanted), line.raw


@scenario
def whoever_asks_for_history_is_sent_none(world):
    """A client with `draft/chathistory` fetches for itself, with and without an account."""
    world.start(server_extra="[identity]\n" + account("alice", "secret"), tables=USUAL)
    remy = said_before(world, 5)
    asking = world.irc("asking", caps=MODERN + ["draft/chathistory"])
    alice = log_in_as(world, "alice", "secret", "alice", "#lobby", caps=MODERN + ["draft/chathistory"])
    remy.say("live")
    for client in (asking, alice):
        client.expect_text("live")
        is_shown(client, ["live"])


@scenario
def nothing_is_shown_twice_on_one_connection(world):
    """Whoever leaves and comes again gets what was said meanwhile, and nothing that they were shown."""
    world.start(rooms=("lobby", "attic"), tables=USUAL)
    remy = said_before(world, 6)
    for guest in (world.plain("pat"), world.irc("max")):
        begin = "%s " % guest.nick
        if guest.nick == "pat":
            is_shown(guest, ["m%d" % number for number in range(6)])
        remy.say(begin + "live")
        guest.expect_text(begin + "live")
        guest.say("#lobby", begin + "own")
        remy.expect_message(begin + "own")
        guest.barrier()
        for turn in range(2):
            guest.send("PART #lobby")
            guest.expect("PART")
            witness = world.irc("w%s%d" % (guest.nick, turn))
            remy.say(begin + "meanwhile %d" % turn)
            witness.expect("PRIVMSG", lambda line: line.params[-1] == begin + "meanwhile %d" % turn)
            at = len(guest.lines)
            guest.join("#lobby")
            is_shown(guest, [begin + "meanwhile %d" % turn], at)
            witness.send("QUIT")
            witness.wait_closed()
        seen = [text for text in words(guest) if text != begin + "own"]
        assert len(seen) == len(set(seen)), seen
        # NAMES, a second JOIN of the same room, and another nick show nothing either.
        at = len(guest.lines)
        guest.send("JOIN #lobby", "NICK %s2" % guest.nick, "NAMES #lobby")
        is_shown(guest, [], at)


@scenario
def what_is_said_while_somebody_enters_comes_once_and_in_order(world):
    """Live lines and last lines meet without gap, double or change of order."""
    world.start(tables=USUAL)
    remy = said_before(world, 30)
    for turn in range(6):
        guest = world.plain("g%d" % turn, join=None) if turn % 2 else world.irc("g%d" % turn, join=None)
        for number in range(30):
            remy.say("t%d.%d" % (turn, number))
            if number == 10:
                guest.send("JOIN #lobby")
        remy.say("end %d" % turn)
        guest.expect("PRIVMSG", lambda line: line.params[-1].endswith("end %d" % turn))
        mine = [text for text in words(guest) if text.startswith("t%d." % turn)]
        first = int(mine[0].split(".")[1])
        assert mine == ["t%d.%d" % (turn, number) for number in range(first, 30)], mine
        # Whoever enters behind the last of them gets the twenty newest, the one that ends it among them.
        assert first <= 11, "from %d on" % first


@scenario
def a_room_may_say_how_many(world):
    """`history_on_join` of the room, `0` for none; and what the configuration says of none is an error."""
    from claims import check

    world.start(rooms=("lobby",), room_extra="history_on_join = 3", tables=(
        '[[rooms]]\nname = "quiet"\nurl = "%s"\nhistory_on_join = 0\n' % world.relay.url()))
    world.relay.wait_for_bridge("quiet")
    remy = said_before(world, 9)
    quiet = said_before(world, 9, room="quiet")
    guest = world.plain("guest")
    is_shown(guest, ["m6", "m7", "m8"])
    guest.join("#quiet")
    quiet.say("live")
    guest.expect_text("live")
    is_shown(guest, ["live"], channel="#quiet")
    remy.say("live too")
    guest.expect_text("live too")
    status, said = check('[room_defaults]\nhistory_on_join = 7\n\n[[rooms]]\nname = "a"\nurl = "ws://127.0.0.1:9/x"\n')
    assert status == 0, said
    status, said = check('[[rooms]]\nname = "a"\nurl = "ws://127.0.0.1:9/x"\nhistory_on_join = -1\n')
    assert status == 78 and "found -1" in said, said


@scenario
def after_a_restart_the_last_lines_are_still_there(world):
    """From the store, also for rooms in which nobody was since; in memory they end with the bridge."""
    for tables in ("", MEMORY):
        directory = folder(world)
        world.start(directory=directory, tables=tables + USUAL)
        said_before(world, 4)
        settle(world.irc("keeper"), "kept")
        kill(world)
        world.start(directory=directory, tables=tables + USUAL)
        is_shown(world.plain("guest"), [] if tables else ["m0", "m1", "m2", "m3", "kept"])
        world.bridge.stop()
    world.bridge = None


@scenario
def no_implicit_names_and_what_was_said_by_irc_users(world):
    """Without names the lines stand behind the JOIN; words of IRC users who left are theirs."""
    world.start(tables=USUAL)
    ann = world.irc("ann")
    ann.say("#lobby", "I was here")
    ann.expect_text("I was here")
    ann.say("#lobby", "\1ACTION waves\1")
    ann.expect_text("\1ACTION waves\1")
    ann.send("QUIT")
    ann.wait_closed()
    guest = world.irc("guest", join=None, caps=["no-implicit-names"])
    guest.send("JOIN #lobby")
    wait_until(lambda: len(words(guest)) == 2, lambda: "two lines: %r" % words(guest), patience=5)
    join = place(guest, lambda line: line.command == "JOIN")
    lines = [(number, line) for number, line in enumerate(guest.lines) if line.command == "PRIVMSG"]
    assert len(lines) == 2 and all(number > join for number, _ in lines), [line.raw for line in guest.lines[-5:]]
    for (_, line), text in zip(lines, ("I was here", "waves")):
        assert text in line.params[-1] and (line.source.startswith("ann!") or "ann" in line.params[-1]), line.raw


@scenario
def who_is_muted_is_not_heard_on_entering(world):
    world.start(tables=USUAL)
    remy, linguini, guest = said_before(world, 3), world.person("Linguini"), world.plain("guest")
    ask_service(guest, "mute Remy")
    guest.send("PART #lobby")
    guest.expect("PART")
    witness = world.irc("witness2")
    for person, text in ((remy, "unheard"), (linguini, "heard"), (remy, "unheard too"), (linguini, "heard too")):
        person.say(text)
        witness.expect_text(text)
    at = len(guest.lines)
    guest.join("#lobby")
    is_shown(guest, ["heard", "heard too"], at)


@on("typed", "custom")
def taken_back_and_edited(setting):
    """The last lines are what stands there now."""
    setting.start(more=USUAL)
    ann = setting.irc("ann")
    gone, changed = setting.backend.say("Remy", "secret recipe"), setting.backend.say("Remy", "the soup is redy")
    setting.backend.do("delete", "Remy", id=gone)
    setting.backend.do("edit", "Remy", id=changed, text="the soup is ready")
    setting.backend.say("Remy", "end")
    ann.expect_text("end")
    guest = setting.plain("guest")
    guest.expect("PRIVMSG", lambda line: line.params[-1].endswith("end"), patience=5)
    found = words(guest)
    assert found[-2:] == ["the soup is ready", "end"] and not [text for text in found if "secret" in text], found
    assert "the soup is redy" not in found, found
