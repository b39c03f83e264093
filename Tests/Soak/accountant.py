"""Holds what the backend logged against what the IRC clients recorded. Pure: values in, findings out.

    logs      {room: [entry]}      what the backend has, in its order; an entry is
                                   {"id", "sender", "sender_id", "text", "at", "sent_at", "again"}: times in
                                   milliseconds; `sent_at` is the sender's own where the wire has that; `again`: this id
                                   was there before, and this is no message of its own
    records   {client: [entry]}    what a client sent and received, in order; an entry is
                                   {"t", "c", "d", "l"}: milliseconds, number of the connection, ">" or "<", the line
    phases    [(from, to, offset)] when the relay's clock was wrong, in milliseconds

Up, a message is what a client recorded as sent. Once the relay answered a PING that followed it on the same connection,
it is accepted, and must be in the log, or its author must have been told by name of the message that it is not.

Down, a message is an entry of the log. Every client that was in the room, and knew that the relay knew it, must have
received it once. The same again is forgiven once after a reconnect, as long as the relay could not know: no PONG of the
client followed the line, and after that a PONG of the relay's to a PING of the client.
"""

import bisect
import collections
import datetime
import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from peer import parse_irc  # noqa: E402
from plan import CLIENTS, ROOMS, account_of, find_keys, key_text, read_key  # noqa: E402

# Two processes on one machine, and what a loaded one takes between looking at the clock and acting.
SLACK_MS = 3000
# A time that is passed on is the same, but for the rounding of seconds with a fraction.
ROUNDING_MS = 2
# Lines of one moment are shown a millisecond apart: a line may be later than it was said, by less than this, where another
# line of the room stands so closely before it (two where one was left out, because it is the time of what is kept last).
APART_MS = 1000
APART_STEPS_MS = (1, 2)
# The log has no time twice, so in a burst it is ahead by this at most.
BUMP_MS = 100
# The relay takes the place of a time so far ahead of its own clock.
CREDIBLE_LEAD_MS = 5 * 60 * 1000

# A gap is told this long after what it is about at the latest.
GAP_SLACK_MS = 120_000

# Kinds of findings that break a promise, with what they mean.
BROKEN = {
    "lost": "accepted, or in the log, and nobody got it or was told",
    "doubled": "there twice",
    "reordered": "before one that was said earlier by the same author, or earlier in the room",
    "wrong author": "under another name, account or id",
    "wrong time": "with another time than its own",
    "wrong text": "with another text, or in another room",
}
# Counted beside them.
COUNTED_UP = ("sent", "accepted", "delivered", "told")
COUNTED_DOWN = ("said", "expected", "delivered", "in gaps", "gaps told", "re-sent")

Finding = collections.namedtuple("Finding", "kind wire direction room who what")


class Account:
    def __init__(self):
        self.findings = []
        # {(wire, direction): Counter}
        self.tallies = collections.defaultdict(collections.Counter)

    def find(self, kind, direction, room, who, what):
        wire = ROOMS[room].name
        self.findings.append(Finding(kind, wire, direction, room, who, what))
        self.tallies[wire, direction][kind] += 1

    def count(self, kind, direction, room, number=1):
        self.tallies[ROOMS[room].name, direction][kind] += number

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


# MARK: - What a client's record says

Sent = collections.namedtuple("Sent", "key text at")
Seen = collections.namedtuple("Seen", "key text place msgid nick account time")
Gap = collections.namedtuple("Gap", "place start end")

_GAP_SENTENCE = re.compile(r"What was said between .* (is|are) missing")
_MINUTES = re.compile(r"\[(?:\d\d-\d\d )?\d\d:\d\d\] ")
# What says that a message is on its way, or there: no refusal.
_STILL_ALIVE = ("QUEUED", "DELIVERED_LATE")
_STILL_ALIVE_TEXTS = ("Your message is kept", "Your message has not been confirmed", "It arrived after all")


