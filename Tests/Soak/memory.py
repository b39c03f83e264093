"""What the relay holds while it runs: resident memory and descriptors, sampled, and what may become of them."""

import asyncio
import collections
import math
import os
import statistics
import time

from journal import Journal, read
from plan import CLIENTS, LISTENER_COUNT, MIRROR_SOCKETS, WIRES, rooms_of

# Seconds between two samples.
EVERY = 2
# A process is warm when a quarter of its life is over. Beyond that its memory may grow by what fills its tables: each room
# remembers its last 2000 messages, measured as 1000 bytes for a text of 100 with all ids of it, and with 4000 and 8000 messages a
# room no more; allocators give back late. Some texts here are longer.
GROWTH, GROWTH_KIB, MESSAGE_KIB = 0.20, 16 * 1024, 1.5
# Lives shorter than this say nothing, in seconds.
SHORTEST = 40
# A connection for calls is kept so long behind its last answer, for the next call, and then closed; in seconds.
KEPT = 15
# At the end it is watched so long: a connection for calls is kept once more where it is used just before it is closed, and
# then it is gone.
REST = 2 * KEPT + 2
# A token is renewed so long before its end, or after half of its life where that is shorter; in seconds.
AHEAD = 60
# Of files beyond those of a fresh process: a database that is being looked through, or tidied.
SPARE_FILES = 4
# Whereto a socket leads: to a wire's backend, or one of these.
LISTENERS, TO_CLIENTS, ADMIN, UNKNOWN = "listeners", "clients", "admin", "unknown"
# In /proc/net/tcp.
_LISTENING = "0A"
# How often a socket without a connection is looked for again: it may have been closed while we looked.
_LOOKS = 3


def _connections(pid):
    """{inode: (local port, remote port, state)}"""
    found = {}
    for name in ("tcp", "tcp6"):
        try:
            with open("/proc/%d/net/%s" % (pid, name), encoding="ascii") as file:
                lines = file.read().splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            fields = line.split()
            local, remote = (int(field.rpartition(":")[2], 16) for field in fields[1:3])
            found[int(fields[9])] = (local, remote, fields[3])
    return found


def _unix(pid):
    """Inodes of the admin socket, and of those who ask there: the relay has no other socket files."""
    with open("/proc/%d/net/unix" % pid, encoding="utf-8", errors="replace") as file:
        return {int(line.split()[6]) for line in file.read().splitlines()[1:]}


def _sockets(pid, wires):
    """(how many descriptors, {whereto: inodes})"""
    inodes, fds = [], os.listdir("/proc/%d/fd" % pid)
    for name in fds:
        try:
            target = os.readlink("/proc/%d/fd/%s" % (pid, name))
        except OSError:
            continue
        if target.startswith("socket:"):
            inodes.append(int(target[len("socket:["):-1]))
    connections, unix, held = _connections(pid), _unix(pid), {}
    listening = {local for local, _, state in connections.values() if state == _LISTENING}
    for inode in inodes:
        local, remote, state = connections.get(inode, (0, 0, ""))
        whereto = (
            ADMIN if inode in unix else LISTENERS if state == _LISTENING else
            TO_CLIENTS if local in listening else wires.get(remote, UNKNOWN))
        held.setdefault(whereto, []).append(inode)
    return len(fds), held


def look(pid, wires):
    """{"rss", "fds", "sockets", "held"}; None: it is gone. `wires` are by the ports that lead there."""
    try:
        with open("/proc/%d/statm" % pid, encoding="ascii") as file:
            rss = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        for _ in range(_LOOKS):
            fds, held = _sockets(pid, wires)
            if UNKNOWN not in held:
                break
    except (OSError, IndexError):
        return None
    return {"rss": rss, "fds": fds, "sockets": sum(map(len, held.values())), "held": held}


def explained():
    """{whereto: sockets that stay}: listeners and the operator's, a connection of each client, the link of each room, and
    the mirrors'."""
    return {
        LISTENERS: LISTENER_COUNT, ADMIN: 1, TO_CLIENTS: len(CLIENTS), **{wire: len(rooms_of(wire)) for wire in WIRES},
        **MIRROR_SOCKETS}


