"""The plain mode: people with telnet and nc on the IRC port. How they are recognised, come in, and what they see."""

import contextlib
import datetime
import re
import socket
import time

from accounts import account
from backends import on
from claims import check
from marks import alone, slow
from peer import IRC, PATIENCE, wait_until
from plain_screen import (
    ASKS_NAME, ASKS_PASSWORD, ASKS_ROOM, NAWS, TTYPE, give_name, open_session, row, seat, sit, watch_room, watcher,
)
from world import scenario

# Silence after which the session asks by itself: "a few seconds".
SILENCE = (1, 12)
WITH_HISTORY = "[room_defaults]\nhistory_on_join = 20\n"
KINDS = ("character", "line", "nc")


def raw_irc(world):
    client = IRC(world.bridge.port)
    world.stack.callback(client.close)
    return client


def is_irc(client, nick, first=""):
    """Registers, and none of what plain mode says was sent."""
    client.nick = nick
    client.send_bytes((first + "NICK %s\r\nUSER %s 0 * :x\r\n" % (nick, nick)).encode())
    client.expect("001", lambda line: line.params[0] == nick)


def not_irc(person):
    assert not re.search(r"^(:\S+|ERROR|PING) ", person.screen.text(), re.M), "IRC on the screen:\n" + person.screen.text()


# MARK: - Who is who


@scenario
def an_irc_command_first_is_irc(world):
    """In any form that IRC knows, whatever comes first."""
    world.start()
    for number, first in enumerate((
        "", "CAP LS 302\r\nCAP END\r\n", "CAP LS\r\nCAP END\r\n", "PASS x\r\n", "PING :1\r\n", "ping 1\r\n", "JOIN #lobby\r\n",
        ":me CAP LS\r\nCAP END\r\n", "@a=b CAP LS\r\nCAP END\r\n", "HELP\r\n", "LIST\r\n", "PRIVMSG #lobby :x\r\n", "\r\nPING 1\r\n",
        "AUTHENTICATE PLAIN\r\n",
    )):
        client = raw_irc(world)
        is_irc(client, "n%d" % number, first)
        assert client.lines[0].command in ("CAP", "PONG", "NOTICE", "001", "451", "464", "461", "FAIL", "421", "NOTE") or (
            client.lines[0].source), "%r began with %r" % (first, client.lines[0].raw)


@scenario
def an_irc_client_that_waits_first_is_irc(world):
    """The question after a silence is only text."""
    world.start()
    person = seat(world, "nc")
    person.hear(ASKS_NAME, patience=SILENCE[1])
    client = raw_irc(world)
    wait_until(lambda: client.pump(0.05), "the question", SILENCE[1])
    # The question may end without a line's end, which IRC's reader would put in front of the first answer.
    client.rest = b""
    is_irc(client, "ann")
    client.join("#lobby")


@scenario
def an_irc_client_that_pauses_within_its_first_word_is_irc(world):
    world.start()
    client = raw_irc(world)
    client.send_bytes(b"NI")
    end = time.monotonic() + SILENCE[1]
    while time.monotonic() < end and not client.pump(0.1):
        pass
    client.rest = b""
    client.nick = "ann"
    client.send_bytes(b"CK ann\r\nUSER ann 0 * :x\r\n")
    client.expect("001")


@scenario
def an_irc_client_letter_by_letter_is_irc(world):
    world.start()
    client = raw_irc(world)
    for byte in b"NICK ann\r\nUSER ann 0 * :x\r\n":
        client.send_bytes(bytes([byte]))
    client.expect("001")
    assert not re.search(ASKS_ROOM, client.lines[0].raw), client.lines[0].raw


@scenario
def silence_is_asked_for_a_name(world):
    world.start()
    person = seat(world, "nc")
    person.hear(ASKS_NAME, patience=SILENCE[1])
    seconds = time.monotonic() - person.began
    not_irc(person)
    assert seconds > SILENCE[0], "after %.1f s: a slow IRC client has no time" % seconds
    return "after %.1f s" % seconds


@scenario
def a_slow_person_is_no_irc_client(world):
    """Letter by letter, with the silence within the first word."""
    world.start()
    person = seat(world, "nc")
    person.send_bytes(b"he")
    with contextlib.suppress(AssertionError):
        person.hear(ASKS_NAME, patience=SILENCE[1])
    for byte in b"llo there\n":
        person.send_bytes(bytes([byte]))
    person.hear(ASKS_NAME)
    not_irc(person)


