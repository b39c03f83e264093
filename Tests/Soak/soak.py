#!/usr/bin/env python3
"""Runs relay, backend and IRC clients, breaks them by a seeded schedule, and holds what is left against the promises.

    CHATBRIDGE=path soak.py [--time 20m] [--seed N] [--keep] [--without KIND,...]

docs/RELIABILITY.md says what is promised and how to read the output. Exit code 1 when a promise is broken, 2 when the
soak could not run.
"""

import argparse
import asyncio
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

import accountant
import faults
import plan
import report
from configuration import Configuration
from console import Console
from faults import Clock, SizeLimit, small_disk
from journal import Journal, read
from memory import REST, Memory
from mirroring import Mirrors
from people import People
from plan import CLIENTS, EVERY_ROOM, PEOPLE, PROCESSES, ROOMS, WIRES
from processes import Process
from proxy import Proxy
from reloading import Reloading
from wires import WIRE_CLASSES

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.abspath(os.environ["CHATBRIDGE"]) if os.environ.get("CHATBRIDGE") else ""
# How long a message may wait for the backend. Short, so that outages pass it and authors must be told.
MAX_AGE = 20
# Bounds of the waiting at the end, in seconds: for what is on its way, for the last words, and for the pages.
SETTLE, FINALE, PAGES = MAX_AGE + 70, 40, 60
# What a lost link left behind reaches the backend after so long at the latest, in seconds: sooner than the relay stops
# waiting for it, beyond which it is not told from what was lost.
STALE = 3
# What is still unsettled a moment after the talk ended says nothing.
LEAST = 5
# What is missing for so long without a change is missing, in seconds: the longest wait, and the longest pause between two
# tries of a link that was overloaded.
UNCHANGED = MAX_AGE + 15
# A second accountant, by somebody who does not know the first; and who judges what reloads did.
CHECKERS = {"The second accountant": os.path.join(HERE, "auditor.py"), "Of reloads": os.path.join(HERE, "reloads.py")}
# So long after a reload the certificate is looked at, in seconds, and so long at most.
LOOK_AT_CERTIFICATE = 2


def milliseconds():
    return time.time_ns() // 1_000_000


class Trouble(Exception):
    """The soak itself cannot run."""


