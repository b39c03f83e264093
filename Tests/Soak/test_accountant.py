"""The accountant is held to account: a run in which all is well has no findings, and each planted fault is found."""

import asyncio
import collections
import io
import json
import os
import socket
import sys
import tempfile
import unittest
from unittest import mock

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import accountant  # noqa: E402
import faults  # noqa: E402
import memory  # noqa: E402
import plan  # noqa: E402
import soak  # noqa: E402
from accountant import Run, account, misplaced  # noqa: E402
from journal import Journal  # noqa: E402
from plan import CLIENTS, EVERY_ROOM, ROOMS, Key, find_keys, is_from_irc, key_text, nick_of, read_key  # noqa: E402

# A moment in 2026, in milliseconds; the n-th thing of a story happens n seconds later.
START = 1_795_000_000_000


def stamp(milliseconds):
    return accountant.datetime.datetime.fromtimestamp(
        milliseconds / 1000, accountant.datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + (
        "%03dZ" % (milliseconds % 1000))


class Story:
    """A run as it should be, told line by line: what the backend logs and what each client records."""

    def __init__(self, clients=("alice@one", "bob@desk"), rooms=("reef", "loft", "dock", "nave")):
        self.now = START
        self.logs = {room: [] for room in rooms}
        self.records = {client: [] for client in clients}
        self.connections = dict.fromkeys(clients, 0)
        self.newest = dict.fromkeys(rooms, 0)
        self.tokens = 0
        for client in clients:
            self.connect(client)

    def line(self, client, direction, text):
        self.records[client].append(
            {"t": self.now, "c": self.connections[client], "d": direction, "l": text})

    def connect(self, client):
        self.now += 1000
        self.connections[client] += 1
        for room in self.logs:
            self.line(client, "<", ":relay.soak 366 %s #%s :End" % (nick_of(client), room))
        self.ping(client)

    def ping(self, client, is_answered=True):
        self.tokens += 1
        self.line(client, ">", "PING :%d" % self.tokens)
        if is_answered:
            self.line(client, "<", ":relay.soak PONG relay.soak :%d" % self.tokens)

    def acknowledge(self, client):
        """The relay tests the client, which answers, and learns that this was heard."""
        self.line(client, "<", "PING :relay.soak")
        self.line(client, ">", "PONG :relay.soak")
        self.ping(client)

    def say(self, key, is_accepted=True):
        """From IRC, taken by the relay."""
        self.now += 1000
        self.line(key.author, ">", "PRIVMSG #%s :%s words" % (key.room, key_text(key)))
        self.ping(key.author, is_accepted)

    def log(self, key, **changes):
        self.now += 1000
        room, text = EVERY_ROOM[key.room], key_text(key) + " words"
        sender = nick_of(key.author) if is_from_irc(key) else room.people[key.author]
        if is_from_irc(key):
            text = room.said_by(sender, text)
            sender = room.account or sender
        has_own_time = room.wire.ids == "client" and is_from_irc(key)
        told = self.now - 1000 if has_own_time else self.now
        entry = {
            "id": "%s %d" % (key_text(key), len(self.logs[key.room])), "sender": sender, "sender_id": "id of " + sender,
            "alias": None, "text": text, "at": self.now, "said_at": told - told % room.wire.second,
            "sent_at": told if has_own_time else None,
        }
        entry.update(changes)
        self.logs[key.room].append(entry)
        return entry

    def shown(self, entry, room, **changes):
        """A line of the relay's, as it goes to a client with all capabilities."""
        key, text, nick = accountant.key_of(entry, room)
        fields = {
            "time": max(entry["said_at"], 0), "msgid": "m" + entry["id"].replace(" ", ""),
            "account": CLIENTS[key.author].account if is_from_irc(key) else None, "nick": nick, "text": text,
            "batch": None, **changes,
        }
        tags = "time=%s;msgid=%s" % (stamp(fields["time"]), fields["msgid"])
        for name in ("account", "batch"):
            if fields[name]:
                tags += ";%s=%s" % (name, fields[name])
        return "@%s :%s!u@h PRIVMSG #%s :%s" % (tags, fields["nick"], room, fields["text"])

    def show(self, entry, client, **changes):
        self.now += 10
        room = changes.pop("room", None) or find_keys(entry["text"])[0].room
        self.line(client, "<", self.shown(entry, room, **changes))

    def pass_on(self, key, skip=(), **changes):
        """From IRC or upstream, logged and shown to everybody."""
        if is_from_irc(key):
            self.say(key)
        entry = self.log(key)
        for client in self.records:
            if client not in skip:
                self.show(entry, client, **changes)
        return entry

    def talk(self, first=1, last=3):
        for number in range(first, last + 1):
            for room in self.logs:
                self.pass_on(Key("Ann-" + room, room, number))
                self.pass_on(Key("alice@one", room, number))
        return self

    def gap(self, client, room, begin, end):
        self.line(client, "<", (
            "@chatbridge/gap=%s,%s :relay.soak NOTICE #%s :*** What was said between 1 and 2 is missing: the backend keeps "
            "no history.") % (stamp(begin), stamp(end), room))

    def page(self, client, room, entries, why="pages", words="LATEST", refusal=None, gaps=(), gap_at=None, **changes):
        """A question and its answer."""
        self.tokens += 1
        self.line(client, "#", "%s #%s" % (why, room))
        self.line(client, ">", "@label=%d CHATHISTORY %s #%s * 100" % (self.tokens, words, room))
        if refusal:
            self.line(client, "<", "@label=%d :relay.soak FAIL CHATHISTORY %s" % (self.tokens, refusal))
        else:
            self.line(client, "<", "@label=%d :relay.soak BATCH +p chathistory #%s" % (self.tokens, room))
            gaps = list(gaps)
            for index, entry in enumerate([*entries, None]):
                if entry == "row":
                    self.line(client, "<", self.row(room, ";batch=p"))
                    continue
                while gaps and (index == gap_at if gap_at is not None else entry is None or gaps[0][0] < entry["at"]):
                    self.line(client, "<", (
                        "@batch=p;chatbridge/gap=%s,%s :relay.soak NOTICE #%s :What was said between 1 and 2 is missing"
                    ) % (*map(stamp, gaps.pop(0)), room))
                if entry:
                    self.line(client, "<", self.shown(entry, room, batch="p", **changes))
            self.line(client, "<", ":relay.soak BATCH -p")
        self.line(client, "#", "%s #%s" % (
            {"pages": "paged", "look": "looked", "catch up": "caught up"}[why], room))

    def row(self, room, batch=""):
        self.tokens += 1
        return (
            "@time=%s;msgid=row%d%s :relay.soak NOTICE #%s :*** What was said during the outage comes late: the messages that "
            "follow are older than those before them.") % (stamp(self.now), self.tokens, batch, room)

    def store(self, client, room, is_kept, said=None):
        """What the relay says of its store; `said`: when, if it comes late."""
        self.line(client, "<", "@time=%s :relay.soak NOTICE #%s :*** %s" % (stamp(said or self.now), room, (
            "Messages are stored again." if is_kept else
            "Messages cannot be stored at the moment (the disk is full): what you write is not taken, and what others write "
            "may be missing later.")))

    def account(self, clock=(), stops=(), deaths=()):
        return account(Run(self.logs, self.records, clock, stops, deaths=deaths))


class AccountantTests(unittest.TestCase):
    def found(self, story, *expected, clock=(), stops=(), deaths=()):
        """Exactly these kinds were found: (kind, direction, wire, how often)."""
        result = story.account(clock, stops, deaths)
        counted = {}
        for finding in result.findings:
            where = finding.kind, finding.direction, finding.wire
            counted[where] = counted.get(where, 0) + 1
        self.assertEqual(counted, {one[:3]: one[3] for one in expected}, result.findings)
        return result

    def test_a_run_without_faults_has_no_findings(self):
        result = self.found(Story().talk())
        self.assertEqual(result.tallies["typed", "up"]["sent"], 3)
        self.assertEqual(result.tallies["typed", "up"]["accepted"], 3)
        self.assertEqual(result.tallies["typed", "down"]["expected"], 12)
        self.assertEqual(result.tallies["typed", "down"]["delivered"], 12)

    # MARK: - Up

    def test_a_message_that_was_accepted_and_never_logged_is_lost(self):
        story = Story().talk()
        story.say(Key("alice@one", "loft", 4))
        self.found(story, ("lost", "up", "envelope", 1))

    def test_a_message_that_was_not_accepted_may_be_gone(self):
        story = Story().talk()
        story.say(Key("alice@one", "loft", 4), is_accepted=False)
        self.assertEqual(self.found(story).tallies["envelope", "up"]["sent"], 4)

    def test_an_answer_on_another_connection_accepts_nothing(self):
        story = Story().talk()
        story.say(Key("alice@one", "loft", 4), is_accepted=False)
        story.connect("alice@one")
        story.ping("alice@one")
        self.found(story)

    def test_an_echo_accepts(self):
        story = Story().talk()
        key = Key("alice@one", "loft", 4)
        story.say(key, is_accepted=False)
        story.show(story.log(key), "alice@one")
        story.logs["loft"].pop()
        self.found(story, ("lost", "up", "envelope", 1), ("wrong text", "down", "envelope", 1))

    def test_an_author_who_was_told_lost_nothing(self):
        for line in (
            ":r FAIL PRIVMSG CANNOT_DELIVER #loft :Not delivered, it waited too long: %s words",
            ":r FAIL PRIVMSG CANNOT_STORE #loft :Not taken, the disk is full: %s words",
            ":r NOTICE alice :Not delivered, it waited too long: %s words",
        ):
            with self.subTest(line):
                story = Story().talk()
                key = Key("alice@one", "loft", 4)
                story.say(key)
                story.line("alice@one", "<", line % key_text(key))
                self.assertEqual(self.found(story).tallies["envelope", "up"]["told"], 1)

    def test_what_a_pong_confirmed_may_be_shown_and_then_told_as_missing(self):
        for room, is_told, expected in (
                ("nave", True, []), ("barn", True, []),
                ("nave", False, [("lost", "up", "jwt-rooms", 1), ("wrong text", "down", "jwt-rooms", 2)]),
                ("loft", True, [("wrong text", "down", "envelope", 2)])):
            with self.subTest(room=room, is_told=is_told):
                story = Story(rooms=(room,)).talk()
                key = Key("alice@one", room, 4)
                story.say(key)
                entry = story.log(key)
                for client in story.records:
                    story.show(entry, client)
                story.logs[room].pop()
                if is_told:
                    story.line(
                        "alice@one", "<", ":r FAIL PRIVMSG CANNOT_DELIVER #%s :Not delivered: %s" % (room, key_text(key)))
                self.found(story, *expected)

    def test_nothing_is_shown_of_which_its_author_was_told_before_that_it_is_missing(self):
        for author in ("alice@one", "eve@guest"):
            for when, wrong in (("after", 0), ("before", 2), ("never", 2)):
                with self.subTest(author=author, when=when):
                    story = Story(clients=("alice@one", "eve@guest"), rooms=("nave",)).talk()
                    key = Key(author, "nave", 4)
                    story.say(key, is_accepted=False)
                    line = ":r FAIL PRIVMSG CANNOT_DELIVER #nave :Not delivered: %s" % key_text(key)
                    if when == "before":
                        story.line(author, "<", line)
                    entry = story.log(key)
                    for client in story.records:
                        story.show(entry, client)
                    story.logs["nave"].pop()
                    if when == "after":
                        story.now += 10
                        story.line(author, "<", line)
                    story.now += 60_000
                    story.ping(author)
                    result = story.account()
                    self.assertEqual(len(result.of("wrong text")), wrong, result.findings)

    def test_a_guest_that_is_gone_cannot_be_told_that_what_was_shown_is_missing(self):
        for stays, wrong in ((0, 0), (34_000, 0), (36_000, 2)):
            with self.subTest(stays):
                story = Story(clients=("alice@one", "eve@guest"), rooms=("nave",)).talk()
                key = Key("eve@guest", "nave", 1)
                story.say(key, is_accepted=False)
                said = story.now
                entry = story.log(key)
                for client in story.records:
                    story.show(entry, client)
                story.logs["nave"].pop()
                if stays:
                    story.now = said + stays
                    story.ping("eve@guest")
                story.now = said + 60_000
                story.connect("eve@guest")
                self.assertEqual(len(story.account().of("wrong text")), wrong)

    def test_another_client_of_the_account_may_be_told(self):
        story = Story(clients=("alice@one", "alice@two"), rooms=("loft",))
        key = Key("alice@one", "loft", 1)
        story.say(key)
        story.line("alice@two", "<", ":r NOTICE alice :Not delivered, it waited too long: %s" % key_text(key))
        self.found(story)

    def test_a_promise_to_send_later_is_no_refusal(self):
        for line, wrong in (
            (":r NOTE PRIVMSG QUEUED #loft :Your message is queued and goes when the link is back: %s words", []),
            (":r NOTE PRIVMSG DELIVERED_LATE #loft :It arrived after all: %s words", [("told wrongly", "up", "envelope", 1)]),
            (":r NOTICE alice :Your message has not been confirmed yet: %s words", []),
        ):
            with self.subTest(line):
                story = Story().talk()
                key = Key("alice@one", "loft", 4)
                story.say(key)
                story.line("alice@one", "<", line % key_text(key))
                self.found(story, ("lost", "up", "envelope", 1), *wrong)

    def test_what_its_author_was_told_is_true(self):
        flat = ":r FAIL PRIVMSG CANNOT_DELIVER #%s :Not delivered, it waited too long for the backend: %s"
        plain = ":r NOTICE alice :PRIVMSG CANNOT_STORE #%s: Not taken, the disk is full: %s"
        doubt = (
            ":r FAIL PRIVMSG CANNOT_DELIVER #%s :It is not known whether this was delivered, since the link was lost before "
            "the backend answered: %s")
        after = ":r NOTE PRIVMSG DELIVERED_LATE #%s :It arrived after all: %s"
        text = ":r NOTICE alice :PRIVMSG DELIVERED_LATE #%s: It arrived after all: %s"
        for is_there, lines, is_right in (
                (False, [flat], True), (True, [flat], False), (True, [plain], False), (True, [doubt], True),
                (False, [doubt], True), (True, [flat, after], True), (True, [plain, text], True),
                (False, [doubt, after], False), (False, [doubt, text], False)):
            with self.subTest(is_there=is_there, lines=lines):
                story = Story(rooms=("loft",)).talk()
                key = Key("alice@one", "loft", 4)
                story.say(key)
                for line in lines:
                    story.line("alice@one", "<", line % ("loft", key_text(key)))
                if is_there:
                    entry = story.log(key)
                    for client in story.records:
                        story.show(entry, client)
                self.found(story, *([] if is_right else [("told wrongly", "up", "envelope", 1)]))

    def test_being_told_of_another_number_does_not_count(self):
        story = Story().talk()
        story.say(Key("alice@one", "loft", 4))
        story.line("alice@one", "<", ":r FAIL PRIVMSG CANNOT_DELIVER #loft :Not delivered: alice@one:loft:44 words")
        self.found(story, ("lost", "up", "envelope", 1))

    def test_two_ids_for_one_message_are_a_double(self):
        story = Story().talk()
        entry = story.log(Key("alice@one", "dock", 3))
        for client in story.records:
            story.show(entry, client)
        self.found(story, ("doubled", "up", "swiftchat", 1))

    def test_the_same_id_again_is_one_message(self):
        story = Story().talk()
        story.log(Key("alice@one", "loft", 3), id=story.logs["loft"][-1]["id"], again=True)
        self.found(story)

    def test_a_later_message_in_front_is_reordered(self):
        story = Story(rooms=("reef",)).talk()
        log = story.logs["reef"]
        # The second and third of alice@one change their places; what clients saw follows the backend's order.
        second, third = [place for place, entry in enumerate(log) if "alice" in entry["text"]][1:]
        log[second], log[third] = log[third], log[second]
        self.assertEqual(len(story.account().of("reordered")), 3)
        self.assertEqual([f.direction for f in story.account().of("reordered")].count("up"), 1)

    def test_what_was_given_up_and_came_after_all_has_no_place_among_its_author_s(self):
        line = ":r FAIL PRIVMSG UNCERTAIN #loft :It is not known whether this was delivered: %s words"
        for told_at, is_right in (("before", True), ("after", False), (None, False)):
            with self.subTest(told_at=told_at):
                story = Story(rooms=("loft",)).talk()
                key = Key("alice@one", "loft", 4)
                story.say(key)
                if told_at == "before":
                    story.line("alice@one", "<", line % key_text(key))
                story.pass_on(Key("alice@one", "loft", 5))
                entry = story.log(key, sent_at=story.now - 2000)
                for client in story.records:
                    story.show(entry, client)
                if told_at == "before":
                    story.line(
                        "alice@one", "<", ":r NOTE PRIVMSG DELIVERED_LATE #loft :It arrived after all: " + key_text(key))
                if told_at == "after":
                    story.line("alice@one", "<", line % key_text(key))
                self.assertEqual(
                    [finding.direction for finding in story.account().of("reordered")], [] if is_right else ["up"])

    def test_another_sender_or_id_is_a_wrong_author(self):
        story = Story().talk()
        key = Key("alice@one", "reef", 4)
        story.say(key)
        entry = story.log(key, sender="mallory")
        story.logs["reef"][-1] = dict(entry, sender="mallory")
        for client in story.records:
            story.show(entry, client, nick="alice")
        self.found(story, ("wrong author", "up", "typed", 1), ("wrong author", "down", "typed", 2))
        story = Story().talk()
        story.logs["reef"][-1]["sender_id"] = "id of mallory"
        self.found(story, ("wrong author", "up", "typed", 1))

    def test_a_time_that_is_not_when_it_was_said_is_wrong_unless_the_clock_was(self):
        story = Story().talk()
        entry = story.logs["loft"][-1]
        story.say(Key("alice@one", "loft", 4))
        entry = story.log(Key("alice@one", "loft", 4), sent_at=story.now - 3_600_000)
        for client in story.records:
            story.show(entry, client)
        self.found(story, ("wrong time", "up", "envelope", 1))
        # Then its clock said so, all the time; or for a moment.
        self.found(story, clock=[(entry["at"] - 1500, -3_600_000), (entry["at"] - 500, 0)])
        self.found(
            story, ("wrong time", "up", "envelope", 1), clock=[(entry["at"] - 9000, -3_600_000), (entry["at"] - 5000, 0)])
        # The harness was about to set it right, and had not done so by then; or had.
        slow = [(entry["at"] - 9000, -3_600_000), (entry["at"] - 8990, -3_600_000), (entry["at"] - 5000, 0)]
        self.found(story, clock=[*slow, (entry["at"] - 500, 0)])
        self.found(story, ("wrong time", "up", "envelope", 1), clock=[*slow, (entry["at"] - 3000, 0)])

    def test_a_changed_text_and_a_wrong_room_are_found(self):
        story = Story().talk()
        story.logs["loft"][-1]["text"] += " and more"
        self.assertEqual(len(story.account().of("wrong text")), 3)
        story = Story()
        story.say(Key("alice@one", "reef", 1))
        entry = story.log(Key("alice@one", "reef", 1))
        story.logs["loft"].append(story.logs["reef"].pop())
        self.assertIn("up", [finding.direction for finding in story.account().of("wrong text")])
        self.assertEqual(entry["text"], "alice@one:reef:1 words")

    # MARK: - Down

    def test_a_message_that_one_client_did_not_get_is_lost(self):
        for room, wire in (("reef", "typed"), ("loft", "envelope"), ("dock", "swiftchat")):
            with self.subTest(room):
                story = Story().talk()
                story.pass_on(Key("Ann-" + room, room, 4), skip=("bob@desk",))
                story.talk(5, 6)
                result = self.found(story, ("lost", "down", wire, 1))
                self.assertEqual(result.findings[0].who, "bob@desk")

    def test_the_last_message_can_be_lost_too(self):
        story = Story().talk()
        story.pass_on(Key("Ann-reef", "reef", 4), skip=("bob@desk",))
        self.found(story, ("lost", "down", "typed", 1))

    def test_a_gap_that_was_told_covers_what_lies_in_it_where_there_is_no_history(self):
        for room, wire in (("reef", "typed"), ("loft", "envelope"), ("dock", "swiftchat"), ("nave", "jwt-rooms")):
            with self.subTest(room=room):
                story = Story().talk()
                begin = story.now
                story.pass_on(Key("Ann-" + room, room, 4), skip=("bob@desk",))
                story.gap("bob@desk", room, begin, story.now)
                story.talk(5, 6)
                if wire in ("typed", "jwt-rooms"):
                    self.found(story, ("lost", "down", wire, 1))
                else:
                    self.assertEqual(self.found(story).tallies[wire, "down"]["in gaps"], 1)

    def test_a_gap_without_its_times_is_that_which_others_were_told(self):
        for is_told, words, is_right in (
                (True, "between 1 and 2 is missing: the backend keeps no history.", True),
                (True, "between 1 and 3 is missing: the backend keeps no history.", False),
                (False, "between 1 and 2 is missing: the backend keeps no history.", False)):
            with self.subTest(is_told=is_told, words=words):
                story = Story(clients=("bob@desk", "alice@two"), rooms=("loft",))
                story.pass_on(Key("Ann-loft", "loft", 1), nick="Ann-loft")
                begin = story.now
                story.log(Key("Ann-loft", "loft", 2))
                if is_told:
                    story.gap("bob@desk", "loft", begin, story.now)
                story.line("alice@two", "<", ":r NOTICE #loft :*** What was said " + words)
                story.pass_on(Key("Ann-loft", "loft", 3))
                self.found(
                    story, *([] if is_right else [("lost", "down", "envelope", 1 if is_told else 2)]))

    def test_a_gap_that_only_the_pages_of_the_end_tell_is_no_excuse_and_one_that_they_do_not_tell_neither(self):
        for is_live, is_in_page, expected in (
                (True, True, []), (False, True, [("lost", "down", "envelope", 1)]),
                (True, False, [("lost", "pages", "envelope", 1)])):
            with self.subTest(is_live=is_live, is_in_page=is_in_page):
                story = Story(clients=("bob@desk",), rooms=("loft",))
                story.pass_on(Key("Ann-loft", "loft", 1))
                begin = story.now
                story.log(Key("Ann-loft", "loft", 2))
                if is_live:
                    story.gap("bob@desk", "loft", begin, story.now)
                if is_live:
                    story.pass_on(Key("Ann-loft", "loft", 3))
                story.page(
                    "bob@desk", "loft", story.logs["loft"][:1] + story.logs["loft"][2:],
                    gaps=[(begin, begin + 2000)] if is_in_page else [])
                self.found(story, *expected)

    def test_a_gap_that_was_counted_back_is_so_from_a_moment_behind_its_end(self):
        """Both ends bear what the clock shows as it is told; nobody is there for `late`."""
        for late, is_right in ((500, True), (2500, True), (4500, False)):
            with self.subTest(late):
                story = Story().talk()
                story.pass_on(Key("Ann-loft", "loft", 4), skip=("bob@desk",))
                at = story.logs["loft"][-1]["at"]
                story.now = at + 1000 + late
                story.gap("bob@desk", "loft", at - 500 + 60_000, at + 100 + 60_000)
                story.now += 60_000
                # The clock is wrong when it is told alone.
                result = story.account([(at + 400, 60_000), (at + 1000, 0)])
                self.assertEqual(bool(result.of("lost")), not is_right, result.findings)

    def test_a_gap_that_was_told_to_nobody_was_counted_back_when_it_ended(self):
        """All are away as it is told, or their links bring nothing, and hear of it when the clock shows something else."""
        day = 86_400_000
        for name, offset, clock, comes, is_right in (
                ("behind then", -day, [(0, -day), (400, 0)], True, True),
                ("ahead then", 60_000, [(0, 60_000), (400, 0)], True, True),
                ("right then, wrong before and now", 0, [(-9000, 60_000), (0, 0), (9000, -day)], True, True),
                ("who heard of it was there", -day, [(0, -day), (400, 0)], False, False),
                ("long before its end", -day, [(-9000, -day), (-2000, 0)], True, False),
                ("long behind its end", -day, [(4000, -day), (5000, 0)], True, False),
                ("by something else", -day, [(0, -3_600_000), (400, 0)], True, False),
                # It showed that twice, and the second time is what it says.
                ("ahead and then right", 0, [(-30_000, 20_000), (-10_000, 0)], True, True),
                ("ahead and then right, a while before", 20_000, [(-30_000, 20_000), (-10_000, 0)], True, False),
                ("behind then, and by more later", -4000,
                 [(-8000, 45_000), (-3000, 0), (-200, -4000), (3000, 0), (14_000, -19_000), (17_000, 0)], True, True),
                ("never", -day, [], True, False)):
            for end in (100, -200):
                with self.subTest(name, end=end):
                    story = Story().talk()
                    story.pass_on(Key("Ann-loft", "loft", 4), skip=("bob@desk",))
                    at = story.logs["loft"][-1]["at"]
                    story.now = at + 20_000
                    if comes:
                        story.connect("bob@desk")
                    story.gap("bob@desk", "loft", at - 500 + offset, at + end + offset)
                    story.talk(5, 5)
                    result = story.account([(at + when, wrong) for when, wrong in clock])
                    # One that ends before what is missing does not mean it.
                    self.assertEqual(bool(result.of("lost")), end < 0 or not is_right, result.findings)

    def test_a_gap_that_is_told_too_short_covers_nothing_outside_of_it(self):
        for begin, end, is_right in ((-1000, 0, True), (-1, 0, True), (50, 1000, False), (-2000, -1100, False)):
            with self.subTest(begin=begin, end=end):
                story = Story().talk()
                story.pass_on(Key("Ann-loft", "loft", 4), skip=("bob@desk",))
                at = story.logs["loft"][-1]["at"]
                story.gap("bob@desk", "loft", at + begin, at + end)
                story.talk(5, 6)
                self.found(story, *([] if is_right else [("lost", "down", "envelope", 1)]))

    def test_the_times_of_a_gap_are_those_of_the_clock(self):
        for offset, clock, is_right in (
                (60_000, [(-5000, 60_000)], True), (60_000, [], False), (0, [(-5000, 60_000)], False),
                # Each end by itself, or both counted back from the moment of telling.
                (0, [(500, 60_000)], True), (60_000, [(500, 60_000)], True), (-60_000, [(500, 60_000)], False)):
            with self.subTest(offset=offset, clock=clock):
                story = Story().talk()
                story.pass_on(Key("Ann-loft", "loft", 4), skip=("bob@desk",))
                at = story.logs["loft"][-1]["at"]
                story.now = at + 1000
                story.gap("bob@desk", "loft", at - 500 + offset, at + 100 + offset)
                story.now += 60_000
                result = story.account([(at + when, wrong) for when, wrong in clock])
                self.assertEqual(bool(result.of("lost")), not is_right, result.findings)

    def test_a_gap_covers_nothing_of_another_room_or_client(self):
        for client, room in (("bob@desk", "dock"), ("alice@one", "loft")):
            with self.subTest(client=client, room=room):
                story = Story().talk()
                begin = story.now
                story.pass_on(Key("Ann-loft", "loft", 5), skip=("bob@desk",))
                story.gap(client, room, begin, story.now)
                story.talk(6, 6)
                self.found(story, ("lost", "down", "envelope", 1))

    def test_a_gap_stands_where_it_is(self):
        """One that ends behind what came next does not mean what is missing, wherever it stands."""
        for when, length, kind in (
                ("before", 14_000, "reordered"), ("there", 14_000, ""), ("after", 1100, "reordered"),
                ("before", 90_000, "lost"), ("there", 90_000, ""), ("after", 90_000, "lost")):
            with self.subTest(when=when, length=length):
                story = Story().talk()
                begin = story.now
                if when == "before":
                    story.gap("bob@desk", "loft", begin, begin + length)
                    story.talk(4, 4)
                story.pass_on(Key("Ann-loft", "loft", 5), skip=("bob@desk",))
                if when == "there":
                    story.gap("bob@desk", "loft", begin, begin + length)
                story.talk(6, 6)
                if when == "after":
                    story.gap("bob@desk", "loft", begin, begin + length)
                    story.talk(7, 7)
                self.found(story, *([(kind, "down", "envelope", 1)] if kind else []))

    def test_a_gap_stands_where_it_is_for_guests_and_in_pages_too(self):
        for who, direction in (("guest", "down"), ("asks", "down"), ("pages", "pages")):
            for place in range(4):
                with self.subTest(who=who, place=place):
                    client = {"guest": "eve@guest", "asks": "dora@web", "pages": "bob@desk"}[who]
                    story = Story(clients=(client,), rooms=("loft",))
                    entries = [story.log(Key("Ann-loft", "loft", number)) for number in (1, 2, 3, 4)]
                    missing = entries.pop(1)
                    times = missing["at"] - 500, missing["at"] + 500
                    if who == "guest":
                        for index in range(4):
                            if index == place:
                                story.gap(client, "loft", *times)
                            if index < 3:
                                story.show(entries[index], client)
                    else:
                        if who == "pages":
                            for entry in story.logs["loft"]:
                                story.show(entry, client)
                        story.page(
                            client, "loft", entries, "pages" if who == "pages" else "catch up", gaps=[times], gap_at=place)
                    self.found(story, *([] if place == 1 else [("reordered", direction, "envelope", 1)]))

    def test_what_was_fetched_as_a_client_came_stands_in_front_of_what_came_meanwhile(self):
        """The gap is told in the page, and what was said behind it had come live."""
        story = Story(clients=("dora@web",), rooms=("loft",))
        entries = [story.log(Key("Ann-loft", "loft", number)) for number in (1, 2, 3)]
        story.show(entries[2], "dora@web")
        story.page("dora@web", "loft", entries[:1], "catch up", gaps=[(entries[1]["at"] - 500, entries[1]["at"] + 500)])
        self.found(story)

    def test_what_came_before_a_catch_up_that_was_cut_stands_where_it_was_fetched_again(self):
        """It came live, its connection ended before the page, and the next one's page has the gap in front of it."""
        for place, is_right in ((1, True), (2, False)):
            with self.subTest(place=place):
                story = Story(clients=("dora@web",), rooms=("loft",))
                entries = [story.log(Key("Ann-loft", "loft", number)) for number in (1, 2, 3)]
                story.show(entries[2], "dora@web")
                story.connect("dora@web")
                times = entries[1]["at"] - 500, entries[1]["at"] + 500
                story.page("dora@web", "loft", [entries[0], entries[2]], "catch up", gaps=[times], gap_at=place)
                self.found(story, *([] if is_right else [("reordered", "down", "envelope", 1)]))

    def test_what_irc_users_say_may_stand_behind_the_gap_in_which_it_went_up(self):
        story = Story().talk()
        own = Key("alice@one", "loft", 4)
        begin = story.now
        story.say(own)
        entry = story.log(own)
        story.pass_on(Key("Ann-loft", "loft", 4), skip=("bob@desk",))
        story.gap("bob@desk", "loft", begin, story.now)
        # The relay hears only now that it arrived.
        for client in story.records:
            story.show(entry, client, time=story.newest["loft"] or story.logs["loft"][-1]["at"] + 1)
        story.talk(5, 6)
        self.assertEqual(self.found(story).tallies["envelope", "down"]["in gaps"], 1)

    def test_what_was_said_before_the_client_was_known_to_be_there_is_not_expected(self):
        story = Story(clients=("alice@one",), rooms=("reef",))
        story.pass_on(Key("Ann-reef", "reef", 1))
        story.records["bob@desk"], story.connections["bob@desk"] = [], 0
        story.connect("bob@desk")
        story.talk(2, 3)
        self.found(story)

    def test_own_messages_are_expected_where_the_client_asked_for_echoes(self):
        story = Story(clients=("carol@phone", "bob@desk"), rooms=("reef",))
        story.pass_on(Key("carol@phone", "reef", 1), skip=("carol@phone",))
        self.found(story)
        story.pass_on(Key("bob@desk", "reef", 1), skip=("bob@desk",))
        self.found(story, ("lost", "down", "typed", 1))

    def test_an_echo_that_nobody_asked_for_is_a_double(self):
        story = Story(clients=("carol@phone", "bob@desk"), rooms=("reef",))
        story.pass_on(Key("carol@phone", "reef", 1))
        self.found(story, ("doubled", "down", "typed", 1))

    def test_a_line_that_comes_twice_on_a_connection_is_a_double(self):
        story = Story().talk()
        story.show(story.logs["loft"][0], "bob@desk")
        self.found(story, ("doubled", "down", "envelope", 1))

    def test_another_msgid_makes_another_message(self):
        story = Story().talk()
        entry = story.logs["dock"][-1]
        story.connect("bob@desk")
        story.show(entry, "bob@desk", msgid="another")
        self.found(story, ("doubled", "down", "swiftchat", 1))

    def test_a_repeat_after_a_reconnect_is_forgiven_until_the_client_knew_better(self):
        for is_acknowledged, expected in ((False, []), (True, [("doubled", "down", "typed", 1)])):
            with self.subTest(is_acknowledged):
                story = Story().talk()
                entry = story.logs["reef"][-1]
                if is_acknowledged:
                    story.acknowledge("bob@desk")
                story.connect("bob@desk")
                story.show(entry, "bob@desk")
                result = self.found(story, *expected)
                self.assertEqual(result.tallies["typed", "down"]["re-sent"], 0 if is_acknowledged else 1)

    def test_what_is_known_to_be_received_stands_for_what_was_shown_before_it(self):
        for is_behind, expected in ((True, [("doubled", "down", "typed", 1)]), (False, [])):
            with self.subTest(is_behind):
                story = Story(clients=("alice@one", "bob@desk"), rooms=("reef",)).talk()
                one, two = story.logs["reef"][-2:]
                story.connect("bob@desk")
                if is_behind:
                    two = story.pass_on(Key("Ann-reef", "reef", 4))
                else:
                    # The one in front of it comes again and is acknowledged, which says nothing of this one.
                    one, two = two, one
                    story.show(two, "bob@desk")
                story.acknowledge("bob@desk")
                story.connect("bob@desk")
                story.show(one, "bob@desk")
                self.found(story, *expected)

    def test_a_pong_alone_proves_nothing(self):
        story = Story().talk()
        story.line("bob@desk", "<", "PING :relay.soak")
        story.line("bob@desk", ">", "PONG :relay.soak")
        story.connect("bob@desk")
        story.show(story.logs["reef"][-1], "bob@desk")
        self.assertEqual(self.found(story).tallies["typed", "down"]["re-sent"], 1)

    def test_a_pong_does_not_stand_for_lines_behind_the_ping(self):
        story = Story().talk()
        story.line("bob@desk", "<", "PING :relay.soak")
        entry = story.pass_on(Key("Ann-reef", "reef", 4))
        story.line("bob@desk", ">", "PONG :relay.soak")
        story.ping("bob@desk")
        story.connect("bob@desk")
        story.show(entry, "bob@desk")
        self.assertEqual(self.found(story).tallies["typed", "down"]["re-sent"], 1)

    def test_two_messages_that_change_places_are_reordered(self):
        story = Story(clients=("alice@one",), rooms=("reef",)).talk()
        entries = [story.log(Key("Ann-reef", "reef", number)) for number in (4, 5)]
        for late, entry in enumerate(reversed(entries)):
            story.show(entry, "alice@one", time=entries[1]["at"] + late)
        self.found(story, ("reordered", "down", "typed", 1))

    def test_what_was_told_to_come_late_may_stand_behind_what_is_newer(self):
        line = ":r NOTICE #reef :*** What was said cannot be fetched at the moment, so older messages may come late."
        for when, is_right in (("before", False), ("there", True), ("after", False)):
            with self.subTest(when):
                story = Story(clients=("bob@desk",), rooms=("reef",))
                if when == "before":
                    story.line("bob@desk", "<", line)
                older = story.log(Key("Ann-reef", "reef", 1))
                story.now += 1000
                if when == "there":
                    story.line("bob@desk", "<", line)
                newer = story.log(Key("Ann-reef", "reef", 2))
                story.show(newer, "bob@desk")
                story.show(older, "bob@desk", time=newer["at"] + 1)
                if when == "after":
                    story.line("bob@desk", "<", line)
                self.found(story, *([] if is_right else [("reordered", "down", "typed", 1)]))

    def test_what_stands_behind_a_row_may_be_older_than_what_stands_in_front_of_it(self):
        """Live, and in pages, where it may have been told live."""
        for order, wrong in (
                ((3, "row", 1, 2, 4), 0), ((3, "row", 1, "row", 2, 4), 0), ((3, 1, 2, 4), 1), ((3, 1, "row", 2, 4), 1),
                (("row", 3, 1, 2, 4), 1), ((3, "row", 1, 2, 5, 4), 1), ((3, 1, 2, "row", 4), 1)):
            for why in ("", "pages", "catch up", "look", "again"):
                with self.subTest(order=order, why=why):
                    client = "dora@web" if why in ("look", "catch up") else "bob@desk"
                    story = Story(clients=(client,), rooms=("reef",))
                    entries = {number: story.log(Key("Ann-reef", "reef", number)) for number in (1, 2, 3, 4, 5)}
                    lines = [what if what == "row" else entries[what] for what in order]
                    del story.logs["reef"][max(what for what in order if what != "row"):]
                    if why in ("", "again"):
                        for line in lines:
                            if line == "row":
                                story.line(client, "<", story.row("reef"))
                            else:
                                story.show(line, client)
                    if why:
                        story.page(client, "reef", lines if why != "again" else lines[-3:], why.replace("again", "look"))
                    found = story.account().of("reordered")
                    if why == "again":
                        found = [finding for finding in found if finding.direction == "down"]
                    self.assertEqual(len(found), wrong, found)

    def test_a_row_of_the_pages_at_the_end_excuses_nothing_that_came_live(self):
        story = Story(clients=("bob@desk",), rooms=("reef",))
        entries = [story.log(Key("Ann-reef", "reef", number)) for number in (1, 2)]
        for entry in reversed(entries):
            story.show(entry, "bob@desk")
        story.page("bob@desk", "reef", [entries[1], "row", entries[0]])
        self.assertEqual([finding.direction for finding in story.account().of("reordered")], ["down"])

    def test_a_row_excuses_no_loss(self):
        story = Story(clients=("bob@desk", "alice@one"), rooms=("reef",))
        entries = [story.log(Key("Ann-reef", "reef", number)) for number in (1, 2, 3)]
        row, at = story.row("reef"), story.now
        for client in story.records:
            story.show(entries[2], client)
            story.line(client, "<", row)
            story.show(entries[0], client, time=at + 1)
        story.show(entries[1], "alice@one", time=at + 2)
        self.found(story, ("lost", "down", "typed", 1))

    def test_what_came_late_came_to_a_guest_too_if_something_did_behind_it(self):
        for how in ("row", "word"):
            for is_behind in (False, True):
                with self.subTest(how=how, is_behind=is_behind):
                    story = Story(clients=("bob@desk", "alice@one", "eve@guest"), rooms=("reef",))
                    first, late = (story.log(Key("Ann-reef", "reef", number)) for number in (1, 2))
                    for client in story.records:
                        story.show(first, client)
                        if how == "word":
                            story.line(client, "<", ":r NOTICE #reef :*** It was not fetched, so older messages may come late.")
                    newer = story.log(Key("Ann-reef", "reef", 3))
                    for client in story.records:
                        story.show(newer, client)
                    row, at = story.row("reef"), story.now
                    behind = story.log(Key("Ann-reef", "reef", 4))
                    for client in ("bob@desk", "alice@one"):
                        if how == "row":
                            story.line(client, "<", row)
                        story.show(late, client, time=at + 1 if how == "row" else newer["at"] + 1)
                        story.show(behind, client)
                    if is_behind:
                        story.show(behind, "eve@guest")
                    self.found(story, *([("lost", "down", "typed", 1)] if is_behind else []))

    def test_what_somebody_had_been_shown_does_not_come_late_and_is_in_front_of_what_does(self):
        """One, two and three are logged before it is told, and one is shown to alice then."""
        line = ":r NOTICE #reef :*** What was said cannot be fetched at the moment, so older messages may come late."
        for order, wrong in (((1, 2, 3, 4), 0), ((1, 4, 3, 2), 0), ((4, 1, 2, 3), 1), ((2, 1, 3, 4), 1), ((2, 3, 1, 4), 2)):
            with self.subTest(order):
                story = Story(rooms=("reef",))
                entries = {number: story.log(Key("Ann-reef", "reef", number)) for number in (1, 2, 3)}
                story.show(entries[1], "alice@one")
                story.now += 10
                story.line("bob@desk", "<", line)
                entries[4] = story.log(Key("Ann-reef", "reef", 4))
                for number in order:
                    story.show(entries[number], "bob@desk")
                for number in (4, 3, 2):
                    story.show(entries[number], "alice@one")
                self.assertEqual(len(story.account().of("reordered")), wrong)

    def test_what_arrived_after_its_author_was_told_that_nobody_knows_stands_behind_what_was_said_meanwhile(self):
        doubt = ":r FAIL PRIVMSG CANNOT_DELIVER #reef :It is not known whether this was delivered, since the link was lost: %s"
        for is_told, wrong in ((True, 0), (False, 2)):
            with self.subTest(is_told):
                story = Story(rooms=("reef",)).talk()
                keys = [Key("alice@one", "reef", number) for number in (4, 5)]
                entries = []
                for key in keys:
                    story.say(key)
                    entries.append(story.log(key))
                if is_told:
                    story.line("alice@one", "<", doubt % key_text(keys[0]))
                for entry in reversed(entries):
                    for client in story.records:
                        story.show(entry, client, time=entries[1]["at"] + (entry is entries[0]))
                self.found(story, *([("reordered", "down", "typed", wrong)] if wrong else []))

    def test_people_upstream_keep_their_order_among_each_other(self):
        story = Story(clients=("alice@one",), rooms=("reef",))
        entries = [story.log(Key(who, "reef", 1)) for who in ("Ann-reef", "Ben-reef")]
        for late, entry in enumerate(reversed(entries)):
            story.show(entry, "alice@one", time=entries[1]["at"] + late)
        self.found(story, ("reordered", "down", "typed", 1))

    def test_clients_that_got_another_order_than_each_other_are_counted(self):
        story = Story(clients=("bob@desk", "alice@two"), rooms=("reef",))
        story.say(Key("bob@desk", "reef", 1))
        one, two = story.log(Key("bob@desk", "reef", 1)), story.log(Key("Ann-reef", "reef", 1))
        for client, entries in (("bob@desk", (one, two)), ("alice@two", (two, one))):
            for entry in entries:
                story.show(entry, client)
        self.assertEqual(self.found(story).tallies["typed", "down"]["other order"], 1)

    def test_a_wrong_nick_and_a_wrong_account_are_wrong_authors(self):
        story = Story(rooms=("reef",))
        story.pass_on(Key("Ann-reef", "reef", 1), nick="Ann-reef2")
        self.found(story, ("wrong author", "down", "typed", 2))
        story = Story(rooms=("reef",))
        story.pass_on(Key("alice@one", "reef", 1), account="bob")
        self.found(story, ("wrong author", "down", "typed", 2))
        story = Story(rooms=("reef",))
        story.pass_on(Key("alice@one", "reef", 1), account=None)
        self.found(story, ("wrong author", "down", "typed", 2))

    def test_what_a_backend_vouches_for_is_of_people_upstream_alone(self):
        for author, account, is_right in (
                ("Ann-reef", "ann@typed", True), ("Ann-reef", "ann", False), ("eve@guest", "eve@typed", False)):
            with self.subTest(author=author, account=account):
                story = Story(clients=("alice@one", "eve@guest"), rooms=("reef",))
                story.pass_on(Key(author, "reef", 1), account=account)
                self.found(story, *([] if is_right else [("wrong author", "down", "typed", 2)]))

    def test_a_time_that_is_not_the_backends_is_wrong(self):
        for room, wire in (("reef", "typed"), ("loft", "envelope"), ("dock", "swiftchat"), ("nave", "jwt-rooms")):
            for wrong in (-90_000, 90_000):
                with self.subTest(room=room, wrong=wrong):
                    story = Story(rooms=(room,))
                    entry = story.log(Key("Ann-" + room, room, 1))
                    for client in story.records:
                        story.show(entry, client, time=entry["at"] + wrong)
                    self.found(story, ("wrong time", "down", wire, 1))

    def test_a_time_is_the_backends_to_the_millisecond(self):
        for late, is_right in ((-1000, False), (-1, False), (0, True), (1, False), (2, False), (999, False)):
            with self.subTest(late):
                story = Story(rooms=("reef",))
                entry = story.log(Key("Ann-reef", "reef", 1), said_at=story.now - 5000)
                for client in story.records:
                    story.show(entry, client, time=entry["said_at"] + late)
                self.found(story, *([] if is_right else [("wrong time", "down", "typed", 1)]))

    def test_lines_of_one_second_stand_a_millisecond_apart(self):
        story = Story(rooms=("nave",))
        entries = [story.log(Key("Ann-nave", "nave", number), said_at=START) for number in range(1, 6)]
        for client in story.records:
            for number, entry in enumerate(entries):
                story.show(entry, client, time=START + number)
        self.found(story)
        story = Story(rooms=("nave",))
        entries = [story.log(Key("Ann-nave", "nave", number), said_at=START) for number in range(1, 6)]
        for client in story.records:
            for entry in entries:
                story.show(entry, client, time=START)
        self.found(story, ("wrong time", "down", "jwt-rooms", 8))

    def test_a_line_is_raised_behind_the_newest_one_by_a_minute_at_most(self):
        for behind, raised, wrong in (
                (30_000, True, 0), (30_000, False, 2), (59_999, True, 0), (60_001, False, 0), (60_500, True, 1)):
            with self.subTest(behind=behind, raised=raised):
                story = Story(rooms=("reef",))
                first = story.log(Key("Ann-reef", "reef", 1))
                second = story.log(Key("Ben-reef", "reef", 1), said_at=first["said_at"] - behind)
                for client in story.records:
                    story.show(first, client)
                    story.show(second, client, time=first["said_at"] + 1 if raised else second["said_at"])
                self.found(story, *([("wrong time", "down", "typed", wrong)] if wrong else []))

    def test_a_line_is_raised_behind_what_somebody_was_shown_and_nothing_else(self):
        for step, is_right in ((1, True), (2, True), (3, False), (500, False)):
            with self.subTest(step):
                story = Story(rooms=("reef",))
                first = story.log(Key("Ann-reef", "reef", 1))
                second = story.log(Key("Ben-reef", "reef", 1), said_at=first["said_at"] - 100)
                for client in story.records:
                    story.show(first, client)
                    story.show(second, client, time=first["said_at"] + step)
                self.found(story, *([] if is_right else [("wrong time", "down", "typed", 1)]))

    def test_a_line_may_be_raised_behind_a_gap(self):
        for before, is_right in ((499, True), (400, False)):
            with self.subTest(before):
                story = Story(rooms=("loft",))
                entry = story.log(Key("Ann-loft", "loft", 1))
                for client in story.records:
                    story.gap(client, "loft", entry["at"] - 1000, entry["at"] + before)
                    story.show(entry, client, time=entry["at"] + 500)
                self.found(story, *([] if is_right else [("wrong time", "down", "envelope", 1)]))

    def test_a_message_bears_one_time_for_all(self):
        story = Story(rooms=("reef",))
        entry = story.log(Key("Ann-reef", "reef", 1))
        for late, client in enumerate(story.records):
            story.show(entry, client, time=entry["at"] - late)
        self.found(story, ("wrong time", "down", "typed", 1))

    # MARK: - What died with the relay

    def forget(self, notices=(("bob@desk", -5000, False),), shown=0, dies=True, room="reef", **again):
        """Something is shown to all, and again by the next process, with another time. `notices`: what the relay says of its
        store, to whom, and when from then."""
        story = Story(rooms=(room,)).talk()
        story.now += 20_000
        entry = story.log(Key("Ann-" + room, room, 4))
        at = story.now
        lines = [(when, client, is_kept) for client, when, is_kept in notices]
        lines += [(shown, client, None) for client in story.records]
        for when, client, is_kept in sorted(lines, key=lambda one: one[0]):
            story.now = at + when
            if is_kept is None:
                story.line(client, "<", story.shown(entry, room))
            else:
                story.store(client, room, is_kept)
        story.now = at + 20_000
        deaths = [story.now] if dies else []
        for client in story.records:
            story.connect(client)
            story.show(entry, client, **{"time": entry["said_at"] - 1, **again})
        return story, deaths

    def test_what_a_relay_showed_after_it_said_that_nothing_is_kept_bears_another_time_when_it_died(self):
        two = [("wrong time", "down", "typed", 1)]
        for name, expected, arguments in (
                ("said", [], {}),
                ("said in another room", [], {"notices": (("alice@one", -5000, False),)}),
                ("said a moment later", [], {"notices": (("bob@desk", 190, False),)}),
                ("said with two reasons", [], {"notices": (("bob@desk", -100, False), ("bob@desk", 5000, False))}),
                ("never said", two, {"notices": ()}),
                ("said too late", two, {"notices": (("bob@desk", 210, False),)}),
                ("did not die", two, {"dies": False}),
                ("was kept again", two, {"notices": (("bob@desk", -100, False), ("alice@one", 5000, True))}),
                ("was kept before", two, {"notices": (("bob@desk", -9000, False), ("alice@one", -5000, True))}),
                ("and was not once more", [], {
                    "notices": (("bob@desk", -9000, False), ("alice@one", -5000, True), ("bob@desk", -10, False))}),
                ("another text", [("wrong text", "down", "typed", 2)], {"text": "Ann-reef:reef:4 wor"}),
                ("another msgid", [("doubled", "down", "typed", 2)], {"msgid": "another"})):
            with self.subTest(name):
                story, deaths = self.forget(**arguments)
                self.found(story, *expected, deaths=deaths)

    def test_what_is_shown_anew_is_of_when_the_clock_said_that_it_was_learnt_anew(self):
        """It bears min(told, now), and the next process has another now. It was said 20 s before the relay died, and is shown
        anew 1 s behind that."""
        day = 86_400_000
        behind = [(20_500, -day)]
        for name, time, clock, is_right, arguments in (
                ("behind", 20_800 - day, behind, True, {}),
                ("what was kept after all", 0, behind, True, {}),
                ("before the relay died", 10_000 - day, behind, False, {}),
                ("after it was shown", 30_000 - day, behind, False, {}),
                ("later than it was said", 20_800, behind, False, {}),
                ("by something else", 20_800 - day - 3_600_000, behind, False, {}),
                ("as the other process lived", 15_000 - day, [(10_000, -day), (19_000, 0)], False, {}),
                ("as the other process lived, now", 20_800 - day, [(10_000, -day), (19_000, 0)], False, {}),
                ("afterwards", 20_800 - day, [(40_000, -day)], False, {}),
                ("never said", 20_800 - day, behind, False, {"notices": ()}),
                ("did not die", 20_800 - day, behind, False, {"dies": False})):
            with self.subTest(name):
                at = self.forget()[0].logs["reef"][-1]["at"]
                story, deaths = self.forget(time=at + time, **arguments)
                result = story.account([(at + when, offset) for when, offset in clock], deaths=deaths)
                self.assertEqual(bool(result.of("wrong time")), not is_right, result.findings)
                self.assertEqual(len(result.findings), len(result.of("wrong time")))

    def test_what_is_shown_first_is_not_of_when_it_was_learnt_anew(self):
        for is_late, expected in ((True, []), (False, [("wrong time", "down", "typed", 1)])):
            with self.subTest(is_late):
                at, day = self.forget()[0].logs["reef"][-1]["at"], 86_400_000
                story, deaths = self.forget(time=at + 20_800 - day)
                if not is_late:
                    for record in story.records.values():
                        for line in record:
                            line["l"] = line["l"].replace("time=" + stamp(at), "time=" + stamp(at + 20_800 - day))
                self.found(story, *expected, clock=[(at + 20_500, -day)], deaths=deaths)

    def test_what_a_relay_says_is_of_its_own_life_alone(self):
        """The next process stands before a full disk as well, and says nothing."""
        story = Story(rooms=("reef",)).talk()
        story.store("bob@desk", "reef", False)
        deaths = []
        entry = None
        for late in (0, 1):
            story.now += 1000
            deaths.append(story.now)
            for client in story.records:
                story.connect(client)
            entry = entry or story.log(Key("Ann-reef", "reef", 4))
            for client in story.records:
                story.show(entry, client, time=entry["said_at"] - late)
        self.found(story, ("wrong time", "down", "typed", 1), deaths=deaths)

    def test_what_was_shown_before_anything_failed_is_not_forgotten(self):
        for is_old in (True, False):
            with self.subTest(is_old):
                story = Story(rooms=("reef",)).talk()
                entry = story.logs["reef"][-1] if is_old else story.log(Key("Ann-reef", "reef", 4))
                story.now += 5000
                story.store("bob@desk", "reef", False)
                if is_old:
                    # It was sent again meanwhile, or stood in a page.
                    story.page("bob@desk", "reef", [entry], why="catch up")
                else:
                    for client in story.records:
                        story.show(entry, client)
                story.now += 5000
                died = story.now
                for client in story.records:
                    story.connect(client)
                    story.show(entry, client, time=entry["said_at"] - 2)
                self.found(story, *([("wrong time", "down", "typed", 1)] if is_old else []), deaths=[died])

    def test_what_was_shown_just_before_a_kill_may_not_be_on_disk(self):
        for moment, is_right in ((20, True), (500, False)):
            with self.subTest(moment):
                story = Story(rooms=("reef",)).talk()
                story.now += 5000
                entry = story.log(Key("Ann-reef", "reef", 4))
                for client in story.records:
                    story.show(entry, client)
                died = story.now = story.now + moment
                for client in story.records:
                    story.connect(client)
                    story.show(entry, client, time=entry["said_at"] - 2)
                self.found(story, *([] if is_right else [("wrong time", "down", "typed", 1)]), deaths=[died])

    def test_a_guest_is_shown_once_more_what_the_relay_forgot(self):
        for is_told, times, is_right in ((True, 1, True), (True, 2, False), (False, 1, False)):
            with self.subTest(is_told=is_told, times=times):
                story = Story(clients=("bob@desk", "eve@guest"), rooms=("reef",))
                story.pass_on(Key("Ann-reef", "reef", 1))
                if is_told:
                    story.store("bob@desk", "reef", False)
                entry = story.pass_on(Key("Ann-reef", "reef", 2))
                died = story.now = story.now + 100
                for client in story.records:
                    story.connect(client)
                for _ in range(times):
                    story.show(entry, "eve@guest")
                self.found(story, *([] if is_right else [("doubled", "down", "typed", 1)]), deaths=[died])

    def test_a_guest_that_comes_between_two_lines_is_shown_both_in_order_by_the_next_relay(self):
        wrong = [("reordered", "down", "typed", 1), ("wrong time", "down", "typed", 1)]
        for is_told, is_shown_again, expected in ((True, True, []), (True, False, []), (False, False, wrong)):
            with self.subTest(is_told=is_told, is_shown_again=is_shown_again):
                story = Story(clients=("bob@desk", "eve@guest"), rooms=("reef",))
                story.pass_on(Key("Ann-reef", "reef", 1))
                if is_told:
                    story.store("bob@desk", "reef", False)
                missed, live = (story.log(Key("Ann-reef", "reef", number)) for number in (2, 3))
                story.show(missed, "bob@desk")
                for client in story.records:
                    story.show(live, client)
                died = story.now = story.now + 100
                for client in story.records:
                    story.connect(client)
                story.show(missed, "eve@guest")
                if is_shown_again:
                    story.show(live, "eve@guest")
                self.found(story, *expected, deaths=[died])

    def test_a_link_that_stalls_brings_late_what_the_relay_had_said(self):
        """Nobody else is there; all comes when the relay is dead."""
        for said, is_right in ((-19_000, True), (0, True), (5000, False)):
            with self.subTest(said):
                story = Story(clients=("bob@desk", "alice@one"), rooms=("reef",)).talk()
                story.now += 20_000
                entry, at = story.log(Key("Ann-reef", "reef", 4)), story.now
                story.line("alice@one", "<", story.shown(entry, "reef"))
                died = story.now = at + 6000
                story.now += 3000
                story.store("bob@desk", "reef", False, said=at + said)
                story.line("bob@desk", "<", story.shown(entry, "reef"))
                for client in story.records:
                    story.connect(client)
                    story.show(entry, client, time=entry["said_at"] - 1)
                self.found(story, *([] if is_right else [("wrong time", "down", "typed", 1)]), deaths=[died])

    def test_a_new_life_has_one_time_again(self):
        story, deaths = self.forget()
        story.connect("bob@desk")
        story.show(story.logs["reef"][-1], "bob@desk", time=story.logs["reef"][-1]["said_at"] - 2)
        self.found(story, ("wrong time", "down", "typed", 1), deaths=deaths)

    def test_what_was_forgotten_raises_no_line_of_the_next_process_and_each_of_its_own(self):
        for is_before, expected in ((False, []), (True, [("wrong time", "down", "typed", 2)])):
            with self.subTest(is_before):
                story = Story(rooms=("reef",)).talk()
                one, two = (story.log(Key("Ann-reef", "reef", number)) for number in (4, 5))
                story.now += 5000
                story.store("bob@desk", "reef", False)
                for client in story.records:
                    story.show(dict(one, said_at=two["said_at"] + 3), client)
                    if is_before:
                        story.show(two, client)
                one["said_at"] = two["said_at"] + 3
                died = story.now = story.now + 1000
                for client in story.records:
                    story.connect(client)
                    if not is_before:
                        story.show(two, client)
                self.found(story, *expected, deaths=[died])

    def test_an_answer_that_the_relay_could_not_keep_died_with_it(self):
        """Shown long before, acknowledged while nothing was kept."""
        for when, is_right in (("before", False), ("in it", True), ("it lived", False)):
            with self.subTest(when):
                story = Story(clients=("bob@desk",), rooms=("reef",))
                entry = story.pass_on(Key("Ann-reef", "reef", 1))
                story.now += 5000
                if when == "before":
                    story.acknowledge("bob@desk")
                story.now += 5000
                story.store("bob@desk", "reef", False)
                story.acknowledge("bob@desk")
                died = story.now = story.now + 5000
                story.connect("bob@desk")
                story.show(entry, "bob@desk")
                self.found(
                    story, *([] if is_right else [("doubled", "down", "typed", 1)]),
                    deaths=[] if when == "it lived" else [died])

    def test_questions_about_what_was_forgotten_may_be_refused_until_it_is_shown_anew(self):
        for when, expected in (("before", 1), ("unknown", 0), ("anew", 1), ("another", 1)):
            with self.subTest(when):
                story = Story(rooms=("reef",)).talk()
                entry = story.log(Key("Ann-reef", "reef", 4))
                msgid = "m" + (entry if when != "another" else story.logs["reef"][0])["id"].replace(" ", "")
                refusal = "MESSAGE_ERROR AFTER #reef %s :No such message" % msgid
                story.store("bob@desk", "reef", False)
                for client in story.records:
                    story.show(entry, client)
                if when == "before":
                    story.page("bob@desk", "reef", [], why="catch up", refusal=refusal)
                died = story.now = story.now + 1000
                story.connect("bob@desk")
                if when == "anew":
                    story.show(entry, "bob@desk")
                    story.now += 10
                if when != "before":
                    story.page("bob@desk", "reef", [], why="catch up", refusal=refusal)
                self.found(story, *([("lost", "pages", "typed", 1)] * expected), deaths=[died])

    def test_the_newest_lines_may_lack_what_was_forgotten_until_it_is_shown_anew_or_in_a_gap(self):
        for room, wire, when, expected in (
                ("reef", "typed", "unknown", 0), ("reef", "typed", "anew", 1), ("loft", "envelope", "unknown", 1),
                ("loft", "envelope", "gap", 0)):
            with self.subTest(room=room, when=when):
                story = Story(rooms=(room,)).talk()
                entry = story.log(Key("Ann-" + room, room, 4))
                story.store("bob@desk", room, False)
                for client in story.records:
                    story.show(entry, client)
                died = story.now = story.now + 1000
                story.connect("bob@desk")
                if when == "anew":
                    story.show(entry, "bob@desk")
                    story.now += 10
                story.page(
                    "bob@desk", room, story.logs[room][:-1], why="look",
                    gaps=[(entry["at"] - 10, entry["at"] + 10)] if when == "gap" else ())
                self.found(story, *([("lost", "pages", wire, 1)] * expected), deaths=[died])

    def test_the_newest_lines_are_those_behind_where_they_were_shown_anew(self):
        """Two lines were forgotten, and 19 are behind them: a page holds one of the two, and it must be the second."""
        one, two = Key("Ann-reef", "reef", 4), Key("alice@one", "reef", 4)
        for anew, held, expected in (
                ((one, two), two, 0), ((one, two), one, 1), ((two, one), one, 0), ((two, one), two, 1)):
            with self.subTest(anew=anew, held=held):
                story = Story(rooms=("reef",)).talk()
                story.store("bob@desk", "reef", False)
                entries = {one: story.pass_on(one), two: story.pass_on(two)}
                died = story.now = story.now + 1000
                for client in story.records:
                    story.connect(client)
                if anew[1] == one:
                    entries[one] = dict(entries[one], said_at=entries[two]["said_at"] + 1)
                for key in anew:
                    for client in story.records:
                        story.show(entries[key], client)
                rest = [story.pass_on(Key("Ann-reef", "reef", number)) for number in range(5, 24)]
                story.page("bob@desk", "reef", [entries[held], *rest], why="look")
                self.found(story, *([("lost", "pages", "typed", 1)] * expected), deaths=[died])

    def test_what_claims_to_be_later_than_the_clock_is_of_then(self):
        for offset, late, is_right in (
                (-45_000, -45_000, True), (-45_000, 0, True), (-45_000, -60_000, False), (0, -45_000, False)):
            with self.subTest(offset=offset, late=late):
                story = Story(rooms=("dock",))
                entry = story.log(Key("Ann-dock", "dock", 1))
                for client in story.records:
                    story.show(entry, client, time=entry["at"] + late)
                self.found(
                    story, *([] if is_right else [("wrong time", "down", "swiftchat", 1)]),
                    clock=[(entry["at"] - 5000, offset)])

    def test_where_the_time_is_the_relays_own_it_is_what_its_clock_showed(self):
        story = Story(rooms=("dock",))
        entry = story.pass_on(Key("alice@one", "dock", 1), time=START + 3_603_500)
        self.found(story, ("wrong time", "down", "swiftchat", 1))
        self.found(story, clock=[(entry["at"] - 5000, 3_600_000)])

    def test_a_relay_that_stood_still_may_have_looked_at_its_clock_before(self):
        for stops, time, is_right in (
                ([], START, False), ([(START, START + 60_000)], START, True),
                # It did not look while it stood, and not long before, nor was it another time.
                ([(START, START + 60_000)], START + 20_000, False), ([(START, START + 60_000)], START - 1000, False),
                ([(START, START + 40_000)], START, False)):
            with self.subTest(stops=stops, time=time):
                story = Story(rooms=("dock",))
                story.now = START + 50_000
                story.pass_on(Key("alice@one", "dock", 1), time=time)
                self.found(story, *([] if is_right else [("wrong time", "down", "swiftchat", 1)]), stops=stops)

    def test_a_text_that_was_cut_is_found(self):
        story = Story(rooms=("reef",))
        story.pass_on(Key("Ann-reef", "reef", 1), text="Ann-reef:reef:1 wor")
        self.found(story, ("wrong text", "down", "typed", 2))

    def test_an_answer_does_not_vouch_for_an_earlier_connection(self):
        for is_same in (True, False):
            with self.subTest(is_same):
                story = Story(clients=("bob@desk",), rooms=("reef",))
                entry = story.pass_on(Key("Ann-reef", "reef", 1))
                if is_same:
                    story.acknowledge("bob@desk")
                story.connect("bob@desk")
                story.acknowledge("bob@desk")
                story.show(entry, "bob@desk")
                self.found(story, *([("doubled", "down", "typed", 1)] if is_same else []))

    def test_a_client_without_times_gets_minutes_in_front(self):
        for minutes in ("[12:03] ", "[11-21 12:03] "):
            with self.subTest(minutes):
                story = Story(clients=("alice@two",), rooms=("reef",))
                entry = story.log(Key("Ann-reef", "reef", 1))
                story.line("alice@two", "<", ":Ann-reef!u@h PRIVMSG #reef :" + minutes + entry["text"])
                self.found(story)
        story = Story(clients=("bob@desk",), rooms=("reef",))
        story.pass_on(Key("Ann-reef", "reef", 1), text="[12:03] Ann-reef:reef:1 words")
        self.found(story, ("wrong text", "down", "typed", 1))

    # MARK: - One account that speaks for all

    def test_what_an_account_says_for_others_is_theirs(self):
        for room, wire in (("nave", "jwt-rooms"), ("vault", "directus")):
            with self.subTest(room):
                self.found(Story(rooms=(room,)).talk())
                story = Story(rooms=(room,)).talk()
                story.logs[room][-1]["text"] = story.logs[room][-1]["text"].replace("<alice>", "<bob>")
                self.found(
                    story, ("wrong text", "up", wire, 1), ("wrong author", "up", wire, 1), ("wrong author", "down", wire, 2))

    def test_a_nick_may_stand_in_a_column(self):
        story = Story(rooms=("attic",))
        key = Key("alice@one", "attic", 1)
        story.say(key)
        entry = story.log(key, alias="alice")
        for client in story.records:
            story.show(entry, client, room="attic")
        self.found(story)
        entry["alias"] = "bob"
        self.found(story, ("wrong author", "up", "directus", 1), ("wrong author", "down", "directus", 2))

    def test_the_account_on_another_device_is_a_person_of_its_own(self):
        story = Story(rooms=("nave",))
        story.pass_on(Key("Own-nave", "nave", 1))
        self.found(story)
        story.pass_on(Key("Own-nave", "nave", 2), nick="alice")
        self.found(story, ("wrong author", "down", "jwt-rooms", 2))

    def test_an_own_line_that_comes_back_as_the_accounts_is_found(self):
        story = Story(rooms=("nave",))
        entry = story.pass_on(Key("alice@one", "nave", 1))
        story.show(entry, "bob@desk", msgid="another", nick="ferry", text=entry["text"], account=None)
        self.found(
            story, ("doubled", "down", "jwt-rooms", 1), ("wrong text", "down", "jwt-rooms", 1),
            ("wrong author", "down", "jwt-rooms", 2))

    # MARK: - Guests

    def guest(self):
        story = Story(clients=("alice@one", "eve@guest"), rooms=("reef", "loft"))
        return story.talk(1, 2)

    def test_a_guest_gets_all_while_it_is_there(self):
        story = self.guest()
        story.pass_on(Key("Ann-reef", "reef", 3), skip=("eve@guest",))
        story.connect("eve@guest")
        story.talk(4, 5)
        self.found(story)
        for room, wire in (("reef", "typed"), ("loft", "envelope")):
            with self.subTest(room):
                story = self.guest()
                story.pass_on(Key("Ann-" + room, room, 3), skip=("eve@guest",))
                story.talk(4, 5)
                self.found(story, ("lost", "down", wire, 1))

    def test_a_guest_gets_all_that_an_irc_user_says_between_its_first_and_its_last_line(self):
        for missed, is_right in ((3, False), (2, True), (4, True)):
            with self.subTest(missed):
                story = Story(clients=("alice@one", "eve@guest"), rooms=("reef",))
                for number in (2, 3, 4):
                    story.pass_on(Key("alice@one", "reef", number), skip=("eve@guest",) if number == missed else ())
                self.found(story, *([] if is_right else [("lost", "down", "typed", 1)]))

    def test_a_gap_is_told_to_guests_as_well(self):
        story = self.guest()
        begin = story.now
        story.pass_on(Key("Ann-loft", "loft", 3), skip=("eve@guest",))
        story.gap("eve@guest", "loft", begin, story.now)
        story.talk(4, 5)
        self.found(story)

    def test_a_guest_gets_nothing_twice_on_whichever_connection(self):
        story = self.guest()
        story.connect("eve@guest")
        story.show(story.logs["reef"][0], "eve@guest", room="reef")
        story.talk(3, 3)
        self.assertEqual(len(story.account().of("doubled")), 1)

    def test_what_a_guest_says_is_there_or_it_is_told_as_long_as_it_stays(self):
        for stays, expected in ((True, [("lost", "up", "typed", 1)]), (False, [])):
            with self.subTest(stays):
                story = self.guest()
                story.say(Key("eve@guest", "reef", 1))
                if not stays:
                    story.connect("eve@guest")
                story.now += 60_000
                story.ping("eve@guest")
                self.found(story, *expected)
        story = self.guest()
        story.say(Key("eve@guest", "reef", 1))
        story.now += 60_000
        story.line("eve@guest", "<", ":r FAIL PRIVMSG CANNOT_DELIVER #reef :Not delivered: eve@guest:reef:1 words")
        self.found(story)

    # MARK: - Pages

    def test_pages_that_have_everything_have_no_findings(self):
        story = Story().talk()
        for room in story.logs:
            story.page("bob@desk", room, story.logs[room])
        result = self.found(story)
        self.assertEqual(result.tallies["typed", "pages"]["read"], 1)
        self.assertEqual(result.tallies["typed", "pages"]["delivered"], 6)

    def test_a_room_that_was_begun_is_read_to_its_beginning(self):
        story = Story(rooms=("reef",)).talk()
        story.page("bob@desk", "reef", story.logs["reef"])
        story.records["bob@desk"].pop()
        self.found(story, ("lost", "pages", "typed", 1))
        # Over another connection it was.
        story.connect("bob@desk")
        story.page("bob@desk", "reef", story.logs["reef"])
        self.found(story)

    def test_what_is_in_no_page_is_lost_unless_a_gap_was_told(self):
        for room, wire in (("reef", "typed"), ("loft", "envelope")):
            for is_told in (False, True):
                with self.subTest(room=room, is_told=is_told):
                    story = Story().talk()
                    begin = story.now
                    story.pass_on(Key("Ann-" + room, room, 4), skip=story.records)
                    gaps = [(begin, story.now)] if is_told else []
                    if is_told:
                        for client in story.records:
                            story.gap(client, room, begin, story.now)
                    story.talk(5, 5)
                    rest = [entry for entry in story.logs[room] if ":4 " not in entry["text"]]
                    story.page("bob@desk", room, rest, gaps=gaps)
                    if is_told and wire == "envelope":
                        self.found(story)
                    else:
                        self.found(story, ("lost", "down", wire, 2), ("lost", "pages", wire, 1))

    def test_a_page_has_a_message_once_and_as_it_was_shown(self):
        story = Story().talk()
        story.page("bob@desk", "reef", story.logs["reef"] + story.logs["reef"][-1:])
        self.found(story, ("doubled", "pages", "typed", 1), ("reordered", "pages", "typed", 1))
        story = Story().talk()
        story.page("bob@desk", "reef", story.logs["reef"][:1], why="look", msgid="another")
        result = story.account()
        self.assertEqual([finding.kind for finding in result.findings if "another" in finding.what], ["doubled"])

    def test_a_page_in_another_order_with_another_author_or_text_is_found(self):
        log = Story(rooms=("reef",)).talk().logs["reef"]
        story = Story(rooms=("reef",)).talk()
        log = story.logs["reef"]
        story.page("bob@desk", "reef", log[:2] + [log[4], log[3], log[2], log[5]])
        self.assertIn("reordered", {finding.kind for finding in story.account().findings})
        for changes, kind in (({"nick": "mallory"}, "wrong author"), ({"text": "Ann-reef:reef:1 wor"}, "wrong text")):
            story = Story(rooms=("reef",))
            story.pass_on(Key("Ann-reef", "reef", 1))
            story.page("bob@desk", "reef", story.logs["reef"], **changes)
            self.found(story, (kind, "pages", "typed", 1))

    def test_the_newest_lines_have_what_was_shown_before(self):
        story = Story(rooms=("reef",)).talk()
        story.page("bob@desk", "reef", story.logs["reef"], why="look")
        self.found(story)
        story = Story(rooms=("reef",)).talk()
        story.page("bob@desk", "reef", [], why="look")
        self.found(story, ("lost", "pages", "typed", 6))
        story = Story(rooms=("reef",)).talk()
        story.page("bob@desk", "reef", story.logs["reef"][:-1], why="look")
        self.found(story, ("lost", "pages", "typed", 1))
        # Only as many as were asked for.
        story = Story(rooms=("reef",)).talk(1, 20)
        story.page("bob@desk", "reef", story.logs["reef"][-20:], why="look")
        self.found(story)

    def test_a_question_about_what_was_shown_is_never_refused(self):
        story = Story(rooms=("reef",)).talk()
        story.page("bob@desk", "reef", [], why="look", refusal="MESSAGE_ERROR AFTER #reef :no such message")
        self.found(story, ("lost", "pages", "typed", 1))

    def test_a_client_that_asks_has_what_came_by_itself_and_what_it_fetched(self):
        for is_fetched in (True, False):
            with self.subTest(is_fetched):
                story = Story(clients=("dora@web",), rooms=("reef",))
                story.pass_on(Key("Ann-reef", "reef", 1))
                missed = story.pass_on(Key("Ann-reef", "reef", 2), skip=("dora@web",))
                story.connect("dora@web")
                story.page("dora@web", "reef", [missed] if is_fetched else [], why="catch up", words="AFTER")
                story.pass_on(Key("Ann-reef", "reef", 3))
                self.found(story, *([] if is_fetched else [("lost", "down", "typed", 1)]))

    def test_the_pages_of_the_end_are_no_excuse(self):
        story = Story(clients=("dora@web",), rooms=("reef",))
        missed = story.pass_on(Key("Ann-reef", "reef", 1), skip=("dora@web",))
        story.page("dora@web", "reef", [missed])
        self.found(story, ("lost", "down", "typed", 1))


class PassingRoomTests(unittest.TestCase):
    """Rooms that come and go with the configuration."""

    found = AccountantTests.found

    def story(self):
        story = Story(rooms=("cove",))
        for client in story.records:
            self.move(story, client, "JOIN")
        return story.talk()

    def move(self, story, client, command):
        story.line(client, "<", ":%s!u@h %s #cove" % (nick_of(client), command))

    def test_a_stay_in_which_all_is_well(self):
        self.found(self.story())

    def test_what_the_relay_turned_away_is_not_lost(self):
        for number, wrong in (("403", 0), ("404", 0), ("442", 0), ("471", 1)):
            with self.subTest(number):
                story = self.story()
                story.say(Key("alice@one", "cove", 4), is_accepted=False)
                story.line("alice@one", "<", ":relay.soak %s alice #cove :No" % number)
                story.line("alice@one", "<", ":relay.soak PONG relay.soak :%d" % story.tokens)
                self.found(story, *[("lost", "up", "typed", 1)] * wrong)

    def test_what_was_said_while_nobody_was_there_is_not_missing(self):
        story = self.story()
        for client in story.records:
            self.move(story, client, "PART")
        story.log(Key("Ann-cove", "cove", 4))
        for client in story.records:
            self.move(story, client, "JOIN")
        story.pass_on(Key("Ann-cove", "cove", 5))
        self.found(story)

    def test_a_hole_in_a_stay_is_a_loss(self):
        story = self.story()
        story.log(Key("Ann-cove", "cove", 4))
        story.pass_on(Key("Ann-cove", "cove", 5))
        self.found(story, ("lost", "down", "typed", 2))

    def test_nothing_comes_twice_in_a_stay_or_in_two_over_one_connection(self):
        for is_another in (False, True):
            with self.subTest(is_another=is_another):
                story = self.story()
                entry = story.pass_on(Key("Ann-cove", "cove", 4))
                if is_another:
                    self.move(story, "bob@desk", "PART")
                    self.move(story, "bob@desk", "JOIN")
                story.show(entry, "bob@desk")
                self.found(story, ("doubled", "down", "typed", 1))

    def test_who_was_parted_gets_nothing_but_the_echo_of_what_it_said_before(self):
        story = self.story()
        key = Key("alice@one", "cove", 4)
        story.say(key)
        for client in story.records:
            self.move(story, client, "PART")
        entry = story.log(key)
        story.show(entry, "alice@one")
        self.found(story)
        story.show(entry, "bob@desk")
        self.found(story, ("wrong text", "down", "typed", 1))

    def test_the_order_of_a_stay(self):
        story = self.story()
        entries = [story.log(Key("Ann-cove", "cove", number)) for number in (4, 5)]
        for client in story.records:
            for entry in entries[::-1]:
                story.show(entry, client)
        self.found(story, ("reordered", "down", "typed", 2))


class RestTests(unittest.TestCase):
    def test_misplaced_is_as_few_as_must_be_moved(self):
        for numbers, expected in (
            ([], []), ([1, 2, 3], []), ([2, 1], 1), ([1, 3, 2, 4], 1), ([5, 1, 2, 3, 4], [0]), ([1, 2, 3, 4, 0], [4]),
        ):
            with self.subTest(numbers):
                found = misplaced(numbers)
                self.assertEqual(len(found) if isinstance(expected, int) else found, expected)

    def test_keys_are_found_and_not_taken_for_longer_ones(self):
        key = Key("alice@one", "reef", 7)
        self.assertEqual(read_key(key_text(key) + " and so on"), key)
        self.assertEqual(find_keys("Not delivered, because: alice@one:reef:7…"), [key])
        self.assertNotIn(key, find_keys("alice@one:reef:77 words"))
        self.assertIsNone(read_key("said alice@one:reef:7"))

    def test_a_seed_deals_the_same_faults_again_and_every_script_in_two_minutes(self):
        dealt = faults.schedule(7, 120)
        self.assertEqual(dealt, faults.schedule(7, 120))
        self.assertNotEqual(dealt, faults.schedule(8, 120))
        for seed in range(20):
            for seconds in (120, 300, 1200):
                dealt, scripts = faults.schedule(seed, seconds)
                self.assertEqual({name for _, name in scripts}, set(faults.SCRIPTS))
                self.assertEqual(dealt, sorted(dealt))
                # The relay is killed, and then left alone.
                kills = [fault.at for fault in dealt if fault.kind == "kill relay"]
                self.assertTrue(kills and max(kills) < faults.WATCHED_FROM * seconds, (seed, seconds))
            self.assertGreaterEqual(len(faults.schedule(seed, 1200)[0]), 600)
            kinds = {fault.kind for fault in faults.schedule(seed, 1200)[0]}
            self.assertEqual(kinds - {"say"}, {kind for _, some in faults.TRACKS.values() for kind in some})

    def test_faults_lie_over_each_other(self):
        dealt, _ = faults.schedule(3, 1200)
        lasting = [fault for fault in dealt if fault.length > 1]
        pairs = {
            frozenset((one.track, other.track)) for one in lasting for other in lasting
            if one is not other and one.track != other.track and one.at < other.at < one.at + one.length
        }
        self.assertGreaterEqual(len(pairs), 15, pairs)

    def test_a_run_is_read_from_its_files(self):
        story = Story(rooms=("reef",)).talk()
        with tempfile.TemporaryDirectory() as directory:
            for name in ("logs", "records"):
                os.mkdir(os.path.join(directory, name))
            with open(os.path.join(directory, "plan.json"), "w", encoding="utf-8") as file:
                json.dump({"max_age": 20, **plan.described()}, file)
            for name, entries in (("logs/reef.log", story.logs["reef"]), *(
                    ("records/" + client.replace("@", "."), record) for client, record in story.records.items()), (
                    "clock.jsonl", [{"t": 1, "offset": 2}]), ("relay.jsonl", [
                        {"t": 3, "what": "stopped"}, {"t": 4, "what": "continued"}, {"t": 5, "what": "stopped"}])):
                journal = Journal(os.path.join(directory, name))
                for entry in entries:
                    journal.append(**entry)
            run = accountant.load(directory)
        self.assertEqual(run.clock, [(1, 2)])
        self.assertEqual(run.stops, [(3, 4), (5, float("inf"))])
        result = account(run)
        self.assertEqual(result.findings, [])
        self.assertEqual(result.tallies["typed", "down"]["delivered"], 12)


class MemoryTests(unittest.TestCase):
    def kept(self, lives, files=10, more=(), messages=0):
        """What is broken. `more` are sockets beside those that stay: (whereto, how many, seconds from, to) of the quiet end.
        So many messages came every two seconds."""
        with tempfile.TemporaryDirectory() as directory:
            logs = os.path.join(directory, "logs")
            os.mkdir(logs)
            with open(os.path.join(logs, "reef.log"), "w", encoding="utf-8") as log:
                for n in range(len(lives[-1]) * messages):
                    log.write(json.dumps({"at": 2000 * (n // messages)}) + "\n")
            return self.judged(directory, logs, lives, files, more)

    def judged(self, directory, logs, lives, files, more):
        kept = memory.Memory(os.path.join(directory, "samples"), {}, logs)
        stay, inode = {}, 0
        for whereto, count in memory.explained().items():
            stay[whereto] = list(range(inode, inode + count))
            inode += count

        def sample(pid, age, rss, held, files=10, **flags):
            count = sum(map(len, held.values()))
            kept.samples.append({
                "t": 1000 * age, "pid": pid, "age": age, "rss": rss, "sockets": count, "fds": count + files, "held": held, **flags})

        for pid, life in enumerate(lives):
            for n, rss in enumerate(life):
                sample(pid, 2.0 * n, rss, stay)
        pid, begin, rss = pid, 2.0 * len(lives[-1]), lives[-1][-1]
        for seconds in range(0, memory.REST + 1, 2):
            held = {whereto: list(inodes) for whereto, inodes in stay.items()}
            for which, (whereto, count, first, last) in enumerate(more):
                if first <= seconds < last:
                    held.setdefault(whereto, []).extend(1000 * (which + 1) + n for n in range(count))
            sample(pid, begin + seconds, rss, held, files, quiet=True, **(
                {"final": True} if seconds + 2 > memory.REST else {}))
        return [by for _, by in kept.promises()]

    def test_memory_that_stays_is_well_and_memory_that_grows_is_not(self):
        flat = [60_000] * 60
        self.assertEqual(self.kept([flat]), [[], []])
        # A warm-up, a step within bounds, and a leak.
        self.assertEqual(self.kept([[20_000] * 15 + [60_000] * 45])[0], [])
        self.assertEqual(self.kept([[60_000] * 30 + [75_000] * 30])[0], [])
        self.assertEqual(len(self.kept([[60_000 + 1000 * n for n in range(60)]])[0]), 1)
        # One and a half KiB for each message that came between the middles of the quarters, and no more.
        long = [60_000 + 100 * n for n in range(400)]
        self.assertEqual(len(self.kept([long])[0]), 1)
        self.assertEqual(len(self.kept([long], messages=60)[0]), 1)
        self.assertEqual(self.kept([long], messages=75)[0], [])
        # The longest life counts, and a short one says nothing.
        self.assertEqual(self.kept([[60_000 + 1000 * n for n in range(19)], flat])[0], [])

    def test_descriptors_that_are_not_given_back_are_found(self):
        flat = [60_000] * 60
        self.assertEqual(len(self.kept([flat], files=20)[1]), 1)
        self.assertEqual(self.kept([flat], files=13)[1], [])

    def test_a_socket_that_stays_is_found_wherever_it_leads(self):
        flat = [60_000] * 60
        self.assertEqual(memory.explained(), {
            "listeners": 4, "admin": 1, "clients": 10, **dict.fromkeys(memory.WIRES, 3), "directus": 2, "home": 2,
            "shapes": 4, "mirrors": 5, "network": 1, "tools": 2})
        for whereto in (*memory.WIRES, "clients", "listeners", "unknown"):
            broken = self.kept([flat], more=[(whereto, 1, 0, 99)])[1]
            self.assertIn("%s: " % whereto, "\n".join(broken))
            self.assertIn("for all of the last 32 s", "\n".join(broken))

    def test_there_are_as_many_sockets_for_calls_as_the_renewals_of_the_logins_need(self):
        flat = [60_000] * 60
        most = {"jwt-rooms": 2, "directus": 4, "custom": 2}
        for whereto in (*memory.WIRES, "clients", "listeners", "unknown"):
            may = most.get(whereto, 0)
            # As many as may be, all the time, but never the same ones for longer than they are kept.
            turns = [(whereto, may, begin, begin + 15) for begin in range(0, 33, 15)]
            self.assertEqual(self.kept([flat], more=turns)[1], [], whereto)
            # One more, for a moment.
            self.assertEqual(len(self.kept([flat], more=turns + [(whereto, 1, 28, 30)])[1]), 1, whereto)
            # What the pages needed is over after a while.
            self.assertEqual(self.kept([flat], more=turns + [(whereto, 4, 0, 16)])[1], [], whereto)

    def test_who_was_not_watched_in_peace_says_nothing_of_sockets(self):
        with mock.patch.object(memory, "REST", 20):
            self.assertIn("was watched for only 20 s", self.kept([[60_000] * 60])[1][0])

    def test_sockets_are_told_apart_by_where_they_lead(self):
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as far:
            wires = {far.getsockname()[1]: "typed"}
            # In this process both ends of a connection are ours.
            before = memory.look(os.getpid(), wires)
            with socket.create_connection(far.getsockname()) as link, socket.socket() as loose:
                after = memory.look(os.getpid(), wires)
                new = {
                    name: set(inodes) - set(before["held"].get(name, ())) for name, inodes in after["held"].items()}
                self.assertEqual(new, {
                    "listeners": set(), "typed": {os.fstat(link.fileno()).st_ino},
                    "unknown": {os.fstat(loose.fileno()).st_ino}})
                self.assertEqual(after["sockets"] - before["sockets"], 2)
                with far.accept()[0] as near:
                    self.assertIn(os.fstat(near.fileno()).st_ino, memory.look(os.getpid(), wires)["held"]["clients"])
            self.assertLessEqual(
                {os.fstat(one.fileno()).st_ino for one in (listener, far)}, set(before["held"]["listeners"]))


class StartTests(unittest.TestCase):
    def test_clients_come_when_every_room_has_had_its_link(self):
        """A question for what was said is refused in a room that never had one."""
        class Started(Exception):
            pass

        run = soak.Soak.__new__(soak.Soak)
        run.relay_words, run.relay_log, run.linked = collections.deque(), io.StringIO(), set()
        run.backend_ports, run.relay_ports = dict.fromkeys(soak.WIRES, 1), []
        run.build, run.fronts = mock.AsyncMock(), []
        run.upstream, run.relay, run.reloading, run.mirrors = (mock.MagicMock() for _ in range(4))
        run.backends = {}
        run.clients = {"alice@one": mock.Mock(start=mock.Mock(side_effect=Started))}
        words = iter([
            {"event": "listening", "address": "127.0.0.1:6667"}, {"event": "listening", "address": "127.0.0.1:6697"},
            {"event": "listening", "address": "127.0.0.1:6680"}, *({"event": "upstream-up", "room": name} for name in EVERY_ROOM),
            {"event": "upstream-lost", "room": "reef"}])

        async def until(condition, _, what):
            while not condition():
                run.relay_said(json.dumps(next(words), separators=(",", ":")))

        run.until = until
        with self.assertRaises(Started):
            asyncio.run(run.run())
        self.assertEqual(next(words)["event"], "upstream-lost")


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=0)
    count, bad = program.result.testsRun, len(program.result.failures) + len(program.result.errors)
    # Subtests fail one by one and count as one test.
    print("%d of %d accountant checks hold" % (max(0, count - bad), count))
    sys.exit(1 if bad else 0)