@scenario
def a_first_line_that_is_no_command_opens_it(world):
    world.start()
    for first in ("hello", "", "hi, is anybody here?", "NICKNAME", "JOINT venture", "*", "#lobby", "get well soon", "ann", "Привет",
                  "/help", "/join #lobby"):
        person = seat(world, "nc")
        person.line(first)
        person.hear(ASKS_NAME)
        seconds = time.monotonic() - person.began
        not_irc(person)
        assert seconds < SILENCE[0], "%r was answered after %.1f s" % (first, seconds)


@scenario
def telnet_negotiation_opens_it_at_once(world):
    world.start()
    for kind in ("character", "line"):
        person = seat(world, kind)
        person.hear(ASKS_NAME)
        assert time.monotonic() - person.began < SILENCE[0], "it waited out the silence"
        not_irc(person)


@scenario
def telnet_that_says_nothing_is_asked_after_the_silence(world):
    """At a port other than its own, telnet waits for the server to begin."""
    world.start()
    person = seat(world, initiates=False)
    open_session(person)
    person.expect("questions about terminal and size", lambda: {TTYPE, NAWS} <= person.us)
    not_irc(person)


@scenario
def irc_commands_of_somebody_without_a_name_are_irc(world):
    """Telnet by hand: the negotiation made it plain, the command makes it IRC."""
    world.start()
    person = seat(world)
    person.hear(ASKS_NAME)
    person.line("NICK ann")
    person.line("USER ann 0 * :x")
    person.hear(r" 001 ann ")


@scenario
def irc_commands_of_somebody_with_a_name_are_words(world):
    world.start()
    remy = world.person("Remy")
    sit(world, "ann", kind="nc").line("QUIT is what I shall not do")
    assert remy.expect_message("QUIT is what I shall not do")["sender_name"] == "ann"
    sit(world, "bob").line("PRIVMSG #lobby :hi")
    assert remy.expect_message("PRIVMSG #lobby :hi")["sender_name"] == "bob"


@scenario
def programs_of_other_protocols_are_closed(world):
    world.start()
    for first in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", b"HEAD / HTTP/1.0\r\n\r\n", b"PUT /x HTTP/1.1\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\n\r\n", b"CONNECT a:443 HTTP/1.1\r\n\r\n", b"DELETE /x HTTP/1.1\r\n\r\n", b"EHLO mail.example\r\n",
        b"HELO mail.example\r\n", bytes.fromhex("16030100f8010000f40303") + bytes(240),
    ):
        with socket.create_connection(("127.0.0.1", world.bridge.port)) as sock:
            sock.settimeout(PATIENCE)
            sock.sendall(first)
            answer = b""
            try:
                for data in iter(lambda: sock.recv(4096), b""):
                    answer += data
            except ConnectionResetError:
                pass
            except socket.timeout:
                raise AssertionError("%r was not closed; it got %r" % (first[:20], answer)) from None
        assert not re.search(ASKS_NAME, answer.decode("latin-1")), "%r was asked: %r" % (first[:20], answer)


@scenario
def a_listener_can_be_without_it(world):
    """`plain = "off"`: what is no IRC command is answered as on IRC, and silence by nothing."""
    tables = '[room_defaults]\nhistory_on_join = 0\n\n[[listeners]]\nbind = "irc://127.0.0.1:0"\nplain = "off"\n'
    world.start(tables=tables)
    listening = wait_until(
        lambda: [found] if len(found := world.bridge.log_entries("listening")) > 1 else None, "both listen")[0]
    without = [int(entry["address"].rsplit(":")[-1]) for entry in listening]
    without.remove(world.bridge.port)
    silent, telnet, speaker = seat(world, "nc", without[0]), seat(world, port=without[0]), seat(world, "nc", without[0])
    speaker.line("hello there")
    # The silence of the other listener passes for all three at the same time.
    seat(world, "nc").hear(ASKS_NAME, patience=SILENCE[1])
    for one in (silent, telnet):
        one.drain()
        assert not one.raw, bytes(one.raw)
    speaker.hear(r"^:\S+ 4\d\d ")
    client = IRC(without[0], "bob", join=["#lobby"])
    world.stack.callback(client.close)


@scenario
def the_key_is_checked():
    room = '[[rooms]]\nname = "lobby"\nurl = "ws://127.0.0.1:9/x"\n'
    for value in ("on", "off"):
        status, said = check('[[listeners]]\nbind = "irc://127.0.0.1:0"\nplain = "%s"\n%s' % (value, room))
        assert status == 0, said
    status, said = check('[[listeners]]\nbind = "irc://127.0.0.1:0"\nplain = "perhaps"\n' + room)
    assert status != 0 and "plain" in said and "perhaps" in said, said


# MARK: - Coming in