class Soak:
    def __init__(self, chosen):
        self.chosen = chosen
        self.directory = tempfile.mkdtemp(prefix="chatbridge-soak-")
        for name in ("state", "logs", "records", "people"):
            os.mkdir(self.path(name))
        self.began = time.monotonic()
        # Of the relay's listeners: plain, with TLS, and for WebSockets.
        self.relay_ports = []
        # Rooms that had a link.
        self.linked = set()
        self.backend_ports = dict.fromkeys(WIRES)
        self.is_silent = False
        self.moments = {"began": None, "peace": None, "silence": None}
        # What was done how often: kinds of faults, and scripts.
        self.ran, self.scripts = collections.Counter(), collections.Counter()
        self.happened = []
        self.jumps, self.is_jumping = [], False
        self.relay_words = collections.deque(maxlen=40)
        self.notes = []
        self.later, self.looking = set(), set()
        # Clients that were not heard of yet.
        self.quiet = list(CLIENTS)
        self.write_plan()
        self.people = People(self.directory)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def write_plan(self):
        with open(self.path("plan.json.new"), "w", encoding="utf-8") as file:
            json.dump({
                "calm": self.is_calm(), "seed": self.chosen.seed, "seconds": self.chosen.seconds, "max_age": MAX_AGE, **self.moments,
                **plan.described()}, file, indent=1)
        os.rename(self.path("plan.json.new"), self.path("plan.json"))

    def is_calm(self):
        kinds = {fault.kind for fault in faults.schedule(self.chosen.seed, self.chosen.seconds)[0]}
        return all(kind in ("reload", "say") or any(map(kind.startswith, self.chosen.without)) for kind in kinds)

    def moment(self, name):
        self.moments[name] = milliseconds()
        self.write_plan()

    # MARK: - The processes

    async def build(self):
        chosen = self.chosen
        # A client that came again must not be overtaken by what it said before: nobody could know that.
        ends = Journal(self.path("ends.jsonl"))
        self.downstream = Proxy(lambda: self.port_of(0), side="clients", journal=ends)
        # What comes over these is not in the clear, or in frames; of each there is one.
        (secure,) = (name for name, client in CLIENTS.items() if client.via == "ircs")
        self.secure = Proxy(lambda: self.port_of(1), side="clients", journal=ends, who=secure)
        (page,) = (name for name, client in CLIENTS.items() if client.via == "web")
        self.web = Proxy(lambda: self.port_of(2), side="clients", journal=ends, who=page)
        # Cut alike.
        self.fronts = [self.downstream, self.secure, self.web]
        self.upstream = {
            wire: Proxy(
                lambda wire=wire: self.backend_ports[wire], 0 if WIRE_CLASSES[wire].forgets_the_gone else STALE, wire, ends)
            for wire in WIRES
        }
        mebibytes = 64 + 4 * round(chosen.seconds / 60)
        self.disk = small_disk(self.path("state"), mebibytes, refuse=chosen.no_mount)
        if isinstance(self.disk, SizeLimit):
            self.notes.append("full disk: " + self.disk.how)
        if not self.disk.can_stall:
            self.notes.append("the disk does not stand still: no file system can be mounted that freezes")
        self.clock = Clock(self.path("clock"), Journal(self.path("clock.jsonl")))
        if not self.clock.library:
            self.notes.append("no libfaketime here: the relay's clock does not jump (apt-get install libfaketime)")
        self.mirrors = Mirrors(BINARY, self.directory, chosen.seed, lambda: self.backend_ports["typed"])
        await self.mirrors.prepare()
        files = Configuration(
            BINARY, self.directory, MAX_AGE, {wire: proxy.port for wire, proxy in self.upstream.items()},
            self.mirrors.configuration())
        self.reloading = Reloading(files, self.path("reloads.jsonl"), chosen.seed)
        self.console = Console(BINARY, self.path("admin.sock"), self.path("console.jsonl"), chosen.seed)
        checked = subprocess.run(
            [BINARY, "check", "--config", self.path("chatbridge.toml")], capture_output=True, text=True, check=False)
        if checked.returncode:
            raise Trouble("the configuration is refused:\n" + checked.stdout + checked.stderr)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CHATBRIDGE")}
        self.relay_story = Journal(self.path("relay.jsonl"))
        self.relay = Process(
            # Swift loses a program's arguments where a preloaded library changes the environment, as libfaketime does:
            # `run` with ./chatbridge.toml is what none at all mean.
            "relay", self.relay_command, directory=self.directory,
            environment=lambda: {**environment, **self.clock.environment()}, on_line=self.relay_said,
            on_start=lambda pid: self.tell_relay("started", pid=pid), on_end=self.relay_ended)
        self.relay_log = open(self.path("relay.log"), "a", encoding="utf-8")
        self.memory = Memory(
            self.path("samples.jsonl"),
            {**{proxy.port: wire for wire, proxy in self.upstream.items()}, **self.mirrors.places}, self.path("logs"))
        self.backends = {
            wire: Process(
                "backend of " + wire, lambda wire=wire: self.backend_command(wire),
                on_line=lambda line, wire=wire: self.backend_said(wire, line),
                on_end=lambda pid, code, own, wire=wire: self.backend_ports.update({wire: None}))
            for wire in WIRES
        }
        self.client_words = collections.deque(maxlen=20)
        self.clients = {
            name: Process(name, lambda names=names: self.client_command(names), on_line=self.client_words.append)
            for name, names in PROCESSES.items()
        }
        self.processes = [self.relay, *self.backends.values(), *self.clients.values()]

    def port_of(self, listener):
        return self.relay_ports[listener] if len(self.relay_ports) > listener else None

    def relay_command(self):
        self.reloading.before_start()
        return [BINARY]

    def tell_relay(self, what, **more):
        self.relay_story.append(t=milliseconds(), what=what, **more)

    def relay_said(self, line):
        self.relay_words.append(line)
        print(line, file=self.relay_log, flush=True)
        self.mirrors.relay_said(line)
        if '"event":"listening"' in line:
            self.relay_ports.append(int(json.loads(line)["address"].rsplit(":")[-1]))
            if len(self.relay_ports) == 3:
                self.reloading.started()
        elif '"event":"reloaded"' in line or '"event":"reload-refused"' in line:
            self.reloading.ended('"event":"reloaded"' in line)
            self.after(LOOK_AT_CERTIFICATE, self.look_at_certificate)
        elif '"event":"upstream-up"' in line:
            self.linked.add(json.loads(line).get("room"))

    def look_at_certificate(self):
        task = asyncio.get_running_loop().create_task(self.certificate())
        self.looking.add(task)
        task.add_done_callback(self.looking.discard)

    async def certificate(self):
        """What a new connection is shown, past the proxies."""
        begin, context = milliseconds(), ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            _, writer = await asyncio.wait_for(
                asyncio.open_connection("127.0.0.1", self.port_of(1) or 0, ssl=context), LOOK_AT_CERTIFICATE)
        except (OSError, asyncio.TimeoutError):
            # It died, or stands still.
            return
        shown = ssl.DER_cert_to_PEM_cert(writer.get_extra_info("ssl_object").getpeercert(True))
        writer.transport.abort()
        self.reloading.note("certificate", until=milliseconds(), number=self.reloading.files.number_of(shown))

    def relay_ended(self, pid, code, own):
        self.relay_ports = []
        self.mirrors.relay_ended()
        self.tell_relay("ended", pid=pid, code=code, **({"own": True} if own else {}))
        Clock.forget(pid)

    def backend_command(self, wire):
        return [
            sys.executable, os.path.join(HERE, "backend.py"), "--wire", wire, "--logs", self.path("logs"),
            "--seed", str(self.chosen.seed)] + ["--silent"] * self.is_silent

    def backend_said(self, wire, line):
        try:
            self.backend_ports[wire] = json.loads(line)["port"]
        except (ValueError, KeyError):
            self.notes.append("backend of %s: %s" % (wire, line[:300]))

    def client_command(self, names):
        if names[0] in PEOPLE:
            return [
                sys.executable, os.path.join(HERE, "person.py"), "--name", names[0], "--passwords", self.path("passwords"),
                "--port", str(self.downstream.port), "--records", self.path("records"), "--screens", self.path("people"),
                "--seed", str(self.chosen.seed)] + ["--silent"] * self.is_silent
        return [
            sys.executable, os.path.join(HERE, "client.py"), "--names", ",".join(names),
            "--passwords", self.path("passwords"), "--port", str(self.downstream.port),
            "--secure-port", str(self.secure.port), "--web-port", str(self.web.port),
            "--records", self.path("records"), "--seed", str(self.chosen.seed),
        ] + ["--silent"] * self.is_silent

    def record_path(self, name):
        return self.path("records", name.replace("@", "."))

    # MARK: - From the beginning to the end

    async def run(self):
        await self.build()
        for proxy in (*self.fronts, *self.upstream.values()):
            proxy.start()
        for process in (*self.backends.values(), self.relay):
            process.start()
        self.mirrors.start()
        await self.until(
            lambda: self.port_of(2) and all(self.backend_ports.values()), 60, "relay and backends listen")
        # What was said in a room that never had a link cannot be asked for.
        await self.until(lambda: self.linked.issuperset(EVERY_ROOM), 60, "every room has its link")
        for process in self.clients.values():
            process.start()
        await self.until(
            self.everybody_spoke, 60 + len(CLIENTS) / 4, "every client has said something and seen it taken")
        self.watching = asyncio.get_running_loop().create_task(self.memory.watch(self.relay))
        self.asking = asyncio.get_running_loop().create_task(self.console.run())
        self.moment("began")
        self.mirrors.begin()
        await self.break_things()
        self.mend()
        await self.until(lambda: not self.reloading.is_pending, 60, "the last change is taken or refused")
        self.reloading.finish(self.relay)
        self.moment("peace")
        self.mirrors.peace()
        # A while of peace, so that everything has neighbours.
        await asyncio.sleep(3)
        self.is_silent = True
        self.moment("silence")
        await self.settle(SETTLE)
        for process in self.backends.values():
            process.tell("say")
        await asyncio.sleep(1)
        await self.settle(FINALE)
        await self.mirrors.settle(FINALE)
        await self.read_pages()
        # Nobody asks for anything any more.
        self.asking.cancel()
        self.memory.is_quiet = True
        self.memory.sample(self.relay)
        await asyncio.sleep(REST)
        self.watching.cancel()
        self.memory.sample(self.relay, final=True)

    async def until(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Trouble("not within %d s: %s\n%s" % (
                    seconds, what, "\n".join([*self.relay_words, *self.client_words, *self.notes][-30:])))
            await asyncio.sleep(0.1)

    def everybody_spoke(self):
        # Of a crowd, a look at each line would take too long.
        self.quiet = [
            name for name in self.quiet
            if not os.path.exists(self.record_path(name))
            or b" PONG relay.soak " not in pathlib.Path(self.record_path(name)).read_bytes()]
        return not self.quiet

    async def settle(self, seconds):
        """Waits until nothing is missing any more, at most so long.

        Nor for longer than anything may take, when what is missing stays the same.
        """
        begin = changed = time.monotonic()
        missing = None
        while True:
            # More than once: who was just being started did not hear it.
            for process in (*self.backends.values(), *self.clients.values()):
                process.tell("silent")
            await asyncio.sleep(LEAST)
            counted = time.monotonic()
            # In a process of its own: the proxies must not stand still meanwhile.
            counter = await asyncio.create_subprocess_exec(
                sys.executable, accountant.__file__, self.directory, "--brief", stdout=asyncio.subprocess.PIPE)
            found = json.loads((await counter.communicate())[0])
            counted = time.monotonic() - counted
            if found != missing:
                missing, changed = found, time.monotonic()
            now = time.monotonic()
            if not missing["lost"] or now - begin > seconds or now - changed > UNCHANGED:
                return
            # An account of an hour takes its time.
            await asyncio.sleep(counted)

    async def read_pages(self):
        readers = [name for name, client in CLIENTS.items() if "batch" in client.caps]

        def behind():
            # Not line by line: of an hour that takes seconds, in which the proxies would stand still.
            return [
                name for name in readers
                if pathlib.Path(self.record_path(name)).read_bytes().count(b'"d":"#","l":"paged ') < len(ROOMS)]

        end = time.monotonic() + PAGES + self.chosen.seconds / 20
        while time.monotonic() < end and behind():
            for name in readers:
                self.clients[name].tell("pages")
            await asyncio.sleep(2)
        for name in behind():
            ends = [entry["l"] for entry in read(self.record_path(name)) if entry["d"] == "!"]
            self.notes.append("%s did not read every room from its end to its beginning; its connections ended with: %s" % (
                name, ends[-1] if ends else "nothing"))

    # MARK: - Faults

    async def break_things(self):
        begin = time.monotonic()
        dealt, scripts = faults.schedule(self.chosen.seed, self.chosen.seconds)
        self.scripts.update(name for _, name in scripts)
        for at, name in scripts:
            self.after(at, lambda name=name, at=at: self.note_fault(at, "together", name))
        for fault in dealt:
            await asyncio.sleep(max(0, begin + fault.at - time.monotonic()))
            if any(fault.kind.startswith(word) for word in self.chosen.without):
                continue
            detail = self.carry_out(fault)
            if detail is not None:
                self.ran[fault.kind] += 1
                self.note_fault(fault.at, fault.kind, detail)
        await asyncio.sleep(max(0, begin + self.chosen.seconds - time.monotonic()))

    def note_fault(self, at, kind, detail):
        line = "%7.1f  %-14s %s" % (at, kind, detail)
        self.happened.append("%d %s" % (milliseconds(), line))
        if self.chosen.verbose:
            print(line, flush=True)

    def carry_out(self, fault):
        """What was done; None: it could not be done now."""
        source = random.Random(fault.dice)
        deed, _, what = fault.kind.partition(" ")
        # Mostly one wire, now and then all.
        wires = fault.whom or (tuple(WIRES) if source.random() < 0.25 else (source.choice(tuple(WIRES)),))
        if deed in ("kill", "stall") and what in ("relay", "client"):
            process = self.relay if what == "relay" else self.clients[source.choice(sorted(self.clients))]
            return self.kill(process, fault) if deed == "kill" else self.stop_for(process, fault)
        if what == "backend":
            act = self.kill if deed == "kill" else self.stop_for
            return _joined(act(self.backends[wire], fault) for wire in wires)
        if deed == "hang":
            running = [wire for wire in wires if self.backends[wire].is_running]
            for wire in running:
                self.backends[wire].tell("%s=%.2f" % (what, fault.length))
            return "%s for %.1f s" % (", ".join(running), fault.length) if running else None
        if deed in ("expire", "expire-all"):
            wires = fault.whom or (source.choice(sorted(name for name, wire in WIRES.items() if wire.logins)),)
            for wire in wires:
                self.backends[wire].tell(deed)
            return ", ".join(wires)
        if deed == "reload":
            return self.reloading.reload(self.relay) if self.port_of(1) else None
        if deed == "say":
            for wire in wires:
                self.backends[wire].tell("say")
            return ", ".join(wires)
        if fault.kind == "stall disk":
            return "for %.1f s" % fault.length if self.disk.stall(fault.length) else None
        if deed in ("cut", "stall"):
            return self.cut(what, wires, fault, source)
        if fault.kind == "full disk":
            if not self.relay.is_running or self.disk.is_stalled:
                return None
            self.disk.fill(self.relay)
            if isinstance(self.disk, SizeLimit) and self.disk.is_deadly:
                self.notes.append("the relay does not ignore SIGXFSZ: a limit on the size of files ends it")
            self.after(fault.length, lambda: self.disk.empty(self.relay))
            return "for %.1f s" % fault.length
        if fault.kind == "clock jump":
            if not self.clock.library or self.is_jumping:
                return None
            offset = source.choice(faults.JUMPS)
            self.is_jumping = True
            self.jumps.append(offset)
            self.clock.set(offset)
            self.after(fault.length, self.set_clock_right)
            return "%+d s for %.1f s" % (offset, fault.length)
        raise Trouble("an unknown fault: " + fault.kind)

    def kill(self, process, fault):
        # What it shows while its disk stands still comes again after its death: docs/RELIABILITY.md excepts that.
        if process is self.relay and self.disk.is_stalled:
            return None
        return "%s, back after %.2f s" % (process.name, fault.length) if process.kill(fault.length) else None

    def stop_for(self, process, fault):
        if process.is_stopped or not process.stall():
            return None
        if process is self.relay:
            self.tell_relay("stopped", pid=process.pid)
        self.after(fault.length, lambda pid=process.pid: self.resume(process, pid))
        return "%s for %.1f s" % (process.name, fault.length)

    def cut(self, how, wires, fault, source):
        if how == "client":
            side, how = self.fronts, source.choice(("with FIN", "with RST", "silently", "link"))
        else:
            side = [self.upstream[wire] for wire in wires]
        whole = sorted(
            (one for proxy in side for one in proxy.connections if one.is_whole), key=lambda one: one.near.fileno())
        if not whole:
            return None
        chosen = whole if fault.whom or source.random() < 0.4 else [source.choice(whole)]
        fate = source.choice(("swallowed", "frozen"))
        near, far = source.choice(((True, True), (True, True), (True, False), (False, True)))
        length = fault.length or source.uniform(2, 12)
        for connection in chosen:
            if how == "with FIN":
                connection.finish()
            elif how == "with RST":
                connection.tear()
            elif how == "silently":
                connection.silence(fate, near, far)
            else:
                connection.stall_for(length)
        ways = fate + (" both ways" if near and far else " upwards" if near else " downwards")
        whom = "clients" if self.downstream in side else ", ".join(wires)
        return "%d of %d to %s%s" % (
            len(chosen), len(whole), whom,
            ", " + ways if how == "silently" else " for %.1f s" % length if how == "link" else ", " + how)

    def after(self, seconds, action):
        handle = asyncio.get_running_loop().call_later(seconds, lambda: (self.later.discard(handle), action()))
        self.later.add(handle)

    def resume(self, process, pid):
        if process.is_running and process.pid == pid and process.is_stopped:
            process.resume()
            if process is self.relay:
                self.tell_relay("continued", pid=pid)

    def set_clock_right(self):
        if self.is_jumping:
            self.clock.set(0)
            self.is_jumping = False

    def mend(self):
        """No faults any more."""
        for handle in self.later:
            handle.cancel()
        self.later.clear()
        for process in self.processes:
            if process.is_running:
                self.resume(process, process.pid)
        self.disk.empty(self.relay)
        self.set_clock_right()
        # Of an nc that is gone without a word, the relay learns by nothing else: it has nothing to be asked with.
        for connection in [one for proxy in self.fronts for one in proxy.connections if one.is_silent]:
            connection.tear()

    # MARK: - The end

    async def stop(self):
        for handle in self.later:
            handle.cancel()
        for task in (getattr(self, "watching", None), getattr(self, "asking", None), *self.looking):
            if task:
                task.cancel()
        for process in getattr(self, "processes", []):
            await process.stop()
        if hasattr(self, "mirrors"):
            await self.mirrors.stop()
        for proxy in (*getattr(self, "fronts", ()), *getattr(self, "upstream", {}).values()):
            proxy.stop()

    def checked(self, path):
        """(exit code, words) of another checker of the same files."""
        done = subprocess.run(
            [sys.executable, path, self.directory], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)
        return done.returncode, done.stdout.strip()

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


def _joined(details):
    return "; ".join(filter(None, details)) or None


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
    dealt, scripts = faults.schedule(chosen.seed, chosen.seconds)
    print("soak: %d s, %d faults, %d of them together in %d scripts, SEED=%d" % (
        chosen.seconds, len(dealt), sum(fault.track == "script" for fault in dealt), len(scripts), chosen.seed), flush=True)
    soak = Soak(chosen)
    keep, task = True, asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await soak.run()
        await soak.stop()
        # Nothing moves any more.
        result = accountant.account(accountant.load(soak.directory))
        broken = report.show(result, soak)
        # The checkers read when the disk stood still.
        report.write_details(result, soak)
        for name, path in CHECKERS.items():
            code, words = soak.checked(path)
            print("\n%s:\n%s" % (name, words), flush=True)
            broken = broken or code != 0
        keep = chosen.keep or bool(broken)
        if keep:
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
