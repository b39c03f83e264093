"""What is on a screen is read as it stands there, and each promise is found broken where a recording of a screen is changed."""

import asyncio
import os
import random
import sys
import unittest
from unittest import mock

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
import accountant  # noqa: E402
from page import BAD, CLOSED, Ended, Page  # noqa: E402
from people import UNREADABLE, Recorder, Transcript, judge_ends, judge_reads, judge_stay  # noqa: E402
from plan import CLIENTS, PEOPLE, Key, find_keys, nick_of  # noqa: E402
from proxy import Connection  # noqa: E402
from relay import BINARY, CLOSE, PING, PONG, FrameReader, frame  # noqa: E402
from test_accountant import Story  # noqa: E402

HAL, IVY, JOE = "hal@keys", "ivy@lines", "joe@pipe"
MARK = bytes([255, 253, 6])


class Seat(Recorder):
    """Notes into a story, and answers to no connection."""

    def __init__(self, story, name):
        self.story, self.name, self.answers_sent = story, name, b""
        super().__init__(CLIENTS[name].via, nick_of(name), CLIENTS[name].rooms, story.connections[name])

    def note(self, direction, line):
        self.story.line(self.name, direction, line)

    def send_bytes(self, data):
        self.answers_sent += data


class Screens(Story):
    """A run in which people sit at terminals beside a client of IRC. What they are shown are bytes, cut anywhere."""

    def __init__(self, *people, rooms=("reef",)):
        self.seats, self.moments = {}, {}
        self.source = random.Random(7)
        super().__init__(clients=("alice@one", *people), rooms=rooms)

    def connect(self, client):
        if client not in PEOPLE:
            super().connect(client)
            return
        self.now += 1000
        self.connections[client] += 1
        self.seats[client], self.moments[client] = Seat(self, client), ""
        self.bytes(client, b"Your name: \r\n" + "Hello, {0}.\r\n".format(nick_of(client)).encode())
        for room in [*reversed([room for room in CLIENTS[client].rooms if room in self.logs])]:
            self.print(client, "── #%s ──" % room)
        self.ping(client)

    def bytes(self, client, data):
        while data:
            end = self.source.randint(1, 30)
            self.seats[client].take(data[:end])
            data = data[end:]

    def print(self, client, line, moment=""):
        """As a screen of keys has it: above the row about the moment and the line that is being typed."""
        if CLIENTS[client].via != "character":
            self.bytes(client, (line + "\r\n").encode())
            return
        up, self.moments[client] = "\x1b[A" if self.moments[client] else "", moment
        self.bytes(client, ("\r%s\x1b[J\x1b[2m%s\x1b[0m\r\n%s#reef> half a line\x1b[K" % (
            up, line, "\x1b[2m%s\x1b[0m\r\n" % moment if moment else "")).encode())

    def ping(self, client, is_answered=True):
        if client not in PEOPLE:
            super().ping(client, is_answered)
            return
        self.tokens += 1
        self.line(client, ">", "PING :%d" % self.tokens)
        self.seats[client].transcript.questions.append(str(self.tokens))
        if is_answered:
            self.print(client, "In #reef: Ann-reef, alice, %s, zoe" % nick_of(client), "✓✓ read by Ann-reef")

    def acknowledge(self, client):
        self.bytes(client, MARK)
        self.ping(client)

    def show(self, entry, client, **changes):
        if client not in PEOPLE:
            super().show(entry, client, **changes)
            return
        self.now += 10
        key, text, nick = accountant.key_of(entry, find_keys(entry["text"])[0].room)
        if key.author == client and "echo-message" not in CLIENTS[client].caps or key.room not in CLIENTS[client].rooms:
            return
        room = "" if key.room == self.seats[client].transcript.front else "#%s " % key.room
        self.print(client, "12:01 %s<%s> %s" % (room, changes.get("nick", nick), changes.get("text", text)), "… zoe is typing")


