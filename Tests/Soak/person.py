#!/usr/bin/env python3
"""A person in plain mode: telnet by keys or by lines, or nc. What is on the screen is recorded as a client of IRC would be told.

    person.py --name hal@keys --passwords FILE --port N --records DIRECTORY --screens DIRECTORY --seed N [--silent]

Gives a name, a password where one is asked for, and a room; enters its other rooms, goes back to the first, says numbered
things, and asks who is there: the answer says that what was typed before was taken. Each byte that comes is on file before
it is looked at, and the lines that it makes up before the terminal answers a timing mark behind them. After `kill -9` it goes
on with the next number. Words on standard input: `silent`, `talk`.
"""

import argparse
import asyncio
import json
import os
import random
import re
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from journal import Journal, read  # noqa: E402
from people import UNREADABLE, Recorder  # noqa: E402
from plain_screen import ASKS_NAME, ASKS_PASSWORD, ASKS_ROOM  # noqa: E402
from plan import CLIENTS, Key, compose, nick_of, read_key  # noqa: E402

# Seconds between two things that are said; between two questions; and without anything on the screen until giving up.
PAUSE, ASK, GIVE_UP = 0.7, 1.0, 8
# So long may what was typed go without what it asks for, while others are heard, in seconds.
STUCK = 15
# Before another attempt, in seconds.
RETRY = (0.1, 1.0)
# Keys that are pressed at once, and seconds between them and the next.
STROKES, STROKE_PAUSE = (3, 40), (0, 0.02)


class Gone(Exception):
    pass


