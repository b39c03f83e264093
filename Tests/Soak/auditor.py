#!/usr/bin/env python3
"""A second accountant of the soak: holds the records of a run against the promises, knowing nothing of the first one.

    auditor.py DIRECTORY

README.md says what the records are, docs/RELIABILITY.md what is promised. Prints a line for each kind of breach and wire,
with up to three examples. Exit code 0: no promise is broken; 1: one is; 2: the directory cannot be read.

Nothing is excused by what the harness did, but what waits for a disk while that stands still. Where a promise can be read
in two ways, the stricter one counts; those places are marked STRICT.
"""

import bisect
import collections
import datetime
import json
import os
import re
import statistics
import sys

from journal import disk_stalls

# The relay reads its clock once for all that it does in a turn of its loop, so a time may be this old, in milliseconds.
STALE = 200
# From about the time on that is written in clock.jsonl the relay's clock shows another time.
ABOUT = 50
# A gap begins this much earlier than the last proof that the link was whole.
EARLIER = 1000
# Lines are raised by at most so much.
MOST = 60_000
# Of so many lines a room remembers the times.
REMEMBERED = 2000
# "A moment later" an acknowledgement is on disk, and so is what was shown.
MOMENT = 250
# So long at the most a line is shown and not on disk, where the disk is not busy.
KILLED = 50
# The relay's longest life must have been this long, in seconds, to say anything about its memory.
LIFE = 40
GROWTH, GROWTH_KIB = 0.20, 16 * 1024
# What a room remembers of each of its last messages, of which some are long.
MESSAGE_KIB = 1.5
# Seconds: a connection for calls stays open behind its last answer; a token is renewed before its end, unless half of its
# life is later.
OPEN = 15
RENEWED = 60

KEY = re.compile(r"([A-Za-z]+[-@][a-z]+):([a-z]+):(\d+)(?!\d)")
OLD = re.compile(r"\[(?:(\d\d-\d\d) )?(\d\d:\d\d)\] ")
LATE = "so older messages may come late"
# A line of the room's order, in front of those that come late.
OLDER = "the messages that follow are older than those before them"
UNKEPT, KEPT = "Messages cannot be stored at the moment", "Messages are stored again"
GAP = re.compile(r"What was said between .* (?:is|are) missing")
ON_ITS_WAY = ("Your message is queued", "Your message has not been confirmed", "It arrived after all")
ON_ITS_WAY_CODES = ("QUEUED", "DELIVERED_LATE")

KINDS = {
    "lost": "nothing lost", "doubled": "nothing doubled", "reordered": "nothing reordered",
    "wrong author": "the right authors", "wrong text": "the right texts", "wrong time": "the right times",
    "told wrong": "nothing told that is not so", "refused": "no question refused", "order of times": "times rise",
}
WAYS = {
    "up": ("lost", "doubled", "reordered", "wrong author", "wrong text", "wrong time", "told wrong"),
    "down": ("lost", "doubled", "reordered", "wrong author", "wrong text", "wrong time", "order of times"),
    "guests": ("lost", "doubled", "reordered", "wrong author", "wrong text", "wrong time", "order of times"),
    "pages": (
        "lost", "doubled", "reordered", "wrong author", "wrong text", "wrong time", "order of times", "refused"),
}
RELAY = ("no process ended by itself", "memory stays where it is", "descriptors stay where they are")


class Unreadable(Exception):
    """The directory is not what a whole run leaves."""


# MARK: - Reading


def json_lines(path):
    """What happened; a line that `kill -9` cut never did."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError as error:
        raise Unreadable("%s: %s" % (path, error.strerror)) from error
    # Behind the last newline is nothing, or a line that was cut.
    entries = []
    for line in lines[:-1]:
        try:
            entry = json.loads(line.decode("utf-8", "surrogateescape"))
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries


class Line:
    """A line of IRC."""

    __slots__ = ("tags", "source", "command", "params")

    def __init__(self, raw):
        self.tags, self.source = {}, ""
        if raw.startswith("@"):
            tags, _, raw = raw[1:].partition(" ")
            for tag in tags.split(";"):
                name, _, value = tag.partition("=")
                self.tags[name] = value
        raw = raw.lstrip(" ")
        if raw.startswith(":"):
            self.source, _, raw = raw[1:].partition(" ")
        front, colon, last = raw.partition(" :")
        self.params = front.split()
        self.command = self.params.pop(0).upper() if self.params else ""
        if colon:
            self.params.append(last)

    @property
    def nick(self):
        return self.source.partition("!")[0]


EPOCH = datetime.datetime(1970, 1, 1)


def milliseconds(text):
    """Of an ISO 8601 time in UTC; None: it is none."""
    try:
        moment = datetime.datetime.fromisoformat(text.removesuffix("Z"))
    except (ValueError, AttributeError):
        return None
    return (moment - EPOCH) // datetime.timedelta(milliseconds=1)


def common(one, other):
    """The times in both, (from, to), to 50 ms; None: there are none."""
    begin, end = max(one[0], other[0] - ABOUT), min(one[1], other[1] + ABOUT)
    return (begin, end) if begin <= end else None


class Clock:
    """What the relay's clock showed, and when the relay stood still."""

    def __init__(self, changes, story):
        # [(from, offset)]: right before the first. By when each was made: it stands there again then.
        self.changes, self.made = [(-(1 << 62), 0)], [-(1 << 62)]
        for change in sorted(changes, key=lambda change: change["t"]):
            if change["offset"] != self.changes[-1][1]:
                self.changes.append((change["t"], change["offset"]))
                self.made.append(change["t"])
            elif len(self.changes) > 1:
                self.made[-1] = change["t"]
        self.offsets = sorted({offset for _, offset in self.changes})
        self.stops, since = [], None
        for entry in story:
            if entry["what"] == "stopped":
                since = entry["t"]
            elif since is not None:
                self.stops.append((since, entry["t"]))
                since = None
        if since is not None:
            self.stops.append((since, 1 << 62))

    def wrong_by(self, begin, end):
        """[(begin, end, offset)]: by how much the clock may have been wrong when in that time."""
        found = []
        index = max(0, bisect.bisect_right(self.made, begin - ABOUT) - 1)
        while index < len(self.changes) and self.changes[index][0] <= end + ABOUT:
            since, offset = self.changes[index]
            until = self.made[index + 1] if index + 1 < len(self.changes) else 1 << 62
            first, last = max(begin, since - ABOUT), min(end, until + ABOUT)
            if first <= last:
                found.append((first, last, offset))
            index += 1
        return found

    def is_wrong_by(self, offset, begin, end):
        return any(found == offset for _, _, found in self.wrong_by(begin, end))

    def awake(self, last):
        """When it went on, where it stood still then: what came meanwhile is counted back from what the clock shows at last."""
        return max([last] + [until + STALE for since, until in self.stops if since <= last <= until])

    def showed(self, begin, end):
        """[(first, last)]: what it may have shown in this time, or a little earlier, or right before a standstill."""
        begin -= STALE
        stops = [since for since, until in self.stops if since <= end and until >= begin]
        found = self.wrong_by(min([begin, *(since - STALE for since in stops)]), end)
        spans = [(first + offset, last + offset) for first, last, offset in found]
        # Stopped between looking at the machine's clock and learning by how much that is to be wrong.
        spans += [(since - STALE + offset, since + STALE + offset) for since in stops for _, _, offset in found]
        return spans


class Message:
    """A line of a backend's log."""

    def __init__(self, index, entry, key):
        self.index, self.key, self.author = index, key, key[0]
        self.is_from_irc = "@" in key[0]
        self.id, self.sender, self.sender_id, self.alias = (
            entry["id"], entry["sender"], entry["sender_id"], entry.get("alias"))
        self.text, self.at, self.said_at, self.sent_at = (
            entry["text"], entry["at"], entry["said_at"], entry.get("sent_at"))
        # When it was logged at the earliest: in a burst `at` is ahead of the clock.
        self.logged = self.at


class Said:
    """What a client sent."""

    def __init__(self, key, text, t, connection):
        self.key, self.text, self.t, self.connection = key, text, t, connection
        # When the relay had it at the latest; None: it is not known that it had.
        self.accepted = None


class Shown:
    """A message or a gap, as a client got it."""

    __slots__ = (
        "position", "t", "connection", "room", "key", "text", "nick", "account", "time", "msgid", "gap", "page", "stamp",
        "is_old", "is_row")


class Page:
    def __init__(self, purpose, room, connection, words, position, t):
        self.purpose, self.room, self.connection, self.position, self.t = purpose, room, connection, position, t
        self.sub = words[1].upper()
        self.reference = words[3].removeprefix("msgid=") if words[3].startswith("msgid=") else None
        self.limit = int(words[-1])
        # Lines of any kind in it; messages and gaps; the answer was whole; the refusal.
        self.count, self.lines, self.is_whole, self.refusal = 0, [], False, None


def key_of(text):
    match = KEY.match(text)
    return (match[1], match[2], int(match[3])) if match else None


def named(key):
    return "%s:%s:%d" % key


