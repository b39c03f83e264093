"""SIGHUP under load: the file is rewritten, the relay is told, and what came of it is recorded."""

import random
import signal
import time

import configuration
from journal import Journal


def milliseconds():
    return time.time_ns() // 1_000_000


class Reloading:
    """One change at a time: the next comes when the relay said what became of the one before, or another process read it."""

    def __init__(self, files, journal, seed):
        self.files, self.journal = files, Journal(journal)
        # The n-th change is the same in every run of a seed, whenever it comes.
        self.source = random.Random("changes %d" % seed)
        self.state, self.before = configuration.first_state(), None
        self.version = 0
        # Of the version that the relay was told about: whether it is to be refused.
        self.is_broken, self.refused_at = None, 0
        self.note("written", state=self.state)
        files.install(self.state)

    def note(self, what, **more):
        self.journal.append(t=milliseconds(), what=what, version=self.version, **more)

    @property
    def is_pending(self):
        return self.is_broken is not None

    def reload(self, process):
        """What is different; None: not now."""
        if self.is_pending or not process.is_running:
            return None
        state, told = configuration.changed(self.state, self.version + 1, self.source)
        if self.source.random() < configuration.BROKEN_SHARE:
            what, text = configuration.broken(self.files.text(state), self.source)
            self.version, self.is_broken = self.version + 1, True
            self.note("written", broken=what, changes=told)
            self.files.write("chatbridge.toml", text)
            told = ["broken: " + what]
        else:
            self.put(state, told)
        self.tell(process)
        return ", ".join(told)

    def put(self, state, told):
        self.version, self.is_broken = self.version + 1, False
        self.note("written", state=state, changes=told)
        self.before, self.state = self.state, state
        self.files.install(state, self.before)

    def tell(self, process):
        process.signal(signal.SIGHUP)
        self.note("told")

    def finish(self, process):
        """The last one: everything is there again."""
        self.put(configuration.last_state(self.state), ["all"])
        self.tell(process)

    def ended(self, was_taken):
        """The relay's own word of the outcome."""
        if not self.is_pending:
            # Of a file with several mistakes, each has a line.
            if was_taken or milliseconds() > self.refused_at + 1000:
                self.note("unasked", taken=was_taken)
            return
        self.note("taken" if was_taken else "refused")
        if not was_taken:
            self.refused_at = milliseconds()
        self.settle()

    def settle(self):
        if self.is_broken:
            # An operator who mends it again.
            self.files.write("chatbridge.toml", self.files.text(self.state))
        self.is_broken = None

    def before_start(self):
        """No process is started with a broken file."""
        if self.is_broken:
            self.files.write("chatbridge.toml", self.files.text(self.state))

    def started(self):
        """A process that read the file as it began accepts clients."""
        self.note("read")
        self.is_broken = None