class TranscriptTests(unittest.TestCase):
    def test_each_form_of_a_line(self):
        for line, told in (
            ("── #reef ──", [":relay.soak 366 hal #reef :End of /NAMES list"]),
            ("12:01 <Remy> the soup > is <ready>", [":Remy!screen@relay.soak PRIVMSG #reef :the soup > is <ready>"]),
            ("12:01 #loft <Remy> hi", [":Remy!screen@relay.soak PRIVMSG #loft :hi"]),
            ("In #reef: Remy, hal, joe", [":relay.soak PONG relay.soak :1.7"]),
            ("In #reef: Remy, halo", [":relay.soak NOTICE #reef :In #reef: Remy, halo"]),
            ("Not sent: \"hal@keys:reef:4\": too late", [":relay.soak NOTICE hal :Not sent: \"hal@keys:reef:4\": too late"]),
            ("* What was said between", [":relay.soak NOTICE #reef :*** What was said between"]),
            ("#loft * What was said between", [":relay.soak NOTICE #loft :*** What was said between"]),
            ("12:01 #loft <relay.soak> (notice) *** What was said", [":relay.soak NOTICE #loft :*** What was said"]),
            ("12:01 <hal> hal@keys:reef:3 before", []), ("  #reef  7 people", []),
            ("12:01 <hal> hal@keys:reef:4 now", [":hal!screen@relay.soak PRIVMSG #reef :hal@keys:reef:4 now"]),
            ("#lobby: not a room of this one", [":relay.soak NOTICE #reef :#lobby: not a room of this one"]),
            ("✓✓ read by Remy   … Linguini is typing", []), ("new: #loft 3", []), ("", []), ("#reef> /who", []),
        ):
            with self.subTest(line):
                transcript = Transcript("hal", ("reef", "loft"), {"reef": 4, "loft": 1})
                transcript.front, transcript.questions = "reef", ["1.7"]
                self.assertEqual(list(transcript.heard(line)), told)

    def test_a_room_is_entered_once_a_connection(self):
        transcript = Transcript("hal", ("reef", "loft"))
        lines = [told for room in ("reef", "loft", "reef") for told in transcript.heard("── #%s ──" % room)]
        self.assertEqual((len(lines), transcript.front), (2, "reef"))

    def test_wherever_the_bytes_are_cut_the_lines_are_the_same(self):
        for kind in PEOPLE:
            with self.subTest(kind):
                def lines(seed):
                    story = Screens(kind, rooms=CLIENTS[kind].rooms[:1])
                    story.source.seed(seed)
                    story.talk()
                    return [entry["l"] for entry in story.records[kind]]
                whole = lines(0)
                self.assertEqual(sum(" PRIVMSG " in line for line in whole), 6)
                for seed in range(1, 30):
                    self.assertEqual(lines(seed), whole)

    def test_a_mark_is_answered_behind_the_lines_before_it(self):
        for kind, is_answered in ((HAL, True), (IVY, True), (JOE, False)):
            with self.subTest(kind):
                story = Screens(kind)
                story.show(story.log(Key("Ann-reef", "reef", 1)), kind) if kind != IVY else None
                before = len(story.records[kind])
                story.bytes(kind, MARK) if kind != JOE else None
                self.assertEqual(
                    [entry["d"] for entry in story.records[kind][before:]], ["<", ">"] if is_answered else [])
                self.assertEqual(story.seats[kind].answers_sent.endswith(bytes([255, 251, 6])), is_answered)


