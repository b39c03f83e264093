"""The accountant is held to account: a run in which all is well has no findings, and each planted fault is found."""

import os
import sys
import unittest

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import accountant  # noqa: E402
import faults  # noqa: E402
from accountant import account, misplaced  # noqa: E402
from plan import CLIENTS, ROOMS, Key, account_of, find_keys, key_text, read_key  # noqa: E402

# A moment in 2026, in milliseconds; the n-th thing of a story happens n seconds later.
START = 1_795_000_000_000


def stamp(milliseconds):
    return accountant.datetime.datetime.fromtimestamp(
        milliseconds / 1000, accountant.datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + (
        "%03dZ" % (milliseconds % 1000))


class Story:
    """A run as it should be, told line by line: what the backend logs and what each client records."""

    def __init__(self, clients=("alice@one", "bob@desk"), rooms=("reef", "loft", "dock")):
        self.now = START
        self.logs = {room: [] for room in rooms}
        self.records = {client: [] for client in clients}
        self.connections = dict.fromkeys(clients, 0)
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
            self.line(client, "<", ":relay.soak 366 %s #%s :End" % (account_of(client), room))
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
        sender = account_of(key.author) if "@" in key.author else key.author
        has_own_time = ROOMS[key.room].name != "swiftchat" and "@" in key.author
        entry = {
            "id": "%s %d" % (key_text(key), len(self.logs[key.room])), "sender": sender, "sender_id": "id of " + sender,
            "text": key_text(key) + " words", "at": self.now, "sent_at": self.now - 1000 if has_own_time else None,
        }
        entry.update(changes)
        self.logs[key.room].append(entry)
        return entry

    def show(self, entry, client, **changes):
        """A line of the relay's to a client."""
        self.now += 10
        key = read_key(entry["text"])
        fields = {
            "time": entry["sent_at"] or entry["at"], "msgid": "m" + entry["id"].replace(" ", ""),
            "account": account_of(key.author) if "@" in key.author else None, "nick": entry["sender"],
            "text": entry["text"], **changes,
        }
        tags = "time=%s;msgid=%s" % (stamp(fields["time"]), fields["msgid"])
        if fields["account"]:
            tags += ";account=" + fields["account"]
        self.line(client, "<", "@%s :%s!u@h PRIVMSG #%s :%s" % (tags, fields["nick"], key.room, fields["text"]))

    def pass_on(self, key, skip=(), **changes):
        """From IRC or upstream, logged and shown to everybody."""
        if "@" in key.author:
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

    def account(self, phases=(), full=()):
        return account(self.logs, self.records, phases, full)


class AccountantTests(unittest.TestCase):
    def found(self, story, *expected, phases=(), full=()):
        """Exactly these kinds were found: (kind, direction, wire, how often)."""
        result = story.account(phases, full)
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

    def test_another_client_of_the_account_may_be_told(self):
        story = Story(clients=("alice@one", "alice@two"), rooms=("loft",))
        key = Key("alice@one", "loft", 1)
        story.say(key)
        story.line("alice@two", "<", ":r NOTICE alice :Not delivered, it waited too long: %s" % key_text(key))
        self.found(story)

    def test_a_promise_to_send_later_is_no_refusal(self):
        for line in (
            ":r NOTE PRIVMSG QUEUED #loft :Your message is kept and goes when the link is back: %s words",
            ":r NOTE PRIVMSG DELIVERED_LATE #loft :It arrived after all: %s words",
            ":r NOTICE alice :Your message has not been confirmed yet: %s words",
        ):
            with self.subTest(line):
                story = Story().talk()
                key = Key("alice@one", "loft", 4)
                story.say(key)
                story.line("alice@one", "<", line % key_text(key))
                self.found(story, ("lost", "up", "envelope", 1))

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
        self.found(story, phases=[(entry["at"] - 5000, entry["at"], -3_600_000)])

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
        sentence = "*** What was said between 12:03:10 and 12:03:55 UTC (45 s) is missing: there is no history."
        for room, wire in (("reef", "typed"), ("loft", "envelope"), ("dock", "swiftchat")):
            for tag in ("", "@chatbridge/gap=%s,%s "):
                with self.subTest(room=room, tag=tag):
                    story = Story().talk()
                    begin = story.now
                    story.pass_on(Key("Ann-" + room, room, 4), skip=("bob@desk",))
                    said = tag % (stamp(begin), stamp(story.now + 1000)) if tag else ""
                    story.line("bob@desk", "<", "%s:r NOTICE #%s :%s" % (said, room, sentence))
                    story.talk(5, 6)
                    if wire == "typed":
                        self.found(story, ("lost", "down", "typed", 1))
                    else:
                        self.assertEqual(self.found(story).tallies[wire, "down"]["in gaps"], 1)

    def test_a_gap_covers_nothing_on_either_side_of_it_nor_another_room_or_client(self):
        line = ":r NOTICE #%s :What was said between 1 and 2 is missing"
        for client, room, when in (
            ("bob@desk", "loft", "before"), ("bob@desk", "loft", "after"), ("bob@desk", "dock", "there"),
            ("alice@one", "loft", "there"),
        ):
            with self.subTest(client=client, room=room, when=when):
                story = Story().talk()
                if when == "before":
                    story.line(client, "<", line % room)
                    story.talk(4, 4)
                story.pass_on(Key("Ann-loft", "loft", 5), skip=("bob@desk",))
                if when == "there":
                    story.line(client, "<", line % room)
                story.talk(6, 6)
                if when == "after":
                    story.line(client, "<", line % room)
                    story.talk(7, 7)
                self.found(story, ("lost", "down", "envelope", 1))

    def test_what_irc_users_say_may_stand_behind_the_gap_in_which_it_went_up(self):
        story = Story().talk()
        own = Key("alice@one", "loft", 4)
        story.say(own)
        entry = story.log(own)
        story.pass_on(Key("Ann-loft", "loft", 4), skip=("bob@desk",))
        story.line("bob@desk", "<", ":r NOTICE #loft :What was said between 1 and 2 is missing")
        # The relay hears only now that it arrived.
        for client in story.records:
            story.show(entry, client)
        story.talk(5, 6)
        self.assertEqual(self.found(story).tallies["envelope", "down"]["in gaps"], 1)

    def test_a_gap_that_is_told_with_other_times_is_wrong(self):
        story = Story().talk()
        story.pass_on(Key("Ann-loft", "loft", 4), skip=("bob@desk",))
        at = story.now
        gap = "@chatbridge/gap=%s,%s :r NOTICE #loft :What was said between 1 and 2 is missing"
        story.line("bob@desk", "<", gap % (stamp(at - 90_000), stamp(at - 60_000)))
        story.talk(5, 6)
        self.found(story, ("wrong time", "down", "envelope", 1))
        self.found(story, phases=[(at - 5000, at, 60_000)])

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

    def test_what_was_known_while_the_disk_was_full_is_forgiven_when_it_comes_again(self):
        for begin, end, expected in (
            (0, float("inf"), []), (0, 1, [("doubled", "down", "typed", 1)]),
        ):
            with self.subTest(end):
                story = Story().talk()
                story.acknowledge("bob@desk")
                story.connect("bob@desk")
                story.show(story.logs["reef"][-1], "bob@desk")
                self.found(story, *expected, full=[[begin, end]])

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
        for entry in reversed(entries):
            story.show(entry, "alice@one")
        self.found(story, ("reordered", "down", "typed", 1))

    def test_people_upstream_keep_their_order_among_each_other(self):
        story = Story(clients=("alice@one",), rooms=("reef",))
        entries = [story.log(Key(who, "reef", 1)) for who in ("Ann-reef", "Ben-reef")]
        for entry in reversed(entries):
            story.show(entry, "alice@one")
        self.found(story, ("reordered", "down", "typed", 1))

    def test_clients_that_got_another_order_than_each_other_are_counted(self):
        story = Story(rooms=("reef",))
        keys = Key("alice@one", "reef", 1), Key("bob@desk", "reef", 1)
        one, two = (story.say(key) or story.log(key) for key in keys)
        for client, entries in (("alice@one", (one, two)), ("bob@desk", (two, one))):
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

    def test_a_time_that_is_not_the_backends_is_wrong(self):
        for room, wire in (("reef", "typed"), ("loft", "envelope"), ("dock", "swiftchat")):
            with self.subTest(room):
                story = Story(rooms=(room,))
                story.pass_on(Key("Ann-" + room, room, 1), time=START)
                self.found(story, ("wrong time", "down", wire, 2))

    def test_a_time_is_the_backends_but_for_rounding(self):
        for late, wrong in ((-3, 2), (-2, 0), (0, 0), (2, 0), (3, 2), (999, 2)):
            with self.subTest(late):
                story = Story(rooms=("reef",))
                entry = story.log(Key("Ann-reef", "reef", 1))
                for client in story.records:
                    story.show(entry, client, time=entry["at"] + late)
                self.found(story, *([("wrong time", "down", "typed", wrong)] if wrong else []))

    def test_a_line_may_be_late_where_another_is_right_before_it(self):
        for before, late, wrong in (
                (499, 500, 0), (498, 500, 0), (497, 500, 2), (500, 500, 2), (501, 500, 2), (998, 999, 0), (999, 1000, 2)):
            with self.subTest("%d before %d" % (before, late)):
                story = Story(rooms=("reef",))
                entry = story.log(Key("Ann-reef", "reef", 1))
                other = story.log(Key("Ann-reef", "reef", 2), at=entry["at"] + before)
                for client in story.records:
                    story.show(entry, client, time=entry["at"] + late)
                    story.show(other, client)
                self.found(story, *([("wrong time", "down", "typed", wrong)] if wrong else []))

    def test_a_line_may_be_late_behind_a_gap(self):
        for before, wrong in ((499, 0), (400, 2)):
            with self.subTest(before):
                story = Story(rooms=("loft",))
                entry = story.log(Key("Ann-loft", "loft", 1))
                for client in story.records:
                    told = stamp(entry["at"] - 1000) + "," + stamp(entry["at"] + before)
                    story.line(
                        client, "<",
                        "@chatbridge/gap=%s :relay.soak NOTICE #loft :*** What was said between 12:00:00 and 12:00:01 UTC "
                        "(1 s) is missing: the backend keeps no history." % told)
                    story.show(entry, client, time=entry["at"] + 500)
                self.found(story, *([("wrong time", "down", "envelope", wrong)] if wrong else []))

    def test_a_line_does_not_excuse_itself(self):
        story = Story(rooms=("reef",))
        entry = story.log(Key("Ann-reef", "reef", 1))
        for late, client in enumerate(story.records, 499):
            story.show(entry, client, time=entry["at"] + late)
        self.found(story, ("wrong time", "down", "typed", 2))

    def test_where_the_time_is_the_relays_own_its_clock_excuses_it(self):
        story = Story(rooms=("dock",))
        entry = story.pass_on(Key("alice@one", "dock", 1), time=START + 3_600_000)
        self.found(story, ("wrong time", "down", "swiftchat", 2))
        self.found(story, phases=[(entry["at"] - 5000, entry["at"], 3_600_000)])

    def test_a_time_of_the_backends_is_right_whatever_the_relays_clock_says(self):
        story = Story(rooms=("dock",))
        entry = story.pass_on(Key("Ann-dock", "dock", 1), time=START - 5000)
        self.found(story, ("wrong time", "down", "swiftchat", 2), phases=[(entry["at"] - 5000, entry["at"], -45_000)])

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
        self.found(story, ("lost", "down", "typed", 1))


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

    def test_a_seed_deals_the_same_faults_again_and_all_kinds_in_two_minutes(self):
        dealt = faults.schedule(7, 120)
        self.assertEqual(dealt, faults.schedule(7, 120))
        self.assertNotEqual(dealt, faults.schedule(8, 120))
        self.assertGreaterEqual(len({fault.kind for fault in faults.schedule(7, 130)}), len(faults.DECK) - 1)
        for seed in range(20):
            self.assertGreaterEqual(len(faults.schedule(seed, 1200)), 240)

    def test_every_client_knows_its_capabilities(self):
        for client in CLIENTS.values():
            self.assertIn("sasl", client.caps)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=0)
    count, bad = program.result.testsRun, len(program.result.failures) + len(program.result.errors)
    # Subtests fail one by one and count as one test.
    print("%d of %d accountant checks hold" % (max(0, count - bad), count))
    sys.exit(1 if bad else 0)
