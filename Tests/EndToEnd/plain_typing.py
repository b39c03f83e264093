"""The line that somebody in plain mode types: keys, letters of all scripts, others' doings, sizes, interrupts."""

import re
import time
import unicodedata

from marks import slow
from peer import wait_until
from plain_screen import (
    ASKS_ROOM, DO, ECHO, IAC, IP, KINDS, SGA, WILL, Screen, give_name, open_session, seat, sit, watch_room, watcher,
)
from world import scenario

# What looks like one letter, is several code points, and goes with one backspace.
CLUSTERS = {
    "an emoji": "🍲", "a cook (joined)": "👩\u200d🍳", "a family (joined)": "👨\u200d👩\u200d👧", "a flag": "🇫🇷", "a skin tone": "👍🏽",
    "a heart (variation)": "❤\ufe0f", "a keycap": "1\ufe0f\u20e3", "an e with an accent of its own": "e\u0301",
    "two accents": "a\u0323\u0302", "Hangul in parts": "\u1112\u1161\u11ab", "Chinese": "汤", "full width": "Ａ", "Devanagari": "कि",
}


def said(world, nick="ann"):
    return [f["body"] for f in world.relay.messages_from_bridge() if f["sender_name"] == nick]


# MARK: - The screen of the tests itself


@scenario
def the_screen_of_these_tests_shows_what_terminals_do():
    screen = Screen(10, 3)
    screen.feed("one\r\ntwo\r\nthree\r\nfour")
    assert screen.lines() == ["one", "two", "three", "four"] and screen.rows() == ["two", "three", "four"], screen.lines()
    screen.feed("\r\x1b[Kab\b\bX\x1b[Cc")
    assert screen.input_row() == "Xbc", screen.input_row()
    screen.feed("\r\x1b[2K汤汤e\u0301\x1b[4D")
    assert screen.input_row() == "汤汤e\u0301" and screen.x == 1, (screen.input_row(), screen.x)
    screen.feed("\x1b[1G\x1b[K0123456789ab")
    assert screen.lines()[-1] == "0123456789ab" and screen.input_row() == "0123456789ab" and screen.before_cursor() == "ab"
    screen.feed("\x1b[A\r\x1b[J汤" + "\x1b[31mred\x1b[0m👩\u200d🍳")
    assert screen.rows()[-2:] == ["汤red👩\u200d🍳", ""] and screen.colours == ["31"], screen.rows()
    for bad in ("\x1b[2J", "\x1b]0;title\a", "\x1bc", "\x9b31m", "\x1b[5;5H", "\x1b[6n", "\0", "\x0e"):
        try:
            Screen().feed(bad + "x" * 30)
        except AssertionError:
            continue
        raise AssertionError("%r passed" % bad)


# MARK: - Others while one types


@scenario
def messages_leave_the_line_being_typed_whole(world):
    world.start()
    remy, ann = world.person("Remy"), sit(world)
    ann.type("I am in the mid")
    ann.see_typed("I am in the mid")
    for number in range(30):
        remy.say("interrupting %d" % number)
    ann.see_message("Remy", "interrupting 29")
    ann.see_typed("I am in the mid")
    assert ann.messages("Remy") == ["interrupting %d" % number for number in range(30)], ann.screen.text()
    ann.line("dle")
    remy.expect_message("I am in the middle")
    ann.see_once("ann", "I am in the middle")
    assert ann.screen.text().count("in the mid") == 1, "remains of the line:\n" + ann.screen.text()


@scenario
def messages_leave_the_cursor_where_it_was(world):
    world.start()
    remy, ann = world.person("Remy"), sit(world)
    ann.type("abcdef")
    ann.key("left", "left", "left")
    ann.see_typed("abcdef", "abc")
    remy.say("interrupting")
    ann.see_message("Remy", "interrupting")
    ann.see_typed("abcdef", "abc")
    ann.type("X")
    ann.see_typed("abcXdef", "abcX")
    ann.enter()
    remy.expect_message("abcXdef")


@scenario
def typing_and_ticks_leave_the_line_being_typed_whole(world):
    world.start()
    remy, ann = world.person("Remy"), sit(world)
    ann.line("who reads?")
    first = remy.expect_message("who reads?")
    ann.type("half a li")
    ann.see_typed("half a li")
    remy.type()
    ann.see_now("Remy is typing")
    ann.see_typed("half a li")
    ann.type("n")
    ann.see_typed("half a lin")
    remy.read(first["message_id"])
    ann.see_now("✓✓ read by Remy")
    ann.see_typed("half a lin")
    ann.see_gone("Remy is typing")
    ann.see_typed("half a lin")
    ann.line("e")
    remy.expect_message("half a line")


