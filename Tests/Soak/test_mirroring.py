"""The judge of the soak's mirrors sees what is lost, doubled or out of order, and nothing else."""

import os
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from mirroring import judge  # noqa: E402
from plan import Key  # noqa: E402


def keys(*numbers, author="Ann-wharf"):
    return [Key(author, "wharf", number) for number in numbers]


class Judge(unittest.TestCase):
    def test_what_is_well(self):
        mixed = [*keys(1), *keys(1, author="Ben-wharf"), *keys(2, 3), *keys(2, author="Ben-wharf")]
        for said, seen, doubles in (
            ([], [], 0), (keys(1, 2, 3), keys(1, 2, 3), 0), (mixed, mixed, 0), (mixed, mixed[::1], 5),
            # Again behind a later one, as a batch is repeated.
            (keys(1, 2, 3), keys(1, 2, 1, 2, 3), 2),
            # Said, and not in the log yet when it was read.
            (keys(1), keys(1, 2), 0),
        ):
            self.assertEqual(judge("x", said, seen, doubles), [])

    def test_what_is_broken(self):
        for said, seen, doubles, word in (
            (keys(1, 2), keys(2), 0, "1 of 2 lost, such as Ann-wharf:wharf:1"), (keys(1), [], 0, "lost"),
            (keys(1, 2), keys(1, 1, 2), 0, "1 doubled"), (keys(1, 2), keys(1, 2, 1, 2), 1, "2 doubled"),
            (keys(1, 2, 3), keys(1, 3, 2), 0, "Ann-wharf:wharf:2 is behind number 3"),
        ):
            (found,) = judge("x", said, seen, doubles)
            self.assertIn(word, found)


if __name__ == "__main__":
    unittest.main()
