"""Edits and deletions that name no sender, another one, or an IRC user who did nothing: what the backend changes is never shown
as the act of its author, before and after a restart, live and in history."""

import base64
import json

from accounts import account
from backends import on
from history import ask
from peer import MODERN, wait_until
from restarts import log_in_as

CAPS = MODERN + ["draft/message-redaction", "draft/chathistory", "draft/event-playback", "soju.im/search"]
PEOPLE = "\n[identity]\n" + account("bob", "secret") + account("carl", "other")
NOTICE = "changed by the backend"
STRANGER = "11111111-2222-4333-8444-555555555555"


def start(setting, **options):
    setting.start(more=PEOPLE, **options)


def watchers(setting):
    """One client of every capability that shows who did something, and one of none."""
    return setting.irc("ann", caps=CAPS), setting.plain("pat")


def said(setting, client, text):
    """The id and the sender's id under which the backend has a message of an IRC user."""
    client.say("#lobby", text)
    frame = setting.backend.expect("the message", kind="message", text=text)
    client.expect_text(text)
    return frame["id"], frame["sender"]


def typed(setting, kind, payload):
    """A frame of `typed` with just these fields."""
    data = base64.b64encode(json.dumps({"room": "lobby", **payload}).encode()).decode()
    setting.backend.control("raw", json={"type": kind, "payload": data}, frame_op="binary")


def edit(setting, message_id, text, sender_id=None, name=None):
    if setting.wire.name == "typed":
        sender = {"senderId": sender_id, "senderName": name}
        return typed(setting, "chat.edit", {
            "id": message_id, "text": text, **{key: value for key, value in sender.items() if value is not None}})
    who = {key: value for key, value in (("key", sender_id), ("label", name)) if value is not None}
    setting.backend.control("raw", json={
        "did": "rewrote", "no": message_id, "words": text, "place": "lobby", **({"who": who} if who else {})})


def delete(setting, message_id, sender_id=None, name=None):
    if setting.wire.name == "typed":
        sender = {"senderId": sender_id, "senderName": name}
        return typed(setting, "chat.delete", {
            "ids": [message_id], **{key: value for key, value in sender.items() if value is not None}})
    who = {key: value for key, value in (("key", sender_id), ("label", name)) if value is not None}
    setting.backend.control("raw", json={
        "did": "burnt", "nos": [message_id], "place": "lobby", **({"who": who} if who else {})})


def settled(setting, *clients):
    """The backend says something, and everything before it has come. Where each client's lines ended before."""
    settled.count += 1
    text = "settled %d" % settled.count
    setting.backend.say("Remy", text)
    for client in clients:
        client.expect_text(text)


settled.count = 0


def by(line, nick):
    return line.source.split("!")[0] == nick


def not_in_the_name_of(nick, lines, *words):
    """No act of `nick` among the lines: neither the words, nor a removal, nor a tag that vouches for it."""
    for line in lines:
        acts = line.command == "REDACT" or any(word in line.params[-1] for word in words if line.params)
        if acts:
            assert not by(line, nick), line.raw
            assert "account" not in line.tags, line.raw
        assert "%s took back" % nick not in line.raw, line.raw


def is_told_as_the_backends(lines, words=NOTICE):
    assert [line for line in lines if line.params and words in line.params[-1]], "nobody is told that it is %r: %r" % (
        words, [line.raw for line in lines][-6:])


def since(client, begin):
    client.drain()
    return client.lines[begin:]


# Who an edit of the message of somebody else says it is from: what is compared must be the id, and not the name.
SENDERS = (
    ("nobody", lambda author, name: {}),
    ("the author", lambda author, name: {"sender_id": author, "name": name}),
    ("the author, unnamed", lambda author, name: {"sender_id": author}),
    ("a stranger of the author's name", lambda author, name: {"sender_id": STRANGER, "name": name}),
    ("a name alone", lambda author, name: {"name": name}),
    ("a stranger", lambda author, name: {"sender_id": STRANGER, "name": "Mallory"}),
)