class Client:
    """A record, read."""

    def __init__(self, name, plan, entries):
        self.name, self.nick, self.account = name, plan["nick"], plan["account"]
        self.caps, self.asks = frozenset(plan["caps"]), plan["asks"]
        # None: all.
        self.rooms = plan.get("rooms")
        self.is_guest = self.account is None
        self.said, self.shown, self.told = {}, [], []
        # [(connection, position, when it came, when it was said by the relay's clock, room)]: older messages may come late.
        self.warned = []
        # [(purpose, room, connection, [Page], whether it was ended)]
        self.readings = []
        # {(connection, room): when it certainly was a member}
        self.member = {}
        # {connection: up to which position its lines are acknowledged, and when}
        self.acknowledged = {}
        # {connection: when its first and last line came or went; when the newest question went that was answered}
        self.begins, self.ends, self.answered = {}, {}, {}
        # The same of what the relay said of its store: whether all is kept again, or nothing can be kept.
        self.conditions = []
        self.connections = collections.defaultdict(list)
        for position, entry in enumerate(entries):
            self.connections[entry["c"]].append((position, entry["t"], entry["d"], entry["l"]))
        self.last = max(self.connections, default=0)
        for connection, lines in sorted(self.connections.items()):
            self.read(connection, lines)
        for number, one in enumerate(self.shown):
            one.position = (one.position, number)

    def read(self, connection, lines):
        waiting = {}                        # PINGs of the client: token → position
        unsettled, joined = [], {}          # what it said; rooms of which 366 came, and where
        asked, proven = {}, []              # PINGs of the relay: token → position; [(position of it, of the answer)]
        labels, batches = {}, {}            # pages: by the label of the question, by the name of the batch
        reading = None
        self.begins[connection], self.ends[connection] = lines[0][1], lines[-1][1]
        for position, t, direction, raw in lines:
            if direction == "#":
                words = raw.rpartition(" #")
                if words[0] in ("catch up", "look", "pages"):
                    reading = [words[0], words[2], connection, [], False]
                    self.readings.append(reading)
                elif reading:
                    reading[4] = True
                    reading = None
                continue
            if direction not in "<>":
                continue
            line = Line(raw)
            if direction == ">":
                if line.command == "PRIVMSG":
                    key = key_of(line.params[1])
                    if key:
                        self.said[key] = said = Said(key, line.params[1], t, connection)
                        unsettled.append((position, said))
                elif line.command == "PING":
                    waiting[line.params[-1]] = position, t
                elif line.command == "PONG" and line.params[-1] in asked:
                    proven.append((asked.pop(line.params[-1]), position))
                elif line.command == "CHATHISTORY" and reading:
                    page = Page(
                        reading[0], reading[1], connection, [line.command, *line.params], position, t)
                    labels[line.tags.get("label")] = page
                    reading[3].append(page)
                continue
            # It came.
            command = line.command
            if command == "PING":
                asked[line.params[-1]] = position
            elif command == "PONG" and line.params[-1] in waiting:
                sent, self.answered[connection] = waiting.pop(line.params[-1])
                while unsettled and unsettled[0][0] < sent:
                    said = unsettled.pop(0)[1]
                    said.accepted = min(said.accepted or t, t)
                for room, there in list(joined.items()):
                    if there < sent:
                        self.member[connection, room] = t
                        del joined[room]
                while proven and proven[0][1] < sent:
                    self.acknowledged[connection] = (proven.pop(0)[0], t)
            elif command == "366":
                joined[line.params[1].lstrip("#")] = position
            elif command == "BATCH":
                reference = line.params[0][1:]
                if line.params[0][0] == "+":
                    batches[reference] = labels.pop(line.tags["label"], None) if "label" in line.tags else None
                elif batches.get(reference):
                    batches[reference].is_whole = True
            elif command in ("FAIL", "WARN", "NOTE"):
                if command == "FAIL" and line.params[0] == "CHATHISTORY" and line.tags.get("label") in labels:
                    labels.pop(line.tags["label"]).refusal = line
                else:
                    self.hear(line, t)
            page = batches.get(line.tags.get("batch"))
            if command in ("PRIVMSG", "NOTICE") and len(line.params) > 1:
                if page:
                    page.count += 1
                if line.params[0].startswith("#"):
                    self.show(line, position, t, connection, page)
                elif command == "NOTICE":
                    self.hear(line, t)

    def hear(self, line, t):
        text = line.params[-1]
        if line.command != "NOTICE" and len(line.params) > 1 and line.params[1] in ON_ITS_WAY_CODES:
            retracted = line.params[1] == "DELIVERED_LATE"
        elif any(words in text for words in ON_ITS_WAY):
            retracted = ON_ITS_WAY[2] in text
        else:
            retracted = None
        for author, room, number in KEY.findall(text):
            # (key, when, True: it arrived after all; False: still on its way; None: it is not, or may not be, there; text)
            self.told.append(((author, room, int(number)), t, retracted, text))

    def show(self, line, position, t, connection, page):
        text, stamp = line.params[1], None
        if "server-time" not in self.caps:
            match = OLD.match(text)
            if match:
                stamp, text = (match[1], match[2]), text[match.end():]
        if line.command == "NOTICE":
            told = milliseconds(line.tags.get("time"))
            if LATE in text:
                self.warned.append((connection, position, t, told, line.params[0].lstrip("#")))
            if UNKEPT in text or KEPT in text:
                word = connection, position, t, told, KEPT in text
                # Once: to each room it is the same.
                if not self.conditions or (connection, *word[3:]) != (self.conditions[-1][0], *self.conditions[-1][3:]):
                    self.conditions.append(word)
            match = GAP.search(text)
            if match:
                text = text[match.start():]
            elif OLDER in text:
                # Each time that it says this it is another line, which those without msgids cannot know.
                text = "%s, %d" % (OLDER, position)
            else:
                return
        one = Shown()
        one.position, one.t, one.connection, one.page, one.stamp = position, t, connection, page, stamp
        # Or may be: who has times and no batches is not told which lines are old.
        one.is_old = bool(stamp or "batch" in line.tags) or "server-time" in self.caps and "batch" not in self.caps
        one.room, one.text, one.nick = line.params[0].lstrip("#"), text, line.nick
        one.account, one.msgid = line.tags.get("account"), line.tags.get("msgid")
        one.time = milliseconds(line.tags.get("time"))
        one.key, one.gap, one.is_row = None, None, text.startswith(OLDER)
        if line.command == "NOTICE":
            ends = [milliseconds(end) for end in line.tags.get("chatbridge/gap", "").split(",")]
            one.gap = tuple(ends) if len(ends) == 2 and None not in ends else ()
        else:
            one.key = key_of(text)
        if page:
            page.lines.append(one)
        self.shown.append(one)

    def is_acknowledged(self, one):
        return one.position[0] < self.acknowledged.get(one.connection, (-1,))[0]


class Room:
    def __init__(self, name, plan, entries):
        self.name, self.plan = name, plan
        self.wire, self.spoken, self.people = plan["wire"], plan["spoken"], plan["people"]
        self.log, self.unread = [], []
        for entry in entries:
            if entry.get("again"):
                continue
            match = KEY.search(entry["text"])
            if not match:
                self.unread.append(entry)
                continue
            self.log.append(Message(len(self.log), entry, (match[1], match[2], int(match[3]))))
        for before, one in zip(self.log, self.log[1:]):
            if one.at == before.at + 1:
                one.logged = before.logged
        self.by_key = collections.defaultdict(list)
        for message in self.log:
            self.by_key[message.key].append(message)
        # Where a message stands among its author's, or among those of all people upstream.
        self.rank, self.lanes = {}, collections.defaultdict(list)
        for message in self.log:
            lane = self.lanes[self.lane(message.key)]
            if message.key not in self.rank:
                self.rank[message.key] = len(lane)
                lane.append(message)

    def behind_rows(self, lines):
        """Keys of what stands behind a line that says that older messages follow, and is older than what stands in front of
        that.
        """
        newest, floor, found = {}, {}, set()
        for one in lines:
            if one.is_row:
                floor = dict(newest)
            elif one.key in self.rank:
                lane, rank = self.lane(one.key), self.rank[one.key]
                if rank < floor.get(lane, -1):
                    found.add(one.key)
                newest[lane] = max(rank, newest.get(lane, -1))
        return found

    @staticmethod
    def lane(key):
        """What must be in order: each IRC user's messages, and those of all people upstream together."""
        return key[0] if "@" in key[0] else ""


# MARK: - The audit