@scenario
def a_name_and_a_room_are_all_it_takes(world):
    """Each kind of terminal; on IRC they are ordinary users."""
    world.start()
    bob, remy = world.irc("bob"), world.person("Remy")
    for number, kind in enumerate(KINDS):
        nick = "ann%d" % number
        person = sit(world, nick, kind=kind)
        join = bob.expect("JOIN", lambda line: line.source.startswith(nick + "!"))
        assert join.params[0] == "#lobby" and re.fullmatch(r"[^!]+![^@]+@\S+", join.source), join.raw
        person.line("hello of " + nick)
        frame = remy.expect_message("hello of " + nick)
        assert frame["sender_name"] == nick, frame
        line = bob.expect_text("hello of " + nick)
        assert line.source == join.source and line.params[0] == "#lobby", line.raw
        remy.say("welcome " + nick)
        person.see_once("Remy", "welcome " + nick)
        not_irc(person)


@scenario
def a_room_needs_no_hash(world):
    world.start()
    watch_room(world, "#lobby")
    sit(world, room="#lobby")
    person = open_session(seat(world))
    since = give_name(person, "bob")
    person.hear(ASKS_ROOM, since)
    person.line("lobby")
    watcher(world).expect("JOIN", lambda line: line.source.startswith("bob!"))


@scenario
def a_name_that_does_not_go_is_asked_for_again(world):
    """Taken on IRC, taken on the backend, taken in plain mode, no name at all."""
    world.start()
    world.irc("bob")
    watch = watch_room(world, "#lobby")
    world.person("Remy").say("here")
    watch.expect_text("here")
    sit(world, "carl")
    person = open_session(seat(world))
    for bad in ("bob", "Remy", "carl", "", "#lobby", "ann!x@y", "*bridge", "ann,bob"):
        since = person.mark()
        person.line(bad)
        person.hear(ASKS_NAME, since)
    since = give_name(person, "ann")
    person.hear(ASKS_ROOM, since)
    person.line("#lobby")
    watch.expect("JOIN", lambda line: line.source.startswith("ann!"))


@scenario
def a_room_that_is_none_is_asked_for_again(world):
    world.start()
    watch = watch_room(world, "#lobby")
    person = open_session(seat(world))
    since = give_name(person, "ann")
    person.hear(ASKS_ROOM, since)
    for bad in ("#nowhere", "no such room"):
        since = person.mark()
        person.line(bad)
        person.hear(ASKS_ROOM, since)
    person.line("#lobby")
    watch.expect("JOIN", lambda line: line.source.startswith("ann!"))


@scenario
def the_last_lines_are_shown_on_entry(world):
    """Once, in order, and before what is said then."""
    world.start(tables=WITH_HISTORY)
    watch, remy = watch_room(world, "#lobby"), world.person("Remy")
    for number in range(5):
        remy.say("earlier %d" % number)
        watch.expect_text("earlier %d" % number)
    watch.say("#lobby", "and from IRC")
    watch.expect_text("and from IRC")
    for number, kind in enumerate(KINDS):
        person = sit(world, "ann%d" % number, kind=kind)
        person.see_message("watch", "and from IRC")
        remy.say("now %d" % number)
        person.see_message("Remy", "now %d" % number)
        expected = ["earlier %d" % n for n in range(5)] + ["now %d" % n for n in range(number + 1)]
        assert person.messages("Remy") == expected, person.screen.text()
        assert person.messages("watch") == ["and from IRC"], person.screen.text()


def replayed(world, *ago):
    """The screen of somebody who comes after Remy said something so many seconds ago, each."""
    world.start(tables=WITH_HISTORY)
    watch, remy = watch_room(world, "#lobby"), world.person("Remy")
    for number, seconds in enumerate(ago):
        remy.say("said %d" % number, sent_at=time.time() - seconds)
        watch.expect_text("said %d" % number)
    person = sit(world, "ann")
    person.see_message("Remy", "said %d" % (len(ago) - 1))
    return person.screen.lines()


def between(lines, first, last):
    at = [next(n for n, line in enumerate(lines) if line.endswith("> " + text)) for text in (first, last)]
    return [line for line in lines[at[0] + 1 : at[1]] if line]


@scenario
def days_are_divided(world):
    day = 86400
    lines = replayed(world, 3 * day, 3 * day - 1, 2 * day, 0)
    assert not between(lines, "said 0", "said 1"), lines
    for first, last, ago in (("said 1", "said 2", 2 * day), ("said 2", "said 3", 0)):
        found = between(lines, first, last)
        # In UTC or the machine's own zone, which one it is.
        days = [datetime.datetime.fromtimestamp(time.time() - ago, zone) for zone in (None, datetime.timezone.utc)]
        assert len(found) == 1 and any(re.search(r"\b0?%d\b" % one.day, found[0]) for one in days), (found, lines)


