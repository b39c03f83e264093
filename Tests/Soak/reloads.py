#!/usr/bin/env python3
"""Holds what reloads of the configuration did against what they promise, and the operator's answers against the records.

    reloads.py DIRECTORY

A change concerns those whom it names. Everybody else keeps the connection, and every other room its link; whom it names has
it when the relay answers what was asked after it was taken; a refused file concerns nobody. What the relay closes by itself
must have a reason in this module. Messages are the accountant's, also of rooms that come and go.
"""

import bisect
import collections
import json
import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from journal import disk_stalls, read  # noqa: E402
from page import CLOSED  # noqa: E402
from peer import parse_irc  # noqa: E402
from plan import (  # noqa: E402
    CLIENTS, EVERY_ROOM, MIRRORED, PASSING, PEOPLE, TOPICS, find_keys, is_from_irc, key_text, nick_of, read_key)

# Between the relay's word that a change is in force and the last of its effects, on a loaded machine.
SLACK = 1500
# The relay says what became of a file within this, while it runs; in milliseconds.
PATIENCE = 15_000
# What waits for a backend goes up, or its author is told, within this. Of what a pong alone confirmed, on the wires where one may, the
# history may be asked for a minute, a ping and its answer longer.
CLOSING, WATCHED = 40_000, 115_000
# Around the death of a process, connections end.
DEATH = 2000
# What a client may be disconnected for at any time.
REASONS = ("Ping timeout", "SendQ exceeded", "Registration timed out", "Registration timeout")
# So long at least the relay has heard nothing of a client whose PING timed out, in milliseconds.
UNHEARD = 5000
# A client's word that it left by itself.
LEFT = "nothing came for"
# Codes with which the relay closes a link that it does not need any more.
GOOD_BYES = (1000, 1001, 1012)
NO_ENTRY = ("403", "405", "471", "473", "474", "475", "477")

PROMISES = {
    "outcome": "good files are taken, and others refused",
    "client": "nobody is disconnected but whom a change concerns",
    "link": "no link is closed but those that a change concerns",
    "topic": "topics are those in force",
    "part": "clients are in no room that is gone, or that they may not enter",
    "join": "clients enter the rooms that are there",
    "carry": "rooms that came back carry messages",
    "certificate": "new connections get the certificate in force",
    "answer": "the operator's answers are whole",
    "agree": "the operator's answers agree with the records",
}


class Versions:
    """Which states may have been in force when."""

    def __init__(self, entries):
        # {version: entry of its writing}, of good files; when each was in force for certain.
        self.written, self.certain, self.broken = {}, {}, {}
        for entry in entries:
            version = entry["version"]
            if entry["what"] == "written":
                (self.broken if "broken" in entry else self.written)[version] = entry
            elif entry["what"] in ("taken", "read"):
                # A process that was started has what the last good file says.
                good = max(number for number in self.written if number <= version)
                self.certain.setdefault(good, entry["t"])
        self.order = sorted(self.written)
        self.begins = [self.written[version]["t"] for version in self.order]

    def during(self, begin, end):
        """All states that may have been in force at some moment of these."""
        last = bisect.bisect_right(self.begins, end) - 1
        found = []
        while last >= 0:
            version = self.order[last]
            found.append(self.written[version]["state"])
            if self.certain.get(version, float("inf")) <= begin:
                break
            last -= 1
        return found


def is_open(state, room, account):
    if room in PASSING and room not in state["open"]:
        return False
    rooms = ["*"] if account is None else state["accounts"].get(account, {"rooms": []})["rooms"]
    return rooms == ["*"] or room in rooms