class AccountTests(unittest.TestCase):
    """The accountant's promises, by what is on a screen."""

    def found(self, story, *expected):
        result = story.account()
        counted = {}
        for finding in result.findings:
            counted[finding.kind, finding.direction, finding.who] = counted.get(
                (finding.kind, finding.direction, finding.who), 0) + 1
        self.assertEqual(counted, {one[:3]: one[3] for one in expected}, result.findings)

    def story(self, who, room=None):
        room = room or CLIENTS[who].rooms[0]
        return Screens(who, rooms=(room,)).talk(), room

    def test_what_is_well(self):
        for who in PEOPLE:
            for room in CLIENTS[who].rooms:
                with self.subTest(who=who, room=room):
                    story, _ = self.story(who, room)
                    story.pass_on(Key(who, room, 1))
                    story.acknowledge(who) if who != JOE else None
                    story.pass_on(Key("Ann-" + room, room, 4))
                    self.found(story)

    def test_a_line_that_is_not_on_the_screen_is_lost(self):
        for who in PEOPLE:
            with self.subTest(who):
                story, room = self.story(who)
                story.pass_on(Key("Ann-" + room, room, 4), skip=(who,))
                story.pass_on(Key("Ann-" + room, room, 5))
                self.found(story, ("lost", "down", who, 1))

    def test_whoever_returns_is_shown_what_was_missed(self):
        for who, is_lost in ((HAL, True), (IVY, True), (JOE, False)):
            with self.subTest(who):
                story, room = self.story(who)
                entry = story.pass_on(Key("Ann-" + room, room, 4), skip=(who,))
                story.connect(who)
                self.found(story, *[("lost", "down", who, 1)] * is_lost)
                if is_lost:
                    story.show(entry, who)
                    self.found(story)

    def test_a_line_that_is_there_twice_is_doubled(self):
        for who in PEOPLE:
            with self.subTest(who):
                story, room = self.story(who)
                story.show(story.pass_on(Key("Ann-" + room, room, 4)), who)
                self.found(story, ("doubled", "down", who, 1))

    def test_over_another_connection_it_may_come_again_until_a_mark_was_answered(self):
        for who, is_marked, expected in ((HAL, False, 0), (HAL, True, 1), (IVY, False, 0), (IVY, True, 1), (JOE, False, 1)):
            with self.subTest(who=who, is_marked=is_marked):
                story, room = self.story(who)
                entry = story.pass_on(Key("Ann-" + room, room, 4))
                if is_marked:
                    story.acknowledge(who)
                story.connect(who)
                story.show(entry, who)
                self.found(story, *[("doubled", "down", who, 1)] * expected)

    def test_lines_in_another_order_are_found(self):
        for who in PEOPLE:
            with self.subTest(who):
                story, room = self.story(who)
                entries = [story.pass_on(Key("Ann-" + room, room, number), skip=(who,)) for number in (4, 5)]
                for entry in reversed(entries):
                    story.show(entry, who)
                self.found(story, ("reordered", "down", who, 1))

    def test_another_name_or_text_is_found(self):
        for who in PEOPLE:
            for kind, changes in (("wrong author", {"nick": "zoe"}), ("wrong text", {"text": "Ann-%s:%s:4 other"})):
                with self.subTest(who=who, kind=kind):
                    story, room = self.story(who)
                    entry = story.pass_on(Key("Ann-" + room, room, 4), skip=(who,))
                    changes = {name: value % (room, room) if "%" in value else value for name, value in changes.items()}
                    story.show(entry, who, **changes)
                    self.assertIn((kind, who), {(one.kind, one.who) for one in story.account().findings})

    def test_what_was_typed_is_there_once_or_its_author_was_told(self):
        for who in PEOPLE:
            with self.subTest(who):
                story, room = self.story(who)
                key = Key(who, room, 1)
                story.say(key)
                # A guest that left would not be told any more.
                story.now += 40_000
                story.ping(who)
                self.found(story, ("lost", "up", who, 1))
                story.print(who, "Not sent: \"%s:%s:1 wor…\": it waited too long" % (who, room))
                self.found(story)
                # And then it was not so.
                entry = story.log(key)
                for client in story.records:
                    story.show(entry, client)
                self.found(story, ("told wrongly", "up", who, 1))

    def test_what_was_typed_and_not_answered_may_be_gone(self):
        for who in PEOPLE:
            with self.subTest(who):
                story, room = self.story(who)
                story.say(Key(who, room, 1), is_accepted=False)
                self.found(story)

    def test_what_was_typed_is_there_twice(self):
        for who in PEOPLE:
            with self.subTest(who):
                story, room = self.story(who)
                story.pass_on(Key(who, room, 1))
                story.log(Key(who, room, 1))
                self.assertIn(("doubled", "up", who), {one[:1] + one[2:3] + one[4:5] for one in story.account().findings})

    def test_by_lines_nobody_is_shown_their_own(self):
        for who, room in ((IVY, "kelp"), (JOE, "reef")):
            with self.subTest(who):
                story, _ = self.story(who)
                story.pass_on(Key(who, room, 1))
                story.print(who, "12:01 <%s> %s:%s:1 words" % (nick_of(who), who, room))
                self.found(story, ("doubled", "down", who, 1))


