#!/usr/bin/env python3
"""IRC clients of the soak, in one process. The record of each is ahead of everything that it does.

    client.py --names alice@one --passwords FILE --port N --secure-port N --web-port N --records DIRECTORY --seed N [--silent]

Logs in, or is a guest; enters its rooms, says numbered things, and sends a PING behind them: the answer says that they were
taken. Each line that comes is on file before it is acted upon, so a PONG stands for lines that are there; each line that
goes is on file before it goes. Where a room is not there, or it was parted from one, it asks for it again and again. After
`kill -9` it goes on with the next number. Lines on standard input: `silent`, `talk`, `pages` (read every room from its end
to its beginning, once).
"""

import argparse
import asyncio
import base64
import collections
import json
import os
import random
import ssl
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from journal import Journal, read  # noqa: E402
from page import Page  # noqa: E402
from peer import parse_irc  # noqa: E402
from plan import CLIENTS, EVERY_ROOM, PASSING, ROOMS, Key, compose, nick_of, read_key  # noqa: E402

# Seconds between two things that it says, and how often it is a burst.
PAUSE, BURST_SHARE, BURST = 0.7, 0.08, 10
# It asks for a sign of life so often, and gives up when none has come for so long, in seconds.
ASK, GIVE_UP = 1.0, 8
# One of a crowd asks less often.
ASK_OF_MANY = 4.0
# Seconds between two tries to enter a room that was not there.
KNOCK = 1.5
# Before another attempt, in seconds.
RETRY = (0.1, 1.0)
# Lines of a page, and of a look back; seconds between two looks.
PAGE, LOOK, LOOK_PAUSE = 100, 20, 6
CHATHISTORY = "draft/chathistory"


class Gone(Exception):
    pass


# Whom it talks to is the other end of a proxy here, whose certificate changes.
_TLS = ssl.create_default_context()
_TLS.check_hostname, _TLS.verify_mode = False, ssl.CERT_NONE


