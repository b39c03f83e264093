"""What an IRC network says while the relay is away: killed, stopped, reloaded, or with a room that takes no more.

The network is another relay, which has `draft/chathistory`, and once ngIRCd, which has none.
"""

import json
import random
import time

from admin import change, done
from backends import CALM
from faults import StallingProxy, holding
from fulldisk import empty_disk, fill_disk, talk_until_refused
from marks import slow
from mirrors import DEEP, mirrored, say_all
from mirrors_irc import Pair, joined, mirror, on_networks
from operating import command_output
from peer import wait_until

LOGIN = {"user": "mirror", "password": "5esame"}
SHALLOW = CALM + "queue = { max_messages = 200 }\n"


def upstream(m, word="n"):
    """The numbers that the backend has been told."""
    return [int(text.split()[1]) for _, text in m.upstream() if text.startswith(word + " ")]


def each_once(m, count, patience=60, word="n"):
    wait_until(
        lambda: len(set(upstream(m, word))) >= count,
        lambda: "all of %d are there: %d, %r" % (count, len(upstream(m, word)), upstream(m, word)[-5:]), patience)
    got = upstream(m, word)
    assert got == list(range(count)), "%d, %d different, in order: %r" % (len(got), len(set(got)), got == sorted(got))


def begin(m, **keys):
    pair = Pair(m)
    pair.table = pair.mirror(sasl=LOGIN, **keys)
    m.open(pair.table, room_extra=DEEP)
    joined(m, channel="#lobby")
    # Answered when all before it is stored, and so the place in the channel.
    command_output(m, "history", "lobby")
    return pair, pair.other.irc("eve")


def again(m, pair):
    m.again(pair.table, room_extra=DEEP)
    joined(m, channel="#lobby")


@mirrored()
def said_while_the_relay_was_killed(m):
    """Before anything was heard from the network, and after; several pages of it."""
    pair, eve = begin(m)
    count = 0
    for more in (5, 1, 250):
        m.kill()
        say_all(eve, ["n %d" % number for number in range(count, count + more)])
        count += more
        again(m, pair)
        each_once(m, count)
    say_all(eve, ["n %d" % count])
    each_once(m, count + 1)


@mirrored()
def said_while_the_relay_was_stopped(m):
    pair, eve = begin(m)
    say_all(eve, ["n 0"])
    each_once(m, 1)
    assert m.bridge.terminate() == 0
    say_all(eve, ["n %d" % number for number in range(1, 10)])
    again(m, pair)
    each_once(m, 10)


@slow("twelve kills")
@mirrored()
def killed_at_any_point(m):
    """Somebody there talks all the time, and somebody here."""
    chance = random.Random(4711)
    pair, eve = begin(m)
    count = mine = 0
    for turn in range(12):
        ann = m.irc("ann%d" % turn)
        end = time.monotonic() + chance.uniform(0.05, 0.6)
        while time.monotonic() < end:
            say_all(eve, ["n %d" % number for number in range(count, count + 20)])
            say_all(ann, ["mine %d" % mine])
            count, mine = count + 20, mine + 1
        m.kill()
        say_all(eve, ["n %d" % number for number in range(count, count + 20)])
        count += 20
        again(m, pair)
    each_once(m, count)
    # A message that was under way may come twice there, but no more than one a kill.
    wait_until(lambda: set(upstream(pair.other, "mine")) == set(range(mine)), "what was said here is there")
    there = upstream(pair.other, "mine")
    assert there == sorted(there) and len(there) <= mine + 12, there
    return "%d messages in, %d out, %d of them twice" % (count, mine, len(there) - mine)


