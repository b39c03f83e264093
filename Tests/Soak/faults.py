"""Which faults come when, all of it from the seed; and the faults that are more than a signal or a cut.

The schedule is a deck of cards that is shuffled and dealt again and again: every kind comes in a short run as well.
"""

import collections
import errno
import os
import random
import resource
import subprocess

# Between two faults, in seconds: 4.5 on average, so that 20 minutes have more than 200.
PAUSE = (3.0, 6.0)

# One deck: kind, and how many cards of it.
DECK = {
    "kill relay": 4,
    "kill backend": 3,
    "kill client": 3,
    "cut with FIN": 2,
    "cut with RST": 2,
    "cut silently": 3,
    "stall relay": 2,
    "stall backend": 1,
    "stall client": 2,
    "full disk": 2,
    "clock jump": 2,
}

# Seconds by which the relay's clock is wrong.
JUMPS = (-86400, -3600, -45, -4, 4, 45, 3600, 86400)

# at: seconds after the beginning; length: seconds, where it lasts; dice: 0 to 1, for whoever carries it out.
Fault = collections.namedtuple("Fault", "at kind length dice")


def schedule(seed, seconds):
    source = random.Random("faults %d" % seed)
    faults, deck, at = [], [], source.uniform(*PAUSE)
    while at < seconds:
        if not deck:
            deck = [kind for kind, count in DECK.items() for _ in range(count)]
            source.shuffle(deck)
        kind = deck.pop()
        if kind.startswith("stall"):
            # Short ones more often: links survive those.
            length = source.uniform(1, 15) if source.random() < 0.6 else source.uniform(1, 3)
        elif kind.startswith("kill"):
            # Until it is started again.
            length = source.choice((0.05, 0.5, 2, 6))
        elif kind == "full disk":
            length = source.uniform(3, 9)
        elif kind == "clock jump":
            length = source.uniform(2, 9)
        else:
            length = 0
        faults.append(Fault(at, kind, length, source.random()))
        at += source.uniform(*PAUSE)
    return faults


# MARK: - The disk


class SmallDisk:
    """A tmpfs over the relay's state directory, filled to the last block for a while."""

    how = "a small tmpfs, filled"

    def __init__(self, directory, mebibytes):
        self.directory = directory
        self.ballast = os.path.join(directory, "ballast")
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=%dm,mode=0700" % mebibytes, "soak", directory],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

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
        subprocess.run(["umount", "-l", self.directory], check=False, stderr=subprocess.DEVNULL)


class SizeLimit:
    """Where nothing can be mounted: no file of the relay may grow past a few bytes."""

    how = "a limit on the size of files (mount is refused here)"
    # The bit of SIGXFSZ in /proc/PID/status: it comes with the limit, and ends who does not ignore it.
    signal = 1 << (25 - 1)

    def __init__(self):
        self.is_deadly = False

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

    def __init__(self, path):
        self.path = path
        self.library = next(
            (
                found for found in (
                    os.path.join(folder, "faketime", "libfaketimeMT.so.1")
                    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64")
                ) if os.path.exists(found)
            ), None)
        self.set(0)

    def set(self, seconds):
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
