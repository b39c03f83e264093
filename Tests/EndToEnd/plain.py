"""The plain mode: people with telnet and nc on the IRC port. How they are recognised, come in and log in."""

import contextlib
import datetime
import re
import socket
import time

from accounts import account, log_in
from claims import check
from listeners import Secured, certificate, start
from marks import slow
from peer import IRC, PATIENCE, wait_until
from plain_screen import (
    ASKS_NAME, ASKS_PASSWORD, ASKS_ROOM, KINDS, NAWS, TTYPE, Seat, give_name, not_irc, open_session, seat, sit, watch_room,
    watcher,
)
from world import scenario

# Silence after which the session asks by itself: "a few seconds".
SILENCE = (1, 9)
WITH_HISTORY = "[room_defaults]\nhistory_on_join = 20\n"


def raw_irc(world):
    client = IRC(world.bridge.port)
    world.stack.callback(client.close)
    return client


def is_irc(client, nick, first=""):
    """Registers, and none of what plain mode says was sent."""
    client.nick = nick
    client.send_bytes((first + "NICK %s\r\nUSER %s 0 * :x\r\n" % (nick, nick)).encode())
    client.expect("001", lambda line: line.params[0] == nick)


# MARK: - Who is who


@scenario
def an_irc_command_first_is_irc(world):
    """In any form that IRC knows, whatever comes first."""
    world.start()
    for number, first in enumerate((
        "", "CAP LS 302\r\nCAP END\r\n", "CAP LS\r\nCAP END\r\n", "PASS x\r\n", "PING :1\r\n", "ping 1\r\n", "JOIN #lobby\r\n",
        ":me CAP LS\r\nCAP END\r\n", "@a=b CAP LS\r\nCAP END\r\n", "HELP\r\n", "LIST\r\n", "PRIVMSG #lobby :x\r\n",
        "AUTHENTICATE PLAIN\r\n",
    )):
        client = raw_irc(world)
        is_irc(client, "n%d" % number, first)
        bare = ("PING", "ERROR", "AUTHENTICATE", "CAP")
        strange = [line.raw for line in client.lines if not line.source and line.command not in bare]
        assert not strange, "%r was answered %r" % (first, strange)


@scenario
def an_irc_command_after_an_empty_line_is_irc(world):
    world.start()
    client = seat(world, "nc")
    client.send_bytes(b"\r\nNICK ann\r\nUSER ann 0 * :x\r\n")
    client.hear(r":bridge\.test 001 ann ")


@scenario
def an_irc_client_that_waits_first_is_irc(world):
    """The question after a silence is only text."""
    world.start()
    client = seat(world, "nc")
    client.hear(ASKS_NAME, patience=SILENCE[1])
    client.line("NICK ann\r")
    client.line("USER ann 0 * :x\r")
    client.hear(r"(^|\W):bridge\.test 001 ann ")
    client.line("JOIN #lobby\r")
    client.hear(r"^:bridge\.test 366 ann #lobby ")


@scenario
def an_irc_client_that_pauses_within_its_first_word_is_irc(world):
    world.start()
    client = seat(world, "nc")
    client.send_bytes(b"NI")
    # Asked meanwhile or not.
    with contextlib.suppress(AssertionError):
        client.hear(ASKS_NAME, patience=SILENCE[1])
    client.send_bytes(b"CK ann\r\nUSER ann 0 * :x\r\n")
    client.hear(r":bridge\.test 001 ann ")


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
    # Where it stands, what may stand there, and what does.
    assert status != 0 and "chatbridge.toml:10:9: " in said and '"on" or "off"' in said and "perhaps" in said, said


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


class SecureSeat(Secured, Seat):
    """A person at `openssl s_client -quiet`."""