@mirrored()
def said_while_a_reload_replaces_the_connection(m):
    pair, eve = begin(m)
    count = 0
    for nick in ("first", "second", "third"):
        say_all(eve, ["n %d" % number for number in range(count, count + 100)])
        change(m.bridge, ("sasl = ", 'nick = "%s"\nsasl = ' % nick) if count == 0 else ('nick = "%s"' % last, 'nick = "%s"' % nick))
        last = nick
        done(m.bridge, "reload")
        say_all(eve, ["n %d" % number for number in range(count + 100, count + 200)])
        count += 200
        joined(m, 1 + count // 200, channel="#lobby")
    each_once(m, count)


@slow("4000 messages")
@mirrored()
def a_room_that_takes_no_more(m):
    """Its backend is away, and its queue is full: more than can wait in memory is read again when it goes on."""
    pair = Pair(m)
    pair.table = pair.mirror(sasl=LOGIN)
    m.open(pair.table, room_extra=SHALLOW)
    joined(m, channel="#lobby")
    eve = pair.other.irc("eve")
    say_all(eve, ["n 0"])
    each_once(m, 1)
    m.backend.control("drop", refuse=-1)
    for begin in range(1, 4000, 500):
        say_all(eve, ["n %d" % number for number in range(begin, min(4000, begin + 500))], chunk=100)
        # Its own backend is not to be the one that takes no more.
        eve.drain()
        wait_until(lambda: upstream(pair.other)[-1:] >= [min(3999, begin + 499)], "the other backend has them", 60)
    m.backend.set(refuse=0)
    each_once(m, 4000, patience=240)


@on_networks("ngircd")
def a_room_that_takes_no_more_from_a_network_without_history(m, network):
    """2000 messages wait in memory; those behind them are lost, and counted (`arrivals_refused`)."""
    m.open(mirror(network), room_extra=SHALLOW)
    joined(m)
    bob = network.irc("bob")
    m.backend.control("drop", refuse=-1)
    count = 2600
    say_all(bob, ["n %d" % number for number in range(count)], channel="#net")

    def refusals():
        """Once all but those that wait are in the room or refused."""
        counts = json.loads(command_output(m, "status", "--json"))["mirrors"][0]
        return counts["arrivals_refused"] if counts["arrived"] + 2000 + counts["arrivals_refused"] == count else 0

    refused = wait_until(refusals, "what cannot wait is refused", 60)
    assert " %d " % refused in command_output(m, "mirrors"), command_output(m, "mirrors")
    m.backend.set(refuse=0)
    each_once(m, count - refused, patience=240)
    say_all(bob, ["n %d" % count], channel="#net")
    wait_until(lambda: count in upstream(m), "what is said later is there")
    assert upstream(m) == [*range(count - refused), count], upstream(m)
    return "%d lost of %d" % (refused, count)


@mirrored()
def a_full_disk_loses_nothing(m):
    """What cannot be stored is not taken, and read again when there is space."""
    pair, eve = begin(m)
    count = 0
    fill_disk(m.bridge.process.pid)
    while not m.bridge.log_entries("store-failing"):
        say_all(eve, ["n %d %s" % (number, "x" * 300) for number in range(count, count + 20)])
        count += 20
        assert count < 3000, "3000 messages were stored on a full disk"
    say_all(eve, ["n %d" % number for number in range(count, count + 20)])
    count += 20
    empty_disk(m.bridge.process.pid)
    wait_until(lambda: m.bridge.log_entries("store-sound"), "they are stored again", 30)
    say_all(eve, ["n %d" % count])
    each_once(m, count + 1)
    return "%d messages" % (count + 1)


@mirrored()
def a_full_disk_as_the_connection_ends(m):
    """The store refuses what was taken from a connection that is gone by then."""
    pair = Pair(m)
    proxy = StallingProxy(pair.port)
    m.stack.callback(proxy.close)
    pair.table = pair.mirror(sasl=LOGIN, url="irc://127.0.0.1:%d" % proxy.port)
    m.open(pair.table, room_extra=DEEP)
    joined(m, channel="#lobby")
    ann, eve = m.irc("ann"), pair.other.irc("eve")
    say_all(eve, ["n 0"])
    each_once(m, 1)
    fill_disk(m.bridge.process.pid)
    # More than fits, for a commit that fails and is the first one that does.
    count = 300
    with holding(m.bridge.process, "store-writer"):
        say_all(eve, ["n %d %s" % (number, "x" * 300) for number in range(1, count)])
        proxy.end_behind(b"n %d " % (count - 1))
        wait_until(lambda: m.bridge.log_entries("mirror-disconnected"), "the connection is gone", 30)
    talk_until_refused(m, ann)
    empty_disk(m.bridge.process.pid)
    joined(m, 2, channel="#lobby")
    each_once(m, count)
    return "%d messages" % count
