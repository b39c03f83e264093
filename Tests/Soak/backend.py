#!/usr/bin/env python3
"""The backend of the soak: three wires in one process, and a log that is ahead of everything that anybody is told.

    backend.py --logs DIRECTORY --seed N [--silent]

Rooms are paths, /<wire>/<room>. Prints {"port": N} when it listens. Each message is appended to its room's file before
a single byte about it is sent, and after `kill -9` everything it knows comes from these files. What it plays:

    typed      payloads in base64, ids from the sender; confirms with chat.receipt, sends the author nothing back; at
               the handshake it sends the newest messages as chat.history
    envelope   ids from the sender, everything to everybody, the author included; keeps nothing
    swiftchat  ids and times from the server, everything to everybody, the author included; keeps nothing

An id that comes again is logged as such and is no second message: `typed` confirms it again and shows it to nobody,
`envelope` sends it to everybody again, as such servers do.

People upstream talk by themselves, in bursts now and then, each numbering what it says. Lines on standard input:
`silent` ends that, `talk` begins it, `finale` lets everybody say one thing more.
"""

import argparse
import asyncio
import base64
import hashlib
import json
import os
import random
import re
import sys
import time
import uuid

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from journal import Journal, read  # noqa: E402
from plan import ROOMS, Key, compose, people, read_key  # noqa: E402
from relay import BINARY, CLOSE, MAGIC, PING, PONG, TEXT, FrameReader, frame, new_id  # noqa: E402

# Seconds from 1970 to 2001, where two of the wires begin to count.
REFERENCE_DATE = 978307200
# The newest ones that chat.history has: as many as the relay takes from a history that it is sent unasked.
HISTORY = 1000
# Between two things that are said in a room, in seconds; and how often it is a whole burst.
PAUSE, BURST_SHARE, BURST = 0.8, 0.05, 10


def person_id(name):
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "soak:" + name)).upper()