@scenario
def typing_and_ticks_are_quiet_where_telnet_edits(world):
    """In line mode and in nc nobody knows what is half typed: nothing is printed into it."""
    world.start()
    remy, watch = world.person("Remy"), watcher(world)
    people = [sit(world, "ann", kind="line"), sit(world, "bob", kind="nc")]
    for person in people:
        person.line("who reads?")
        person.message = remy.expect_message("who reads?")
    # All that was still to come has come.
    remy.say("now")
    for person in people:
        person.see_message("Remy", "now")
        person.type("half a li")
        person.before = len(person.raw)
    remy.type()
    watch.expect("TAGMSG", lambda line: line.tags.get("+typing") == "active" and line.source.startswith("Remy!"))
    for person in people:
        remy.read(person.message["message_id"])
    # It ends by itself, too.
    watch.expect("TAGMSG", lambda line: line.tags.get("+typing") == "done" and line.source.startswith("Remy!"))
    watch.barrier()
    for person in people:
        person.drain()
        assert len(person.raw) == person.before, "%s: %r" % (person.kind, bytes(person.raw[person.before :]))
    # Messages do come between.
    for person in people:
        person.line("ne")
        remy.expect_message("half a line")


@scenario
def lines_typed_where_telnet_edits_are_whole_among_messages(world):
    world.start()
    remy = world.person("Remy")
    for kind, nick in (("line", "ann"), ("nc", "bob")):
        person = sit(world, nick, kind=kind)
        person.type("half a li")
        remy.say("interrupting " + nick)
        person.see(r"\d\d:\d\d <Remy> interrupting %s$" % nick)
        person.line("ne")
        assert remy.expect_message("half a line")["sender_name"] == nick


@scenario
def two_who_type_at_once_do_not_mix(world):
    world.start()
    ann, bob = sit(world, "ann"), sit(world, "bob")
    remy = world.person("Remy")
    for a, b in zip("one line of ann", "another of bobs"):
        ann.type(a)
        bob.type(b)
    ann.see_typed("one line of ann")
    bob.see_typed("another of bobs")
    ann.enter()
    bob.see_message("ann", "one line of ann")
    bob.see_typed("another of bobs")
    bob.enter()
    ann.see_message("bob", "another of bobs")
    assert remy.expect_message("one line of ann")["sender_name"] == "ann"
    assert remy.expect_message("another of bobs")["sender_name"] == "bob"


@scenario
def keys_are_typing_for_the_others(world):
    """In character mode; a line that is given up, or sent, ends it."""
    world.start()
    ann, bob, remy = sit(world), watcher(world), world.person("Remy")

    def typing(state):
        return bob.expect("TAGMSG", lambda line: line.source.startswith("ann!") and line.tags.get("+typing") == state)

    ann.type("h")
    typing("active")
    remy.expect("typing", lambda f: f["event"] == "typing" and f["sender_name"] == "ann")
    ann.key("backspace")
    ann.see_nothing_typed("h")
    # Given up: at once, or by itself after 6 s.
    typing("done")


# MARK: - Keys


@scenario
def a_line_can_be_edited(world):
    world.start()
    ann, remy = sit(world), world.person("Remy")
    for keys, text, behind in (
        (["abd", "left", "c", "end", "e"], "abcde", None),
        (["bc", "home", "a"], "abc", "a"),
        (["abxc", "left", "backspace", "end"], "abc", None),
        (["axb", "left", "left", "delete"], "ab", "a"),
        (["wrong", "ctrl-u", "right one"], "right one", None),
        (["two words", "ctrl-w", "letters"], "two letters", None),
        (["abcdef", "ctrl-a", "right", "right", "ctrl-k", "ctrl-e", "!"], "ab!", None),
        (["xab", "home", "delete", "end", "ctrl-h", "c"], "ac", None),
        (["left", "backspace", "delete", "right", "home", "end", "fine"], "fine", None),
    ):
        for key in keys:
            if key in ("left", "right", "home", "end", "delete", "backspace") or key.startswith("ctrl-"):
                ann.key(key)
            else:
                ann.type(key)
        ann.see_typed(text, behind)
        ann.enter()
        remy.expect_message(text)