@scenario
def quiet_is_divided(world):
    lines = replayed(world, 1500, 1450, 1080, 1000, 690)
    assert not between(lines, "said 0", "said 1") and not between(lines, "said 2", "said 3"), lines
    for first, last in (("said 1", "said 2"), ("said 3", "said 4")):
        found = between(lines, first, last)
        assert len(found) == 1 and "<" not in found[0], (found, lines)


@scenario
@slow("waits out the five quiet minutes")
def five_quiet_minutes_are_divided_as_they_pass(world):
    world.start()
    remy, person = world.person("Remy"), sit(world, "ann")
    remy.say("before")
    person.see_message("Remy", "before")
    # IRC's pings of the watcher go on meanwhile.
    end = time.monotonic() + 305
    while time.monotonic() < end:
        watcher(world).pump(1)
        person.pump(0)
        remy.pump(0)
    remy.say("after")
    remy.say("at once")
    person.see_message("Remy", "at once")
    lines = person.screen.lines()
    assert len(between(lines, "before", "after")) == 1 and not between(lines, "after", "at once"), lines


# MARK: - Log-in


@scenario
def a_server_password_is_asked_for_and_not_echoed(world):
    for_all = 'password = "open sesame 7"'
    world.start(server_extra="[identity]\n%s\n" % for_all)
    for number, kind in enumerate(("character", "line")):
        nick = "ann%d" % number
        person = open_session(seat(world, kind))
        since = give_name(person, nick)
        person.hear(ASKS_PASSWORD, since)
        person.expect("the server echoes, so that nobody does", lambda: person.remote_echo)
        person.line("open sesame 7")
        person.hear(ASKS_ROOM, since)
        person.line("#lobby")
        person.expect("the room", lambda: "lobby" in person.screen.printed[since:])
        assert "sesame" not in person.screen.printed, person.screen.text()
        person.line("/who")
        person.see(r"\b%s\b" % nick)


@scenario
def an_account_has_its_password_asked_for(world):
    world.start(server_extra="[identity]\n\n" + account("ann", "secret-of-ann"))
    watch, remy = watch_room(world, "#lobby"), world.person("Remy")
    person = open_session(seat(world))
    since = give_name(person, "ann")
    person.hear(ASKS_PASSWORD, since)
    since = person.mark()
    person.line("wrong-word")
    # Told, and asked for one of the two again.
    person.hear(r"(?i)password|\bname\b", since)
    watch.barrier()
    assert not [line for line in watch.lines if line.command == "JOIN" and line.source.startswith("ann!")], "in without it"
    person = sit(world, "ann", password="secret-of-ann")
    assert "secret" not in person.screen.printed, person.screen.text()
    person.type("vis")
    person.see_typed("vis")
    person.line("ible")
    assert remy.expect_message("visible")["sender_name"] == "ann"
    watch.send("WHOIS ann")
    assert watch.expect("330").params[2] == "ann"


@scenario
def passwords_are_echoed_by_nobody_in_line_mode(world):
    """Telnet's own echo is off for the password, and on again behind it."""
    world.start(server_extra="[identity]\n\n" + account("ann", "secret-of-ann"))
    person = sit(world, "ann", kind="line", password="secret-of-ann")
    assert "secret" not in person.screen.printed, person.screen.text()
    person.expect("telnet echoes again", lambda: not person.remote_echo)


@scenario
def guesses_at_a_password_wait_longer_each_time(world):
    """As on IRC; and they end in neither a room nor a crash."""
    world.start(server_extra="[identity]\n\n" + account("ann", "secret-of-ann"))
    watch, waits = watch_room(world, "#lobby"), []
    for guess in range(3):
        person = open_session(seat(world, "line"))
        since = give_name(person, "ann")
        person.hear(ASKS_PASSWORD, since)
        since, began = person.mark(), time.monotonic()
        person.line("guess %d" % guess)
        with contextlib.suppress(AssertionError):
            person.hear(r"(?i)\w{4}", since)
        waits.append(time.monotonic() - began)
        person.hang_up()
    watch.barrier()
    assert not [line for line in watch.lines if line.source.startswith("ann!")], "somebody guessed"
    assert waits[2] > waits[0], "no delay: %r" % waits