@on("typed", "custom")
def nobody_edits_what_an_irc_user_said(setting):
    """"`@account=bob :bob!… PRIVMSG #room :* I resign`" never comes, whoever the frame says the editor is."""
    start(setting)
    bob = log_in_as(setting, "bob", "secret", "bob", "#lobby", caps=CAPS)
    guest = setting.irc("guest", caps=CAPS)
    clients = [*watchers(setting), bob, guest]
    for author in (bob, guest):
        for number, (label, sender) in enumerate(SENDERS):
            text = "I stay %d, says %s" % (number, author.nick)
            message_id, author_id = said(setting, author, text)
            settled(setting, *clients)
            begins = [len(client.lines) for client in clients]
            edit(setting, message_id, "I resign %d" % number, **sender(author_id, author.nick))
            settled(setting, *clients)
            for client, begin in zip(clients, begins):
                lines = since(client, begin)
                not_in_the_name_of(author.nick, lines, "I resign")
                if not label.startswith("a stranger"):
                    is_told_as_the_backends(lines)
    page = ask(clients[0], "CHATHISTORY LATEST #lobby * 200")
    # Told to those who come later as it was told then.
    live = [line.params[-1] for line in clients[0].lines[:begins[0]] if line.command == "NOTICE" and "I resign" in line.params[-1]]
    kept = [line.params[-1] for line in page if line.command == "NOTICE" and "I resign" in line.params[-1]]
    assert live and kept[:len(live)] == live, (live, kept)
    found = ask(clients[0], "SEARCH text=resign;in=#lobby")
    assert [line.params[-1] for line in found] == kept, found
    not_in_the_name_of("bob", page, "I resign")
    not_in_the_name_of("guest", page, "I resign")
    assert not ask(clients[0], "SEARCH from=bob;text=resign;in=#lobby")


@on("typed", "custom")
def nobody_takes_back_what_an_irc_user_said(setting):
    """"a delete with bob's puppet id as sender shows REDACT from bob": it does not, and is told all the same."""
    start(setting)
    bob = log_in_as(setting, "bob", "secret", "bob", "#lobby", caps=CAPS)
    clients = [*watchers(setting), bob]
    for number, (label, sender) in enumerate(SENDERS):
        message_id, author_id = said(setting, bob, "I stay %d" % number)
        settled(setting, *clients)
        begins = [len(client.lines) for client in clients]
        delete(setting, message_id, **sender(author_id, "bob"))
        settled(setting, *clients)
        for client, begin in zip(clients, begins):
            lines = since(client, begin)
            not_in_the_name_of("bob", lines)
            if label == "the author":
                told = [line for line in lines if line.command == "REDACT" or "took back a message" in (line.params or [""])[-1]]
                assert told, "%s is not told of it: %r" % (client.nick, [line.raw for line in lines])
    not_in_the_name_of("bob", ask(clients[0], "CHATHISTORY LATEST #lobby * 200"))


@on("typed", "custom")
def what_the_author_takes_back_is_the_authors(setting):
    """What bob did is bob's once, though the backend sends it to everybody; what it adds under his id meanwhile is not."""
    setting.serve(echo="all")
    start(setting)
    bob = log_in_as(setting, "bob", "secret", "bob", "#lobby", caps=CAPS)
    ann, pat = watchers(setting)
    first, author_id = said(setting, bob, "to be taken back")
    other, _ = said(setting, bob, "to stay")
    msgid = ann.expect_text("to be taken back").tags["msgid"]
    stays = ann.expect_text("to stay").tags["msgid"]
    setting.backend.set(delay_ms=300)
    bob.send("REDACT #lobby " + msgid)
    delete(setting, other, author_id, "bob")
    setting.backend.set(delay_ms=0)
    ann.expect("REDACT", lambda line: line.params[1] == msgid and by(line, "bob"))
    settled(setting, ann, pat, bob)
    redacted = [line for line in ann.lines if line.command == "REDACT"]
    assert [line.params[1] for line in redacted].count(msgid) == 1, redacted
    assert not [line for line in redacted if line.params[1] == stays and by(line, "bob")], redacted
    assert len([text for text in pat.texts(command="NOTICE") if "bob took back" in text]) == 1, pat.texts(command="NOTICE")


@on("typed", "custom")
def people_upstream_change_their_own_and_nobody_elses(setting):
    start(setting)
    ann, pat = watchers(setting)
    mine = setting.backend.say("Remy", "the soup is redy")
    for client in (ann, pat):
        client.expect_text("the soup is redy")
    setting.backend.do("edit", "Remy", id=mine, text="the soup is ready")
    for client in (ann, pat):
        client.expect("PRIVMSG", lambda line: line.params[-1] == "* the soup is ready" and by(line, "Remy"))
    for number, (label, sender) in enumerate(SENDERS):
        if label in ("the author", "the author, unnamed"):
            continue
        victim = setting.backend.say("Remy", "soup %d" % number)
        settled(setting, ann, pat)
        begins = len(ann.lines), len(pat.lines)
        edit(setting, victim, "poison %d" % number, **sender(None, "Remy"))
        settled(setting, ann, pat)
        for client, begin in zip((ann, pat), begins):
            not_in_the_name_of("Remy", since(client, begin), "poison")
    kept = ask(ann, "CHATHISTORY LATEST #lobby * 200")
    not_in_the_name_of("Remy", [line for line in kept if "soup" not in line.raw], "poison")
    assert any(line.params[-1] == "the soup is ready" and by(line, "Remy") for line in kept), [line.raw for line in kept]


