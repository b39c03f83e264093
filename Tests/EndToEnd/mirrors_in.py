"""Messages of a tool in the room: who spoke, what came, and how it reaches the backend and other tools."""

import json

from mirrors import (
    DELETES_IN, EDITS_IN, FORMS, REACTIONS_IN, REPLIES_IN, SECRETS, TOOLS, mirrored, new_id, on_tools, visible,
)


def nick_of(line):
    return line.source.split("!")[0]


def name_in(kind):
    """A person there as the room has them: events of Slack have no name, but an id."""
    return "U024BE7LH" if kind == "slack" else "ada"


def act(m, kind, verb, *arguments, **more):
    """An edit, a deletion or a reaction there, which the hook takes."""
    answer = m.post(kind, getattr(FORMS[kind], verb)(SECRETS[kind], *arguments, **more))
    assert answer.status == 200, answer


@on_tools(*TOOLS)
def a_person_there_speaks_in_the_room(m, tool):
    m.open(m.mirror(tool))
    ann, bob = m.irc("ann"), m.plain("bob")
    user = name_in(tool)
    m.tool_says(tool, user, "hällo from there 🍲")
    for client in (ann, bob):
        line = client.expect_text("hällo from there 🍲")
        assert nick_of(line) == user + "/team" and line.params[0] == "#lobby", line.raw
    frame = m.backend.expect("the message", kind="message", text="hällo from there 🍲")
    assert frame["name"] == user + "/team", frame
    # Not back to where it came from.
    ann.say("#lobby", "end")
    m.tools.expect_said(tool, "ann", "end")
    assert len(m.tools.messages(tool)) == 1, [message["raw"] for message in m.tools.messages(tool)]
    # The same person again is the same one upstream, and others are others.
    m.tool_says(tool, user, "again")
    m.tool_says(tool, "U2CERLKJA" if tool == "slack" else "eve", "me too")
    again, other = (m.backend.expect("the message", kind="message", text=text) for text in ("again", "me too"))
    assert again["sender"] == frame["sender"] != other["sender"], (frame, again, other)


@on_tools("slack")
def a_slash_command_has_a_name(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    answer = m.post(tool, FORMS[tool].slash(SECRETS[tool], "ada", "by command & <sign>"))
    assert answer.status == 200, answer
    assert nick_of(ann.expect_text("by command & <sign>")) == "ada/team"


@on_tools("slack")
def the_hook_is_verified_by_a_challenge(m, tool):
    m.open(m.mirror(tool))
    answer = m.post(tool, FORMS[tool].verification(SECRETS[tool], "3eZbrw1aBm2rZgRNFdxV"))
    assert answer.status == 200 and b"3eZbrw1aBm2rZgRNFdxV" in answer.body, answer
    answer = m.post(tool, FORMS[tool].verification("wrong", "3eZbrw1aBm2rZgRNFdxV"))
    assert answer.status in (401, 403) and b"3eZbrw1a" not in answer.body, answer


@on_tools("mattermost")
def forms_and_json(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    m.tool_says(tool, "ada", "as a form + 100%")
    ann.expect_text("as a form + 100%")
    m.tool_says(tool, "ada", "as JSON + 100%", as_json=True)
    ann.expect_text("as JSON + 100%")


@on_tools("json")
def one_object_an_array_or_many(m, tool):
    m.open(m.mirror(tool))
    ann, form = m.irc("ann"), FORMS[tool]
    for number, as_array in enumerate((False, True)):
        objects = [json.loads(form.message("x", new_id(tool), "ada", "n %d %d" % (number, n))[1]) for n in range(3)]
        assert m.post(tool, form.many(SECRETS[tool], objects, as_array)).status == 200
        for n in range(3):
            assert nick_of(ann.expect_text("n %d %d" % (number, n))) == "ada/team"
    assert m.post(tool, form.bearer(SECRETS[tool], new_id(tool), "ada", "by bearer")).status == 200
    ann.expect_text("by bearer")
    assert m.post(tool, form.bearer("wrong", new_id(tool), "ada", "by nobody")).status in (401, 403)
    assert m.post(tool, form.bare(SECRETS[tool], new_id(tool), "ada", "action", text="waves")).status == 200
    ann.expect_text("\1ACTION waves\1")


@on_tools(*TOOLS)
def nicks_by_their_template(m, tool):
    m.open(m.mirror(tool, mirror_name="work", nick="{user}/at-work"))
    ann = m.irc("ann")
    m.tool_says(tool, name_in(tool), "one")
    line = ann.expect_text("one")
    assert nick_of(line).startswith(name_in(tool)) and nick_of(line).endswith("/at-work"), line.raw


@on_tools(*TOOLS)
def the_default_nick_has_the_mirrors_name(m, tool):
    m.open(m.mirror(tool, mirror_name="work"))
    ann = m.irc("ann")
    m.tool_says(tool, name_in(tool), "one")
    assert nick_of(ann.expect_text("one")) == name_in(tool) + "/work"


@on_tools("json")
def what_came_in_is_marked_as_relayed(m, tool):
    """A client sees that it was relayed, and by which mirror; a bot there is one here."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    m.tool_says(tool, "ada", "by hand")
    line = ann.expect_text("by hand")
    assert line.tags.get("+chatbridge/origin"), line.raw
    assert "bot" not in line.tags, line.raw
    m.tool_says(tool, "robot", "by machine", bot=True)
    line = ann.expect_text("by machine")
    assert "bot" in line.tags, line.raw


@on_tools("mattermost", "rocketchat", "discord", "teams", "json")
def hostile_names(m, tool):
    """Any name becomes one nick that no line can break out of, and is nobody of the room."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    for number, user in enumerate((
        "ann", "ada\r\nQUIT :bye", "a b!c@d.example", "#lobby", "*bridge", ":x", "\u202eada", "é̀🍲", "x" * 400, "\u200b",
        "@op", "1234", "team", "ada/team", "NickServ", "ada\x00",
    )):
        text = "by name %d" % number
        answer = m.post(tool, FORMS[tool].message(SECRETS[tool], new_id(tool), user, text))
        assert answer.status in (200, 400), (user, answer)
        if answer.status == 200:
            line = ann.expect_text(text)
            nick = nick_of(line)
            assert nick and nick != "ann" and not set(nick) & set(" !@:,*\r\n\0") and len(nick) < 100, (user, line.raw)
            assert line.params[0] == "#lobby" and len(line.params) == 2, line.raw
    ann.barrier()
    assert not [line for line in ann.lines if line.command in ("QUIT", "ERROR", "KILL")], "a name broke out"