@scenario
def keys_of_other_terminals_are_the_same(world):
    """Home, End and arrows as VT220, rxvt, Linux and screen send them, and in a terminal's application mode."""
    world.start()
    ann, remy = sit(world), world.person("Remy")
    ann.line("recalled")
    remy.expect_message("recalled")
    for number, (home, end) in enumerate((
        (b"\x1b[1~", b"\x1b[4~"), (b"\x1b[7~", b"\x1b[8~"), (b"\x1bOH", b"\x1bOF"), (b"\x1b[H", b"\x1b[F"),
    )):
        ann.type("b%d" % number)
        ann.send_bytes(home)
        ann.type("a")
        ann.see_typed("ab%d" % number, "a")
        ann.send_bytes(end)
        ann.line("!")
        remy.expect_message("ab%d!" % number)
    ann.type("xy")
    ann.send_bytes(b"\x1bOD")
    ann.see_typed("xy", "x")
    ann.send_bytes(b"\x1bOC")
    ann.see_typed("xy")
    ann.key("ctrl-u")
    ann.send_bytes(b"\x1bOA")
    ann.see_typed("ab3!")
    ann.send_bytes(b"\x1bOB")
    ann.see_nothing_typed("ab3!")
    # What no key is for here does nothing.
    for other in (b"\x1b[5~", b"\x1b[6~", b"\x1b[15~", b"\x1b[1;5C", b"\x1b[Z", b"\x1bOP", b"\x1b[2~", b"\x1b[200~", b"\x1b[201~"):
        ann.send_bytes(other)
    ann.line("done")
    remy.expect("the line", lambda f: f["event"] == "message" and f["body"].strip() == "done")


@scenario
def one_backspace_takes_one_letter_whatever_it_is(world):
    world.start()
    ann, remy = sit(world), world.person("Remy")
    for name, cluster in CLUSTERS.items():
        ann.type("ab" + cluster)
        ann.see_typed("ab" + cluster)
        ann.key("backspace")
        ann.see_typed("ab")
        ann.type("c")
        ann.see_typed("abc")
        ann.enter()
        remy.expect("%s gone" % name, lambda f: f["event"] == "message" and f["sender_name"] == "ann")
        got = said(world)[-1]
        assert got == "abc", "%s: %r" % (name, got)


@scenario
def backspaces_take_a_line_back_to_nothing(world):
    world.start()
    ann, remy = sit(world), world.person("Remy")
    ann.type("x")
    ann.see_typed("x")
    empty = ann.screen.input_row()[:-1].rstrip()
    ann.key("backspace")
    text = "a汤b🍲e\u0301👩\u200d🍳c"
    ann.type(text)
    ann.see_typed(text)
    for _ in range(12):
        ann.key("backspace")
    ann.expect("an empty line again", lambda: ann.screen.input_row() == empty)
    ann.line("ok")
    remy.expect_message("ok")
    assert said(world) == ["ok"], said(world)


@scenario
def width_counts_by_columns(world):
    """The cursor stands right behind wide letters, and moves over them as a whole."""
    world.start()
    ann, remy = sit(world), world.person("Remy")
    ann.type("汤汤x")
    ann.see_typed("汤汤x")
    start = ann.screen.x - 5
    ann.key("left")
    ann.expect("the cursor before x", lambda: ann.screen.x == start + 4)
    ann.key("left")
    ann.expect("the cursor before the second", lambda: ann.screen.x == start + 2)
    ann.type("汤")
    ann.expect("three of them", lambda: ann.screen.input_row().endswith("汤汤汤x") and ann.screen.x == start + 4)
    ann.key("backspace", "backspace")
    ann.see_typed("汤x", "")
    ann.expect("the cursor at the beginning", lambda: ann.screen.x == start)
    ann.enter()
    remy.expect_message("汤x")


@scenario
def letters_cut_between_bytes_are_whole(world):
    world.start()
    ann, remy = sit(world), world.person("Remy")
    text = "é汤🍲"
    for byte in text.encode():
        ann.send_bytes(bytes([byte]))
    ann.see_typed(text)
    ann.enter()
    remy.expect_message(text)


