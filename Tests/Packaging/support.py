"""What the tests of packages share: the files under test, a client, and processes that end with the test."""

import contextlib
import ctypes
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIST = pathlib.Path(os.environ.get("DIST", ROOT / ".build-release" / "dist"))
BINARY = ROOT / ".build-release" / "chatbridge"

# The clients of the other tests of the built program.
sys.path.insert(0, str(ROOT / "Tests" / "EndToEnd"))
from peer import IRC, wait_until  # noqa: E402, F401

# Installations, first starts and whole images: minutes on a busy machine.
PATIENCE = 300
# A Debian, package by package.
DOWNLOAD = 1200


def run(*command, status=0, patience=PATIENCE, **options):
    """Runs a command and returns its output; fails with that output where it exits with another status."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.STDOUT)
    done = subprocess.run([str(part) for part in command], text=True, timeout=patience, **options)
    assert status is None or done.returncode == status, "%s exited with %d:\n%s" % (
        " ".join(map(str, command)), done.returncode, done.stdout)
    return done.stdout


def inside(root, *command):
    """The command in that root with a /proc of its own, as any system has."""
    enter = 'mkdir -p "$0/proc"; mount -t proc proc "$0/proc"; exec chroot "$0" "$@"'
    return ["unshare", "--mount", "sh", "-c", enter, root, *command]


def version(form=None):
    return run(ROOT / "scripts" / "version", *([form] if form else [])).strip()


def free_port():
    """A port that was free just now, for programs that cannot say which one they took."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="chatbridge-packaging-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, True)


@contextlib.contextmanager
def debian(variant, packages):
    """The root of a Debian 12 with those packages; the tests that need it are skipped where there is none to be had."""
    with folder() as path:
        root = path / "root"
        try:
            run("mmdebstrap", "--quiet", "--variant=" + variant, "--include=" + ",".join(packages), "bookworm", root,
                patience=DOWNLOAD)
        except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
            raise unittest.SkipTest("mmdebstrap cannot make a Debian here: %s" % str(error)[-200:]) from None
        yield root


@contextlib.contextmanager
def process(*command, **options):
    """A process with its output in a file, killed at the end unless it has ended."""
    with tempfile.TemporaryFile("w+") as log:
        started = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **options)

        def output():
            log.seek(0)
            return log.read()

        started.output = output
        try:
            yield started
        finally:
            if started.poll() is None:
                started.kill()
            started.wait()


def connect(port, started=None, nick=None, patience=30):
    """An IRC client at that port, as soon as something listens there."""
    end = time.monotonic() + patience
    while True:
        try:
            return IRC(port, nick)
        except ConnectionRefusedError:
            ended = started is not None and started.poll() is not None
            if ended or time.monotonic() > end:
                raise AssertionError("nothing listens on %d: %s" % (port, started.output() if started else "")) from None
            time.sleep(0.05)


def connect_inside(pid, port, nick):
    """An IRC client in the network of that process: a socket stays in the network in which it was made."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as own, open("/proc/%s/ns/net" % pid) as other:
        assert libc.setns(other.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
        try:
            return connect(port, None, nick)
        finally:
            assert libc.setns(own.fileno(), 0) == 0


def talk(client):
    """Joins the practice backend's room and gets an answer from its visitor: a message up, and one down."""
    client.join("#lobby")
    client.say("#lobby", "ping-7")
    client.expect("PRIVMSG", lambda line: line.source.startswith("Remy!") and "pong-7" in line.params[-1])


def talk_by_ii(port, path, patience=20):
    """The same by ii, a client of others, whose input and output are files."""
    client = subprocess.Popen(
        ["ii", "-s", "127.0.0.1", "-p", str(port), "-n", "eve", "-i", str(path)], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        server = path / "127.0.0.1"
        for to, line in (server / "in", "/j #lobby"), (server / "#lobby" / "in", "ping-8"):
            wait_until(to.exists, "ii is ready", patience)
            with open(to, "w", encoding="utf-8") as file:
                print(line, file=file)
        heard = server / "#lobby" / "out"
        wait_until(lambda: heard.exists() and "pong-8" in heard.read_text(), "the visitor's answer", patience)
    finally:
        client.kill()
        client.wait()


def talk_with_the_demo(port, started=None):
    client = connect(port, started, "ada")
    talk(client)
    client.close()


def stop(started, patience=20):
    """SIGTERM, and the exit status."""
    started.terminate()
    return started.wait(patience)