@on_tools(*TOOLS)
def hostile_text(m, tool):
    m.open(m.mirror(tool))
    ann, plain = m.irc("ann"), m.plain("plain")
    user = name_in(tool)
    m.tool_says(tool, user, "hi\r\nPRIVMSG #lobby :forged\r\n:ann!a@b QUIT\n\n\x00\x01ACTION hugs\x01")
    m.tool_says(tool, user, "x" * 3000 + " 🍲" * 500)
    m.tool_says(tool, user, "end")
    for client in (ann, plain):
        client.expect_text("end")
        for line in client.lines:
            if nick_of(line) == user + "/team":
                assert line.command in ("PRIVMSG", "JOIN", "BATCH"), line.raw
                assert len(line.raw.split(" :", 1)[-1].encode()) < 512, len(line.raw)
        assert not [line for line in client.lines if line.command == "QUIT"], "a line was forged"
    texts = plain.texts(user + "/team")
    assert sum(text.count("🍲") for text in texts) == 500 and sum(text.count("x") for text in texts) >= 3000, texts


@on_tools("slack", "mattermost", "rocketchat", "discord")
def markup_becomes_that_of_irc(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    text = {
        "slack": "*bold* <https://a.example/?a=1&amp;b=2|here> &lt;x&gt; &amp;amp; <@U1> <!channel> <#C1|general> `code`",
        "teams": "**bold** [here](https://a.example/?a=1&b=2) <x> code",
    }.get(tool, "**bold** [here](https://a.example/?a=1&b=2) <x> `code`")
    m.tool_says(tool, name_in(tool), text)
    line = ann.expect("PRIVMSG", lambda line: "bold" in line.params[-1])
    said = line.params[-1]
    assert "https://a.example/?a=1&b=2" in said and "<x>" in said and "code" in said, said
    assert "\x02bold\x02" in said and "*" not in said, said
    assert "<https" not in said and "&lt;" not in said and "<!channel>" not in said and "<@U1>" not in said, said
    if tool == "slack":
        assert "&amp;" in said and "general" in said, said


@on_tools("teams")
def the_mention_that_triggers_is_no_text(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    m.tool_says(tool, "ada", "a < b & c")
    assert nick_of(ann.expect_text("a < b & c")) == "ada/team"


@on_tools("discord", "slack")
def lines_that_are_no_messages(m, tool):
    """Joins of the channel, pins and other types are not said; the hook takes them all the same."""
    m.open(m.mirror(tool))
    ann, form = m.irc("ann"), FORMS[tool]
    if tool == "discord":
        events = [form.event(SECRETS[tool], name, {"id": "1", "channel_id": "2", "guild_id": "3"}) for name in (
            "TYPING_START", "GUILD_CREATE", "CHANNEL_PINS_UPDATE")]
    else:
        events = [form.event(SECRETS[tool], {
            "type": "message", "subtype": subtype, "channel": "C0001", "user": "U1", "text": "no talk", "ts": new_id(tool)},
            new_id(tool)) for subtype in ("channel_join", "channel_topic", "pinned_item")]
        events.append(form.event(SECRETS[tool], {"type": "app_home_opened", "user": "U1"}, new_id(tool)))
    for event in events:
        assert m.post(tool, event).status == 200, event
    m.tool_says(tool, name_in(tool), "end")
    ann.expect_text("end")
    assert ann.texts() == ["end"], ann.texts()


# MARK: - Changes and answers


@on_tools(*EDITS_IN)
def an_edit_there(m, tool):
    m.open(m.mirror(tool))
    ann, user = m.irc("ann"), name_in(tool)
    first = m.tool_says(tool, user, "teh soup")
    msgid = ann.expect_text("teh soup").tags["msgid"]
    act(m, tool, "edit", first, user, "the soup")
    line = ann.expect("PRIVMSG", lambda line: "the soup" in line.params[-1])
    assert line.tags.get("+reply") == msgid and nick_of(line) == user + "/team", line.raw


@on_tools(*DELETES_IN)
def a_deletion_there(m, tool):
    m.open(m.mirror(tool))
    ann, user = m.irc("ann", more=["draft/message-redaction"]), name_in(tool)
    first = m.tool_says(tool, user, "regrettable")
    msgid = ann.expect_text("regrettable").tags["msgid"]
    sent = m.backend.expect("the message", kind="message", text="regrettable")
    act(m, tool, "delete", first, user)
    assert ann.expect("REDACT").params[:2] == ["#lobby", msgid]
    assert m.backend.expect("the deletion", kind="delete")["ids"] == [sent["id"]]


@on_tools(*REACTIONS_IN)
def a_reaction_there(m, tool):
    m.open(m.mirror(tool))
    ann, user = m.irc("ann"), name_in(tool)
    first = m.tool_says(tool, user, "cheese")
    msgid = ann.expect_text("cheese").tags["msgid"]
    emoji = "thumbsup" if tool == "slack" else "👍"
    act(m, tool, "reaction", first, user, emoji)
    line = ann.expect("TAGMSG", lambda line: "+draft/react" in line.tags)
    assert line.tags["+reply"] == msgid and line.tags["+draft/react"] in ("👍", ":thumbsup:", "thumbsup"), line.raw
    act(m, tool, "reaction", first, user, emoji, "remove")
    assert ann.expect("TAGMSG", lambda line: "+draft/unreact" in line.tags).tags["+reply"] == msgid


@on_tools(*REPLIES_IN)
def an_answer_there(m, tool):
    m.open(m.mirror(tool))
    ann, user = m.irc("ann"), name_in(tool)
    first = m.tool_says(tool, user, "is the cheese there?")
    msgid = ann.expect_text("is the cheese there?").tags["msgid"]
    m.tool_says(tool, user, "it is", reply_to=first)
    assert ann.expect_text("it is").tags.get("+reply") == msgid


@on_tools("discord", "json")
def an_answer_and_a_reaction_there_to_what_went_out(m, tool):
    """The id that the tool gave a mirrored message leads back to it."""
    m.open(m.mirror(tool))
    ann, user = m.irc("ann"), name_in(tool)
    ann.say("#lobby", "is the cheese there?")
    msgid = ann.expect_text("is the cheese there?").tags["msgid"]
    there = m.tools.expect_said(tool, "ann", "is the cheese there?")["id"]
    m.tool_says(tool, user, "it is", reply_to=there)
    assert ann.expect_text("it is").tags.get("+reply") == msgid
    act(m, tool, "reaction", there, user, "👍")
    assert ann.expect("TAGMSG", lambda line: "+draft/react" in line.tags).tags["+reply"] == msgid


@on_tools(*DELETES_IN)
def changes_of_unknown_messages_are_taken_and_do_nothing(m, tool):
    m.open(m.mirror(tool))
    ann, user = m.irc("ann", more=["draft/message-redaction"]), name_in(tool)
    unknown = new_id(tool)
    act(m, tool, "delete", unknown, user)
    act(m, tool, "reaction", unknown, user, "x")
    m.tool_says(tool, user, "end")
    ann.expect_text("end")
    assert not [line for line in ann.lines if line.command in ("REDACT", "TAGMSG")]


@on_tools("json")
def somebody_there_changes_no_message_of_the_room(m, tool):
    """Edits and deletions there are for messages of there; those of the room belong to their authors."""
    m.open(m.mirror(tool))
    ann = m.irc("ann", more=["draft/message-redaction"])
    ann.say("#lobby", "mine")
    there = m.tools.expect_said(tool, "ann", "mine")["id"]
    for verb, arguments in (("edit", ("forged",)), ("delete", ())):
        answer = m.post(tool, getattr(FORMS[tool], verb)(SECRETS[tool], there, "ada", *arguments))
        assert answer.status in (200, 400, 403), answer
    m.tool_says(tool, "ada", "end")
    ann.expect_text("end")
    assert not [line for line in ann.lines if line.command == "REDACT" or "forged" in line.raw], ann.lines[-4:]


# MARK: - Which ones, and where to


@on_tools(*TOOLS)
def ignored_people_and_texts(m, tool):
    user = name_in(tool)
    m.open(m.mirror(tool, ignore={"nicks": ["evil*", "U666*"], "matching": ["*secret*"]}))
    ann = m.irc("ann")
    m.tool_says(tool, "U6660" if tool == "slack" else "evilada", "boo")
    m.tool_says(tool, user, "this is SECRET stuff")
    m.tool_says(tool, user, "end")
    ann.expect_text("end")
    assert ann.texts() == ["end"] and [text for _, text in m.upstream()] == ["end"], ann.texts()


@on_tools("json")
def only_out_and_only_in(m, tool):
    m.open(m.mirror(tool, path=None), m.mirror(tool, mirror_name="in", url=None))
    ann = m.irc("ann")
    ann.say("#lobby", "out")
    m.tools.expect_said(tool, "ann", "out")
    m.tool_says(tool, "ada", "in")
    assert nick_of(ann.expect_text("in")) == "ada/in"
    # The way out is another mirror: nothing hinders it.
    m.tools.expect_said(tool, "ada/in", "in")
    assert len(m.tools.messages(tool)) == 2


@on_tools("json")
def a_message_for_two_rooms_goes_where_it_says(m, tool):
    """Of several rooms the form's `room` chooses; one that the mirror does not have is refused or ignored."""
    m.open(m.mirror(tool, rooms=["lobby", "den"]), rooms=("lobby", "den", "attic"))
    ann = m.irc("ann")
    for channel in ("#den", "#attic"):
        ann.join(channel)
    form = FORMS[tool]
    for room in ("den", "lobby", "attic"):
        answer = m.post(tool, form.message(SECRETS[tool], new_id(tool), "ada", "to " + room, room=room))
        assert answer.status == 200 or room == "attic" and answer.status == 400, answer
    assert ann.expect_text("to den").params[0] == "#den"
    assert ann.expect_text("to lobby").params[0] == "#lobby"
    ann.barrier()
    assert "to attic" not in ann.texts()


@mirrored(one="discord", two="slack", three="json")
def from_one_tool_to_the_others(m):
    m.open(*(m.mirror(name, mirror_name=name) for name in ("one", "two", "three")))
    m.irc("ann")
    m.tool_says("one", "ada", "for all")
    for name in ("two", "three"):
        m.tools.expect_said(name, "ada/one", "for all")
    m.tool_says("three", "eve", "back")
    for name in ("one", "two"):
        m.tools.expect_said(name, "eve/three", "back")
    counts = [len(m.tools.messages(name)) for name in ("one", "two", "three")]
    assert counts == [1, 2, 1], counts


@on_tools(*TOOLS)
def many_in_a_row_keep_their_order(m, tool):
    """One after the other as the tool does, over connections of its own: each once and in order, here and upstream."""
    m.open(m.mirror(tool))
    ann, user = m.irc("ann"), name_in(tool)
    texts = ["n %d" % number for number in range(60)]
    for text in texts:
        m.tool_says(tool, user, text)
    ann.expect_text(texts[-1])
    assert ann.texts(user + "/team") == texts, ann.texts()
    m.backend.expect("the last", kind="message", text=texts[-1])
    assert [text for _, text in m.upstream()] == texts


@on_tools(*TOOLS)
def taken_means_stored(m, tool):
    """The relay is killed after its 200: the message is said all the same, once."""
    m.open(m.mirror(tool))
    user = name_in(tool)
    texts = ["n %d" % number for number in range(20)]
    for text in texts:
        m.tool_says(tool, user, text)
    m.kill()
    m.open(m.mirror(tool))
    m.irc("ann").say("#lobby", "end")
    m.backend.expect_text("ann", "end")
    got = [visible(text) for nick, text in m.upstream() if nick == user + "/team"]
    assert got == texts, got
