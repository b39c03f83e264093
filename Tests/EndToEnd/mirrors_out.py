"""Messages of a room in the tools: names, text, changes, files, and what stays away."""

import json
import re
import time
import urllib.request

from dialects import PNG
from mirrors import TOOLS, account_for, await_number, mirrored, on_tools, say_all, shows, visible
from operating import command_output
from peer import wait_until

NAMED = ("mattermost", "rocketchat", "discord")
MARKDOWN = ("mattermost", "rocketchat", "discord", "teams")
FLOOD = "@channel @here @everyone @all @ada <!channel> <!here|here> <!everyone> <@U1> <@&9> <@!7> <at>ada</at> @room"


@on_tools(*TOOLS)
def a_message_goes_out_once(m, tool):
    m.open(m.mirror(tool))
    ann, bob = m.irc("ann"), m.plain("bob")
    ann.say("#lobby", "hello — from IRC")
    m.tools.expect_said(tool, "ann", "hello — from IRC")
    m.backend.say("Remy", "bonjour à tous 🍲")
    m.tools.expect_said(tool, "Remy", "bonjour à tous 🍲")
    bob.say("#lobby", "end")
    m.tools.expect_said(tool, "bob", "end")
    shown = m.tools.messages(tool)
    assert len(shown) == 3, [message["raw"] for message in shown]
    assert all(200 <= request["status"] < 300 for request in m.tools.requests(tool)), m.tools.requests(tool)


@on_tools(*TOOLS)
def nothing_of_before_it_was_there_goes_out(m, tool):
    """Neither what was said before the mirror was configured, nor joins, typing, or lines of the bridge."""
    m.open()
    ann = m.irc("ann")
    ann.say("#lobby", "before")
    ann.expect_text("before")
    # Answered when all before it is stored, and in the room's order.
    assert "before" in command_output(m, "history", "lobby")
    m.kill()
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    m.backend.do("join", "Remy")
    m.backend.do("typing", "Remy")
    ann.send("@+typing=active TAGMSG #lobby")
    m.backend.do("leave", "Remy")
    ann.say("#lobby", "after")
    m.tools.expect_said(tool, "ann", "after")
    assert len(m.tools.messages(tool)) == 1, [message["raw"] for message in m.tools.messages(tool)]


@on_tools(*NAMED)
def names_and_pictures_by_their_templates(m, tool):
    m.open(m.mirror(tool, username="{nick} in {room} ({channel})", avatar_url="https://pics.example/{nick}.png?r={room}"))
    m.irc("a|b").say("#lobby", "with a picture")
    shown = m.tools.expect(tool, "it", lambda message: visible(message["text"]) == "with a picture")
    assert shown["name"] == "a|b in lobby (#lobby)", shown
    # A nick is a piece of an address here.
    assert shown["avatar"] == "https://pics.example/a%7Cb.png?r=lobby", shown


@on_tools("discord")
def names_that_the_tool_refuses(m, tool):
    """A name that it refuses must cost no message: it refuses these, and more than 80 characters."""
    m.open(m.mirror(tool, username="{nick}" + "y" * 75))
    for nick in ("discordfan", "Clyde", "x"):
        m.irc(nick).say("#lobby", "this is " + nick)
        shown = m.tools.expect(tool, nick, lambda message: visible(message["text"]).endswith("this is " + nick))
        assert 1 <= len(shown["name"]) <= 80, shown
    m.kill()
    m.open(m.mirror(tool))
    for nick in ("here", "everyone"):
        m.irc(nick).say("#lobby", "this is " + nick)
        m.tools.expect(tool, nick, lambda message: visible(message["text"]).endswith("this is " + nick))


# MARK: - Text


