"""History requests of clients: pages across restarts, limits, accounts, and messages that only the backend has."""

import datetime
import time

from accounts import account
from backends import on_wires
from peer import MODERN
from restarts import MEMORY, folder, kill, log_in_as, settle, settle_and_see
from world import scenario

ASKING = MODERN + ["draft/chathistory", "soju.im/search"]


def ask(client, line):
    """The lines of an answer, without its batch."""
    client.send("@label=ask " + line)
    answer = client.expect("BATCH", lambda line: line.tags.get("label") == "ask" and line.params[0].startswith("+"))
    batch, begin = answer.params[0][1:], client.cursor
    client.expect("BATCH", lambda line: line.params == ["-" + batch])
    return [line for line in client.lines[begin : client.cursor - 1] if line.tags.get("batch") == batch]


def texts(lines):
    return [line.params[-1] for line in lines]


def refused(client, line):
    client.send("@label=no " + line)
    return client.expect("FAIL", lambda line: line.tags.get("label") == "no").params[1]


def leaf_back(client, limit, channel="#lobby"):
    """Every page from the newest message back, as one list; only the last page may be short."""
    found = ask(client, "CHATHISTORY LATEST %s * %d" % (channel, limit))
    count = len(found)
    while count == limit:
        page = ask(client, "CHATHISTORY BEFORE %s msgid=%s %d" % (channel, found[0].tags["msgid"], limit))
        found, count = page + found, len(page)
    return found


def leaf_on(client, limit, channel="#lobby"):
    found = ask(client, "CHATHISTORY AFTER %s timestamp=2001-01-01T00:00:00.000Z %d" % (channel, limit))
    count = len(found)
    while count == limit:
        page = ask(client, "CHATHISTORY AFTER %s msgid=%s %d" % (channel, found[-1].tags["msgid"], limit))
        found, count = found + page, len(page)
    return found


def differences(expected, found):
    """What is missing, what is there twice, and where the order first differs."""
    first = next((n for n, pair in enumerate(zip(expected, found)) if pair[0] != pair[1]), min(len(expected), len(found)))
    return "missing %r, not said %r, twice %r, from %d on %r instead of %r" % (
        [text for text in expected if text not in found], [text for text in found if text not in expected],
        [text for text in sorted(set(found)) if found.count(text) > 1], first, found[first:first + 4], expected[first:first + 4])


@scenario
def pages_over_a_restart(world):
    """Each message once, with its id and its time, whoever asks and whichever process was there when it was said."""
    directory = folder(world)
    said, live = [], {}
    remy = world.person("Remy")
    for turn in range(3):
        world.start(directory=directory)
        ann = world.irc("ann")
        for n in range(20):
            said += ["up %d.%d" % (turn, n), "down %d.%d" % (turn, n)]
            ann.say("#lobby", said[-2])
            line = ann.expect_text(said[-2])
            live[line.params[-1]] = (line.tags["msgid"], line.tags["time"])
            remy.say(said[-1])
            line = ann.expect_text(said[-1])
            live[line.params[-1]] = (line.tags["msgid"], line.tags["time"])
        said.append("kept %d" % turn)
        line = settle_and_see(ann, said[-1])
        live[said[-1]] = (line.tags["msgid"], line.tags["time"])
        said.append("end %d" % turn)
        if turn < 2:
            settle(ann, said[-1])
            kill(world)
        else:
            settle_and_see(ann, said[-1])
    bob = world.irc("bob", caps=ASKING)
    for limit in (7, 50, 500):
        for lines in (leaf_back(bob, limit), leaf_on(bob, limit)):
            words = [line for line in lines if line.command == "PRIVMSG"]
            assert texts(words) == said, differences(said, texts(words))
            for line in words:
                assert live.get(line.params[-1], (line.tags["msgid"], line.tags["time"])) == (
                    line.tags["msgid"], line.tags["time"]), line.raw
    # Several may have been said within one millisecond, and then a time names all of them.
    times = [time for _, time in live.values()]
    for text in [text for text in said if text in live and text.startswith("down 1.")][:5]:
        msgid, time = live[text]
        for reference in ["msgid=" + msgid] + ["timestamp=" + time] * (times.count(time) == 1):
            around = texts(ask(bob, "CHATHISTORY AROUND #lobby %s 3" % reference))
            assert text in around and len(around) == 3, "%s of %r: %r" % (reference, text, around)
    assert texts(ask(bob, "SEARCH text=DOWN\\s1.3;in=#lobby")) == ["down 1.3"]
    return "%d messages" % len(said)


@scenario
def limits_are_exact(world):
    world.start(limits='messages_per_second = "off"\nupstream_messages_per_second = "off"\nhistory_limit = 5')
    ann = world.irc("ann", caps=ASKING)
    tokens = [param for line in ann.lines if line.command == "005" for param in line.params]
    assert "CHATHISTORY=5" in tokens and "MSGREFTYPES=msgid,timestamp" in tokens, tokens
    for n in range(12):
        settle_and_see(ann, "m%d" % n)
    assert texts(ask(ann, "CHATHISTORY LATEST #lobby * 100")) == ["m%d" % n for n in range(7, 12)]
    assert texts(ask(ann, "CHATHISTORY LATEST #lobby * 2")) == ["m10", "m11"]
    assert texts(leaf_back(ann, 5)) == ["m%d" % n for n in range(12)]
    assert ask(ann, "CHATHISTORY LATEST #lobby * 0") == []
    assert refused(ann, "CHATHISTORY LATEST #lobby * x") == "INVALID_PARAMS"
    assert refused(ann, "CHATHISTORY LATEST #elsewhere * 5") == "INVALID_TARGET"
    assert refused(ann, "CHATHISTORY BEFORE #lobby msgid=unheard-of 5") == "MESSAGE_ERROR"
    assert refused(ann, "CHATHISTORY BEFORE #lobby sequence=5 5") == "INVALID_MSGREFTYPE"


