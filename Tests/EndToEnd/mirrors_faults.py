"""A tool that fails in every way, and a relay that is killed: messages arrive once and in order, and hinder nobody."""

import random
import time

from fulldisk import fill_disk
from marks import slow
from mirrors import (
    DEEP, TOOLS, account_for, await_number, irc_numbers, mirrored, numbers, on_tools, say_all, visible,
)
from operating import command_output
from peer import wait_until

# Each: what is set before some messages are said. `taken`: the tool shows what it did not answer.
FAULTS = {
    "429": [("status", {"status": 429, "retry_after": 1, "count": 2})],
    "500": [("status", {"status": 500, "count": 2})],
    "503 with Retry-After": [("status", {"status": 503, "retry_after": 1, "count": 1})],
    "slow": [("slow", {"seconds": 0.5, "count": 2})],
    "reset, not taken": [("reset", {"taken": False, "count": 2})],
    "reset, taken": [("reset", {"taken": True, "count": 1})],
    "reset in the answer": [("cut", {"count": 1})],
    "a length too great": [("length", {"off": 40, "count": 1})],
    "a length too small": [("length", {"off": -1, "count": 1})],
    "gone": [("gone", {"count": 2})],
}
PAIRS = [
    ("429", "reset in the answer"), ("slow", "reset, taken"), ("500", "429"), ("slow", "500"), ("gone", "reset, taken"),
    ("reset, not taken", "reset, taken"), ("429", "a length too great"), ("500", "reset in the answer"),
]
# A message of the tool that the sender was not told of may come twice, but where requests have keys.
TELLS_APART = ("json",)


def doubles(tool, count):
    return 0 if tool in TELLS_APART else count


def check(m, tool, count, extra=0, known=0):
    """`known`: how many messages may come again in another request."""
    found = await_number(m, tool, "n", count - 1, patience=120)
    if tool == "json" and known is not None:
        assert m.tools.state(tool)["known"] == known, "%d came again" % m.tools.state(tool)["known"]
    if tool in TELLS_APART:
        for message in found:
            message["answered"] = True
    return account_for(found, "n", count, doubles(tool, extra))