def for_calls(wire):
    """How many connections for calls there may be while nobody asks for anything.

    What goes on by itself are the renewals. They change something, so they do not go over a connection that was idle for
    long, and each leaves one of its own behind.
    """
    count = 0
    if wire.logins:
        count += wire.logins * math.ceil(KEPT / max(wire.token - AHEAD, wire.token / 2))
    return count + 1 if wire.closes else count


class Memory:
    def __init__(self, path, wires, logs):
        self.journal = Journal(path)
        self.wires = wires
        # The directory of the backends' logs.
        self.logs = logs
        self.samples = []
        # From when nobody asks for anything any more.
        self.is_quiet = False

    async def watch(self, relay):
        while True:
            self.sample(relay)
            await asyncio.sleep(EVERY)

    def sample(self, relay, **more):
        found = look(relay.pid, self.wires) if relay.is_running else None
        if found is None:
            return
        entry = {
            "t": time.time_ns() // 1_000_000, "pid": relay.pid, "age": round(time.monotonic() - relay.began, 1), **found,
            **({"quiet": True} if self.is_quiet else {}), **more,
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
        return tuple(statistics.median(sample["rss"] for sample in part) for part in self.parts(life))

    @staticmethod
    def parts(life):
        quarter = len(life) // 4
        return life[quarter:2 * quarter], life[3 * quarter:]

    def came(self):
        """How many messages the rooms got between the middles of these quarters."""
        first, last = (statistics.median(sample["t"] for sample in part) for part in self.parts(self.longest()))
        return sum(
            not entry.get("again") and first < entry.get("at", first) <= last
            for name in os.listdir(self.logs) for entry in read(os.path.join(self.logs, name)))

    def told(self):
        found = self.quarters()
        if found:
            yield "memory: %.1f MiB in the second quarter of %.0f s, %.1f MiB in the last" % (
                found[0] / 1024, self.longest()[-1]["age"], found[1] / 1024)
        finals = [sample for sample in self.samples if sample.get("final")]
        if finals:
            yield "descriptors: at most %d; at the end %d, %d of them sockets, of which %d are explained" % (
                max(sample["fds"] for sample in self.samples), finals[-1]["fds"], finals[-1]["sockets"],
                sum(explained().values()))

    def promises(self):
        broken, found = [], self.quarters()
        if found and found[1] - found[0] > max(GROWTH * found[0], GROWTH_KIB, MESSAGE_KIB * self.came()):
            broken.append("resident memory went from %d to %d KiB" % found)
        out = [("the relay's memory stays where it is", broken)]
        finals = [sample for sample in self.samples if sample.get("final")]
        broken = []
        for sample in finals:
            broken += self.sockets_left(sample["pid"])
            # Of the same process, when it was fresh.
            files = [one["fds"] - one["sockets"] for one in self.samples if one["pid"] == sample["pid"]][:5]
            if sample["fds"] - sample["sockets"] > max(files) + SPARE_FILES:
                broken.append("%d other descriptors, %d when it was fresh" % (
                    sample["fds"] - sample["sockets"], max(files)))
        return out + [("the relay's descriptors are back at the end", broken)]

    def sockets_left(self, pid):
        quiet = [sample for sample in self.samples if sample["pid"] == pid and sample.get("quiet")]
        watched = quiet[-1]["age"] - quiet[0]["age"] if quiet else 0
        if watched < 2 * KEPT:
            yield "process %d was watched for only %.0f s of peace" % (pid, watched)
            return
        may = explained()
        # What was there all the time is kept for good.
        kept = collections.Counter()
        for whereto in {name for sample in quiet for name in sample["held"]}:
            kept[whereto] = len(set.intersection(*(set(sample["held"].get(whereto, ())) for sample in quiet)))
        for whereto, count in sorted(kept.items()):
            if count > may.get(whereto, 0):
                yield "%s: %d sockets were there for all of the last %.0f s, %d are explained" % (
                    whereto, count, watched, may.get(whereto, 0))
        # What comes and goes, once what was asked before is over.
        most = collections.Counter()
        for sample in quiet:
            if sample["age"] > quiet[0]["age"] + KEPT + 1:
                most |= collections.Counter({whereto: len(inodes) for whereto, inodes in sample["held"].items()})
        for whereto, count in sorted(most.items()):
            calls = for_calls(WIRES[whereto]) if whereto in WIRES else 0
            if count > may.get(whereto, 0) + calls:
                yield "%s: %d sockets at once, %d are explained, and %d may be for calls" % (
                    whereto, count, may.get(whereto, 0), calls)
