#!/usr/bin/env python3
"""Runs the end-to-end scenarios against a built program:  CHATBRIDGE=path run.py [--quick] [--jobs N] [WORD...]

Words choose scenarios by a part of `module.name`, or of `module.name[dialect]`; without any all run. `--quick` takes
those that `make test` runs, `--jobs` runs so many at a time (only those that measure nothing). A table on standard
output, and the count at its end; exit 0 when all hold. A scenario may return a sentence (a measurement), which the
table shows.
"""

import argparse
import functools
import inspect
import multiprocessing
import os
import sys
import time
import traceback

import accounts
import accounts_sasl
import backends
import bearer
import described
import dialects
import files
import fulldisk
import history
import hostile
import inheritance
import lastwords
import listeners
import load
import lifecycle
import logins
import media
import multiline
import options
import outages
import peer
import private
import proxies
import refusals
import rejoin
import relaying
import restarts
import retracting
import roughness
import scale
import service
import surface
import twins
import uploads

# These measure, or load the machine: one at a time.
ALONE = [relaying, accounts, accounts_sasl, outages, lifecycle, hostile, load, scale]
TOGETHER = [
    dialects, options, roughness, logins, restarts, fulldisk, multiline, listeners, proxies, history, surface, service, media, files,
    bearer, described, private, inheritance, refusals, rejoin, retracting, twins, uploads, lastwords,
]


def scenarios(words, quick):
    """(label, function, may run beside others), in the order of the files."""
    for module in TOGETHER + ALONE:
        for name, function in vars(module).items():
            if not inspect.isfunction(function) or inspect.getmodule(function) is not module:
                continue
            label = "%s.%s" % (module.__name__, name)
            if hasattr(function, "wires"):
                found = [
                    ("%s[%s]" % (label, wire), functools.partial(backends.run_on, function, wire), function.is_quick)
                    for wire in function.wires
                ]
            elif hasattr(function, "is_scenario"):
                found = [(label, function, False)]
            else:
                continue
            for full, run, is_quick in found:
                if (is_quick or not quick) and (not words or any(word in full for word in words)):
                    yield full, run, module in TOGETHER


# The chosen ones, where the children of a fork find them.
CHOSEN = []


def judge(number):
    """(number, result, seconds, detail, trace) of one scenario."""
    started, trace = time.monotonic(), None
    try:
        detail, result = CHOSEN[number][1]() or "", "ok"
    except Exception as error:  # each scenario is judged alone, whatever it stumbles over
        result, trace = "FAIL", traceback.format_exc()
        detail = (str(error).strip() or type(error).__name__).splitlines()[0][:150]
    return number, result, time.monotonic() - started, detail, trace


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--quick", action="store_true", help="those that `make test` runs")
    parser.add_argument("--jobs", type=int, default=2 * len(os.sched_getaffinity(0)), help="so many at a time")
    chosen = parser.parse_args()
    if not peer.BINARY_PATH:
        sys.exit("CHATBRIDGE must name the program to test")
    CHOSEN.extend(scenarios(chosen.words, chosen.quick))
    if not CHOSEN:
        sys.exit("no scenario matches %s" % " ".join(chosen.words))
    failures, began = [], time.monotonic()
    print("%-72s %-6s %7s  %s" % ("scenario", "result", "seconds", "detail"), flush=True)

    def report(number, result, seconds, detail, trace):
        print("%-72s %-6s %7.2f  %s" % (CHOSEN[number][0], result, seconds, detail), flush=True)
        if trace:
            failures.append((CHOSEN[number][0], trace))

    together = [number for number, one in enumerate(CHOSEN) if one[2]]
    if together:
        # Each waits most of its time. Each has a child of its own: backends are forked out of it, which goes well only
        # where no scenario before has left threads or event loops behind.
        with multiprocessing.get_context("fork").Pool(max(1, chosen.jobs), maxtasksperchild=1) as pool:
            for verdict in pool.imap_unordered(judge, together, chunksize=1):
                report(*verdict)
    for number, one in enumerate(CHOSEN):
        if not one[2]:
            report(*judge(number))
    for label, trace in failures:
        print("\n--- %s\n%s" % (label, trace))
    print(
        "%d of %d scenarios hold, in %.0f s"
        % (len(CHOSEN) - len(failures), len(CHOSEN), time.monotonic() - began), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
