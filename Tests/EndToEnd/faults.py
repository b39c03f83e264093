"""Overlapping faults: stopped processes, stalled links, and the gaps that must be reported."""

import calendar
import contextlib
import ctypes
import os
import signal
import socket
import threading
import time

from marks import LeftOut
from peer import wait_until


# MARK: - Standstills and stalls


@contextlib.contextmanager
def standing_still(process):
    """The process neither reads nor writes nor looks at a clock; the kernel takes in for it what others send."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGCONT)


@contextlib.contextmanager
def holding(process, name):
    """One thread of the process stands still, by ptrace; the others go on."""
    tasks = "/proc/%d/task" % process.pid
    (thread,) = (int(task) for task in os.listdir(tasks) if thread_name("%s/%s/comm" % (tasks, task)) == name)
    trace = ctypes.CDLL(None, use_errno=True).ptrace
    trace.argtypes, trace.restype = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p], ctypes.c_long

    def ask(request):
        if trace(request, thread, None, None) < 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    try:
        ask(PTRACE_SEIZE)
    except PermissionError as error:
        raise LeftOut("ptrace is not permitted") from error
    ask(PTRACE_INTERRUPT)
    os.waitpid(thread, WAIT_ALL)
    try:
        yield
    finally:
        ask(PTRACE_DETACH)


# Source: Linux, uapi/linux/ptrace.h and uapi/linux/wait.h.
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WAIT_ALL = 17, 0x4206, 0x4207, 0x40000000


def thread_name(path):
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


class StallingProxy:
    """Passes TCP connections on. Those that are there at `stall()` move no byte and no end, either way, until `release()`:
    then everything comes in the order in which it was sent."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Condition()
        self.links = []
        self.is_running = True
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self, up=True, down=True):
        with self.lock:
            for link in self.links:
                link["up"], link["down"] = up, down

    def release(self):
        with self.lock:
            for link in self.links:
                link["up"] = link["down"] = False
            self.lock.notify_all()

    def end_behind(self, text):
        """Ends the connections to the client when one of them has brought this."""
        wait_until(
            lambda: any(text in link["last"] for link in self.links),
            lambda: "%r is passed on: %r" % (text, [link["last"][-200:] for link in self.links]))
        for link in self.links:
            with contextlib.suppress(OSError):
                link["ends"][0].shutdown(socket.SHUT_RDWR)

    def close(self):
        with self.lock:
            self.is_running = False
            self.lock.notify_all()
            self.listener.close()
            for link in self.links:
                for end in link["ends"]:
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            link = {"up": False, "down": False, "ends": (client, server), "last": b""}
            with self.lock:
                self.links.append(link)
            for source, sink, way in ((client, server, "up"), (server, client, "down")):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pass, args=(link, source, sink, way), daemon=True).start()

    def _pass(self, link, source, sink, way):
        while True:
            try:
                data = source.recv(1 << 16)
            except OSError:
                data = b""
            with self.lock:
                self.lock.wait_for(lambda: not link[way] or not self.is_running)
            try:
                if data:
                    sink.sendall(data)
                    if way == "down":
                        # A line may come in two parts, and others behind it.
                        link["last"] = (link["last"] + data)[-4096:]
                    continue
                sink.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            if data:
                # Who takes nothing any more is gone for the other side too.
                with contextlib.suppress(OSError):
                    source.shutdown(socket.SHUT_RDWR)
            return


def stay(seconds, *clients):
    """The clients are there for so long, and answer what they are asked."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for client in clients:
            client.pump(min(0.05, max(0, end - time.monotonic())))


# MARK: - What was said, and what was told of it


class Talk:
    """Everything that people upstream say in a scenario, with the moment of each word."""

    def __init__(self):
        self.said = []

    def say(self, speak, text):
        """`speak(text)` says it. Noted are the moments before and after."""
        before = time.time()
        speak(text)
        self.said.append((text, before, time.time()))

    def texts(self):
        return [text for text, _, _ in self.said]

    def check(self, client, may_miss=True):
        """Each once and in order; what is missing lies in a gap that the client was told. Answers what is missing."""
        client.barrier()
        got = client.texts()
        seen = [text for text in got if text in self.texts()]
        assert len(set(seen)) == len(seen), "twice: %r" % [t for t in seen if seen.count(t) > 1]
        assert seen == [text for text in self.texts() if text in seen], "out of order: %r" % seen
        told = gaps(client)
        missing = [one for one in self.said if one[0] not in seen]
        assert may_miss or not missing, "this wire has a history, and %r never came" % [one[0] for one in missing]
        for text, before, _ in missing:
            # It was said at some moment from `before` to `after`.
            assert any(since <= before + SLACK and before - SLACK <= until for since, until in told), (
                "%r, said at %s, is missing and lies in no gap: %s"
                % (text, clock(before), ", ".join("%s to %s" % (clock(a), clock(b)) for a, b in told) or "none was told"))
        return [one[0] for one in missing]


# Times are told in milliseconds.
SLACK = 0.002


def clock(at):
    return time.strftime("%H:%M:%S", time.gmtime(at)) + (".%03d" % (at % 1 * 1000))


def seconds(stamp):
    """Of `2026-11-21T03:04:05.678Z`, without a float in between that rounds."""
    whole, _, rest = stamp.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + int((rest or "0").ljust(3, "0")[:3]) / 1000


def gap_lines(client, lines=None):
    client.drain()
    return [line for line in (client.lines if lines is None else lines) if "chatbridge/gap" in line.tags]


def gaps(client, lines=None):
    """(from, to) of every gap that the client was told, in seconds since 1970."""
    return [tuple(seconds(stamp) for stamp in line.tags["chatbridge/gap"].split(",")) for line in gap_lines(client, lines)]


def wait_gap(client, count=1, patience=None):
    wait_until(lambda: len(gaps(client)) >= count, lambda: "%d gaps are told, so far %r" % (count, gaps(client)), patience)
    return gaps(client)
