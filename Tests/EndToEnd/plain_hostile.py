"""Invalid input in plain mode: the sender is answered or dropped, others are not affected, and nobody's terminal obeys others."""

import random
import re
import select
import time

from hostile import round_trip
from marks import alone, slow
from peer import PATIENCE, envelope, new_id, wait_until
from plain_screen import (
    AYT, DO, DONT, ECHO, IAC, IP, KINDS, LINEMODE, NAWS, NOP, SB, SE, SGA, TTYPE, WILL, WONT, open_session, seat, sit, watch_room,
    watcher,
)
from world import scenario

# What terminals obey: colours, the screen's end, a title, a question that the terminal answers, a reset, controls of eight bits.
ORDERS = (
    "\x1b[31mred\x1b[0m", "\x1b[2J\x1b[H", "\x1b]0;owned\x07", "\x1b]52;c;ZWNobw==\x07", "\x1b[6n", "\x1b[c", "\x1bc",
    "\x1b[?1049h", "\x9b31m", "\x9d0;owned\x9c", "\x90q\x9c", "\x1bP+q\x1b\\", "\x07\x07", "\x08\x08\x08over", "\x0b\x0c", "\x0e\x0f",
    "\x7f", "\x00nul", "\r12:00 <Linguini> forged", "\x1b", "\x1b[", "\x85next",
)


def unharmed(world, ann, remy, text="unharmed"):
    """A round trip of an IRC user, and the message seen by somebody in plain mode."""
    round_trip(world.healthy, remy, text)
    if ann is not None:
        ann.see_message("Remy", "re: " + text)


def start(world, **options):
    world.start(**options)
    world.healthy = world.irc("healthy")
    return sit(world, "sane"), world.person("Remy")


def drains(person, seconds=0.0):
    """Sent bytes may have ended the session; that is no failure."""
    try:
        return person.pump(seconds)
    except OSError:
        person.closed = True
        return False


def send(person, data, obey=True, patience=PATIENCE):
    """Reads meanwhile, so that neither side waits for the other; what comes is thrown away unless `obey`. False where the bridge
    has closed the connection, or takes no more."""
    rest, end = memoryview(data), time.monotonic() + patience
    while rest:
        person.sock.setblocking(False)
        readable, writable, _ = select.select([person.sock], [person.sock], [], 0.1)
        try:
            if readable:
                got = person.sock.recv(1 << 18)
                if not got:
                    raise ConnectionResetError
                if obey:
                    person.raw += got
                    person._feed(got)
                    person.sock.setblocking(False)
            if writable:
                rest = rest[person.sock.send(rest[:65536]) :]
                end = time.monotonic() + patience
        except BlockingIOError:
            pass
        except OSError:
            person.closed = True
            return False
        if time.monotonic() > end:
            return False
    return True


def expect_of(remy, nick, text):
    remy.expect(
        "%r of %s" % (text, nick), lambda f: f["event"] == "message" and f["body"] == text and f["sender_name"] == nick)


def sub(option, data):
    return bytes([IAC, SB, option]) + data + bytes([IAC, SE])


# MARK: - From others, to the terminal


@scenario
def orders_in_bodies_do_not_reach_the_terminal(world):
    """The screen of the tests fails at each of them. In character mode nothing of them is left but words."""
    world.start()
    remy = world.person("Remy")
    people = [sit(world, "ann%d" % number, kind=kind, ttype="dumb") for number, kind in enumerate(KINDS)]
    for number, order in enumerate(ORDERS):
        remy.say("a%sb %d" % (order, number))
        remy.say("%s" % order)
    remy.say("end")
    for person in people:
        person.see_message("Remy", "end")
        assert not person.screen.colours and not person.screen.bells, "obeyed: %r" % person.screen.colours
        assert not re.search(r"^12:00 <Linguini>", person.screen.text(), re.M), "a forged row:\n" + person.screen.text()
        raw = person.raw.decode("utf-8", "replace")
        for order in ("\x1b]", "\x1bP", "\x1bc", "\x1b[6n", "\x1b[2J", "\x9b", "\x9d", "\x85"):
            assert order not in raw, "%r in %s" % (order, person.kind)
        if person.kind == "nc":
            assert "\x1b" not in raw and "\b" not in raw, person.kind


