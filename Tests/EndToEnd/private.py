"""Private state: private messages and preferences, over a relay that crashes."""

from accounts import account
from history import ask, texts
from peer import MODERN
from restarts import MEMORY, folder, kill, log_in_as, settle
from service import ask as ask_service
from world import scenario

HISTORY = "draft/chathistory draft/event-playback draft/multiline soju.im/search"
ALWAYS = "timestamp=2001-01-01T00:00:00.000Z timestamp=2200-01-01T00:00:00.000Z"
PEOPLE = "[identity]\n" + account("ann", "secret") + account("bob", "other")


def log_in(world, name, nick, *channels):
    client = log_in_as(world, name, {"ann": "secret", "bob": "other"}[name], nick, *channels)
    client.send("CAP REQ :" + HISTORY)
    client.expect("CAP", lambda line: line.params[1] == "ACK")
    return client


def shown(lines):
    return [(line.tags["msgid"], line.tags["time"], line.command, line.params) for line in lines]


def targets(client):
    return [line.params[1] for line in ask(client, "CHATHISTORY TARGETS %s 10" % ALWAYS)]


@scenario
def a_conversation_over_a_restart(world):
    """Both read what both said, line for line as they got it then; a stranger with the nick of either reads nothing."""
    directory = folder(world)
    world.start(directory=directory, server_extra=PEOPLE)
    ann, bob = log_in(world, "ann", "ann", "#lobby"), log_in(world, "bob", "bobby", "#lobby")
    live = []
    for client, target, text in (
        (ann, "bobby", "hello"), (bob, "ann", "hello yourself"), (ann, "bobby", "\1ACTION waves\1"),
    ):
        client.say(target, text)
        line = client.expect("PRIVMSG", lambda line: line.params == [target, text])
        live.append((line.tags["msgid"], line.tags["time"], "PRIVMSG", [target, text]))
    bob.send("NOTICE ann :noted")
    line = ann.expect("NOTICE", lambda line: line.params == ["ann", "noted"])
    live.append((line.tags["msgid"], line.tags["time"], "NOTICE", ["ann", "noted"]))
    bob.send("@+draft/react=+;+reply=%s TAGMSG ann" % live[0][0])
    line = ann.expect("TAGMSG", lambda line: line.params == ["ann"])
    live.append((line.tags["msgid"], line.tags["time"], "TAGMSG", ["ann"]))
    settle(ann, "kept")
    assert shown(ask(ann, "CHATHISTORY LATEST bobby * 10")) == live
    kill(world)
    world.start(directory=directory, server_extra=PEOPLE)
    ann = log_in(world, "ann", "ann", "#lobby")
    # Bob is not here yet: it is his nick all the same, until somebody else has it.
    assert targets(ann) == ["#lobby", "bobby"] or targets(ann) == ["bobby", "#lobby"]
    assert shown(ask(ann, "CHATHISTORY LATEST bobby * 10")) == live
    assert shown(ask(ann, "CHATHISTORY BEFORE bobby msgid=%s 1" % live[2][0])) == [live[1]]
    stranger = world.irc("bobby", caps=MODERN + ["draft/chathistory", "soju.im/search"])
    for line in ("CHATHISTORY LATEST ann * 10", "CHATHISTORY LATEST bobby * 10", "SEARCH text=hello"):
        assert ask(stranger, line) == [], line
    assert "ann" not in targets(stranger)
    assert ask(ann, "CHATHISTORY LATEST bobby * 10") == []
    bob = log_in(world, "bob", "bob")
    assert texts(ask(bob, "CHATHISTORY LATEST ann * 10"))[:4] == ["hello", "hello yourself", "\1ACTION waves\1", "noted"]
    bob.say("ann", "back again")
    ann.expect_text("back again")
    assert texts(ask(ann, "CHATHISTORY LATEST bob * 1")) == ["back again"]
    assert texts(ask(ann, "SEARCH text=back;in=bob")) == ["back again"]


@scenario
def a_conversation_in_memory(world):
    """While the relay lives both read it; the next one knows nothing of it."""
    directory = folder(world)
    world.start(directory=directory, server_extra=PEOPLE, tables=MEMORY)
    ann, bob = log_in(world, "ann", "ann", "#lobby"), log_in(world, "bob", "bob", "#lobby")
    for n in range(20):
        ann.say("bob", "m%d" % n)
        bob.expect_text("m%d" % n)
    assert texts(ask(bob, "CHATHISTORY LATEST ann * 7")) == ["m%d" % n for n in range(13, 20)]
    assert texts(ask(ann, "CHATHISTORY AFTER bob %s 2" % "timestamp=2001-01-01T00:00:00.000Z")) == ["m0", "m1"]
    kill(world)
    world.start(directory=directory, server_extra=PEOPLE, tables=MEMORY)
    assert ask(log_in(world, "bob", "bob"), "CHATHISTORY LATEST ann * 7") == []


@scenario
def choices_over_a_restart(world):
    """Whom an account has muted it does not hear of the next relay either."""
    directory = folder(world)
    world.start(directory=directory, server_extra=PEOPLE)
    ann, bob, remy = log_in(world, "ann", "ann", "#lobby"), log_in(world, "bob", "bobby", "#lobby"), world.person("Remy")
    remy.say("hello")
    ann.expect_text("hello")
    for words in ("mute Remy", "mute bobby", "receipts off", "notices on"):
        ask_service(ann, words)
    settle(ann, "kept")
    kill(world)
    world.start(directory=directory, server_extra=PEOPLE)
    ann, bob = log_in(world, "ann", "ann", "#lobby"), log_in(world, "bob", "robert", "#lobby")
    assert ask_service(ann, "mute") == ["You do not hear Remy, bobby."]
    assert ask_service(ann, "receipts")[0].endswith("(off).")
    assert ask_service(ann, "notices") == ["You are told at once who got and read what you said."]
    linguini = world.person("Linguini")
    remy.say("unheard")
    linguini.expect_message("unheard")
    bob.say("#lobby", "unheard too")
    linguini.expect_message("unheard too")
    linguini.say("heard")
    ann.expect_text("heard")
    assert not [line for line in ann.lines if line.params and line.params[-1].startswith("unheard")]