@scenario
def where_a_login_is_required_a_name_alone_is_not_enough(world):
    world.start(server_extra='[identity]\nrequire_login = "always"\n\n' + account("ann", "secret-of-ann"))
    person = open_session(seat(world))
    since = give_name(person, "bob")
    person.hear(r"(?i)password|account|log.?in", since)
    with contextlib.suppress(AssertionError, OSError):
        since = person.mark()
        person.line("anything")
        person.hear(r"(?i)password|account|log.?in|\bname\b", since)
    assert not world.relay.messages_from_bridge()
    # The account itself is let in.
    person = open_session(seat(world))
    since = give_name(person, "ann")
    person.hear(ASKS_PASSWORD, since)
    person.line("secret-of-ann")
    person.hear(ASKS_ROOM, since)
    person.line("#lobby")
    since = person.mark()
    person.line("in at last")
    wait_until(lambda: [f for f in world.relay.messages_from_bridge() if f["body"] == "in at last"], "the message goes upstream")


@scenario
def a_name_keeps_its_identity(world):
    """Upstream, somebody is the same by IRC and by telnet."""
    world.start()
    remy = world.person("Remy")
    watch = watch_room(world, "#lobby")
    ann = world.irc("ann")
    ann.say("#lobby", "by IRC")
    first = remy.expect_message("by IRC")
    ann.send("QUIT")
    watch.expect("QUIT", lambda line: line.source.startswith("ann!"))
    sit(world, "ann").line("by telnet")
    second = remy.expect_message("by telnet")
    assert (first["sender_id"], first["sender_name"]) == (second["sender_id"], second["sender_name"]), (first, second)


# MARK: - What is seen


@scenario
def a_message_is_one_row(world):
    """Of people upstream, of IRC users, of others in plain mode; and one's own, once."""
    world.start()
    remy, bob = world.person("Remy"), world.irc("bob")
    ann, carl = sit(world, "ann"), sit(world, "carl", kind="nc")
    for say, nick, text in (
        (remy.say, "Remy", "the soup is ready"), (lambda text: bob.say("#lobby", text), "bob", "coming <now> [x] {y}"),
        (carl.line, "carl", "me too: 100 % * ok"), (remy.say, "Remy", "ünïcode 汤 🍲 e\u0301"),
    ):
        say(text)
        ann.see_once(nick, text)
        if nick != "carl":
            carl.see_once(nick, text)
    ann.line("and I")
    ann.see_once("ann", "and I")
    carl.see_once("ann", "and I")
    assert ann.messages() == ["the soup is ready", "coming <now> [x] {y}", "me too: 100 % * ok", "ünïcode 汤 🍲 e\u0301", "and I"]


@scenario
def lines_of_one_message_stay_together_and_in_order(world):
    world.start()
    remy, ann = world.person("Remy"), sit(world)
    remy.say("first\nsecond\nthird")
    remy.say("end")
    ann.see_message("Remy", "end")
    assert re.search(r"first\n.*second\n.*third\n(.*\n)*.*end", ann.screen.text()), ann.screen.text()


@scenario
def a_hundred_messages_at_once_are_in_order_and_whole(world):
    world.start()
    remy = world.person("Remy")
    people = [sit(world, "ann%d" % number, kind=kind) for number, kind in enumerate(KINDS)]
    texts = ["burst %d" % number for number in range(100)]
    for text in texts:
        remy.say(text)
    for person in people:
        person.see_message("Remy", texts[-1])
        assert person.messages("Remy") == texts, "%s: lost, doubled or swapped" % person.kind


@scenario
def what_somebody_does_is_seen_as_such(world):
    world.start()
    remy, bob, ann = world.person("Remy"), world.irc("bob"), sit(world)
    bob.say("#lobby", "\x01ACTION stirs the soup\x01")
    ann.see(r"^\d\d:\d\d \* bob stirs the soup$")
    ann.line("/me tastes it")
    assert bob.expect_text("\x01ACTION tastes it\x01").source.startswith("ann!")
    remy.expect("what ann does", lambda f: f["event"] == "message" and "tastes it" in f["body"] and "/me" not in f["body"])
    ann.see(r"^\d\d:\d\d \* ann tastes it$")


@scenario
def typing_is_seen_while_it_lasts(world):
    world.start()
    person, linguini, bob = sit(world), world.person("Linguini"), world.irc("bob")
    linguini.type()
    person.see_now(r"… ?Linguini is typing")
    linguini.say("typed")
    person.see_message("Linguini", "typed")
    person.see_gone(r"Linguini is typing")
    assert "is typing" not in person.screen.text(), "it stayed above:\n" + person.screen.text()
    bob.send("@+typing=active TAGMSG #lobby")
    person.see_now(r"bob is typing")
    bob.send("@+typing=done TAGMSG #lobby")
    person.see_gone(r"bob is typing")
    linguini.type()
    person.see_now(r"Linguini is typing")
    # It ends by itself, too.
    person.see_gone(r"Linguini is typing")