@scenario
def orders_in_names_do_not_reach_the_terminal(world):
    world.start()
    remy = world.person("Remy")
    people = [sit(world, "ann%d" % number, kind=kind, ttype="dumb") for number, kind in enumerate(KINDS)]
    for number, order in enumerate(ORDERS):
        who = new_id()
        remy.send_raw(envelope("typing", who, "E%svil%d" % (order, number)))
        remy.send_raw(envelope("message", who, "E%svil%d" % (order, number), "name %d" % number))
    remy.say("end")
    for person in people:
        person.see_message("Remy", "end")
        person.line("/who")
        person.line("that was all")
    remy.expect_message("that was all")
    for person in people:
        drains(person)
        assert not person.screen.colours and not person.screen.bells, person.screen.colours
        assert not re.search(r"^12:00 <Linguini>", person.screen.text(), re.M), "a forged row:\n" + person.screen.text()


@scenario
def orders_of_irc_users_do_not_reach_the_terminal(world):
    """Bodies, colours of IRC, topics, real names, reasons."""
    world.start()
    bob = world.irc("bob")
    ann, remy = sit(world, "ann", ttype="dumb"), world.person("Remy")
    bob.send("TOPIC #lobby :a\x1b[31mtopic\x1b]0;x\x07")
    bob.send("SETNAME :real\x1b[31m", "AWAY :away\x1b[2J")
    bob.say("#lobby", "\x02bold\x02 \x0304,05red\x03 \x1dit\x1d \x1b[31mesc\x1b[2J \x16rev\x0f")
    bob.say("ann", "private \x1b[2J\x1b]0;x\x07")
    bob.say("#lobby", "\x01ACTION waves\x1b[2J\x01")
    bob.say("#lobby", "\x01VERSION\x01")
    bob.send("PART #lobby :gone\x1b[2J", "JOIN #lobby", "QUIT :bye\x1b[31m")
    bob.wait_closed()
    remy.say("end")
    ann.see_message("Remy", "end")
    ann.see(r"bold")
    assert not ann.screen.colours and not ann.screen.bells, ann.screen.colours
    sit(world, "carl", ttype="dumb").line("came later")
    remy.expect_message("came later")


@scenario
def iac_in_others_words_is_no_command(world):
    """ÿ is U+00FF: its UTF-8 has no byte 255, and nothing else may put one on the wire."""
    world.start()
    remy, ann = world.person("Remy"), sit(world)
    before = len(ann.commands)
    remy.say("ÿûÿüÿð \u00ff\u00fb\u0001")
    remy.say("end")
    ann.see_message("Remy", "end")
    assert len(ann.commands) == before, ann.commands[before:]
    ann.see(r"ÿûÿüÿð")


# MARK: - Lines


@scenario
def what_is_not_utf8_does_not_cross(world):
    ann, remy = start(world)
    for number, kind in enumerate(KINDS):
        person = sit(world, "bad%d" % number, kind=kind)
        for bad in (b"\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\xaf", b"\x80\x80", b"\xe6\xb1"):
            assert send(person, b"bad " + bad + b" byte\r\n")
            person.line("fine")
            expect_of(remy, person.nick, "fine")
        # Refused, or with U+FFFD in its place; never half a letter.
        for body in remy.bodies(person.nick):
            assert body == "fine" or "\ufffd" in body or body in ("bad byte", "bad  byte"), body
    unharmed(world, ann, remy)


@scenario
def controls_that_are_typed_do_not_cross(world):
    ann, remy = start(world)
    for number, kind in enumerate(KINDS):
        person = sit(world, "bad%d" % number, kind=kind)
        for data in (
            b"a\x00b", b"a\x07b", b"a\x1b[31mb", b"a\x1b]0;x\x07b", b"a\x0e\x0fb", b"a\xc2\x9bb",
            b"a\x1b[999999999999999999999Cb", b"\x1b", b"\x1b[", b"\x1bO", b"a\x1b[1;2;3;4;5;6;7;8;9;0~b",
        ):
            assert send(person, data + (b"\r\n" if kind != "nc" else b"\n"))
        person.line("fine")
        expect_of(remy, person.nick, "fine")
        for body in remy.bodies(person.nick):
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", body), "%s: %r" % (kind, body)
    unharmed(world, ann, remy)


