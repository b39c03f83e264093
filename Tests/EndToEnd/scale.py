"""One room of ten thousand users: long replies and mass JOINs do not delay others."""

import json
import os
import statistics
import tempfile
import time

from marks import alone, slow
from peer import IRC
from world import scenario

MEMBERS = int(os.environ.get("MEMBERS", "10000"))
# What a message may take while others ask for everything, in the time of one whole answer to WHO: the worst, and the median.
# A bridge that writes an answer in one piece makes messages wait for several.
WORST, MEDIAN = 1, 1 / 4

# A wire that tells who comes and goes.
WIRE = {
    "echo": "by-id",
    "decode": [
        {"when": {"/op": "message"}, "event": "message",
         "fields": {"id": "/id", "sender.id": "/from", "sender.name": "/name", "text": "/text"}},
        {"when": {"/op": "join"}, "event": "join", "fields": {"user.id": "/from", "user.name": "/name"}},
        {"when": {"/op": "leave"}, "event": "leave", "fields": {"user.id": "/from", "user.name": "/name"}},
    ],
    "encode": {"message": {"op": "message", "id": "{{id}}", "from": "{{sender.id}}", "name": "{{sender.name}}",
                           "text": "{{text}}"}},
}


def start(world):
    directory = world.stack.enter_context(tempfile.TemporaryDirectory(prefix="chatbridge-"))
    path = os.path.join(directory, "crowd.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(WIRE, file)
    world.start(room_extra='dialect = "crowd"', tables='[dialects.crowd]\nfile = "%s"' % path)


def come(world, first, last):
    for number in range(first, last):
        world.relay.raw(json.dumps({"op": "join", "from": "u%d" % number, "name": "person%d" % number}))


def talk(world, watcher, count, pause, tag):
    """Says so many things as somebody upstream; the seconds that each took to the watcher."""
    took = []
    for number in range(count):
        text = "%s %d" % (tag, number)
        began = time.monotonic()
        world.relay.raw(
            json.dumps({"op": "message", "id": text.replace(" ", "-"), "from": "u0", "name": "person0", "text": text}))
        watcher.expect_text(text)
        took.append(time.monotonic() - began)
        end = time.monotonic() + pause
        while time.monotonic() < end:
            watcher.pump(max(0, end - time.monotonic()))
    return took


def joins(client):
    client.drain()
    return [line for line in client.lines if line.command == "JOIN" and line.source.startswith("person")]


@scenario
@alone("measures how long others wait under load")
def a_room_of_ten_thousand_answers_everything_while_others_talk(world):
    start(world)
    modern = world.irc("ann", caps=("batch", "message-tags", "server-time"))
    plain = world.plain("bob")
    began = time.monotonic()
    come(world, 0, MEMBERS)
    while len(joins(modern)) < MEMBERS or len(joins(plain)) < MEMBERS:
        assert time.monotonic() - began < 120, "%d and %d joined" % (len(joins(modern)), len(joins(plain)))
        modern.pump(0.05)
        plain.pump(0.05)
    told = time.monotonic() - began
    for client in (modern, plain):
        assert len({line.source for line in joins(client)}) == MEMBERS == len(joins(client)), "somebody joined twice"
    batches = [line for line in modern.lines if line.command == "BATCH" and "netjoin" in line.params]
    assert batches and all(line.params[2:] == ["bridge.test", "lobby"] for line in batches), batches[:2]
    assert not [line for line in plain.lines if line.command == "BATCH"]

    calm = talk(world, plain, 40, 0.02, "calm")
    # An answer that nobody else delays.
    began = time.monotonic()
    plain.send("WHO #lobby")
    plain.expect("315")
    answer = time.monotonic() - began
    # Three who ask for everything, again and again, while somebody comes in and somebody talks.
    askers = [world.irc("asker%d" % number, join=None, caps=("no-implicit-names",)) for number in range(3)]
    for asker in askers:
        asker.send("JOIN #lobby")
        asker.expect("JOIN", lambda line: line.source.startswith(asker.nick))
        for _ in range(4):
            asker.send("NAMES #lobby", "WHO #lobby", "WHO nobody*", "WHO *")
    comer = IRC(world.bridge.port, "comer")
    world.stack.callback(comer.close)
    comer.send("JOIN #lobby")
    busy = []
    answered = {client: 0 for client in askers}
    while not all(count >= 12 for count in answered.values()):
        busy += talk(world, plain, 1, 0, "busy%d" % len(busy))
        for client in askers + [comer]:
            seen = len(client.lines)
            client.pump(0)
            assert not client.closed, "%s was closed: %s" % (client.nick, client.lines[-1].raw)
            if client in answered:
                answered[client] += [line.command for line in client.lines[seen:]].count("315")
    assert len(busy) >= 10, "only %d messages were said while others asked" % len(busy)
    comer.expect("366")
    names = " ".join(line.params[-1] for line in comer.lines if line.command == "353").split()
    assert len(names) == len(set(names)) == MEMBERS + 6, "%d names, %d of them different" % (len(names), len(set(names)))
    for asker in askers:
        lines = [line for line in asker.lines if line.command == "352" and line.params[1] == "#lobby"]
        assert len(lines) >= 4 * (MEMBERS + 4), "%d WHO lines" % len(lines)
    worst, median = max(busy), statistics.median(busy)
    measured = "a message takes %.1f ms, %.1f ms while others ask, at most %.1f ms; a whole answer %.0f ms" % tuple(
        1000 * seconds for seconds in (statistics.median(calm), median, worst, answer))
    assert worst < WORST * answer and median < MEDIAN * answer, measured
    return "%d people told of in %.1f s; %s" % (MEMBERS, told, measured)


@scenario
@slow("a minute passes before people who vanished are taken for gone")
def people_who_vanish_with_the_link_leave_and_return_in_batches(world):
    start(world)
    ann = world.irc("ann", caps=("batch",))
    bob = world.plain("bob")
    come(world, 0, 300)
    while len(joins(ann)) < 300:
        ann.pump(0.05)
    world.relay.stop_listening()
    world.relay.drop()
    split = ann.expect("BATCH", lambda line: "netsplit" in line.params, patience=90)
    assert split.params[2:] == ["bridge.test", "lobby"], split
    end = ann.expect("BATCH", lambda line: line.params[0] == "-" + split.params[0][1:])
    quits = [line for line in ann.lines if line.command == "QUIT"]
    assert len(quits) == 300 and all(line.tags.get("batch") == split.params[0][1:] for line in quits), end
    bob.barrier()
    assert len([line for line in bob.lines if line.command == "QUIT"]) == 300
    world.relay.listen()
    world.relay.wait_for_bridge()
    ann.expect("NOTICE", lambda line: "is back" in line.params[-1] or "linked to" in line.params[-1])
    come(world, 0, 300)
    began = time.monotonic()
    while len(joins(ann)) < 600:
        assert time.monotonic() - began < 30, "%d returned" % (len(joins(ann)) - 300)
        ann.pump(0.05)
    bob.barrier()
    ann.send("NAMES #lobby")
    ann.expect("366")
    assert len(joins(bob)) == 600
