"""SIGTERM during start: while a configuration is read, while the database opens, as the first process of a container; and what
a terminal sends."""

import contextlib
import os
import pty
import random
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from marks import LeftOut
from peer import BINARY_PATH, IRC, MODERN, PATIENCE, wait_until
from restarts import database, folder, kill, settle
from world import scenario

# Ends well: its own end, or that of a process that had no chance yet to say otherwise.
# PID 1 ends by itself, with the status of a shell for it.
ENDED = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
# A goodbye without clients and without a link takes no longer, also on a machine that is busy.
SECONDS = 5


def configuration(directory, extra="", backend="ws://127.0.0.1:1/x"):
    path = os.path.join(directory, "bridge.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            '[server]\nname = "bridge.test"\nstate_dir = "%s/state"\n[[listeners]]\nbind = "irc://127.0.0.1:0"\n'
            '[[rooms]]\nname = "lobby"\nurl = "%s"\n%s' % (directory, backend, extra))
    return path


def spawn(path, wrapper=(), terminal=subprocess.DEVNULL):
    return subprocess.Popen(
        [*wrapper, BINARY_PATH, "run", "--config", path], stdin=terminal, stdout=terminal, stderr=terminal,
        env={k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")})


def ends(process, what):
    try:
        status = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError("SIGTERM %s: it still ran %d s later" % (what, SECONDS)) from None
    assert status in ENDED, "SIGTERM %s: exit status %d" % (what, status)
    return status


@contextlib.contextmanager
def directory():
    path = tempfile.mkdtemp(prefix="chatbridge-")
    try:
        yield path
    finally:
        shutil.rmtree(path, True)


def catches_sigterm(pid):
    """Whether the process has said what is to happen on SIGTERM: before that the system's default counts. A thread that is being
    made blocks everything for a moment, so blocked counts when it lasts."""
    for _ in range(4):
        with open("/proc/%d/status" % pid, encoding="ascii") as file:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        if int(fields["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1:
            return True
        if not int(fields["SigBlk"], 16) >> (signal.SIGTERM - 1) & 1:
            return False
        time.sleep(0.001)
    return True


def program_of(pid):
    with contextlib.suppress(OSError):
        return os.readlink("/proc/%d/exe" % pid)
    return ""


@scenario
def sent_at_once_after_the_start():
    """At forty moments of the first quarter of a second, the very first among them."""
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    with directory() as place:
        path, found = configuration(place), {}
        for number in range(40):
            wait = number / 40 * 0.25 * chance.random() if number else 0
            process = spawn(path)
            time.sleep(wait)
            process.send_signal(signal.SIGTERM)
            status = ends(process, "%.1f ms after the start (seed %d)" % (wait * 1000, seed))
            found[status] = found.get(status, 0) + 1
        return ", ".join("%d times %d" % (count, status) for status, count in sorted(found.items()))


def child_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return next((int(word) for word in file.read().split()), None)


@contextlib.contextmanager
def first_process(path):
    """The bridge as PID 1 of a namespace: (the one that waits for it, its id out here)."""
    outer = spawn(path, ("unshare", "--pid", "--fork", "--kill-child"))
    try:
        inner = wait_until(lambda: child_of(outer.pid), "it has a process")
        wait_until(lambda: program_of(inner) == os.path.realpath(BINARY_PATH), lambda: "it is the bridge: " + program_of(inner))
        yield outer, inner
    finally:
        if outer.poll() is None:
            outer.kill()
            outer.wait()


def can_unshare():
    return subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode == 0


@scenario
def as_the_first_process_of_a_container():
    """Where the system does nothing by default: PID 1 hears SIGTERM before it has read a byte of its configuration, and at
    every moment after that."""
    if not can_unshare():
        raise LeftOut("no right to make a namespace")
    with directory() as place:
        path = configuration(place)
        for number in range(6):
            with first_process(path) as (outer, inner):
                wait_until(lambda: catches_sigterm(inner), "it catches SIGTERM")
                time.sleep(number * 0.008)
                os.kill(inner, signal.SIGTERM)
                ends(outer, "to PID 1, %d ms after it could" % (number * 8))
        # A configuration that does not come, as from a volume that hangs.
        fifo = os.path.join(place, "pipe.toml")
        os.mkfifo(fifo)
        with first_process(fifo) as (outer, inner):
            held = taken(fifo, outer)
            try:
                os.kill(inner, signal.SIGTERM)
                ends(outer, "to PID 1, while it waits for the configuration")
            finally:
                os.close(held)


def taken(fifo, process):
    """The other end of a pipe, once the process has come to it."""
    def opened():
        with contextlib.suppress(OSError):
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        assert process.poll() is None, "it ended by itself, with %d" % process.returncode
        return None
    return wait_until(opened, "the pipe is being read")


@scenario
def while_the_configuration_does_not_come():
    """Configuration and secrets in pipes that nobody writes to."""
    with directory() as place:
        fifo = os.path.join(place, "fifo")
        os.mkfifo(fifo)
        cases = (
            ("while it reads the configuration", fifo),
            ("while it reads a password", configuration(place, '[identity]\npassword_file = "%s"\n' % fifo)),
        )
        for what, path in cases:
            process = spawn(path)
            held = taken(fifo, process)
            process.send_signal(signal.SIGTERM)
            try:
                ends(process, what)
            finally:
                os.close(held)


@scenario
def while_the_database_is_held(world):
    """Another process holds the file: the end is no later for it, and nothing is lost."""
    place = folder(world)
    world.start(directory=place)
    ann = world.irc("ann")
    settle(ann, "kept")
    kill(world)
    world.bridge = None
    path = configuration(place, backend=world.relay.url("lobby"))
    with contextlib.closing(sqlite3.connect(database(place), isolation_level=None)) as held:
        held.execute("PRAGMA locking_mode=EXCLUSIVE")
        held.execute("BEGIN EXCLUSIVE")
        for wait in (0.02, 0.05, 0.1, 0.2, 0.4):
            process = spawn(path)
            time.sleep(wait)
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                status = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise AssertionError("SIGTERM after %d ms, while the database is held: it still runs" % (wait * 1000)) from None
            # 69: it had found the database in use before.
            assert status in (*ENDED, 69), status
        held.execute("ROLLBACK")
    world.start(directory=place)
    world.person("Remy").say("after it")
    world.irc("bob").barrier()
    # The kill may have come between the acceptance and the confirmation: then this process sends it.
    with contextlib.closing(sqlite3.connect(database(place))) as file:
        wait_until(lambda: ("kept",) in file.execute("SELECT text FROM messages").fetchall(), "the message is stored")


# Leaves a write-ahead log of this size behind, which the next one that opens the database has to read first.
LEAVE_A_LOG = """
import os, sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("PRAGMA wal_autocheckpoint = 0")
file.execute("CREATE TABLE filler(bytes)")
for _ in range(200):
    file.execute("INSERT INTO filler VALUES (zeroblob(1000000))")
file.execute("DROP TABLE filler")
os._exit(0)
"""


@scenario
def while_a_long_log_is_recovered(world):
    """A start that takes its time, after a crash: each moment of it is as good as another, and leaves a database that opens."""
    place = folder(world)
    world.start(directory=place)
    settle(world.irc("ann"), "kept")
    kill(world)
    world.bridge = None
    path = configuration(place, backend=world.relay.url("lobby"))
    for number in range(4):
        for is_first in (False, True)[: 1 + can_unshare()]:
            subprocess.run([sys.executable, "-c", LEAVE_A_LOG, database(place)], check=True, timeout=60)
            with first_process(path) if is_first else plain_process(path) as (outer, inner):
                wait_until(lambda: has_open(inner, "chatbridge.db"), "it has opened the database")
                time.sleep(number * 0.02)
                os.kill(inner, signal.SIGTERM)
                ends(outer, "while the database opens%s" % (", as PID 1" if is_first else ""))
    world.start(directory=place)
    bob = world.irc("bob", caps=(*MODERN, "draft/chathistory"))
    bob.send("CHATHISTORY LATEST #lobby * 5")
    bob.expect_text("kept")


def has_open(pid, name):
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc/%d/fd" % pid):
            with contextlib.suppress(OSError):
                if os.readlink(entry.path).endswith(name):
                    return True
    return False


@contextlib.contextmanager
def plain_process(path):
    process = spawn(path)
    try:
        yield process, process.pid
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


# MARK: - In a terminal


def in_a_terminal(world, path):
    """(process, the other end of its terminal, port)."""
    ours, theirs = pty.openpty()
    terminal = world.stack.enter_context(open(ours, "r+b", buffering=0))
    process = spawn(path, ("setsid", "--ctty"), terminal=theirs)
    os.close(theirs)
    world.stack.callback(process.wait)
    world.stack.callback(process.kill)
    said = b""
    while not (found := re.search(rb"address=.*127\.0\.0\.1:(\d+)\r", said)):
        assert select.select([terminal], [], [], PATIENCE)[0], said
        said += terminal.read(4096)
    return process, terminal, int(found.group(1))


@scenario
def ctrl_c_and_a_terminal_that_is_closed(world):
    """"Ctrl-C ends the bridge, closing the terminal does not: then `chatbridge drain … does": it has no standard error then."""
    with directory() as place:
        path = configuration(place, backend=world.relay.url("lobby"))
        process, terminal, _ = in_a_terminal(world, path)
        terminal.write(b"\x03")
        assert process.wait(SECONDS) == 0

        process, terminal, port = in_a_terminal(world, path)
        ann, remy = IRC(port, "ann", join=["#lobby"]), world.person("Remy")
        # The end of the terminal is a SIGHUP, by which a configuration is read.
        configuration(place, 'topic = "soup"\n', world.relay.url("lobby"))
        terminal.close()
        ann.expect("TOPIC", lambda line: line.params == ["#lobby", "soup"])
        bob = IRC(port, "bob", join=["#lobby"])
        bob.say("#lobby", "after the terminal")
        remy.expect_message("after the terminal")
        ann.expect_text("after the terminal")
        subprocess.run([BINARY_PATH, "drain", "--config", path], check=True, capture_output=True, timeout=PATIENCE)
        assert process.wait(SECONDS) == 0
        for client in (ann, bob):
            client.expect("ERROR")
            client.close()