@scenario
def two_who_type_are_both_seen(world):
    world.start()
    person, linguini, remy = sit(world), world.person("Linguini"), world.person("Remy")
    linguini.type()
    remy.type()
    person.see_now(r"(Linguini.*Remy|Remy.*Linguini).*typing|several|2 people|(Linguini|Remy) is typing")
    remy.say("one stops")
    person.see_message("Remy", "one stops")
    person.see_gone(r"Remy.*(is|are) typing")


@scenario
def reading_is_seen(world):
    world.start()
    person, linguini = sit(world), world.person("Linguini")
    person.line("who reads this?")
    linguini.read(linguini.expect_message("who reads this?")["message_id"])
    person.see(r"✓✓ read by Linguini")


@scenario
def reading_of_others_messages_is_not_mine_to_see(world):
    world.start()
    person, linguini, bob = sit(world), world.person("Linguini"), world.irc("bob")
    bob.say("#lobby", "mine")
    linguini.read(linguini.expect_message("mine")["message_id"])
    bob.expect("TAGMSG", lambda line: "+draft/read" in line.tags)
    linguini.say("end")
    person.see_message("Linguini", "end")
    assert "read by" not in person.screen.text(), person.screen.text()


@scenario
def what_was_shown_to_somebody_active_is_read(world):
    """The next key says that somebody is there."""
    world.start()
    remy = world.person("Remy")
    for number, kind in enumerate(KINDS):
        person = sit(world, "ann%d" % number, kind=kind)
        said = remy.say("read me %d" % number)
        person.see_message("Remy", "read me %d" % number)
        person.line("yes")
        remy.expect(
            "a receipt of " + kind,
            lambda f: f["event"] == "readReceipt" and f["sender_name"] == person.nick and f["message_id"] == said)


@scenario
def what_is_shown_while_somebody_types_is_read_at_once(world):
    world.start()
    remy, person = world.person("Remy"), sit(world)
    person.type("I am he")
    person.see_typed("I am he")
    said = remy.say("read me")
    person.see_message("Remy", "read me")
    remy.expect(
        "a receipt", lambda f: f["event"] == "readReceipt" and f["sender_name"] == "ann" and f["message_id"] == said)


@scenario
def receipts_can_be_off(world):
    world.start(room_extra='receipts = "off"')
    remy, person = world.person("Remy"), sit(world)
    remy.say("read me")
    person.see_message("Remy", "read me")
    person.line("no ticks")
    remy.expect_message("no ticks")
    remy.say("end")
    person.see_message("Remy", "end")
    remy.drain()
    assert not [f for f in remy.frames if f["event"] == "readReceipt"], "a receipt went up"


@on("typed", "custom")
def replies_are_told_in_words(m):
    m.start()
    person = sit(m)
    said = m.backend.say("Remy", "who wants soup?")
    person.see_message("Remy", "who wants soup?")
    m.backend.say("Linguini", "I do", reply_to=said)
    found = person.see(r"^.*Linguini.*I do$").group(0)
    text = person.screen.text()
    assert "Remy" in found or re.search(r"Remy.*\n.*I do$", text.partition("who wants soup?\n")[2], re.M), text


@on("typed", "custom")
def reactions_are_told_in_words(m):
    m.start()
    person, watch = sit(m), watcher(m)
    person.line("soup?")
    said = watch.expect_text("soup?").tags["msgid"]
    frame = m.backend.expect("the message", kind="message", text="soup?")
    m.backend.do("react", "Linguini", id=frame["id"] if m.wire.name != "custom" else said, emoji="👍")
    person.see(r"Linguini.*👍|👍.*Linguini")


@on("typed", "custom")
def files_are_told_in_words(m):
    m.start()
    person = sit(m)
    m.backend.do("upload", "Remy", filename="menu.png", mime="image/png", data_b64="aGVsbG8=", url="https://f.example/menu.png")
    found = person.see(r"^.*Remy.*menu\.png.*$").group(0)
    assert "image" in found or "picture" in found or "file" in found, found


@on("typed", "custom")
def changes_and_deletions_are_told_in_words(m):
    m.start()
    person = sit(m)
    said = m.backend.say("Remy", "sop")
    person.see_message("Remy", "sop")
    m.backend.do("edit", "Remy", id=said, text="soup")
    person.see(r"\bsoup$")
    since = person.mark()
    m.backend.do("delete", "Remy", id=said)
    person.hear(r"(?i)Remy.*(delet|remov|took|taken|withdr)|(delet|remov|took|taken|withdr).*Remy", since)


