#!/usr/bin/env python3
"""Tests of the second accountant: a small run without a breach, and each breach planted into it.

The records are written by the format in README.md, by a model of a relay that keeps every promise. Each test changes one
thing, and says which promises that breaks: no fewer and no more.
"""

import contextlib
import copy
import datetime
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import auditor  # noqa: E402

BEGAN = 1795000000000
WIRES = {
    "past": {"ids": "client", "history": True, "identity": "puppet", "confirms": True, "second": 1,
             "logins": 1, "token": 90, "closes": True},
    "live": {"ids": "server", "history": False, "identity": "puppet", "confirms": True, "second": 1,
             "logins": 0, "token": None, "closes": False},
    "sole": {"ids": "server", "history": True, "identity": "single", "confirms": False, "second": 1000,
             "logins": 2, "token": 25, "closes": False},
}


def room(name, wire, account=None, spoken="{text}"):
    people = {"Ann-" + name: "Ann-" + name, "Ben-" + name: "Ben-" + name}
    return {"wire": wire, "account": account, "spoken": spoken, "people": people}


ROOMS = {
    "reef": room("reef", "past"), "loft": room("loft", "live"),
    "nave": room("nave", "sole", "ferry", "<{nick}> {text}"), "attic": room("attic", "sole", "Barge"),
}
MODERN = ["sasl", "server-time", "message-tags", "batch", "echo-message", "labeled-response", "account-tag",
          "standard-replies"]
CLIENTS = {
    "alice@one": {"nick": "alice", "account": "alice", "caps": MODERN, "asks": False},
    "alice@two": {"nick": "alice", "account": "alice", "caps": ["sasl"], "asks": False},
    "bob@desk": {"nick": "bob", "account": "bob", "caps": MODERN, "asks": False},
    "dora@web": {"nick": "dora", "account": "dora", "caps": [*MODERN, "draft/chathistory"], "asks": True},
    "eve@guest": {"nick": "eve", "account": None, "caps": MODERN[1:], "asks": False},
}


def iso(t):
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=t)
    return moment.isoformat(timespec="milliseconds") + "Z"


class Run:
    """A relay that keeps its promises, and what it leaves."""

    def __init__(self):
        self.t = BEGAN
        self.records = {name: [] for name in CLIENTS}
        self.logs = {name: [] for name in ROOMS}
        self.order = {name: [] for name in ROOMS}       # lines of each room
        self.place = {(client, name): 0 for client in CLIENTS for name in ROOMS}
        self.connection = dict.fromkeys(CLIENTS, 0)
        self.there = set()
        self.numbers, self.count, self.labels = {}, 0, 0
        self.known = {}
        self.clock = []
        self.stalls = []                    # (from, length): of the disk
        self.relay = [{"t": BEGAN - 5000, "what": "started", "pid": 7}]
        self.plan = {
            "seed": 1, "seconds": 60, "began": BEGAN, "peace": None, "silence": None, "max_age": 20, "wires": WIRES,
            "rooms": copy.deepcopy(ROOMS), "clients": copy.deepcopy(CLIENTS)}
        self.samples = [
            {"t": BEGAN + 2000 * index, "pid": 7, "age": 2 * index, "rss": 30000 + index, "fds": 30, "sockets": 10,
             "held": {"listeners": [1], "clients": [2, 3, 4, 5, 6], "past": [7], "live": [8], "sole": [9, 10]}}
            for index in range(60)]
        for sample in self.samples[-17:]:
            sample["quiet"] = True
        self.samples[-1]["final"] = True

    def hold(self, whereto, samples, count=1):
        """That many sockets more, the same in all of these samples."""
        for number in range(count):
            inode = 1000 + sum(map(len, (held for sample in self.samples for held in sample["held"].values())))
            for sample in samples:
                sample["held"] = {**sample["held"], whereto: [*sample["held"].get(whereto, ()), inode]}
                sample["sockets"] += 1
                sample["fds"] += 1

    def tick(self, milliseconds=100):
        self.t += milliseconds

    def note(self, client, direction, line):
        self.records[client].append({"t": self.t, "c": self.connection[client], "d": direction, "l": line})

    # -- Connections

    def enter(self, *clients):
        for client in clients:
            self.connection[client] += 1
            self.tick()
            for name in ROOMS:
                self.note(client, "<", ":relay 366 %s #%s :End" % (CLIENTS[client]["nick"], name))
            self.ping(client)
            self.there.add(client)
            plan = CLIENTS[client]
            for name in ROOMS:
                if plan["asks"]:
                    self.catch_up(client, name)
                elif plan["account"]:
                    for line in self.order[name][self.place[client, name]:]:
                        self.show(client, name, line, is_old=True)
                self.place[client, name] = len(self.order[name])

    def leave(self, client, acknowledged=True):
        self.tick()
        if acknowledged:
            self.acknowledge(client)
        else:
            # Two lines of each room did not certainly come.
            for name in ROOMS:
                self.place[client, name] = max(0, self.place[client, name] - 2)
        self.note(client, "!", "the connection ended")
        self.there.discard(client)
        for name in ROOMS:
            shown = [line for line in self.order[name] if line["key"]]
            self.known[client, name] = shown[-1]["msgid"] if shown else None

    def ping(self, client):
        self.count += 1
        self.note(client, ">", "PING :%d.%d" % (self.connection[client], self.count))
        self.note(client, "<", ":relay PONG relay %d.%d" % (self.connection[client], self.count))

    def acknowledge(self, client):
        self.count += 1
        self.note(client, "<", "PING :r%d" % self.count)
        self.note(client, ">", "PONG :r%d" % self.count)
        self.ping(client)

    # -- Messages

    def irc(self, client, name, text=" words", **more):
        """`client` says something; what it said is in the log unless `log` is False."""
        key = self.key(client, name)
        text = auditor.named(key) + text
        self.tick()
        self.note(client, ">", "PRIVMSG #%s :%s" % (name, text))
        self.ping(client)
        self.sent = self.t
        plan, wire = ROOMS[name], WIRES[ROOMS[name]["wire"]]
        nick = CLIENTS[client]["nick"]
        sender = plan["account"] or nick
        sent = self.t if wire["ids"] == "client" else None
        if more.get("log", True):
            self.tick(3)
            self.log(name, sender, plan["spoken"].replace("{nick}", nick).replace("{text}", text), sent,
                     nick if name == "attic" else None)
        if more.get("show", True):
            self.line(name, key, nick, CLIENTS[client]["account"], text, self.logs[name][-1]["said_at"], client)
        return key

    def person(self, author, name, text=" ütf-8 → 🐙", **more):
        key = self.key(author + "-" + name, name)
        self.tick()
        self.log(name, ROOMS[name]["people"][key[0]], auditor.named(key) + text, None, None)
        if more.get("show", True):
            self.line(name, key, ROOMS[name]["people"][key[0]], None, auditor.named(key) + text,
                      self.logs[name][-1]["said_at"], None)
        return key

    def key(self, author, name):
        number = self.numbers[author, name] = self.numbers.get((author, name), 0) + 1
        return author, name, number

    def log(self, name, sender, text, sent, alias):
        self.count += 1
        told = self.t if sent is None else sent
        second = WIRES[ROOMS[name]["wire"]]["second"]
        self.logs[name].append({
            "id": "m%d" % self.count, "sender": sender, "sender_id": "id of " + sender, "alias": alias, "text": text,
            "at": self.t, "said_at": told - told % second, "sent_at": sent, "connection": None})

    def line(self, name, key, nick, account, text, said_at, author):
        newest = max((line["time"] for line in self.order[name]), default=0)
        self.count += 1
        line = {
            "key": key, "nick": nick, "account": account, "text": text, "time": max(newest + 1, said_at),
            "msgid": "i%d" % self.count, "author": author}
        self.tick(2)
        self.add(name, line)

    def gap(self, name, begin, end, **more):
        self.tick()
        newest = max((line["time"] for line in self.order[name]), default=0)
        self.count += 1
        text = "*** What was said between %s and %s UTC is missing: no history." % (iso(begin)[11:19], iso(end)[11:19])
        line = {
            "key": None, "gap": (begin, end), "text": text, "time": max(newest + 1, self.t), "msgid": "g%d" % self.count,
            "nick": "relay", "account": None, "author": None}
        if more.get("show", True):
            self.add(name, line)
        return line

    def row(self, name):
        """What stands in the room's order in front of what comes late."""
        self.tick()
        newest = max((line["time"] for line in self.order[name]), default=0)
        self.count += 1
        self.add(name, {
            "key": None, "time": max(newest + 1, self.t), "msgid": "r%d" % self.count, "nick": "relay", "account": None,
            "author": None, "text": "*** What was said during the outage comes late: the messages that follow are older than "
            "those before them."})

    def add(self, name, line):
        self.order[name].append(line)
        for client in sorted(self.there):
            self.show(client, name, line)
            self.place[client, name] = len(self.order[name])

    def show(self, client, name, line, is_old=False, batch=None):
        caps = CLIENTS[client]["caps"]
        if line["author"] == client and "echo-message" not in caps:
            return
        tags, text = [], line["text"]
        if "server-time" in caps:
            tags.append("time=" + iso(line["time"]))
        elif is_old:
            text = "[%s] %s" % (iso(line["time"])[11:16], text)
        if "message-tags" in caps:
            tags.append("msgid=" + line["msgid"])
            if "gap" in line:
                tags.append("chatbridge/gap=%s,%s" % tuple(map(iso, line["gap"])))
        if "account-tag" in caps and line["account"]:
            tags.append("account=" + line["account"])
        if batch:
            tags.append("batch=" + batch)
        self.note(client, "<", "%s:%s!u@h %s #%s :%s" % (
            "@%s " % ";".join(tags) if tags else "", line["nick"], "PRIVMSG" if line["key"] else "NOTICE", name, text))

    def warn(self, name, text, *clients, said=None):
        for client in clients or sorted(self.there):
            self.note(client, "<", "%s:relay NOTICE #%s :*** %s" % ("@time=%s " % iso(said) if said else "", name, text))

    def unkept(self, *clients, is_kept=False, said=None):
        """The relay says that nothing can be kept, or that all is kept again; `said` when it comes late."""
        for client in clients or sorted(self.there):
            for name in ROOMS:
                self.note(client, "<", "%s:relay NOTICE #%s :*** Messages %s" % (
                    "@time=%s " % iso(said or self.t) if "server-time" in CLIENTS[client]["caps"] else "", name,
                    "are stored again." if is_kept else "cannot be stored at the moment (the disk is full): what you write is "
                    "not taken, and what others write may be missing later."))

    def restart(self, dead=300):
        """The relay is killed, and started again; nobody is connected then."""
        for client in sorted(self.there):
            self.note(client, "!", "the connection ended")
            self.known.update({(client, name): None for name in ROOMS})
        self.there.clear()
        self.tick(10)
        self.relay.append({"t": self.t, "what": "ended", "pid": 7, "code": -9})
        self.tick(dead)
        self.relay.append({"t": self.t, "what": "started", "pid": 7})
        self.tick(50)

    def tell(self, client, key, text="Not delivered, it waited too long", code="CANNOT_DELIVER"):
        self.note(client, "<", ":relay FAIL PRIVMSG %s #%s :%s: %s words" % (code, key[1], text, auditor.named(key)))

    # -- Pages

    def question(self, client, name, words, lines):
        self.labels += 1
        self.tick()
        self.note(client, ">", "@label=%d CHATHISTORY %s" % (self.labels, words))
        self.note(client, "<", "@label=%d :relay BATCH +p%d chathistory #%s" % (self.labels, self.labels, name))
        for line in lines:
            self.show(client, name, line, batch="p%d" % self.labels)
        self.note(client, "<", ":relay BATCH -p%d" % self.labels)
        return lines

    def catch_up(self, client, name):
        self.note(client, "#", "catch up #" + name)
        known = self.known.get((client, name))
        if known is None:
            self.question(client, name, "LATEST #%s * 100" % name, self.order[name])
        while known:
            place = [line["msgid"] for line in self.order[name]].index(known)
            page = self.question(
                client, name, "AFTER #%s msgid=%s 100" % (name, known), self.order[name][place + 1:])
            shown = [line["msgid"] for line in page if line["key"]]
            known = shown[-1] if shown else None
        self.note(client, "#", "caught up #" + name)

    def refuse(self, client, name, line, code):
        self.labels += 1
        self.note(client, "#", "look #" + name)
        self.note(client, ">", "@label=%d CHATHISTORY AFTER #%s msgid=%s 20" % (self.labels, name, line["msgid"]))
        self.note(client, "<", "@label=%d :relay FAIL CHATHISTORY %s AFTER #%s :No such message" % (
            self.labels, code, name))
        self.note(client, "#", "looked #" + name)

    def look(self, client, name):
        self.note(client, "#", "look #" + name)
        self.question(client, name, "LATEST #%s * 3" % name, self.order[name][-3:])
        self.note(client, "#", "looked #" + name)

    def pages(self, client, name, size=4):
        """With pages that are smaller than those of the soak, so that there are several."""
        self.note(client, "#", "pages #" + name)
        lines = self.order[name]
        words = "LATEST #%s * %d" % (name, size)
        end = len(lines)
        while True:
            page = self.question(client, name, words, lines[max(0, end - size):end])
            shown = [line for line in page if line["key"]]
            if not shown:
                break
            end = lines.index(shown[0])
            words = "BEFORE #%s msgid=%s %d" % (name, shown[0]["msgid"], size)
        self.note(client, "#", "paged #" + name)

    def finish(self, size=4):
        self.tick(1000)
        self.plan["peace"] = self.t
        self.tick(1000)
        self.plan["silence"] = self.t
        self.tick(20_000)
        for client in sorted(self.there):
            self.acknowledge(client)
        for client, plan in CLIENTS.items():
            if "batch" in plan["caps"]:
                for name in ROOMS:
                    self.pages(client, name, size)
        return self

    # -- On file, and back

    def write(self, directory):
        def lines(entries, *path):
            path = os.path.join(directory, *path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)

        for name, entries in self.logs.items():
            lines(entries, "logs", name + ".log")
        for name, entries in self.records.items():
            lines(entries, "records", name.replace("@", "."))
        lines(self.clock, "clock.jsonl")
        lines(self.relay, "relay.jsonl")
        lines(self.samples, "samples.jsonl")
        with open(os.path.join(directory, "faults.txt"), "w", encoding="utf-8") as file:
            for t, length in self.stalls:
                file.write("%d %7.1f  stall disk     for %.1f s\n" % (t, (t - BEGAN) / 1000, length / 1000))
        with open(os.path.join(directory, "plan.json"), "w", encoding="utf-8") as file:
            json.dump(self.plan, file)

    def audit(self):
        """{(way, kind, wire)} and names of promises about the relay."""
        with tempfile.TemporaryDirectory() as directory:
            self.write(directory)
            audit = auditor.Audit(directory)
            audit.run()
        broken = {which for which, found in audit.findings.items() if found}
        broken.update(name for name, found in audit.relay_findings.items() if found)
        return broken, audit

    # -- Changes

    def lines_of(self, client, *words, direction="<"):
        """Indices of the lines of a record that have all of these in them."""
        return [
            index for index, entry in enumerate(self.records[client])
            if entry["d"] == direction and all(word in entry["l"] for word in words)]

    def edit(self, client, old, new, *words, which=0):
        entry = self.records[client][self.lines_of(client, *words)[which]]
        assert old in entry["l"], (old, entry)
        entry["l"] = entry["l"].replace(old, new, 1)

    def drop(self, client, *words, which=None):
        found = self.lines_of(client, *words)
        assert found, words
        for index in reversed(found if which is None else [found[which]]):
            del self.records[client][index]

    def swap(self, client, first, second, which=0):
        one, other = (self.lines_of(client, word)[which] for word in (first, second))
        record = self.records[client]
        record[one]["l"], record[other]["l"] = record[other]["l"], record[one]["l"]

    def retime(self, name, which, time):
        """What a line showed as its time, on file already."""
        line = self.order[name][which]
        for record in self.records.values():
            for entry in record:
                if line["msgid"] in entry["l"]:
                    entry["l"] = entry["l"].replace("time=" + iso(line["time"]), "time=" + iso(time))
        line["time"] = time

    def entry(self, name, text):
        return next(entry for entry in self.logs[name] if text in entry["text"])


