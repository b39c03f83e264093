"""Client-only tags of any name among the IRC users of a room, reactions that a backend does not support, and tags on
replies to CAP.
"""

from backends import on
from history import ask
from peer import IRC
from restarts import log_in_as, with_alice
from world import scenario

LIMIT = 4094


def tokens(client):
    return [param for line in client.lines if line.command == "005" for param in line.params]


def no_tag_but(line, *names):
    ours = {name: value for name, value in line.tags.items() if name.startswith("+")}
    assert set(ours) == set(names), line.raw[:300]


@scenario
def tags_of_any_name_reach_the_others(world):
    """On messages, notices and TAGMSGs, with their values as they were; the author has them in the echo. The backend sees none."""
    world.start()
    ann, bob, plain, remy = world.irc("ann"), world.irc("bob"), world.plain("plain"), world.person("Remy")
    assert not any(token.startswith("CLIENTTAGDENY") for token in tokens(ann)), tokens(ann)
    tags = "+example=a\\sb\\:c;+vendor.example/foo=ü👍;+empty;+draft/something-new=x"
    wanted = {"+example": "a\\sb\\:c", "+vendor.example/foo": "ü👍", "+empty": "", "+draft/something-new": "x"}
    for command, text in (("PRIVMSG", "hello"), ("NOTICE", "noted"), ("PRIVMSG", "\1ACTION waves\1")):
        ann.send("@%s %s #lobby :%s" % (tags, command, text))
        for client in (ann, bob):
            line = client.expect(command, lambda line: line.params[-1] == text)
            assert {name: value for name, value in line.tags.items() if name.startswith("+")} == wanted, line.raw
        assert not plain.expect(command, lambda line: line.params[-1] == text).tags
    ann.send("@%s TAGMSG #lobby" % tags)
    line = bob.expect("TAGMSG", lambda line: "+example" in line.tags)
    assert {name: value for name, value in line.tags.items() if name.startswith("+")} == wanted, line.raw
    assert line.source.startswith("ann!")
    plain.barrier()
    assert not [line for line in plain.lines if line.command == "TAGMSG"]
    frame = remy.expect_message("hello")
    assert set(frame) == {"event", "message_id", "sender_id", "sender_name", "body", "sent_at"}, frame
    assert not [f for f in world.relay.from_bridge if "example" in str(f)], world.relay.from_bridge


@scenario
def tags_that_only_the_relay_sets_are_taken_off(world):
    """Nobody tells in another's name, or at all, that something was read: `+draft/read` and `+draft/delivered`, in any company;
    nor tags that are no client's."""
    world.start()
    ann, bob, remy = world.irc("ann"), world.irc("bob"), world.person("Remy")
    remy.say("read me")
    msgid = bob.expect_text("read me").tags["msgid"]
    forged = "+draft/read=%s;+draft/delivered=%s;msgid=forged;time=2001-01-01T00:00:00.000Z;account=root;batch=1" % (msgid, msgid)
    ann.send("@%s;+ok=1 PRIVMSG #lobby :one" % forged)
    line = bob.expect_text("one")
    no_tag_but(line, "+ok")
    assert line.tags["msgid"] != "forged" and "account" not in line.tags and not line.tags["time"].startswith("2001"), line.raw
    ann.send("@%s;+ok=2 TAGMSG #lobby" % forged, "@%s TAGMSG #lobby" % forged, "@%s TAGMSG bob" % forged)
    line = bob.expect("TAGMSG")
    no_tag_but(line, "+ok")
    ann.send("PRIVMSG #lobby :end")
    bob.expect_text("end")
    ann.barrier()
    bob.barrier()
    assert [line.tags.get("+ok") for line in bob.lines if line.command == "TAGMSG"] == ["2"], "an empty TAGMSG came"
    assert not [f for f in world.relay.from_bridge if f[1].get("event") == "readReceipt"], "a receipt went up"


@scenario
def tags_are_bounded(world):
    """4094 bytes go through whole; one more is 417, and nothing of the line arrives."""
    world.start()
    ann, bob = world.irc("ann"), world.irc("bob")
    room = LIMIT - len("+big=")
    for text, size in (("fits", room), ("does not", room + 1)):
        ann.send("@+big=%s PRIVMSG #lobby :%s" % ("x" * size, text))
    line = bob.expect_text("fits")
    assert len(line.tags["+big"]) == room
    ann.expect("417")
    # Many small ones, in umlauts: bytes count.
    many = ";".join("+n%d=ü" % number for number in range(400))
    assert len(many.encode()) <= LIMIT
    ann.send("@%s TAGMSG #lobby" % many)
    line = bob.expect("TAGMSG", lambda line: "+n0" in line.tags)
    assert len([name for name in line.tags if name.startswith("+n")]) == 400
    assert "does not" not in bob.texts()
    # What the relay adds comes on top, and no line is longer than the standard allows: 8191 bytes of tags.
    assert all(len(line.raw.split(" ", 1)[0].encode()) <= 8191 for line in bob.lines if line.raw.startswith("@"))