@on("typed", "custom")
def the_author_left_and_the_bridge_was_started_again(setting):
    """What was said is known from the store alone: its author is compared all the same, in what comes live and in pages."""
    start(setting)
    bob = log_in_as(setting, "bob", "secret", "bob", "#lobby", caps=CAPS)
    guest = setting.irc("guest", caps=CAPS)
    ids = [said(setting, author, "%s says %d" % (author.nick, number)) for author in (bob, guest) for number in range(4)]
    gone = [said(setting, bob, "first gone %d" % number) for number in range(2)]
    for client in (bob, guest):
        client.barrier()
        client.send("QUIT")
        client.wait_closed()
    early, plain = watchers(setting)
    begins = len(early.lines), len(plain.lines)
    edit(setting, gone[0][0], "forged before")
    delete(setting, gone[1][0], gone[1][1], "bob")
    settled(setting, early, plain)
    for client, begin in zip((early, plain), begins):
        not_in_the_name_of("bob", since(client, begin), "forged")
        is_told_as_the_backends(since(client, begin))
    early.say("#lobby", "kept")
    early.barrier()
    setting.bridge.process.kill()
    setting.bridge.process.wait()
    wait_until(lambda: not setting.backend.connections(), "the old link is gone")
    start(setting)
    ann, pat = watchers(setting)
    begins = len(ann.lines), len(pat.lines)
    for place, (message_id, sender_id) in enumerate(ids):
        nick = "bob" if place < 4 else "guest"
        for act in ((lambda: edit(setting, message_id, "forged after")),
                    (lambda: edit(setting, message_id, "forged after", sender_id, nick)),
                    (lambda: delete(setting, message_id)),
                    (lambda: delete(setting, message_id, sender_id, nick)))[place % 4:place % 4 + 1]:
            act()
    settled(setting, ann, pat)
    page = ask(ann, "CHATHISTORY LATEST #lobby * 200")
    for client, begin in zip((ann, pat), begins):
        for nick in ("bob", "guest"):
            not_in_the_name_of(nick, since(client, begin), "forged")
            not_in_the_name_of(nick, page, "forged")
        is_told_as_the_backends(since(client, begin))
    # The author comes back, and is shown nothing of it as what they said.
    bob = log_in_as(setting, "bob", "secret", "bob", caps=MODERN)
    settled(setting, bob)
    not_in_the_name_of("bob", bob.lines, "forged")


@on("directus")
def rows_of_the_bridges_account_that_others_change(setting):
    """A row that an administrator of the backend edits or deletes is no act of the IRC user whose words stood in it."""
    start(setting)
    bob = log_in_as(setting, "bob", "secret", "bob", "#lobby", caps=CAPS)
    ann, pat = watchers(setting)
    for text in ("I stay", "I stay too"):
        bob.say("#lobby", text)
        for client in (bob, ann, pat):
            client.expect_text(text)
    rows = {row["text"]: row["id"] for row in setting.backend.state()["messages"]}
    begins = [len(client.lines) for client in (ann, pat, bob)]
    setting.backend.do("edit", "admin", id=rows["<bob> I stay"], text="<bob> I resign")
    setting.backend.do("delete", "admin", id=rows["<bob> I stay too"])
    settled(setting, ann, pat, bob)
    for client, begin in zip((ann, pat, bob), begins):
        lines = since(client, begin)
        not_in_the_name_of("bob", lines, "I resign")
        is_told_as_the_backends(lines)
    not_in_the_name_of("bob", ask(ann, "CHATHISTORY LATEST #lobby * 50"), "I resign")
    # What bob takes back himself is his.
    bob.say("#lobby", "by mistake")
    msgid = ann.expect_text("by mistake").tags["msgid"]
    bob.expect_text("by mistake")
    bob.send("REDACT #lobby " + msgid)
    ann.expect("REDACT", lambda line: line.params[1] == msgid and by(line, "bob"))