@on_tools(*TOOLS)
def mentions_are_defused(m, tool):
    """A flood of them notifies nobody, and reads as it was said."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    ann.say("#lobby", FLOOD)
    m.backend.say("Remy", " ".join([FLOOD] * 12))
    first = m.tools.expect_said(tool, "ann", FLOOD)
    found = m.tools.expect(tool, "the flood", lambda message: message["name"] == "Remy" or "Remy" in message["text"])
    for message in (first, found):
        assert message["mentions"] == [], message
    if tool == "json":
        assert first["raw"] == FLOOD, "the plain form has the text as it was said: %r" % first["raw"]


@on_tools(*TOOLS)
def a_name_mentions_nobody_either(m, tool):
    m.open(m.mirror(tool))
    for user in ("@channel", "<!channel>", "@everyone", "<at>ada</at>", "**x**", "[a](https://evil.example)"):
        m.backend.say(user, "by a strange name")
        shown = m.tools.expect(tool, user, lambda message: message["text"].endswith("by a strange name"))
        assert shown["mentions"] == [] and shown["links"] == [], shown


@on_tools(*TOOLS)
def an_edit_mentions_nobody_either(m, tool):
    m.open(m.mirror(tool))
    first = m.backend.say("Remy", "harmless")
    m.tools.expect_said(tool, "Remy", "harmless")
    m.backend.do("edit", "Remy", id=first, text="wake up @everyone @channel <!here>")
    wait_until(lambda: any("wake up" in message["text"] for message in m.tools.messages(tool)), "the edit is there")
    assert not any(message["mentions"] for message in m.tools.messages(tool)), m.tools.messages(tool)


@on_tools("mattermost", "rocketchat", "discord")
def mentions_that_are_allowed(m, tool):
    m.open(m.mirror(tool, mentions="allow"))
    word = "everyone" if tool == "discord" else "all"
    m.irc("ann").say("#lobby", "dinner, @%s!" % word)
    shown = m.tools.expect(tool, "it", lambda message: "dinner" in message["text"])
    assert shown["mentions"] == [word], shown


@on_tools(*MARKDOWN, "slack")
def a_link_shows_where_it_leads(m, tool):
    m.open(m.mirror(tool))
    address = "https://evil.example/login"
    for text in ("[your bank](%s)" % address, "<%s|your bank>" % address, "see %s?a=1&b=2_c_d" % address):
        m.irc("ann" + str(len(text))).say("#lobby", text)
        shown = m.tools.expect(tool, text, lambda message: "your bank" in message["text"] or "see" in message["text"])
        assert address in shown["text"], shown
    assert "?a=1&b=2_c_d" in shown["text"], shown


LOOK_ALIKES = str.maketrans({"\u2217": "*", "\uff3f": "_", "\u223c": "~", "\u02cb": "`", "\uff40": "`"})


@on_tools(*TOOLS)
def plain_text_stays_whole(m, tool):
    """What only looks like markup is no markup: names with underscores, products, paths, entities, quotes."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    texts = [
        "snake_case_names, 2 * 3 * 4 and __init__.py", "C:\\dir\\new and \\\\server\\share", "a < b && c > d &amp; &lt;x&gt;",
        'he said "hi" \\o/', "# no heading", "> no quote", "1. no list", "- no list either", "🏳️‍🌈 é e\u0301 שלום",
        "{nick} {text} %s %d",
        "\u200bbegins with nothing", "trailing backslash \\",
    ]
    for text in texts:
        ann.say("#lobby", text)
        # Nothing escapes a mark in Rocket.Chat: a character stands there that looks like it.
        m.tools.expect(tool, text, lambda message: visible(message["text"]).translate(
            LOOK_ALIKES if tool == "rocketchat" else {}).strip().endswith(visible(text).strip()))


@on_tools("slack", *MARKDOWN)
def formatting_of_irc_becomes_that_of_the_tool(m, tool):
    m.open(m.mirror(tool))
    m.irc("ann").say("#lobby", "\x02bold\x02 \x11code <x>\x11 \x1dslanted\x1d \x0304,12red\x03 \x1funder\x1f end")
    shown = m.tools.expect(tool, "it", lambda message: "slanted" in message["text"])
    assert "bold" in [visible(text) for text in shown["bold"]], shown
    if tool != "teams":
        assert any("code" in code for code in shown["code"]), shown
    assert visible(shown["text"]).strip().endswith("bold code <x> slanted red under end"), shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", shown["raw"]), shown