@scenario
def pages_by_times_of_whole_seconds(world):
    """A backend that counts whole seconds: who goes on by the times of what it has gets each message once, to the end."""
    world.start(limits='messages_per_second = "off"\nupstream_messages_per_second = "off"')
    ann, remy = world.irc("ann", caps=ASKING), world.person("Remy")
    second, said = int(time.time()) - 1000, ["m%02d" % n for n in range(40)]
    for n, text in enumerate(said):
        remy.say(text, sent_at=second + n // 6)
    ann.expect_text(said[-1])
    for limit in (1, 4, 8):
        found = page = ask(ann, "CHATHISTORY LATEST #lobby * %d" % limit)
        while page:
            page = ask(ann, "CHATHISTORY BEFORE #lobby timestamp=%s %d" % (page[0].tags["time"], limit))
            found = page + found
        assert texts(found) == said, differences(said, texts(found))
        found = page = ask(ann, "CHATHISTORY AFTER #lobby timestamp=2001-01-01T00:00:00.000Z %d" % limit)
        while page:
            page = ask(ann, "CHATHISTORY AFTER #lobby timestamp=%s %d" % (page[-1].tags["time"], limit))
            found = found + page
        assert texts(found) == said, differences(said, texts(found))
    # Each is shown in its second, and none at the time of another: so a time names one, for others too.
    shown = [line.tags["time"] for line in ask(ann, "CHATHISTORY LATEST #lobby * 40")]
    assert shown == sorted(set(shown)), shown
    assert [seconds_of(at) for at in shown] == [second + n // 6 for n in range(40)], shown
    bob = world.irc("bob", caps=ASKING)
    page = texts(ask(bob, "CHATHISTORY BEFORE #lobby timestamp=%s 8" % shown[32]))
    assert page == said[24:32], page


def seconds_of(at):
    return int(datetime.datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp())


@scenario
def memory_has_a_history_too(world):
    directory = folder(world)
    world.start(directory=directory, tables=MEMORY)
    ann, remy = world.irc("ann", caps=ASKING), world.person("Remy")
    for n in range(10):
        remy.say("m%d" % n)
        ann.expect_text("m%d" % n)
    assert texts(leaf_back(ann, 3)) == ["m%d" % n for n in range(10)]
    assert texts(ask(ann, "SEARCH from=remy;text=m7")) == ["m7"]
    kill(world)
    world.start(directory=directory, tables=MEMORY)
    assert ask(world.irc("bob", caps=ASKING), "CHATHISTORY LATEST #lobby * 10") == []


@scenario
def two_accounts(world):
    """Each sees the rooms that it is in or was given, and the times of what was said there last."""
    directory = folder(world)
    identity = "[identity]\n" + account("alice", "secret") + account("bob", "other", 'rooms = ["attic"]')
    world.start(rooms=("lobby", "attic"), directory=directory, server_extra=identity)
    alice = log_in_as(world, "alice", "secret", "alice", "#lobby")
    bob = log_in_as(world, "bob", "other", "bob", "#attic")
    for client, channel in ((alice, "#lobby"), (bob, "#attic")):
        client.say(channel, "in " + channel)
        client.expect_text("in " + channel)
        # Kept before the next one is accepted.
        client.say(channel, "end")
        client.expect_text("end")
        client.barrier()
    kill(world)
    world.start(rooms=("lobby", "attic"), directory=directory, server_extra=identity)
    alice = log_in_as(world, "alice", "secret", "alice", "#lobby")
    bob = log_in_as(world, "bob", "other", "bob")
    for client, own, other in ((alice, "#lobby", "#attic"), (bob, "#attic", "#lobby")):
        client.send("CAP REQ :draft/chathistory soju.im/search")
        client.expect("CAP", lambda line: line.params[1] == "ACK")
        assert "in " + own in texts(ask(client, "CHATHISTORY LATEST %s * 5" % own))
        assert refused(client, "CHATHISTORY LATEST %s * 1" % other) == "INVALID_TARGET"
        assert texts(ask(client, "SEARCH text=in")) == ["in " + own]
        found = ask(
            client, "CHATHISTORY TARGETS timestamp=2001-01-01T00:00:00.000Z timestamp=2200-01-01T00:00:00.000Z 10")
        assert [line.params[:2] for line in found] == [["TARGETS", own]], [line.raw for line in found]
        assert found[0].params[2].endswith("Z")


@on_wires(lambda wire: wire.history and wire.name != "jwt-rooms")
def what_only_the_backend_has(setting):
    """The relay comes to a room of which it keeps the newest messages alone; who asks for more gets it from the backend.

    Not on jwt-rooms: of what was said in one second, that backend does not give the newest first, so what is kept has holes.
    """
    setting.serve()
    said = ["old %d" % n for n in range(130)]
    for text in said:
        setting.backend.say("Remy", text)
    setting.start()
    ann = setting.irc("ann", more=["draft/chathistory"])
    said.append("live")
    setting.backend.say("Remy", "live")
    ann.expect_text("live")
    assert texts(leaf_back(ann, 20)) == said, "back"
    assert texts(leaf_on(ann, 30)) == said, "on"
    bob = setting.irc("bob", more=["draft/chathistory"])
    assert texts(ask(bob, "CHATHISTORY LATEST #lobby * 500")) == said, "at once"
    # Nobody was shown anything.
    ann.barrier()
    alone = [line.params[-1] for line in ann.lines if line.command == "PRIVMSG" and "batch" not in line.tags]
    assert alone == ["live"], alone
