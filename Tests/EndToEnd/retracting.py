"""Deletion of private messages: at once, after a crash of the relay, and without a store."""

import contextlib
import sqlite3

from history import ask, refused, texts
from peer import MODERN
from private import PEOPLE, log_in
from restarts import MEMORY, database, folder, kill, settle
from world import scenario

SECRET = "the seventh ladle"


def take_back(client, target, msgid, *reason):
    """The client's own line."""
    client.send("@label=back REDACT %s %s%s" % (target, msgid, "".join(" :" + words for words in reason)))
    line = client.expect("REDACT", lambda line: line.tags.get("label") == "back")
    assert line.params == [target, msgid, *reason], line
    return line


def tell(author, reader, target, text):
    """Says something in private; its msgid, for both the same."""
    author.say(target, text)
    own = author.expect("PRIVMSG", lambda line: line.params == [target, text])
    other = reader.expect("PRIVMSG", lambda line: line.params[-1] == text)
    assert own.tags["msgid"] == other.tags["msgid"]
    return own.tags["msgid"]


def able(client):
    client.send("CAP REQ draft/message-redaction")
    client.expect("CAP", lambda line: line.params[1] == "ACK")
    return client


def kept(directory):
    """What the relay's file has as words, wherever in it they stand."""
    with contextlib.closing(sqlite3.connect(database(directory))) as file:
        return [row[0] for row in file.execute("SELECT text FROM messages")]


@scenario
def over_a_restart(world):
    """What was taken back is gone for both, for good; the next relay takes back what the last one kept, and only for its author."""
    directory = folder(world)
    world.start(directory=directory, server_extra=PEOPLE)
    ann, bob = able(log_in(world, "ann", "ann", "#lobby")), able(log_in(world, "bob", "bobby", "#lobby"))
    plain = log_in(world, "bob", "bobby")
    first, second = tell(ann, bob, "bobby", "one"), tell(ann, bob, "bobby", SECRET)
    third, fourth = tell(bob, ann, "ann", "three"), tell(ann, bob, "bobby", "and four")
    take_back(ann, "bobby", second, "not for you")
    line = bob.expect("REDACT")
    assert line.params == ["bobby", second, "not for you"] and line.source.startswith("ann!"), line
    words = plain.expect("NOTICE", lambda line: "took back" in line.params[-1]).params[-1]
    assert words.startswith("*** ann took back a message from ") and words.endswith(" s ago: not for you"), words
    assert refused(ann, "REDACT bobby %s" % second) == "UNKNOWN_MSGID"
    assert refused(ann, "REDACT bobby %s" % third) == "REDACT_FORBIDDEN"
    settle(ann, "kept")
    assert SECRET not in kept(directory) and "three" in kept(directory)
    kill(world)
    world.start(directory=directory, server_extra=PEOPLE)
    ann, bob = able(log_in(world, "ann", "ann", "#lobby")), able(log_in(world, "bob", "bob", "#lobby"))
    left = ask(bob, "CHATHISTORY LATEST ann * 10")
    assert [(line.command, line.params[1]) for line in left] == [
        ("PRIVMSG", "one"), ("REDACT", second), ("PRIVMSG", "three"), ("PRIVMSG", "and four"),
    ], left
    assert ask(ann, "SEARCH text=ladle") == [] and ask(bob, "SEARCH text=ladle") == []
    assert refused(ann, "REDACT bob %s" % second) == "UNKNOWN_MSGID"
    assert refused(bob, "REDACT ann %s" % fourth) == "REDACT_FORBIDDEN"
    stranger = world.irc("bobby", caps=MODERN + ["draft/message-redaction"])
    assert refused(stranger, "REDACT ann %s" % first) == "UNKNOWN_MSGID"
    assert refused(stranger, "REDACT nobody %s" % first) == "INVALID_TARGET"
    take_back(ann, "bob", fourth)
    assert bob.expect("REDACT").params == ["bob", fourth]
    settle(ann, "kept too")
    kill(world)
    world.start(directory=directory, server_extra=PEOPLE)
    bob = log_in(world, "bob", "bob")
    assert texts(ask(bob, "CHATHISTORY LATEST ann * 10")) == ["one", "three"]
    assert sorted(kept(directory)).count("") == 2


@scenario
def in_memory(world):
    """The same without a store, and between people of whom one or both have no account."""
    world.start(directory=folder(world), server_extra=PEOPLE, tables=MEMORY)
    ann = able(log_in(world, "ann", "ann", "#lobby"))
    caps = MODERN + ["draft/message-redaction"]
    guest, other = world.irc("guest", caps=caps), world.irc("other", caps=caps)
    for author, reader, target in ((ann, guest, "guest"), (guest, ann, "ann"), (guest, other, "other")):
        name = "ann" if author is ann else "guest"
        msgid = tell(author, reader, target, SECRET)
        assert refused(reader, "REDACT %s %s" % (name, msgid)) == "REDACT_FORBIDDEN"
        take_back(author, target, msgid)
        line = reader.expect("REDACT")
        assert line.params == [target, msgid] and line.source.startswith(name + "!"), line
    assert ask(ann, "SEARCH text=ladle") == []
