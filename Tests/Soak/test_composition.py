"""What docs/RELIABILITY.md says of the soak's backends, rooms, clients and faults is what the plan has."""

import collections
import os
import unittest

import faults
from plan import CLIENTS, EVERY_ROOM, PASSING, PEOPLE, ROOMS, WIRES

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "..", "..", "docs", "RELIABILITY.md"), encoding="utf-8") as file:
    PAGE = " ".join(file.read().split())
NUMBERS = "no one two three four five six seven eight nine ten".split()


def rooms(wire):
    """How many stay and how many come and go, in words."""
    stay, go = (sum(room.wire.name == wire for room in each.values()) for each in (ROOMS, PASSING))
    return NUMBERS[stay] + (" and %s that comes and goes" % NUMBERS[go] if go else "")


def names(chosen):
    return ["`%s`" % wire for wire in WIRES if wire in chosen]


class Composition(unittest.TestCase):
    def assertSaid(self, words):
        self.assertTrue(words in PAGE, "docs/RELIABILITY.md has not: " + words)

    def test_backends_and_rooms(self):
        self.assertSaid("| %s backends | one for each dialect," % NUMBERS[len(WIRES)])
        counts = {wire: rooms(wire) for wire in WIRES}
        usual, often = collections.Counter(counts.values()).most_common(1)[0]
        self.assertEqual(usual, "two and one that comes and goes")
        self.assertGreater(often, len(WIRES) / 2)
        others = ["`%s` with %s" % pair for pair in counts.items() if pair[1] != usual]
        self.assertSaid("most with two rooms and a third that reloads close and open again; %s." % ", ".join(others))

    def test_who_speaks_there(self):
        upstream = {len(room.people) - bool(room.account) for room in EVERY_ROOM.values()}
        self.assertEqual(upstream, {2})
        self.assertSaid("Two upstream users write in each room")
        shared = names({room.wire.name for room in EVERY_ROOM.values() if room.account})
        self.assertSaid("where one account speaks for all (%s) that account on another device" % ", ".join(shared))
        *first, last = names({name for name, wire in WIRES.items() if wire.logins})
        self.assertSaid("On %s and %s log-in is over HTTP, with tokens that expire" % (", ".join(first), last))

    def test_clients(self):
        clients = [client for client in CLIENTS.values() if client.name not in PEOPLE]
        accounts = collections.Counter(client.account for client in clients)
        self.assertEqual(sorted(accounts.values()), [1] * (len(accounts) - 1) + [2])
        self.assertEqual(accounts.pop(None), 1, "a guest")
        self.assertSaid("| %s IRC clients | %s accounts, one of them with two clients" % (
            NUMBERS[len(clients)], NUMBERS[len(accounts)]))
        self.assertSaid("| %s people in [plain mode]" % NUMBERS[len(PEOPLE)])

    def test_pace_of_faults(self):
        self.assertSaid("overlap: about five in six seconds.")
        seconds = 1200
        for seed in range(10):
            pace = len(faults.schedule(seed, seconds)[0]) / seconds
            self.assertAlmostEqual(pace, 5 / 6, delta=0.1, msg="seed %d" % seed)


if __name__ == "__main__":
    unittest.main()