class Check:
    def __init__(self, directory):
        self.directory = directory
        with open(os.path.join(directory, "plan.json"), encoding="utf-8") as file:
            plan = json.load(file)
        # From when on reloads are the only faults: before, a crowd may be more than the machine can take at once.
        self.calm_from = plan["began"] if plan.get("calm") and plan.get("began") else float("inf")
        self.findings = {kind: [] for kind in PROMISES}
        self.reloads = self.read("reloads.jsonl")
        self.versions = Versions(self.reloads)
        self.story = self.read("relay.jsonl")
        self.deaths = [entry["t"] for entry in self.story if entry["what"] == "ended"]
        self.stalls = disk_stalls(directory)
        self.records = {name: self.read("records", name.replace("@", ".")) for name in CLIENTS}
        self.logs = {
            room: [entry for entry in self.read("logs", room + ".log") if not entry.get("again")] for room in EVERY_ROOM}
        # {(room, msgid): key}; {client: [(first answer, last question answered)]} of its connections.
        self.shown, self.alive = {}, collections.defaultdict(list)
        self.counts = collections.Counter()

    def read(self, *names):
        return read(os.path.join(self.directory, *names))

    def behind_the_disk(self, since, entered):
        """From when the topic may be that a client has at `since`: who entered as the disk stood still is told of a new one
        behind the messages of before, which come from the disk."""
        for begin, end in self.stalls:
            if begin <= entered <= end and begin <= since <= end + SLACK:
                since = begin
        return since

    def find(self, kind, text):
        self.findings[kind].append(text)

    def run(self):
        self.outcomes()
        for name, record in self.records.items():
            self.record(name, record)
        for end in self.read("ends.jsonl"):
            self.end(end)
        self.carried()
        for answer in self.read("console.jsonl"):
            self.answer(answer)
        return self

    def was_disturbed(self, begin, end):
        """Whether the relay was dead or stood still at a moment of these."""
        since = float("-inf")
        for entry in self.story:
            if entry["what"] in ("ended", "stopped"):
                since = entry["t"] if since is None else since
            elif since is not None:
                if since <= end and entry["t"] >= begin:
                    return True
                since = None
        return since is not None and since <= end

    # MARK: - The file

    def outcomes(self):
        open_since = {}
        for entry in self.reloads:
            version, what = entry["version"], entry["what"]
            is_broken = version in self.versions.broken
            if what == "told":
                open_since[version] = entry["t"]
                self.counts["broken" if is_broken else "good"] += 1
                continue
            if what in ("taken", "refused"):
                self.counts[what] += 1
                if (what == "taken") == is_broken:
                    self.find("outcome", "version %d, %s, was %s" % (
                        version, self.versions.broken[version]["broken"] if is_broken else "a good one", what))
            if what == "unasked":
                self.find("outcome", "at %d the relay read version %d again, unasked" % (entry["t"], version))
            if what in ("taken", "refused", "read"):
                since = open_since.pop(version, None)
                if what != "read" and since and entry["t"] - since > PATIENCE and not self.was_disturbed(since, entry["t"]):
                    self.find("outcome", "version %d was %s after %d ms" % (version, what, entry["t"] - since))
            if what == "certificate":
                states = self.versions.during(entry["t"] - SLACK, entry["until"] + SLACK)
                self.counts["certificates"] += 1
                if entry["number"] not in {state["certificate"] for state in states}:
                    self.find("certificate", "at %d a connection got certificate %s, in force was %d" % (
                        entry["t"], entry["number"], states[0]["certificate"]))
        for version, since in open_since.items():
            self.find("outcome", "nothing came of version %d, told at %d" % (version, since))

    # MARK: - Ends

    def end(self, end):
        if any(death - DEATH <= end["t"] <= death + DEATH for death in self.deaths):
            return
        states = self.versions.during(end["t"] - 2 * SLACK, end["t"] + SLACK)
        if end["side"] == "clients":
            client = CLIENTS.get(end["who"])
            if client is None:
                return
            if not any(reason in self.last_words(end) for reason in (*REASONS, LEFT)) and not self.lost_account(client, states):
                self.find("client", "%s at %d, connected since %d: %s" % (
                    end["who"], end["t"], end["began"], self.last_words(end) or "without a word"))
            return
        room = end["who"].rstrip("/").rpartition("/")[2]
        if room in PASSING:
            states = self.versions.during(end["t"] - self.closing_time(room), end["t"] + SLACK)
        # Other codes answer the backend's own. Without one it was given up, for which nothing but another fault is a reason.
        if (end["code"] in GOOD_BYES or end["code"] is None and end["t"] > self.calm_from) and not self.link_changed(room, states):
            self.find("link", "%s at %d, open since %d: %s %s" % (
                end["who"], end["t"], end["began"], end["code"], end["last"]))

    def last_words(self, end):
        """Of a connection that is not IRC in the clear, what the client recorded: that it left by itself before, or the relay's
        ERROR, close frame or last words on a screen, which a client that stood still reads late."""
        if end["last"]:
            return end["last"]
        lines = [entry for entry in self.records[end["who"]] if end["began"] <= entry["t"]]
        # A page is told nothing where it may return at once: but for a death of the relay, that is an unanswered PING.
        answered = max((
            entry["t"] for entry in lines if entry["t"] <= end["t"] and entry["d"] == "<" and " PONG " in entry["l"]),
            default=end["began"])
        if CLIENTS[end["who"]].via == "web" and end["t"] - answered >= UNHEARD:
            return REASONS[0]
        if end["who"] in PEOPLE:
            left = next((entry for entry in lines if entry["d"] == "!"), None)
            return "" if left is None else LEFT if left["t"] <= end["t"] else left["l"]
        connection = next((entry["c"] for entry in reversed(lines) if entry["t"] <= end["t"] and "c" in entry), None)
        return next((
            entry["l"] for entry in lines if entry.get("c") == connection and (
                entry["d"] == "<" and entry["l"].startswith("ERROR")
                or entry["d"] == "!" and entry["l"].startswith(CLOSED if entry["t"] > end["t"] else LEFT))), "")

    @staticmethod
    def closing_time(room):
        return WATCHED if PASSING[room].wire.name in ("jwt-rooms", "plainjson") else CLOSING

    @staticmethod
    def lost_account(client, states):
        found = [state["accounts"].get(client.account) for state in states]
        return client.account is not None and (
            None in found or len({account["admin"] for account in found}) > 1)

    @staticmethod
    def link_changed(room, states):
        return len({(room in PASSING and room not in state["open"], state["headers"].get(room)) for state in states}) > 1

    # MARK: - What clients saw

    def record(self, name, record):
        client, nick = CLIENTS[name], nick_of(name)
        connection = None
        for entry in record:
            at, line = entry["t"], entry["l"]
            if entry["c"] != connection:
                connection = entry["c"]
                # Questions that are not answered; when it entered rooms; their topics; when it asked to enter.
                asked, inside, topics, knocks, answered, is_fresh = {}, {}, {}, {}, at, True
            if entry["d"] == ">":
                if line.startswith("PING "):
                    asked[line[6:]] = at
                elif line.startswith("JOIN "):
                    knocks.update({room.lstrip("#"): at for room in line[5:].split(",")})
                continue
            if entry["d"] != "<":
                continue
            # Most lines are none of these.
            if " PRIVMSG " in line:
                if line.startswith("@"):
                    self.show(parse_irc(line))
                continue
            parsed = parse_irc(line)
            command = parsed.command
            room = (parsed.params[1] if command.isdigit() else parsed.params[0]).lstrip("#") if len(parsed.params) > (
                command.isdigit()) else ""
            if command == "PONG":
                token = parsed.params[-1]
                if token in asked:
                    since = asked[token]
                    for earlier in list(asked):
                        asked.pop(earlier)
                        if earlier == token:
                            break
                    self.answered(client, since, at, inside, topics)
                    answered = since
                    if is_fresh:
                        self.alive[name].append([at, since])
                        is_fresh = False
                    self.alive[name][-1][1] = since
            elif command == "JOIN" and parsed.source.partition("!")[0] == nick:
                inside[room] = at
                topics[room] = None
            elif command in ("PART", "KICK") and nick in (parsed.source.partition("!")[0], *parsed.params[1:2]):
                self.counts["parted"] += command == "PART"
                inside.pop(room, None)
                states = self.versions.during(answered - SLACK, at + SLACK)
                if all(is_open(state, room, client.account) for state in states):
                    self.find("part", "%s was parted at %d from %s, which is there: %s" % (name, at, room, line[:120]))
            elif command in ("332", "TOPIC") and room in EVERY_ROOM:
                topics[room] = parsed.params[-1]
                self.counts["topics"] += 1
                states = self.versions.during(answered - SLACK, at + SLACK)
                upstream = TOPICS.get(EVERY_ROOM[room].wire.name)
                if topics[room] not in {state["topics"].get(room, upstream) for state in states}:
                    self.find("topic", "%s was told at %d that the topic of %s is %r" % (name, at, room, topics[room]))
            elif command in NO_ENTRY and room in knocks:
                states = self.versions.during(min(answered, knocks[room]) - SLACK, at + SLACK)
                self.counts["no entry"] += 1
                if all(is_open(state, room, client.account) for state in states):
                    self.find("join", "%s may not enter %s at %d: %s" % (name, room, at, line[:120]))

    def answered(self, client, since, at, inside, topics):
        """The relay answered what was asked at `since`, some time before `at`: what it did before that has come."""
        states = self.versions.during(since - SLACK, at)
        for room in inside:
            if not any(is_open(state, room, client.account) for state in states):
                self.find("part", "%s is in %s at %d, which it should have been parted from" % (client.name, room, since))
            waiting = self.versions.during(self.behind_the_disk(since, inside[room]) - SLACK, at)
            wanted = {state["topics"].get(room) for state in waiting}
            if None not in wanted and topics.get(room) not in wanted:
                self.find("topic", "%s has the topic %r of %s at %d, in force is %r" % (
                    client.name, topics.get(room), room, since, sorted(wanted)))

    def show(self, line):
        if "msgid" in line.tags and len(line.params) == 2 and (key := read_key(line.params[1])):
            self.shown.setdefault((key.room, line.tags["msgid"]), set()).add(key)

    def carried(self):
        """At the end every room is there, and what people upstream said last came to all who want to be in it."""
        for room in PASSING:
            said = [key for entry in self.logs[room] for key in find_keys(entry["text"])[:1] if not is_from_irc(key)]
            if not said:
                continue
            for name, client in CLIENTS.items():
                if room not in client.rooms:
                    continue
                last = key_text(said[-1])
                # From the end, past the pages of all rooms that were read since: more lines in a longer run.
                if not any(entry["d"] == "<" and last in entry["l"] for entry in reversed(self.records[name])):
                    self.find("carry", "%s did not get %s, said last in %s" % (name, last, room))

    # MARK: - The operator

    def answer(self, entry):
        begin, until, what = entry["t"], entry["until"], entry["what"]
        where = "%s at %d" % (what, begin)
        if entry["why"] is not None:
            # Dying, starting, or standing still.
            if not self.was_disturbed(begin - 2 * DEATH, until + DEATH):
                self.find("answer", "%s: %s" % (where, entry["why"]))
            return
        self.counts["answers"] += 1
        states = self.versions.during(begin - SLACK, until + SLACK)
        # Rooms that are gone and still send what they have are there for the operator.
        self.closing = {
            room for room in PASSING
            if any(room in state["open"] for state in self.versions.during(begin - self.closing_time(room), until))}
        if what in ("rooms", "clients"):
            # The id of a client is in front of its nick.
            column = 0 if what == "rooms" else 1
            found = {words[column] for words in map(str.split, entry["lines"]) if len(words) > column}
            self.listed(where, what, found, begin, until, states)
            return
        answers = []
        for line in entry["lines"]:
            try:
                answers.append(json.loads(line))
            except ValueError:
                self.find("answer", "%s: no JSON: %r" % (where, line[:200]))
        if not answers and what != "tail":
            self.find("answer", "%s: nothing" % where)
            return
        if what == "status":
            self.status(where, answers[-1].get("done", {}), begin, until, states)
        elif "error" in answers[-1:] or any("error" in one for one in answers):
            if answers[-1]["error"]["code"] != "not-found" or all(is_open(state, entry["room"], None) for state in states):
                self.find("answer", "%s of %s: %s" % (where, entry["room"], answers[-1]["error"]))
        elif answers and entry["room"] in PASSING and entry["room"] not in self.closing:
            self.find("agree", "%s: an answer about %s, which is not there" % (where, entry["room"]))
        elif what == "history":
            self.history(where, entry["room"], answers)
        else:
            self.tail(where, entry["room"], answers)

    def status(self, where, found, begin, until, states):
        names = sorted(room["name"] for room in found["rooms"] if room["name"] not in MIRRORED)
        if not self.fits(set(names), states) or len(set(names)) < len(names):
            self.find("agree", "%s: the rooms are %s" % (where, " ".join(names)))
        told = collections.Counter(client["nick"] for client in found["clients"])
        unknown = told.keys() - {nick_of(name) for name in CLIENTS} - {None, "", "*"}
        if unknown:
            self.find("agree", "%s: clients that are none: %s" % (where, " ".join(sorted(unknown))))
        missing = self.certain(begin, until) - told
        if missing:
            self.find("agree", "%s: clients are missing: %s" % (where, " ".join(sorted(missing))))

    def listed(self, where, what, found, begin, until, states):
        """By the names in a table."""
        if what == "rooms":
            if not self.fits(found & EVERY_ROOM.keys(), states):
                self.find("agree", "%s: the rooms are %s" % (where, " ".join(sorted(found))))
        elif missing := self.certain(begin, until).keys() - found:
            self.find("agree", "%s: clients are missing: %s" % (where, " ".join(sorted(missing))))

    def fits(self, names, states):
        """All rooms of one of the states, and beside them at most some that are closing."""
        always = EVERY_ROOM.keys() - PASSING.keys()
        return any(
            (always | set(state["open"])) <= names <= (always | set(state["open"]) | self.closing) for state in states)

    def certain(self, begin, until):
        """Nicks of who was there before, and afterwards, over one connection."""
        return collections.Counter(
            nick_of(name) for name, alive in self.alive.items()
            if any(first <= begin and last >= until for first, last in alive))

    def history(self, where, room, answers):
        items = [one["item"] for one in answers if "item" in one]
        if "done" not in answers[-1]:
            self.find("answer", "%s: no end: %s" % (where, str(answers[-1])[:200]))
        numbers = [item["seq"] for item in items]
        if numbers != sorted(set(numbers)):
            self.find("agree", "%s: not in its order: %s" % (where, numbers))
        for item in items:
            known = self.shown.get((room, item.get("msgid")))
            key = read_key(item.get("text") or "")
            if item["room"] != room or key and key.room != room or known and key not in known:
                self.find("agree", "%s: %s is %s, clients were shown %s" % (
                    where, item.get("msgid"), item.get("text"), known))

    def tail(self, where, room, answers):
        said = {key for entry in self.logs[room] for key in find_keys(entry["text"])}
        order = {key: index for index, key in enumerate(
            key for entry in self.logs[room] for key in find_keys(entry["text"])[:1])}
        newest = -1
        for one in answers:
            if "missed" in one:
                newest = -1
                continue
            item = one.get("item")
            if item is None:
                self.find("answer", "%s: %s" % (where, str(one)[:200]))
                continue
            if item["room"] != room:
                self.find("agree", "%s: %s is of another room" % (where, item))
            keys = find_keys(item.get("text") or "")[:1] if item.get("kind") == "message" else ()
            for key in keys:
                self.counts["tailed"] += 1
                # What an IRC user says may be shown before the backend has it, and be lost with the link, which is told then.
                if (item["flow"] == "backend-in" or item["flow"] == "irc-out" and not is_from_irc(key)) and key not in said:
                    self.find("agree", "%s: %s, which the backend does not have" % (where, item))
                if item["flow"] == "backend-in" and not is_from_irc(key):
                    newest = max(newest, order.get(key, -1))


def show(check):
    """Prints the broken promises, and returns them."""
    print("reloads: %s" % ", ".join("%d %s" % (count, what) for what, count in sorted(check.counts.items())))
    broken = [kind for kind, found in check.findings.items() if found]
    for kind in broken:
        found = check.findings[kind]
        print("BROKEN: %s (%d)" % (PROMISES[kind], len(found)))
        for text in found[:3]:
            print("    " + text)
    print("reloads: %d promises, %d broken" % (len(PROMISES), len(broken)), flush=True)
    return broken


def main():
    try:
        return 1 if show(Check(sys.argv[1]).run()) else 0
    except (OSError, IndexError, ValueError) as error:
        print("reloads: %s" % error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