@on_tools(*TOOLS)
def controls_and_line_ends(m, tool):
    """Lines stay lines; CR, NUL and other controls go nowhere."""
    m.open(m.mirror(tool))
    m.backend.say("Remy", "one\r\ntwo\rthree\x00\x07\x1b[31m\n\n\nfour\u2028five\u0085six")
    shown = m.tools.expect(tool, "it", lambda message: "four" in message["text"])
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", shown["raw"]), shown
    lines = [line for line in shown["text"].splitlines() if line.strip()]
    assert lines[-1].endswith("six") and any(line.startswith("two") for line in lines), lines


@on_tools(*TOOLS)
def a_long_message_arrives_whole(m, tool):
    """Beyond every tool's limit: in as many messages as it takes, each word once and in order."""
    m.open(m.mirror(tool))
    words = ["w%04d" % number for number in range(6000)]
    m.backend.say("Remy", " ".join(words))
    m.backend.say("Remy", "end")
    m.tools.expect(tool, "the end", lambda message: visible(message["text"]).endswith("end"), patience=40)
    shown = m.tools.messages(tool)
    # One that the tool itself has split may go on within a word.
    got = re.findall(r"w\d{4}", "".join(message["text"] for message in shown))
    assert got == words, "%d words of %d; messages of %r" % (len(got), len(words), [len(x["raw"]) for x in shown])
    assert not any(message.get("cut") for message in shown), "the tool cut it off"
    return "%d messages" % (len(shown) - 1)


@on_tools(*TOOLS)
def no_character_is_cut_in_two(m, tool):
    """At a limit, families, flags and accents stay together, and pieces are not longer than the tool permits."""
    m.open(m.mirror(tool))
    cluster = "👩‍👩‍👧‍👦"
    m.backend.say("Remy", cluster * 3000)
    m.backend.say("Remy", "end")
    m.tools.expect(tool, "the end", lambda message: visible(message["text"]).endswith("end"), patience=40)
    pieces = [message for message in m.tools.messages(tool) if "👩" in message["text"]]
    whole = sum(message["text"].count("👧") for message in pieces)
    assert whole == 3000, "%d of 3000" % whole
    assert all(message["text"].count("👩") == 2 * message["text"].count("👧") for message in pieces), "cut within one"


# MARK: - Answers and changes