@scenario
def letters_of_all_scripts_go_through_in_each_kind(world):
    world.start()
    remy = world.person("Remy")
    text = "ünïcödé Привет 汤 שלום 🍲 👩\u200d🍳 🇫🇷 e\u0301"
    for number, kind in enumerate(KINDS):
        person = sit(world, "ann%d" % number, kind=kind)
        person.line(text)
        remy.expect("the text of " + kind, lambda f: f["event"] == "message" and unicodedata.normalize("NFC", f["body"]) == (
            unicodedata.normalize("NFC", text)))
        remy.say(text + str(number))
        person.see_message("Remy", text + str(number))


@scenario
def arrows_recall_lines(world):
    world.start()
    ann, remy = sit(world), world.person("Remy")
    for text in ("first", "second", "third"):
        ann.line(text)
        remy.expect_message(text)
    ann.type("dra")
    ann.see_typed("dra")
    ann.key("up")
    ann.see_typed("third")
    ann.key("up")
    ann.see_typed("second")
    ann.key("down")
    ann.see_typed("third")
    ann.key("up", "up", "up", "up", "up")
    ann.see_typed("first")
    ann.line(" again")
    remy.expect_message("first again")
    ann.key("up")
    ann.see_typed("first again")
    ann.key("down")
    ann.see_nothing_typed("first again")


@scenario
def passwords_are_not_recalled(world):
    world.start(server_extra='[identity]\npassword = "open sesame 7"\n')
    ann = open_session(seat(world))
    ann.line("ann")
    ann.hear("(?i)password")
    ann.line("open sesame 7")
    ann.hear("(?i)room")
    ann.key("up", "up", "up")
    ann.type("x")
    ann.expect("an x", lambda: ann.screen.before_cursor().endswith("x"))
    assert "sesame" not in ann.screen.printed, ann.screen.text()


@scenario
def tab_completes_names(world):
    """Those of the room: at the line's beginning as an address, within it as a word."""
    world.start()
    watch, ann, remy, linguini = watcher(world), sit(world), world.person("Remy"), world.person("Linguini")
    for person in (remy, linguini):
        person.say("here")
        watch.expect_text("here")
    ann.see_message("Linguini", "here")
    ann.type("Lin")
    ann.key("tab")
    ann.expect("Linguini", lambda: re.search(r"Linguini[:,]? ?$", ann.screen.before_cursor()))
    ann.line("look")
    remy.expect("the address", lambda f: f["event"] == "message" and re.fullmatch(r"Linguini[:,]? ?look", f["body"]))
    ann.type("ask re")
    ann.key("tab")
    ann.expect("Remy", lambda: re.search(r"ask Remy ?$", ann.screen.before_cursor()))
    ann.key("ctrl-u")
    ann.type("nobody-of-this-na")
    ann.key("tab")
    ann.see_typed("nobody-of-this-na")


@scenario
def tab_completes_rooms_and_commands(world):
    """Rooms where one is asked for and behind /join, with their # or without; commands at the line's beginning."""
    world.start(rooms=("lobby", "kitchen"))
    watch, ann = watch_room(world, "#kitchen"), open_session(seat(world))
    watch_room(world, "#lobby")
    ann.hear(ASKS_ROOM, give_name(ann, "ann"))
    for typed, completed, room in (("#ki", "#kitchen", "#kitchen"), ("/jo", "/join ", None), ("lo", "/join #lobby", "#lobby")):
        ann.type(typed)
        ann.see_typed(typed)
        ann.key("tab")
        ann.see_typed(completed)
        if room:
            ann.enter()
            watch.expect("JOIN", lambda line: line.source.startswith("ann!") and line.params[0] == room)


@scenario
def ctrl_d_leaves_from_an_empty_line_alone(world):
    world.start()
    ann, watch, remy = sit(world), watcher(world), world.person("Remy")
    ann.type("I stay")
    ann.key("ctrl-d")
    ann.enter()
    remy.expect_message("I stay")
    ann.key("ctrl-d")
    watch.expect("QUIT", lambda line: line.source.startswith("ann!"))
    ann.wait_closed()


@scenario
def every_end_of_a_line_is_one(world):
    world.start()
    ann, remy = sit(world), world.person("Remy")
    for number, end in enumerate((b"\r\0", b"\r\n", b"\n", b"\r")):
        ann.type("line %d" % number)
        ann.send_bytes(end)
        remy.expect_message("line %d" % number)
    # And none of them is two.
    ann.send_bytes(b"a\r\0b\r\nc\nd\r\0")
    remy.expect_message("d")
    assert said(world) == ["line 0", "line 1", "line 2", "line 3", "a", "b", "c", "d"], said(world)


