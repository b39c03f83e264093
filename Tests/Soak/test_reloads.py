#!/usr/bin/env python3
"""Tests of the checker of reloads: a small run in which all is well, and each breach planted into it."""

import copy
import json
import os
import random
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
import configuration  # noqa: E402
import reloads  # noqa: E402
from plan import CLIENTS, PASSING, ROOMS, nick_of  # noqa: E402

START = 1_795_000_000_000
CLIENT = "bob@desk"


class Run:
    """What a run leaves, in seconds since its beginning: a process at 0, changes, and what one client saw."""

    def __init__(self):
        self.state, self.version = configuration.first_state(), 0
        self.reloads, self.ends, self.answers, self.logs = [], [], [], {}
        self.story = [{"t": START, "what": "started", "pid": 1}]
        self.records = {name: [] for name in CLIENTS}
        self.connection, self.tokens, self.is_calm = 1, 0, True
        self.faults = []
        self.note(0, "written", state=self.state)
        self.note(1, "read")
        for client in CLIENTS:
            self.enter(2, *CLIENTS[client].rooms, client=client)
            self.ask(3, client=client)
            self.ask(100, client=client)

    def note(self, at, what, **more):
        self.reloads.append({"t": START + round(at * 1000), "what": what, "version": self.version, **copy.deepcopy(more)})

    def line(self, at, direction, text, client=CLIENT):
        self.records[client].append({"t": START + round(at * 1000), "c": self.connection, "d": direction, "l": text})

    def enter(self, at, *rooms, client=CLIENT):
        self.line(at, ">", "JOIN " + ",".join("#" + room for room in rooms), client)
        for room in rooms:
            self.line(at, "<", ":%s!u@h JOIN #%s" % (nick_of(client), room), client)
            if room in self.state["topics"]:
                self.line(at, "<", ":relay 332 %s #%s :%s" % (nick_of(client), room, self.state["topics"][room]), client)

    def ask(self, at, client=CLIENT):
        self.tokens += 1
        self.line(at, ">", "PING :1.%d" % self.tokens, client)
        self.line(at, "<", ":relay PONG relay :1.%d" % self.tokens, client)

    def reload(self, at, outcome="taken", broken=None, **changes):
        self.version += 1
        if broken is None:
            self.state = {**copy.deepcopy(self.state), **changes}
        self.note(at, "written", **({"broken": broken} if broken else {"state": self.state}), changes=[])
        self.note(at, "told")
        if outcome:
            self.note(at + 0.1, outcome)

    def stall(self, at, seconds):
        self.faults.append("%d %7.1f  stall disk     for %.1f s\n" % (START + round(at * 1000), at, seconds))

    def end(self, at, side, who, **more):
        self.ends.append({"t": START + round(at * 1000), "began": START, "side": side, "who": who, "last": "", **more})

    def answer(self, at, what, *lines, room="reef", why=None):
        self.answers.append({
            "t": START + round(at * 1000), "until": START + round(at * 1000) + 50, "what": what, "room": room,
            "lines": [line if isinstance(line, str) else json.dumps(line) for line in lines], "why": why})

    def broken(self):
        """{kind} of what the checker finds."""
        with tempfile.TemporaryDirectory() as directory:
            for folder in ("records", "logs"):
                os.mkdir(os.path.join(directory, folder))
            files = {"reloads.jsonl": self.reloads, "ends.jsonl": self.ends, "console.jsonl": self.answers,
                     "relay.jsonl": self.story}
            files |= {os.path.join("logs", room + ".log"): log for room, log in self.logs.items()}
            for name, record in self.records.items():
                files[os.path.join("records", name.replace("@", "."))] = sorted(record, key=lambda entry: entry["t"])
            with open(os.path.join(directory, "plan.json"), "w", encoding="utf-8") as file:
                json.dump({"calm": self.is_calm, "began": START + 4000}, file)
            with open(os.path.join(directory, "faults.txt"), "w", encoding="utf-8") as file:
                file.writelines(self.faults)
            for name, entries in files.items():
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    file.writelines(json.dumps(entry) + "\n" for entry in entries)
            check = reloads.Check(directory).run()
            return {kind: found for kind, found in check.findings.items() if found}