@scenario
def tags_of_a_message_that_waited_are_still_there(world):
    """The backend is away when it is said: what comes later has its tags, for the author too."""
    world.start()
    ann, bob = world.irc("ann"), world.irc("bob")
    world.relay.hold_handshakes()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    ann.send("@+example=late PRIVMSG #lobby :kept")
    ann.barrier()
    world.relay.release_handshakes()
    for client in (bob, ann):
        assert client.expect_text("kept").tags.get("+example") == "late", client.lines[-1].raw


@scenario
def between_clients_of_an_account_and_in_private(world):
    """One's other clients have them as the others do; in private they reach the one that they are for."""
    world.start(server_extra=with_alice())
    desk = log_in_as(world, "alice@desk", "secret", "alice", "#lobby")
    phone = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    bob = world.irc("bob")
    desk.send("@+example=1 PRIVMSG #lobby :from the desk")
    for client in (phone, bob, desk):
        assert client.expect_text("from the desk").tags.get("+example") == "1", client.nick
    desk.send("@+example=2 TAGMSG #lobby")
    for client in (phone, bob):
        client.expect("TAGMSG", lambda line: line.tags.get("+example") == "2")
    desk.send("@+example=3;+draft/read=x PRIVMSG bob :for you")
    no_tag_but(bob.expect_text("for you"), "+example")


@on("envelope", "plainjson")
def reactions_that_the_backend_cannot_carry(setting):
    """The IRC users see them, taking back included; the author is told once that the backend's people do not."""
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.say("Remy", "the soup is ready")
    msgid = ann.expect_text("the soup is ready").tags["msgid"]
    for number, tags in enumerate(("+draft/react=👍", "+draft/react=🍲", "+draft/unreact=👍")):
        begin = len(ann.lines)
        ann.send("@label=r%d;+reply=%s;%s TAGMSG #lobby" % (number, msgid, tags))
        name, value = tags.split("=")
        line = bob.expect("TAGMSG", lambda line: line.tags.get(name) == value, patience=5)
        assert line.tags.get("+reply") == msgid and line.source.startswith("ann!"), line.raw
        ann.barrier()
        told = [line for line in ann.lines[begin:] if line.command in ("FAIL", "WARN", "NOTE", "NOTICE")]
        assert not [line for line in told if line.command == "FAIL"], told
        assert len(told) == (1 if number == 0 else 0), "told %d times at reaction %d: %r" % (
            len(told), number + 1, [line.raw for line in told])
    # Another author is told once as well.
    bob.send("@+reply=%s;+draft/react=👍 TAGMSG #lobby" % msgid)
    ann.expect("TAGMSG", lambda line: line.tags.get("+draft/react") == "👍" and line.source.startswith("bob!"))
    bob.expect("NOTE" if any(line.command == "NOTE" for line in ann.lines) else "WARN" if any(
        line.command == "WARN" for line in ann.lines) else "NOTICE")
    assert not [frame for frame in setting.backend.frames() if frame["kind"] == "reaction"]


@on("envelope")
def reactions_that_stay_here_are_in_pages(setting):
    """Whoever was not there may look them up, as any reaction."""
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.say("Remy", "the soup is ready")
    msgid = ann.expect_text("the soup is ready").tags["msgid"]
    bob.send("@+reply=%s;+draft/react=👍 TAGMSG #lobby" % msgid)
    ann.expect("TAGMSG", lambda line: line.tags.get("+draft/react") == "👍", patience=5)
    late = setting.irc("late", more=("draft/chathistory", "draft/event-playback"))
    page = [line for line in ask(late, "CHATHISTORY LATEST #lobby * 20") if line.command == "TAGMSG"]
    assert [line.tags.get("+draft/react") for line in page if line.source.startswith("bob!")] == ["👍"], [l.raw for l in page]


@on("jwt-rooms")
def an_emoji_that_the_backend_does_not_have(setting):
    """It has six; the seventh is shown to the IRC users."""
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.say("Remy", "the soup is ready")
    msgid = ann.expect_text("the soup is ready").tags["msgid"]
    ann.send("@+reply=%s;+draft/react=🍲 TAGMSG #lobby" % msgid)
    bob.expect("TAGMSG", lambda line: line.tags.get("+draft/react") == "🍲" and line.source.startswith("ann!"), patience=5)
    ann.send("@+reply=%s;+draft/react=👍 TAGMSG #lobby" % msgid)
    bob.expect("TAGMSG", lambda line: line.tags.get("+draft/react") == "👍")
    setting.backend.expect("the reaction", kind="reaction", emoji="👍")
    assert not [frame for frame in setting.backend.frames() if frame["kind"] == "reaction" and frame.get("emoji") != "👍"]


