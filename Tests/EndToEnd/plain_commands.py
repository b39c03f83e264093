"""Commands of the plain mode."""

import re

from backends import on
from peer import wait_until
from plain_screen import KINDS, row, sit, watch_room, watcher
from world import scenario

COMMANDS = ("join", "part", "who", "rooms", "me", "reply", "react", "msg", "history", "search", "nick", "quit", "help")


def said(world, nick="ann"):
    return [f["body"] for f in world.relay.messages_from_bridge() if f["sender_name"] == nick]


@scenario
def help_names_every_command(world):
    world.start()
    for number, kind in enumerate(KINDS):
        person = sit(world, "ann%d" % number, kind=kind)
        person.line("/help")
        for command in COMMANDS:
            person.see(r"(^|\W)/%s\b" % command)


@scenario
def help_fits_one_screen(world):
    """24 lines of 80 columns, with the line to type on."""
    world.start()
    person = sit(world, width=80, height=24)
    person.line("/help")
    for command in COMMANDS:
        person.see_now(r"(^|\W)/%s\b" % command)
    assert not any(person.screen.wrapped), "\n".join(person.screen.rows())


@scenario
def a_typo_gets_the_nearest_command(world):
    world.start()
    person, remy = sit(world), world.person("Remy")
    for typo, command in (
        ("jion", "join"), ("prat", "part"), ("whoo", "who"), ("roms", "rooms"), ("mee", "me"), ("repyl", "reply"), ("mgs", "msg"),
        ("histroy", "history"), ("saerch", "search"), ("qiut", "quit"), ("hlep", "help"),
    ):
        since = person.mark()
        person.line("/%s x" % typo)
        person.hear(r"/%s\b" % command, since)
    person.line("end")
    remy.expect_message("end")
    assert said(world) == ["end"], "typos went up: %r" % said(world)


@scenario
def commands_are_told_in_any_case_and_arent_said(world):
    world.start()
    person, remy = sit(world), world.person("Remy")
    since = person.mark()
    person.line("/HELP")
    person.hear("/search", since)
    for line in ("/zzzzzzzz", "/who", "/rooms"):
        person.line(line)
    person.line("end")
    remy.expect_message("end")
    assert said(world) == ["end"], said(world)


@scenario
def quit_says_goodbye(world):
    world.start()
    for number, kind in enumerate(KINDS):
        nick = "ann%d" % number
        person = sit(world, nick, kind=kind)
        since = person.mark()
        person.line("/quit")
        person.wait_closed()
        assert re.search(r"(?i)bye|farewell|see you|until", person.screen.printed[since:]), person.screen.text()
        assert not person.screen.before_cursor(), "the shell's prompt would not be at the left:\n" + person.screen.text()
        watcher(world).expect("QUIT", lambda line: line.source.startswith(nick + "!"))


@scenario
def quit_takes_a_reason_along(world):
    world.start()
    person = sit(world)
    person.line("/quit off to the kitchen")
    quit_line = watcher(world).expect("QUIT", lambda line: line.source.startswith("ann!"))
    assert "off to the kitchen" in quit_line.params[-1], quit_line.raw


@scenario
def who_lists_both_sides(world):
    world.start()
    person, remy = sit(world), world.person("Remy")
    world.irc("bob")
    remy.say("here")
    person.see_message("Remy", "here")
    since = person.mark()
    person.line("/who")
    for nick in ("ann", "bob", "Remy", "watch"):
        person.hear(r"(^|\W)%s\b" % nick, since)


@scenario
def rooms_are_listed(world):
    world.start(rooms=("lobby", "kitchen"))
    person = sit(world)
    since = person.mark()
    person.line("/rooms")
    person.hear(r"lobby", since)
    person.hear(r"kitchen", since)


@scenario
def join_and_part_change_the_room(world):
    world.start(rooms=("lobby", "kitchen"))
    person = sit(world)
    watch = watch_room(world, "#kitchen")
    for name in ("#kitchen", "kitchen"):
        person.line("/join " + name)
        watch.expect("JOIN", lambda line: line.source.startswith("ann!") and line.params[0] == "#kitchen")
        person.line("soup")
        watch.expect("PRIVMSG", lambda line: line.params == ["#kitchen", "soup"])
        person.line("/part")
        watch.expect("PART", lambda line: line.source.startswith("ann!") and line.params[0] == "#kitchen")
    # Back where one still is.
    person.line("/join #lobby")
    person.line("in the lobby")
    watch.expect("PRIVMSG", lambda line: line.params == ["#lobby", "in the lobby"])


@scenario
def a_room_that_is_none_is_told(world):
    world.start()
    person = sit(world)
    since = person.mark()
    person.line("/join #nowhere")
    person.hear(r"(?i)no (such )?room|no such|not|unknown|/rooms", since)
    person.line("still in the lobby")
    watcher(world).expect("PRIVMSG", lambda line: line.params == ["#lobby", "still in the lobby"])


@scenario
def words_without_a_room_are_not_lost_in_silence(world):
    world.start()
    person = sit(world)
    person.line("/part")
    watcher(world).expect("PART", lambda line: line.source.startswith("ann!"))
    since = person.mark()
    person.line("does anybody hear me?")
    person.hear(r"(?i)room|/join", since)
    assert not said(world), said(world)


