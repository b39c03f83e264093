"""Which faults come when, all of it from the seed; and the faults that are more than a signal or a cut.

Each part of the run has a track of its own, drawn independently, so that faults lie over each other as chance will have it.
Combinations that chance would bring too seldom are scripts, each of which comes at least once in every run.
"""

import collections
import errno
import os
import random
import resource
import subprocess
import time

from plan import WIRES

# at: seconds after the beginning; length: seconds, where it lasts; dice: 0 to 1, for whoever carries it out; whom: names of
# wires, where the fault is of certain ones.
Fault = collections.namedtuple("Fault", "at track kind length dice whom")

# {track: (seconds between two faults on average, {kind: how often})}
TRACKS = {
    "relay": (20, {"kill relay": 2, "stall relay": 1}),
    "backends": (8, {"kill backend": 3, "stall backend": 2, "hang late": 1, "hang drop": 1}),
    "links": (6, {"cut with FIN": 1, "cut with RST": 1, "cut silently": 2, "stall link": 2}),
    "clients": (8, {"kill client": 2, "stall client": 1, "cut client": 2}),
    "disk": (25, {"full disk": 2, "stall disk": 1}),
    "clock": (25, {"clock jump": 1}),
    "tokens": (30, {"expire": 2, "expire-all": 1}),
    "reloads": (8, {"reload": 1}),
}
# So far apart are two of one track at least, in seconds.
LEAST = 1.5

# Seconds by which the relay's clock is wrong.
JUMPS = (-86400, -3600, -45, -4, 4, 45, 3600, 86400)

# The relay is not killed any more when this share of the time is over, so that its memory can be watched.
WATCHED_FROM = 0.6

EVERY = tuple(WIRES)
_SILENT = tuple(name for name, wire in WIRES.items() if not wire.history)
_TOKENS = tuple(name for name, wire in WIRES.items() if wire.logins)
_HISTORY = tuple(name for name, wire in WIRES.items() if wire.history)

# {what: [(seconds after its beginning, kind, length, whom)]}
SCRIPTS = {
    "the backends die while the relay stands still": [
        (0, "stall relay", 9, ()), (1, "say", 0, EVERY), (2, "kill backend", 2.5, EVERY), (6, "say", 0, EVERY),
        (7, "say", 0, EVERY)],
    "a link stalls, and its backend dies meanwhile": [
        (0, "stall link", 18, _SILENT), (1, "say", 0, _SILENT), (6, "kill backend", 1, _SILENT), (9, "say", 0, _SILENT)],
    "links stall while the disk is full": [
        (0, "full disk", 9, ()), (1, "stall link", 6, EVERY), (3, "cut client", 0, ()), (8, "cut with RST", 0, EVERY)],
    "two deaths within a second": [
        (0, "kill relay", 0.4, ()), (0.6, "kill backend", 0.3, EVERY), (1.2, "kill relay", 0.2, ())],
    "tokens end while the links stall": [(0, "stall link", 5, _TOKENS), (2, "expire", 0, _TOKENS)],
    "backends hang, links are torn, and what lay about is taken late": [
        (0, "hang late", 7, _HISTORY), (3, "cut with RST", 0, _HISTORY)],
    "backends hang, and what lay about is gone": [(0, "hang drop", 3, EVERY)],
    "tokens end as messages go out": [(0, "hang drop", 2.5, _TOKENS), (0.5, "expire-all", 0, _TOKENS)],
    "the relay dies as it is to reload": [
        (0, "reload", 0, ()), (0.02, "kill relay", 0.3, ()), (3, "reload", 0, ()), (3.15, "kill relay", 0.1, ())],
    "a reload as links are torn": [
        (0, "reload", 0, ()), (0.05, "cut with RST", 0, EVERY), (1, "cut with FIN", 0, EVERY), (1.02, "reload", 0, ())],
    "reloads while the disk is full": [
        (0, "full disk", 8, ()), (1, "reload", 0, ()), (2.5, "reload", 0, ()), (4, "reload", 0, ())],
    "reloads while the disk stands still": [
        (0, "stall disk", 4, ()), (0.5, "reload", 0, ()), (1.5, "say", 0, EVERY), (3.8, "reload", 0, ())],
    "a reload that waits for a relay that stands still": [
        (0, "stall relay", 4, ()), (1, "say", 0, EVERY), (1.5, "reload", 0, ()), (4.5, "reload", 0, ())],
    "rooms go while their backends are dead": [
        (0, "kill backend", 4, EVERY), (1, "reload", 0, ()), (2, "reload", 0, ()), (3, "reload", 0, ())],
    "the relay dies as backends hang": [(0, "hang late", 4, _HISTORY), (2, "kill relay", 0.3, ())],
}
# All scripts come once in so many seconds, or in the time there is.
ROUND = 240
# Around a script, chance leaves the relay as it is, for so many seconds.
CALM = 3