@on_tools(*TOOLS)
def one_error_delays_and_loses_nothing(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    m.tools.fault(tool, "status", 1, status=500)
    m.tools.fault(tool, "reset", 1, taken=True)
    say_all(ann, ["n %d" % number for number in range(20)])
    check(m, tool, 20)


@slow("tries again after each fault")
@on_tools(*TOOLS)
def each_fault(m, tool):
    m.open(m.mirror(tool))
    ann, count, timings = m.irc("ann"), 0, []
    for name, faults in FAULTS.items():
        for kind, arguments in faults:
            m.tools.fault(tool, kind, **arguments)
        began = time.monotonic()
        say_all(ann, ["n %d" % number for number in range(count, count + 5)])
        count += 5
        check(m, tool, count)
        timings.append("%s %.1f s" % (name, time.monotonic() - began))
    return "; ".join(timings)


@slow("tries again after each fault")
@on_tools(*TOOLS)
def two_faults_at_once(m, tool):
    m.open(m.mirror(tool))
    ann, count = m.irc("ann"), 0
    for pair in PAIRS:
        for name in pair:
            for kind, arguments in FAULTS[name]:
                m.tools.fault(tool, kind, **arguments)
        say_all(ann, ["n %d" % number for number in range(count, count + 5)])
        count += 5
        check(m, tool, count)


@on_tools(*TOOLS)
def a_tool_that_refuses_connections(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    say_all(ann, ["n %d" % number for number in range(5)])
    await_number(m, tool, "n", 4)
    m.tools.refuse(tool)
    say_all(ann, ["n %d" % number for number in range(5, 40)])
    m.tools.accept(tool)
    say_all(ann, ["n %d" % number for number in range(40, 45)])
    check(m, tool, 45)


@slow("waits for the relay's own time-out")
@on_tools("json", "slack")
def a_tool_that_hangs(m, tool):
    """The relay gives an answer up by itself, and tries again."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    m.tools.fault(tool, "hang", 1, taken=True)
    began = time.monotonic()
    say_all(ann, ["n %d" % number for number in range(5)])
    check(m, tool, 5)
    took = time.monotonic() - began
    assert took < 100, took
    m.tools.clear(tool)
    return "given up after %.0f s" % took


# MARK: - Killed


@on_tools(*TOOLS)
def killed_with_messages_queued(m, tool):
    """The tool is away, the relay is killed: the next one delivers, and messages of its own time come after those."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    m.tools.refuse(tool)
    say_all(ann, ["n %d" % number for number in range(30)])
    wait_until(lambda: len(m.upstream()) == 30, "the backend has all")
    m.kill()
    m.tools.accept(tool)
    m.open(m.mirror(tool))
    say_all(m.irc("bob"), ["n %d" % number for number in range(30, 35)])
    check(m, tool, 35)


@slow("five kills")
@on_tools(*TOOLS)
def killed_in_the_middle(m, tool):
    """Five times, while messages are on their way: what was accepted is there, at most one a kill is there twice."""
    m.open(m.mirror(tool))
    count = 0
    for turn in range(5):
        ann = m.irc("ann")
        say_all(ann, ["n %d" % number for number in range(count, count + 60)])
        count += 60
        wait_until(lambda: len(m.tools.messages(tool)) > turn * 30, "some are out")
        m.kill()
        m.open(m.mirror(tool))
    say_all(m.irc("ann"), ["n %d" % count])
    extra = check(m, tool, count + 1, extra=5)
    return "%d doubled" % extra


@on_tools("json")
def killed_behind_a_batch(m, tool):
    """The tool has taken a batch and not answered when the relay is killed, and more was said since: the next process
    repeats that batch alone, under its key."""
    table, count = m.mirror(tool, batch={"max_messages": 50, "max_wait": "300ms"}), 0
    m.open(table)
    for turn in range(4):
        ann = m.irc("ann")
        m.tools.fault(tool, "hang", 1, taken=True)
        say_all(ann, ["n %d" % number for number in range(count, count + 8)])
        await_number(m, tool, "n", count)
        say_all(ann, ["n %d" % number for number in range(count + 8, count + 12)])
        wait_until(lambda: len(m.upstream()) == count + 12, "the backend has all")
        count += 12
        m.kill()
        m.tools.clear(tool)
        m.open(table)
        check(m, tool, count)
    repeated = m.tools.state(tool)["repeated"]
    assert repeated >= 4, "%d repeated" % repeated
    return "%d repeated under their keys" % repeated


def killed_on_a_full_disk(m, tool):
    """How many messages the receiver has to tell by their ids."""
    table, count = m.mirror(tool, batch={"max_messages": 50, "max_wait": "50ms"}), 1
    m.open(table)
    ann = m.irc("ann")
    m.backend.say("Remy", "n 0")
    await_number(m, tool, "n", 0)
    fill_disk(m.bridge.process.pid)
    while not m.bridge.log_entries("store-failing"):
        for _ in range(20):
            m.backend.say("Remy", "n %d %s" % (count, "x" * 300))
            count += 1
        ann.expect_text("n %d %s" % (count - 1, "x" * 300))
        assert count < 3000, "3000 messages were stored on a full disk"
    m.backend.say("Remy", "n %d" % count)
    await_number(m, tool, "n", count)
    m.kill()
    m.open(table)
    m.backend.say("Remy", "n %d" % (count + 1))
    check(m, tool, count + 2, known=None)
    return m.tools.state(tool)["known"]


@mirrored(json="json")
def killed_on_a_full_disk_without_a_history(m):
    """What was said then is nowhere but in the tool."""
    assert killed_on_a_full_disk(m, "json") == 0


@mirrored(wire="plainjson", json="json")
def killed_on_a_full_disk_with_a_history(m):
    """The next process takes what was said from the backend, and does not know that it was posted: it comes under its id."""
    known = killed_on_a_full_disk(m, "json")
    assert known, "nothing came again"
    return "%d came again" % known


@slow("waits for a limit of the tool's own")
@on_tools("slack", "json")
def killed_as_the_tool_says_wait(m, tool):
    """The next process need not know of the wait, and loses nothing of what waited."""
    m.open(m.mirror(tool))
    m.tools.fault(tool, "status", 1, status=429, retry_after=30)
    say_all(m.irc("ann"), ["n %d" % number for number in range(5)])
    wait_until(lambda: m.tools.requests(tool), "the tool said wait")
    m.kill()
    m.open(m.mirror(tool))
    check(m, tool, 5)


@slow("2500 messages")
@on_tools("json", "discord")
def away_for_longer_than_the_memory(m, tool):
    """More messages than a room has in memory (2000) wait, also over a restart."""
    m.open(m.mirror(tool), room_extra=DEEP)
    m.tools.refuse(tool)
    ann = m.irc("ann")
    say_all(ann, ["n %d" % number for number in range(1500)], chunk=100)
    m.kill()
    m.open(m.mirror(tool), room_extra=DEEP)
    say_all(m.irc("ann"), ["n %d" % number for number in range(1500, 2500)], chunk=100)
    m.tools.accept(tool)
    check(m, tool, 2500)


@slow("ten thousand messages")
@on_tools(*TOOLS)
def ten_thousand(m, tool):
    """With faults all the time, and three kills; the seed is fixed."""
    chance, names = random.Random(4711), [name for name in FAULTS if name != "slow"]
    m.open(m.mirror(tool), room_extra=DEEP)
    ann, count, kills = m.irc("ann"), 0, 0
    began = time.monotonic()
    while count < 10_000:
        say_all(ann, ["n %d" % number for number in range(count, count + 250)], chunk=125)
        count += 250
        if count % 500 == 0:
            # Those that pile up are one long outage, with pauses of a minute.
            await_number(m, tool, "n", count - 251, patience=120, since=count - 251)
            for kind, arguments in FAULTS[chance.choice(names)]:
                m.tools.fault(tool, kind, **arguments)
        if count in (2500, 5000, 7500):
            m.kill()
            kills += 1
            m.open(m.mirror(tool), room_extra=DEEP)
            ann = m.irc("ann")
    extra = check(m, tool, 10_000, extra=kills)
    return "%.0f messages a second, %d doubled" % (10_000 / (time.monotonic() - began), extra)


# MARK: - Limits and back-off


@on_tools("slack", "mattermost", "discord", "teams", "json")
def retry_after_is_honoured(m, tool):
    """No request before the time that the tool gives, and soon after it the message."""
    m.open(m.mirror(tool))
    wait = 2.5 if tool == "discord" else 2
    m.tools.fault(tool, "status", 1, status=429, retry_after=wait)
    ann = m.irc("ann")
    say_all(ann, ["n 0", "n 1"])
    check(m, tool, 2)
    first, second = m.tools.requests(tool)[:2]
    assert first["status"] == 429, first
    waited = second["began"] - first["ended"]
    assert wait - 0.01 <= waited < wait + 8, "%.2f s for %.1f" % (waited, wait)
    return "%.1f s for %.1f" % (waited, wait)


@on_tools("rocketchat")
def a_limit_without_retry_after(m, tool):
    """It has a header of its own with the time; at least there is no hammering."""
    m.open(m.mirror(tool))
    m.tools.set(tool, limit=[3, 3])
    say_all(m.irc("ann"), ["n %d" % number for number in range(6)])
    check(m, tool, 6)
    refused = [request for request in m.tools.requests(tool) if request["status"] == 429]
    assert len(refused) <= 5, "%d requests too many" % len(refused)


@slow("waits for the tools' limits")
@on_tools("slack", "mattermost", "discord", "teams", "json")
def the_limits_of_the_tools_themselves(m, tool):
    """Discord's 5 in 2 s, Teams' 4 in 1 s, Slack's 1 in 1 s, as they are documented: all arrives, and refusals are few."""
    count, seconds = {"discord": (5, 2), "teams": (4, 1), "slack": (1, 1)}.get(tool, (10, 2))
    m.tools.set(tool, limit=[count, seconds])
    m.open(m.mirror(tool))
    many = count * 6
    say_all(m.irc("ann"), ["n %d" % number for number in range(many)])
    check(m, tool, many)
    refused = [request for request in m.tools.requests(tool) if request["status"] == 429]
    assert len(refused) <= many / 2 + 2, "%d of %d requests were refused" % (len(refused), len(m.tools.requests(tool)))
    return "%d refusals for %d messages" % (len(refused), many)


@on_tools("slack", "json")
def a_tool_that_fails_is_not_hammered(m, tool):
    """Six seconds of errors, with messages waiting and more coming: a handful of requests, further and further apart."""
    m.open(m.mirror(tool))
    m.tools.fault(tool, "status", status=503)
    ann = m.irc("ann")
    began, said = time.monotonic(), 0
    while time.monotonic() < began + 6:
        say_all(ann, ["n %d" % said])
        said += 1
        ann.pump(0.1)
    requests = m.tools.requests(tool)
    assert 2 <= len(requests) <= 12, "%d requests in 6 s" % len(requests)
    gaps = [b["began"] - a["ended"] for a, b in zip(requests, requests[1:])]
    assert max(gaps) > 2 * gaps[0] - 0.5 or len(gaps) < 3, gaps
    m.tools.clear(tool)
    check(m, tool, said)
    return "%d requests" % len(requests)


@on_tools(*TOOLS)
def one_request_at_a_time(m, tool):
    """Else the tool could show them in another order."""
    m.open(m.mirror(tool))
    m.tools.fault(tool, "slow", seconds=0.02)
    say_all(m.irc("ann"), ["n %d" % number for number in range(40)])
    check(m, tool, 40)
    assert m.tools.control("requests", tool=tool, since=1000)["most_at_once"] == 1


@on_tools("slack", "json")
def a_message_that_the_tool_refuses_blocks_no_other(m, tool):
    """A 400 that stays is about this message: it is given up, aloud, and the next ones go."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    m.tools.fault(tool, "status", 1, status=400)
    ann.say("#lobby", "poison")
    # In a request for itself, as one that is refused with others is sent again alone.
    wait_until(lambda: m.tools.requests(tool), "it is refused")
    say_all(ann, ["n %d" % number for number in range(3)])
    check(m, tool, 3)
    assert m.logged_of(), m.bridge.log()[-2000:]


@slow("the hook is gone for some seconds")
@on_tools(*TOOLS)
def gone_and_back(m, tool):
    """The hook was deleted and is made again under its address: within the bound nothing is lost."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    m.tools.fault(tool, "gone")
    say_all(ann, ["n %d" % number for number in range(10)])
    wait_until(lambda: len(m.tools.requests(tool)) >= 3, "it was tried three times", 40)
    assert m.logged_of(), "nobody was told that the hook is gone"
    m.tools.clear(tool)
    check(m, tool, 10)


# MARK: - The bound


def said_number(entry):
    """Whether an entry of the log has a number of messages beside its own members."""
    return any(isinstance(value, int) or str(value).isdigit() for name, value in entry.items() if name != "ts")


@on_tools("slack", "json")
def messages_older_than_the_bound_are_given_up_aloud(m, tool):
    m.open(m.mirror(tool, retry={"max_age": "2s"}))
    ann = m.irc("ann")
    m.tools.refuse(tool)
    say_all(ann, ["old %d" % number for number in range(7)])
    began = time.monotonic()
    say_all(ann, ["old 7"])
    entry = wait_until(
        lambda: next((e for e in m.logged_of() if e["level"] in ("warn", "error") and said_number(e)), None),
        lambda: "the log says how many were given up; it has of the mirror:\n%s" % "\n".join(map(str, m.logged_of())), 30)
    assert "old" not in str(entry), "the log has their text: %r" % entry
    wait_until(lambda: time.monotonic() > began + 3, "all are too old")
    m.tools.accept(tool)
    say_all(ann, ["n 0", "n 1"])
    found = await_number(m, tool, "n", 1, patience=40)
    assert numbers(found, "old") == [] and numbers(found, "n") == [0, 1], [message["raw"] for message in found]
    assert len(m.logged_of()) < 20, "%d lines" % len(m.logged_of())


@on_tools("json")
def the_bound_counts_over_a_restart(m, tool):
    m.open(m.mirror(tool, retry={"max_age": "3s"}))
    m.tools.refuse(tool)
    bob = m.irc("bob")
    say_all(m.irc("ann"), ["old 0"])
    bob.expect_text("old 0")
    # It answers when all before it is stored.
    assert "old 0" in command_output(m, "history", "lobby")
    began = time.monotonic()
    m.kill()
    wait_until(lambda: time.monotonic() > began + 3.2, "it is too old")
    m.open(m.mirror(tool, retry={"max_age": "3s"}))
    m.tools.accept(tool)
    say_all(m.irc("ann"), ["n 0"])
    found = await_number(m, tool, "n", 0)
    assert numbers(found, "old") == [], [(message["raw"], message["at"], message.get("whole")) for message in found]


# MARK: - Nobody else is hindered


@mirrored(broken="slack", other="json")
def a_broken_mirror_slows_neither_the_room_nor_another(m):
    """It hangs; then it refuses connections; then each answer takes seconds."""
    m.open(m.mirror("broken", mirror_name="broken"), m.mirror("other", mirror_name="other"))
    ann, bob = m.irc("ann"), m.irc("bob")
    count = 0
    for fault in ("hang", "refuse", "slow"):
        if fault == "refuse":
            m.tools.clear("broken")
            m.tools.refuse("broken")
        else:
            m.tools.accept("broken")
            m.tools.fault("broken", fault, seconds=3)
        began = time.monotonic()
        say_all(ann, ["n %d" % number for number in range(count, count + 300)])
        count += 300
        bob.expect_text("n %d" % (count - 1))
        room = time.monotonic() - began
        account_for(await_number(m, "other", "n", count - 1, patience=30), "n", count)
        other = time.monotonic() - began
        assert room < 10 and other < 30, "%s: the room took %.1f s, the other mirror %.1f s" % (fault, room, other)
    assert irc_numbers(bob, "n") == list(range(count))
    # Hooks of the broken one work as well.
    m.tool_says("broken", "U024BE7LH", "from there")
    bob.expect_text("from there")
    return "room %.2f s, other mirror %.2f s for 300" % (room, other)


@mirrored(one="json", two="json")
def two_mirrors_to_tools_of_one_kind_do_not_share_faults(m):
    m.open(m.mirror("one", mirror_name="one"), m.mirror("two", mirror_name="two"))
    m.tools.fault("one", "status", status=429, retry_after=60)
    say_all(m.irc("ann"), ["n %d" % number for number in range(20)])
    account_for(await_number(m, "two", "n", 19), "n", 20)
    assert m.tools.messages("one") == []


@on_tools("json")
def a_stop_in_order_waits_for_no_broken_tool(m, tool):
    """SIGTERM: the process ends in its time, and what the tool did not take is delivered by the next."""
    m.open(m.mirror(tool))
    m.tools.fault(tool, "hang")
    say_all(m.irc("ann"), ["n %d" % number for number in range(5)])
    wait_until(lambda: m.tools.requests(tool), "one is on its way")
    began = time.monotonic()
    assert m.bridge.terminate(30) == 0
    took = time.monotonic() - began
    m.tools.clear(tool)
    m.open(m.mirror(tool))
    say_all(m.irc("ann"), ["n 5"])
    check(m, tool, 6)
    assert visible(m.tools.messages(tool)[0]["text"]).endswith("n 0")
    return "stopped in %.1f s" % took
