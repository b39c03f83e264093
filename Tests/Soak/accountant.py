#!/usr/bin/env python3
"""Holds what the backends logged against what the IRC clients recorded. Pure: values in, findings out.

    accountant.py DIRECTORY [--brief]      accounts for what a run left; README.md says what that is

Nothing is excused because the harness did something, only by what the relay said: a message may be missing down only in a
gap that was told, with the times in the told line, and up only where its author was told about that very message, which
must be true; it may be shown anew, with another time, only where the relay had said that nothing is kept and died before
it said that it is again. What the relay's clock showed is the one thing that it is judged by, since it cannot know better.

Up, a message is what a client recorded as sent. Once the relay answered a PING that followed it on the same connection,
it is accepted, and must be in the log, or its author must have been told by name of the message that it is not.

Down, a message is an entry of the log. Every client with an account that was in the room, and knew that the relay knew it,
must have received it once. The same again is forgiven after a reconnect, as long as the relay could not know: no PONG of
the client followed the line, or one behind it, and after that a PONG of the relay's to a PING of the client. A guest must
have, on each of its connections, all that lies between the first and the last line that it got there.

In pages, what was said must stand as in the log, and as it was shown live.

Of rooms that come and go with the configuration, what is up is as everywhere, except that the relay may refuse by a numeric
what is said to a room that is not there. Down, a stay is what a connection is to a guest, for everybody: from one JOIN to
the PART.
"""

import bisect
import collections
import datetime
import json
import os
import re
import sys
import zlib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from journal import read  # noqa: E402
from peer import parse_irc  # noqa: E402
from plan import (  # noqa: E402
    CLIENTS, EVERY_ROOM, PASSING, PASSING_ACCOUNTS, ROOMS, find_keys, is_from_irc, key_text, nick_of, read_key)

# Two processes on one machine, and what a loaded one takes between looking at the clock and acting.
SLACK_MS = 500
# A line that is read may be timed by a look at the clock that was so much earlier: at the begin of the loop's turn.
LOOK_MS = 100
# A line that was set behind another one is later than that by this; two, past what is kept as the end before a gap.
STEPS_MS = (1, 2)
# So much at most is a line raised to stand behind those before it.
RAISE_MS = 60_000
# What was shown so shortly before the relay said that nothing is kept had not been kept either.
MOMENT_MS = 200
# What was shown so shortly before the relay was killed may not have been on disk yet.
KILLED_MS = 50
# The log has no time twice, so in a burst it is ahead by this at most.
BUMP_MS = 50
# A gap is told as it is made; so much later at most somebody came and was there to hear it.
TOLD_MS = 3000
# A guest is told what became of a message for as long as it stays; so long it must have stayed, beyond the longest wait.
GUEST_MS = 15_000

# Kinds of findings that break a promise, with what they mean.
BROKEN = {
    "lost": "accepted, or in the log, and nobody got it or was told",
    "told wrongly": "said to be there and is not, or the other way round",
    "doubled": "there twice",
    "reordered": "before one that was said earlier by the same author, or earlier in the room",
    "wrong author": "under another name, account or id",
    "wrong time": "with another time than its own",
    "wrong text": "with another text, or in another room",
}
# Counted beside them.
COUNTED_UP = ("sent", "accepted", "delivered", "told")
COUNTED_DOWN = ("said", "expected", "delivered", "in gaps", "gaps told", "came late", "re-sent")
COUNTED_PAGES = ("read", "expected", "delivered", "in gaps")

Finding = collections.namedtuple("Finding", "kind wire direction room who what")
# What a run left. clock: [(t, offset)], rising. stops: [(from, to)], when the relay stood still. deaths: when its process
# ended.
Run = collections.namedtuple("Run", "logs records clock stops max_age deaths", defaults=((), (), 20, ()))


