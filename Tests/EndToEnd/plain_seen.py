"""What people in plain mode see, and what the other sides see of them."""

import re
import socket
import time

from backends import on
from marks import alone
from peer import PATIENCE, wait_until
from plain_screen import KINDS, not_irc, row, sit, watch_room, watcher
from world import scenario


# MARK: - Seen by them


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
    person, linguini, remy, bob = sit(world), world.person("Linguini"), world.person("Remy"), world.irc("bob")
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
    remy.type()
    person.see_now(r"Remy is typing")
    # It ends by itself, too.
    person.see_gone(r"Remy is typing")


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


@on("typed", "custom", "jwt-rooms")
def reactions_are_told_in_words(m):
    m.start()
    person = sit(m)
    said = m.backend.say("Remy", "soup?")
    person.see_message("Remy", "soup?")
    m.backend.do("react", "Linguini", id=said, emoji="👍")
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


# MARK: - Seen of them


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
    """Who cannot answer a PING is not thrown out for it, and sees none; telnets answer by themselves."""
    world.start(limits='messages_per_second = "off"\nping_interval = "1s"\nping_timeout = "3s"')
    people = [sit(world, "ann%d" % number, kind=kind) for number, kind in enumerate(KINDS)]
    remy = world.person("Remy")
    # Well beyond the first PING and its time-out; a terminal answers when it reads.
    until = time.monotonic() + 6
    while time.monotonic() < until:
        for person in people:
            person.pump(0.1)
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
        # And then the relay's side is closed as well.
        sock.settimeout(PATIENCE)
        while sock.recv(4096):
            pass


@scenario
def who_ends_their_side_is_let_go_wherever_they_are(world):
    """`nc -N` waits for the relay's end of the connection too."""
    world.start()
    for number, said in enumerate(("", "ann\n", "ann\n/help\n", "ann\n#lobby\n", "ann\n#nowhere\n")):
        with socket.create_connection(("127.0.0.1", world.bridge.port), PATIENCE) as sock:
            sock.sendall(("\n" + said).encode())
            sock.shutdown(socket.SHUT_WR)
            sock.settimeout(PATIENCE)
            heard = b""
            while data := sock.recv(4096):
                heard += data
            assert b"Goodbye" in heard, (number, heard)


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
    above = person.screen.text().partition(lobby)[0].splitlines()[-1]
    assert "lobby" in lobby.partition("<")[0] or "lobby" in above, person.screen.text()