def _length(kind, source):
    if kind == "stall disk":
        return source.uniform(1, 5)
    if kind.startswith("stall"):
        # Short ones more often: links survive those.
        return source.uniform(1, 18) if source.random() < 0.6 else source.uniform(1, 3)
    if kind.startswith("kill"):
        # Until it is started again.
        return source.choice((0.05, 0.5, 2, 6))
    if kind == "full disk":
        return source.uniform(3, 9)
    if kind == "clock jump":
        return source.uniform(2, 9)
    if kind.startswith("hang"):
        return source.uniform(1, 7)
    return 0


def _chance(seed, seconds):
    for track, (pause, kinds) in TRACKS.items():
        source = random.Random("%s %d" % (track, seed))
        at = source.uniform(1, pause)
        while at < seconds:
            kind = source.choices(list(kinds), list(kinds.values()))[0]
            yield Fault(at, track, kind, _length(kind, source), source.random(), ())
            at += LEAST + source.expovariate(1 / (pause - LEAST))


def _scripted(seed, seconds):
    source = random.Random("scripts %d" % seed)
    begin = 0
    while begin < seconds:
        length = min(ROUND, seconds - begin)
        names = sorted(SCRIPTS)
        source.shuffle(names)
        # While the relay may be killed.
        names.sort(key=lambda name: not any(step[1] == "kill relay" for step in SCRIPTS[name]))
        step = (length - 8) / len(names)
        if begin and step < 5:
            break
        for index, name in enumerate(names):
            at = begin + 3 + (index + 0.3 * source.random()) * step
            yield at, name, [
                Fault(at + offset, "script", kind, lasts, source.random(), whom)
                for offset, kind, lasts, whom in SCRIPTS[name]
            ]
        begin += ROUND


def schedule(seed, seconds):
    """[Fault], and [(at, name)] of the scripts."""
    scripts = list(_scripted(seed, seconds))
    calm = [(steps[0].at - CALM, max(step.at + step.length for step in steps) + 1) for _, _, steps in scripts]
    faults = [step for _, _, steps in scripts for step in steps]
    for fault in _chance(seed, seconds):
        is_alone = fault.track not in ("relay", "disk")
        if is_alone or not any(begin <= fault.at <= end for begin, end in calm):
            faults.append(fault)
    faults = [fault for fault in faults if fault.kind != "kill relay" or fault.at < WATCHED_FROM * seconds]
    return sorted(faults), [(at, name) for at, name, _ in scripts]


# MARK: - The disk