@slow("half a minute of a flood")
@scenario
def a_line_without_an_end_is_bounded(world):
    ann, remy = start(world)
    before, _ = world.bridge.rss_kib()
    for number, kind in enumerate(KINDS):
        person = sit(world, "bad%d" % number, kind=kind, height=60)
        for _ in range(64):
            if not send(person, b"x" * 65536):
                break
            while drains(person):
                pass
        if not person.closed and send(person, b"\r\n"):
            person.line("after it")
            wait_until(
                lambda: drains(person) or person.closed or "after it" in remy.bodies(person.nick),
                "the next line, or the end of the connection", 30)
        person.hang_up()
        bodies = remy.bodies(person.nick)
        assert sum(map(len, bodies)) < 40_000, "%s: %d letters went up" % (kind, sum(map(len, bodies)))
    after, _ = world.bridge.rss_kib()
    assert after - before < 64 * 1024, "RSS grew by %d KiB" % (after - before)
    unharmed(world, ann, remy)
    return "RSS %d to %d KiB" % (before, after)


@scenario
def names_and_rooms_may_be_anything(world):
    ann, remy = start(world)
    for bad in (
        b"", b"x" * 100_000, b"\xfe\xfd", b"\x00", b"\x1b[2J", b"a\x1b[31mb", "👩\u200d🍳".encode() * 400, b"%s%n%x", b":", b"#",
        b"*bridge", "\u202eevil".encode(), "\u200b".encode(), b"bridge.test", b"a b c", b"a\tb", b"@op", b"sane",
    ):
        for kind in ("line", "nc"):
            person = open_session(seat(world, kind))
            if send(person, bad + b"\r\n"):
                send(person, bad + b"\r\n")
                drains(person, 0.02)
            person.hang_up()
    person = open_session(seat(world))
    for number in range(200):
        if not send(person, b"b@d %d\r\0" % number):
            break
        drains(person)
    person.hang_up()
    unharmed(world, ann, remy)
    nicks = {line.source.split("!")[0] for line in world.healthy.lines if line.command == "JOIN"}
    for nick in nicks:
        assert len(nick.encode()) <= 30 and not re.search(r"[\x00-\x20,:*?!@#\x7f]", nick), "nick %r" % nick


# MARK: - Telnet


@scenario
def every_option_is_answered_once_and_rightly(world):
    """WILL and DO of what is not spoken get DONT and WONT; no answer is answered again."""
    ann, remy = start(world)
    # Spoken, or such as may be.
    known = {ECHO, SGA, TTYPE, NAWS, LINEMODE, 0, 5, 6, 39, 42}
    for verb, answer in ((WILL, DONT), (DO, WONT), (WONT, None), (DONT, None)):
        person = seat(world, "line", initiates=False, answers=False)
        person.enter()
        open_session(person)
        before = len(person.commands)
        assert send(person, b"".join(bytes([IAC, verb, option]) for option in range(256)))
        assert send(person, b"".join(bytes([IAC, verb, option]) for option in range(256)))
        since = person.mark()
        assert send(person, b"b@d name\r\n")
        person.hear(r"\w", since + 1)
        person.expect("an answer to each", lambda: answer is None or len(person.commands) - before >= 240)
        got = person.commands[before:]
        for option in set(range(256)) - known:
            verbs = [v for v, o in got if o == option]
            assert verbs in ([answer], [answer, answer]) if answer else not verbs, "%d %d: %r" % (verb, option, verbs)
        assert len(got) <= 520, "%d answers" % len(got)
        person.hang_up()
    unharmed(world, ann, remy)


@scenario
def options_within_a_session_change_no_word(world):
    """Commands between, and within, letters of what is typed."""
    ann, remy = start(world)
    person = sit(world, "odd")
    junk = (
        bytes([IAC, NOP]), bytes([IAC, DO, 200]), bytes([IAC, WILL, 201]), bytes([IAC, WONT, 202]), bytes([IAC, DONT, 203]),
        sub(99, b"x\xff\xffy"), bytes([IAC, 242]), bytes([IAC, 249]), sub(TTYPE, b""), bytes([IAC, 1]), bytes([IAC, SE]),
    )
    data = b""
    for number, byte in enumerate("a汤b🍲c é".encode()):
        data += junk[number % len(junk)] + bytes([byte])
    for byte in data + b"\r\0":
        assert send(person, bytes([byte]))
    remy.expect_message("a汤b🍲c é")
    unharmed(world, ann, remy)