def is_live(line):
    return "batch=p" not in line


def spoken():
    """Everybody is there, and everything goes well; a reconnect of each client lies in it."""
    run = Run()
    run.enter(*CLIENTS)
    for _ in range(3):
        for name in ROOMS:
            run.person("Ann", name)
            run.irc("alice@one", name)
            run.person("Ben", name)
            run.irc("eve@guest", name)
        for client in CLIENTS:
            run.acknowledge(client)
    # What these two did not acknowledge comes again.
    for name in ROOMS:
        run.person("Ann", name)
        run.person("Ben", name)
    for client in ("alice@one", "alice@two"):
        run.leave(client, acknowledged=False)
    run.leave("bob@desk")
    run.leave("dora@web")
    run.leave("eve@guest")
    for name in ROOMS:
        run.person("Ann", name)
    run.enter(*CLIENTS)
    for name in ROOMS:
        for author in ("Ann", "Ben", "Ann"):
            run.person(author, name)
        run.irc("bob@desk", name)
        run.irc("alice@two", name)
        run.look("dora@web", name)
    return run


def forgotten_and_gone(is_between=False, is_twice=False):
    """As `forgotten`, without a history: what was shown then lies in a gap. Who asks takes the newest page, which begins in
    front of what was forgotten. What was shown a moment before the relay said so, in front of that, had been kept
    (`is_between`), and is so still when the next process dies alike (`is_twice`).
    """
    run = Run()
    run.enter(*CLIENTS)
    for author in ("Ann", "Ben", "Ann"):
        run.person(author, "loft")
    for client in CLIENTS:
        run.acknowledge(client)
    run.tick(5000)
    if is_between:
        run.person("Ann", "loft")
        run.tick(50)
    run.unkept()
    begin = run.t
    run.person("Ben", "loft")
    run.lost = run.order["loft"].pop()
    for client in CLIENTS:
        run.acknowledge(client)
    run.restart()
    run.place.update({(client, "loft"): 3 for client in CLIENTS})
    if is_twice:
        for client in CLIENTS:
            run.enter(client)
            run.unkept(client)
        run.tick(1000)
        run.restart()
        run.known["dora@web", "loft"] = run.order["loft"][-1]["msgid"]
    run.person("Ann", "loft", show=False)
    run.gap("loft", begin, run.t)
    run.enter(*CLIENTS)
    run.person("Ben", "loft")
    return run


def acknowledged_on_a_full_disk():
    """What was acknowledged when nothing could be written comes again, over the next connection to the next process."""
    run = Run()
    run.enter(*CLIENTS)
    run.person("Ann", "reef")
    run.tick(1000)
    run.unkept()
    run.leave("bob@desk")
    run.enter("bob@desk")
    run.tick(1000)
    run.restart()
    return run


def gap_over_a_restart(how):
    """Something is said while the relay is dead; its clock was wrong until then. The next process tells the gap from when the
    one before kept, by its wrong clock; or a gap that is too short, and then one of its own.
    """
    run = Run()
    run.enter(*CLIENTS)
    run.person("Ann", "loft")
    for client in CLIENTS:
        run.acknowledge(client)
    run.tick(1000)
    run.clock.append({"t": run.t, "offset": 4000})
    run.tick(400)
    kept = run.t
    run.restart(dead=3500)
    started = run.t
    run.clock.append({"t": started - 3400, "offset": 0})
    for t in (started - 2500, started - 500):
        run.t = t
        run.person("Ben", "loft", show=False)
    run.t = started + 1500
    run.gap("loft", kept + 4000 if how == "kept" else started - 1200, run.t)
    run.enter(*CLIENTS)
    run.tick(300)
    if how != "kept":
        run.gap("loft", started + 100 if how == "of its own" else started - 800, run.t)
    run.person("Ann", "loft")
    return run


def late_for_a_guest(how):
    """The guest is told that older messages may come late; its link freezes before one of them comes, or that one is kept
    from it: `seen behind`, before it sees another line, `asked behind`, before it is answered.
    """
    run = Run()
    run.enter(*CLIENTS)
    run.person("Ann", "reef")
    run.person("Ann", "reef", show=False)
    entry = run.logs["reef"][-1]
    run.tick()
    run.warn("reef", "The history cannot be fetched at the moment, so older messages may come late.")
    run.person("Ben", "reef")
    if how == "frozen":
        run.there.discard("eve@guest")
    run.tick(3000)
    run.line("reef", auditor.key_of(entry["text"]), "Ann-reef", None, entry["text"], entry["said_at"], None)
    if how != "frozen":
        run.drop("eve@guest", "Ann-reef:reef:2 ")
    run.tick(1000)
    if how == "seen behind":
        run.irc("bob@desk", "reef")
    if how == "asked behind":
        run.ping("eve@guest")
    run.tick(8000)
    run.note("eve@guest", ">", "PING :1.99")
    run.leave("eve@guest", acknowledged=False)
    run.enter("eve@guest")
    run.person("Ann", "reef")
    return run


def late_and_forgotten(how=""):
    """Nothing can be kept, and older messages may come late. One of them does when the relay was killed: the next process has it
    in front of what it shows anew; or of what it had kept, and shows again (`kept`). Or all but the guest had it in front of that
    before (`shown`).
    """
    run = Run()
    run.enter(*CLIENTS)
    run.person("Ann", "reef")
    for client in CLIENTS:
        run.acknowledge(client)
    run.tick(5000)
    if how != "kept":
        run.unkept()
    run.person("Ann", "reef", show=False)
    entry = run.logs["reef"][-1]
    late = auditor.key_of(entry["text"]), "Ann-reef", None, entry["text"], entry["said_at"], None
    run.tick()
    run.warn("reef", "The history cannot be fetched at the moment, so older messages may come late.")
    if how == "shown":
        run.there.discard("eve@guest")
        run.line("reef", *late)
        run.there.add("eve@guest")
    run.person("Ben", "reef")
    shown = run.order["reef"][-1]
    run.tick(1000)
    del run.order["reef"][1:]
    run.restart()
    run.place.update({(client, "reef"): 1 for client in CLIENTS})
    run.line("reef", *late)
    run.order["reef"].append(shown if how == "kept" else dict(shown, msgid="anew"))
    run.enter(*CLIENTS)
    run.person("Ann", "reef")
    return run


def left_unacknowledged(client):
    """A client that had the last line of reef, and left without its answer to a PING behind it."""
    run = spoken()
    line = run.order["reef"][-1]
    run.leave(client)
    run.records[client] = [
        entry for entry in run.records[client] if entry["c"] != run.connection[client] or "PONG :r" not in entry["l"]]
    return run, line