@scenario
def long_lines_are_typed_and_sent_whole(world):
    """Longer than the terminal is wide, and than a line of IRC is long."""
    world.start()
    ann, remy = sit(world, width=40), world.person("Remy")
    text = " ".join("word%d" % number for number in range(120))
    ann.type(text)
    ann.expect("its end", lambda: ann.screen.before_cursor().endswith("d119"))
    remy.say("interrupting")
    ann.see_message("Remy", "interrupting")
    ann.expect("its end again", lambda: ann.screen.before_cursor().endswith("d119"))
    ann.enter()
    wait_until(lambda: said(world) and said(world)[-1].endswith("119"), lambda: "the end of the line; %r" % said(world))
    assert "".join(said(world)).replace(" ", "") == text.replace(" ", ""), said(world)
    ann.line("short")
    remy.expect_message("short")
    assert ann.screen.text().count("word0 ") <= 2, "remains of the line:\n" + ann.screen.text()


# MARK: - Paste


@scenario
def a_paste_of_fifty_lines_is_whole_and_in_order(world):
    world.start()
    remy = world.person("Remy")
    for number, kind in enumerate(KINDS):
        person = sit(world, "ann%d" % number, kind=kind)
        texts = ["%s %d: ünd so weiter 🍲" % (kind, line) for line in range(50)]
        person.paste("\n".join(texts) + "\n")
        wait_until(
            lambda: " ".join(remy.bodies(person.nick)).count("so weiter") >= 50,
            lambda: "all 50; %r" % remy.bodies(person.nick)[-3:])
        got = "\n".join(remy.bodies(person.nick)).split("\n")
        assert got == texts, "%s: lost, doubled or swapped: %r" % (kind, got[:5])
        if kind == "character":
            person.see_message(person.nick, texts[-1])
            assert person.messages(person.nick) == texts, person.screen.text()[-800:]


@scenario
@slow("50 lines at the default rate")
def a_paste_within_the_default_limits_is_only_delayed(world):
    world.start(limits="")
    ann, remy = sit(world), world.person("Remy")
    texts = ["line %d" % line for line in range(50)]
    ann.paste("\n".join(texts) + "\n")
    wait_until(lambda: len("\n".join(remy.bodies("ann")).split("\n")) >= 50, lambda: "all 50; %r" % remy.bodies("ann")[-3:], 60)
    assert "\n".join(remy.bodies("ann")).split("\n") == texts, remy.bodies("ann")


@scenario
def a_paste_without_an_end_waits_on_the_line(world):
    world.start()
    ann, remy = sit(world), world.person("Remy")
    ann.paste("one\ntwo\nthr")
    remy.expect_message("two")
    ann.see_typed("thr")
    ann.line("ee")
    remy.expect_message("three")


@scenario
def others_pastes_leave_the_line_being_typed_whole(world):
    world.start()
    ann, bob = sit(world, "ann"), sit(world, "bob")
    ann.type("half")
    ann.see_typed("half")
    texts = ["pasted %d" % line for line in range(50)]
    bob.paste("\n".join(texts) + "\n")
    ann.see_message("bob", "pasted 49")
    assert ann.messages("bob") == texts
    ann.see_typed("half")


# MARK: - Sizes


def widths_hold(person, width):
    assert not any(person.screen.wrapped), "the terminal had to wrap:\n" + person.screen.text()
    for line in person.screen.lines():
        columns = sum(2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1 for char in line)
        assert columns <= width, "%d columns: %s" % (columns, line)


@scenario
def messages_wrap_between_words_at_the_width(world):
    world.start()
    remy = world.person("Remy")
    text = " ".join("wort%d" % number for number in range(40))
    for number, width in enumerate((40, 62, 80, 132)):
        person = sit(world, "ann%d" % number, width=width, height=60)
        remy.say("%s end%d" % (text, number))
        person.see(r"end%d$" % number)
        shown = person.screen.text()
        shown = shown[shown.rindex("<Remy>") :].split()
        assert shown[1:42] == text.split() + ["end%d" % number], shown
        widths_hold(person, width)