class JudgeTests(unittest.TestCase):
    def test_receipts(self):
        keys = [Key("Ann-reef", "reef", number) for number in range(10)]
        order = {key: place for place, key in enumerate(keys)}

        def at(*numbers):
            return [(number * 1000, keys[number]) for number in numbers]

        never = float("inf")
        for who, shown, read, silence, word in (
            (HAL, at(1, 2), (1, 2), 500, None), (HAL, at(1, 2), (2,), 500, None), (HAL, at(1, 2), (), never, None),
            (HAL, at(1, 2), (1,), 2500, None), (HAL, at(1, 9), (1,), 500, None),
            (HAL, at(1, 2), (1,), 1500, "no receipt for Ann-reef:reef:2"),
            (JOE, at(1, 2), (), 500, "no receipt for Ann-reef:reef:1"),
            (HAL, at(1), (1, 2), 500, "a receipt for Ann-reef:reef:2, which was never shown"), (JOE, at(1), (1, 2), 500, None),
        ):
            with self.subTest(who=who, shown=shown, read=read, silence=silence):
                reads = [keys[number] for number in read]
                found = list(judge_reads(who, shown, reads, order, (silence, 8000)))
                self.assertEqual(len(found), word is not None, found)
                self.assertIn(word or "", "".join(found))

    def test_who_is_there_in_the_end(self):
        record = [{"t": 5000, "d": "<", "l": ":relay.soak PONG relay.soak :1"}, {"t": 90_000, "d": ">", "l": "PING :2"}]
        for end, count in ((5000, 0), (14_000, 0), (16_000, 1)):
            self.assertEqual(len(list(judge_stay(HAL, record, end))), count)
        self.assertEqual(len(list(judge_stay(HAL, [], 20_000))), 1)

    def test_what_cannot_be_shown(self):
        for words, count in (
            ("nothing came for 8 s", 0), (CLOSED + "1012 restart", 0), (BAD + "opcode 2", 1), (UNREADABLE + "ESC [ 5 ~", 1)):
            record = [{"c": 1, "d": "<", "l": words}, {"c": 1, "d": "!", "l": words}]
            self.assertEqual(len(list(judge_ends("dora", record))), count)


class PageTests(unittest.TestCase):
    def read(self, data):
        async def run():
            reader, written = asyncio.StreamReader(), []
            reader.feed_data(data)
            reader.feed_eof()
            page = Page(reader, mock.Mock(write=written.append))
            lines = []
            try:
                while line := await page.readline():
                    lines.append(line)
            except Ended as error:
                lines.append(str(error))
            return lines, b"".join(written)
        return asyncio.run(run())

    def test_a_line_in_each_text_frame(self):
        self.assertEqual(self.read(frame(":s 001 dora :ü") + frame("PING :1"))[0], [":s 001 dora :ü\n".encode(), b"PING :1\n"])

    def test_a_ping_is_answered(self):
        lines, written = self.read(frame(b"x", PING) + frame("PING :1"))
        self.assertEqual((lines, FrameReader().feed(written)), ([b"PING :1\n"], [(PONG, b"x")]))

    def test_what_a_page_cannot_read_is_said(self):
        for data in (frame("PING :1", BINARY), frame("PING :1\r\n"), frame(b"\xff\xfe"), frame("PING :1", 0)):
            with self.subTest(data):
                lines, _ = self.read(data)
                self.assertTrue(str(lines[-1]).startswith(BAD), lines)

    def test_the_relay_says_good_bye(self):
        lines, _ = self.read(frame((1012).to_bytes(2, "big") + b"restart", CLOSE))
        self.assertEqual(lines, [CLOSED + "1012 restart"])


class ProxyTests(unittest.TestCase):
    def test_people_are_known_by_the_name_that_they_give(self):
        for head, who in (
            (b"\xff\xfb\x18hal\r\x00", HAL), (b"\nivy\r\n", IVY), (b"\njoe\n", JOE), (b"\njoey\n", None),
            (b"CAP LS 302\r\nNICK halo\r\n", None),
        ):
            near = mock.Mock()
            one = Connection(mock.Mock(side="clients", who=None), near, mock.Mock())
            for byte in head:
                one._follow(near, bytes([byte]))
            self.assertEqual(one.who, who)


if __name__ == "__main__":
    unittest.main()