@scenario
def colours_are_for_terminals_that_say_so(world):
    world.start()
    remy = world.person("Remy")
    people = {
        "xterm-256color": sit(world, "xterm"), "dumb": sit(world, "dumb", ttype="dumb"), "unknown": sit(world, "nott", ttype=None),
        "NETWORK-VIRTUAL-TERMINAL": sit(world, "nvt", ttype="NETWORK-VIRTUAL-TERMINAL"), "nc": sit(world, "nc", kind="nc"),
    }
    remy.say("colourful")
    for name, person in people.items():
        person.see_message("Remy", "colourful")
        if name == "xterm-256color":
            assert person.screen.colours, "none in xterm"
        else:
            assert not person.screen.colours, "%s got %r" % (name, person.screen.colours)


@scenario
def nc_gets_no_sequences_and_no_negotiation(world):
    """What asks whether it is telnet may come with the first question, and not again."""
    world.start()
    person, remy = sit(world, kind="nc"), world.person("Remy")
    first = len(person.commands)
    remy.say("hello")
    person.see_message("Remy", "hello")
    for line in ("/help", "/who", "hi"):
        person.line(line)
    remy.expect_message("hi")
    remy.type()
    remy.say("end")
    person.see_message("Remy", "end")
    assert len(person.commands) == first and b"\x1b" not in person.raw and b"\b" not in person.raw, bytes(person.raw)[-400:]


# MARK: - The room's other sides


@scenario
@alone("measures how soon typing is seen")
def three_sides_talk(world):
    """IRC, telnet and the backend: each sees the others' typing within 300 ms, and ticks after reading."""
    world.start()
    bob, remy, ann = world.irc("bob"), world.person("Remy"), sit(world)
    waits = {}

    def timed(name, act, seen):
        began = time.monotonic()
        act()
        seen()
        waits[name] = time.monotonic() - began

    def irc_sees(nick):
        return lambda: bob.expect("TAGMSG", lambda line: line.source.startswith(nick) and line.tags.get("+typing") == "active")

    def backend_sees(nick):
        return lambda: remy.expect("typing of " + nick, lambda f: f["event"] == "typing" and f["sender_name"] == nick)

    timed("Remy at ann's", remy.type, lambda: ann.see_now("Remy is typing"))
    irc_sees("Remy!")()
    remy.say("r1")
    timed("bob at ann's", lambda: bob.send("@+typing=active TAGMSG #lobby"), lambda: ann.see_now("bob is typing"))
    backend_sees("bob")()
    bob.say("#lobby", "b1")
    first = remy.expect_message("b1")
    ann.see_message("bob", "b1")
    timed("ann at Remy's", lambda: ann.type("a"), backend_sees("ann"))
    irc_sees("ann!")()
    ann.line("1")
    second = remy.expect_message("a1")
    # Ticks of Remy for both, and of both for Remy.
    remy.read(first["message_id"])
    bob.expect("TAGMSG", lambda line: line.source.startswith("Remy!") and line.tags.get("+draft/read"))
    remy.read(second["message_id"])
    ann.see("✓✓ read by Remy")
    said = remy.say("r2")
    at = bob.expect_text("r2").tags["time"]
    bob.send("MARKREAD #lobby timestamp=" + at)
    ann.see_message("Remy", "r2")
    ann.line("a2")
    for nick in ("bob", "ann"):
        found = [f for f in remy.frames if f["event"] == "readReceipt" and f["sender_name"] == nick and f["message_id"] == said]
        if not found:
            remy.expect(
                "a receipt of " + nick,
                lambda f: f["event"] == "readReceipt" and f["sender_name"] == nick and f["message_id"] == said)
    assert max(waits.values()) < 0.3, waits
    return ", ".join("%s %.0f ms" % (name, 1000 * seconds) for name, seconds in waits.items())


@scenario
def on_irc_it_is_an_ordinary_user(world):
    world.start()
    ann, bob = sit(world), watcher(world)
    bob.send("WHOIS ann")
    assert bob.expect("311").params[1] == "ann"
    bob.expect("318")
    bob.send("NAMES #lobby")
    assert "ann" in bob.expect("353").params[-1].replace("@", "").split()
    bob.send("WHO #lobby")
    bob.expect("352", lambda line: "ann" in line.params)
    bob.send("MONITOR + ann")
    bob.expect("730", lambda line: line.params[-1].startswith("ann"))
    ann.type("a")
    bob.expect("TAGMSG", lambda line: line.source.startswith("ann!") and line.tags.get("+typing") == "active")
    ann.line("bc")
    line = bob.expect_text("abc")
    assert line.source.startswith("ann!") and line.tags.get("msgid"), line.raw
    ann.line("/quit")
    bob.expect("QUIT", lambda line: line.source.startswith("ann!"))