class Room:
    """One room, as its file has it."""

    def __init__(self, name, directory):
        self.name, self.wire = name, ROOMS[name]
        self.links = set()
        path = os.path.join(directory, name + ".log")
        self.messages = [entry for entry in read(path) if not entry.get("again")]
        self.ids = {entry["id"] for entry in self.messages}
        self.newest = max((entry["at"] for entry in self.messages), default=0)
        self.journal = Journal(path)
        # The next number of each person.
        self.numbers = dict.fromkeys(people(name), 1)
        for entry in self.messages:
            key = read_key(entry["text"])
            if key and key.author in self.numbers:
                self.numbers[key.author] = max(self.numbers[key.author], key.number + 1)

    def log(self, message_id, sender, sender_id, text, sent_at=None, connection=None):
        """(entry, whether it is a message of its own). It is on file when this returns."""
        # No two of a room have the same time, so that a history has an order.
        self.newest = max(self.newest + 1, time.time_ns() // 1_000_000)
        entry = {
            "id": message_id, "sender": sender, "sender_id": sender_id, "text": text, "at": self.newest,
            "sent_at": sent_at, "connection": connection,
        }
        is_new = message_id not in self.ids
        if not is_new:
            entry["again"] = True
        self.journal.append(**entry)
        if is_new:
            self.ids.add(message_id)
            self.messages.append(entry)
        return entry, is_new

    # -- Frames

    def shown(self, entry):
        """The frame that shows a message."""
        at = entry["sent_at"] if entry["sent_at"] is not None else entry["at"]
        if self.wire.name == "envelope":
            return frame(json.dumps({
                "event": "message", "message_id": entry["id"], "sender_id": entry["sender_id"],
                "sender_name": entry["sender"], "body": entry["text"], "sent_at": at / 1000,
            }))
        if self.wire.name == "swiftchat":
            return frame(json.dumps({
                "id": entry["id"], "date": entry["at"] / 1000 - REFERENCE_DATE, "message": entry["text"],
                "user": entry["sender"], "userID": entry["sender_id"],
            }))
        return self.typed("chat.message", self.payload(entry))

    def payload(self, entry):
        at = entry["sent_at"] if entry["sent_at"] is not None else entry["at"]
        return {
            "id": entry["id"], "room": self.name, "senderId": entry["sender_id"], "senderName": entry["sender"],
            "text": entry["text"], "sentAt": at / 1000 - REFERENCE_DATE,
        }

    def typed(self, kind, payload):
        inner = base64.b64encode(json.dumps(payload).encode()).decode()
        return frame(json.dumps({"type": kind, "payload": inner}), BINARY)

    def history(self):
        return self.typed("chat.history", {
            "room": self.name, "messages": [self.payload(entry) for entry in self.messages[-HISTORY:]],
        })

    # -- What happens

    def linked(self, link):
        if self.wire.history:
            link.write(self.history())
        self.links.add(link)

    def tell(self, data):
        for link in self.links:
            link.write(data)

    def received(self, link, opcode, payload):
        try:
            fields = json.loads(payload)
            if self.wire.name == "typed":
                kind, fields = fields["type"], json.loads(base64.b64decode(fields["payload"]))
                if kind == "chat.message":
                    at = round((fields["sentAt"] + REFERENCE_DATE) * 1000)
                    self.log(fields["id"], fields["senderName"], fields["senderId"], fields["text"], at, link.number)
                    link.write(
                        self.typed("chat.receipt", {"room": self.name, "ids": [fields["id"]], "state": "sent"}))
            elif self.wire.name == "envelope":
                if fields["event"] == "message":
                    at = round(fields["sent_at"] * 1000)
                    entry, _ = self.log(
                        fields["message_id"], fields["sender_name"], fields["sender_id"], fields["body"], at,
                        link.number)
                    self.tell(self.shown(entry))
            elif opcode == TEXT:
                entry, _ = self.log(new_id(), fields["user"], fields["userID"], fields["message"], None, link.number)
                self.tell(self.shown(entry))
        except (ValueError, KeyError, TypeError) as error:
            print(json.dumps({"unreadable": "%s: %r" % (error, payload[:200])}), flush=True)

    def say(self, person, source):
        key = Key(person, self.name, self.numbers[person])
        self.numbers[person] += 1
        entry, _ = self.log(new_id(), person, person_id(person), compose(key, source))
        self.tell(self.shown(entry))


class Link(asyncio.Protocol):
    """One WebSocket. Everything is written in the order in which it was logged: nothing here waits."""

    count = 0

    def __init__(self, rooms):
        Link.count += 1
        self.number = "%d.%d" % (os.getpid(), Link.count)
        self.rooms, self.room = rooms, None
        self.head, self.reader = b"", FrameReader()

    def connection_made(self, transport):
        self.transport = transport

    def write(self, data):
        if not self.transport.is_closing():
            self.transport.write(data)

    def data_received(self, data):
        if self.room is None:
            self.head += data
            head, end, data = self.head.partition(b"\r\n\r\n")
            if not end or not self.shake(head):
                return
        for opcode, payload in self.reader.feed(data):
            if opcode in (TEXT, BINARY):
                self.room.received(self, opcode, payload)
            elif opcode == PING:
                self.write(frame(payload, PONG))
            elif opcode == CLOSE:
                self.write(frame(payload[:2], CLOSE))
                self.transport.close()

    def shake(self, head):
        key = re.search(rb"(?im)^sec-websocket-key: *(\S+)", head)
        path = head.split(b" ", 2)[1].decode().strip("/").split("/")
        room = self.rooms.get(path[-1])
        if not key or room is None or path[0] != room.wire.name:
            self.transport.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            self.transport.close()
            return False
        accept = base64.b64encode(hashlib.sha1(key[1] + MAGIC).digest()).decode()
        self.transport.write((
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: %s\r\n\r\n" % accept).encode())
        self.room = room
        room.linked(self)
        return True

    def connection_lost(self, _):
        if self.room:
            self.room.links.discard(self)


async def talk(room, source, state):
    people_here = people(room.name)
    while True:
        await asyncio.sleep(source.expovariate(1 / PAUSE))
        if not state["talks"]:
            continue
        for _ in range(BURST if source.random() < BURST_SHARE else 1):
            room.say(source.choice(people_here), source)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--silent", action="store_true")
    chosen = parser.parse_args()
    rooms = {name: Room(name, chosen.logs) for name in ROOMS}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Link(rooms), "127.0.0.1", 0)
    state = {"talks": not chosen.silent}
    # What was said decides what comes next, so a second start does not repeat the first.
    said = sum(len(room.messages) for room in rooms.values())
    talkers = [
        asyncio.create_task(talk(room, random.Random("%d %s %d" % (chosen.seed, name, said)), state))
        for name, room in rooms.items()
    ]

    def command():
        words = os.read(0, 4096).decode().split()
        if not words:
            loop.remove_reader(0)
        for word in words:
            if word in ("silent", "talk"):
                state["talks"] = word == "talk"
            elif word == "finale":
                for room in rooms.values():
                    for person in people(room.name):
                        room.say(person, random.Random(0))

    loop.add_reader(0, command)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await asyncio.gather(*talkers)


if __name__ == "__main__":
    asyncio.run(main())
