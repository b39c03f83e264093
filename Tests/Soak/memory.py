"""What the relay holds while it runs: resident memory and descriptors, sampled, and what may become of them."""

import asyncio
import os
import statistics
import time

from journal import Journal
from plan import CLIENTS, ROOMS

# Seconds between two samples.
EVERY = 2
# A process is warm when a quarter of its life is over. Beyond that its memory may grow by what fills its tables: each room
# remembers its last 2000 messages, some hundred bytes each, and allocators give back late.
GROWTH, GROWTH_KIB = 0.20, 16 * 1024
# Lives shorter than this say nothing, in seconds.
SHORTEST = 40
# Descriptors beyond those that are explained: one idle connection for calls to each backend, and one that is just closing.
SPARE_SOCKETS = 12
# And of files: a database that is being looked through, or tidied, beside those of a fresh process.
SPARE_FILES = 4


def look(pid):
    """{"rss", "fds", "sockets"}; None: it is gone."""
    try:
        with open("/proc/%d/statm" % pid, encoding="ascii") as file:
            rss = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        fds = sockets = 0
        for name in os.listdir("/proc/%d/fd" % pid):
            fds += 1
            try:
                sockets += os.readlink("/proc/%d/fd/%s" % (pid, name)).startswith("socket:")
            except OSError:
                pass
    except (OSError, IndexError):
        return None
    return {"rss": rss, "fds": fds, "sockets": sockets}


class Memory:
    def __init__(self, path):
        self.journal = Journal(path)
        self.samples = []
        # One listener, a connection for each client and each room's link.
        self.explained = 1 + len(CLIENTS) + len(ROOMS)

    async def watch(self, relay):
        while True:
            self.sample(relay)
            await asyncio.sleep(EVERY)

    def sample(self, relay, **more):
        found = look(relay.pid) if relay.is_running else None
        if found is None:
            return
        entry = {
            "t": time.time_ns() // 1_000_000, "pid": relay.pid, "age": round(time.monotonic() - relay.began, 1), **found,
            "explained": self.explained, **more,
        }
        self.journal.append(**entry)
        self.samples.append(entry)

    # MARK: - What may become of it

    def longest(self):
        """The samples of the process that lived longest."""
        lives = {}
        for sample in self.samples:
            lives.setdefault(sample["pid"], []).append(sample)
        return max(lives.values(), key=lambda life: life[-1]["age"], default=[])

    def quarters(self):
        """Medians of the second and the last quarter of the longest life, in KiB."""
        life = self.longest()
        if not life or life[-1]["age"] < SHORTEST:
            return None
        quarter = len(life) // 4
        return tuple(
            statistics.median(sample["rss"] for sample in part) for part in (life[quarter:2 * quarter], life[3 * quarter:]))

    def told(self):
        found = self.quarters()
        if found:
            yield "memory: %.1f MiB in the second quarter of %.0f s, %.1f MiB in the last" % (
                found[0] / 1024, self.longest()[-1]["age"], found[1] / 1024)
        finals = [sample for sample in self.samples if sample.get("final")]
        if finals:
            yield "descriptors: at most %d; at the end %d, %d of them sockets, of which %d are explained" % (
                max(sample["fds"] for sample in self.samples), finals[-1]["fds"], finals[-1]["sockets"],
                finals[-1]["explained"])

    def promises(self):
        broken, found = [], self.quarters()
        if found and found[1] - found[0] > max(GROWTH * found[0], GROWTH_KIB):
            broken.append("resident memory went from %d to %d KiB" % found)
        out = [("the relay's memory stays where it is", broken)]
        finals = [sample for sample in self.samples if sample.get("final")]
        broken = []
        for sample in finals:
            if sample["sockets"] > sample["explained"] + SPARE_SOCKETS:
                broken.append("%d sockets, of which %d are explained" % (sample["sockets"], sample["explained"]))
            # Of the same process, when it was fresh.
            files = [one["fds"] - one["sockets"] for one in self.samples if one["pid"] == sample["pid"]][:5]
            if sample["fds"] - sample["sockets"] > max(files) + SPARE_FILES:
                broken.append("%d other descriptors, %d when it was fresh" % (
                    sample["fds"] - sample["sockets"], max(files)))
        return out + [("the relay's descriptors are back at the end", broken)]