def load(directory):
    with open(os.path.join(directory, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    stops, deaths = [], []
    for entry in read(os.path.join(directory, "relay.jsonl")):
        if entry["what"] == "ended":
            deaths.append(entry["t"])
        if entry["what"] == "stopped":
            stops.append((entry["t"], float("inf")))
        elif stops and stops[-1][1] == float("inf"):
            stops[-1] = (stops[-1][0], entry["t"])
    return Run(
        # Clients first: what they have seen is in the logs then.
        records={name: read(os.path.join(directory, "records", name.replace("@", "."))) for name in plan["clients"]},
        logs={name: read(os.path.join(directory, "logs", name + ".log")) for name in (*plan["rooms"], *plan["passing"])},
        clock=[(entry["t"], entry["offset"]) for entry in read(os.path.join(directory, "clock.jsonl"))],
        stops=stops, max_age=plan["max_age"], deaths=deaths)


class Account:
    def __init__(self):
        self.findings = []
        # {(wire, direction): Counter}
        self.tallies = collections.defaultdict(collections.Counter)

    def find(self, kind, direction, room, who, what):
        wire = EVERY_ROOM[room].wire.name
        self.findings.append(Finding(kind, wire, direction, room, who, what))
        self.tallies[wire, direction][kind] += 1

    def count(self, kind, direction, room, number=1):
        self.tallies[EVERY_ROOM[room].wire.name, direction][kind] += number

    def of(self, kind):
        return [finding for finding in self.findings if finding.kind == kind]


def misplaced(numbers):
    """Which items do not stand in a longest rising order of all: as few as must be moved to have it."""
    tails, tail_at, before = [], [], [None] * len(numbers)
    for index, number in enumerate(numbers):
        at = bisect.bisect_left(tails, number)
        before[index] = tail_at[at - 1] if at else None
        if at == len(tails):
            tails.append(number)
            tail_at.append(index)
        else:
            tails[at], tail_at[at] = number, index
    kept, index = set(), tail_at[-1] if tail_at else None
    while index is not None:
        kept.add(index)
        index = before[index]
    return [index for index in range(len(numbers)) if index not in kept]


class Clock:
    """What the relay's clock showed. It is as exact as the record of what was done to it."""

    # Between writing down that it is wrong and its being so.
    doubt = 200

    def __init__(self, changes, stops, begin):
        # Before the first line of a record, the relay did not see anything.
        self.begin = begin
        # When each change began, and when it was made, where its line stands there again.
        self.times, self.made, self.offsets = [], [], [0]
        for when, offset in changes:
            if offset != self.offsets[-1]:
                self.times.append(when)
                self.made.append(when)
                self.offsets.append(offset)
            elif self.made:
                self.made[-1] = when
        self.stops = stops

    def between(self, start, end):
        """By how much it was wrong at any moment of these."""
        first = bisect.bisect_right(self.made, start - self.doubt)
        last = bisect.bisect_right(self.times, end + self.doubt)
        return set(self.offsets[first:last + 1])

    def moments(self, shown, until):
        """When it showed that, up to `until`."""
        moments = {shown - offset: offset for offset in self.offsets}
        return [
            when for when, offset in moments.items()
            if self.begin - SLACK_MS <= when <= until + SLACK_MS and offset in self.between(when, when)]

    def shown(self, start, end, slack=SLACK_MS):
        """[(from, to)]: what it showed between these moments, or as the relay was stopped that went on only then: it may have
        looked before, and acted afterwards."""
        looks = [(start, end)] + [
            (begin, begin) for begin, over in self.stops if begin <= start + slack and over >= start - slack]
        return [
            (first + offset - slack, last + offset + slack)
            for first, last in looks for offset in self.between(min(first, start), end)]

    def looked(self, start, end):
        """[(from, to)]: what it showed between these moments, to a process that did not run before."""
        return [(start + offset, end + offset) for offset in self.between(start, end)]


# MARK: - What the log says

_PREFIX = re.compile(r"<([^> ]+)> ")


def key_of(entry, room):
    """(key, text as it was said, nick under which) of what the backend has; no key: nobody of the soak said it."""
    plan, text, nick = EVERY_ROOM[room], entry["text"], entry["sender"]
    if plan.account is not None and entry["sender"] == plan.account:
        if entry.get("alias") is not None:
            nick = entry["alias"]
        elif plan.spoken != "{text}" and (prefix := _PREFIX.match(text)):
            nick, text = prefix[1], text[prefix.end():]
    return read_key(text), text, nick


class Log:
    """The log of one room, without repetitions."""

    def __init__(self, room, entries):
        self.room, self.wire = room, EVERY_ROOM[room].wire
        # Shown to IRC, and then told to its author as missing.
        self.withdrawn = set()
        # {key: [Forgotten]}
        self.forgotten = {}
        self.entries, self.strangers = [], []
        # What each message is in the log, and in its order; a double counts where it first stands.
        self.order, self.first, self.copies = {}, {}, collections.Counter()
        self.texts, self.nicks = {}, {}
        for entry in entries:
            if entry.get("again"):
                continue
            key, text, nick = key_of(entry, room)
            if key is None:
                self.strangers.append(entry)
                continue
            self.entries.append((key, entry))
            self.copies[key] += 1
            if key not in self.order:
                self.order[key], self.first[key] = len(self.order), entry
                self.texts[key], self.nicks[key] = text, nick

    def life(self, key, when):
        """How often the relay had forgotten what it had shown of it."""
        return sum(one.died < when for one in self.forgotten.get(key, ()))

    def is_unknown(self, key, when):
        """Whether the relay had forgotten it, and had not shown it anew."""
        return any(one.died < when < one.again for one in self.forgotten.get(key, ()))


# MARK: - What a client's record says

Sent = collections.namedtuple("Sent", "key text at connection")
Seen = collections.namedtuple("Seen", "key text place msgid nick account time")
# `entered`: when the client had entered the room, over the connection that brought it.
Gap = collections.namedtuple("Gap", "place start end told time sentence entered")
# Where a room was told that what was said before may come late.
Late = collections.namedtuple("Late", "place")
# Where it stands in a room's order that what follows is older.
Row = collections.namedtuple("Row", "place time")
# What the relay said of its store, to one of the rooms.
Keeping = collections.namedtuple("Keeping", "place is_kept time")
# What a relay had shown that died with it: when it died, and when the message was shown anew (infinity: never).
Forgotten = collections.namedtuple("Forgotten", "died again")
# How it was asked for ("catch up", "look", "pages"), where in the record, and what came: messages (None: refused), gaps,
# rows, and places of all lines.
Page = collections.namedtuple("Page", "why room place connection lines gaps rows all refusal")

_GAP_SENTENCE = re.compile(r"What was said between .* (is|are) missing")
_LATE_SENTENCE = "so older messages may come late"
_ROW_SENTENCE = "the messages that follow are older than those before them"
_UNKEPT_SENTENCE = "Messages cannot be stored at the moment"
_KEPT_SENTENCE = "Messages are stored again"
_MINUTES = re.compile(r"\[(?:\d\d-\d\d )?\d\d:\d\d\] ")
# What says that a message is on its way, or there: no refusal.
_STILL_ALIVE = ("QUEUED", "DELIVERED_LATE")
_STILL_ALIVE_TEXTS = ("Your message is queued", "Your message has not been confirmed", "It arrived after all")
# What says that it may be there; everything else says that it is not.
# There is no such channel, or the client is not in it.
_TURNED_AWAY = ("401", "403", "404", "442")
_DOUBT = "is not known"
_ARRIVED_CODE, _ARRIVED_TEXT = "DELIVERED_LATE", "It arrived after all"


def _milliseconds(text):
    try:
        return round(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return None


class Reading:
    """One client's record, read once from front to back. Places are indices of its lines."""

    def __init__(self, client, record, deaths=()):
        self.client, self.plan = client, CLIENTS[client]
        self.caps = self.plan.caps
        self.is_guest = self.plan.account is None
        # Its account comes and goes, and hears no more than a guest does.
        self.is_passing = self.plan.account in PASSING_ACCOUNTS
        self.sent = []
        # Keys that the relay certainly took, and those that came back.
        self.accepted = set()
        # {key: connections}
        self.told = collections.defaultdict(set)
        # When first.
        self.told_at = {}
        # What was said to a room of which the relay answered that it is not there, or that the client is not in it.
        self.turned_away = set()
        # {room: [[from, to]]}: places between which it was in it.
        self.stays = collections.defaultdict(list)
        # Of which it was said that they are not there, without a doubt; and that they are.
        self.refused, self.arrived = set(), set()
        # {room: [Seen]}, {room: [Gap]}: what came by itself.
        self.seen = collections.defaultdict(list)
        self.gaps = collections.defaultdict(list)
        self.late = collections.defaultdict(list)
        self.rows = collections.defaultdict(list)
        self.keeping = []
        self.pages = []
        # Places of lines that it fetched when it came.
        self._caught_up = set()
        # {(connection, room)}: the client had all that it had missed.
        self._caught_up_on = set()
        # {room: when}: entered over the connection that is being read.
        self._entered = {}
        # {(connection, room)}: read from the end to the beginning.
        self.whole = set()
        # Rooms of which that was begun.
        self.begun = set()
        # {room: milliseconds}: when the relay certainly knew that the client is there.
        self.member_since = {}
        # {connection: (places, other places)}: at one of the first, what the connection brought before the other was
        # certainly known to be received. Rising pairs.
        self._settled = collections.defaultdict(lambda: ([], []))
        self._connections = [entry["c"] for entry in record]
        self._times = [entry["t"] for entry in record]
        self.last_of = {entry["c"]: entry["t"] for entry in record}
        # When the relay's process died to which a connection was.
        self._death_of = {
            entry["c"]: min((death for death in deaths if death >= entry["t"]), default=float("inf"))
            for entry in reversed(record)}
        self._read(record)

    def _read(self, record):
        connection = None
        for place, entry in enumerate(record):
            if entry["c"] != connection:
                connection = entry["c"]
                self._leave(place)
                unanswered, waiting, joined = {}, [], set()
                tested_at = pong_for = why = None
                self._asked, self._batches, self._entered = {}, {}, {}
            line = entry["l"]
            if entry["d"] == ">":
                if line.startswith("PRIVMSG "):
                    _, channel, text = line.split(" ", 2)
                    key = read_key(text[1:])
                    self.sent.append(Sent(key, text[1:], entry["t"], connection))
                    waiting.append(key)
                elif line.startswith("PING "):
                    unanswered[line.split(" :", 1)[1]] = (waiting, joined, pong_for)
                    waiting, joined = [], set()
                elif line.startswith("PONG "):
                    # It stands for the lines before the relay's PING.
                    pong_for = tested_at
                elif line.startswith("@label="):
                    label, _, rest = line[7:].partition(" ")
                    self._asked[label] = (why, rest.split()[2].lstrip("#"), place)
            elif entry["d"] == "<":
                parsed = parse_irc(line)
                if parsed.command == "PING":
                    tested_at = place
                elif parsed.command == "PONG":
                    self._answered(parsed.params[-1], unanswered, place, entry["t"])
                elif parsed.command == "366":
                    joined.add(parsed.params[1].lstrip("#"))
                    self._entered.setdefault(parsed.params[1].lstrip("#"), entry["t"])
                elif parsed.command == "BATCH":
                    self._batch(parsed, connection)
                elif parsed.command in _TURNED_AWAY:
                    room = parsed.params[1].lstrip("#")
                    self.turned_away.update(
                        key for taken in (waiting, *(asked[0] for asked in unanswered.values()))
                        for key in taken if key.room == room)
                elif parsed.command in ("JOIN", "PART", "KICK"):
                    self._move(parsed, place)
                else:
                    self._said(parsed, place)
            elif entry["d"] == "#":
                words, _, room = line.rpartition(" #")
                why = words
                if words == "paged":
                    self.whole.add((connection, room))
                elif words == "pages":
                    self.begun.add(room)
                elif words == "caught up":
                    self._caught_up_on.add((connection, room))

        self._leave(len(record))

    def _move(self, line, place):
        room = line.params[0].lstrip("#")
        if (line.params[1] if line.command == "KICK" else line.source.partition("!")[0]) == nick_of(self.client):
            self._leave(place, room)
            if line.command == "JOIN":
                self.stays[room].append([place, None])

    def _leave(self, place, *rooms):
        for room in rooms or self.stays:
            if self.stays[room] and self.stays[room][-1][1] is None:
                self.stays[room][-1][1] = place

    def _answered(self, token, unanswered, place, at):
        # Answers come in order, so one stands for those before it as well.
        if token not in unanswered:
            return
        for earlier in list(unanswered):
            taken, joined, pong_for = unanswered.pop(earlier)
            self.accepted.update(taken)
            for room in joined:
                self.member_since.setdefault(room, at)
            if pong_for is not None:
                settled_at, settled_to = self._settled[self._connections[pong_for]]
                if not settled_to or pong_for > settled_to[-1]:
                    settled_at.append(place)
                    settled_to.append(pong_for)
            if earlier == token:
                break

    def _batch(self, line, connection):
        name = line.params[0][1:]
        if line.params[0].startswith("+"):
            asked = self._asked.pop(line.tags.get("label"), None)
            if asked:
                self._batches[name] = Page(*asked, connection, [], [], [], [], None)
        elif name in self._batches:
            page = self._batches.pop(name)
            self.pages.append(page)
            if page.why == "catch up":
                self._caught_up.update(page.all)

    def _said(self, line, place):
        if _ARRIVED_CODE in line.params[1:2] or _ARRIVED_TEXT in line.params[-1]:
            self.arrived.update(find_keys(line.params[-1]))
        page = self._batches.get(line.tags.get("batch"))
        if page:
            page.all.append(place)
        if line.command == "PRIVMSG" and len(line.params) == 2:
            room, text = line.params[0].lstrip("#"), line.params[1]
            minutes = _MINUTES.match(text)
            if minutes and "server-time" not in self.caps:
                text = text[minutes.end():]
            keys = [read_key(text)] if read_key(text) else find_keys(text)
            if not keys or room not in EVERY_ROOM:
                return
            key = keys[0]
            time = _milliseconds(line.tags["time"]) if "time" in line.tags else None
            nick = line.source.split("!")[0]
            seen = Seen(key, text, place, line.tags.get("msgid"), nick, line.tags.get("account"), time)
            if page:
                page.lines.append(seen)
                return
            self.seen[room].append(seen)
            if key.author == self.client:
                self.accepted.add(key)
        elif line.command == "FAIL" and line.params[0] == "CHATHISTORY":
            asked = self._asked.pop(line.tags.get("label"), None)
            if asked:
                self.pages.append(Page(*asked, self._connections[place], None, [], [], [], line.raw))
        elif line.command in ("FAIL", "WARN", "NOTE") and not any(code in line.params[1:2] for code in _STILL_ALIVE):
            self._tell(line.params[-1], place)
        elif line.command == "NOTICE":
            text = line.params[-1]
            tag = line.tags.get("chatbridge/gap")
            room = line.params[0].lstrip("#")
            if room in EVERY_ROOM and (tag or _GAP_SENTENCE.search(text)):
                start, _, end = (tag or "").partition(",")
                gap = Gap(
                    place, _milliseconds(start), _milliseconds(end), self._times[place],
                    _milliseconds(line.tags.get("time") or ""), text[text.find("What was said"):],
                    self._entered.get(room, self._times[place]))
                (page.gaps if page else self.gaps[room]).append(gap)
            elif room in EVERY_ROOM and (_UNKEPT_SENTENCE in text or _KEPT_SENTENCE in text):
                self.keeping.append(
                    Keeping(place, _KEPT_SENTENCE in text, _milliseconds(line.tags.get("time") or "")))
            elif room in EVERY_ROOM and _ROW_SENTENCE in text:
                (page.rows if page else self.rows[room]).append(
                    Row(place, _milliseconds(line.tags.get("time") or "")))
            elif room in EVERY_ROOM and _LATE_SENTENCE in text:
                self.late[room].append(Late(place))
            elif not any(words in text for words in _STILL_ALIVE_TEXTS):
                self._tell(text, place)

    def _tell(self, text, place):
        for key in find_keys(text):
            self.told[key].add(self._connections[place])
            self.told_at.setdefault(key, self._times[place])
            if _DOUBT not in text:
                self.refused.add(key)

    def time_of(self, place):
        return self._times[place]

    def death_of(self, place):
        """When the relay's process died that said the line at `place`."""
        return self._death_of[self._connections[place]]

    def said_by(self, place):
        """When the line at `place` had been said: links bring it late, but no process speaks after its death."""
        return min(self._times[place], self.death_of(place))

    def connection_of(self, place):
        return self._connections[place]

    def is_gone(self, one, max_age):
        """Whether this is a guest, or as good as one, that had left when it would have been told what became of what it said."""
        return (self.is_guest or self.is_passing) and self.last_of[one.connection] < one.at + max_age * 1000 + GUEST_MS

    def was_settled(self, place, later, unkept):
        """Whether the relay knew, before `later`, that the line at `place` was received, and the client knew that. What it
        heard while nothing was kept died with it."""
        at, to = self._settled[self._connections[place]]
        index = bisect.bisect_left(at, later) - 1
        until = unkept.get(self.death_of(place), float("inf"))
        while index >= 0 and self._times[at[index]] >= until:
            index -= 1
        return index >= 0 and to[index] > place

    def fetched(self, room, why=("catch up", "look")):
        """Lines that a client that asks got by asking while it was there: all pages but those of the very end."""
        return [seen for page in self.pages if page.room == room and page.why in why and page.lines for seen in page.lines]

    def order_of(self, place):
        """Where a line stands: what was fetched when a client came stands in front of what came by itself meanwhile."""
        return self._connections[place], place not in self._caught_up, place

    def fetched_at(self, room):
        """{key: where it stands}: what was fetched when the client came."""
        return {
            seen.key: self.order_of(seen.place)
            for seen in sorted(self.fetched(room, ("catch up",)), key=lambda seen: self.order_of(seen.place), reverse=True)}

    def is_ahead(self, room, seen):
        """Whether it came over a connection on which the client did not get to the end of what it had missed before."""
        return (self.connection_of(seen.place), room) not in self._caught_up_on

    def all_seen(self, room):
        return self.seen[room] + [seen for page in self.pages if page.room == room for seen in page.lines or []]

    def behind_rows(self, log):
        """Keys of what came late as the room's order says."""
        pages = [page for page in self.pages if page.room == log.room and page.why == "catch up" and page.lines is not None]
        items = self.seen[log.room] + self.rows[log.room] + [item for page in pages for item in page.lines + page.rows]
        return _behind_rows(log, sorted(items, key=lambda item: self.order_of(item.place)))

    def gaps_before_the_end(self, room):
        """A look back is none of them: what stands there has a place among what came."""
        return self.gaps[room] + [
            gap for page in self.pages if page.room == room and page.why == "catch up" for gap in page.gaps]

    def all_gaps(self, room):
        return self.gaps[room] + [gap for page in self.pages if page.room == room for gap in page.gaps]


# MARK: - The account


def account(run):
    result = Account()
    clock = Clock(run.clock, run.stops, min((record[0]["t"] for record in run.records.values() if record), default=0))
    readings = {client: Reading(client, record, run.deaths) for client, record in run.records.items()}
    logs = {room: Log(room, run.logs.get(room, [])) for room in EVERY_ROOM}
    sent = {one.key: one for reading in readings.values() for one in reading.sent}
    given = _given(readings, run.max_age)
    for room, log in logs.items():
        _log(result, room, log, sent, given, clock)
    _up(result, logs, readings, run)
    unkept = _unkept(readings, clock)
    for room, log in logs.items():
        heard = _heard(room, readings)
        if not log.wire.confirms:
            log.withdrawn = _withdrawn(heard, readings, run.max_age)
        told = _Told(room, readings, clock)
        late = _late(log, readings, heard)
        behind = {client: reading.behind_rows(log) for client, reading in readings.items()}
        result.count("came late", "down", room, len(late.union(*behind.values())))
        given_up = _given_up(log, given, heard)
        log.forgotten = _forgotten(log, readings, unkept, run.deaths)
        # What those who are shown everything were shown where.
        orders = [
            places for other in readings.values()
            if not other.is_guest and not other.plan.asks and (places := _first_places(other, room))]
        if room in PASSING:
            for reading in readings.values():
                _passing_down(result, log, reading, orders, told, late, given_up, behind[reading.client])
            continue
        own = _OwnTimes(log, readings, sent, clock, heard)
        for reading in readings.values():
            excused = late | given_up | behind[reading.client]
            first = _down(result, log, reading, told, excused, unkept)
            if reading.is_guest:
                _missing_guest(
                    result, log, reading, orders, first, told, late.union(*behind.values()), given_up,
                    reading.connection_of)
            _pages(result, log, reading, readings, told, excused, own)
        _times(result, log, readings, own)
        _agreement(result, room, readings)
    return result


def _log(result, room, log, sent, given, clock):
    """What the log says by itself: authors, texts, times and order of what came from IRC. What came after its author was told
    that nobody knows has no place among what the author said later, which did not wait for it."""
    for entry in log.strangers:
        result.find("wrong text", "up", room, entry["sender"], "logged %r, which nobody said" % entry["text"][:80])
    ids, order, known = {}, collections.defaultdict(list), {}
    plan = EVERY_ROOM[room]
    for key, entry in log.entries:
        if not is_from_irc(key):
            continue
        name, person = key_text(key), nick_of(key.author)
        if key in ids:
            result.find("doubled", "up", room, key.author, "%s is logged as %s and %s" % (name, ids[key], entry["id"]))
            continue
        ids[key] = entry["id"]
        if entry["at"] <= given.get(key, entry["at"]):
            order[key.author].append(key)
        said = sent.get(key)
        expected = plan.said_by(person, said.text) if said else None
        if entry["text"] != expected or key.room != room:
            result.find("wrong text", "up", room, key.author, "%s is logged as %r" % (name, entry["text"][:80]))
        if entry["sender"] != (plan.account or person) or log.nicks[key] != person:
            result.find(
                "wrong author", "up", room, key.author, "%s is logged as said by %s" % (name, log.nicks[key]))
        # One account is one person upstream, under one id.
        if known.setdefault(person, entry["sender_id"]) != entry["sender_id"]:
            result.find(
                "wrong author", "up", room, key.author,
                "%s is logged with the id %s, those before with %s" % (name, entry["sender_id"], known[person]))
            known[person] = entry["sender_id"]
        if said and entry.get("sent_at") is not None:
            shown = clock.shown(said.at, entry["at"])
            if not any(low <= entry["sent_at"] + log.wire.second - 1 and entry["sent_at"] <= high for low, high in shown):
                result.find(
                    "wrong time", "up", room, key.author,
                    "%s was said at %d and bears %d" % (name, said.at, entry["sent_at"]))
    for author, keys in order.items():
        for index in misplaced([key.number for key in keys]):
            before = key_text(keys[index - 1]) if index else "nothing"
            result.find(
                "reordered", "up", room, author, "%s is logged behind %s" % (key_text(keys[index]), before))


def _up(result, logs, readings, run):
    logged = {key for log in logs.values() for key in log.order}
    told = collections.defaultdict(set)
    refused = {key for reading in readings.values() for key in reading.refused}
    arrived = {key for reading in readings.values() for key in reading.arrived}
    for reading in readings.values():
        if not reading.is_guest:
            told[reading.plan.account] |= set(reading.told)
    for client, reading in readings.items():
        for one in reading.sent:
            key = one.key
            result.count("sent", "up", key.room)
            is_told = key in (reading.told if reading.is_guest else told[reading.plan.account])
            if key in logged:
                result.count("delivered", "up", key.room)
                if key in refused and key not in arrived:
                    result.find(
                        "told wrongly", "up", key.room, client,
                        "%s is in the log, and its author was told that it is not there" % key_text(key))
            elif key in arrived:
                result.find(
                    "told wrongly", "up", key.room, client,
                    "%s is not in the log, and its author was told that it arrived" % key_text(key))
            if is_told:
                result.count("told", "up", key.room)
            if key not in reading.accepted:
                continue
            result.count("accepted", "up", key.room)
            if key in logged or is_told or key.room in PASSING and key in reading.turned_away:
                continue
            if reading.is_gone(one, run.max_age):
                # Nobody is there to be told.
                continue
            result.find(
                "lost", "up", key.room, client,
                "%s of %d was accepted, is not in the log, and nobody was told" % (key_text(key), one.at))


# MARK: - Gaps


class _Told:
    """The gaps that a room was told, and what their times mean, which are the relay's clock's."""

    def __init__(self, room, readings, clock):
        self._clock = clock
        # {(start, end): the first line in which it was told}
        self._first = {}
        for reading in readings.values():
            for gap in reading.all_gaps(room):
                if gap.start is not None and gap.end is not None:
                    name = gap.start, gap.end
                    self._first[name] = min(self._first.get(name, gap), gap, key=lambda one: one.told)
        self._spans = {name: self._means(gap) for name, gap in self._first.items()}
        # For a client without tags: it was told of one that others were told, in the same words, with its times.
        self._of_sentence = collections.defaultdict(list)
        for name, gap in self._first.items():
            self._of_sentence[gap.sentence] += self._spans[name]

    def _means(self, gap):
        # Each end is what the clock showed then; or both were counted back from what it showed as the gap was told.
        clock, told = self._clock, gap.told
        start, end = min(clock.moments(gap.start, told), default=None), max(clock.moments(gap.end, told), default=None)
        spans = [] if start is None or end is None else [(start, end)]
        # Nobody heard it as it was told; the first who did came later. So it was told as it ended, by what the clock showed then,
        # which it may have shown more than once.
        length = gap.end - gap.start
        spans += [(moment - length, moment) for moment in clock.moments(gap.end, told) if moment < gap.entered]
        return spans + [
            (gap.start - offset, gap.end - offset) for offset in set(clock.offsets)
            if offset in clock.between(min(max(gap.end - offset, told - TOLD_MS), told), told)]

    def ends(self, gap, at):
        """When a told gap ends, as far as it is about the moment `at`."""
        has_times = gap.start is not None and gap.end is not None
        spans = self._spans[gap.start, gap.end] if has_times else self._of_sentence.get(gap.sentence, ())
        return [end for start, end in spans if start <= at and at - BUMP_MS <= end]


def _around(log, places):
    """{key: (low, high, until)} of all messages: behind which place and in front of which one it belongs, where people upstream
    said what is at `places`, and when they said the next of that.

    People upstream only: what IRC users say stands where the relay heard that it arrived, which may be behind the gap.
    """
    after, high, until = {}, _LAST, float("inf")
    for key in reversed(log.order):
        after[key] = high, until
        if key in places and not is_from_irc(key):
            high, until = min(high, places[key]), log.first[key]["at"]
    around, low = {}, _FIRST
    for key in log.order:
        high, until = after[key]
        # What came out of the log's order is counted elsewhere.
        around[key] = min(low, high), max(low, high), until
        if key in places and not is_from_irc(key):
            low = max(low, places[key])
    return around


_FIRST, _LAST = (-1,), (float("inf"),)


def _gap_of(log, key, gaps, around, told):
    """What a missing message is: "in gaps" that were told where it belongs; "reordered": one that may mean it was told at
    another place; "lost". `gaps`: [(place, gap)]

    One that ends behind what people upstream said next, and that came, does not mean it.
    """
    low, high, until = around[key]
    found = [(place, end) for place, gap in gaps for end in told.ends(gap, log.first[key]["at"])]
    if any(low < place < high for place, _ in found):
        return "in gaps"
    return "reordered" if any(end <= until + SLACK_MS for _, end in found) else "lost"


# MARK: - Down


def _down(result, log, reading, told, late, unkept):
    room, client = log.room, reading.client
    first, last, again = {}, {}, collections.Counter()
    # Where it was shown anew when the relay had forgotten it.
    anew = {}
    for seen in reading.seen[room]:
        key = seen.key
        if not _judge(result, log, reading, seen, "down"):
            continue
        if key.author == client and "echo-message" not in reading.caps:
            result.find(
                "doubled", "down", room, client, "%s came back to a client that shows its own" % key_text(key))
            continue
        if key not in first:
            first[key] = last[key] = seen
            continue
        before, last[key] = last[key], seen
        again[key] += 1
        if again[key] < log.copies[key] and (seen.msgid is None or seen.msgid != before.msgid):
            # The backend has it twice, which is counted there.
            continue
        if seen.msgid != before.msgid:
            result.find(
                "doubled", "down", room, client,
                "%s came as %s and as %s" % (key_text(key), before.msgid, seen.msgid))
        elif reading.is_guest and log.life(key, reading.said_by(before.place)) < log.life(key, reading.said_by(seen.place)):
            # The relay that had shown it did not know it any more.
            anew[key] = seen
            result.count("re-sent", "down", room)
        elif reading.is_guest:
            result.find("doubled", "down", room, client, "%s came to a guest twice" % key_text(key))
        elif _same_connection(reading, before, seen) or any(
                reading.was_settled(other.place, seen.place, unkept)
                for other in [before] + [other for other in first.values() if before.place < other.place < seen.place]):
            # What was first shown behind it stands for it as well.
            result.find(
                "doubled", "down", room, client,
                "%s came in lines %d and %d, and the first was known to be received"
                % (key_text(key), before.place + 1, seen.place + 1))
        else:
            result.count("re-sent", "down", room)
    result.count("gaps told", "down", room, len(reading.gaps[room]))
    result.count("said", "down", room, len(log.order))
    if not reading.is_guest:
        _missing(result, log, reading, first, told)
    # What was forgotten, and not shown to a guest again, has no place among what the next relay shows.
    in_order = [
        seen for seen in (first | anew).values()
        if not reading.is_guest or log.life(seen.key, reading.said_by(seen.place)) == log.life(seen.key, float("inf"))]
    _order(result, log, client, sorted(in_order, key=lambda seen: seen.place), "down", late)
    return first


def _same_connection(reading, before, seen):
    return reading.connection_of(before.place) == reading.connection_of(seen.place)


def _judge(result, log, reading, seen, direction):
    """Author and text of one line; whether the backend has it at all."""
    key, name, room, client = seen.key, key_text(seen.key), log.room, reading.client
    if key not in log.order:
        if key in log.withdrawn:
            return False
        result.find(
            "wrong text", direction, room, client, "got %r, which the backend does not have" % seen.text[:80])
        return False
    if seen.text != log.texts[key]:
        result.find("wrong text", direction, room, client, "%s came as %r" % (name, seen.text[:80]))
    author = nick_of(key.author) if is_from_irc(key) else EVERY_ROOM[room].people[key.author]
    if seen.nick != author or seen.nick != log.nicks[key]:
        result.find("wrong author", direction, room, client, "%s came from %s" % (name, seen.nick))
    if "account-tag" in reading.caps:
        expected = CLIENTS[key.author].account if is_from_irc(key) else None
        # What a backend vouches for bears its name and is no account here.
        if seen.account != expected and not (not is_from_irc(key) and seen.account and "@" in seen.account):
            result.find("wrong author", direction, room, client, "%s came with the account %s" % (name, seen.account))
    return True


def _missing(result, log, reading, first, told):
    """What a client with an account did not get."""
    room, client = log.room, reading.client
    since = reading.member_since.get(room)
    has_echo = "echo-message" in reading.caps
    if since is None:
        return
    have = set(first)
    places = {key: reading.order_of(seen.place) for key, seen in first.items()}
    if reading.plan.asks:
        have |= {seen.key for seen in reading.fetched(room)}
        for key, place in reading.fetched_at(room).items():
            # What came over a connection that ended before the client had caught up is fetched again, and stands there.
            places[key] = place if key in first and reading.is_ahead(room, first[key]) else min(place, places.get(key, place))
    around = _around(log, places)
    gaps = [] if log.wire.history else [(reading.order_of(gap.place), gap) for gap in reading.gaps_before_the_end(room)]
    for key, entry in log.first.items():
        if entry["at"] <= since + BUMP_MS or (key.author == client and not has_echo):
            continue
        result.count("expected", "down", room)
        if key in have:
            result.count("delivered", "down", room)
            continue
        _count_missing(result, log, key, client, gaps, around, told, "never came")


def _count_missing(result, log, key, client, gaps, around, told, what, direction="down"):
    kind = _gap_of(log, key, gaps, around, told)
    if kind == "in gaps":
        result.count(kind, direction, log.room)
    elif kind == "reordered":
        result.find(
            kind, direction, log.room, client, "the gap in which %s is missing was told at another place" % key_text(key))
    else:
        at = log.first[key]["at"]
        result.find(kind, direction, log.room, client, "%s, logged at %d, %s%s" % (
            key_text(key), at, what, _near([gap for _, gap in gaps], at)))


def _near(gaps, at):
    """For whoever looks for the reason: the gap that is nearest to what is missing."""
    timed = [gap for gap in gaps if gap.start is not None and gap.end is not None]
    if not timed:
        return ""
    gap = min(timed, key=lambda gap: max(gap.start - at, at - gap.end))
    return "; nearest gap %+d to %+d ms" % (gap.start - at, gap.end - at)


def _passing_down(result, log, reading, orders, told, late, given_up, behind):
    """A room that comes and goes: what each stay of the client in it brought."""
    room, client = log.room, reading.client
    begins = [begin for begin, _ in reading.stays[room]]
    lines, first = collections.defaultdict(dict), {}
    result.count("gaps told", "down", room, len(reading.gaps[room]))
    for seen in reading.seen[room]:
        stay = bisect.bisect_right(begins, seen.place) - 1
        if stay < 0 or seen.place > reading.stays[room][stay][1]:
            if seen.key.author == client:
                # The room is gone, and what it said there before has arrived.
                continue
            result.find("wrong text", "down", room, client, "%s came to a client that is not there" % key_text(seen.key))
            continue
        if not _judge(result, log, reading, seen, "down"):
            continue
        before = lines[stay].setdefault(seen.key, seen)
        if before is not seen and log.copies[seen.key] == 1:
            result.find("doubled", "down", room, client, "%s came twice in one stay" % key_text(seen.key))
        elif (earlier := first.setdefault(seen.key, seen)) is not seen and _same_connection(reading, earlier, seen):
            result.find("doubled", "down", room, client, "%s came again in another stay" % key_text(seen.key))
    for found in lines.values():
        _order(
            result, log, client, sorted(found.values(), key=lambda seen: seen.place), "down", late | given_up | behind)
    _missing_guest(
        result, log, reading, orders, first, told, late | behind, given_up,
        lambda place: bisect.bisect_right(begins, place) - 1)


def _missing_guest(result, log, reading, orders, first, told, late, given_up, part_of):
    """Between the first and the last line of a connection, or of another part of the record, that people upstream said, and
    that did not come late, there is nothing missing of theirs; and so it is with each IRC user."""
    room, client = log.room, reading.client
    voices, brought = collections.defaultdict(list), collections.defaultdict(dict)
    for key in log.order:
        voices[key.author if is_from_irc(key) else None].append(key)
    for key, seen in first.items():
        brought[part_of(seen.place)][key] = seen
    for spoken in voices.values():
        number = {key: index for index, key in enumerate(spoken)}
        for part, lines in brought.items():
            numbers = [number[key] for key in lines if key in number and key not in late and key not in given_up]
            if not numbers:
                continue
            gaps = [] if log.wire.history else [
                (reading.order_of(gap.place), gap) for gap in reading.gaps[room]
                if part_of(gap.place) == part]
            around = _around(log, {key: reading.order_of(seen.place) for key, seen in lines.items()})
            for key in spoken[min(numbers):max(numbers) + 1]:
                result.count("expected", "down", room)
                # What came late lies before what an earlier connection brought, or comes when the guest has left.
                if key in first or key in given_up or (
                        key in late and (key in log.forgotten or not _had_to_come(key, lines, orders))):
                    result.count("delivered", "down", room)
                else:
                    _count_missing(
                        result, log, key, client, gaps, around, told, "never came to a guest who was there")


def _first_places(reading, room):
    places = {}
    for seen in reading.seen[room]:
        places.setdefault(seen.key, seen.place)
    return places


def _had_to_come(key, lines, orders):
    """Whether all who were shown it and some of these lines were shown one of them behind it."""
    behind = [
        any(order.get(other, -1) > order[key] for other in lines) for order in orders
        if key in order and any(other in order for other in lines)]
    return bool(behind) and all(behind)


def _heard(room, readings):
    """{key: when the relay had first shown it to anybody}"""
    heard = {}
    for reading in readings.values():
        for seen in reading.all_seen(room):
            heard[seen.key] = min(reading.said_by(seen.place), heard.get(seen.key, float("inf")))
    return heard


def _withdrawn(heard, readings, max_age):
    """Keys of what a pong confirmed, so that it was shown, and of which its author was told then that it is missing, or that
    nobody knows; or was gone, if a guest."""
    told = {key for reading in readings.values() for key, at in reading.told_at.items() if heard.get(key, at) < at}
    return told | {one.key for reading in readings.values() for one in reading.sent if reading.is_gone(one, max_age)}


def _late(log, readings, heard):
    """Keys of what came after a room was told that what was said before may come late."""
    told = [reading.time_of(one.place) for reading in readings.values() for one in reading.late[log.room]]
    return {
        key for key, entry in log.first.items()
        if any(entry["at"] <= at < heard.get(key, 0) for at in told)}


def _unkept(readings, clock):
    """{death: from when}: of processes of the relay that died after they had said that nothing is kept, and had not said that
    it is kept again."""
    said = collections.defaultdict(dict)
    for reading in readings.values():
        for one in reading.keeping:
            # Without its time, a notice that comes late is not told from another one.
            if one.time is not None:
                lives, name = said[reading.death_of(one.place)], (one.time, one.is_kept)
                # A stalled link brings it late; it says itself when it was said.
                until = reading.said_by(one.place)
                own = max((when for when in clock.moments(one.time, until) if when <= until), default=until)
                lives[name] = min(own, lives.get(name, own))
    unkept = {}
    for death, notices in said.items():
        begin = None
        for when, is_kept in sorted((when, is_kept) for (_, is_kept), when in notices.items()):
            begin = None if is_kept else when if begin is None else begin
        if begin is not None and death < float("inf"):
            unkept[death] = begin - MOMENT_MS
    return unkept


def _forgotten(log, readings, unkept, deaths):
    """{key: [Forgotten]} of what was shown first while nothing was kept, until the relay's process died: the next one has it
    anew, with a time and at a place of its own, or not at all. So it is with what was shown just before a kill, where the next
    process shows it with another time: what it knew from the disk has the first one."""
    shown = collections.defaultdict(list)
    for reading in readings.values() if deaths else ():
        for seen in reading.all_seen(log.room):
            shown[seen.key].append((reading.said_by(seen.place), seen.time))
    forgotten = {}
    for key, lines in shown.items():
        first = min(when for when, _ in lines)
        for died in sorted({*unkept, *deaths}):
            if died in unkept:
                is_forgotten = unkept[died] <= first <= died
            else:
                before, after = ({time for when, time in lines if (when > died) is is_after and time is not None}
                                 for is_after in (False, True))
                is_forgotten = died - KILLED_MS <= first <= died and before and after - before
            if is_forgotten:
                first = min((when for when, _ in lines if when > died), default=float("inf"))
                forgotten.setdefault(key, []).append(Forgotten(died, first))
    return forgotten


def _given(readings, max_age):
    """{key: when its author was told that nobody knows whether it is there, or was gone, if a guest}"""
    given = {}
    for reading in readings.values():
        for key, at in reading.told_at.items():
            given[key] = min(at, given.get(key, at))
        for one in reading.sent:
            if reading.is_gone(one, max_age):
                given.setdefault(one.key, one.at + max_age * 1000)
    return given


def _given_up(log, given, heard):
    """Keys of what was first shown after it was given up: the author's later messages do not wait for it."""
    return {key for key, at in given.items() if key in log.order and heard.get(key, 0) > at}


def _behind_rows(log, items):
    """Keys of what stands behind a row, and had been said before what stands in front of it."""
    newest, floor, seen, late = {}, {}, set(), set()
    for item in items:
        if isinstance(item, Row):
            floor = dict(newest)
        elif item.key in log.order and item.key not in seen:
            # Where it stood first: all of it may come again.
            seen.add(item.key)
            voice, number = item.key.author if is_from_irc(item.key) else None, log.order[item.key]
            if number < floor.get(voice, -1):
                late.add(item.key)
            newest[voice] = max(number, newest.get(voice, -1))
    return late


def _order(result, log, client, in_order, direction, late):
    """Each author's messages in the order of the log, and those of all people upstream among each other. What came late may
    stand behind what is newer, not in front of what is older."""
    voices = collections.defaultdict(list)
    for seen in in_order:
        if seen.key in log.order:
            voices[seen.key.author if is_from_irc(seen.key) else "people upstream"].append(seen.key)
    for voice in voices.values():
        on_time = [index for index, key in enumerate(voice) if key not in late]
        wrong = {on_time[index] for index in misplaced([log.order[voice[index]] for index in on_time])}
        oldest = float("inf")
        for index in reversed(range(len(voice))):
            number = log.order[voice[index]]
            if voice[index] in late:
                if oldest < number:
                    wrong.add(index)
            elif index not in wrong:
                oldest = min(oldest, number)
        for index in sorted(wrong):
            before = key_text(voice[index - 1]) if index else "nothing"
            result.find(
                "reordered", direction, log.room, client, "%s came behind %s" % (key_text(voice[index]), before))


# MARK: - Pages


def _pages(result, log, reading, readings, told, late, own):
    room, client = log.room, reading.client
    if room not in reading.begun and not any(page.room == room for page in reading.pages):
        return
    shown = {}
    for other in readings.values():
        for seen in other.seen[room]:
            if seen.msgid is not None:
                shown.setdefault(seen.key, seen.msgid)
    for page in reading.pages:
        if page.room != room:
            continue
        if page.refusal is not None:
            # Every question is about a room in which the client is, and a msgid that it was shown.
            asked_at = reading.time_of(page.place)
            if any(shown.get(key) and shown[key] in page.refusal and log.is_unknown(key, asked_at) for key in log.forgotten):
                continue
            result.find("lost", "pages", room, client, "a page was refused: " + page.refusal[-160:])
            continue
        for seen in page.lines:
            if _judge(result, log, reading, seen, "pages") and log.copies[seen.key] == 1:
                if shown.setdefault(seen.key, seen.msgid) != seen.msgid:
                    result.find(
                        "doubled", "pages", room, client,
                        "%s came as %s and as %s" % (key_text(seen.key), shown[seen.key], seen.msgid))
        for key, count in collections.Counter(seen.key for seen in page.lines).items():
            if count > log.copies[key] and key in log.order:
                result.find("doubled", "pages", room, client, "%s stands twice in a page" % key_text(key))
        if page.why == "look":
            _look(result, log, reading, page, told)
        if page.why != "pages":
            items = sorted(page.lines + page.rows, key=lambda item: item.place)
            _order(result, log, client, page.lines, "pages", late | _behind_rows(log, items))
    read = {connection for connection, name in reading.whole if name == room}
    if room in reading.begun and not read:
        result.find("lost", "pages", room, client, "the room was never read to its beginning")
    for connection in read:
        _whole(result, log, reading, connection, readings, told, late, own)


def _look(result, log, reading, page, told):
    """The newest lines: none of those that the client was shown before it asked may be left out."""
    room = log.room
    in_page = {seen.key for seen in page.lines}
    # Where each stands: where it was first shown, or where it was shown anew when the relay had forgotten it.
    places, lives = {}, {}
    for seen in reading.seen[room]:
        life = log.life(seen.key, reading.said_by(seen.place))
        if seen.place < page.place and life > lives.get(seen.key, -1):
            places[seen.key], lives[seen.key] = seen.place, life
    result.count("read", "pages", room)
    begin = 0
    if len(page.all) >= _LOOK:
        # Behind the page's oldest line, where that was shown as well.
        begin = places.get(page.lines[0].key, page.place) if page.lines else page.place
    for key in sorted((key for key, place in places.items() if place >= begin), key=places.get):
        if key not in log.order or key in in_page:
            continue
        if log.is_unknown(key, reading.time_of(page.place)) and (log.wire.history or any(
                told.ends(gap, log.first[key]["at"]) for gap in page.gaps)):
            continue
        result.find(
            "lost", "pages", room, reading.client,
            "%s was shown and is not in the newest %d lines" % (key_text(key), _LOOK))


_LOOK = 20


def _whole(result, log, reading, connection, readings, told, late, own):
    """A room that was read from its end to its beginning."""
    room, client = log.room, reading.client
    pages = [page for page in reading.pages
             if page.room == room and page.why == "pages" and page.connection == connection and page.lines]
    lines = [seen for page in reversed(pages) for seen in page.lines]
    # From the end to the beginning.
    positions = {place: (index,) for index, place in enumerate(place for page in reversed(pages) for place in page.all)}
    gaps = [] if log.wire.history else [(positions[gap.place], gap) for page in pages for gap in page.gaps]
    around = _around(log, {seen.key: positions[seen.place] for seen in lines})
    result.count("read", "pages", room)
    counted = collections.Counter(seen.key for seen in lines)
    in_pages = collections.Counter(seen.key for page in pages for seen in {seen.key: seen for seen in page.lines}.values())
    for key, count in in_pages.items():
        if key in log.order and count > log.copies[key]:
            result.find("doubled", "pages", room, client, "%s stands in %d pages" % (key_text(key), count))
    since = reading.member_since.get(room)
    for key, entry in log.first.items():
        if since is None or entry["at"] <= since + BUMP_MS:
            continue
        result.count("expected", "pages", room)
        if counted[key]:
            result.count("delivered", "pages", room)
        else:
            _count_missing(result, log, key, client, gaps, around, told, "is in no page", "pages")
    items = sorted(
        lines + [row for page in pages for row in page.rows], key=lambda item: positions[item.place])
    _order(result, log, client, lines, "pages", late | _behind_rows(log, items))
    _rising(result, log, reading, lines, own, "pages")


# MARK: - Times


def _times(result, log, readings, own_times):
    """Each message bears one time, its own, or the one behind the newest that was shown before it."""
    room = log.room
    # {key: {time: in which of the relay's lives first}}
    times, in_life, who = collections.defaultdict(dict), collections.defaultdict(set), {}
    bases = {None}
    heard = {seen.key for reading in readings.values() for seen in reading.all_seen(room)}
    for key, entry in log.entries:
        # The relay may know what nobody was shown: what was said before anybody came.
        if key not in heard:
            bases.update((entry["said_at"], entry.get("sent_at")))
    for client, reading in sorted(readings.items()):
        if "server-time" not in reading.caps:
            continue
        for seen in reading.all_seen(room):
            if seen.key not in log.order:
                # Counted elsewhere; others stand behind it all the same.
                bases.add(seen.time)
                continue
            life = log.life(seen.key, reading.said_by(seen.place))
            times[seen.key][seen.time] = min(life, times[seen.key].get(seen.time, life))
            who.setdefault(seen.key, client)
            in_life[seen.key, life].add(seen.time)
        for gap in reading.all_gaps(room):
            bases.update((gap.start, gap.end, gap.time))
        bases.update(row.time for rows in (reading.rows[room], *(
            page.rows for page in reading.pages if page.room == room)) for row in rows)
        if not reading.plan.asks:
            _rising(result, log, reading, reading.seen[room], own_times, "down")
    lines = collections.defaultdict(set)
    for key, found in times.items():
        for time in found:
            lines[time].add(key)
    for time in bases - {None}:
        lines[time].add(None)
    for (key, _), found in in_life.items():
        if len(found) > log.copies[key]:
            result.find(
                "wrong time", "down", room, who[key],
                "%s bears different times: %s" % (key_text(key), ", ".join(map(str, sorted(found, key=str)))))
    for key, found in times.items():
        for time, life in found.items():
            if time is None:
                result.find("wrong time", "down", room, who[key], "%s bears no time" % key_text(key))
            elif log.copies[key] == 1:
                own = own_times.of(key, life)
                if not _is_right(time, key, own, lines):
                    result.find(
                        "wrong time", "down", room, who[key], "%s bears %d, its own is %s" % (
                            key_text(key), time, " or ".join(
                                "%+d to %+d ms of that" % (low - time, high - time) for low, high in own)))


class _OwnTimes:
    """Which time is a message's own, before it is set behind others."""

    def __init__(self, log, readings, sent, clock, heard):
        # When a client was first shown it: the relay learnt of it before.
        self._log, self._sent, self._clock, self._heard = log, sent, clock, heard

    def of(self, key, life):
        """[(from, to)], where the relay had forgotten it so often."""
        entry = self._log.first[key]
        said = entry["said_at"]
        # When the relay learnt of it, by its own clock: what claims to be later is of then.
        learnt = [
            (low, min(high, said))
            for low, high in self._clock.shown(entry["at"], self._heard.get(key, entry["at"]), LOOK_MS) if low < said]
        own = [(said, said)] + learnt
        if is_from_irc(key):
            if entry.get("sent_at") is not None:
                own.append((entry["sent_at"], entry["sent_at"] + self._log.wire.second - 1))
            if key in self._sent:
                own += self._clock.shown(self._sent[key].at, entry["at"])
            # Where its clock was ahead as it took it, what it showed as it learnt that it had arrived.
            own += self._clock.shown(entry["at"], self._heard.get(key, entry["at"]), LOOK_MS)
        for one in self._log.forgotten.get(key, ())[:life]:
            # The next process learnt of it anew, by its own clock. It may be on disk all the same, with its first time.
            anew = self._clock.looked(one.died, one.again)
            own += anew if is_from_irc(key) else [(low, min(high, said)) for low, high in anew if low < said]
        return own

    def least(self, key, life):
        return min(low for low, _ in self.of(key, life))


def _is_right(time, key, own, lines):
    for low, high in own:
        if low <= time <= high:
            return True
        # Raised: right behind another line, and not by too much.
        if high < time <= high + RAISE_MS and any(lines.get(time - step, set()) - {key} for step in STEPS_MS):
            return True
    return False


def _rising(result, log, reading, lines, own, direction):
    """Each line is later than those before it, unless it would have to be raised by too much. What the relay forgot is before
    those of its own life alone."""
    # {when the relay died that knew of them: the newest before}; infinity: it is known for ever.
    newest, first = {}, set()
    for seen in lines:
        at = reading.said_by(seen.place)
        life = seen.key, log.life(seen.key, at)
        if life in first or seen.key not in log.order or seen.time is None:
            continue
        first.add(life)
        before, key = max(((other.time, other.key) for died, other in newest.items() if at <= died), default=(None, None))
        if before is not None and seen.time <= before and before + 1 - min(seen.time, own.least(*life)) <= RAISE_MS:
            result.find(
                "wrong time", direction, log.room, reading.client,
                "%s bears a time %d ms before %s, behind which it stands" % (
                    key_text(seen.key), before - seen.time, key_text(key)))
        died = min((one.died for one in log.forgotten.get(seen.key, ()) if at <= one.died), default=float("inf"))
        if died not in newest or seen.time > newest[died].time:
            newest[died] = seen


def _agreement(result, room, readings):
    """A room has one order: what two clients got, they got in the same."""
    # Not of a crowd: each with each would take too long.
    clients = sorted(client for client in readings if not CLIENTS[client].asks and CLIENTS[client].talk == 1)
    firsts = {}
    for client in clients:
        firsts[client] = _first_places(readings[client], room)
    for index, client in enumerate(clients):
        for other in clients[index + 1:]:
            common = sorted(firsts[client].keys() & firsts[other].keys(), key=firsts[client].get)
            for at in misplaced([firsts[other][key] for key in common]):
                result.count("other order", "down", room)


# MARK: - The command


def main():
    import report
    directory = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        run = load(directory)
    except (OSError, ValueError, KeyError) as error:
        print("accountant: %s: %s" % (directory, error), file=sys.stderr)
        return 2
    result = account(run)
    if "--brief" in sys.argv:
        # For the soak, which waits until nothing is missing any more.
        lost = sorted(map(str, result.of("lost")))
        print(json.dumps({"lost": len(lost), "which": zlib.crc32("\n".join(lost).encode())}))
        return 0
    report.print_tables(result)
    broken = report.promises(result, [])
    return 1 if report.print_broken(broken) else 0


if __name__ == "__main__":
    sys.exit(main())