@scenario
def negotiation_that_goes_round_is_not_followed(world):
    """The same option on and off ten thousand times."""
    ann, remy = start(world)
    for option in (ECHO, SGA, NAWS, TTYPE, 34, 77):
        person = sit(world, "odd%d" % option, kind="line")
        round_and_round = bytes([IAC, DO, option, IAC, DONT, option, IAC, WILL, option, IAC, WONT, option]) * 1000
        for _ in range(10):
            if not send(person, round_and_round, obey=False, patience=3):
                break
        person.hang_up()
        unharmed(world, ann, remy, "after %d" % option)


@alone("measures how long others wait")
@scenario
def floods_of_commands_are_bounded(world):
    ann, remy = start(world)
    before, _ = world.bridge.rss_kib()
    for number, command in enumerate((
        bytes([IAC, NOP]), bytes([IAC, AYT]), bytes([IAC, IP]), b"\x03", bytes([IAC, 245]), bytes([IAC, 242]), bytes([IAC, 248]),
        bytes([IAC, IAC]), bytes([IAC]), bytes([IAC, SB]), bytes([IAC, SE]), sub(NAWS, b"\0\x50\0\x18"), sub(TTYPE, b"\0xterm"),
        b"\x1b[A", b"\t", b"\x7f", b"\r\0", b"\n", b"\0",
    )):
        person = sit(world, "odd%d" % number, kind="line" if number % 2 else "character")
        began = time.monotonic()
        for _ in range(8):
            # Not obeyed: the screen would take longer than the bridge.
            if not send(person, command * (65536 // len(command)), obey=False, patience=3):
                break
        unharmed(world, ann, remy, "during %d" % number)
        assert time.monotonic() - began < 20, "others waited after %r" % command
        person.hang_up()
    after, _ = world.bridge.rss_kib()
    assert after - before < 64 * 1024, "RSS grew by %d KiB" % (after - before)
    return "RSS %d to %d KiB" % (before, after)


@slow("half a minute of a flood")
@scenario
def subnegotiations_without_an_end_are_bounded(world):
    ann, remy = start(world)
    before, _ = world.bridge.rss_kib()
    for number, (head, body) in enumerate((
        (bytes([IAC, SB, TTYPE, 0]), b"x"), (bytes([IAC, SB, NAWS]), b"\0"), (bytes([IAC, SB, 99]), b"\xff\xff"),
        (bytes([IAC, SB]), b"\r\n"), (bytes([IAC, SB, TTYPE, 0]), bytes([IAC, SB])), (bytes([IAC, SB, 34, 3]), b"\x01\x02\x03"),
    )):
        person = sit(world, "odd%d" % number, kind="line")
        send(person, head)
        for _ in range(64):
            if not send(person, body * (65536 // len(body))):
                break
            drains(person)
        if not person.closed and send(person, bytes([IAC, SE])):
            send(person, b"after %d\r\n" % number)
            wait_until(
                lambda: drains(person) or person.closed or "after %d" % number in remy.bodies(person.nick),
                "the next line, or the end of the connection", 30)
        person.hang_up()
        unharmed(world, ann, remy, "after head %d" % number)
    after, _ = world.bridge.rss_kib()
    assert after - before < 64 * 1024, "RSS grew by %d KiB" % (after - before)
    return "RSS %d to %d KiB" % (before, after)


@scenario
def sizes_may_be_anything(world):
    """0, 1, 65535, too few and too many bytes: messages are whole at each."""
    ann, remy = start(world)
    person = sit(world, "odd", height=60)
    text = " ".join("wort%d" % number for number in range(30))
    for number, size in enumerate((
        b"\0\0\0\0", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\1\0\1", b"\0\0\xff\xff\xff\xff", b"\xff\xff\xff\xff\0\0",
        b"\0\2\0\2", b"\0\x50", b"", b"\0",
        b"\0\x50\0\x18\0\0\0\0\0", b"\x7f\xff\x7f\xff", b"\0\3\0\x18", b"\0\x64\0\x18",
    )):
        assert send(person, sub(NAWS, size))
        person.type("x")
        began = time.monotonic()
        remy.say("%s end%d" % (text, number))
        # However few columns there are, letters come in order.
        person.expect(
            "the end of it", lambda: "end%d" % number in re.sub(r"[\s\x00-\x20]", "", person.screen.printed[-6000:]))
        assert time.monotonic() - began < 5
        assert len(person.screen.printed) < 400_000, "%d letters for a few words" % len(person.screen.printed)
    person.key("ctrl-u")
    person.line("done with sizes")
    remy.expect_message("done with sizes")
    unharmed(world, ann, remy)
    unharmed(world, person, remy, "twice")


@scenario
def a_size_of_nothing_before_a_name_harms_nobody(world):
    ann, remy = start(world)
    for size in (b"\0\0\0\0", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\1\0\1"):
        person = seat(world, naws=False)
        assert send(person, bytes([IAC, WILL, NAWS]) + sub(NAWS, size))
        open_session(person)
        person.hang_up()
    unharmed(world, ann, remy)


@scenario
def terminal_types_may_be_anything(world):
    ann, remy = start(world)
    for number, name in enumerate((
        b"", b"\x1b[2J", b"x" * 20_000, b"\xff\xff\xff\xff", b"\xc3\x28", b"xterm\r\nQUIT", b"\0", b"XTERM-256COLOR",
        b"../../etc/passwd",
    )):
        person = seat(world, "line", ttype=None)
        assert send(person, bytes([IAC, WILL, TTYPE]))
        for kind in (0, 1, 2, 255):
            if not send(person, sub(TTYPE, bytes([kind]).replace(b"\xff", b"\xff\xff") + name)):
                break
        if not person.closed:
            open_session(person)
        person.hang_up()
        unharmed(world, ann, remy, "type %d" % number)


@scenario
def commands_cut_anywhere_are_read_all_the_same(world):
    ann, remy = start(world)
    person = seat(world, "line", initiates=False)
    for byte in bytes([IAC, WILL, NAWS, IAC, WILL, TTYPE]) + sub(NAWS, b"\0\x50\0\x18") + sub(TTYPE, b"\0xterm"):
        assert send(person, bytes([byte]))
    open_session(person)
    # One that never becomes whole.
    for rest in (bytes([IAC]), bytes([IAC, DO]), bytes([IAC, SB]), bytes([IAC, SB, NAWS, 0]), bytes([IAC, SB, NAWS, 0, IAC])):
        other = seat(world, "line", initiates=False)
        send(other, rest)
        drains(other, 0.02)
        other.hang_up()
    unharmed(world, ann, remy)


@scenario
def a_half_command_first_is_nobody_yet(world):
    """IAC alone is neither IRC nor the end: it is asked for a name all the same."""
    world.start()
    for first in (bytes([IAC]), bytes([IAC, WILL]), bytes([IAC, SB, NAWS])):
        person = seat(world, "nc")
        assert send(person, first)
        person.hear(r"(?i)name|nick", patience=12)


# MARK: - Connections


@slow("half a minute of a flood")
@scenario
def somebody_who_never_reads_is_dropped_alone(world):
    ann, remy = start(world, limits='messages_per_second = "off"\nupstream_messages_per_second = "off"\nsendq = "64KiB"')
    sit(world, "deaf")
    sit(world, "deaf2", kind="nc")
    body, said, gone = "x" * 400, 0, set()
    end = time.monotonic() + 60
    while len(gone) < 2 and time.monotonic() < end:
        for _ in range(50):
            remy.say("%d %s" % (said, body))
            said += 1
        remy.drain()
        # Somebody who reads is not taken along.
        ann.expect("all so far", lambda: "<Remy> %d" % (said - 1) in ann.screen.printed[-20_000:])
        world.healthy.expect_text("%d %s" % (said - 1, body))
        gone = {line.source.split("!")[0] for line in world.healthy.lines if line.command == "QUIT"} & {"deaf", "deaf2"}
    assert len(gone) == 2, "after %d messages only %r are gone" % (said, gone)
    unharmed(world, None, remy)
    return "after %d messages" % said


@scenario
def many_who_say_nothing_harm_nobody(world):
    """They are asked, and go when the time for it is over: told in words."""
    ann, remy = start(world, limits='messages_per_second = "off"\nmax_clients = 600\nregistration_timeout = "10s"')
    silent = [seat(world, "nc") for _ in range(300)]
    round_trip(world.healthy, remy, "among the silent")
    for person in silent:
        person.wait_closed(30)
        assert not re.search(r"^ERROR ", person.screen.printed, re.M), person.screen.printed
    assert re.search(r"(?i)name|nick", silent[0].screen.printed), silent[0].screen.printed
    unharmed(world, ann, remy, "alone again")


@scenario
def somebody_who_has_a_name_but_no_room_is_bounded_in_time_or_harmless(world):
    ann, remy = start(world, limits='messages_per_second = "off"\nregistration_timeout = "3s"')
    person = open_session(seat(world))
    person.line("odd")
    person.hear(r"(?i)room")
    unharmed(world, ann, remy)


@scenario
def what_is_typed_too_fast_is_only_delayed(world):
    world.start(limits='messages_per_second = 50\nmessages_burst = 10\nupstream_messages_per_second = "off"')
    remy, watch = world.person("Remy"), watch_room(world, "#lobby")
    person = sit(world, "fast", kind="nc")
    person.send_bytes(b"".join(b"fast %d\n" % number for number in range(300)))
    round_trip(watch, remy, "meanwhile")
    wait_until(lambda: "fast 299" in "\n".join(remy.bodies("fast")).split("\n"), "all 300", 30)
    assert "\n".join(remy.bodies("fast")).split("\n") == ["fast %d" % number for number in range(300)], "lost, doubled or swapped"


@alone("measures how long others wait")
@scenario
def random_bytes_harm_nobody(world):
    """Much of telnet's and terminals' bytes among them; the seed is in the result."""
    ann, remy = start(world)
    seed = int(time.time())
    chance = random.Random(seed)
    alphabet = [bytes([byte]) for byte in range(256)] + [
        bytes([IAC]), bytes([IAC, SB]), bytes([IAC, SE]), bytes([IAC, DO]), bytes([IAC, WILL]), b"\x1b[", b"\r\n", b"\r\0", b"\n",
        b"ann", b"#lobby", b"/join ", b"/msg ", b"/quit", b"\xf0\x9f\x8d\xb2", b"\xcc\x81", b"\xe2\x80\x8d", b"\x7f", b"\t",
        sub(NAWS, b"\0\1\0\1"), b"NICK ", b"USER ",
    ] * 8
    for number in range(150):
        person = seat(world, "nc")
        if chance.random() < 0.6:
            send(person, b"\nz%d\n#lobby\n" % number)
        for _ in range(chance.randrange(1, 8)):
            # What comes is not judged here, but that the bridge lives.
            if not send(person, b"".join(chance.choice(alphabet) for _ in range(chance.randrange(1, 400))), obey=False, patience=3):
                break
        person.hang_up()
        world.bridge.check_alive()
        if number % 30 == 29:
            round_trip(world.healthy, remy, "after %d" % number)
    remy.say("end")
    ann.see(r"> end$", 30)
    round_trip(world.healthy, remy, "after all (seed %d)" % seed)
    return "seed %d" % seed


@scenario
@slow("a minute of random sessions")
def a_minute_of_random_bytes_harms_nobody(world):
    ann, remy = start(world)
    end, rounds = time.monotonic() + 60, 0
    chance = random.Random(rounds)
    while time.monotonic() < end:
        rounds += 1
        person = sit(world, "r%d" % rounds, kind=chance.choice(KINDS))
        for _ in range(20):
            if not send(person, chance.randbytes(chance.randrange(1, 300)), obey=False, patience=3):
                break
        person.hang_up()
        watcher(world).drain()
        # Thousands come and go, and those who do not read of it are cut off.
        world.healthy.drain()
        ann.pump(0)
    round_trip(world.healthy, remy, "after all")
    return "%d sessions" % rounds