def set_back(between, pause=500):
    """Something is said, and 50 s before a clock that is set back by an hour shows that time once more, something else: behind so
    many other lines. So is another one `pause` later.
    """
    run = Run()
    run.enter("bob@desk")
    run.person("Ann", "loft")
    first = run.t
    run.tick(70_000)
    for _ in range(between):
        run.person("Ben", "loft")
    run.acknowledge("bob@desk")
    others = [client for client in CLIENTS if client != "bob@desk"]
    run.place.update({(client, "loft"): len(run.order["loft"]) for client in others})
    run.known["dora@web", "loft"] = run.order["loft"][-1]["msgid"]
    run.enter(*others)
    run.tick(first + 3_550_000 - run.t)
    run.clock.append({"t": run.t - 200, "offset": -3_600_000})
    for _ in range(2):
        run.irc("bob@desk", "loft")
        run.retime("loft", -1, run.sent - 3_600_000)
        run.tick(pause)
    run.clock.append({"t": run.t, "offset": 0})
    run.tick(1000)
    return run


def long_ago(seconds, raised):
    """What comes behind a row was said 30 s before one line and so many seconds before the next; the row bears a time that is
    `raised` above the first of them.
    """
    run = spoken()
    key = run.person("Ann", "reef", show=False)
    entry = run.logs["reef"][-1]
    run.tick(30_000)
    run.person("Ben", "reef")
    time = run.order["reef"][-1]["time"] + raised
    run.tick(entry["at"] + seconds * 1000 - run.t)
    run.person("Ben", "reef")
    run.row("reef")
    run.retime("reef", -1, time)
    run.line("reef", key, "Ann-reef", None, entry["text"], entry["said_at"], None)
    run.retime("reef", -1, time + 1)
    run.person("Ben", "reef")
    return run.finish()


def older(*order, away=(), wait=100):
    """Two of Ann's are said during an outage, and then one of Ben's; all are shown in this order, with a "row" that says that
    what follows is older. Another of Ben's comes behind it. Who is `away` comes when all is over.
    """
    run = spoken()
    for client in away:
        run.leave(client)
    late = []
    for author in ("Ann", "Ann", "Ben"):
        key = run.person(author, "reef", show=False)
        late.append((key, run.logs["reef"][-1]))
    run.tick(wait)
    for what in order:
        if what == "row":
            run.row("reef")
        else:
            key, entry = late[what]
            run.line("reef", key, ROOMS["reef"]["people"][key[0]], None, entry["text"], entry["said_at"], None)
    run.person("Ben", "reef")
    run.enter(*away)
    run.person("Ben", "reef")
    return run


def forgotten(how="", told=(), late=(), msgid="i%d", people=("Ben",)):
    """Nothing can be kept, the relay says so and is killed: the next process has anew what was shown then, under another
    msgid and, since its clock is wrong, with another time.
    """
    run = Run()
    run.enter(*CLIENTS)
    run.person("Ann", "reef")
    for client in CLIENTS:
        run.acknowledge(client)
    run.tick(5000)
    if how == "of before":
        run.unkept()
        run.tick(1)
        run.unkept(is_kept=True)
        run.tick(5000)
    since = run.t
    if how not in ("untold", "of before", "of the next", "too late", "just before"):
        run.unkept(*told)
    for author in people:
        run.person(author, "reef")
    if how == "kept after":
        run.unkept(is_kept=True)
    if how != "just before":
        for client in CLIENTS:
            run.acknowledge(client)
        run.tick(3000)
    if how == "too late":
        run.unkept()
    if late:
        run.unkept(*late, said=since)
    for _ in range(2 if how == "again" else 1):
        run.lost, run.order["reef"][1:] = run.order["reef"][1:], []
        run.restart()
        run.place.update({(client, "reef"): 1 for client in CLIENTS})
        run.clock.append({"t": run.t - 100, "offset": -100_000})
        run.enter(*CLIENTS)
        if how in ("of the next", "again"):
            run.unkept()
        for line in run.lost:
            run.count += 1
            run.tick(2)
            run.add("reef", dict(line, msgid=msgid % run.count if "%" in msgid else line["msgid"], time=run.t - 100_000))
        run.clock.append({"t": run.t + 100, "offset": 0})
        for client in CLIENTS:
            run.acknowledge(client)
        run.tick(3000)
    return run


def reached(offset, is_gap=False, lines=1):
    """The relay's clock leads as it dates some lines. It is set back, and 30 s before it shows their time somebody speaks, whose
    line is raised behind them.
    """
    run = spoken()
    run.clock.append({"t": run.t + 50, "offset": offset})
    run.tick(500)
    for _ in range(lines):
        if is_gap:
            run.gap("loft", run.t - 400 + offset, run.t + offset)
            run.retime("loft", -1, run.order["loft"][-1]["gap"][1])
        else:
            run.irc("bob@desk", "loft")
            run.retime("loft", -1, run.sent + offset)
        run.tick(500)
    run.clock.append({"t": run.t, "offset": 0})
    run.tick(max(500, run.order["loft"][-1]["time"] - 30_000 - run.t))
    run.person("Ann", "loft")
    return run


def confirmed(name, is_there, taken, learnt, since):
    """Something is taken by one wrong clock and confirmed by another, to nobody who is there. It bears the time `since`
    after it was sent, which is the one that the clock showed then if that is after the change.
    """
    run = spoken()
    second = WIRES[ROOMS[name]["wire"]]["second"]
    run.clock.append({"t": run.t - 300, "offset": taken})
    run.tick(500)
    key = run.irc("bob@desk", name, log=False, show=False)
    sent, text = run.sent, auditor.named(key) + " words"
    run.tick(400)
    run.clock.append({"t": run.t, "offset": learnt})
    run.tick(2000)
    for client in CLIENTS:
        run.acknowledge(client)
    run.tick(3000)
    run.clock.append({"t": run.t, "offset": 0})
    if is_there:
        run.tick(1000)
        nick = CLIENTS["bob@desk"]["nick"]
        plan = ROOMS[name]
        run.log(name, plan["account"] or nick, plan["spoken"].replace("{nick}", nick).replace("{text}", text),
                sent + taken if second == 1 else None, None)
        if WIRES[plan["wire"]]["confirms"]:
            run.tick(20)
    else:
        run.tell("bob@desk", key, "It is not known whether this was delivered")
    run.line(name, key, "bob", "bob", text, sent + since + learnt, "bob@desk")
    return run.finish()


def set_slowly(before, after, pause):
    """The harness says by how much the clock is to be wrong, and a second later that it is. A message is sent `pause` after the
    first word; the clock shows as it did before.
    """
    run = spoken()
    run.clock.append({"t": run.t - 300, "offset": before})
    run.tick(2000)
    begin = run.t
    run.clock += [{"t": begin, "offset": after}, {"t": begin + 1000, "offset": after}]
    run.tick(pause - 100)
    run.irc("bob@desk", "reef")
    shown = before if pause > 0 else after
    entry = run.logs["reef"][-1]
    entry["sent_at"] += shown
    entry["said_at"] = entry["sent_at"]
    newest = max(line["time"] for line in run.order["reef"][:-1])
    run.retime("reef", -1, max(newest + 1, entry["sent_at"]))
    run.tick(3000)
    if after:
        run.clock.append({"t": run.t, "offset": 0})
    run.tick(6000)
    return run


def begins_in_a_standstill(is_right_then):
    """The clock is wrong as the relay is stopped, right again before it goes on, or not, and wrong otherwise as the link is lost."""
    run = spoken()
    run.tick(2000)
    run.clock.append({"t": run.t, "offset": 45_000})
    run.tick(500)
    run.relay.append({"t": run.t, "what": "stopped", "pid": 7})
    run.tick(3000)
    begin = run.t - 1000
    if is_right_then:
        run.clock.append({"t": run.t + 100, "offset": 0})
    run.tick(300)
    run.relay.append({"t": run.t, "what": "continued", "pid": 7})
    run.tick(2000)
    run.clock.append({"t": run.t, "offset": -4000})
    run.tick(500)
    run.person("Ann", "loft", show=False)
    run.tick(200)
    run.gap("loft", begin, run.t - 4000)
    # So that what is timed from here on is right.
    run.clock.append({"t": run.t + 10, "offset": 0})
    run.tick(500)
    run.person("Ann", "loft")
    return run


def stood_still(early):
    """The relay stops a second after something is sent, and has read the machine's clock `early` before; the offset it adds is the
    one from after the standstill.
    """
    run = spoken()
    run.clock.append({"t": run.t, "offset": 3_600_000})
    run.tick(3000)
    key = run.key("bob@desk", "reef")
    text = auditor.named(key) + " words"
    run.note("bob@desk", ">", "PRIVMSG #reef :" + text)
    run.tick(1000)
    stopped = run.t
    run.relay.append({"t": run.t, "what": "stopped", "pid": 7})
    run.tick(500)
    run.clock.append({"t": run.t, "offset": 0})
    run.tick(12_000)
    run.relay.append({"t": run.t, "what": "continued", "pid": 7})
    run.ping("bob@desk")
    run.log("reef", "bob", text, stopped - early, None)
    run.logs["reef"][-1]["said_at"] = stopped - early
    run.line("reef", key, "bob", "bob", text, stopped - early, "bob@desk")
    run.tick(6000)
    return run


def forgotten_for_good(is_swapped=False):
    """Nothing can be kept, the relay says so and is killed. What was shown then does not come again, but lies in a gap."""
    run = Run()
    run.enter(*CLIENTS)
    run.person("Ann", "loft")
    run.person("Ben", "loft")
    for client in CLIENTS:
        run.acknowledge(client)
    run.tick(5000)
    run.unkept()
    begin = run.t
    run.person("Ann", "loft")
    if is_swapped:
        # The one over one connection, the other over the next.
        run.leave("bob@desk")
        run.person("Ann", "loft")
        run.enter("bob@desk")
        run.swap("bob@desk", "Ann-loft:loft:2 ", "Ann-loft:loft:3 ")
    run.tick(1000)
    del run.order["loft"][2:]
    run.restart()
    run.place.update({(client, "loft"): 2 for client in CLIENTS})
    end = run.t
    run.enter(*CLIENTS)
    run.gap("loft", begin - 1000, end)
    run.person("Ben", "loft")
    for client in CLIENTS:
        run.acknowledge(client)
    run.tick(3000)
    return run.finish()


def kept_after_all(is_late=False):
    """Nothing can be kept, the relay says so and is killed, but has what it showed then: a gap, and a line behind it. What lies in
    the gap may come all the same, too late.
    """
    run = Run()
    run.enter(*CLIENTS)
    run.person("Ann", "loft")
    for client in CLIENTS:
        run.acknowledge(client)
    run.tick(5000)
    run.unkept()
    begin = run.t
    key = run.person("Ben", "loft", show=False)
    entry = run.logs["loft"][-1]
    if not is_late:
        run.gap("loft", begin, run.t + 10)
    run.person("Ann", "loft")
    for client in CLIENTS:
        run.acknowledge(client)
    run.tick(1000)
    run.restart()
    run.enter(*CLIENTS)
    if is_late:
        run.line("loft", key, "Ben-loft", None, entry["text"], entry["said_at"], None)
    run.person("Ben", "loft")
    for client in CLIENTS:
        run.acknowledge(client)
    run.tick(3000)
    return run.finish()


