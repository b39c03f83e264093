#!/usr/bin/env python3
"""Runs the end-to-end scenarios against a built program:  CHATBRIDGE=path run.py [--quick] [--jobs N] [WORD...]

Words choose scenarios by a part of `module.name`, or of `module.name[dialect]`; without any all run. `--quick` leaves out
those marked as slow (marks.py), as `make test` does; `--jobs` runs so many at a time (not those marked to run alone). A
table on standard output, and the count at its end; exit 0 when all hold. A scenario may return a sentence (a
measurement), which the table shows. What raises marks.LeftOut has the result `-` and is counted apart.
"""

import argparse
import collections
import functools
import importlib
import inspect
import multiprocessing
import os
import sys
import time
import traceback

import backends
import marks
import peer

# A file of scenarios that nobody listed would never run.
HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = [
    importlib.import_module(name[:-3]) for name in sorted(os.listdir(HERE)) if name.endswith(".py") and name != "run.py"
]

# `function` is as it was written, with its marks.
Chosen = collections.namedtuple("Chosen", "label run function")


def scenarios(words, quick):
    """Those to run, by the names of their files and in their order there."""
    for module in MODULES:
        for name, function in vars(module).items():
            if not inspect.isfunction(function) or inspect.getmodule(function) is not module:
                continue
            label = "%s.%s" % (module.__name__, name)
            if hasattr(function, "wires"):
                wires = getattr(function, "quick_wires", function.wires) if quick else function.wires
                found = [
                    ("%s[%s]" % (label, wire), functools.partial(getattr(function, "run_on", backends.run_on), function, wire))
                    for wire in wires
                ]
            elif hasattr(function, "is_scenario"):
                found = [(label, function)]
            else:
                continue
            for full, run in found:
                if not (quick and (hasattr(function, "slow") or hasattr(module, "SLOW"))) and (not words or any(word in full for word in words)):
                    yield Chosen(full, run, function)


# The chosen ones, where the children of a fork find them.
CHOSEN = []


def judge(number):
    """(number, result, seconds, detail, trace) of one scenario."""
    started, trace = time.monotonic(), None
    try:
        detail, result = CHOSEN[number].run() or "", "ok"
    except marks.LeftOut as reason:
        detail, result = str(reason), "-"
    except Exception as error:  # each scenario is judged alone, whatever it stumbles over
        result, trace = "FAIL", traceback.format_exc()
        detail = (str(error).strip() or type(error).__name__).splitlines()[0][:150]
    return number, result, time.monotonic() - started, detail, trace


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--quick", action="store_true", help="all but the slow ones, as `make test` does")
    parser.add_argument("--jobs", type=int, default=6 * len(os.sched_getaffinity(0)), help="so many at a time; most wait")
    chosen = parser.parse_args()
    if not peer.BINARY_PATH:
        sys.exit("CHATBRIDGE must name the program to test")
    CHOSEN.extend(scenarios(chosen.words, chosen.quick))
    if not CHOSEN:
        sys.exit("no scenario matches %s" % " ".join(chosen.words))
    failures, left_out, unmarked, began = [], [], [], time.monotonic()
    print("%-72s %-6s %7s  %s" % ("scenario", "result", "seconds", "detail"), flush=True)

    def report(number, result, seconds, detail, trace):
        print("%-72s %-6s %7.2f  %s" % (CHOSEN[number].label, result, seconds, detail), flush=True)
        if result == "-":
            left_out.append(CHOSEN[number].label)
        elif trace:
            failures.append((CHOSEN[number].label, trace))
        elif seconds > marks.SLOW_SECONDS and not hasattr(CHOSEN[number].function, "slow"):
            unmarked.append(CHOSEN[number].label)

    together = [number for number, one in enumerate(CHOSEN) if not hasattr(one.function, "alone")]
    if together:
        # Each has a child of its own: backends are forked out of it, which goes well only where no scenario before has left
        # threads or event loops behind.
        with multiprocessing.get_context("fork").Pool(max(1, chosen.jobs), maxtasksperchild=1) as pool:
            for verdict in pool.imap_unordered(judge, together, chunksize=1):
                report(*verdict)
    for number, one in enumerate(CHOSEN):
        if hasattr(one.function, "alone"):
            report(*judge(number))
    for label, trace in failures:
        print("\n--- %s\n%s" % (label, trace))
    if unmarked:
        print("\nlonger than %d s, and not marked as slow: %s" % (marks.SLOW_SECONDS, ", ".join(unmarked)))
    run = len(CHOSEN) - len(left_out)
    print(
        "%d of %d scenarios hold, in %.0f s; left out: %d"
        % (run - len(failures), run, time.monotonic() - began, len(left_out)), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
