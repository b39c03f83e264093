#!/usr/bin/env python3
"""Runs relay, backend and IRC clients, breaks them by a seeded schedule, and holds what is left against the promises.

    CHATBRIDGE=path soak.py [--time 20m] [--seed N] [--keep] [--without KIND,...]

docs/RELIABILITY.md says what is promised and how to read the output. Exit code 1 when a promise is broken, 2 when the
soak could not run.
"""

import argparse
import asyncio
import base64
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import faults
import report
from accountant import account
from faults import Clock, SizeLimit, small_disk
from journal import read
from plan import CLIENTS, ROOMS, account_of
from processes import Process
from proxy import Proxy

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.abspath(os.environ["CHATBRIDGE"]) if os.environ.get("CHATBRIDGE") else ""
PASSWORD = "soak-5b1d"
# How long a message may wait for the backend. Short, so that outages pass it and authors must be told.
MAX_AGE = 20
# Bounds of the waiting at the end, in seconds: for what is on its way, and for the last words.
SETTLE, FINALE = MAX_AGE + 70, 40
# What is still unsettled a moment after the talk ended says nothing.
LEAST = 5
# Milliseconds after which a relay keeps things again whose disk has room again: it tries each second.
FULL_DISK_AFTER = 2000


class Trouble(Exception):
    """The soak itself cannot run."""