def _milliseconds(text):
    try:
        return round(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return None


class Reading:
    """One client's record, read once from front to back. Places are indices of its lines."""

    def __init__(self, client, record, full=()):
        self.client = client
        # When nothing could be kept, in milliseconds: what is known then is known until the relay is killed, and no longer.
        self._full = full
        self.caps = CLIENTS[client].caps if client in CLIENTS else ()
        self.sent = []
        # Keys that the relay certainly took, and those that came back.
        self.accepted = set()
        self.told = set()
        # {room: [Seen]}, {room: [Gap]}
        self.seen = collections.defaultdict(list)
        self.gaps = collections.defaultdict(list)
        # {room: milliseconds}: when the relay certainly knew that the client is there.
        self.member_since = {}
        # {connection: (places, other places)}: at one of the first, what the connection brought before the other was
        # certainly known to be received. Rising pairs.
        self._settled = collections.defaultdict(lambda: ([], []))
        self._connections = [entry["c"] for entry in record]
        self._times = [entry["t"] for entry in record]
        self._read(record)

    def _read(self, record):
        connection = None
        for place, entry in enumerate(record):
            if entry["c"] != connection:
                connection = entry["c"]
                unanswered, waiting, joined = {}, [], set()
                tested_at = pong_for = None
            line = entry["l"]
            if entry["d"] == ">":
                if line.startswith("PRIVMSG "):
                    _, channel, text = line.split(" ", 2)
                    key = read_key(text[1:])
                    self.sent.append(Sent(key, text[1:], entry["t"]))
                    waiting.append(key)
                elif line.startswith("PING "):
                    unanswered[line.split(" :", 1)[1]] = (waiting, joined, pong_for)
                    waiting, joined = [], set()
                elif line.startswith("PONG "):
                    # It stands for the lines before the relay's PING.
                    pong_for = tested_at
            elif entry["d"] == "<":
                parsed = parse_irc(line)
                if parsed.command == "PING":
                    tested_at = place
                elif parsed.command == "PONG":
                    self._answered(parsed.params[-1], unanswered, place, entry["t"])
                elif parsed.command == "366":
                    joined.add(parsed.params[1].lstrip("#"))
                else:
                    self._said(parsed, place)

    def _answered(self, token, unanswered, place, at):
        # Answers come in order, so one stands for those before it as well.
        if token not in unanswered:
            return
        for earlier in list(unanswered):
            taken, joined, pong_for = unanswered.pop(earlier)
            self.accepted.update(taken)
            for room in joined:
                self.member_since.setdefault(room, at)
            if pong_for is not None and not any(begin <= at <= end for begin, end in self._full):
                settled_at, settled_to = self._settled[self._connections[pong_for]]
                if not settled_to or pong_for > settled_to[-1]:
                    settled_at.append(place)
                    settled_to.append(pong_for)
            if earlier == token:
                break

    def _said(self, line, place):
        if line.command == "PRIVMSG" and len(line.params) == 2:
            room, text = line.params[0].lstrip("#"), line.params[1]
            minutes = _MINUTES.match(text)
            if minutes and "server-time" not in self.caps:
                text = text[minutes.end():]
            key = read_key(text)
            if key is None or room not in ROOMS:
                return
            time = _milliseconds(line.tags["time"]) if "time" in line.tags else None
            nick = line.source.split("!")[0]
            self.seen[room].append(
                Seen(key, text, place, line.tags.get("msgid"), nick, line.tags.get("account"), time))
            if key.author == self.client:
                self.accepted.add(key)
        elif line.command in ("FAIL", "WARN", "NOTE") and not any(code in line.params[1:2] for code in _STILL_ALIVE):
            self.told.update(find_keys(line.params[-1]))
        elif line.command == "NOTICE":
            text = line.params[-1]
            tag = line.tags.get("chatbridge/gap")
            room = line.params[0].lstrip("#")
            if room in ROOMS and (tag or _GAP_SENTENCE.search(text)):
                start, _, end = (tag or "").partition(",")
                self.gaps[room].append(Gap(place, _milliseconds(start), _milliseconds(end)))
            elif not any(words in text for words in _STILL_ALIVE_TEXTS):
                self.told.update(find_keys(text))

    def time_of(self, place):
        return self._times[place]

    def connection_of(self, place):
        return self._connections[place]

    def was_settled(self, place, later):
        """Whether the relay knew, before `later`, that the line at `place` was received, and the client knew that."""
        at, to = self._settled[self._connections[place]]
        index = bisect.bisect_left(at, later) - 1
        return index >= 0 and to[index] > place


# MARK: - The account


def account(logs, records, phases=(), full=()):
    result = Account()
    readings = {client: Reading(client, record, full) for client, record in records.items()}
    messages = {room: [entry for entry in logs.get(room, []) if not entry.get("again")] for room in ROOMS}
    sent = {one.key: one for reading in readings.values() for one in reading.sent}
    for room in ROOMS:
        _log(result, room, messages[room], sent, phases)
    _up(result, messages, readings)
    for room in ROOMS:
        lines = _lines(room, messages[room], readings)
        for client, reading in readings.items():
            _down(result, room, messages[room], client, reading, sent, phases, lines)
        _agreement(result, room, readings)
    return result


def _is_ours(key):
    return "@" in key.author


def _clock_was_wrong(phases, start, end, least=0):
    return any(begin <= end and finish >= start and abs(offset) >= least for begin, finish, offset in phases)


def _log(result, room, messages, sent, phases):
    """What the log says by itself: authors, texts, times and order of what came from IRC."""
    ids, order, doubled = {}, collections.defaultdict(list), set()
    for entry in messages:
        key = read_key(entry["text"])
        if key is None:
            result.find("wrong text", "up", room, entry["sender"], "logged %r, which nobody said" % entry["text"][:80])
            continue
        if not _is_ours(key):
            continue
        name = key_text(key)
        if key in ids:
            doubled.add(key)
            result.find("doubled", "up", room, key.author, "%s is logged as %s and %s" % (name, ids[key], entry["id"]))
            continue
        ids[key] = entry["id"]
        order[key.author].append(key)
        said = sent.get(key)
        if said is None or said.text != entry["text"] or key.room != room:
            result.find("wrong text", "up", room, key.author, "%s is logged as %r" % (name, entry["text"][:80]))
        if entry["sender"] != account_of(key.author):
            result.find("wrong author", "up", room, key.author, "%s is logged as said by %s" % (name, entry["sender"]))
        if said and entry.get("sent_at") is not None and not _clock_was_wrong(phases, said.at, entry["at"]):
            if not said.at - SLACK_MS <= entry["sent_at"] <= entry["at"] + SLACK_MS:
                result.find(
                    "wrong time", "up", room, key.author,
                    "%s was said at %d and bears %d" % (name, said.at, entry["sent_at"]))
    for author, keys in order.items():
        for index in misplaced([key.number for key in keys]):
            before = key_text(keys[index - 1]) if index else "nothing"
            result.find(
                "reordered", "up", room, author, "%s is logged behind %s" % (key_text(keys[index]), before))
    # One account is one person upstream, under one id.
    known = {}
    for entry in messages:
        key = read_key(entry["text"])
        if key is None or not _is_ours(key):
            continue
        person = account_of(key.author)
        if known.setdefault(person, entry["sender_id"]) != entry["sender_id"]:
            result.find(
                "wrong author", "up", room, key.author,
                "%s is logged with the id %s, those before with %s"
                % (key_text(key), entry["sender_id"], known[person]))
            known[person] = entry["sender_id"]


def _up(result, messages, readings):
    logged = {read_key(entry["text"]) for entries in messages.values() for entry in entries}
    told = collections.defaultdict(set)
    for client, reading in readings.items():
        told[account_of(client)] |= reading.told
    for client, reading in readings.items():
        for one in reading.sent:
            key = one.key
            result.count("sent", "up", key.room)
            is_told = key in told[account_of(client)]
            if key in logged:
                result.count("delivered", "up", key.room)
            if is_told:
                result.count("told", "up", key.room)
            if key in reading.accepted:
                result.count("accepted", "up", key.room)
                if key not in logged and not is_told:
                    result.find(
                        "lost", "up", key.room, client,
                        "%s of %d was accepted, is not in the log, and nobody was told" % (key_text(key), one.at))


def _lines(room, messages, readings):
    """{time: keys}: what the room's lines bear, whoever saw them; None is the key of a gap."""
    lines = collections.defaultdict(set)
    for entry in messages:
        # The relay may know what nobody was shown: what was said before anybody came.
        key = read_key(entry["text"])
        for time in (entry["at"], entry.get("sent_at")):
            if key is not None and time is not None:
                lines[time].add(key)
    for reading in readings.values():
        for seen in reading.seen[room]:
            lines[seen.time].add(seen.key)
        for gap in reading.gaps[room]:
            lines[gap.end].add(None)
    return lines


def _is_apart(seen, told, lines):
    """Whether the line is late because another one is right before it."""
    return ROUNDING_MS < seen.time - told < APART_MS and any(
        lines.get(seen.time - step, set()) - {seen.key} for step in APART_STEPS_MS)


def _down(result, room, messages, client, reading, sent, phases, lines):
    wire = ROOMS[room]
    # The order of the log, and how many messages a text is there.
    order, entries, copies = {}, {}, collections.Counter()
    for entry in messages:
        key = read_key(entry["text"])
        if key is None:
            continue
        copies[key] += 1
        if key not in order:
            order[key], entries[key] = len(order), entry
    first, last, again = {}, {}, collections.Counter()
    for seen in reading.seen[room]:
        key = seen.key
        if key not in order:
            result.find(
                "wrong text", "down", room, client, "got %r, which the backend does not have" % seen.text[:80])
            continue
        _judge(result, room, client, reading, seen, entries[key], sent, phases, lines)
        if key.author == client and "echo-message" not in reading.caps:
            result.find(
                "doubled", "down", room, client, "%s came back to a client that shows its own" % key_text(key))
            continue
        if key not in first:
            first[key] = last[key] = seen
            continue
        before, last[key] = last[key], seen
        again[key] += 1
        if again[key] < copies[key] and (seen.msgid is None or seen.msgid != before.msgid):
            # The backend has it twice, which is counted there.
            continue
        if seen.msgid != before.msgid:
            result.find(
                "doubled", "down", room, client,
                "%s came as %s and as %s" % (key_text(key), before.msgid, seen.msgid))
        elif reading.was_settled(before.place, seen.place) or _same_connection(reading, before, seen):
            result.find(
                "doubled", "down", room, client,
                "%s came in lines %d and %d, and the first was known to be received"
                % (key_text(key), before.place + 1, seen.place + 1))
        else:
            result.count("re-sent", "down", room)
    _missing(result, room, wire, client, reading, order, entries, first, phases)
    _order(result, room, client, order, first)
    result.count("gaps told", "down", room, len(reading.gaps[room]))


def _same_connection(reading, before, seen):
    return reading.connection_of(before.place) == reading.connection_of(seen.place)


def _judge(result, room, client, reading, seen, entry, sent, phases, lines):
    """Author, text and time of one line."""
    key, name = seen.key, key_text(seen.key)
    if seen.text != entry["text"]:
        result.find("wrong text", "down", room, client, "%s came as %r" % (name, seen.text[:80]))
    author = account_of(key.author) if _is_ours(key) else key.author
    if seen.nick != author or seen.nick != entry["sender"]:
        result.find("wrong author", "down", room, client, "%s came from %s" % (name, seen.nick))
    if "account-tag" in reading.caps:
        expected = author if _is_ours(key) else None
        # What a backend vouches for bears its name and is no account here.
        if seen.account != expected and not (expected is None and "@" in seen.account):
            result.find("wrong author", "down", room, client, "%s came with the account %s" % (name, seen.account))
    if "server-time" not in reading.caps:
        return
    what = "%s bears %s" % (name, seen.time)
    if seen.time is None:
        result.find("wrong time", "down", room, client, what)
    elif not _is_ours(key) or entry.get("sent_at") is not None:
        told = entry["sent_at"] if entry.get("sent_at") is not None else entry["at"]
        if not -ROUNDING_MS <= seen.time - told <= ROUNDING_MS and not _is_apart(seen, told, lines):
            # So far ahead of the relay's clock that it takes its own time instead, when it learns of it.
            if not _clock_was_wrong(phases, entry["at"], reading.time_of(seen.place), least=CREDIBLE_LEAD_MS):
                result.find("wrong time", "down", room, client, what + " instead of %d" % told)
    elif key in sent and not _clock_was_wrong(phases, sent[key].at, entry["at"]):
        # The time is the relay's own: when it took the message.
        if not sent[key].at - SLACK_MS <= seen.time <= entry["at"] + SLACK_MS:
            result.find(
                "wrong time", "down", room, client,
                what + ", said at %d and logged at %d" % (sent[key].at, entry["at"]))


def _missing(result, room, wire, client, reading, order, entries, first, phases):
    since = reading.member_since.get(room)
    has_echo = "echo-message" in reading.caps
    keys = list(order)
    result.count("said", "down", room, len(keys))
    if since is None:
        return
    # Where the neighbours are in the record: the last one seen before each, the first one seen after it. People upstream
    # only: what IRC users say stands where the relay heard that it arrived, which may be behind the gap.
    after, place = {}, float("inf")
    for key in reversed(keys):
        after[key] = place
        if key in first and not _is_ours(key):
            place = min(place, first[key].place)
    gaps, before = reading.gaps[room], -1
    for key in keys:
        if key in first and not _is_ours(key):
            before = max(before, first[key].place)
        if entries[key]["at"] <= since + BUMP_MS or (key.author == client and not has_echo):
            continue
        result.count("expected", "down", room)
        if key in first:
            result.count("delivered", "down", room)
        elif not wire.history and (between := _gaps_between(gaps, before, after[key])):
            result.count("in gaps", "down", room)
            _judge_gap(result, room, client, key, entries[key]["at"], between, phases)
        else:
            result.find(
                "lost", "down", room, client, "%s, logged at %d, never came" % (key_text(key), entries[key]["at"]))


def _gaps_between(gaps, before, after):
    # What came out of the log's order is counted elsewhere.
    low, high = min(before, after), max(before, after)
    return [gap for gap in gaps if low < gap.place < high]


def _judge_gap(result, room, client, key, at, gaps, phases):
    """The room was told of a gap; were its times right?"""
    timed = [gap for gap in gaps if gap.start is not None and gap.end is not None]
    # They are the relay's own.
    if not timed or _clock_was_wrong(phases, at - GAP_SLACK_MS, at + GAP_SLACK_MS):
        return
    if not any(gap.start - SLACK_MS <= at <= gap.end + SLACK_MS for gap in timed):
        result.find(
            "wrong time", "down", room, client,
            "%s of %d is missing, and the gap was told as %s"
            % (key_text(key), at, ", ".join("%d to %d" % (gap.start, gap.end) for gap in timed)))


def _order(result, room, client, order, first):
    """Each author's messages in the order of the log, and those of all people upstream among each other."""
    in_order = sorted(first.values(), key=lambda seen: seen.place)
    voices = collections.defaultdict(list)
    for seen in in_order:
        voices[seen.key.author if _is_ours(seen.key) else "people upstream"].append(seen)
    for voice in voices.values():
        for index in misplaced([order[seen.key] for seen in voice]):
            before = key_text(voice[index - 1].key) if index else "nothing"
            result.find(
                "reordered", "down", room, client, "%s came behind %s" % (key_text(voice[index].key), before))


def _agreement(result, room, readings):
    """A room has one order: what two clients got, they got in the same."""
    clients = sorted(readings)
    firsts = {}
    for client in clients:
        firsts[client] = {}
        for seen in readings[client].seen[room]:
            firsts[client].setdefault(seen.key, seen.place)
    for index, client in enumerate(clients):
        for other in clients[index + 1:]:
            common = sorted(firsts[client].keys() & firsts[other].keys(), key=firsts[client].get)
            for at in misplaced([firsts[other][key] for key in common]):
                result.count("other order", "down", room)
