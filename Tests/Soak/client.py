#!/usr/bin/env python3
"""An IRC client of the soak, one process. Its record is ahead of everything that it does.

    client.py --name alice@one --password … --port N --record FILE --seed N [--bare] [--silent]

Logs in, enters all rooms, says numbered things, and sends a PING behind them: the answer says that they were taken.
Each line that comes is on file before it is acted upon, so a PONG stands for lines that are there; each line that goes
is on file before it goes. After `kill -9` it goes on with the next number. Lines on standard input: `silent`, `talk`.
"""

import argparse
import asyncio
import base64
import os
import random
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from journal import Journal, read  # noqa: E402
from peer import parse_irc  # noqa: E402
from plan import CLIENTS, ROOMS, Key, account_of, compose, read_key  # noqa: E402

# Seconds between two things that it says, and how often it is a burst.
PAUSE, BURST_SHARE, BURST = 0.6, 0.08, 10
# It asks for a sign of life so often, and gives up when none has come for so long, in seconds.
ASK, GIVE_UP = 1.0, 8
# Before another attempt, in seconds.
RETRY = (0.1, 1.0)


class Gone(Exception):
    pass


class Client:
    def __init__(self, chosen):
        self.chosen = chosen
        self.name = chosen.name
        self.account = account_of(chosen.name)
        self.caps = CLIENTS[chosen.name].caps
        record = read(chosen.record)
        self.connection = max((entry["c"] for entry in record), default=0)
        self.numbers = dict.fromkeys(ROOMS, 1)
        for entry in record:
            if entry["d"] == ">" and entry["l"].startswith("PRIVMSG "):
                key = read_key(entry["l"].split(" :", 1)[1])
                self.numbers[key.room] = max(self.numbers[key.room], key.number + 1)
        self.journal = Journal(chosen.record)
        self.random = random.Random("%d %s %d" % (chosen.seed, chosen.name, len(record)))
        self.talks = not chosen.silent
        self.tokens = 0
        self.rooms = set()

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
        self.rooms = set()
        reader, self.writer = await asyncio.open_connection("127.0.0.1", self.chosen.port, limit=1 << 20)
        self.heard = time.monotonic()
        tasks = [asyncio.create_task(task) for task in (self.read(reader), self.talk(), self.ask())]
        try:
            name = self.name.partition("@")[2]
            self.send("CAP LS 302")
            self.send("NICK " + self.account)
            self.send("USER %s 0 * :%s" % (name, self.account))
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
            self.send("AUTHENTICATE PLAIN")
        elif command == "AUTHENTICATE":
            login = self.account if self.chosen.bare else self.name
            self.send("AUTHENTICATE " + base64.b64encode(
                b"\0%s\0%s" % (login.encode(), self.chosen.password.encode())).decode())
        elif command == "903":
            self.send("CAP END")
        elif command in ("904", "905", "433", "ERROR") or command == "CAP" and line.params[1] == "NAK":
            raise Gone(line.raw)
        elif command == "001":
            self.send("JOIN " + ",".join("#" + room for room in ROOMS))
        elif command == "366":
            self.rooms.add(line.params[1].lstrip("#"))
            self.ping()

    async def talk(self):
        while True:
            await asyncio.sleep(self.random.expovariate(1 / PAUSE))
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
            await asyncio.sleep(ASK)
            if time.monotonic() - self.heard > GIVE_UP:
                raise Gone("nothing came for %d s" % GIVE_UP)
            if self.rooms:
                self.ping()


async def main():
    parser = argparse.ArgumentParser()
    for name in ("--name", "--password", "--record"):
        parser.add_argument(name, required=True)
    for name in ("--port", "--seed"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--bare", action="store_true", help="log in as the account alone; the ident names the client")
    parser.add_argument("--silent", action="store_true")
    client = Client(parser.parse_args())
    loop = asyncio.get_running_loop()

    def command():
        words = os.read(0, 4096).decode().split()
        if not words:
            loop.remove_reader(0)
        for word in words:
            client.talks = word == "talk"

    loop.add_reader(0, command)
    await client.run()


if __name__ == "__main__":
    asyncio.run(main())
