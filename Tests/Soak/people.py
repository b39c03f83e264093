"""People in plain mode, and the page in a browser: what a screen says in IRC's words, and the judge of what IRC has no word for.

    Transcript    lines of a screen in, the lines out that a client of IRC without capabilities would have been told
    Recorder      a terminal that notes these, and the answers to timing marks behind them
    judge_*       what was read is told upstream, and nothing else is; no terminal and no page got what it cannot show

Messages, gaps and refusals are the accountants' to judge, from the transcripts. docs/TELNET.md says what a screen shows.
"""

import json
import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from journal import read  # noqa: E402
from page import BAD  # noqa: E402
from plain_screen import DO, IAC, WILL, Terminal  # noqa: E402
from plan import CLIENTS, PEOPLE, ROOMS, find_keys, is_from_irc, key_text, nick_of, read_key  # noqa: E402

# What a record says of what no terminal understands.
UNREADABLE = "no terminal understands: "
# What is shown at the very end may be on its way to the backend still, and what is asked is under way, in milliseconds.
LATEST_MS, THERE_MS = 3000, 10_000

_MESSAGE = re.compile(r"(?:#(\S+) )?\d\d:\d\d (?:#(\S+) )?<([^>]+)> (.*)")
_HEADER = re.compile(r"── #(\S+) ──")
_OF_ROOM = re.compile(r"(?:\d\d:\d\d )?#(\w+)(?::| ) *(.+)")
_MOMENT = re.compile(r"✓|…|new: #")
# What was typed stays where it was typed.
_TYPED = re.compile(r"#\S+> ")
# Of the list of rooms.
_LISTED = re.compile(r"  #\S+  \d+ (people|person)")
SERVER = "relay.soak"
_SGR = re.compile(r"\x1b\[[0-9;]*m")
# Nothing that is typed or shown here is wider: what a terminal wraps is judged elsewhere.
WIDTH, HEIGHT = 400, 40
TIMING_MARK = 6


class Transcript:
    def __init__(self, nick, rooms, own=None):
        """`own`: where one's own messages are not shown, the number in each room with which this connection begins."""
        self.nick, self.rooms, self.own = nick, rooms, own
        # The room in front; those that were entered over this connection; questions that are not answered yet.
        self.front, self.entered, self.questions = None, set(), []
        self.last_words = ""

    @staticmethod
    def is_moment(line):
        """Whether it is the row about the moment, or an empty one."""
        return not line or bool(_MOMENT.match(line))

    def heard(self, line):
        """The lines of IRC that say the same."""
        line = line.rstrip()
        if message := _MESSAGE.fullmatch(line):
            room, text = message[1] or message[2] or self.front, message[4]
            if message[3] == SERVER:
                yield ":%s NOTICE #%s :%s" % (SERVER, room, text.removeprefix("(notice) "))
                return
            key = read_key(text)
            if self.own and key and nick_of(key.author) == self.nick and key.number < self.own.get(key.room, 0):
                # Typed at another terminal, which is gone: here it is among what was said meanwhile.
                return
            yield ":%s!screen@relay.soak PRIVMSG #%s :%s" % (message[3], room, text)
        elif header := _HEADER.fullmatch(line):
            self.front = header[1]
            if header[1] not in self.entered:
                self.entered.add(header[1])
                yield ":relay.soak 366 %s #%s :End of /NAMES list" % (self.nick, header[1])
        elif self.questions and self.is_answer(line):
            yield ":relay.soak PONG relay.soak :" + self.questions.pop(0)
        elif not self.is_moment(line) and not _TYPED.match(line) and not _LISTED.match(line):
            self.last_words = line
            if self.front:
                found = _OF_ROOM.fullmatch(line)
                room, text = (found[1], found[2]) if found and found[1] in self.rooms else (self.front, line)
                is_own = any(nick_of(key.author) == self.nick for key in find_keys(text))
                yield ":%s NOTICE %s :%s" % (
                    SERVER, self.nick if is_own else "#" + room, re.sub(r"^\* ", "*** ", text))

    def is_answer(self, line):
        """Whether it says who is there."""
        return re.fullmatch(r"In #\S+: (.*, )?%s(, .*)?" % self.nick, line)


class Recorder(Terminal):
    """`note(direction, line)` gets what is shown once nothing is going to change it; `send_bytes` is the connection's."""

    def __init__(self, kind, nick, rooms, connection, own=None):
        # Of a terminal that shows lines: the one that is not whole, and those that are. Of a screen, the rows that were told.
        self.open, self.whole, self.done = "", [], 0
        self.marks, self.connection = 0, connection
        self.transcript = Transcript(nick, rooms, own)
        super().__init__(kind, width=WIDTH, height=HEIGHT)

    def note(self, direction, line):
        raise NotImplementedError

    def take(self, data):
        self._feed(data)
        self.transcribe()

    def _show(self, text):
        if self.kind == "character":
            super()._show(text)
        elif text:
            # It shows what comes, and nothing moves there any more.
            self.open += _SGR.sub("", self.decoder.decode(bytes(text))).replace("\r", "")
            text.clear()
            *whole, self.open = self.open.split("\n")
            self.whole += whole

    def _command(self, verb, option):
        is_mark = verb == DO and option == TIMING_MARK and self.answers
        if is_mark:
            # The answer stands for what is on the screen.
            self.transcribe()
            self.marks += 1
            self.note("<", "PING :mark.%d.%d" % (self.connection, self.marks))
            self.note(">", "PONG :mark.%d.%d" % (self.connection, self.marks))
            self.send_bytes(bytes([IAC, WILL, TIMING_MARK]))
        else:
            super()._command(verb, option)
        self.commands.clear()

    def finished(self):
        """Lines that are not going to change: those above the line that is typed on, and above the row about the moment."""
        if self.kind != "character":
            whole, self.whole = self.whole, []
            return whole
        screen, lines = self.screen, []
        first = screen.y
        while first and screen.wrapped[first - 1]:
            first -= 1
        rows = screen.gone + list(zip(screen.cells[:first], screen.wrapped[:first]))
        rows = [("".join(cells).rstrip(), wrapped) for cells, wrapped in rows[self.done:]]
        while rows and Transcript.is_moment(rows[-1][0]):
            rows.pop()
        self.done += len(rows)
        line = ""
        for row, wrapped in rows:
            line += row
            if not wrapped:
                lines.append(line)
                line = ""
        self.done -= len(screen.gone)
        screen.gone.clear()
        return lines

    def transcribe(self):
        for line in self.finished():
            for told in self.transcript.heard(line):
                self.note("<", told)

    @property
    def prompt(self):
        return self.screen.before_cursor() if self.kind == "character" else self.open