class SmallDisk:
    """Over the relay's state directory, filled to the last block for a while, or frozen: a file system in a file, or a tmpfs
    where none can be mounted, which does not freeze."""

    how = "a small file system, filled"

    def __init__(self, directory, mebibytes):
        self.directory = directory
        self.ballast = os.path.join(directory, "ballast")
        self.thaw = None
        self.can_stall = self._mount_file(directory + ".image", mebibytes)
        if not self.can_stall:
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=%dm,mode=0700" % mebibytes, "soak", directory],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def _mount_file(self, image, mebibytes):
        with open(image, "wb") as file:
            file.truncate(mebibytes << 20)
        try:
            for command in (
                    ["mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", image],
                    ["mount", "-o", "loop", image, self.directory], ["fsfreeze", "--freeze", self.directory],
                    ["fsfreeze", "--unfreeze", self.directory], ["chmod", "0700", self.directory]):
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError):
            subprocess.run(["umount", "-l", self.directory], check=False, stderr=subprocess.DEVNULL)
            os.unlink(image)
            return False
        return True

    @property
    def is_stalled(self):
        return self.thaw is not None and self.thaw.poll() is None

    def stall(self, seconds):
        """Nothing is written for so long; whether that can be now."""
        if not self.can_stall or self.is_stalled or os.path.exists(self.ballast):
            return False
        # A process of its own, which thaws it whatever becomes of this one.
        self.thaw = subprocess.Popen(
            ["sh", "-c", 'fsfreeze --freeze "$0" && sleep "$1"; fsfreeze --unfreeze "$0"', self.directory, str(seconds)],
            start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return True

    def fill(self, _process):
        file = os.open(self.ballast, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            step, size = 1 << 24, os.fstat(file).st_size
            while step >= 4096:
                try:
                    os.posix_fallocate(file, size, step)
                    size += step
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    step //= 2
        finally:
            os.close(file)

    def empty(self, _process):
        if os.path.exists(self.ballast):
            os.unlink(self.ballast)

    def end(self):
        if self.thaw is not None:
            self.thaw.wait()
        subprocess.run(["umount", "-l", self.directory], check=False, stderr=subprocess.DEVNULL)


class SizeLimit:
    """Where nothing can be mounted: no file of the relay may grow past a few bytes."""

    how = "a limit on the size of files (mount is refused here)"
    can_stall = is_stalled = False
    # The bit of SIGXFSZ in /proc/PID/status: it comes with the limit, and ends who does not ignore it.
    signal = 1 << (25 - 1)

    def __init__(self):
        self.is_deadly = False

    def stall(self, _seconds):
        return False

    def fill(self, process):
        with open("/proc/%d/status" % process.pid, encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        if not (int(fields["SigIgn"], 16) | int(fields["SigCgt"], 16)) & self.signal:
            self.is_deadly = True
        self._limit(process, 4096)

    def empty(self, process):
        self._limit(process, resource.RLIM_INFINITY)

    @staticmethod
    def _limit(process, size):
        try:
            _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size if hard == -1 else min(size, hard), hard))
        except ProcessLookupError:
            pass

    def end(self):
        pass


def small_disk(directory, mebibytes, refuse=False):
    try:
        if refuse:
            raise OSError
        return SmallDisk(directory, mebibytes)
    except (OSError, subprocess.CalledProcessError):
        return SizeLimit()


# MARK: - The clock


class Clock:
    """The relay's time of day, by libfaketime. Its monotonic clock stays right, as on a machine whose clock is set."""

    def __init__(self, path, journal):
        self.path, self.journal = path, journal
        self.library = next(
            (
                found for found in (
                    os.path.join(folder, "faketime", "libfaketimeMT.so.1")
                    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64")
                ) if os.path.exists(found)
            ), None)
        self._write(0)

    def set(self, seconds):
        # Before and after: on a machine that stands still, seconds may lie between.
        self.journal.append(t=time.time_ns() // 1_000_000, offset=seconds * 1000)
        self._write(seconds)
        self.journal.append(t=time.time_ns() // 1_000_000, offset=seconds * 1000)

    def _write(self, seconds):
        with open(self.path + ".new", "w", encoding="ascii") as file:
            file.write("%+d\n" % seconds)
        os.rename(self.path + ".new", self.path)

    def environment(self):
        if not self.library:
            return {}
        return {
            "LD_PRELOAD": self.library, "FAKETIME_TIMESTAMP_FILE": self.path, "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
        }

    @staticmethod
    def forget(pid):
        """What the library leaves behind of a process that was killed."""
        for name in ("sem.faketime_sem_%d" % pid, "faketime_shm_%d" % pid):
            try:
                os.unlink(os.path.join("/dev/shm", name))
            except FileNotFoundError:
                pass