@scenario
def a_flood_of_tags_is_held_back_as_any(world):
    """A client that sends TAGMSGs without end keeps its budget: typing aside, nothing that was said is dropped unsaid."""
    world.start(limits="messages_per_second = 2\nmessages_burst = 10")
    ann, bob = world.irc("ann"), world.irc("bob")
    ann.send(*["@+spam=%d TAGMSG #lobby" % number for number in range(120)])
    ann.say("#lobby", "behind them")
    bob.expect_text("behind them", patience=30)
    count = len([line for line in bob.lines if line.command == "TAGMSG"])
    assert count <= 60, "%d TAGMSGs at once" % count
    return "%d of 120" % count


# MARK: - CAP


def negotiation(world, *lines):
    """Raw lines of CAP that a fresh client gets for these."""
    link = IRC(world.bridge.port)
    world.stack.callback(link.close)
    link.nick = "cap"
    link.send(*lines)
    link.send("CAP LIST", "CAP END", "NICK c%d" % link.sock.getsockname()[1], "USER c 0 * :c")
    link.expect("001")
    return link, [line for line in link.lines if line.command == "CAP"]


@scenario
def an_answer_to_cap_has_no_tags_before_the_ack_was_seen(world):
    """A client that has not read the ACK cannot know that lines begin with `@` now; one that has, may get them."""
    world.start()
    everything = "message-tags server-time batch labeled-response account-tag echo-message"
    for request in ("server-time", everything, "message-tags", "labeled-response batch"):
        _, lines = negotiation(world, "CAP LS 302", "CAP REQ :" + request)
        acks = [line for line in lines if line.params[1] == "ACK"]
        assert acks and not acks[0].raw.startswith("@"), acks and acks[0].raw
        assert [line for line in lines if line.params[1] == "LS"][0].raw.startswith(":"), lines[0].raw
    # Refused as a whole, it changes nothing.
    _, lines = negotiation(world, "CAP LS 302", "CAP REQ :server-time no-such-thing")
    assert all(line.raw.startswith(":") for line in lines), [line.raw for line in lines]
    # Several requests sent at once: the second's answer comes behind the first's ACK, and the first has none.
    _, lines = negotiation(world, "CAP REQ :server-time", "CAP REQ :message-tags", "CAP REQ :batch")
    acks = [line for line in lines if line.params[1] == "ACK"]
    assert len(acks) == 3 and acks[0].raw.startswith(":"), [line.raw for line in acks]
    # A label on the request that asks for labels is no reason either.
    link = IRC(world.bridge.port)
    world.stack.callback(link.close)
    link.nick = "label"
    link.send("CAP LS 302", "@label=1 CAP REQ :labeled-response batch message-tags server-time")
    ack = link.expect("CAP", lambda line: line.params[1] == "ACK")
    assert ack.raw.startswith(":"), ack.raw


@scenario
def an_ack_in_the_middle_of_a_session(world):
    """The same for a client that is registered, and whose next lines do have tags."""
    world.start()
    bob = world.plain("bob")
    bob.send("CAP REQ :server-time message-tags")
    ack = bob.expect("CAP", lambda line: line.params[1] == "ACK")
    assert ack.raw.startswith(":"), ack.raw
    world.person("Remy").say("with tags")
    assert bob.expect_text("with tags").tags.get("msgid")


@scenario
def renamed_rooms_and_changed_hosts_are_offered_or_explained(world):
    """`draft/channel-rename` and `chghost` stand in CAP LS, or in the documents' table of what is not supported."""
    import os

    world.start()
    link = IRC(world.bridge.port)
    world.stack.callback(link.close)
    link.nick = "cap"
    link.send("CAP LS 302")
    offered = []
    while True:
        line = link.expect("CAP")
        offered += [word.split("=")[0] for word in line.params[-1].split()]
        if line.params[2] != "*":
            break
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "reference", "irc.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    heading = next(line for line in reversed(text.splitlines()) if line.startswith("## "))
    table = [line for line in text[text.rindex(heading):].splitlines() if line.startswith("|")]
    for name in ("draft/channel-rename", "chghost"):
        rows = [line for line in table if name in line and len(line.split("|")) >= 4 and len(line.split("|")[2].split()) >= 3]
        assert name in offered or rows, "%s is neither offered nor explained in docs/reference/irc.md, %r" % (name, heading)