@scenario
def a_person_comes_over_tls(world):
    cert, key = certificate(world, "localhost")
    (port,) = start(world, 'bind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"' % (cert, key))
    remy = world.person("Remy")
    person = SecureSeat(port, cert, "localhost", kind="nc")
    world.stack.callback(person.close)
    since = give_name(open_session(person), "ann")
    person.hear(ASKS_ROOM, since)
    person.line("#lobby")
    person.line("sealed")
    assert remy.expect_message("sealed")["sender_name"] == "ann"
    remy.say("and back")
    person.see_once("Remy", "and back")
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
def times_are_of_the_relays_zone(world):
    """`TZ`, here nine hours ahead of UTC: of what was said before one came, and of what is said then."""
    world.start(tables=WITH_HISTORY, wrapper=("env", "TZ=XYZ-9"))
    watch, remy = watch_room(world, "#lobby"), world.person("Remy")
    moments = [time.time() - seconds for seconds in (5000, 200)]
    remy.say("of then", sent_at=moments[0])
    watch.expect_text("of then")
    person = sit(world, "ann")
    person.see_message("Remy", "of then")
    remy.say("of now", sent_at=moments[1])
    person.see_message("Remy", "of now")
    shown = re.findall(r"^(\d\d:\d\d) <Remy> of ", person.screen.text(), re.M)
    assert shown == [time.strftime("%H:%M", time.gmtime(at + 9 * 3600)) for at in moments], shown


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
    # Told in words of people, and asked for one of the two again.
    person.hear(r"(?i)password|\bname\b", since)
    assert "SASL" not in person.screen.printed, person.screen.text()
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
def what_is_typed_before_a_question_answers_it(world):
    """Line by line or at once, before anything is on the screen; the password is on none, and in no log."""
    ways = [(kind, ends) for kind in ("character", "line", "nc") for ends in (False, True)]
    accounts = "\n".join(account("ann%d" % number, "secret-of-ann") for number in range(len(ways)))
    world.start(server_extra="[identity]\n\n" + accounts)
    watch = watch_room(world, "#lobby")
    for number, (kind, is_line_by_line) in enumerate(ways):
        person = seat(world, kind, initiates=False)
        lines = ["ann%d\n" % number, "secret-of-ann\n", "#lobby\n"]
        for text in lines if is_line_by_line else ["".join(lines)]:
            person.paste(text)
        watch.expect("JOIN", lambda line: line.source.startswith("ann%d!" % number))
        person.hear("#lobby ")
        assert "secret" not in person.screen.printed, person.screen.text()
    assert "secret" not in world.bridge.log()


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


def with_account(world, kind="character"):
    """The same account by IRC and in plain mode."""
    world.start(server_extra="[identity]\n\n" + account("ann", "secret-of-ann"))
    phone = log_in(world, "ann", "secret-of-ann", caps="sasl message-tags server-time draft/read-marker")
    phone.expect("903")
    phone.send("CAP END")
    phone.expect("001")
    watch = watch_room(world, "#lobby")
    phone.join("#lobby")
    watch.expect("JOIN", lambda line: line.source.startswith("ann!"))
    person = open_session(seat(world, kind))
    since = give_name(person, "ann")
    person.hear(ASKS_PASSWORD, since)
    since = person.mark()
    person.line("secret-of-ann")
    # Where the account's rooms are its own again at log-in, none need be asked for.
    person.hear(ASKS_ROOM + r"|#lobby", since)
    if not re.search("#lobby", person.screen.printed[since:]):
        person.line("#lobby")
    return phone, person, watch


@scenario
def an_account_is_one_person_by_irc_and_by_telnet(world):
    phone, person, watch = with_account(world)
    remy = world.person("Remy")
    person.line("by telnet")
    frames = [remy.expect_message("by telnet")]
    phone.say("#lobby", "by IRC")
    frames.append(remy.expect_message("by IRC"))
    person.see_message("ann", "by IRC")
    assert frames[0]["sender_id"] == frames[1]["sender_id"], frames
    person.line("/quit")
    person.wait_closed()
    phone.say("#lobby", "still here")
    watch.expect_text("still here")
    came = [line.command for line in watch.lines if line.source.startswith("ann!") and line.command in ("JOIN", "PART", "QUIT")]
    # The watcher took the first JOIN in, and there is no other.
    assert came == ["JOIN"], came


@scenario
def what_is_read_by_telnet_is_read_by_irc(world):
    """The marker of the account is one."""
    phone, person, watch = with_account(world)
    remy = world.person("Remy")
    person.line("who is there?")
    watch.expect_text("who is there?")
    remy.say("read me")
    at = watch.expect_text("read me").tags["time"]
    person.see_message("Remy", "read me")
    person.line("I did")
    phone.expect("MARKREAD", lambda line: line.params[0] == "#lobby" and line.params[-1] >= "timestamp=" + at)
