"""Many at once. Each scenario checks that no message is lost, duplicated or reordered, and reports the cost to the bridge."""

import os
import resource
import selectors
import socket
import time

from marks import alone, slow
from peer import envelope, new_id
from world import scenario

CROWD = int(os.environ.get("CROWD", "5000"))
ROOMS = int(os.environ.get("ROOMS", "1000"))
LIMITS = (
    'messages_per_second = "off"\nupstream_messages_per_second = "off"\nupstream_connects_per_second = "off"\n'
    "max_clients = %d\nregistration_timeout = \"120s\"\nping_interval = \"600s\""
)


class Crowd:
    """Thousands of plain clients on one selector. Each keeps the PRIVMSG lines it saw."""

    class Member:
        __slots__ = ("sock", "nick", "rest", "out", "joined", "seen", "gone")

    def __init__(self, port):
        self.port = port
        self.selector = selectors.DefaultSelector()
        self.members = []

    def add(self, nick, channel):
        member = self.Member()
        member.sock = socket.create_connection(("127.0.0.1", self.port))
        member.sock.setblocking(False)
        member.nick, member.rest, member.joined, member.gone = nick, b"", False, False
        member.seen = []
        member.sock.send(b"NICK %s\r\nUSER %s 0 * :x\r\nCAP REQ :no-implicit-names\r\nCAP END\r\nJOIN %s\r\n" % (
            nick.encode(), nick.encode(), channel.encode()))
        self.selector.register(member.sock, selectors.EVENT_READ, member)
        self.members.append(member)
        return member

    def pump(self, seconds):
        ready = self.selector.select(seconds)
        for key, _ in ready:
            member = key.data
            try:
                data = member.sock.recv(1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                member.gone = True
                self.selector.unregister(member.sock)
                continue
            data = member.rest + data
            if member.joined and b" PRIVMSG " not in data and b"PING" not in data:
                # Thousands of JOIN lines of the others: a look at each would take longer than all the rest.
                member.rest = data[data.rfind(b"\n") + 1 :]
                continue
            *lines, member.rest = data.split(b"\n")
            own = b":" + member.nick.encode() + b"!"
            for line in lines:
                # The cheapest look that tells the kinds apart: this client must not be the bottleneck.
                if b" PRIVMSG " in line:
                    member.seen.append(line.rsplit(b" :", 1)[1].rstrip(b"\r"))
                elif not member.joined and b" JOIN " in line and line.startswith(own):
                    member.joined = True
                elif line.startswith(b"PING"):
                    member.sock.send(b"PONG :x\r\n")
        return bool(ready)

    def pump_until(self, condition, what, seconds):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "not within %d s: %s" % (seconds, what())
            self.pump(0.05)

    def close(self):
        for member in self.members:
            member.sock.close()
        self.selector.close()


def allow_files(count):
    """Raises the soft limit; says what is missing when the hard one is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 200
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
        assert hard >= wanted, "needs %d open files, ulimit -Hn says %d" % (wanted, hard)


@scenario
@slow("five thousand JOINs, each told to all before it")
@alone("its clients are thousands")
def a_crowd_in_one_room_gets_every_line_once_in_order(world):
    allow_files(CROWD)
    world.start(limits=LIMITS % (CROWD + 10))
    remy = world.person("Remy")
    crowd = Crowd(world.bridge.port)
    world.stack.callback(crowd.close)
    idle, _ = world.bridge.rss_kib()
    began = time.monotonic()
    for first in range(0, CROWD, 250):
        # In groups, so that the listening queue never overflows and joins are read as they come.
        group = [crowd.add("c%d" % n, "#lobby") for n in range(first, min(first + 250, CROWD))]
        crowd.pump_until(lambda: all(m.joined for m in group), lambda: "a group joins", 120)
    # The crowd has read all JOIN lines before the clock starts.
    while crowd.pump(0.3):
        pass
    joined = time.monotonic() - began
    joined_cpu = world.bridge.cpu_seconds()
    full, _ = world.bridge.rss_kib()
    texts = [("line %d" % n).encode() for n in range(20)]
    began = time.monotonic()
    for text in texts:
        remy.say(text.decode())
    crowd.pump_until(
        lambda: all(len(m.seen) >= len(texts) for m in crowd.members),
        lambda: "%d have all lines" % sum(len(m.seen) >= len(texts) for m in crowd.members), 120,
    )
    seconds = time.monotonic() - began
    cpu = world.bridge.cpu_seconds() - joined_cpu
    crowd.pump(0.2)
    wrong = [m.nick for m in crowd.members if m.seen != texts or m.gone]
    assert not wrong, "%d clients saw something else, %s: %r" % (len(wrong), wrong[0], crowd.members[0].seen[:3])
    _, most = world.bridge.rss_kib()
    return "%d lines in %.2f s, CPU %.2f s (joining %.1f s, CPU %.1f s), RSS %d idle, %d joined, %d most KiB" % (
        CROWD * len(texts), seconds, cpu, joined, joined_cpu, idle, full, most,
    )


@scenario
@alone("its clients are thousands")
def many_rooms_with_two_clients_each(world):
    allow_files(ROOMS * 4)
    names = ["r%d" % n for n in range(ROOMS)]
    began = time.monotonic()
    world.start(rooms=names, limits=LIMITS % (ROOMS * 2 + 10), linked=False)
    world.relay.wait_for_bridge(count=ROOMS, patience=60)
    linked = time.monotonic() - began
    crowd = Crowd(world.bridge.port)
    world.stack.callback(crowd.close)
    for first in range(0, ROOMS, 125):
        group = [
            crowd.add("%s%d" % (side, n), "#r%d" % n) for n in range(first, min(first + 125, ROOMS)) for side in "ab"
        ]
        crowd.pump_until(lambda: all(m.joined for m in group), lambda: "a group joins", 120)
    while crowd.pump(0.3):
        pass
    before = world.bridge.cpu_seconds()
    began = time.monotonic()
    for member in crowd.members:
        if member.nick[0] == "a":
            member.sock.send(b"PRIVMSG #r%s :up %s\r\n" % (member.nick[1:].encode(), member.nick[1:].encode()))
    crowd.pump_until(
        lambda: all(len(m.seen) >= 1 for m in crowd.members if m.nick[0] == "b"),
        lambda: "%d have theirs" % sum(len(m.seen) >= 1 for m in crowd.members if m.nick[0] == "b"), 60,
    )
    for name in names:
        world.relay.raw(envelope("message", new_id(), "Remy", "down " + name[1:]), room=name)
    crowd.pump_until(
        lambda: all(len(m.seen) >= (2 if m.nick[0] == "b" else 1) for m in crowd.members), lambda: "down", 60
    )
    seconds = time.monotonic() - began
    cpu = world.bridge.cpu_seconds() - before
    crowd.pump(0.2)
    for m in crowd.members:
        number = m.nick[1:].encode()
        expected = [b"down " + number] if m.nick[0] == "a" else [b"up " + number, b"down " + number]
        assert m.seen == expected, "%s saw %r" % (m.nick, m.seen)
    sent = {room: f["body"] for room, f in world.relay.from_bridge if f.get("event") == "message"}
    assert len(sent) == ROOMS and all(sent["r%d" % n] == "up %d" % n for n in range(ROOMS)), "upstream"
    now, most = world.bridge.rss_kib()
    return "linked in %.1f s; both ways in %.2f s, CPU %.2f s; RSS %d, most %d KiB" % (linked, seconds, cpu, now, most)