@scenario
def wide_letters_wrap_at_the_width(world):
    world.start()
    person, remy = sit(world, width=41), world.person("Remy")
    remy.say("汤" * 100)
    remy.say("end")
    person.see_message("Remy", "end")
    assert person.screen.text().count("汤") == 100, person.screen.text()
    widths_hold(person, 41)


@scenario
def a_new_size_counts_at_once(world):
    world.start()
    person, remy = sit(world, width=120, height=50), world.person("Remy")
    person.type("half")
    person.see_typed("half")
    text = " ".join("wort%d" % number for number in range(30))
    person.resize(50, 50)
    # A letter behind it shows that it has come.
    person.type("y")
    person.see_typed("halfy")
    remy.say(text + " end0")
    person.see(r"end0$")
    widths_hold(person, 50)
    person.resize(120, 50)
    person.type("!")
    person.see_typed("halfy!")
    remy.say(text + " end1")
    person.see(r"end1$")
    last = person.screen.text().split("end0")[1]
    assert max(len(line) for line in last.splitlines()) > 60, last
    person.see_typed("halfy!")
    person.line(" a line")
    remy.expect_message("halfy! a line")


@scenario
def without_a_size_a_message_is_one_line(world):
    """Of nc nobody knows the width: its terminal wraps."""
    world.start()
    person, remy = sit(world, kind="nc", width=200), world.person("Remy")
    text = " ".join("wort%d" % number for number in range(20))
    remy.say(text + " end")
    person.see(r"end$")
    assert text.split() == [word for word in person.screen.text().split() if word.startswith("wort")]


# MARK: - Interrupts


@scenario
def ctrl_c_clears_the_line(world):
    world.start()
    bob = sit(world, "bob")
    for number, interrupt in enumerate((b"\x03", bytes([IAC, IP]))):
        ann = sit(world, "ann%d" % number)
        ann.type("never said")
        ann.see_typed("never said")
        ann.send_bytes(interrupt)
        ann.see_nothing_typed("never said")
        ann.line("said %d" % number)
        bob.see_message(ann.nick, "said %d" % number)
        assert said(world, ann.nick) == ["said %d" % number], said(world, ann.nick)


@scenario
def ctrl_c_on_an_empty_line_harms_nobody_else(world):
    """It may be the end of one's own session, and is of no other's."""
    world.start()
    remy = world.person("Remy")
    others = [sit(world, "bob"), sit(world, "carl", kind="line"), sit(world, "dora", kind="nc")]
    for number, (kind, interrupt) in enumerate(
        (
            ("character", b"\x03"), ("character", bytes([IAC, IP])), ("line", bytes([IAC, IP])),
            ("line", bytes([IAC, IP, IAC, DO, 6])),
        )
    ):
        ann = sit(world, "ann%d" % number, kind=kind)
        for _ in range(3):
            if not ann.closed:
                try:
                    ann.send_bytes(interrupt)
                except OSError:
                    break
            ann.pump(0.05)
        remy.say("after %d" % number)
        for other in others:
            other.see_message("Remy", "after %d" % number)


@scenario
def ctrl_c_before_a_name_harms_nobody(world):
    world.start()
    bob, remy = sit(world, "bob"), world.person("Remy")
    for interrupt in (b"\x03", bytes([IAC, IP]), b"\x04"):
        person = open_session(seat(world))
        person.type("an")
        person.send_bytes(interrupt)
        person.pump(0.1)
        person.hang_up()
    remy.say("still here")
    bob.see_message("Remy", "still here")


@scenario
def are_you_there_is_answered(world):
    """RFC 854: some visible evidence."""
    world.start()
    person = sit(world)
    since = person.mark()
    person.send_bytes(b"\xff\xf6")
    person.expect("an answer", lambda: len(person.screen.printed) > since)


@scenario
def a_telnet_that_refuses_character_mode_stays_in_its_own(world):
    world.start()
    person, remy = sit(world, kind="line"), world.person("Remy")
    began = time.monotonic()
    person.line("one")
    remy.expect_message("one")
    assert not person.remote_echo and SGA not in person.him, person.commands
    wills = [option for verb, option in person.commands if verb == WILL and option == ECHO]
    assert len(wills) <= 2, "it insists: %r" % person.commands
    person.line("two")
    remy.expect_message("two")
    return "%.2f s" % (time.monotonic() - began)
