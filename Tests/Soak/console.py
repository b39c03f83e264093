"""The operator: asks the running relay at its admin socket now and then, and records what came."""

import asyncio
import json
import os
import random
import time

from journal import Journal
from plan import EVERY_ROOM

# Seconds between two questions; how long an answer is waited for; how long it looks on with `tail`.
PAUSE, PATIENCE, TAIL = 2.5, 30, (1, 4)
# Of what is asked; `rooms` and `clients` by the program's own commands, whose answers are text.
QUESTIONS = {"status": 3, "rooms": 1, "clients": 1, "history": 3, "tail": 3}
HISTORY = 50


def milliseconds():
    return time.time_ns() // 1_000_000


class Console:
    def __init__(self, binary, socket, journal, seed):
        self.binary, self.socket, self.journal = binary, socket, Journal(journal)
        self.random = random.Random("console %d" % seed)
        self.count = 0

    async def run(self):
        while True:
            await asyncio.sleep(self.random.expovariate(1 / PAUSE))
            await self.ask()

    async def ask(self):
        what = self.random.choices(list(QUESTIONS), list(QUESTIONS.values()))[0]
        room = self.random.choice(sorted(EVERY_ROOM))
        begin, lines, why = milliseconds(), [], None
        try:
            if what in ("rooms", "clients"):
                lines, why = await self.command(what)
            else:
                request = {"request": what} | {
                    "history": {"room": room, "limit": HISTORY}, "tail": {"room": room}, "status": {}}[what]
                await asyncio.wait_for(self.talk(request, lines), PATIENCE)
        except (OSError, EOFError) as error:
            why = str(error) or type(error).__name__
        except asyncio.TimeoutError:
            why = "no answer within %d s" % PATIENCE
        self.count += why is None
        self.journal.append(t=begin, until=milliseconds(), what=what, room=room, lines=lines, why=why)

    async def talk(self, request, lines):
        reader, writer = await asyncio.open_unix_connection(self.socket, limit=1 << 24)
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            end = time.monotonic() + self.random.uniform(*TAIL) if request["request"] == "tail" else float("inf")
            while True:
                try:
                    line = await asyncio.wait_for(reader.readline(), min(PATIENCE, max(0.01, end - time.monotonic())))
                except asyncio.TimeoutError:
                    if time.monotonic() >= end:
                        return
                    raise
                if not line.endswith(b"\n"):
                    raise EOFError("the answer was cut off")
                lines.append(line.decode("utf-8", "surrogateescape").rstrip("\n"))
                if b'"item"' not in line[:8] and b'"missed"' not in line[:10] or time.monotonic() >= end:
                    return
        finally:
            writer.transport.abort()

    async def command(self, what):
        process = await asyncio.create_subprocess_exec(
            self.binary, what, "--socket", self.socket, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, cwd=os.path.dirname(self.socket))
        try:
            out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        except asyncio.TimeoutError:
            process.kill()
            raise
        why = err.decode().strip()[:300] if process.returncode else None
        return out.decode("utf-8", "surrogateescape").splitlines(), why