@scenario
def messages_to_one_person_reach_that_one(world):
    world.start()
    ann, bob, carl = sit(world, "ann"), sit(world, "bob", kind="nc"), world.irc("carl")
    ann.line("/msg carl between us")
    line = carl.expect("PRIVMSG", lambda line: line.params == ["carl", "between us"])
    assert line.source.startswith("ann!"), line.raw
    carl.say("ann", "only you")
    ann.see(r"carl.*only you$")
    ann.line("/msg bob and for you")
    bob.see(r"ann.*and for you$")
    # It does not look like one for the room.
    assert not re.search(row("ann", "and for you"), bob.screen.text(), re.M), bob.screen.text()
    since = ann.mark()
    ann.line("/msg nobody-here hello")
    ann.hear(r"(?i)nobody-here", since)
    assert not said(world), said(world)


@scenario
def bodies_that_begin_with_a_slash_in_messages_are_words(world):
    world.start()
    ann, remy = sit(world), world.person("Remy")
    remy.say("/quit")
    remy.say("/part #lobby")
    ann.see_message("Remy", "/part #lobby")
    ann.line("still here")
    remy.expect_message("still here")


@on("typed", "custom")
def reply_is_a_reply(m):
    """To the newest message of somebody."""
    m.start()
    ann = sit(m)
    first = m.backend.say("Remy", "who wants soup?")
    ann.see_message("Remy", "who wants soup?")
    m.backend.say("Linguini", "something else")
    ann.see_message("Linguini", "something else")
    ann.line("/reply Remy I do")
    frame = wait_until(
        lambda: [f for f in m.backend.frames() if f["kind"] == "message" and (f.get("text") or "").endswith("I do")],
        lambda: "a message; the screen:\n" + (ann.drain() or ann.screen.text()))[0]
    assert frame["reply"] == first, frame
    assert frame["text"] == "I do", frame
    ann.see(r"I do$")


@on("typed", "custom")
def react_is_a_reaction(m):
    """To the newest message of somebody, or of anybody; upstream and on IRC."""
    m.start()
    ann, watch = sit(m), watcher(m)
    said = {}
    for name in ("Remy", "Linguini"):
        said[name] = m.backend.say(name, "I am " + name), watch.expect_text("I am " + name).tags["msgid"]
        ann.see_message(name, "I am " + name)
    for line, emoji, name in (("/react 👍 Remy", "👍", "Remy"), ("/react 🍲", "🍲", "Linguini")):
        ann.line(line)
        upstream_id, msgid = said[name]
        m.backend.expect("the reaction", kind="reaction", target=upstream_id, emoji=emoji, action="add", name="ann")
        shown = watch.expect("TAGMSG", lambda line: line.tags.get("+draft/react") == emoji)
        assert shown.source.startswith("ann!") and shown.tags["+reply"] == msgid, shown.raw


@scenario
def nick_changes_the_name_on_both_sides(world):
    world.start()
    ann, watch, remy = sit(world), watcher(world), world.person("Remy")
    ann.line("/nick anne")
    watch.expect("NICK", lambda line: line.source.startswith("ann!") and line.params == ["anne"])
    ann.see(r"^(?!.*/nick).*\banne\b")
    ann.line("called otherwise")
    assert watch.expect_text("called otherwise").source.startswith("anne!")
    assert remy.expect_message("called otherwise")["sender_name"] == "anne"


@scenario
def reply_without_a_message_is_told(world):
    world.start()
    ann = sit(world)
    since = ann.mark()
    ann.line("/reply Nobody yes")
    ann.hear(r"(?i)nobody|no message|nothing|usage|/reply", since)
    assert not said(world), said(world)


@scenario
def history_shows_what_was_said_before(world):
    world.start()
    watch, remy = watcher(world), world.person("Remy")
    watch_room(world, "#lobby")
    for number in range(8):
        remy.say("long ago %d" % number)
        watch.expect_text("long ago %d" % number)
    for number, kind in enumerate(KINDS):
        person = sit(world, "ann%d" % number, kind=kind)
        person.line("/history")
        person.see_message("Remy", "long ago 7")
        assert person.messages("Remy") == ["long ago %d" % n for n in range(8)], person.screen.text()


@scenario
def search_finds_words(world):
    world.start()
    watch, remy = watch_room(world, "#lobby"), world.person("Remy")
    for text in ("the soup is ready", "nothing to find", "more soup for you"):
        remy.say(text)
        watch.expect_text(text)
    person = sit(world)
    since = person.mark()
    person.line("/search soup")
    person.hear(r"<Remy> the soup is ready", since)
    person.hear(r"<Remy> more soup for you", since)
    assert "nothing to find" not in person.screen.printed[since:], person.screen.text()
    since = person.mark()
    person.line("/search zzzabc")
    person.hear(r"(?i)no(thing|ne)?\b|not found|0 ", since)


@scenario
def commands_without_their_words_are_told_how(world):
    world.start()
    person, remy = sit(world), world.person("Remy")
    for command in ("join", "me", "reply", "react", "msg", "search", "nick"):
        since = person.mark()
        person.line("/" + command)
        person.hear(r"\w{3}", since + len(command) + 2)
    person.line("end")
    remy.expect_message("end")
    assert said(world) == ["end"], said(world)


@scenario
def what_one_asks_is_not_shown_to_others(world):
    world.start()
    ann, bob = sit(world, "ann"), sit(world, "bob")
    since = bob.mark()
    for line in ("/help", "/who", "/rooms", "/history", "/search x", "/zzz"):
        ann.line(line)
    ann.line("end")
    bob.see_message("ann", "end")
    assert "/" not in bob.screen.printed[since:].replace("\r", "") and not re.search(
        r"(?i)search", bob.screen.printed[since:]), bob.screen.text()