class Person(Recorder):
    def __init__(self, name, chosen):
        self.name, self.chosen, self.plan = name, chosen, CLIENTS[name]
        path = os.path.join(chosen.records, name.replace("@", "."))
        record = read(path)
        self.numbers = dict.fromkeys(self.plan.rooms, 1)
        for entry in record:
            if entry["d"] == ">" and entry["l"].startswith("PRIVMSG "):
                key = read_key(entry["l"].split(" :", 1)[1])
                self.numbers[key.room] = max(self.numbers[key.room], key.number + 1)
        self.journal = Journal(path)
        screen = os.path.join(chosen.screens, name.replace("@", "."))
        self.connection = max((entry["c"] for entry in [*record, *read(screen)]), default=0)
        self.screens = Journal(screen)
        self.random = random.Random("%d %s %d" % (chosen.seed, name, len(record)))
        self.talks, self.refusals = not chosen.silent, 0

    def note(self, direction, line):
        self.journal.append(t=time.time_ns() // 1_000_000, c=self.connection, d=direction, l=line)

    def screen_note(self, direction, text):
        self.screens.append(t=time.time_ns() // 1_000_000, c=self.connection, d=direction, l=text)

    async def run(self):
        while True:
            self.connection += 1
            try:
                await self.connected()
            except (OSError, Gone) as error:
                self.note("!", str(error) or type(error).__name__)
            except (AssertionError, UnicodeDecodeError) as error:
                self.note("!", UNREADABLE + str(error))
            await asyncio.sleep(self.random.uniform(*RETRY))

    async def connected(self):
        reader, self.writer = await asyncio.open_connection("127.0.0.1", self.chosen.port)
        self.heard, self.news, self.tokens = time.monotonic(), asyncio.Event(), 0
        own = None if "echo-message" in self.plan.caps else dict(self.numbers)
        Recorder.__init__(self, self.plan.via, nick_of(self.name), self.plan.rooms, self.connection, own)
        tasks = [asyncio.create_task(task) for task in (self.read(reader), self.sit(), self.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.writer.transport.abort()

    # -- The terminal

    def send_bytes(self, data):
        self.writer.write(data)

    async def read(self, reader):
        while True:
            data = await reader.read(1 << 16)
            if not data:
                raise Gone(self.transcript.last_words or "the connection ended")
            self.heard = time.monotonic()
            self.screen_note("<", data.decode("latin-1"))
            self.take(data)
            self.news.set()

    async def until(self, condition):
        end = time.monotonic() + STUCK
        while not (found := condition()):
            self.news.clear()
            try:
                await asyncio.wait_for(self.news.wait(), end - time.monotonic())
            except asyncio.TimeoutError:
                raise Gone("no answer for %d s; the line is %r" % (STUCK, self.prompt[-80:])) from None
        return found

    async def question(self, *patterns):
        """Which one of the questions is asked."""
        return await self.until(lambda: next((one for one in patterns if re.search(one, self.prompt)), None))

    # -- The hands

    async def keyed(self, text, shown=None):
        """A line, in pieces as fingers give it. `shown`: what the prompt then ends with."""
        if self.kind != "character":
            await asyncio.sleep(self.random.uniform(0, 0.1))
            self.open = ""
            self.send_bytes(text.encode() + (b"\n" if self.kind == "nc" else b"\r\n"))
            return
        at = 0
        while at < len(text):
            end = at + self.random.randint(*STROKES)
            self.send_bytes(text[at:end].encode())
            at = end
            await asyncio.sleep(self.random.uniform(*STROKE_PAUSE))
        if shown is not None:
            await self.until(lambda: self.prompt.endswith(shown))
        self.enter()

    async def sit(self):
        await self.come_in()
        asked = time.monotonic()
        said = time.monotonic() + self.random.expovariate(1 / (PAUSE * self.plan.talk))
        while True:
            now = time.monotonic()
            if self.talks and now > said:
                said = now + self.random.expovariate(1 / (PAUSE * self.plan.talk))
                await self.say()
            elif not self.talks and self.transcript.front != self.plan.rooms[0]:
                # What is in front at the end is read.
                await self.go_to(self.plan.rooms[0])
            elif now > asked + ASK:
                asked = now
                self.tokens += 1
                self.ask("%d.%d" % (self.connection, self.tokens))
                await self.keyed("/who")
            else:
                await asyncio.sleep(max(0.01, min(asked + ASK, said if self.talks else now + 1) - now))

    def ask(self, token):
        self.note(">", "PING :" + token)
        self.transcript.questions.append(token)

    async def say(self):
        room = self.transcript.front
        if self.random.random() < 0.1:
            await self.go_to(self.random.choice(self.plan.rooms))
            return
        key = Key(self.name, room, self.numbers[room])
        self.numbers[room] += 1
        text = compose(key, self.random)
        self.note(">", "PRIVMSG #%s :%s" % (room, text))
        await self.keyed(text)

    async def go_to(self, room):
        if room != self.transcript.front:
            await self.keyed("/join " + room)
            await self.until(lambda: self.transcript.front == room)

    async def come_in(self):
        if self.kind == "nc":
            self.send_bytes(b"\n")
        await self.question(ASKS_NAME)
        nick = nick_of(self.name)
        await self.keyed(nick, nick)
        found = await self.question(ASKS_PASSWORD, ASKS_ROOM, r"(?i)name[^:]*: ?$")
        if found == ASKS_PASSWORD:
            await self.keyed(self.password())
            # An account is in its rooms again.
            found = await self.until(lambda: self.transcript.front or next(
                (one for one in (ASKS_ROOM, r"(?i)name[^:]*: ?$") if re.search(one, self.prompt)), None))
        first, *others = self.plan.rooms
        if found == ASKS_ROOM:
            await self.keyed(first)
        elif not self.transcript.front:
            self.refusals += 1
            raise Gone("it was refused: " + self.prompt)
        await self.until(lambda: self.transcript.front)
        for room in others:
            await self.go_to(room)
        await self.go_to(first)

    async def wait(self):
        while True:
            await asyncio.sleep(1)
            if time.monotonic() - self.heard > GIVE_UP:
                raise Gone("nothing came for %d s" % GIVE_UP)

    def password(self):
        """One that may be in force: after a change the one before may be."""
        with open(self.chosen.passwords, encoding="utf-8") as file:
            known = json.load(file).get(self.plan.account) or ["none"]
        return known[self.refusals % len(known)]


async def main():
    parser = argparse.ArgumentParser()
    for name in ("--name", "--passwords", "--records", "--screens"):
        parser.add_argument(name, required=True)
    for name in ("--port", "--seed"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--silent", action="store_true")
    chosen = parser.parse_args()
    person = Person(chosen.name, chosen)
    loop = asyncio.get_running_loop()

    def command():
        words = os.read(0, 4096).decode().split()
        if not words:
            loop.remove_reader(0)
        for word in words:
            person.talks = word == "talk"

    loop.add_reader(0, command)
    await person.run()


if __name__ == "__main__":
    asyncio.run(main())