def behind(is_told):
    """A message that comes to the backend behind what its author said later."""
    run = spoken()
    key = run.irc("bob@desk", "loft", log=False, show=False)
    sent, text = run.sent, auditor.named(key) + " words"
    if is_told:
        run.tell("bob@desk", key, "It is not known whether this was delivered", "UNCERTAIN")
    run.irc("bob@desk", "loft")
    run.tick(2000)
    run.log("loft", "bob", ROOMS["loft"]["spoken"].replace("{nick}", "bob").replace("{text}", text), sent, None)
    run.line("loft", key, "bob", "bob", text, run.logs["loft"][-1]["said_at"], "bob@desk")
    if is_told:
        run.note("bob@desk", "<", ":relay NOTE PRIVMSG DELIVERED_LATE #loft :It arrived after all: " + auditor.named(key))
    return run


def whole():
    return spoken().finish()


class Clean(unittest.TestCase):
    def test_clean(self):
        broken, audit = whole().audit()
        self.assertEqual(dict(audit.findings), {})
        self.assertEqual(broken, set())

    def check(self, run):
        broken, audit = run.audit()
        self.assertEqual(broken, set(), dict(audit.findings))

    def test_told(self):
        """In the log or told; by FAIL to either client of the account, or by a NOTICE."""
        for client, line in (
                ("alice@one", ":relay FAIL PRIVMSG CANNOT_DELIVER #reef :Not delivered: %s words"),
                ("alice@two", ":relay NOTICE alice :PRIVMSG CANNOT_STORE #reef: Not taken, the disk is full: %s words")):
            with self.subTest(client):
                run = spoken()
                key = run.irc("alice@one", "reef", log=False, show=False)
                run.note(client, "<", line % auditor.named(key))
                self.check(run.finish())

    def test_doubtful(self):
        run = spoken()
        run.tell("bob@desk", run.irc("bob@desk", "loft"), "It is not known whether this was delivered")
        self.check(run.finish())

    def test_failed_and_late(self):
        run = spoken()
        key = run.irc("bob@desk", "loft")
        run.tell("bob@desk", key)
        run.note("bob@desk", "<", ":relay NOTE PRIVMSG DELIVERED_LATE #loft :It arrived after all: " + auditor.named(key))
        self.check(run.finish())

    def test_given_up_and_behind_what_was_said_later(self):
        self.check(behind(is_told=True).finish())

    def test_no_time_is_free_within_a_minute(self):
        # The times of lines of before, from when a line's own time was, and what it shows.
        for times, least, time, expected in (
                ((60_999, 61_000), 1000, 1000, True), ((60_999, 61_000), 1000, 1001, True),
                ((60_999,), 1000, 1001, False), ((61_000,), 1000, 1001, False),
                ((61_000, 61_001), 1000, 1000, False), ((61_000, 61_001), 1000, 1001, True)):
            with self.subTest((times, least, time)):
                self.assertEqual(auditor.is_full({**dict.fromkeys(times, 7), time: 8}, least, time), expected)
                # Not where they came later.
                self.assertFalse(auditor.is_full({**dict.fromkeys(times, 9), time: 8}, least, time))

    def test_not_accepted(self):
        run = spoken()
        run.note("bob@desk", ">", "PRIVMSG #reef :bob@desk:reef:2 words")
        run.leave("bob@desk", acknowledged=False)
        run.enter("bob@desk")
        self.check(run.finish())

    def test_guest_is_gone(self):
        run = spoken()
        run.irc("eve@guest", "reef", log=False, show=False)
        run.leave("eve@guest")
        run.enter("eve@guest")
        self.check(run.finish())

    def test_guest_goes_while_the_relay_stands_still(self):
        run = spoken()
        run.irc("eve@guest", "reef", log=False, show=False)
        run.tick(15_000)
        run.relay.append({"t": run.t, "what": "stopped", "pid": 7})
        run.tick(6000)
        run.leave("eve@guest")
        run.relay.append({"t": run.t + 1000, "what": "continued", "pid": 7})
        run.enter("eve@guest")
        self.check(run.finish())

    def test_repetition(self):
        run = whole()
        again = dict(run.logs["reef"][0], again=True, at=run.logs["reef"][-1]["at"] + 1)
        run.logs["reef"].append(again)
        self.check(run)

    def test_cut_lines(self):
        run = whole()
        with tempfile.TemporaryDirectory() as directory:
            run.write(directory)
            for path in ("logs/reef.log", "records/bob.desk", "records/alice.one"):
                with open(os.path.join(directory, path), "a", encoding="utf-8") as file:
                    file.write('{"t":1,"c":1,"d":"<","l":"@time=')
            with open(os.path.join(directory, "records/alice.one"), "a", encoding="utf-8") as file:
                file.write("\n")
            audit = auditor.Audit(directory)
            audit.run()
        self.assertEqual(dict(audit.findings), {})

    def test_wrong_clock(self):
        """What the relay times shows its clock, and what it learns is not from a future."""
        for offset in (3_600_000, -3_600_000):
            with self.subTest(offset):
                run = spoken()
                run.clock.append({"t": run.t + 50, "offset": offset})
                run.tick(500)
                run.irc("bob@desk", "reef")
                run.logs["reef"][-1].update(sent_at=run.logs["reef"][-1]["sent_at"] + offset)
                run.logs["reef"][-1]["said_at"] = run.logs["reef"][-1]["sent_at"]
                line = run.order["reef"][-1]
                for record in run.records.values():
                    for entry in record:
                        if line["msgid"] in entry["l"]:
                            entry["l"] = entry["l"].replace(iso(line["time"]), iso(run.logs["reef"][-1]["sent_at"]))
                line["time"] = run.logs["reef"][-1]["sent_at"]
                run.tick(500)
                run.clock.append({"t": run.t, "offset": 0})
                self.check(run.finish())

    def test_of_a_slow_clock_and_never_there(self):
        """It is set behind what is later than its own time by less than 60 s, and passes the rest over, though the backend
        does not have it.
        """
        run = spoken()
        newest = run.order["loft"][-1]["time"]
        run.tick(newest + 40_000 - run.t)
        run.person("Ann", "loft")
        run.tick(1000)
        run.clock.append({"t": run.t - 500, "offset": -70_000})
        key = run.irc("bob@desk", "loft", log=False, show=False)
        run.tell("bob@desk", key, "It is not known whether this was delivered")
        run.count += 1
        run.add("loft", {
            "key": key, "nick": "bob", "account": "bob", "text": auditor.named(key) + " words", "time": newest + 1,
            "msgid": "i%d" % run.count, "author": "bob@desk"})
        run.tick(500)
        run.clock.append({"t": run.t, "offset": 0})
        self.check(run.finish())

    def test_dated_ahead_and_reached(self):
        """What the relay's clock dated ahead by more than 60 s before it was set back has its place in the order alone, also
        when its time has come; so has a gap. It may raise what comes then all the same.
        """
        for is_gap in (False, True):
            for is_raised in (False, True):
                with self.subTest((is_gap, is_raised)):
                    run = reached(3_600_000, is_gap=is_gap)
                    if not is_raised:
                        run.retime("loft", -1, run.logs["loft"][-1]["said_at"])
                    run.tick(40_000)
                    run.person("Ben", "loft")
                    self.check(run.finish())

    def test_dated_back_and_not_remembered(self):
        """A clock that is set back shows the times of long ago once more: lines of then that are not remembered raise nothing."""
        self.check(set_back(2000).finish(size=1000))

    def test_row_of_long_ago(self):
        """A row has the time of what stands behind it, a millisecond before that, and is raised by 60 s at most."""
        self.check(long_ago(75, 1))

    def test_confirmed_by_another_clock(self):
        """What is taken by a clock that leads and confirmed by one that does not shows that one's time; so it is where the
        backend does not have it, and where only a pong confirms, before the backend has it and before anybody is there.
        """
        for name, is_there, since in (("loft", False, 1000), ("nave", False, 1000), ("nave", True, 1000)):
            with self.subTest((name, is_there)):
                self.check(confirmed(name, is_there, 4000, 0, since))
                self.check(confirmed(name, is_there, 0, -4000, since))

    def test_clock_that_is_set_slowly(self):
        """Between the two lines of a change the clock may show either."""
        for offsets in ((0, -4000), (-4000, 0)):
            with self.subTest(offsets):
                self.check(set_slowly(*offsets, 700).finish())

    def test_acknowledged_on_a_full_disk(self):
        run = acknowledged_on_a_full_disk()
        run.place["bob@desk", "reef"] = 0
        run.enter(*CLIENTS)
        self.check(run.finish())

    def test_forgotten_for_good(self):
        """Who is at a line that is forgotten asks for the newest instead, and has what stood before it once more, behind it."""
        self.check(forgotten_for_good())

    def test_kept_after_all(self):
        """What it said that it cannot keep, and has at the end, it had all the time; so a gap counts that it told then."""
        self.check(kept_after_all())

    def test_came_late(self):
        run = spoken()
        run.person("Ann", "reef", show=False)
        entry = run.logs["reef"][-1]
        key = auditor.key_of(entry["text"])
        run.tick()
        run.warn("reef", "The history cannot be fetched at the moment, so older messages may come late.")
        run.person("Ben", "reef")
        run.line("reef", key, "Ann-reef", None, entry["text"], entry["said_at"], None)
        run.person("Ben", "reef")
        self.check(run.finish())

    def test_catching_up_from_what_came_late(self):
        """What is newer than it was shown before it."""
        run = spoken()
        run.person("Ann", "reef", show=False)
        entry = run.logs["reef"][-1]
        key = auditor.key_of(entry["text"])
        run.tick()
        run.warn("reef", "The history cannot be fetched at the moment, so older messages may come late.")
        run.person("Ann", "reef")
        run.line("reef", key, "Ann-reef", None, entry["text"], entry["said_at"], None)
        run.leave("dora@web")
        run.person("Ann", "reef")
        run.enter("dora@web")
        self.check(run.finish())

    def test_came_behind_a_row(self):
        """Told live, in what comes as a client comes again, and in pages."""
        for away in ((), ("alice@two", "bob@desk", "dora@web"), ("eve@guest",), tuple(CLIENTS)):
            for order in ((2, "row", 0, 1), (2, "row", 0, "row", 1)):
                with self.subTest(away=away, order=order):
                    self.check(older(*order, away=away).finish())

    def test_came_behind_a_row_when_a_guest_had_gone(self):
        run = older(2)
        run.leave("eve@guest")
        run.row("reef")
        for number in (8, 9):
            entry = run.entry("reef", "Ann-reef:reef:%d " % number)
            run.line("reef", ("Ann-reef", "reef", number), "Ann-reef", None, entry["text"], entry["said_at"], None)
        run.enter("eve@guest")
        run.person("Ann", "reef")
        self.check(run.finish())

    def test_came_late_when_a_guest_had_gone(self):
        """Its link was dead before it noticed that; or the relay died, and another process has it, in front of what it shows anew."""
        self.check(late_for_a_guest("frozen").finish())
        self.check(late_and_forgotten().finish())

    def test_gap(self):
        """All have it, also the one without tags, over a reconnect and in pages."""
        run = spoken()
        run.leave("alice@two")
        run.leave("bob@desk")
        begin = run.t
        run.person("Ann", "loft", show=False)
        run.person("Ben", "loft", show=False)
        run.gap("loft", begin, run.t + 50)
        run.person("Ann", "loft")
        run.enter("alice@two", "bob@desk")
        self.check(run.finish())

    def test_gap_of_a_wrong_clock(self):
        """Each end as the clock showed it then, and both counted back from what it showed at last."""
        for offsets in ((4000, -45000), (-45000, -45000), (0, 4000)):
            with self.subTest(offsets):
                run = spoken()
                run.tick(500)
                run.clock.append({"t": run.t, "offset": 4000})
                run.tick(500)
                begin = run.t
                run.tick(500)
                run.person("Ann", "loft", show=False)
                run.tick(500)
                run.clock.append({"t": run.t, "offset": -45000})
                run.tick(500)
                if offsets[0] == 0:
                    run.clock.pop()
                    offsets = (4000, 4000)
                run.gap("loft", begin + offsets[0], run.t + offsets[1])
                # So that what is timed from here on is right.
                run.clock.append({"t": run.t + 10, "offset": 0})
                run.tick(500)
                run.person("Ann", "loft")
                self.check(run.finish())

    def test_gap_that_begins_in_a_standstill(self):
        """Counted back from what the clock showed when it went on: the backend's word of then was read then."""
        self.check(begins_in_a_standstill(True).finish())

    def test_gap_of_another_process(self):
        """The begin is what that one's clock showed."""
        self.check(gap_over_a_restart("kept").finish())

    def test_acknowledged_and_not_written(self):
        """What a client acknowledged when nothing could be kept, or a moment before the kill, comes again."""
        for is_told, wait in ((True, 2000), (False, 100)):
            with self.subTest(is_told):
                run = Run()
                run.enter(*CLIENTS)
                run.person("Ann", "reef")
                line = run.order["reef"][-1]
                run.tick(5000)
                if is_told:
                    run.unkept()
                run.leave("bob@desk")
                run.tick(wait)
                run.restart()
                run.enter("bob@desk")
                run.show("bob@desk", "reef", line)
                self.check(run.finish())

    def test_forgotten(self):
        for how in ("", "again"):
            for msgid in ("i%d", "the same"):
                with self.subTest(how + msgid):
                    self.check(forgotten(how, msgid=msgid).finish())

    def test_shown_just_before_a_kill_and_not_on_disk(self):
        self.check(forgotten("just before", msgid="the same").finish())

    def test_forgotten_by_what_another_was_told(self):
        self.check(forgotten(told=("alice@two",)).finish())
        # It came late to some, over links that stalled.
        self.check(forgotten(told=("eve@guest",), late=("bob@desk", "alice@two")).finish())

    def test_forgotten_and_told_late(self):
        """When it was said counts, by the relay's clock."""
        self.check(forgotten("untold", late=("bob@desk",)).finish())

    def test_forgotten_and_never_shown_again(self):
        for is_between in (False, True):
            for is_twice in (False, is_between):
                with self.subTest(is_between=is_between, is_twice=is_twice):
                    self.check(forgotten_and_gone(is_between, is_twice).finish())

    def test_forgotten_and_fetched_behind_what_came_again(self):
        run = Run()
        run.enter(*CLIENTS)
        run.person("Ann", "reef")
        for client in CLIENTS:
            run.acknowledge(client)
        run.tick(5000)
        run.unkept()
        run.person("Ben", "reef")
        lost = run.order["reef"].pop()
        run.restart()
        run.place.update({(client, "reef"): 1 for client in CLIENTS})
        run.enter(*CLIENTS)
        run.leave("dora@web")
        run.add("reef", lost)
        run.enter("dora@web")
        self.check(run.finish())

    def test_forgotten_and_asked_for(self):
        run = forgotten()
        run.refuse("dora@web", "reef", run.lost[0], "MESSAGE_ERROR")
        self.check(run.finish())