@scenario
def who_hangs_up_quits(world):
    world.start()
    for number, kind in enumerate(KINDS):
        nick = "ann%d" % number
        sit(world, nick, kind=kind).hang_up()
        watcher(world).expect("QUIT", lambda line: line.source.startswith(nick + "!"))


@scenario
def pings_are_not_for_people(world):
    """Who cannot answer a PING is not thrown out for it, and sees none."""
    world.start(limits='messages_per_second = "off"\nping_interval = "1s"\nping_timeout = "1s"')
    people = [sit(world, "ann%d" % number, kind=kind) for number, kind in enumerate(KINDS)]
    watch, remy = watcher(world), world.person("Remy")
    for _ in range(5):
        watch.expect("PING")
    remy.say("still there?")
    for person in people:
        person.see_message("Remy", "still there?")
        not_irc(person)


@scenario
def typed_lines_from_a_pipe_are_heard_to_the_end(world):
    """`printf … | nc -N`: all in one piece, and the sender's side is closed."""
    world.start()
    watch = watch_room(world, "#lobby")
    with socket.create_connection(("127.0.0.1", world.bridge.port), PATIENCE) as sock:
        sock.sendall("\nann\n#lobby\nfrom a pipe\nünd noch eine\n".encode())
        sock.shutdown(socket.SHUT_WR)
        watch.expect_text("from a pipe")
        watch.expect_text("ünd noch eine")
        watch.expect("QUIT", lambda line: line.source.startswith("ann!"))


@scenario
def a_lost_link_is_told_in_words_and_loses_nothing(world):
    world.start()
    remy = world.person("Remy")
    people = [sit(world, "ann%d" % number, kind=kind) for number, kind in enumerate(KINDS)]
    remy.say("before")
    for person in people:
        person.see_message("Remy", "before")
    marks = [person.mark() for person in people]
    world.relay.stop_listening()
    world.relay.drop()
    for person, since in zip(people, marks):
        person.hear(r"(?i)link|lost|connection|backend", since)
        person.line("meanwhile of " + person.nick)
        person.hear(r"(?i)queue|wait|later|sent when|back", since)
    marks = [person.mark() for person in people]
    world.relay.listen()
    world.relay.wait_for_bridge()
    for person, since in zip(people, marks):
        person.hear(r"(?i)\bback\b|again|return|restored", since)
    wait_until(lambda: len(world.relay.messages_from_bridge()) >= 3, "all three messages")
    remy.say("after")
    for person in people:
        person.see_message("Remy", "after")
        assert person.messages("Remy") == ["before", "after"], person.screen.text()
        not_irc(person)
    bodies = [f["body"] for f in world.relay.messages_from_bridge()]
    assert sorted(bodies) == ["meanwhile of ann%d" % number for number in range(3)], bodies


@scenario
def the_end_of_the_bridge_is_told_in_words(world):
    world.start()
    people = [sit(world, "ann%d" % number, kind=kind) for number, kind in enumerate(KINDS)]
    marks = [person.mark() for person in people]
    bridge, world.bridge = world.bridge, None
    assert bridge.terminate() == 0
    for person, since in zip(people, marks):
        person.wait_closed()
        not_irc(person)
        assert re.search(r"\w{3}", person.screen.printed[since:]), "%s was left without a word" % person.kind


@scenario
def two_rooms_are_told_apart(world):
    world.start(rooms=("lobby", "kitchen"))
    person = sit(world)
    watch = watch_room(world, "#kitchen")
    person.line("/join #kitchen")
    watch.expect("JOIN", lambda line: line.source.startswith("ann!") and line.params[0] == "#kitchen")
    person.line("to the kitchen")
    assert watch.expect_text("to the kitchen").params[0] == "#kitchen"
    world.person("Remy").say("in the lobby")
    world.person("Linguini", "kitchen").say("in the kitchen")
    lobby = person.see(r"^.*in the lobby$").group(0)
    kitchen = person.see(r"^.*in the kitchen$").group(0)
    assert re.search(row("Linguini", "in the kitchen"), kitchen) or "kitchen" in kitchen.partition("<")[0], kitchen
    assert "lobby" in lobby.partition("<")[0] or "lobby" in person.screen.text().partition(lobby)[0].splitlines()[-1], person.screen.text()