class Soak:
    def __init__(self, chosen):
        self.chosen = chosen
        self.directory = tempfile.mkdtemp(prefix="chatbridge-soak-")
        for name in ("state", "logs", "records"):
            os.mkdir(self.path(name))
        self.began = time.monotonic()
        self.relay_port = self.backend_port = None
        self.is_silent = False
        self.ran = collections.Counter()
        self.happened = []
        self.phases = []
        # While the relay is stopped between looking at the clock and reading a message, its time is as old as that.
        self.stalls = []
        # [from, to]: when the relay could keep nothing.
        self.full = []
        self.jump = None
        self.relay_words = collections.deque(maxlen=40)
        self.notes = []
        self.later = set()

    def path(self, *names):
        return os.path.join(self.directory, *names)

    # MARK: - The processes

    def build(self):
        chosen = self.chosen
        self.downstream = Proxy(lambda: self.relay_port)
        self.upstream = Proxy(lambda: self.backend_port)
        mebibytes = 48 + 2 * round(chosen.seconds / 60)
        self.disk = small_disk(self.path("state"), mebibytes, refuse=chosen.no_mount)
        if isinstance(self.disk, SizeLimit):
            self.notes.append("full disk: " + self.disk.how)
        self.clock = Clock(self.path("clock"))
        if not self.clock.library:
            self.notes.append("no libfaketime here: the relay's clock does not jump (apt-get install libfaketime)")
        self.hash = subprocess.run(
            [BINARY, "hash-password", "--iterations=4096"], input=PASSWORD + "\n", capture_output=True, text=True,
            check=True).stdout.strip()
        self.configure(with_storage=True)
        checked = subprocess.run(
            [BINARY, "check", "--config", self.path("chatbridge.toml")], capture_output=True, text=True, check=False)
        if checked.returncode and "storage" in checked.stdout + checked.stderr:
            self.notes.append("this chatbridge has no [storage]: it forgets everything when it is killed")
            self.configure(with_storage=False)
        elif checked.returncode:
            raise Trouble("the configuration is refused:\n" + checked.stdout + checked.stderr)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CHATBRIDGE")}
        self.relay = Process(
            # Swift loses a program's arguments where a preloaded library changes the environment, as libfaketime does:
            # `run` with ./chatbridge.toml is what none at all mean.
            "relay", lambda: [BINARY], directory=self.directory,
            environment=lambda: {**environment, **self.clock.environment()}, on_line=self.relay_said,
            on_end=self.relay_ended)
        self.relay_log = open(self.path("relay.log"), "a", encoding="utf-8")
        self.backend = Process("backend", self.backend_command, on_line=self.backend_said, on_end=self.backend_ended)
        self.clients = {name: Process(name, lambda name=name: self.client_command(name)) for name in CLIENTS}
        self.client_words = collections.deque(maxlen=20)
        for process in self.clients.values():
            process.on_line = self.client_words.append
        self.processes = [self.relay, self.backend, *self.clients.values()]

    def configure(self, with_storage):
        text = [
            '[server]\nname = "relay.soak"\nstate_dir = "%s"' % self.path("state"),
            '[[listeners]]\nbind = "irc://127.0.0.1:0"',
            '[room_defaults]\nbackoff = { min = "200ms", max = "1s", jitter = 0.25 }\nping = "3s"\n'
            'pong_timeout = "3s"\nconnect_timeout = "3s"\nhandshake_timeout = "3s"\nqueue = { max_age = "%ds" }'
            % MAX_AGE,
            '[limits]\nmessages_per_second = "off"\nupstream_messages_per_second = "off"\n'
            'upstream_connects_per_second = "off"\nping_interval = "5s"\nping_timeout = "5s"',
            '[log]\nformat = "json"\nlevel = "info"',
        ]
        if with_storage:
            text.append('[storage]\nurl = "sqlite:chatbridge.db"')
        for wire in {wire.name for wire in ROOMS.values()}:
            text.append('[backends.%s]\ndialect = "%s"\nurl = "ws://127.0.0.1:%d/%s/{room}"' % (
                wire, wire, self.upstream.port, wire))
        for name, wire in ROOMS.items():
            text.append('[[rooms]]\nname = "%s"\nbackend = "%s"' % (name, wire.name))
        for name in sorted({account_of(client) for client in CLIENTS}):
            text.append('[[accounts]]\nname = "%s"\npassword = "%s"' % (name, self.hash))
        with open(self.path("chatbridge.toml"), "w", encoding="utf-8") as file:
            file.write("\n\n".join(text) + "\n")

    def relay_said(self, line):
        self.relay_words.append(line)
        print(line, file=self.relay_log, flush=True)
        if '"event":"listening"' in line:
            self.relay_port = int(json.loads(line)["address"].rsplit(":")[-1])

    def relay_ended(self, pid):
        self.relay_port = None
        Clock.forget(pid)

    def backend_command(self):
        return [
            sys.executable, os.path.join(HERE, "backend.py"), "--logs", self.path("logs"),
            "--seed", str(self.chosen.seed)] + ["--silent"] * self.is_silent

    def backend_said(self, line):
        try:
            said = json.loads(line)
        except ValueError:
            said = {"trouble": line}
        if "port" in said:
            self.backend_port = said["port"]
        else:
            self.notes.append("backend: " + line[:300])

    def backend_ended(self, _pid):
        self.backend_port = None

    def client_command(self, name):
        return [
            sys.executable, os.path.join(HERE, "client.py"), "--name", name, "--password", PASSWORD,
            "--port", str(self.downstream.port), "--record", self.record_path(name), "--seed", str(self.chosen.seed),
        ] + ["--bare"] * self.is_bare + ["--silent"] * self.is_silent

    def record_path(self, name):
        return self.path("records", name.replace("@", "."))

    # MARK: - From the beginning to the end

    async def run(self):
        self.is_bare = False
        self.build()
        self.downstream.start()
        self.upstream.start()
        self.backend.start()
        self.relay.start()
        await self.until(lambda: self.relay_port and self.backend_port, 60, "relay and backend listen")
        self.is_bare = not await self.knows_client_names()
        if self.is_bare:
            self.notes.append("this chatbridge refuses alice@one as a login: clients are told apart by their ident")
        for process in self.clients.values():
            process.start()
        await self.until(self.everybody_spoke, 60, "every client has said something and seen it taken")
        await self.break_things()
        self.mend()
        # A while of peace, so that everything has neighbours.
        await asyncio.sleep(3)
        self.is_silent = True
        await self.settle(SETTLE)
        self.backend.tell("finale")
        await asyncio.sleep(1)
        return await self.settle(FINALE)

    async def until(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Trouble("not within %d s: %s\n%s" % (
                    seconds, what, "\n".join([*self.relay_words, *self.client_words][-20:])))
            await asyncio.sleep(0.1)

    async def knows_client_names(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.relay_port)
        login = base64.b64encode(b"\0alice@probe\0" + PASSWORD.encode()).decode()
        writer.write((
            "CAP LS 302\r\nNICK alice\r\nUSER probe 0 * :probe\r\nCAP REQ :sasl\r\nAUTHENTICATE PLAIN\r\n"
            "AUTHENTICATE %s\r\n" % login).encode())
        try:
            while True:
                line = (await asyncio.wait_for(reader.readline(), 10)).decode()
                if " 903 " in line or not line or " 904 " in line:
                    return " 903 " in line
        finally:
            writer.close()

    def everybody_spoke(self):
        return all(
            any(entry["d"] == "<" and " PONG " in entry["l"] for entry in read(path))
            for path in map(self.record_path, CLIENTS))

    async def settle(self, seconds):
        """Waits until nothing is missing any more, at most so long; the last account.

        Nor for longer than a message may wait, when what is missing stays the same.
        """
        begin = changed = time.monotonic()
        missing = None
        while True:
            # More than once: who was just being started did not hear it.
            for process in (self.backend, *self.clients.values()):
                process.tell("silent")
            await asyncio.sleep(LEAST)
            counted = time.monotonic()
            # Beside the loop: the proxies must not stand still meanwhile.
            result = await asyncio.to_thread(self.count)
            counted = time.monotonic() - counted
            if result.of("lost") != missing:
                missing, changed = result.of("lost"), time.monotonic()
            now = time.monotonic()
            if not missing or now - begin > seconds or now - changed > MAX_AGE + LEAST:
                return result
            # An account of an hour takes its time.
            await asyncio.sleep(2 * counted)

    def count(self):
        # Clients first: what they have seen is in the logs then.
        records = {name: read(self.record_path(name)) for name in CLIENTS}
        logs = {name: read(self.path("logs", name + ".log")) for name in ROOMS}
        return account(logs, records, self.phases + self.stalls, self.full)

    # MARK: - Faults

    async def break_things(self):
        begin = time.monotonic()
        dealt = faults.schedule(self.chosen.seed, self.chosen.seconds)
        for fault in dealt:
            await asyncio.sleep(max(0, begin + fault.at - time.monotonic()))
            if any(fault.kind.startswith(word) for word in self.chosen.without):
                continue
            detail = self.carry_out(fault)
            if detail is None:
                continue
            self.ran[fault.kind] += 1
            line = "%7.1f  %-14s %s" % (fault.at, fault.kind, detail)
            self.happened.append("%d %s" % (time.time_ns() // 1_000_000, line))
            if self.chosen.verbose:
                print(line, flush=True)
        await asyncio.sleep(max(0, begin + self.chosen.seconds - time.monotonic()))

    def carry_out(self, fault):
        """What was done; None: it could not be done now."""
        source = random.Random(fault.dice)
        deed, _, whom = fault.kind.partition(" ")
        if deed in ("kill", "stall"):
            process = self.clients[source.choice(sorted(self.clients))] if whom == "client" else getattr(self, whom)
            if deed == "kill":
                return "%s, back after %.2f s" % (process.name, fault.length) if process.kill(fault.length) else None
            if process.is_stopped or not process.stall():
                return None
            if process is self.relay:
                now = time.time_ns() // 1_000_000
                length = round(fault.length * 1000)
                self.stalls.append([now, now + length, -length])
            self.after(fault.length, lambda pid=process.pid: self.resume(process, pid))
            return "%s for %.1f s" % (process.name, fault.length)
        if deed == "cut":
            return self.cut(whom, source)
        if fault.kind == "full disk":
            if not self.relay.is_running:
                return None
            self.full.append([time.time_ns() // 1_000_000, float("inf")])
            self.disk.fill(self.relay)
            if isinstance(self.disk, SizeLimit) and self.disk.is_deadly:
                self.notes.append("the relay does not ignore SIGXFSZ: a limit on the size of files ends it")
            self.after(fault.length, self.empty_disk)
            return "for %.1f s" % fault.length
        if fault.kind == "clock jump":
            if not self.clock.library or self.jump is not None:
                return None
            offset = source.choice(faults.JUMPS)
            self.jump = [time.time_ns() // 1_000_000, float("inf"), offset * 1000]
            self.phases.append(self.jump)
            self.clock.set(offset)
            self.after(fault.length, self.set_clock_right)
            return "%+d s for %.1f s" % (offset, fault.length)
        raise Trouble("an unknown fault: " + fault.kind)

    def cut(self, how, source):
        side, name = source.choice(((self.upstream, "backend"), (self.downstream, "clients")))
        whole = sorted((one for one in side.connections if one.is_whole), key=lambda one: one.near.fileno())
        if not whole:
            return None
        chosen = whole if source.random() < 0.4 else [source.choice(whole)]
        fate = source.choice(("swallowed", "frozen"))
        near, far = source.choice(((True, True), (True, True), (True, False), (False, True)))
        for connection in chosen:
            if how == "with FIN":
                connection.finish()
            elif how == "with RST":
                connection.tear()
            else:
                connection.silence(fate, near, far)
        ways = fate + (" both ways" if near and far else " upwards" if near else " downwards")
        return "%d of %d to the %s%s" % (len(chosen), len(whole), name, ", " + ways if how == "silently" else "")

    def after(self, seconds, action):
        handle = asyncio.get_running_loop().call_later(seconds, lambda: (self.later.discard(handle), action()))
        self.later.add(handle)

    @staticmethod
    def resume(process, pid):
        if process.is_running and process.pid == pid:
            process.resume()

    def empty_disk(self):
        self.disk.empty(self.relay)
        now = time.time_ns() // 1_000_000
        for phase in self.full:
            phase[1] = min(phase[1], now + FULL_DISK_AFTER)

    def set_clock_right(self):
        if self.jump is not None:
            self.clock.set(0)
            self.jump[1] = time.time_ns() // 1_000_000
            self.jump = None

    def mend(self):
        """No faults any more."""
        for handle in self.later:
            handle.cancel()
        self.later.clear()
        for process in self.processes:
            process.resume()
        self.empty_disk()
        self.set_clock_right()

    # MARK: - The end

    async def stop(self):
        for handle in self.later:
            handle.cancel()
        for process in getattr(self, "processes", []):
            await process.stop()
        for proxy in ("downstream", "upstream"):
            if hasattr(self, proxy):
                getattr(self, proxy).stop()

    def clean_up(self, keep):
        if keep and hasattr(self, "disk") and os.listdir(self.path("state")):
            # The tmpfs goes with us.
            shutil.copytree(self.path("state"), self.path("state.kept"), ignore=shutil.ignore_patterns("ballast"))
        if hasattr(self, "disk"):
            self.disk.end()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def elapsed(self):
        return time.monotonic() - self.began

    def own_ends(self):
        """Processes that ended though nobody had killed them."""
        return {process.name: process.ends for process in self.processes if process.ends}


# MARK: - The command


def seconds_of(text):
    match = re.fullmatch(r"(\d+)([smh]?)", text)
    if not match:
        raise argparse.ArgumentTypeError("a time such as 90s, 20m or 1h, not %r" % text)
    return int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time", type=seconds_of, default="20m", dest="seconds", help="how long faults come")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="keep logs and records even when all is well")
    parser.add_argument("--verbose", action="store_true", help="a line for each fault")
    parser.add_argument("--no-mount", action="store_true", help="as where mount is refused")
    parser.add_argument("--without", default="", help="kinds of faults that do not come, by their first words")
    chosen = parser.parse_args()
    chosen.without = [word for word in chosen.without.split(",") if word]
    if chosen.seed is None:
        chosen.seed = random.SystemRandom().randrange(1, 1_000_000)
    return chosen


async def main():
    chosen = arguments()
    if not BINARY:
        raise Trouble("CHATBRIDGE must name the program to test")
    print("soak: %d s with a fault every %.1f s, SEED=%d" % (
        chosen.seconds, sum(faults.PAUSE) / 2, chosen.seed), flush=True)
    soak = Soak(chosen)
    keep, task = True, asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        result = await soak.run()
        await soak.stop()
        # Nothing moves any more.
        result = soak.count()
        broken = report.show(result, soak)
        keep = chosen.keep or bool(broken)
        if keep:
            report.write_details(result, soak)
            print("Logs, records and all findings are in %s" % soak.directory, flush=True)
        return 1 if broken else 0
    except asyncio.CancelledError:
        print("soak: interrupted", flush=True)
        keep = chosen.keep
        return 130
    finally:
        await soak.stop()
        soak.clean_up(keep)


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except (Trouble, OSError, subprocess.CalledProcessError) as error:
        print("soak: %s" % error, file=sys.stderr)
        sys.exit(2)