@on_tools(*TOOLS)
def answers_show_what_they_answer(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    first = m.backend.say("Remy", "is the cheese there?")
    msgid = ann.expect_text("is the cheese there?").tags["msgid"]
    question = m.tools.expect_said(tool, "Remy", "is the cheese there?")
    m.backend.say("Linguini", "it is", reply_to=first)
    ann.send("@+reply=%s PRIVMSG #lobby :now it is" % msgid)
    for nick, text in (("Linguini", "it is"), ("ann", "now it is")):
        answer = m.tools.expect(tool, text, lambda message: message["text"].endswith(text))
        if tool == "json":
            assert answer["thread"] == question["id"] and answer["whole"]["reply_to"]["nick"] == "Remy", answer
            assert answer["whole"]["reply_to"]["excerpt"].startswith("is the cheese"), answer
        elif not answer["thread"]:
            assert "cheese" in answer["text"] and "Remy" in answer["text"], answer
        assert shows({**answer, "name": answer["name"]}, nick, text) or answer["name"] == nick, answer


@on_tools(*TOOLS)
def an_edit_changes_the_message_or_follows_it(m, tool):
    m.open(m.mirror(tool))
    first = m.backend.say("Remy", "teh soup")
    m.tools.expect_said(tool, "Remy", "teh soup")
    m.backend.do("edit", "Remy", id=first, text="the soup")
    wait_until(lambda: any("the soup" in message["text"] for message in m.tools.messages(tool)), "the new text is there")
    m.irc("ann").say("#lobby", "end")
    m.tools.expect_said(tool, "ann", "end")
    shown = m.tools.messages(tool)
    if tool in ("discord", "json"):
        assert len(shown) == 2 and len(shown[0]["edits"]) == 1 and visible(shown[0]["text"]).endswith("the soup"), shown
    else:
        assert len(shown) == 3 and "Remy" in shown[1]["name"] + shown[1]["text"], shown


@on_tools(*TOOLS)
def a_deletion_deletes_where_it_can(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann", more=["draft/message-redaction"])
    first = m.backend.say("Remy", "regrettable")
    m.tools.expect_said(tool, "Remy", "regrettable")
    ann.say("#lobby", "oops")
    msgid = ann.expect_text("oops").tags["msgid"]
    m.tools.expect_said(tool, "ann", "oops")
    m.backend.do("delete", "Remy", id=first)
    ann.send("REDACT #lobby %s" % msgid)
    ann.expect("REDACT", lambda line: line.params[1] == msgid)
    ann.say("#lobby", "end")
    m.tools.expect_said(tool, "ann", "end")
    shown = m.tools.messages(tool)
    if tool in ("discord", "json"):
        assert [message["deleted"] for message in shown] == [True, True, False], shown
    assert not any("regrettable" in message["text"] for message in shown[2:]), "said again as it was deleted"


@on_tools("discord", "json")
def changes_are_in_order_with_messages_while_the_tool_is_away(m, tool):
    """An edit of a message that is not out yet, and a deletion of one."""
    m.open(m.mirror(tool))
    m.tools.refuse(tool)
    first, second = m.backend.say("Remy", "one"), m.backend.say("Remy", "two")
    m.backend.do("edit", "Remy", id=first, text="one, corrected")
    m.backend.do("delete", "Remy", id=second)
    m.backend.say("Remy", "three")
    ann = m.irc("ann")
    m.backend.say("Remy", "seen")
    ann.expect_text("seen")
    m.tools.accept(tool)
    m.tools.expect_said(tool, "Remy", "seen", patience=40)
    left = [visible(message["text"]) for message in m.tools.messages(tool) if not message["deleted"]]
    assert left == ["one, corrected", "three", "seen"], m.tools.messages(tool)


@on_tools(*TOOLS)
def reactions_where_it_can(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    first = m.backend.say("Remy", "cheese")
    msgid = ann.expect_text("cheese").tags["msgid"]
    m.backend.do("react", "Linguini", id=first, emoji="👍")
    ann.expect("TAGMSG", lambda line: line.tags.get("+draft/react") == "👍")
    ann.send("@+reply=%s;+draft/react=😂 TAGMSG #lobby" % msgid)
    m.backend.do("react", "Linguini", id=first, emoji="👍", action="remove")
    ann.expect("TAGMSG", lambda line: line.tags.get("+draft/unreact") == "👍")
    ann.say("#lobby", "end")
    m.tools.expect_said(tool, "ann", "end")
    if tool == "json":
        assert m.tools.messages(tool)[0]["reactions"] == [
            ["Linguini", "👍", "add"], ["ann", "😂", "add"], ["Linguini", "👍", "remove"]], m.tools.messages(tool)[0]


@on_tools("json")
def only_the_events_that_are_asked_for(m, tool):
    m.open(m.mirror(tool, events=["message"]))
    ann = m.irc("ann")
    first = m.backend.say("Remy", "cheese")
    ann.expect_text("cheese")
    m.backend.do("edit", "Remy", id=first, text="Cheese")
    m.backend.do("react", "Linguini", id=first, emoji="👍")
    m.backend.do("delete", "Remy", id=first)
    m.backend.say("Remy", "end")
    m.tools.expect_said(tool, "Remy", "end")
    first = m.tools.messages(tool)[0]
    assert (first["edits"], first["reactions"], first["deleted"]) == ([], [], False), first


@on_tools(*TOOLS)
def actions(m, tool):
    m.open(m.mirror(tool))
    m.irc("ann").say("#lobby", "\1ACTION waves\1")
    shown = m.tools.expect(tool, "it", lambda message: "waves" in message["text"])
    assert "ACTION" not in shown["raw"] and "\1" not in shown["raw"], shown
    assert "ann" in shown["name"] + shown["text"], shown
    if tool == "json":
        assert (shown["whole"]["kind"], shown["text"]) == ("action", "waves"), shown


@on_tools(*TOOLS)
def a_file_is_a_link(m, tool):
    m.open(m.mirror(tool))
    address = "https://files.example/a_b/my%20cat.png?x=1&y=2"
    m.backend.do("upload", "Remy", filename="my cat.png", mime="image/png", data_b64=PNG, text="look", url=address)
    shown = m.tools.expect(tool, "the file", lambda message: address in json.dumps(message, ensure_ascii=False))
    if tool == "json":
        (file,) = shown["whole"]["files"]
        assert (file["url"], file["name"], file["type"]) == (address, "my cat.png", "image/png") and file["size"] > 0, file
    else:
        assert any(link[1] == address for link in shown["links"]) or address in shown["text"], shown
    assert any("look" in message["text"] for message in m.tools.messages(tool)), m.tools.messages(tool)


# MARK: - Which messages


@on_tools(*TOOLS)
def ignored_nicks_and_texts(m, tool):
    m.open(m.mirror(tool, ignore={"nicks": ["bot*"], "matching": ["*secret*"]}))
    ann, bot = m.irc("ann"), m.irc("Botty")
    bot.say("#lobby", "beep")
    m.backend.expect_text("Botty", "beep")
    ann.say("#lobby", "this is SECRET stuff")
    m.backend.say("botanist", "leaves")
    ann.say("#lobby", "end")
    m.tools.expect_said(tool, "ann", "end")
    assert len(m.tools.messages(tool)) == 1, [message["raw"] for message in m.tools.messages(tool)]


@on_tools("json")
def an_edit_into_ignored_text_leaks_nothing(m, tool):
    m.open(m.mirror(tool, ignore={"matching": ["*secret*"]}))
    first = m.backend.say("Remy", "harmless")
    m.tools.expect_said(tool, "Remy", "harmless")
    m.backend.do("edit", "Remy", id=first, text="the secret is 42")
    m.backend.say("Remy", "end")
    m.tools.expect_said(tool, "Remy", "end")
    assert "secret is 42" not in json.dumps(m.tools.messages(tool)), m.tools.messages(tool)


@on_tools("json")
def two_rooms_in_one_mirror_and_no_other_room(m, tool):
    m.open(m.mirror(tool, rooms=["lobby", "den"]), rooms=("lobby", "den", "attic"))
    ann = m.irc("ann")
    for channel in ("#den", "#attic"):
        ann.join(channel)
    for channel in ("#lobby", "#attic", "#den"):
        ann.say(channel, "in " + channel)
        ann.expect_text("in " + channel)
    m.tools.expect_said(tool, "ann", "in #den")
    shown = m.tools.messages(tool)
    assert [(s["whole"]["room"], s["whole"]["channel"]) for s in shown] == [("lobby", "#lobby"), ("den", "#den")], shown


@on_tools("discord")
def into_a_thread_of_the_tool(m, tool):
    """The hook's address may have a query; a second one is added to it."""
    m.tools.set(tool, threads=["990"])
    m.open(m.mirror(tool, url=m.tools.url(tool) + "?thread_id=990"))
    ann = m.irc("ann")
    first = m.backend.say("Remy", "one")
    shown = m.tools.expect_said(tool, "Remy", "one")
    assert shown["thread"] == "990", shown
    m.backend.do("edit", "Remy", id=first, text="two")
    wait_until(lambda: m.tools.messages(tool)[0]["edits"], "the edit finds it in its thread")
    ann.say("#lobby", "three")
    assert m.tools.expect_said(tool, "ann", "three")["thread"] == "990"


# MARK: - Batches, and the plain form


@on_tools("json")
def a_first_message_waits_for_others(m, tool):
    """For the time that is set, and there are no more in one request than is set; by default one goes at once, and up to 100."""
    m.open(m.mirror(tool, batch={"max_messages": 2, "max_wait": "2s"}))
    ann = m.irc("ann")
    began = time.monotonic()
    say_all(ann, ["n %d" % number for number in range(4)])
    wait_until(lambda: m.tools.messages(tool), "the first is there")
    assert time.monotonic() - began > 1.9, time.monotonic() - began
    account_for(await_number(m, tool, "n", 3), "n", 4)
    assert len(m.tools.requests(tool)) >= 2, m.tools.requests(tool)


@on_tools(*TOOLS)
def batches(m, tool):
    """Together as far as the tool permits; whole and in order."""
    m.open(m.mirror(tool, batch={"max_messages": 10, "max_wait": "400ms"}))
    ann = m.irc("ann")
    say_all(ann, ["n %d" % number for number in range(45)])
    shown = await_number(m, tool, "n", 44)
    account_for(shown, "n", 45)
    posts = len(m.tools.requests(tool))
    if tool in ("json", "slack", "teams"):
        assert posts <= 25, "%d requests for 45 messages" % posts
    for request in m.tools.requests(tool):
        assert request["status"] < 300, request
    # Nothing waits for company for ever.
    ann.say("#lobby", "alone")
    m.tools.expect(tool, "one alone", lambda message: message["text"].endswith("alone"), patience=5)
    return "%d requests" % posts


@on_tools("json")
def the_plain_form_is_as_documented(m, tool):
    """The consumer checks signature, time, key, kinds and times itself; this is the rest."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    ann.say("#lobby", "hello")
    msgid = ann.expect_text("hello").tags["msgid"]
    whole = m.tools.expect_said(tool, "ann", "hello")["whole"]
    expected = {"id": msgid, "kind": "message", "room": "lobby", "channel": "#lobby", "nick": "ann", "text": "hello"}
    assert {name: whole.get(name) for name in expected} == expected, whole
    permitted = set(expected) | {
        "account", "bot", "at", "reply_to", "target", "emoji", "operation", "files", "origin", "markdown", "first"}
    assert set(whole) <= permitted, set(whole) - permitted
    assert not whole.get("account") and not whole.get("bot"), whole
    assert whole["at"] == ann.lines[-1].tags["time"] or whole["at"].endswith("Z"), whole
    request = m.tools.requests(tool)[-1]
    assert request["headers"]["user-agent"].startswith("chatbridge/"), request["headers"]
    assert request["headers"]["content-type"].split(";")[0] == "application/json", request["headers"]


@on_tools("json")
def each_request_has_a_key_of_its_own_and_retries_keep_it(m, tool):
    m.open(m.mirror(tool))
    m.tools.fault(tool, "reset", count=1, taken=True)
    m.tools.fault(tool, "status", count=1, status=503)
    ann = m.irc("ann")
    ann.say("#lobby", "one")
    m.tools.expect_said(tool, "ann", "one")
    ann.say("#lobby", "two")
    m.tools.expect_said(tool, "ann", "two", patience=30)
    assert m.tools.state(tool)["repeated"] == 1, m.tools.state(tool)
    keys = [request["headers"]["idempotency-key"] for request in m.tools.requests(tool)]
    assert len(keys) == 4 and keys[0] == keys[1] == keys[2] != keys[3], keys
    assert len(m.tools.messages(tool)) == 2


@on_tools("json")
def a_consumer_of_matterbridges_form_has_what_it_needs(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    ann.say("#lobby", "hello")
    ann.say("#lobby", "\1ACTION waves\1")
    m.tools.expect(tool, "both", lambda message: message["text"] == "waves")
    place = m.tools.url(tool).replace("/mirror", "/api/messages")
    with urllib.request.urlopen(place, timeout=10) as answer:
        there = json.load(answer)
    assert [(x["username"], x["text"], x["event"], x["gateway"]) for x in there] == [
        ("ann", "hello", "", "lobby"), ("ann", "waves", "user_action", "lobby")], there


@mirrored(one="slack", two="discord", three="json")
def three_tools_of_one_room(m):
    m.open(*(m.mirror(name, mirror_name=name) for name in ("one", "two", "three")))
    ann = m.irc("ann")
    say_all(ann, ["n %d" % number for number in range(100)])
    for name in ("one", "two", "three"):
        account_for(await_number(m, name, "n", 99), "n", 100)
