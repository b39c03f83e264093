#!/usr/bin/env python3
"""Runs the end-to-end scenarios against a built program:  CHATBRIDGE=path run.py [WORD...]

Words choose scenarios by a part of `module.name`; without any all run. A table on standard
output; exit 0 when all hold. A scenario may return a sentence (a measurement), which the table shows.
"""

import inspect
import sys
import time
import traceback

import hostile
import load
import lifecycle
import outages
import peer
import relaying

MODULES = [relaying, outages, lifecycle, hostile, load]


def scenarios(words):
    for module in MODULES:
        for name, function in vars(module).items():
            if not inspect.isfunction(function) or not hasattr(function, "is_scenario"):
                continue
            label = "%s.%s" % (module.__name__, name)
            if not words or any(word in label for word in words):
                yield label, function


def main():
    if not peer.BINARY_PATH:
        sys.exit("CHATBRIDGE must name the program to test")
    failures = []
    chosen = list(scenarios(sys.argv[1:]))
    if not chosen:
        sys.exit("no scenario matches %s" % " ".join(sys.argv[1:]))
    print("%-68s %-6s %7s  %s" % ("scenario", "result", "seconds", "detail"), flush=True)
    for label, function in chosen:
        started = time.monotonic()
        try:
            detail, result = function() or "", "ok"
        except Exception as error:  # each scenario is judged alone, whatever it stumbles over
            result = "FAIL"
            detail = (str(error).strip() or type(error).__name__).splitlines()[0][:150]
            failures.append((label, traceback.format_exc()))
        print("%-68s %-6s %7.2f  %s" % (label, result, time.monotonic() - started, detail), flush=True)
    for label, trace in failures:
        print("\n--- %s\n%s" % (label, trace))
    print("%d of %d scenarios hold" % (len(chosen) - len(failures), len(chosen)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