class ReloadTests(unittest.TestCase):
    def setUp(self):
        self.run_ = Run()

    def expect(self, *kinds):
        found = self.run_.broken()
        self.assertEqual(sorted(found), sorted(kinds), found)

    def without(self, *rooms):
        return [room for room in self.run_.state["open"] if room not in rooms]

    def account(self, name=CLIENT, **changes):
        account = nick_of(name)
        return {**self.run_.state["accounts"], account: {**self.run_.state["accounts"][account], **changes}}

    def test_a_run_in_which_all_is_well(self):
        self.expect()
        self.run_.reload(10, limits={"sendq": '"2MiB"'})
        self.run_.reload(20, "refused", broken="empty")
        self.expect()

    def test_outcomes(self):
        self.run_.reload(10, "refused", limits={"sendq": '"2MiB"'})
        self.expect("outcome")

    def test_a_broken_file_that_is_taken(self):
        self.run_.reload(10, broken="empty")
        self.expect("outcome")

    def test_a_file_of_which_nothing_is_heard(self):
        self.run_.reload(10, None, limits={"sendq": '"2MiB"'})
        self.expect("outcome")
        # The process died, and the next one read it.
        self.run_.note(12, "read")
        self.expect()

    def test_who_was_disconnected_over_tls(self):
        # Nobody in between can read the relay's last words.
        for lines, kinds in (
            ([], ["client"]),
            # It stood still, and read the reason late.
            ([(14, "<", "ERROR :Closing Link: 127.0.0.1 (Ping timeout)")], []),
            ([(14, "<", "ERROR :Closing Link: 127.0.0.1 (Your account changed)")], ["client"]),
            # It had left before the relay closed, or gave up after.
            ([(9.9, "!", "nothing came for 8 s")], []),
            ([(10.2, "!", "nothing came for 8 s")], ["client"]),
        ):
            with self.subTest(lines=lines):
                self.setUp()
                self.run_.reload(10, limits={"sendq": '"2MiB"'})
                self.run_.line(9, ">", "PING :1.1")
                for line in lines:
                    self.run_.line(*line)
                self.run_.end(10.1, "clients", CLIENT)
                self.expect(*kinds)

    def test_whose_page_was_closed(self):
        # It is told nothing where it may come again at once.
        for heard, words, kinds in (
            (9, "closed by the relay: 1000 ", ["client"]), (4, "closed by the relay: 1000 ", []),
            (9, "nothing came for 8 s", ["client"]),
        ):
            with self.subTest(heard=heard, words=words):
                self.setUp()
                self.run_.ask(heard, client="dora@web")
                self.run_.line(10.2, "!", words, "dora@web")
                self.run_.end(10.1, "clients", "dora@web")
                self.expect(*kinds)

    def test_whose_terminal_was_disconnected(self):
        for left, words, kinds in (
            (10.2, "Goodbye, hal (Ping timeout).", []), (10.2, "Goodbye, hal.", ["client"]), (9.9, "no answer for 15 s", []),
        ):
            with self.subTest(left=left, words=words):
                self.setUp()
                self.run_.ask(9, client="hal@keys")
                self.run_.line(left, "!", words, "hal@keys")
                self.run_.end(10.1, "clients", "hal@keys")
                self.expect(*kinds)

    def test_who_was_disconnected(self):
        self.run_.reload(10, limits={"sendq": '"2MiB"'})
        self.run_.end(10.1, "clients", "carol@phone", last="ERROR :Closing Link: 127.0.0.1 (Your account changed)")
        self.expect("client")
        self.run_.ends[0]["last"] = "ERROR :Closing Link: 127.0.0.1 (Ping timeout)"
        self.expect()
        self.run_.ends[0]["last"] = ""
        # Its process died.
        self.run_.story.append({"t": START + 10_500, "what": "ended", "pid": 1, "code": -9})
        self.expect()

    def test_who_is_no_administrator_any_more_is_disconnected_and_nobody_else(self):
        self.run_.reload(5, accounts=self.account(admin=True))
        self.run_.reload(10, accounts=self.account(admin=False))
        self.run_.end(10.1, "clients", CLIENT)
        self.expect()
        self.run_.end(10.1, "clients", "carol@phone")
        self.expect("client")

    def test_a_new_password_disconnects_nobody(self):
        self.run_.reload(10, accounts=self.account(password=1))
        self.run_.end(10.1, "clients", CLIENT)
        self.expect("client")

    def test_links_that_are_closed(self):
        self.run_.reload(10, open=self.without("cove"))
        for name in CLIENTS:
            self.run_.line(10.2, "<", ":%s!u@h PART #cove :gone" % nick_of(name), name)
        self.run_.end(10.1, "typed", "/cove", code=1001)
        self.expect()
        self.run_.end(10.1, "typed", "/reef", code=1001)
        self.expect("link")

    def test_links_that_stay_for_what_waits(self):
        """Forty seconds; of what a pong alone confirmed, the history may be asked for a minute more."""
        for room, wire, seconds in (("cove", "typed", 39), ("glen", "jwt-rooms", 100), ("shed", "plainjson", 100)):
            run = self.run_ = Run()
            run.reload(10, open=self.without(room))
            for name in CLIENTS:
                run.line(10.2, "<", ":%s!u@h PART #%s :gone" % (nick_of(name), room), name)
            run.end(10 + seconds, wire, "/" + room, code=1001)
            self.expect()
            run.end(10 + seconds + 20, wire, "/" + room, code=1001)
            self.expect("link")

    def test_links_that_are_torn(self):
        self.run_.end(20, "typed", "/reef", code=None)
        self.expect("link")
        self.run_.ends[0]["t"] = START + 3000
        self.expect()
        self.run_.ends[0]["t"] = START + 20_000
        # Among other faults, it may have been silent; and its own code is answered.
        self.run_.is_calm = False
        self.run_.end(20, "jwt-rooms", "/nave", code=1008)
        self.expect()

    def test_a_room_that_is_gone(self):
        self.run_.reload(10, open=self.without("cove"))
        for name in CLIENTS:
            if name != CLIENT:
                self.run_.line(10.2, "<", ":%s!u@h PART #cove :gone" % nick_of(name), name)
        self.expect("part")
        self.run_.line(10.2, "<", ":bob!u@h PART #cove :gone")
        self.expect()

    def test_a_part_without_a_reason(self):
        self.run_.reload(10, "refused", broken="empty")
        self.run_.line(10.2, "<", ":bob!u@h PART #cove :gone")
        self.expect("part")

    def test_a_room_that_an_account_may_not_enter_any_more(self):
        self.run_.reload(10, accounts=self.account(rooms=[*ROOMS, *sorted(PASSING)[1:]]))
        self.expect("part")
        self.run_.line(10.2, "<", ":bob!u@h PART #%s :no" % sorted(PASSING)[0])
        self.expect()

    def test_a_room_that_is_there_is_entered(self):
        self.run_.line(50, ">", "JOIN #cove")
        self.run_.line(50.1, "<", ":relay 403 bob #cove :No such channel")
        self.expect("join")

    def test_topics_of_the_backend(self):
        self.run_.line(10, "<", ":relay 332 alice #den :all things")
        self.expect()
        self.run_.line(11, "<", ":relay 332 alice #den :other things")
        self.expect("topic")

    def test_topics(self):
        self.run_.reload(10, topics={"reef": "soup"})
        for name in CLIENTS:
            if name not in (CLIENT, "gus@tent"):
                self.run_.line(10.1, "<", ":relay TOPIC #reef :soup", name)
        self.expect("topic")
        self.run_.line(10.1, "<", ":relay TOPIC #reef :soup")
        self.expect()
        self.run_.line(20, "<", ":relay TOPIC #reef :of a file that was refused")
        self.expect("topic")

    def test_a_topic_behind_a_disk_that_stands_still(self):
        self.run_.reload(10, topics={"reef": "soup"})
        for name in CLIENTS:
            if name not in (CLIENT, "gus@tent"):
                self.run_.line(10.1, "<", ":relay TOPIC #reef :soup", name)
        self.run_.line(9.1, "<", ":bob!u@h PART #reef")
        self.run_.line(9.2, "<", ":bob!u@h JOIN #reef")
        # Behind the messages of before, which the disk did not give before 13.
        self.run_.ask(13.5)
        self.run_.line(14, "<", ":relay TOPIC #reef :soup")
        self.expect("part", "topic")
        self.run_.stall(9, 4)
        self.expect("part")
        # Not for as long as it likes.
        self.run_.records[CLIENT].pop()
        self.expect("part", "topic")

    def test_a_room_that_came_back_carries(self):
        self.run_.logs["cove"] = [{"text": "Ann-cove:cove:1 hello"}]
        for name in CLIENTS:
            if name != CLIENT:
                self.run_.line(60, "<", ":Ann-cove!u@h PRIVMSG #cove :Ann-cove:cove:1 hello", name)
        self.expect("carry")
        self.run_.line(60, "<", ":Ann-cove!u@h PRIVMSG #cove :Ann-cove:cove:1 hello")
        self.expect()

    def test_a_message_before_many_pages_was_carried(self):
        self.run_.logs["cove"] = [{"text": "Ann-cove:cove:1 hello"}]
        for name in CLIENTS:
            self.run_.line(60, "<", ":Ann-cove!u@h PRIVMSG #cove :Ann-cove:cove:1 hello", name)
        for number in range(30_000):
            self.run_.line(70, "<", "@batch=1;msgid=m%d :Ann-reef!u@h PRIVMSG #reef :Ann-reef:reef:%d" % (number, number))
        self.expect()
        # Not so, if it never came.
        self.run_.logs["cove"].append({"text": "Ann-cove:cove:2 hello"})
        self.expect("carry")

    def test_certificates(self):
        self.run_.reload(10, certificate=1)
        self.run_.note(12, "certificate", until=START + 12_100, number=1)
        self.expect()
        self.run_.note(14, "certificate", until=START + 14_100, number=0)
        self.expect("certificate")

    def test_answers(self):
        rooms = [{"name": room} for room in (*ROOMS, *PASSING)]
        clients = [{"nick": nick_of(name)} for name in CLIENTS]
        self.run_.answer(20, "status", {"done": {"rooms": rooms, "clients": clients}})
        self.expect()
        self.run_.answer(20, "status", {"done": {"rooms": rooms[1:], "clients": clients}})
        self.expect("agree")
        self.run_.answers.pop()
        self.run_.answer(20, "status", {"done": {"rooms": rooms, "clients": clients[1:]}})
        self.expect("agree")
        self.run_.answers.pop()
        self.run_.answer(20, "status", '{"done":')
        self.expect("answer")

    def test_an_answer_that_does_not_come(self):
        self.run_.answer(20, "status", why="no answer within 30 s")
        self.expect("answer")
        self.run_.story.append({"t": START + 19_000, "what": "ended", "pid": 1, "code": -9})
        self.expect()

    def test_a_relay_that_is_dead_for_long_does_not_answer(self):
        self.run_.story.append({"t": START + 20_000, "what": "ended", "pid": 1, "code": -9})
        self.run_.story.append({"t": START + 40_000, "what": "started", "pid": 2})
        # Long after its death, and long before the next process.
        self.run_.answer(30, "status", why="[Errno 111] Connection refused")
        self.expect()
        self.run_.answer(50, "status", why="[Errno 111] Connection refused")
        self.expect("answer")

    def test_history_agrees_with_what_was_shown(self):
        self.run_.line(15, "<", "@msgid=m1 :Ann-reef!u@h PRIVMSG #reef :Ann-reef:reef:1 hello")
        item = {"room": "reef", "seq": 1, "msgid": "m1", "text": "Ann-reef:reef:1 hello"}
        self.run_.answer(20, "history", {"item": item}, {"done": {"count": 1}})
        self.expect()
        self.run_.answer(20, "history", {"item": {**item, "text": "Ann-reef:reef:2 hello"}}, {"done": {"count": 1}})
        self.expect("agree")
        self.run_.answers.pop()
        self.run_.answer(20, "history", {"item": {**item, "seq": 2}}, {"item": item}, {"done": {"count": 2}})
        self.expect("agree")
        self.run_.answers.pop()
        self.run_.answer(20, "history", {"error": {"code": "not-found", "message": "no"}})
        self.expect("answer")


class ConfigurationTests(unittest.TestCase):
    def test_changes_are_those_of_their_seed_and_the_last_one_has_everything(self):
        def changes(seed):
            source, state, found = random.Random(seed), configuration.first_state(), []
            for number in range(200):
                state, told = configuration.changed(state, number, source)
                found.append(told)
            return found, state

        self.assertEqual(changes(1), changes(1))
        self.assertNotEqual(changes(1)[0], changes(2)[0])
        kinds = {told.split()[0] for one in changes(1)[0] for told in one}
        self.assertEqual(kinds, set(configuration.CHANGES))
        last = configuration.last_state(changes(1)[1])
        self.assertEqual(last["open"], sorted(PASSING))
        self.assertEqual(sorted(last["accounts"]), sorted(configuration.first_state()["accounts"]))
        self.assertTrue(all(account["rooms"] == ["*"] for account in last["accounts"].values()))


if __name__ == "__main__":
    unittest.main()
