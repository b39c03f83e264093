#!/usr/bin/env python3
"""A backend of the soak: one wire, its rooms, and logs that are ahead of everything that anybody is told.

    backend.py --wire NAME --logs DIRECTORY --seed N [--silent]

Prints {"port": N} when it listens. Each message is appended to its room's file before a single byte about it is sent, and
after `kill -9` everything that it knows comes from files. The wires are in wires.py.

People upstream talk by themselves, in bursts now and then, each numbering what it says. Lines on standard input:

    silent, talk    they stop, they go on
    say             each says one thing more
    late=S          for S seconds, messages are read and lie about; then they are taken, those of dead connections too
    drop=S          the same, but then the connections are torn off and what lay about is gone
    expire          access tokens end now;  expire-all  refresh tokens too
"""

import argparse
import asyncio
import json
import os
import random
import socket
import struct
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from journal import Journal, read  # noqa: E402
from plan import MIRRORED, Key, compose, read_key, rooms_of  # noqa: E402
from wires import WIRE_CLASSES  # noqa: E402

# Between two things that are said in a room, in seconds; and how often it is a whole burst.
PAUSE, BURST_SHARE, BURST = 1.6, 0.05, 10


class Room:
    """One room, as its file has it."""

    def __init__(self, plan, directory):
        self.plan, self.name = plan, plan.name
        self.links = set()
        path = os.path.join(directory, plan.name + ".log")
        self.messages = [entry for entry in read(path) if not entry.get("again")]
        self.by_id = {entry["id"]: entry for entry in self.messages}
        self.newest = max((entry["at"] for entry in self.messages), default=0)
        self.journal = Journal(path)
        # The next number of each person.
        self.numbers = dict.fromkeys(plan.people, 1)
        for entry in self.messages:
            key = read_key(entry["text"])
            if key and key.author in self.numbers:
                self.numbers[key.author] = max(self.numbers[key.author], key.number + 1)

    def log(self, message_id, sender, sender_id, text, sent_at=None, link=None, alias=None, **more):
        """(entry, whether it is a message of its own). It is on file when this returns."""
        # No two of a room have the same time, so that a history has an order.
        self.newest = max(self.newest + 1, time.time_ns() // 1_000_000)
        told = self.newest if sent_at is None else sent_at
        entry = {
            "id": message_id, "sender": sender, "sender_id": sender_id, "alias": alias, "text": text, "at": self.newest,
            "said_at": told - told % self.plan.wire.second, "sent_at": sent_at,
            "connection": link.number if link else None, **more,
        }
        if message_id in self.by_id:
            entry["again"] = True
            self.journal.append(**entry)
            return self.by_id[message_id], False
        self.journal.append(**entry)
        self.by_id[message_id] = entry
        self.messages.append(entry)
        return entry, True

    def tell(self, data, but=None):
        for link in self.links:
            if link is not but:
                link.write(data)


class Backend:
    def __init__(self, chosen):
        mirrored = [room for room in MIRRORED.values() if room.wire.name == chosen.wire]
        self.rooms = {room.name: Room(room, chosen.logs) for room in rooms_of(chosen.wire) + mirrored}
        self.seed = chosen.seed
        self.wire = WIRE_CLASSES[chosen.wire](self, chosen.logs)
        self.links = set()
        self.trouble = Journal(os.path.join(chosen.logs, chosen.wire + ".trouble"))
        # Frames that lie about, and what is to become of them: "", "late" or "drop".
        self.held, self.hang = [], ""
        self.number = 0

    def complain(self, what, about):
        self.trouble.append(t=time.time_ns() // 1_000_000, what=what, about=repr(about)[:300])

    def new_number(self):
        """For servers that count the messages of all their rooms."""
        self.number = 1 + (self.number or max(
            (entry["id"] for room in self.rooms.values() for entry in room.messages if isinstance(entry["id"], int)),
            default=0))
        return self.number

    def say(self, room, person, source):
        key = Key(person, room.name, room.numbers[person])
        room.numbers[person] += 1
        self.wire.say(room, person, compose(key, source))

    # -- Frames

    def take(self, link, opcode, payload):
        """A frame, or a ping, that a link has read."""
        if self.hang and self.wire.lies_about(opcode, payload):
            self.held.append((link, opcode, payload))
        else:
            self.wire.frame(link, opcode, payload)

    def hang_for(self, how, seconds):
        if not self.hang:
            self.hang = how
            asyncio.get_running_loop().call_later(seconds, self.go_on)

    def go_on(self):
        held, how, self.held, self.hang = self.held, self.hang, [], ""
        if how == "drop":
            for link in {link for link, _, _ in held}:
                link.tear()
            return
        for link, opcode, payload in held:
            if not (self.wire.forgets_the_gone and link.transport.is_closing()):
                self.wire.frame(link, opcode, payload)


class Link(asyncio.Protocol):
    """One connection: HTTP, until it becomes a WebSocket. Everything is written in the order in which it was logged."""

    count = 0

    def __init__(self, backend):
        Link.count += 1
        self.number = "%d.%d" % (os.getpid(), Link.count)
        self.backend, self.room, self.data = backend, None, {}
        self.head, self.reader = b"", None

    def connection_made(self, transport):
        self.transport = transport
        self.backend.links.add(self)

    def connection_lost(self, _):
        self.backend.links.discard(self)
        if self.room:
            self.room.links.discard(self)

    def write(self, data):
        if not self.transport.is_closing():
            self.transport.write(data)

    def close(self):
        self.transport.close()

    def tear(self):
        with_linger = self.transport.get_extra_info("socket")
        if with_linger is not None and not self.transport.is_closing():
            with_linger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def data_received(self, data):
        if self.reader is None:
            self.head += data
            while self.reader is None and self.request():
                pass
            if self.reader is None:
                return
            data, self.head = self.head, b""
        for opcode, payload in self.reader.feed(data):
            self.backend.take(self, opcode, payload)

    def request(self):
        """Whether a whole request was there."""
        head, end, rest = self.head.partition(b"\r\n\r\n")
        if not end:
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(fields.get("content-length", 0))
        if len(rest) < length:
            return False
        self.head = rest[length:]
        method, target, _ = first.split(" ")
        try:
            self.backend.wire.request(self, method, target, fields, rest[:length])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.backend.complain("%s %s: %r" % (method, target, error), rest[:length])
            self.close()
        return not self.transport.is_closing()


async def talk(backend, room, source, state):
    people = sorted(room.plan.people)
    while True:
        await asyncio.sleep(source.expovariate(1 / PAUSE))
        if not state["talks"]:
            continue
        for _ in range(BURST if source.random() < BURST_SHARE else 1):
            backend.say(room, source.choice(people), source)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wire", required=True)
    parser.add_argument("--logs", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--silent", action="store_true")
    chosen = parser.parse_args()
    backend = Backend(chosen)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Link(backend), "127.0.0.1", 0)
    state = {"talks": not chosen.silent}
    # What was said decides what comes next, so a second start does not repeat the first.
    said = sum(len(room.messages) for room in backend.rooms.values())
    talkers = [
        asyncio.create_task(talk(backend, room, random.Random("%d %s %d" % (chosen.seed, name, said)), state))
        for name, room in backend.rooms.items()
    ]

    def command():
        words = os.read(0, 4096).decode().split()
        if not words:
            loop.remove_reader(0)
        for word in words:
            word, _, seconds = word.partition("=")
            if word in ("silent", "talk"):
                state["talks"] = word == "talk"
            elif word == "say":
                for room in backend.rooms.values():
                    for person in room.plan.people:
                        backend.say(room, person, random.Random(0))
            elif word in ("late", "drop"):
                backend.hang_for(word, float(seconds))
            elif word in ("expire", "expire-all"):
                backend.wire.expire(word == "expire-all")

    loop.add_reader(0, command)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await asyncio.gather(backend.wire.watch(), *talkers)


if __name__ == "__main__":
    asyncio.run(main())