class Broken(unittest.TestCase):
    def check(self, run, *expected, some_text=""):
        broken, audit = run.audit()
        self.assertEqual(broken, set(expected), dict(audit.findings))
        if some_text:
            self.assertIn(some_text, "\n".join(
                text for which in expected for text in audit.findings.get(which, audit.relay_findings.get(which, ()))))

    # -- Up

    def test_lost_up(self):
        run = spoken()
        run.irc("bob@desk", "reef", log=False, show=False)
        self.check(run.finish(), ("up", "lost", "past"), some_text="bob@desk:reef:2")

    def test_lost_up_of_a_guest_who_stayed_long_enough(self):
        run = spoken()
        run.irc("eve@guest", "reef", log=False, show=False)
        # It stood still, and went on in time.
        run.relay += [{"t": run.t + 5000, "what": "stopped", "pid": 7}, {"t": run.t + 15_000, "what": "continued", "pid": 7}]
        run.tick(21_000)
        run.leave("eve@guest")
        run.enter("eve@guest")
        self.check(run.finish(), ("up", "lost", "past"))

    def test_lost_up_though_on_its_way(self):
        run = spoken()
        key = run.irc("bob@desk", "nave", log=False, show=False)
        run.note("bob@desk", "<", ":relay NOTE PRIVMSG QUEUED #nave :Your message is queued and goes: " + auditor.named(key))
        run.note("bob@desk", "<", ":relay NOTICE bob :Your message has not been confirmed yet: " + auditor.named(key))
        self.check(run.finish(), ("up", "lost", "sole"))

    def test_lost_up_though_another_was_told(self):
        run = spoken()
        key = run.irc("bob@desk", "reef", log=False, show=False)
        run.tell("dora@web", key)
        run.tell("bob@desk", (key[0], key[1], key[2] * 10))
        self.check(run.finish(), ("up", "lost", "past"))

    def test_lost_of_a_guest(self):
        run = spoken()
        run.irc("eve@guest", "reef", log=False, show=False)
        self.check(run.finish(), ("up", "lost", "past"))

    def test_lost_of_a_guest_who_stayed(self):
        """Until it was too old, and for longer."""
        run = spoken()
        run.irc("eve@guest", "reef", log=False, show=False)
        run.tick(21_000)
        run.ping("eve@guest")
        run.leave("eve@guest")
        run.enter("eve@guest")
        self.check(run.finish(), ("up", "lost", "past"))

    def test_lost_though_shown(self):
        run = spoken()
        run.irc("bob@desk", "reef")
        run.logs["reef"].pop()
        run.drop("bob@desk", " PONG ", which=-1)
        self.check(run.finish(), ("up", "lost", "past"))

    def test_doubled_up(self):
        run = whole()
        entry = run.entry("nave", "alice@one:nave:2")
        run.logs["nave"].append(dict(entry, id="another", at=run.logs["nave"][-1]["at"] + 1))
        self.check(run, ("up", "doubled", "sole"), some_text="another")

    def test_reordered_up(self):
        run = whole()
        one, other = run.entry("reef", "alice@one:reef:1 "), run.entry("reef", "alice@one:reef:2 ")
        for field in ("text", "said_at", "sent_at", "id"):
            one[field], other[field] = other[field], one[field]
        broken, _ = run.audit()
        self.assertIn(("up", "reordered", "past"), broken)

    def test_reordered_up_and_not_given_up(self):
        self.check(behind(is_told=False).finish(), ("up", "reordered", "live"))

    def test_wrong_author_up(self):
        for field, value in (("sender", "bob"), ("sender_id", "another"), ("sender_id", "id of bob"), ("alias", "bob")):
            with self.subTest(field):
                run = whole()
                run.entry("reef", "alice@one:reef:2")[field] = value
                self.check(run, ("up", "wrong author", "past"))

    def test_wrong_author_by_alias(self):
        for alias in (None, "bob"):
            with self.subTest(alias):
                run = whole()
                run.entry("attic", "alice@one:attic:2")["alias"] = alias
                self.check(run, ("up", "wrong author", "sole"))

    def test_wrong_text_up(self):
        for old, new in (("words", "word"), ("<alice>", "<bob>")):
            with self.subTest(old):
                run = whole()
                entry = run.entry("nave", "alice@one:nave:2")
                entry["text"] = entry["text"].replace(old, new)
                self.check(run, ("up", "wrong text", "sole"))

    def test_nobody_said_it(self):
        for text, more in (("bob@desk:reef:99 words", {("down", "lost", "past")}), ("no key at all", ())):
            with self.subTest(text):
                run = spoken()
                run.log("reef", "bob", text, None, None)
                run.logs["reef"][-1]["at"] += 200_000
                self.check(run.finish(), ("up", "wrong text", "past"), *more)

    def test_wrong_time_up(self):
        for shift in (-2000, 2000, 3_600_000):
            with self.subTest(shift):
                run = whole()
                run.entry("reef", "alice@one:reef:2")["sent_at"] += shift
                self.check(run, ("up", "wrong time", "past"))

    def test_told_though_there(self):
        run = spoken()
        run.tell("bob@desk", run.irc("bob@desk", "loft"))
        self.check(run.finish(), ("up", "told wrong", "live"))

    def test_arrived_but_did_not(self):
        run = spoken()
        key = run.irc("bob@desk", "loft", log=False, show=False)
        run.tell("bob@desk", key, "It is not known whether this was delivered")
        run.note("bob@desk", "<", ":relay NOTE PRIVMSG DELIVERED_LATE #loft :It arrived after all: " + auditor.named(key))
        self.check(run.finish(), ("up", "told wrong", "live"))

    # -- Down

    def test_lost_down(self):
        for client in ("alice@one", "alice@two", "bob@desk"):
            for word in ("Ann-reef:reef:5 ", "bob@desk:reef:1 "):
                with self.subTest(client + word):
                    run = spoken()
                    run.drop(client, word)
                    self.check(run.finish(), ("down", "lost", "past"), some_text=client)

    def test_lost_while_away(self):
        run = spoken()
        run.drop("bob@desk", "Ann-reef:reef:4 ")
        self.check(run.finish(), ("down", "lost", "past"))

    def test_lost_at_the_end(self):
        run = spoken()
        run.person("Ann", "reef")
        run.drop("bob@desk", "Ann-reef:reef:7 ")
        self.check(run.finish(), ("down", "lost", "past"))

    def test_lost_by_who_asks(self):
        """Neither live nor when it catches up; the last pages are no excuse."""
        run = spoken()
        run.drop("dora@web", "Ann-reef:reef:5 ")
        self.check(run.finish(), ("down", "lost", "past"))

    def test_lost_by_who_asks_in_front_of_a_full_page(self):
        """It takes the newest page alone when it knows no line any more; what it had missed before that is missing."""
        for word, is_lost in (("Ann-reef:reef:2 ", True), ("Ann-reef:reef:8 ", False)):
            with self.subTest(word):
                run = spoken()
                run.leave("dora@web")
                for author in ("Ann", "Ben", "Ann"):
                    run.person(author, "reef")
                run.connection["dora@web"] += 1
                run.note("dora@web", "#", "catch up #reef")
                run.question("dora@web", "reef", "LATEST #reef * 2", run.order["reef"][-2:])
                run.note("dora@web", "#", "caught up #reef")
                run.there.add("dora@web")
                if is_lost:
                    run.drop("dora@web", word)
                self.check(run.finish(), *[("down", "lost", "past")] * is_lost)

    def test_lost_in_a_gap_though_there_is_a_history(self):
        run = spoken()
        begin = run.t
        run.person("Ann", "reef", show=False)
        run.gap("reef", begin, run.t)
        run.person("Ann", "reef")
        self.check(run.finish(), *((way, "lost", "past") for way in ("down", "guests", "pages")))

    def gap(self, change):
        run = spoken()
        begin = run.t
        run.person("Ann", "loft", show=False)
        begin, end = change(run, begin, run.t)
        run.gap("loft", begin, end)
        run.person("Ann", "loft")
        return run

    def test_gap_too_short(self):
        everybody = [(way, "lost", "live") for way in ("down", "guests", "pages")]
        for change in (lambda _, begin, end: (end + 1, end + 5), lambda _, begin, end: (begin - 900, end - 1)):
            self.check(self.gap(change).finish(), *everybody, some_text="ms")

    def test_gap_in_another_place(self):
        def change(run, begin, end):
            run.person("Ben", "loft")
            return begin, end

        self.check(
            self.gap(change).finish(), *((way, "lost", "live") for way in ("down", "guests", "pages")),
            some_text="elsewhere")

    def test_no_gap(self):
        run = spoken()
        run.person("Ann", "loft", show=False)
        run.person("Ann", "loft")
        self.check(
            run.finish(), *((way, "lost", "live") for way in ("down", "guests", "pages")), some_text="no gap was told")

    def test_gap_that_another_was_told(self):
        for client in ("alice@two", "bob@desk"):
            with self.subTest(client):
                run = self.gap(lambda _, begin, end: (begin, end))
                run.drop(client, "is missing")
                self.check(run.finish(), ("down", "lost", "live"), some_text=client)

    def test_gap_of_another_clock(self):
        """The clock was right all the time, so a gap an hour away covers nothing."""
        run = self.gap(lambda _, begin, end: (begin + 3_600_000, end + 3_600_000))
        self.check(run.finish(), *((way, "lost", "live") for way in ("down", "guests", "pages")))

    def test_gap_that_begins_in_a_standstill_by_another_clock(self):
        """The clock was not right when it went on."""
        self.check(
            begins_in_a_standstill(False).finish(), *((way, "lost", "live") for way in ("down", "guests", "pages")))

    def test_gap_of_another_clock_before_a_restart(self):
        """It does not begin when another process's clock showed that, which was before this one told a gap already."""
        for how in ("of its own", "before it"):
            with self.subTest(how):
                self.check(
                    gap_over_a_restart(how).finish(), ("down", "lost", "live"), ("pages", "lost", "live"),
                    some_text="Ben-loft:loft:1 ")

    def test_clock_of_a_standstill(self):
        """It stopped between looking at the machine's clock, and learning that the clock is right again: not any longer before."""
        self.check(stood_still(0).finish())
        for early in (-300, 800):
            broken, _ = stood_still(early).finish().audit()
            self.assertIn(("up", "wrong time", "past"), broken)

    def test_lost_in_a_standstill(self):
        """What the harness did excuses nothing."""
        run = spoken()
        run.relay.append({"t": run.t, "what": "stopped", "pid": 7})
        run.person("Ann", "reef", show=False)
        run.relay.append({"t": run.t, "what": "continued", "pid": 7})
        run.person("Ann", "reef")
        self.check(run.finish(), *((way, "lost", "past") for way in ("down", "guests", "pages")))

    def test_doubled_down(self):
        run = spoken()
        run.show("bob@desk", "reef", run.order["reef"][-1])
        self.check(run.finish(), ("down", "doubled", "past"))

    def test_doubled_though_acknowledged(self):
        run = spoken()
        line = run.order["reef"][-1]
        run.leave("bob@desk")
        run.tick(5000)
        run.enter("bob@desk")
        run.show("bob@desk", "reef", line)
        self.check(run.finish(), ("down", "doubled", "past"), some_text="acknowledged")

    def test_doubled_over_a_later_connection(self):
        """What was not acknowledged comes again over the next one, not over the one behind that."""
        run, line = left_unacknowledged("bob@desk")
        run.enter("bob@desk")
        run.leave("bob@desk")
        run.enter("bob@desk")
        run.show("bob@desk", "reef", line)
        self.check(run.finish(), ("down", "doubled", "past"), some_text="not between")

    def test_again_over_a_later_connection_since_the_disk_stood_still_meanwhile(self):
        for is_whole in (True, False):
            with self.subTest(is_whole):
                run, line = left_unacknowledged("bob@desk")
                run.tick(300)
                begin = run.t
                run.enter("bob@desk")
                run.tick(2000)
                run.note("bob@desk", "!", "the connection ended")
                run.stalls.append((begin, run.t - begin if is_whole else 500))
                run.tick(300)
                run.enter("bob@desk")
                run.show("bob@desk", "reef", line)
                self.check(run.finish(), *([] if is_whole else [("down", "doubled", "past")]))

    def test_doubled_after_a_kill_a_second_after(self):
        run = Run()
        run.enter(*CLIENTS)
        run.person("Ann", "reef")
        line = run.order["reef"][-1]
        run.leave("bob@desk")
        run.tick(600)
        run.restart()
        run.enter("bob@desk")
        run.show("bob@desk", "reef", line)
        self.check(run.finish(), ("down", "doubled", "past"))

    def test_doubled_over_a_later_connection_to_the_next_process(self):
        run = acknowledged_on_a_full_disk()
        run.enter(*CLIENTS)
        run.leave("bob@desk")
        run.enter("bob@desk")
        run.show("bob@desk", "reef", run.order["reef"][-1])
        self.check(run.finish(), ("down", "doubled", "past"), some_text="not between")

    def test_doubled_after_a_kill_long_after(self):
        """What it said to others, before or to the next process, is no word about this one."""
        for said in ((), ((False, 3000), (True, 100)), ((None, 0),)):
            with self.subTest(said):
                run = Run()
                run.enter(*CLIENTS)
                run.person("Ann", "reef")
                line = run.order["reef"][-1]
                run.leave("bob@desk")
                for is_kept, wait in said:
                    if is_kept is not None:
                        run.unkept(is_kept=is_kept)
                        run.tick(wait)
                run.tick(5000)
                run.restart()
                run.enter("bob@desk")
                if said == ((None, 0),):
                    run.unkept()
                run.show("bob@desk", "reef", line)
                self.check(run.finish(), ("down", "doubled", "past"))

    def test_forgotten_without_a_word(self):
        """The same as what is right where the relay said so, and each time what it said does not cover it."""
        for how in ("untold", "kept after", "of before", "of the next", "too late"):
            for msgid in ("i%d", "the same"):
                with self.subTest(how + msgid):
                    broken, _ = forgotten(how, msgid=msgid).finish().audit()
                    self.assertIn(("down", "doubled", "past"), broken)
                    if msgid == "the same":
                        self.assertIn(("guests", "doubled", "past"), broken)

    def test_forgotten_and_twice_over(self):
        for client, way in (("bob@desk", "down"), ("eve@guest", "guests")):
            with self.subTest(client):
                run = forgotten()
                run.leave(client)
                run.enter(client)
                run.show(client, "reef", run.order["reef"][-1])
                self.check(run.finish(), (way, "doubled", "past"))

    def test_forgotten_and_wrong(self):
        """Another time, another place and another id, and nothing else."""
        for old, new, kind in ((":Ben-reef!", ":Ben-reef2!", "wrong author"), ("🐙", "", "wrong text")):
            with self.subTest(kind):
                run = forgotten()
                run.edit("bob@desk", old, new, "Ben-reef:reef:1 ", which=1)
                self.check(run.finish(), ("down", kind, "past"))

    def test_forgotten_and_lost_in_pages(self):
        run = forgotten().finish()
        run.drop("bob@desk", "batch=p", "Ben-reef:reef:1 ")
        self.check(run, ("pages", "lost", "past"))

    def test_forgotten_and_reordered(self):
        run = forgotten(people=("Ben", "Ann"))
        run.swap("bob@desk", "Ben-reef:reef:1 ", "Ann-reef:reef:2 ", which=1)
        broken, _ = run.finish().audit()
        self.assertEqual(broken, {("down", "reordered", "past"), ("down", "order of times", "past")})

    def test_forgotten_and_in_the_wrong_place(self):
        """What is unknown now had a place as it was shown."""
        for other, which in (("Ben-loft:loft:1 ", 0), ("Ann-loft:loft:2 ", 0)):
            with self.subTest(other):
                run = forgotten_and_gone()
                run.swap("dora@web", "Ben-loft:loft:2 ", other, which)
                broken, _ = run.finish().audit()
                self.assertIn(("down", "reordered", "live"), broken)

    def test_forgotten_and_lost_beside_it(self):
        """A message that nobody was shown, in no gap; and in a gap that was told too early."""
        run = forgotten_and_gone()
        run.drop("dora@web", "is missing")
        self.check(run.finish(), ("down", "lost", "live"))
        run = forgotten_and_gone()
        one, other = (run.lines_of("dora@web", "batch=p", word)[0] for word in ("is missing", "Ann-loft:loft:2 "))
        record = run.records["dora@web"]
        record[one]["l"], record[other]["l"] = record[other]["l"], record[one]["l"]
        broken, _ = run.finish().audit()
        self.assertIn(("down", "lost", "live"), broken)

    def test_doubled_under_two_msgids(self):
        for which in (0, -1):
            with self.subTest(which):
                run = spoken()
                line = run.order["reef"][which]
                run.leave("bob@desk", acknowledged=False)
                run.enter("bob@desk")
                run.show("bob@desk", "reef", dict(line, msgid="other"))
                broken, _ = run.finish().audit()
                self.assertIn(("down", "doubled", "past"), broken)

    def test_another_msgid_than_others(self):
        run = whole()
        for index in run.lines_of("bob@desk", "Ann-reef:reef:5 "):
            entry = run.records["bob@desk"][index]
            entry["l"] = entry["l"].replace("msgid=", "msgid=x")
        broken, _ = run.audit()
        self.assertIn(("down", "doubled", "past"), broken)

    def test_msgid_of_another(self):
        run = whole()
        first, second = (line["msgid"] for line in run.order["reef"][:2])
        run.edit("bob@desk", "msgid=" + second, "msgid=" + first, "msgid=" + second)
        broken, _ = run.audit()
        self.assertIn(("down", "doubled", "past"), broken)

    def test_own_without_echo(self):
        run = spoken()
        run.note("alice@two", "<", ":alice!u@h PRIVMSG #reef :alice@two:reef:1 words")
        self.check(run.finish(), ("down", "doubled", "past"))

    def test_reordered_down(self):
        run = whole()
        run.swap("bob@desk", "Ann-reef:reef:2 ", "Ben-reef:reef:2 ")
        broken, _ = run.audit()
        self.assertEqual(broken, {("down", "reordered", "past"), ("down", "order of times", "past")})

    def test_another_order_than_others(self):
        """Of an IRC user and a person: the log's order need not be the room's, but there is one of those."""
        run = whole()
        run.swap("alice@two", "alice@one:reef:2 ", "Ben-reef:reef:2 ")
        self.check(run, ("down", "reordered", "past"))

    def test_late_without_a_word(self):
        run = spoken()
        run.person("Ann", "reef", show=False)
        entry = run.logs["reef"][-1]
        run.person("Ben", "reef")
        run.line("reef", auditor.key_of(entry["text"]), "Ann-reef", None, entry["text"], entry["said_at"], None)
        self.check(run.finish(), *((way, "reordered", "past") for way in ("down", "guests", "pages")))

    def test_late_and_not_behind_the_row(self):
        everybody = [(way, "reordered", "past") for way in ("down", "guests", "pages")]
        self.check(older(2, 0, "row", 1).finish(), *everybody, some_text="Ben-reef:reef:6 ")
        # Nor is it older than what stands in front of it.
        self.check(older("row", 2, 0, 1).finish(), *everybody)
        # Who was not told.
        for client, way in (("bob@desk", "down"), ("alice@two", "down"), ("eve@guest", "guests")):
            with self.subTest(client):
                run = older(2, "row", 0, 1)
                run.drop(client, "older than those before")
                self.check(run.finish(), (way, "reordered", "past"), some_text=client)
        run = older(2, "row", 0, 1).finish()
        run.drop("eve@guest", "batch=p", "older than those before")
        # It has been told of that.
        self.check(run)

    def test_behind_a_row_and_lost(self):
        self.check(
            older(2, "row", 0).finish(), *((way, "lost", "past") for way in ("down", "guests", "pages")),
            some_text="Ann-reef:reef:9 ")
        for client, way in (("bob@desk", "down"), ("eve@guest", "guests")):
            with self.subTest(client):
                run = older(2, "row", 0, 1)
                run.drop(client, "Ann-reef:reef:9 ")
                self.check(run.finish(), (way, "lost", "past"))

    def test_behind_a_row_and_not_older(self):
        run = older(2, "row", 0, 1)
        run.person("Ann", "reef")
        run.swap("bob@desk", "Ann-reef:reef:10 ", "Ben-reef:reef:8 ")
        broken, _ = run.finish().audit()
        self.assertEqual(broken, {("down", "reordered", "past"), ("down", "order of times", "past")})

    def test_late_by_a_word_that_came_late(self):
        """What was logged after it was said is not older."""
        run = spoken()
        said = run.t
        run.tick(5000)
        run.person("Ann", "reef", show=False)
        entry = run.logs["reef"][-1]
        run.tick(5000)
        run.warn("reef", "so older messages may come late.", "bob@desk", said=said)
        run.person("Ben", "reef")
        run.line("reef", auditor.key_of(entry["text"]), "Ann-reef", None, entry["text"], entry["said_at"], None)
        self.check(run.finish(), *((way, "reordered", "past") for way in ("down", "guests", "pages")))

    def test_given_up_and_too_early(self):
        """It may stand behind what its author said later, not in front of what they said before."""
        run = spoken()
        first, second = (run.irc("bob@desk", "loft", show=False) for _ in range(2))
        run.tell("bob@desk", second, "It is not known whether this was delivered", "UNCERTAIN")
        run.tell("alice@one", second, "It is not known whether this was delivered", "UNCERTAIN")
        run.note("bob@desk", "<", ":relay NOTE PRIVMSG DELIVERED_LATE #loft :It arrived after all: " + auditor.named(second))
        run.tick(2000)
        for key, entry in ((second, run.logs["loft"][-1]), (first, run.logs["loft"][-2])):
            run.line("loft", key, "bob", "bob", entry["text"], entry["said_at"], "bob@desk")
        self.check(run.finish(), *((way, "reordered", "live") for way in ("down", "guests", "pages")))

    def test_wrong_author_down(self):
        for old, new in ((":alice!", ":alice2!"), ("account=alice", "account=bob"), (";account=alice", "")):
            with self.subTest(old):
                run = whole()
                run.edit("bob@desk", old, new, "alice@one:nave:2 ")
                self.check(run, ("down", "wrong author", "sole"))

    def test_wrong_author_of_a_guest(self):
        run = whole()
        run.edit("bob@desk", ";msgid", ";account=eve;msgid", "eve@guest:nave:2 ")
        self.check(run, ("down", "wrong author", "sole"))

    def test_wrong_text_down(self):
        for old, new in (
                ("🐙", ""), ("Ann-reef:reef:5 ", "<Ann> Ann-reef:reef:5 "), (":Ann-reef:reef:5 ", ":[12:00] Ann-reef:reef:5 ")):
            with self.subTest(old):
                run = whole()
                run.edit("bob@desk", old, new, "Ann-reef:reef:5 ")
                broken, _ = run.audit()
                self.assertIn(("down", "wrong text", "past"), broken)

    def test_wrong_room(self):
        run = whole()
        run.edit("bob@desk", "#reef", "#nave", "Ann-reef:reef:5 ")
        broken, _ = run.audit()
        self.assertEqual(broken, {("down", "wrong text", "sole"), ("down", "lost", "past")})

    def test_shown_though_nobody_said_it(self):
        for text in ("Ann-reef:reef:99 words", "bob@desk:reef:99 words", "words"):
            with self.subTest(text):
                run = spoken()
                run.note("alice@two", "<", ":bob!u@h PRIVMSG #reef :" + text)
                self.check(run.finish(), ("down", "wrong text", "past"))

    def test_wrong_time_down(self):
        """Everywhere the same, and not what the backend tells."""
        for shift in (-700, 700, 3_600_000):
            with self.subTest(shift):
                run = spoken()
                run.tick(1000)
                run.person("Ann", "reef")
                time = iso(run.order["reef"][-1]["time"])
                run.order["reef"][-1]["time"] += shift
                for record in run.records.values():
                    for entry in record:
                        entry["l"] = entry["l"].replace(time, iso(run.order["reef"][-1]["time"]))
                self.check(run.finish(), *((way, "wrong time", "past") for way in ("down", "guests", "pages")))

    def test_time_after_it_was_taken(self):
        """One of an IRC user's that waited bears the time at which it was taken, not any until it was shown."""
        run = spoken()
        key = run.irc("bob@desk", "reef", show=False)
        run.tick(10_000)
        run.line("reef", key, "bob", "bob", run.logs["reef"][-1]["text"], run.t - 1000, "bob@desk")
        self.check(run.finish(), *((way, "wrong time", "past") for way in ("down", "guests", "pages")))

    def test_time_of_what_the_backend_lacks(self):
        run = spoken()
        key = run.irc("bob@desk", "loft", log=False, show=False)
        run.tell("bob@desk", key, "It is not known whether this was delivered")
        said = run.t
        run.tick(10_000)
        run.line("loft", key, "bob", "bob", auditor.named(key) + " words", said + 5000, "bob@desk")
        self.check(run.finish(), *((way, "wrong time", "live") for way in ("down", "guests", "pages")))

    def test_not_the_same_time(self):
        run = whole()
        line = run.order["reef"][-1]
        run.edit("bob@desk", iso(line["time"]), iso(line["time"] - 1), line["msgid"])
        broken, _ = run.audit()
        self.assertTrue({"wrong time"} <= {kind for _, kind, _ in broken}, broken)

    def test_wrong_stamp(self):
        run = whole()
        [index] = run.lines_of("alice@two", "[", "Ann-reef:reef:4 ")
        entry = run.records["alice@two"][index]
        entry["l"] = entry["l"].split("[")[0] + "[23:59] " + entry["l"].split("] ")[1]
        self.check(run, ("down", "wrong time", "past"))

    def times(self, *shown):
        """Two lines that were said in the same second of a wire that rounds, with these milliseconds of it."""
        run = spoken()
        run.tick(2000 - run.t % 1000)
        run.person("Ann", "nave")
        run.person("Ann", "nave")
        second = run.t - run.t % 1000
        for line, milliseconds in zip(run.order["nave"][-2:], shown):
            for record in run.records.values():
                for entry in record:
                    if line["msgid"] in entry["l"]:
                        entry["l"] = entry["l"].replace(iso(line["time"]), iso(second + milliseconds))
            line["time"] = second + milliseconds
        return run.finish()

    def test_times_do_not_rise(self):
        ways = [(way, "order of times", "sole") for way in ("down", "guests", "pages")]
        Clean.check(self, self.times(0, 1))
        self.check(self.times(0, 0), *ways)
        self.check(self.times(1, 0), *ways)

    def test_raised_for_nothing(self):
        self.check(self.times(0, 5), *((way, "wrong time", "sole") for way in ("down", "guests", "pages")))

    def test_raised_by_more_than_a_minute(self):
        """The clock was wrong by 100 s as one line was timed; the next one is not raised above it."""
        for is_raised in (False, True):
            with self.subTest(is_raised):
                run = spoken()
                run.clock.append({"t": run.t + 50, "offset": 100_000})
                run.tick(500)
                run.irc("bob@desk", "reef")
                entry = run.logs["reef"][-1]
                entry["sent_at"] += 100_000
                entry["said_at"] = entry["sent_at"]
                run.retime("reef", -1, entry["sent_at"])
                run.tick(500)
                run.clock.append({"t": run.t, "offset": 0})
                run.tick(500)
                run.person("Ann", "reef")
                if not is_raised:
                    run.retime("reef", -1, run.logs["reef"][-1]["said_at"])
                    Clean.check(self, run.finish())
                else:
                    self.check(run.finish(), *((way, "wrong time", "past") for way in ("down", "guests", "pages")))

    def test_dated_ahead_and_not_passed(self):
        """A line that a clock dated ahead by less than 60 s, those of a clock that leads among each other, and those that were
        raised behind one that it dated, are lines like all others.
        """
        ways = [(way, "order of times", "live") for way in ("down", "guests", "pages")]
        run = reached(45_000)
        run.retime("loft", -1, run.logs["loft"][-1]["said_at"])
        self.check(run.finish(), *ways)
        run = reached(3_600_000)
        run.tick(2000)
        run.person("Ben", "loft")
        run.retime("loft", -1, run.logs["loft"][-1]["said_at"])
        self.check(run.finish(), *ways)
        for is_gap in (False, True):
            with self.subTest(is_gap):
                run = reached(3_600_000, is_gap=is_gap, lines=2)
                first, second = (line["time"] for line in run.order["loft"][-3:-1])
                run.retime("loft", -3, second)
                run.retime("loft", -2, first)
                broken, _ = run.finish().audit()
                self.assertLessEqual(set(ways), broken)

    def test_dated_back_and_remembered(self):
        """As many lines as a room remembers raise what comes behind them, and the lines of the clock that is behind each other."""
        ways = [(way, "order of times", "live") for way in ("down", "pages")]
        self.check(set_back(1999).finish(size=1000), *ways, some_text="bob@desk:loft:1 ")
        run = set_back(2000)
        first, second = (line["time"] for line in run.order["loft"][-2:])
        run.retime("loft", -2, second)
        run.retime("loft", -1, first)
        broken, _ = run.finish(size=1000).audit()
        self.assertLessEqual({*ways, ("guests", "order of times", "live")}, broken)

    def test_row_that_does_not_rise(self):
        """Above what it is raised by, and, where that is less than a minute older, above all that is in front of it."""
        ways = [(way, "order of times", "past") for way in ("down", "guests", "pages")]
        self.check(long_ago(75, 0), *ways)
        broken, audit = long_ago(55, 1).audit()
        self.assertLessEqual(set(ways), broken)
        self.assertIn("got a gap", "\n".join(audit.findings[ways[0]]))

    def test_time_of_another_clock(self):
        """None that the clock showed: between what it showed as it took the line and as it was confirmed, before either, and
        on a wire that confirms, before the backend had it.
        """
        for name, is_there, time in (
                ("loft", False, -1000), ("loft", False, 9000), ("nave", False, 9000), ("nave", True, -1000), ("nave", True, 9000),
                ("reef", True, 1000)):
            with self.subTest((name, is_there, time)):
                run = confirmed(name, is_there, 50_000, 0, time)
                wire = ROOMS[name]["wire"]
                self.check(run, *((way, "wrong time", wire) for way in ("down", "guests", "pages")))

    def test_clock_that_was_set(self):
        """In front of the first line of a change and behind its second one it shows what it shows."""
        for offsets in ((0, -4000), (-4000, 0)):
            for pause in (-500, 1500):
                with self.subTest((offsets, pause)):
                    broken, _ = set_slowly(*offsets, pause).finish().audit()
                    self.assertIn(("up", "wrong time", "past"), broken)

    def test_forgotten_for_good_and_reordered(self):
        """It was in order while it was known, over all connections to the process that knew it."""
        self.check(
            forgotten_for_good(is_swapped=True), ("down", "reordered", "live"), ("down", "order of times", "live"))

    def test_kept_after_all_and_reordered(self):
        """Over a connection to the next process came what stands in front of it."""
        _, audit = kept_after_all(is_late=True).audit()
        self.assertTrue(any(text.startswith("bob@desk") for text in audit.findings["down", "reordered", "live"]), audit.findings)

    # -- Guests

    def test_guest_lost(self):
        for word in ("Ann-reef:reef:2 ", "alice@one:reef:2 ", "eve@guest:reef:2 "):
            with self.subTest(word):
                run = spoken()
                run.drop("eve@guest", word)
                self.check(run.finish(), ("guests", "lost", "past"))

    def test_guest_lost_what_came_late(self):
        for how in ("seen behind", "asked behind"):
            with self.subTest(how):
                self.check(
                    late_for_a_guest(how).finish(), ("guests", "lost", "past"), some_text="Ann-reef:reef:2 ")

    def test_guest_lost_what_came_late_and_was_forgotten(self):
        """Of what the next process shows, it had been shown in front of that, or is shown in front of what had been kept."""
        for how in ("shown", "kept"):
            with self.subTest(how):
                self.check(
                    late_and_forgotten(how).finish(), ("guests", "lost", "past"), some_text="over connection 1")

    def test_guest_lost_the_first(self):
        """STRICT: from when it certainly was in the room."""
        run = spoken()
        run.drop("eve@guest", "Ann-reef:reef:1 ")
        self.check(run.finish(), ("guests", "lost", "past"))

    def test_guest_doubled(self):
        run = spoken()
        line = run.order["reef"][-1]
        run.leave("eve@guest", acknowledged=False)
        run.enter("eve@guest")
        run.show("eve@guest", "reef", line)
        self.check(run.finish(), ("guests", "doubled", "past"))

    def test_guest_reordered(self):
        run = whole()
        run.swap("eve@guest", "Ann-reef:reef:2 ", "Ben-reef:reef:2 ")
        broken, _ = run.audit()
        self.assertEqual(broken, {("guests", "reordered", "past"), ("guests", "order of times", "past")})

    def test_guest_not_told_of_a_gap(self):
        run = self.gap(lambda _, begin, end: (begin, end))
        run.drop("eve@guest", "is missing")
        self.check(run.finish(), ("guests", "lost", "live"))

    # -- Pages

    def in_pages(self, run, client, word):
        return run.lines_of(client, "batch=p", word)[-1]

    def test_lost_in_pages(self):
        for word in ("Ann-reef:reef:1 ", "Ann-reef:reef:3 ", "bob@desk:reef:1 ", "eve@guest:reef:1 ", "alice@two:reef:1 "):
            with self.subTest(word):
                run = whole()
                del run.records["bob@desk"][self.in_pages(run, "bob@desk", word)]
                self.check(run, ("pages", "lost", "past"), some_text=word.strip())

    def test_lost_in_pages_of_what_was_shown_too_early(self):
        run = spoken()
        run.swap("dora@web", "Ann-reef:reef:6 ", "Ben-reef:reef:5 ")
        place = next(index for index, line in enumerate(run.order["reef"]) if line["key"] == ("Ann-reef", "reef", 6))
        run.note("dora@web", "#", "look #reef")
        run.question("dora@web", "reef", "LATEST #reef * 4", run.order["reef"][place:place + 1] + run.order["reef"][-3:])
        run.note("dora@web", "#", "looked #reef")
        _, audit = run.finish().audit()
        self.assertIn("look over connection 2: Ben-reef:reef:5 of", "\n".join(audit.findings["pages", "lost", "past"]))

    def test_lost_in_pages_without_history(self):
        run = whole()
        del run.records["bob@desk"][self.in_pages(run, "bob@desk", "Ann-loft:loft:3 ")]
        self.check(run, ("pages", "lost", "live"))

    def test_newest_lost_in_pages(self):
        run = whole()
        run.person("Ann", "reef")
        run.tick(3000)
        run.pages("bob@desk", "reef", size=100)
        run.drop("bob@desk", "Ann-reef:reef:8 ")
        self.check(run, ("pages", "lost", "past"), ("down", "lost", "past"))

    def test_gap_lost_in_pages(self):
        run = self.gap(lambda _, begin, end: (begin, end)).finish()
        run.drop("bob@desk", "batch=p", "is missing")
        self.check(run, ("pages", "lost", "live"))

    def test_doubled_in_pages(self):
        run = whole()
        index = self.in_pages(run, "bob@desk", "Ann-reef:reef:3 ")
        run.records["bob@desk"].insert(index + 1, run.records["bob@desk"][index])
        self.check(run, ("pages", "doubled", "past"))

    def test_reordered_in_pages(self):
        run = whole()
        one, other = (self.in_pages(run, "bob@desk", word) for word in ("Ann-reef:reef:5 ", "Ben-reef:reef:4 "))
        record = run.records["bob@desk"]
        tags = [record[index]["l"].split("batch=")[1].split(" ")[0] for index in (one, other)]
        record[one]["l"], record[other]["l"] = (
            record[other]["l"].replace("batch=" + tags[1], "batch=" + tags[0]),
            record[one]["l"].replace("batch=" + tags[0], "batch=" + tags[1]))
        broken, _ = run.audit()
        self.assertEqual(broken, {("pages", "reordered", "past"), ("pages", "order of times", "past")})

    def test_wrong_in_pages(self):
        for old, new, kind in (
                (":Ann-reef!", ":Ann-reef2!", "wrong author"), ("🐙", "", "wrong text"),
                ("time=2026", "time=2025", "wrong time")):
            with self.subTest(kind):
                run = whole()
                entry = run.records["bob@desk"][self.in_pages(run, "bob@desk", "Ann-reef:reef:3 ")]
                entry["l"] = entry["l"].replace(old, new)
                broken, _ = run.audit()
                self.assertIn(("pages", kind, "past"), broken)
                self.assertEqual({way for way, _, _ in broken}, {"pages"})

    def test_empty_page_of_what_was_shown(self):
        """As from a full disk: a look back, and a client that catches up."""
        run = spoken()
        run.note("dora@web", "#", "look #reef")
        run.question("dora@web", "reef", "LATEST #reef * 20", [])
        run.note("dora@web", "#", "looked #reef")
        self.check(run.finish(), ("pages", "lost", "past"))

    def test_page_without_the_newest(self):
        run = spoken()
        run.note("dora@web", "#", "look #reef")
        run.question("dora@web", "reef", "LATEST #reef * 3", run.order["reef"][-4:-1])
        run.note("dora@web", "#", "looked #reef")
        self.check(run.finish(), ("pages", "lost", "past"))

    def test_catching_up_from_too_early(self):
        run = spoken()
        run.leave("dora@web")
        run.enter("dora@web")
        known = run.known["dora@web", "reef"]
        run.note("dora@web", "#", "catch up #reef")
        run.question("dora@web", "reef", "AFTER #reef msgid=%s 100" % known, run.order["reef"][-1:])
        run.note("dora@web", "#", "caught up #reef")
        self.check(run.finish(), ("pages", "doubled", "past"))

    def test_refused(self):
        for code in ("INVALID_PARAMS", "MESSAGE_ERROR"):
            with self.subTest(code):
                run = spoken()
                run.refuse("dora@web", "reef", run.order["reef"][-1], code)
                self.check(run.finish(), ("pages", "refused", "past"))
        # It has been shown anew, and so is known; or was never forgotten.
        for index in (0, 1):
            run = forgotten()
            run.refuse("dora@web", "reef", run.order["reef"][index], "MESSAGE_ERROR")
            self.check(run.finish(), ("pages", "refused", "past"))

    def test_not_read_to_the_beginning(self):
        run = whole()
        run.records["bob@desk"] = [entry for entry in run.records["bob@desk"] if entry["l"] != "paged #reef"]
        self.check(run, ("pages", "lost", "past"))

    # -- The relay

    def test_ended_by_itself(self):
        run = whole()
        run.relay.append({"t": run.t, "what": "ended", "pid": 7, "code": -6, "own": True})
        self.check(run, auditor.RELAY[0], some_text="-6")

    def test_memory(self):
        run = whole()
        for index, sample in enumerate(run.samples):
            sample["rss"] += 1000 * index
        self.check(run, auditor.RELAY[1])

    def test_memory_of_many_messages(self):
        run = whole()
        for index, sample in enumerate(run.samples):
            sample["rss"] += 1000 * index
            sample["t"] = BEGAN + 200 * index
        self.check(run, auditor.RELAY[1])
        # As if each of the few messages were many.
        with mock.patch.object(auditor, "MESSAGE_KIB", 10_000):
            self.check(run)

    def test_descriptors(self):
        run = whole()
        for index, sample in enumerate(run.samples):
            sample["fds"] += index
        self.check(run, auditor.RELAY[2])

    def test_a_socket_that_stays(self):
        for whereto in (*WIRES, "clients", "listeners", "unknown"):
            # From the beginning, or just before all is quiet.
            for first in (0, 42):
                with self.subTest(whereto, first=first):
                    run = whole()
                    run.hold(whereto, run.samples[first:])
                    self.check(run, auditor.RELAY[2], some_text="sockets of %s stay" % whereto)

    def test_sockets_for_calls(self):
        most = {"past": 2, "sole": 4}
        run = whole()
        for whereto, count in most.items():
            for begin in range(0, len(run.samples), 8):
                run.hold(whereto, run.samples[begin:begin + 8], count)
        # What was asked before all was quiet is over after a while.
        for whereto in (*WIRES, "clients"):
            run.hold(whereto, run.samples[35:50], 6)
        self.check(run)
        for whereto in (*WIRES, "clients", "listeners", "unknown"):
            with self.subTest(whereto):
                run = whole()
                run.hold(whereto, run.samples[-4:], most.get(whereto, 0) + 1)
                self.check(run, auditor.RELAY[2], some_text="sockets of %s at once" % whereto)

    def test_not_watched_while_quiet(self):
        for change in (lambda sample: sample.pop("quiet", None), lambda sample: sample.update(pid=8)):
            run = whole()
            for sample in run.samples[:-5]:
                change(sample)
            self.check(run, auditor.RELAY[2], some_text="while all was quiet")