class Client:
    def __init__(self, name, chosen):
        self.chosen = chosen
        self.name = name
        self.plan = CLIENTS[name]
        self.nick = nick_of(name)
        self.caps = self.plan.caps
        path = os.path.join(chosen.records, name.replace("@", "."))
        record = read(path)
        self.connection = max((entry["c"] for entry in record), default=0)
        self.numbers = dict.fromkeys(EVERY_ROOM, 1)
        # {room: msgid}: up to there a client that fetches by itself has everything, and what came last.
        self.known, self.newest, self.whole_rooms = {}, {}, set()
        connection = 0
        for entry in record:
            if entry["c"] != connection:
                connection = entry["c"]
                self.begin()
            if entry["d"] == ">" and entry["l"].startswith("PRIVMSG "):
                key = read_key(entry["l"].split(" :", 1)[1])
                self.numbers[key.room] = max(self.numbers[key.room], key.number + 1)
            elif entry["d"] == "<" and self.plan.asks:
                self.follow(parse_irc(entry["l"]))
            elif entry["d"] == "#" and entry["l"].startswith("caught up "):
                self.whole_rooms.add(entry["l"].rpartition("#")[2])
        self.journal = Journal(path)
        self.random = random.Random("%d %s %d" % (chosen.seed, name, len(record)))
        # Log-ins that were refused: the next one tries another password.
        self.refused = 0
        self.talks = not chosen.silent
        self.wants_pages = False
        self.tokens = self.labels = 0
        self.rooms = set()

    def begin(self):
        """Another connection: in the rooms where nothing was missing, it has everything up to what came last."""
        for room in self.whole_rooms:
            self.known[room] = self.newest.get(room)
        self.whole_rooms.clear()

    def note(self, direction, line):
        self.journal.append(t=time.time_ns() // 1_000_000, c=self.connection, d=direction, l=line)

    def send(self, line):
        # The password stays out of the record.
        self.note(">", "AUTHENTICATE …" if line.startswith("AUTHENTICATE ") else line)
        self.writer.write(line.encode() + b"\r\n")

    def ping(self):
        self.tokens += 1
        self.send("PING :%d.%d" % (self.connection, self.tokens))

    async def run(self):
        while True:
            self.connection += 1
            try:
                await self.connected()
            except (OSError, Gone) as error:
                self.note("!", str(error) or type(error).__name__)
            await asyncio.sleep(self.random.uniform(*RETRY))

    async def connected(self):
        self.begin()
        self.rooms, self.caught_up, self.is_welcome = set(), set(), False
        # (what, room): questions, one at a time; and the page that is under way.
        self.questions, self.page, self.batches = collections.deque(), None, {}
        self.has_pages, self.read_pages = CHATHISTORY in self.caps, False
        port, secured = self.chosen.port, {}
        if self.plan.via == "ircs":
            port, secured = self.chosen.secure_port, {"ssl": _TLS, "ssl_handshake_timeout": GIVE_UP}
        elif self.plan.via == "web":
            port = self.chosen.web_port
        reader, self.writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20, **secured)
        if self.plan.via == "web":
            reader = self.writer = Page(reader, self.writer)
            try:
                await asyncio.wait_for(reader.open(port), GIVE_UP)
            except BaseException:
                reader.transport.abort()
                raise
        self.heard = time.monotonic()
        tasks = [
            asyncio.create_task(task) for task in (
                self.read(reader), self.talk(), self.ask(), self.knock(), self.look(), self.fetch())
        ]
        try:
            name = self.name.partition("@")[2]
            self.send("CAP LS 302")
            self.send("NICK " + self.nick)
            self.send("USER %s 0 * :%s" % (name, self.nick))
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.writer.transport.abort()

    async def read(self, reader):
        while True:
            line = await reader.readline()
            if not line.endswith(b"\n"):
                raise Gone("the connection ended")
            self.heard = time.monotonic()
            text = line.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
            self.note("<", text)
            self.received(parse_irc(text))

    def received(self, line):
        command = line.command
        if command == "PING":
            self.send("PONG :" + line.params[-1])
        elif command == "CAP" and line.params[1] == "LS" and line.params[2] != "*":
            self.send("CAP REQ :" + " ".join(self.caps))
        elif command == "CAP" and line.params[1] == "ACK":
            if self.rooms:
                self.has_pages = True
            elif self.plan.account:
                self.send("AUTHENTICATE PLAIN")
            else:
                self.send("CAP END")
        elif command == "AUTHENTICATE":
            self.send("AUTHENTICATE " + base64.b64encode(
                b"\0%s\0%s" % (self.name.encode(), self.password().encode())).decode())
        elif command == "903":
            self.send("CAP END")
        elif command in ("904", "905", "433", "ERROR") or command == "CAP" and line.params[1] == "NAK":
            self.refused += command == "904"
            raise Gone(line.raw)
        elif command == "001":
            self.is_welcome = True
            self.send("JOIN " + ",".join("#" + room for room in self.plan.rooms))
        elif command == "PART" and line.source.partition("!")[0] == self.nick:
            self.rooms.discard(line.params[0].lstrip("#"))
        elif command == "366":
            room = line.params[1].lstrip("#")
            self.rooms.add(room)
            if self.plan.asks and room in ROOMS and room not in self.caught_up:
                self.caught_up.add(room)
                self.questions.append((self.catch_up, room))
            self.ping()
        elif command == "BATCH":
            self.batch(line)
        elif command == "FAIL" and line.params[0] == "CHATHISTORY" and self.page and not self.page.done():
            self.refusal = line.params[-1]
            self.page.set_result(None)
        if self.plan.asks and not self.read_pages:
            self.follow(line)
        if line.tags.get("batch") in self.batches:
            self.batches[line.tags["batch"]].append(line)

    # -- Old lines

    def follow(self, line):
        """Which line came last in each room."""
        if line.command == "PRIVMSG" and "msgid" in line.tags:
            self.newest[line.params[0].lstrip("#")] = line.tags["msgid"]

    def batch(self, line):
        sign, name = line.params[0][0], line.params[0][1:]
        if sign == "+":
            # What was asked for has the question's label.
            if "label" in line.tags:
                self.batches[name] = []
        elif name in self.batches:
            page = self.batches.pop(name)
            if self.page and not self.page.done():
                self.page.set_result(page)

    async def question(self, words):
        """The lines of a page; None: refused."""
        self.labels += 1
        self.page, self.refusal = asyncio.get_running_loop().create_future(), ""
        self.send("@label=%d CHATHISTORY %s" % (self.labels, words))
        return await self.page

    async def fetch(self):
        while True:
            await asyncio.sleep(0.05)
            if self.wants_pages and self.rooms and not self.read_pages and "batch" in self.caps:
                if not self.has_pages:
                    self.send("CAP REQ :" + CHATHISTORY)
                    while not self.has_pages:
                        await asyncio.sleep(0.05)
                self.read_pages = True
                self.questions.extend((self.whole, room) for room in sorted(self.rooms & ROOMS.keys()))
            while self.questions:
                what, room = self.questions.popleft()
                await what(room)

    async def catch_up(self, room):
        self.note("#", "catch up #" + room)
        known = self.known.get(room)
        while True:
            page = await self.question(
                "AFTER #%s msgid=%s %d" % (room, known, PAGE) if known else "LATEST #%s * %d" % (room, PAGE))
            if page is None:
                if "No such message" in self.refusal:
                    # It was lost with a relay that could not write it.
                    known = None
                else:
                    # As good as any other time.
                    await asyncio.sleep(1)
                continue
            shown = [line.tags["msgid"] for line in page if line.command == "PRIVMSG"]
            if not shown or not known:
                break
            known = self.known[room] = shown[-1]
        self.note("#", "caught up #" + room)
        self.whole_rooms.add(room)

    async def whole(self, room):
        """From the end to the beginning."""
        self.note("#", "pages #" + room)
        words = "LATEST #%s * %d" % (room, PAGE)
        while True:
            page = await self.question(words)
            shown = [line.tags["msgid"] for line in page or () if line.command == "PRIVMSG"]
            if page is None or not shown:
                break
            words = "BEFORE #%s msgid=%s %d" % (room, shown[0], PAGE)
        if page is not None:
            self.note("#", "paged #" + room)

    async def look(self):
        while True:
            await asyncio.sleep(self.random.expovariate(1 / LOOK_PAUSE))
            rooms = sorted(self.rooms & ROOMS.keys())
            if self.plan.asks and rooms and self.talks:
                self.questions.append((self.look_back, self.random.choice(rooms)))

    async def look_back(self, room):
        self.note("#", "look #" + room)
        await self.question("LATEST #%s * %d" % (room, LOOK))
        self.note("#", "looked #" + room)

    # -- Talk

    async def talk(self):
        while True:
            await asyncio.sleep(self.random.expovariate(1 / (PAUSE * self.plan.talk)))
            if not self.talks or not self.rooms:
                continue
            room = self.random.choice(sorted(self.rooms))
            for _ in range(BURST if self.random.random() < BURST_SHARE else 1):
                key = Key(self.name, room, self.numbers[room])
                self.numbers[room] += 1
                self.send("PRIVMSG #%s :%s" % (room, compose(key, self.random)))
            self.ping()

    async def ask(self):
        while True:
            await asyncio.sleep(ASK if self.plan.talk == 1 else ASK_OF_MANY)
            if time.monotonic() - self.heard > GIVE_UP:
                raise Gone("nothing came for %d s" % GIVE_UP)
            if self.is_welcome:
                self.ping()

    async def knock(self):
        while True:
            await asyncio.sleep(KNOCK)
            outside = [room for room in self.plan.rooms if room in PASSING and room not in self.rooms]
            if self.is_welcome and outside:
                self.send("JOIN #" + self.random.choice(outside))

    def password(self):
        """One that may be in force: after a change the one before may be."""
        with open(self.chosen.passwords, encoding="utf-8") as file:
            known = json.load(file).get(self.plan.account) or ["none"]
        return known[self.refused % len(known)]


async def main():
    parser = argparse.ArgumentParser()
    for name in ("--names", "--passwords", "--records"):
        parser.add_argument(name, required=True)
    for name in ("--port", "--secure-port", "--web-port", "--seed"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--silent", action="store_true")
    chosen = parser.parse_args()
    clients = [Client(name, chosen) for name in chosen.names.split(",")]
    loop = asyncio.get_running_loop()

    def command():
        words = os.read(0, 4096).decode().split()
        if not words:
            loop.remove_reader(0)
        for client in clients:
            for word in words:
                if word == "pages":
                    client.wants_pages = True
                else:
                    client.talks = word == "talk"

    loop.add_reader(0, command)
    await asyncio.gather(*(client.run() for client in clients))


if __name__ == "__main__":
    asyncio.run(main())
