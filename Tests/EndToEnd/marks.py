"""Marks of scenarios for the runner.

    @slow("waits out the 60 s of a netsplit")    left out of `make test`; the full run has it
    @alone("measures CPU time")                  runs exclusively

    SLOW = "waits out two look-ups each"          the same for all scenarios of a file

All give a reason, so that obsolete marks can be recognised. Without marks a scenario is part of every run, in parallel with others:
it mostly waits.
"""

# Longer than this on a quiet machine is slow. The runner names what takes longer and bears no mark.
SLOW_SECONDS = 20


class LeftOut(Exception):
    """The machine lacks what the scenario drives, as the text says: it counts neither as held nor as failed."""


def slow(reason):
    return _mark("slow", reason)


def alone(reason):
    return _mark("alone", reason)


def _mark(name, reason):
    assert reason, "a mark says why"

    def mark(function):
        setattr(function, name, reason)
        return function

    return mark