# MARK: - The judge


def judge_reads(name, shown, reads, order, whole):
    """What is broken, in words, of receipts in one room.

    shown: [(t, key)], of what people upstream said; reads: [key], of receipts of this person's; order: {key: place in the log}.
    whole: (from, to), when nothing is broken and somebody sits there: what is shown then is read.
    """
    newest = max((order[key] for key in reads if key in order), default=-1)
    missing = [key for at, key in shown if whole[0] < at < whole[1] and order.get(key, -1) > newest]
    if not PEOPLE[name].account:
        # What was on its way to it as it was cut, it is not shown any more.
        reads = []
    known = {key for _, key in shown}
    unseen = [key for key in reads if key not in known and not is_from_irc(key)]
    if unseen:
        yield "%s: a receipt for %s, which was never shown" % (name, key_text(unseen[0]))
    if missing:
        yield "%s: no receipt for %s, which was shown when nothing was broken" % (name, key_text(missing[0]))


def judge_stay(name, record, end):
    """Whether somebody is there at the end, and answered: a name is free again that was given up."""
    answered = max((entry["t"] for entry in record if entry["d"] == "<" and " PONG " in entry["l"]), default=0)
    if answered < end - THERE_MS:
        yield "%s was answered for the last time %d s before the end" % (name, (end - answered) / 1000)


def judge_ends(name, record):
    for entry in record:
        if entry["d"] == "!" and entry["l"].startswith((BAD, UNREADABLE)):
            yield "%s on connection %d: %s" % (name, entry["c"], entry["l"][:300])


class People:
    """Of a run's directory."""

    def __init__(self, directory):
        self.directory = directory

    def read(self, *names):
        return read(os.path.join(self.directory, *names))

    def record(self, name):
        return self.read("records", name.replace("@", "."))

    def reads(self):
        """{(room, nick): [key]}, and {room: {key: place}}"""
        orders, keys, found = {}, {}, {}
        for room in {client.rooms[0] for client in PEOPLE.values()}:
            entries = [entry for entry in self.read("logs", room + ".log") if not entry.get("again")]
            keys[room] = {entry["id"]: key for entry in entries if (key := read_key(entry["text"]))}
            orders[room] = {key: place for place, key in enumerate(keys[room].values())}
        for wire in {ROOMS[room].wire.name for room in orders}:
            for entry in self.read("logs", wire + ".reads"):
                for one in entry["ids"]:
                    if key := keys.get(entry["room"], {}).get(one):
                        found.setdefault((entry["room"], entry["reader"]), []).append(key)
        return found, orders

    def end(self):
        """When the last of all lines came."""
        return max((record[-1]["t"] for name in CLIENTS if (record := self.record(name))), default=0)

    def judged_reads(self):
        with open(os.path.join(self.directory, "plan.json"), encoding="utf-8") as file:
            silence = json.load(file)["silence"]
        reads, orders = self.reads()
        for name, client in PEOPLE.items():
            room, record = client.rooms[0], self.record(name)
            shown = [
                (entry["t"], key) for entry in record if entry["d"] == "<" and " PRIVMSG #%s :" % room in entry["l"]
                for key in [read_key(entry["l"].split(" :", 1)[1])] if key and not is_from_irc(key)]
            whole = silence or float("inf"), self.end() - LATEST_MS
            yield from judge_reads(name, shown, reads.get((room, nick_of(name)), []), orders[room], whole)

    def promises(self):
        """[(sentence, [broken by])]"""
        return [
            ("people: what they were shown is read, and nothing else is", list(self.judged_reads())),
            ("people: they are there in the end", [
                words for name in PEOPLE for words in judge_stay(name, self.record(name), self.end())]),
            ("people and pages: all that comes can be shown", [
                words for name, client in CLIENTS.items() if client.via != "irc" for words in judge_ends(name, self.record(name))]),
        ]

    def told(self):
        reads, _ = self.reads()
        counts = []
        for name, client in PEOPLE.items():
            record = self.record(name)
            counts.append("%s %d connections, %d lines, %d receipts" % (
                name, len({entry["c"] for entry in record}), sum(" PRIVMSG " in entry["l"] for entry in record),
                len(reads.get((client.rooms[0], nick_of(name)), []))))
        yield "people: " + "; ".join(counts)