class Audit:
    def __init__(self, directory):
        try:
            with open(os.path.join(directory, "plan.json"), encoding="utf-8") as file:
                plan = json.load(file)
        except (OSError, ValueError) as error:
            raise Unreadable("%s: %s" % (os.path.join(directory, "plan.json"), error)) from error
        self.directory, self.plan, self.findings, self.streams = directory, plan, collections.defaultdict(list), {}
        if None in (plan.get("began"), plan.get("peace"), plan.get("silence")):
            raise Unreadable("%s: the run did not come to its end" % directory)
        story = json_lines(os.path.join(directory, "relay.jsonl"))
        clock = os.path.join(directory, "clock.jsonl")
        self.clock = Clock(json_lines(clock) if os.path.exists(clock) else [], story)
        self.story, self.samples = story, json_lines(os.path.join(directory, "samples.jsonl"))
        self.rooms = {
            name: Room(name, room, json_lines(os.path.join(directory, "logs", name + ".log")))
            for name, room in plan["rooms"].items()}
        self.clients = {
            name: Client(name, client, json_lines(os.path.join(directory, "records", name.replace("@", "."))))
            for name, client in plan["clients"].items()}
        self.lives, self.disk_stalls = lives_of(story), disk_stalls(directory)
        self.said = {key: said for client in self.clients.values() for key, said in client.said.items()}
        self.index()

    def index(self):
        """What all clients were shown, taken together."""
        self.first_shown, self.first_shown_live, self.times, self.key_of_msgid = {}, {}, {}, {}
        # The times of a room's lines, and when a line with each was first shown.
        self.moments = collections.defaultdict(dict)
        gaps = {}
        for client in self.clients.values():
            for one in client.shown:
                if one.room not in self.rooms:
                    continue
                if one.time is not None:
                    self.moments[one.room][one.time] = min(self.moments[one.room].get(one.time, one.t), one.t)
                if one.gap is not None:
                    if one.gap:
                        gaps.setdefault((one.room, one.gap), []).append((client, one))
                elif one.key:
                    self.first_shown[one.key] = min(self.first_shown.get(one.key, one.t), one.t)
                    if one.page is None:
                        self.first_shown_live[one.key] = min(self.first_shown_live.get(one.key, one.t), one.t)
        # Messages that a room was told may come late: logged before it was told so, and not shown by then.
        self.late = set()
        for t, name in self.said_when(
                (client, word) for client in self.clients.values() for word in client.warned if word[4] in self.rooms):
            self.late.update(
                message.key for message in self.rooms[name].log
                if message.logged < t and self.first_shown.get(message.key, t) >= t)
        self.forget()
        # {(room, msgid of a row): the messages directly behind it, and how often they had been forgotten}
        self.followers = collections.defaultdict(set)
        for client in self.clients.values():
            rows = {}
            for one in client.shown:
                stretch = one.room, one.connection, one.page
                if one.key and stretch in rows and one.room in self.rooms:
                    self.followers[one.room, rows[stretch]].add((one.key, self.age(one, client)))
                rows.pop(stretch, None)
                if one.is_row and one.msgid:
                    rows[stretch] = one.msgid
        # What is doubled is found as such, and has no one place.
        self.twice = {key for (key, _), ids in self.ids.items() if len(ids) > 1}
        self.twice.update(
            key for room in self.rooms.values() for key, messages in room.by_key.items() if len(messages) > 1)
        # Given up, as far as anybody could be told, before it was shown: what its author said later did not wait for it.
        given = {}
        for client in self.clients.values():
            for key, t, retracted, _ in client.told:
                if retracted is None:
                    given[key] = min(t, given.get(key, t))
            for key, said in client.said.items():
                if self.is_out_of_reach(client, said):
                    given.setdefault(key, said.t + self.plan["max_age"] * 1000)
        self.given = given
        self.given_up = {key for key, t in given.items() if self.first_shown.get(key, 0) > t}
        self.loose = self.late | self.twice | self.given_up
        # {(room, (from, to) or text): [(first, last)]}: the true times that a gap covers.
        self.covered = collections.defaultdict(list)
        for (room, gap), lives in self.tellers(gaps).items():
            received = min(one.t for _, one in gaps[room, gap])
            time = max((one.time for _, one in gaps[room, gap] if one.time is not None), default=None)
            spans = [span for life, is_first in lives for span in self.spans(*gap, received, time, life, is_first)]
            self.covered[room, gap] = spans
            # A client without tags has the gap when another one's line says its times.
            text = gaps[room, gap][0][1].text
            self.covered[room, text] = self.covered[room, text] + spans

    def tellers(self, gaps):
        """{(room, (from, to)): [(the process that told it, whether that may have been its first gap in that room)]}

        The one that a client was connected to that had it as it was told. What came to all as an old line, one told that was
        alive at its end, and after what people upstream had said in front of it.
        """
        behind = collections.defaultdict(int)
        for client in self.clients.values():
            newest, seen = collections.defaultdict(int), set()
            for one in client.shown:
                room = self.rooms.get(one.room)
                if one.page is None and one.gap and (one.room, one.gap) not in seen:
                    # Where it stood first: it may come again, behind what came after it.
                    seen.add((one.room, one.gap))
                    behind[one.room, one.gap] = max(behind[one.room, one.gap], newest[one.room])
                elif one.page is None and room and one.key in room.rank and not room.lane(one.key):
                    newest[one.room] = max(newest[one.room], room.by_key[one.key][0].logged)
        told = {}
        for (room, gap), ones in gaps.items():
            lives = {self.life[client.name, one.connection] for client, one in ones if not one.is_old}
            first = min(one.t for _, one in ones)
            ends = [
                gap[1] - offset for offset in self.clock.offsets
                if behind[room, gap] - STALE <= gap[1] - offset <= first + ABOUT
                and self.clock.is_wrong_by(offset, gap[1] - offset, gap[1] - offset)]
            told[room, gap] = {min(lives)} if lives else {
                life for life, alive in enumerate(self.lives) for end in ends if common((end, end), alive)}
        # Who told another one before: in front of it in what any client was shown.
        earlier = collections.defaultdict(set)
        for client in self.clients.values():
            before, seen = collections.defaultdict(set), set()
            for one in client.shown:
                which = one.room, one.gap
                if one.page is None and which in told and which not in seen:
                    seen.add(which)
                    earlier[which] |= before[one.room]
                    if len(told[which]) == 1:
                        before[one.room] |= told[which]
        return {
            which: [(life, life not in earlier[which]) for life in sorted(lives)] for which, lives in told.items()}

    def life_of(self, client, connection):
        """The relay's process at the other end of a connection: alive as it began, and as it took what it answered."""
        since = max(client.begins[connection], client.answered.get(connection, 0))
        return next((index for index, (_, end) in enumerate(self.lives) if since < end), len(self.lives) - 1)

    def forget(self):
        """What was shown when the relay had said that nothing can be kept, or a moment before, and its process died before it
        said that all is kept again: the next process has it anew, from the backend.

        The store is one for all rooms, so what any client was told in any room counts. What was said is dated by the relay's
        own clock; it may have come late, over a link that stalled, and to a client whose lines have no time it has come with
        the others'.
        """
        # {key of a message, or what else a line is known by: processes that died with it}, rising.
        self.forgotten = collections.defaultdict(list)
        self.life = {
            (client.name, connection): self.life_of(client, connection)
            for client in self.clients.values() for connection in client.begins}
        self.unkept = [self.unkept_since(life) for life in range(len(self.lives))]
        # {(what a line is known by, msgid, time): the newest process that showed it so}
        last_so = {}
        for client in self.clients.values():
            for one in client.shown:
                if one.time is not None:
                    so = name_of(one), one.msgid, one.time
                    last_so[so] = max(last_so.get(so, -1), self.life[client.name, one.connection])
        for life, (_, end) in enumerate(self.lives):
            since = self.unkept[life]
            if end == 1 << 62:
                continue
            if since is None:
                for name in self.not_on_disk(life, end):
                    self.forgotten[name].append(life)
                continue
            held = set()
            for client in self.clients.values():
                # What stands in front of the word that all is kept again was kept.
                kept = {connection: position for connection, position, _, _, is_kept in client.conditions if is_kept}
                held.update(
                    name_of(one) for one in client.shown
                    if self.life[client.name, one.connection] == life and one.room in self.rooms
                    and one.position[0] > kept.get(one.connection, -1))
            # STRICT: nor was what anybody has from before, unless an earlier process had died with it.
            held.difference_update(
                name_of(one) for client in self.clients.values() for one in client.shown
                if one.t < since - MOMENT
                and self.life[client.name, one.connection] > (self.forgotten.get(name_of(one)) or [-1])[-1])
            # What was shown a moment before nothing could be kept was kept, where a later process shows it as it was.
            held.difference_update(
                name_of(one) for client in self.clients.values() for one in client.shown
                if one.t < since and self.life[client.name, one.connection] == life
                and last_so.get((name_of(one), one.msgid, one.time), -1) > life)
            for name in held:
                self.forgotten[name].append(life)
        # By how often they had been forgotten, messages' msgids and when they were first shown.
        self.ids, self.first_again = collections.defaultdict(set), {}
        shown = collections.defaultdict(set)
        # {(room, msgid): the newest process that showed it}
        self.last_life = {}
        for client in self.clients.values():
            for one in client.shown:
                if one.msgid:
                    which = one.room, one.msgid
                    self.last_life[which] = max(self.last_life.get(which, -1), self.life[client.name, one.connection])
                if one.key and one.room in self.rooms:
                    which = one.key, self.age(one, client)
                    if one.msgid:
                        self.ids[which].add(one.msgid)
                    if one.key in self.forgotten:
                        self.first_again[which] = min(self.first_again.get(which, one.t), one.t)
                if one.time is not None and name_of(one) in self.forgotten:
                    shown[name_of(one)].add((one.msgid, one.time))
        self.anew = {name for name, values in shown.items() if len(values) > 1}

    def not_on_disk(self, life, end):
        """What was first shown just before a process was killed, where a later one shows it with another time: what that one knew
        from the disk would have the first."""
        first, times, later = {}, collections.defaultdict(set), collections.defaultdict(set)
        for client in self.clients.values():
            for one in client.shown:
                if one.time is None or one.room not in self.rooms:
                    continue
                name = name_of(one)
                if self.life[client.name, one.connection] > life:
                    later[name].add(one.time)
                else:
                    times[name].add(one.time)
                    first[name] = min(first.get(name, one.t), one.t)
        return {name for name, t in first.items() if t >= end - KILLED and later[name] - times[name]}

    def unkept_since(self, life):
        """When a process first said that nothing can be kept, after it last said that all is kept again; None: it did not."""
        said = self.said_when(
            (client, word) for client in self.clients.values() for word in client.conditions
            if self.life[client.name, word[0]] == life)
        kept = max((moment for moment, is_kept in said if is_kept), default=0)
        return min((moment for moment, is_kept in said if not is_kept and moment > kept), default=None)

    def said_when(self, words):
        """{(when, what)} of [(client, (connection, position, when it came, when it was said by the relay's clock, what))].

        It may have come late, over a link that stalled. To a client whose lines have no time it has come with another's, when
        one was said meanwhile.
        """
        said, undated, matched = set(), [], {}
        for client, (connection, _, t, told, what) in words:
            begin = client.begins[connection]
            moments = [] if told is None else [
                told - offset for offset in self.clock.offsets
                if begin - STALE <= told - offset <= t + ABOUT
                and self.clock.is_wrong_by(offset, told - offset, told - offset)]
            if moments:
                said.add((min(moments), what))
            else:
                undated.append(((client.name, connection, what), begin, t, what))
        dated = sorted(said)
        for which, begin, t, what in undated:
            after = matched.get(which, begin - STALE)
            moment = next((when for when, other in dated if other == what and after < when <= t + ABOUT), t)
            matched[which] = moment
            said.add((moment, what))
        return said

    def age(self, one, client, connection=None):
        """How often a line had been forgotten before the process at the other end of its connection, or of this one, began."""
        lives = self.forgotten.get(name_of(one))
        return bisect.bisect_left(lives, self.life[client.name, connection or one.connection]) if lives else 0

    def views(self, client, stream):
        """What a client was shown, in its order: at the end, and before as each process died with some of it.

        What was forgotten and did not come again has no place any more: who asks for what followed it is given the newest
        instead, with what had stood before it. STRICT: not what anybody has from a later process under the same msgid.
        """
        lives = {life for one in stream for life in self.forgotten.get(name_of(one), ())}
        for life in (*sorted(lives), len(self.lives)):
            yield in_its_order([
                one for one in stream
                if self.life[client.name, one.connection] <= life and not self.has_no_place(one, client, life)])

    def has_no_place(self, one, client, life):
        """Whether a line that the client was shown had been forgotten as this process began."""
        lives = self.forgotten.get(name_of(one), ())
        age = self.age(one, client)
        return age < bisect.bisect_left(lives, life) and self.last_life.get((one.room, one.msgid), -1) <= lives[age]

    def is_forgotten(self, one, client, connection):
        """Whether the process at the other end of this connection does not know a line any more that the client was shown."""
        return self.age(one, client) < self.age(one, client, connection)

    def is_gone(self, one, client):
        """Whether a line has been forgotten and did not come again."""
        return self.age(one, client) < len(self.forgotten.get(name_of(one), ()))

    def order(self, client, stream):
        """As `in_its_order`. What was forgotten and did not come again moves with the line behind which it stood: a later
        process that shows that one once more does not have it any more.
        """
        order = in_its_order(stream)
        gone = {name_of(one): one for one in order if self.is_gone(one, client)}
        if not gone:
            return order
        behind, before = collections.defaultdict(list), None
        for one in stream:
            name = name_of(one)
            if gone.get(name) is one:
                behind[before].append(one)
            elif name not in gone and name not in self.anew:
                # That has another place than it had.
                before = name
        return behind[None] + [
            line for one in order if name_of(one) not in gone for line in (one, *behind.get(name_of(one), ()))]

    def spans(self, begin, end, received, told, life, is_first):
        """The true times that a gap may mean that this process told as from `begin` to `end`, by the relay's clock.

        Either each end is what the clock showed then, or both were counted back from what it showed as the gap was told. Only
        of its first gap in a room has a process the begin from another one, that kept it.
        """
        clock, told = self.clock, told if told is not None else end
        since, until = self.lives[life]
        since, until = since - ABOUT, min(until, received) + ABOUT
        alive = self.lives[0 if is_first else life:life + 1]
        firsts = [
            begin - offset for offset in clock.offsets
            if any(
                clock.is_wrong_by(offset, when[0], clock.awake(when[1])) for one in alive
                if (when := common((begin - offset, begin - offset + EARLIER), one)))]
        lasts = [
            end - offset for offset in clock.offsets
            if since <= end - offset <= until and clock.is_wrong_by(offset, end - offset, end - offset)]
        spans = [(first, last) for first in firsts for last in lasts if first <= last]
        for offset in clock.offsets:
            first, last = begin - offset, end - offset
            when = since <= last and (is_first or since <= first + EARLIER) and common(
                (last, max(last, told - offset)), (since, until))
            if when and clock.is_wrong_by(offset, *when):
                spans.append((first, last))
        return spans

    def find(self, way, kind, wire, text):
        assert kind in WAYS[way]
        self.findings[way, kind, wire].append(text)

    def way_of(self, client):
        return "guests" if client.is_guest else "down"

    def run(self):
        for client in self.clients.values():
            self.up(client)
        for room in self.rooms.values():
            self.log(room)
        for client in self.clients.values():
            self.contents(client)
            self.streams[client.name] = streams = {name: [] for name in self.rooms}
            for one in self.stream(client):
                if one.room in streams and (one.key is None or one.key[1] == one.room):
                    streams[one.room].append(one)
        for (key, _), ids in self.ids.items():
            room = self.rooms.get(key[1])
            # STRICT: "with the same msgid whenever and through whichever connection it comes", whoever has it.
            if room and len(ids) > max(1, len(room.by_key.get(key, ()))):
                self.find("down", "doubled", room.wire, "%s was shown as %s" % (named(key), " and as ".join(sorted(ids))))
        for room in self.rooms.values():
            orders = {
                name: self.order(self.clients[name], streams[room.name]) for name, streams in self.streams.items()}
            behind = {
                name: set().union(*(room.behind_rows(lines) for lines in (
                    order, *by_connection(self.streams[name][room.name]).values())))
                for name, order in orders.items()}
            self.behind_rows = set().union(*behind.values())
            self.same_order(room, orders)
            for client in self.clients.values():
                stream, order = self.streams[client.name][room.name], orders[client.name]
                self.repeated(client, room, stream)
                views = list(self.views(client, stream))
                self.in_order(
                    self.way_of(client), client, room, behind[client.name], order, *views, *by_connection(stream).values())
                self.times_rise(self.way_of(client), client, room, *views)
                if client.is_guest:
                    self.guest(client, room, stream, orders)
                else:
                    self.account(client, room, order)
                self.pages(client, room, stream, behind[client.name])
        self.relay()

    # MARK: Up

    def up(self, client):
        told, family = collections.defaultdict(list), [
            other for other in self.clients.values()
            if other is client or client.account and other.account == client.account]
        for other in family:
            for key, t, retracted, text in other.told:
                told[key].append((t, retracted, text))
        for key, said in client.said.items():
            room = self.rooms.get(key[1])
            if room is None:
                continue
            there = room.by_key.get(key, ())
            words = sorted(told[key], key=lambda one: one[0])
            final = [text for _, retracted, text in words if retracted is None]
            late = any(retracted for _, retracted, _ in words)
            # STRICT: what anybody was shown, the relay had taken, also when neither PONG nor echo came to its author.
            accepted = min(
                (t for t in (said.accepted, self.first_shown.get(key)) if t is not None), default=None)
            if not there:
                if accepted is not None and not final and not self.is_out_of_reach(client, said):
                    self.find("up", "lost", room.wire, "%s, accepted at %d, is not in the log, and its author was not told" % (
                        named(key), accepted))
                elif late:
                    self.find("up", "told wrong", room.wire, "%s arrived after all, its author was told, but it did not" % (
                        named(key)))
                continue
            if final and not late and all("not known" not in text for text in final):
                # STRICT: "or its author is told why it is not there": not both, unless the relay said that it cannot know.
                self.find("up", "told wrong", room.wire, "%s is in the log, and its author was told %r" % (
                    named(key), final[-1][:80]))
            if said.accepted is not None:
                said.accepted = accepted

    def is_out_of_reach(self, client, said):
        """A guest hears of a message only as long as its connection lasts, and of a relay that stands still nothing."""
        if not client.is_guest or said.connection == client.last:
            return False
        due = said.t + self.plan["max_age"] * 1000
        for since, until in self.clock.stops:
            if since <= due < until:
                due = until
        return client.ends[said.connection] < due

    def log(self, room):
        wire = self.plan["wires"][room.wire]
        for entry in room.unread:
            self.find("up", "wrong text", room.wire, "%s has %r, which nobody said" % (room.name, entry["text"][:80]))
        ids, owners = collections.defaultdict(set), collections.defaultdict(set)
        for key, messages in room.by_key.items():
            if key[1] != room.name:
                self.find("up", "wrong text", room.wire, "%s is in %s" % (named(key), room.name))
            if len(messages) > 1 and messages[0].is_from_irc:
                self.find("up", "doubled", room.wire, "%s is in the log as %s" % (
                    named(key), " and ".join(str(message.id) for message in messages)))
        numbers = collections.defaultdict(list)
        for message in room.log:
            if not message.is_from_irc:
                continue
            client, said = self.clients.get(message.author), self.said.get(message.key)
            # Its author's later messages did not wait for one that nobody knew of, and that came after all.
            is_given_up = message.logged > self.given.get(message.key, message.logged)
            if message.key[1] == room.name and message is room.by_key[message.key][0] and not is_given_up:
                numbers[message.author].append(message)
            if client is None or said is None:
                self.find("up", "wrong text", room.wire, "%r is in the log of %s, and nobody said it" % (
                    message.text[:80], room.name))
                continue
            expected = room.spoken.replace("{nick}", client.nick).replace("{text}", said.text)
            if message.text != expected:
                self.find("up", "wrong text", room.wire, "%s is in the log as %r" % (named(message.key), message.text[:120]))
            if message.sender != (client.nick if wire["identity"] == "puppet" else room.plan["account"]):
                self.find("up", "wrong author", room.wire, "%s is in the log by %r" % (named(message.key), message.sender))
            # Where neither the sender nor the text says who it was, a column of its own must.
            is_named = wire["identity"] == "puppet" or "{nick}" in room.spoken
            if message.alias != client.nick and (message.alias is not None or not is_named):
                self.find("up", "wrong author", room.wire, "%s is in the log under the alias %r" % (
                    named(message.key), message.alias))
            who = client.nick if wire["identity"] == "puppet" else room.plan["account"]
            owners[message.sender_id].add(who)
            # A guest is another person each time that it comes.
            if not client.is_guest:
                ids[who].add(message.sender_id)
            self.sent_at(room, wire, message, said)
        for who, found in ids.items():
            if len(found) > 1:
                self.find("up", "wrong author", room.wire, "%s has %d ids in %s: %s" % (
                    who, len(found), room.name, ", ".join(sorted(map(str, found)))))
        for sender_id, found in owners.items():
            if len(found) > 1:
                self.find("up", "wrong author", room.wire, "%s of %s is the id of %s" % (
                    sender_id, room.name, " and ".join(sorted(found))))
        for messages in numbers.values():
            for index in misplaced([message.key[2] for message in messages]):
                self.find("up", "reordered", room.wire, "%s is in the log behind %s" % (
                    named(messages[index].key), named(messages[index - 1].key) if index else "nothing"))

    def sent_at(self, room, wire, message, said):
        """"With the time at which it was said": what the relay's clock showed between the sending and the taking."""
        if message.sent_at is None:
            return
        latest = min(t for t in (message.at, said.accepted, self.first_shown.get(message.key)) if t is not None)
        step = wire["second"]
        if not any(
                first // step * step <= message.sent_at <= last
                for first, last in self.clock.showed(said.t, max(said.t, latest))):
            self.find("up", "wrong time", room.wire, "%s, sent at %d and taken by %d, bears %d (%+d ms)" % (
                named(message.key), said.t, latest, message.sent_at, message.sent_at - said.t))

    # MARK: What a line says

    def contents(self, client):
        """Whatever the order: who, what, where, when, and one msgid for each message."""
        seen = set()
        for one in client.shown:
            way = "pages" if one.page else self.way_of(client)
            room = self.rooms.get(one.room)
            if room is None or one.gap is not None:
                continue
            where = "%s in %s" % (client.name, one.room)
            if one.key is None:
                self.find(way, "wrong text", room.wire, "%s got %r, which nobody said" % (where, one.text[:80]))
                continue
            key = one.key
            if key[1] != one.room:
                self.find(way, "wrong text", room.wire, "%s got %s" % (where, named(key)))
                continue
            there, said = room.by_key.get(key, ()), self.said.get(key)
            is_from_irc = "@" in key[0]
            if not there and not said:
                self.find(way, "wrong text", room.wire, "%s got %r, which nobody said" % (where, one.text[:80]))
                continue
            # What an IRC user said and the backend does not have is a matter of the way up.
            text = said.text if said else there[0].text
            if one.text != text:
                self.find(way, "wrong text", room.wire, "%s got %r for %r" % (where, one.text[:120], text[:120]))
            if is_from_irc:
                author = self.clients[key[0]]
                nick, account = author.nick, author.account
                if "account-tag" in client.caps and one.account != account:
                    self.find(way, "wrong author", room.wire, "%s got %s with the account %s" % (
                        where, named(key), one.account))
            else:
                nick = room.people.get(key[0])
            if one.nick != nick:
                self.find(way, "wrong author", room.wire, "%s got %s from %s" % (where, named(key), one.nick))
            if one.msgid:
                known = self.key_of_msgid.setdefault(one.msgid, key)
                if known != key:
                    self.find(way, "doubled", room.wire, "%s got %s with the msgid of %s" % (
                        where, named(key), named(known)))
            if one.time is None:
                if one.stamp and not self.is_stamp_right(one):
                    self.find(way, "wrong time", room.wire, "%s got %s stamped %s" % (
                        where, named(key), " ".join(filter(None, one.stamp))))
                continue
            known = self.times.setdefault((key, one.msgid, self.age(one, client)), one.time)
            if known != one.time and not self.is_older_than_all(one, there):
                self.find(way, "wrong time", room.wire, "%s got %s with the time %d, which it has as %d elsewhere" % (
                    where, named(key), one.time, known))
            elif (key, one.time, way) not in seen:
                seen.add((key, one.time, way))
                self.value(way, where, room, there, said, one, self.age(one, client))

    def is_stamp_right(self, one):
        """`[HH:MM]` is what clients with `server-time` see as a tag."""
        shown = {time for (key, _, _), time in self.times.items() if key == one.key} if self.times else set()
        if not shown:
            return True
        return any(
            (EPOCH + datetime.timedelta(milliseconds=time)).strftime("%H:%M") == one.stamp[1] for time in shown)

    def is_older_than_all(self, one, there):
        """What is older than all that the relay keeps, and is asked of the backend, has the backend's times as they are."""
        return bool(one.page and there and one.key not in self.first_shown_live and one.time == there[0].said_at)

    def value(self, way, where, room, there, said, one, age):
        """shown = max(newest shown + 1 ms, min(told, now)), raised by 60 s at most.

        STRICT: a millisecond behind a time that somebody was shown, not behind one that the relay only keeps.
        """
        own, at = self.own(one.key, there, said, age), there[0].said_at if there else said.t
        if any(begin <= one.time <= end for begin, end in own):
            return
        taken = self.moments[room.name]
        is_behind = one.time - 1 in taken or one.time - 2 in taken
        if is_behind and any(begin <= one.time <= end + MOST for begin, end in own):
            return
        self.find(way, "wrong time", room.wire, "%s got %s of %d with the time %d (%+d ms), %s" % (
            where, named(one.key), at, one.time, one.time - at,
            "raised by more than 60 s" if is_behind else "which is not a millisecond behind any line"))

    def own(self, key, there, said, age):
        """[(from, to)]: which may be the message's own time, min(told, now), before it is set behind others."""
        first = self.first_again.get((key, age), self.first_shown[key])
        told, since = [], []
        # Two in the log are a breach of the way up; the line may be of either.
        for message in there:
            # What the wire tells, or less, when the relay's clock showed less as it learnt of the message.
            told.append((message.said_at, message.said_at))
            since.append(message.logged)
        if said:
            # When the relay took it; a clock that was put back meanwhile makes that later than its `now`.
            told += self.clock.showed(said.t, max(said.t, min(said.accepted or first, first)))
            # Where a pong confirms, it may learn of it before the backend has it; and of what the backend does not have.
            if not there or not self.plan["wires"][self.rooms[key[1]].wire]["confirms"]:
                since.append(said.t)
        # Nobody has to be there as it learns of it, but nobody is shown it before.
        learnt = self.clock.showed(min(first, *since), first)
        latest = max((end for _, end in told), default=0)
        return told + [(begin, min(end, latest)) for begin, end in learnt if begin <= latest]

    # MARK: Streams

    def stream(self, client):
        """What a client was shown of the rooms, in their order."""
        if not client.asks:
            return [one for one in client.shown if one.page is None]
        # What it fetched as it came stands before what came live meanwhile, but behind the line from which on it asked: that
        # one came live where it had been forgotten.
        parts = collections.defaultdict(lambda: ([], []))
        for one in client.shown:
            if one.page is None:
                parts[one.connection, one.room][1].append(one)
            elif one.page.purpose == "catch up":
                parts[one.connection, one.room][0].append(one)
        found = []
        for _, (pages, live) in sorted(parts.items()):
            begin = next((
                index + 1 for index, one in enumerate(live)
                if pages and one.msgid == pages[0].page.reference and one.position < pages[0].position), 0)
            found += live[:begin] + pages + live[begin:]
        return found

    def repeated(self, client, room, stream):
        before = {}
        way = self.way_of(client)
        for one in stream:
            if one.key is None:
                continue
            if one.key[0] == client.name and "echo-message" not in client.caps:
                self.find(way, "doubled", room.wire, "%s in %s got its own %s without asking for echoes" % (
                    client.name, room.name, named(one.key)))
            # In pages and live is once: the client asks for what it has not seen, and some of that comes meanwhile.
            place = (one.key, one.page is None, one.msgid, self.age(one, client))
            last = before.get(place)
            before[place] = one
            if last is None or one.page is not None or not one.msgid and len(room.by_key.get(one.key, ())) > 1:
                continue
            what = "%s in %s got %s twice, " % (client.name, room.name, named(one.key))
            if last.connection == one.connection:
                self.find(way, "doubled", room.wire, what + "over connection %d" % one.connection)
            elif client.is_guest:
                self.find(way, "doubled", room.wire, what + "over connections %d and %d" % (
                    last.connection, one.connection))
            elif client.asks:
                self.find(way, "doubled", room.wire, what + "though it asks for old lines itself")
            else:
                # "Once, over the next connection"; of a process that could not write down the acknowledgement, over the next
                # of another.
                is_lost = client.is_acknowledged(last) and self.could_not_be_written(client, last, one)
                before_it = self.life[client.name, last.connection] if is_lost else None
                if any(
                        (between, room.name) in client.member and self.life[client.name, between] != before_it
                        and not self.waited_for_the_disk(client, room.name, between)
                        for between in range(last.connection + 1, one.connection)):
                    self.find(way, "doubled", room.wire, what + "over connections %d and %d, and not between" % (
                        last.connection, one.connection))
                elif client.is_acknowledged(last) and not is_lost:
                    self.find(way, "doubled", room.wire, what + "though the first was acknowledged over connection %d" % (
                        last.connection))

    def waited_for_the_disk(self, client, room, connection):
        """What a client missed comes from the disk, which stood still from when it entered to the end of the connection."""
        return any(
            since <= client.member[connection, room] and client.ends[connection] <= until for since, until in self.disk_stalls)

    def could_not_be_written(self, client, last, one):
        """"Written down a moment later, and only where the disk takes it": when the process died before that, the line comes
        again.
        """
        life, when = self.life[client.name, last.connection], client.acknowledged[last.connection][1]
        if self.life[client.name, one.connection] == life:
            return False
        died, since = self.lives[life][1], self.unkept[life]
        return died - when <= MOMENT or since is not None and when >= since - MOMENT

    def in_order(self, way, client, room, behind, *sequences):
        found, early, loose = {}, {}, self.loose | behind
        for lines in sequences:
            lanes = collections.defaultdict(list)
            for one in lines:
                if one.key in room.rank and one.key not in loose:
                    lanes[room.lane(one.key)].append(one)
            for name, lane in lanes.items():
                wrong = set(misplaced([room.rank[one.key] for one in lane]))
                for index in wrong:
                    found.setdefault(lane[index].key, lane[index - 1].key if index else None)
                # STRICT: what came late may stand behind what is newer, but not in front of what is older.
                right, oldest = {one.key for index, one in enumerate(lane) if index not in wrong}, None
                for one in reversed(lines):
                    if one.key not in room.rank or room.lane(one.key) != name or one.key in self.twice:
                        continue
                    if one.key in right:
                        oldest = min(oldest or one.key, one.key, key=room.rank.get)
                    elif one.key in loose and oldest and room.rank[oldest] < room.rank[one.key]:
                        early.setdefault(one.key, oldest)
        for key, behind in early.items():
            self.find(way, "reordered", room.wire, "%s in %s got %s in front of %s" % (
                client.name, room.name, named(key), named(behind)))
        for key, before in found.items():
            self.find(way, "reordered", room.wire, "%s in %s got %s behind %s" % (
                client.name, room.name, named(key), named(before) if before else "nothing"))

    def same_order(self, room, orders):
        """STRICT: "in the order of the room, through whichever connection it comes": one order for all clients, also where
        the backend's may be another one.
        """
        whole = [name for name, client in self.clients.items() if not client.is_guest and not client.asks]
        if not whole:
            return
        model = max(whole, key=lambda name: len(orders[name]))
        place = {
            one.key: index for index, one in enumerate(orders[model])
            if one.key and one.key not in self.twice and one.key not in self.forgotten}
        for name, lines in orders.items():
            lines = [one for one in lines if one.key in place]
            for index in misplaced([place[one.key] for one in lines]):
                self.find(self.way_of(self.clients[name]), "reordered", room.wire, "%s in %s got %s behind %s, not so %s" % (
                    name, room.name, named(lines[index].key), named(lines[index - 1].key) if index else "nothing", model))

    def times_rise(self, way, client, room, *sequences):
        """STRICT: a line's time is greater than those of all lines before it, not only of the last one, but for those
        that are more than 60 s ahead of its own: "raised by at most 60 s; beyond that its own time stands". So a line that
        a wrong clock put far ahead does not set those free that come behind it. Gaps are lines as well: clients sort them
        by their times like all others.

        A line's own time stands too where the last millisecond of the 60 s is taken, by what anybody was shown.

        A room remembers the last lines alone. A clock that is set back by an hour shows the times of those once more that it
        remembers no longer. STRICT: what a client was not shown does not count among them.
        """
        found = {}
        for lines in sequences:
            # Times of those that are remembered, sorted: all, and those that no clock dated ahead. Where each line has its time.
            every, right, places = [], [], []
            for index, one in enumerate(lines):
                if index > REMEMBERED:
                    for times in places[index - REMEMBERED - 1]:
                        del times[bisect.bisect_left(times, lines[index - REMEMBERED - 1].time)]
                if one.time is None:
                    places.append(())
                    continue
                there = room.by_key.get(one.key, ()) if one.key else ()
                least, taken, is_ahead = self.dated(room, one, there, client)
                newest = every if one.time > taken + MOST else right
                at = bisect.bisect_right(newest, least + MOST - 1)
                if at and newest[at - 1] >= one.time and not is_full(self.moments[room.name], least, one.time) and not (
                        one.page and one.key not in self.first_shown_live and there and one.time == there[0].said_at):
                    found.setdefault((name_of(one), one.time), "%s in %s got %s with %d, %d ms %s a line before it" % (
                        client.name, room.name, named(one.key) if one.key else "a gap", one.time, newest[at - 1] - one.time,
                        "earlier than" if newest[at - 1] > one.time else "after, the same as"))
                places.append((every,) if is_ahead else (every, right))
                for times in places[-1]:
                    bisect.insort(times, one.time)
        for text in found.values():
            self.find(way, "order of times", room.wire, text)

    def dated(self, room, one, there, client):
        """The least that a line's own time may have been, of those that explain what it shows, since the relay's clock may have
        shown less than was told; by when the relay had it; and whether its clock dated it ahead of that by more than 60 s. When
        the clock is set back, such a line has its place in the order of the room alone: no line has to be later, not even when
        its time has come.

        STRICT: no other time explains it, and lines that are ahead rise among each other.
        """
        if one.key:
            own, taken = self.own(one.key, there, self.said.get(one.key), self.age(one, client)), self.taken(one.key, there)
        elif one.gap:
            # Its own time is its end.
            own = [(one.gap[1], one.gap[1])]
            taken = max((last for _, last in self.covered[room.name, one.gap]), default=one.t)
        else:
            # A row's is a millisecond before that of the message in front of which it stands.
            behind = [(key, room.by_key.get(key, ()), age) for key, age in self.followers[room.name, one.msgid]]
            own = [
                (begin - 1, end - 1) for key, there, age in behind
                for begin, end in self.own(key, there, self.said.get(key), age)]
            taken = max((self.taken(key, there) for key, there, _ in behind), default=one.time)
        begins = [begin for begin, end in own if begin <= one.time <= end + MOST]
        return min(begins, default=one.time), taken, min(begins, default=taken) > taken + MOST

    def taken(self, key, there):
        """By when the relay had a message."""
        said = self.said.get(key)
        return min(self.first_shown[key], *(message.at for message in there), said and said.accepted or 1 << 62)

    # MARK: What is missing

    def excused(self, room, message, lines, places):
        """Whether it lies in a gap that was told, and told where it is missing.

        `lines` are messages and gaps in order; `places` their people's messages: ([rank], [position]), sorted by rank.
        """
        if self.plan["wires"][room.wire]["history"]:
            return False
        ranks, positions = places
        people = room.lanes[""]
        index = bisect.bisect_left(people, message.index, key=lambda one: one.index)
        after = bisect.bisect_left(ranks, index)
        begin = positions[after - 1] if after else -1
        while after < len(ranks) and people[ranks[after]].index <= message.index:
            after += 1
        end = positions[after] if after < len(ranks) else len(lines)
        return any(
            self.is_covered(room, lines[place], message)
            for place in range(begin + 1, end) if lines[place].gap is not None)

    def is_covered(self, room, gap, message):
        spans = self.covered.get((room.name, gap.gap or gap.text), ())
        return any(first <= message.at and message.logged <= last for first, last in spans)

    def missing(self, room, owed, lines):
        """Of `owed`, what neither is in `lines` nor in a gap that stands there."""
        have = {one.key for one in lines if one.key}
        absent = [message for message in owed if message.key not in have]
        if not absent:
            return []
        places = sorted(
            (room.rank[one.key], position) for position, one in enumerate(lines)
            if one.key and one.key in room.rank and not room.lane(one.key))
        places = [rank for rank, _ in places], [position for _, position in places]
        return [message for message in absent if not self.excused(room, message, lines, places)]

    def account(self, client, room, first):
        """Everything from when it first entered, whether it was connected or not."""
        entered = min((t for (_, name), t in client.member.items() if name == room.name), default=None)
        if entered is None and client.rooms is not None and room.name not in client.rooms:
            return
        if entered is None:
            self.find("down", "lost", room.wire, "%s never was in %s" % (client.name, room.name))
            return
        owed = [
            message for message in room.log
            if message.logged > entered and (message.author != client.name or "echo-message" in client.caps)]
        if client.asks:
            unasked = self.unasked(client, room)
            owed = [message for message in owed if message.key not in unasked]
        for message in self.missing(room, owed, first):
            self.find("down", "lost", room.wire, "%s in %s never got %s of %d%s" % (
                client.name, room.name, named(message.key), message.at, self.nearest(room, message, first)))

    def unasked(self, client, room):
        """What a client that asks for old lines itself did not ask for: it knew no line, and took the newest page alone."""
        keys = set()
        for purpose, name, _, pages, _ in client.readings:
            if purpose == "catch up" and name == room.name:
                for page in pages:
                    if page.sub == "LATEST" and page.count >= page.limit:
                        ranks = [room.by_key[one.key][0].index for one in page.lines if one.key in room.by_key]
                        if ranks:
                            # STRICT: it is behind what the client had been shown before.
                            before = [
                                room.by_key[one.key][0].index for one in client.shown
                                if one.room == name and one.key in room.by_key and one.position[0] < page.position]
                            keys.update(message.key for message in room.log[max(before, default=-1) + 1:min(ranks)])
        return keys

    def nearest(self, room, message, lines):
        if self.plan["wires"][room.wire]["history"]:
            return ""
        spans = [
            span for one in lines if one.gap is not None
            for span in self.covered.get((room.name, one.gap or one.text), ())]
        if not spans:
            return "; no gap was told"
        first, last = min(spans, key=lambda span: max(span[0] - message.at, message.at - span[1]))
        inside = first <= message.at and message.logged <= last
        return "; a gap from %+d to %+d ms%s" % (
            first - message.at, last - message.at, " stands elsewhere" if inside else "")

    def guest(self, client, room, stream, orders):
        """On each connection, nothing is missing while it lasts."""
        whole = [
            [one for one in orders[name] if one.key in room.rank and not self.is_loose(one.key)]
            for name, other in self.clients.items() if not other.is_guest and not other.asks]
        places = [{one.key: index for index, one in enumerate(lines)} for lines in whole]
        # With what came late: at the end, and when a process died.
        everything = {None: self.places(room, orders)}
        for connection, lines in by_connection(stream).items():
            owed, ranks = set(), self.ranks(room, lines)
            for lane, found in ranks.items():
                # From the first to the last of an author's, or of people upstream, there is no hole.
                owed.update(message.key for message in room.lanes[lane][min(found):max(found) + 1])
            # STRICT: from when it certainly was in the room, not from the first line of people upstream.
            entered = client.member.get((connection, room.name))
            if entered is not None and "" in ranks:
                owed.update(
                    message.key for message in room.lanes[""][:max(ranks[""]) + 1] if message.logged > entered)
            # Of IRC users, what others were shown between two lines that it was shown. When they were logged says nothing:
            # a relay that had a pong for it may show a message that the backend has read and logs later.
            # All of them must agree, since one that was shown another order is no witness.
            bounds = [[place[one.key] for one in lines if one.key in place] for place in places]
            bounds = [(min(found), max(found)) if found else (1, 0) for found in bounds]
            owed.update(
                one.key for others, (begin, end) in zip(whole, bounds) for one in others[begin:end + 1]
                if all(first <= place.get(one.key, first) <= last for place, (first, last) in zip(places, bounds)))
            life = self.life[client.name, connection]
            if life not in everything and any(map(self.is_late, owed)):
                everything[life] = self.places(room, {name: in_its_order([
                    one for one in self.streams[name][room.name] if self.life[name, one.connection] <= life])
                    for name in orders})
            owed = {
                key for key in owed if not self.is_late(key) or any(
                    self.had_to_come(client, connection, key, lines, everything[when]) for when in (None, life))}
            owed = sorted((room.by_key[key][0] for key in owed), key=lambda message: message.index)
            for message in self.missing(room, owed, lines):
                self.find("guests", "lost", room.wire, "%s in %s did not get %s of %d over connection %d%s" % (
                    client.name, room.name, named(message.key), message.at, connection,
                    self.nearest(room, message, lines)))

    def places(self, room, orders):
        """[({key: place}, {key: how often it had been forgotten})] of those who are shown everything."""
        found = []
        for name, other in self.clients.items():
            if not other.is_guest and not other.asks:
                lines = [one for one in orders[name] if one.key in room.rank and one.key not in self.twice]
                found.append((
                    {one.key: index for index, one in enumerate(lines)}, {one.key: self.age(one, other) for one in lines}))
        return found

    def had_to_come(self, client, connection, key, lines, places):
        """Of what comes late, which may be when the guest has left: whether that connection was alive behind it.

        Others had been shown it in front of something that came over it; or a question was answered over it that the guest
        asked when somebody had been shown it. When the guest noticed the end says nothing. Nor does the place of something that
        had been forgotten since, and came anew.
        """
        behind = [
            max(found) > place[key] for place, ages in places
            if key in place and (found := [
                place[one.key] for one in lines if one.key in place and ages[one.key] == self.age(one, client)])]
        if behind and all(behind):
            return True
        shown = self.first_shown_live.get(key)
        if key in self.forgotten:
            age = bisect.bisect_left(self.forgotten[key], self.life[client.name, connection])
            shown = self.first_again.get((key, age))
        return shown is not None and shown + STALE <= client.answered.get(connection, 0)

    def ranks(self, room, lines):
        """{lane: [rank]}, by which holes are found: not of what may stand in several places."""
        found = collections.defaultdict(list)
        for one in lines:
            if one.key in room.rank and not self.is_loose(one.key):
                found[room.lane(one.key)].append(room.rank[one.key])
        return found

    def is_late(self, key):
        return key in self.late or key in self.behind_rows

    def is_loose(self, key):
        return key in self.loose or key in self.behind_rows

    # MARK: Pages

    def pages(self, client, room, stream, behind):
        keys = {one.msgid: one.key for one in client.shown if one.room == room.name and one.key and one.msgid}
        was_read = False
        for purpose, name, connection, pages, is_ended in client.readings:
            if name != room.name:
                continue
            where = "%s in %s, %s over connection %d" % (client.name, room.name, purpose, connection)
            if not pages:
                continue
            # The first one last: `place` and `shown` then are those of the beginning.
            for page in reversed(pages):
                # What it had been shown before it asked, in its order.
                shown = [] if page.sub == "BEFORE" else in_its_order(
                    [one for one in stream if one.position[0] < page.position], key=lambda one: one.msgid)
                place = {one.msgid: position for position, one in enumerate(shown)}
                self.page(client, room, page, where, shown, place, keys)
            whole = [page for page in pages if page.is_whole]
            order = whole[::-1] if purpose == "pages" else whole
            lines = [one for page in order for one in page.lines]
            self.once(room, lines, where)
            first = first_of_each(lines)
            self.in_order("pages", client, room, behind | room.behind_rows(first), first)
            self.times_rise("pages", client, room, first)
            self.holes(room, first, where, order, keys)
            if purpose == "pages" and is_ended:
                was_read = True
                self.complete(room, first, where, pages[0].t)
        if not was_read and "batch" in client.caps:
            # STRICT: at the end everything runs, so there is no reason for a room not to be read to its beginning.
            self.find("pages", "lost", room.wire, "%s could not read %s from its end to its beginning" % (
                client.name, room.name))

    def page(self, client, room, page, where, shown, place, keys):
        asked = "%s %s" % (page.sub, page.reference or "*")
        # The relay does not know the line any more behind or before which it is asked.
        is_forgotten = page.reference in place and self.is_forgotten(
            shown[place[page.reference]], client, page.connection)
        if page.refusal is not None:
            # STRICT: nothing else is refused that the client has from the relay.
            code = page.refusal.params[1]
            if code != "MESSAGE_ERROR" or not is_forgotten:
                self.find("pages", "refused", room.wire, "%s: %s was answered %s %r" % (
                    where, asked, code, page.refusal.params[-1]))
            return
        if not page.is_whole:
            return
        here = {one.key for one in page.lines if one.key}
        start = place.get(page.reference, -1) if page.reference else -1
        if page.reference and keys.get(page.reference) in here:
            self.find("pages", "doubled", room.wire, "%s: %s has that line itself" % (where, asked))
        if page.sub == "BEFORE":
            # In the chain: `holes` and `complete` look at it.
            return
        if page.reference and (page.reference not in place or is_forgotten):
            return
        # What the client had been shown before it asked, and what belongs to the page by its place: behind the line that was
        # named, and when the page is full, only what stands behind its first line, or before its last one.
        end = len(shown)
        if page.count >= page.limit:
            known = [place[one.msgid] for one in page.lines if one.key and one.msgid in place]
            if page.sub == "LATEST":
                start = known[0] if known else end
            else:
                end = known[-1] if known else -1
        for position, one in enumerate(shown):
            if not one.key or one.key not in room.rank:
                continue
            if position <= start:
                # What was forgotten is shown at another place than before.
                if (page.sub == "AFTER" and one.key in here and one.connection < page.connection
                        and not self.is_forgotten(one, client, page.connection)):
                    self.find("pages", "doubled", room.wire, "%s: %s has %s, which stands before it" % (
                        where, asked, named(one.key)))
                continue
            if position > end or one.key in here or self.is_forgotten(one, client, page.connection):
                continue
            self.find("pages", "lost", room.wire, "%s: %s was shown at %d and is not in the %d lines of %s, asked at %d" % (
                where, named(one.key), one.t, page.count, asked, page.t))

    def once(self, room, lines, where):
        seen, ids = collections.Counter(), collections.defaultdict(set)
        for one in lines:
            if one.key:
                seen[one.key] += 1
                ids[one.key].add(one.msgid)
        for key, count in seen.items():
            if count > max(1, len(room.by_key.get(key, ()))):
                self.find("pages", "doubled", room.wire, "%s: %s is there %d times, as %s" % (
                    where, named(key), count, " and as ".join(sorted(map(str, ids[key])))))

    def holes(self, room, lines, where, pages, keys):
        """Pages that follow each other have no hole between their first line and their last one."""
        owed, ranks = {}, self.ranks(room, lines)
        after = keys.get(pages[0].reference) if pages and pages[0].sub == "AFTER" else None
        if after in room.rank and lines and not self.is_loose(after):
            # Nor behind the line after which they begin.
            ranks.setdefault(room.lane(after), []).append(room.rank[after])
        for lane, found in ranks.items():
            owed.update((message.index, message) for message in room.lanes[lane][min(found):max(found) + 1])
        owed = [owed[index] for index in sorted(owed) if owed[index].key != after]
        # What comes late was not there when the pages were asked for.
        asked = max((page.t for page in pages), default=0)
        owed = [
            message for message in owed
            if not self.is_late(message.key) or self.first_shown.get(message.key, 1 << 62) <= asked]
        for message in self.missing(room, owed, lines):
            self.find("pages", "lost", room.wire, "%s: %s of %d is missing between the lines around it%s" % (
                where, named(message.key), message.at, self.nearest(room, message, lines)))

    def complete(self, room, lines, where, asked):
        """From the end to the beginning: everything."""
        begin = 0
        if not self.plan["wires"][room.wire]["history"]:
            # Nobody can know what was said before the relay was there: from when a client certainly was in the room.
            begin = min(
                (t for client in self.clients.values() for (_, name), t in client.member.items() if name == room.name),
                default=1 << 62)
        owed = [message for message in room.log if begin < message.logged and message.at < asked]
        # What stands between lines is `holes`'.
        inside = set()
        for lane, found in self.ranks(room, lines).items():
            inside.update(message.index for message in room.lanes[lane][min(found):max(found) + 1])
        owed = [message for message in owed if message.index not in inside]
        for message in self.missing(room, owed, lines):
            self.find("pages", "lost", room.wire, "%s: %s of %d is in no page%s" % (
                where, named(message.key), message.at, self.nearest(room, message, lines)))

    # MARK: The relay

    def relay(self):
        self.relay_findings = {name: [] for name in RELAY}
        for entry in self.story:
            if entry["what"] == "ended" and entry.get("own"):
                self.relay_findings[RELAY[0]].append("process %d ended by itself at %d with code %s" % (
                    entry["pid"], entry["t"], entry.get("code")))
        lives = collections.defaultdict(list)
        for sample in self.samples:
            lives[sample["pid"]].append(sample)
        life = max(lives.values(), key=lambda one: one[-1]["age"] - one[0]["age"], default=[])
        finals = [sample for sample in self.samples if sample.get("final")]
        if not finals:
            raise Unreadable("samples.jsonl: no sample was taken at the end")
        for final in finals:
            self.relay_findings[RELAY[2]] += self.too_many_sockets(lives[final["pid"]])
        if not life or life[-1]["age"] - life[0]["age"] < LIFE:
            return

        def quarter(number):
            begin, length = life[0]["age"], (life[-1]["age"] - life[0]["age"]) / 4
            return [one for one in life if begin + number * length <= one["age"] <= begin + (number + 1) * length]

        early, late = (statistics.median(one["rss"] for one in quarter(number)) for number in (1, 3))
        middles = [statistics.median(one["t"] for one in quarter(number)) for number in (1, 3)]
        # Also in rooms that come and go, or are mirrored.
        logs = os.path.join(self.directory, "logs")
        came = sum(
            middles[0] < entry.get("at", 0) <= middles[1] and not entry.get("again")
            for name in os.listdir(logs) for entry in json_lines(os.path.join(logs, name)))
        if late - early > max(GROWTH * early, GROWTH_KIB, MESSAGE_KIB * came):
            self.relay_findings[RELAY[1]].append("process %d: resident memory went from %d to %d KiB" % (
                life[0]["pid"], early, late))
        # A leak lifts the least that is held; files that come and go do not.
        early, late = (min(one["fds"] - one["sockets"] for one in quarter(number)) for number in (1, 3))
        if late > early + len(self.plan["wires"]):
            self.relay_findings[RELAY[2]].append("process %d: never less than %d files in its second quarter, than %d "
                "in its last" % (life[0]["pid"], early, late))

    def too_many_sockets(self, life):
        """What a process holds that it should not while everything is quiet."""
        quiet = [one for one in life if one.get("quiet")]
        seconds = quiet[-1]["age"] - quiet[0]["age"] if quiet else 0
        # Every connection for calls that was there before has had its time, even if it was used once more just before.
        if seconds < 2 * OPEN:
            yield "process %d: it was watched for %d s while all was quiet" % (life[0]["pid"], seconds)
            return
        stay = collections.Counter({
            "listeners": self.plan.get("listeners", 1), "admin": 1, "clients": len(self.plan["clients"])})
        stay.update(room["wire"] for rooms in ("rooms", "passing") for room in self.plan.get(rooms, {}).values())
        stay.update(self.plan.get("sockets", {}))
        spare = collections.Counter()
        for name, wire in self.plan["wires"].items():
            # The connections that the renewals of a login leave behind within the time that one of them stays open.
            between = wire["token"] - min(RENEWED, wire["token"] / 2) if wire["logins"] else OPEN
            spare[name] = wire["logins"] * -int(-OPEN // between)
            if wire["closes"]:
                # A new link asks what was said meanwhile.
                spare[name] += 1
        for name in sorted({name for one in quiet for name in one["held"]}):
            seen = collections.Counter(inode for one in quiet for inode in one["held"].get(name, ()))
            always = sum(times == len(quiet) for times in seen.values())
            if always > stay[name]:
                yield "process %d: %d sockets of %s stay, %d are explained" % (life[0]["pid"], always, name, stay[name])
            at_once = max(
                len(one["held"].get(name, ())) for one in quiet if one["age"] - quiet[0]["age"] >= OPEN + 1)
            if at_once > stay[name] + spare[name]:
                yield "process %d: %d sockets of %s at once, %d are explained, %d more may be for calls" % (
                    life[0]["pid"], at_once, name, stay[name], spare[name])

    # MARK: The result

    def report(self):
        promises, broken = 0, 0
        for way, kinds in WAYS.items():
            for kind in kinds:
                for wire in self.plan["wires"]:
                    promises += 1
                    broken += show("%s, %s: %s" % (wire, way, KINDS[kind]), self.findings[way, kind, wire])
        for name, found in self.relay_findings.items():
            promises += 1
            broken += show("relay: " + name, found)
        print("auditor: %d promises, %d broken" % (promises, broken))
        return broken


def show(promise, found):
    if not found:
        return 0
    print("BROKEN %s (%d)" % (promise, len(found)))
    for text in found[:3]:
        print("    " + text)
    return 1


def name_of(one):
    return one.key or one.msgid or one.text


def first_of_each(lines, key=name_of):
    """Without what came again."""
    found = {}
    for one in lines:
        found.setdefault(key(one), one)
    return list(found.values())


def by_connection(stream):
    parts = collections.defaultdict(list)
    for one in stream:
        parts[one.connection].append(one)
    return {connection: first_of_each(lines) for connection, lines in parts.items()}


def in_its_order(stream, key=name_of):
    """The order that a client was shown, once.

    What was not acknowledged comes again over the next connection, with what stands before it: the last connection counts
    over which a line came, and on that where it came first. Each connection's own order is looked at by itself.
    """
    connection, found = {}, {}
    for one in stream:
        name = key(one)
        if connection.get(name) != one.connection:
            connection[name] = one.connection
            # Behind what came before.
            found.pop(name, None)
            found[name] = one
    return list(found.values())


def is_full(first_at, least, time):
    """Whether a line could not be raised above the others by at most 60 s: two that were there before it have the last milliseconds.
    `first_at` has when a line with each time was first shown to anybody. Its own time was from `least` to `time`, which it shows: it
    or the next one that was free."""
    def has(one):
        return one in first_at and first_at[one] <= first_at[time]

    return any(has(own + MOST - 1) and has(own + MOST) for own in range(max(least, time - REMEMBERED), time + 1))


def misplaced(numbers):
    """Indices of as few as must be taken away for the rest to rise."""
    tails, previous = [], []        # Index of the last of the shortest rise of each length; who stands before whom.
    values = []
    for index, number in enumerate(numbers):
        length = bisect.bisect_left(values, number)
        previous.append(tails[length - 1] if length else -1)
        if length == len(tails):
            tails.append(index)
            values.append(number)
        else:
            tails[length], values[length] = index, number
    keep, index = set(), tails[-1] if tails else -1
    while index >= 0:
        keep.add(index)
        index = previous[index]
    return [index for index in range(len(numbers)) if index not in keep]


def lives_of(story):
    """[(begin, end)] of the relay's processes, in order; the last one may have no end."""
    found = []
    for entry in story:
        if entry["what"] == "started":
            found.append((entry["t"], 1 << 62))
        elif entry["what"] == "ended" and found and found[-1][1] == 1 << 62:
            found[-1] = (found[-1][0], entry["t"])
    return found


def main(arguments):
    if len(arguments) != 1:
        print("usage: auditor.py DIRECTORY", file=sys.stderr)
        return 2
    try:
        audit = Audit(arguments[0])
        audit.run()
        return 1 if audit.report() else 0
    except (Unreadable, KeyError, IndexError, TypeError, ValueError) as error:
        print("auditor: %s cannot be read: %s" % (arguments[0], error or type(error).__name__), file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