class Command(unittest.TestCase):
    def run_main(self, change):
        with tempfile.TemporaryDirectory() as directory:
            run = whole()
            run.write(directory)
            change(run, directory)
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = auditor.main([directory])
        return code, out.getvalue(), err.getvalue()

    def test_clean(self):
        code, out, _ = self.run_main(lambda *_: None)
        promises = len(WIRES) * sum(map(len, auditor.WAYS.values())) + len(auditor.RELAY)
        self.assertEqual((code, out), (0, "auditor: %d promises, 0 broken\n" % promises))

    def test_findings(self):
        def change(run, directory):
            for name in ("Ann", "Ben", "Cay", "Dee", "Eve"):
                run.note("alice@two", "<", ":bob!u@h PRIVMSG #reef :words of " + name)
            run.write(directory)

        code, out, _ = self.run_main(change)
        lines = out.splitlines()
        self.assertEqual((code, lines[0], len(lines)), (1, "BROKEN past, down: the right texts (5)", 5))
        self.assertRegex(lines[-1], r"^auditor: \d+ promises, 1 broken$")

    def test_unreadable(self):
        def without(name):
            return lambda _, directory: os.unlink(os.path.join(directory, name))

        def unfinished(run, directory):
            run.plan["silence"] = None
            run.write(directory)

        for change in (
                without("plan.json"), without("records/bob.desk"), without("logs/reef.log"), without("samples.jsonl"),
                without("relay.jsonl"), unfinished):
            code, out, err = self.run_main(change)
            self.assertEqual((code, out), (2, ""))
            self.assertIn("cannot be read", err)


if __name__ == "__main__":
    unittest.main()
