"""What a relay costs that nobody uses."""

import os
import time

from peer import wait_until
from world import scenario

# Longer than the pause between two beats of any pool's housekeeping, shorter than the time between two pings of a link.
SECONDS = 6


def fields(path):
    with open(path, encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def switches(pid):
    """How often each thread has gone to sleep, by its id."""
    folder = "/proc/%d/task" % pid
    found = {}
    for task in os.listdir(folder):
        status = fields("%s/%s/status" % (folder, task))
        found[task] = (status["Name"], int(status["voluntary_ctxt_switches"]))
    return found


@scenario
def ten_quiet_rooms_wake_nothing_but_timers(world):
    rooms = ["room%d" % number for number in range(10)]
    world.start(rooms=rooms, log_extra="")
    world.irc("ann", join=None).barrier()
    pid = world.bridge.process.pid
    wait_until(lambda: len(world.bridge.log_entries("upstream-up")) >= len(rooms), "ten links are up")
    # What the start left to do: it is over when a second passes without.
    def quiet():
        before = switches(pid)
        time.sleep(1)
        return before == switches(pid)

    wait_until(quiet, lambda: "a second in which nothing wakes; %s" % switches(pid))
    before = switches(pid)
    time.sleep(SECONDS)
    after = switches(pid)
    woken = {"%s/%s" % (name, task): count - before[task][1] for task, (name, count) in after.items() if task in before}
    # Pings of ten links and of a client, and what is persisted of the rooms: each at its time.
    assert sum(woken.values()) <= 8 and set(after) == set(before), woken
    others = {name: count for name, count in woken.items() if not name.startswith(("network/", "store-"))}
    assert not any(others.values()), others
    anonymous = int(fields("/proc/%d/status" % pid)["RssAnon"].split()[0])
    assert anonymous < 15 * 1024, "%d KiB of anonymous memory" % anonymous
    return "%d wake-ups in %d s, %d KiB of anonymous memory" % (sum(woken.values()), SECONDS, anonymous)
