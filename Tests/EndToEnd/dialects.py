"""Features of the bridge, for every dialect that supports them: one scenario over the whole table in backends.py."""

import base64
import datetime
import time
import urllib.request

from backends import CALM, WIRES, on, on_wires
from peer import wait_until

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(12_000)).decode()


def nick_of(line):
    return line.source.split("!")[0]


def shown_at(line):
    stamp = datetime.datetime.strptime(line.tags["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
    return stamp.replace(tzinfo=datetime.timezone.utc).timestamp()


def introduce(setting, client, *users):
    """Some wires name people in messages alone: each says something first."""
    for user in users:
        setting.backend.say(user, "%s is here" % user)
        client.expect_text("%s is here" % user)


# MARK: - Messages


@on_wires()
def messages_cross_both_ways_with_identity(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.plain("bob")
    said_at = time.time()
    setting.backend.say("Remy", "hello — from \"Remy\" \\ 👩‍🚀")
    line = ann.expect_text("hello — from \"Remy\" \\ 👩‍🚀")
    assert nick_of(line) == "Remy", line.raw
    assert line.tags.get("msgid") and abs(shown_at(line) - said_at) < 3, line.raw
    assert nick_of(bob.expect_text("hello — from \"Remy\" \\ 👩‍🚀")) == "Remy"

    ann.say("#lobby", "hello — from IRC \\ \"quoted\" 👩‍🚀")
    frame = setting.backend.expect_text("ann", "hello — from IRC \\ \"quoted\" 👩‍🚀")
    assert frame["name"] == setting.wire.speaker("ann"), frame
    assert frame["op"] == ("binary" if setting.wire.name == "typed" else "text"), frame["op"]
    echo = ann.expect_text("hello — from IRC \\ \"quoted\" 👩‍🚀")
    assert nick_of(echo) == "ann" and echo.tags.get("msgid"), echo.raw
    line = bob.expect_text("hello — from IRC \\ \"quoted\" 👩‍🚀")
    assert nick_of(line) == "ann" and not line.tags, line.raw


@on_wires()
def everybody_sees_each_message_exactly_once(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    for turn in range(5):
        for client in (ann, bob):
            client.say("#lobby", "%s %d" % (client.nick, turn))
        for name in ("Remy", "Linguini"):
            setting.backend.say(name, "%s %d" % (name, turn))
    names = ("ann", "bob", "Remy", "Linguini")
    expected = {name: ["%s %d" % (name, turn) for turn in range(5)] for name in names}
    for client in (ann, bob):
        wait_until(lambda: len(client.texts()) >= 20, lambda: "%s has all: %r" % (client.nick, client.texts()))
        client.barrier()
        for name in names:
            assert client.texts(name) == expected[name], "%s saw of %s %r" % (client.nick, name, client.texts(name))
        assert len(client.texts()) == 20, client.texts()
    for nick in ("ann", "bob"):
        wait_until(lambda: len(setting.backend.heard(nick)) >= 5, "the backend has all of " + nick)
        assert setting.backend.heard(nick) == expected[nick], setting.backend.heard(nick)
    messages = [f for f in setting.backend.frames() if f["kind"] == "message"]
    assert len(messages) == 10, "%d frames for ten messages" % len(messages)
    if setting.wire.identity == "puppet":
        people = {(f["name"], f["sender"]) for f in messages}
        assert len(people) == 2, "two people have %d identities: %r" % (len(people), people)


@on_wires()
def msgids_agree_between_clients(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.say("Remy", "down")
    ann.say("#lobby", "up")
    for text in ("down", "up"):
        (first,), (second,) = wait_line(ann, text), wait_line(bob, text)
        assert first.tags["msgid"] == second.tags["msgid"], (first.raw, second.raw)


def wait_line(client, text):
    """The PRIVMSG lines with that text, at least one."""
    wait_until(lambda: text in client.texts(), lambda: "%s sees %r: %r" % (client.nick, text, client.texts()))
    return [line for line in client.lines if line.command == "PRIVMSG" and line.params[-1] == text]


@on_wires()
def several_lines_are_one_message_each_way(setting):
    setting.start()
    ann = setting.irc("ann")
    setting.backend.say("Remy", "first line\nsecond line")
    first, second = ann.expect_text("first line"), ann.expect_text("second line")
    assert first.tags.get("msgid") and not second.tags.get("msgid"), second.raw
    words = " ".join("word%d" % n for n in range(60))
    ann.say("#lobby", words)
    setting.backend.expect_text("ann", words)
    assert len(words) > 400


@on_wires()
def an_action_is_words_upstream(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    ann.say("#lobby", "\x01ACTION waves\x01")
    frame = setting.backend.expect("the action", kind="message")
    assert frame["text"] == "* ann waves", frame["text"]
    bob.expect_text("\x01ACTION waves\x01")


@on_wires(lambda wire: wire.identity == "puppet")
def one_account_speaks_for_all_where_so_configured(setting):
    setting.start(room_extra=CALM + 'identity = "single"\n')
    ann, bob = setting.irc("ann"), setting.irc("bob")
    ann.say("#lobby", "from ann")
    bob.say("#lobby", "from bob")
    frames = [setting.backend.expect("the message", kind="message") for _ in range(2)]
    assert {f["text"] for f in frames} == {"<ann> from ann", "<bob> from bob"}, frames
    assert len({f["sender"] for f in frames}) == 1, "one account has two identities: %r" % frames
    setting.backend.say("Remy", "end")
    for client in (ann, bob):
        wait_line(client, "end")
        client.barrier()
        assert sorted(client.texts()) == ["end", "from ann", "from bob"], client.texts()
        for line in client.lines:
            if line.command == "PRIVMSG" and line.params[-1].startswith("from "):
                assert nick_of(line) == line.params[-1][5:], line.raw


# MARK: - Typing


@on_wires(lambda wire: wire.typing_in)
def typing_comes_down(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.plain("bob")
    introduce(setting, ann, "Remy")
    setting.backend.do("typing", "Remy")
    line = ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "active")
    assert nick_of(line) == "Remy", line.raw
    began = time.monotonic()
    if setting.wire.typing_in == "start_stop":
        setting.backend.do("typing", "Remy", state="stop")
        ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "done")
        assert time.monotonic() - began < 2.5, "done came after %.1f s" % (time.monotonic() - began)
    else:
        ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "done")
        assert 2 < time.monotonic() - began < 5, "done came after %.1f s" % (time.monotonic() - began)
    bob.barrier()
    assert not [line for line in bob.lines if line.command == "TAGMSG"], "TAGMSG to a client without message-tags"


@on_wires(lambda wire: wire.typing_out)
def typing_goes_up(setting):
    setting.start()
    ann = setting.irc("ann")
    ann.send("@+typing=active TAGMSG #lobby")
    frame = setting.backend.expect("typing", kind="typing", state="start")
    if setting.wire.name != "plainjson":
        assert frame["name"] == setting.wire.speaker("ann"), frame
    if setting.wire.typing_out == "start_stop":
        ann.send("@+typing=done TAGMSG #lobby")
        setting.backend.expect("its end", kind="typing", state="stop")
        ann.send("@+typing=active TAGMSG #lobby")
        setting.backend.expect("typing again", kind="typing", state="start")
    ann.say("#lobby", "done")
    if setting.wire.typing_out == "start_stop":
        setting.backend.expect("the end before the message", kind="typing", state="stop")
    message = setting.backend.expect_text("ann", "done")
    assert message.get("sender") == frame.get("sender"), "one user, two ids"


@on_wires(lambda wire: wire.typing_out == "start_stop" and wire.identity == "single")
def typing_of_several_is_merged(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    ann.send("@+typing=active TAGMSG #lobby")
    setting.backend.expect("typing", kind="typing", state="start")
    bob.send("@+typing=active TAGMSG #lobby")
    bob.barrier()
    ann.send("@+typing=done TAGMSG #lobby")
    ann.barrier()
    bob.say("#lobby", "last")
    setting.backend.expect("its end", kind="typing", state="stop")
    setting.backend.expect_text("bob", "last")
    stops = [f for f in setting.backend.frames() if f["kind"] == "typing" and f["state"] == "stop"]
    assert len(stops) == 1, "the first who stopped stopped for both"


@on_wires(lambda wire: wire.typing_in == "start_stop")
def typing_that_nobody_ends_ends_by_itself(setting):
    setting.start()
    ann = setting.irc("ann")
    introduce(setting, ann, "Remy")
    setting.backend.do("typing", "Remy")
    ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "active")
    began = time.monotonic()
    ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "done")
    assert 2 < time.monotonic() - began < 8, "done came after %.1f s" % (time.monotonic() - began)


# MARK: - Receipts


@on_wires(lambda wire: wire.receipts_in)
def receipts_come_down(setting):
    setting.start()
    ann = setting.irc("ann")
    introduce(setting, ann, "Remy")
    ann.say("#lobby", "read this")
    frame = setting.backend.expect_text("ann", "read this")
    msgid = ann.expect_text("read this").tags["msgid"]
    setting.backend.do("read", "Remy", id=frame["id"])
    seen = ann.expect("TAGMSG", lambda line: "+draft/read" in line.tags)
    assert seen.tags["+draft/read"] == msgid and nick_of(seen) == "Remy", seen.raw


@on_wires(lambda wire: wire.receipts_out == "frame")
def receipts_go_up(setting):
    setting.start()
    ann = setting.irc("ann")
    wanted = [setting.backend.say("Remy", text) for text in ("one", "two")]
    ann.expect_text("one")
    at = ann.expect_text("two").tags["time"]
    ann.send("MARKREAD #lobby timestamp=" + at)
    wait_until(
        lambda: [i for f in setting.backend.frames() if f["kind"] == "receipt" for i in f["ids"]] == wanted,
        lambda: "receipts for %r: %r" % (wanted, [f for f in setting.backend.frames() if f["kind"] == "receipt"]))
    receipts = [f for f in setting.backend.frames() if f["kind"] == "receipt"]
    assert all(f["state"] == "read" for f in receipts), receipts
    ann.say("#lobby", "I am")
    me = setting.backend.expect_text("ann", "I am")["sender"]
    # The acks of plainjson name nobody.
    assert all(f["sender"] in (me, None) for f in receipts), (me, receipts)


@on_wires(lambda wire: wire.receipts_out == "call")
def reading_is_told_by_a_call(setting):
    setting.start()
    ann = setting.irc("ann")
    setting.backend.say("Remy", "one")
    at = ann.expect_text("one").tags["time"]
    ann.send("MARKREAD #lobby timestamp=" + at)
    calls = wait_until(lambda: setting.backend.requests("/mark-read"), "mark-read is called")
    assert calls[0]["method"] == "POST" and calls[0]["path"] == "/api/rooms/1/mark-read", calls
    wait_until(lambda: setting.backend.requests("/mark-read")[0]["status"] == 200, "the call is answered well")


# MARK: - Who is there


@on_wires(lambda wire: wire.joins_in)
def joins_and_leaves_come_down(setting):
    setting.start()
    ann = setting.irc("ann")
    for _ in range(2):
        setting.backend.do("join", "Eve")
    ann.expect("JOIN", lambda line: nick_of(line) == "Eve" and line.params[0] == "#lobby")
    setting.backend.say("Eve", "I am in")
    ann.expect_text("I am in")
    setting.backend.do("leave", "Eve", **({"force": True} if setting.wire.name == "jwt-rooms" else {}))
    wait_until(
        lambda: ann.drain() or [x for x in ann.lines if x.command in ("PART", "QUIT") and nick_of(x) == "Eve"],
        lambda: "Eve leaves; %r" % [x.raw for x in ann.lines[-4:]])
    ann.barrier()
    joins = [line.raw for line in ann.lines if line.command == "JOIN" and nick_of(line) == "Eve"]
    assert len(joins) == 1, joins


@on_wires(lambda wire: wire.joins_out)
def joins_and_leaves_go_up(setting):
    setting.start()
    ann = setting.irc("ann")
    setting.backend.expect("that ann came", kind="join", name="ann")
    ann.send("PART #lobby")
    setting.backend.expect("that ann left", kind="leave", name="ann")


@on_wires(lambda wire: wire.joins_out)
def a_kick_goes_up_as_a_leave(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.expect("that bob came", kind="join", name="bob")
    ann.send("KICK #lobby bob :enough")
    bob.expect("KICK", lambda line: line.params == ["#lobby", "bob", "enough"])
    setting.backend.expect("that bob left", kind="leave", name="bob")
    # Those who stay are still there.
    ann.say("#lobby", "end")
    setting.backend.expect_text("ann", "end")
    assert [f["name"] for f in setting.backend.frames() if f["kind"] == "leave"] == ["bob"]


# MARK: - Media


@on_wires(lambda wire: wire.media)
def a_file_is_a_line_with_a_link(setting):
    setting.start()
    ann = setting.irc("ann")
    setting.backend.do("upload", "Remy", filename="cat.png", mime="image/png", data_b64=PNG, text="look")
    ann.expect_text("look")
    line = ann.expect("PRIVMSG", lambda line: "cat" in line.params[-1])
    text = line.params[-1]
    assert nick_of(line) == "Remy" and text.startswith("["), line.raw
    assert "11 KiB" in text or "12 KiB" in text, text
    kind = "file" if setting.wire.name == "custom" else "image"
    assert text.startswith("[%s] cat.png" % kind), text
    if setting.wire.name == "directus":
        # Behind a token there: a link would be useless, and the token has no business on IRC.
        assert "token" not in text, text
        return text
    url = text.split()[-1]
    assert url.startswith("http"), text
    if setting.wire.name == "jwt-rooms":
        with urllib.request.urlopen(url, timeout=5) as answer:
            assert answer.read() == base64.b64decode(PNG), "the link opens something else"
    return text


@on("envelope")
def a_file_within_the_frame_is_never_printed(setting):
    setting.start()
    ann = setting.irc("ann")
    setting.backend.do("upload", "Remy", mime="image/png", data_b64=PNG)
    setting.backend.say("Remy", "end")
    ann.expect_text("end")
    texts = ann.texts("Remy")
    assert len(texts) == 2 and texts[0].startswith("[image, 11 KiB"), texts


# MARK: - What changes a message


@on_wires(lambda wire: wire.edits)
def an_edit_shows_the_new_text(setting):
    setting.start()
    ann = setting.irc("ann")
    message = setting.backend.say("Remy", "teh soup")
    msgid = ann.expect_text("teh soup").tags["msgid"]
    setting.backend.do("edit", "Remy", id=message, text="the soup")
    line = ann.expect_text("* the soup")
    assert line.tags.get("+reply") == msgid and nick_of(line) == "Remy", line.raw


@on_wires(lambda wire: wire.deletes_in)
def a_deletion_is_a_redaction(setting):
    setting.start()
    ann, bob = setting.irc("ann", more=["draft/message-redaction"]), setting.plain("bob")
    message = setting.backend.say("Remy", "regrettable")
    msgid = ann.expect_text("regrettable").tags["msgid"]
    setting.backend.do("delete", "Remy", id=message)
    line = ann.expect("REDACT")
    assert line.params[:2] == ["#lobby", msgid], line.raw
    bob.barrier()
    assert not [line for line in bob.lines if line.command == "REDACT"], "REDACT to a client that did not ask"
    setting.backend.say("Remy", "end")
    ann.expect_text("end")


@on_wires(lambda wire: wire.deletes_out)
def a_redaction_is_a_deletion(setting):
    setting.start()
    ann = setting.irc("ann", more=["draft/message-redaction"])
    ann.say("#lobby", "oops")
    frame = setting.backend.expect_text("ann", "oops")
    msgid = ann.expect_text("oops").tags["msgid"]
    ann.send("REDACT #lobby %s :by mistake" % msgid)
    found = setting.backend.expect("the deletion", kind="delete")
    if setting.wire.ids == "client":
        assert found["ids"] == [frame["id"]], found
    else:
        wait_until(lambda: not setting.backend.state()["messages"], "the message is gone")


@on_wires(lambda wire: wire.deletes_out)
def a_redaction_of_anothers_message_is_refused(setting):
    setting.start()
    ann = setting.irc("ann", more=["draft/message-redaction"])
    setting.backend.say("Remy", "mine")
    msgid = ann.expect_text("mine").tags["msgid"]
    ann.send("REDACT #lobby %s" % msgid)
    failure = ann.expect("FAIL")
    assert failure.params[:2] == ["REDACT", "REDACT_FORBIDDEN"], failure.raw
    ann.send("REDACT #lobby nothing-like-it")
    failure = ann.expect("FAIL")
    assert failure.params[:2] == ["REDACT", "UNKNOWN_MSGID"], failure.raw
    assert not [f for f in setting.backend.frames() if f["kind"] == "delete"]


@on_wires(lambda wire: wire.deletes_out)
def a_channel_operator_takes_back_what_irc_users_said(setting):
    setting.start()
    ann, bob = (setting.irc(nick, more=["draft/message-redaction"]) for nick in ("ann", "bob"))
    bob.say("#lobby", "rude")
    frame = setting.backend.expect_text("bob", "rude")
    msgid = ann.expect_text("rude").tags["msgid"]
    # Whoever was here first; nobody upstream was.
    ann.send("REDACT #lobby %s :not here" % msgid)
    found = setting.backend.expect("the deletion", kind="delete")
    if setting.wire.ids == "client":
        assert found["ids"] == [frame["id"]], found
    else:
        wait_until(lambda: not setting.backend.state()["messages"], "the message is gone")
    for client in (ann, bob):
        line = client.expect("REDACT")
        assert line.params == ["#lobby", msgid, "not here"] and line.source.startswith("ann!"), line.raw
    ann.say("#lobby", "so there")
    msgid = bob.expect_text("so there").tags["msgid"]
    bob.send("REDACT #lobby %s" % msgid)
    failure = bob.expect("FAIL")
    assert failure.params[:2] == ["REDACT", "REDACT_FORBIDDEN"], failure.raw


@on_wires(lambda wire: not wire.deletes_out)
def a_redaction_that_cannot_be_is_refused_aloud(setting):
    setting.start()
    ann = setting.irc("ann", more=["draft/message-redaction"])
    ann.say("#lobby", "oops")
    msgid = ann.expect_text("oops").tags["msgid"]
    ann.send("REDACT #lobby %s" % msgid)
    failure = ann.expect("FAIL")
    assert failure.params[:2] == ["REDACT", "REDACT_FORBIDDEN"], failure.raw


@on_wires(lambda wire: wire.reactions)
def reactions_cross_both_ways(setting):
    setting.start()
    ann = setting.irc("ann")
    message = setting.backend.say("Remy", "cheese")
    msgid = ann.expect_text("cheese").tags["msgid"]
    setting.backend.do("react", "Linguini", id=message, emoji="👍")
    line = ann.expect("TAGMSG", lambda line: "+draft/react" in line.tags)
    assert line.tags["+draft/react"] == "👍" and line.tags["+reply"] == msgid, line.raw
    assert nick_of(line) == "Linguini", line.raw
    setting.backend.do("react", "Linguini", id=message, emoji="👍", action="remove")
    line = ann.expect("TAGMSG", lambda line: "+draft/unreact" in line.tags)
    assert line.tags["+draft/unreact"] == "👍", line.raw

    ann.send("@+reply=%s;+draft/react=😂 TAGMSG #lobby" % msgid)
    frame = setting.backend.expect("the reaction", kind="reaction")
    assert (frame["target"], frame["emoji"], frame["action"]) == (message, "😂", "add"), frame
    ann.send("@+reply=%s;+draft/unreact=😂 TAGMSG #lobby" % msgid)
    frame = setting.backend.expect("its end", kind="reaction")
    assert (frame["target"], frame["emoji"], frame["action"]) == (message, "😂", "remove"), frame


@on_wires(lambda wire: wire.reactions)
def irc_users_see_each_others_reactions_once(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.say("Remy", "cheese")
    msgid = ann.expect_text("cheese").tags["msgid"]
    bob.expect_text("cheese")
    ann.send("@+reply=%s;+draft/react=👍 TAGMSG #lobby" % msgid)
    setting.backend.expect("the reaction", kind="reaction")
    setting.backend.say("Remy", "end")
    for client in (ann, bob):
        client.expect_text("end")
        client.barrier()
        seen = [line.raw for line in client.lines if "+draft/react" in line.tags]
        assert len(seen) == 1, "%s saw %r" % (client.nick, seen)
        assert ":ann!" in seen[0], seen


@on("jwt-rooms")
def only_six_emoji_go_up_and_the_others_stay_among_the_irc_users(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.say("Remy", "cheese")
    msgid = ann.expect_text("cheese").tags["msgid"]
    ann.send("@label=r1;+reply=%s;+draft/react=🧀 TAGMSG #lobby" % msgid)
    for client in (ann, bob):
        client.expect("TAGMSG", lambda line: line.tags.get("+draft/react") == "🧀" and line.source.startswith("ann!"))
    note = ann.expect("NOTE")
    assert note.params[:2] == ["TAGMSG", "REACTION_NOT_RELAYED"] and "👍" in note.raw and "😡" in note.raw, note.raw


@on_wires(lambda wire: not wire.reactions)
def a_reaction_that_cannot_go_up_stays_among_the_irc_users(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.say("Remy", "cheese")
    msgid = ann.expect_text("cheese").tags["msgid"]
    for emoji in "👍🧀":
        ann.send("@+reply=%s;+draft/react=%s TAGMSG #lobby" % (msgid, emoji))
        line = bob.expect("TAGMSG", lambda line: line.tags.get("+draft/react") == emoji)
        assert line.tags["+reply"] == msgid and line.source.startswith("ann!"), line.raw
    ann.barrier()
    notes = [line.params[1] for line in ann.lines if line.command == "NOTE" and line.params[0] == "TAGMSG"]
    assert notes == ["REACTION_NOT_RELAYED"], notes


@on_wires()
def a_reply_names_what_it_answers(setting):
    setting.start()
    ann = setting.irc("ann")
    message = setting.backend.say("Remy", "who took the cheese")
    msgid = ann.expect_text("who took the cheese").tags["msgid"]
    ann.send("@+reply=%s PRIVMSG #lobby :I did" % msgid)
    if setting.wire.replies:
        frame = setting.backend.expect_text("ann", "I did")
        assert frame["reply"] == message, frame
    else:
        frame = setting.backend.expect("the reply", kind="message")
        text = frame["text"]
        assert "<Remy> who took the cheese" in text and text.endswith("I did"), text


@on_wires(lambda wire: wire.replies)
def a_reply_from_there_points_back(setting):
    setting.start()
    ann = setting.irc("ann")
    ann.say("#lobby", "who took the cheese")
    frame = setting.backend.expect_text("ann", "who took the cheese")
    msgid = ann.expect_text("who took the cheese").tags["msgid"]
    message = frame.get("id") or setting.backend.state()["messages"][-1]["id"]
    setting.backend.say("Remy", "I did", reply_to=message)
    line = ann.expect_text("I did")
    assert line.tags.get("+reply") == msgid, line.raw


# MARK: - Hostile frames, odd frames

JUNK = [
    "", "{", "[]", "null", "7", '"text"', "\ufeff{}", "{}", '{"type":null}', '{"type":"message"}',
    '{"event":"message"}',
    '{"type":"message","message":7}', '{"did":"said"}', '{"did":"said","what":"{"}', '{"type":"chat.message"}',
    '{"type":"chat.message","payload":"!!!!"}', '{"type":"chat.message","payload":[1,2]}', '{"message":null}',
    '{"type":"subscription","event":"create","data":{}}', '{"type":"subscription","event":"create","data":[null,7]}',
    '{"type":"items"}', '{"type":"auth"}', '{"type":"nobody-knows-this"}', "[" * 2000, '{"a":' * 2000,
    '{"type":"message","timestamp":1e999}', '{"event":"message","sent_at":-1e308,"body":"x"}', '{"date":1e400}',
    '{"type":"message","message_id":99999999999999999999999999}', '{"\\ud800":1}', "x" * 100_000,
]


@on_wires()
def junk_from_the_backend_harms_nothing(setting):
    setting.start()
    ann = setting.irc("ann")
    connections = setting.backend.connections()
    for junk in JUNK:
        for op in ("text", "binary"):
            setting.backend.control("raw", text=junk, frame_op=op)
    setting.backend.control("raw", b64=base64.b64encode(bytes(range(256))).decode(), frame_op="binary")
    setting.backend.say("Remy", "still here")
    ann.expect_text("still here")
    ann.say("#lobby", "me too")
    setting.backend.expect_text("ann", "me too")
    assert setting.backend.connections() == connections, "junk cost the connection"


@on_wires()
def names_and_texts_that_break_lines_do_not(setting):
    setting.start()
    ann = setting.irc("ann")
    evil = "Ev il\r\nQUIT :x" if setting.wire.name not in ("directus", "jwt-rooms") else "Ev il"
    setting.backend.say(evil, "a\rb\nQUIT :gone\0 \x01ACTION x\x01")
    setting.backend.say("Remy", "end")
    ann.expect_text("end")
    ann.barrier()
    assert not [line for line in ann.lines if line.command == "QUIT"], "a line was made up"
    for line in ann.lines:
        assert line.command in "PRIVMSG JOIN PONG NOTICE TAGMSG MODE MARKREAD TOPIC BATCH CAP".split() or (
            line.command.isdigit()), line.raw


# MARK: - History


@on_wires(lambda wire: wire.history)
def what_was_said_before_the_start_is_not_news(setting):
    setting.serve()
    for n in range(3):
        setting.backend.say("Remy", "old %d" % n)
    setting.start()
    ann = setting.irc("ann")
    setting.backend.say("Remy", "new")
    ann.expect_text("new")
    ann.barrier()
    assert ann.texts() == ["new"], ann.texts()


@on_wires(lambda wire: wire.history)
def what_was_said_meanwhile_is_shown_once_in_order(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.say("Remy", "before")
    ann.say("#lobby", "mine before")
    for client in (ann, bob):
        client.expect_text("mine before")
    setting.backend.set(refuse=-1)
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    times = {}
    for n in range(6):
        times["meanwhile %d" % n] = time.time()
        setting.backend.say("Remy" if n % 2 else "Linguini", "meanwhile %d" % n)
    time.sleep(1.2)
    setting.backend.set(refuse=0)
    ann.expect_text("meanwhile 5")
    setting.backend.say("Remy", "after")
    expected = ["before"] + list(times) + ["after"]
    for client in (ann, bob):
        wait_line(client, "after")
        client.barrier()
        # "before" and ann's own first message may have crossed.
        got = [text for text in client.texts() if text != "mine before"]
        assert got == expected, "%s saw %r" % (client.nick, got)
        assert client.texts().count("mine before") == 1, client.texts()
    for text, at in times.items():
        (line,) = wait_line(ann, text)
        assert abs(shown_at(line) - at) < 1.1, "%s: %.1f s off" % (text, shown_at(line) - at)


@on_wires(lambda wire: wire.history)
def own_messages_are_not_shown_again_from_the_history(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    for n in range(4):
        ann.say("#lobby", "mine %d" % n)
        bob.say("#lobby", "his %d" % n)
    for client in (ann, bob):
        wait_until(lambda: len(client.texts()) >= 8, "all are shown")
    setting.backend.control("drop", abort=True)
    setting.wait_up(2)
    setting.backend.say("Remy", "end")
    for client in (ann, bob):
        client.expect_text("end")
        client.barrier()
        assert client.texts("ann") == ["mine %d" % n for n in range(4)], client.texts()
        assert client.texts("bob") == ["his %d" % n for n in range(4)], client.texts()
        assert len(client.texts()) == 9, client.texts()


@on_wires(lambda wire: wire.history)
def a_long_absence_is_caught_up_whole(setting):
    """More than the last fifty: the newest known message lies further back than a first look reaches."""
    setting.start(limits='messages_per_second = "off"\nupstream_messages_per_second = "off"\nmultiline = {}')
    ann = setting.irc("ann")
    moment = int(time.time())
    setting.backend.say("Remy", "known", at=moment)
    ann.expect_text("known")
    setting.backend.set(refuse=-1)
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    expected = ["missed %d" % n for n in range(130)]
    # All in the second of the newest known message: a page cut within it is no proof that nothing is missing.
    for text in expected:
        setting.backend.say("Remy", text, at=moment)
    setting.backend.set(refuse=0)
    ann.expect_text(expected[-1], patience=25)
    ann.barrier()
    assert ann.texts("Remy") == ["known"] + expected, ann.texts("Remy")[:3] + ["…"] + ann.texts("Remy")[-3:]


# MARK: - Words of the backend


@on("plainjson")
def words_of_the_backend_itself_are_notices(setting):
    setting.start()
    ann = setting.irc("ann")
    setting.backend.control("system", text="maintenance at noon", room="lobby")
    ann.expect("NOTICE", lambda line: line.params[-1].endswith("maintenance at noon"))


assert len(WIRES) == 7
