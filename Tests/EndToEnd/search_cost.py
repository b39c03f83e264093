"""The cost of a SEARCH to other clients: patterns that are slow to compare naively, huge messages, and clients that leave."""

import random
import time

from history import ask, texts
from marks import alone
from peer import MODERN
from restarts import MEMORY, folder
from world import scenario

CAPS = MODERN + ["draft/chathistory", "soju.im/search"]
# As long as one line of IRC takes.
LONG = 400
STORES = (("in a file", ""), ("in memory", MEMORY))
# Rows of 16 KiB: memory is looked through by a build without optimisation as well.
ROWS = {"in a file": 120, "in memory": 20}


def start(world, tables, directory):
    if world.bridge:
        world.bridge.stop()
    world.start(directory=directory, tables=tables)
    return world.irc("ann", caps=CAPS), world.person("Remy")


def fill(ann, remy, *bodies):
    """These are said and kept."""
    for body in bodies:
        remy.say(body)
    remy.say("filled")
    ann.expect_text("filled", patience=60)
    # What is asked for behind this is asked of everything.
    ann.say("#lobby", "kept")
    ann.expect_text("kept")
    ann.barrier()


def cost(world, client, pattern):
    """Seconds of the bridge's CPU for one search, the least of three."""
    found = []
    for _ in range(3):
        before = world.bridge.cpu_seconds()
        assert ask(client, "SEARCH in=#lobby;text=" + pattern) == []
        found.append(world.bridge.cpu_seconds() - before)
    return min(found)


@scenario
@alone("compares CPU times")
def a_longer_pattern_costs_no_more(world):
    """"SEARCH is quadratic in text × pattern": 400 characters cost what 10 do, against a text that nearly matches everywhere."""
    said = []
    for name, tables in STORES:
        ann, remy = start(world, tables, folder(world))
        fill(ann, remy, *["a" * 16384] * ROWS[name])
        short, long = (cost(world, ann, "a" * (length - 1) + "b") for length in (10, LONG))
        said.append("%s: %.2f s and %.2f s" % (name, short, long))
        assert long < 4 * short + 0.1, "%s: 10 characters take %.2f s, 400 take %.2f s" % (name, short, long)
        # The same letters in the other case, and a pattern that breaks off late.
        other = cost(world, ann, "A" * (LONG // 2) + "B" + "a" * (LONG // 2 - 1))
        assert other < 4 * short + 0.1, "%s: %.2f s" % (name, other)
    return "; ".join(said)


@scenario
@alone("compares how long answers take")
def huge_messages_keep_nobody_waiting(world):
    """"three messages of 4 MiB hold the only reader thread beyond everybody's 10 s": bob turns pages meanwhile."""
    for name, tables in STORES:
        ann, remy = start(world, tables, folder(world))
        fill(ann, remy, *["a" * (4_000_000 + number) for number in range(3)])
        bob = world.irc("bob", caps=CAPS)
        page = "CHATHISTORY BEFORE #lobby timestamp=2200-01-01T00:00:00.000Z 2"
        asked = time.monotonic()
        assert texts(ask(bob, page)) == ["filled", "kept"]
        bob.barrier()
        quiet = time.monotonic() - asked
        eve = world.irc("eve", caps=CAPS)
        eve.send(*["@label=s SEARCH in=#lobby;text=%s" % ("a" * LONG + "b")] * 3)
        worst = 0.0
        for turn in range(8):
            asked = time.monotonic()
            assert texts(ask(bob, page)) == ["filled", "kept"], "%s: the page %d is not there" % (name, turn)
            worst = max(worst, time.monotonic() - asked)
            asked = time.monotonic()
            bob.barrier()
            worst = max(worst, time.monotonic() - asked)
        assert worst < 20 * quiet + 1, "%s: bob waited %.1f s for one answer, and %.3f s before" % (name, worst, quiet)


@scenario
@alone("compares how long answers take")
def searches_of_people_who_left_are_over(world):
    """Interruptible: whoever asks and goes leaves no work behind that the next one waits for."""
    ann, remy = start(world, "", folder(world))
    fill(ann, remy, *["ab" * 1_900_000] * 4)
    pattern = "ab" * (LONG // 2 - 1) + "ac"
    whole = cost(world, ann, pattern)
    began = world.bridge.cpu_seconds()
    for number in range(20):
        guest = world.irc("guest%d" % number, caps=CAPS)
        guest.send(*["SEARCH in=#lobby;text=" + pattern] * 3)
        guest.close()
    asked = time.monotonic()
    answer = texts(ask(ann, "CHATHISTORY BEFORE #lobby timestamp=2200-01-01T00:00:00.000Z 1"))
    took = time.monotonic() - asked
    assert answer == ["kept"], answer
    spent = world.bridge.cpu_seconds() - began
    # Of 60 searches. Each may be in the middle of a message when it is given up.
    assert spent < 15 * whole, "60 searches of people who left took %.1f s of CPU, one whole takes %.2f s" % (spent, whole)
    return "a page in %.2f s, %.1f s of CPU; a whole search %.2f s" % (took, spent, whole)


@scenario
def what_is_found_is_what_is_there(world):
    """Random texts of few letters, with patterns that overlap themselves: exactly the messages that have the words, newest
    last, in a file and in memory; `%`, `_` and `*` are letters."""
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    said = ["".join(chance.choice("aab%_* ") for _ in range(chance.randrange(1, 30))).strip() or "a" for _ in range(150)]
    said += ["aabaabaaab", "aaab", "ababac", "Grüße", "x" * 300 + "needle", "say%20it", "a_b", "Straße"]
    patterns = [
        "aab", "aaab", "aabaaab", "ababac", "a%b", "%%", "_", "a_", "*", "needle", "%20", "ß", "AAB", "üß", "aabaabaaab"]
    patterns += ["".join(chance.choice("ab%_") for _ in range(chance.randrange(1, 7))) for _ in range(30)]
    for name, tables in STORES:
        ann, remy = start(world, tables, folder(world))
        fill(ann, remy, *said)
        for pattern in patterns:
            wanted = [text for text in said if pattern.lower() in text.lower()]
            found = texts(ask(ann, "SEARCH in=#lobby;from=Remy;text=" + pattern))
            # Of many the newest.
            assert len(found) >= min(len(wanted), 50) and found == wanted[len(wanted) - len(found):], (
                "seed %d, %s, %r: %r, not %r" % (seed, name, pattern, found[:5], wanted[:5]))


@scenario
def a_search_finds_the_newest_of_very_much(world):
    """Of very much that matches the newest come, at most as many as a page has; live talk goes on meanwhile."""
    ann, remy = start(world, "", folder(world))
    fill(ann, remy, *["hit %d %s" % (number, "b" * 3000) for number in range(600)])
    ann.send("@label=s SEARCH in=#lobby;text=hit")
    remy.say("live")
    ann.expect_text("live")
    found = ask(ann, "SEARCH in=#lobby;text=hit")
    numbers = [int(line.params[-1].split()[1]) for line in found if line.params[-1].startswith("hit ")]
    assert 0 < len(numbers) <= 500 and numbers == list(range(600 - len(numbers), 600)), numbers[:3] + numbers[-3:]
